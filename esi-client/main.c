/*
 * redistinto-esi: options, then the command.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "esi-client/run.h"
#include "esi-client/serve.h"
#include "runtime/model/exit.h"

int main(int argc, char **argv)
{
    struct esi_options options = {0};
    struct rt_error err = RT_ERROR_INIT;
    struct rt_options *parsed = NULL;
    enum rt_option_action action;
    int exit_code;

    if (esi_options_parse(argc, argv, environ, &options, &action, &parsed, &err) != RT_OK) {
        (void)fprintf(stderr, "redistinto-esi: %s\n", err.message);
        return (int)model_exit_of(err.code, MODEL_REASON_NONE);
    }
    if (action == RT_OPTION_EXIT_OK)
        return 0;
    /* Results that nobody reads are an error of fwrite(): the locks have to be given back. */
    (void)signal(SIGPIPE, SIG_IGN);
    rt_log_init("redistinto-esi", options.log_level);
    exit_code = options.command == ESI_COMMAND_SERVE ? esi_serve(&options) : esi_run(&options);
    parsed = rt_option_free(parsed);
    return exit_code;
}
