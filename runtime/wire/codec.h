/*
 * Private to runtime/wire: how one kind of call is converted. Each service's file has one codec a
 * method; request.c and response.c do what is the same for all.
 *
 * fill_… get a fresh message and return false when the arena is full; take_… report bad fields to
 * the input (convert.h) and leave the other fields zeroed. take_request NULL: nothing to read.
 */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include "redistinto/v1/common.pb-c.h"
#include "runtime/wire/convert.h"
#include "runtime/wire/method.h"

typedef bool (*wire_fill_request_fn)(const struct model_request *request, struct rt_arena *arena,
                                     void *message);
typedef void (*wire_take_request_fn)(struct wire_input *in, const void *message,
                                     struct model_request *request);
typedef bool (*wire_fill_response_fn)(const struct model_response *response, struct rt_arena *arena,
                                      void *message);
typedef void (*wire_take_response_fn)(struct wire_input *in, const void *message,
                                      struct model_response *response);

/* A member may be NULL where the message has nothing but what all have. */
struct wire_codec {
    wire_fill_request_fn fill_request;
    wire_take_request_fn take_request;
    wire_fill_response_fn fill_response;
    wire_take_response_fn take_response;
};

/* What all messages of one sort begin with. The generated types are distinct, their layout is the
 * same; each service's file asserts it. */
struct wire_unary_response {
    ProtobufCMessage base;
    Redistinto__V1__Responder *responder;
};

struct wire_stream_request {
    ProtobufCMessage base;
    uint64_t id;
    uint32_t timeout_ms;
};

struct wire_stream_response {
    ProtobufCMessage base;
    uint64_t id;
    Redistinto__V1__Responder *responder;
    int outcome_case;
    union {
        void *result;
        Redistinto__V1__Error *error;
    };
};

enum {
    WIRE_OUTCOME_RESULT = 3,
    WIRE_OUTCOME_ERROR = 4,
};

#define WIRE_ASSERT_UNARY_RESPONSE(type)                                                           \
    _Static_assert(offsetof(type, responder) == offsetof(struct wire_unary_response, responder),   \
                   #type)
/* `id` is the member's name in the request; the response repeats it. */
#define WIRE_ASSERT_STREAM(request_type, response_type, id_name, prefix)                           \
    _Static_assert(offsetof(request_type, id_name) == offsetof(struct wire_stream_request, id) &&  \
                       offsetof(request_type, timeout_ms) ==                                       \
                           offsetof(struct wire_stream_request, timeout_ms),                       \
                   #request_type);                                                                 \
    _Static_assert(                                                                                \
        offsetof(response_type, id_name) == offsetof(struct wire_stream_response, id) &&           \
            offsetof(response_type, responder) ==                                                  \
                offsetof(struct wire_stream_response, responder) &&                                \
            offsetof(response_type, outcome_case) ==                                               \
                offsetof(struct wire_stream_response, outcome_case) &&                             \
            offsetof(response_type, result) == offsetof(struct wire_stream_response, result) &&    \
            offsetof(response_type, error) == offsetof(struct wire_stream_response, error) &&      \
            (int)prefix##_RESULT == WIRE_OUTCOME_RESULT &&                                         \
            (int)prefix##_ERROR == WIRE_OUTCOME_ERROR,                                             \
        #response_type)

/* A zero-initialised message of this type; NULL when the arena is full. */
void *wire_message_new(const ProtobufCMessageDescriptor *type, struct rt_arena *arena);

/* One row; `messages` is the lower-case name of its messages, without _request and _response. */
#define WIRE_METHOD(kind, service, name, messages, shape, codec)                                   \
    {                                                                                              \
        kind, shape, &redistinto__v1__##service##__descriptor, name,                               \
            &redistinto__v1__##messages##_request__descriptor,                                     \
            &redistinto__v1__##messages##_response__descriptor, codec                              \
    }

/* Of each service, ordered by kind. */
extern const struct wire_method wire_registry_methods[5];
extern const struct wire_method wire_ownership_methods[4];
extern const struct wire_method wire_instance_methods[8];
extern const struct wire_method wire_coordinator_methods[4];
extern const struct wire_method wire_route_methods[4];
extern const struct wire_method wire_admin_methods[6];
extern const struct wire_method wire_esi_methods[9];

#endif
