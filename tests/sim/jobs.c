/*
 * Many seeds in processes: see jobs.h. Invariant: job i of n runs the seeds first + i + k·n, so a
 * seed's run never depends on how many jobs there are. Each job is one process with one thread.
 */
#include "tests/sim/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/json.h"
#include "tests/sim/world.h"
#include "tests/support/alloc_count.h"

static double now_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void note_failed_seed(struct sim_outcome *outcome, uint64_t seed)
{
    if (outcome->n_failed_seeds < SIM_FAILED_SEEDS_MAX)
        outcome->failed_seeds[outcome->n_failed_seeds++] = seed;
}

static void check_leaks(uint64_t seed, long n_before, FILE *out, struct sim_stats *stats)
{
    long n_left = test_alloc_live() - n_before;

    if (n_left == 0 || stats->n_violations > 0)
        return;
    stats->n_violations++;
    (void)fprintf(out, "violated memory, seed %" PRIu64 ": %ld allocations left\n", seed, n_left);
}

static void run_seed(const struct sim_cli *cli, const char *program, uint64_t seed, FILE *out,
                     struct sim_stats *ret_stats)
{
    struct sim_options options = {
        .seed = seed, .trace = cli->trace, .out = out, .program = program};
    struct sim_stats again;
    uint64_t hash;
    uint64_t hash_again;
    long n_before = test_alloc_live();

    sim_world_run(&options, ret_stats, &hash);
    check_leaks(seed, n_before, out, ret_stats);
    if (cli->hash)
        (void)fprintf(out, "seed %" PRIu64 " hash %016" PRIx64 "\n", seed, hash);
    if (!cli->twice)
        return;
    options.out = NULL;
    options.trace = false;
    sim_world_run(&options, &again, &hash_again);
    if (hash == hash_again)
        return;
    ret_stats->n_violations++;
    (void)fprintf(out,
                  "violated determinism, seed %" PRIu64 ": %016" PRIx64 " and %016" PRIx64 "\n",
                  seed, hash, hash_again);
}

static void run_job(const struct sim_cli *cli, const char *program, uint64_t job, FILE *out,
                    struct sim_outcome *outcome)
{
    for (uint64_t i = job; i < cli->n_seeds; i += cli->n_jobs) {
        struct sim_stats stats;
        char *text = NULL;
        size_t size = 0;
        FILE *memory = cli->trace ? out : open_memstream(&text, &size);

        rt_assert(memory != NULL);
        run_seed(cli, program, cli->first_seed + i, memory, &stats);
        if (!cli->trace) {
            (void)fclose(memory);
            (void)fwrite(text, 1, size, out);
            (void)fflush(out);
            free(text);
        }
        sim_stats_add(&outcome->stats, &stats);
        if (stats.n_violations == 0)
            continue;
        note_failed_seed(outcome, cli->first_seed + i);
        if (cli->until_violation)
            return;
    }
}

static bool write_all(int fd, const void *data, size_t size)
{
    return write(fd, data, size) == (ssize_t)size;
}

