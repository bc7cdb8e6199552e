/*
 * A call is an object: the one shape in which work enters and leaves a core.
 *
 * Inbound: a shell fills `request` and hands the call over with <core>_submit(). The core answers
 * by filling `response` and putting the call into effects.replies, at once or later, exactly once.
 * Between the two the call and everything its request borrows stay alive, also when the caller has
 * gone away (then <core>_cancel() was called, and the answer goes nowhere).
 *
 * Outbound: a core makes a call with model_call_new(), fills `address` and `request` (copied into
 * the call's arena) and puts it into effects.calls. The shell carries it out, fills `response` and
 * hands it back with <core>_call_done(); the core frees it.
 *
 * Effects leave a core as data. A step (submit, call_done, txn_done, cancel, tick) collects them
 * under the core's lock; whoever stepped takes them (model_effects_take), releases the lock and
 * carries them out. Transactions must reach the store in the order in which they were taken: take
 * and submit them under one lock. Events are lines for the log: a core writes none itself.
 */
#ifndef MODEL_CALL_H
#define MODEL_CALL_H

#include "runtime/base/arena.h"
#include "runtime/base/env.h"
#include "runtime/base/list.h"
#include "runtime/base/log.h"
#include "runtime/base/store.h"
#include "runtime/model/message.h"

struct model_call {
    struct rt_list link;   /* in one queue of the current owner */
    struct rt_arena arena; /* copies: request of an outbound call, response data of either */
    struct model_request request;
    struct model_response response;
    uint64_t deadline_us; /* boot clock of whoever holds the call; RT_NEVER = none */
    bool cancelled;       /* inbound: the caller went away */
    const char *address;  /* outbound: in the arena */
    void *state;          /* the core's own, while it holds the call */
    void *context;        /* the shell's own */
};

/* Initialises memory of the caller (inbound calls). request.kind is set, the rest is for the
 * caller to fill. */
void model_call_init(struct model_call *call, enum model_call_kind kind);

/* Frees the arena; the call is empty. */
void model_call_deinit(struct model_call *call);

struct model_call *model_call_new(enum model_call_kind kind);
struct model_call *model_call_free(struct model_call *call);

/* The deadline as a remaining duration, 0 when passed; RT_NEVER stays. */
static inline uint64_t model_call_remaining_us(const struct model_call *call, uint64_t now_us)
{
    if (call->deadline_us == RT_NEVER)
        return RT_NEVER;
    return call->deadline_us > now_us ? call->deadline_us - now_us : 0;
}

enum {
    MODEL_EVENTS_MAX = 8,       /* of one step; what comes after them is counted */
    MODEL_EVENT_TEXT_MAX = 447, /* bytes: a name, an address, a few numbers */
};

struct model_event {
    enum rt_log_level level;
    char text[MODEL_EVENT_TEXT_MAX + 1]; /* "event=… key=value …" */
};

struct model_effects {
    struct rt_list replies;                      /* model_call.link: answered inbound calls */
    struct rt_list calls;                        /* model_call.link: outbound calls to carry out */
    struct rt_list txns;                         /* store_txn.link: to submit, in order */
    struct model_event events[MODEL_EVENTS_MAX]; /* for the log, oldest first */
    size_t n_events;
    size_t n_events_dropped;
};

void model_effects_init(struct model_effects *effects);
bool model_effects_is_empty(const struct model_effects *effects);

/* Adds an event: a line as rt_log() wants it, cut when it is too long. Dropped and counted when
 * this step has MODEL_EVENTS_MAX already. Never a value of a key. */
void model_effects_tell(struct model_effects *effects, enum rt_log_level level, const char *format,
                        ...) RT_PRINTF(3, 4);

/* Moves everything to `ret_taken` (initialised by this function). */
void model_effects_take(struct model_effects *effects, struct model_effects *ret_taken);

#endif
