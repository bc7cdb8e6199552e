/*
 * Addresses of a server, its sockets, and core's arguments. Core says only that a bind failed, and
 * steals the path of a unix socket that somebody still listens on; so the address is looked at here
 * as well. Listening: before the server starts; may block on name resolution. Loop thread.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <grpc/grpc_security.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/rpc/server_internal.h"

enum {
    KEEPALIVE_MS = 10 * 1000, /* finds clients that are gone without a word */
    KEEPALIVE_TIMEOUT_MS = 5 * 1000,
    HOST_MAX = 255,
};

static grpc_arg integer_arg(const char *key, uint32_t value)
{
    grpc_arg arg = {.type = GRPC_ARG_INTEGER, .key = (char *)key};

    arg.value.integer = (int)value;
    return arg;
}

grpc_server *rpc_server_core_new(const struct rpc_server_options *options)
{
    grpc_arg list[] = {
        integer_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, options->max_message_bytes),
        integer_arg(GRPC_ARG_MAX_METADATA_SIZE,
                    options->max_metadata_bytes + RPC_CORE_METADATA_BYTES),
        /* Calls that wait in core for their request are not counted by us. */
        integer_arg(GRPC_ARG_MAX_CONCURRENT_STREAMS, options->max_calls + options->max_streams),
        integer_arg(GRPC_ARG_ALLOW_REUSEPORT, 0),
        integer_arg(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0),
        integer_arg(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS),
        integer_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS),
        integer_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1),
        integer_arg(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                    options->keepalive_permit_ms),
    };
    grpc_channel_args args = {.num_args = RT_ARRAY_SIZE(list), .args = list};

    return grpc_server_create(&args, NULL);
}

/* true: somebody answers at this unix address. */
static bool is_unix_taken(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bool is_taken;
    int fd;

    if (strlen(path) >= sizeof(address.sun_path))
        return false;
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    is_taken = connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
    (void)close(fd);
    return is_taken;
}

/* The errno of binding to it ourselves; 0 when that works. */
static int probe_bind(const struct addrinfo *info)
{
    int fd = socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC, info->ai_protocol);
    int one = 1;
    int error = 0;

    if (fd < 0)
        return errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, info->ai_addr, info->ai_addrlen) < 0)
        error = errno;
    (void)close(fd);
    return error;
}

/* Core takes a port modulo 65536. */
static bool has_port(const char *address)
{
    const char *colon = strrchr(address, ':');
    char *end;
    unsigned long port;

    if (!colon || !isdigit((unsigned char)colon[1]))
        return false;
    port = strtoul(colon + 1, &end, 10);
    return *end == '\0' && port <= UINT16_MAX;
}

/* Why core could not listen. */
static enum rt_code explain(const char *address, struct rt_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *infos = NULL;
    const char *colon = strrchr(address, ':');
    char host[HOST_MAX + 1];
    int error = 0;

    if ((size_t)(colon - address) > HOST_MAX)
        return rt_fail(err, RT_INVALID_ARGUMENT, "cannot listen on '%s'", address);
    (void)snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
    if (getaddrinfo(host, colon + 1, &hints, &infos) == 0) {
        error = probe_bind(infos);
        freeaddrinfo(infos);
    }
    if (error == EADDRINUSE)
        return rt_fail(err, RT_ALREADY_EXISTS, "address '%s' is in use", address);
    if (error != 0)
        return rt_fail_errno(err, error, "cannot listen on '%s'", address);
    return rt_fail(err, RT_INVALID_ARGUMENT, "cannot listen on '%s'", address);
}

static void note_address(struct rpc_server *server, const char *path, uint16_t port)
{
    struct rpc_server_address *address = rt_xalloc(sizeof(*address));

    address->port = port;
    address->path = path ? rt_xstrdup(path) : NULL;
    rt_list_push_back(&server->addresses, &address->link);
}

enum rt_code rpc_server_listen(struct rpc_server *server, const char *address, uint16_t *ret_port,
                               struct rt_error *err)
{
    bool is_unix = strncmp(address, "unix:", 5) == 0;
    grpc_server_credentials *credentials;
    int port;

    rt_assert(server->state == RPC_SERVER_NEW);
    if (is_unix && is_unix_taken(address + 5))
        return rt_fail(err, RT_ALREADY_EXISTS, "address '%s' is in use", address);
    if (!is_unix && !has_port(address))
        return rt_fail(err, RT_INVALID_ARGUMENT, "'%s' is no host:port", address);
    credentials = grpc_insecure_server_credentials_create();
    port = grpc_server_add_http2_port(server->core, address, credentials);
    grpc_server_credentials_release(credentials);
    if (port <= 0 && is_unix)
        return rt_fail(err, RT_INVALID_ARGUMENT, "cannot listen on '%s'", address);
    if (port <= 0)
        return explain(address, err);
    note_address(server, is_unix ? address + 5 : NULL, is_unix ? 0 : (uint16_t)port);
    if (ret_port)
        *ret_port = (uint16_t)port;
    return RT_OK;
}

void rpc_server_free_addresses(struct rpc_server *server)
{
    struct rt_list *node;

    while ((node = rt_list_pop_front(&server->addresses))) {
        struct rpc_server_address *address = RT_LIST_ENTRY(node, struct rpc_server_address, link);

        (void)rt_free(address->path);
        (void)rt_free(address);
    }
}

/* ---- sockets ---- */

union socket_address {
    struct sockaddr any;
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;
    struct sockaddr_un local;
};

static bool is_at(const struct rpc_server_address *address, const union socket_address *bound)
{
    if (bound->any.sa_family == AF_INET)
        return address->port != 0 && ntohs(bound->ip4.sin_port) == address->port;
    if (bound->any.sa_family == AF_INET6)
        return address->port != 0 && ntohs(bound->ip6.sin6_port) == address->port;
    return bound->any.sa_family == AF_UNIX && address->path &&
           strncmp(bound->local.sun_path, address->path, sizeof(bound->local.sun_path)) == 0;
}

static bool is_of_server(const struct rpc_server *server, int fd)
{
    union socket_address bound = {0};
    socklen_t size = sizeof(bound);

    if (getsockname(fd, &bound.any, &size) < 0)
        return false;
    rt_list_for_each (node, &server->addresses) {
        if (is_at(RT_LIST_ENTRY(node, struct rpc_server_address, link), &bound))
            return true;
    }
    return false;
}

void rpc_server_sever(struct rpc_server *server)
{
    DIR *open_files = opendir("/proc/self/fd");
    struct dirent *entry;

    if (!open_files)
        return;
    while ((entry = readdir(open_files))) {
        int fd = (int)strtol(entry->d_name, NULL, 10);

        if (isdigit((unsigned char)entry->d_name[0]) && is_of_server(server, fd))
            (void)shutdown(fd, SHUT_RDWR);
    }
    (void)closedir(open_files);
}
