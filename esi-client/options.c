/*
 * The option table of redistinto-esi. Runs in main() before threads start.
 */
#include "esi-client/options.h"

#include <string.h>

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

static const struct rt_option_table tables[] = {
    {options, RT_ARRAY_SIZE(options), NULL},
};

static const char *const examples[] = {
    "redistinto-esi run morning.esi evening.esi    # at the same time, in a session each",
    "redistinto-esi run checks.esi -o json --timeout 1m",
    "redistinto-esi run load.esi --seed 7          # what it draws is the same each time",
    "redistinto-esi run checks.esi --junit checks.xml --report checks.json",
    NULL,
};

const struct rt_option_command esi_options_command = {
    .name = "redistinto-esi",
    .section = "esi",
    .usage = "run SCRIPT...",
    .summary = "run scripts of statements",
    .description = "Runs scripts of statements at the same time, each in a session of its "
                   "own. Exit codes: 0 all succeeded, 1 one failed, 2 usage or parse error, 5 "
                   "coordinator unavailable, 130 interrupted.",
    .examples = examples,
    .tables = tables,
    .n_tables = RT_ARRAY_SIZE(tables),
};

static enum rt_code take_words(const struct rt_options *parsed, struct esi_options *ret_options,
                               struct rt_error *err)
{
    if (parsed->n_positional < 1 || strcmp(parsed->positional[0], "run") != 0)
        return rt_fail(err, RT_INVALID_ARGUMENT, "unknown command '%s'; there is: run SCRIPT...",
                       parsed->n_positional < 1 ? "" : parsed->positional[0]);
    if (parsed->n_positional < 2)
        return rt_fail(err, RT_INVALID_ARGUMENT, "run needs at least one script");
    ret_options->scripts = (const char *const *)parsed->positional + 1;
    ret_options->n_scripts = parsed->n_positional - 1;
    return RT_OK;
}

enum rt_code esi_options_parse(int argc, char **argv, char *const *environment,
                               struct esi_options *ret_options, enum rt_option_action *ret_action,
                               struct rt_options **ret_parsed, struct rt_error *err)
{
    void *const configs[] = {ret_options};
    const struct rt_option_setup setup = {
        .command = &esi_options_command,
        .configs = configs,
        .version = REDISTINTO_VERSION,
        .environment = environment,
    };
    enum rt_code code = rt_option_parse(&setup, argc, argv, ret_action, ret_parsed, err);

    if (code != RT_OK || *ret_action == RT_OPTION_EXIT_OK)
        return code;
    code = take_words(*ret_parsed, ret_options, err);
    if (code != RT_OK)
        *ret_parsed = rt_option_free(*ret_parsed);
    return code;
}
