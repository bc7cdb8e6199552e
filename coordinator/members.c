/*
 * Members: see members.h. Invariant: by_name and by_ordinal hold the same members, and candidates
 * is what is alive of them, each with what it will have left. Runs under the core's lock.
 */
#include "coordinator/members.h"

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
void coord_members_deinit(struct coord_members *members)
{
    struct coord_member *member;
    struct coord_member *next;

    HASH_ITER (hh, members->by_name, member, next) {
        HASH_DEL(members->by_name, member);
        (void)rt_free(member);
    }
    *members = (struct coord_members){0};
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
struct coord_member *coord_members_find(const struct coord_members *members, const char *name)
{
    struct coord_member *member;

    HASH_FIND_STR(members->by_name, name, member);
    return member;
}

struct coord_member *coord_members_at(const struct coord_members *members, uint32_t ordinal)
{
    return ordinal <= MODEL_MEMBERS_MAX ? members->by_ordinal[ordinal] : NULL;
}

struct coord_member *coord_members_find_store(const struct coord_members *members,
                                              const struct model_id *store_id)
{
    for (uint32_t ordinal = 1; ordinal <= members->last_ordinal; ordinal++) {
        struct coord_member *member = members->by_ordinal[ordinal];

        if (member && model_id_equal(&member->row.store_id, store_id))
            return member;
    }
    return NULL;
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
struct coord_member *coord_members_add(struct coord_members *members, const char *name,
                                       uint32_t ordinal)
{
    struct coord_member *member = rt_xalloc(sizeof(*member));

    rt_assert(ordinal >= 1 && ordinal <= MODEL_MEMBERS_MAX && !members->by_ordinal[ordinal]);
    (void)strncpy(member->name, name, sizeof(member->name) - 1);
    member->row.ordinal = ordinal;
    member->row.state = MODEL_MEMBER_LEFT;
    rt_list_init(&member->parked);
    HASH_ADD_STR(members->by_name, name, member);
    members->by_ordinal[ordinal] = member;
    if (ordinal > members->last_ordinal)
        members->last_ordinal = ordinal;
    return member;
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
void coord_members_remove(struct coord_members *members, struct coord_member *member)
{
    rt_assert(member->row.ordinal == members->last_ordinal);
    members->by_ordinal[member->row.ordinal] = NULL;
    members->last_ordinal--;
    HASH_DEL(members->by_name, member);
    (void)rt_free(member);
}

static uint64_t free_soon(const struct coord_member *member)
{
    return member->entries_free > member->entries_expected
               ? member->entries_free - member->entries_expected
               : 0;
}

void coord_members_refresh(struct coord_members *members)
{
    members->n_candidates = 0;
    for (uint32_t ordinal = 1; ordinal <= members->last_ordinal; ordinal++) {
        struct coord_member *member = members->by_ordinal[ordinal];

        if (!member)
            continue;
        member->candidate = 0;
        if (member->row.state != MODEL_MEMBER_ALIVE || member->ending)
            continue;
        members->candidates[members->n_candidates++] =
            (struct coord_candidate){.ordinal = ordinal, .entries_free = free_soon(member)};
        member->candidate = members->n_candidates;
    }
}

static void update_candidate(struct coord_members *members, const struct coord_member *member)
{
    if (member->candidate != 0)
        members->candidates[member->candidate - 1].entries_free = free_soon(member);
}

void coord_members_set_free(struct coord_members *members, struct coord_member *member,
                            uint64_t entries_free)
{
    member->entries_free = entries_free;
    update_candidate(members, member);
}

void coord_members_expect(struct coord_members *members, struct coord_member *member,
                          uint64_t n_entries)
{
    member->entries_expected += n_entries;
    update_candidate(members, member);
}

void coord_members_expect_less(struct coord_members *members, struct coord_member *member,
                               uint64_t n_entries)
{
    rt_assert(member->entries_expected >= n_entries);
    member->entries_expected -= n_entries;
    update_candidate(members, member);
}
