/*
 * What clients do not read, for all calls of a server together: at the limit, one byte past it, and
 * who goes first.
 */
#include <unistd.h>

#include "tests/support/check.h"
#include "tests/unit/rpc/raw_peer.h"
#include "tests/unit/rpc/rig.h"

TestSuite(backlog, .fini = test_alloc_expect_none, .timeout = 50);

enum {
    ANSWER_SIZE = 16000,
};

static struct rig rig;

static size_t answer_bytes(void)
{
    static uint8_t data[ANSWER_SIZE];
    Rpctest__V1__Item item;

    item_init(&item, 1, data, ANSWER_SIZE);
    return protobuf_c_message_get_packed_size(&item.base);
}

/* A client that asks for one answer and takes no byte of it. Returns when the answer waits; what
 * that led to has happened then. */
static int ask(void)
{
    unsigned n_opened = latch_count(&rig.echo.opened);
    int fd = raw_peer_connect(rig.address);
    struct answer answer;

    raw_peer_greet_shut(fd);
    raw_peer_expand(fd, 1, ANSWER_SIZE);
    latch_wait(&rig.echo.opened, n_opened + 1);
    cr_assert_eq(rig_command(&rig, ECHO_LATER, "", &answer), RT_OK);
    return fd;
}

static void begin(size_t limit)
{
    struct rpc_server_options options = {.backlog_bytes = (uint32_t)limit};

    rig_init(&rig, &options);
}

Test(backlog, at_the_limit_all_answers_wait)
{
    int fds[2];

    begin(2 * answer_bytes());
    for (int i = 0; i < 2; i++)
        fds[i] = ask();
    cr_assert_eq(latch_count(&rig.failures), 0);
    (void)close(fds[0]);
    latch_wait(&rig.failures, 1);
    cr_assert_eq(rig.last_failure.code, RT_CANCELLED);
    fds[0] = ask(); /* what has ended counts no more */
    cr_assert_eq(latch_count(&rig.failures), 1);
    for (int i = 0; i < 2; i++)
        (void)close(fds[i]);
    rig_deinit(&rig);
}

Test(backlog, one_byte_past_it_the_one_that_waits_longest_ends)
{
    int fds[2];

    begin(2 * answer_bytes() - 1);
    for (int i = 0; i < 2; i++)
        fds[i] = ask();
    latch_wait(&rig.failures, 1);
    cr_assert_eq(rig.last_failure.code, RT_RESOURCE_EXHAUSTED);
    (void)close(fds[1]); /* whose call still waits */
    latch_wait(&rig.failures, 2);
    cr_assert_eq(rig.last_failure.code, RT_CANCELLED);
    (void)close(fds[0]);
    rig_deinit(&rig);
}

/* One more message to a client that takes no byte of the answers; returns as ask() does. */
static void say(int fd)
{
    unsigned n_messages = latch_count(&rig.echo.messages);
    struct answer answer;

    raw_peer_say(fd, ANSWER_SIZE);
    latch_wait(&rig.echo.messages, n_messages + 1);
    cr_assert_eq(rig_command(&rig, ECHO_LATER, "", &answer), RT_OK);
}

Test(backlog, who_only_asks_for_more_still_waits_longest)
{
    int chat;
    int other;

    begin(3 * answer_bytes() - 1);
    chat = raw_peer_connect(rig.address);
    raw_peer_greet_shut(chat);
    raw_peer_open_chat(chat);
    say(chat);
    other = ask();
    cr_assert_eq(latch_count(&rig.failures), 0);
    say(chat);
    latch_wait(&rig.failures, 1);
    cr_assert_eq(rig.last_failure.code, RT_RESOURCE_EXHAUSTED);
    cr_assert_str_eq(rig.last_failure.method, "/rpctest.v1.EchoService/Chat");
    (void)close(other);
    (void)close(chat);
    rig_deinit(&rig);
}

Test(backlog, small_answers_are_not_counted)
{
    struct answer answer;
    int fd;

    begin(1);
    fd = raw_peer_connect(rig.address);
    raw_peer_greet_shut(fd);
    raw_peer_expand(fd, 1, RPC_BACKLOG_FREE_BYTES - 64);
    latch_wait(&rig.echo.opened, 1);
    cr_assert_eq(rig_command(&rig, ECHO_LATER, "", &answer), RT_OK);
    cr_assert_eq(latch_count(&rig.failures), 0);
    (void)close(fd);
    latch_wait(&rig.failures, 1);
    cr_assert_eq(rig.last_failure.code, RT_CANCELLED);
    rig_deinit(&rig);
}

/* Answers that still wait when everything ends. */
Test(backlog, goes_with_its_server)
{
    int fd;

    begin(0);
    fd = ask();
    rig_deinit(&rig);
    (void)close(fd);
}
