/*
 * Every request and response that crosses between the services, as plain structures. Cores speak
 * only these; runtime/wire turns them into protobuf and back; the simulator carries copies of them.
 *
 * Byte strings are borrowed: on an inbound call they live as long as the call, on an outbound call
 * they belong to the call's arena (runtime/model/call.h). C strings inside structures are fixed
 * arrays, always terminated. Durations are what crosses, never absolute times.
 *
 * A zero number means "none" where the field says so: epochs, incarnations and tokens start at 1.
 */
#ifndef MODEL_MESSAGE_H
#define MODEL_MESSAGE_H

#include "runtime/base/arena.h"
#include "runtime/model/ids.h"
#include "runtime/model/reason.h"

enum model_call_kind {
    /* RegistryService, instance → coordinator */
    MODEL_CALL_REGISTER,
    MODEL_CALL_RECONCILE,
    MODEL_CALL_RENEW,
    MODEL_CALL_LEAVE,
    MODEL_CALL_PULL_ROWS,
    /* OwnershipService, coordinator → instance */
    MODEL_CALL_COMPACT,
    MODEL_CALL_FENCE,
    MODEL_CALL_ACTIVATE,
    MODEL_CALL_DROP,
    /* InstanceService, coordinator or client → instance */
    MODEL_CALL_SET,
    MODEL_CALL_STORE,
    MODEL_CALL_PUT,
    MODEL_CALL_READ,
    MODEL_CALL_DELETE,
    MODEL_CALL_PIPELINE, /* outbound only: a core never gets one, its host takes it apart */
    MODEL_CALL_INSTANCE_STATUS,
    MODEL_CALL_LIST_ENTRIES,
    /* CoordinatorService, client → coordinator */
    MODEL_CALL_OPEN_SESSION,
    MODEL_CALL_KEEP_ALIVE,
    MODEL_CALL_CLOSE_SESSION,
    MODEL_CALL_EXECUTE,
    MODEL_CALL_LOCK,
    MODEL_CALL_UNLOCK,
    MODEL_CALL_ROUTE,
    MODEL_CALL_WATCH_ROUTES,
    /* AdminService, operator → coordinator; what never changes anything, */
    MODEL_CALL_LIST_INSTANCES,
    MODEL_CALL_KEY_STATUS,
    MODEL_CALL_LIST_KEYS,
    MODEL_CALL_GET_DISTRIBUTION,
    /* and what does change something */
    MODEL_CALL_SET_DISTRIBUTION,
    MODEL_CALL_FREE_LOCK,
    /* EsiService, operator → redistinto-esi serve */
    MODEL_CALL_ESI_SUBMIT,
    MODEL_CALL_ESI_STATUS,
    MODEL_CALL_ESI_LIST,
    MODEL_CALL_ESI_KILL,
    MODEL_CALL_ESI_PAUSE,
    MODEL_CALL_ESI_RESUME,
    MODEL_CALL_ESI_BLOCK,
    MODEL_CALL_ESI_UNBLOCK,
    MODEL_CALL_ESI_DEADLOCK,

    MODEL_N_CALL_KINDS
};

/* "REGISTER" … for logs and simulator traces. */
const char *model_call_kind_name(enum model_call_kind kind);

/* When a write needs the key's lock token. */
enum model_locking {
    MODEL_LOCKING_OPTIONAL, /* only while the key is locked */
    MODEL_LOCKING_REQUIRED, /* always (classic) */
    MODEL_LOCKING_NONE,     /* never checked */
};

enum model_member_state {
    MODEL_MEMBER_JOINING, /* registered, not reconciled */
    MODEL_MEMBER_ALIVE,
    MODEL_MEMBER_DEAD, /* lease ran out, one-way for an incarnation */
    MODEL_MEMBER_LEFT, /* said goodbye */
};

/* How the instance of a new key is chosen; coordinator/placement.h says more. */
enum model_distribution {
    MODEL_DISTRIBUTION_EQUITABLE_LOAD,
    MODEL_DISTRIBUTION_LEAST_SPACE_USED,
    MODEL_DISTRIBUTION_KEY_EXPLICIT,

    MODEL_N_DISTRIBUTIONS
};

