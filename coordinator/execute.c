/*
 * Statements: what comes before and after the one function a statement. See execute.h. Invariant:
 * an answer that says "not applied" is given only while task->sent and task->granted are false.
 * Runs under the core's lock.
 */
#include "coordinator/execute.h"

#include <xxhash.h>

#include "coordinator/compaction.h"
#include "coordinator/locks.h"
#include "coordinator/session_calls.h"

enum {
    ATTEMPT_US = 1000000 /* one attempt at what may be repeated */
};

static const struct {
    coord_step_fn run;
    bool writes;
    bool has_value;
    bool outlives_session; /* once begun, the end of the session changes nothing */
} statements[] = {
    [MODEL_STATEMENT_GET] = {coord_execute_get, .writes = true},
    [MODEL_STATEMENT_SET] = {coord_execute_set, .writes = true, .has_value = true},
    [MODEL_STATEMENT_STORE] = {coord_execute_store, .writes = true},
    [MODEL_STATEMENT_PUT] = {coord_execute_put, .writes = true, .has_value = true},
    [MODEL_STATEMENT_READ] = {coord_execute_read, .outlives_session = true},
    [MODEL_STATEMENT_DELETE] = {coord_execute_delete, .writes = true},
    [MODEL_STATEMENT_AWAIT] = {coord_execute_await},
};

void coord_execute_refuse(struct coord_core *core, struct coord_task *task,
                          enum model_reason reason)
{
    coord_task_fail(core, task, reason, "%s", model_reason_meaning(reason));
    coord_task_finish(core, task);
}

/* Nobody sends GET and AWAIT to an owner. */
static bool has_statement(const struct coord_task *task, enum model_statement_kind kind)
{
    return task->call->request.kind != MODEL_CALL_ROUTE ||
           (kind != MODEL_STATEMENT_GET && kind != MODEL_STATEMENT_AWAIT);
}

bool coord_execute_check_key(struct coord_core *core, struct coord_task *task, struct rt_bytes key)
{
    if (key.size == 0)
        coord_task_fail(core, task, MODEL_REASON_KEY_EMPTY, "key has 0 bytes, valid are 1 to %u",
                        core->config.key_max);
    else if (key.size > core->config.key_max)
        coord_task_fail(core, task, MODEL_REASON_KEY_TOO_LONG,
                        "key has %zu bytes, valid are 1 to %u", key.size, core->config.key_max);
    else
        return true;
    coord_task_finish(core, task);
    return false;
}

/* false: the call was answered, and the task is gone. */
static bool check_statement(struct coord_core *core, struct coord_task *task,
                            const struct model_execute_request *request)
{
    if ((size_t)request->kind >= RT_ARRAY_SIZE(statements) || !has_statement(task, request->kind))
        coord_task_fail(core, task, MODEL_REASON_INVALID_FIELD, "there is no statement %d",
                        (int)request->kind);
    else if (!coord_execute_check_key(core, task, request->key))
        return false;
    else if (task->value_size > MODEL_VALUE_MAX)
        coord_task_fail(core, task, MODEL_REASON_VALUE_TOO_LARGE,
                        "value has %llu bytes, valid are 0 to %d",
                        (unsigned long long)task->value_size, MODEL_VALUE_MAX);
    else
        return true;
    coord_task_finish(core, task);
    return false;
}

/* A late copy of a request whose client has gone on. It has had its answer; it gets no effect. */
static bool is_past(struct coord_session *session, const struct model_execute_request *request)
{
    if (!model_id_equal(&request->request_id.client, &session->row.client))
        return false;
    if (request->done_below > session->done_below)
        session->done_below = request->done_below;
    return request->request_id.seq != 0 && request->request_id.seq < session->done_below;
}

/* Never 0. */
static uint64_t hash_of(struct rt_bytes key)
{
    uint64_t hash = XXH3_64bits(key.data, key.size);

    return hash != 0 ? hash : 1;
}

/* The session's client gave a request about another key the same id: what is known of that one
 * would be taken for this one's. */
