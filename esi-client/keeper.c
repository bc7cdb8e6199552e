/*
 * Keeper: see keeper.h. Invariant: while the session is OPEN and something is left to lock or to
 * give back, a statement is under way; keys are locked in their order before any is given back. The
 * keeper's lock.
 */
#include "esi-client/keeper.h"

#include <stdio.h>

#include "runtime/base/alloc.h"

enum key_state {
    KEY_WANTED,
    KEY_HELD,
    KEY_UNWANTED, /* held, to be given back */
    KEY_GONE,
};

struct kept_key {
    struct rt_bytes name; /* owned */
    enum key_state state;
};

struct esi_keeper {
    struct esi_session *session; /* owned */
    struct kept_key *keys;       /* owned */
    size_t n_keys;
    struct kept_key *current; /* of the statement under way; NULL: none */
    bool is_stopping;
    char failure[MODEL_ERROR_MESSAGE_MAX + 1]; /* empty: none */
};

static struct kept_key *find_in(struct esi_keeper *keeper, enum key_state state)
{
    for (size_t i = 0; i < keeper->n_keys; i++)
        if (keeper->keys[i].state == state)
            return &keeper->keys[i];
    return NULL;
}

static void fail(struct esi_keeper *keeper, const char *message)
{
    if (keeper->failure[0] == '\0' && !keeper->is_stopping)
        (void)snprintf(keeper->failure, sizeof(keeper->failure), "%s", message);
}

static void take_results(struct esi_keeper *keeper)
{
    struct kept_key *key = keeper->current;
    struct esi_result *result;

    while ((result = esi_session_take_result(keeper->session))) {
        if (result->outcome == ESI_OUTCOME_OK && key)
            key->state = key->state == KEY_WANTED ? KEY_HELD : KEY_GONE;
        else if (result->outcome != ESI_OUTCOME_WAITING)
            fail(keeper, result->error.message);
        if (result->outcome != ESI_OUTCOME_WAITING)
            keeper->current = NULL;
        (void)esi_result_free(result);
    }
}

/* The next statement, if the session takes one and there is one to run. */
static void advance(struct esi_keeper *keeper)
{
    struct esi_statement statement = {.kind = MODEL_STATEMENT_GET};
    const struct model_error *error = esi_session_failure(keeper->session);

    take_results(keeper);
    if (error)
        fail(keeper, error->message);
    if (keeper->failure[0] != '\0')
        esi_session_close(keeper->session);
    if (esi_session_state(keeper->session) != ESI_SESSION_OPEN)
        return;
    keeper->current = find_in(keeper, KEY_WANTED);
    if (!keeper->current) {
        keeper->current = find_in(keeper, KEY_UNWANTED);
        statement.kind = MODEL_STATEMENT_STORE;
    }
    if (!keeper->current)
        return;
    statement.key = keeper->current->name;
    esi_session_execute(keeper->session, &statement);
    take_results(keeper);
}

struct esi_keeper *esi_keeper_new(const struct esi_session_config *config, const struct rt_env *env,
                                  const struct rt_bytes *keys, size_t n_keys)
{
    struct esi_keeper *keeper = rt_xalloc(sizeof(*keeper));

    keeper->session = esi_session_new(config, env);
    keeper->keys = rt_xalloc(n_keys * sizeof(*keeper->keys));
    keeper->n_keys = n_keys;
    for (size_t i = 0; i < n_keys; i++)
        keeper->keys[i].name = rt_bytes_of(rt_xmemdup(keys[i].data, keys[i].size), keys[i].size);
    return keeper;
}

struct esi_keeper *esi_keeper_free(struct esi_keeper *keeper)
{
    if (!keeper)
        return NULL;
    for (size_t i = 0; i < keeper->n_keys; i++)
        (void)rt_free((void *)keeper->keys[i].name.data);
    (void)rt_free(keeper->keys);
    keeper->session = esi_session_free(keeper->session);
    return rt_free(keeper);
}

void esi_keeper_start(struct esi_keeper *keeper)
{
    esi_session_open(keeper->session);
    advance(keeper);
}

void esi_keeper_unlock(struct esi_keeper *keeper, struct rt_bytes key)
{
    for (size_t i = 0; i < keeper->n_keys; i++)
        if (keeper->keys[i].state == KEY_HELD && rt_bytes_equal(keeper->keys[i].name, key))
            keeper->keys[i].state = KEY_UNWANTED;
    advance(keeper);
}

void esi_keeper_stop(struct esi_keeper *keeper)
{
    keeper->is_stopping = true;
    esi_session_close(keeper->session);
    advance(keeper);
}

void esi_keeper_call_done(struct esi_keeper *keeper, struct model_call *call)
{
    esi_session_call_done(keeper->session, call);
    advance(keeper);
}

void esi_keeper_tick(struct esi_keeper *keeper)
{
    esi_session_tick(keeper->session);
    advance(keeper);
}

uint64_t esi_keeper_next_wakeup_us(const struct esi_keeper *keeper)
{
    return esi_session_next_wakeup_us(keeper->session);
}

struct model_effects *esi_keeper_effects(struct esi_keeper *keeper)
{
    return esi_session_effects(keeper->session);
}

enum esi_keeper_state esi_keeper_state(const struct esi_keeper *keeper)
{
    if (esi_session_state(keeper->session) == ESI_SESSION_CLOSED)
        return keeper->failure[0] != '\0' ? ESI_KEEPER_LOST : ESI_KEEPER_STOPPED;
    for (size_t i = 0; i < keeper->n_keys; i++)
        if (keeper->keys[i].state == KEY_WANTED)
            return ESI_KEEPER_LOCKING;
    return keeper->failure[0] != '\0' ? ESI_KEEPER_LOCKING : ESI_KEEPER_READY;
}

const char *esi_keeper_failure(const struct esi_keeper *keeper)
{
    return keeper->failure[0] == '\0' ? NULL : keeper->failure;
}
