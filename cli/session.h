/*
 * A session that stays: opened, kept alive in the background, used by one statement at a time,
 * closed. The machine of esi-client/session.h behind a runtime of its own, with blocking calls in
 * front. SIGINT, SIGTERM and SIGHUP are taken while
 * there is one.
 *
 * Used by one thread. A process can have one of them, or one client (client.h), at a time.
 */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include "cli/context.h"
#include "esi-client/session.h"

struct cli_session;

enum cli_session_end {
    CLI_SESSION_LIVES,
    CLI_SESSION_LOST, /* never opened, expired or closed by somebody else: cli_session_failure() */
    CLI_SESSION_CLOSED,
};

/* Begins to open one, at the coordinator and within the timeout of the context, which bounds each
 * statement too, waiting for a lock aside. */
struct cli_session *cli_session_new(struct cli_context *context, const char *name);

/* Closes it first, and waits for that a while. Accepts NULL, returns NULL. */
struct cli_session *cli_session_free(struct cli_session *session);

/* Until it is open, lost or interrupted; true when it is open. */
RT_MUST_USE bool cli_session_wait_open(struct cli_session *session);

/* Until it is lost, interrupted, or `timeout_ms` are over; 0 is forever. */
void cli_session_wait(struct cli_session *session, uint64_t timeout_ms);

/* Runs one statement, whose key and value stay alive meanwhile, to its last result, which is the
 * caller's to free. `on_waiting` gets the holder of the lock each time that it begins to wait. An
 * interrupt gives the statement up and closes the session, so that it leaves nothing locked. NULL:
 * the session had ended before. */
struct esi_result *cli_session_execute(struct cli_session *session,
                                       const struct esi_statement *statement,
                                       void (*on_waiting)(const char *holder, void *ctx),
                                       void *ctx);

/* Closes it and waits for that, with everything it has locked. */
void cli_session_close(struct cli_session *session);

enum cli_session_end cli_session_end(struct cli_session *session);

/* Whether the coordinator said that it has ended, so that its locks are released. */
bool cli_session_is_over(struct cli_session *session);

/* Why it was lost. */
struct model_response cli_session_failure(struct cli_session *session);

/* Once it has been open. */
struct model_id cli_session_id(struct cli_session *session);
uint64_t cli_session_lease_ms(struct cli_session *session);

/* The signal that came last since this was asked, 0 = none. */
int cli_session_take_interrupt(struct cli_session *session);

/* Can be read, for poll(), from when there is an interrupt or the session has ended, until
 * cli_session_take_interrupt(). */
int cli_session_news_fd(const struct cli_session *session);

#endif
