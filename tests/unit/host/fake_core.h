/*
 * A core that does as it is told: answers calls at once, from its next tick, when told, or when a
 * transaction or a call of its own has come back; makes calls and transactions when told. It notes
 * what happened to it and aborts when the host breaks a promise: a step inside a step, a
 * cancellation of a call that is answered or was cancelled before, a completion of something that
 * is not out.
 *
 * Its functions are steps: under the host's lock (host_step, host_read). Latches and the policy
 * fields may be used without it, the latter before the first step.
 */
#ifndef TESTS_UNIT_HOST_FAKE_CORE_H
#define TESTS_UNIT_HOST_FAKE_CORE_H

#include "runtime/host/host.h"
#include "tests/unit/rpc/rig.h"

enum {
    FAKE_LOG_MAX = 1024,
};

#define FAKE_NAME "fake" /* who refuses what does not reach the core */

enum fake_mode {
    FAKE_NOW,   /* answer inside submit */
    FAKE_TICK,  /* ask for a tick at once and answer there */
    FAKE_HOLD,  /* answer when told */
    FAKE_STORE, /* make a transaction, answer when it has come back */
    FAKE_RELAY, /* make the same call to `relay_address`, answer what comes back */
};

/* One outbound call that has come back. */
struct fake_result {
    unsigned id;
    enum rt_code code;
    struct model_error error; /* key cleared */
    uint64_t tag;             /* of an answer that is OK */
    bool was_loop_thread;
};

struct fake_core {
    struct model_effects effects;
    struct rpc_runtime *runtime;
    const struct rt_env *env;

    /* policy */
    enum fake_mode mode;
    bool fails;                /* answer KEY_LOST with a hint instead of OK */
    bool answers_cancelled;    /* answer inside cancel */
    bool fills_arena;          /* leave no room for the answer's message */
    uint32_t value_size;       /* of answers that hold a value */
    size_t n_evicted;          /* keys of MODEL_KEY_MAX bytes that answers to writes name */
    const char *relay_address; /* borrowed */
    uint64_t relay_timeout_us; /* 0 = no deadline */
    unsigned n_chained_txns;   /* each completed transaction makes another one, so often */

    /* what happened */
    struct latch submits, cancels, answers, dones, txns, ticks;
    uint64_t tags[FAKE_LOG_MAX]; /* of submitted calls, in order */
    unsigned n_tags;
    unsigned n_expected;  /* keys, in the calls of `expect` */
    unsigned most_inside; /* calls that were inside at once */
    uint64_t last_deadline_us;
    struct fake_result results[FAKE_LOG_MAX];
    unsigned n_results;
    uint64_t last_tick_us;
    unsigned n_committed, n_not_committed;

    struct rt_list held; /* model_call.link: inside, oldest first */
    unsigned n_inside;
    struct rt_list out; /* fake_out.link: made and not back; owned */
    unsigned last_id;
    uint64_t wakeup_us;
    unsigned n_txn_rows;
    unsigned n_txns_back;
    bool is_in_step;
};

extern const struct host_core_ops fake_core_ops;

void fake_core_init(struct fake_core *core, struct rpc_runtime *runtime);
/* Frees calls that never came back. Inbound calls are not looked at. */
void fake_core_deinit(struct fake_core *core);

/* ---- steps, for host_step(); the argument is what the comment says ---- */

/* NULL: answers the oldest call that is held, if there is one. */
void fake_answer_one(void *core, void *argument);
/* NULL: the newest. */
void fake_answer_newest(void *core, void *argument);
/* enum fake_mode: from now on. */
void fake_set_mode(void *core, void *mode);
/* NULL: all of them. */
void fake_answer_all(void *core, void *argument);

struct fake_order {
    enum model_call_kind kind;
    const char *address;
    uint64_t tag;
    uint64_t timeout_us; /* from now; 0 = no deadline */
    bool is_late;        /* the deadline has passed */
    uint32_t value_size;
    size_t arena_limit; /* beyond what the request needs; 0 = default */
    unsigned ret_id;    /* result.id of this call */
};
/* struct fake_order: makes an outbound call. */
void fake_make_call(void *core, void *order);
/* NULL: makes a transaction that puts the row "row<n>", n from 1. */
void fake_make_txn(void *core, void *argument);
/* uint64_t: tick at this time. */
void fake_wake_at(void *core, void *when_us);

/* ---- messages ---- */

/* A valid request of any kind that carries `tag`; copies are in the arena. */
void fake_request(struct model_request *ret_request, enum model_call_kind kind, uint64_t tag,
                  uint32_t value_size, struct rt_arena *arena);
uint64_t fake_tag_of_request(const struct model_request *request);
/* An answer carries the tag of its request; 0 where a kind has no room for one. */
uint64_t fake_tag_of_response(const struct model_response *response, enum model_call_kind kind);

#endif
