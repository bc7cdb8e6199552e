/*
 * The instance's option table. Runs in main() before threads start.
 */
#include "instance/options.h"

#include "instance/limits.h"
#include "runtime/base/log.h"
#include "runtime/model/ids.h"

enum profile {
    PROFILE_DEFAULT,
    PROFILE_CLASSIC,
};

static const char *const profiles[] = {
    [PROFILE_DEFAULT] = "default",
    [PROFILE_CLASSIC] = "classic",
    NULL,
};

static const char *const evictions[] = {
    [INST_EVICTION_SPILL] = "spill",
    [INST_EVICTION_DROP] = "drop",
    NULL,
};

static const char *const stores[] = {
    [INST_STORE_LMDB] = "lmdb",
    [INST_STORE_FILES] = "files",
    NULL,
};

static const char *const policies[] = {
    [INST_POLICY_CIRC] = "CIRC",
    [INST_POLICY_LRU] = "LRU",
    [INST_POLICY_BSU] = "BSU",
    NULL,
};

static const char *const growths[] = {
    [INST_GROWTH_RELOCATE] = "relocate",
    [INST_GROWTH_REJECT] = "reject",
    NULL,
};

static const struct rt_option options[] = {
    {
        .name = "name",
        .type = RT_OPTION_STRING,
        .is_required = true,
        .help = "Name of this instance, unique in the cluster: 1 to 63 of A-Z a-z 0-9 . _ -",
        .argument = "NAME",
        .offset = offsetof(struct inst_options, name),
    },
    {
        .name = "listen",
        .type = RT_OPTION_ADDRESS,
        .initial = "127.0.0.1:7410",
        .argument = "ADDR",
        .help = "host:port (port 0 chooses a free one) or unix:/path.",
        .offset = offsetof(struct inst_options, listen),
    },
    {
        .name = "advertise",
        .type = RT_OPTION_ADDRESS,
        .min = 1,
        .argument = "ADDR",
        .help =
            "Where coordinator and clients reach this instance; the bound address unless given.",
        .offset = offsetof(struct inst_options, advertise),
    },
    {
        .name = "coordinator",
        .type = RT_OPTION_ADDRESS,
        .min = 1,
        .initial = "127.0.0.1:7400",
        .argument = "ADDR",
        .help = "Address of the coordinator.",
        .offset = offsetof(struct inst_options, coordinator),
    },
    {
        .name = "profile",
        .type = RT_OPTION_ENUM,
        .names = profiles,
        .initial = "default",
        .help = "What the options below are unless given: classic = the course's rules to the "
                "letter (growth reject, eviction drop, store files, dump-interval 10s). The "
                "coordinator's should be the same.",
        .offset = offsetof(struct inst_options, profile),
    },
    {
        .name = "entries",
        .type = RT_OPTION_U64,
        .group = "Memory",
        .initial = "65536",
        .min = 1,
        .max = UINT32_MAX,
        .help = "Number of entries; a value takes as many as it needs, next to each other.",
        .offset = offsetof(struct inst_options, entries),
    },
    {
        .name = "entry-size",
        .type = RT_OPTION_SIZE,
        .group = "Memory",
        .initial = "128",
        .min = 1,
        .max = MODEL_VALUE_MAX,
        .help = "Bytes of one entry.",
        .offset = offsetof(struct inst_options, entry_size),
    },
    {
        .name = "replacement",
        .type = RT_OPTION_ENUM,
        .group = "Memory",
        .names = policies,
        .initial = "CIRC",
        .help = "Which value of one entry leaves memory when another one needs room: the next in a "
                "circle, the least recently SET or STOREd, the largest.",
        .offset = offsetof(struct inst_options, replacement),
    },
    {
        .name = "eviction",
        .type = RT_OPTION_ENUM,
        .group = "Memory",
        .names = evictions,
        .initial = "spill",
        .help =
            "What becomes of such a value: spill = it is read back from the store when it is "
            "wanted, drop = the key is lost, STOREd or not, and the answer to the write says so.",
        .offset = offsetof(struct inst_options, eviction),
    },
    {
        .name = "growth",
        .type = RT_OPTION_ENUM,
        .group = "Memory",
        .names = growths,
        .initial = "relocate",
        .help = "A value that needs more entries than the key has gets other ones, or is refused.",
        .offset = offsetof(struct inst_options, growth),
    },
    {
        .name = "store",
        .type = RT_OPTION_ENUM,
        .group = "Store",
        .names = stores,
        .initial = "lmdb",
        .help =
            "Where stored values are: lmdb = in a database in the data directory, files = there, "
            "and each also in a file that is named after its key and holds nothing else.",
        .offset = offsetof(struct inst_options, store),
    },
    {
        .name = "mount",
        .type = RT_OPTION_STRING,
        .group = "Store",
        .argument = "DIR",
        .help = "The directory of these files, made if absent, locked while in use; DATA-DIR/files "
                "unless given.",
        .offset = offsetof(struct inst_options, mount),
    },
    {
        .name = "dump-interval",
        .type = RT_OPTION_DURATION,
        .group = "Store",
        .initial = "0",
        .max = INST_DUMP_INTERVAL_MS_MAX,
        .help = "Store SET values too, every so often, those that have changed; 0 = never.",
        .offset = offsetof(struct inst_options, dump_interval_ms),
    },
};

