/*
 * The child serves until it is killed; its port comes through a pipe. See forked_coordinator.h.
 */
#include "tests/unit/cli/forked_coordinator.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redistinto/v1/admin.pb-c.h"
#include "redistinto/v1/coordinator.pb-c.h"
#include "redistinto/v1/esi.pb-c.h"
#include "runtime/host/inbound.h"
#include "tests/support/check.h"

static void format_address(uint16_t port, char ret_address[FORKED_COORDINATOR_ADDRESS_SIZE])
{
    (void)snprintf(ret_address, FORKED_COORDINATOR_ADDRESS_SIZE, "127.0.0.1:%u", port);
}

static void serve(const struct host_core_ops *ops, void *core, int port_fd,
                  char own_address[FORKED_COORDINATOR_ADDRESS_SIZE])
{
    struct host_options options = {.ops = ops, .core = core};
    struct rpc_server *server;
    struct host *host;
    uint16_t port = 0;

    options.runtime = rpc_runtime_new(NULL);
    server = rpc_server_new(options.runtime, NULL);
    host = host_new(&options);
    if (host_serve(host, server, &redistinto__v1__admin_service__descriptor, NULL) != RT_OK ||
        host_serve(host, server, &redistinto__v1__coordinator_service__descriptor, NULL) != RT_OK ||
        host_serve(host, server, &redistinto__v1__esi_service__descriptor, NULL) != RT_OK ||
        rpc_server_listen(server, "127.0.0.1:0", &port, NULL) != RT_OK)
        _exit(1);
    if (own_address != NULL)
        format_address(port, own_address);
    rpc_server_set_health(server, "", true);
    rpc_server_start(server);
    if (write(port_fd, &port, sizeof(port)) != sizeof(port))
        _exit(1);
    rpc_runtime_run(options.runtime);
    _exit(0);
}

void forked_coordinator_start(struct forked_coordinator *coordinator,
                              const struct host_core_ops *ops, void *core,
                              char own_address[FORKED_COORDINATOR_ADDRESS_SIZE])
{
    uint16_t port = 0;
    int fds[2];

    cr_assert_eq(pipe(fds), 0);
    coordinator->pid = fork();
    cr_assert_geq(coordinator->pid, 0);
    if (coordinator->pid == 0)
        serve(ops, core, fds[1], own_address);
    (void)close(fds[1]);
    cr_assert_eq(read(fds[0], &port, sizeof(port)), sizeof(port));
    (void)close(fds[0]);
    format_address(port, coordinator->address);
}

void forked_coordinator_end(struct forked_coordinator *coordinator)
{
    if (coordinator->pid == 0)
        return;
    (void)kill(coordinator->pid, SIGKILL);
    (void)waitpid(coordinator->pid, NULL, 0);
    coordinator->pid = 0;
}
