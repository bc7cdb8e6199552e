/*
 * Runs one script over one session: opens it, executes the statements in order, stops at the first
 * one that did not succeed, closes the session. Locks that the script still holds are freed by the
 * end of its session. SLEEP and EXPECT are the runner's own; EXPECT compares with what the last GET
 * or READ of the script answered, and a key without value is no match for anything.
 *
 * Pure, same rules as the other cores: one lock, no I/O, no clock but the environment's. Results
 * come in order through a queue, a WAITING event before the result of the statement that waited.
 */
#ifndef ESI_RUNNER_H
#define ESI_RUNNER_H

#include "esi-client/cursor.h"
#include "esi-client/session.h"

enum esi_script_state {
    ESI_SCRIPT_RUNNING,
    ESI_SCRIPT_OK,
    ESI_SCRIPT_FAILED,       /* a statement failed, or its lock was lost before its STORE */
    ESI_SCRIPT_UNKNOWN,      /* a statement may have been applied */
    ESI_SCRIPT_ABORTED,      /* esi_runner_stop() */
    ESI_SCRIPT_SESSION_LOST, /* never opened, expired or ended by the coordinator */
};

/* "running", "ok", "failed", "unknown", "aborted", "session_lost" */
const char *esi_script_state_name(enum esi_script_state state);

/* What a script has come to so far, final once esi_runner_is_done(). */
struct esi_summary {
    enum esi_script_state state;
    bool opened;           /* there was a session */
    uint64_t n_statements; /* of a run that succeeds, every round counted */
    uint64_t n_ok;
    uint64_t n_waits;         /* times a GET had to wait for its lock */
    uint64_t n_sets_lost;     /* answers that said that earlier SETs are gone */
    uint64_t n_attempts;      /* requests for statements, retries included */
    uint32_t line;            /* of the statement that ended the script; 0 = none did */
    uint64_t round;           /* and its round, 0 = it is in no REPEAT */
    bool lock_lost;           /* that statement is durable, but its lock had gone to another */
    enum rt_code code;        /* of the statement or session that ended the script */
    struct model_error error; /* when code is not RT_OK; its key is empty */
    uint64_t duration_us;     /* from start to the end of the session */
};

struct esi_runner;

/* `script` is borrowed until the runner and its results are freed; the rest is copied. `seed` is of
 * what the script draws. */
struct esi_runner *esi_runner_new(const struct esi_script *script,
                                  const struct esi_session_config *config, uint64_t seed,
                                  const struct rt_env *env);

/* As esi_session_free(). Accepts NULL, returns NULL. */
struct esi_runner *esi_runner_free(struct esi_runner *runner);

/* Once. */
void esi_runner_start(struct esi_runner *runner);

/* Before the start: no statement is begun but with esi_runner_grant(), and a GET that waited is not
 * run again without it. */
void esi_runner_plan(struct esi_runner *runner);

/* Of a planned runner: between two statements it begins the next one; one whose turn has come
 * (esi_runner_has_turn) runs its GET again. Not while a statement runs. */
void esi_runner_grant(struct esi_runner *runner);

/* A GET waits, and the lock may be had. */
bool esi_runner_has_turn(const struct esi_runner *runner);

/* Of a planned runner between two statements: a GET of this key that is not in the script. It has a
 * result with line 0, which counts for nothing: if it fails, the script goes on. The key is copied.
 * Does nothing when the session is not open. */
void esi_runner_lock(struct esi_runner *runner, struct rt_bytes key);

/* Held, it begins no statement, so that results that nobody takes do not pile up; let go, it goes
 * on.
 */
void esi_runner_hold(struct esi_runner *runner, bool held);

/* Ends the script early: the statement under way is given up, the session closed. */
void esi_runner_stop(struct esi_runner *runner);

/* As those of the session. */
void esi_runner_call_done(struct esi_runner *runner, struct model_call *call);
void esi_runner_tick(struct esi_runner *runner);
uint64_t esi_runner_next_wakeup_us(const struct esi_runner *runner);
struct model_effects *esi_runner_effects(struct esi_runner *runner);

/* The next result, NULL when there is none; the caller frees it. */
struct esi_result *esi_runner_take_result(struct esi_runner *runner);

/* The session is closed, and every call has come back: it may be freed. */
bool esi_runner_is_quiet(const struct esi_runner *runner);

/* The session is closed: nothing more will happen. Results may still be waiting to be taken. */
bool esi_runner_is_done(const struct esi_runner *runner);

const struct esi_summary *esi_runner_summary(const struct esi_runner *runner);

#endif
