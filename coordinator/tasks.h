/*
 * One piece of work of several steps: an inbound call, or something the core does by itself.
 *
 * A task is always in exactly one of the states below. What it waits for brings it back into
 * core->ready, and coord_tasks_run() calls its step. A step does one of: answer and finish, wait
 * for something, commit, call out. Steps of statements look at the key's present state and do what
 * is next to do, so that they may be run again after any wait.
 *
 * The latch of a key is taken by one task that may change the key, or shared by tasks that rely on
 * it as it is; the others queue, first come first served.
 * Everything here runs under the core's lock and does not call steps, coord_tasks_run() aside.
 */
#ifndef COORD_TASKS_H
#define COORD_TASKS_H

#include "coordinator/state.h"

struct coord_task;
typedef void (*coord_step_fn)(struct coord_core *core, struct coord_task *task);

enum coord_task_state {
    COORD_TASK_RUNNING,    /* its step is being run, or it is ready to run */
    COORD_TASK_QUEUED,     /* for a key's latch */
    COORD_TASK_WAITING,    /* in somebody's list, or for its timer */
    COORD_TASK_CALLING,    /* for the answer of an outbound call */
    COORD_TASK_COMMITTING, /* for a transaction */
};

enum coord_row_change {
    COORD_ROW_UNCHANGED,
    COORD_ROW_PUT,
    COORD_ROW_DELETE,
};

struct coord_task {
    struct rt_list link;
    struct rt_list wait_link;
    struct rt_list session_link;
    struct rt_list placing_link;
    struct coord_timer timer; /* deadline of a wait, or its end */
    enum coord_task_state state;
    coord_step_fn step;        /* what to run when the wait is over */
    struct model_call *call;   /* inbound, NULL when answered or when there is none */
    struct model_call *answer; /* outbound, in flight or with its response; owned */
    uint64_t deadline_us;      /* of the whole task */
    enum model_reason late;    /* the answer when the deadline passes during a wait */
    uint32_t attempt;          /* failed ones in a row */
    bool granted;              /* a lock was taken on behalf of this call */
    bool is_first_attempt;     /* it is the first to send this write to an owner */
    bool sent;                 /* a write has taken effect, or may have */
    bool may_compact;          /* its owner may move other values by itself */

    void *work;                                    /* of the step's own, in the call's arena */
    const struct model_execute_request *statement; /* the call as one; as long as the call */
    coord_step_fn run;                             /* what the statement does */
    uint64_t value_size;                           /* bytes of the value that it writes */
    struct coord_session *session;
    struct coord_member *member;
    uint64_t incarnation;      /* of the member; see compaction.c */
    struct coord_key *latched; /* the key whose latch it has */
    bool shared;               /* it shares the latch, or waits to */
    bool created;              /* the key did not exist before this task */
    uint32_t placing;          /* ordinal it is about to place on; 0 = none */
    uint64_t choice;           /* number of that choice */
    uint64_t expected;         /* entries that its value will take, once it has arrived */
    struct coord_member *expected_at;
    struct coord_member *asked; /* whom `answer` is from */
    uint64_t asked_at;          /* newest number of the counter when it was asked */
    bool was_active;            /* the owner was asked about a key that was ACTIVE */
    bool evicts;                /* see evict.h: the answer's evicted keys were looked at */
    struct rt_list evictions;   /* coord_task.evict_link: what the task waits for */
    struct rt_list evict_link;
    struct coord_task *evictor;           /* the task that waits for this one; NULL = none */
    struct coord_member *renewed;         /* counts this one among its evictions; NULL = none */
    enum model_distribution distribution; /* to be set */
    uint64_t token;                       /* of the lock it works under */
    uint64_t epoch;

    struct store_txn *txn; /* being built; owned */
    enum store_outcome outcome;
    bool refused;        /* the transaction was not submitted: the core is read-only */
    uint64_t txn_number; /* highest counter value in it */
    uint64_t txn_mark;   /* counter row in it */
    uint64_t txn_route;  /* route row in it */
    enum coord_row_change change;
    struct coord_key_row row;            /* of the key, with `change` */
    struct coord_member_row *member_row; /* owned; what the transaction makes of the member */
    struct coord_done done;              /* the statement, for its session's records */
    uint64_t done_below;                 /* as the statement said */
    bool done_written;                   /* `done` is in the transaction */

    uint8_t key_size; /* 0 = no key */
    uint8_t key[];
};

/* `call` may be NULL. The key is copied. */
struct coord_task *coord_task_new(struct coord_core *core, struct model_call *call,
                                  struct rt_bytes key, coord_step_fn step);

/* Leaves every list, gives the latch on and frees. The call was answered, or there is none. */
void coord_task_finish(struct coord_core *core, struct coord_task *task);

