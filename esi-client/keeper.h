/*
 * The fictitious owner of keys that are blocked at the start: one session that locks them, one
 * after the other, and gives one back when it is told to.
 *
 * Pure, same rules as the other cores.
 */
#ifndef ESI_KEEPER_H
#define ESI_KEEPER_H

#include "esi-client/session.h"

struct esi_keeper;

/* All is copied; env->ctx must outlive the keeper. */
struct esi_keeper *esi_keeper_new(const struct esi_session_config *config, const struct rt_env *env,
                                  const struct rt_bytes *keys, size_t n_keys);

/* As esi_session_free(). Accepts NULL, returns NULL. */
struct esi_keeper *esi_keeper_free(struct esi_keeper *keeper);

/* Once. */
void esi_keeper_start(struct esi_keeper *keeper);

/* The key is given back, once it is held. A key that is not one of its own is ignored. */
void esi_keeper_unlock(struct esi_keeper *keeper, struct rt_bytes key);

/* Gives all of them back. */
void esi_keeper_stop(struct esi_keeper *keeper);

/* As those of the session. */
void esi_keeper_call_done(struct esi_keeper *keeper, struct model_call *call);
void esi_keeper_tick(struct esi_keeper *keeper);
uint64_t esi_keeper_next_wakeup_us(const struct esi_keeper *keeper);
struct model_effects *esi_keeper_effects(struct esi_keeper *keeper);

enum esi_keeper_state {
    ESI_KEEPER_LOCKING,
    ESI_KEEPER_READY, /* all are held, or were and are given back */
    ESI_KEEPER_LOST, /* the session could not be opened, or ended by itself, or was closed because a
                      * key could not be locked */
    ESI_KEEPER_STOPPED,
};

enum esi_keeper_state esi_keeper_state(const struct esi_keeper *keeper);

/* Why it is LOST; else NULL. */
const char *esi_keeper_failure(const struct esi_keeper *keeper);

#endif
