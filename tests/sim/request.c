/*
 * What a request is about: key, id, whether it changes something. Pure.
 */
#include "tests/sim/world.h"

bool sim_request_is_data(enum model_call_kind kind)
{
    return kind == MODEL_CALL_SET || kind == MODEL_CALL_STORE || kind == MODEL_CALL_PUT ||
           kind == MODEL_CALL_READ || kind == MODEL_CALL_DELETE;
}

enum sim_op_kind sim_op_kind_of_call(enum model_call_kind kind)
{
    if (kind == MODEL_CALL_SET)
        return SIM_OP_SET;
    if (kind == MODEL_CALL_PUT)
        return SIM_OP_PUT;
    if (kind == MODEL_CALL_STORE)
        return SIM_OP_STORE;
    return kind == MODEL_CALL_DELETE ? SIM_OP_DELETE : SIM_OP_READ;
}

struct rt_bytes sim_request_key(const struct model_request *request)
{
    if (sim_request_is_data(request->kind))
        return request->data.header.key;
    if (request->kind == MODEL_CALL_EXECUTE)
        return request->execute.key;
    if (request->kind == MODEL_CALL_LOCK)
        return request->lock.key;
    if (request->kind == MODEL_CALL_UNLOCK)
        return request->unlock.key;
    if (request->kind == MODEL_CALL_ROUTE)
        return request->route.key;
    if (request->kind == MODEL_CALL_FENCE)
        return request->fence.key;
    if (request->kind == MODEL_CALL_ACTIVATE)
        return request->activate.row.key;
    if (request->kind == MODEL_CALL_DROP)
        return request->drop.key;
    return (struct rt_bytes){0};
}

const struct model_request_id *sim_request_id_of(const struct model_request *request)
{
    static const struct model_request_id none;

    if (sim_request_is_data(request->kind))
        return &request->data.header.request_id;
    if (request->kind == MODEL_CALL_EXECUTE)
        return &request->execute.request_id;
    if (request->kind == MODEL_CALL_LOCK)
        return &request->lock.request_id;
    return &none;
}

bool sim_request_is_mutating(const struct model_request *request)
{
    if (sim_request_is_data(request->kind))
        return request->kind != MODEL_CALL_READ;
    return request->kind == MODEL_CALL_EXECUTE && request->execute.kind != MODEL_STATEMENT_GET &&
           request->execute.kind != MODEL_STATEMENT_READ &&
           request->execute.kind != MODEL_STATEMENT_AWAIT;
}
