/*
 * Messages in and out of buffers, the output queue, the arena that is used again.
 */
#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/rpc/codec.h"
#include "runtime/rpc/outbox.h"
#include "tests/support/check.h"
#include "tests/unit/rpc/rig.h"

TestSuite(codec, .fini = test_alloc_expect_none, .timeout = 50);

static struct rt_arena arena;
static struct rt_error err;
static ProtobufCMessage *message;

static grpc_byte_buffer *encode(const char *data, size_t size)
{
    Rpctest__V1__Item item;

    item_init(&item, 7, data, size);
    return rpc_encode(&item.base, NULL);
}

static enum rt_code decode(grpc_byte_buffer *buffer)
{
    return rpc_decode(buffer, &rpctest__v1__item__descriptor, &arena, &message, &err);
}

Test(codec, message_survives_the_way_there_and_back)
{
    grpc_byte_buffer *buffer = encode("data", 4);
    const Rpctest__V1__Item *item;

    cr_assert_eq(decode(buffer), RT_OK);
    item = (const Rpctest__V1__Item *)message;
    cr_assert_eq(item->number, 7);
    cr_assert_eq(item->data.len, 4);
    grpc_byte_buffer_destroy(buffer);
    rt_arena_reset(&arena);
}

Test(codec, message_in_many_slices)
{
    uint8_t packed[64];
    grpc_slice slices[64];
    Rpctest__V1__Item item;
    grpc_byte_buffer *buffer;
    size_t size;

    item_init(&item, 300, "0123456789", 10);
    size = protobuf_c_message_pack(&item.base, packed);
    for (size_t i = 0; i < size; i++)
        slices[i] = grpc_slice_from_copied_buffer((const char *)packed + i, 1);
    buffer = grpc_raw_byte_buffer_create(slices, size);
    cr_assert_eq(decode(buffer), RT_OK);
    cr_assert_eq(((const Rpctest__V1__Item *)message)->number, 300);
    for (size_t i = 0; i < size; i++)
        grpc_slice_unref(slices[i]);
    grpc_byte_buffer_destroy(buffer);
    rt_arena_reset(&arena);
}

Test(codec, empty_message_and_none)
{
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(NULL, 0);

    cr_assert_eq(decode(buffer), RT_OK);
    grpc_byte_buffer_destroy(buffer);
    cr_assert_eq(decode(NULL), RT_INVALID_ARGUMENT);
    rt_arena_reset(&arena);
}

Test(codec, every_truncation_and_garbage_is_refused_or_decoded_never_more)
{
    uint8_t packed[64];
    Rpctest__V1__Item item;
    size_t size;

    item_init(&item, 300, "0123456789", 10);
    size = protobuf_c_message_pack(&item.base, packed);
    for (size_t cut = 0; cut < size; cut++) {
        grpc_slice slice = grpc_slice_from_copied_buffer((const char *)packed, cut);
        grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
        enum rt_code code = decode(buffer);

        cr_assert(code == RT_OK || code == RT_INVALID_ARGUMENT);
        cr_assert(code != RT_OK || cut == 0 || cut == 12);
        grpc_slice_unref(slice);
        grpc_byte_buffer_destroy(buffer);
    }
    rt_arena_reset(&arena);
}

Test(codec, arena_limit_is_a_resource_and_not_an_argument)
{
    grpc_byte_buffer *buffer = encode("0123456789", 10);
    size_t needed;

    cr_assert_eq(decode(buffer), RT_OK);
    needed = arena.used;
    rt_arena_reset(&arena);
    arena.limit = needed;
    cr_assert_eq(decode(buffer), RT_OK);
    rt_arena_reset(&arena);
    arena.limit = needed - 1;
    cr_assert_eq(decode(buffer), RT_RESOURCE_EXHAUSTED);
    rt_arena_reset(&arena);
    grpc_byte_buffer_destroy(buffer);
}

