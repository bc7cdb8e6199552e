/*
 * The life of a service process: see service.h. Flags belong to the loop thread; other threads
 * post jobs.
 */
#include "runtime/host/service.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/host/inbound.h"
#include "runtime/model/exit.h"
#include "runtime/store/lmdb.h"
#include "runtime/wire/descriptors.h"

const struct rt_option host_service_options[HOST_SERVICE_N_OPTIONS] = {
    {
        .name = "data-dir",
        .type = RT_OPTION_STRING,
        .is_required = true,
        .argument = "DIR",
        .help = "Where the service keeps its data; made if absent, locked while in use.",
        .offset = offsetof(struct host_service_config, data_dir),
    },
    {
        .name = "store-limit",
        .type = RT_OPTION_SIZE,
        .initial = "64GiB",
        .min = 1 << 20,
        .max = (uint64_t)1 << 44,
        .help = "The store grows up to this size; then writes fail with RESOURCE_EXHAUSTED.",
        .offset = offsetof(struct host_service_config, store_limit),
    },
    {
        .name = "log-level",
        .type = RT_OPTION_ENUM,
        .names = rt_log_level_names,
        .initial = "info",
        .help = "The least important lines that are written to standard error.",
        .offset = offsetof(struct host_service_config, log_level),
    },
    {
        .name = "drain-timeout",
        .type = RT_OPTION_DURATION,
        .initial = "5s",
        .min = 1,
        .max = 600000,
        .help = "After SIGTERM, how long calls in flight may take to end.",
        .offset = offsetof(struct host_service_config, drain_ms),
    },
    {
        .name = "ready-fd",
        .type = RT_OPTION_U64,
        .initial = "0",
        .max = 1023,
        .argument = "FD",
        .group = "For supervisors",
        .help = "Write \"ready ADDRESS\" to this descriptor once the service serves; 0 = none.",
        .offset = offsetof(struct host_service_config, ready_fd),
    },
    {
        .name = "exit-with-stdin",
        .type = RT_OPTION_FLAG,
        .group = "For supervisors",
        .help = "Stop, as at SIGTERM, when standard input ends.",
        .offset = offsetof(struct host_service_config, exit_with_stdin),
    },
};

int host_service_fail(const char *name, const struct rt_error *err)
{
    (void)fprintf(stderr, "%s: %s\n", name, err->message);
    return (int)model_exit_of(err->code, MODEL_REASON_NONE);
}

static void on_failed(const struct rpc_failure *failure, void *ctx)
{
    (void)ctx;
    rt_log(RT_LOG_WARNING, "event=rpc_failed method=%s peer=%s code=%s reason=%s duration_us=%llu",
           failure->method, failure->peer, rt_code_name(failure->code),
           failure->reason ? failure->reason : "-", (unsigned long long)failure->duration_us);
}

static void format_address(struct host_service *service, uint16_t port)
{
    const char *listen = service->config.listen;
    const char *colon = strrchr(listen, ':');

    if (strncmp(listen, "unix:", 5) == 0)
        (void)snprintf(service->address, sizeof(service->address), "%s", listen);
    else
        (void)snprintf(service->address, sizeof(service->address), "%.*s:%u", (int)(colon - listen),
                       listen, port);
}

static void set_health(struct host_service *service, bool is_serving)
{
    rpc_server_set_health(service->server, "", is_serving);
    for (size_t i = 0; i < service->n_services; i++)
        rpc_server_set_health(service->server, service->services[i], is_serving);
}

/* ---- stopping ---- */

static void on_drained(void *ctx)
{
    struct host_service *service = ctx;

    if (service->on_end)
        service->on_end(service->ctx);
    if (service->host)
        host_stop(service->host);
    rpc_runtime_stop(service->runtime);
}

static void finish(struct rpc_job *job)
{
    struct host_service *service = RT_CONTAINER_OF(job, struct host_service, finish_job);

    if (service->is_finishing)
        return;
    service->is_finishing = true;
    if (service->host)
        host_end_streams(service->host);
    rpc_server_drain(service->server, (uint32_t)service->config.drain_ms, on_drained, service);
}

static void begin_stop(struct rpc_job *job)
{
    struct host_service *service = RT_CONTAINER_OF(job, struct host_service, stop_job);

    if (service->is_stopping)
        return;
    service->is_stopping = true;
    rt_log(RT_LOG_INFO, "event=stopping");
    set_health(service, false);
    if (service->on_stop)
        service->on_stop(service->ctx);
    else
        host_service_finish(service);
}

void host_service_finish(struct host_service *service)
{
    rpc_runtime_post(service->runtime, &service->finish_job, finish);
}

