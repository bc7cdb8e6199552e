/*
 * What a profile makes of the services' options, as `dev` says it. The services decide; a test
 * compares this with what their --print-config shows. Pure.
 */
#ifndef CLI_RULES_H
#define CLI_RULES_H

#include "cli/command.h"

enum {
    CLI_RULES = 8,
    CLI_RULE_VALUE_SIZE = 24
};

struct cli_rule {
    const char *name; /* of the option */
    char value[CLI_RULE_VALUE_SIZE];
};

/* What holds for processes with these options: what is given, else as the profile says. */
void cli_rules_fill(const struct cli_command_options *options, struct cli_rule *ret_rules);

#endif
