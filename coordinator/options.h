/*
 * The coordinator's command line.
 */
#ifndef COORD_OPTIONS_H
#define COORD_OPTIONS_H

#include "coordinator/core.h"
#include "runtime/host/service.h"

/* By their enumerators, NULL-terminated. */
extern const char *const coord_ranges_names[];
extern const char *const coord_locking_names[];
extern const char *const coord_owner_down_names[];
extern const char *const coord_compaction_names[];

/* For the manual and completion. */
extern const struct rt_option_command coord_options_command;

/* Parses and checks. RT_OPTION_EXIT_OK: something was printed, exit with 0. Strings in
 * *ret_core and *ret_service live as long as *ret_options. */
RT_MUST_USE enum rt_code coord_options_parse(int argc, char **argv, char *const *environment,
                                             struct coord_config *ret_core,
                                             struct host_service_config *ret_service,
                                             enum rt_option_action *ret_action,
                                             struct rt_options **ret_options, struct rt_error *err);

#endif
