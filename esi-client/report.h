/*
 * Results of scripts as lines: for people, and as JSON for programs. Each function but the one for
 * a statement alone appends exactly one line with its newline; what came from scripts, keys, values
 * and servers is escaped so that it stays one line. Pure, re-entrant; the buffer's failure rule
 * applies.
 */
#ifndef ESI_REPORT_H
#define ESI_REPORT_H

#include "esi-client/planner.h"
#include "esi-client/runner.h"
#include "runtime/model/exit.h"

enum {
    ESI_REPORT_VALUE_MAX = 60, /* bytes of a value that a text line shows; JSON has all of it */
};

/* "ok", "waiting", "failed", "unknown" */
const char *esi_report_outcome_name(enum esi_outcome outcome);

/* A statement as text lines show it: its word, and key and value escaped and cut. */
void esi_report_statement(const struct esi_statement *statement, struct rt_buffer *buffer);

/* script:line: STATEMENT key outcome … latency */
void esi_report_text(const char *script, const struct esi_result *result, struct rt_buffer *buffer);

/* Always: script, line, statement, key, outcome, code, reason, instance, epoch, latency_us,
 * attempts. Where there is one: round (in a REPEAT), value and lock_token (GET), holder (waiting),
 * message (failed, unknown), sets_lost and lock_lost (true), expected (EXPECT), sleep_ms (SLEEP).
 * Keys and values as rt_json_bytes() writes them. */
void esi_report_json(const char *script, const struct esi_result *result, struct rt_buffer *buffer);

/* How the script as a whole ended; with the run's seed, unless that is NULL. */
void esi_report_summary_text(const char *script, const struct esi_summary *summary,
                             const uint64_t *seed, struct rt_buffer *buffer);

struct esi_report_script {
    const char *name;
    const struct esi_summary *summary;
};

/* The report of a whole run: {"scripts": […]}, each with name, state, statements, ok, waits,
 * sets_lost, attempts, line and round (of the statement that ended it, 0 = none did), code, reason,
 * message, lock_lost, duration_us and the run's seed. */
void esi_report_run(const struct esi_report_script *scripts, size_t n_scripts, uint64_t seed,
                    struct rt_buffer *buffer);

/* planner clock: script event … */
void esi_report_event_text(const char *script, const struct esi_event *event,
                           struct rt_buffer *buffer);

/* Always: event, script, clock (lines run so far, of all scripts), estimate (what is left of it);
 * key where it blocked. */
void esi_report_event_json(const char *script, const struct esi_event *event,
                           struct rt_buffer *buffer);

/* OK, FAILED, UNAVAILABLE (no session came about), AUTHENTICATION or INTERRUPTED. */
enum model_exit esi_report_exit(const struct esi_summary *summary);

/* The one to end with after several scripts: of two, the one that says more about all of them. */
enum model_exit esi_report_exit_worse(enum model_exit a, enum model_exit b);

#endif