/* Its value is going to take entries of the member; NULL: it has arrived, or is not coming. */
void coord_task_expect(struct coord_core *core, struct coord_task *task,
                       struct coord_member *member);

/* core_free() only: no latch is given on, and inbound calls are not touched. */
void coord_tasks_deinit(struct coord_core *core);

/* Runs steps until none is ready. */
void coord_tasks_run(struct coord_core *core);

/* Ends the wait that the task is in, if it is in one; `step` NULL keeps the step. */
void coord_task_ready(struct coord_core *core, struct coord_task *task, coord_step_fn step);

/* All tasks of a list of wait_links, in order. */
void coord_tasks_wake(struct coord_core *core, struct rt_list *list);

void coord_task_set_session(struct coord_task *task, struct coord_session *session);

static inline struct rt_bytes coord_task_name(const struct coord_task *task)
{
    return rt_bytes_of(task->key, task->key_size);
}

/* ---- waits; the step runs when they are over --------------------------------------------------*/

/* true: the task has the latch of its key (which may not exist yet). false: it waits for it, or was
 * answered LIMIT_REACHED and is gone. A latch of the other kind is given up first. */
RT_MUST_USE bool coord_task_latch(struct coord_core *core, struct coord_task *task,
                                  coord_step_fn step);
RT_MUST_USE bool coord_task_latch_shared(struct coord_core *core, struct coord_task *task,
                                         coord_step_fn step);
void coord_task_unlatch(struct coord_core *core, struct coord_task *task);

/* In `list` until woken; at the task's deadline it is answered with `late`. */
void coord_task_wait(struct coord_core *core, struct coord_task *task, struct rt_list *list,
                     enum model_reason late, coord_step_fn step);

/* The same, and runs at `wake_us` at the latest. */
void coord_task_wait_until(struct coord_core *core, struct coord_task *task, struct rt_list *list,
                           enum model_reason late, uint64_t wake_us, coord_step_fn step);

/* For 20 ms · 2ⁿ, at most 500 ms. false when the deadline comes first: nothing was done. */
RT_MUST_USE bool coord_task_back_off(struct coord_core *core, struct coord_task *task,
                                     coord_step_fn step);

/* For a second: work that has to be done some time. */
void coord_task_pause(struct coord_core *core, struct coord_task *task, coord_step_fn step);

/* ---- transactions -----------------------------------------------------------------------------*/

struct store_txn *coord_task_txn(struct coord_task *task);

/* A new number for this transaction. */
uint64_t coord_task_number(struct coord_core *core, struct coord_task *task);

/* The transaction changes routes, under this number. */
void coord_task_set_route(struct coord_task *task, uint64_t number);

/* Puts task->row, or deletes it; the table follows when the transaction has committed. */
void coord_task_put_row(struct coord_task *task);
void coord_task_delete_row(struct coord_task *task);

/* Writes task->done into its session's row. */
void coord_task_put_done(struct coord_task *task);

/* Submits; the step finds the result in task->outcome. */
void coord_task_commit(struct coord_core *core, struct coord_task *task, coord_step_fn step);

/* ---- outbound calls ---------------------------------------------------------------------------*/

/* Sends to the member's address with task->deadline, or `timeout_us` when that is earlier. The step
 * finds the response in task->answer. */
void coord_task_call(struct coord_core *core, struct coord_task *task, struct model_call *call,
                     struct coord_member *member, uint64_t timeout_us, coord_step_fn step);

enum coord_answer {
    COORD_ANSWER_OK,
    COORD_ANSWER_RETRY,  /* had no effect, and may have one later */
    COORD_ANSWER_SILENT, /* nobody answered */
    COORD_ANSWER_FINAL,  /* an error that says what it is */
};

enum coord_answer coord_answer_of(const struct model_response *response);

/* ---- answers ----------------------------------------------------------------------------------*/

/* The key that a call is about; empty when it is about none. */
struct rt_bytes coord_call_key(const struct model_call *call);

/* Fills the responder and hands the call back; nothing happens when it was answered before. */
void coord_task_reply(struct coord_core *core, struct coord_task *task);

/* Sets the error, with key and epoch, and replies. applied is MAYBE when the task has granted or
 * sent something. */
void coord_task_fail(struct coord_core *core, struct coord_task *task, enum model_reason reason,
                     const char *format, ...) RT_PRINTF(4, 5);

/* The same for a transaction that did not commit. */
void coord_task_fail_commit(struct coord_core *core, struct coord_task *task);

/* Fails with the error of task->answer, unchanged. */
void coord_task_fail_answer(struct coord_core *core, struct coord_task *task);

/* ---- the key table follows --------------------------------------------------------------------*/

struct coord_key_row coord_key_row_of(const struct coord_key *key);
void coord_key_apply(struct coord_core *core, struct coord_key *key,
                     const struct coord_key_row *row);

#endif
