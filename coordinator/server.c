/*
 * The coordinator's process: see server.h. The core is loaded from the store before anything is
 * served; health turns to serving when the new term has committed.
 */
#include "coordinator/server.h"

#include "coordinator/operation_log.h"
#include "coordinator/options.h"
#include "redistinto/v1/admin.pb-c.h"
#include "redistinto/v1/coordinator.pb-c.h"
#include "redistinto/v1/registry.pb-c.h"
#include "runtime/base/alloc.h"

#define NAME "redistinto-coordinator"

struct server {
    struct host_service service;
    struct coord_core *core;         /* owned */
    struct coord_operation_log *log; /* owned; NULL: none is wanted */
    bool is_ready;                   /* under the core's lock */
};

/* ---- the face of the core ---- */

static void core_responder(const void *core, struct model_responder *ret_responder)
{
    coord_core_responder(core, ret_responder);
}

static void core_submit(void *core, struct model_call *call)
{
    coord_core_submit(core, call);
}

static void core_cancel(void *core, struct model_call *call)
{
    coord_core_cancel(core, call);
}

static void core_call_done(void *core, struct model_call *call)
{
    coord_core_call_done(core, call);
}

static void core_txn_done(void *core, struct store_txn *txn)
{
    coord_core_txn_done(core, txn);
}

static void core_tick(void *core)
{
    coord_core_tick(core);
}

static uint64_t core_next_wakeup_us(const void *core)
{
    return coord_core_next_wakeup_us(core);
}

static struct model_effects *core_effects(void *core)
{
    return coord_core_effects(core);
}

static void core_start(void *core, void *argument)
{
    (void)argument;
    coord_core_start(core);
}

static void core_drain(void *core, void *argument)
{
    (void)argument;
    coord_core_drain(core);
}

static const struct host_core_ops core_ops = {
    .responder = core_responder,
    .submit = core_submit,
    .cancel = core_cancel,
    .call_done = core_call_done,
    .txn_done = core_txn_done,
    .tick = core_tick,
    .next_wakeup_us = core_next_wakeup_us,
    .effects = core_effects,
};

static void after_step(void *ctx)
{
    struct server *server = ctx;

    if (server->log)
        coord_operation_log_take(server->log, server->core);
    if (server->is_ready || !coord_core_is_serving(server->core))
        return;
    server->is_ready = true;
    host_service_ready(&server->service);
}

/* ---- start and stop ---- */

static enum rt_code load_row(void *core, struct rt_bytes key, struct rt_bytes value,
                             struct rt_error *err)
{
    return coord_core_load(core, key, value, err);
}

static enum rt_code refuse_corrupt_row(void *core, struct rt_bytes key, struct rt_error *err)
{
    (void)core;
    return rt_fail(err, RT_DATA_LOSS,
                   "the checksum of row '%.*s' does not hold; restore the data directory from a "
                   "backup",
                   (int)key.size, (const char *)key.data);
}

static const struct host_core_loader loader = {
    .row = load_row,
    .corrupt_row = refuse_corrupt_row,
};

static enum rt_code serve(struct server *server, struct rt_error *err)
{
    enum rt_code code;

    code =
        host_service_serve(&server->service, &redistinto__v1__coordinator_service__descriptor, err);
    if (code == RT_OK)
        code = host_service_serve(&server->service, &redistinto__v1__registry_service__descriptor,
                                  err);
    if (code == RT_OK)
        code =
            host_service_serve(&server->service, &redistinto__v1__admin_service__descriptor, err);
    return code;
}

/* What holds, whether a profile set it or the user. */
static void tell_rules(const struct coord_config *core)
{
    rt_log(RT_LOG_INFO,
           "event=rules profile=%s distribution=%s key-ranges=%s key-max=%u locking=%s "
           "on-owner-down=%s compaction=%s keep-locks-on-abort=%s delay_ms=%llu",
           core->profile, model_distribution_names[core->distribution],
           coord_ranges_names[core->ranges], core->key_max, coord_locking_names[core->locking],
           coord_owner_down_names[core->owner_down], coord_compaction_names[core->compaction],
           core->keep_locks ? "true" : "false", (unsigned long long)core->delay_us / 1000);
}

static enum rt_code start(struct server *server, const struct coord_config *core,
                          const struct host_service_config *config, struct rt_error *err)
{
    struct host_options options = {.ops = &core_ops, .after_step = after_step, .ctx = server};
    enum rt_code code = host_service_open(&server->service, NAME, config, err);

    if (code != RT_OK)
        return code;
    tell_rules(core);
    server->core = coord_core_new(core, rpc_runtime_env(server->service.runtime));
    options.runtime = server->service.runtime;
    options.core = server->core;
    code = host_service_attach(&server->service, &options, err);
    if (code == RT_OK && core->operation_log)
        code = coord_operation_log_open(server->service.runtime, server->service.host,
                                        core->operation_log, &server->log, err);
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

    host_step(server->service.host, core_drain, NULL);
    host_service_finish(&server->service);
}

int coord_server_run(const struct coord_config *core, const struct host_service_config *service)
{
    struct server *server = rt_xalloc(sizeof(*server));
    struct rt_error err = RT_ERROR_INIT;
    int exit_code;

    if (start(server, core, service, &err) == RT_OK)
        exit_code = host_service_run(&server->service, on_stop, server);
    else
        exit_code = host_service_fail(NAME, &err);
    host_service_close(&server->service);
    server->log = coord_operation_log_close(server->log);
    server->core = coord_core_free(server->core);
    (void)rt_free(server);
    return exit_code;
}
