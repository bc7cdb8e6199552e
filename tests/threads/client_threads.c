/*
 * Hammers a client of the C library from several threads at once: runs, starts whose callbacks
 * start more, and an end in the middle of it. Nobody is at the address, so that every operation
 * fails and has had no effect; exit code 0 when each of them came to an end once. A plain main():
 * Criterion does not run under ThreadSanitizer.
 */
#include "esi-client/client.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/compiler.h"

enum {
    N_THREADS = 3,
    N_ROUNDS = 30,
    N_OPERATIONS = 24,
    N_KINDS = ESI_CLIENT_UNLOCK + 1,
    TIMEOUT_MS = 20,
};

/* Batches that follow each other, each started by the callback of the one before. */
struct chain {
    struct esi_client_operation operations[N_OPERATIONS];
    unsigned n_left;
};

static struct esi_client *client;
static atomic_uint n_runs;
static atomic_uint n_callbacks;
static atomic_uint n_chains_ended;

/* All kinds, on a few keys that all threads have. */
static void fill(struct esi_client_operation operations[N_OPERATIONS], uint32_t timeout_ms)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e"};

    for (size_t i = 0; i < N_OPERATIONS; i++)
        operations[i] = (struct esi_client_operation){
            .kind = (enum esi_client_kind)(i % N_KINDS),
            .key = {keys[i % RT_ARRAY_SIZE(keys)], 1},
            .value = {"v", 1},
            .timeout_ms = timeout_ms,
        };
}

/* UNLOCK of what is not locked is fine, until the client ends. */
static void check(const struct esi_client_results *results)
{
    rt_assert(results->n_items == N_OPERATIONS);
    for (size_t i = 0; i < results->n_items; i++) {
        const struct esi_client_result *result = &results->items[i];
        bool is_unlock = i % N_KINDS == ESI_CLIENT_UNLOCK;

        rt_assert(result->outcome == ESI_CLIENT_FAILED ||
                  (is_unlock && result->outcome == ESI_CLIENT_OK));
        rt_assert(result->outcome == ESI_CLIENT_OK || strlen(result->message) > 0);
    }
}

static void on_ended(struct esi_client_results *results, void *ctx)
{
    struct chain *chain = ctx;

    check(results);
    esi_client_results_free(results);
    (void)atomic_fetch_add(&n_callbacks, 1);
    if (chain->n_left == 0) {
        (void)atomic_fetch_add(&n_chains_ended, 1);
        return;
    }
    chain->n_left--;
    esi_client_start(client, chain->operations, N_OPERATIONS, on_ended, chain);
}

static void start_chain(struct chain *chain, uint32_t timeout_ms)
{
    fill(chain->operations, timeout_ms);
    chain->n_left = N_ROUNDS - 1;
    esi_client_start(client, chain->operations, N_OPERATIONS, on_ended, chain);
}

static void *hammer(void *ctx)
{
    struct esi_client_operation operations[N_OPERATIONS];

    start_chain(ctx, TIMEOUT_MS);
    fill(operations, TIMEOUT_MS);
    for (unsigned i = 0; i < N_ROUNDS; i++) {
        struct esi_client_results *results = esi_client_run(client, operations, N_OPERATIONS);

        check(results);
        esi_client_results_free(results);
        (void)atomic_fetch_add(&n_runs, 1);
    }
    return NULL;
}

int main(void)
{
    static struct chain chains[N_THREADS];
    static struct chain dangling;
    struct esi_client_options options = {.coordinator = "unix:/nonexistent/redistinto"};
    pthread_t threads[N_THREADS];

    client = esi_client_new(&options, NULL);
    rt_assert(client);
    for (unsigned i = 0; i < N_THREADS; i++)
        rt_assert(pthread_create(&threads[i], NULL, hammer, &chains[i]) == 0);
    for (unsigned i = 0; i < N_THREADS; i++)
        rt_assert(pthread_join(threads[i], NULL) == 0);

    start_chain(&dangling, ESI_CLIENT_TIMEOUT_MS_MAX);
    esi_client_free(client);
    rt_assert(atomic_load(&n_chains_ended) == N_THREADS + 1);
    rt_assert(atomic_load(&n_callbacks) == (N_THREADS + 1) * N_ROUNDS);
    (void)printf("%u runs, %u callbacks\n", atomic_load(&n_runs), atomic_load(&n_callbacks));
    return 0;
}
