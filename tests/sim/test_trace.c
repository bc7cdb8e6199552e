#include "tests/sim/trace.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/support/check.h"

TestSuite(trace, .fini = test_alloc_expect_none);

static const struct sim_trace_record sample = {
    .at_us = 12,
    .number = 3,
    .event = SIM_TRACE_REPLY,
    .node = 1,
    .peer = 2,
    .key = 0,
    .has_call = 1,
    .call = MODEL_CALL_PUT,
    .code = RT_ABORTED,
    .reason = MODEL_REASON_OUTCOME_UNKNOWN,
    .id = 5,
    .epoch = 6,
    .incarnation = 7,
    .seq = 8,
    .token = 9,
    .value = 10,
};

static uint64_t hash_of(const struct sim_trace_record *first, const struct sim_trace_record *second)
{
    struct sim_trace trace;
    uint64_t hash;

    sim_trace_init(&trace);
    sim_trace_add(&trace, first);
    sim_trace_add(&trace, second);
    hash = trace.hash;
    sim_trace_deinit(&trace);
    return hash;
}

Test(trace, hash_depends_on_content_and_order)
{
    struct sim_trace_record other = sample;

    cr_expect_eq(hash_of(&sample, &sample), hash_of(&sample, &sample));
    other.value++;
    cr_expect_neq(hash_of(&sample, &other), hash_of(&sample, &sample));
    cr_expect_neq(hash_of(&sample, &other), hash_of(&other, &sample));
    other = sample;
    other.reason = MODEL_REASON_NONE;
    cr_expect_neq(hash_of(&sample, &other), hash_of(&sample, &sample));
}

Test(trace, prints_the_last_records_of_a_key)
{
    struct sim_trace trace;
    struct sim_trace_record record = sample;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    sim_trace_init(&trace);
    for (unsigned i = 0; i < 2 * SIM_TRACE_RING; i++) {
        record.number = i;
        record.key = i % 2;
        sim_trace_add(&trace, &record);
    }
    sim_trace_print(&trace, out, 1, 2);
    (void)fclose(out);
    cr_expect_not_null(strstr(text, "8191 "));
    cr_expect_not_null(strstr(text, "8189 "));
    cr_expect_null(strstr(text, "8190 "));
    cr_expect_null(strstr(text, "8187 "));
    cr_expect_not_null(strstr(text, "PUT"));
    cr_expect_not_null(strstr(text, "ABORTED/OUTCOME_UNKNOWN"));
    free(text);
    sim_trace_deinit(&trace);
}
