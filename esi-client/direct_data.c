/*
 * SET, STORE, PUT, READ and DELETE at the owner: see direct_state.h. Invariant: what is stored is
 * stored only under an epoch that the coordinator gave out for writes; once a lock is lost nothing
 * claims it. The core's lock.
 */
#include <stdio.h>

#include "esi-client/direct_state.h"

static enum model_call_kind kind_of(const struct esi_operation *operation)
{
    return operation->call->request.kind;
}

static bool find_route(struct esi_direct *direct, const struct esi_operation *operation,
                       struct esi_route *ret_route)
{
    bool stores = kind_of(operation) != MODEL_CALL_READ && kind_of(operation) != MODEL_CALL_SET;

    return esi_routes_find(&direct->routes, operation->key, ret_route) &&
           (ret_route->for_writes || !stores);
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void fill_header(const struct esi_direct *direct, const struct esi_operation *operation,
                        struct model_header *header)
{
    header->cluster_id = direct->cluster_id;
    header->epoch = operation->epoch;
    memcpy(header->owner, operation->owner, sizeof(header->owner));
    header->incarnation = operation->incarnation;
    header->request_id = operation->id;
    header->done_below = operation->id.seq == 0 ? 0 : esi_sequence_done_below(&direct->owner_ids);
    header->first_epoch = operation->first_epoch;
    header->lock_token = operation->lock_token;
    header->term = direct->term;
}

static void fill_last_set(const struct esi_direct *direct, const struct esi_operation *operation,
                          struct model_data_request *data)
{
    struct esi_lock_state lock = esi_locks_find(&direct->locks, operation->key);

    data->has_last_set = lock.has_last_set && lock.token == operation->lock_token;
    data->last_set = lock.last_set;
}

static void send(struct esi_direct *direct, struct esi_operation *operation,
                 const struct esi_route *route)
{
    struct model_request request = operation->call->request;

    (void)snprintf(operation->owner, sizeof(operation->owner), "%s", route->owner);
    operation->epoch = route->epoch;
    operation->incarnation = route->incarnation;
    if (operation->first_epoch == 0)
        operation->first_epoch = route->epoch;
    operation->exchange.address = route->address;
    fill_header(direct, operation, &request.data.header);
    if (request.kind == MODEL_CALL_STORE)
        fill_last_set(direct, operation, &request.data);
    esi_direct_send(direct, operation, &request);
}

static bool has_lost_lock(struct esi_direct *direct, const struct esi_operation *operation)
{
    return operation->lock_token != 0 && (!esi_lease_check(&direct->lease) ||
                                          esi_locks_find(&direct->locks, operation->key).lost);
}

void esi_direct_data_go_on(struct esi_direct *direct, struct esi_operation *operation)
{
    struct model_response failure;
    struct esi_route route;

    if (has_lost_lock(direct, operation)) {
        failure.responder = (struct model_responder){0};
        model_response_fail(&failure, MODEL_REASON_SESSION_UNKNOWN,
                            "the session that held the key's lock is over");
        esi_direct_fail(direct, operation, &failure);
    } else if (find_route(direct, operation, &route)) {
        send(direct, operation, &route);
    } else {
        esi_direct_fetch(direct, operation);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static void note_lock(struct esi_direct *direct, const struct esi_operation *operation,
                      const struct model_response *response)
{
    if (operation->lock_token != 0)
        esi_locks_note(&direct->locks, esi_direct_statement(operation), operation->key, 0,
                       &response->data.version);
}

/* The operation has had its effect. */
static void succeed(struct esi_direct *direct, struct esi_operation *operation)
{
    enum model_call_kind kind = kind_of(operation);

    if (operation->lock_token != 0 && (kind == MODEL_CALL_STORE || kind == MODEL_CALL_PUT))
        esi_direct_release(direct, operation);
    else
        esi_direct_answer(direct, operation);
}

static void on_ok(struct esi_direct *direct, struct esi_operation *operation,
                  const struct model_response *response)
{
    struct model_call *call = operation->call;
    struct model_response failure;
    struct rt_error err;

    if (model_response_copy(&call->response, response, kind_of(operation), &call->arena, &err) !=
        RT_OK) {
        failure.responder = response->responder;
        model_response_fail(&failure, MODEL_REASON_LIMIT_REACHED, "%s", err.message);
        esi_direct_fail(direct, operation, &failure);
        return;
    }
    note_lock(direct, operation, response);
    succeed(direct, operation);
}

void esi_direct_data_unplaced(struct esi_direct *direct, struct esi_operation *operation)
{
    model_response_ok(&operation->call->response, kind_of(operation));
    succeed(direct, operation);
}

/* What the failure says about the route. True when a hint leads elsewhere. */
static bool adjust_route(struct esi_direct *direct, const struct esi_operation *operation,
                         const struct model_response *response)
{
    const struct model_error *error = &response->error;

    switch (esi_retry_route(response->code, error)) {
    case ESI_RETRY_ROUTE_KEEP:
        break;
    case ESI_RETRY_ROUTE_REFRESH:
        if (error->has_hint && esi_routes_take_hint(&direct->routes, operation->key, &error->hint))
            return strcmp(error->hint.name, operation->owner) != 0;
        esi_routes_doubt(&direct->routes, operation->key, operation->epoch, operation->incarnation);
        break;
    case ESI_RETRY_ROUTE_SUSPECT:
        esi_routes_suspect(&direct->routes, operation->owner, operation->incarnation);
        break;
    }
    return false;
}

static void on_failure(struct esi_direct *direct, struct esi_operation *operation,
                       const struct model_response *response)
{
    const struct model_error *error = &response->error;
    struct esi_route route;
    bool at_once;

    if (error->applied != MODEL_APPLIED_NO)
        operation->exchange.maybe = true;
    if (esi_retry_reaction(response->code, error) != ESI_REACTION_RETRY) {
        esi_direct_fail(direct, operation, response);
        return;
    }
    at_once = adjust_route(direct, operation, response) && !operation->was_hinted;
    if (!esi_direct_pause(direct, operation, error, at_once)) {
        esi_direct_fail(direct, operation, response);
    } else if (at_once) {
        operation->was_hinted = true;
        esi_direct_go_on(direct, operation);
    } else if (!find_route(direct, operation, &route)) {
        esi_direct_fetch(direct, operation);
    }
}

void esi_direct_data_answer(struct esi_direct *direct, struct esi_operation *operation,
                            const struct model_response *response)
{
    esi_routes_see_owner(&direct->routes, response->responder.name, NULL,
                         response->responder.incarnation);
    if (response->code == RT_OK)
        on_ok(direct, operation, response);
    else
        on_failure(direct, operation, response);
}
