/*
 * The core's face: see core.h. Invariant: every call that is submitted is answered exactly once,
 * at once or out of a wait or a transaction. Under the core's lock.
 */
#include "instance/core.h"

#include "instance/state.h"
#include "runtime/base/alloc.h"

static enum rt_code init_memory(struct inst_core *core, const struct inst_config *config,
                                struct rt_error *err)
{
    uint64_t total = config->entries_total;
    enum rt_code code = inst_entries_init(&core->entries, total, config->entry_size, err);

    if (code == RT_OK)
        code = inst_replacement_init(&core->replacement, config->policy, total, err);
    if (code != RT_OK)
        return code;
    core->owners = rt_alloc(total * sizeof(struct inst_row *));
    if (!core->owners)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "no memory for the owners of %llu entries",
                       (unsigned long long)total);
    memset(core->owners, 0, total * sizeof(struct inst_row *));
    return RT_OK;
}

static void deinit_memory(struct inst_core *core)
{
    core->owners = rt_free(core->owners);
    inst_replacement_deinit(&core->replacement);
    inst_entries_deinit(&core->entries);
}

enum rt_code inst_core_new(const struct inst_config *config, const struct rt_env *env,
                           struct inst_core **ret_core, struct rt_error *err)
{
    struct inst_core *core = rt_xalloc(sizeof(*core));
    enum rt_code code = init_memory(core, config, err);

    if (code != RT_OK) {
        deinit_memory(core);
        (void)rt_free(core);
        return code;
    }
    core->config = *config;
    core->env = *env;
    core->now_us = rt_env_now_us(env);
    core->key_max = MODEL_KEY_MAX;
    core->waits_due_us = RT_NEVER;
    core->prune_at_us = RT_NEVER;
    core->leave_by_us = RT_NEVER;
    core->dump_at_us = core->now_us + config->dump_interval_us;
    model_effects_init(&core->effects);
    inst_membership_init(&core->membership);
    inst_rows_init(&core->rows, rt_env_random(env));
    inst_dedup_init(&core->dedup);
    rt_list_init(&core->space);
    rt_list_init(&core->sets);
    rt_list_init(&core->due);
    rt_list_init(&core->evicted);
    rt_list_init(&core->waits);
    rt_list_init(&core->pulls);
    rt_list_init(&core->outbounds);
    *ret_core = core;
    return RT_OK;
}

/* What was made and has not come back, wherever it is. */
static void free_made(struct inst_core *core)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&core->outbounds)))
        (void)model_call_free(RT_LIST_ENTRY(node, struct inst_outbound, link)->call);
    while ((node = rt_list_pop_front(&core->effects.txns)))
        (void)store_txn_free(RT_LIST_ENTRY(node, struct store_txn, link));
    while ((node = rt_list_pop_front(&core->space)))
        (void)store_txn_free(RT_LIST_ENTRY(node, struct inst_op, space_link)->txn);
}

struct inst_core *inst_core_free(struct inst_core *core)
{
    struct rt_list *node;

    if (!core)
        return NULL;
    free_made(core);
    while ((node = rt_list_pop_front(&core->waits)))
        (void)rt_free(RT_LIST_ENTRY(node, struct inst_wait, all_link));
    while ((node = rt_list_pop_front(&core->pulls)))
        (void)rt_free(RT_LIST_ENTRY(node, struct inst_pull, link));
    inst_evicted_forget_all(core);
    inst_dedup_deinit(&core->dedup);
    inst_rows_deinit(&core->rows);
    deinit_memory(core);
    return rt_free(core);
}

void inst_core_start(struct inst_core *core)
{
    if (inst_load_finish(core))
        inst_registry_start(core);
}

/* ---- steps ---- */

/* Whether rows may be written that no call asked for. */
static bool may_write(const struct inst_core *core)
{
    return !core->read_only && core->membership.state >= INST_MEMBERSHIP_RECONCILING &&
           core->membership.state != INST_MEMBERSHIP_STOPPED;
}

/* Pruning frees rows, and Reconcile keeps its place among them. */
static bool may_reap(const struct inst_core *core)
{
    return core->membership.state != INST_MEMBERSHIP_RECONCILING;
}

