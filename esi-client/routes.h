/*
 * What a client remembers of where keys live: key → {owner, incarnation, epoch, address}.
 *
 * Bounded: at most n_max keys, the least recently used one goes first. A key never goes back to a
 * lower epoch while it is remembered, an owner never to a lower incarnation. A route that was
 * refused is doubted, an owner that did not answer is suspect: neither is found again until the
 * coordinator has confirmed or replaced it. Wrong routes cost a round trip and nothing else: owners
 * validate every request.
 *
 * The incarnation belongs to the owner, not to the key: after a restart of an owner one answer
 * corrects the routes of all its keys. Pure, not thread safe; aborts when memory is out (a few
 * words, a key and a name for each).
 */
#ifndef ESI_ROUTES_H
#define ESI_ROUTES_H

#include "runtime/base/list.h"
#include "runtime/model/message.h"

struct esi_routes_key;
struct esi_routes_owner;

struct esi_routes {
    struct esi_routes_key *by_key;     /* owned */
    struct esi_routes_owner *by_owner; /* owned; each has a key */
    struct rt_list by_use;             /* esi_routes_key.link, least recently used first */
    size_t n_max;
};

struct esi_route {
    const char *owner; /* borrowed until the routes change */
    const char *address;
    uint64_t incarnation;
    uint64_t epoch;
    bool
        for_writes; /* the coordinator gave this epoch out for writes, so it keeps what is stored */
};

/* n_max ≥ 1 */
void esi_routes_init(struct esi_routes *routes, size_t n_max);
void esi_routes_deinit(struct esi_routes *routes);

size_t esi_routes_count(const struct esi_routes *routes);

/* A route that may be used, which counts as a use of it. False when there is none, or it is doubted
 * or its owner suspect. */
bool esi_routes_find(struct esi_routes *routes, struct rt_bytes key, struct esi_route *ret_route);

/* The epoch that is remembered, usable or not; 0 when there is none. */
uint64_t esi_routes_epoch(const struct esi_routes *routes, struct rt_bytes key);

/* What the coordinator says. Ignored when it is older than what is remembered; when it is the same,
 * doubt and suspicion end. */
void esi_routes_learn(struct esi_routes *routes, struct rt_bytes key,
                      const struct esi_route *route);

/* What somebody else says. Taken only when it is newer, and then true: a higher epoch, or a higher
 * incarnation of the owner. A higher epoch is not known to be for writes. */
bool esi_routes_take_hint(struct esi_routes *routes, struct rt_bytes key,
                          const struct model_hint *hint);

/* This life of the owner answered. Nothing when the owner is not remembered; `address` NULL keeps
 * the one that is. */
void esi_routes_see_owner(struct esi_routes *routes, const char *owner, const char *address,
                          uint64_t incarnation);

/* The route was refused, or is no more. Nothing when a newer one is remembered. */
void esi_routes_doubt(struct esi_routes *routes, struct rt_bytes key, uint64_t epoch,
                      uint64_t incarnation);

/* This life of the owner did not answer. Nothing when a later one is remembered. */
void esi_routes_suspect(struct esi_routes *routes, const char *owner, uint64_t incarnation);

#endif
