/*
 * The page of limits: see limits.h. Invariant: numbers come from the constants that the code
 * compares with, so that the page cannot say another. One thread.
 */
#include "docs/generator/limits.h"

#include "coordinator/operations.h"
#include "coordinator/sessions.h"
#include "coordinator/watch.h"
#include "esi-client/direct.h"
#include "esi-client/locks.h"
#include "esi-client/options.h"
#include "esi-client/retry.h"
#include "esi-client/script.h"
#include "esi-client/service.h"
#include "instance/limits.h"
#include "runtime/host/batch.h"
#include "runtime/model/limits.h"
#include "runtime/model/template.h"
#include "runtime/rpc/server_internal.h"

enum {
    KIB = 1024,
    MIB = 1024 * KIB
};

enum unit {
    COUNT,
    BYTES,
    MILLISECONDS
};

struct limit {
    const char *what;
    unsigned value;
    enum unit unit;
    const char *where; /* the file that compares */
    const char *past;  /* what one more gets */
};

struct section {
    const char *title;
    const struct limit *limits;
    size_t n_limits;
};

static const struct limit calls[] = {
    {"message", RPC_DEFAULT_MAX_MESSAGE_BYTES, BYTES, "runtime/rpc/server_listen.c",
     "RESOURCE_EXHAUSTED"},
    {"the same, decoded", RPC_DEFAULT_MAX_ARENA_BYTES, BYTES, "runtime/rpc/codec.c",
     "RESOURCE_EXHAUSTED"},
    {"request of health or reflection", RPC_SMALL_REQUEST_MAX, BYTES, "runtime/rpc/call_event.c",
     "RESOURCE_EXHAUSTED"},
    {"metadata of a call, 32 bytes added for each", RPC_DEFAULT_MAX_METADATA_BYTES, BYTES,
     "runtime/rpc/call.c", "RESOURCE_EXHAUSTED"},
    {"unary calls at once", RPC_DEFAULT_MAX_CALLS, COUNT, "runtime/rpc/call.c",
     "RESOURCE_EXHAUSTED"},
    {"streams at once", RPC_DEFAULT_MAX_STREAMS, COUNT, "runtime/rpc/call.c", "RESOURCE_EXHAUSTED"},
    {"calls and streams of one connection, begun or not",
     RPC_DEFAULT_MAX_CALLS + RPC_DEFAULT_MAX_STREAMS, COUNT, "runtime/rpc/server_listen.c",
     "the connection ends; libraries know the number and wait"},
    {"reflection streams at once", RPC_REFLECTION_STREAMS_MAX, COUNT, "runtime/rpc/reflection.c",
     "RESOURCE_EXHAUSTED"},
    {"a unary call without deadline", RPC_DEFAULT_UNARY_DEADLINE_MS, MILLISECONDS,
     "runtime/rpc/call.c", "DEADLINE_EXCEEDED"},
    {"messages of one stream that its client does not read", RPC_DEFAULT_QUEUE_MESSAGES, COUNT,
     "runtime/rpc/outbox.c", "RESOURCE_EXHAUSTED, or the stream is not read until it reads"},
    {"the same, bytes", RPC_DEFAULT_QUEUE_BYTES, BYTES, "runtime/rpc/outbox.c",
     "RESOURCE_EXHAUSTED, or the stream is not read until it reads"},
    {"answers of all calls that nobody reads", RPC_DEFAULT_BACKLOG_BYTES, BYTES,
     "runtime/rpc/backlog.c", "who has read nothing for longest ends with RESOURCE_EXHAUSTED"},
    {"pause between the pings of a client, at least", RPC_DEFAULT_KEEPALIVE_PERMIT_MS, MILLISECONDS,
     "runtime/rpc/server_listen.c", "the connection ends"},
};