void inst_core_settle(struct inst_core *core)
{
    if (core->dedup.n_condemned > 0 && may_write(core) && may_reap(core))
        inst_commit_prune(core, core->now_us);
    if (core->meta_dirty && may_write(core) && core->now_us >= core->meta_retry_at_us)
        inst_commit_meta(core);
}

static void status(struct inst_core *core, struct model_call *call)
{
    struct model_instance_status_response *answer = &call->response.instance_status;
    uint64_t now_us = inst_now(core);
    bool fenced = inst_membership_is_fenced(&core->membership, now_us);

    model_response_ok(&call->response, MODEL_CALL_INSTANCE_STATUS);
    memcpy(answer->name, core->config.name, sizeof(answer->name));
    answer->cluster_id = core->meta.cluster_id;
    answer->serving = core->membership.state == INST_MEMBERSHIP_SERVING && !fenced;
    /* Rounded up: 0 says that the lease has run out. */
    answer->fence_in_ms = fenced ? 0 : (core->membership.fence_at_us - now_us + 999) / 1000;
    answer->n_keys = core->rows.n[INST_ROW_ACTIVE];
    answer->n_quarantined = core->rows.n[INST_ROW_QUARANTINED];
    answer->entries_free = core->entries.n_free;
    answer->entries_total = core->entries.total;
    answer->entry_size = core->entries.entry_size;
    answer->n_operations = core->n_operations;
    answer->n_compactions = core->n_compactions;
    inst_answer_send(core, call);
}

void inst_dispatch(struct inst_core *core, struct model_call *call, bool pulled)
{
    switch (call->request.kind) {
    case MODEL_CALL_SET:
    case MODEL_CALL_STORE:
    case MODEL_CALL_PUT:
    case MODEL_CALL_READ:
    case MODEL_CALL_DELETE:
        inst_data_dispatch(core, call, pulled);
        break;
    case MODEL_CALL_COMPACT:
    case MODEL_CALL_FENCE:
    case MODEL_CALL_ACTIVATE:
    case MODEL_CALL_DROP:
        inst_ownership_dispatch(core, call);
        break;
    case MODEL_CALL_INSTANCE_STATUS:
        status(core, call);
        break;
    case MODEL_CALL_LIST_ENTRIES:
        inst_listing_answer(core, call);
        break;
    case MODEL_CALL_PIPELINE:
    case MODEL_CALL_REGISTER:
    case MODEL_CALL_RECONCILE:
    case MODEL_CALL_RENEW:
    case MODEL_CALL_LEAVE:
    case MODEL_CALL_PULL_ROWS:
    case MODEL_CALL_OPEN_SESSION:
    case MODEL_CALL_KEEP_ALIVE:
    case MODEL_CALL_CLOSE_SESSION:
    case MODEL_CALL_EXECUTE:
    case MODEL_CALL_LOCK:
    case MODEL_CALL_UNLOCK:
    case MODEL_CALL_ROUTE:
    case MODEL_CALL_WATCH_ROUTES:
    case MODEL_CALL_LIST_INSTANCES:
    case MODEL_CALL_KEY_STATUS:
    case MODEL_CALL_LIST_KEYS:
    case MODEL_CALL_GET_DISTRIBUTION:
    case MODEL_CALL_SET_DISTRIBUTION:
    case MODEL_CALL_FREE_LOCK:
    case MODEL_CALL_ESI_SUBMIT:
    case MODEL_CALL_ESI_STATUS:
    case MODEL_CALL_ESI_LIST:
    case MODEL_CALL_ESI_KILL:
    case MODEL_CALL_ESI_PAUSE:
    case MODEL_CALL_ESI_RESUME:
    case MODEL_CALL_ESI_BLOCK:
    case MODEL_CALL_ESI_UNBLOCK:
    case MODEL_CALL_ESI_DEADLOCK:
    case MODEL_N_CALL_KINDS:
        inst_answer_fail(core, call, NULL, MODEL_REASON_INVALID_FIELD,
                         "an instance does not answer %s",
                         model_call_kind_name(call->request.kind));
        inst_answer_send(core, call);
        break;
    }
}

/* Activate and Drop may leave a placeholder that nobody needs. */
static void reap(struct inst_core *core, struct rt_bytes key)
{
    struct inst_row *row = inst_rows_find(&core->rows, key);

    if (row)
        inst_rows_reap(&core->rows, row);
}

