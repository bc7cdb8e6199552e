/*
 * What the instance keeps on disk, and how it is written.
 *
 *   meta                          the data directory: cluster, highest term, last incarnation
 *   <key>/r                       ownership of one key
 *   <key>/v                       its durable value, behind its version
 *   <key>/s                       a SET value that gave its entries to another, behind its
 *                                 version; means nothing to a later process
 *   <key>/e                       the epoch of the ownership that was dropped to make room
 *   <key><client 16 B><seq 8 B>/d one remembered request of that key
 *
 * The key comes first, so that its rows are on one page or on neighbours: a write costs the pages
 * that it touches.
 *
 * Records start with a format number. Encoding is deterministic: a record that was read and is
 * written again has the same bytes, which is what transactions compare. Pure; any thread.
 */
#ifndef INST_RECORD_H
#define INST_RECORD_H

#include "runtime/base/buffer.h"
#include "runtime/base/store.h"
#include "runtime/model/message.h"

struct inst_meta {
    struct model_id cluster_id; /* none before the first Register */
    uint64_t term;              /* highest seen */
    uint64_t incarnation;       /* last given */
    char name[MODEL_NAME_MAX + 1];
};

/* /r: the durable ownership of one key. */
struct inst_record {
    uint64_t epoch;
    uint64_t incarnation; /* that wrote it */
    uint64_t floor;       /* token of the newest grant or release heard of */
    uint64_t closed;      /* newest token whose holder has STOREd */
    uint64_t released;    /* newest token whose lock the coordinator has released */
    uint64_t dedup_since; /* requests first sent under an older epoch are not remembered */
    uint64_t seq;
    enum model_locking locking;
    bool locked;    /* as the coordinator last said */
    bool dirty;     /* a SET may be newer than the stored value */
    bool has_value; /* the /v row belongs to this record */
    bool key_lost;
};

bool inst_record_equal(const struct inst_record *a, const struct inst_record *b);

/* /d: the answer that a repeated request gets. */
struct inst_dedup_result {
    struct model_version version; /* its epoch is the one of the request, also without a value */
    bool has_value;
    bool stored;
    bool sets_lost;
    bool unknown; /* the record was unreadable: neither repeat nor answer */
};

/* Where a stored row belongs. `key` is borrowed from the stored key. */
enum inst_record_kind {
    INST_RECORD_META,
    INST_RECORD_ROW,
    INST_RECORD_VALUE,
    INST_RECORD_SPILL, /* encoded as a value */
    INST_RECORD_EVICTED,
    INST_RECORD_DEDUP,
    INST_RECORD_FOREIGN, /* nothing of ours */
};

struct inst_record_name {
    enum inst_record_kind kind;
    struct rt_bytes key;                /* ROW VALUE SPILL EVICTED DEDUP */
    struct model_request_id request_id; /* DEDUP */
};

struct inst_record_name inst_record_parse_name(struct rt_bytes stored_key);

/* Memory for one stored key. */
struct inst_record_key {
    size_t size;
    uint8_t bytes[2 + MODEL_KEY_MAX + 24];
};

/* The stored key of `name`; views ret_key's memory. key.size <= MODEL_KEY_MAX. */
struct rt_bytes inst_record_format_name(const struct inst_record_name *name,
                                        struct inst_record_key *ret_key);

/* Append to `buffer`, whose failure rule applies. */
void inst_record_encode_meta(struct rt_buffer *buffer, const struct inst_meta *meta);
void inst_record_encode_row(struct rt_buffer *buffer, const struct inst_record *record);
void inst_record_encode_value(struct rt_buffer *buffer, const struct model_version *version,
                              struct rt_bytes value);
void inst_record_encode_evicted(struct rt_buffer *buffer, uint64_t epoch);
void inst_record_encode_dedup(struct rt_buffer *buffer, const struct inst_dedup_result *result);

/* DATA_LOSS for anything that encode_ does not write. `ret_value` views `bytes`. */
RT_MUST_USE enum rt_code inst_record_decode_meta(struct rt_bytes bytes, struct inst_meta *ret_meta,
                                                 struct rt_error *err);
RT_MUST_USE enum rt_code inst_record_decode_row(struct rt_bytes bytes,
                                                struct inst_record *ret_record,
                                                struct rt_error *err);
RT_MUST_USE enum rt_code inst_record_decode_value(struct rt_bytes bytes,
                                                  struct model_version *ret_version,
                                                  struct rt_bytes *ret_value, struct rt_error *err);
RT_MUST_USE enum rt_code inst_record_decode_evicted(struct rt_bytes bytes, uint64_t *ret_epoch,
                                                    struct rt_error *err);
RT_MUST_USE enum rt_code inst_record_decode_dedup(struct rt_bytes bytes,
                                                  struct inst_dedup_result *ret_result,
                                                  struct rt_error *err);

#endif
