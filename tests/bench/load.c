/*
 * Unary calls, so many at a time over one connection, for a number of seconds: the one C client for
 * every server that is compared through a client. Prints one JSON object.
 *
 *   bench_load set|put|etcd ADDRESS IN_FLIGHT SECONDS KEYS_FILE [OWNER INCARNATION CLUSTER_HEX]
 *
 * A line of the file is a key and the number of its ownership; the keys are written in turn, with
 * values of 100 bytes. What is finished in the first fifth of the time warms up and is not counted.
 * Callbacks run on the queue thread and touch what is under `lock`; a slot carries one call and
 * starts the next one when it ends.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/histogram.h"
#include "redistinto/v1/instance.pb-c.h"
#include "runtime/base/alloc.h"
#include "runtime/base/bytes.h"
#include "runtime/rpc/client.h"
#include "tests/bench/etcd.pb-c.h"

enum {
    VALUE_SIZE = 100,
    IN_FLIGHT_MAX = 1024,
    SECONDS_MAX = 600,
    TIMEOUT_MS = 10000,
    ID_SIZE = 16,
};

struct key {
    char *name; /* owned */
    uint64_t epoch;
};

struct load;

struct slot {
    struct load *load;
    uint64_t started_ns;
    Redistinto__V1__OperationHeader header;
    Redistinto__V1__InstanceServiceSetRequest set;
    Redistinto__V1__InstanceServicePutRequest put;
    Etcdserverpb__PutRequest etcd;
};

struct load {
    ProtobufCMessage *(*fill)(struct slot *slot, const struct key *key);
    struct rpc_client_method method;
    struct rpc_runtime *runtime;
    struct rpc_channel *channel;
    char *owner;
    uint64_t incarnation;
    uint8_t cluster_id[ID_SIZE];
    uint8_t value[VALUE_SIZE];
    struct key *keys; /* owned */
    size_t n_keys;
    struct slot *slots; /* owned */
    size_t n_slots;
    pthread_t loop_thread;

    pthread_mutex_t lock;
    pthread_cond_t idle; /* n_active is 0 */
    size_t n_active;
    uint64_t n_started;
    uint64_t n_done;   /* all */
    uint64_t n_failed; /* all */
    uint64_t count_from_ns;
    uint64_t end_ns;
    char failure[RT_ERROR_MESSAGE_MAX + 1]; /* the first */
    struct cli_histogram *latency_ns;       /* owned; of what is counted */
};

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

RT_NORETURN static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_load: %s\n", what);
    exit(1);
}

/* ---- requests -------------------------------------------------------------------------------- */

static ProtobufCBinaryData value_of(struct slot *slot)
{
    return (ProtobufCBinaryData){VALUE_SIZE, slot->load->value};
}

static ProtobufCBinaryData name_of(const struct key *key)
{
    return (ProtobufCBinaryData){strlen(key->name), (uint8_t *)key->name};
}

static void fill_header(struct slot *slot, const struct key *key)
{
    Redistinto__V1__OperationHeader *header = &slot->header;

    redistinto__v1__operation_header__init(header);
    header->cluster_id = (ProtobufCBinaryData){ID_SIZE, slot->load->cluster_id};
    header->key = name_of(key);
    header->epoch = key->epoch;
    header->owner = slot->load->owner;
    header->incarnation = slot->load->incarnation;
}

static ProtobufCMessage *fill_set(struct slot *slot, const struct key *key)
{
    fill_header(slot, key);
    redistinto__v1__instance_service_set_request__init(&slot->set);
    slot->set.header = &slot->header;
    slot->set.value = value_of(slot);
    return &slot->set.base;
}

static ProtobufCMessage *fill_put(struct slot *slot, const struct key *key)
{
    fill_header(slot, key);
    redistinto__v1__instance_service_put_request__init(&slot->put);
    slot->put.header = &slot->header;
    slot->put.value = value_of(slot);
    return &slot->put.base;
}

static ProtobufCMessage *fill_etcd(struct slot *slot, const struct key *key)
{
    etcdserverpb__put_request__init(&slot->etcd);
    slot->etcd.key = name_of(key);
    slot->etcd.value = value_of(slot);
    return &slot->etcd.base;
}

static void choose_call(struct load *load, const char *name)
{
    static const struct {
        const char *name;
        const ProtobufCServiceDescriptor *service;
        const char *method;
        ProtobufCMessage *(*fill)(struct slot *slot, const struct key *key);
    } calls[] = {
        {"set", &redistinto__v1__instance_service__descriptor, "Set", fill_set},
        {"put", &redistinto__v1__instance_service__descriptor, "Put", fill_put},
        {"etcd", &etcdserverpb__kv__descriptor, "Put", fill_etcd},
    };

    for (size_t i = 0; i < RT_ARRAY_SIZE(calls); i++) {
        if (strcmp(calls[i].name, name) != 0)
            continue;
        load->fill = calls[i].fill;
        rpc_client_method_of(calls[i].service, calls[i].method, &load->method);
        return;
    }
    fail("no such call");
}

/* ---- the load -------------------------------------------------------------------------------- */

static void on_done(struct rpc_client_call *call, const ProtobufCMessage *response,
                    const struct rt_error *err, void *ctx);

/* Under the lock. */
static void start(struct slot *slot, uint64_t at_ns)
{
    static const struct rpc_client_options options = {.timeout_ms = TIMEOUT_MS,
                                                      .wait_for_ready = true};
    struct load *load = slot->load;
    const struct key *key = &load->keys[load->n_started++ % load->n_keys];

    slot->started_ns = at_ns;
    rpc_client_call(load->channel, &load->method, load->fill(slot, key), &options, on_done, slot);
}

