/*
 * One session at the coordinator and how it reacts to answers: the client's half of the protocol.
 *
 * Pure, same rules as the other cores: one lock, no I/O, no clock but the environment's. The
 * session opens itself, keeps itself alive, runs one statement at a time with retries (design "How
 * a client reacts"), and closes. It only makes outbound calls; shells carry EXECUTE and KEEP_ALIVE
 * over the coordinator's streams.
 *
 * An attempt ends at its call's deadline, whether or not the call has come back by then; a call
 * that comes back later is only freed. OPEN_SESSION is tried for statement_timeout_us, then the
 * session is CLOSED. A session whose lease has run out by its own clock claims nothing any more: it
 * is CLOSED with SESSION_UNKNOWN, and the statement under way is UNKNOWN if a request of it may
 * still have an effect, else FAILED.
 */
#ifndef ESI_SESSION_H
#define ESI_SESSION_H

#include "runtime/base/env.h"
#include "runtime/model/call.h"

struct esi_session_config {
    char name[MODEL_NAME_MAX + 1];
    char coordinator_address[MODEL_ADDRESS_MAX + 1];
    struct model_id client_id;     /* random, never used by another session */
    uint64_t statement_timeout_us; /* ≥ 1; for one statement, waiting for a lock aside */
    bool holds_turn;               /* a GET that waited runs again only with esi_session_go_on() */
};

enum esi_session_state {
    ESI_SESSION_OPENING,
    ESI_SESSION_OPEN, /* idle: takes the next statement */
    ESI_SESSION_BUSY,
    ESI_SESSION_CLOSING,
    ESI_SESSION_CLOSED, /* closed, expired or never opened: see the last result or failure */
};

/* What a statement of a script is for; a session takes those for the COORDINATOR alone. */
enum esi_target {
    ESI_TARGET_COORDINATOR,
    ESI_TARGET_EXPECT, /* `value` is compared with the last one that was answered */
    ESI_TARGET_SLEEP,  /* `sleep_ms` */
};

struct esi_statement {
    enum esi_target target;
    enum model_statement_kind kind; /* COORDINATOR */
    struct rt_bytes key;
    struct rt_bytes value;
    uint64_t sleep_ms;
    uint64_t round; /* of the innermost REPEAT around it, from 1; 0 = none is */
    uint32_t line;  /* in the script, from 1; 0 = none */
};

/* As scripts have it: "GET", "SET", "STORE", "READ", "PUT", "DEL", "EXPECT", "SLEEP" */
const char *esi_statement_name(const struct esi_statement *statement);

enum esi_outcome {
    ESI_OUTCOME_OK,
    ESI_OUTCOME_WAITING, /* progress only: the statement goes on */
    ESI_OUTCOME_FAILED,  /* not applied: the RoutingError says NO */
    ESI_OUTCOME_UNKNOWN, /* may have been applied */
};

/* One event of a statement. Owned by whoever took it. */
struct esi_result {
    struct rt_list link;
    struct rt_arena arena;
    struct esi_statement statement; /* borrowed as it was given */
    enum esi_outcome outcome;
    enum rt_code code;
    struct model_error error;               /* valid when code is not RT_OK */
    struct model_execute_response response; /* valid when code is RT_OK */
    uint64_t latency_us;                    /* since esi_session_execute() */
    uint32_t attempts;                      /* of the request that this answers */
};

struct esi_session;

/* `config` and `env` are copied; env->ctx must outlive the session. */
struct esi_session *esi_session_new(const struct esi_session_config *config,
                                    const struct rt_env *env);

/* Frees the session, its results and every call it made, also those that have not come back.
 * Accepts NULL, returns NULL. */
struct esi_session *esi_session_free(struct esi_session *session);

/* Once, before anything else. */
void esi_session_open(struct esi_session *session);

/* Only in state OPEN; READ, DELETE and PUT are served too, AWAIT is the session's own. Key and
 * value stay alive until the statement's last result. */
void esi_session_execute(struct esi_session *session, const struct esi_statement *statement);

/* With holds_turn: the lock that a GET waits for may be had; esi_session_go_on() runs the GET
 * again, and only then. */
bool esi_session_has_turn(const struct esi_session *session);
void esi_session_go_on(struct esi_session *session);

/* Gives up the statement under way, if any (its result is UNKNOWN or FAILED CANCELLED), and ends
 * the session. */
void esi_session_close(struct esi_session *session);

/* An outbound call has its response. Takes it back. */
void esi_session_call_done(struct esi_session *session, struct model_call *call);

/* Runs what is due. */
void esi_session_tick(struct esi_session *session);

/* When esi_session_tick() wants to be called next; RT_NEVER when nothing is due. */
uint64_t esi_session_next_wakeup_us(const struct esi_session *session);

/* To be taken after every step. */
struct model_effects *esi_session_effects(struct esi_session *session);

/* The next event, NULL when there is none. */
struct esi_result *esi_session_take_result(struct esi_session *session);
struct esi_result *esi_result_free(struct esi_result *result);

enum esi_session_state esi_session_state(const struct esi_session *session);

/* Every call that it made has come back. */
bool esi_session_is_quiet(const struct esi_session *session);

/* Whether the coordinator has said that the CLOSED session is over: its locks are released then. If
 * not, they are when its lease has run out there. */
bool esi_session_is_over(const struct esi_session *session);

/* Why the session is CLOSED without having been asked to; NULL otherwise. Its key is empty. */
const struct model_error *esi_session_failure(const struct esi_session *session);

/* The code that goes with it; RT_OK when there is no failure. */
enum rt_code esi_session_failure_code(const struct esi_session *session);

#endif
