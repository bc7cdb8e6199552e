/*
 * Command line of the simulator: see options.h. Own parsing: eight options of a test tool, without
 * file, environment and profile. Pure.
 */
#include "tests/sim/options.h"

#include <getopt.h>
#include <stdlib.h>

const char sim_options_help[] =
    "usage: redistinto-sim [options]\n"
    "Runs whole clusters on a simulated network, clock and disk, one for each seed, and checks\n"
    "the invariants of the ownership contract.\n"
    "  --seed N            first seed (1)\n"
    "  --seeds N           how many seeds, counting up (1)\n"
    "  --jobs N            processes (1)\n"
    "  --trace             print every event\n"
    "  --hash              print the trace hash of each seed\n"
    "  --twice             run each seed twice; different hashes are a violation\n"
    "  --until-violation   stop at the first violation\n"
    "  -o, --output FORMAT text or json (text)\n"
    "Exit code: 0 no violation, 1 violations, 2 usage.\n";

static enum rt_code parse_number(const char *name, const char *text, uint64_t least,
                                 uint64_t *ret_number, struct rt_error *err)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || number < least)
        return rt_fail(err, RT_INVALID_ARGUMENT, "--%s '%s': a number from %llu", name, text,
                       (unsigned long long)least);
    *ret_number = number;
    return RT_OK;
}

static enum rt_code parse_format(const char *text, enum sim_format *ret_format,
                                 struct rt_error *err)
{
    if (strcmp(text, "json") != 0 && strcmp(text, "text") != 0)
        return rt_fail(err, RT_INVALID_ARGUMENT, "--output '%s': text or json", text);
    *ret_format = strcmp(text, "json") == 0 ? SIM_FORMAT_JSON : SIM_FORMAT_TEXT;
    return RT_OK;
}

static enum rt_code apply(int option, struct sim_cli *cli, struct rt_error *err)
{
    switch (option) {
    case 's':
        return parse_number("seed", optarg, 0, &cli->first_seed, err);
    case 'n':
        return parse_number("seeds", optarg, 1, &cli->n_seeds, err);
    case 'j':
        return parse_number("jobs", optarg, 1, &cli->n_jobs, err);
    case 'o':
        return parse_format(optarg, &cli->format, err);
    case 't':
        cli->trace = true;
        return RT_OK;
    case 'x':
        cli->hash = true;
        return RT_OK;
    case '2':
        cli->twice = true;
        return RT_OK;
    case 'u':
        cli->until_violation = true;
        return RT_OK;
    case 'h':
        cli->help = true;
        return RT_OK;
    default:
        return rt_fail(err, RT_INVALID_ARGUMENT, "see --help");
    }
}

enum rt_code sim_options_parse(int argc, char **argv, struct sim_cli *ret_cli, struct rt_error *err)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'}, {"seeds", required_argument, NULL, 'n'},
        {"jobs", required_argument, NULL, 'j'}, {"output", required_argument, NULL, 'o'},
        {"trace", no_argument, NULL, 't'},      {"hash", no_argument, NULL, 'x'},
        {"twice", no_argument, NULL, '2'},      {"until-violation", no_argument, NULL, 'u'},
        {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0},
    };
    struct sim_cli cli = {.first_seed = 1, .n_seeds = 1, .n_jobs = 1};
    int option;

    while ((option = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
        enum rt_code code = apply(option, &cli, err);

        if (code != RT_OK)
            return code;
    }
    if (optind < argc)
        return rt_fail(err, RT_INVALID_ARGUMENT, "'%s' is not an option", argv[optind]);
    *ret_cli = cli;
    return RT_OK;
}
