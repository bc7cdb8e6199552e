/*
 * Child processes: see process.h. Three uv handles live in one object, which is freed when the last
 * of them is closed. Loop thread.
 */
#include "cli/process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/file.h"
#include "runtime/base/alloc.h"

enum {
    N_HANDLES = 3
};

struct cli_process {
    uv_process_t process;
    uv_pipe_t input;
    uv_pipe_t ready;
    struct cli_process_options options;
    char *name;       /* owned */
    char *log_path;   /* owned */
    off_t log_offset; /* where this child's lines begin */
    char *address;    /* owned */
    bool has_exited;
    int64_t exit_status;
    int term_signal;
    unsigned n_open;
    size_t n_line;
    char line[CLI_PROCESS_READY_LINE_MAX + 1];
};

static void free_process(struct cli_process *process)
{
    rt_free(process->name);
    rt_free(process->log_path);
    rt_free(process->address);
    rt_free(process);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct cli_process *process = handle->data;

    if (--process->n_open == 0)
        free_process(process);
}

static void close_handles(struct cli_process *process)
{
    uv_close((uv_handle_t *)&process->process, on_handle_closed);
    uv_close((uv_handle_t *)&process->input, on_handle_closed);
    uv_close((uv_handle_t *)&process->ready, on_handle_closed);
}

static void on_process_exit(uv_process_t *handle, int64_t exit_status, int term_signal)
{
    struct cli_process *process = handle->data;

    process->has_exited = true;
    process->exit_status = exit_status;
    process->term_signal = term_signal;
    process->options.on_exit(process, process->options.ctx);
}

/* One line is all that is ever said; anything else counts as silence. */
static void take_ready_line(struct cli_process *process)
{
    static const char prefix[] = "ready ";
    char *end = memchr(process->line, '\n', process->n_line);

    if (end == NULL)
        return;
    *end = '\0';
    (void)uv_read_stop((uv_stream_t *)&process->ready);
    if (strncmp(process->line, prefix, sizeof(prefix) - 1) != 0 || process->has_exited)
        return;
    process->address = rt_xstrdup(process->line + sizeof(prefix) - 1);
    process->options.on_ready(process, process->options.ctx);
}

static void on_ready_alloc(uv_handle_t *handle, size_t suggested_size, uv_buf_t *buffer)
{
    struct cli_process *process = handle->data;

    (void)suggested_size;
    *buffer = uv_buf_init(process->line + process->n_line,
                          (unsigned)(sizeof(process->line) - process->n_line));
}

static void on_ready_read(uv_stream_t *stream, ssize_t n_read, const uv_buf_t *buffer)
{
    struct cli_process *process = stream->data;

    (void)buffer;
    if (n_read < 0) {
        (void)uv_read_stop(stream);
        return;
    }
    process->n_line += (size_t)n_read;
    take_ready_line(process);
}

static struct cli_process *new_process(uv_loop_t *loop, const struct cli_process_options *options)
{
    struct cli_process *process = rt_xalloc(sizeof(*process));

    process->options = *options;
    process->name = rt_xstrdup(options->name);
    process->log_path = rt_xstrdup(options->log_path);
    process->n_open = N_HANDLES;
    process->process.data = process;
    process->input.data = process;
    process->ready.data = process;
    (void)uv_pipe_init(loop, &process->input, 0);
    (void)uv_pipe_init(loop, &process->ready, 0);
    return process;
}

static enum rt_code open_log(struct cli_process *process, int *ret_fd, struct rt_error *err)
{
    struct stat status;
    int fd = open(process->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    if (fd < 0)
        return rt_fail_errno(err, errno, "opening %s", process->log_path);
    if (fstat(fd, &status) == 0)
        process->log_offset = status.st_size;
    *ret_fd = fd;
    return RT_OK;
}

static int start(uv_loop_t *loop, struct cli_process *process, int log_fd)
{
    uv_stdio_container_t stdio[] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&process->input},
        {.flags = UV_INHERIT_FD, .data.fd = log_fd},
        {.flags = UV_INHERIT_FD, .data.fd = log_fd},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&process->ready},
    };
    uv_process_options_t options = {
        .file = process->options.argv[0],
        /* uv_spawn's types lack the const that their use has. */
        .args = (char **)process->options.argv,
        .env = (char **)process->options.environment,
        .flags = UV_PROCESS_DETACHED,
        .exit_cb = on_process_exit,
        .stdio = stdio,
        .stdio_count = RT_ARRAY_SIZE(stdio),
    };
    int result = uv_spawn(loop, &process->process, &options);

    if (result == 0)
        result = uv_read_start((uv_stream_t *)&process->ready, on_ready_alloc, on_ready_read);
    process->options.argv = NULL;
    process->options.environment = NULL;
    process->options.name = process->name;
    process->options.log_path = process->log_path;
    return result;
}

enum rt_code cli_process_spawn(uv_loop_t *loop, const struct cli_process_options *options,
                               struct cli_process **ret_process, struct rt_error *err)
{
    struct cli_process *process = new_process(loop, options);
    int log_fd = -1;
    int result;
    enum rt_code code;

    code = open_log(process, &log_fd, err);
    if (code != RT_OK) {
        process->n_open = N_HANDLES - 1;
        uv_close((uv_handle_t *)&process->input, on_handle_closed);
        uv_close((uv_handle_t *)&process->ready, on_handle_closed);
        return code;
    }
    result = start(loop, process, log_fd);
    (void)close(log_fd);
    if (result < 0) {
        code = rt_fail_uv(err, result, "starting %s", options->argv[0]);
        close_handles(process);
        return code;
    }
    *ret_process = process;
    return RT_OK;
}

void cli_process_kill(struct cli_process *process, int signum)
{
    if (!process->has_exited)
        (void)uv_process_kill(&process->process, signum);
}

void cli_process_close(struct cli_process *process)
{
    rt_assert(process->has_exited);
    close_handles(process);
}

const char *cli_process_name(const struct cli_process *process)
{
    return process->name;
}

pid_t cli_process_pid(const struct cli_process *process)
{
    return process->process.pid;
}

const char *cli_process_address(const struct cli_process *process)
{
    return process->address;
}

bool cli_process_exited_cleanly(const struct cli_process *process)
{
    return process->has_exited && process->term_signal == 0 && process->exit_status == 0;
}

int cli_process_exit_status(const struct cli_process *process)
{
    return process->term_signal == 0 ? (int)process->exit_status : -1;
}

void cli_process_describe_end(const struct cli_process *process, struct rt_buffer *buffer)
{
    if (process->term_signal == 0)
        rt_buffer_printf(buffer, "exited with status %d", (int)process->exit_status);
    else
        rt_buffer_printf(buffer, "was killed by signal %d (%s)", process->term_signal,
                         strsignal(process->term_signal));
}

void cli_process_append_log_tail(const struct cli_process *process, unsigned n_lines,
                                 struct rt_buffer *buffer)
{
    cli_file_append_tail(process->log_path, process->log_offset, n_lines, buffer);
}