static bool is_anothers(const struct coord_session *session,
                        const struct model_execute_request *request, const struct coord_done *done)
{
    uint64_t hash = hash_of(request->key);
    const struct coord_attempt *attempt;

    if (done && done->key_hash != 0 && done->key_hash != hash)
        return true;
    if (!model_id_equal(&request->request_id.client, &session->row.client))
        return false;
    attempt = coord_session_attempt(session, request->request_id.seq);
    return attempt && attempt->key_hash != hash;
}

/* The call as a statement: what decides about statements decides about it. In the call's arena;
 * false: the call was answered, and the task is gone. */
static bool make_statement(struct coord_core *core, struct coord_task *task,
                           const struct model_execute_request *statement)
{
    struct model_execute_request *copy = rt_arena_alloc(&task->call->arena, sizeof(*copy));

    task->statement = copy;
    if (!copy) {
        coord_execute_refuse(core, task, MODEL_REASON_LIMIT_REACHED);
        return false;
    }
    *copy = *statement;
    return check_statement(core, task, copy);
}

static enum model_reason session_over(const struct model_execute_request *request)
{
    return request->lock_token != 0 ? MODEL_REASON_LOCK_FENCED : MODEL_REASON_SESSION_UNKNOWN;
}

/* false: the call was answered, and the task is gone. */
static bool begin_session(struct coord_core *core, struct coord_task *task)
{
    const struct model_execute_request *request = coord_execute_request(task);
    struct coord_session *session = coord_session_touch(core, &request->session_id);

    if (session)
        coord_task_set_session(task, session);
    else
        coord_execute_refuse(core, task, session_over(request));
    return session != NULL;
}

static void begin(struct coord_core *core, struct coord_task *task)
{
    const struct model_execute_request *request = coord_execute_request(task);
    struct coord_session *session;
    const struct coord_done *done;

    if (!begin_session(core, task))
        return;
    session = task->session;
    done = coord_session_done(session, &request->request_id);
    if (statements[request->kind].writes && is_anothers(session, request, done)) {
        coord_task_fail(core, task, MODEL_REASON_INVALID_FIELD,
                        "request id %llu was used for another key",
                        (unsigned long long)request->request_id.seq);
        coord_task_finish(core, task);
        return;
    }
    if (done && statements[request->kind].writes && request->kind != MODEL_STATEMENT_GET) {
        coord_execute_reply_done(core, task, done);
        coord_task_finish(core, task);
        return;
    }
    if (is_past(session, request) && statements[request->kind].writes) {
        coord_task_fail(core, task, MODEL_REASON_OUTCOME_UNKNOWN,
                        "the client has finished with all requests below %llu, this is %llu",
                        (unsigned long long)session->done_below,
                        (unsigned long long)request->request_id.seq);
        coord_task_finish(core, task);
        return;
    }
    if (statements[request->kind].writes && core->mode == COORD_MODE_READ_ONLY) {
        coord_execute_refuse(core, task, MODEL_REASON_READ_ONLY);
        return;
    }
    task->done_below = request->done_below;
    task->run = statements[request->kind].run;
    if (!statements[request->kind].has_value)
        task->value_size = 0;
    coord_execute_run(core, task);
}

/* Once an operation, as if everything were slow. AWAIT is a part of the GET before it. */
static void begin_slowly(struct coord_core *core, struct coord_task *task)
{
    if (core->config.delay_us == 0 || coord_execute_request(task)->kind == MODEL_STATEMENT_AWAIT)
        begin(core, task);
    else
        coord_task_wait_until(core, task, NULL, MODEL_REASON_DEADLINE_EXCEEDED,
                              coord_now_us(core) + core->config.delay_us, begin);
}

void coord_execute_start(struct coord_core *core, struct coord_task *task)
{
    task->statement = &task->call->request.execute;
    task->value_size = task->statement->value.size;
    if (check_statement(core, task, task->statement))
        begin_slowly(core, task);
}

void coord_execute_start_lock(struct coord_core *core, struct coord_task *task)
{
    const struct model_lock_request *lock = &task->call->request.lock;
    struct model_execute_request statement = {
        .kind = MODEL_STATEMENT_GET,
        .session_id = lock->session_id,
        .request_id = lock->request_id,
        .done_below = lock->done_below,
        .key = lock->key,
    };

    if (make_statement(core, task, &statement))
        begin_slowly(core, task);
}