Test(codec, memory_that_is_out_is_a_resource)
{
    grpc_byte_buffer *buffer = encode("0123456789", 10);

    test_alloc_fail_after(0, TEST_ALLOC_FOREVER);
    cr_assert_eq(decode(buffer), RT_RESOURCE_EXHAUSTED);
    test_alloc_fail_never();
    cr_assert_eq(decode(buffer), RT_OK);
    grpc_byte_buffer_destroy(buffer);
    rt_arena_reset(&arena);
}

Test(codec, rewound_arena_allocates_nothing_for_small_messages)
{
    grpc_byte_buffer *buffer = encode("0123456789", 10);
    size_t before;

    cr_assert_eq(decode(buffer), RT_OK);
    before = test_alloc_total();
    for (int i = 0; i < 100; i++) {
        rt_arena_rewind(&arena);
        cr_assert_eq(decode(buffer), RT_OK);
    }
    cr_assert_eq(test_alloc_total(), before);
    cr_assert_not_null(rt_arena_alloc(&arena, 100000));
    rt_arena_rewind(&arena);
    cr_assert_eq(test_alloc_live(), 1);
    grpc_byte_buffer_destroy(buffer);
    rt_arena_reset(&arena);
}

Test(codec, codes_beyond_the_known_ones_are_unknown)
{
    grpc_metadata_array none;

    grpc_metadata_array_init(&none);
    rpc_error_of_status((grpc_status_code)17, grpc_empty_slice(), &none, &err);
    cr_assert_eq(err.code, RT_UNKNOWN);
    rpc_error_of_status(GRPC_STATUS_DATA_LOSS, grpc_slice_from_static_string("lost"), &none, &err);
    cr_assert_eq(err.code, RT_DATA_LOSS);
    cr_assert_str_eq(err.message, "lost");
    cr_assert_eq(err.detail.size, 0);
}

/* ---- outbox ---- */

static void push(struct rpc_outbox *outbox, size_t size)
{
    rpc_outbox_push(outbox, encode("", 0), size);
}

static void pop(struct rpc_outbox *outbox)
{
    grpc_byte_buffer *buffer = rpc_outbox_pop(outbox);

    cr_assert_not_null(buffer);
    grpc_byte_buffer_destroy(buffer);
}

Test(codec, outbox_limits_count_and_bytes)
{
    struct rpc_outbox outbox = {.max_count = 3, .max_bytes = 100};

    cr_assert(rpc_outbox_has_room(&outbox, 1000));
    push(&outbox, 40);
    cr_assert(rpc_outbox_has_room(&outbox, 60));
    cr_assert_not(rpc_outbox_has_room(&outbox, 61));
    push(&outbox, 10);
    push(&outbox, 10);
    cr_assert_not(rpc_outbox_has_room(&outbox, 1));
    cr_assert_not(rpc_outbox_take_writable(&outbox));
    pop(&outbox);
    cr_assert_not(rpc_outbox_take_writable(&outbox));
    pop(&outbox);
    cr_assert(rpc_outbox_take_writable(&outbox));
    cr_assert_not(rpc_outbox_take_writable(&outbox));
    rpc_outbox_deinit(&outbox);
}

Test(codec, outbox_keeps_order_while_it_grows_and_wraps)
{
    struct rpc_outbox outbox = {.max_count = 100, .max_bytes = 100000};
    size_t expected = 1;
    size_t next = 1;
    size_t before;

    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 5; i++)
            push(&outbox, next++);
        for (int i = 0; i < 3; i++) {
            before = outbox.bytes;
            pop(&outbox);
            cr_assert_eq(before - outbox.bytes, expected++);
        }
    }
    cr_assert_eq(outbox.count, 40);
    rpc_outbox_clear(&outbox);
    cr_assert_null(rpc_outbox_pop(&outbox));
    cr_assert_eq(outbox.bytes, 0);
    rpc_outbox_deinit(&outbox);
}
