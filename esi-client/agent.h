/*
 * A place for the planned runner of one ESI after the other: the face of a core that a host can
 * keep while ESIs come and go. Pure, same rules as the other cores.
 */
#ifndef ESI_AGENT_H
#define ESI_AGENT_H

#include "esi-client/runner.h"

/* A zeroed struct is a valid empty one. */
struct esi_agent {
    struct esi_script *script; /* owned; NULL: the place is free */
    struct esi_runner *runner; /* owned */
    struct model_effects none; /* of a free place */
};

void esi_agent_init(struct esi_agent *agent);
void esi_agent_deinit(struct esi_agent *agent);

/* In a free place: takes the script and starts a planned runner for it. */
void esi_agent_start(struct esi_agent *agent, struct esi_script *script,
                     const struct esi_session_config *config, uint64_t seed,
                     const struct rt_env *env);

/* The runner is done and nothing of it will come back: the place is free again. Its results must
 * have been taken and freed. False: not yet. */
bool esi_agent_vacate(struct esi_agent *agent);

/* As those of the runner; of a free place they do nothing. */
void esi_agent_call_done(struct esi_agent *agent, struct model_call *call);
void esi_agent_tick(struct esi_agent *agent);
uint64_t esi_agent_next_wakeup_us(const struct esi_agent *agent);
struct model_effects *esi_agent_effects(struct esi_agent *agent);

#endif
