/*
 * The verb `esi`: see esi.h. One thread.
 */
#include "cli/esi.h"

#include <string.h>

#include "cli/esi_action.h"
#include "cli/esi_console.h"
#include "cli/report.h"

struct config {
    const char *address;
    bool is_escaped;
};

static const struct rt_option options[] = {
    {.name = "esi",
     .type = RT_OPTION_ADDRESS,
     .min = 1,
     .help = "Where `redistinto-esi serve` is.",
     .argument = "ADDRESS",
     .initial = "127.0.0.1:7470",
     .offset = offsetof(struct config, address)},
    {.name = "escaped",
     .letter = 'e',
     .type = RT_OPTION_FLAG,
     .help = "In KEY \\xNN stands for a byte and \\\\ for a backslash, as keys are shown.",
     .offset = offsetof(struct config, is_escaped)},
};

static enum model_exit run_esi(struct cli_context *context, const char *const *arguments,
                               const void *pointer)
{
    const struct config *config = pointer;
    const struct cli_esi esi = {context, config->address, config->is_escaped};
    struct rt_error err = RT_ERROR_INIT;

    if (strcmp(arguments[0], "console") != 0)
        return cli_esi_action_run(&esi, arguments);
    if (arguments[1] == NULL)
        return cli_esi_console_run(&esi);
    (void)rt_fail(&err, RT_INVALID_ARGUMENT, "unexpected argument '%.64s' of console",
                  arguments[1]);
    return cli_report_usage(context, &err);
}

static const char *const examples[] = {
    "redistinto esi submit morning.esi",
    "redistinto esi list -o json",
    "redistinto esi block orders/17 3",
    "redistinto esi wait 3 --timeout 10m    # exit code 1 unless it succeeded",
    "redistinto esi console --esi 10.0.0.1:7470",
    NULL,
};

const struct cli_verb cli_esi_verb = {
    .name = "esi",
    .arguments = "ACTION [WORD] [WORD]",
    .n_arguments = 1,
    .n_optional = 2,
    .summary = "hand scripts to a planner, and look after them",
    .description =
        "Speaks to `redistinto-esi serve`. submit SCRIPT hands a script over (- is standard input) "
        "and prints its number; wait ID waits until it has ended, within --timeout; list [KEY] "
        "(listar) shows all, or those that wait for KEY; pause (pausar) and continue (continuar) "
        "hold the planner; block KEY ID (bloquear) makes an ESI take a key, or wait for it; "
        "unblock KEY (desbloquear) makes the first that waits for the key ready, or frees a key "
        "that was blocked at the start and that none waits for; kill ID ends an ESI after its "
        "line and frees its locks; status KEY asks the coordinator, as the verb status does; "
        "deadlock shows the ESIs that wait for each other in circles. console reads such lines, "
        "and help and quit, from the terminal, with history and completion, or from a pipe. Exit "
        "code 1 when the ESI of wait did not succeed, or a line of a pipe failed.",
    .examples = examples,
    .options = options,
    .n_options = RT_ARRAY_SIZE(options),
    .config_size = sizeof(struct config),
    .run = run_esi,
};
