/*
 * What one operation costs inside the instance core, without a network: the checks alone, a whole
 * SET with and without a request id, a READ, and a SET at an instance that is large and nearly
 * full. Prints nanoseconds; judges nothing. One thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "instance/checks.h"
#include "instance/core.h"
#include "instance/state.h"

enum {
    N_KEYS = 10000,
    N_CHECKS = 20000000,
    N_OPERATIONS = 2000000,
    STRIDE = 7919,
    N_FULL_KEYS = 900,
    N_OWNED = 900000,
    N_ROUNDS = 20,
    EPOCH = 50,
    INCARNATION = 100,
    LEASE_MS = 3600000,
};

static uint64_t clock_us(void *ctx)
{
    struct timespec now;

    (void)ctx;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t no_random(void *ctx)
{
    (void)ctx;
    return 1;
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void print(const char *what, double ns)
{
    (void)printf("%-36s %7.1f ns\n", what, ns);
}

/* ---- a core that serves ---- */

/* Commits at once and answers what the instance asks of its coordinator. */
static void settle(struct inst_core *core, struct rt_list *ret_replies)
{
    struct model_effects taken;
    struct rt_list *node;

    model_effects_take(inst_core_effects(core), &taken);
    rt_list_splice_back(ret_replies, &taken.replies);
    while ((node = rt_list_pop_front(&taken.txns))) {
        struct store_txn *txn = RT_LIST_ENTRY(node, struct store_txn, link);

        txn->outcome = STORE_COMMITTED;
        inst_core_txn_done(core, txn);
    }
    while ((node = rt_list_pop_front(&taken.calls))) {
        struct model_call *call = RT_LIST_ENTRY(node, struct model_call, link);

        model_response_ok(&call->response, call->request.kind);
        call->response.responder.term = 1;
        if (call->request.kind == MODEL_CALL_REGISTER)
            call->response.reg = (struct model_register_response){
                .cluster_id = {{1}},
                .incarnation = INCARNATION,
                .lease_ms = LEASE_MS,
                .key_max = MODEL_KEY_MAX,
            };
        else if (call->request.kind == MODEL_CALL_RECONCILE)
            call->response.reconcile.done = true;
        else
            call->response.renew.lease_ms = LEASE_MS;
        inst_core_call_done(core, call);
    }
}

static struct inst_core *serving_core(const struct rt_env *env, uint64_t n_entries,
                                      struct rt_list *replies)
{
    struct inst_config config = {.name = "a",
                                 .address = "a:1",
                                 .coordinator_address = "c:1",
                                 .entries_total = n_entries,
                                 .entry_size = 128};
    struct inst_core *core;
    uint64_t heartbeat;

    if (inst_core_new(&config, env, &core, NULL) != RT_OK)
        return NULL;
    inst_core_start(core);
    while (inst_core_state(core) != INST_STATE_SERVING) {
        settle(core, replies);
        if (inst_core_take_heartbeat(core, &heartbeat))
            inst_core_heartbeat_done(core, heartbeat, true);
    }
    return core;
}

static void name_key(char key[16], uint64_t i)
{
    (void)snprintf(key, 16, "key%07" PRIu64, i);
}

static void place(struct inst_core *core, const char *key, struct rt_list *replies)
{
    struct model_call call;

    model_call_init(&call, MODEL_CALL_ACTIVATE);
    call.request.activate = (struct model_activate_request){
        .term = 1,
        .incarnation = INCARNATION,
        .row = {.key = rt_bytes_of_string(key), .epoch = EPOCH},
    };
    inst_core_submit(core, &call);
    settle(core, replies);
    settle(core, replies);
    rt_list_init(replies);
    model_call_deinit(&call);
}

static void prepare(struct model_call *call, enum model_call_kind kind, const char *key)
{
    static const uint8_t value[100];
    struct model_header *header = &call->request.data.header;

    model_call_init(call, kind);
    call->request.data = (struct model_data_request){.value = {value, sizeof(value)}};
    header->cluster_id = (struct model_id){{1}};
    header->key = rt_bytes_of_string(key);
    header->epoch = EPOCH;
    header->owner[0] = 'a';
    header->incarnation = INCARNATION;
}

/* ---- measurements ---- */

static void measure_checks(struct inst_core *core, const struct model_call *call)
{
    struct inst_view view = {
        .call = call,
        .name = core->config.name,
        .cluster_id = &core->meta.cluster_id,
        .membership = &core->membership,
        .row = inst_rows_find(&core->rows, call->request.data.header.key),
        .dedup = &core->dedup,
        .now_us = core->now_us,
        .key_max = core->key_max,
        .access = INST_ACCESS_WRITE,
    };
    uint64_t started_ns = clock_ns();
    uint64_t n_passed = 0;

    for (uint64_t i = 0; i < N_CHECKS; i++) {
        struct inst_verdict verdict;

        inst_checks_run(&view, INST_CHECK_FIRST, INST_CHECK_LAST, &verdict);
        n_passed += verdict.result == INST_CHECK_PASS;
        __asm__ volatile("" ::: "memory");
    }
    print(call->request.data.header.request_id.seq ? "checks, with request id" : "checks",
          (double)(clock_ns() - started_ns) / (double)n_passed);
}

