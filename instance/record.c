/*
 * Stored records: see record.h. Invariant: decode(encode(x)) = x and encode(decode(b)) = b for
 * every b that decodes. Pure; any thread.
 */
#include "instance/record.h"

#include "runtime/base/codec.h"

enum {
    FORMAT = 2,
    REQUEST_ID_SIZE = 24,
    SUFFIX_SIZE = 2,
};

enum row_flag {
    ROW_LOCKED = 1,
    ROW_DIRTY = 2,
    ROW_HAS_VALUE = 4,
    ROW_KEY_LOST = 8,
    ROW_ALL_FLAGS = 15,
};

enum dedup_flag {
    DEDUP_HAS_VALUE = 1,
    DEDUP_STORED = 2,
    DEDUP_SETS_LOST = 4,
    DEDUP_ALL_FLAGS = 7,
};

bool inst_record_equal(const struct inst_record *a, const struct inst_record *b)
{
    return a->epoch == b->epoch && a->incarnation == b->incarnation && a->floor == b->floor &&
           a->closed == b->closed && a->released == b->released &&
           a->dedup_since == b->dedup_since && a->seq == b->seq && a->locking == b->locking &&
           a->locked == b->locked && a->dirty == b->dirty && a->has_value == b->has_value &&
           a->key_lost == b->key_lost;
}

/* `rest` is a key and a request id. */
static void parse_dedup_name(struct rt_bytes rest, struct inst_record_name *name)
{
    struct rt_codec_reader reader;

    if (rest.size <= REQUEST_ID_SIZE || rest.size - REQUEST_ID_SIZE > MODEL_KEY_MAX)
        return;
    reader = rt_codec_reader_of(rest);
    name->kind = INST_RECORD_DEDUP;
    name->key = rt_codec_get_raw(&reader, rest.size - REQUEST_ID_SIZE);
    memcpy(name->request_id.client.bytes, rt_codec_get_raw(&reader, 16).data, 16);
    name->request_id.seq = rt_codec_get_u64(&reader);
}

static enum inst_record_kind kind_of(uint8_t letter)
{
    if (letter == 'r')
        return INST_RECORD_ROW;
    if (letter == 'v')
        return INST_RECORD_VALUE;
    if (letter == 'e')
        return INST_RECORD_EVICTED;
    return letter == 's' ? INST_RECORD_SPILL : INST_RECORD_FOREIGN;
}

struct inst_record_name inst_record_parse_name(struct rt_bytes stored_key)
{
    struct inst_record_name name = {.kind = INST_RECORD_FOREIGN};
    struct rt_bytes rest;
    uint8_t letter;

    if (rt_bytes_equal(stored_key, RT_BYTES_LITERAL("meta"))) {
        name.kind = INST_RECORD_META;
        return name;
    }
    if (stored_key.size <= SUFFIX_SIZE || stored_key.data[stored_key.size - SUFFIX_SIZE] != '/')
        return name;
    rest = rt_bytes_of(stored_key.data, stored_key.size - SUFFIX_SIZE);
    letter = stored_key.data[stored_key.size - 1];
    if (letter == 'd') {
        parse_dedup_name(rest, &name);
        return name;
    }
    name.kind = kind_of(letter);
    if (rest.size > MODEL_KEY_MAX)
        name.kind = INST_RECORD_FOREIGN;
    if (name.kind != INST_RECORD_FOREIGN)
        name.key = rest;
    return name;
}

static void append(struct inst_record_key *key, const void *data, size_t size)
{
    rt_assert(size <= sizeof(key->bytes) - key->size);
    memcpy(key->bytes + key->size, data, size);
    key->size += size;
}

static void append_request_id(struct inst_record_key *key, const struct model_request_id *id)
{
    append(key, id->client.bytes, sizeof(id->client.bytes));
    for (int shift = 56; shift >= 0; shift -= 8) {
        uint8_t byte = (uint8_t)(id->seq >> shift);

        append(key, &byte, 1);
    }
}

struct rt_bytes inst_record_format_name(const struct inst_record_name *name,
                                        struct inst_record_key *ret_key)
{
    static const char suffixes[][SUFFIX_SIZE] = {
        [INST_RECORD_ROW] = {'/', 'r'},   [INST_RECORD_VALUE] = {'/', 'v'},
        [INST_RECORD_SPILL] = {'/', 's'}, [INST_RECORD_EVICTED] = {'/', 'e'},
        [INST_RECORD_DEDUP] = {'/', 'd'},
    };

