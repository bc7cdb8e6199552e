/*
 * What came of scripts as JUnit's XML: a testsuite for each script, a testcase for each of its
 * statements, however many rounds that had. A statement that was not reached is skipped; one that
 * failed is a failure, one that may have been applied or that its session took with it an error. A
 * script that ended between statements has an error of its own, a testcase "session".
 *
 * Pure, re-entrant; appending follows the buffer's failure rule.
 */
#ifndef ESI_JUNIT_H
#define ESI_JUNIT_H

#include "esi-client/runner.h"

/* Of one statement of a script, in all rounds. */
struct esi_tally_step {
    uint64_t n_ok;
    uint64_t latency_us; /* of all of them, the one that failed too */
};

struct esi_tally {
    const struct esi_script *script; /* borrowed */
    struct esi_tally_step *steps;    /* owned; of the script's steps */
};

/* RESOURCE_EXHAUSTED: no memory. */
RT_MUST_USE enum rt_code esi_tally_init(struct esi_tally *tally, const struct esi_script *script,
                                        struct rt_error *err);
void esi_tally_deinit(struct esi_tally *tally);

/* Results of the script, in any order; one of line 0, which is not in it, counts for nothing. */
void esi_tally_add(struct esi_tally *tally, const struct esi_result *result);

struct esi_junit_counts {
    uint64_t n_tests;
    uint64_t n_failures;
    uint64_t n_errors;
    uint64_t n_skipped;
};

struct esi_junit_counts esi_junit_count(const struct esi_tally *tally,
                                        const struct esi_summary *summary);

/* The document: its beginning with what all suites come to, the suites, its end. */
void esi_junit_begin(const struct esi_junit_counts *counts, uint64_t duration_us,
                     struct rt_buffer *buffer);
void esi_junit_suite(const struct esi_tally *tally, const struct esi_summary *summary,
                     uint64_t seed, struct rt_buffer *buffer);
void esi_junit_end(struct rt_buffer *buffer);

#endif
