/*
 * See rig.h. One thread.
 */
#include "tests/unit/wire/rig.h"

#include "tests/unit/wire/walk.h"

static void *alloc_in_arena(void *ctx, size_t size)
{
    return rt_arena_alloc(ctx, size);
}

static void keep(void *ctx, void *pointer)
{
    (void)ctx;
    (void)pointer;
}

struct rt_bytes rig_pack(const ProtobufCMessage *message, struct rt_arena *arena)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = rt_arena_alloc(arena, size);

    rt_assert(bytes);
    return rt_bytes_of(bytes, protobuf_c_message_pack(message, bytes));
}

ProtobufCMessage *rig_unpack(const ProtobufCMessageDescriptor *type, struct rt_bytes bytes,
                             struct rt_arena *arena)
{
    ProtobufCAllocator allocator = {alloc_in_arena, keep, arena};

    return protobuf_c_message_unpack(type, &allocator, bytes.size, bytes.data);
}

ProtobufCMessage *rig_transfer(const ProtobufCMessage *message, struct rt_arena *arena)
{
    ProtobufCMessage *copy = rig_unpack(message->descriptor, rig_pack(message, arena), arena);

    rt_assert(copy);
    return copy;
}

void rig_damage(struct rt_bytes bytes, struct rt_rng *rng)
{
    for (uint64_t left = 1 + rt_rng_below(rng, 4); bytes.size > 0 && left > 0; left--)
        ((uint8_t *)bytes.data)[rt_rng_below(rng, bytes.size)] = (uint8_t)rt_rng_next(rng);
}

void rig_random_request(struct model_request *ret_request, enum model_call_kind kind,
                        struct rt_arena *arena, uint64_t seed)
{
    struct walk walk = {.mode = WALK_FILL, .arena = arena};

    memset(ret_request, 0, sizeof(*ret_request));
    ret_request->kind = kind;
    rt_rng_seed(&walk.rng, seed);
    walk_request(&walk, ret_request);
}

void rig_random_response(struct model_response *ret_response, enum model_call_kind kind,
                         enum rt_code code, struct rt_arena *arena, uint64_t seed)
{
    struct walk walk = {.mode = WALK_FILL, .arena = arena};

    memset(ret_response, 0, sizeof(*ret_response));
    ret_response->code = code;
    rt_rng_seed(&walk.rng, seed);
    walk_response(&walk, kind, ret_response);
}

static const char *take_text(struct walk *walk, struct rt_arena *arena)
{
    struct rt_bytes copy;

    rt_assert(rt_arena_copy(arena, rt_buffer_bytes(&walk->text), &copy));
    rt_buffer_deinit(&walk->text);
    return (const char *)copy.data;
}

const char *rig_request_text(struct model_request *request, struct rt_arena *arena)
{
    struct walk walk = {.mode = WALK_DUMP};

    walk_request(&walk, request);
    return take_text(&walk, arena);
}

const char *rig_response_text(struct model_response *response, enum model_call_kind kind,
                              struct rt_arena *arena)
{
    struct walk walk = {.mode = WALK_DUMP};

    walk_response(&walk, kind, response);
    return take_text(&walk, arena);
}
