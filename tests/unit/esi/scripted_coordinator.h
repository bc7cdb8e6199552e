/*
 * A coordinator played by hand: takes the calls that a session or a runner makes, one by one, and
 * answers each as the test says. The clock moves only when the test moves it.
 *
 * Owned by the test; one object under test each. Calls that the test has not answered belong to the
 * object, as they would if an answer never came.
 */
#ifndef TESTS_UNIT_ESI_SCRIPTED_COORDINATOR_H
#define TESTS_UNIT_ESI_SCRIPTED_COORDINATOR_H

#include "runtime/model/call.h"
#include "tests/support/fake_env.h"

enum {
    SCRIPTED_LEASE_MS = 9000, /* fence after 7,500 ms, KeepAlive every 3,000 ms */
};

struct scripted_coordinator {
    struct test_env fake;
    struct rt_list calls; /* made and not yet taken by the test */
    bool answer_keep_alives;
    void *object;
    struct model_effects *(*effects)(void *object);
    void (*call_done)(void *object, struct model_call *call);
    void (*tick)(void *object);
    uint64_t (*next_wakeup_us)(void *object);
};

/* KeepAlives are answered by themselves until answer_keep_alives is cleared. */
void scripted_init(struct scripted_coordinator *scripted);

/* The next call of this kind; fails the test when there is none. */
struct model_call *scripted_take(struct scripted_coordinator *scripted, enum model_call_kind kind);

/* The next EXECUTE, which must be of this statement kind. */
struct model_call *scripted_take_execute(struct scripted_coordinator *scripted,
                                         enum model_statement_kind kind);

/* Calls waiting to be taken, KeepAlives that answer themselves aside. */
size_t scripted_n_calls(struct scripted_coordinator *scripted);

/* Each hands the call back. */
void scripted_ok(struct scripted_coordinator *scripted, struct model_call *call);
void scripted_fail(struct scripted_coordinator *scripted, struct model_call *call,
                   enum model_reason reason);
/* As a transport fails: a code and nothing else, so MAYBE. */
void scripted_fail_plain(struct scripted_coordinator *scripted, struct model_call *call,
                         enum rt_code code);

/* OPEN_SESSION is answered with a lease of SCRIPTED_LEASE_MS. */
void scripted_open(struct scripted_coordinator *scripted);

/* An EXECUTE is answered DONE with this token and version (epoch 5, incarnation 3, seq). */
void scripted_done(struct scripted_coordinator *scripted, struct model_call *call,
                   uint64_t lock_token, uint64_t seq);

/* Moves the clock to the next wake-up and ticks; fails the test when none is wanted. Returns by how
 * much the clock moved. */
uint64_t scripted_wake(struct scripted_coordinator *scripted);

/* Goes through the wake-ups until the clock has moved by `us`. */
void scripted_pass(struct scripted_coordinator *scripted, uint64_t us);

#endif
