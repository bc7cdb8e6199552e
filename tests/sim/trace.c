/*
 * Trace ring and hash: see trace.h. Invariant: the hash covers every field of every record ever
 * added, in order. One thread.
 */
#include "tests/sim/trace.h"

#include <inttypes.h>

#include "runtime/base/alloc.h"
#include "runtime/base/rng.h"

static const char *const event_texts[] = {
#define SIM_TRACE_TEXT(name, text) [SIM_TRACE_##name] = (text),
    SIM_TRACE_EVENTS(SIM_TRACE_TEXT)
#undef SIM_TRACE_TEXT
};

void sim_trace_init(struct sim_trace *trace)
{
    *trace = (struct sim_trace){0};
    trace->ring = rt_xalloc(SIM_TRACE_RING * sizeof(*trace->ring));
}

void sim_trace_deinit(struct sim_trace *trace)
{
    trace->ring = rt_free(trace->ring);
}

static void mix(struct sim_trace *trace, uint64_t word)
{
    struct rt_rng rng = {trace->hash ^ word};

    trace->hash = rt_rng_next(&rng);
}

static void print_numbers(const struct sim_trace_record *record, FILE *out)
{
    if (record->epoch)
        (void)fprintf(out, " epoch=%" PRIu64, record->epoch);
    if (record->incarnation)
        (void)fprintf(out, " incarnation=%" PRIu64, record->incarnation);
    if (record->seq)
        (void)fprintf(out, " seq=%" PRIu64, record->seq);
    if (record->token)
        (void)fprintf(out, " token=%" PRIu64, record->token);
    if (record->value)
        (void)fprintf(out, " value=%" PRIu64, record->value);
}

static void print_record(const struct sim_trace *trace, const struct sim_trace_record *record,
                         FILE *out)
{
    (void)fprintf(out, "%6" PRIu64 " %10.6f %s %s", record->number, (double)record->at_us / 1e6,
                  trace->name_of ? trace->name_of(trace->ctx, record->node) : "node",
                  event_texts[record->event]);
    if (record->has_call)
        (void)fprintf(out, " %s", model_call_kind_name((enum model_call_kind)record->call));
    if (record->statement)
        (void)fprintf(
            out, " %s",
            model_statement_kind_name((enum model_statement_kind)(record->statement - 1)));
    if (record->outcome)
        (void)fprintf(out, " (%s)", record->outcome == MODEL_OUTCOME_WAITING ? "waiting" : "ready");
    if (record->id)
        (void)fprintf(out, " #%" PRIu64, record->id);
    if (record->peer != SIM_NO_NODE && trace->name_of)
        (void)fprintf(out, " peer=%s", trace->name_of(trace->ctx, record->peer));
    if (record->key != SIM_NO_KEY)
        (void)fprintf(out, " key=k%u", record->key);
    print_numbers(record, out);
    if (record->code != RT_OK)
        (void)fprintf(out, " %s/%s", rt_code_name((enum rt_code)record->code),
                      model_reason_name((enum model_reason)record->reason));
    (void)fprintf(out, "\n");
}

void sim_trace_add(struct sim_trace *trace, const struct sim_trace_record *record)
{
    const uint64_t head = (uint64_t)record->event << 56 | (uint64_t)record->node << 48 |
                          (uint64_t)record->peer << 40 | (uint64_t)record->key << 32 |
                          (uint64_t)record->call << 24 | (uint64_t)record->code << 16 |
                          record->reason;

    trace->ring[trace->n_records++ % SIM_TRACE_RING] = *record;
    mix(trace, head);
    mix(trace, record->at_us ^ record->number << 40);
    mix(trace, record->epoch ^ record->incarnation << 20 ^ record->seq << 40);
    mix(trace, record->token ^ record->value << 20 ^ record->id << 40);
    if (trace->live)
        print_record(trace, record, trace->live);
}

static bool concerns(const struct sim_trace_record *record, uint8_t key)
{
    return key == SIM_NO_KEY || record->key == key || record->event == SIM_TRACE_CRASH ||
           record->event == SIM_TRACE_START || record->event == SIM_TRACE_PAUSE ||
           record->event == SIM_TRACE_RESUME || record->event == SIM_TRACE_FAULT ||
           record->event == SIM_TRACE_MEMBER || record->event == SIM_TRACE_VIOLATION;
}

void sim_trace_print(const struct sim_trace *trace, FILE *out, uint8_t key, unsigned n_max)
{
    uint64_t oldest = trace->n_records > SIM_TRACE_RING ? trace->n_records - SIM_TRACE_RING : 0;
    uint64_t first = trace->n_records;
    unsigned n_found = 0;

    while (first > oldest && n_found < n_max)
        n_found += concerns(&trace->ring[--first % SIM_TRACE_RING], key);
    for (; first < trace->n_records; first++)
        if (concerns(&trace->ring[first % SIM_TRACE_RING], key))
            print_record(trace, &trace->ring[first % SIM_TRACE_RING], out);
}
