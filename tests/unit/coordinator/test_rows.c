/*
 * Persisted rows: what is written is read back, and nothing else is accepted.
 */
#include "coordinator/rows.h"

#include "tests/support/check.h"

TestSuite(rows, .fini = test_alloc_expect_none);

static const struct model_id id_a = {"aaaaaaaaaaaaaaa"};
static const struct model_id id_b = {"bbbbbbbbbbbbbbb"};

static struct rt_bytes only_value(const struct store_txn *txn, enum coord_row_kind kind,
                                  struct rt_bytes name)
{
    enum coord_row_kind found;
    struct rt_bytes rest;

    cr_assert_eq(txn->n_operations, 1);
    cr_assert_eq(txn->operations[0].kind, STORE_PUT);
    cr_assert_eq(coord_rows_parse_key(txn->operations[0].key, &found, &rest, NULL), RT_OK);
    cr_assert_eq(found, kind);
    cr_assert(rt_bytes_equal(rest, name));
    return txn->operations[0].value;
}

static enum rt_code decode(enum coord_row_kind kind, struct rt_bytes value)
{
    union {
        struct coord_meta_row meta;
        struct coord_member_row member;
        struct coord_key_row key;
        struct coord_session_row session;
        uint64_t number;
    } row;

    switch (kind) {
    case COORD_ROW_META:
        return coord_rows_get_meta(value, &row.meta, NULL);
    case COORD_ROW_COUNTER:
    case COORD_ROW_CURSOR:
    case COORD_ROW_ROUTE:
    case COORD_ROW_DISTRIBUTION:
        return coord_rows_get_number(value, &row.number, NULL);
    case COORD_ROW_MEMBER:
        return coord_rows_get_member(value, &row.member, NULL);
    case COORD_ROW_KEY:
        return coord_rows_get_key(value, &row.key, NULL);
    case COORD_ROW_SESSION:
        return coord_rows_get_session(value, &row.session, NULL);
    }
    return RT_INTERNAL;
}

/* Cut anywhere, longer by one, or of another version. */
static void expect_strict(enum coord_row_kind kind, struct rt_bytes value)
{
    uint8_t copy[1024];

    memcpy(copy, value.data, value.size);
    copy[value.size] = 0;
    cr_assert_eq(decode(kind, rt_bytes_of(copy, value.size)), RT_OK);
    for (size_t size = 0; size < value.size; size++)
        cr_assert_eq(decode(kind, rt_bytes_of(copy, size)), RT_DATA_LOSS, "cut at %zu", size);
    cr_assert_eq(decode(kind, rt_bytes_of(copy, value.size + 1)), RT_DATA_LOSS);
    copy[0]++;
    cr_assert_eq(decode(kind, rt_bytes_of(copy, value.size)), RT_DATA_LOSS);
}

Test(rows, meta)
{
    struct coord_meta_row row = {id_a, 3, 17, 3500000};
    struct coord_meta_row back;
    struct store_txn *txn = store_txn_new();
    struct rt_bytes value;

    coord_rows_put_meta(txn, &row);
    value = only_value(txn, COORD_ROW_META, RT_BYTES_LITERAL(""));
    cr_assert_eq(coord_rows_get_meta(value, &back, NULL), RT_OK);
    cr_assert(model_id_equal(&back.cluster_id, &id_a));
    cr_assert_eq(back.generation, 3);
    cr_assert_eq(back.term, 17);
    cr_assert_eq(back.longest_hold_us, 3500000);
    expect_strict(COORD_ROW_META, value);
    (void)store_txn_free(txn);
}

Test(rows, numbers)
{
    for (int kind = COORD_ROW_COUNTER; kind <= COORD_ROW_DISTRIBUTION; kind++) {
        struct store_txn *txn = store_txn_new();
        struct rt_bytes value;
        uint64_t back;

        coord_rows_put_number(txn, (enum coord_row_kind)kind, UINT64_MAX - 5);
        value = only_value(txn, (enum coord_row_kind)kind, RT_BYTES_LITERAL(""));
        cr_assert_eq(coord_rows_get_number(value, &back, NULL), RT_OK);
        cr_assert_eq(back, UINT64_MAX - 5);
        expect_strict((enum coord_row_kind)kind, value);
        (void)store_txn_free(txn);
    }
}