    rt_assert(name->kind != INST_RECORD_FOREIGN);
    ret_key->size = 0;
    if (name->kind == INST_RECORD_META) {
        append(ret_key, "meta", 4);
        return rt_bytes_of(ret_key->bytes, ret_key->size);
    }
    append(ret_key, name->key.data, name->key.size);
    if (name->kind == INST_RECORD_DEDUP)
        append_request_id(ret_key, &name->request_id);
    append(ret_key, suffixes[name->kind], SUFFIX_SIZE);
    return rt_bytes_of(ret_key->bytes, ret_key->size);
}

static void put_version(struct rt_buffer *buffer, const struct model_version *version)
{
    rt_codec_put_u64(buffer, version->epoch);
    rt_codec_put_u64(buffer, version->incarnation);
    rt_codec_put_u64(buffer, version->seq);
}

static struct model_version get_version(struct rt_codec_reader *reader)
{
    struct model_version version;

    version.epoch = rt_codec_get_u64(reader);
    version.incarnation = rt_codec_get_u64(reader);
    version.seq = rt_codec_get_u64(reader);
    return version;
}

static enum rt_code finish(const struct rt_codec_reader *reader, bool valid, const char *what,
                           struct rt_error *err)
{
    if (!valid && !reader->failed)
        return rt_fail(err, RT_DATA_LOSS, "%s has an unknown format or value", what);
    return rt_codec_finish(reader, what, err);
}

void inst_record_encode_meta(struct rt_buffer *buffer, const struct inst_meta *meta)
{
    rt_codec_put_u8(buffer, FORMAT);
    rt_codec_put_raw(buffer, rt_bytes_of(meta->cluster_id.bytes, sizeof(meta->cluster_id.bytes)));
    rt_codec_put_u64(buffer, meta->term);
    rt_codec_put_u64(buffer, meta->incarnation);
    rt_codec_put_bytes(buffer, rt_bytes_of_string(meta->name));
}

enum rt_code inst_record_decode_meta(struct rt_bytes bytes, struct inst_meta *ret_meta,
                                     struct rt_error *err)
{
    struct rt_codec_reader reader = rt_codec_reader_of(bytes);
    bool valid = rt_codec_get_u8(&reader) == FORMAT;
    struct inst_meta meta = {0};
    struct rt_bytes id = rt_codec_get_raw(&reader, sizeof(meta.cluster_id.bytes));
    struct rt_bytes name;
    enum rt_code code;

    if (id.size == sizeof(meta.cluster_id.bytes))
        memcpy(meta.cluster_id.bytes, id.data, id.size);
    meta.term = rt_codec_get_u64(&reader);
    meta.incarnation = rt_codec_get_u64(&reader);
    name = rt_codec_get_bytes(&reader);
    if (name.size <= MODEL_NAME_MAX && name.size > 0)
        memcpy(meta.name, name.data, name.size);
    code =
        finish(&reader, valid && name.size <= MODEL_NAME_MAX, "the row of the data directory", err);
    if (code == RT_OK)
        *ret_meta = meta;
    return code;
}

void inst_record_encode_row(struct rt_buffer *buffer, const struct inst_record *record)
{
    unsigned flags = 0;

    flags |= record->locked ? ROW_LOCKED : 0u;
    flags |= record->dirty ? ROW_DIRTY : 0u;
    flags |= record->has_value ? ROW_HAS_VALUE : 0u;
    flags |= record->key_lost ? ROW_KEY_LOST : 0u;
    rt_codec_put_u8(buffer, FORMAT);
    rt_codec_put_u64(buffer, record->epoch);
    rt_codec_put_u64(buffer, record->incarnation);
    rt_codec_put_u64(buffer, record->floor);
    rt_codec_put_u64(buffer, record->closed);
    rt_codec_put_u64(buffer, record->released);
    rt_codec_put_u64(buffer, record->dedup_since);
    rt_codec_put_u64(buffer, record->seq);
    rt_codec_put_u8(buffer, (uint8_t)record->locking);
    rt_codec_put_u8(buffer, (uint8_t)flags);
}