static bool read_all(int fd, void *data, size_t size)
{
    size_t n = 0;

    while (n < size) {
        ssize_t got = read(fd, (char *)data + n, size - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        n += (size_t)got;
    }
    return true;
}

struct job {
    pid_t pid;
    int fd; /* the outcome comes here */
};

static enum rt_code start_job(const struct sim_cli *cli, const char *program, uint64_t job,
                              FILE *out, struct job *ret_job, struct rt_error *err)
{
    struct sim_outcome outcome = {0};
    int fds[2];
    pid_t pid;

    if (pipe(fds) != 0)
        return rt_fail_errno(err, errno, "pipe");
    pid = fork();
    if (pid < 0)
        return rt_fail_errno(err, errno, "fork");
    if (pid > 0) {
        (void)close(fds[1]);
        *ret_job = (struct job){.pid = pid, .fd = fds[0]};
        return RT_OK;
    }
    run_job(cli, program, job, out, &outcome);
    (void)fflush(out);
    _exit(write_all(fds[1], &outcome, sizeof(outcome)) ? 0 : 1);
}

static int compare_seeds(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

static void merge(struct sim_outcome *total, const struct sim_outcome *other)
{
    sim_stats_add(&total->stats, &other->stats);
    for (uint64_t i = 0; i < other->n_failed_seeds; i++)
        note_failed_seed(total, other->failed_seeds[i]);
    qsort(total->failed_seeds, total->n_failed_seeds, sizeof(total->failed_seeds[0]),
          compare_seeds);
}

static enum rt_code finish_job(const struct job *job, struct sim_outcome *outcome,
                               struct rt_error *err)
{
    struct sim_outcome part;
    bool is_whole = read_all(job->fd, &part, sizeof(part));

    (void)close(job->fd);
    while (waitpid(job->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (!is_whole)
        return rt_fail(err, RT_INTERNAL, "a job died");
    merge(outcome, &part);
    return RT_OK;
}

static enum rt_code run_jobs(const struct sim_cli *cli, const char *program, FILE *out,
                             struct sim_outcome *outcome, struct rt_error *err)
{
    struct job *jobs = rt_xalloc(cli->n_jobs * sizeof(*jobs));
    enum rt_code code = RT_OK;
    uint64_t n_started = 0;

    (void)fflush(NULL);
    while (code == RT_OK && n_started < cli->n_jobs) {
        code = start_job(cli, program, n_started, out, &jobs[n_started], err);
        n_started += code == RT_OK;
    }
    for (uint64_t i = 0; i < n_started; i++) {
        enum rt_code finished = finish_job(&jobs[i], outcome, err);

        if (code == RT_OK)
            code = finished;
    }
    (void)rt_free(jobs);
    return code;
}

enum rt_code sim_jobs_run(const struct sim_cli *cli, const char *program, FILE *out,
                          struct sim_outcome *ret_outcome, struct rt_error *err)
{
    struct sim_outcome outcome = {0};
    double started = now_seconds();
    enum rt_code code = RT_OK;

    if (cli->n_jobs == 1)
        run_job(cli, program, 0, out, &outcome);
    else
        code = run_jobs(cli, program, out, &outcome, err);
    outcome.seconds = now_seconds() - started;
    if (code == RT_OK)
        *ret_outcome = outcome;
    return code;
}

/* ---- summary --------------------------------------------------------------------------------- */

struct figure {
    const char *field;
    const char *text;
    uint64_t value;
};

enum {
    N_FIGURES = 21
};

static void collect(const struct sim_stats *stats, struct figure *figures)
{
    const struct figure all[N_FIGURES] = {
        {"seeds", "seeds", stats->n_seeds},
        {"events", "events", stats->n_events},
        {"statements", "statements", stats->n_statements},
        {"acknowledged", "acknowledged writes", stats->n_acknowledged},
        {"not_applied", "refused as not applied", stats->n_refused},
        {"unknown", "unknown outcomes", stats->n_unknown},
        {"calls", "calls", stats->n_calls},
        {"messages_lost", "messages lost", stats->n_lost},
        {"commits", "commits", stats->n_commits},
        {"spills", "values spilled", stats->n_spills},
        {"dumps", "values dumped", stats->n_dumps},
        {"drops", "keys dropped by their owners", stats->n_drops},
        {"readbacks", "values read back", stats->n_readbacks},
        {"compactions", "compactions asked for and carried out", stats->n_compactions},
        {"deaths", "incarnations ended", stats->n_deaths},
        {"post_check_failures", "post-check failures reached", stats->n_post_check_failures},
        {"sets_lost", "answers that say SETs were lost", stats->n_sets_lost},
        {"replayed", "answers replayed", stats->n_replayed},
        {"routes", "routes given out", stats->n_routes},
        {"histories", "histories checked", stats->n_histories},
        {"undecided", "undecided histories", stats->n_undecided},
    };

    memcpy(figures, all, sizeof(all));
}

static void print_text(const struct sim_outcome *outcome, const struct figure *figures, FILE *out)
{
    for (unsigned i = 0; i < N_FIGURES; i++)
        (void)fprintf(out, "%12" PRIu64 " %s\n", figures[i].value, figures[i].text);
    (void)fprintf(out, "faults:");
    for (enum sim_fault fault = 0; fault < SIM_N_FAULTS; fault++)
        (void)fprintf(out, " %s=%" PRIu64, sim_fault_field(fault), outcome->stats.faults[fault]);
    (void)fprintf(out, "\n%12" PRIu64 " violations", outcome->stats.n_violations);
    for (uint64_t i = 0; i < outcome->n_failed_seeds; i++)
        (void)fprintf(out, "%s%" PRIu64, i == 0 ? ", seeds " : " ", outcome->failed_seeds[i]);
    (void)fprintf(out, "\n%12.1f seconds\n", outcome->seconds);
}

static void print_json(const struct sim_cli *cli, const struct sim_outcome *outcome,
                       const struct figure *figures, FILE *out)
{
    struct rt_buffer buffer = {0};
    struct rt_json json;

    rt_json_init(&json, &buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_u64(&json, "first_seed", cli->first_seed);
    for (unsigned i = 0; i < N_FIGURES; i++)
        rt_json_u64(&json, figures[i].field, figures[i].value);
    rt_json_object_begin(&json, "faults");
    for (enum sim_fault fault = 0; fault < SIM_N_FAULTS; fault++)
        rt_json_u64(&json, sim_fault_field(fault), outcome->stats.faults[fault]);
    rt_json_object_end(&json);
    rt_json_u64(&json, "violations", outcome->stats.n_violations);
    rt_json_array_begin(&json, "failed_seeds");
    for (uint64_t i = 0; i < outcome->n_failed_seeds; i++)
        rt_json_u64(&json, NULL, outcome->failed_seeds[i]);
    rt_json_array_end(&json);
    rt_json_double(&json, "seconds", outcome->seconds);
    rt_json_object_end(&json);
    (void)fprintf(out, "%s\n", rt_buffer_string(&buffer));
    rt_buffer_deinit(&buffer);
}

void sim_jobs_print(const struct sim_cli *cli, const struct sim_outcome *outcome, FILE *out)
{
    struct figure figures[N_FIGURES];

    collect(&outcome->stats, figures);
    if (cli->format == SIM_FORMAT_JSON)
        print_json(cli, outcome, figures, out);
    else
        print_text(outcome, figures, out);
}
