/*
 * The coordinator's persisted rows.
 *
 *   meta           cluster id, generation, term, the longest hold a lease ever had
 *   counter        no number above this one was ever used
 *   cursor         ordinal of the instance that received the last placement
 *   route          counter value of the last route change
 *   m/<name>       a member
 *   k/<key>        a key
 *   s/<session id> a session
 *
 * Every record starts with a version byte. Decoding borrows from the record; DATA_LOSS names it.
 */
#ifndef COORD_ROWS_H
#define COORD_ROWS_H

#include "runtime/base/store.h"
#include "runtime/model/message.h"

enum coord_row_kind {
    COORD_ROW_META,
    COORD_ROW_COUNTER,
    COORD_ROW_CURSOR,
    COORD_ROW_ROUTE,
    COORD_ROW_DISTRIBUTION,
    COORD_ROW_MEMBER,
    COORD_ROW_KEY,
    COORD_ROW_SESSION,
};

struct coord_meta_row {
    struct model_id cluster_id;
    uint16_t generation;
    uint64_t term;
    uint64_t longest_hold_us; /* lease and grace: how long anything granted before may be held */
};

struct coord_member_row {
    uint32_t ordinal;
    enum model_member_state state;
    uint64_t incarnation;
    struct model_id store_id;
    struct model_id boot_id;
    struct model_id machine_id;
    bool local_store;
    uint64_t entries_total;
    uint64_t entry_size;
    char address[MODEL_ADDRESS_MAX + 1];
};

enum coord_phase {
    COORD_PHASE_UNPLACED,
    COORD_PHASE_PLACING, /* owner and epoch chosen, not yet confirmed by the owner */
    COORD_PHASE_ACTIVE,
};

struct coord_key_row {
    enum coord_phase phase;
    uint32_t owner; /* ordinal; 0 while unplaced */
    uint64_t epoch; /* 0 while unplaced */
    uint64_t newest_token;
    bool maybe_stored;    /* a durable value may exist at the owner */
    bool key_lost;        /* a durable value is known to be gone */
    bool release_pending; /* the owner may still hold the key for locked */
    bool dropping;        /* a Drop of this epoch was sent: the owner may have no row any more */
    bool locked;
    struct model_id session_id; /* holder */
    uint64_t token;             /* of the holder */
};

/* A statement that was carried out, for the case that its answer was lost. */
struct coord_done {
    uint64_t seq; /* 0 = none */
    uint64_t epoch;
    struct model_version version;
    bool stored;
    bool lock_lost;
    uint64_t key_hash; /* of the key that it was about; 0 = not known, in older rows */
};

enum {
    COORD_DONE_MAX = 4
};

struct coord_session_row {
    char name[MODEL_NAME_MAX + 1];
    struct model_id client;
    uint64_t done_below; /* the client has finished every request with a lower seq */
    bool has_ended;      /* it is over; its locks are kept */
    struct coord_done done[COORD_DONE_MAX];
};

/* Which row a store key names, and the part behind the prefix. DATA_LOSS for anything unknown or of
 * impossible length. */
RT_MUST_USE enum rt_code coord_rows_parse_key(struct rt_bytes store_key,
                                              enum coord_row_kind *ret_kind,
                                              struct rt_bytes *ret_name, struct rt_error *err);

void coord_rows_put_meta(struct store_txn *txn, const struct coord_meta_row *row);
/* COUNTER, CURSOR, ROUTE or DISTRIBUTION */
void coord_rows_put_number(struct store_txn *txn, enum coord_row_kind kind, uint64_t number);
void coord_rows_put_member(struct store_txn *txn, const char *name,
                           const struct coord_member_row *row);
void coord_rows_put_key(struct store_txn *txn, struct rt_bytes key,
                        const struct coord_key_row *row);
void coord_rows_delete_key(struct store_txn *txn, struct rt_bytes key);
void coord_rows_put_session(struct store_txn *txn, const struct model_id *id,
                            const struct coord_session_row *row);
void coord_rows_delete_session(struct store_txn *txn, const struct model_id *id);

RT_MUST_USE enum rt_code coord_rows_get_meta(struct rt_bytes value, struct coord_meta_row *ret_row,
                                             struct rt_error *err);
RT_MUST_USE enum rt_code coord_rows_get_number(struct rt_bytes value, uint64_t *ret_number,
                                               struct rt_error *err);
RT_MUST_USE enum rt_code coord_rows_get_member(struct rt_bytes value,
                                               struct coord_member_row *ret_row,
                                               struct rt_error *err);
RT_MUST_USE enum rt_code coord_rows_get_key(struct rt_bytes value, struct coord_key_row *ret_row,
                                            struct rt_error *err);
RT_MUST_USE enum rt_code coord_rows_get_session(struct rt_bytes value,
                                                struct coord_session_row *ret_row,
                                                struct rt_error *err);

#endif
