/*
 * OwnershipService: see codec.h. Any thread; no state.
 */
#include "redistinto/v1/ownership.pb-c.h"
#include "runtime/wire/codec.h"
#include "runtime/wire/key_response.h"

WIRE_ASSERT_KEY_RESPONSE(Redistinto__V1__FenceResponse);
WIRE_ASSERT_KEY_RESPONSE(Redistinto__V1__ActivateResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__DropResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__CompactResponse);

static bool fill_fence_request(const struct model_request *request, struct rt_arena *arena,
                               void *pointer)
{
    const struct model_fence_request *fence = &request->fence;
    Redistinto__V1__FenceRequest *message = pointer;

    (void)arena;
    message->term = fence->term;
    message->key = wire_put_bytes(fence->key);
    message->epoch = fence->epoch;
    message->incarnation = fence->incarnation;
    message->token = fence->token;
    message->locked = fence->locked;
    return true;
}

static void take_fence_request(struct wire_input *in, const void *pointer,
                               struct model_request *request)
{
    const Redistinto__V1__FenceRequest *message = pointer;

    request->fence = (struct model_fence_request){
        .term = message->term,
        .epoch = message->epoch,
        .incarnation = message->incarnation,
        .token = message->token,
        .locked = message->locked,
    };
    wire_take_key(in, "key", &message->key, &request->fence.key);
}

static bool fill_activate_request(const struct model_request *request, struct rt_arena *arena,
                                  void *pointer)
{
    const struct model_activate_request *activate = &request->activate;
    Redistinto__V1__ActivateRequest *message = pointer;

    message->row = rt_arena_alloc(arena, sizeof(*message->row));
    if (!message->row)
        return false;
    wire_put_row(message->row, &activate->row);
    message->term = activate->term;
    message->incarnation = activate->incarnation;
    message->value_size = activate->value_size;
    return true;
}

static void take_activate_request(struct wire_input *in, const void *pointer,
                                  struct model_request *request)
{
    const Redistinto__V1__ActivateRequest *message = pointer;

    request->activate = (struct model_activate_request){
        .term = message->term,
        .incarnation = message->incarnation,
        .value_size = message->value_size,
    };
    if (message->row)
        wire_take_row(in, message->row, &request->activate.row);
    else
        wire_input_missing(in, "row");
}

static bool fill_drop_request(const struct model_request *request, struct rt_arena *arena,
                              void *pointer)
{
    Redistinto__V1__DropRequest *message = pointer;

    (void)arena;
    message->term = request->drop.term;
    message->key = wire_put_bytes(request->drop.key);
    message->epoch = request->drop.epoch;
    return true;
}

static void take_drop_request(struct wire_input *in, const void *pointer,
                              struct model_request *request)
{
    const Redistinto__V1__DropRequest *message = pointer;

    request->drop = (struct model_drop_request){.term = message->term, .epoch = message->epoch};
    wire_take_key(in, "key", &message->key, &request->drop.key);
}

static bool fill_compact_request(const struct model_request *request, struct rt_arena *arena,
                                 void *pointer)
{
    Redistinto__V1__CompactRequest *message = pointer;

    (void)arena;
    message->term = request->compact.term;
    message->incarnation = request->compact.incarnation;
    message->round = request->compact.round;
    return true;
}

static void take_compact_request(struct wire_input *in, const void *pointer,
                                 struct model_request *request)
{
    const Redistinto__V1__CompactRequest *message = pointer;

    (void)in;
    request->compact = (struct model_compact_request){
        .term = message->term, .incarnation = message->incarnation, .round = message->round};
}

static const struct wire_codec fence_codec = {fill_fence_request, take_fence_request,
                                              wire_fill_key_response, wire_take_key_response};
static const struct wire_codec activate_codec = {fill_activate_request, take_activate_request,
                                                 wire_fill_key_response, wire_take_key_response};
static const struct wire_codec drop_codec = {fill_drop_request, take_drop_request, NULL, NULL};

static const struct wire_codec compact_codec = {fill_compact_request, take_compact_request, NULL,
                                                NULL};

const struct wire_method wire_ownership_methods[4] = {
    WIRE_METHOD(MODEL_CALL_FENCE, ownership_service, "Fence", fence, WIRE_UNARY, &fence_codec),
    WIRE_METHOD(MODEL_CALL_ACTIVATE, ownership_service, "Activate", activate, WIRE_UNARY,
                &activate_codec),
    WIRE_METHOD(MODEL_CALL_DROP, ownership_service, "Drop", drop, WIRE_UNARY, &drop_codec),
    WIRE_METHOD(MODEL_CALL_COMPACT, ownership_service, "Compact", compact, WIRE_UNARY,
                &compact_codec),
};
