/*
 * The ESI service: which scripts there are, what their planner decides, what a person orders.
 *
 * Pure, same rules as the other cores: one lock, no I/O, no clock but the environment's. It makes
 * no calls itself. A shell carries out its orders, each on a planned runner (runner.h) of its own
 * for each ESI, and notes what came of them; of the keys that are blocked at the start it holds the
 * locks in a session of their own (keeper.h).
 *
 * A line that is ordered for an ESI whose GET waits at the coordinator runs the GET again once the
 * coordinator says that the lock may be had. While the planner knows of a holder, or when the word
 * does not come in ESI_SERVICE_TURN_US (a session that is none of ours has the lock), the ESI is
 * blocked again without asking: others want to run.
 */
#ifndef ESI_SERVICE_H
#define ESI_SERVICE_H

#include "esi-client/planner.h"
#include "esi-client/runner.h"
#include "runtime/model/call.h"

enum {
    ESI_SERVICE_STATEMENTS_MAX = 100000,     /* of one script */
    ESI_SERVICE_TEXT_MAX = 16 * 1024 * 1024, /* bytes of the scripts of live ESIs */
    ESI_SERVICE_FINISHED_MAX = 1000,         /* ESIs that stay known when they have ended */
    ESI_SERVICE_TURN_US = 2 * 1000 * 1000,   /* how long a line waits for the coordinator's word */
};

struct esi_service_config {
    struct esi_planner_config planner;
    bool is_paused;
    enum model_dialect dialect; /* of the scripts */
    const struct rt_bytes
        *blocked; /* borrowed; keys of the fictitious system owner, no two alike */
    size_t n_blocked;
};

enum esi_service_order_kind {
    ESI_SERVICE_START,  /* a planned runner for `script`, named `name` */
    ESI_SERVICE_GRANT,  /* esi_runner_grant() */
    ESI_SERVICE_LOCK,   /* esi_runner_lock() with `key` */
    ESI_SERVICE_STOP,   /* esi_runner_stop() */
    ESI_SERVICE_UNLOCK, /* the keeper: `key` is not blocked any more; id is 0 */
};

/* To be carried out in the order in which they are taken. Owned by whoever took it. */
struct esi_service_order {
    struct rt_list link;
    enum esi_service_order_kind kind;
    uint32_t id;
    struct esi_script *script; /* START; owned, NULL once taken from here */
    char name[MODEL_NAME_MAX + 1];
    uint8_t key[MODEL_KEY_MAX];
    size_t key_size;
};

/* What a step of an ESI's runner came to. */
struct esi_service_note {
    bool is_open;                      /* there is a session */
    bool has_turn;                     /* esi_runner_has_turn() */
    bool is_last;                      /* the runner is not RUNNING any more */
    const struct rt_list *results;     /* esi_result.link; stay the caller's */
    const struct esi_summary *summary; /* once it is done; else NULL */
};

struct esi_service;

/* `config` and `env` are copied; env->ctx must outlive the service. Two blocked keys that are alike
 * are a programmer error. */
struct esi_service *esi_service_new(const struct esi_service_config *config,
                                    const struct rt_env *env);

/* Calls that it still holds are the shell's to release. Accepts NULL, returns NULL. */
struct esi_service *esi_service_free(struct esi_service *service);

void esi_service_submit(struct esi_service *service, struct model_call *call);
void esi_service_cancel(struct esi_service *service, struct model_call *call);
void esi_service_tick(struct esi_service *service);
uint64_t esi_service_next_wakeup_us(const struct esi_service *service);
struct model_effects *esi_service_effects(struct esi_service *service);

/* The keys that are blocked at the start are locked: planning may begin. */
void esi_service_begin(struct esi_service *service);

/* Of each step of the runner of this ESI, in their order. */
void esi_service_take_note(struct esi_service *service, uint32_t id,
                           const struct esi_service_note *note);

/* Takes no more scripts; all ESIs are stopped, at once. */
void esi_service_drain(struct esi_service *service);
/* Draining, and every ESI has ended. */
bool esi_service_is_drained(const struct esi_service *service);

/* NULL when there is none. */
struct esi_service_order *esi_service_take_order(struct esi_service *service);
struct esi_service_order *esi_service_order_free(struct esi_service_order *order);

/* Live, for tests and logs. */
size_t esi_service_n_live(const struct esi_service *service);

#endif
