/*
 * What one coordinator core consists of. Private to coordinator/; the modules that decide (tasks,
 * registry, sessions, statements) work on it together.
 */
#ifndef COORD_STATE_H
#define COORD_STATE_H

#include "coordinator/core.h"
#include "coordinator/counter.h"
#include "coordinator/keys.h"
#include "coordinator/members.h"
#include "coordinator/sessions.h"
#include "runtime/base/rng.h"

enum coord_mode {
    COORD_MODE_LOADING,
    COORD_MODE_STARTING, /* the new term is being made durable: everything waits */
    COORD_MODE_SERVING,
    COORD_MODE_READ_ONLY, /* a transaction's outcome is unknown: nothing is changed any more */
};

struct coord_change;

/* See watch.h. */
struct coord_watch {
    struct coord_change *ring; /* owned; NULL until the first watch */
    uint64_t first;            /* number of the oldest change in it */
    uint64_t next;             /* of the next one */
    uint64_t lost_version;     /* changes of this placement version and below may be missing */
    struct rt_list waiting;    /* coord_task.wait_link: watches that know everything */
};

/* See compaction.h. */
enum coord_compaction_state {
    COORD_COMPACTION_IDLE,
    COORD_COMPACTION_DRAINING, /* statements end, none begins */
    COORD_COMPACTION_RUNNING,  /* instances are asked */
};

struct coord_compaction {
    enum coord_compaction_state state;
    uint64_t round;           /* of this term, the last that began to run */
    struct coord_timer timer; /* DRAINING: the end of it */
    struct rt_list askers;    /* coord_task.wait_link: whose owner refused */
    struct rt_list held;      /* coord_task.wait_link: the other statements */
    size_t n_asked;           /* instances that have not answered */
    size_t n_compacted;
    size_t n_left_out;
};

struct coord_core {
    struct coord_config config;
    struct rt_env env;
    struct rt_rng rng;
    struct model_effects effects;
    struct coord_timers timers;
    struct coord_counter counter;
    struct coord_members members;
    struct coord_sessions sessions;
    struct coord_keys keys;
    struct coord_watch watch;
    struct coord_compaction compaction;
    size_t n_under_way;         /* statements that are at an instance or at the store */
    struct coord_meta_row meta; /* once STARTING: of this term */
    enum coord_mode mode;
    bool draining;
    bool term_is_durable;
    bool registering;                     /* a new name is being registered: the others wait */
    uint64_t stored_counter;              /* as loaded */
    uint64_t started_us;                  /* when this term began */
    uint64_t barrier_us;                  /* nothing is reassigned before */
    uint64_t route;                       /* placement version, committed */
    uint64_t route_submitted;             /* the highest in any transaction */
    enum model_distribution distribution; /* that holds now */
    uint32_t cursor;                      /* of the last committed placement */
    uint64_t cursor_choice;               /* number of the choice that moved the cursor last */
    uint64_t n_choices;                   /* made in this term */
    struct rt_list tasks;                 /* coord_task.link: all of them */
    struct rt_list ready;                 /* coord_task.wait_link: to run in this step */
    struct rt_list early;                 /* coord_task.wait_link: until the term is durable */
    struct rt_list placing;    /* coord_task.placing_link: choices not confirmed, oldest first */
    struct rt_list registrars; /* coord_task.wait_link: until `registering` is false */
    struct coord_timer pulse;  /* to notice that the core itself was stopped */
    uint64_t last_step_us;
    struct rt_buffer operations; /* owned; see operations.h */
    size_t n_operations_lost;
    uint64_t grace_until_us; /* after a stop: nobody is declared dead before */
};

static inline uint64_t coord_now_us(const struct coord_core *core)
{
    return rt_env_now_us(&core->env);
}

#endif