enum rt_code inst_record_decode_row(struct rt_bytes bytes, struct inst_record *ret_record,
                                    struct rt_error *err)
{
    struct rt_codec_reader reader = rt_codec_reader_of(bytes);
    bool valid = rt_codec_get_u8(&reader) == FORMAT;
    struct inst_record record = {0};
    unsigned locking;
    unsigned flags;
    enum rt_code code;

    record.epoch = rt_codec_get_u64(&reader);
    record.incarnation = rt_codec_get_u64(&reader);
    record.floor = rt_codec_get_u64(&reader);
    record.closed = rt_codec_get_u64(&reader);
    record.released = rt_codec_get_u64(&reader);
    record.dedup_since = rt_codec_get_u64(&reader);
    record.seq = rt_codec_get_u64(&reader);
    locking = rt_codec_get_u8(&reader);
    flags = rt_codec_get_u8(&reader);
    record.locking = (enum model_locking)locking;
    record.locked = flags & ROW_LOCKED;
    record.dirty = flags & ROW_DIRTY;
    record.has_value = flags & ROW_HAS_VALUE;
    record.key_lost = flags & ROW_KEY_LOST;
    code = finish(&reader, valid && locking <= MODEL_LOCKING_NONE && flags <= ROW_ALL_FLAGS,
                  "an ownership row", err);
    if (code == RT_OK)
        *ret_record = record;
    return code;
}

void inst_record_encode_value(struct rt_buffer *buffer, const struct model_version *version,
                              struct rt_bytes value)
{
    rt_codec_put_u8(buffer, FORMAT);
    put_version(buffer, version);
    rt_codec_put_raw(buffer, value);
}

enum rt_code inst_record_decode_value(struct rt_bytes bytes, struct model_version *ret_version,
                                      struct rt_bytes *ret_value, struct rt_error *err)
{
    struct rt_codec_reader reader = rt_codec_reader_of(bytes);
    bool valid = rt_codec_get_u8(&reader) == FORMAT;
    struct model_version version = get_version(&reader);
    struct rt_bytes value = rt_codec_get_rest(&reader);
    enum rt_code code = finish(&reader, valid && value.size <= MODEL_VALUE_MAX, "a value", err);

    if (code == RT_OK) {
        *ret_version = version;
        *ret_value = value;
    }
    return code;
}

void inst_record_encode_evicted(struct rt_buffer *buffer, uint64_t epoch)
{
    rt_codec_put_u8(buffer, FORMAT);
    rt_codec_put_u64(buffer, epoch);
}

enum rt_code inst_record_decode_evicted(struct rt_bytes bytes, uint64_t *ret_epoch,
                                        struct rt_error *err)
{
    struct rt_codec_reader reader = rt_codec_reader_of(bytes);
    bool valid = rt_codec_get_u8(&reader) == FORMAT;
    uint64_t epoch = rt_codec_get_u64(&reader);
    enum rt_code code = finish(&reader, valid, "an evicted key", err);

    if (code == RT_OK)
        *ret_epoch = epoch;
    return code;
}

void inst_record_encode_dedup(struct rt_buffer *buffer, const struct inst_dedup_result *result)
{
    unsigned flags = 0;

    flags |= result->has_value ? DEDUP_HAS_VALUE : 0u;
    flags |= result->stored ? DEDUP_STORED : 0u;
    flags |= result->sets_lost ? DEDUP_SETS_LOST : 0u;
    rt_codec_put_u8(buffer, FORMAT);
    put_version(buffer, &result->version);
    rt_codec_put_u8(buffer, (uint8_t)flags);
}

enum rt_code inst_record_decode_dedup(struct rt_bytes bytes, struct inst_dedup_result *ret_result,
                                      struct rt_error *err)
{
    struct rt_codec_reader reader = rt_codec_reader_of(bytes);
    bool valid = rt_codec_get_u8(&reader) == FORMAT;
    struct inst_dedup_result result = {.version = get_version(&reader)};
    unsigned flags = rt_codec_get_u8(&reader);
    enum rt_code code;

    result.has_value = flags & DEDUP_HAS_VALUE;
    result.stored = flags & DEDUP_STORED;
    result.sets_lost = flags & DEDUP_SETS_LOST;
    code = finish(&reader, valid && flags <= DEDUP_ALL_FLAGS, "a remembered request", err);
    if (code == RT_OK)
        *ret_result = result;
    return code;
}
