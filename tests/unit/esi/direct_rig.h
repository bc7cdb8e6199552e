/*
 * A direct client between owners and a coordinator played by hand. The rig must not move between
 * init and deinit; answered operations are freed with it.
 */
#ifndef TESTS_UNIT_ESI_DIRECT_RIG_H
#define TESTS_UNIT_ESI_DIRECT_RIG_H

#include "esi-client/direct.h"
#include "tests/support/fake_env.h"

enum {
    DIRECT_RIG_TIMEOUT_US = 8 * 1000 * 1000,
    DIRECT_RIG_LEASE_MS = 9000,
};

struct direct_rig {
    struct test_env fake;
    struct esi_direct *direct; /* owned */
    struct rt_list calls;      /* sent and not yet taken */
    struct rt_list answered;   /* operations */
    bool answer_keep_alives;
};

void direct_rig_init(struct direct_rig *rig);
void direct_rig_deinit(struct direct_rig *rig);

/* An operation on a key, a literal, with 8 s for it. SET and PUT write "v". */
struct model_call *direct_rig_submit(struct direct_rig *rig, enum model_call_kind kind,
                                     const char *key);

/* The next call of this kind that was sent; fails the test when there is none. */
struct model_call *direct_rig_take(struct direct_rig *rig, enum model_call_kind kind);

/* Calls that were sent and not taken. */
size_t direct_rig_n_calls(struct direct_rig *rig);

/* A ROUTE that was sent is answered. The owner's address is "<owner>:1". */
void direct_rig_route(struct direct_rig *rig, const char *owner, uint64_t epoch,
                      uint64_t incarnation);

/* An operation of this kind on key "k", whose route (i1, epoch 5, incarnation 3) is known by then:
 * its first attempt. */
struct model_call *direct_rig_attempt(struct direct_rig *rig, enum model_call_kind kind,
                                      struct model_call **ret_operation);

/* Each answers a call that was taken. OK: version (epoch, incarnation, seq). */
void direct_rig_ok(struct direct_rig *rig, struct model_call *call, uint64_t seq);
void direct_rig_fail(struct direct_rig *rig, struct model_call *call, enum model_reason reason);
void direct_rig_fail_plain(struct direct_rig *rig, struct model_call *call, enum rt_code code);

/* Refuses with a hint, as an owner does. */
void direct_rig_hint(struct direct_rig *rig, struct model_call *call, enum model_reason reason,
                     const char *owner, uint64_t epoch, uint64_t incarnation);

/* Moves the clock to the next wake-up and ticks. Returns by how much it moved. */
uint64_t direct_rig_wake(struct direct_rig *rig);

/* Goes through the wake-ups until the clock has moved by `us`. */
void direct_rig_pass(struct direct_rig *rig, uint64_t us);

/* Whether the operation has been answered. */
bool direct_rig_is_answered(struct direct_rig *rig, const struct model_call *operation);

void direct_rig_expect_ok(struct direct_rig *rig, const struct model_call *operation);
void direct_rig_expect_failure(struct direct_rig *rig, const struct model_call *operation,
                               enum model_reason reason, enum model_applied applied);

/* A LOCK of the key that is granted with this token; opens the session when there is none. */
void direct_rig_lock(struct direct_rig *rig, const char *key, uint64_t token);

#endif
