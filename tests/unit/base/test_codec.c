/*
 * Record encoding: known bytes, order, and truncation at every length.
 */
#include "runtime/base/codec.h"

#include "runtime/base/alloc.h"
#include "tests/support/check.h"

TestSuite(codec, .fini = test_alloc_expect_none);

static void put_all(struct rt_buffer *buffer)
{
    rt_codec_put_u8(buffer, 0x01);
    rt_codec_put_u16(buffer, 0x0203);
    rt_codec_put_u32(buffer, 0x04050607);
    rt_codec_put_u64(buffer, 0x08090a0b0c0d0e0fu);
    rt_codec_put_bytes(buffer, RT_BYTES_LITERAL("k\0y"));
    rt_codec_put_bytes(buffer, (struct rt_bytes){0});
    rt_codec_put_raw(buffer, RT_BYTES_LITERAL("id"));
}

struct record {
    uint8_t a;
    uint16_t b;
    uint32_t c;
    uint64_t d;
    struct rt_bytes e;
    struct rt_bytes f;
    struct rt_bytes g;
};

static enum rt_code get_all(struct rt_bytes input, struct record *ret_record, struct rt_error *err)
{
    struct rt_codec_reader reader = rt_codec_reader_of(input);

    ret_record->a = rt_codec_get_u8(&reader);
    ret_record->b = rt_codec_get_u16(&reader);
    ret_record->c = rt_codec_get_u32(&reader);
    ret_record->d = rt_codec_get_u64(&reader);
    ret_record->e = rt_codec_get_bytes(&reader);
    ret_record->f = rt_codec_get_bytes(&reader);
    ret_record->g = rt_codec_get_raw(&reader, 2);
    return rt_codec_finish(&reader, "test record", err);
}

Test(codec, bytes_are_big_endian)
{
    struct rt_buffer buffer = {0};

    put_all(&buffer);
    cr_assert(rt_bytes_equal(
        rt_buffer_bytes(&buffer),
        RT_BYTES_LITERAL("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\0\0\0\3k\0y"
                         "\0\0\0\0id")));
    rt_buffer_deinit(&buffer);
}

Test(codec, reads_what_was_written)
{
    struct rt_buffer buffer = {0};
    struct record record;

    put_all(&buffer);
    cr_assert_eq(get_all(rt_buffer_bytes(&buffer), &record, NULL), RT_OK);
    cr_assert_eq(record.a, 0x01);
    cr_assert_eq(record.b, 0x0203);
    cr_assert_eq(record.c, 0x04050607);
    cr_assert_eq(record.d, 0x08090a0b0c0d0e0fu);
    cr_assert(rt_bytes_equal(record.e, RT_BYTES_LITERAL("k\0y")));
    cr_assert_eq(record.f.size, 0);
    cr_assert(rt_bytes_equal(record.g, RT_BYTES_LITERAL("id")));
    rt_buffer_deinit(&buffer);
}

Test(codec, truncated_at_every_length)
{
    struct rt_buffer buffer = {0};

    put_all(&buffer);
    for (size_t size = 0; size < buffer.size; size++) {
        /* A block of exactly this size lets AddressSanitizer see a read past the end. */
        RT_CLEANUP(rt_freep) uint8_t *cut = rt_xmemdup(buffer.data, size);
        struct rt_error err = RT_ERROR_INIT;
        struct record record;

        cr_assert_eq(get_all(rt_bytes_of(cut, size), &record, &err), RT_DATA_LOSS);
        cr_assert_str_eq(err.message, "test record is truncated");
        cr_assert_eq(record.g.size, 0);
    }
    rt_buffer_deinit(&buffer);
}

Test(codec, bytes_too_many)
{
    struct rt_buffer buffer = {0};
    struct rt_error err = RT_ERROR_INIT;
    struct record record;

    put_all(&buffer);
    rt_codec_put_u8(&buffer, 0);
    cr_assert_eq(get_all(rt_buffer_bytes(&buffer), &record, &err), RT_DATA_LOSS);
    cr_assert_str_eq(err.message, "test record has 1 bytes too many");
    rt_buffer_deinit(&buffer);
}

Test(codec, reads_after_a_failure_give_nothing)
{
    struct rt_codec_reader reader = rt_codec_reader_of(RT_BYTES_LITERAL("\xff\xff\xff\xffxyz"));

    cr_assert_eq(rt_codec_get_bytes(&reader).size, 0);
    cr_assert(reader.failed);
    cr_assert_eq(rt_codec_get_u8(&reader), 0);
    cr_assert_eq(rt_codec_get_raw(&reader, 0).size, 0);
    cr_assert_eq(rt_codec_get_rest(&reader).size, 0);
    cr_assert_eq(rt_codec_finish(&reader, "record", NULL), RT_DATA_LOSS);
}

Test(codec, rest_takes_what_later_versions_add)
{
    struct rt_codec_reader reader = rt_codec_reader_of(RT_BYTES_LITERAL("\x02new"));

    cr_assert_eq(rt_codec_get_u8(&reader), 2);
    cr_assert(rt_bytes_equal(rt_codec_get_rest(&reader), RT_BYTES_LITERAL("new")));
    cr_assert_eq(rt_codec_get_rest(&reader).size, 0);
    cr_assert_eq(rt_codec_finish(&reader, "record", NULL), RT_OK);
}

Test(codec, empty_record)
{
    struct rt_codec_reader reader = rt_codec_reader_of((struct rt_bytes){0});

    cr_assert_eq(rt_codec_get_raw(&reader, 0).size, 0);
    cr_assert_eq(rt_codec_finish(&reader, "record", NULL), RT_OK);
    cr_assert_eq(rt_codec_get_u64(&reader), 0);
    cr_assert(reader.failed);
}

Test(codec, numbers_sort_as_bytes)
{
    static const uint64_t numbers[] = {0, 1, 255, 256, 65535, 1u << 31, UINT64_MAX - 1, UINT64_MAX};
    struct rt_buffer previous = {0};

    for (size_t i = 0; i < RT_ARRAY_SIZE(numbers); i++) {
        struct rt_buffer buffer = {0};

        rt_codec_put_u64(&buffer, numbers[i]);
        cr_assert_lt(rt_bytes_compare(rt_buffer_bytes(&previous), rt_buffer_bytes(&buffer)), 0);
        rt_buffer_deinit(&previous);
        previous = buffer;
    }
    rt_buffer_deinit(&previous);
}

Test(codec, length_limit_plus_one_fails_the_buffer)
{
    struct rt_buffer buffer = {.limit = SIZE_MAX};

    /* The data is not touched: the length alone decides. */
    rt_codec_put_bytes(&buffer, rt_bytes_of("", (size_t)UINT32_MAX + 1));
    cr_assert(buffer.failed);
    cr_assert_eq(buffer.size, 0);
    rt_buffer_deinit(&buffer);
}
