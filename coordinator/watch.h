/*
 * WatchRoutes: who is told which routes have changed.
 *
 * The core keeps one ring of the newest changes; a change names a key or a member, and what is sent
 * is its state at the moment of sending. A watch is nothing but a cursor that comes with each call
 * (model_watch_cursor): watches cost the core nothing while they are not in a call, however many.
 * One that is new, or fell behind the ring, begins with `reset` and goes through the whole key
 * table; meanwhile it is told of changes as well, so nothing is missed.
 *
 * The ring is made by the first watch. Everything here runs under the core's lock.
 */
#ifndef COORD_WATCH_H
#define COORD_WATCH_H

#include "coordinator/tasks.h"

enum {
    COORD_WATCH_CHANGES_MAX = 4096 /* that a watch may be behind */
};

struct coord_change {
    uint64_t version; /* placement version when it was committed */
    uint32_t ordinal; /* of the member; 0 = it is about a key */
    uint8_t size;
    uint8_t key[MODEL_KEY_MAX];
};

void coord_watch_init(struct coord_watch *watch);
void coord_watch_deinit(struct coord_watch *watch);

/* The call WATCH_ROUTES: answers as soon as there is something to tell. */
void coord_watch_routes(struct coord_core *core, struct coord_task *task);

/* The route of a key, or a member, is another one now. */
void coord_watch_key_changed(struct coord_core *core, const struct coord_key *key);
void coord_watch_member_changed(struct coord_core *core, const struct coord_member *member);

#endif
