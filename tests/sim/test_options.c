#include "tests/sim/options.h"

#include <criterion/criterion.h>
#include <getopt.h>

#include "runtime/base/compiler.h"
#include "tests/support/check.h"

TestSuite(options, .fini = test_alloc_expect_none);

static enum rt_code parse(const char **argv, int argc, struct sim_cli *ret_cli)
{
    struct rt_error err = RT_ERROR_INIT;

    optind = 1;
    opterr = 0;
    return sim_options_parse(argc, (char **)argv, ret_cli, &err);
}

Test(options, defaults)
{
    const char *argv[] = {"sim", NULL};
    struct sim_cli cli;

    cr_assert_eq(parse(argv, 1, &cli), RT_OK);
    cr_expect_eq(cli.first_seed, 1);
    cr_expect_eq(cli.n_seeds, 1);
    cr_expect_eq(cli.n_jobs, 1);
    cr_expect_eq(cli.format, SIM_FORMAT_TEXT);
    cr_expect_not(cli.trace);
}

Test(options, all)
{
    const char *argv[] = {
        "sim", "--seed", "0",       "--seeds",           "500",     "--jobs", "2",
        "-o",  "json",   "--trace", "--until-violation", "--twice", "--hash", NULL};
    struct sim_cli cli;

    cr_assert_eq(parse(argv, (int)RT_ARRAY_SIZE(argv) - 1, &cli), RT_OK);
    cr_expect_eq(cli.first_seed, 0);
    cr_expect_eq(cli.n_seeds, 500);
    cr_expect_eq(cli.n_jobs, 2);
    cr_expect_eq(cli.format, SIM_FORMAT_JSON);
    cr_expect(cli.trace && cli.until_violation && cli.twice && cli.hash);
}

Test(options, refuses_nonsense)
{
    static const char *const wrong[][2] = {
        {"--seeds", "0"},    {"--seeds", "x"},   {"--seed", "-1"}, {"--jobs", "0"},
        {"--output", "xml"}, {"--unknown", "1"}, {"word", "word"}, {"--seed", "1x"},
    };
    struct sim_cli cli;

    for (size_t i = 0; i < RT_ARRAY_SIZE(wrong); i++) {
        const char *argv[] = {"sim", wrong[i][0], wrong[i][1], NULL};

        cr_expect_eq(parse(argv, 3, &cli), RT_INVALID_ARGUMENT, "%s %s", wrong[i][0], wrong[i][1]);
    }
}