static const struct limit fields[] = {
    {"key", MODEL_KEY_MAX, BYTES, "runtime/wire/convert.c", "KEY_TOO_LONG; of 0 bytes: KEY_EMPTY"},
    {"key, classic profile (`--key-max`)", MODEL_KEY_MAX_CLASSIC, BYTES, "coordinator/execute.c",
     "KEY_TOO_LONG"},
    {"value", MODEL_VALUE_MAX, BYTES, "runtime/wire/convert.c", "VALUE_TOO_LARGE"},
    {"name of an instance or session", MODEL_NAME_MAX, BYTES, "runtime/wire/convert.c",
     "INVALID_FIELD"},
    {"address", MODEL_ADDRESS_MAX, BYTES, "runtime/wire/convert.c", "INVALID_FIELD"},
    {"items of one page of a listing", MODEL_PAGE_MAX, COUNT, "runtime/wire/admin.c",
     "INVALID_FIELD"},
    {"rows of one Reconcile or PullRows message", MODEL_RECONCILE_ROWS_MAX, COUNT,
     "runtime/wire/registry.c", "INVALID_FIELD"},
};

static const struct limit batches[] = {
    {"operations of one batch", MODEL_PIPELINE_OPERATIONS_MAX, COUNT, "runtime/wire/pipeline.c",
     "LIMIT_REACHED, the whole batch"},
    {"batches under way on one stream", MODEL_PIPELINE_BATCHES_MAX, COUNT, "runtime/host/batch.c",
     "the stream is not read meanwhile"},
    {"memory of those, operations and results", MODEL_PIPELINE_BYTES_MAX, BYTES,
     "runtime/host/batch.c", "the stream is not read meanwhile"},
    {"values read by one batch", MODEL_PIPELINE_VALUES_MAX, BYTES, "runtime/host/batch.c",
     "LIMIT_REACHED, that operation"},
    {"operations of all streams at once", HOST_BATCH_OPERATIONS_MAX, COUNT, "runtime/host/batch.c",
     "LIMIT_REACHED, that operation"},
};

static const struct limit at_the_coordinator[] = {
    {"instance names that are remembered", MODEL_MEMBERS_MAX, COUNT, "coordinator/registry.c",
     "LIMIT_REACHED"},
    {"sessions alive at once", MODEL_SESSIONS_MAX, COUNT, "coordinator/session_calls.c",
     "LIMIT_REACHED"},
    {"sessions waiting for one key", MODEL_WAITERS_MAX, COUNT, "coordinator/locks.c",
     "LIMIT_REACHED"},
    {"operations behind another one on the same key", MODEL_WAITERS_MAX, COUNT,
     "coordinator/tasks.c", "LIMIT_REACHED"},
    {"remembered writes of one session", COORD_DONE_MAX, COUNT, "coordinator/sessions.c",
     "the oldest is forgotten"},
    {"changes that a watch of routes may be behind", COORD_WATCH_CHANGES_MAX, COUNT,
     "coordinator/watch.c", "it begins again with a snapshot"},
    {"keys of one message of a watch", MODEL_WATCH_KEYS_MAX, COUNT, "coordinator/watch.c",
     "the others follow in the next"},
    {"lines of the operation log that wait for its writer", COORD_OPERATIONS_MAX, BYTES,
     "coordinator/operations.c", "lines are lost, and counted in the log"},
};

static const struct limit at_an_instance[] = {
    {"SETs of one key between two of its transactions", INST_DEDUP_VOLATILE_MAX, COUNT,
     "instance/data.c", "the next one waits for a transaction"},
    {"calls behind one key's transaction", INST_WAITS_PER_KEY_MAX, COUNT, "instance/wait.c",
     "LIMIT_REACHED"},
    {"waiting calls in all", INST_WAITS_MAX, COUNT, "instance/wait.c", "LIMIT_REACHED"},
    {"values that a dump writes at once", INST_DUMP_IN_FLIGHT_MAX, COUNT, "instance/dump.c",
     "the next one waits for one of them"},
    {"unknown keys being asked about", INST_PULLS_MAX, COUNT, "instance/pull.c",
     "refused as without asking"},
    {"dropped keys that one answer or Renew names", MODEL_EVICTED_MAX, COUNT, "instance/evicted.c",
     "the oldest are left out; who asks for them learns it"},
    {"remembered requests of one client", INST_DEDUP_PER_CLIENT_MAX, COUNT, "instance/dedup.c",
     "the oldest is forgotten"},
    {"clients with remembered requests", INST_DEDUP_CLIENTS_MAX, COUNT, "instance/dedup.c",
     "who was silent for longest is forgotten"},
    {"remembered requests in all", INST_DEDUP_ENTRIES_MAX, COUNT, "instance/dedup.c",
     "the oldest of the client that was silent for longest is forgotten"},
};

