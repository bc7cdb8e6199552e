/*
 * The option table of redistinto-esi. Runs in main() before threads start.
 */
#include "esi-client/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/model/limits.h"

static const char *const formats[] = {
    [ESI_FORMAT_TEXT] = "text",
    [ESI_FORMAT_JSON] = "json",
    NULL,
};

/* Indexes are dialects. */
static const char *const profiles[] = {
    [MODEL_DIALECT_EXTENDED] = "default",
    [MODEL_DIALECT_CLASSIC] = "classic",
    NULL,
};

static const struct rt_option options[] = {
    {
        .name = "coordinator",
        .type = RT_OPTION_ADDRESS,
        .min = 1,
        .initial = "127.0.0.1:7400",
        .argument = "ADDR",
        .help = "Address of the coordinator.",
        .offset = offsetof(struct esi_options, coordinator),
    },
    {
        .name = "output",
        .letter = 'o',
        .type = RT_OPTION_ENUM,
        .names = formats,
        .initial = "text",
        .help = "A line for people or a JSON object for each result.",
        .offset = offsetof(struct esi_options, format),
    },
    {
        .name = "check",
        .type = RT_OPTION_FLAG,
        .help = "Only parse the scripts; exit 2 when one has an error.",
        .offset = offsetof(struct esi_options, check),
    },
    {
        .name = "profile",
        .type = RT_OPTION_ENUM,
        .names = profiles,
        .initial = "default",
        .help = "classic: scripts have GET, SET and STORE alone; extensions are parse errors.",
        .offset = offsetof(struct esi_options, dialect),
    },
    {
        .name = "seed",
        .type = RT_OPTION_U64,
        .initial = "0",
        .max = ESI_SEED_MAX,
        .help = "Of what scripts draw with ${rand} and ${zipf}. 0: another one in each run, which "
                "the results name.",
        .offset = offsetof(struct esi_options, seed),
    },
    {
        .name = "report",
        .type = RT_OPTION_STRING,
        .argument = "FILE",
        .help = "Write there what came of each script, as JSON, when all are done.",
        .offset = offsetof(struct esi_options, report),
    },
    {
        .name = "junit",
        .type = RT_OPTION_STRING,
        .argument = "FILE",
        .help = "Write there what came of each statement, as JUnit's XML, when all are done.",
        .offset = offsetof(struct esi_options, junit),
    },
    {
        .name = "timeout",
        .type = RT_OPTION_DURATION,
        .initial = "30s",
        .min = 1,
        .max = 3600000,
        .help = "For one statement, retries included; waiting for a lock does not count.",
        .offset = offsetof(struct esi_options, statement_timeout_ms),
    },
    {
        .name = "log-level",
        .type = RT_OPTION_ENUM,
        .names = rt_log_level_names,
        .initial = "warning",
        .help = "The least important lines that are written to standard error.",
        .offset = offsetof(struct esi_options, log_level),
    },
};

/* As they are written. */
struct serving {
    const char *listen;
    int policy;
    const char *alpha;
    const char *initial_estimate;
    const char *blocked;
    bool shows_plan;
    bool is_paused;
};

#define PLANNER_GROUP "Planner"
#define SERVE_GROUP   "Serve"

static const struct rt_option serve_options[] = {
    {
        .name = "listen",
        .type = RT_OPTION_ADDRESS,
        .group = SERVE_GROUP,
        .initial = "127.0.0.1:7470",
        .argument = "ADDR",
        .help = "Address to serve on; port 0 takes any free port.",
        .offset = offsetof(struct serving, listen),
    },
    {
        .name = "paused",
        .type = RT_OPTION_FLAG,
        .group = SERVE_GROUP,
        .help = "Begin no line before `redistinto esi continue`.",
        .offset = offsetof(struct serving, is_paused),
    },
    {
        .name = "planner",
        .type = RT_OPTION_ENUM,
        .group = PLANNER_GROUP,
        .names = esi_policy_names,
        .initial = "parallel",
        .help = "Which ESI runs its next line: all at once, or one at a time by arrival, by the "
                "shortest estimate without and with preemption, or by the highest response ratio.",
        .offset = offsetof(struct serving, policy),
    },
    {
        .name = "alpha",
        .type = RT_OPTION_STRING,
        .group = PLANNER_GROUP,
        .initial = "0.5",
        .argument = "FRACTION",
        .help = "Weight of the last burst in the next estimate, 0 to 1.",
        .offset = offsetof(struct serving, alpha),
    },
    {
        .name = "initial-estimate",
        .type = RT_OPTION_STRING,
        .group = PLANNER_GROUP,
        .initial = "5",
        .argument = "LINES",
        .help = "Estimate of a new ESI, 0 to 1000000 lines.",
        .offset = offsetof(struct serving, initial_estimate),
    },
    {
        .name = "blocked",
        .type = RT_OPTION_STRING,
        .group = PLANNER_GROUP,
        .argument = "KEYS",
        .help = "Keys with commas between them, locked from the start by a session named system "
                "until they are unblocked; run: until every script that is left waits.",
        .offset = offsetof(struct serving, blocked),
    },
    {
        .name = "trace",
        .type = RT_OPTION_FLAG,
        .group = PLANNER_GROUP,
        .help = "Run: what the planner does, as lines among the results.",
        .offset = offsetof(struct serving, shows_plan),
    },
};

