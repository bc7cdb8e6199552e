/*
 * Agent: see agent.h. Invariant: script and runner are there together. The agent's lock.
 */
#include "esi-client/agent.h"

void esi_agent_init(struct esi_agent *agent)
{
    *agent = (struct esi_agent){0};
    model_effects_init(&agent->none);
}

void esi_agent_deinit(struct esi_agent *agent)
{
    agent->runner = esi_runner_free(agent->runner);
    agent->script = esi_script_free(agent->script);
}

void esi_agent_start(struct esi_agent *agent, struct esi_script *script,
                     const struct esi_session_config *config, uint64_t seed,
                     const struct rt_env *env)
{
    struct esi_session_config planned = *config;

    rt_assert(!agent->runner);
    planned.holds_turn = true;
    agent->script = script;
    agent->runner = esi_runner_new(script, &planned, seed, env);
    esi_runner_plan(agent->runner);
    esi_runner_start(agent->runner);
}

bool esi_agent_vacate(struct esi_agent *agent)
{
    if (agent->runner && !esi_runner_is_quiet(agent->runner))
        return false;
    esi_agent_deinit(agent);
    return true;
}

void esi_agent_call_done(struct esi_agent *agent, struct model_call *call)
{
    rt_assert(agent->runner);
    esi_runner_call_done(agent->runner, call);
}

void esi_agent_tick(struct esi_agent *agent)
{
    if (agent->runner)
        esi_runner_tick(agent->runner);
}

uint64_t esi_agent_next_wakeup_us(const struct esi_agent *agent)
{
    return agent->runner ? esi_runner_next_wakeup_us(agent->runner) : RT_NEVER;
}

struct model_effects *esi_agent_effects(struct esi_agent *agent)
{
    return agent->runner ? esi_runner_effects(agent->runner) : &agent->none;
}