static const struct limit in_clients[] = {
    {"unfinished operations", ESI_DIRECT_OPERATIONS_MAX, COUNT, "esi-client/direct.c",
     "LIMIT_REACHED"},
    {"keys of which the owner is remembered (`routes_max`)", ESI_DIRECT_ROUTES_MAX, COUNT,
     "esi-client/routes.c", "the one that was used least recently is forgotten"},
    {"released locks of which the token is remembered", ESI_LOCKS_RELEASED_MAX, COUNT,
     "esi-client/locks.c", "the oldest is forgotten: a SET of its key shows no token"},
    {"attempts of one operation", ESI_RETRY_ATTEMPTS_MAX, COUNT, "esi-client/direct.c",
     "it ends with what the last one came to"},
};

static const struct limit in_scripts[] = {
    {"script", ESI_SCRIPT_SIZE_MAX, BYTES, "esi-client/script.c", "it is not begun"},
    {"statements of a script", ESI_SCRIPT_STEPS_MAX, COUNT, "esi-client/script.c",
     "it is not begun"},
    {"bytes of a line, blanks around it aside", MODEL_STATEMENT_SIZE_MAX, BYTES,
     "runtime/model/statement.c", "a parse error"},
    {"statements of a run, all rounds of REPEATs counted", ESI_SCRIPT_EXECUTED_MAX, COUNT,
     "esi-client/script.c", "a parse error, or it is not begun"},
    {"rounds of one REPEAT", MODEL_STATEMENT_ROUNDS_MAX, COUNT, "runtime/model/statement.c",
     "a parse error"},
    {"REPEATs within each other", ESI_SCRIPT_DEPTH_MAX, COUNT, "esi-client/script.c",
     "a parse error"},
    {"SLEEP", MODEL_STATEMENT_SLEEP_MS_MAX, MILLISECONDS, "runtime/model/statement.c",
     "a parse error"},
    {"an expansion, from `$` to `}`", MODEL_TEMPLATE_EXPANSION_MAX, BYTES,
     "runtime/model/template.c", "a parse error"},
    {"number of `${zipf}`", MODEL_TEMPLATE_RANKS_MAX, COUNT, "runtime/model/template.c",
     "a parse error"},
    {"key and value together, expanded", ESI_SCRIPT_EXPANDED_MAX, BYTES, "esi-client/script.c",
     "a parse error"},
    {"scripts of one run under a planner", ESI_PLANNER_LIVE_MAX, COUNT, "esi-client/options.c",
     "exit code 2"},
    {"keys of `--blocked`", ESI_OPTIONS_BLOCKED_MAX, COUNT, "esi-client/options.c", "exit code 2"},
};

static const struct limit in_the_esi_service[] = {
    {"script", MODEL_ESI_SCRIPT_MAX, BYTES, "runtime/wire/esi.c", "INVALID_FIELD"},
    {"statements of a script", ESI_SERVICE_STATEMENTS_MAX, COUNT, "esi-client/service_calls.c",
     "LIMIT_REACHED"},
    {"scripts of all ESIs that live", ESI_SERVICE_TEXT_MAX, BYTES, "esi-client/service_calls.c",
     "LIMIT_REACHED"},
    {"ESIs that live at once", ESI_PLANNER_LIVE_MAX, COUNT, "esi-client/planner.c",
     "LIMIT_REACHED"},
    {"ESIs that have ended and stay known", ESI_SERVICE_FINISHED_MAX, COUNT, "esi-client/service.c",
     "the oldest is forgotten"},
};