void inst_core_expect(const struct inst_core *core, const struct rt_bytes *keys, size_t n_keys)
{
    const struct inst_row *rows[INST_CORE_EXPECT_MAX];

    rt_assert(n_keys <= INST_CORE_EXPECT_MAX);
    inst_rows_expect(&core->rows, keys, n_keys, rows);
    for (size_t i = 0; i < n_keys; i++)
        if (rows[i] && rows[i]->run.n > 0)
            inst_entries_expect(&core->entries, &rows[i]->run, rows[i]->size);
}

void inst_core_submit(struct inst_core *core, struct model_call *call)
{
    enum model_call_kind kind = call->request.kind;
    struct rt_bytes key = {0};

    if (kind >= MODEL_CALL_SET && kind <= MODEL_CALL_DELETE)
        core->n_operations++;
    if (kind == MODEL_CALL_ACTIVATE)
        key = call->request.activate.row.key;
    if (kind == MODEL_CALL_DROP)
        key = call->request.drop.key;
    call->state = NULL;
    inst_dispatch(core, call, false);
    if (key.size > 0 && may_reap(core))
        reap(core, key);
    inst_core_settle(core);
}

void inst_core_cancel(struct inst_core *core, struct model_call *call)
{
    call->cancelled = true;
    if (!call->state)
        return;
    inst_answer_refuse(core, inst_wait_end(core, call->state), NULL, MODEL_REASON_CANCELLED);
}

void inst_core_call_done(struct inst_core *core, struct model_call *call)
{
    inst_registry_call_done(core, call);
    inst_core_settle(core);
}

void inst_core_tick(struct inst_core *core)
{
    uint64_t now_us = inst_now(core);

    inst_registry_tick(core, now_us);
    inst_waits_expire(core, now_us);
    inst_dump_tick(core, now_us);
    inst_core_settle(core);
}

uint64_t inst_core_next_wakeup_us(const struct inst_core *core)
{
    uint64_t at = inst_registry_next_wakeup_us(core);
    uint64_t pull_due_us = inst_pull_next_wakeup_us(core);
    uint64_t dump_at_us = inst_dump_next_wakeup_us(core);

    if (pull_due_us < at)
        at = pull_due_us;
    if (dump_at_us < at)
        at = dump_at_us;
    if (core->waits_due_us < at)
        at = core->waits_due_us;
    if (core->prune_at_us < at && may_write(core) && may_reap(core))
        at = core->prune_at_us;
    if (core->meta_dirty && !core->meta_in_flight && core->meta_retry_at_us < at && may_write(core))
        at = core->meta_retry_at_us;
    return at;
}

struct model_effects *inst_core_effects(struct inst_core *core)
{
    return &core->effects;
}

/* ---- heartbeat ---- */

bool inst_core_take_heartbeat(struct inst_core *core, uint64_t *ret_number)
{
    return !core->read_only && inst_membership_take_heartbeat(&core->membership, ret_number);
}

void inst_core_heartbeat_done(struct inst_core *core, uint64_t number, bool durable)
{
    if (inst_membership_heartbeat_done(&core->membership, number, durable, inst_now(core)) &&
        !core->read_only)
        inst_registry_renew(core);
}

/* ---- state ---- */

enum inst_state inst_core_state(const struct inst_core *core)
{
    switch (core->membership.state) {
    case INST_MEMBERSHIP_NEW:
    case INST_MEMBERSHIP_REGISTERING:
    case INST_MEMBERSHIP_RECORDING:
    case INST_MEMBERSHIP_RECONCILING:
    case INST_MEMBERSHIP_LEASING:
        break;
    case INST_MEMBERSHIP_SERVING:
        return INST_STATE_SERVING;
    case INST_MEMBERSHIP_LEAVING:
        return INST_STATE_LEAVING;
    case INST_MEMBERSHIP_STOPPED:
    case INST_N_MEMBERSHIP_STATES:
        return INST_STATE_STOPPED;
    }
    return INST_STATE_STARTING;
}

const struct model_error *inst_core_failure(const struct inst_core *core)
{
    return core->has_failure ? &core->failure : NULL;
}