/* "equitable-load", "least-space-used", "key-explicit"; NULL-terminated. */
extern const char *const model_distribution_names[MODEL_N_DISTRIBUTIONS + 1];

/* "joining", "alive", "dead", "left" */
const char *model_member_state_name(enum model_member_state state);

/* ---- registry -------------------------------------------------------------------------------- */

struct model_register_request {
    char name[MODEL_NAME_MAX + 1];
    char address[MODEL_ADDRESS_MAX + 1]; /* where coordinator and clients reach it */
    struct model_id cluster_id;          /* none on the first start of a data directory */
    struct model_id store_id;
    struct model_id boot_id;
    struct model_id machine_id;
    bool local_store; /* the data directory is on a local file system */
    uint64_t entries_total;
    uint64_t entry_size; /* bytes */
};

struct model_register_response {
    struct model_id cluster_id;
    uint64_t incarnation;
    uint64_t lease_ms;
    uint32_t key_max; /* bytes */
};

/* One key's ownership as the coordinator wants its owner to hold it. */
struct model_row {
    struct rt_bytes key;
    uint64_t epoch;
    uint64_t token_floor; /* writes with a lower token are refused */
    bool locked;
    enum model_locking locking;
    bool key_lost;  /* a stored value is missing: every access answers KEY_LOST */
    bool sets_lost; /* the first access answers with sets_lost */
};

/* One key that an instance found in its store. */
struct model_held_row {
    struct rt_bytes key;
    uint64_t epoch;
    bool has_value;               /* a durable value that passed its checksum */
    struct model_version version; /* of that value */
};

/* Batches of one reconcile, in order: `part` counts from 0, `last` closes the list of held rows.
 * After the last part the instance goes on with empty parts until the answer says `done`. */
struct model_reconcile_request {
    char name[MODEL_NAME_MAX + 1];
    uint64_t incarnation;
    uint64_t part;
    struct model_held_row *rows; /* at most MODEL_RECONCILE_ROWS_MAX */
    size_t n_rows;
    bool last;
};

/* `rows`: what the instance shall serve, of those it reported and, after `last`, of those that the
 * coordinator attributes to it and that it did not report. A held row that is never among them
 * stays quarantined: kept, never served. */
struct model_reconcile_response {
    struct model_row *rows;
    size_t n_rows;
    bool done;
};

/* An ownership that its owner gave up to make room. */
struct model_evicted {
    struct rt_bytes key;
    uint64_t epoch;
};

struct model_renew_request {
    char name[MODEL_NAME_MAX + 1];
    uint64_t incarnation;
    struct model_id boot_id;
    struct model_id store_id;
    uint64_t entries_free;
    uint64_t entries_total;
    uint64_t n_keys;
    uint64_t n_operations; /* since the process started */
    struct model_evicted
        *evicted; /* at most MODEL_EVICTED_MAX; repeated until an answer names it */
    size_t n_evicted;
};

struct model_renew_response {
    uint64_t lease_ms;
    uint64_t *evicted_epochs; /* of the request's evicted, those that no key has any more */
    size_t n_evicted_epochs;  /* at most MODEL_EVICTED_MAX */
};

struct model_leave_request {
    char name[MODEL_NAME_MAX + 1];
    uint64_t incarnation;
};

struct model_pull_rows_request {
    char name[MODEL_NAME_MAX + 1];
    uint64_t incarnation;
    struct rt_bytes *keys; /* at most MODEL_RECONCILE_ROWS_MAX */
    size_t n_keys;
};

/* Rows of the asked keys that the asking incarnation owns now; the others are left out. */
struct model_pull_rows_response {
    struct model_row *rows;
    size_t n_rows;
};

/* ---- ownership ------------------------------------------------------------------------------- */

/* Raises the key's token floor. locked: a grant (the answer carries the value); else a release. */
struct model_fence_request {
    uint64_t term;
    struct rt_bytes key;
    uint64_t epoch;
    uint64_t incarnation; /* of the owner, as the coordinator knows it */
    uint64_t token;
    bool locked;
};

