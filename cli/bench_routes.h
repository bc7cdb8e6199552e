/*
 * Where the keys of a load live, and the operations that wait for a batch to their owner. Keys are
 * numbers. Pure; one thread at a time.
 */
#ifndef CLI_BENCH_ROUTES_H
#define CLI_BENCH_ROUTES_H

#include "runtime/model/message.h"

struct cli_bench_operation {
    uint64_t intended_us; /* its latency counts from here */
    uint64_t epoch;       /* set when it waits for its owner */
    uint32_t key;
    uint32_t value_size;
    bool is_read;
};

/* One life of one instance. Stays where it is. */
struct cli_bench_owner {
    struct model_route route;            /* without epoch, which belongs to a key */
    struct cli_bench_operation *waiting; /* owned: fewer than a batch, except on the way out */
    uint32_t n_waiting;
};

struct cli_bench_key {
    uint64_t epoch;
    uint32_t owner; /* index + 1; 0 = no route is known */
};

struct cli_bench_routes {
    struct cli_bench_key *keys; /* owned */
    uint64_t n_keys;
    struct cli_bench_owner **owners; /* owned */
    uint32_t n_owners;
    uint32_t batch;
    uint64_t n_waiting; /* of all owners */
};

/* batch: at least 1; operations of one batch. */
void cli_bench_routes_init(struct cli_bench_routes *routes, uint64_t n_keys, uint32_t batch);
void cli_bench_routes_deinit(struct cli_bench_routes *routes);

/* NULL when no route is known. */
struct cli_bench_owner *cli_bench_routes_find(const struct cli_bench_routes *routes, uint32_t key);

struct cli_bench_owner *cli_bench_routes_learn(struct cli_bench_routes *routes, uint32_t key,
                                               const struct model_route *route);
void cli_bench_routes_forget(struct cli_bench_routes *routes, uint32_t key);

/* True when a batch is complete: take it before the next one is added. */
bool cli_bench_routes_add(struct cli_bench_routes *routes, struct cli_bench_owner *owner,
                          const struct cli_bench_operation *operation);

/* Moves what waits for this owner to ret_operations, room for a batch; returns how many. */
uint32_t cli_bench_routes_take(struct cli_bench_routes *routes, struct cli_bench_owner *owner,
                               struct cli_bench_operation *ret_operations);

/* Any owner for which something waits; NULL when there is none. */
struct cli_bench_owner *cli_bench_routes_next(const struct cli_bench_routes *routes);

#endif
