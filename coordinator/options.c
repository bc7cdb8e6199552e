/*
 * The coordinator's option table and what a profile implies. Runs in main() before threads start.
 */
#include "coordinator/options.h"

enum profile {
    PROFILE_DEFAULT,
    PROFILE_CLASSIC,
};

struct config {
    const char *listen;
    enum profile profile;
    enum model_distribution distribution;
    enum coord_ranges ranges;
    uint64_t key_max;
    enum model_locking locking;
    enum coord_owner_down owner_down;
    enum coord_compaction_mode compaction;
    uint64_t lease_ms;
    uint64_t session_lease_ms;
    uint64_t wake_hold_ms;
    uint64_t delay_ms;
    const char *operation_log;
    bool keep_locks;
};

static const char *const profiles[] = {
    [PROFILE_DEFAULT] = "default",
    [PROFILE_CLASSIC] = "classic",
    NULL,
};
const char *const coord_ranges_names[] = {
    [COORD_RANGES_EVEN] = "even",
    [COORD_RANGES_CEIL] = "ceil",
    NULL,
};
const char *const coord_locking_names[] = {
    [MODEL_LOCKING_OPTIONAL] = "optional",
    [MODEL_LOCKING_REQUIRED] = "required",
    [MODEL_LOCKING_NONE] = "none",
    NULL,
};
const char *const coord_owner_down_names[] = {
    [COORD_OWNER_DOWN_FORGET] = "forget",
    [COORD_OWNER_DOWN_KEEP] = "keep",
    NULL,
};

const char *const coord_compaction_names[] = {
    [COORD_COMPACT_LOCAL] = "local",
    [COORD_COMPACT_GLOBAL] = "global",
    NULL,
};

static const struct rt_option options[] = {
    {
        .name = "listen",
        .type = RT_OPTION_ADDRESS,
        .initial = "127.0.0.1:7400",
        .argument = "ADDR",
        .help = "host:port (port 0 chooses a free one) or unix:/path.",
        .offset = offsetof(struct config, listen),
    },
    {
        .name = "profile",
        .type = RT_OPTION_ENUM,
        .names = profiles,
        .initial = "default",
        .help =
            "What the options of the group \"Rules\" are unless given: classic = the course's "
            "rules to the letter (key-max 40, locking required, on-owner-down forget, compaction "
            "global).",
        .offset = offsetof(struct config, profile),
    },
    {
        .name = "distribution",
        .type = RT_OPTION_ENUM,
        .group = "Rules",
        .names = model_distribution_names,
        .initial = "equitable-load",
        .help = "How an instance is chosen at the first SET of a key: one after the other; the one "
                "with the most free entries, among equals one after the other; by the first letter "
                "of the key. `redistinto distribution` changes it while the coordinator runs; that "
                "holds until this option gets another value.",
        .offset = offsetof(struct config, distribution),
    },
    {
        .name = "key-ranges",
        .type = RT_OPTION_ENUM,
        .group = "Rules",
        .names = coord_ranges_names,
        .initial = "even",
        .help = "How key-explicit cuts the alphabet for n instances: as evenly as it can be, or in "
                "chunks of ceil(26/n) letters, which leaves some of 8 or more instances without.",
        .offset = offsetof(struct config, ranges),
    },
    {
        .name = "key-max",
        .type = RT_OPTION_U64,
        .group = "Rules",
        .initial = "255",
        .min = 1,
        .max = MODEL_KEY_MAX,
        .argument = "BYTES",
        .help = "Longest key.",
        .offset = offsetof(struct config, key_max),
    },
    {
        .name = "locking",
        .type = RT_OPTION_ENUM,
        .group = "Rules",
        .names = coord_locking_names,
        .initial = "optional",
        .help = "When a write needs the key's lock: only while the key is locked, always, never.",
        .offset = offsetof(struct config, locking),
    },
    {
        .name = "on-owner-down",
        .type = RT_OPTION_ENUM,
        .group = "Rules",
        .names = coord_owner_down_names,
        .initial = "keep",
        .help = "Access to a key whose instance is dead or left: forget the key, or keep it for "
                "that instance while it may be stored there.",
        .offset = offsetof(struct config, owner_down),
    },
    {
        .name = "compaction",
        .type = RT_OPTION_ENUM,
        .group = "Rules",
        .names = coord_compaction_names,
        .initial = "local",
        .help = "Who moves values together when a statement's value fits in only after that: the "
                "instance that needs it, or every connected one, while no statement runs.",
        .offset = offsetof(struct config, compaction),
    },
    {
        .name = "keep-locks-on-abort",
        .type = RT_OPTION_FLAG,
        .group = "Rules",
        .help = "Keep the locks of a session whose last statement failed, or whose lease ran out, "
                "until an operator frees them (`redistinto unlock KEY`).",
        .offset = offsetof(struct config, keep_locks),
    },
    {
        .name = "delay-ms",
        .type = RT_OPTION_U64,
        .group = "Operations",
        .initial = "0",
        .max = MODEL_DELAY_MS_MAX,
        .argument = "MS",
        .help = "Each statement of an ESI waits this long before it begins, to be looked at; "
                "nothing else does.",
        .offset = offsetof(struct config, delay_ms),
    },
    {
        .name = "operation-log",
        .type = RT_OPTION_STRING,
        .group = "Operations",
        .argument = "FILE",
        .help = "Append one line to this file for each statement of an ESI: who, what, on which "
                "key, where, and what came of it. Never a value.",
        .offset = offsetof(struct config, operation_log),
    },
    {
        .name = "lease",
        .type = RT_OPTION_DURATION,
        .group = "Leases",
        .initial = "10s",
        .min = MODEL_LEASE_MS_MIN,
        .max = MODEL_LEASE_MS_MAX,
        .help = "Membership lease of instances.",
        .offset = offsetof(struct config, lease_ms),
    },
    {
        .name = "session-lease",
        .type = RT_OPTION_DURATION,
        .group = "Leases",
        .initial = "10s",
        .min = MODEL_LEASE_MS_MIN,
        .max = MODEL_LEASE_MS_MAX,
        .help = "Lease of sessions; locks of a silent session are freed after it.",
        .offset = offsetof(struct config, session_lease_ms),
    },
    {
        .name = "wake-hold",
        .type = RT_OPTION_DURATION,
        .group = "Leases",
        .initial = "2s",
        .min = 1,
        .max = 600000,
        .help = "How long a woken session keeps its turn before the next waiter is woken.",
        .offset = offsetof(struct config, wake_hold_ms),
    },
};

