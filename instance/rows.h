/*
 * Rows in memory: one for every key that the instance holds, is about to hold, or has somebody
 * waiting for. Owned by the table; borrowed by everyone else while the core's lock is held.
 *
 * `durable` is the /r row as it was last committed, `live` what the checks go by and what the key's
 * next transaction writes: it may be ahead in floor and locks, and in seq by SETs.
 */
#ifndef INST_ROWS_H
#define INST_ROWS_H

#include "instance/entries.h"
#include "instance/index.h"
#include "instance/record.h"

enum inst_row_phase {
    INST_ROW_ABSENT,      /* no ownership: a placeholder while something refers to the key */
    INST_ROW_QUARANTINED, /* found in the store, not confirmed by the coordinator: never served */
    INST_ROW_ACTIVATING,  /* its Activate is being committed */
    INST_ROW_ACTIVE,

    INST_N_ROW_PHASES
};

struct inst_op;

struct inst_row {
    struct rt_list link;           /* inst_rows.all */
    struct rt_list waits;          /* inst_wait.row_link: calls behind `op`, first come first */
    struct rt_list dedup;          /* inst_dedup_entry.row_link: durable or to be pruned */
    struct rt_list dedup_volatile; /* inst_dedup_entry.row_link: of SETs since the last commit */
    size_t n_volatile;
    size_t n_waits;
    struct inst_op *op;       /* the key's one transaction in flight */
    struct rt_list dump_link; /* inst_core.sets or due; empty otherwise */
    struct inst_record live;
    struct inst_record durable;          /* valid when on_disk */
    struct model_version version;        /* of the value; zero without one */
    struct model_version stored_version; /* of the value on disk, when durable.has_value */
    struct inst_run run;                 /* none: there is no value, or it is in the store only */
    uint32_t size;                       /* bytes of the value */
    enum inst_row_phase phase;
    bool has_value;      /* in memory or, after an eviction, in the store */
    bool has_spill;      /* there may be an /s row */
    bool on_disk;        /* there is an /r row with the bytes of `durable` */
    bool row_corrupt;    /* there may be an /r row, unreadable: nothing to compare with */
    bool value_corrupt;  /* the /v row is unreadable or missing */
    bool dump_due;       /* to be dumped when `op` is done */
    bool value_unloaded; /* the value is on disk only: it left memory with the quarantine */
    /* To be said in the next answer; until then no transaction clears `dirty`, so that a crash
     * between commit and answer does not swallow it. */
    bool sets_lost;
    uint8_t key_size;
    uint8_t key[];
};

static inline struct rt_bytes inst_row_key(const struct inst_row *row)
{
    return rt_bytes_of(row->key, row->key_size);
}

/* `durable` is of the ownership that is served now. A row that the coordinator told anew leaves an
 * earlier one on disk until its first transaction. */
static inline bool inst_row_is_on_disk_as_live(const struct inst_row *row)
{
    return row->on_disk && row->durable.epoch == row->live.epoch;
}

/* The row's own value is on disk, and cannot be served from there. */
static inline bool inst_row_misses_value(const struct inst_row *row)
{
    return inst_row_is_on_disk_as_live(row) && (row->value_unloaded || row->value_corrupt);
}

/* A token is needed for a write now: granted, and neither STOREd nor released since. */
static inline bool inst_row_is_locked(const struct inst_row *row)
{
    return row->live.locked && row->live.floor > row->live.closed &&
           row->live.floor > row->live.released;
}

struct inst_rows {
    struct inst_index index;
    struct rt_list all; /* inst_row.link, in the order of creation */
    size_t n[INST_N_ROW_PHASES];
};

void inst_rows_init(struct inst_rows *rows, uint64_t seed);

/* Frees every row. Waits and remembered requests must be gone or belong to nobody. */
void inst_rows_deinit(struct inst_rows *rows);

static inline struct inst_row *inst_rows_find(const struct inst_rows *rows, struct rt_bytes key)
{
    return inst_index_find(&rows->index, key);
}

/* Fetches the rows of these keys into the processor's cache, all at once; changes nothing. They are
 * told as inst_index_guess() does. */
void inst_rows_expect(const struct inst_rows *rows, const struct rt_bytes *keys, size_t n_keys,
                      const struct inst_row **ret_rows);

/* Finds or makes an ABSENT one; NULL when memory is out. key.size 1..MODEL_KEY_MAX. */
RT_MUST_USE struct inst_row *inst_rows_get(struct inst_rows *rows, struct rt_bytes key);

void inst_rows_set_phase(struct inst_rows *rows, struct inst_row *row, enum inst_row_phase phase);

/* Frees the row if it is an ABSENT one that nothing refers to any more. */
void inst_rows_reap(struct inst_rows *rows, struct inst_row *row);

#endif
