/*
 * Persisted rows: see rows.h. Invariant: what put writes, get reads back equal, and get accepts
 * nothing else. Pure.
 */
#include "coordinator/rows.h"

#include "runtime/base/codec.h"

enum {
    ROW_VERSION = 1,

    KEY_MAYBE_STORED = 1,
    KEY_LOST = 2,
    KEY_RELEASE_PENDING = 4,
    KEY_LOCKED = 8,
    KEY_DROPPING = 16,
    KEY_FLAGS = 31,

    DONE_STORED = 1,
    DONE_LOCK_LOST = 2,
    DONE_KEY = 4, /* the hash of the key follows */
    DONE_FLAGS = 7,

    SESSION_ENDED = 128, /* of the number of `done` */
};

static const char *const fixed_names[] = {
    [COORD_ROW_META] = "meta",
    [COORD_ROW_COUNTER] = "counter",
    [COORD_ROW_CURSOR] = "cursor",
    [COORD_ROW_ROUTE] = "route",
    [COORD_ROW_DISTRIBUTION] = "distribution",
};

static const struct {
    const char *prefix;
    size_t size_min;
    size_t size_max;
} prefixes[] = {
    [COORD_ROW_MEMBER] = {"m/", 1, MODEL_NAME_MAX},
    [COORD_ROW_KEY] = {"k/", 1, MODEL_KEY_MAX},
    [COORD_ROW_SESSION] = {"s/", sizeof(struct model_id), sizeof(struct model_id)},
};

enum rt_code coord_rows_parse_key(struct rt_bytes store_key, enum coord_row_kind *ret_kind,
                                  struct rt_bytes *ret_name, struct rt_error *err)
{
    for (size_t kind = COORD_ROW_META; kind <= COORD_ROW_DISTRIBUTION; kind++) {
        if (!rt_bytes_equal(store_key, rt_bytes_of_string(fixed_names[kind])))
            continue;
        *ret_kind = (enum coord_row_kind)kind;
        *ret_name = (struct rt_bytes){0};
        return RT_OK;
    }
    for (size_t kind = COORD_ROW_MEMBER; kind <= COORD_ROW_SESSION; kind++) {
        struct rt_bytes prefix = rt_bytes_of_string(prefixes[kind].prefix);
        size_t size = store_key.size - prefix.size;

        if (!rt_bytes_has_prefix(store_key, prefix) || size < prefixes[kind].size_min ||
            size > prefixes[kind].size_max)
            continue;
        *ret_kind = (enum coord_row_kind)kind;
        *ret_name = rt_bytes_of(store_key.data + prefix.size, size);
        return RT_OK;
    }
    return rt_fail(err, RT_DATA_LOSS, "row of %zu bytes has an unknown name", store_key.size);
}

static struct rt_bytes row_key(enum coord_row_kind kind, struct rt_bytes name, uint8_t *buffer)
{
    memcpy(buffer, prefixes[kind].prefix, 2);
    memcpy(buffer + 2, name.data, name.size);
    return rt_bytes_of(buffer, name.size + 2);
}

static void put_id(struct rt_buffer *buffer, const struct model_id *id)
{
    rt_codec_put_raw(buffer, rt_bytes_of(id->bytes, sizeof(id->bytes)));
}

static void get_id(struct rt_codec_reader *reader, struct model_id *ret_id)
{
    struct rt_bytes bytes = rt_codec_get_raw(reader, sizeof(ret_id->bytes));

    *ret_id = (struct model_id){{0}};
    if (bytes.size == sizeof(ret_id->bytes))
        memcpy(ret_id->bytes, bytes.data, bytes.size);
}

static void get_string(struct rt_codec_reader *reader, char *text, size_t size)
{
    struct rt_bytes bytes = rt_codec_get_bytes(reader);

    memset(text, 0, size);
    if (bytes.size >= size)
        reader->failed = true;
    else if (bytes.size > 0)
        memcpy(text, bytes.data, bytes.size);
}

