/*
 * Asking the coordinator about a key whose epoch or token a caller knows and this instance does not
 * yet: see state.h. Invariant: one question a key at a time, and whoever waits for its answer goes
 * on after 50 ms with or without it. Under the core's lock.
 */
#include "instance/limits.h"
#include "instance/state.h"
#include "runtime/base/alloc.h"

enum {
    PULL_TIMEOUT_US = 50000
};

static struct inst_pull *find_pull(struct inst_core *core, struct rt_bytes key)
{
    rt_list_for_each (node, &core->pulls) {
        struct inst_pull *pull = RT_LIST_ENTRY(node, struct inst_pull, link);

        if (rt_bytes_equal(rt_bytes_of(pull->key, pull->key_size), key))
            return pull;
    }
    return NULL;
}

static struct inst_pull *start_pull(struct inst_core *core, struct rt_bytes key)
{
    struct inst_pull *pull;
    struct model_pull_rows_request *request;
    struct model_call *call;

    if (core->n_pulls >= INST_PULLS_MAX)
        return NULL;
    pull = rt_xalloc(sizeof(*pull));
    call = inst_registry_new_call(core, MODEL_CALL_PULL_ROWS, PULL_TIMEOUT_US);
    request = &call->request.pull_rows;
    *request = (struct model_pull_rows_request){
        .incarnation = core->membership.incarnation,
        .keys = rt_arena_alloc(&call->arena, sizeof(*request->keys)),
        .n_keys = 1,
    };
    inst_registry_copy_name(core, request->name);
    if (!request->keys || !rt_arena_copy(&call->arena, key, request->keys))
        rt_assert(false);
    rt_list_init(&pull->waits);
    pull->outbound = call->state;
    pull->outbound->pull = pull;
    pull->due_us = call->deadline_us;
    pull->key_size = key.size;
    memcpy(pull->key, key.data, key.size);
    rt_list_push_back(&core->pulls, &pull->link);
    core->n_pulls++;
    return pull;
}

void inst_pull_wait(struct inst_core *core, struct model_call *call, const struct inst_row *row,
                    enum model_reason reason)
{
    struct rt_bytes key = call->request.data.header.key;
    struct inst_wait *wait = inst_wait_new(core, call, true);
    struct inst_pull *pull = wait ? find_pull(core, key) : NULL;

    if (wait && !pull)
        pull = start_pull(core, key);
    if (pull) {
        rt_list_push_back(&pull->waits, &wait->link);
        return;
    }
    if (wait)
        call = inst_wait_end(core, wait);
    inst_answer_refuse(core, call, row, reason);
}

/* Those who waited go on with what is known now. */
static void end_pull(struct inst_core *core, struct inst_pull *pull)
{
    pull->outbound->pull = NULL;
    rt_list_remove(&pull->link);
    core->n_pulls--;
    while (!rt_list_is_empty(&pull->waits)) {
        struct inst_wait *wait = RT_LIST_ENTRY(pull->waits.next, struct inst_wait, link);

        inst_dispatch(core, inst_wait_end(core, wait), true);
    }
    (void)rt_free(pull);
}

void inst_pull_expire(struct inst_core *core, uint64_t now_us)
{
    while (!rt_list_is_empty(&core->pulls)) {
        struct inst_pull *pull = RT_LIST_ENTRY(core->pulls.next, struct inst_pull, link);

        if (now_us < pull->due_us)
            return;
        end_pull(core, pull);
    }
}

void inst_pull_answered(struct inst_core *core, const struct model_response *response,
                        const struct inst_outbound *outbound)
{
    if (response->code == RT_OK && outbound->incarnation == core->membership.incarnation)
        for (size_t i = 0; i < response->pull_rows.n_rows; i++)
            inst_ownership_learn(core, &response->pull_rows.rows[i]);
    if (outbound->pull)
        end_pull(core, outbound->pull);
}

uint64_t inst_pull_next_wakeup_us(const struct inst_core *core)
{
    if (rt_list_is_empty(&core->pulls))
        return RT_NEVER;
    return RT_LIST_ENTRY(core->pulls.next, struct inst_pull, link)->due_us;
}