struct load {
    enum model_call_kind kind;
    bool with_id;
    uint64_t n_keys; /* that are used in turn */
    uint64_t stride;
    uint64_t n_operations;
};

/* Nanoseconds of one operation. */
static double run(struct inst_core *core, const struct load *load)
{
    struct model_call call;
    struct rt_list replies;
    uint64_t started_ns;
    char key[16] = "key0000000";

    rt_list_init(&replies);
    prepare(&call, load->kind, key);
    started_ns = clock_ns();
    for (uint64_t i = 0; i < load->n_operations; i++) {
        struct model_header *header = &call.request.data.header;
        uint64_t n = i * load->stride % load->n_keys;

        for (int digit = 9; digit >= 3; digit--, n /= 10)
            key[digit] = (char)('0' + n % 10);
        if (load->with_id) {
            header->request_id = (struct model_request_id){{{8}}, i + 1};
            header->done_below = i > 64 ? i - 64 : 0;
        }
        inst_core_submit(core, &call);
        settle(core, &replies);
        rt_list_init(&replies);
        rt_arena_reset(&call.arena);
    }
    settle(core, &replies); /* the last one's, if it had to wait for a commit */
    model_call_deinit(&call);
    return (double)(clock_ns() - started_ns) / (double)load->n_operations;
}

static void measure(struct inst_core *core, const struct load *load, const char *what)
{
    print(what, run(core, load));
}

/* ---- instances at 90 % use ---- */

/* Owns N_OWNED keys; as many of them have a value as fill 90 % of the entries. */
static struct inst_core *full_core(const struct rt_env *env, uint64_t n_entries)
{
    struct rt_list replies = RT_LIST_INIT(replies);
    struct inst_core *core = serving_core(env, n_entries, &replies);
    struct load load = {MODEL_CALL_SET, false, n_entries * 9 / 10, 1, n_entries * 9 / 10};
    char key[16];

    if (!core)
        return NULL;
    for (uint64_t i = 0; i < N_OWNED; i++) {
        name_key(key, i);
        place(core, key, &replies);
    }
    (void)run(core, &load);
    return core;
}

static int compare_doubles(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;

    return (difference > 0) - (difference < 0);
}

/* Medians of rounds that take turns. Both own as many keys and write to as many of them, so that
 * what is compared is the entries and not the processor's caches. */
static bool measure_full(const struct rt_env *env)
{
    static const uint64_t sizes[2] = {1000, 1000000};
    const struct load load = {MODEL_CALL_SET, false, N_FULL_KEYS, STRIDE, N_OPERATIONS / N_ROUNDS};
    struct inst_core *cores[2] = {full_core(env, sizes[0]), full_core(env, sizes[1])};
    double ns[2][N_ROUNDS];
    char what[64];

    for (size_t i = 0; i < (size_t)2 * N_ROUNDS && cores[i % 2]; i++)
        ns[i % 2][i / 2] = run(cores[i % 2], &load);
    for (size_t i = 0; i < 2 && cores[0] && cores[1]; i++) {
        qsort(ns[i], N_ROUNDS, sizeof(ns[i][0]), compare_doubles);
        (void)snprintf(what, sizeof(what), "SET, %" PRIu64 " entries, 90 %% full", sizes[i]);
        print(what, ns[i][N_ROUNDS / 2]);
    }
    (void)inst_core_free(cores[1]);
    (void)inst_core_free(cores[0]);
    return cores[0] && cores[1];
}

int main(void)
{
    struct rt_env env = {.now_us = clock_us, .random = no_random};
    struct rt_list replies = RT_LIST_INIT(replies);
    struct inst_core *core = serving_core(&env, (uint64_t)N_KEYS * 2, &replies);
    struct load load = {MODEL_CALL_SET, false, N_KEYS, STRIDE, N_OPERATIONS};
    struct model_call call;
    char key[16];

    if (!core)
        return 1;
    for (uint64_t i = 0; i < N_KEYS; i++) {
        name_key(key, i);
        place(core, key, &replies);
    }
    name_key(key, 0);
    prepare(&call, MODEL_CALL_SET, key);
    measure_checks(core, &call);
    call.request.data.header.request_id = (struct model_request_id){{{8}}, 1};
    measure_checks(core, &call);
    model_call_deinit(&call);
    measure(core, &load, "first SETs, then SETs");
    measure(core, &load, "SET of 100 bytes");
    load.with_id = true;
    measure(core, &load, "SET with request id");
    load = (struct load){MODEL_CALL_READ, false, N_KEYS, STRIDE, N_OPERATIONS};
    measure(core, &load, "READ of 100 bytes");
    (void)inst_core_free(core);
    return measure_full(&env) ? 0 : 1;
}
