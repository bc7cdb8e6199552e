/*
 * The table of sessions and their records of finished statements.
 */
#include "coordinator/sessions.h"

#include "tests/support/check.h"

TestSuite(sessions, .fini = test_alloc_expect_none);

static const struct model_id id_a = {"aaaaaaaaaaaaaaa"};
static const struct model_id id_b = {"bbbbbbbbbbbbbbb"};
static const struct model_id client = {"ccccccccccccccc"};

Test(sessions, are_found_by_id_and_client_until_hidden)
{
    struct coord_sessions sessions = {0};
    struct coord_session_row row = {.client = client};
    struct coord_session *a = coord_sessions_add(&sessions, &id_a);

    coord_sessions_set_row(&sessions, a, &row);
    cr_assert_eq(coord_sessions_find(&sessions, &id_a), a);
    cr_assert_null(coord_sessions_find(&sessions, &id_b));
    cr_assert_eq(coord_sessions_find_client(&sessions, &client), a);
    coord_sessions_hide(&sessions, a);
    coord_sessions_hide(&sessions, a);
    cr_assert_null(coord_sessions_find_client(&sessions, &client));
    cr_assert_eq(coord_sessions_find(&sessions, &id_a), a);
    coord_sessions_deinit(&sessions);
}

Test(sessions, one_client_finds_its_first_session)
{
    struct coord_sessions sessions = {0};
    struct coord_session_row row = {.client = client};
    struct coord_session *a = coord_sessions_add(&sessions, &id_a);
    struct coord_session *b = coord_sessions_add(&sessions, &id_b);

    coord_sessions_set_row(&sessions, a, &row);
    coord_sessions_set_row(&sessions, b, &row);
    cr_assert_eq(coord_sessions_find_client(&sessions, &client), a);
    coord_sessions_hide(&sessions, b);
    cr_assert_eq(coord_sessions_find_client(&sessions, &client), a);
    coord_sessions_deinit(&sessions);
}

Test(sessions, live_while_something_refers_to_them)
{
    struct coord_sessions sessions = {0};
    struct coord_session *a = coord_sessions_add(&sessions, &id_a);
    struct rt_list link;

    rt_list_init(&link);
    a->state = COORD_SESSION_OPEN;
    coord_sessions_tidy(&sessions, a);
    cr_assert_eq(sessions.n_sessions, 1);
    a->state = COORD_SESSION_ENDED;
    rt_list_push_back(&a->held, &link);
    coord_sessions_tidy(&sessions, a);
    rt_list_remove(&link);
    rt_list_push_back(&a->waits, &link);
    coord_sessions_tidy(&sessions, a);
    rt_list_remove(&link);
    rt_list_push_back(&a->tasks, &link);
    coord_sessions_tidy(&sessions, a);
    rt_list_remove(&link);
    cr_assert_eq(sessions.n_sessions, 1);
    coord_sessions_tidy(&sessions, a);
    cr_assert_eq(sessions.n_sessions, 0);
    coord_sessions_deinit(&sessions);
}

Test(sessions, remember_what_was_done)
{
    struct coord_sessions sessions = {0};
    struct coord_session *a = coord_sessions_add(&sessions, &id_a);
    struct model_request_id request = {client, 0};
    struct coord_session_row row = {.client = client};

    for (uint64_t seq = 1; seq <= COORD_DONE_MAX + 1; seq++) {
        struct coord_done done = {.seq = seq, .epoch = seq * 10};

        coord_session_add_done(&row, &done, 0);
    }
    coord_sessions_set_row(&sessions, a, &row);
    cr_assert_null(coord_session_done(a, &request), "seq 0 is no id");
    request.seq = 1;
    cr_assert_null(coord_session_done(a, &request), "the oldest went");
    request.seq = 2;
    cr_assert_eq(coord_session_done(a, &request)->epoch, 20);
    request.client = id_b;
    cr_assert_null(coord_session_done(a, &request), "another client's number");
    coord_sessions_deinit(&sessions);
}

Test(sessions, forget_what_the_client_has_finished_with)
{
    struct coord_session_row row = {.client = client};
    struct coord_done done = {.seq = 5};

    coord_session_add_done(&row, &done, 0);
    done.seq = 6;
    coord_session_add_done(&row, &done, 6);
    cr_assert_eq(row.done[0].seq, 6);
    cr_assert_eq(row.done[1].seq, 0);
    coord_session_add_done(&row, &done, 0);
    cr_assert_eq(row.done[1].seq, 0, "not twice");
}

Test(sessions, first_attempts_are_kept)
{
    struct coord_session session = {0};
    struct coord_attempt attempt = {.seq = 1, .epoch = 10, .incarnation = 7};

    cr_assert_null(coord_session_attempt(&session, 1));
    cr_assert(coord_session_add_attempt(&session, &attempt));
    attempt.epoch = 20;
    cr_assert_not(coord_session_add_attempt(&session, &attempt));
    cr_assert_eq(coord_session_attempt(&session, 1)->epoch, 10);
    coord_session_drop_attempt(&session, 1);
    cr_assert_null(coord_session_attempt(&session, 1));
    attempt.seq = 0;
    cr_assert_not(coord_session_add_attempt(&session, &attempt), "no id, no memory");
    cr_assert_null(coord_session_attempt(&session, 0));
    for (uint64_t seq = 2; seq <= 2 + COORD_DONE_MAX; seq++) {
        attempt.seq = seq;
        cr_assert(coord_session_add_attempt(&session, &attempt));
    }
    cr_assert_null(coord_session_attempt(&session, 2), "the oldest went");
    cr_assert_not_null(coord_session_attempt(&session, 3));
}