/* Writes the finished record and frees the buffer. */
static void put_record(struct store_txn *txn, struct rt_bytes key, struct rt_buffer *buffer)
{
    rt_assert(!buffer->failed);
    store_txn_put(txn, key, rt_buffer_bytes(buffer));
    rt_buffer_deinit(buffer);
}

static struct rt_codec_reader open_record(struct rt_bytes value)
{
    struct rt_codec_reader reader = rt_codec_reader_of(value);

    if (rt_codec_get_u8(&reader) != ROW_VERSION)
        reader.failed = true;
    return reader;
}

void coord_rows_put_meta(struct store_txn *txn, const struct coord_meta_row *row)
{
    struct rt_buffer buffer = {0};

    rt_codec_put_u8(&buffer, ROW_VERSION);
    put_id(&buffer, &row->cluster_id);
    rt_codec_put_u16(&buffer, row->generation);
    rt_codec_put_u64(&buffer, row->term);
    rt_codec_put_u64(&buffer, row->longest_hold_us);
    put_record(txn, rt_bytes_of_string(fixed_names[COORD_ROW_META]), &buffer);
}

enum rt_code coord_rows_get_meta(struct rt_bytes value, struct coord_meta_row *ret_row,
                                 struct rt_error *err)
{
    struct rt_codec_reader reader = open_record(value);
    struct coord_meta_row row = {0};

    get_id(&reader, &row.cluster_id);
    row.generation = rt_codec_get_u16(&reader);
    row.term = rt_codec_get_u64(&reader);
    row.longest_hold_us = rt_codec_get_u64(&reader);
    if (model_id_is_none(&row.cluster_id))
        reader.failed = true;
    if (rt_codec_finish(&reader, "row meta", err) != RT_OK)
        return RT_DATA_LOSS;
    *ret_row = row;
    return RT_OK;
}

void coord_rows_put_number(struct store_txn *txn, enum coord_row_kind kind, uint64_t number)
{
    struct rt_buffer buffer = {0};

    rt_assert(kind >= COORD_ROW_COUNTER && kind <= COORD_ROW_DISTRIBUTION);
    rt_codec_put_u8(&buffer, ROW_VERSION);
    rt_codec_put_u64(&buffer, number);
    put_record(txn, rt_bytes_of_string(fixed_names[kind]), &buffer);
}

enum rt_code coord_rows_get_number(struct rt_bytes value, uint64_t *ret_number,
                                   struct rt_error *err)
{
    struct rt_codec_reader reader = open_record(value);
    uint64_t number = rt_codec_get_u64(&reader);

    if (rt_codec_finish(&reader, "number row", err) != RT_OK)
        return RT_DATA_LOSS;
    *ret_number = number;
    return RT_OK;
}

void coord_rows_put_member(struct store_txn *txn, const char *name,
                           const struct coord_member_row *row)
{
    uint8_t key[2 + MODEL_NAME_MAX];
    struct rt_buffer buffer = {0};

    rt_codec_put_u8(&buffer, ROW_VERSION);
    rt_codec_put_u32(&buffer, row->ordinal);
    rt_codec_put_u8(&buffer, (uint8_t)row->state);
    rt_codec_put_u64(&buffer, row->incarnation);
    put_id(&buffer, &row->store_id);
    put_id(&buffer, &row->boot_id);
    put_id(&buffer, &row->machine_id);
    rt_codec_put_u8(&buffer, row->local_store);
    rt_codec_put_u64(&buffer, row->entries_total);
    rt_codec_put_u64(&buffer, row->entry_size);
    rt_codec_put_bytes(&buffer, rt_bytes_of_string(row->address));
    put_record(txn, row_key(COORD_ROW_MEMBER, rt_bytes_of_string(name), key), &buffer);
}

enum rt_code coord_rows_get_member(struct rt_bytes value, struct coord_member_row *ret_row,
                                   struct rt_error *err)
{
    struct rt_codec_reader reader = open_record(value);
    struct coord_member_row row = {0};
    uint8_t state;