struct model_activate_request {
    uint64_t term;
    uint64_t incarnation; /* of the owner, as the coordinator knows it */
    struct model_row row;
    uint64_t value_size; /* bytes that the first value will need */
};

struct model_drop_request {
    uint64_t term;
    struct rt_bytes key;
    uint64_t epoch; /* a newer row stays */
};

struct model_compact_request {
    uint64_t term;
    uint64_t incarnation; /* of the instance, as the coordinator knows it */
    uint64_t round;       /* of that term, from 1; one that was carried out does nothing */
};

/* ---- data ------------------------------------------------------------------------------------ */

/* On every operation to an instance. */
struct model_header {
    struct model_id cluster_id;
    struct rt_bytes key;
    uint64_t epoch;
    char owner[MODEL_NAME_MAX + 1];
    uint64_t incarnation;
    struct model_request_id request_id;
    uint64_t done_below;  /* the client has finished every request with a lower seq */
    uint64_t first_epoch; /* epoch under which the client sent this request_id first */
    uint64_t lock_token;  /* 0 = none */
    uint64_t term;        /* of the coordinator that made the route; 0 = unknown */
    bool no_compaction;   /* SET, PUT: COMPACTION_NEEDED rather than moving other values */
};

enum model_consistency {
    MODEL_READ_LINEARIZABLE, /* checks, read, post-check */
    MODEL_READ_STALE_OK,     /* whatever the responder has */
};

struct model_data_request {
    struct model_header header;
    struct rt_bytes value;              /* SET, PUT */
    bool has_last_set;                  /* STORE */
    struct model_version last_set;      /* STORE: the caller's last acknowledged SET */
    bool has_if_version;                /* PUT, DELETE */
    struct model_version if_version;    /* apply only when this is the current version */
    enum model_consistency consistency; /* READ */
};

/* Also the answer of Fence and Activate. */
struct model_data_response {
    struct model_version version; /* of the key after the operation; all zero without a value */
    bool has_value;
    struct rt_bytes value; /* READ and a granting FENCE */
    bool stored;           /* that version is durable */
    bool sets_lost;        /* SETs were lost with an earlier process of the owner */
    bool replayed;         /* the recorded answer of an earlier attempt */
    bool stale;            /* READ: the responder's lease had run out */
    uint64_t entries_free;
    struct rt_bytes *evicted; /* SET, PUT: keys that were dropped to make room */
    size_t n_evicted;
};

struct model_error;

/* One of a batch: a data request without what the batch shares. */
struct model_pipeline_operation {
    enum model_call_kind kind; /* SET STORE PUT READ DELETE; decoded: else refused */
    struct rt_bytes key;
    struct rt_bytes value; /* SET, PUT */
    uint64_t epoch;
    uint64_t seq;         /* of the request id; 0 = none */
    uint64_t first_epoch; /* epoch under which the client sent this request id first */
    uint64_t lock_token;  /* 0 = none */
    bool has_last_set;    /* STORE */
    struct model_version last_set;
    bool has_if_version; /* PUT, DELETE */
    struct model_version if_version;
    enum model_consistency consistency; /* READ */
    const struct model_error *refused;  /* decoded: a field breaks a rule; NULL = none does */
};

/* Many operations for one owner. Those on one key take effect in their order. */
struct model_pipeline_request {
    struct model_id cluster_id;
    char owner[MODEL_NAME_MAX + 1];
    uint64_t incarnation;
    uint64_t term;
    struct model_id client; /* of all request ids; may be none when no operation has one */
    uint64_t done_below;
    struct model_pipeline_operation *operations; /* at most MODEL_PIPELINE_OPERATIONS_MAX */
    size_t n_operations;
};

struct model_pipeline_result {
    enum rt_code code;
    const struct model_error *error; /* NULL when code is RT_OK */
    struct model_data_response data; /* when code is RT_OK; without entries_free */
};

struct model_pipeline_response {
    struct model_pipeline_result *results; /* of the operations, in their order */
    size_t n_results;
    uint64_t entries_free;
};

struct model_instance_status_response {
    char name[MODEL_NAME_MAX + 1];
    struct model_id cluster_id;
    bool serving;
    uint64_t fence_in_ms; /* 0 when fenced */
    uint64_t n_keys;
    uint64_t n_quarantined;
    uint64_t entries_free;
    uint64_t entries_total;
    uint64_t entry_size;
    uint64_t n_operations;
    uint64_t n_compactions; /* since the process started */
};