static void on_done(struct rpc_client_call *call, const ProtobufCMessage *response,
                    const struct rt_error *err, void *ctx)
{
    struct slot *slot = ctx;
    struct load *load = slot->load;
    uint64_t at_ns = now_ns();

    (void)call;
    (void)response;
    (void)pthread_mutex_lock(&load->lock);
    load->n_done++;
    if (err != NULL && load->n_failed++ == 0)
        (void)snprintf(load->failure, sizeof(load->failure), "%s", err->message);
    if (at_ns >= load->count_from_ns && at_ns < load->end_ns && err == NULL)
        cli_histogram_record(load->latency_ns, at_ns - slot->started_ns);
    if (at_ns < load->end_ns && load->n_failed == 0) {
        start(slot, at_ns);
    } else {
        load->n_active--;
        (void)pthread_cond_signal(&load->idle);
    }
    (void)pthread_mutex_unlock(&load->lock);
}

static void *run_loop(void *ctx)
{
    struct load *load = ctx;

    rpc_runtime_run(load->runtime);
    return NULL;
}

static void run(struct load *load, const char *address, double seconds)
{
    uint64_t begin_ns = now_ns();
    uint64_t length_ns = (uint64_t)(seconds * 1e9);

    load->runtime = rpc_runtime_new(NULL);
    load->channel = rpc_channel_new(load->runtime, address, NULL);
    load->count_from_ns = begin_ns + length_ns / 5;
    load->end_ns = begin_ns + length_ns;
    if (pthread_create(&load->loop_thread, NULL, run_loop, load) != 0)
        fail("no thread");
    (void)pthread_mutex_lock(&load->lock);
    load->n_active = load->n_slots;
    for (size_t i = 0; i < load->n_slots; i++)
        start(&load->slots[i], begin_ns);
    while (load->n_active > 0)
        (void)pthread_cond_wait(&load->idle, &load->lock);
    (void)pthread_mutex_unlock(&load->lock);
    rpc_runtime_stop(load->runtime);
    (void)pthread_join(load->loop_thread, NULL);
    load->runtime = rpc_runtime_free(load->runtime);
}

static void print(const struct load *load)
{
    double seconds = (double)(load->end_ns - load->count_from_ns) / 1e9;

    (void)printf("{\"calls\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"rate\": %.1f, "
                 "\"p50_us\": %.1f, \"p99_us\": %.1f}\n",
                 load->n_done, load->n_failed, (double)load->latency_ns->n / seconds,
                 (double)cli_histogram_percentile(load->latency_ns, 500000) / 1000,
                 (double)cli_histogram_percentile(load->latency_ns, 990000) / 1000);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void read_keys(struct load *load, const char *path)
{
    FILE *file = fopen(path, "r");
    char name[256];
    uint64_t epoch;

    if (file == NULL)
        fail("the file of keys cannot be read");
    while (fscanf(file, "%255s %" SCNu64, name, &epoch) == 2) {
        load->keys = rt_xrealloc(load->keys, (load->n_keys + 1) * sizeof(*load->keys));
        load->keys[load->n_keys++] = (struct key){rt_xstrdup(name), epoch};
    }
    (void)fclose(file);
    if (load->n_keys == 0)
        fail("the file of keys is empty");
}

static void read_cluster_id(struct load *load, const char *hex)
{
    if (strlen(hex) != 2 * (size_t)ID_SIZE)
        fail("the id of the cluster has 32 digits");
    for (size_t i = 0; i < ID_SIZE; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};

        load->cluster_id[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

static void make_slots(struct load *load, long n)
{
    if (n < 1 || n > IN_FLIGHT_MAX)
        fail("calls in flight: 1..1024");
    load->n_slots = (size_t)n;
    load->slots = rt_xalloc(load->n_slots * sizeof(*load->slots));
    for (size_t i = 0; i < load->n_slots; i++)
        load->slots[i].load = load;
}

int main(int argc, char **argv)
{
    struct load load = {.owner = argc == 9 ? argv[6] : NULL};
    double seconds = argc >= 6 ? strtod(argv[4], NULL) : 0;

    if (argc != 6 && argc != 9)
        fail("set|put|etcd ADDRESS IN_FLIGHT SECONDS KEYS_FILE [OWNER INCARNATION CLUSTER_HEX]");
    if (!(seconds > 0 && seconds <= SECONDS_MAX))
        fail("seconds: above 0, at most 600");
    choose_call(&load, argv[1]);
    make_slots(&load, strtol(argv[3], NULL, 10));
    read_keys(&load, argv[5]);
    if (argc == 9) {
        load.incarnation = strtoull(argv[7], NULL, 10);
        read_cluster_id(&load, argv[8]);
    }
    memset(load.value, 'v', sizeof(load.value));
    (void)pthread_mutex_init(&load.lock, NULL);
    (void)pthread_cond_init(&load.idle, NULL);
    load.latency_ns = rt_xalloc(sizeof(*load.latency_ns));
    run(&load, argv[2], seconds);
    print(&load);
    if (load.n_failed > 0)
        (void)fprintf(stderr, "bench_load: %s\n", load.failure);
    for (size_t i = 0; i < load.n_keys; i++)
        (void)rt_free(load.keys[i].name);
    (void)rt_free(load.keys);
    (void)rt_free(load.slots);
    (void)rt_free(load.latency_ns);
    return load.n_failed > 0;
}
