/*
 * The instances that the coordinator remembers, in registration order. A name is never forgotten:
 * one that rejoins keeps its place. Only the table; the decisions are in registry.c.
 *
 * Members do not move and live as long as the table. Not thread safe.
 */
#ifndef COORD_MEMBERS_H
#define COORD_MEMBERS_H

#include "coordinator/placement.h"
#include "coordinator/rows.h"
#include "coordinator/timers.h"
#include "runtime/base/list.h"
#include "runtime/base/map.h"

/* Where a member's reconcile stands; of its current incarnation. */
struct coord_reconcile {
    uint32_t round;     /* 0 = none begun; keys that were reported carry it */
    uint64_t next_part; /* that is expected */
    bool listed;        /* all held rows were reported */
    size_t position;    /* of the walk through the key table */
    uint64_t layout;    /* of the key table when the walk began */
    bool skipped;       /* the walk passed by a key that was being changed */
};

struct coord_member {
    UT_hash_handle hh;
    char name[MODEL_NAME_MAX + 1];
    struct coord_member_row row; /* as committed */
    bool ending;                 /* this incarnation's end was submitted: no Renew is granted */
    bool busy;                   /* a transaction about this member is under way */
    uint64_t last_grant_us;
    uint64_t takeover_us;      /* the last immediate takeover; 0 = none */
    bool is_frozen;            /* a second takeover was refused, and that was logged */
    uint64_t entries_free;     /* as it said last */
    uint64_t entries_expected; /* that values on their way to it will take */
    size_t candidate;          /* index of it among the candidates, from 1; 0 = it is none */
    size_t n_keys;             /* that the key table attributes to it */
    size_t n_evictions;        /* keys under way out of the table, as its Renew told */
    struct coord_reconcile reconcile;
    struct coord_timer timer; /* when it may be declared dead */
    struct rt_list parked;    /* coord_task.wait_link: until its state changes */
};

struct coord_members {
    struct coord_member *by_name;                           /* uthash, owned */
    struct coord_member *by_ordinal[MODEL_MEMBERS_MAX + 1]; /* 0 is unused */
    struct coord_candidate candidates[MODEL_MEMBERS_MAX];   /* alive, by rising ordinal */
    size_t n_candidates;
    uint32_t last_ordinal;
};

void coord_members_deinit(struct coord_members *members);

struct coord_member *coord_members_find(const struct coord_members *members, const char *name);

/* NULL for an ordinal that nobody has. */
struct coord_member *coord_members_at(const struct coord_members *members, uint32_t ordinal);

struct coord_member *coord_members_find_store(const struct coord_members *members,
                                              const struct model_id *store_id);

/* `name` and `ordinal` (1..MODEL_MEMBERS_MAX) are not taken. */
struct coord_member *coord_members_add(struct coord_members *members, const char *name,
                                       uint32_t ordinal);

/* Takes back what was added last. */
void coord_members_remove(struct coord_members *members, struct coord_member *member);

/* To be called after a member's state has changed. */
void coord_members_refresh(struct coord_members *members);

/* The member says how many entries it has left. */
void coord_members_set_free(struct coord_members *members, struct coord_member *member,
                            uint64_t entries_free);

/* A value of this many entries is on its way to the member, or has arrived there or is not coming:
 * what was expected is taken back with the same number. */
void coord_members_expect(struct coord_members *members, struct coord_member *member,
                          uint64_t n_entries);
void coord_members_expect_less(struct coord_members *members, struct coord_member *member,
                               uint64_t n_entries);

static inline bool coord_member_is_live(const struct coord_member *member)
{
    return member->row.state == MODEL_MEMBER_ALIVE || member->row.state == MODEL_MEMBER_JOINING;
}

#endif
