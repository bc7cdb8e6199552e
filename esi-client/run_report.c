/*
 * Files of a run: see run_report.h. Invariant: tallies are there exactly when JUnit is wanted. The
 * loop's thread, or before and after it runs.
 */
#include "esi-client/run_report.h"

#include "esi-client/report.h"
#include "runtime/base/alloc.h"

enum {
    /* Of one suite: what a testcase takes for each of the most statements that a script may have.
     */
    SUITE_SIZE_MAX = 1024 * 1024 * 1024
};

static enum rt_code open_tallies(struct esi_run_report *report,
                                 const struct esi_run_report_script *scripts, size_t n_scripts,
                                 struct rt_error *err)
{
    report->tallies = rt_xalloc(n_scripts * sizeof(*report->tallies));
    for (size_t i = 0; i < n_scripts; i++) {
        enum rt_code code = esi_tally_init(&report->tallies[i], scripts[i].script, err);

        if (code != RT_OK)
            return code;
        report->n_tallies++;
    }
    return RT_OK;
}

enum rt_code esi_run_report_open(struct esi_run_report *report, const char *json_path,
                                 const char *junit_path,
                                 const struct esi_run_report_script *scripts, size_t n_scripts,
                                 struct rt_error *err)
{
    enum rt_code code = RT_OK;

    *report = (struct esi_run_report){0};
    if (json_path && junit_path && strcmp(json_path, junit_path) == 0)
        return rt_fail(err, RT_INVALID_ARGUMENT, "report and junit are both '%s'", json_path);
    if (json_path && esi_output_open(&report->json, json_path, err) != RT_OK)
        code = rt_wrap(err, "report");
    if (code == RT_OK && junit_path && esi_output_open(&report->junit, junit_path, err) != RT_OK)
        code = rt_wrap(err, "junit");
    if (code == RT_OK && junit_path)
        code = open_tallies(report, scripts, n_scripts, err);
    if (code != RT_OK)
        esi_run_report_close(report);
    return code;
}

void esi_run_report_add(struct esi_run_report *report, size_t n, const struct esi_result *result)
{
    if (report->tallies)
        esi_tally_add(&report->tallies[n], result);
}

/* Writes the buffer and empties it. */
static enum rt_code flush(struct esi_output *output, struct rt_buffer *buffer, struct rt_error *err)
{
    enum rt_code code = rt_buffer_check(buffer, err);

    if (code == RT_OK)
        code = esi_output_write(output, rt_buffer_bytes(buffer), err);
    rt_buffer_reset(buffer);
    return code;
}

static enum rt_code write_json(struct esi_run_report *report,
                               const struct esi_run_report_script *scripts, size_t n_scripts,
                               uint64_t seed, struct rt_buffer *buffer, struct rt_error *err)
{
    struct esi_report_script *lines = rt_xalloc(n_scripts * sizeof(*lines));

    for (size_t i = 0; i < n_scripts; i++)
        lines[i] = (struct esi_report_script){scripts[i].script->name, scripts[i].summary};
    esi_report_run(lines, n_scripts, seed, buffer);
    (void)rt_free(lines);
    return flush(&report->json, buffer, err);
}

static struct esi_junit_counts add_up(const struct esi_run_report *report,
                                      const struct esi_run_report_script *scripts, size_t n_scripts,
                                      uint64_t *ret_duration_us)
{
    struct esi_junit_counts sum = {0};

    *ret_duration_us = 0;
    for (size_t i = 0; i < n_scripts; i++) {
        struct esi_junit_counts counts = esi_junit_count(&report->tallies[i], scripts[i].summary);

        sum.n_tests += counts.n_tests;
        sum.n_failures += counts.n_failures;
        sum.n_errors += counts.n_errors;
        sum.n_skipped += counts.n_skipped;
        *ret_duration_us += scripts[i].summary->duration_us;
    }
    return sum;
}

static enum rt_code write_junit(struct esi_run_report *report,
                                const struct esi_run_report_script *scripts, size_t n_scripts,
                                uint64_t seed, struct rt_buffer *buffer, struct rt_error *err)
{
    enum rt_code code = RT_OK;
    uint64_t duration_us;
    struct esi_junit_counts sum = add_up(report, scripts, n_scripts, &duration_us);

    esi_junit_begin(&sum, duration_us, buffer);
    for (size_t i = 0; i < n_scripts && code == RT_OK; i++) {
        esi_junit_suite(&report->tallies[i], scripts[i].summary, seed, buffer);
        code = flush(&report->junit, buffer, err);
    }
    esi_junit_end(buffer);
    return code == RT_OK ? flush(&report->junit, buffer, err) : code;
}

static enum rt_code end_output(struct esi_output *output, enum rt_code code, struct rt_error *err)
{
    if (code == RT_OK)
        return esi_output_commit(output, err);
    esi_output_discard(output);
    return code;
}

enum rt_code esi_run_report_finish(struct esi_run_report *report,
                                   const struct esi_run_report_script *scripts, size_t n_scripts,
                                   uint64_t seed, struct rt_error *err)
{
    struct rt_buffer buffer = {.limit = SUITE_SIZE_MAX};
    enum rt_code of_json = RT_OK, of_junit = RT_OK;

    if (esi_output_is_open(&report->json)) {
        of_json = write_json(report, scripts, n_scripts, seed, &buffer, err);
        of_json = end_output(&report->json, of_json, err);
    }
    rt_buffer_reset(&buffer);
    if (esi_output_is_open(&report->junit)) {
        of_junit = write_junit(report, scripts, n_scripts, seed, &buffer, err);
        of_junit = end_output(&report->junit, of_junit, err);
    }
    rt_buffer_deinit(&buffer);
    return of_json == RT_OK ? of_junit : of_json;
}

void esi_run_report_close(struct esi_run_report *report)
{
    esi_output_discard(&report->json);
    esi_output_discard(&report->junit);
    for (size_t i = 0; i < report->n_tallies; i++)
        esi_tally_deinit(&report->tallies[i]);
    report->tallies = rt_free(report->tallies);
    report->n_tallies = 0;
}
