/*
 * Running scripts: see run.h. Each script has a runner and a host of its own. Results leave the
 * runners under their locks into one queue; the loop thread formats and prints them, tells the
 * planner if there is one, and ends the process when every script is done.
 */
#include "esi-client/run.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "esi-client/planned.h"
#include "esi-client/report.h"
#include "esi-client/run_report.h"
#include "esi-client/runner.h"
#include "esi-client/script_file.h"
#include "esi-client/text.h"
#include "runtime/base/alloc.h"
#include "runtime/host/host.h"
#include "runtime/model/exit.h"

enum {
    RESULTS_QUEUED_MAX = 1024 /* of one script; then it waits until they are printed */
};

struct run;

struct job {
    struct run *run;
    struct esi_script *script; /* owned */
    struct esi_runner *runner; /* owned */
    struct host *host;         /* owned */
    struct rt_list results;    /* esi_result.link, under run.lock, as what follows */
    size_t n_queued;           /* of them */
    bool has_news;
    bool is_open;
    bool has_turn;
    bool is_last;
    bool is_done;
    bool is_reported; /* loop thread */
};

struct run {
    const struct esi_options *options;
    struct rpc_runtime *runtime; /* owned */
    struct job *jobs;            /* owned */
    size_t n_jobs;
    size_t n_reported;
    size_t n_results;
    uint64_t seed;
    struct esi_run_report report;
    struct esi_planned *planned; /* owned; NULL: all at once */
    bool has_started;            /* the runners are there */
    bool is_blocked_lost;        /* the blocked keys were not there for the scripts */
    bool is_stopped;
    pthread_mutex_t lock;
    struct rpc_job output_job;
    bool is_interrupted;
    bool has_output_failed;
    bool shows_progress;
};

/* ---- the face of a runner ---- */

static void runner_call_done(void *runner, struct model_call *call)
{
    esi_runner_call_done(runner, call);
}

static void runner_tick(void *runner)
{
    esi_runner_tick(runner);
}

static uint64_t runner_next_wakeup_us(const void *runner)
{
    return esi_runner_next_wakeup_us(runner);
}

static struct model_effects *runner_effects(void *runner)
{
    return esi_runner_effects(runner);
}

static void runner_start(void *runner, void *argument)
{
    (void)argument;
    esi_runner_start(runner);
}

static void runner_grant(void *runner, void *argument)
{
    (void)argument;
    esi_runner_grant(runner);
}

static void runner_let_go(void *runner, void *argument)
{
    (void)argument;
    esi_runner_hold(runner, false);
}

static void runner_stop(void *runner, void *argument)
{
    (void)argument;
    esi_runner_stop(runner);
}

static const struct host_core_ops runner_ops = {
    .call_done = runner_call_done,
    .tick = runner_tick,
    .next_wakeup_us = runner_next_wakeup_us,
    .effects = runner_effects,
};

/* ---- output ---- */

static void clear_progress(const struct run *run)
{
    if (run->shows_progress)
        (void)fputs("\r\033[K", stderr);
}

static void show_progress(const struct run *run)
{
    if (run->shows_progress)
        (void)fprintf(stderr, "%zu of %zu scripts done, %zu results", run->n_reported, run->n_jobs,
                      run->n_results);
}

static void stop_scripts(struct run *run)
{
    for (size_t i = 0; i < run->n_jobs && run->has_started; i++)
        host_step(run->jobs[i].host, runner_stop, NULL);
}

/* Nobody would learn what the rest comes to: the scripts end, and give their locks back. */
static void fail_output(struct run *run)
{
    struct rt_error err = RT_ERROR_INIT;

    (void)rt_fail_errno(&err, errno, "writing the results");
    (void)fprintf(stderr, "redistinto-esi: %s\n", err.message);
    run->has_output_failed = true;
    stop_scripts(run);
}

static void print(struct run *run, struct rt_buffer *line)
{
    clear_progress(run);
    if (!run->has_output_failed &&
        (fwrite(line->data, 1, line->size, stdout) != line->size || fflush(stdout) != 0))
        fail_output(run);
    rt_buffer_reset(line);
}

static void print_results(struct run *run, struct job *job, const struct rt_list *results)
{
    struct rt_buffer line = {0};

    rt_list_for_each (node, results) {
        const struct esi_result *result = RT_LIST_ENTRY(node, struct esi_result, link);

        if (run->options->format == ESI_FORMAT_JSON)
            esi_report_json(job->script->name, result, &line);
        else
            esi_report_text(job->script->name, result, &line);
        print(run, &line);
        esi_run_report_add(&run->report, (size_t)(job - run->jobs), result);
        run->n_results++;
    }
    rt_buffer_deinit(&line);
}

