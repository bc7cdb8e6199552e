/*
 * Statements. coord_execute_start() checks what can be checked without the key; from then on the
 * step of a statement's task is coord_execute_run(), which looks at the key as it is and does what
 * is next to do, until there is an answer. Everything here runs under the core's lock.
 */
#ifndef COORD_EXECUTE_H
#define COORD_EXECUTE_H

#include "coordinator/locks.h"
#include "coordinator/tasks.h"

void coord_execute_start(struct coord_core *core, struct coord_task *task);

/* A Lock is a GET whose answer says more, and which waits for its turn; a Route is what a statement
 * does before it is sent to the owner. */
void coord_execute_start_lock(struct coord_core *core, struct coord_task *task);
void coord_execute_start_route(struct coord_core *core, struct coord_task *task);

void coord_execute_run(struct coord_core *core, struct coord_task *task);

/* ---- one function a statement -----------------------------------------------------------------*/

void coord_execute_get(struct coord_core *core, struct coord_task *task);
void coord_execute_await(struct coord_core *core, struct coord_task *task);
void coord_execute_set(struct coord_core *core, struct coord_task *task);
void coord_execute_store(struct coord_core *core, struct coord_task *task);
void coord_execute_put(struct coord_core *core, struct coord_task *task);
void coord_execute_read(struct coord_core *core, struct coord_task *task);
void coord_execute_delete(struct coord_core *core, struct coord_task *task);
void coord_execute_route(struct coord_core *core, struct coord_task *task);

/* ---- execute_owner.c: steps towards a key whose owner serves it -------------------------------*/

enum coord_owner {
    COORD_OWNER_NONE,    /* the key is unplaced */
    COORD_OWNER_READY,   /* ACTIVE or PLACING at task->member, which is alive */
    COORD_OWNER_HANDLED, /* the task waits, or was answered and is gone */
};

/* Access to the key: what becomes of it when its owner is down is decided here. */
enum coord_owner coord_execute_owner(struct coord_core *core, struct coord_task *task,
                                     const struct coord_key *key);

/* What a placement would see now. Placements that are under way count as if they had succeeded:
 * they would all go to the same instance otherwise. */
struct coord_view coord_execute_view(const struct coord_core *core);

/* The owner's answer says that it has no row of the key: a Drop of this coordinator, or of an
 * earlier one, was carried out, and the key is unplaced; or its value was evicted, and the key is
 * deleted. The statement runs again. false: it says something else. */
bool coord_execute_dropped(struct coord_core *core, struct coord_task *task);

/* The task has the latch. Both end in coord_execute_run() or an error. */
void coord_execute_place(struct coord_core *core, struct coord_task *task);
void coord_execute_activate(struct coord_core *core, struct coord_task *task);

/* ---- what statements share --------------------------------------------------------------------*/

/* A Fence for the key's owner; NULL when memory is out. */
struct model_call *coord_execute_fence(const struct coord_core *core, const struct coord_key *key,
                                       uint64_t token, bool locked);

/* The task has the latch of a key that lives at task->member. true: the key is ACTIVE, and marked
 * as maybe stored when the statement `stores` or its answer gives out the route. false: the step
 * towards that is under way. */
bool coord_execute_prepare(struct coord_core *core, struct coord_task *task, bool stores);

/* The task has the latch, shared where the key's row will stay as it is. false: it waits, or was
 * refused. */
bool coord_execute_latch(struct coord_core *core, struct coord_task *task, bool stays);

/* Only the owner has to do something: the key's row stays as it is. */
bool coord_execute_row_stays(const struct coord_key *key, bool stores);

/* Whoever gets the answer may send any operation to the owner. */
static inline bool coord_execute_gives_route(const struct coord_task *task)
{
    return task->call && task->call->request.kind != MODEL_CALL_EXECUTE;
}

/* false: the key has no route that may be given out. */
bool coord_execute_fill_route(const struct coord_core *core, const struct coord_key *key,
                              struct model_route *ret_route);

/* Sends the statement to task->member, under `token`. */
void coord_execute_forward(struct coord_core *core, struct coord_task *task, struct coord_key *key,
                           enum model_call_kind kind, uint64_t token, coord_step_fn step);

/* The owner's answer was not OK: tries again, or fails and finishes. `writes`: silence means that
 * it may have happened. */
void coord_execute_not_ok(struct coord_core *core, struct coord_task *task, bool writes);

/* Another attempt after a while, or the error of the last one. */
void coord_execute_retry(struct coord_core *core, struct coord_task *task);

/* The answer DONE, to be filled; coord_execute_reply() sends it. The task's call is unanswered. */
struct model_execute_response *coord_execute_answer(struct coord_task *task);
void coord_execute_reply(struct coord_core *core, struct coord_task *task);

/* Answers with what the owner said; the task goes on. */
void coord_execute_reply_data(struct coord_core *core, struct coord_task *task);

/* Answers DONE without a value; the task goes on. */
void coord_execute_reply_done(struct coord_core *core, struct coord_task *task,
                              const struct coord_done *done);

/* The key's length; false: the call was answered, and the task is gone. */
bool coord_execute_check_key(struct coord_core *core, struct coord_task *task, struct rt_bytes key);

/* Fails and finishes. */
void coord_execute_refuse(struct coord_core *core, struct coord_task *task,
                          enum model_reason reason);

/* coord_locks_check() for the task's statement; false: refused and gone. */
bool coord_execute_may(struct coord_core *core, struct coord_task *task,
                       const struct coord_key *key, struct coord_lock_check *ret_check);

/* Says in task->done which request it is of, and of which key. One that is no request of the
 * session's client has no number there, and is not remembered. */
void coord_execute_name_done(struct coord_task *task);

/* Commits that the caller's lock is released and the statement done, then answers (with the owner's
 * data when there is an answer of it). The task has the latch. */
void coord_execute_release(struct coord_core *core, struct coord_task *task);

static inline const struct model_execute_request *coord_execute_request(
    const struct coord_task *task)
{
    return task->statement;
}

#endif