static const struct rt_option_table tables[] = {
    {options, RT_ARRAY_SIZE(options), NULL},
    {serve_options, RT_ARRAY_SIZE(serve_options), NULL},
    {host_service_options + HOST_SERVICE_FIRST_PROCESS_OPTION,
     HOST_SERVICE_N_OPTIONS - HOST_SERVICE_FIRST_PROCESS_OPTION, NULL},
};

static const char *const examples[] = {
    "redistinto-esi run morning.esi evening.esi    # at the same time, in a session each",
    "redistinto-esi run checks.esi -o json --timeout 1m",
    "redistinto-esi run load.esi --seed 7          # what it draws is the same each time",
    "redistinto-esi run checks.esi --junit checks.xml --report checks.json",
    "redistinto-esi run *.esi --planner sjf-cd --initial-estimate 3 --trace",
    "redistinto-esi serve --planner sjf-cd --blocked orders/17,orders/18 --paused",
    NULL,
};

const struct rt_option_command esi_options_command = {
    .name = "redistinto-esi",
    .section = "esi",
    .usage = "run|serve [SCRIPT...]",
    .summary = "run scripts of statements, or serve those who hand some over",
    .description = "run: runs scripts of statements at the same time, each in a session of its "
                   "own, or line by line as a planner decides. Exit codes: 0 all succeeded, 1 one "
                   "failed, 2 usage or parse error, 5 "
                   "coordinator unavailable, 130 interrupted. serve: takes scripts over, runs them "
                   "as its planner decides, and prints their results; `redistinto esi` hands "
                   "scripts over and looks after them. It ends at SIGTERM, which ends the scripts "
                   "and frees their locks.",
    .examples = examples,
    .tables = tables,
    .n_tables = RT_ARRAY_SIZE(tables),
};

/* ---- what the words and values mean ---- */

/* A decimal number from 0 to `max`. */
static enum rt_code take_number(const char *name, const char *text, double max, double *ret_number,
                                struct rt_error *err)
{
    char *end = NULL;
    double number = strtod(text, &end);

    if (*text == '\0' || text[strspn(text, "0123456789.")] != '\0' || *end != '\0' ||
        !isfinite(number) || number > max)
        return rt_fail(err, RT_INVALID_ARGUMENT, "--%s: '%.64s' is out of range, valid are 0 to %g",
                       name, text, max);
    *ret_number = number;
    return RT_OK;
}

static enum rt_code check_key(const struct rt_bytes *keys, size_t n_keys, struct rt_bytes key,
                              struct rt_error *err)
{
    if (n_keys == ESI_OPTIONS_BLOCKED_MAX)
        return rt_fail(err, RT_INVALID_ARGUMENT, "--blocked: valid are at most %d keys",
                       ESI_OPTIONS_BLOCKED_MAX);
    if (key.size < 1 || key.size > MODEL_KEY_MAX)
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "--blocked: a key has %zu bytes, valid are 1 to %d", key.size,
                       MODEL_KEY_MAX);
    for (size_t i = 0; i < n_keys; i++)
        if (rt_bytes_equal(keys[i], key))
            return rt_fail(err, RT_INVALID_ARGUMENT, "--blocked: '%.*s' is there twice",
                           (int)key.size, (const char *)key.data);
    return RT_OK;
}

enum rt_code esi_options_split(const char *text, struct rt_bytes **ret_keys, size_t *ret_n_keys,
                               struct rt_error *err)
{
    struct rt_bytes *keys = NULL;
    size_t n_keys = 0;
    enum rt_code code = RT_OK;

