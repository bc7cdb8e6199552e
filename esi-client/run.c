/*
 * Running scripts: see run.h. Each script has a runner and a host of its own. Results leave the
 * runners under their locks into one queue; the loop thread formats and prints them and ends the
 * process when every script is done.
 */
#include "esi-client/run.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "esi-client/report.h"
#include "esi-client/run_report.h"
#include "esi-client/runner.h"
#include "runtime/base/alloc.h"
#include "runtime/host/host.h"
#include "runtime/model/exit.h"

struct run;

struct job {
    struct run *run;
    struct esi_script *script; /* owned */
    struct esi_runner *runner; /* owned */
    struct host *host;         /* owned */
    struct rt_list results;    /* esi_result.link, under run.lock */
    bool is_done;              /* under run.lock */
    bool is_reported;          /* loop thread */
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
    for (size_t i = 0; i < run->n_jobs; i++)
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

static void print_results(struct run *run, struct job *job, struct rt_list *results)
{
    struct rt_buffer line = {0};
    struct rt_list *node;

    while ((node = rt_list_pop_front(results))) {
        struct esi_result *result = RT_LIST_ENTRY(node, struct esi_result, link);

        if (run->options->format == ESI_FORMAT_JSON)
            esi_report_json(job->script->name, result, &line);
        else
            esi_report_text(job->script->name, result, &line);
        print(run, &line);
        esi_run_report_add(&run->report, (size_t)(job - run->jobs), result);
        (void)esi_result_free(result);
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

static void stop_if_done(struct run *run)
{
    if (run->n_reported < run->n_jobs)
        return;
    clear_progress(run);
    for (size_t i = 0; i < run->n_jobs; i++)
        host_stop(run->jobs[i].host);
    rpc_runtime_stop(run->runtime);
}

static void print_new(struct rpc_job *output_job)
{
    struct run *run = RT_CONTAINER_OF(output_job, struct run, output_job);

    for (size_t i = 0; i < run->n_jobs; i++) {
        struct job *job = &run->jobs[i];
        struct rt_list results = RT_LIST_INIT(results);
        bool is_done;

        (void)pthread_mutex_lock(&run->lock);
        rt_list_splice_back(&results, &job->results);
        is_done = job->is_done;
        (void)pthread_mutex_unlock(&run->lock);

        print_results(run, job, &results);
        if (is_done && !job->is_reported)
            report_end(run, job);
    }
    show_progress(run);
    stop_if_done(run);
}

static void after_step(void *ctx)
{
    struct job *job = ctx;
    struct run *run = job->run;
    struct esi_result *result;
    bool is_done = esi_runner_is_done(job->runner);
    bool has_news;

    (void)pthread_mutex_lock(&run->lock);
    has_news = is_done != job->is_done;
    job->is_done = is_done;
    while ((result = esi_runner_take_result(job->runner))) {
        rt_list_push_back(&job->results, &result->link);
        has_news = true;
    }
    (void)pthread_mutex_unlock(&run->lock);
    if (has_news)
        rpc_runtime_post(run->runtime, &run->output_job, print_new);
}

/* ---- reading scripts ---- */

static enum rt_code read_all(int fd, const char *path, struct rt_buffer *text, struct rt_error *err)
{
    char chunk[16384];
    ssize_t n_read;

    while ((n_read = read(fd, chunk, sizeof(chunk))) != 0) {
        if (n_read < 0 && errno == EINTR)
            continue;
        if (n_read < 0)
            return rt_fail_errno(err, errno, "reading %s", path);
        if (text->size + (size_t)n_read > ESI_SCRIPT_SIZE_MAX)
            return rt_fail(err, RT_INVALID_ARGUMENT, "%s is larger than %d bytes", path,
                           ESI_SCRIPT_SIZE_MAX);
        rt_buffer_append(text, rt_bytes_of(chunk, (size_t)n_read));
    }
    return RT_OK;
}

static enum rt_code read_file(const char *path, struct rt_buffer *text, struct rt_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    enum rt_code code;

    if (fd < 0)
        return rt_fail_errno(err, errno, "%s", path);
    code = read_all(fd, path, text, err);
    if (!is_stdin)
        (void)close(fd);
    return code;
}

static enum rt_code load_script(const char *path, enum model_dialect dialect,
                                struct esi_script **ret_script)
{
    struct esi_script_errors *errors = rt_xalloc(sizeof(*errors));
    struct rt_buffer text = {0};
    struct rt_error err = RT_ERROR_INIT;
    enum rt_code code = read_file(path, &text, &err);

    if (code == RT_OK)
        code = esi_script_parse(path, rt_buffer_bytes(&text), dialect, ret_script, errors, &err);
    if (code != RT_OK && errors->n_errors > 0) {
        rt_buffer_reset(&text);
        esi_script_errors_format(path, errors, &text);
        (void)fwrite(text.data, 1, text.size, stderr);
    } else if (code != RT_OK) {
        (void)fprintf(stderr, "redistinto-esi: %s\n", err.message);
    }
    rt_buffer_deinit(&text);
    (void)rt_free(errors);
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
    struct esi_session_config config = {.statement_timeout_us =
                                            run->options->statement_timeout_ms * 1000};

    name_session(job->script->name, config.name);
    (void)snprintf(config.coordinator_address, sizeof(config.coordinator_address), "%s",
                   run->options->coordinator);
    memcpy(config.client_id.bytes, client, sizeof(config.client_id.bytes));
    job->runner = esi_runner_new(job->script, &config,
                                 esi_cursor_seed(run->seed, (size_t)(job - run->jobs)), env);
    host.core = job->runner;
    job->host = host_new(&host);
    host_step(job->host, runner_start, NULL);
}

static void on_signal(int signum, void *ctx)
{
    struct run *run = ctx;

    (void)signum;
    run->is_interrupted = true;
    stop_scripts(run);
}

static int exit_code_of(const struct run *run)
{
    enum model_exit worst = MODEL_EXIT_OK;

    if (run->is_interrupted)
        return MODEL_EXIT_INTERRUPTED;
    if (run->has_output_failed)
        return MODEL_EXIT_FAILED;
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

static int run_scripts(struct run *run)
{
    struct rt_error err = RT_ERROR_INIT;
    int exit_code;

    run->runtime = rpc_runtime_new(NULL);
    run->seed = run->options->seed;
    while (run->seed == 0)
        run->seed = rt_env_random(rpc_runtime_env(run->runtime)) & ESI_SEED_MAX;
    /* Before anything that a signal would leave behind; they are handled in rpc_runtime_run(). */
    if (rpc_runtime_on_interrupt(run->runtime, on_signal, run, &err) != RT_OK)
        rt_log(RT_LOG_WARNING, "event=no_signals error=\"%s\"", err.message);
    for (size_t i = 0; i < run->n_jobs; i++)
        start_job(run, &run->jobs[i]);
    rpc_runtime_run(run->runtime);

    if (!finish_report(run))
        run->has_output_failed = true;
    exit_code = exit_code_of(run);
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