/* What the option takes, the coordinator takes. */
_Static_assert((int)RT_OPTION_ADDRESS_MAX <= (int)MODEL_ADDRESS_MAX, "longest address");

static const struct rt_option_table tables[] = {
    {options, RT_ARRAY_SIZE(options), NULL},
    {host_service_options, HOST_SERVICE_N_OPTIONS, NULL},
};

static const char *const examples[] = {
    "redistinto-instance --name a --data-dir /var/lib/redistinto/a --coordinator 127.0.0.1:7400",
    "redistinto-instance --name b --data-dir b --listen 0.0.0.0:7411 --advertise 10.0.0.2:7411",
    NULL,
};

const struct rt_option_command inst_options_command = {
    .name = "redistinto-instance",
    .section = "instance",
    .usage = "",
    .summary = "store the values of keys that it owns",
    .description = "Stores values and confirms before each write that it owns the key.",
    .examples = examples,
    .tables = tables,
    .n_tables = RT_ARRAY_SIZE(tables),
};

static enum rt_code adjust(struct rt_options *parsed, void *ctx, struct rt_error *err)
{
    const struct inst_options *given = ctx;

    (void)err;
    if (given->profile == PROFILE_CLASSIC) {
        rt_option_set_default(parsed, "growth", "reject");
        rt_option_set_default(parsed, "eviction", "drop");
        rt_option_set_default(parsed, "store", "files");
        rt_option_set_default(parsed, "dump-interval", "10s");
    }
    return RT_OK;
}

static enum rt_code check(const struct inst_options *parsed, struct rt_error *err)
{
    enum rt_code code = model_name_check("--name", rt_bytes_of_string(parsed->name), err);

    if (code == RT_OK && !parsed->advertise &&
        (strncmp(parsed->listen, "0.0.0.0:", 8) == 0 || strncmp(parsed->listen, "[::]:", 5) == 0))
        code = rt_fail(err, RT_INVALID_ARGUMENT,
                       "--listen %s binds every interface: say with --advertise where others reach "
                       "this instance",
                       parsed->listen);
    if (code == RT_OK && parsed->mount && parsed->store != INST_STORE_FILES)
        code = rt_fail(err, RT_INVALID_ARGUMENT,
                       "--mount %s: there are no files with --store %s, only with --store files",
                       parsed->mount, stores[parsed->store]);
    if (code == RT_OK && parsed->mount && parsed->mount[0] == '\0')
        code = rt_fail(err, RT_INVALID_ARGUMENT, "--mount is empty: it must name a directory");
    return code;
}

enum rt_code inst_options_parse(int argc, char **argv, char *const *environment,
                                struct inst_options *ret_options,
                                struct host_service_config *ret_service,
                                enum rt_option_action *ret_action, struct rt_options **ret_parsed,
                                struct rt_error *err)
{
    void *const configs[] = {ret_options, ret_service};
    const struct rt_option_setup setup = {
        .command = &inst_options_command,
        .configs = configs,
        .version = REDISTINTO_VERSION,
        .environment = environment,
        .adjust = adjust,
        .adjust_ctx = ret_options,
    };
    enum rt_code code = rt_option_parse(&setup, argc, argv, ret_action, ret_parsed, err);

    if (code != RT_OK || *ret_action == RT_OPTION_EXIT_OK)
        return code;
    ret_service->listen = ret_options->listen;
    if ((*ret_parsed)->n_positional > 0)
        code =
            rt_fail(err, RT_INVALID_ARGUMENT, "unexpected word '%s'", (*ret_parsed)->positional[0]);
    else
        code = check(ret_options, err);
    if (code != RT_OK)
        *ret_parsed = rt_option_free(*ret_parsed);
    return code;
}

void inst_options_tell(const struct inst_options *given)
{
    rt_log(RT_LOG_INFO,
           "event=rules profile=%s entries=%llu entry-size=%llu replacement=%s growth=%s "
           "eviction=%s store=%s dump-interval_ms=%llu",
           profiles[given->profile], (unsigned long long)given->entries,
           (unsigned long long)given->entry_size, policies[given->replacement],
           growths[given->growth], evictions[given->eviction], stores[given->store],
           (unsigned long long)given->dump_interval_ms);
}
