/*
 * The mirror of an LMDB store at its start: see lmdb.h and files.h. Invariant: when this succeeds
 * every row that has a file has one that holds what the row says. A damaged row's file is left as
 * it is: it may be the last good copy. The thread that opens the store.
 */
#include "runtime/store/lmdb_internal.h"

struct walk {
    struct store_files *files;
    struct rt_bytes wanted;
    bool is_found;
    struct rt_error *err;
    enum rt_code code;
};

static bool on_wanted(struct rt_bytes row, struct rt_bytes value, void *ctx)
{
    struct walk *walk = ctx;

    (void)value;
    walk->is_found = rt_bytes_equal(row, walk->wanted);
    return false;
}

/* Rows that begin with it follow it, so that the first one decides. */
static enum rt_code has_row(void *ctx, struct rt_bytes row, bool *ret_has, struct rt_error *err)
{
    struct walk walk = {.wanted = row};
    enum rt_code code = store_lmdb_env_range(ctx, row, on_wanted, on_wanted, &walk, err);

    if (code == RT_OK)
        *ret_has = walk.is_found;
    return code;
}

static bool on_row(struct rt_bytes row, struct rt_bytes value, void *ctx)
{
    struct walk *walk = ctx;

    walk->code = store_files_put_right(walk->files, row, value, walk->err);
    return walk->code == RT_OK;
}

enum rt_code store_lmdb_files_open(struct store_lmdb_env *env,
                                   const struct store_files_options *options, struct rt_error *err)
{
    struct walk walk = {.err = err};
    enum rt_code code = store_files_open(options, &env->files, err);

    if (code == RT_OK)
        code = store_files_clean_up(env->files, has_row, env, err);
    walk.files = env->files;
    if (code == RT_OK)
        code = store_lmdb_env_range(env, (struct rt_bytes){0}, on_row, NULL, &walk, err);
    if (code == RT_OK)
        code = walk.code;
    if (code == RT_OK)
        code = store_files_sync(env->files, err);
    return code;
}
