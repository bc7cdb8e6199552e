/*
 * Channels by address: shared, kept while in use, closed when idle for long and many.
 */
#include "runtime/host/peers.h"

#include <stdio.h>

#include "runtime/rpc/runtime_internal.h"
#include "tests/support/check.h"
#include "tests/support/fake_env.h"

TestSuite(peers, .fini = test_alloc_expect_none, .timeout = 50);

static struct test_env fake;
static struct rpc_runtime *runtime;
static struct host_peers *peers;

static void set_up(void)
{
    test_env_init(&fake, 1);
    runtime = rpc_runtime_new(NULL);
    peers = host_peers_new(runtime, &fake.env);
}

/* Closed channels go on the loop thread, which this is. */
static void let_channels_close(void)
{
    (void)uv_run(rpc_runtime_loop(runtime), UV_RUN_NOWAIT);
}

static unsigned n_channels(void)
{
    unsigned n = 0;

    let_channels_close();
    rpc_runtime_lock(runtime);
    rt_list_for_each (node, &runtime->channels)
        n++;
    rpc_runtime_unlock(runtime);
    return n;
}

static void tear_down(void)
{
    rpc_runtime_stop(runtime);
    rpc_runtime_run(runtime);
    peers = host_peers_free(peers);
    runtime = rpc_runtime_free(runtime);
}

static const char *address(unsigned number)
{
    static char text[64];

    (void)snprintf(text, sizeof(text), "127.0.0.1:%u", number);
    return text;
}

static void use(unsigned first, unsigned n)
{
    for (unsigned i = first; i < first + n; i++) {
        (void)host_peers_acquire(peers, address(i));
        host_peers_release(peers, address(i));
    }
}

Test(peers, one_channel_for_an_address)
{
    struct rpc_channel *channel;

    set_up();
    channel = host_peers_acquire(peers, address(1));
    cr_assert_str_eq(rpc_channel_address(channel), address(1));
    cr_assert_eq(host_peers_acquire(peers, address(1)), channel);
    cr_assert_neq(host_peers_acquire(peers, address(2)), channel);
    host_peers_release(peers, address(1));
    host_peers_release(peers, address(1));
    host_peers_release(peers, address(2));
    cr_assert_eq(host_peers_acquire(peers, address(1)), channel);
    host_peers_release(peers, address(1));
    cr_assert_eq(n_channels(), 2);
    tear_down();
}

Test(peers, few_are_kept_however_idle)
{
    set_up();
    use(1, HOST_PEERS_KEPT - 1);
    test_env_advance_us(&fake, 10 * (uint64_t)HOST_PEERS_IDLE_US);
    use(1000, 1);
    cr_assert_eq(n_channels(), HOST_PEERS_KEPT);
    tear_down();
}

Test(peers, many_are_kept_while_not_idle_for_long)
{
    set_up();
    use(1, HOST_PEERS_KEPT);
    test_env_advance_us(&fake, HOST_PEERS_IDLE_US - 1);
    use(1000, 1);
    cr_assert_eq(n_channels(), HOST_PEERS_KEPT + 1);
    tear_down();
}

Test(peers, of_many_the_idle_ones_are_closed)
{
    struct rpc_channel *used;

    set_up();
    use(1, HOST_PEERS_KEPT);
    used = host_peers_acquire(peers, address(5));
    test_env_advance_us(&fake, HOST_PEERS_IDLE_US);
    use(7, 1);
    use(1000, 1);
    cr_assert_eq(n_channels(), 3);
    cr_assert_eq(host_peers_acquire(peers, address(5)), used);
    host_peers_release(peers, address(5));
    host_peers_release(peers, address(5));
    tear_down();
}

/* It was acquired long ago and is idle only since now. */
Test(peers, the_end_of_a_long_call_counts)
{
    struct rpc_channel *used;

    set_up();
    used = host_peers_acquire(peers, address(1));
    use(2, HOST_PEERS_KEPT);
    test_env_advance_us(&fake, HOST_PEERS_IDLE_US);
    host_peers_release(peers, address(1));
    use(1000, 1);
    cr_assert_eq(n_channels(), 2);
    cr_assert_eq(host_peers_acquire(peers, address(1)), used);
    host_peers_release(peers, address(1));
    tear_down();
}

Test(peers, a_closed_one_is_made_again)
{
    set_up();
    use(1, HOST_PEERS_KEPT);
    test_env_advance_us(&fake, HOST_PEERS_IDLE_US);
    use(1000, 1);
    cr_assert_eq(n_channels(), 1);
    use(1, 1);
    cr_assert_eq(n_channels(), 2);
    tear_down();
}

Test(peers, none_is_fine)
{
    cr_assert_null(host_peers_free(NULL));
}