void host_service_stop(struct host_service *service, int exit_code)
{
    int none = 0;

    (void)atomic_compare_exchange_strong(&service->exit_code, &none, exit_code);
    rpc_runtime_post(service->runtime, &service->stop_job, begin_stop);
}

static void on_signal(int signum, void *ctx)
{
    struct host_service *service = ctx;

    rt_log(RT_LOG_INFO, "event=signal number=%d", signum);
    if (service->is_stopping)
        host_service_finish(service);
    else
        begin_stop(&service->stop_job);
}

/* ---- standard input ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buffer)
{
    struct host_service *service = RT_CONTAINER_OF(handle, struct host_service, input);

    (void)suggested;
    *ret_buffer = uv_buf_init(service->ignored_input, sizeof(service->ignored_input));
}

static void on_input(uv_stream_t *stream, ssize_t n_read, const uv_buf_t *buffer)
{
    struct host_service *service = RT_CONTAINER_OF(stream, struct host_service, input);

    (void)buffer;
    if (n_read >= 0)
        return;
    (void)uv_read_stop(stream);
    begin_stop(&service->stop_job);
}

/* libuv aborts when it is to poll a file or /dev/null. */
static enum rt_code watch_input(struct host_service *service, struct rt_error *err)
{
    struct stat input;
    int result;

    if (fstat(STDIN_FILENO, &input) < 0 || !(S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode)))
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "--exit-with-stdin: standard input must be a pipe");
    result = uv_pipe_init(rpc_runtime_loop(service->runtime), &service->input, 0);
    if (result < 0)
        return rt_fail_uv(err, result, "watching standard input");
    service->is_input_open = true;
    result = uv_pipe_open(&service->input, STDIN_FILENO);
    if (result == 0)
        result = uv_read_start((uv_stream_t *)&service->input, on_alloc, on_input);
    if (result < 0)
        return rt_fail_uv(err, result, "watching standard input");
    return RT_OK;
}

/* ---- opening and closing ---- */

static void on_store_closed(void *ctx)
{
    struct host_service *service = ctx;

    service->store = NULL;
}

static void on_runtime_end(void *ctx)
{
    struct host_service *service = ctx;

    if (service->store) {
        host_drop_store(service->host);
        store_close(service->store, on_store_closed, service);
    }
    if (service->is_input_open)
        uv_close((uv_handle_t *)&service->input, NULL);
}

static enum rt_code watch(struct host_service *service, struct rt_error *err)
{
    enum rt_code code = rpc_runtime_on_signal(service->runtime, SIGTERM, on_signal, service, err);

    if (code == RT_OK)
        code = rpc_runtime_on_signal(service->runtime, SIGINT, on_signal, service, err);
    if (code == RT_OK && service->config.exit_with_stdin)
        code = watch_input(service, err);
    return code;
}

/* Before anything is opened: a number that nobody gave us would soon be a file of our own. */
static enum rt_code check_ready_fd(const struct host_service_config *config, struct rt_error *err)
{
    int fd = (int)config->ready_fd;

    if (fd != 0 && fcntl(fd, F_GETFD) < 0)
        return rt_fail(err, RT_INVALID_ARGUMENT, "--ready-fd: descriptor %d is not open", fd);
    return RT_OK;
}

/* What an option names cannot be used: it has to be changed, or the machine. */
static enum rt_code refuse_option(const char *option, enum rt_code code, struct rt_error *err)
{
    if (code != RT_NOT_FOUND && code != RT_PERMISSION_DENIED)
        return code;
    if (err) {
        (void)rt_wrap(err, "%s", option);
        err->code = RT_INVALID_ARGUMENT;
    }
    return RT_INVALID_ARGUMENT;
}

enum rt_code host_service_open(struct host_service *service, const char *name,
                               const struct host_service_config *config, struct rt_error *err)
{
    struct rpc_server_options options = {.on_failed = on_failed};
    uint16_t port = 0;
    enum rt_code code;

    *service = (struct host_service){.name = name, .config = *config};
    rt_log_init(name, config->log_level);
    /* Whoever reads our log or waits for us to be ready may be gone. */
    (void)signal(SIGPIPE, SIG_IGN);
    code = check_ready_fd(config, err);
    if (code == RT_OK && config->data_dir)
        code = refuse_option("--data-dir",
                             store_data_dir_new(config->data_dir, &service->data_dir, err), err);
    if (code != RT_OK)
        return code;

    service->runtime = rpc_runtime_new(NULL);
    rpc_runtime_on_stop(service->runtime, on_runtime_end, service);
    service->server = rpc_server_new(service->runtime, &options);
    code = rpc_server_add_descriptors(service->server, wire_descriptor_set(), err);
    if (code != RT_OK)
        return code;
    code = refuse_option("--listen", rpc_server_listen(service->server, config->listen, &port, err),
                         err);
    if (code != RT_OK)
        return code;
    format_address(service, port);
    return watch(service, err);
}