struct model_list_entries_request {
    uint32_t first_index;
    uint32_t page_size; /* 0 = MODEL_PAGE_MAX */
};

struct model_entry_info {
    uint32_t index;
    struct rt_bytes key;
    uint64_t offset; /* in the value */
    uint64_t bytes_used;
    bool atomic; /* the value's only entry */
};

struct model_list_entries_response {
    struct model_entry_info *entries; /* ascending; what is left out is free */
    size_t n_entries;
    bool more;
    uint32_t pointer; /* of replacement */
    uint64_t entries_free;
    uint64_t entries_total;
    uint64_t entry_size;
};

/* ---- sessions and statements ----------------------------------------------------------------- */

struct model_open_session_request {
    char name[MODEL_NAME_MAX + 1];      /* shown as the holder of locks; need not be unique */
    struct model_request_id request_id; /* makes a retry return the same session */
};

struct model_open_session_response {
    struct model_id session_id;
    struct model_id cluster_id;
    uint64_t lease_ms;
    uint32_t key_max;   /* bytes */
    uint32_t value_max; /* bytes */
};

struct model_session_request { /* KEEP_ALIVE, CLOSE_SESSION */
    struct model_id session_id;
};

struct model_keep_alive_response {
    uint64_t lease_ms;
};

enum model_statement_kind {
    MODEL_STATEMENT_GET,   /* lock, and the value */
    MODEL_STATEMENT_SET,   /* visible until the owner's process ends */
    MODEL_STATEMENT_STORE, /* durable; releases the lock */
    MODEL_STATEMENT_PUT,   /* SET and STORE in one; releases the caller's lock if there is one */
    MODEL_STATEMENT_READ,  /* no lock */
    MODEL_STATEMENT_DELETE,
    MODEL_STATEMENT_AWAIT, /* answers READY once the caller's GET that answered WAITING may run */
};

/* "GET" … "AWAIT" */
const char *model_statement_kind_name(enum model_statement_kind kind);

struct model_execute_request {
    struct model_id session_id;
    struct model_request_id request_id;
    uint64_t done_below;
    uint64_t first_version; /* a retry: placement version known when it was sent first; else 0 */
    enum model_statement_kind kind;
    struct rt_bytes key;
    struct rt_bytes value;         /* SET, PUT */
    uint64_t lock_token;           /* as the GET answered; 0 = none */
    bool has_last_set;             /* STORE */
    struct model_version last_set; /* STORE: version of the caller's last acknowledged SET */
    bool has_if_version;           /* PUT, DELETE */
    struct model_version if_version;
};

enum model_outcome {
    MODEL_OUTCOME_DONE,
    MODEL_OUTCOME_WAITING, /* GET: queued behind another holder; send AWAIT, then GET again */
    MODEL_OUTCOME_READY,   /* AWAIT */
};

struct model_execute_response {
    enum model_outcome outcome;
    struct model_data_response data;
    char instance[MODEL_NAME_MAX + 1]; /* owner; empty while the key has none */
    uint64_t epoch;                    /* 0 while the key has no owner */
    uint64_t lock_token;               /* GET */
    char holder[MODEL_NAME_MAX + 1];   /* WAITING: session that holds the key */
    bool lock_lost; /* STORE, PUT: durable, but the lock had gone to another meanwhile */
};

/* ---- locks and routes --------------------------------------------------------------------------
 */

/* What the header of an operation names, and where to send it. */
struct model_route {
    struct model_id cluster_id;
    char owner[MODEL_NAME_MAX + 1];
    char address[MODEL_ADDRESS_MAX + 1];
    uint64_t incarnation; /* of the owner */
    uint64_t epoch;
};

struct model_lock_request {
    struct model_id session_id;
    struct model_request_id request_id;
    uint64_t done_below;
    struct rt_bytes key;
    bool no_wait; /* answer WAITING instead of waiting */
};