void coord_execute_start_route(struct coord_core *core, struct coord_task *task)
{
    const struct model_route_request *route = &task->call->request.route;
    struct model_execute_request statement = {
        .kind = route->operation,
        .session_id = route->session_id,
        .key = route->key,
        .lock_token = route->lock_token,
    };

    task->value_size = route->value_size;
    if (!make_statement(core, task, &statement))
        return;
    if (route->min_placement_version > core->route) {
        coord_execute_refuse(core, task, MODEL_REASON_EPOCH_AHEAD);
        return;
    }
    if (!model_id_is_none(&route->session_id) && !begin_session(core, task))
        return;
    task->run = coord_execute_route;
    if (!statements[statement.kind].has_value)
        task->value_size = 0;
    coord_execute_run(core, task);
}

static void give_up(struct coord_core *core, struct coord_task *task)
{
    enum model_reason late =
        task->late != MODEL_REASON_NONE ? task->late : MODEL_REASON_DEADLINE_EXCEEDED;

    coord_locks_give_up(core, task, late, model_reason_meaning(late));
}

void coord_execute_run(struct coord_core *core, struct coord_task *task)
{
    const struct model_execute_request *request = coord_execute_request(task);

    if (task->session && task->session->state != COORD_SESSION_OPEN &&
        !statements[request->kind].outlives_session)
        coord_execute_refuse(core, task, session_over(request));
    else if (coord_now_us(core) >= task->deadline_us)
        give_up(core, task);
    else if (!coord_compaction_holds(core, task))
        task->run(core, task);
}

bool coord_execute_may(struct coord_core *core, struct coord_task *task,
                       const struct coord_key *key, struct coord_lock_check *ret_check)
{
    const struct model_execute_request *request = coord_execute_request(task);

    *ret_check = coord_locks_check(core->config.locking, key, task->session, request->kind,
                                   request->lock_token);
    if (ret_check->reason == MODEL_REASON_NONE)
        return true;
    coord_execute_refuse(core, task, ret_check->reason);
    return false;
}

/* ---- to the owner ---------------------------------------------------------------------------- */

struct model_call *coord_execute_fence(const struct coord_core *core, const struct coord_key *key,
                                       uint64_t token, bool locked)
{
    const struct coord_member *member = coord_members_at(&core->members, key->owner);
    struct model_call *call = model_call_new(MODEL_CALL_FENCE);

    call->request.fence = (struct model_fence_request){
        .term = core->meta.term,
        .epoch = key->epoch,
        .incarnation = member->row.incarnation,
        .token = token,
        .locked = locked,
    };
    if (!rt_arena_copy(&call->arena, coord_key_name(key), &call->request.fence.key))
        return model_call_free(call);
    return call;
}

/* Which attempt this is: the owner must not take a repetition for a new request. Of one that came
 * before this term only the client's word is left: it was not seen by an ownership or a process
 * whose number is higher than what the client knew then. */
static void note_attempt(struct coord_task *task, struct model_header *header)
{
    uint64_t first_version = coord_execute_request(task)->first_version;
    struct coord_attempt attempt = {
        .seq = header->request_id.seq,
        .epoch = header->epoch,
        .incarnation = header->incarnation,
        .key_hash = hash_of(coord_task_name(task)),
    };

    if (first_version != 0 && first_version < attempt.epoch)
        attempt.epoch = first_version;
    if (coord_session_add_attempt(task->session, &attempt))
        task->is_first_attempt = first_version == 0;
    if (attempt.seq != 0)
        header->first_epoch = coord_session_attempt(task->session, attempt.seq)->epoch;
}

static bool must_ask_to_compact(const struct coord_core *core, const struct coord_task *task,
                                enum model_call_kind kind)
{
    return core->config.compaction == COORD_COMPACT_GLOBAL && !task->may_compact &&
           (kind == MODEL_CALL_SET || kind == MODEL_CALL_PUT);
}