Test(rows, member)
{
    struct coord_member_row row = {
        .ordinal = MODEL_MEMBERS_MAX,
        .state = MODEL_MEMBER_LEFT,
        .incarnation = 99,
        .store_id = id_a,
        .boot_id = id_b,
        .machine_id = id_a,
        .local_store = true,
        .entries_total = 5,
        .entry_size = 6,
    };
    struct coord_member_row back;
    struct store_txn *txn = store_txn_new();
    struct rt_bytes value;

    memset(row.address, 'x', MODEL_ADDRESS_MAX);
    coord_rows_put_member(txn, "name", &row);
    value = only_value(txn, COORD_ROW_MEMBER, RT_BYTES_LITERAL("name"));
    cr_assert_eq(coord_rows_get_member(value, &back, NULL), RT_OK);
    cr_assert_eq(memcmp(&row.store_id, &back.store_id, 48), 0);
    cr_assert_str_eq(back.address, row.address);
    cr_assert(back.ordinal == row.ordinal && back.state == row.state && back.local_store);
    cr_assert(back.incarnation == 99 && back.entries_total == 5 && back.entry_size == 6);
    expect_strict(COORD_ROW_MEMBER, value);
    (void)store_txn_free(txn);
}

static void expect_member(uint32_t ordinal, int state, enum rt_code code)
{
    struct coord_member_row row = {.ordinal = ordinal, .state = (enum model_member_state)state};
    struct coord_member_row back;
    struct store_txn *txn = store_txn_new();

    coord_rows_put_member(txn, "n", &row);
    cr_assert_eq(coord_rows_get_member(txn->operations[0].value, &back, NULL), code);
    (void)store_txn_free(txn);
}

Test(rows, member_limits)
{
    expect_member(1, MODEL_MEMBER_LEFT, RT_OK);
    expect_member(0, MODEL_MEMBER_LEFT, RT_DATA_LOSS);
    expect_member(MODEL_MEMBERS_MAX + 1, MODEL_MEMBER_LEFT, RT_DATA_LOSS);
    expect_member(1, MODEL_MEMBER_LEFT + 1, RT_DATA_LOSS);
}

static void expect_key(const struct coord_key_row *row, enum rt_code code)
{
    struct coord_key_row back;
    struct store_txn *txn = store_txn_new();
    struct rt_bytes value;

    coord_rows_put_key(txn, RT_BYTES_LITERAL("a key"), row);
    value = only_value(txn, COORD_ROW_KEY, RT_BYTES_LITERAL("a key"));
    cr_assert_eq(coord_rows_get_key(value, &back, NULL), code);
    if (code == RT_OK) {
        cr_assert(back.phase == row->phase && back.owner == row->owner);
        cr_assert(back.epoch == row->epoch && back.newest_token == row->newest_token);
        cr_assert(back.maybe_stored == row->maybe_stored && back.key_lost == row->key_lost);
        cr_assert(back.release_pending == row->release_pending && back.locked == row->locked);
        cr_assert_eq(back.dropping, row->dropping);
        cr_assert(back.token == row->token && model_id_equal(&back.session_id, &row->session_id));
        expect_strict(COORD_ROW_KEY, value);
    }
    (void)store_txn_free(txn);
}

Test(rows, key)
{
    struct coord_key_row row = {.phase = COORD_PHASE_UNPLACED};

    expect_key(&row, RT_OK);
    row =
        (struct coord_key_row){COORD_PHASE_ACTIVE, 3, 8, 9, true, true, true, true, true, id_a, 9};
    expect_key(&row, RT_OK);
    row.locked = false;
    row.token = 0;
    row.session_id = (struct model_id){{0}};
    row.phase = COORD_PHASE_PLACING;
    expect_key(&row, RT_OK);
    row.owner = MODEL_MEMBERS_MAX + 1;
    expect_key(&row, RT_DATA_LOSS);
    row.owner = 0;
    expect_key(&row, RT_DATA_LOSS);
    row = (struct coord_key_row){COORD_PHASE_ACTIVE, 3, 8, 9, .dropping = true};
    expect_key(&row, RT_OK);
    row = (struct coord_key_row){.phase = COORD_PHASE_UNPLACED, .epoch = 4};
    expect_key(&row, RT_DATA_LOSS);
    row = (struct coord_key_row){.locked = true, .session_id = id_a};
    expect_key(&row, RT_DATA_LOSS);
}