static const struct rt_option_table tables[] = {
    {options, RT_ARRAY_SIZE(options), NULL},
    {host_service_options, HOST_SERVICE_N_OPTIONS, NULL},
};

static const char *const examples[] = {
    "redistinto-coordinator --data-dir /var/lib/redistinto/coordinator --listen 127.0.0.1:7400",
    "redistinto-coordinator --data-dir data --profile classic --print-config",
    NULL,
};

const struct rt_option_command coord_options_command = {
    .name = "redistinto-coordinator",
    .section = "coordinator",
    .usage = "",
    .summary = "place keys on instances and keep one owner for each",
    .description = "Places keys on instances and guarantees that one instance writes each key. "
                   "Hands out ownership, locks and sessions.",
    .examples = examples,
    .tables = tables,
    .n_tables = RT_ARRAY_SIZE(tables),
};

static enum rt_code adjust(struct rt_options *parsed, void *ctx, struct rt_error *err)
{
    const struct config *config = ctx;

    (void)err;
    if (config->profile == PROFILE_CLASSIC) {
        rt_option_set_default(parsed, "key-max", "40");
        rt_option_set_default(parsed, "locking", "required");
        rt_option_set_default(parsed, "on-owner-down", "forget");
        rt_option_set_default(parsed, "compaction", "global");
    }
    return RT_OK;
}

static enum rt_code take(const struct config *config, struct coord_config *core,
                         struct rt_error *err)
{
    enum rt_code code = model_lease_init(&core->member_lease, config->lease_ms, err);

    if (code != RT_OK)
        return rt_wrap(err, "--lease");
    code = model_lease_init(&core->session_lease, config->session_lease_ms, err);
    if (code != RT_OK)
        return rt_wrap(err, "--session-lease");
    core->key_max = (uint32_t)config->key_max;
    core->locking = config->locking;
    core->owner_down = config->owner_down;
    core->compaction = config->compaction;
    core->distribution = config->distribution;
    core->ranges = config->ranges;
    core->wake_hold_us = config->wake_hold_ms * 1000;
    core->delay_us = config->delay_ms * 1000;
    core->profile = profiles[config->profile];
    core->operation_log = config->operation_log;
    core->keep_locks = config->keep_locks;
    return RT_OK;
}

enum rt_code coord_options_parse(int argc, char **argv, char *const *environment,
                                 struct coord_config *ret_core,
                                 struct host_service_config *ret_service,
                                 enum rt_option_action *ret_action, struct rt_options **ret_options,
                                 struct rt_error *err)
{
    struct config config;
    void *const configs[] = {&config, ret_service};
    const struct rt_option_setup setup = {
        .command = &coord_options_command,
        .configs = configs,
        .version = REDISTINTO_VERSION,
        .environment = environment,
        .adjust = adjust,
        .adjust_ctx = &config,
    };
    enum rt_code code = rt_option_parse(&setup, argc, argv, ret_action, ret_options, err);

    if (code != RT_OK || *ret_action == RT_OPTION_EXIT_OK)
        return code;
    ret_service->listen = config.listen;
    if ((*ret_options)->n_positional > 0)
        code = rt_fail(err, RT_INVALID_ARGUMENT, "unexpected word '%s'",
                       (*ret_options)->positional[0]);
    else
        code = take(&config, ret_core, err);
    if (code != RT_OK)
        *ret_options = rt_option_free(*ret_options);
    return code;
}
