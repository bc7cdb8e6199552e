/*
 * Sessions come and go: OpenSession, KeepAlive, CloseSession and expiry, and what the end of a
 * session leaves to do. Functions that take a task are its steps.
 */
#ifndef COORD_SESSION_CALLS_H
#define COORD_SESSION_CALLS_H

#include "coordinator/tasks.h"

void coord_session_open(struct coord_core *core, struct coord_task *task);
void coord_session_keep_alive(struct coord_core *core, struct coord_task *task);
void coord_session_close(struct coord_core *core, struct coord_task *task);

/* NULL unless the session is open. Its lease begins anew. */
struct coord_session *coord_session_touch(struct coord_core *core, const struct model_id *id);

/* A new term has begun: every session has a full new lease, and locks of sessions that are not
 * there are released, or stay kept. */
void coord_session_start(struct coord_core *core);

/* ---- release.c --------------------------------------------------------------------------------*/

/* The session has ended and holds the key: frees the lock under a fresh token, which the owner is
 * told until it knows, another grant comes, or it is dead. */
void coord_release_begin(struct coord_core *core, struct coord_key *key);

/* The step of Unlock: the same for one grant of a session that lives. Answered when the owner was
 * told, or could not be. */
void coord_release_unlock(struct coord_core *core, struct coord_task *task);

/* The step of FREE_LOCK: the same for the lock of whoever holds the key. */
void coord_release_free(struct coord_core *core, struct coord_task *task);

/* Only the last part: for a row that says so at the start of a term. */
void coord_release_resume(struct coord_core *core, struct coord_key *key);

/* The key's value was deleted: when it is free and still without a value, its owner drops it and
 * its row goes. coord_drop_run() is the same as the step of a task that has the latch, and answers
 * its call; coord_drop_begin() starts one of its own. */
void coord_drop_begin(struct coord_core *core, struct coord_key *key);
void coord_drop_run(struct coord_core *core, struct coord_task *task);

#endif
