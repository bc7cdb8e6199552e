/*
 * The instance's process: see server.h. The core is loaded from the store before anything is
 * served; health turns to serving when the core does. Heartbeats are written by a worker thread,
 * one at a time, so that a stalled disk stalls nothing but the lease.
 */
#include "instance/server.h"

#include <xxhash.h>

#include "instance/core.h"
#include "instance/record.h"
#include "redistinto/v1/instance.pb-c.h"
#include "redistinto/v1/ownership.pb-c.h"
#include "runtime/base/alloc.h"
#include "runtime/model/exit.h"

#define NAME "redistinto-instance"

_Static_assert((int)HOST_EXPECT_MAX <= (int)INST_CORE_EXPECT_MAX, "as many keys as the host tells");

struct server {
    struct host_service service;
    struct inst_core *core; /* owned */
    /* Under the core's lock. */
    bool is_ready;
    bool is_stopped;
    uint64_t wanted_heartbeat; /* newest that the core asked for */
    /* Loop thread. */
    struct rpc_job heartbeat_job;
    uv_work_t heartbeat_work;
    bool is_heartbeat_running;
    uint64_t heartbeat;
    bool is_heartbeat_durable;
    bool is_serving; /* when the heartbeat was asked for */
};

/* ---- the face of the core ---- */

static void core_expect(const void *core, const struct rt_bytes *keys, size_t n_keys)
{
    inst_core_expect(core, keys, n_keys);
}

static void core_responder(const void *core, struct model_responder *ret_responder)
{
    inst_core_responder(core, ret_responder);
}

static void core_submit(void *core, struct model_call *call)
{
    inst_core_submit(core, call);
}

static void core_cancel(void *core, struct model_call *call)
{
    inst_core_cancel(core, call);
}

static void core_call_done(void *core, struct model_call *call)
{
    inst_core_call_done(core, call);
}

static void core_txn_done(void *core, struct store_txn *txn)
{
    inst_core_txn_done(core, txn);
}

static void core_tick(void *core)
{
    inst_core_tick(core);
}

static uint64_t core_next_wakeup_us(const void *core)
{
    return inst_core_next_wakeup_us(core);
}

static struct model_effects *core_effects(void *core)
{
    return inst_core_effects(core);
}

static void core_start(void *core, void *argument)
{
    (void)argument;
    inst_core_start(core);
}

static void core_leave(void *core, void *argument)
{
    (void)argument;
    inst_core_leave(core);
}

static const struct host_core_ops core_ops = {
    .responder = core_responder,
    .expect = core_expect,
    .submit = core_submit,
    .cancel = core_cancel,
    .call_done = core_call_done,
    .txn_done = core_txn_done,
    .tick = core_tick,
    .next_wakeup_us = core_next_wakeup_us,
    .effects = core_effects,
};

/* ---- heartbeats ---- */

/* A copied directory counts as an original once it serves. */
static void adopt_data_dir(struct server *server)
{
    struct rt_error err = RT_ERROR_INIT;

    if (store_data_dir_adopt(server->service.data_dir, &err) != RT_OK)
        rt_log(RT_LOG_WARNING, "event=copy_not_adopted error=\"%s\"", err.message);
}

static void write_heartbeat(uv_work_t *work)
{
    struct server *server = RT_CONTAINER_OF(work, struct server, heartbeat_work);
    struct rt_error err = RT_ERROR_INIT;

    if (server->is_serving)
        adopt_data_dir(server);
    server->is_heartbeat_durable =
        store_data_dir_heartbeat(server->service.data_dir, server->heartbeat, &err) == RT_OK;
    if (!server->is_heartbeat_durable)
        rt_log(RT_LOG_ERROR, "event=heartbeat_failed error=\"%s\"", err.message);
}

static void heartbeat_done(void *core, void *argument)
{
    struct server *server = argument;

    inst_core_heartbeat_done(core, server->heartbeat, server->is_heartbeat_durable);
}

static void start_heartbeat(struct rpc_job *job);

static void on_heartbeat_written(uv_work_t *work, int status)
{
    struct server *server = RT_CONTAINER_OF(work, struct server, heartbeat_work);

    (void)status;
    host_step(server->service.host, heartbeat_done, server);
    server->is_heartbeat_running = false;
    start_heartbeat(&server->heartbeat_job);
}

static void read_wanted_heartbeat(void *core, void *argument)
{
    struct server *server = argument;

    (void)core;
    server->heartbeat = server->wanted_heartbeat;
    server->is_serving = server->is_ready;
}

static void start_heartbeat(struct rpc_job *job)
{
    struct server *server = RT_CONTAINER_OF(job, struct server, heartbeat_job);
    uint64_t written = server->heartbeat;
    int result;

    if (server->is_heartbeat_running)
        return;
    host_read(server->service.host, read_wanted_heartbeat, server);
    if (server->heartbeat == written)
        return;
    result = uv_queue_work(rpc_runtime_loop(server->service.runtime), &server->heartbeat_work,
                           write_heartbeat, on_heartbeat_written);
    rt_assert(result == 0);
    server->is_heartbeat_running = true;
}

/* ---- after each step ---- */

static void note_stopped(struct server *server)
{
    const struct model_error *failure = inst_core_failure(server->core);

    server->is_stopped = true;
    if (failure) {
        rt_log(RT_LOG_ERROR, "event=refused reason=%s message=\"%s\"",
               model_reason_name(failure->reason), failure->message);
        host_service_stop(&server->service,
                          (int)model_exit_of(model_reason_code(failure->reason), failure->reason));
    }
    host_service_finish(&server->service);
}

