/*
 * Requests: see request.h. What differs by kind is in the codecs of the services' files. Any
 * thread; no state.
 */
#include "runtime/wire/request.h"

#include "runtime/wire/codec.h"

void *wire_message_new(const ProtobufCMessageDescriptor *type, struct rt_arena *arena)
{
    ProtobufCMessage *message = rt_arena_alloc(arena, type->sizeof_message);

    if (message)
        type->message_init(message);
    return message;
}

enum rt_code wire_request_decode(const struct wire_method *method, const ProtobufCMessage *message,
                                 struct rt_arena *arena, struct model_request *ret_request,
                                 struct rt_error *err)
{
    struct wire_input in = {.arena = arena, .err = err, .code = RT_OK};

    rt_assert(message->descriptor == method->request);
    ret_request->kind = method->kind;
    if (method->codec->take_request)
        method->codec->take_request(&in, message, ret_request);
    return in.code;
}

enum rt_code wire_request_encode(const struct model_request *request, struct rt_arena *arena,
                                 ProtobufCMessage **ret_message, struct rt_error *err)
{
    const struct wire_method *method = wire_method_of(request->kind);
    ProtobufCMessage *message = wire_message_new(method->request, arena);

    if (!message ||
        (method->codec->fill_request && !method->codec->fill_request(request, arena, message)))
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "no memory for a %s request", method->name);
    *ret_message = message;
    return RT_OK;
}

struct wire_exchange wire_request_exchange(const ProtobufCMessage *request)
{
    const struct wire_stream_request *stream = (const struct wire_stream_request *)request;

    return (struct wire_exchange){.id = stream->id, .timeout_ms = stream->timeout_ms};
}

void wire_request_set_exchange(ProtobufCMessage *request, const struct wire_exchange *exchange)
{
    struct wire_stream_request *stream = (struct wire_stream_request *)request;

    stream->id = exchange->id;
    stream->timeout_ms = exchange->timeout_ms;
}