struct model_lock_response {
    enum model_outcome outcome; /* DONE, or WAITING after no_wait */
    struct model_data_response data;
    uint64_t lock_token;
    bool has_route; /* false while the key has no owner */
    struct model_route route;
    char holder[MODEL_NAME_MAX + 1]; /* WAITING: session that holds the key */
};

struct model_unlock_request {
    struct model_id session_id;
    struct rt_bytes key;
    uint64_t lock_token; /* at least 1 */
};

struct model_route_request {
    struct rt_bytes key;
    enum model_statement_kind operation; /* READ SET STORE PUT DELETE */
    uint64_t value_size;                 /* SET, PUT: bytes, at most MODEL_VALUE_MAX */
    struct model_id session_id;          /* may be none */
    uint64_t lock_token;                 /* 0 = none */
    uint64_t min_placement_version;      /* 0 = none */
};

struct model_route_response {
    bool has_route; /* false: the key is known and has no owner */
    struct model_route route;
};

/* Where a watch is: made by the core, never on the wire, all zero at its begin. */
struct model_watch_cursor {
    bool has_begun;
    bool is_snapshot;  /* keys are being gone through */
    bool is_complete;  /* what it was told is the whole state */
    uint64_t change;   /* number of the first change that it was not told */
    uint64_t position; /* snapshot: in the table of this layout */
    uint64_t layout;
    uint64_t version; /* of the last complete state that it was told */
};

/* A long poll: answered when there is something to tell. */
struct model_watch_routes_request {
    struct rt_bytes prefix;           /* 0..MODEL_KEY_MAX bytes */
    uint64_t after_version;           /* of the last complete state that the client has; 0 = none */
    struct model_watch_cursor cursor; /* as the answer before said */
};

struct model_watched_instance {
    char name[MODEL_NAME_MAX + 1];
    char address[MODEL_ADDRESS_MAX + 1];
    uint64_t incarnation;
    enum model_member_state state;
};

struct model_watched_key {
    struct rt_bytes key;
    char owner[MODEL_NAME_MAX + 1]; /* empty: it has no route any more */
    uint64_t epoch;                 /* 0 without owner */
};

struct model_watch_routes_response {
    bool reset;                               /* what was told before is void */
    struct model_watched_instance *instances; /* at most MODEL_MEMBERS_MAX */
    size_t n_instances;
    struct model_watched_key *keys; /* at most MODEL_WATCH_KEYS_MAX, in no order */
    size_t n_keys;
    bool more;                      /* the state is not complete yet */
    uint64_t version;               /* of the last complete state; 0 = none */
    struct model_watch_cursor next; /* for the next request */
};

/* ---- inspection ------------------------------------------------------------------------------ */

struct model_page_request {
    struct rt_bytes prefix; /* LIST_KEYS */
    struct rt_bytes after;  /* last key or name of the page before; empty = from the start */
    uint32_t page_size;     /* 0 = MODEL_PAGE_MAX */
};

struct model_instance_info {
    char name[MODEL_NAME_MAX + 1];
    char address[MODEL_ADDRESS_MAX + 1];
    enum model_member_state state;
    uint64_t incarnation;
    uint64_t ordinal; /* registration order, from 1 */
    uint64_t entries_free;
    uint64_t entries_total;
    uint64_t n_keys;            /* as the coordinator counts them */
    uint64_t last_renew_age_ms; /* since the last granted Renew */
};

struct model_list_instances_response {
    struct model_instance_info *instances; /* in registration order */
    size_t n_instances;
    bool more;
};

struct model_key_status_request { /* also FREE_LOCK */
    struct rt_bytes key;
};

struct model_key_status_response {
    bool known;
    bool has_value;
    struct rt_bytes value;
    struct model_version version;
    bool stored;
    char owner[MODEL_NAME_MAX + 1]; /* empty while unplaced */
    enum model_member_state owner_state;
    uint64_t epoch;
    /* Where the key would go if it were placed now; empty when no instance could take it. */
    char would_place[MODEL_NAME_MAX + 1];
    char holder[MODEL_NAME_MAX + 1]; /* empty while free */
    struct rt_bytes *waiters;        /* session names, first to be woken first */
    size_t n_waiters;
    bool value_unavailable; /* the owner could not be asked */
};

