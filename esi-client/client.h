/*
 * Redistinto's client library: installed as <redistinto/client.h>, `pkg-config redistinto-client`.
 *
 * A client asks the coordinator where a key lives, remembers it, and speaks to the owner itself. It
 * retries what may be retried, with the same request id, so that a write has one effect; it follows
 * keys and owners that moved. Operations that are started together travel together: those for one
 * owner in one message.
 *
 *   struct esi_client_options options = {.coordinator = "127.0.0.1:7400"};
 *   struct esi_client *client = esi_client_new(&options, NULL);
 *   struct esi_client_operation put = {
 *       .kind = ESI_CLIENT_PUT, .key = {"k", 1}, .value = {"v", 1}};
 *   struct esi_client_results *results = esi_client_run(client, &put, 1);
 *
 *   if (results->items[0].outcome != ESI_CLIENT_OK) …
 *   esi_client_results_free(results);
 *   esi_client_free(client);
 *
 * A key comes into being with its first PUT or LOCK, unless the coordinator's locking policy says
 * otherwise; other operations on a key that nobody knows fail with KEY_NOT_IDENTIFIED.
 *
 * What is promised: SET is visible and lives as long as the owner's process; STORE and PUT are
 * durable once they are OK. LOCK waits for its turn; a lock belongs to the client and is given back
 * by STORE, PUT, UNLOCK, and the end of the client. Operations on a key that the client has locked
 * show the lock by themselves, and fail once it is lost.
 *
 * Order: operations that are under way at the same time take effect in any order, also on one key
 * and also in one batch. Who needs an order waits for the results.
 *
 * Threads: every function may be called by any thread. A client has two threads of its own, which
 * take no signals. Callbacks run on one of them, one at a time; they may start operations but must
 * not wait for any (esi_client_run, esi_client_free). Fork before the first client, not after.
 * Memory or threads that run out abort the process.
 */
#ifndef ESI_CLIENT_H
#define ESI_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ESI_CLIENT_KEY_MAX = 255,           /* bytes; a key has at least one */
    ESI_CLIENT_VALUE_MAX = 1024 * 1024, /* bytes */
    /* Unfinished, LOCKs that nobody waits for any more and that are to be given back among them;
     * the next one fails with LIMIT_REACHED. */
    ESI_CLIENT_OPERATIONS_MAX = 16384,
    ESI_CLIENT_TIMEOUT_MS_MAX = 86400000, /* of one operation; longer ones are cut */
};

struct esi_client;

/* Zero means the default. Everything is copied. */
struct esi_client_options {
    const char *coordinator; /* "host:port" or "unix:/path"; required */
    const char *name;        /* 1..63 of A-Z a-z 0-9 . _ -; shown as holder of locks; "client" */
    uint32_t timeout_ms;     /* of an operation that says nothing; 5000 */
    size_t routes_max;       /* keys of which the owner is remembered; 100,000 */
};

/* NULL when an option is wrong, and then *ret_problem (may be NULL) is a static text that says
 * which. Does not connect. */
struct esi_client *esi_client_new(const struct esi_client_options *options,
                                  const char **ret_problem);

/* Gives up what is under way (it ends with CANCELLED, callbacks run), ends the session if there is
 * one, and waits for that, for the session at most two seconds. No other thread may start anything
 * any more; what a callback starts ends with CANCELLED as well. Accepts NULL. */
void esi_client_free(struct esi_client *client);

/* ---- operations ---- */

struct esi_client_bytes {
    const void *data;
    size_t size;
};

/* Epoch, incarnation and seq of a value; compared in that order. All zero: no value. */
struct esi_client_version {
    uint64_t epoch;
    uint64_t incarnation;
    uint64_t seq;
};

enum esi_client_kind {
    ESI_CLIENT_SET,
    ESI_CLIENT_STORE, /* makes what was SET durable */
    ESI_CLIENT_PUT,   /* SET and STORE in one */
    ESI_CLIENT_READ,
    ESI_CLIENT_DELETE,
    ESI_CLIENT_LOCK,   /* answers with the value */
    ESI_CLIENT_UNLOCK, /* without a lock it does nothing */
};

struct esi_client_operation {
    enum esi_client_kind kind;
    struct esi_client_bytes key;
    struct esi_client_bytes value; /* SET, PUT */
    uint32_t timeout_ms;           /* 0 = that of the options */
    bool has_if_version;           /* PUT, DELETE: only while if_version is the current version */
    struct esi_client_version if_version;
    bool stale_ok; /* READ: whatever the owner has, also when it may not be the newest */
};

enum esi_client_outcome {
    ESI_CLIENT_OK,
    ESI_CLIENT_FAILED,  /* it had no effect and will have none */
    ESI_CLIENT_UNKNOWN, /* it may have had its effect, or may still have it */
};

struct esi_client_result {
    enum esi_client_outcome outcome;
    /* FAILED, UNKNOWN */
    int code;            /* gRPC status code */
    const char *reason;  /* "KEY_NOT_LOCKED", as in the reference of reasons; "NONE" without one */
    const char *message; /* for people */
    /* OK */
    struct esi_client_version version; /* of the key after the operation */
    bool has_value;                    /* the key has one then */
    struct esi_client_bytes value;     /* READ, LOCK */
    bool stored;                       /* that version is durable */
    bool sets_lost;                    /* SETs were lost with an earlier process of the owner */
    bool replayed;                     /* the answer of an earlier attempt */
    bool stale;                        /* READ: there may be a newer value elsewhere */
};

/* In the order of the operations. Owned by whoever got them; all they point to lives with them. */
struct esi_client_results {
    size_t n_items;
    const struct esi_client_result *items;
};

/* Accepts NULL. */
void esi_client_results_free(struct esi_client_results *results);

/* Once, on a thread of the client, when all operations have ended; takes the results. Never from
 * inside esi_client_start(). */
typedef void (*esi_client_cb)(struct esi_client_results *results, void *ctx);

/* Starts them together; none at all is fine. The array is copied, keys and values are not: they
 * stay alive until the callback. */
void esi_client_start(struct esi_client *client, const struct esi_client_operation *operations,
                      size_t n_operations, esi_client_cb cb, void *ctx);

/* Starts them together and waits until all have ended. Never NULL. */
struct esi_client_results *esi_client_run(struct esi_client *client,
                                          const struct esi_client_operation *operations,
                                          size_t n_operations);

#ifdef __cplusplus
}
#endif

#endif
