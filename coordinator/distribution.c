/*
 * The rule for new keys: see distribution.h. Invariant: core->distribution is what the option says
 * or what a committed row says. Runs under the core's lock.
 */
#include "coordinator/distribution.h"

enum {
    CONFIGURED_SHIFT = 8 /* of the row's number: what the option was, above what was said */
};

enum rt_code coord_distribution_load(struct coord_core *core, struct rt_bytes value,
                                     struct rt_error *err)
{
    uint64_t number = 0;
    enum rt_code code = coord_rows_get_number(value, &number, err);
    uint64_t said = number & ((1u << CONFIGURED_SHIFT) - 1);
    uint64_t configured = number >> CONFIGURED_SHIFT;

    if (code != RT_OK)
        return code;
    if (said >= MODEL_N_DISTRIBUTIONS || configured >= MODEL_N_DISTRIBUTIONS)
        return rt_fail(err, RT_DATA_LOSS, "distribution row has the number %llu",
                       (unsigned long long)number);
    if (configured == (uint64_t)core->config.distribution)
        core->distribution = (enum model_distribution)said;
    return RT_OK;
}

void coord_distribution_start(struct coord_core *core)
{
    if (core->distribution != core->config.distribution)
        model_effects_tell(&core->effects, RT_LOG_INFO, "event=distribution name=%s configured=%s",
                           model_distribution_names[core->distribution],
                           model_distribution_names[core->config.distribution]);
}

static void reply(struct coord_core *core, struct coord_task *task)
{
    if (task->call) {
        struct model_response *response = &task->call->response;

        model_response_ok(response, task->call->request.kind);
        response->distribution.distribution = core->distribution;
        response->distribution.configured = core->config.distribution;
        coord_task_reply(core, task);
    }
    coord_task_finish(core, task);
}

void coord_distribution_get(struct coord_core *core, struct coord_task *task)
{
    reply(core, task);
}

static void on_set(struct coord_core *core, struct coord_task *task)
{
    if (task->outcome != STORE_COMMITTED) {
        coord_task_fail_commit(core, task);
        coord_task_finish(core, task);
        return;
    }
    core->distribution = task->distribution;
    model_effects_tell(&core->effects, RT_LOG_INFO, "event=distribution name=%s configured=%s",
                       model_distribution_names[core->distribution],
                       model_distribution_names[core->config.distribution]);
    reply(core, task);
}

void coord_distribution_set(struct coord_core *core, struct coord_task *task)
{
    enum model_distribution said = task->call->request.distribution.distribution;
    uint64_t configured = (uint64_t)core->config.distribution;

    if ((size_t)said >= MODEL_N_DISTRIBUTIONS) {
        coord_task_fail(core, task, MODEL_REASON_INVALID_FIELD, "there is no distribution %d",
                        (int)said);
        coord_task_finish(core, task);
        return;
    }
    if (core->mode == COORD_MODE_READ_ONLY) {
        coord_task_fail(core, task, MODEL_REASON_READ_ONLY, "an earlier commit failed");
        coord_task_finish(core, task);
        return;
    }
    task->distribution = said;
    coord_rows_put_number(coord_task_txn(task), COORD_ROW_DISTRIBUTION,
                          (uint64_t)said | configured << CONFIGURED_SHIFT);
    coord_task_commit(core, task, on_set);
}
