/*
 * The command line of redistinto-esi.
 */
#ifndef ESI_OPTIONS_H
#define ESI_OPTIONS_H

#include "runtime/base/log.h"
#include "runtime/base/option.h"
#include "runtime/model/statement.h"

/* What every reader of JSON keeps. */
#define ESI_SEED_MAX ((UINT64_C(1) << 53) - 1)

enum esi_format {
    ESI_FORMAT_TEXT,
    ESI_FORMAT_JSON,
};

struct esi_options {
    const char *coordinator;
    enum esi_format format;
    bool check; /* parse only */
    enum model_dialect dialect;
    const char *report; /* file; NULL = none */
    const char *junit;
    uint64_t seed; /* 0 = another one in each run */
    uint64_t statement_timeout_ms;
    enum rt_log_level log_level;
    const char *const *scripts; /* paths, "-" = standard input */
    size_t n_scripts;
};

/* For the manual and completion. */
extern const struct rt_option_command esi_options_command;

/* Parses and checks. RT_OPTION_EXIT_OK: something was printed, exit with 0. Strings live as long as
 * *ret_parsed. */
RT_MUST_USE enum rt_code esi_options_parse(int argc, char **argv, char *const *environment,
                                           struct esi_options *ret_options,
                                           enum rt_option_action *ret_action,
                                           struct rt_options **ret_parsed, struct rt_error *err);

#endif
