/*
 * redistinto-coordinator: options, then the server.
 */
#include "coordinator/options.h"
#include "coordinator/server.h"

int main(int argc, char **argv)
{
    struct coord_config core = {0};
    struct host_service_config service = {0};
    struct rt_error err = RT_ERROR_INIT;
    struct rt_options *options = NULL;
    enum rt_option_action action;
    int exit_code;

    if (coord_options_parse(argc, argv, environ, &core, &service, &action, &options, &err) != RT_OK)
        return host_service_fail("redistinto-coordinator", &err);
    if (action == RT_OPTION_EXIT_OK)
        return 0;
    exit_code = coord_server_run(&core, &service);
    options = rt_option_free(options);
    return exit_code;
}