static struct model_call *new_data_call(struct coord_core *core, struct coord_task *task,
                                        const struct coord_key *key, enum model_call_kind kind,
                                        uint64_t token)
{
    const struct model_execute_request *request = coord_execute_request(task);
    struct model_call *call = model_call_new(kind);
    struct model_data_request *data = &call->request.data;

    *data = (struct model_data_request){
        .header = {.cluster_id = core->meta.cluster_id,
                   .epoch = key->epoch,
                   .incarnation = task->member->row.incarnation,
                   .request_id = request->request_id,
                   .done_below = request->done_below,
                   .first_epoch = key->epoch,
                   .lock_token = token,
                   .term = core->meta.term,
                   .no_compaction = must_ask_to_compact(core, task, kind)},
        .has_last_set = request->has_last_set,
        .last_set = request->last_set,
        .has_if_version = request->has_if_version,
        .if_version = request->if_version,
        .consistency = MODEL_READ_LINEARIZABLE,
    };
    memcpy(data->header.owner, task->member->name, sizeof(data->header.owner));
    if (kind != MODEL_CALL_READ)
        note_attempt(task, &data->header);
    if (!rt_arena_copy(&call->arena, request->key, &data->header.key) ||
        !rt_arena_copy(&call->arena,
                       statements[request->kind].has_value ? request->value : (struct rt_bytes){0},
                       &data->value))
        return model_call_free(call);
    return call;
}

void coord_execute_forward(struct coord_core *core, struct coord_task *task, struct coord_key *key,
                           enum model_call_kind kind, uint64_t token, coord_step_fn step)
{
    struct model_call *call = new_data_call(core, task, key, kind, token);

    if (!call) {
        coord_execute_refuse(core, task, MODEL_REASON_LIMIT_REACHED);
        return;
    }
    if (kind == MODEL_CALL_SET || kind == MODEL_CALL_PUT)
        key->deleted = false;
    task->epoch = key->epoch;
    task->token = token;
    task->was_active = key->phase == COORD_PHASE_ACTIVE;
    coord_task_call(core, task, call, task->member, kind == MODEL_CALL_READ ? ATTEMPT_US : RT_NEVER,
                    step);
}

void coord_execute_retry(struct coord_core *core, struct coord_task *task)
{
    if (coord_task_back_off(core, task, coord_execute_run))
        return;
    coord_task_fail_answer(core, task);
    coord_task_finish(core, task);
}