static void after_step(void *ctx)
{
    struct server *server = ctx;
    enum inst_state state = inst_core_state(server->core);

    if (inst_core_take_heartbeat(server->core, &server->wanted_heartbeat))
        rpc_runtime_post(server->service.runtime, &server->heartbeat_job, start_heartbeat);
    if (state == INST_STATE_SERVING && !server->is_ready) {
        server->is_ready = true;
        host_service_ready(&server->service);
    }
    if (state == INST_STATE_STOPPED && !server->is_stopped)
        note_stopped(server);
}

/* ---- files ---- */

/* What was stored of a key has a file, nothing else. */
static bool file_of_row(struct rt_bytes row, struct rt_bytes value, struct rt_bytes *ret_key,
                        struct rt_bytes *ret_content)
{
    struct inst_record_name name = inst_record_parse_name(row);
    struct model_version version;

    *ret_key = name.key;
    *ret_content = (struct rt_bytes){0};
    if (name.kind != INST_RECORD_VALUE)
        return false;
    return value.size == 0 || inst_record_decode_value(value, &version, ret_content, NULL) == RT_OK;
}

/* ---- start and stop ---- */

static enum rt_code load_row(void *core, struct rt_bytes key, struct rt_bytes value,
                             struct rt_error *err)
{
    return inst_core_load(core, key, value, err);
}

static enum rt_code load_corrupt_row(void *core, struct rt_bytes key, struct rt_error *err)
{
    (void)err;
    rt_log(RT_LOG_ERROR, "event=corrupt_row bytes=%zu", key.size);
    inst_core_load_corrupt(core, key);
    return RT_OK;
}

static const struct host_core_loader loader = {
    .row = load_row,
    .corrupt_row = load_corrupt_row,
};

static enum rt_code new_core(struct server *server, const struct inst_options *options,
                             struct rt_error *err)
{
    const struct store_data_dir *data_dir = server->service.data_dir;
    const struct rt_env *env = rpc_runtime_env(server->service.runtime);
    struct inst_config config = {
        .entries_total = options->entries,
        .entry_size = options->entry_size,
        .policy = options->replacement,
        .growth = options->growth,
        .eviction = options->eviction,
        .dump_interval_us = options->dump_interval_ms * 1000,
        .local_store = data_dir->is_local && !data_dir->is_copy && data_dir->machine_id[0] != '\0',
    };
    uint64_t boot[2] = {rt_env_random(env), rt_env_random(env)};
    XXH128_hash_t machine = XXH3_128bits(data_dir->machine_id, strlen(data_dir->machine_id));

    (void)snprintf(config.name, sizeof(config.name), "%s", options->name);
    (void)snprintf(config.address, sizeof(config.address), "%s",
                   options->advertise ? options->advertise : server->service.address);
    (void)snprintf(config.coordinator_address, sizeof(config.coordinator_address), "%s",
                   options->coordinator);
    memcpy(config.store_id.bytes, data_dir->store_id, sizeof(config.store_id.bytes));
    memcpy(config.boot_id.bytes, boot, sizeof(config.boot_id.bytes));
    memcpy(config.machine_id.bytes, &machine, sizeof(config.machine_id.bytes));
    return inst_core_new(&config, env, &server->core, err);
}

static enum rt_code serve(struct server *server, struct rt_error *err)
{
    enum rt_code code =
        host_service_serve(&server->service, &redistinto__v1__instance_service__descriptor, err);

    if (code == RT_OK)
        code = host_service_serve(&server->service, &redistinto__v1__ownership_service__descriptor,
                                  err);
    return code;
}

static enum rt_code start(struct server *server, const struct inst_options *options,
                          const struct host_service_config *config, struct rt_error *err)
{
    struct host_options host = {.ops = &core_ops, .after_step = after_step, .ctx = server};
    enum rt_code code = host_service_open(&server->service, NAME, config, err);

    if (code == RT_OK)
        inst_options_tell(options);
    if (code == RT_OK)
        code = new_core(server, options, err);
    if (code != RT_OK)
        return code;
    host.runtime = server->service.runtime;
    host.core = server->core;
    code = host_service_attach(&server->service, &host, err);
    if (code == RT_OK)
        code = host_service_load(&server->service, &loader, server->core, err);
    if (code == RT_OK)
        code = serve(server, err);
    if (code == RT_OK)
        host_step(server->service.host, core_start, NULL);
    return code;
}

static void on_stop(void *ctx)
{
    struct server *server = ctx;

    host_step(server->service.host, core_leave, NULL);
}

int inst_server_run(const struct inst_options *options, const struct host_service_config *service)
{
    struct server *server = rt_xalloc(sizeof(*server));
    struct host_service_config config = *service;
    RT_CLEANUP(rt_freep) char *mount = NULL;
    struct rt_error err = RT_ERROR_INIT;
    int exit_code;

    if (options->store == INST_STORE_FILES) {
        mount =
            options->mount ? rt_xstrdup(options->mount) : rt_xasprintf("%s/files", config.data_dir);
        config.mount = mount;
        config.file_of_row = file_of_row;
    }
    if (start(server, options, &config, &err) == RT_OK)
        exit_code = host_service_run(&server->service, on_stop, server);
    else
        exit_code = host_service_fail(NAME, &err);
    host_service_close(&server->service);
    server->core = inst_core_free(server->core);
    (void)rt_free(server);
    return exit_code;
}