    row.ordinal = rt_codec_get_u32(&reader);
    state = rt_codec_get_u8(&reader);
    row.incarnation = rt_codec_get_u64(&reader);
    get_id(&reader, &row.store_id);
    get_id(&reader, &row.boot_id);
    get_id(&reader, &row.machine_id);
    row.local_store = rt_codec_get_u8(&reader) != 0;
    row.entries_total = rt_codec_get_u64(&reader);
    row.entry_size = rt_codec_get_u64(&reader);
    get_string(&reader, row.address, sizeof(row.address));
    if (state > MODEL_MEMBER_LEFT || row.ordinal == 0 || row.ordinal > MODEL_MEMBERS_MAX)
        reader.failed = true;
    row.state = (enum model_member_state)state;
    if (rt_codec_finish(&reader, "member row", err) != RT_OK)
        return RT_DATA_LOSS;
    *ret_row = row;
    return RT_OK;
}

void coord_rows_put_key(struct store_txn *txn, struct rt_bytes key, const struct coord_key_row *row)
{
    uint8_t name[2 + MODEL_KEY_MAX];
    struct rt_buffer buffer = {0};
    unsigned flags = (row->maybe_stored ? KEY_MAYBE_STORED : 0) | (row->key_lost ? KEY_LOST : 0) |
                     (row->release_pending ? KEY_RELEASE_PENDING : 0) |
                     (row->locked ? KEY_LOCKED : 0) | (row->dropping ? KEY_DROPPING : 0);

    rt_codec_put_u8(&buffer, ROW_VERSION);
    rt_codec_put_u8(&buffer, (uint8_t)row->phase);
    rt_codec_put_u8(&buffer, (uint8_t)flags);
    rt_codec_put_u32(&buffer, row->owner);
    rt_codec_put_u64(&buffer, row->epoch);
    rt_codec_put_u64(&buffer, row->newest_token);
    if (row->locked) {
        put_id(&buffer, &row->session_id);
        rt_codec_put_u64(&buffer, row->token);
    }
    put_record(txn, row_key(COORD_ROW_KEY, key, name), &buffer);
}

void coord_rows_delete_key(struct store_txn *txn, struct rt_bytes key)
{
    uint8_t name[2 + MODEL_KEY_MAX];

    store_txn_delete(txn, row_key(COORD_ROW_KEY, key, name));
}

static bool key_row_is_sound(const struct coord_key_row *row, uint8_t phase, uint8_t flags)
{
    bool placed = phase != COORD_PHASE_UNPLACED;

    if (phase > COORD_PHASE_ACTIVE || (flags & ~KEY_FLAGS) != 0)
        return false;
    if (placed != (row->owner != 0) || placed != (row->epoch != 0))
        return false;
    return row->owner <= MODEL_MEMBERS_MAX && (!row->locked || row->token != 0);
}

enum rt_code coord_rows_get_key(struct rt_bytes value, struct coord_key_row *ret_row,
                                struct rt_error *err)
{
    struct rt_codec_reader reader = open_record(value);
    struct coord_key_row row = {0};
    uint8_t phase = rt_codec_get_u8(&reader);
    uint8_t flags = rt_codec_get_u8(&reader);

    row.phase = (enum coord_phase)phase;
    row.maybe_stored = (flags & KEY_MAYBE_STORED) != 0;
    row.key_lost = (flags & KEY_LOST) != 0;
    row.release_pending = (flags & KEY_RELEASE_PENDING) != 0;
    row.locked = (flags & KEY_LOCKED) != 0;
    row.dropping = (flags & KEY_DROPPING) != 0;
    row.owner = rt_codec_get_u32(&reader);
    row.epoch = rt_codec_get_u64(&reader);
    row.newest_token = rt_codec_get_u64(&reader);
    if (row.locked) {
        get_id(&reader, &row.session_id);
        row.token = rt_codec_get_u64(&reader);
    }
    if (!key_row_is_sound(&row, phase, flags))
        reader.failed = true;
    if (rt_codec_finish(&reader, "key row", err) != RT_OK)
        return RT_DATA_LOSS;
    *ret_row = row;
    return RT_OK;
}