struct model_key_info {
    struct rt_bytes key;
    char owner[MODEL_NAME_MAX + 1];
    uint64_t epoch;
    char holder[MODEL_NAME_MAX + 1];
};

struct model_list_keys_response {
    struct model_key_info *keys; /* ascending, unsigned bytes */
    size_t n_keys;
    bool more;
};

struct model_free_lock_response {
    char holder[MODEL_NAME_MAX + 1]; /* session that held it; empty: nobody did */
};

struct model_distribution_request { /* SET_DISTRIBUTION */
    enum model_distribution distribution;
};

struct model_distribution_response { /* also of SET_DISTRIBUTION: as it is then */
    enum model_distribution distribution;
    enum model_distribution configured; /* what the coordinator's option says */
};

/* ---- scripts under a planner ----------------------------------------------------------------- */

enum model_esi_state {
    MODEL_ESI_NEW, /* its session is being opened */
    MODEL_ESI_READY,
    MODEL_ESI_RUNNING, /* a line */
    MODEL_ESI_BLOCKED, /* waits for a key */
    MODEL_ESI_ENDING,  /* its session is being closed */
    MODEL_ESI_FINISHED,

    MODEL_N_ESI_STATES
};

enum model_esi_end {
    MODEL_ESI_END_NONE, /* it goes on */
    MODEL_ESI_END_OK,
    MODEL_ESI_END_FAILED,
    MODEL_ESI_END_UNKNOWN, /* a statement may have been applied */
    MODEL_ESI_END_KILLED,
    MODEL_ESI_END_SESSION_LOST,

    MODEL_N_ESI_ENDS
};

/* "new", "ready", "running", "blocked", "ending", "finished" */
const char *model_esi_state_name(enum model_esi_state state);

/* "none", "ok", "failed", "unknown", "killed", "session_lost" */
const char *model_esi_end_name(enum model_esi_end end);

struct model_esi_submit_request {
    char name[MODEL_NAME_MAX + 1];
    struct rt_bytes script; /* 1..MODEL_ESI_SCRIPT_MAX bytes */
    struct model_request_id request_id;
};

struct model_esi_request { /* ESI_STATUS ESI_KILL ESI_BLOCK ESI_UNBLOCK */
    uint64_t id;           /* at least 1; not of ESI_UNBLOCK */
    bool wait;             /* ESI_STATUS: answer once it has ended */
    struct rt_bytes key;   /* ESI_BLOCK ESI_UNBLOCK */
};

struct model_esi_list_request {
    struct rt_bytes waits_for; /* key; empty = all */
    uint64_t after;            /* number of the last one of the page before */
    uint32_t page_size;        /* 0 = MODEL_PAGE_MAX */
};

struct model_esi_info {
    uint64_t id;
    char name[MODEL_NAME_MAX + 1];
    enum model_esi_state state;
    enum model_esi_end end;
    uint32_t line; /* that it ran last or waits at, or that ended it; 0 = none */
    uint64_t n_statements;
    uint64_t n_ok;
    uint64_t estimate_milli; /* thousandths of a line; 0 = none */
    struct rt_bytes waits_for;
    enum model_reason reason; /* of the failure that ended it */
    struct rt_bytes message;  /* at most MODEL_ESI_MESSAGE_MAX bytes, without NUL; empty = none */
};

struct model_esi_response { /* ESI_SUBMIT ESI_STATUS ESI_KILL ESI_BLOCK */
    struct model_esi_info esi;
};

struct model_esi_list_response { /* also of ESI_DEADLOCK, which has only the ESIs */
    struct model_esi_info *esis; /* at most MODEL_PAGE_MAX */
    size_t n_esis;
    bool more;
    char planner[MODEL_NAME_MAX + 1];
    bool paused;
};

struct model_esi_unblock_response {
    uint64_t woken; /* 0 = none waited; the lock was freed */
    uint64_t n_waiting;
};

/* ---- errors and answers ---------------------------------------------------------------------- */

struct model_hint {
    char name[MODEL_NAME_MAX + 1];
    char address[MODEL_ADDRESS_MAX + 1];
    uint64_t incarnation;
    uint64_t epoch;
};

