/*
 * Messages and statuses: see codec.h. Decoding copies into a capped arena, so that a message costs
 * one release and a peer cannot make us allocate without limit. Any thread; no state.
 */
#include "runtime/rpc/codec.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>

struct decode_memory {
    struct rt_arena *arena;
    bool is_exhausted;
};

static void *decode_alloc(void *ctx, size_t size)
{
    struct decode_memory *memory = ctx;
    void *pointer = rt_arena_alloc(memory->arena, size);

    memory->is_exhausted |= pointer == NULL;
    return pointer;
}

static void decode_free(void *ctx, void *pointer)
{
    (void)ctx;
    (void)pointer;
}

grpc_byte_buffer *rpc_encode(const ProtobufCMessage *message, size_t *ret_size)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    grpc_slice slice = grpc_slice_malloc(size);
    grpc_byte_buffer *buffer;

    (void)protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
    buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    if (ret_size)
        *ret_size = size;
    return buffer;
}

static enum rt_code decode_slice(const grpc_slice *slice, const ProtobufCMessageDescriptor *type,
                                 struct rt_arena *arena, ProtobufCMessage **ret_message,
                                 struct rt_error *err)
{
    struct decode_memory memory = {.arena = arena};
    ProtobufCAllocator allocator = {decode_alloc, decode_free, &memory};
    struct rt_bytes bytes = rpc_bytes_of_slice(slice);
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, bytes.size, bytes.data);

    if (message) {
        *ret_message = message;
        return RT_OK;
    }
    if (memory.is_exhausted)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "decoded %s is too large", type->name);
    return rt_fail(err, RT_INVALID_ARGUMENT, "not a %s: %zu undecodable bytes", type->name,
                   bytes.size);
}

enum rt_code rpc_decode(grpc_byte_buffer *buffer, const ProtobufCMessageDescriptor *type,
                        struct rt_arena *arena, ProtobufCMessage **ret_message,
                        struct rt_error *err)
{
    grpc_byte_buffer_reader reader;
    grpc_slice *whole;
    grpc_slice slice;
    enum rt_code code;

    if (!buffer || !grpc_byte_buffer_reader_init(&reader, buffer))
        return rt_fail(err, RT_INVALID_ARGUMENT, "no %s came", type->name);

    if (buffer->data.raw.slice_buffer.count == 1 && grpc_byte_buffer_reader_peek(&reader, &whole)) {
        code = decode_slice(whole, type, arena, ret_message, err);
    } else {
        slice = grpc_byte_buffer_reader_readall(&reader);
        code = decode_slice(&slice, type, arena, ret_message, err);
        grpc_slice_unref(slice);
    }
    grpc_byte_buffer_reader_destroy(&reader);
    return code;
}

bool rpc_metadata_find(const grpc_metadata_array *array, const char *key,
                       struct rt_bytes *ret_value)
{
    for (size_t i = 0; i < array->count; i++) {
        if (grpc_slice_str_cmp(array->metadata[i].key, key) != 0)
            continue;
        *ret_value = rpc_bytes_of_slice(&array->metadata[i].value);
        return true;
    }
    return false;
}

void rpc_error_of_status(grpc_status_code status, grpc_slice text,
                         const grpc_metadata_array *trailers, struct rt_error *ret_err)
{
    bool is_known = status >= GRPC_STATUS_OK && status <= GRPC_STATUS_UNAUTHENTICATED;

    (void)rt_fail(ret_err, is_known ? (enum rt_code)status : RT_UNKNOWN, "%.*s",
                  (int)GRPC_SLICE_LENGTH(text), (const char *)GRPC_SLICE_START_PTR(text));
    (void)rpc_metadata_find(trailers, RPC_DETAIL_KEY, &ret_err->detail);
}

enum rt_code rpc_metadata_check(const char *key, struct rt_bytes value, struct rt_error *err)
{
    grpc_slice key_slice = grpc_slice_from_static_string(key);
    grpc_slice value_slice = grpc_slice_from_static_buffer(value.data, value.size);

    if (!grpc_header_key_is_legal(key_slice))
        return rt_fail(err, RT_INVALID_ARGUMENT, "illegal metadata key '%s'", key);
    if (!grpc_is_binary_header(key_slice) && !grpc_header_nonbin_value_is_legal(value_slice))
        return rt_fail(err, RT_INVALID_ARGUMENT, "illegal value of metadata key '%s'", key);
    return RT_OK;
}
