/*
 * The operation log's file: see operation_log.h. Invariant: at most one write is under way, and
 * lines reach the file in the order in which they were taken. `waiting` and `n_lost` are under the
 * core's lock, the rest belongs to the loop thread.
 */
#include "coordinator/operation_log.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/log.h"

enum {
    WAITING_MAX = 16 * 1024 * 1024 /* bytes; a disk that stands still loses what comes then */
};

struct coord_operation_log {
    struct rpc_runtime *runtime;
    int fd;
    struct host *host;
    struct rt_buffer waiting; /* owned */
    size_t n_lost;
    size_t n_lost_told; /* of those */
    struct rpc_job job;
    uv_fs_t write;
    struct rt_buffer writing; /* owned */
    size_t written;           /* of it */
    bool is_writing;
    bool has_failed; /* that was logged */
};

enum rt_code coord_operation_log_open(struct rpc_runtime *runtime, struct host *host,
                                      const char *path, struct coord_operation_log **ret_log,
                                      struct rt_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    struct coord_operation_log *log;

    if (fd < 0) {
        (void)rt_fail_errno(err, errno, "--operation-log %s", path);
        if (err)
            err->code = RT_INVALID_ARGUMENT;
        return RT_INVALID_ARGUMENT;
    }
    log = rt_xalloc(sizeof(*log));
    log->runtime = runtime;
    log->host = host;
    log->fd = fd;
    log->waiting.limit = WAITING_MAX;
    log->writing.limit = WAITING_MAX;
    *ret_log = log;
    return RT_OK;
}

/* ---- loop thread ----------------------------------------------------------------------------- */

static void tell_failure(struct coord_operation_log *log, const char *what)
{
    if (!log->has_failed)
        rt_log(RT_LOG_ERROR, "event=operation_log_failed error=\"%s\"", what);
    log->has_failed = true;
}

/* Under the core's lock. */
static void swap(void *core, void *argument)
{
    struct coord_operation_log *log = argument;
    struct rt_buffer written = log->writing;

    (void)core;
    rt_buffer_reset(&written);
    log->writing = log->waiting;
    log->waiting = written;
    log->n_lost_told = log->n_lost;
    log->n_lost = 0;
}

/* What was swapped is to be written now; false when it is nothing. */
static bool begin_piece(struct coord_operation_log *log)
{
    log->written = 0;
    if (log->n_lost_told > 0)
        rt_log(RT_LOG_WARNING, "event=operations_not_logged n=%zu", log->n_lost_told);
    return log->writing.size > 0;
}

static bool take_waiting(struct coord_operation_log *log)
{
    host_read(log->host, swap, log);
    return begin_piece(log);
}

static void on_written(uv_fs_t *write);

static void write_on(struct coord_operation_log *log)
{
    uv_buf_t rest = uv_buf_init((char *)log->writing.data + log->written,
                                (unsigned)(log->writing.size - log->written));

    log->write.data = log;
    log->is_writing = uv_fs_write(rpc_runtime_loop(log->runtime), &log->write, log->fd, &rest, 1,
                                  -1, on_written) == 0;
    if (log->is_writing)
        return;
    tell_failure(log, "no memory for the write");
    log->written = log->writing.size;
}

static void on_written(uv_fs_t *write)
{
    struct coord_operation_log *log = write->data;
    ssize_t n = write->result;

    uv_fs_req_cleanup(write);
    log->is_writing = false;
    if (n < 0)
        tell_failure(log, uv_strerror((int)n));
    else
        log->has_failed = false;
    log->written = n < 0 ? log->writing.size : log->written + (size_t)n;
    if (log->written < log->writing.size || take_waiting(log))
        write_on(log);
}

static void begin_write(struct rpc_job *job)
{
    struct coord_operation_log *log = RT_CONTAINER_OF(job, struct coord_operation_log, job);

    if (!log->is_writing && take_waiting(log))
        write_on(log);
}

/* Nobody steps the core any more. */
static void write_rest(struct coord_operation_log *log)
{
    swap(NULL, log);
    (void)begin_piece(log);
    while (log->written < log->writing.size) {
        ssize_t n =
            write(log->fd, log->writing.data + log->written, log->writing.size - log->written);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            tell_failure(log, uv_strerror(uv_translate_sys_error(errno)));
        log->written = n < 0 ? log->writing.size : log->written + (size_t)n;
    }
}

struct coord_operation_log *coord_operation_log_close(struct coord_operation_log *log)
{
    if (!log)
        return NULL;
    rt_assert(!log->is_writing);
    write_rest(log);
    (void)close(log->fd);
    rt_buffer_deinit(&log->waiting);
    rt_buffer_deinit(&log->writing);
    return rt_free(log);
}

/* ---- any thread ------------------------------------------------------------------------------ */

/* "2026-03-01T09:15:02.123456Z " */
static void append_time(struct rt_buffer *buffer)
{
    struct timespec now;
    struct tm day;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &day);
    rt_buffer_printf(buffer, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ ", day.tm_year + 1900,
                     day.tm_mon + 1, day.tm_mday, day.tm_hour, day.tm_min, day.tm_sec,
                     now.tv_nsec / 1000);
}

static void add_line(struct coord_operation_log *log, struct rt_bytes line)
{
    size_t before = log->waiting.size;

    append_time(&log->waiting);
    rt_buffer_append(&log->waiting, line);
    if (!log->waiting.failed)
        return;
    log->waiting.size = before;
    log->waiting.failed = false;
    log->n_lost++;
}

void coord_operation_log_take(struct coord_operation_log *log, struct coord_core *core)
{
    struct rt_buffer lines;
    size_t n_lost = coord_core_take_operations(core, &lines);
    size_t begin = 0;

    if (lines.size == 0 && n_lost == 0)
        return;
    log->n_lost += n_lost;
    for (size_t i = 0; i < lines.size; i++) {
        if (lines.data[i] != '\n')
            continue;
        add_line(log, rt_bytes_of(lines.data + begin, i + 1 - begin));
        begin = i + 1;
    }
    rt_buffer_deinit(&lines);
    rpc_runtime_post(log->runtime, &log->job, begin_write);
}
