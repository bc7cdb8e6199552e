/*
 * Membership: the table of moves, the lease counted from sending, renewing that never stops.
 */
#include "instance/membership.h"

#include <signal.h>

#include "tests/support/check.h"
#include "tests/support/fake_env.h"

TestSuite(membership, .fini = test_alloc_expect_none);

static struct model_lease lease_of(uint64_t ms)
{
    struct model_lease lease;

    cr_assert_eq(model_lease_init(&lease, ms, NULL), RT_OK);
    return lease;
}

static void walk(struct inst_membership *membership, enum inst_membership_state to)
{
    inst_membership_init(membership);
    membership->lease = lease_of(3000);
    for (int state = INST_MEMBERSHIP_REGISTERING; state <= (int)to; state++)
        inst_membership_move(membership, (enum inst_membership_state)state, 1000);
    membership->incarnation = 5;
}

Test(membership, dead_goes_back_to_registering_from_anywhere_between)
{
    static const enum inst_membership_state from[] = {
        INST_MEMBERSHIP_RECORDING, INST_MEMBERSHIP_RECONCILING, INST_MEMBERSHIP_LEASING,
        INST_MEMBERSHIP_SERVING};

    for (size_t i = 0; i < RT_ARRAY_SIZE(from); i++) {
        struct inst_membership membership;

        walk(&membership, from[i]);
        membership.fence_at_us = 5000;
        inst_membership_move(&membership, INST_MEMBERSHIP_REGISTERING, 2000);
        cr_assert_eq(membership.incarnation, 0);
        cr_assert(inst_membership_is_fenced(&membership, 1));
        cr_assert_eq(inst_membership_next_wakeup_us(&membership), RT_NEVER);
    }
}

Test(membership, nothing_leads_out_of_stopped, .signal = SIGABRT)
{
    struct inst_membership membership;

    walk(&membership, INST_MEMBERSHIP_STOPPED);
    inst_membership_move(&membership, INST_MEMBERSHIP_REGISTERING, 2000);
}

Test(membership, a_state_cannot_be_skipped, .signal = SIGABRT)
{
    struct inst_membership membership;

    walk(&membership, INST_MEMBERSHIP_RECORDING);
    inst_membership_move(&membership, INST_MEMBERSHIP_SERVING, 2000);
}

Test(membership, fence_is_counted_from_sending_and_never_goes_back)
{
    struct inst_membership membership;
    struct model_lease lease = lease_of(3000);

    walk(&membership, INST_MEMBERSHIP_SERVING);
    inst_membership_renew_granted(&membership, &lease, 10000);
    cr_assert_eq(membership.fence_at_us, 10000 + 2500000);
    inst_membership_renew_granted(&membership, &lease, 9000);
    cr_assert_eq(membership.fence_at_us, 10000 + 2500000, "a late answer can only shorten");
    cr_assert_not(inst_membership_is_fenced(&membership, 10000 + 2500000 - 1));
    cr_assert(inst_membership_is_fenced(&membership, 10000 + 2500000));
}

Test(membership, no_renew_without_its_heartbeat)
{
    struct inst_membership membership;
    uint64_t number;

    walk(&membership, INST_MEMBERSHIP_LEASING);
    cr_assert_not(inst_membership_take_heartbeat(&membership, &number));
    cr_assert_eq(inst_membership_next_wakeup_us(&membership), 1000);
    inst_membership_tick(&membership, 1000);
    cr_assert(inst_membership_take_heartbeat(&membership, &number));
    cr_assert_not(inst_membership_take_heartbeat(&membership, &number));
    inst_membership_tick(&membership, 9000000);
    cr_assert_not(inst_membership_take_heartbeat(&membership, &number), "one at a time");
    cr_assert_not(inst_membership_heartbeat_done(&membership, number + 1, true, 9000000));
    cr_assert(inst_membership_heartbeat_done(&membership, number, true, 9000000));
    inst_membership_renew_sent(&membership, 9000000);
    cr_assert_eq(inst_membership_next_wakeup_us(&membership), 10000000);
}

Test(membership, failed_heartbeat_is_tried_again_after_a_third)
{
    struct inst_membership membership;
    uint64_t number;

    walk(&membership, INST_MEMBERSHIP_SERVING);
    membership.renew_at_us = 1000;
    inst_membership_tick(&membership, 1000);
    cr_assert(inst_membership_take_heartbeat(&membership, &number));
    cr_assert_not(inst_membership_heartbeat_done(&membership, number, false, 2000));
    cr_assert_eq(inst_membership_next_wakeup_us(&membership), 2000 + 1000000);
}

Test(membership, e7_failed_renew_is_followed_by_another)
{
    struct inst_membership membership;

    walk(&membership, INST_MEMBERSHIP_SERVING);
    inst_membership_renew_sent(&membership, 5000000);
    inst_membership_renew_failed(&membership, 5200000);
    cr_assert_eq(membership.renew_at_us, 5300000);
    inst_membership_renew_soon(&membership, 5000000);
    cr_assert_eq(membership.renew_at_us, 5100000, "not within 100 ms of the last");
}

Test(membership, retries_back_off_to_two_seconds)
{
    struct inst_membership membership;
    struct test_env env;
    uint64_t longest = 100000;

    test_env_init(&env, 3);
    inst_membership_init(&membership);
    for (int i = 0; i < 10; i++) {
        uint64_t delay;

        inst_membership_retry_later(&membership, &env.env);
        delay = membership.retry_at_us - env.now_us;
        cr_assert_geq(delay, longest / 2);
        cr_assert_leq(delay, longest);
        longest = longest * 2 < 2000000 ? longest * 2 : 2000000;
    }
    inst_membership_succeeded(&membership);
    cr_assert_eq(membership.retry_at_us, RT_NEVER);
    inst_membership_retry_later(&membership, &env.env);
    cr_assert_leq(membership.retry_at_us - env.now_us, 100000);
}
