/*
 * Drives one coordinator core by hand: a store whose commits the test completes, instances whose
 * answers it gives (or leaves to simple doubles), and calls whose answers it looks at.
 *
 * With `auto_commit` and `auto_answer` (the defaults) every step is carried to its end. Not thread
 * safe; a failed expectation ends the test.
 */
#ifndef TESTS_COORDINATOR_DRIVER_H
#define TESTS_COORDINATOR_DRIVER_H

#include "coordinator/core.h"
#include "tests/support/check.h"
#include "tests/support/fake_env.h"

struct driver_row {
    struct rt_bytes key;
    struct rt_bytes value;
};

/* What an instance double knows of a key; all instances share one table, by address and key. */
struct driver_key {
    char address[MODEL_ADDRESS_MAX + 1];
    char name[MODEL_KEY_MAX + 1];
    uint64_t epoch;
    uint64_t floor;
    uint64_t closed;
    bool locked;
    bool has_value;
    bool stored;
    char value[64];
    uint64_t seq;
    struct model_request_id last_id;
};

enum {
    DRIVER_KEYS_MAX = 64,
    DRIVER_OUTCOMES_MAX = 8,
    DRIVER_EVENTS_MAX = 32,
};

struct driver {
    struct test_env env;
    struct coord_config config;
    struct coord_core *core;
    struct driver_row *rows; /* the durable store */
    size_t n_rows;
    bool auto_commit;
    bool auto_answer;
    struct rt_list txns;                              /* submitted, in order */
    struct rt_list calls;                             /* outbound, unanswered */
    enum store_outcome outcomes[DRIVER_OUTCOMES_MAX]; /* of the next commits */
    size_t n_outcomes;
    const char *silent; /* address that never answers; NULL = none */
    struct driver_key keys[DRIVER_KEYS_MAX];
    size_t n_keys;
    uint64_t entries_total;   /* of each instance, of 10 bytes each; 100 at the beginning */
    struct rt_bytes *evicted; /* that the next SET or PUT says it evicted; borrowed */
    size_t n_evicted;
    uint64_t n_sent[MODEL_N_CALL_KINDS]; /* outbound calls so far */
    uint64_t n_txns;
    struct model_event events[DRIVER_EVENTS_MAX]; /* the last ones, as a ring */
    size_t n_events;
    struct model_request_id next_id;
};

struct driver_session {
    struct model_id id;
    struct model_id client;
    uint64_t seq;
};

/* Lease 3 s, key_max 40, locking REQUIRED, FORGET, wake hold 1 s. */
void driver_init(struct driver *driver);
void driver_deinit(struct driver *driver);

/* A new core over the same rows. Transactions in flight: applied or lost. */
void driver_restart(struct driver *driver, bool apply_in_flight);

/* Takes and carries out effects until there are none. */
void driver_settle(struct driver *driver);

/* How many of the last events are of this level and begin with "event=<word> "; settles. */
size_t driver_n_events(struct driver *driver, enum rt_log_level level, const char *word);

/* Lets time pass in steps in which the core is ticked, as a server does. */
void driver_sleep_ms(struct driver *driver, uint64_t ms);

/* Completes the oldest transaction; it must exist. */
void driver_commit(struct driver *driver, enum store_outcome outcome);
size_t driver_n_txns(const struct driver *driver);

/* Completes all transactions without keeping their rows, then settles: for tests with many rows. */
void driver_forget_rows(struct driver *driver);

/* The oldest unanswered outbound call of the kind; NULL when there is none. */
struct model_call *driver_find_call(struct driver *driver, enum model_call_kind kind);
/* By the double; or as if nobody had answered; or with an error. Settles. */
void driver_answer(struct driver *driver, struct model_call *call);
void driver_lose(struct driver *driver, struct model_call *call);
void driver_refuse(struct driver *driver, struct model_call *call, enum model_reason reason);

/* ---- calls ------------------------------------------------------------------------------------*/

/* Heap; deadline 5 s from now. */
struct model_call *driver_new_call(struct driver *driver, enum model_call_kind kind);
/* Submits and settles. */
void driver_submit(struct driver *driver, struct model_call *call);
bool driver_is_answered(const struct model_call *call);
struct model_call *driver_free_call(struct model_call *call);

/* ---- members; the name is the address too, and gives all ids ----------------------------------*/

struct model_call *driver_register(struct driver *driver, const char *name, const char *store,
                                   uint8_t boot);
/* Registers, reconciles with nothing held; returns the incarnation. */
uint64_t driver_join(struct driver *driver, const char *name, uint8_t boot);
/* As the process of that name in the store would send it. */
void driver_renew_begin(struct driver *driver, const char *name, uint64_t incarnation,
                        struct model_renew_request *ret_request);
enum model_reason driver_renew(struct driver *driver, const char *name, uint64_t incarnation);
void driver_leave(struct driver *driver, const char *name, uint64_t incarnation);

/* ---- sessions and statements ------------------------------------------------------------------*/

struct driver_session driver_open(struct driver *driver, const char *name);
void driver_close(struct driver *driver, const struct driver_session *session);
void driver_keep_alive(struct driver *driver, const struct driver_session *session);

/* Submitted, with a fresh request id; not necessarily answered. Value NULL = none. */
struct model_call *driver_execute(struct driver *driver, struct driver_session *session,
                                  enum model_statement_kind kind, const char *key,
                                  const char *value);

/* The same; it must be answered; frees it. */
enum model_reason driver_run(struct driver *driver, struct driver_session *session,
                             enum model_statement_kind kind, const char *key, const char *value);

/* Runs GET and SET and gives the owner's name in a static buffer of the driver. */
enum model_outcome driver_get(struct driver *driver, struct driver_session *session,
                              const char *key);

/* Owner of the key according to KEY_STATUS; "" = none, "?" = unknown key. In `ret_name`. */
void driver_owner(struct driver *driver, const char *key, char ret_name[MODEL_NAME_MAX + 1]);

#define driver_expect_owner(driver, key, name)                                                     \
    do {                                                                                           \
        char owner_[MODEL_NAME_MAX + 1];                                                           \
        driver_owner(driver, key, owner_);                                                         \
        cr_assert_str_eq(owner_, name, "owner of %s: %s", key, owner_);                            \
    } while (0)

#define driver_expect(reason, expected)                                                            \
    do {                                                                                           \
        enum model_reason reason_ = (reason);                                                      \
        cr_assert_eq(reason_, expected, "%s, not %s", model_reason_name(reason_),                  \
                     model_reason_name(expected));                                                 \
    } while (0)

/* NONE when the call succeeded. */
enum model_reason driver_reason(const struct model_call *call);

struct model_id driver_id(const char *text, uint8_t number);

#endif