void coord_execute_not_ok(struct coord_core *core, struct coord_task *task, bool writes)
{
    const struct model_response *response = &task->answer->response;
    enum coord_answer answer = coord_answer_of(response);

    if (task->is_first_attempt && answer != COORD_ANSWER_SILENT &&
        response->error.applied == MODEL_APPLIED_NO) {
        coord_session_drop_attempt(task->session, coord_execute_request(task)->request_id.seq);
        task->is_first_attempt = false;
    }
    switch (answer) {
    case COORD_ANSWER_OK:
        rt_assert(false);
    case COORD_ANSWER_SILENT:
        if (!writes) {
            coord_execute_retry(core, task);
            return;
        }
        task->sent = true;
        coord_execute_refuse(core, task, MODEL_REASON_OWNER_UNREACHABLE);
        return;
    case COORD_ANSWER_RETRY:
        if (response->error.reason == MODEL_REASON_COMPACTION_NEEDED && !task->may_compact)
            coord_compaction_ask(core, task);
        else
            coord_execute_retry(core, task);
        return;
    case COORD_ANSWER_FINAL:
        if (coord_execute_dropped(core, task))
            return;
        coord_task_fail_answer(core, task);
        coord_task_finish(core, task);
        return;
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

struct model_execute_response *coord_execute_answer(struct coord_task *task)
{
    struct model_response *response = &task->call->response;

    model_response_ok(response, MODEL_CALL_EXECUTE);
    response->execute.outcome = MODEL_OUTCOME_DONE;
    return &response->execute;
}

bool coord_execute_fill_route(const struct coord_core *core, const struct coord_key *key,
                              struct model_route *ret_route)
{
    const struct coord_member *owner = key ? coord_members_at(&core->members, key->owner) : NULL;

    if (!owner || !coord_key_has_route(key))
        return false;
    *ret_route = (struct model_route){
        .cluster_id = core->meta.cluster_id,
        .incarnation = owner->row.incarnation,
        .epoch = key->epoch,
    };
    memcpy(ret_route->owner, owner->name, sizeof(ret_route->owner));
    memcpy(ret_route->address, owner->row.address, sizeof(ret_route->address));
    return true;
}

/* The same answer in the words of Lock. */
static void turn_into_lock(const struct coord_core *core, struct coord_task *task)
{
    struct model_response *response = &task->call->response;
    struct model_execute_response execute = response->execute;
    const struct coord_key *key = coord_keys_find(&core->keys, coord_task_name(task));
    struct model_lock_response *lock = &response->lock;

    model_response_ok(response, MODEL_CALL_LOCK);
    lock->outcome = execute.outcome;
    lock->data = execute.data;
    lock->lock_token = execute.lock_token;
    memcpy(lock->holder, execute.holder, sizeof(lock->holder));
    if (execute.outcome == MODEL_OUTCOME_DONE)
        lock->has_route = coord_execute_fill_route(core, key, &lock->route);
}

void coord_execute_reply(struct coord_core *core, struct coord_task *task)
{
    if (task->call && task->call->request.kind == MODEL_CALL_LOCK)
        turn_into_lock(core, task);
    coord_task_reply(core, task);
}

/* What the owner's answer borrows, for one that lives longer. */
static bool copy_data(struct rt_arena *arena, struct model_data_response *data)
{
    const struct rt_bytes *evicted = data->evicted;

    if (!rt_arena_copy(arena, data->value, &data->value))
        return false;
    if (data->n_evicted == 0)
        return true;
    data->evicted = rt_arena_alloc(arena, data->n_evicted * sizeof(*data->evicted));
    for (size_t i = 0; data->evicted && i < data->n_evicted; i++) {
        if (!rt_arena_copy(arena, evicted[i], &data->evicted[i]))
            return false;
    }
    return data->evicted != NULL;
}

void coord_execute_reply_data(struct coord_core *core, struct coord_task *task)
{
    struct model_call *call = task->call;
    const struct model_data_response *data = &task->answer->response.data;
    struct model_execute_response *execute;

    if (!call)
        return;
    execute = coord_execute_answer(task);
    execute->data = *data;
    if (!copy_data(&call->arena, &execute->data)) {
        coord_task_fail(core, task, MODEL_REASON_LIMIT_REACHED, "no memory for the value");
        return;
    }
    memcpy(execute->instance, task->member->name, sizeof(execute->instance));
    execute->epoch = task->epoch;
    execute->lock_lost = task->done.lock_lost;
    if (coord_execute_request(task)->kind == MODEL_STATEMENT_GET)
        execute->lock_token = task->token;
    coord_execute_reply(core, task);
}

void coord_execute_reply_done(struct coord_core *core, struct coord_task *task,
                              const struct coord_done *done)
{
    struct model_execute_response *execute = coord_execute_answer(task);

    execute->data.version = done->version;
    execute->data.stored = done->stored;
    execute->data.replayed = done != &task->done;
    execute->epoch = done->epoch;
    execute->lock_lost = done->lock_lost;
    coord_execute_reply(core, task);
}

static void on_lock_released(struct coord_core *core, struct coord_task *task)
{
    struct coord_key *key = task->latched;

    if (task->outcome != STORE_COMMITTED) {
        coord_task_fail_commit(core, task);
    } else {
        if (key->deleted)
            coord_drop_begin(core, key);
        if (task->answer)
            coord_execute_reply_data(core, task);
        else
            coord_execute_reply_done(core, task, &task->done);
    }
    coord_task_finish(core, task);
}

void coord_execute_name_done(struct coord_task *task)
{
    const struct model_execute_request *request = coord_execute_request(task);

    if (model_id_equal(&request->request_id.client, &task->session->row.client))
        task->done.seq = request->request_id.seq;
    task->done.key_hash = hash_of(request->key);
}

void coord_execute_release(struct coord_core *core, struct coord_task *task)
{
    coord_execute_name_done(task);
    task->row = coord_key_row_of(task->latched);
    task->row.locked = false;
    coord_task_put_row(task);
    if (task->done.seq != 0 && task->session->state == COORD_SESSION_OPEN)
        coord_task_put_done(task);
    coord_task_commit(core, task, on_lock_released);
}