static enum rt_code open_store(struct host_service *service, struct rt_error *err)
{
    RT_CLEANUP(rt_freep) char *path = rt_xasprintf("%s/store", service->config.data_dir);
    char id[2 * STORE_ID_SIZE + 1];
    struct store_files_options files = {.mount = service->config.mount,
                                        .id = id,
                                        .reserved = {service->config.data_dir, path},
                                        .row = service->config.file_of_row};
    struct store_lmdb_options store = {
        .path = path,
        .map_limit_bytes = service->config.store_limit,
        .map_size_bytes = service->config.store_limit < STORE_LMDB_MAP_SIZE_DEFAULT
                              ? service->config.store_limit
                              : 0,
        .loop = rpc_runtime_loop(service->runtime),
        .files = service->config.mount ? &files : NULL,
    };
    enum rt_code code;

    for (size_t i = 0; i < STORE_ID_SIZE; i++)
        (void)snprintf(id + 2 * i, 3, "%02x", service->data_dir->store_id[i]);
    code = store_lmdb_open(&store, host_txn_done, service->host, &service->store, err);
    return service->config.mount ? refuse_option("--mount", code, err) : code;
}

enum rt_code host_service_attach(struct host_service *service, const struct host_options *options,
                                 struct rt_error *err)
{
    enum rt_code code;

    service->host = host_new(options);
    if (!service->config.data_dir)
        return RT_OK;
    code = open_store(service, err);
    if (code == RT_OK)
        host_set_store(service->host, service->store);
    return code;
}

/* One pass over the store. */
struct loading {
    const struct host_core_loader *loader;
    void *core;
    struct rt_error *err;
    enum rt_code code;
};

static bool load_row(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    struct loading *loading = ctx;

    loading->code = loading->loader->row(loading->core, key, value, loading->err);
    return loading->code == RT_OK;
}

static bool load_corrupt_row(struct rt_bytes key, struct rt_bytes value, void *ctx)
{
    struct loading *loading = ctx;

    (void)value;
    loading->code = loading->loader->corrupt_row(loading->core, key, loading->err);
    return loading->code == RT_OK;
}

enum rt_code host_service_load(struct host_service *service, const struct host_core_loader *loader,
                               void *core, struct rt_error *err)
{
    struct loading loading = {.loader = loader, .core = core, .err = err};
    enum rt_code code = store_range(service->store, (struct rt_bytes){0}, load_row,
                                    load_corrupt_row, &loading, err);

    return code == RT_OK ? loading.code : code;
}

enum rt_code host_service_serve(struct host_service *service,
                                const ProtobufCServiceDescriptor *descriptor, struct rt_error *err)
{
    rt_assert(service->n_services < HOST_SERVICE_SERVICES_MAX);
    service->services[service->n_services++] = descriptor->name;
    return host_serve(service->host, service->server, descriptor, err);
}

static void write_ready(struct host_service *service)
{
    int fd = (int)service->config.ready_fd;

    if (fd == 0)
        return;
    if (dprintf(fd, "ready %s\n", service->address) < 0)
        rt_log(RT_LOG_WARNING, "event=ready_fd_failed fd=%d", fd);
    /* Closed, the number of a standard stream would become a file's that the log then goes to. */
    if (fd > STDERR_FILENO)
        (void)close(fd);
}

static void tell_ready(struct rpc_job *job)
{
    struct host_service *service = RT_CONTAINER_OF(job, struct host_service, ready_job);

    if (service->is_ready || service->is_stopping)
        return;
    service->is_ready = true;
    set_health(service, true);
    rt_log(RT_LOG_INFO, "event=serving address=%s", service->address);
    write_ready(service);
}

void host_service_ready(struct host_service *service)
{
    rpc_runtime_post(service->runtime, &service->ready_job, tell_ready);
}

int host_service_run(struct host_service *service, void (*on_stop)(void *ctx), void *ctx)
{
    service->on_stop = on_stop;
    service->ctx = ctx;
    service->has_run = true;
    rpc_server_start(service->server);
    rpc_runtime_run(service->runtime);
    return service->exit_code;
}

void host_service_close(struct host_service *service)
{
    if (service->runtime && !service->has_run) {
        if (service->host)
            host_stop(service->host);
        rpc_runtime_stop(service->runtime);
        rpc_runtime_run(service->runtime);
    }
    service->host = host_free(service->host);
    service->runtime = rpc_runtime_free(service->runtime);
    service->data_dir = store_data_dir_free(service->data_dir);
}
