/*
 * The instance's command line.
 */
#ifndef INST_OPTIONS_H
#define INST_OPTIONS_H

#include "instance/core.h"
#include "runtime/host/service.h"

enum inst_store {
    INST_STORE_LMDB,
    INST_STORE_FILES, /* beside LMDB, which decides, one file a key */
};

struct inst_options {
    const char *name;
    const char *listen;
    const char *advertise; /* NULL = as bound */
    const char *coordinator;
    int profile; /* only what it implies matters */
    uint64_t entries;
    uint64_t entry_size; /* bytes */
    enum inst_policy replacement;
    enum inst_growth growth;
    enum inst_eviction eviction;
    enum inst_store store;
    const char *mount; /* NULL = in the data directory */
    uint64_t dump_interval_ms;
};

/* One line for the log: what holds, whether a profile set it or the user. */
void inst_options_tell(const struct inst_options *options);

/* For the manual and completion. */
extern const struct rt_option_command inst_options_command;

/* Parses and checks. RT_OPTION_EXIT_OK: something was printed, exit with 0. Strings in the
 * structures live as long as *ret_parsed. */
RT_MUST_USE enum rt_code inst_options_parse(int argc, char **argv, char *const *environment,
                                            struct inst_options *ret_options,
                                            struct host_service_config *ret_service,
                                            enum rt_option_action *ret_action,
                                            struct rt_options **ret_parsed, struct rt_error *err);

#endif
