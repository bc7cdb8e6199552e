/*
 * Service tables: matches handlers against the generated descriptor, so that a forgotten method is
 * a failed start and not a hanging call. Before the server starts; loop thread.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/rpc/server_internal.h"

static const struct rpc_method *find_entry(const struct rpc_method *methods, size_t n_methods,
                                           const char *name)
{
    for (size_t i = 0; i < n_methods; i++) {
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    }
    return NULL;
}

static bool is_consistent(const struct rpc_method *method)
{
    if (method->kind == RPC_UNARY)
        return method->on_call && !method->stream;
    return !method->on_call && method->stream && method->stream->on_done;
}

static void append(char *list, size_t size, const char *word, const char *name)
{
    size_t used = strlen(list);

    (void)snprintf(list + used, size - used, "%s%s %s", used ? ", " : "", word, name);
}

static enum rt_code check_table(const ProtobufCServiceDescriptor *service,
                                const struct rpc_method *methods, size_t n_methods,
                                struct rt_error *err)
{
    char faults[RT_ERROR_MESSAGE_MAX / 2] = "";

    for (unsigned i = 0; i < service->n_methods; i++) {
        if (!find_entry(methods, n_methods, service->methods[i].name))
            append(faults, sizeof(faults), "missing", service->methods[i].name);
    }
    for (size_t i = 0; i < n_methods; i++) {
        if (!protobuf_c_service_descriptor_get_method_by_name(service, methods[i].name))
            append(faults, sizeof(faults), "unknown", methods[i].name);
        else if (find_entry(methods, n_methods, methods[i].name) != &methods[i])
            append(faults, sizeof(faults), "repeated", methods[i].name);
        else if (!is_consistent(&methods[i]))
            append(faults, sizeof(faults), "wrong handlers for", methods[i].name);
    }
    if (faults[0] == '\0')
        return RT_OK;
    return rt_fail(err, RT_FAILED_PRECONDITION, "methods of %s: %s", service->name, faults);
}

static bool has_service(const struct rpc_server *server, const ProtobufCServiceDescriptor *wanted)
{
    rt_list_for_each (node, &server->services) {
        const struct rpc_server_service *service =
            RT_LIST_ENTRY(node, struct rpc_server_service, link);

        if (strcmp(service->descriptor->name, wanted->name) == 0)
            return true;
    }
    return false;
}

static void register_method(struct rpc_server *server, const ProtobufCServiceDescriptor *service,
                            struct rpc_server_method *method)
{
    bool reads_request = method->table.kind == RPC_UNARY || method->table.kind == RPC_SERVER_STREAM;

    method->server = server;
    method->path = rt_xasprintf("/%s/%s", service->name, method->table.name);
    rt_list_init(&method->pool);
    method->registered = grpc_server_register_method(
        server->core, method->path, NULL,
        reads_request ? GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER : GRPC_SRM_PAYLOAD_NONE, 0);
    rt_assert(method->registered);
}

enum rt_code rpc_server_add_service(struct rpc_server *server,
                                    const ProtobufCServiceDescriptor *descriptor,
                                    const struct rpc_method *methods, size_t n_methods, void *ctx,
                                    struct rt_error *err)
{
    struct rpc_server_service *service;
    enum rt_code code;

    rt_assert(server->state == RPC_SERVER_NEW);
    if (has_service(server, descriptor))
        return rt_fail(err, RT_ALREADY_EXISTS, "service %s is there already", descriptor->name);
    code = check_table(descriptor, methods, n_methods, err);
    if (code != RT_OK)
        return code;

    service = rt_xalloc(sizeof(*service));
    service->descriptor = descriptor;
    service->n_methods = n_methods;
    service->methods = rt_xalloc(n_methods * sizeof(*service->methods));
    for (size_t i = 0; i < n_methods; i++) {
        service->methods[i].table = methods[i];
        service->methods[i].ctx = ctx;
        service->methods[i].descriptor =
            protobuf_c_service_descriptor_get_method_by_name(descriptor, methods[i].name);
        register_method(server, descriptor, &service->methods[i]);
    }
    rt_list_push_back(&server->services, &service->link);
    if (server->health)
        rpc_health_set(server->health, descriptor->name, false);
    return RT_OK;
}
