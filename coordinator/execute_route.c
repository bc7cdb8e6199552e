/*
 * Route: where to send an operation. See execute.h. Invariant: a route is given out only of a key
 * that is ACTIVE and durably marked as maybe stored, so that the key is not forgotten with what its
 * clients store there; SET and PUT place under the rules of the statements, the others never do.
 * Runs under the core's lock.
 */
#include "coordinator/execute.h"

static bool places(const struct coord_task *task)
{
    enum model_statement_kind operation = coord_execute_request(task)->kind;

    return operation == MODEL_STATEMENT_SET || operation == MODEL_STATEMENT_PUT;
}

/* The value goes to its owner without passing here: until the owner speaks again, its entries count
 * as taken. */
static void take_entries(struct coord_core *core, struct coord_task *task)
{
    struct coord_member *member = task->expected_at;
    uint64_t n = task->expected;

    if (n == 0)
        return;
    coord_task_expect(core, task, NULL);
    coord_members_set_free(&core->members, member,
                           member->entries_free > n ? member->entries_free - n : 0);
}

static void reply_route(struct coord_core *core, struct coord_task *task)
{
    struct model_response *response = &task->call->response;

    model_response_ok(response, MODEL_CALL_ROUTE);
    response->route.has_route =
        coord_execute_fill_route(core, task->latched, &response->route.route);
    take_entries(core, task);
    coord_task_reply(core, task);
    coord_task_finish(core, task);
}

/* false: refused and gone. */
static bool may_know(struct coord_core *core, struct coord_task *task)
{
    struct coord_lock_check check;

    if (coord_execute_request(task)->kind != MODEL_STATEMENT_READ)
        return coord_execute_may(core, task, task->latched, &check);
    if (task->latched->exists)
        return true;
    coord_execute_refuse(core, task, MODEL_REASON_KEY_NOT_IDENTIFIED);
    return false;
}

void coord_execute_route(struct coord_core *core, struct coord_task *task)
{
    const struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));

    if (!coord_execute_latch(core, task, coord_execute_row_stays(key, true)) ||
        !may_know(core, task))
        return;
    switch (coord_execute_owner(core, task, task->latched)) {
    case COORD_OWNER_HANDLED:
        return;
    case COORD_OWNER_NONE:
        if (places(task))
            coord_execute_place(core, task);
        else
            reply_route(core, task);
        return;
    case COORD_OWNER_READY:
        if (coord_execute_prepare(core, task, true))
            reply_route(core, task);
    }
}