static void report_end(struct run *run, struct job *job)
{
    struct rt_buffer line = {0};

    if (run->options->format == ESI_FORMAT_TEXT) {
        esi_report_summary_text(job->script->name, esi_runner_summary(job->runner),
                                job->script->is_random ? &run->seed : NULL, &line);
        print(run, &line);
    }
    rt_buffer_deinit(&line);
    job->is_reported = true;
    run->n_reported++;
}

/* ---- the planner ---- */

static void print_event(struct run *run, const struct esi_event *event)
{
    const char *script = run->jobs[event->id - 1].script->name;
    struct rt_buffer line = {0};

    if (run->options->format == ESI_FORMAT_JSON)
        esi_report_event_json(script, event, &line);
    else
        esi_report_event_text(script, event, &line);
    print(run, &line);
    rt_buffer_deinit(&line);
}

/* Nothing but a person can help: it has to be said, and the scripts go on waiting. */
static void print_deadlock(struct run *run)
{
    size_t *numbers = rt_xalloc(run->n_jobs * sizeof(*numbers));
    size_t n = esi_planned_take_deadlock(run->planned, numbers);
    struct rt_buffer line = {0};

    for (size_t i = 0; i < n; i++) {
        rt_buffer_append_byte(&line, ' ');
        (void)esi_text_append(&line, rt_bytes_of_string(run->jobs[numbers[i]].script->name));
    }
    if (n > 0) {
        clear_progress(run);
        (void)fprintf(stderr, "redistinto-esi: deadlock:%s\n", rt_buffer_string(&line));
    }
    rt_buffer_deinit(&line);
    (void)rt_free(numbers);
}

static void start_jobs(struct run *run);

static void follow_plan(struct run *run)
{
    enum esi_planned_state state = esi_planned_state(run->planned);
    struct esi_event *event;

    if (state == ESI_PLANNED_READY && !run->has_started && !run->is_interrupted)
        start_jobs(run);
    if (state == ESI_PLANNED_LOST && !run->is_blocked_lost) {
        run->is_blocked_lost = true;
        clear_progress(run);
        (void)fprintf(stderr, "redistinto-esi: --blocked: %s\n", esi_planned_failure(run->planned));
    }
    esi_planned_work(run->planned);
    while ((event = esi_planned_take_event(run->planned))) {
        if (run->options->shows_plan)
            print_event(run, event);
        (void)rt_free(event);
    }
    print_deadlock(run);
}

static bool is_done(struct run *run)
{
    if (run->has_started ? run->n_reported < run->n_jobs
                         : !run->is_interrupted && !run->is_blocked_lost)
        return false;
    if (!run->planned)
        return true;
    esi_planned_end(run->planned);
    return esi_planned_state(run->planned) == ESI_PLANNED_ENDED;
}

static void stop_if_done(struct run *run)
{
    if (run->is_stopped || !is_done(run))
        return;
    run->is_stopped = true;
    clear_progress(run);
    for (size_t i = 0; i < run->n_jobs && run->has_started; i++)
        host_stop(run->jobs[i].host);
    if (run->planned)
        esi_planned_halt(run->planned);
    rpc_runtime_stop(run->runtime);
}

/* ---- news ---- */

static void hear(struct run *run, struct job *job)
{
    struct rt_list results = RT_LIST_INIT(results);
    struct esi_drive_note note = {.results = &results};
    struct rt_list *node;
    bool has_news;
    bool was_full;

    (void)pthread_mutex_lock(&run->lock);
    was_full = job->n_queued >= RESULTS_QUEUED_MAX;
    job->n_queued = 0;
    has_news = job->has_news;
    job->has_news = false;
    rt_list_splice_back(&results, &job->results);
    note.is_open = job->is_open;
    note.has_turn = job->has_turn;
    note.is_last = job->is_last;
    note.is_done = job->is_done;
    (void)pthread_mutex_unlock(&run->lock);

    print_results(run, job, &results);
    if (was_full)
        host_step(job->host, runner_let_go, NULL);
    if (has_news && run->planned && !job->is_reported)
        esi_planned_note(run->planned, (size_t)(job - run->jobs), &note);
    while ((node = rt_list_pop_front(&results)))
        (void)esi_result_free(RT_LIST_ENTRY(node, struct esi_result, link));
    if (note.is_done && !job->is_reported)
        report_end(run, job);
}

static void work(struct rpc_job *output_job)
{
    struct run *run = RT_CONTAINER_OF(output_job, struct run, output_job);

    for (size_t i = 0; i < run->n_jobs && run->has_started; i++)
        hear(run, &run->jobs[i]);
    if (run->planned)
        follow_plan(run);
    show_progress(run);
    stop_if_done(run);
}

static void wake(void *ctx)
{
    struct run *run = ctx;

    rpc_runtime_post(run->runtime, &run->output_job, work);
}