    while (text && code == RT_OK) {
        struct rt_bytes key = rt_bytes_of(text, strcspn(text, ","));

        text = text[key.size] == ',' ? text + key.size + 1 : NULL;
        code = check_key(keys, n_keys, key, err);
        keys = rt_xrealloc(keys, (n_keys + 1) * sizeof(*keys));
        keys[n_keys++] = key;
    }
    if (code != RT_OK) {
        (void)rt_free(keys);
        return code;
    }
    *ret_keys = keys;
    *ret_n_keys = n_keys;
    return RT_OK;
}

static enum rt_code take_serving(const struct serving *serving, struct esi_options *ret_options,
                                 struct rt_error *err)
{
    struct rt_bytes *keys = NULL;
    size_t n_keys = 0;
    enum rt_code code = take_number("alpha", serving->alpha, 1, &ret_options->planner.alpha, err);

    if (code == RT_OK)
        code = take_number("initial-estimate", serving->initial_estimate, 1000000,
                           &ret_options->planner.initial_estimate, err);
    if (code == RT_OK)
        code = esi_options_split(serving->blocked, &keys, &n_keys, err);
    (void)rt_free(keys);
    ret_options->planner.policy = (enum esi_policy)serving->policy;
    ret_options->blocked = serving->blocked;
    ret_options->is_paused = serving->is_paused;
    ret_options->shows_plan = serving->shows_plan;
    ret_options->is_planned =
        serving->policy != ESI_POLICY_PARALLEL || serving->blocked || serving->shows_plan;
    if (code == RT_OK && ret_options->is_planned && ret_options->n_scripts > ESI_PLANNER_LIVE_MAX)
        return rt_fail(err, RT_INVALID_ARGUMENT, "%zu scripts, valid are 1 to %d under a planner",
                       ret_options->n_scripts, ESI_PLANNER_LIVE_MAX);
    ret_options->service.listen = serving->listen;
    ret_options->service.log_level = ret_options->log_level;
    return code;
}

static enum rt_code take_words(const struct rt_options *parsed, struct esi_options *ret_options,
                               struct rt_error *err)
{
    const char *command = parsed->n_positional < 1 ? "" : parsed->positional[0];

    if (strcmp(command, "serve") == 0) {
        ret_options->command = ESI_COMMAND_SERVE;
        if (parsed->n_positional > 1)
            return rt_fail(err, RT_INVALID_ARGUMENT, "unexpected word '%s' after serve",
                           parsed->positional[1]);
        return RT_OK;
    }
    if (strcmp(command, "run") != 0)
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "unknown command '%s'; there are: run SCRIPT..., serve", command);
    if (parsed->n_positional < 2)
        return rt_fail(err, RT_INVALID_ARGUMENT, "run needs at least one script");
    ret_options->scripts = (const char *const *)parsed->positional + 1;
    ret_options->n_scripts = parsed->n_positional - 1;
    return RT_OK;
}

/* Whoever reads the log of a service wants to know when it serves. */
static enum rt_code adjust(struct rt_options *parsed, void *ctx, struct rt_error *err)
{
    (void)ctx;
    (void)err;
    if (parsed->n_positional > 0 && strcmp(parsed->positional[0], "serve") == 0)
        rt_option_set_default(parsed, "log-level", "info");
    return RT_OK;
}

enum rt_code esi_options_parse(int argc, char **argv, char *const *environment,
                               struct esi_options *ret_options, enum rt_option_action *ret_action,
                               struct rt_options **ret_parsed, struct rt_error *err)
{
    struct serving serving = {0};
    void *const configs[] = {ret_options, &serving, &ret_options->service};
    const struct rt_option_setup setup = {
        .command = &esi_options_command,
        .configs = configs,
        .version = REDISTINTO_VERSION,
        .environment = environment,
        .adjust = adjust,
    };
    enum rt_code code = rt_option_parse(&setup, argc, argv, ret_action, ret_parsed, err);

    if (code != RT_OK || *ret_action == RT_OPTION_EXIT_OK)
        return code;
    code = take_words(*ret_parsed, ret_options, err);
    if (code == RT_OK)
        code = take_serving(&serving, ret_options, err);
    if (code != RT_OK)
        *ret_parsed = rt_option_free(*ret_parsed);
    return code;
}
