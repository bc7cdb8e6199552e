/*
 * Fields of any message: see walk_visit.h. Invariant: what is filled in is valid, and two values
 * that differ are written down differently. One thread.
 */
#include "tests/unit/wire/walk_visit.h"

#include <inttypes.h>

#include "runtime/base/alloc.h"

enum {
    LIST_MAX = 5 /* items of a random list */
};

static uint64_t random_number(struct walk *walk)
{
    uint64_t bits = rt_rng_next(&walk->rng);

    /* Small, medium and full-width numbers, so that every varint length occurs. */
    return bits >> (bits & 63);
}

void visit_u64(struct walk *walk, const char *field, uint64_t *value)
{
    if (walk->mode == WALK_FILL)
        *value = random_number(walk);
    else
        rt_buffer_printf(&walk->text, "%s=%" PRIu64 "\n", field, *value);
}

void visit_u32(struct walk *walk, const char *field, uint32_t *value)
{
    uint64_t wide = *value;

    visit_u64(walk, field, &wide);
    *value = (uint32_t)wide;
}

void visit_bool(struct walk *walk, const char *field, bool *value)
{
    if (walk->mode == WALK_FILL)
        *value = rt_rng_below(&walk->rng, 2);
    else
        rt_buffer_printf(&walk->text, "%s=%s\n", field, *value ? "true" : "false");
}

void visit_choice(struct walk *walk, const char *field, int *value, unsigned n)
{
    if (walk->mode == WALK_FILL)
        *value = (int)rt_rng_below(&walk->rng, n);
    else
        rt_buffer_printf(&walk->text, "%s=%d\n", field, *value);
}

void visit_bytes(struct walk *walk, const char *field, struct rt_bytes *bytes, size_t min,
                 size_t max)
{
    if (walk->mode == WALK_DUMP) {
        rt_buffer_printf(&walk->text, "%s=%zu:", field, bytes->size);
        for (size_t i = 0; i < bytes->size; i++)
            rt_buffer_printf(&walk->text, "%02x", bytes->data[i]);
        rt_buffer_append_string(&walk->text, "\n");
        return;
    }
    size_t size = min + rt_rng_below(&walk->rng, max - min + 1);
    uint8_t *data = rt_arena_alloc(walk->arena, size);

    rt_assert(data);
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)rt_rng_next(&walk->rng);
    *bytes = rt_bytes_of(data, size);
}

void visit_text(struct walk *walk, const char *field, char *text, const char *alphabet, size_t min,
                size_t max)
{
    size_t length;

    if (walk->mode == WALK_DUMP) {
        rt_buffer_printf(&walk->text, "%s='%s'\n", field, text);
        return;
    }
    length = min + rt_rng_below(&walk->rng, max - min + 1);
    for (size_t i = 0; i < length; i++)
        text[i] = alphabet[rt_rng_below(&walk->rng, strlen(alphabet))];
    text[length] = '\0';
}

static const char name_alphabet[] = "ABCXYZabcxyz0189._-";

void visit_name(struct walk *walk, const char *field, char *name, size_t min)
{
    visit_text(walk, field, name, name_alphabet, min, MODEL_NAME_MAX);
}

void visit_address(struct walk *walk, const char *field, char *address)
{
    visit_text(walk, field, address, "abc.:/0123456789[]", 1, MODEL_ADDRESS_MAX);
}

void visit_name_bytes(struct walk *walk, const char *field, struct rt_bytes *name, size_t min)
{
    char text[MODEL_NAME_MAX + 1];

    if (walk->mode == WALK_DUMP) {
        visit_bytes(walk, field, name, 0, 0);
        return;
    }
    visit_name(walk, field, text, min);
    rt_assert(rt_arena_copy(walk->arena, rt_bytes_of_string(text), name));
}

void visit_id(struct walk *walk, const char *field, struct model_id *id, bool required)
{
    char text[MODEL_ID_TEXT_SIZE];

    if (walk->mode == WALK_DUMP) {
        model_id_format(id, text);
        rt_buffer_printf(&walk->text, "%s=%s\n", field, text);
        return;
    }
    *id = (struct model_id){0};
    if (!required && rt_rng_below(&walk->rng, 3) == 0)
        return;
    for (size_t i = 0; i < sizeof(id->bytes); i++)
        id->bytes[i] = (uint8_t)(1 + rt_rng_below(&walk->rng, 255));
}

void visit_key(struct walk *walk, struct rt_bytes *key)
{
    visit_bytes(walk, "key", key, 1, MODEL_KEY_MAX);
}

void visit_value(struct walk *walk, struct rt_bytes *value)
{
    visit_bytes(walk, "value", value, 0, 2000);
}

void visit_version(struct walk *walk, struct model_version *version)
{
    visit_u64(walk, "version.epoch", &version->epoch);
    visit_u64(walk, "version.incarnation", &version->incarnation);
    visit_u64(walk, "version.seq", &version->seq);
}

void visit_optional_version(struct walk *walk, const char *field, bool *has,
                            struct model_version *version)
{
    visit_bool(walk, field, has);
    if (*has)
        visit_version(walk, version);
}

void visit_request_id(struct walk *walk, struct model_request_id *id)
{
    bool has = id->seq != 0;

    visit_bool(walk, "has_request_id", &has);
    if (!has)
        return;
    visit_id(walk, "client", &id->client, true);
    visit_u64(walk, "seq", &id->seq);
    id->seq += id->seq == 0;
}

/* The memory of the items of a list; *n may be changed. */
void visit_list(struct walk *walk, const char *field, void **items, size_t *n, size_t item_size)
{
    if (walk->mode == WALK_DUMP) {
        rt_buffer_printf(&walk->text, "%s:%zu\n", field, *n);
        return;
    }
    *n = rt_rng_below(&walk->rng, LIST_MAX);
    *items = *n == 0 ? NULL : rt_arena_alloc(walk->arena, *n * item_size);
    if (*items)
        memset(*items, 0, *n * item_size);
}

void visit_row(struct walk *walk, struct model_row *row)
{
    visit_key(walk, &row->key);
    visit_u64(walk, "epoch", &row->epoch);
    visit_u64(walk, "token_floor", &row->token_floor);
    visit_bool(walk, "locked", &row->locked);
    visit_choice(walk, "locking", (int *)&row->locking, MODEL_LOCKING_NONE + 1);
    visit_bool(walk, "key_lost", &row->key_lost);
    visit_bool(walk, "sets_lost", &row->sets_lost);
}

void visit_rows(struct walk *walk, struct model_row **rows, size_t *n)
{
    visit_list(walk, "rows", (void **)rows, n, sizeof(**rows));
    for (size_t i = 0; i < *n; i++)
        visit_row(walk, &(*rows)[i]);
}
