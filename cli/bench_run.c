/*
 * A run of the load generator: see bench_run.h. The verb's thread goes through the phases and keeps
 * the time; answers come on a thread of the link and start what follows. Both hold the link's lock.
 * Invariant: a slot is free, resting, or has one request under way; every operation that was drawn
 * is in a slot or waits for its owner until it is counted once.
 */
#include "cli/bench_run.h"

#include <stdio.h>

#include "cli/bench_internal.h"
#include "runtime/base/alloc.h"

enum {
    REST_US = 20 * 1000,  /* of a slot whose request failed: no storm against a dead server */
    TICK_US = 500 * 1000, /* at least so often the time is looked at */
};

void cli_bench_give_up(struct cli_bench *bench, enum rt_code code, const struct model_error *error)
{
    if (bench->has_failed)
        return;
    bench->has_failed = true;
    bench->is_over = true;
    bench->failure.code = code;
    bench->failure.error = *error;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static bool draw_preparation(struct cli_bench *bench, struct cli_bench_operation *ret_operation)
{
    if (bench->n_prepared == bench->options->workload.n_keys)
        return false;
    *ret_operation = (struct cli_bench_operation){
        .intended_us = bench->now_us,
        .key = (uint32_t)bench->n_prepared++,
        .value_size = cli_workload_value_size(&bench->workload),
    };
    return true;
}

static bool has_had_enough(const struct cli_bench *bench)
{
    uint64_t n = bench->options->n_operations;

    return bench->now_us >= bench->end_us || (n > 0 && bench->n_drawn >= n);
}

/* False when nothing is due; is_over tells whether anything will be. */
static bool draw(struct cli_bench *bench, struct cli_bench_operation *ret_operation)
{
    struct cli_operation operation;
    uint64_t intended_us;

    if (bench->is_over)
        return false;
    if (bench->phase == CLI_BENCH_PREPARE) {
        bench->is_over = !draw_preparation(bench, ret_operation);
        return !bench->is_over;
    }
    bench->is_over = has_had_enough(bench);
    if (bench->is_over || !cli_pace_take(&bench->pace, bench->now_us, &intended_us))
        return false;
    cli_workload_next(&bench->workload, &operation);
    bench->n_drawn += intended_us >= bench->measure_from_us;
    *ret_operation = (struct cli_bench_operation){
        .intended_us = intended_us,
        .key = (uint32_t)operation.key,
        .value_size = operation.value_size,
        .is_read = operation.is_read,
    };
    return true;
}

/* ---- starting -------------------------------------------------------------------------------- */

static void send_waiting(struct cli_bench_slot *slot, struct cli_bench_owner *owner)
{
    slot->n_operations = cli_bench_routes_take(&slot->bench->routes, owner, slot->operations);
    cli_bench_send_to(slot, owner);
}

/* True when the slot took it and is under way. */
static bool place(struct cli_bench_slot *slot, const struct cli_bench_operation *operation)
{
    struct cli_bench *bench = slot->bench;
    struct cli_bench_owner *owner = cli_bench_routes_find(&bench->routes, operation->key);

    if (bench->options->path != CLI_BENCH_ROUTED && owner != NULL) {
        if (!cli_bench_routes_add(&bench->routes, owner, operation))
            return false;
        send_waiting(slot, owner);
        return true;
    }
    slot->operations[0] = *operation;
    slot->n_operations = 1;
    if (bench->options->path == CLI_BENCH_ROUTED)
        cli_bench_send_statement(slot);
    else
        cli_bench_ask_route(slot);
    return true;
}

/* Incomplete batches wait for more only where more comes at once. */
static bool sends_incomplete(const struct cli_bench *bench)
{
    return bench->is_over || (bench->phase == CLI_BENCH_LOAD && bench->options->rate > 0);
}

static bool fill(struct cli_bench_slot *slot)
{
    struct cli_bench *bench = slot->bench;
    struct cli_bench_operation operation;
    struct cli_bench_owner *owner;

    while (draw(bench, &operation))
        if (place(slot, &operation))
            return true;
    owner = sends_incomplete(bench) ? cli_bench_routes_next(&bench->routes) : NULL;
    if (owner == NULL)
        return false;
    send_waiting(slot, owner);
    return true;
}

/* Gives free slots what is due. */
static void pump(struct cli_bench *bench)
{
    struct rt_list *node;

    while (!bench->has_failed && bench->n_interrupts == 0 &&
           (node = rt_list_pop_front(&bench->free)) != NULL) {
        if (!fill(RT_LIST_ENTRY(node, struct cli_bench_slot, node))) {
            rt_list_push_front(&bench->free, node);
            return;
        }
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool may_route_be_stale(enum rt_code code)
{
    return code == RT_FAILED_PRECONDITION || code == RT_UNAVAILABLE;
}

static void count(struct cli_bench *bench, const struct cli_bench_operation *operation,
                  enum rt_code code, const struct model_error *error, bool is_empty)
{
    enum cli_bench_side side = operation->is_read ? CLI_BENCH_READS : CLI_BENCH_UPDATES;

    if (code != RT_OK && may_route_be_stale(code))
        cli_bench_routes_forget(&bench->routes, operation->key);
    if (bench->phase == CLI_BENCH_PREPARE) {
        if (code != RT_OK)
            cli_bench_give_up(bench, code, error);
        return;
    }
    if (operation->intended_us < bench->measure_from_us)
        return;
    bench->stats->elapsed_us = bench->now_us - bench->measure_from_us;
    if (code != RT_OK) {
        cli_bench_stats_fail(bench->stats, side, code, error->reason);
        return;
    }
    cli_bench_stats_succeed(bench->stats, side, bench->now_us - operation->intended_us);
    bench->stats->n_empty += operation->is_read && is_empty;
}

static void count_all(struct cli_bench_slot *slot, enum rt_code code,
                      const struct model_error *error, bool is_empty)
{
    for (uint32_t i = 0; i < slot->n_operations; i++)
        count(slot->bench, &slot->operations[i], code, error, is_empty);
}

static void count_batch(struct cli_bench_slot *slot, const struct model_pipeline_response *response)
{
    static const struct model_error missing = {.message = "the answer is incomplete"};

    for (uint32_t i = 0; i < slot->n_operations; i++) {
        if (i < response->n_results)
            count(slot->bench, &slot->operations[i], response->results[i].code,
                  response->results[i].error, !response->results[i].data.has_value);
        else
            count(slot->bench, &slot->operations[i], RT_INTERNAL, &missing, false);
    }
}

/* A slot that asked for a route goes on with the operation it was for. */
static bool go_on_with_route(struct cli_bench_slot *slot,
                             const struct model_route_response *response)
{
    struct cli_bench *bench = slot->bench;
    struct cli_bench_operation operation = slot->operations[0];

    if (!response->has_route) {
        count(bench, &operation, RT_OK, NULL, true);
        return false;
    }
    (void)cli_bench_routes_learn(&bench->routes, operation.key, &response->route);
    return place(slot, &operation);
}

/* True when the slot is under way again. */
static bool take_answer(struct cli_bench_slot *slot, const struct model_call *call)
{
    const struct model_response *response = &call->response;

    if (response->code != RT_OK) {
        count_all(slot, response->code, &response->error, false);
        return false;
    }
    if (call->request.kind == MODEL_CALL_ROUTE)
        return go_on_with_route(slot, &response->route);
    if (call->request.kind == MODEL_CALL_PIPELINE)
        count_batch(slot, &response->pipeline);
    else if (call->request.kind == MODEL_CALL_EXECUTE)
        count_all(slot, RT_OK, NULL, !response->execute.data.has_value);
    else
        count_all(slot, RT_OK, NULL, !response->data.has_value);
    return false;
}

static bool is_idle(const struct cli_bench *bench)
{
    return bench->is_over && bench->n_active == 0 && bench->routes.n_waiting == 0;
}

static void on_done(struct cli_link_slot *link, struct model_call *call)
{
    struct cli_bench_slot *slot = cli_bench_slot_of(link);
    struct cli_bench *bench = slot->bench;

    bench->n_active--;
    if (bench->is_stopped)
        return;
    bench->now_us = cli_link_now_us(bench->link);
    if (take_answer(slot, call))
        return;
    if (call->response.code == RT_OK) {
        rt_list_push_front(&bench->free, &slot->node);
    } else {
        slot->rests_until_us = bench->now_us + REST_US;
        rt_list_push_back(&bench->resting, &slot->node);
    }
    pump(bench);
    if (is_idle(bench) || bench->has_failed)
        cli_link_wake(bench->link);
}

static void on_signal(void *ctx)
{
    struct cli_bench *bench = ctx;

    bench->n_interrupts++;
    cli_link_wake(bench->link);
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void wake_rested(struct cli_bench *bench)
{
    while (!rt_list_is_empty(&bench->resting)) {
        struct cli_bench_slot *slot =
            RT_LIST_ENTRY(bench->resting.next, struct cli_bench_slot, node);

        if (slot->rests_until_us > bench->now_us)
            return;
        rt_list_remove(&slot->node);
        rt_list_push_back(&bench->free, &slot->node);
    }
}

static uint64_t next_look_us(const struct cli_bench *bench)
{
    uint64_t next_us = bench->now_us + TICK_US;

    if (!rt_list_is_empty(&bench->resting)) {
        const struct cli_bench_slot *slot =
            RT_LIST_ENTRY(bench->resting.next, struct cli_bench_slot, node);

        next_us = slot->rests_until_us < next_us ? slot->rests_until_us : next_us;
    }
    if (bench->phase == CLI_BENCH_LOAD && !bench->is_over && !rt_list_is_empty(&bench->free)) {
        uint64_t due_us = cli_pace_next_us(&bench->pace);

        due_us = due_us < bench->end_us ? due_us : bench->end_us;
        next_us = due_us < next_us ? due_us : next_us;
    }
    return next_us;
}

static void show_progress(struct cli_bench *bench)
{
    FILE *progress = bench->options->progress;
    const struct cli_bench_stats *stats = bench->stats;

    if (progress == NULL || bench->now_us - bench->told_us < TICK_US)
        return;
    bench->told_us = bench->now_us;
    if (bench->phase == CLI_BENCH_PREPARE)
        (void)fprintf(progress, "\rpreparing keys: %llu of %llu\033[K",
                      (unsigned long long)bench->n_prepared,
                      (unsigned long long)bench->options->workload.n_keys);
    else if (bench->now_us < bench->measure_from_us)
        (void)fprintf(progress, "\rwarming up\033[K");
    else
        (void)fprintf(
            progress, "\r%4.0f s  %.0f operations/s  p99 of updates %llu us  %llu failed\033[K",
            (double)(bench->now_us - bench->measure_from_us) / 1e6, cli_bench_stats_rate(stats),
            (unsigned long long)cli_histogram_percentile(&stats->latency_us[CLI_BENCH_UPDATES],
                                                         990000),
            (unsigned long long)cli_bench_stats_n_failed(stats));
    (void)fflush(progress);
}

/* Until everything that was drawn in this phase is answered, or nobody waits for it any more. */
static void go_through_phase(struct cli_bench *bench)
{
    uint64_t patience_us = (uint64_t)bench->options->timeout_ms * 1000 + CLI_BENCH_MARGIN_US;
    uint64_t over_us = RT_NEVER;

    for (;;) {
        bench->now_us = cli_link_now_us(bench->link);
        wake_rested(bench);
        pump(bench);
        cli_bench_session_keep(bench);
        show_progress(bench);
        if (is_idle(bench) || bench->has_failed || bench->n_interrupts > 0)
            return;
        if (bench->is_over && over_us == RT_NEVER)
            over_us = bench->now_us;
        if (over_us != RT_NEVER && bench->now_us - over_us >= patience_us)
            return;
        cli_link_wait_until(bench->link, next_look_us(bench));
    }
}

static void load(struct cli_bench *bench)
{
    const struct cli_bench_options *options = bench->options;

    bench->now_us = cli_link_now_us(bench->link);
    bench->phase = CLI_BENCH_LOAD;
    bench->is_over = false;
    bench->measure_from_us = bench->now_us + options->warmup_us;
    bench->end_us = bench->measure_from_us + options->duration_us;
    cli_pace_init(&bench->pace, bench->now_us, options->rate);
    go_through_phase(bench);
}

static uint64_t n_not_begun(const struct cli_bench *bench)
{
    uint64_t n_due = cli_pace_n_due(&bench->pace, bench->end_us);
    uint64_t n_warmup = cli_pace_n_due(&bench->pace, bench->measure_from_us);
    uint64_t n_measured = n_due - n_warmup;
    uint64_t wanted = bench->options->n_operations;

    if (wanted > 0 && n_measured > wanted)
        n_measured = wanted;
    return n_measured > bench->n_drawn ? n_measured - bench->n_drawn : 0;
}

/* What is still out when nobody waits any longer; and what was due and never began. */
static void count_the_rest(struct cli_bench *bench)
{
    static const struct model_error unanswered = {.reason = MODEL_REASON_DEADLINE_EXCEEDED};

    if (bench->phase != CLI_BENCH_LOAD || bench->n_interrupts > 0 || bench->has_failed)
        return;
    for (size_t i = 0; i < bench->options->concurrency; i++)
        if (bench->slots[i].link.call != NULL)
            count_all(&bench->slots[i], RT_DEADLINE_EXCEEDED, &unanswered, false);
    bench->stats->n_not_begun = bench->routes.n_waiting;
    if (bench->options->rate > 0)
        bench->stats->n_not_begun += n_not_begun(bench);
}

static void run(struct cli_bench *bench)
{
    if (bench->options->path == CLI_BENCH_ROUTED)
        cli_bench_session_open(bench);
    if (!bench->has_failed && bench->n_interrupts == 0)
        go_through_phase(bench);
    if (!bench->has_failed && bench->n_interrupts == 0)
        load(bench);
    bench->is_stopped = true;
    count_the_rest(bench);
    if (bench->options->progress != NULL)
        (void)fprintf(bench->options->progress, "\r\033[K");
    if (bench->options->path == CLI_BENCH_ROUTED)
        cli_bench_session_close(bench);
}

/* ---- the object ------------------------------------------------------------------------------ */

static void init(struct cli_bench *bench)
{
    const struct cli_bench_options *options = bench->options;
    struct cli_link_options link = {
        .n_connections = options->n_connections,
        .timeout_ms = options->timeout_ms,
        .on_signal = on_signal,
        .ctx = bench,
    };

    bench->link = cli_link_new(&link);
    cli_workload_init(&bench->workload, &options->workload);
    cli_bench_routes_init(&bench->routes, options->workload.n_keys, options->batch);
    rt_list_init(&bench->free);
    rt_list_init(&bench->resting);
    bench->names = rt_xalloc(options->batch * sizeof(*bench->names));
    bench->pipelined = rt_xalloc(options->batch * sizeof(*bench->pipelined));
    bench->value = rt_xalloc(options->workload.value_max);
    memset(bench->value, 'v', options->workload.value_max);
    bench->slots = rt_xalloc(options->concurrency * sizeof(*bench->slots));
    for (size_t i = 0; i < options->concurrency; i++) {
        struct cli_bench_slot *slot = &bench->slots[i];

        slot->bench = bench;
        model_call_init(&slot->call, MODEL_CALL_ROUTE);
        cli_link_slot_init(&slot->link, bench->link, i, on_done);
        slot->operations = rt_xalloc(options->batch * sizeof(*slot->operations));
        rt_list_push_back(&bench->free, &slot->node);
    }
    cli_bench_session_init(bench);
}

static void deinit(struct cli_bench *bench)
{
    bench->link = cli_link_free(bench->link);
    for (size_t i = 0; i < bench->options->concurrency; i++) {
        struct cli_bench_slot *slot = &bench->slots[i];

        cli_link_slot_deinit(&slot->link);
        model_call_deinit(&slot->call);
        (void)rt_free(slot->operations);
    }
    cli_link_slot_deinit(&bench->session.link);
    model_call_deinit(&bench->session.call);
    (void)rt_free(bench->slots);
    (void)rt_free(bench->value);
    (void)rt_free(bench->pipelined);
    (void)rt_free(bench->names);
    cli_bench_routes_deinit(&bench->routes);
}

bool cli_bench_run(const struct cli_bench_options *options, struct cli_bench_stats *stats,
                   struct model_response *ret_failure)
{
    RT_CLEANUP(rt_freep) struct cli_bench *bench = rt_xalloc(sizeof(*bench));

    bench->options = options;
    bench->stats = stats;
    init(bench);
    cli_link_lock(bench->link);
    run(bench);
    cli_link_unlock(bench->link);
    deinit(bench);
    stats->is_interrupted = bench->n_interrupts > 0;
    if (bench->has_failed)
        *ret_failure = bench->failure;
    return !bench->has_failed;
}
