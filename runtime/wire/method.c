/*
 * The rows of all services by kind: see method.h. Invariant: the row at index k is of kind k (a
 * unit test holds it). Constant data.
 */
#include "runtime/wire/method.h"

#include "runtime/wire/codec.h"

static const struct wire_method *const methods[MODEL_N_CALL_KINDS] = {
    [MODEL_CALL_REGISTER] = &wire_registry_methods[0],
    [MODEL_CALL_RECONCILE] = &wire_registry_methods[1],
    [MODEL_CALL_RENEW] = &wire_registry_methods[2],
    [MODEL_CALL_LEAVE] = &wire_registry_methods[3],
    [MODEL_CALL_PULL_ROWS] = &wire_registry_methods[4],
    [MODEL_CALL_FENCE] = &wire_ownership_methods[0],
    [MODEL_CALL_ACTIVATE] = &wire_ownership_methods[1],
    [MODEL_CALL_DROP] = &wire_ownership_methods[2],
    [MODEL_CALL_COMPACT] = &wire_ownership_methods[3],
    [MODEL_CALL_SET] = &wire_instance_methods[0],
    [MODEL_CALL_STORE] = &wire_instance_methods[1],
    [MODEL_CALL_PUT] = &wire_instance_methods[2],
    [MODEL_CALL_READ] = &wire_instance_methods[3],
    [MODEL_CALL_DELETE] = &wire_instance_methods[4],
    [MODEL_CALL_PIPELINE] = &wire_instance_methods[5],
    [MODEL_CALL_INSTANCE_STATUS] = &wire_instance_methods[6],
    [MODEL_CALL_LIST_ENTRIES] = &wire_instance_methods[7],
    [MODEL_CALL_OPEN_SESSION] = &wire_coordinator_methods[0],
    [MODEL_CALL_KEEP_ALIVE] = &wire_coordinator_methods[1],
    [MODEL_CALL_CLOSE_SESSION] = &wire_coordinator_methods[2],
    [MODEL_CALL_EXECUTE] = &wire_coordinator_methods[3],
    [MODEL_CALL_LOCK] = &wire_route_methods[0],
    [MODEL_CALL_UNLOCK] = &wire_route_methods[1],
    [MODEL_CALL_ROUTE] = &wire_route_methods[2],
    [MODEL_CALL_WATCH_ROUTES] = &wire_route_methods[3],
    [MODEL_CALL_LIST_INSTANCES] = &wire_admin_methods[0],
    [MODEL_CALL_KEY_STATUS] = &wire_admin_methods[1],
    [MODEL_CALL_LIST_KEYS] = &wire_admin_methods[2],
    [MODEL_CALL_GET_DISTRIBUTION] = &wire_admin_methods[3],
    [MODEL_CALL_SET_DISTRIBUTION] = &wire_admin_methods[4],
    [MODEL_CALL_FREE_LOCK] = &wire_admin_methods[5],
    [MODEL_CALL_ESI_SUBMIT] = &wire_esi_methods[0],
    [MODEL_CALL_ESI_STATUS] = &wire_esi_methods[1],
    [MODEL_CALL_ESI_LIST] = &wire_esi_methods[2],
    [MODEL_CALL_ESI_KILL] = &wire_esi_methods[3],
    [MODEL_CALL_ESI_PAUSE] = &wire_esi_methods[4],
    [MODEL_CALL_ESI_RESUME] = &wire_esi_methods[5],
    [MODEL_CALL_ESI_BLOCK] = &wire_esi_methods[6],
    [MODEL_CALL_ESI_UNBLOCK] = &wire_esi_methods[7],
    [MODEL_CALL_ESI_DEADLOCK] = &wire_esi_methods[8],
};

const struct wire_method *wire_method_of(enum model_call_kind kind)
{
    rt_assert(kind < MODEL_N_CALL_KINDS);
    return methods[kind];
}

const struct wire_method *wire_method_of_request(const ProtobufCMessageDescriptor *request)
{
    for (size_t i = 0; i < MODEL_N_CALL_KINDS; i++)
        if (methods[i]->request == request)
            return methods[i];
    return NULL;
}

size_t wire_service_methods(const ProtobufCServiceDescriptor *service,
                            const struct wire_method *ret_methods[WIRE_SERVICE_METHODS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < MODEL_N_CALL_KINDS; i++)
        if (methods[i]->service == service)
            ret_methods[n++] = methods[i];
    return n;
}
