/*
 * The command line of redistinto-esi.
 */
#ifndef ESI_OPTIONS_H
#define ESI_OPTIONS_H

#include "esi-client/planner.h"
#include "runtime/base/bytes.h"
#include "runtime/base/log.h"
#include "runtime/base/option.h"
#include "runtime/host/service.h"
#include "runtime/model/statement.h"

/* What every reader of JSON keeps. */
#define ESI_SEED_MAX ((UINT64_C(1) << 53) - 1)

enum esi_format {
    ESI_FORMAT_TEXT,
    ESI_FORMAT_JSON,
};

enum esi_command {
    ESI_COMMAND_RUN,
    ESI_COMMAND_SERVE,
};

enum {
    ESI_OPTIONS_BLOCKED_MAX = 1000 /* keys */
};

struct esi_options {
    enum esi_command command;
    const char *coordinator;
    enum esi_format format;
    bool check; /* parse only */
    enum model_dialect dialect;
    const char *report; /* file; NULL = none */
    const char *junit;
    uint64_t seed; /* 0 = another one in each run */
    uint64_t statement_timeout_ms;
    enum rt_log_level log_level;
    const char *const *scripts; /* RUN: paths, "-" = standard input */
    size_t n_scripts;
    struct esi_planner_config planner;
    const char *blocked;                /* keys with commas between them; NULL = none */
    bool shows_plan;                    /* RUN: what the planner does is among the results */
    bool is_planned;                    /* RUN: one of these three says more than all at once */
    struct host_service_config service; /* SERVE; without data_dir */
    bool is_paused;                     /* SERVE */
};

/* For the manual and completion. */
extern const struct rt_option_command esi_options_command;

/* The keys of `blocked`: an array of the caller's whose items point into the text; NULL for none.
 * INVALID_ARGUMENT: an empty one, one of more than MODEL_KEY_MAX bytes, two that are alike, or more
 * than ESI_OPTIONS_BLOCKED_MAX. */
enum rt_code esi_options_split(const char *text, struct rt_bytes **ret_keys, size_t *ret_n_keys,
                               struct rt_error *err);

/* Parses and checks. RT_OPTION_EXIT_OK: something was printed, exit with 0. Strings live as long as
 * *ret_parsed. */
RT_MUST_USE enum rt_code esi_options_parse(int argc, char **argv, char *const *environment,
                                           struct esi_options *ret_options,
                                           enum rt_option_action *ret_action,
                                           struct rt_options **ret_parsed, struct rt_error *err);

#endif
