/*
 * What the files of the ESI service share: service.c (lines and notes) and service_calls.c (what is
 * asked from outside). Under the service's lock.
 */
#ifndef ESI_SERVICE_STATE_H
#define ESI_SERVICE_STATE_H

#include "esi-client/service.h"
#include "runtime/base/map.h"

/* What the session of an ESI executes. */
enum esi_runs {
    ESI_RUNS_NOT,
    ESI_RUNS_LINE,
    ESI_RUNS_LOCK, /* a GET that a person ordered */
};

/* A GET that was not granted at once. */
enum esi_waits {
    ESI_WAITS_NOT,
    ESI_WAITS_LONGER,
    ESI_WAITS_TURN, /* the lock may be had */
};

struct esi_job {
    UT_hash_handle hh; /* by id, in the order of submission */
    uint32_t id;
    char name[MODEL_NAME_MAX + 1];
    struct model_request_id request_id;
    uint64_t n_statements; /* that a run executes */
    uint64_t n_ok;
    size_t text_size;
    uint32_t line; /* of the last result */
    bool is_open;
    bool has_line; /* the planner ordered one and is not told of it */
    enum esi_runs runs;
    enum esi_waits waits;
    bool is_pending;            /* has_line, and it is not begun yet */
    uint64_t turn_until_us;     /* is_pending: the planner is told that it is blocked then */
    uint8_t key[MODEL_KEY_MAX]; /* that it waits for */
    size_t key_size;
    struct model_call *block; /* BLOCK that waits for its time or its GET; NULL: none */
    bool is_finished;
    struct rt_list finished_link;
    enum model_esi_end end;
    enum model_reason reason;
    char *message; /* owned; NULL = none */
};

struct esi_service {
    struct rt_env env;
    enum esi_policy policy;
    enum model_dialect dialect;
    struct esi_planner *planner; /* owned */
    struct model_effects effects;
    struct rt_list orders;   /* owned */
    struct esi_job *jobs;    /* uthash, owned */
    struct rt_list finished; /* esi_job.finished_link, oldest first */
    size_t n_finished;
    size_t n_live;
    size_t text_size;     /* of the scripts of live ESIs */
    struct rt_list calls; /* model_call.link: STATUS and KILL that wait for an end */
    bool has_begun;
    bool is_draining;
};

/* ---- service.c ---- */

/* NULL when it is not known. */
struct esi_job *esi_service_find(const struct esi_service *service, uint64_t id);

/* The planner has given it this id; takes the script. */
struct esi_job *esi_service_add(struct esi_service *service, uint32_t id, const char *name,
                                struct esi_script *script, size_t text_size);

void esi_service_push_key_order(struct esi_service *service, enum esi_service_order_kind kind,
                                uint32_t id, struct rt_bytes key);

/* Gives the orders that the planner has by now. */
void esi_service_plan(struct esi_service *service);

/* ---- service_calls.c ---- */

/* The BLOCK that waits for the end of a line, if there is one. */
void esi_service_block_now(struct esi_service *service, struct esi_job *job);

/* The BLOCK whose GET came to this. */
void esi_service_answer_block(struct esi_service *service, struct esi_job *job,
                              const struct esi_result *result);

/* Whoever waits for its end. */
void esi_service_answer_end(struct esi_service *service, struct esi_job *job);

#endif