static void grant(void *ctx, size_t number)
{
    const struct run *run = ctx;

    host_step(run->jobs[number].host, runner_grant, NULL);
}

static void after_step(void *ctx)
{
    struct job *job = ctx;
    struct run *run = job->run;
    struct esi_result *result;
    const struct esi_summary *summary = esi_runner_summary(job->runner);
    bool is_done = esi_runner_is_done(job->runner);
    bool has_turn = esi_runner_has_turn(job->runner);
    bool has_news;

    (void)pthread_mutex_lock(&run->lock);
    has_news =
        is_done != job->is_done || summary->opened != job->is_open || has_turn != job->has_turn;
    job->is_open = summary->opened;
    job->has_turn = has_turn;
    job->is_last = summary->state != ESI_SCRIPT_RUNNING;
    job->is_done = is_done;
    while ((result = esi_runner_take_result(job->runner))) {
        rt_list_push_back(&job->results, &result->link);
        job->n_queued++;
        has_news = true;
    }
    /* Under the runner's lock, as letting go is: what was full is let go after this. */
    if (job->n_queued >= RESULTS_QUEUED_MAX)
        esi_runner_hold(job->runner, true);
    job->has_news = job->has_news || has_news;
    (void)pthread_mutex_unlock(&run->lock);
    if (has_news)
        wake(run);
}

/* ---- reading scripts ---- */

static enum rt_code load_script(const char *path, enum model_dialect dialect,
                                struct esi_script **ret_script)
{
    struct rt_buffer said = {0};
    enum rt_code code = esi_script_file_load(path, dialect, ret_script, &said);

    if (code != RT_OK)
        (void)fwrite(said.data, 1, said.size, stderr);
    rt_buffer_deinit(&said);
    return code;
}

/* Every script is parsed, so that all errors are shown at once. */
static bool load_scripts(struct run *run)
{
    bool is_ok = true;

    for (size_t i = 0; i < run->n_jobs; i++)
        if (load_script(run->options->scripts[i], run->options->dialect, &run->jobs[i].script) !=
            RT_OK)
            is_ok = false;
    return is_ok;
}

/* ---- running ---- */

/* The script's file name, with what a session name may not have replaced. */
static void name_session(const char *path, char ret_name[MODEL_NAME_MAX + 1])
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t size = strnlen(base, MODEL_NAME_MAX);

    for (size_t i = 0; i < size; i++) {
        struct rt_bytes one = rt_bytes_of(base + i, 1);

        ret_name[i] = '_';
        if (model_name_check("", one, NULL) == RT_OK)
            ret_name[i] = base[i];
    }
    ret_name[size] = '\0';
    if (size == 0)
        (void)snprintf(ret_name, MODEL_NAME_MAX + 1, "esi");
}

static void start_job(struct run *run, struct job *job)
{
    const struct rt_env *env = rpc_runtime_env(run->runtime);
    struct host_options host = {
        .runtime = run->runtime, .ops = &runner_ops, .after_step = after_step, .ctx = job};
    uint64_t client[2] = {rt_env_random(env), rt_env_random(env)};
    struct esi_session_config config = {
        .statement_timeout_us = run->options->statement_timeout_ms * 1000,
        .holds_turn = run->planned != NULL,
    };

    name_session(job->script->name, config.name);
    (void)snprintf(config.coordinator_address, sizeof(config.coordinator_address), "%s",
                   run->options->coordinator);
    memcpy(config.client_id.bytes, client, sizeof(config.client_id.bytes));
    job->runner = esi_runner_new(job->script, &config,
                                 esi_cursor_seed(run->seed, (size_t)(job - run->jobs)), env);
    if (run->planned)
        esi_runner_plan(job->runner);
    host.core = job->runner;
    job->host = host_new(&host);
}

static void start_jobs(struct run *run)
{
    for (size_t i = 0; i < run->n_jobs; i++)
        start_job(run, &run->jobs[i]);
    run->has_started = true;
    for (size_t i = 0; i < run->n_jobs; i++)
        host_step(run->jobs[i].host, runner_start, NULL);
}

static void start_planned(struct run *run)
{
    const struct esi_planned_setup setup = {
        .options = run->options,
        .runtime = run->runtime,
        .wake = wake,
        .grant = grant,
        .ctx = run,
    };

    run->planned = esi_planned_new(&setup);
}

static void on_signal(int signum, void *ctx)
{
    struct run *run = ctx;

    (void)signum;
    run->is_interrupted = true;
    stop_scripts(run);
    wake(run);
}

