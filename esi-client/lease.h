/*
 * A client's tenure of one session at the coordinator: opens it, keeps it alive, claims nothing
 * once its lease has run out by the client's own clock, closes it.
 *
 * Part of a core: its calls go through the core's post, and whoever steps it looks at `state`
 * afterwards. An OPEN_SESSION is repeated until its time is over, then the lease has ENDED. It has
 * ended too, with SESSION_UNKNOWN, when it ran out or the coordinator knows it no longer. One whose
 * length no lease can have is closed, and then has ended with that failure.
 *
 * Not thread safe; the core's lock.
 */
#ifndef ESI_LEASE_H
#define ESI_LEASE_H

#include "esi-client/exchange.h"
#include "runtime/model/lease.h"

enum esi_lease_state {
    ESI_LEASE_NONE, /* not asked for yet */
    ESI_LEASE_OPENING,
    ESI_LEASE_HELD,
    ESI_LEASE_CLOSING,
    ESI_LEASE_ENDED,
};

struct esi_lease {
    struct rt_env env;
    struct esi_post *post;              /* borrowed */
    char name[MODEL_NAME_MAX + 1];      /* of the session */
    const char *address;                /* borrowed; the coordinator's */
    struct model_request_id request_id; /* of the OPEN_SESSION */
    enum esi_lease_state state;
    struct model_id id; /* of the session, as the coordinator gave it */
    struct model_lease terms;
    uint64_t fence_at_us;     /* from here on nothing is claimed */
    struct esi_exchange door; /* OPEN_SESSION, CLOSE_SESSION */
    struct esi_exchange keep_alive;
    enum rt_code failure_code; /* RT_OK when it did not end by itself */
    struct model_error failure;
    bool is_over; /* ENDED, and the coordinator has said so: what it held is released */
};

/* `post` and `address` are borrowed. */
void esi_lease_init(struct esi_lease *lease, struct esi_post *post, const struct rt_env *env,
                    const char *name, const char *address);

/* Asks for a session. Not while there is one. */
void esi_lease_open(struct esi_lease *lease, const struct model_request_id *request_id,
                    uint64_t timeout_us);

/* Gives it back, if there is one; then ENDED without a failure. */
void esi_lease_close(struct esi_lease *lease);

/* Somebody was told, by the coordinator, that the session ended: the lease ends with that failure.
 */
void esi_lease_lose(struct esi_lease *lease, const struct model_response *failure);

/* A call of the post is back. False when its exchange is not one of the lease's. */
bool esi_lease_take(struct esi_lease *lease, const struct esi_exchange *exchange,
                    const struct model_call *call, uint64_t sent_us);

/* Runs what is due. */
void esi_lease_tick(struct esi_lease *lease);

/* HELD, and not run out: it ends here when it has. */
bool esi_lease_check(struct esi_lease *lease);

/* When something is due; RT_NEVER when nothing is. */
uint64_t esi_lease_wakeup_us(const struct esi_lease *lease);

#endif
