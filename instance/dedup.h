/*
 * Remembered requests: a repeated request has one effect and gets the first one's answer.
 *
 * An entry belongs to one key and one request id. It is volatile when it is made by a SET, and
 * becomes durable with the key's next transaction, which writes its /d row: so whatever survives of
 * a SET brings its entry along. An entry that is forgotten (finished below the client's
 * `done_below`, past a limit, or of a dropped row) goes at once when it never reached the disk, and
 * else is condemned: no longer found, kept until a pruning transaction has deleted its /d row.
 *
 * What a client may still repeat is never forgotten silently: a limit raises the client's
 * watermark, and ids below it are neither repeated nor applied.
 *
 * Own hash table: entries are found by (row, client, seq) on the way of every write, and uthash
 * would double their size. Rows are borrowed. Not thread safe; belongs to one core.
 */
#ifndef INST_DEDUP_H
#define INST_DEDUP_H

#include "instance/record.h"
#include "instance/rows.h"

struct inst_dedup_client;
struct inst_dedup_chunk;

struct inst_dedup_entry {
    struct rt_list row_link;    /* inst_row.dedup or .dedup_volatile */
    struct rt_list client_link; /* the client's entries, or inst_dedup.condemned */
    struct inst_dedup_entry *next;
    struct inst_dedup_client *client; /* NULL while prepared or condemned */
    struct inst_row *row;
    struct model_request_id id;
    struct inst_dedup_result result;
    bool durable; /* its /d row is committed */
    bool written; /* its /d row is committed or in a transaction */
};

struct inst_dedup {
    struct inst_dedup_client *clients; /* by id */
    struct rt_list by_use;             /* inst_dedup_client.link, least recently used first */
    struct inst_dedup_entry **buckets; /* owned */
    size_t n_buckets;                  /* power of two, or 0 */
    struct inst_dedup_chunk *chunks;   /* owned; entries never move */
    struct inst_dedup_entry *unused;
    struct rt_list condemned; /* inst_dedup_entry.client_link */
    size_t n_entries;         /* in use, condemned ones included */
    size_t n_condemned;
    size_t n_clients;
};

void inst_dedup_init(struct inst_dedup *dedup);
void inst_dedup_deinit(struct inst_dedup *dedup);

/* NULL when this request of this key is not remembered. */
const struct inst_dedup_entry *inst_dedup_find(const struct inst_dedup *dedup,
                                               const struct inst_row *row,
                                               const struct model_request_id *id);

/* Whether the id is remembered as one of another key. */
bool inst_dedup_is_anothers(const struct inst_dedup *dedup, const struct inst_row *row,
                            const struct model_request_id *id);

/* Whether the id is below the client's watermark: it may have been applied and forgotten. */
bool inst_dedup_is_forgotten(const struct inst_dedup *dedup, const struct model_request_id *id);

/* Memory for one entry, before anything is applied. NULL when memory is out or a limit leaves
 * nothing to forget. Give it to record() or discard(). */
RT_MUST_USE struct inst_dedup_entry *inst_dedup_prepare(struct inst_dedup *dedup);
void inst_dedup_discard(struct inst_dedup *dedup, struct inst_dedup_entry *entry);

/* Takes the prepared entry. The request must not be remembered yet. `durable`: its /d row is
 * committed; else the row's next transaction shall write it. */
void inst_dedup_record(struct inst_dedup *dedup, struct inst_dedup_entry *entry,
                       struct inst_row *row, const struct model_request_id *id,
                       const struct inst_dedup_result *result, bool durable);

/* The client has finished every request below `seq`. */
void inst_dedup_done_below(struct inst_dedup *dedup, const struct model_id *client, uint64_t seq);

/* Marks the row's volatile entries as written; after the commit, as durable. */
void inst_dedup_row_written(struct inst_row *row);
void inst_dedup_row_committed(struct inst_row *row);

/* Forgets every entry of the row, without raising watermarks: the row is gone or replaced, and its
 * dedup_since refuses what was sent before. */
void inst_dedup_forget_row(struct inst_dedup *dedup, struct inst_row *row);

/* Like that for the entries of answers under an older epoch than the row's dedup_since. */
void inst_dedup_forget_older(struct inst_dedup *dedup, struct inst_row *row);

/* Lets go of the oldest condemned entry, whose /d row is to be deleted; false when there is none.
 * The row may be reaped afterwards. */
bool inst_dedup_take_condemned(struct inst_dedup *dedup, struct inst_row **ret_row,
                               struct model_request_id *ret_id);

#endif
