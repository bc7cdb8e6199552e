/*
 * Child processes: ready line, end, log, and that they end with their parent's pipe.
 */
#include "cli/process.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/cli/service_dir.h"

TestSuite(process, .init = service_dir_make, .fini = service_dir_remove, .timeout = 20);

struct run {
    uv_loop_t loop;
    struct cli_process *process;
    int signum_when_ready; /* 0: none */
    char address[64];
    char end[64];
    char tail[1024];
    int exit_status;
    bool exited_cleanly;
    unsigned n_ready;
    unsigned n_exit;
};

static void on_ready(struct cli_process *process, void *ctx)
{
    struct run *run = ctx;

    run->n_ready++;
    cr_assert_not(cli_process_exited_cleanly(process));
    (void)snprintf(run->address, sizeof(run->address), "%s", cli_process_address(process));
    if (run->signum_when_ready != 0)
        cli_process_kill(process, run->signum_when_ready);
}

static void on_exit_of(struct cli_process *process, void *ctx)
{
    struct run *run = ctx;
    struct rt_buffer buffer = {0};

    run->n_exit++;
    run->exit_status = cli_process_exit_status(process);
    run->exited_cleanly = cli_process_exited_cleanly(process);
    cli_process_describe_end(process, &buffer);
    (void)snprintf(run->end, sizeof(run->end), "%s", rt_buffer_string(&buffer));
    rt_buffer_reset(&buffer);
    cli_process_append_log_tail(process, 2, &buffer);
    (void)snprintf(run->tail, sizeof(run->tail), "%s", rt_buffer_string(&buffer));
    rt_buffer_deinit(&buffer);
    cli_process_kill(process, SIGKILL);
    cli_process_close(process);
}

static enum rt_code spawn(struct run *run, const char *program, const char *behaviour,
                          struct rt_error *err)
{
    char *path = rt_xasprintf("%s/%s", service_dir, program);
    char *log = rt_xasprintf("%s/child.log", service_dir);
    const char *arguments[] = {path, "--log-level", behaviour, NULL};
    struct cli_process_options options = {
        .name = "child",
        .argv = arguments,
        .log_path = log,
        .on_ready = on_ready,
        .on_exit = on_exit_of,
        .ctx = run,
    };
    enum rt_code code;

    cr_assert_eq(uv_loop_init(&run->loop), 0);
    code = cli_process_spawn(&run->loop, &options, &run->process, err);
    rt_free(path);
    rt_free(log);
    return code;
}

static void finish(struct run *run)
{
    cr_assert_eq(uv_run(&run->loop, UV_RUN_DEFAULT), 0);
    cr_assert_eq(uv_loop_close(&run->loop), 0);
}

Test(process, says_where_it_serves_and_ends_on_sigterm)
{
    struct run run = {.signum_when_ready = SIGTERM};
    char expected[64];

    cr_assert_eq(spawn(&run, "redistinto-instance", "serve", NULL), RT_OK);
    cr_assert_str_eq(cli_process_name(run.process), "child");
    cr_assert_null(cli_process_address(run.process));
    (void)snprintf(expected, sizeof(expected), "127.0.0.1:%d", (int)cli_process_pid(run.process));
    finish(&run);
    cr_assert_eq(run.n_ready, 1);
    cr_assert_eq(run.n_exit, 1);
    cr_assert_str_eq(run.address, expected);
    cr_assert_str_eq(run.end, "exited with status 0");
    cr_assert(run.exited_cleanly);
}

Test(process, killed)
{
    struct run run = {.signum_when_ready = SIGKILL};

    cr_assert_eq(spawn(&run, "redistinto-instance", "serve", NULL), RT_OK);
    finish(&run);
    cr_assert_str_eq(run.end, "was killed by signal 9 (Killed)");
    cr_assert_eq(run.exit_status, -1);
    cr_assert_not(run.exited_cleanly);
}

Test(process, refuses_and_its_log_is_quoted)
{
    struct run run = {0};

    cr_assert_eq(spawn(&run, "redistinto-instance", "refuse2", NULL), RT_OK);
    finish(&run);
    cr_assert_eq(run.n_ready, 0);
    cr_assert_eq(run.n_exit, 1);
    cr_assert_eq(run.exit_status, 2);
    cr_assert_str_eq(run.tail, "  refusal line 29\n  refusal line 30\n");
}

Test(process, quotes_its_own_lines_only)
{
    struct run first = {0};
    struct run second = {.signum_when_ready = SIGTERM};

    cr_assert_eq(spawn(&first, "redistinto-instance", "refuse2", NULL), RT_OK);
    finish(&first);
    cr_assert_eq(spawn(&second, "redistinto-instance", "serve", NULL), RT_OK);
    finish(&second);
    cr_assert_null(strstr(second.tail, "refusal"));
    cr_assert_not_null(strstr(second.tail, "end "));
}

Test(process, another_line_is_no_readiness)
{
    struct run run = {0};

    cr_assert_eq(spawn(&run, "redistinto-instance", "mumble", NULL), RT_OK);
    (void)uv_run(&run.loop, UV_RUN_ONCE);
    cli_process_kill(run.process, SIGTERM);
    finish(&run);
    cr_assert_eq(run.n_ready, 0);
    cr_assert_eq(run.n_exit, 1);
}

Test(process, no_such_program)
{
    struct run run = {0};
    struct rt_error err = RT_ERROR_INIT;

    cr_assert_eq(spawn(&run, "absent", "serve", &err), RT_NOT_FOUND);
    cr_assert_not_null(strstr(err.message, "/absent"));
    finish(&run);
    cr_assert_eq(run.n_exit, 0);
}

Test(process, log_cannot_be_opened)
{
    struct run run = {0};
    struct rt_error err = RT_ERROR_INIT;
    char *path = rt_xasprintf("%s/child.log", service_dir);

    cr_assert_eq(cli_file_make_directory(path, NULL), RT_OK);
    cr_assert_neq(spawn(&run, "redistinto-instance", "serve", &err), RT_OK);
    cr_assert_not_null(strstr(err.message, "child.log"));
    finish(&run);
    cr_assert_eq(run.n_exit, 0);
    rt_free(path);
}

/* Spawns a child, tells its pid, and dies without any good-bye once it is ready. */
static void die_with_child(int pid_fd)
{
    struct run run = {0};
    pid_t pid;

    if (spawn(&run, "redistinto-instance", "serve", NULL) != RT_OK)
        _exit(1);
    while (run.n_ready == 0)
        (void)uv_run(&run.loop, UV_RUN_ONCE);
    pid = cli_process_pid(run.process);
    if (write(pid_fd, &pid, sizeof(pid)) != sizeof(pid))
        _exit(1);
    (void)raise(SIGKILL);
}

Test(process, ends_when_its_parent_is_killed)
{
    char *log = rt_xasprintf("%s/child.log", service_dir);
    struct rt_buffer tail = {0};
    int fds[2];
    pid_t parent;
    pid_t child;

    cr_assert_eq(pipe(fds), 0);
    parent = fork();
    if (parent == 0)
        die_with_child(fds[1]);
    cr_assert_eq(read(fds[0], &child, sizeof(child)), sizeof(child));
    cr_assert_eq(waitpid(parent, NULL, 0), parent);
    while (kill(child, 0) == 0)
        (void)usleep(1000);
    cr_assert_eq(errno, ESRCH);
    cli_file_append_tail(log, 0, 1, &tail);
    cr_assert_not_null(strstr(rt_buffer_string(&tail), "end "), "it did not end by itself");
    rt_buffer_deinit(&tail);
    rt_free(log);
}
