/*
 * redistinto-instance: options, then the server.
 */
#include "instance/server.h"

int main(int argc, char **argv)
{
    struct inst_options instance = {0};
    struct host_service_config service = {0};
    struct rt_error err = RT_ERROR_INIT;
    struct rt_options *options = NULL;
    enum rt_option_action action;
    int exit_code;

    if (inst_options_parse(argc, argv, environ, &instance, &service, &action, &options, &err) !=
        RT_OK)
        return host_service_fail("redistinto-instance", &err);
    if (action == RT_OPTION_EXIT_OK)
        return 0;
    exit_code = inst_server_run(&instance, &service);
    options = rt_option_free(options);
    return exit_code;
}