enum {
    MODEL_ERROR_MESSAGE_MAX = 255
};

/* RoutingError of the wire. */
struct model_error {
    enum model_reason reason;
    enum model_applied applied;
    char message[MODEL_ERROR_MESSAGE_MAX + 1];
    struct rt_bytes key; /* as requested */
    uint64_t request_epoch;
    uint64_t current_epoch;
    bool has_hint;
    struct model_hint hint;
    uint32_t retry_after_ms; /* 0 = none */
    bool refresh_required;   /* global state first, then retry */
    uint64_t expires_in_ms;  /* NAME_IN_USE: when the name may be free */
};

/* Who answered; in every answer, OK or not. */
struct model_responder {
    char name[MODEL_NAME_MAX + 1]; /* empty for the coordinator */
    uint64_t incarnation;
    uint64_t term;
    uint64_t placement_version; /* counter value of the last committed route change; never falls */
};

struct model_request {
    enum model_call_kind kind;
    union {
        struct model_register_request reg;
        struct model_reconcile_request reconcile;
        struct model_renew_request renew;
        struct model_leave_request leave;
        struct model_pull_rows_request pull_rows;
        struct model_fence_request fence;
        struct model_activate_request activate;
        struct model_drop_request drop;
        struct model_compact_request compact;
        struct model_data_request data; /* SET STORE PUT READ DELETE */
        struct model_pipeline_request pipeline;
        struct model_list_entries_request list_entries;
        struct model_open_session_request open_session;
        struct model_session_request session; /* KEEP_ALIVE CLOSE_SESSION */
        struct model_execute_request execute;
        struct model_lock_request lock;
        struct model_unlock_request unlock;
        struct model_route_request route;
        struct model_watch_routes_request watch_routes;
        struct model_page_request page; /* LIST_INSTANCES LIST_KEYS */
        struct model_key_status_request key_status;
        struct model_distribution_request distribution;
        struct model_esi_submit_request esi_submit;
        struct model_esi_request esi;
        struct model_esi_list_request esi_list;
    };
};

struct model_response {
    enum rt_code code;
    struct model_responder responder;
    struct model_error error; /* valid only when code is not RT_OK */
    union {                   /* valid only when code is RT_OK */
        struct model_register_response reg;
        struct model_reconcile_response reconcile;
        struct model_renew_response renew;
        struct model_pull_rows_response pull_rows;
        struct model_data_response data; /* also FENCE ACTIVATE */
        struct model_pipeline_response pipeline;
        struct model_instance_status_response instance_status;
        struct model_list_entries_response list_entries;
        struct model_open_session_response open_session;
        struct model_keep_alive_response keep_alive;
        struct model_execute_response execute;
        struct model_lock_response lock;
        struct model_route_response route;
        struct model_watch_routes_response watch_routes;
        struct model_list_instances_response list_instances;
        struct model_key_status_response key_status;
        struct model_list_keys_response list_keys;
        struct model_distribution_response distribution; /* GET and SET */
        struct model_free_lock_response free_lock;
        struct model_esi_response esi;
        struct model_esi_list_response esi_list;
        struct model_esi_unblock_response esi_unblock;
    };
};

/* Fills code and error from the reason's row, with a printf message; `applied` and code may be
 * changed afterwards. The other fields of error are zeroed. */
void model_response_fail(struct model_response *response, enum model_reason reason,
                         const char *format, ...) RT_PRINTF(3, 4);

/* code OK and the member of the union that belongs to `kind` zeroed. */
void model_response_ok(struct model_response *response, enum model_call_kind kind);

/* Deep copies into `arena`; RESOURCE_EXHAUSTED when it is full. `kind` says which member of the
 * union is live. Source and copy must not be the same object. */
RT_MUST_USE enum rt_code model_request_copy(struct model_request *ret_copy,
                                            const struct model_request *source,
                                            struct rt_arena *arena, struct rt_error *err);
RT_MUST_USE enum rt_code model_response_copy(struct model_response *ret_copy,
                                             const struct model_response *source,
                                             enum model_call_kind kind, struct rt_arena *arena,
                                             struct rt_error *err);

#endif
