/*
 * Stored records: round trips, names at the limits, and everything that is cut or changed.
 */
#include "instance/record.h"

#include "tests/support/check.h"

TestSuite(record, .fini = test_alloc_expect_none);

static const struct inst_record sample = {
    .epoch = 1ull << 48 | 5,
    .incarnation = 2,
    .floor = 3,
    .closed = 4,
    .released = 5,
    .dedup_since = 6,
    .seq = 7,
    .locking = MODEL_LOCKING_NONE,
    .locked = true,
    .has_value = true,
};

Test(record, row_round_trip_and_every_flag)
{
    for (unsigned flags = 0; flags < 16; flags++) {
        struct inst_record record = sample;
        struct inst_record copy;
        struct rt_buffer buffer = {0};

        record.locked = flags & 1;
        record.dirty = flags & 2;
        record.has_value = flags & 4;
        record.key_lost = flags & 8;
        inst_record_encode_row(&buffer, &record);
        cr_assert_eq(inst_record_decode_row(rt_buffer_bytes(&buffer), &copy, NULL), RT_OK);
        cr_assert(inst_record_equal(&record, &copy));
        copy.released++;
        cr_assert_not(inst_record_equal(&record, &copy));
        rt_buffer_deinit(&buffer);
    }
}

Test(record, row_refuses_cut_long_and_unknown)
{
    struct rt_buffer buffer = {0};
    struct inst_record copy;

    inst_record_encode_row(&buffer, &sample);
    for (size_t size = 0; size < buffer.size; size++)
        cr_assert_eq(inst_record_decode_row(rt_bytes_of(buffer.data, size), &copy, NULL),
                     RT_DATA_LOSS);
    buffer.data[buffer.size - 1] = 16;
    cr_assert_eq(inst_record_decode_row(rt_buffer_bytes(&buffer), &copy, NULL), RT_DATA_LOSS);
    buffer.data[buffer.size - 1] = 0;
    buffer.data[buffer.size - 2] = MODEL_LOCKING_NONE + 1;
    cr_assert_eq(inst_record_decode_row(rt_buffer_bytes(&buffer), &copy, NULL), RT_DATA_LOSS);
    buffer.data[buffer.size - 2] = MODEL_LOCKING_NONE;
    buffer.data[0]++;
    cr_assert_eq(inst_record_decode_row(rt_buffer_bytes(&buffer), &copy, NULL), RT_DATA_LOSS);
    buffer.data[0]--;
    rt_buffer_append_byte(&buffer, 0);
    cr_assert_eq(inst_record_decode_row(rt_buffer_bytes(&buffer), &copy, NULL), RT_DATA_LOSS);
    rt_buffer_deinit(&buffer);
}

Test(record, meta_value_and_dedup_round_trips)
{
    struct inst_meta meta = {.cluster_id = {{1, 2}}, .term = 3, .incarnation = 4, .name = "a"};
    struct model_version version = {1, 2, 3};
    struct inst_dedup_result result = {.version = version, .stored = true};
    struct inst_meta meta_copy;
    struct inst_dedup_result result_copy;
    struct model_version version_copy;
    struct rt_bytes value;
    struct rt_buffer buffer = {0};

    inst_record_encode_meta(&buffer, &meta);
    cr_assert_eq(inst_record_decode_meta(rt_buffer_bytes(&buffer), &meta_copy, NULL), RT_OK);
    cr_assert_eq(meta_copy.term, 3);
    cr_assert_str_eq(meta_copy.name, "a");
    for (size_t size = 0; size < buffer.size; size++)
        cr_assert_eq(inst_record_decode_meta(rt_bytes_of(buffer.data, size), &meta_copy, NULL),
                     RT_DATA_LOSS);
    rt_buffer_reset(&buffer);

    inst_record_encode_value(&buffer, &version, RT_BYTES_LITERAL("v\0w"));
    cr_assert_eq(inst_record_decode_value(rt_buffer_bytes(&buffer), &version_copy, &value, NULL),
                 RT_OK);
    cr_assert_eq(model_version_compare(&version, &version_copy), 0);
    cr_assert_eq(value.size, 3);
    cr_assert_eq(
        inst_record_decode_value(rt_bytes_of(buffer.data, 24), &version_copy, &value, NULL),
        RT_DATA_LOSS);
    rt_buffer_reset(&buffer);

    inst_record_encode_dedup(&buffer, &result);
    cr_assert_eq(inst_record_decode_dedup(rt_buffer_bytes(&buffer), &result_copy, NULL), RT_OK);
    cr_assert(result_copy.stored);
    cr_assert_not(result_copy.has_value);
    buffer.data[buffer.size - 1] = 8;
    cr_assert_eq(inst_record_decode_dedup(rt_buffer_bytes(&buffer), &result_copy, NULL),
                 RT_DATA_LOSS);
    rt_buffer_deinit(&buffer);
}

