/*
 * Drives one instance core by hand: a clock that stands still, a disk that is a sorted array, and
 * a coordinator that is the test. Nothing happens but what the test asks for; transactions and
 * outbound calls wait in lists until they are completed. Owned by the test.
 */
#ifndef TESTS_UNIT_INSTANCE_DRIVER_H
#define TESTS_UNIT_INSTANCE_DRIVER_H

#include "instance/core.h"
#include "tests/support/check.h"
#include "tests/support/fake_env.h"

enum {
    DRIVER_DISK_MAX = 16384,
    DRIVER_INCARNATION = 100, /* of the first life; each later one is 100 more */
    DRIVER_EPOCH = 50,
    DRIVER_TERM = 7,
    DRIVER_LEASE_MS = 3000,
    DRIVER_FENCE_US = 2500000, /* L - L/6 */
    DRIVER_EVENTS_MAX = 32,
};

struct driver_row {
    uint8_t key[STORE_KEY_MAX];
    size_t key_size;
    uint8_t *value;
    size_t value_size;
    bool corrupt;
};

struct driver {
    struct test_env env;
    struct rt_env stepping; /* what the core sees: the fake clock, plus step_us a reading */
    uint64_t step_us;
    struct inst_config config;
    struct inst_core *core;
    struct model_id cluster_id;
    struct model_id client;
    uint64_t incarnation;
    uint64_t term;
    struct rt_list replies;
    struct rt_list calls;
    struct rt_list txns;
    struct driver_row disk[DRIVER_DISK_MAX];
    size_t n_disk;
    struct model_row told[16]; /* what Reconcile answers at the end of the list */
    size_t n_told;
    struct model_held_row held[16]; /* what the instance reported; keys are copies */
    char held_keys[16][MODEL_KEY_MAX + 1];
    size_t n_held;
    struct model_event events[DRIVER_EVENTS_MAX]; /* the last ones, as a ring */
    size_t n_events;
};

/* A driver with ten entries of ten bytes and an empty disk; nothing is started. */
struct driver *driver_new(void);
void driver_free(struct driver *driver);

/* A new core, loaded from the disk and started; an old one is freed, as by a crash. */
void driver_boot(struct driver *driver);

/* Boot, register, reconcile with `told`, renew: SERVING. */
void driver_serve(struct driver *driver);

/* The steps of driver_serve(), one by one. */
void driver_register(struct driver *driver);
void driver_reconcile(struct driver *driver);
void driver_renew(struct driver *driver);

/* Takes what a step left. */
void driver_take(struct driver *driver);
void driver_tick(struct driver *driver);

/* How many lines for the log there were with exactly this text. */
size_t driver_n_events(const struct driver *driver, enum rt_log_level level, const char *text);

/* The only outbound call of that kind, not yet answered; asserts that there is one. */
struct model_call *driver_outbound(struct driver *driver, enum model_call_kind kind);
bool driver_has_outbound(struct driver *driver, enum model_call_kind kind);

/* Answers an outbound call, whose response the test has filled; stamps the term. */
void driver_answer(struct driver *driver, struct model_call *call);
void driver_answer_fail(struct driver *driver, struct model_call *call, enum model_reason reason);

/* Heartbeat written; Renew is out afterwards. */
void driver_heartbeat(struct driver *driver);
void driver_grant(struct driver *driver);

/* Completes the first waiting transaction. COMMITTED checks its compares and applies it. */
void driver_commit(struct driver *driver, enum store_outcome outcome);
void driver_commit_all(struct driver *driver);
size_t driver_n_txns(const struct driver *driver);
struct driver_row *driver_find(struct driver *driver, const char *key);
/* By the end of the stored key, which tells what the row is. */
bool driver_row_ends_with(const struct driver_row *row, const char *suffix);
size_t driver_count(struct driver *driver, const char *suffix);

/* A call with everything right for `key` at DRIVER_EPOCH. */
struct model_call *driver_data(struct driver *driver, enum model_call_kind kind, const char *key,
                               const char *value);
struct model_call *driver_set(struct driver *driver, const char *key, const char *value,
                              uint64_t token);
struct model_call *driver_fence(struct driver *driver, const char *key, uint64_t token,
                                bool locked);
struct model_call *driver_activate(struct driver *driver, const char *key, uint64_t epoch);
struct model_call *driver_drop(struct driver *driver, const char *key, uint64_t epoch);

/* Hands it to the core; answered or not. */
struct model_call *driver_submit(struct driver *driver, struct model_call *call);
bool driver_is_answered(struct driver *driver, const struct model_call *call);

/* Submit, complete all transactions, assert the answer. `value` NULL: any. */
void driver_expect_ok(struct driver *driver, struct model_call *call);
void driver_expect(struct driver *driver, struct model_call *call, enum model_reason reason);

/* Asserts the answer of a call that was submitted before, and frees it. */
void driver_finish_ok(struct driver *driver, struct model_call *call);
void driver_finish(struct driver *driver, struct model_call *call, enum model_reason reason);
void driver_end(struct driver *driver, struct model_call *call);

/* READ of the key, which must answer this value; NULL: none. Completes all transactions if it has
 * to be read back. */
void driver_expect_value(struct driver *driver, const char *key, const char *value);

/* Activate at DRIVER_EPOCH, committed. */
void driver_place(struct driver *driver, const char *key);
void driver_tell(struct driver *driver, const char *key, uint64_t epoch);

#endif
