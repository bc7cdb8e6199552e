/*
 * What the files of one run share (bench_run.h). Everything is under the link's lock.
 */
#ifndef CLI_BENCH_INTERNAL_H
#define CLI_BENCH_INTERNAL_H

#include "cli/bench_link.h"
#include "cli/bench_routes.h"
#include "cli/bench_run.h"
#include "cli/pace.h"
#include "runtime/model/lease.h"

enum {
    CLI_BENCH_NAME_SIZE = CLI_BENCH_PREFIX_MAX + 11,
    CLI_BENCH_MARGIN_US = 2000 * 1000, /* beyond the timeout of what is under way at the end */
};

enum cli_bench_phase {
    CLI_BENCH_PREPARE, /* each key once */
    CLI_BENCH_LOAD,
};

struct cli_bench;

/* Carries one request at a time: up to a batch of operations, or one that asks for its route. */
struct cli_bench_slot {
    struct cli_link_slot link;
    struct rt_list node; /* in free or resting; not while a request is under way */
    struct cli_bench *bench;
    struct model_call call;
    uint64_t rests_until_us;
    struct cli_bench_operation *operations; /* owned, room for a batch */
    uint32_t n_operations;
};

/* What keeps the session of the routed path; its slot carries no load. */
struct cli_bench_session {
    struct cli_link_slot link;
    struct model_call call;
    struct model_id id;
    bool is_open;
    bool is_busy; /* a call is under way */
    struct model_lease lease;
    uint64_t renew_us; /* when the next KeepAlive is due */
};

struct cli_bench {
    const struct cli_bench_options *options;
    struct cli_bench_stats *stats;
    struct cli_link *link;
    struct cli_workload workload;
    struct cli_bench_routes routes;
    struct cli_bench_slot *slots; /* owned */
    struct rt_list free;
    struct rt_list resting; /* after a failure, first to go on first */
    size_t n_active;        /* slots with a request under way */

    enum cli_bench_phase phase;
    uint64_t now_us; /* when the answer came, or the main thread woke, that is being dealt with */
    struct cli_pace pace;
    uint64_t n_prepared;
    uint64_t n_drawn; /* measured operations */
    uint64_t measure_from_us;
    uint64_t end_us;
    bool is_over;    /* nothing more is drawn in this phase */
    bool is_stopped; /* answers do not count any more */
    unsigned n_interrupts;
    bool has_failed; /* the run as a whole: */
    struct model_response failure;
    uint64_t told_us; /* when progress was shown last */

    struct cli_bench_session session;

    /* Of the request that is being made. */
    char (*names)[CLI_BENCH_NAME_SIZE];         /* owned, room for a batch */
    struct model_pipeline_operation *pipelined; /* owned, the same */
    uint8_t *value;                             /* owned, of the largest size */
};

static inline struct cli_bench_slot *cli_bench_slot_of(struct cli_link_slot *link)
{
    return RT_CONTAINER_OF(link, struct cli_bench_slot, link);
}

/* Ends the run as a whole with this failure, unless it has one. */
void cli_bench_give_up(struct cli_bench *bench, enum rt_code code, const struct model_error *error);

/* ---- bench_request.c ---- */

/* Each fills the slot's call and starts it. */
void cli_bench_ask_route(struct cli_bench_slot *slot);
void cli_bench_send_statement(struct cli_bench_slot *slot);
void cli_bench_send_to(struct cli_bench_slot *slot, const struct cli_bench_owner *owner);

/* ---- bench_session.c ---- */

/* Before the first use. */
void cli_bench_session_init(struct cli_bench *bench);

/* Begins a session; gives up when there is none to be had. Returns when that is known or the run is
 * interrupted. */
void cli_bench_session_open(struct cli_bench *bench);

/* Sends KeepAlive when it is due. The run ends when the session is lost. */
void cli_bench_session_keep(struct cli_bench *bench);

/* Ends it, if the coordinator still answers. Not waited for after a second interrupt. */
void cli_bench_session_close(struct cli_bench *bench);

#endif