Test(rows, session)
{
    struct coord_session_row row = {.client = id_b, .done_below = 6};
    struct coord_session_row back;
    struct store_txn *txn = store_txn_new();
    struct rt_bytes value;

    memset(row.name, 'n', MODEL_NAME_MAX);
    row.done[0] = (struct coord_done){7, 8, {1, 2, 3}, true, true, 77};
    row.done[2] = (struct coord_done){9, 8, {1, 2, 4}, false, false, 0};
    coord_rows_put_session(txn, &id_a, &row);
    value = only_value(txn, COORD_ROW_SESSION, RT_BYTES_LITERAL("aaaaaaaaaaaaaaa\0"));
    cr_assert_eq(coord_rows_get_session(value, &back, NULL), RT_OK);
    cr_assert_str_eq(back.name, row.name);
    cr_assert(model_id_equal(&back.client, &id_b));
    cr_assert_eq(back.done_below, 6);
    cr_assert(back.done[0].seq == 7 && back.done[0].stored && back.done[0].lock_lost);
    cr_assert(back.done[1].seq == 9 && back.done[1].version.seq == 4 && !back.done[1].stored);
    cr_assert_eq(back.done[2].seq, 0);
    cr_assert_eq(back.done[0].key_hash, 77);
    cr_assert_eq(back.done[1].key_hash, 0);
    cr_assert_not(back.has_ended);
    expect_strict(COORD_ROW_SESSION, value);
    (void)store_txn_free(txn);
}

Test(rows, session_that_has_ended)
{
    struct coord_session_row row = {.client = id_b, .has_ended = true};
    struct coord_session_row back;
    struct store_txn *txn = store_txn_new();
    struct rt_bytes value;

    row.done[0] = (struct coord_done){7, 8, {1, 2, 3}, true, false, 0};
    coord_rows_put_session(txn, &id_a, &row);
    value = only_value(txn, COORD_ROW_SESSION, RT_BYTES_LITERAL("aaaaaaaaaaaaaaa\0"));
    cr_assert_eq(coord_rows_get_session(value, &back, NULL), RT_OK);
    cr_assert(back.has_ended);
    cr_assert_eq(back.done[0].seq, 7);
    expect_strict(COORD_ROW_SESSION, value);
    (void)store_txn_free(txn);
}

Test(rows, deletions_name_the_same_rows)
{
    struct store_txn *txn = store_txn_new();
    struct coord_key_row row = {0};
    struct coord_session_row session = {0};

    coord_rows_put_key(txn, RT_BYTES_LITERAL("k"), &row);
    coord_rows_delete_key(txn, RT_BYTES_LITERAL("k"));
    coord_rows_put_session(txn, &id_a, &session);
    coord_rows_delete_session(txn, &id_a);
    cr_assert(rt_bytes_equal(txn->operations[0].key, txn->operations[1].key));
    cr_assert(rt_bytes_equal(txn->operations[2].key, txn->operations[3].key));
    cr_assert_eq(txn->operations[1].kind, STORE_DELETE);
    cr_assert_eq(txn->operations[3].kind, STORE_DELETE);
    (void)store_txn_free(txn);
}

static enum rt_code parse(const char *prefix, size_t size)
{
    uint8_t key[STORE_KEY_MAX];
    enum coord_row_kind kind;
    struct rt_bytes name;

    memset(key, 'x', sizeof(key));
    memcpy(key, prefix, strlen(prefix));
    return coord_rows_parse_key(rt_bytes_of(key, strlen(prefix) + size), &kind, &name, NULL);
}

Test(rows, names_of_rows_have_limits)
{
    cr_assert_eq(parse("k/", MODEL_KEY_MAX), RT_OK);
    cr_assert_eq(parse("k/", MODEL_KEY_MAX + 1), RT_DATA_LOSS);
    cr_assert_eq(parse("k/", 0), RT_DATA_LOSS);
    cr_assert_eq(parse("m/", MODEL_NAME_MAX), RT_OK);
    cr_assert_eq(parse("m/", MODEL_NAME_MAX + 1), RT_DATA_LOSS);
    cr_assert_eq(parse("s/", 16), RT_OK);
    cr_assert_eq(parse("s/", 15), RT_DATA_LOSS);
    cr_assert_eq(parse("s/", 17), RT_DATA_LOSS);
    cr_assert_eq(parse("meta", 1), RT_DATA_LOSS);
    cr_assert_eq(parse("", 0), RT_DATA_LOSS);
    cr_assert_eq(parse("z/", 3), RT_DATA_LOSS);
}
