/*
 * Loading stored rows: see core.h and state.h. Invariant: rows may come in any order; whatever is
 * unreadable leaves its key refused, never empty. Under the core's lock, before the start.
 */
#include "instance/state.h"

static enum rt_code no_memory(struct rt_error *err)
{
    return rt_fail(err, RT_RESOURCE_EXHAUSTED, "no memory for a row of the store");
}

static enum rt_code load_meta(struct inst_core *core, struct rt_bytes value, struct rt_error *err)
{
    enum rt_code code = inst_record_decode_meta(value, &core->meta, err);

    if (code != RT_OK)
        return code;
    if (core->meta.name[0] != '\0' && strcmp(core->meta.name, core->config.name) != 0)
        return rt_fail(err, RT_FAILED_PRECONDITION,
                       "the data directory belongs to instance '%s', not '%s'", core->meta.name,
                       core->config.name);
    return RT_OK;
}

static enum rt_code load_row(struct inst_row *row, struct rt_bytes value, struct rt_error *err)
{
    enum rt_code code = inst_record_decode_row(value, &row->durable, err);

    if (code != RT_OK)
        return code;
    row->live = row->durable;
    row->on_disk = true;
    return RT_OK;
}

static enum rt_code load_value(struct inst_core *core, struct inst_row *row, struct rt_bytes bytes,
                               struct rt_error *err)
{
    struct model_version version;
    struct rt_bytes value;
    enum rt_code code = inst_record_decode_value(bytes, &version, &value, err);

    if (code != RT_OK)
        return code;
    (void)inst_value_put_if_free(core, row, value);
    row->size = (uint32_t)value.size;
    row->has_value = true;
    row->version = version;
    row->stored_version = version;
    return RT_OK;
}

static enum rt_code remember(struct inst_core *core, struct inst_row *row,
                             const struct model_request_id *id,
                             const struct inst_dedup_result *result, struct rt_error *err)
{
    struct inst_dedup_entry *entry = inst_dedup_prepare(&core->dedup);

    if (!entry)
        return no_memory(err);
    inst_dedup_record(&core->dedup, entry, row, id, result, true);
    return RT_OK;
}

static enum rt_code load_dedup(struct inst_core *core, struct inst_row *row,
                               const struct model_request_id *id, struct rt_bytes value,
                               struct rt_error *err)
{
    struct inst_dedup_result result = {0};
    enum rt_code code = inst_record_decode_dedup(value, &result, err);

    if (code != RT_OK)
        return code;
    return remember(core, row, id, &result, err);
}

static enum rt_code load_evicted(struct inst_core *core, struct rt_bytes key, struct rt_bytes value,
                                 struct rt_error *err)
{
    uint64_t epoch;
    enum rt_code code = inst_record_decode_evicted(value, &epoch, err);

    if (code == RT_OK)
        inst_evicted_add(core, key, epoch, true);
    return code;
}

enum rt_code inst_core_load(struct inst_core *core, struct rt_bytes key, struct rt_bytes value,
                            struct rt_error *err)
{
    struct inst_record_name name = inst_record_parse_name(key);
    struct inst_row *row;

    rt_assert(core->membership.state == INST_MEMBERSHIP_NEW);
    if (name.kind == INST_RECORD_META)
        return load_meta(core, value, err);
    if (name.kind == INST_RECORD_FOREIGN)
        return rt_fail(err, RT_DATA_LOSS, "the store holds a row of nobody's");
    row = inst_rows_get(&core->rows, name.key);
    if (!row)
        return no_memory(err);
    switch (name.kind) {
    case INST_RECORD_ROW:
        return load_row(row, value, err);
    case INST_RECORD_VALUE:
        return load_value(core, row, value, err);
    case INST_RECORD_SPILL:
        row->has_spill = true;
        return RT_OK;
    case INST_RECORD_EVICTED:
        return load_evicted(core, name.key, value, err);
    case INST_RECORD_DEDUP:
        return load_dedup(core, row, &name.request_id, value, err);
    case INST_RECORD_META:
    case INST_RECORD_FOREIGN:
        break;
    }
    return RT_OK;
}

static bool note_corrupt(struct inst_core *core, const struct inst_record_name *name)
{
    struct inst_dedup_result unknown = {.unknown = true};
    struct inst_row *row = inst_rows_get(&core->rows, name->key);

    if (!row)
        return false;
    if (name->kind == INST_RECORD_DEDUP)
        return remember(core, row, &name->request_id, &unknown, NULL) == RT_OK;
    row->has_spill |= name->kind == INST_RECORD_SPILL;
    row->row_corrupt |= name->kind == INST_RECORD_ROW;
    row->value_corrupt |= name->kind == INST_RECORD_VALUE;
    return true;
}

void inst_core_load_corrupt(struct inst_core *core, struct rt_bytes key)
{
    struct inst_record_name name = inst_record_parse_name(key);

    rt_assert(core->membership.state == INST_MEMBERSHIP_NEW);
    if (name.kind == INST_RECORD_FOREIGN)
        return;
    if (name.kind == INST_RECORD_META || !note_corrupt(core, &name))
        core->meta_corrupt = true;
}

/* A value without its ownership, or ownership without its value, or either unreadable. */
static void judge_value(struct inst_core *core, struct inst_row *row)
{
    bool belongs = row->on_disk && row->durable.has_value;

    if (belongs && !row->has_value)
        row->value_corrupt = true;
    if (row->has_value && !belongs) {
        inst_value_release(core, row);
        row->value_corrupt = !row->on_disk;
    }
    if (row->value_corrupt && row->has_value)
        inst_value_release(core, row);
}

static void judge(struct inst_core *core, struct inst_row *row)
{
    judge_value(core, row);
    row->sets_lost = row->on_disk && row->durable.dirty;
    if (row->on_disk || row->row_corrupt || row->value_corrupt) {
        inst_rows_set_phase(&core->rows, row, INST_ROW_QUARANTINED);
        inst_dedup_forget_older(&core->dedup, row);
    } else {
        inst_dedup_forget_row(&core->dedup, row);
    }
    inst_rows_reap(&core->rows, row);
}

bool inst_load_finish(struct inst_core *core)
{
    if (core->meta_corrupt) {
        inst_registry_stop(core, MODEL_REASON_STORE_ERROR,
                           "a row of the data directory that tells its cluster or requests is "
                           "unreadable");
        return false;
    }
    rt_list_for_each_safe (node, &core->rows.all)
        judge(core, RT_LIST_ENTRY(node, struct inst_row, link));
    memcpy(core->meta.name, core->config.name, sizeof(core->meta.name));
    return true;
}