static const struct section sections[] = {
    {"Calls, at every service", calls, RT_ARRAY_SIZE(calls)},
    {"Fields", fields, RT_ARRAY_SIZE(fields)},
    {"Batches (`Pipeline`)", batches, RT_ARRAY_SIZE(batches)},
    {"The coordinator", at_the_coordinator, RT_ARRAY_SIZE(at_the_coordinator)},
    {"An instance", at_an_instance, RT_ARRAY_SIZE(at_an_instance)},
    {"A client of the C library", in_clients, RT_ARRAY_SIZE(in_clients)},
    {"Scripts", in_scripts, RT_ARRAY_SIZE(in_scripts)},
    {"The ESI service", in_the_esi_service, RT_ARRAY_SIZE(in_the_esi_service)},
};

static const char introduction[] =
    "# Limits\n"
    "\n"
    "What a peer may send or make a service keep, and what one more gets. Reasons are those of\n"
    "`google.rpc.Status` ([errors.md](errors.md)). A request that is refused for a limit was not\n"
    "applied; one that ends because its answer is not read may have been. This page is printed by\n"
    "the build's `generate-docs limits`, from the constants that the code compares with; a test\n"
    "fails when it is older than they are.\n";

static const char by_options[] =
    "\n"
    "## Set by options\n"
    "\n"
    "| what | option | past it |\n"
    "|---|---|---|\n"
    "| values at an instance, in entries | `--entries`, `--entry-size` | others make room; "
    "NO_ENTRIES if "
    "that is not enough |\n"
    "| what a service writes to disk | `--store-limit`, the disk | DISK_FULL; reads go on |\n"
    "| the same with `--store files` | besides, one file a value in the mount point: its inodes "
    "too "
    "| DISK_FULL; reads go on |\n"
    "| time for calls in flight after SIGTERM | `--drain-timeout` | UNAVAILABLE |\n"
    "\n"
    "## Not limited\n"
    "\n"
    "- **Headers of one call that never end.** gRPC core 1.51, Debian 12's, keeps what comes in\n"
    "  CONTINUATION frames (compare CVE-2023-33953): headers of 256 MiB took 277 MiB until the\n"
    "  connection ended, and nothing stops a client there.\n"
    "- **Calls of a client that never acknowledges SETTINGS**, of which only the headers came:\n"
    "  core counts those of a connection only after that. Each takes some 12 KiB.\n"
    "- Connections: the process's limit of open files bounds them (`LimitNOFILE`).\n"
    "- Keys at the coordinator: its store and memory bound them.\n"
    "\n"
    "The first two need a peer that means harm. There is no authentication yet, so let only peers\n"
    "that you trust reach the ports, and set a memory limit in the service manager.\n";

static void append_value(struct rt_buffer *page, const struct limit *limit)
{
    if (limit->unit == MILLISECONDS)
        rt_buffer_printf(page, "%u s", limit->value / 1000);
    else if (limit->unit == COUNT)
        rt_buffer_printf(page, "%u", limit->value);
    else if (limit->value % MIB == 0)
        rt_buffer_printf(page, "%u MiB", limit->value / MIB);
    else if (limit->value % KIB == 0)
        rt_buffer_printf(page, "%u KiB", limit->value / KIB);
    else
        rt_buffer_printf(page, "%u bytes", limit->value);
}

void docs_limits_append(struct rt_buffer *page)
{
    rt_buffer_append_string(page, introduction);
    for (size_t i = 0; i < RT_ARRAY_SIZE(sections); i++) {
        rt_buffer_printf(page, "\n## %s\n\n| what | at most | enforced in | past it |\n",
                         sections[i].title);
        rt_buffer_append_string(page, "|---|---|---|---|\n");
        for (size_t k = 0; k < sections[i].n_limits; k++) {
            rt_buffer_printf(page, "| %s | ", sections[i].limits[k].what);
            append_value(page, &sections[i].limits[k]);
            rt_buffer_printf(page, " | `%s` | %s |\n", sections[i].limits[k].where,
                             sections[i].limits[k].past);
        }
    }
    rt_buffer_append_string(page, by_options);
}