Test(record, evicted_round_trip)
{
    struct rt_buffer buffer = {0};
    uint64_t epoch = 0;

    inst_record_encode_evicted(&buffer, 77);
    cr_assert_eq(inst_record_decode_evicted(rt_buffer_bytes(&buffer), &epoch, NULL), RT_OK);
    cr_assert_eq(epoch, 77);
    for (size_t size = 0; size < buffer.size; size++)
        cr_assert_eq(inst_record_decode_evicted(rt_bytes_of(buffer.data, size), &epoch, NULL),
                     RT_DATA_LOSS);
    buffer.data[0]++;
    cr_assert_eq(inst_record_decode_evicted(rt_buffer_bytes(&buffer), &epoch, NULL), RT_DATA_LOSS);
    rt_buffer_deinit(&buffer);
}

Test(record, value_at_the_limit_and_one_past_it)
{
    static const uint8_t bytes[MODEL_VALUE_MAX];
    struct model_version version = {1, 2, 3};
    struct rt_bytes value;
    struct rt_buffer buffer = {0};

    inst_record_encode_value(&buffer, &version, (struct rt_bytes){0});
    rt_buffer_append(&buffer, rt_bytes_of(bytes, sizeof(bytes)));
    cr_assert_eq(inst_record_decode_value(rt_buffer_bytes(&buffer), &version, &value, NULL), RT_OK);
    rt_buffer_append_byte(&buffer, 7);
    cr_assert_eq(inst_record_decode_value(rt_buffer_bytes(&buffer), &version, &value, NULL),
                 RT_DATA_LOSS);
    rt_buffer_deinit(&buffer);
}

Test(record, names_round_trip_at_the_key_limit)
{
    uint8_t bytes[MODEL_KEY_MAX + 1];
    static const enum inst_record_kind kinds[] = {INST_RECORD_ROW, INST_RECORD_VALUE,
                                                  INST_RECORD_SPILL, INST_RECORD_EVICTED,
                                                  INST_RECORD_DEDUP};

    memset(bytes, 0xfe, sizeof(bytes));
    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        struct inst_record_name name = {.kind = kinds[i],
                                        .key = rt_bytes_of(bytes, MODEL_KEY_MAX),
                                        .request_id = {{{1}}, 0x0102030405060708}};
        struct inst_record_key key;
        struct inst_record_name copy = inst_record_parse_name(inst_record_format_name(&name, &key));

        cr_assert_leq(key.size, (size_t)STORE_KEY_MAX);
        cr_assert_eq(copy.kind, kinds[i]);
        cr_assert(rt_bytes_equal(copy.key, name.key));
        if (kinds[i] == INST_RECORD_DEDUP)
            cr_assert_eq(copy.request_id.seq, 0x0102030405060708);
    }
}

/* What a key has on disk lies together, in this order of the store. */
Test(record, rows_of_a_key_are_neighbours)
{
    static const char *const keys[] = {"a", "b"};
    static const enum inst_record_kind kinds[] = {INST_RECORD_EVICTED, INST_RECORD_ROW,
                                                  INST_RECORD_SPILL, INST_RECORD_VALUE};
    struct inst_record_key before = {0};

    for (size_t i = 0; i < RT_ARRAY_SIZE(keys); i++) {
        for (size_t k = 0; k < RT_ARRAY_SIZE(kinds); k++) {
            struct inst_record_name name = {.kind = kinds[k], .key = rt_bytes_of_string(keys[i])};
            struct inst_record_key next;

            cr_assert_gt(rt_bytes_compare(inst_record_format_name(&name, &next),
                                          rt_bytes_of(before.bytes, before.size)),
                         0);
            before = next;
        }
    }
}

static enum inst_record_kind kind_of(const char *stored_key)
{
    return inst_record_parse_name(rt_bytes_of_string(stored_key)).kind;
}

Test(record, foreign_names)
{
    uint8_t bytes[MODEL_KEY_MAX + 1 + 24 + 2];

    cr_assert_eq(kind_of("meta"), INST_RECORD_META);
    cr_assert_eq(kind_of("metal"), INST_RECORD_FOREIGN);
    cr_assert_eq(kind_of("meta/r"), INST_RECORD_ROW);
    cr_assert_eq(kind_of("/r"), INST_RECORD_FOREIGN);
    cr_assert_eq(kind_of("k/x"), INST_RECORD_FOREIGN);
    cr_assert_eq(kind_of("k-r"), INST_RECORD_FOREIGN);
    cr_assert_eq(kind_of("r"), INST_RECORD_FOREIGN);
    cr_assert_eq(kind_of(""), INST_RECORD_FOREIGN);
    cr_assert_eq(kind_of("123456789012345678901234/d"), INST_RECORD_FOREIGN,
                 "a request without a key");
    memset(bytes, '/', sizeof(bytes));
    for (size_t size = MODEL_KEY_MAX; size <= MODEL_KEY_MAX + 1; size++) {
        enum inst_record_kind foreign = INST_RECORD_FOREIGN;

        bytes[size + 1] = 'r';
        cr_assert_eq(inst_record_parse_name(rt_bytes_of(bytes, size + 2)).kind,
                     size == MODEL_KEY_MAX ? INST_RECORD_ROW : foreign);
        bytes[size + 1] = '/';
        bytes[size + 24 + 1] = 'd';
        cr_assert_eq(inst_record_parse_name(rt_bytes_of(bytes, size + 24 + 2)).kind,
                     size == MODEL_KEY_MAX ? INST_RECORD_DEDUP : foreign);
        bytes[size + 24 + 1] = '/';
    }
}
