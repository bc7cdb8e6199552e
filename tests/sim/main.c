/*
 * redistinto-sim: options, runs, summary. The main thread, and one process a job.
 */
#include <stdio.h>

#include "runtime/base/log.h"
#include "tests/sim/jobs.h"
#include "tests/sim/options.h"

int main(int argc, char **argv)
{
    struct sim_cli cli;
    struct sim_outcome outcome;
    struct rt_error err = RT_ERROR_INIT;
    FILE *violations;

    if (sim_options_parse(argc, argv, &cli, &err) != RT_OK) {
        (void)fprintf(stderr, "redistinto-sim: %s\n", err.message);
        return 2;
    }
    if (cli.help) {
        (void)fputs(sim_options_help, stdout);
        return 0;
    }
    rt_log_init("redistinto-sim", RT_LOG_ERROR);
    violations = cli.format == SIM_FORMAT_JSON ? stderr : stdout;
    if (sim_jobs_run(&cli, argv[0], violations, &outcome, &err) != RT_OK) {
        (void)fprintf(stderr, "redistinto-sim: %s\n", err.message);
        return 1;
    }
    sim_jobs_print(&cli, &outcome, stdout);
    return outcome.stats.n_violations > 0 ? 1 : 0;
}
