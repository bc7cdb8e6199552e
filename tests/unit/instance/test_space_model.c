/*
 * Random work at a small instance against a plain table of values: whatever is evicted, moved and
 * read back, each key has the value that was written last, or after a new process the durable one.
 */
#include "instance/state.h"
#include "tests/support/property.h"
#include "tests/unit/instance/driver.h"

TestSuite(space_model, .fini = test_alloc_expect_none);

enum {
    N_KEYS = 9,
    N_ENTRIES = 7,
    VALUE_MAX = 35, /* four entries */
};

struct model_value {
    bool has_value;
    size_t size;
    char bytes[VALUE_MAX + 1];
};

struct world {
    struct driver *driver;
    struct model_value current[N_KEYS];
    struct model_value durable[N_KEYS];
    bool agrees;
};

static const char *const keys[N_KEYS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};

/* What memory says about itself. */
static bool memory_is_sound(const struct inst_core *core)
{
    uint64_t n_used = 0;
    uint64_t n_candidates = 0;

    rt_list_for_each (node, &core->rows.all) {
        const struct inst_row *row = RT_LIST_ENTRY(node, struct inst_row, link);

        if (row->run.n == 0)
            continue;
        n_used += row->run.n;
        if (core->owners[row->run.first] != row)
            return false;
        if (row->run.n == 1) {
            if (!inst_replacement_is_candidate(&core->replacement, row->run.first))
                return false;
            n_candidates++;
        }
    }
    return n_used == core->entries.total - core->entries.n_free &&
           n_candidates == core->replacement.n_candidates && core->n_held == 0 &&
           core->n_leaving == 0 && core->n_wanted == 0 && core->n_in_flight == 0;
}

static struct model_value draw(uint64_t step)
{
    struct model_value value = {.has_value = true, .size = step % (VALUE_MAX + 1)};

    for (size_t i = 0; i < value.size; i++)
        value.bytes[i] = (char)('a' + (step + i) % 26);
    return value;
}

static bool read_agrees(struct world *world, size_t key)
{
    const struct model_value *expected = &world->current[key];
    struct model_call *call = driver_data(world->driver, MODEL_CALL_READ, keys[key], NULL);
    bool agrees;

    (void)driver_submit(world->driver, call);
    driver_commit_all(world->driver);
    agrees = call->response.code == RT_OK && call->response.data.has_value == expected->has_value &&
             rt_bytes_equal(call->response.data.value,
                            rt_bytes_of(expected->bytes, expected->has_value ? expected->size : 0));
    driver_end(world->driver, call);
    return agrees;
}

/* Two writes at once, so that they meet on their way. */
static bool write(struct world *world, uint64_t step)
{
    struct model_call *calls[2];
    struct model_value values[2];
    size_t at[2];
    bool agrees = true;

    for (size_t i = 0; i < 2; i++, step /= 1024) {
        enum model_call_kind kind = step % 2 ? MODEL_CALL_SET : MODEL_CALL_PUT;

        at[i] = step / 2 % N_KEYS;
        values[i] = draw(step / 16);
        calls[i] = driver_data(world->driver, kind, keys[at[i]], values[i].bytes);
        (void)driver_submit(world->driver, calls[i]);
    }
    driver_commit_all(world->driver);
    for (size_t i = 0; i < 2; i++) {
        bool is_put = calls[i]->request.kind == MODEL_CALL_PUT;

        if (calls[i]->response.code == RT_OK)
            world->current[at[i]] = values[i];
        else
            agrees &= calls[i]->response.error.reason == MODEL_REASON_NO_ENTRIES;
        if (calls[i]->response.code == RT_OK && is_put)
            world->durable[at[i]] = values[i];
        driver_end(world->driver, calls[i]);
    }
    return agrees;
}

static void store_or_delete(struct world *world, uint64_t step)
{
    enum model_call_kind kind = step % 4 == 0 ? MODEL_CALL_DELETE : MODEL_CALL_STORE;
    size_t key = step / 4 % N_KEYS;

    driver_expect_ok(world->driver, driver_data(world->driver, kind, keys[key], NULL));
    if (kind == MODEL_CALL_DELETE)
        world->current[key].has_value = false;
    world->durable[key] = world->current[key];
}

static void restart(struct world *world)
{
    memcpy(world->current, world->durable, sizeof(world->current));
    world->driver->n_told = 0;
    for (size_t i = 0; i < N_KEYS; i++)
        driver_tell(world->driver, keys[i], DRIVER_EPOCH);
    driver_serve(world->driver);
    driver_commit_all(world->driver);
}

static bool step_agrees(struct world *world, uint64_t step)
{
    uint64_t kind = step % 16;

    step /= 16;
    if (kind == 0 && step % 4 == 0)
        restart(world);
    else if (kind < 4)
        store_or_delete(world, step);
    else if (kind < 9)
        return read_agrees(world, step % N_KEYS);
    else
        return write(world, step);
    return true;
}

static bool agrees(enum inst_policy policy, const uint64_t *steps, size_t n_steps)
{
    struct world *world = calloc(1, sizeof(*world));
    bool result = true;

    world->driver = driver_new();
    world->driver->config.entries_total = N_ENTRIES;
    world->driver->config.policy = policy;
    driver_serve(world->driver);
    for (size_t i = 0; i < N_KEYS; i++)
        driver_place(world->driver, keys[i]);
    for (size_t i = 0; i < n_steps && result; i++)
        result = step_agrees(world, steps[i]) && memory_is_sound(world->driver->core);
    for (size_t i = 0; i < N_KEYS && result; i++)
        result = read_agrees(world, i);
    driver_free(world->driver);
    free(world);
    return result;
}

static bool circ_agrees(const uint64_t *steps, size_t n_steps)
{
    return agrees(INST_POLICY_CIRC, steps, n_steps);
}

static bool lru_agrees(const uint64_t *steps, size_t n_steps)
{
    return agrees(INST_POLICY_LRU, steps, n_steps);
}

static bool bsu_agrees(const uint64_t *steps, size_t n_steps)
{
    return agrees(INST_POLICY_BSU, steps, n_steps);
}

static void expect_holds(test_property_fn property, uint64_t seed, size_t n_cases)
{
    const char *failed = test_property_fails(property, seed, n_cases);

    cr_assert_null(failed, "%s", failed);
}

Test(space_model, circ)
{
    expect_holds(circ_agrees, 11, 40);
}

Test(space_model, lru)
{
    expect_holds(lru_agrees, 12, 40);
}

Test(space_model, bsu)
{
    expect_holds(bsu_agrees, 13, 40);
}
