/*
 * Writes many keys with a few batches under way at any time, without waiting for any of them:
 *
 *   example-fill ADDRESS KEYS BATCH UNDER_WAY
 *
 * Each callback starts the next batch. Prints how many PUTs were ok, and ends with 1 when one was
 * not, 2 for wrong usage.
 */
#include <redistinto/client.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    KEY_SIZE = sizeof("fill:18446744073709551615")
};

struct fill {
    struct esi_client *client;
    unsigned long n_keys;
    unsigned long n_batch;
    /* Under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    unsigned long next;
    unsigned long n_ok;
    unsigned long n_running; /* batches */
};

struct batch {
    struct fill *fill;
    struct esi_client_operation *operations;
    char (*keys)[KEY_SIZE];
};

static void start_next(struct batch *batch);

static void on_ended(struct esi_client_results *results, void *ctx)
{
    struct batch *batch = ctx;
    struct fill *fill = batch->fill;
    unsigned long n_ok = 0;

    for (size_t i = 0; i < results->n_items; i++) {
        const struct esi_client_result *result = &results->items[i];

        if (result->outcome == ESI_CLIENT_OK)
            n_ok++;
        else
            fprintf(stderr, "%s: %s\n", result->reason, result->message);
    }
    esi_client_results_free(results);
    (void)pthread_mutex_lock(&fill->lock);
    fill->n_ok += n_ok;
    (void)pthread_mutex_unlock(&fill->lock);
    start_next(batch);
}

/* The numbers of the keys of the next batch; none when all are taken. */
static unsigned long take(struct fill *fill, unsigned long *ret_first)
{
    unsigned long n;

    (void)pthread_mutex_lock(&fill->lock);
    *ret_first = fill->next;
    n = fill->n_keys - fill->next < fill->n_batch ? fill->n_keys - fill->next : fill->n_batch;
    fill->next += n;
    if (n == 0 && --fill->n_running == 0)
        (void)pthread_cond_signal(&fill->ended);
    (void)pthread_mutex_unlock(&fill->lock);
    return n;
}

static void start_next(struct batch *batch)
{
    unsigned long first;
    unsigned long n = take(batch->fill, &first);

    if (n == 0)
        return;
    for (unsigned long i = 0; i < n; i++) {
        int size = snprintf(batch->keys[i], KEY_SIZE, "fill:%lu", first + i);

        batch->operations[i] = (struct esi_client_operation){
            .kind = ESI_CLIENT_PUT,
            .key = {batch->keys[i], (size_t)size},
            .value = {batch->keys[i], (size_t)size},
        };
    }
    esi_client_start(batch->fill->client, batch->operations, n, on_ended, batch);
}

static void run(struct fill *fill, unsigned long n_under_way)
{
    struct batch *batches = calloc(n_under_way, sizeof(*batches));

    if (!batches)
        abort();
    fill->n_running = n_under_way;
    for (unsigned long i = 0; i < n_under_way; i++) {
        batches[i].fill = fill;
        batches[i].operations = calloc(fill->n_batch, sizeof(*batches[i].operations));
        batches[i].keys = calloc(fill->n_batch, sizeof(*batches[i].keys));
        if (!batches[i].operations || !batches[i].keys)
            abort();
        start_next(&batches[i]);
    }
    (void)pthread_mutex_lock(&fill->lock);
    while (fill->n_running > 0)
        (void)pthread_cond_wait(&fill->ended, &fill->lock);
    (void)pthread_mutex_unlock(&fill->lock);
    for (unsigned long i = 0; i < n_under_way; i++) {
        free(batches[i].operations);
        free(batches[i].keys);
    }
    free(batches);
}

int main(int argc, char **argv)
{
    struct esi_client_options options = {.coordinator = argc > 1 ? argv[1] : NULL};
    struct fill fill = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
    unsigned long n_under_way = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;

    fill.n_keys = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    fill.n_batch = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    fill.client = esi_client_new(&options, NULL);
    if (!fill.client || fill.n_batch == 0 || n_under_way == 0) {
        fprintf(stderr, "usage: example-fill ADDRESS KEYS BATCH UNDER_WAY\n");
        esi_client_free(fill.client);
        return 2;
    }
    run(&fill, n_under_way);
    esi_client_free(fill.client);
    printf("%lu of %lu ok\n", fill.n_ok, fill.n_keys);
    return fill.n_ok == fill.n_keys ? 0 : 1;
}