static void put_done(struct rt_buffer *buffer, const struct coord_done *done)
{
    rt_codec_put_u64(buffer, done->seq);
    rt_codec_put_u64(buffer, done->epoch);
    rt_codec_put_u64(buffer, done->version.epoch);
    rt_codec_put_u64(buffer, done->version.incarnation);
    rt_codec_put_u64(buffer, done->version.seq);
    rt_codec_put_u8(buffer, (uint8_t)((done->stored ? DONE_STORED : 0) |
                                      (done->lock_lost ? DONE_LOCK_LOST : 0) |
                                      (done->key_hash ? DONE_KEY : 0)));
    if (done->key_hash)
        rt_codec_put_u64(buffer, done->key_hash);
}

static void get_done(struct rt_codec_reader *reader, struct coord_done *ret_done)
{
    uint8_t flags;

    ret_done->seq = rt_codec_get_u64(reader);
    ret_done->epoch = rt_codec_get_u64(reader);
    ret_done->version.epoch = rt_codec_get_u64(reader);
    ret_done->version.incarnation = rt_codec_get_u64(reader);
    ret_done->version.seq = rt_codec_get_u64(reader);
    flags = rt_codec_get_u8(reader);
    ret_done->stored = (flags & DONE_STORED) != 0;
    ret_done->lock_lost = (flags & DONE_LOCK_LOST) != 0;
    if ((flags & DONE_KEY) != 0)
        ret_done->key_hash = rt_codec_get_u64(reader);
    if ((flags & ~DONE_FLAGS) != 0)
        reader->failed = true;
}

void coord_rows_put_session(struct store_txn *txn, const struct model_id *id,
                            const struct coord_session_row *row)
{
    uint8_t key[2 + sizeof(id->bytes)];
    struct rt_buffer buffer = {0};
    uint8_t n_done = 0;

    for (size_t i = 0; i < COORD_DONE_MAX; i++)
        n_done += row->done[i].seq != 0;
    rt_codec_put_u8(&buffer, ROW_VERSION);
    rt_codec_put_bytes(&buffer, rt_bytes_of_string(row->name));
    put_id(&buffer, &row->client);
    rt_codec_put_u64(&buffer, row->done_below);
    rt_codec_put_u8(&buffer, (uint8_t)(n_done | (row->has_ended ? SESSION_ENDED : 0)));
    for (size_t i = 0; i < COORD_DONE_MAX; i++) {
        if (row->done[i].seq != 0)
            put_done(&buffer, &row->done[i]);
    }
    put_record(txn, row_key(COORD_ROW_SESSION, rt_bytes_of(id->bytes, sizeof(id->bytes)), key),
               &buffer);
}

void coord_rows_delete_session(struct store_txn *txn, const struct model_id *id)
{
    uint8_t key[2 + sizeof(id->bytes)];

    store_txn_delete(txn,
                     row_key(COORD_ROW_SESSION, rt_bytes_of(id->bytes, sizeof(id->bytes)), key));
}

enum rt_code coord_rows_get_session(struct rt_bytes value, struct coord_session_row *ret_row,
                                    struct rt_error *err)
{
    struct rt_codec_reader reader = open_record(value);
    struct coord_session_row row = {0};
    uint8_t n_done;

    get_string(&reader, row.name, sizeof(row.name));
    get_id(&reader, &row.client);
    row.done_below = rt_codec_get_u64(&reader);
    n_done = rt_codec_get_u8(&reader);
    row.has_ended = (n_done & SESSION_ENDED) != 0;
    n_done &= SESSION_ENDED - 1;
    if (n_done > COORD_DONE_MAX)
        reader.failed = true;
    for (size_t i = 0; !reader.failed && i < n_done; i++)
        get_done(&reader, &row.done[i]);
    if (rt_codec_finish(&reader, "session row", err) != RT_OK)
        return RT_DATA_LOSS;
    *ret_row = row;
    return RT_OK;
}
