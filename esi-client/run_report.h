/*
 * The files that a run leaves behind: --report (JSON) and --junit (XML). Blocking; the loop's
 * thread, or before and after it runs.
 */
#ifndef ESI_RUN_REPORT_H
#define ESI_RUN_REPORT_H

#include "esi-client/junit.h"
#include "esi-client/output.h"

struct esi_run_report_script {
    const struct esi_script *script;   /* borrowed */
    const struct esi_summary *summary; /* not looked at before the end */
};

/* Fields are private; zeroed = neither file is wanted. */
struct esi_run_report {
    struct esi_output json;
    struct esi_output junit;
    struct esi_tally *tallies; /* owned; of the scripts, when JUnit is wanted */
    size_t n_tallies;
};

/* Either path may be NULL. What cannot be written is known now: INVALID_ARGUMENT or what the system
 * said, and then nothing is open. */
RT_MUST_USE enum rt_code esi_run_report_open(struct esi_run_report *report, const char *json_path,
                                             const char *junit_path,
                                             const struct esi_run_report_script *scripts,
                                             size_t n_scripts, struct rt_error *err);

/* A result of the n-th script. */
void esi_run_report_add(struct esi_run_report *report, size_t n, const struct esi_result *result);

/* Writes both files. A file that fails keeps the other from nothing. */
RT_MUST_USE enum rt_code esi_run_report_finish(struct esi_run_report *report,
                                               const struct esi_run_report_script *scripts,
                                               size_t n_scripts, uint64_t seed,
                                               struct rt_error *err);

/* Frees everything; what was not finished leaves no file. */
void esi_run_report_close(struct esi_run_report *report);

#endif