static int exit_code_of(const struct run *run)
{
    enum model_exit worst = MODEL_EXIT_OK;

    if (run->is_interrupted)
        return MODEL_EXIT_INTERRUPTED;
    if (run->has_output_failed)
        return MODEL_EXIT_FAILED;
    if (!run->has_started)
        return MODEL_EXIT_UNAVAILABLE;
    for (size_t i = 0; i < run->n_jobs; i++)
        worst =
            esi_report_exit_worse(worst, esi_report_exit(esi_runner_summary(run->jobs[i].runner)));
    return (int)worst;
}

/* Owned by the caller. */
static struct esi_run_report_script *list_scripts(const struct run *run)
{
    struct esi_run_report_script *scripts = rt_xalloc(run->n_jobs * sizeof(*scripts));

    for (size_t i = 0; i < run->n_jobs; i++) {
        const struct job *job = &run->jobs[i];

        scripts[i].script = job->script;
        scripts[i].summary = job->runner ? esi_runner_summary(job->runner) : NULL;
    }
    return scripts;
}

static bool open_report(struct run *run)
{
    struct esi_run_report_script *scripts = list_scripts(run);
    struct rt_error err = RT_ERROR_INIT;
    enum rt_code code = esi_run_report_open(&run->report, run->options->report, run->options->junit,
                                            scripts, run->n_jobs, &err);

    if (code != RT_OK)
        (void)fprintf(stderr, "redistinto-esi: %s\n", err.message);
    (void)rt_free(scripts);
    return code == RT_OK;
}

/* All scripts have ended. */
static bool finish_report(struct run *run)
{
    struct esi_run_report_script *scripts = list_scripts(run);
    struct rt_error err = RT_ERROR_INIT;
    enum rt_code code = esi_run_report_finish(&run->report, scripts, run->n_jobs, run->seed, &err);

    if (code != RT_OK)
        (void)fprintf(stderr, "redistinto-esi: %s\n", err.message);
    (void)rt_free(scripts);
    return code == RT_OK;
}

/* Text says it at each script's end. */
static void tell_seed(const struct run *run)
{
    bool is_random = false;

    for (size_t i = 0; i < run->n_jobs; i++)
        is_random = is_random || run->jobs[i].script->is_random;
    if (is_random && run->options->format == ESI_FORMAT_JSON)
        (void)fprintf(stderr, "redistinto-esi: seed=%llu\n", (unsigned long long)run->seed);
}

static int run_scripts(struct run *run)
{
    struct rt_error err = RT_ERROR_INIT;
    int exit_code;

    run->runtime = rpc_runtime_new(NULL);
    run->seed = run->options->seed;
    while (run->seed == 0)
        run->seed = rt_env_random(rpc_runtime_env(run->runtime)) & ESI_SEED_MAX;
    if (run->options->seed == 0)
        tell_seed(run);
    /* Before anything that a signal would leave behind; they are handled in rpc_runtime_run(). */
    if (rpc_runtime_on_interrupt(run->runtime, on_signal, run, &err) != RT_OK)
        rt_log(RT_LOG_WARNING, "event=no_signals error=\"%s\"", err.message);
    if (run->options->is_planned)
        start_planned(run);
    else
        start_jobs(run);
    rpc_runtime_run(run->runtime);

    /* Where nothing began there is nothing to report. */
    if (run->has_started && !finish_report(run))
        run->has_output_failed = true;
    exit_code = exit_code_of(run);
    run->planned = esi_planned_free(run->planned);
    for (size_t i = 0; i < run->n_jobs; i++) {
        run->jobs[i].host = host_free(run->jobs[i].host);
        run->jobs[i].runner = esi_runner_free(run->jobs[i].runner);
    }
    run->runtime = rpc_runtime_free(run->runtime);
    return exit_code;
}

static void run_free(struct run *run)
{
    for (size_t i = 0; i < run->n_jobs; i++)
        run->jobs[i].script = esi_script_free(run->jobs[i].script);
    (void)rt_free(run->jobs);
    esi_run_report_close(&run->report);
    (void)pthread_mutex_destroy(&run->lock);
    (void)rt_free(run);
}

int esi_run(const struct esi_options *options)
{
    struct run *run = rt_xalloc(sizeof(*run));
    int exit_code = MODEL_EXIT_USAGE;

    run->options = options;
    run->n_jobs = options->n_scripts;
    run->jobs = rt_xalloc(run->n_jobs * sizeof(*run->jobs));
    run->shows_progress =
        options->format == ESI_FORMAT_TEXT && isatty(STDERR_FILENO) && isatty(STDOUT_FILENO);
    (void)pthread_mutex_init(&run->lock, NULL);
    for (size_t i = 0; i < run->n_jobs; i++) {
        run->jobs[i].run = run;
        rt_list_init(&run->jobs[i].results);
    }
    if (load_scripts(run)) {
        if (options->check)
            exit_code = MODEL_EXIT_OK;
        else if (open_report(run))
            exit_code = run_scripts(run);
    }
    run_free(run);
    return exit_code;
}
