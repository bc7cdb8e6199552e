/*
 * Command lines: see command.h. What is printed starts the same process as what is run, less the
 * supervision. Pure.
 */
#include "cli/command.h"

#include <inttypes.h>
#include <string.h>

#include "cli/process.h"
#include "runtime/base/alloc.h"

/* All of their options are on the command line: no file of this machine's services is read. */
#define NO_CONFIG "/dev/null"

/* Takes the argument. */
static void add_owned(struct cli_command *command, char *argument)
{
    rt_assert(command->n_arguments < CLI_COMMAND_ARGUMENTS_MAX);
    command->arguments[command->n_arguments++] = argument;
}

static void add_option(struct cli_command *command, const char *option, const char *value)
{
    add_owned(command, rt_xstrdup(option));
    add_owned(command, rt_xstrdup(value));
}

static void add_number(struct cli_command *command, const char *option, uint64_t value)
{
    add_owned(command, rt_xstrdup(option));
    add_owned(command, rt_xasprintf("%" PRIu64, value));
}

static void add_milliseconds(struct cli_command *command, const char *option, uint64_t value)
{
    add_owned(command, rt_xstrdup(option));
    add_owned(command, rt_xasprintf("%" PRIu64 "ms", value));
}

static void add_data_dir(struct cli_command *command, const struct cli_command_options *options,
                         const char *name)
{
    add_owned(command, rt_xstrdup("--data-dir"));
    add_owned(command, rt_xasprintf("%s/%s", options->data_dir, name));
}

void cli_command_init_coordinator(struct cli_command *command,
                                  const struct cli_command_options *options, const char *listen)
{
    *command = (struct cli_command){0};
    add_owned(command, rt_xasprintf("%s/redistinto-coordinator", options->binaries_dir));
    add_option(command, "--listen", listen);
    add_data_dir(command, options, "coordinator");
    add_option(command, "--profile", options->profile);
    add_option(command, "--distribution", options->distribution);
    add_option(command, "--key-ranges", options->key_ranges);
    if (options->compaction)
        add_option(command, "--compaction", options->compaction);
    if (options->delay_ms > 0)
        add_number(command, "--delay-ms", options->delay_ms);
    if (options->operation_log)
        add_option(command, "--operation-log", options->operation_log);
    add_milliseconds(command, "--lease", options->lease_ms);
    add_option(command, "--log-level", options->log_level);
    add_option(command, "--config", NO_CONFIG);
}

void cli_command_init_instance(struct cli_command *command,
                               const struct cli_command_options *options, const char *name,
                               const char *listen, const char *coordinator)
{
    *command = (struct cli_command){0};
    add_owned(command, rt_xasprintf("%s/redistinto-instance", options->binaries_dir));
    add_option(command, "--name", name);
    add_option(command, "--listen", listen);
    add_option(command, "--coordinator", coordinator);
    add_data_dir(command, options, name);
    add_number(command, "--entries", options->entries);
    add_number(command, "--entry-size", options->entry_size);
    add_option(command, "--profile", options->profile);
    add_option(command, "--replacement", options->replacement);
    if (options->store)
        add_option(command, "--store", options->store);
    if (options->dump_interval_ms > 0)
        add_milliseconds(command, "--dump-interval", options->dump_interval_ms);
    add_option(command, "--log-level", options->log_level);
    add_option(command, "--config", NO_CONFIG);
}

void cli_command_init_esi(struct cli_command *command, const struct cli_command_options *options,
                          const char *listen, const char *coordinator)
{
    *command = (struct cli_command){0};
    add_owned(command, rt_xasprintf("%s/redistinto-esi", options->binaries_dir));
    add_owned(command, rt_xstrdup("serve"));
    add_option(command, "--listen", listen);
    add_option(command, "--coordinator", coordinator);
    add_option(command, "--profile", options->profile);
    add_option(command, "--planner", options->planner);
    if (options->alpha)
        add_option(command, "--alpha", options->alpha);
    if (options->initial_estimate)
        add_option(command, "--initial-estimate", options->initial_estimate);
    if (options->blocked)
        add_option(command, "--blocked", options->blocked);
    add_option(command, "--log-level", options->log_level);
    add_option(command, "--config", NO_CONFIG);
}

void cli_command_supervise(struct cli_command *command)
{
    add_number(command, "--ready-fd", CLI_PROCESS_READY_FD);
    add_owned(command, rt_xstrdup("--exit-with-stdin"));
}

void cli_command_deinit(struct cli_command *command)
{
    for (size_t i = 0; i < command->n_arguments; i++)
        rt_free(command->arguments[i]);
    *command = (struct cli_command){0};
}

static void append_quoted(const char *argument, struct rt_buffer *buffer)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./:=,@%+";

    if (*argument != '\0' && argument[strspn(argument, plain)] == '\0') {
        rt_buffer_append_string(buffer, argument);
        return;
    }
    rt_buffer_append_byte(buffer, '\'');
    for (; *argument != '\0'; argument++) {
        if (*argument == '\'')
            rt_buffer_append_string(buffer, "'\\''");
        else
            rt_buffer_append_byte(buffer, (uint8_t)*argument);
    }
    rt_buffer_append_byte(buffer, '\'');
}

void cli_command_append(const struct cli_command *command, struct rt_buffer *buffer)
{
    for (size_t i = 0; i < command->n_arguments; i++) {
        if (i > 0)
            rt_buffer_append_byte(buffer, ' ');
        append_quoted(command->arguments[i], buffer);
    }
}
