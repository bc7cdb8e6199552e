/*
 * Keys between table and rows: see tasks.h. Invariant: a lock is in the list of its holder and in
 * the key's extra, or in neither. Runs under the core's lock.
 */
#include "coordinator/locks.h"
#include "coordinator/tasks.h"
#include "coordinator/watch.h"

struct coord_key_row coord_key_row_of(const struct coord_key *key)
{
    const struct coord_session *holder = coord_key_holder(key);
    struct coord_key_row row = {
        .phase = (enum coord_phase)key->phase,
        .owner = key->owner,
        .epoch = key->epoch,
        .newest_token = key->newest_token,
        .maybe_stored = key->maybe_stored,
        .key_lost = key->key_lost,
        .release_pending = key->release_pending,
        .dropping = key->dropping,
        .locked = holder != NULL,
    };

    if (holder) {
        row.session_id = holder->id;
        row.token = key->extra->token;
    }
    return row;
}

static void move_key(struct coord_core *core, struct coord_key *key, uint32_t owner)
{
    struct coord_member *from = coord_members_at(&core->members, key->owner);
    struct coord_member *to = coord_members_at(&core->members, owner);

    if (from)
        from->n_keys--;
    if (to)
        to->n_keys++;
    key->owner = (uint16_t)owner;
}

static void unlock_key(struct coord_core *core, struct coord_key *key)
{
    struct coord_session *holder = coord_key_holder(key);

    if (!holder)
        return;
    rt_list_remove(&key->extra->held_link);
    key->extra->holder = NULL;
    key->extra->token = 0;
    if (rt_list_is_empty(&holder->held))
        coord_tasks_wake(core, &holder->calls);
    coord_sessions_tidy(&core->sessions, holder);
}

static void lock_key(struct coord_core *core, struct coord_key *key,
                     const struct coord_key_row *row)
{
    struct coord_session *holder = coord_sessions_find(&core->sessions, &row->session_id);
    struct coord_key_extra *extra = coord_keys_obtain_extra(key);

    if (extra->holder == holder && extra->token == row->token)
        return;
    unlock_key(core, key);
    extra->holder = holder;
    extra->token = row->token;
    rt_list_push_back(&holder->held, &extra->held_link);
}

void coord_key_apply(struct coord_core *core, struct coord_key *key,
                     const struct coord_key_row *row)
{
    static const struct coord_key_row removed;
    bool exists = row != NULL;
    bool had_route = coord_key_has_route(key);
    bool is_moved;

    if (!row)
        row = &removed;
    is_moved = key->owner != row->owner || key->epoch != row->epoch;
    if (key->owner != row->owner)
        move_key(core, key, row->owner);
    if (!exists || row->phase == COORD_PHASE_UNPLACED)
        key->deleted = false;
    key->epoch = row->epoch;
    key->newest_token = row->newest_token;
    key->phase = (uint8_t)row->phase & 3u;
    key->maybe_stored = row->maybe_stored;
    key->key_lost = row->key_lost;
    key->release_pending = row->release_pending;
    key->dropping = row->dropping;
    coord_keys_set_exists(&core->keys, key, exists);
    if (had_route != coord_key_has_route(key) || (had_route && is_moved))
        coord_watch_key_changed(core, key);
    if (row->locked)
        lock_key(core, key, row);
    else
        unlock_key(core, key);
    coord_locks_wake(core, key);
}
