/*
 * Answers: see response.h. Invariant: whatever came, the decoded answer obeys the limits of the
 * model, and only an explicit APPLIED_NO of a readable RoutingError says that nothing was applied.
 * Any thread; no state.
 */
#include "runtime/wire/response.h"

#include <stdio.h>

#include "runtime/wire/codec.h"
#include "runtime/wire/status.h"
#include "runtime/wire/text.h"

/* ---- writing ---- */

static bool fill_stream(const struct wire_method *method, const struct model_response *response,
                        struct rt_arena *arena, ProtobufCMessage *message,
                        Redistinto__V1__Responder *responder)
{
    struct wire_stream_response *stream = (struct wire_stream_response *)message;

    stream->responder = responder;
    if (response->code != RT_OK) {
        stream->outcome_case = WIRE_OUTCOME_ERROR;
        stream->error =
            wire_put_error(response->code, &response->error, &response->responder, arena);
        return stream->error != NULL;
    }
    stream->outcome_case = WIRE_OUTCOME_RESULT;
    return method->codec->fill_response(response, arena, message);
}

static bool fill_unary(const struct wire_method *method, const struct model_response *response,
                       struct rt_arena *arena, ProtobufCMessage *message,
                       Redistinto__V1__Responder *responder)
{
    ((struct wire_unary_response *)message)->responder = responder;
    return !method->codec->fill_response || method->codec->fill_response(response, arena, message);
}

static enum rt_code fail_unary(const struct model_response *response, struct rt_arena *arena,
                               struct rt_error *err)
{
    const char *reason = response->error.reason == MODEL_REASON_NONE
                             ? NULL
                             : model_reason_name(response->error.reason);
    enum rt_code code = rt_fail_reason(err, response->code, reason, "%s", response->error.message);
    uint8_t *bytes = rt_arena_alloc(arena, WIRE_STATUS_MAX);

    if (bytes && err)
        err->detail = rt_bytes_of(bytes, wire_status_build(response, bytes));
    return code;
}

enum rt_code wire_response_encode(enum model_call_kind kind, const struct model_response *response,
                                  struct rt_arena *arena, ProtobufCMessage **ret_message,
                                  struct rt_error *err)
{
    const struct wire_method *method = wire_method_of(kind);
    ProtobufCMessage *message;
    Redistinto__V1__Responder *responder;
    bool done;

    if (response->code != RT_OK && !wire_shape_has_exchange(method->shape))
        return fail_unary(response, arena, err);

    message = wire_message_new(method->response, arena);
    responder = rt_arena_alloc(arena, sizeof(*responder));
    done = message && responder;
    if (done) {
        wire_put_responder(responder, &response->responder);
        done = wire_shape_has_exchange(method->shape)
                   ? fill_stream(method, response, arena, message, responder)
                   : fill_unary(method, response, arena, message, responder);
    }
    if (!done)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "no memory for a %s response", method->name);
    *ret_message = message;
    return RT_OK;
}

void wire_response_refuse(struct model_response *response, const struct rt_error *err)
{
    enum model_reason reason =
        err->reason ? model_reason_parse(rt_bytes_of_string(err->reason)) : MODEL_REASON_NONE;

    model_response_fail(response, reason, "%s", err->message);
    response->code = err->code;
}

void wire_response_set_exchange_id(ProtobufCMessage *response, uint64_t id)
{
    ((struct wire_stream_response *)response)->id = id;
}

/* ---- reading ---- */

static void take_unary_failure(struct model_response *response, const struct rt_error *err,
                               struct rt_arena *arena)
{
    response->code = wire_take_plain_error((int)err->code, err->message, &response->error);
    (void)wire_status_parse(err->detail, arena, &response->error, &response->responder);
}

/* False when the message holds a failure, which is taken. */
static bool take_outcome(struct wire_input *in, const struct wire_method *method,
                         const ProtobufCMessage *message, struct model_response *response)
{
    const struct wire_stream_response *stream = (const struct wire_stream_response *)message;

    if (!wire_shape_has_exchange(method->shape)) {
        wire_take_responder(in, ((const struct wire_unary_response *)message)->responder,
                            &response->responder);
        return true;
    }
    wire_take_responder(in, stream->responder, &response->responder);
    if (stream->outcome_case == WIRE_OUTCOME_RESULT)
        return true;
    if (stream->outcome_case == WIRE_OUTCOME_ERROR)
        response->code = wire_take_error(stream->error, &response->error, &response->responder);
    else
        wire_input_missing(in, "outcome");
    return false;
}

void wire_response_decode(enum model_call_kind kind, const ProtobufCMessage *message,
                          const struct rt_error *err, struct rt_arena *arena,
                          struct model_response *ret_response)
{
    const struct wire_method *method = wire_method_of(kind);
    struct rt_error problem = RT_ERROR_INIT;
    struct wire_input in = {.arena = arena, .err = &problem, .code = RT_OK};

    ret_response->responder = (struct model_responder){0};
    if (!message) {
        take_unary_failure(ret_response, err, arena);
        return;
    }
    rt_assert(message->descriptor == method->response);
    model_response_ok(ret_response, kind);
    if (take_outcome(&in, method, message, ret_response) && method->codec->take_response)
        method->codec->take_response(&in, message, ret_response);
    if (in.code != RT_OK)
        model_response_fail(ret_response, MODEL_REASON_NONE, "malformed answer of %s: %s",
                            method->name, problem.message);
}

uint64_t wire_response_exchange_id(const ProtobufCMessage *response)
{
    return ((const struct wire_stream_response *)response)->id;
}
