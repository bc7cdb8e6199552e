/*
 * One statement of a verb, in a session of its own or in one that somebody else keeps alive, with
 * what belongs to it: the retries that the answers allow, waiting for a lock, and, in a session of
 * its own, taking the lock that the statement turns out to need.
 *
 * A session of its own is closed in any case, also after an interrupt, so that nothing stays
 * locked. In a given session a GET that was interrupted leaves at most its place in the queue,
 * which lapses when its turn comes, unless it was answered at that very moment.
 *
 * Used by the client's thread.
 */
#ifndef CLI_STATEMENT_H
#define CLI_STATEMENT_H

#include "cli/client.h"

/* All borrowed. */
struct cli_statement {
    enum model_statement_kind kind; /* not AWAIT */
    struct rt_bytes key;
    struct rt_bytes value;             /* SET, PUT */
    const struct model_id *session_id; /* NULL: a session of its own */
    bool has_last_set;                 /* STORE */
    struct model_version last_set;
    bool has_if_version; /* PUT, DELETE */
    struct model_version if_version;
    bool must_not_wait; /* a lock that another session holds: KEY_NOT_LOCKED */
};

/* GET in a session of its own does not create a key. The call has the last answer, and is the
 * caller's to free; `applied` of a failure is that of all attempts together. */
struct model_call *cli_statement_run(struct cli_context *context, struct cli_client *client,
                                     const struct cli_statement *statement);

/* Reports the failure of a statement and returns the exit code for it; writes are changes. */
enum model_exit cli_statement_report(const struct cli_client *client,
                                     const struct cli_statement *statement,
                                     const struct model_response *response);

#endif
