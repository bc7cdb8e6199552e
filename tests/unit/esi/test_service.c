/*
 * The ESI service without sessions: calls go in, orders come out, and the test says what came of
 * them. Limits at the limit and one past it; the cases of the console by number.
 */
#include "esi-client/service.h"

#include "tests/support/check.h"
#include "tests/support/fake_env.h"

TestSuite(service, .fini = test_alloc_expect_none, .timeout = 60);

static struct test_env fake;
static struct esi_service *service;

static void begin_blocked(enum esi_policy policy, bool is_paused, const struct rt_bytes *keys,
                          size_t n_keys)
{
    const struct esi_service_config config = {
        .planner = {.policy = policy, .alpha = 0.5, .initial_estimate = 3},
        .is_paused = is_paused,
        .blocked = keys,
        .n_blocked = n_keys,
    };

    test_env_init(&fake, 1);
    service = esi_service_new(&config, &fake.env);
    esi_service_begin(service);
}

static void begin(enum esi_policy policy)
{
    begin_blocked(policy, false, NULL, 0);
}

static void finish(void)
{
    service = esi_service_free(service);
}

/* ---- calls ---- */

static struct model_call *send(struct model_call *call)
{
    esi_service_submit(service, call);
    return call;
}

static bool is_answered(const struct model_call *call)
{
    rt_list_for_each (node, &esi_service_effects(service)->replies)
        if (node == &call->link)
            return true;
    return false;
}

/* Takes the answer out; the call is the test's. */
static struct model_call *answered(struct model_call *call, enum model_reason reason)
{
    cr_assert(is_answered(call), "%s", model_call_kind_name(call->request.kind));
    rt_list_remove(&call->link);
    if (reason == MODEL_REASON_NONE)
        cr_assert_eq(call->response.code, RT_OK, "%s", call->response.error.message);
    else
        cr_assert_str_eq(
            call->response.code == RT_OK ? "OK" : model_reason_name(call->response.error.reason),
            model_reason_name(reason));
    return call;
}

static struct model_call *new_submit(struct rt_bytes script, uint64_t seq)
{
    struct model_call *call = model_call_new(MODEL_CALL_ESI_SUBMIT);

    call->request.esi_submit = (struct model_esi_submit_request){
        .name = "a.esi", .script = script, .request_id = {{{1}}, seq}};
    return call;
}

static uint64_t submit(const char *script)
{
    struct model_call *call =
        answered(send(new_submit(rt_bytes_of_string(script), 0)), MODEL_REASON_NONE);
    uint64_t id = call->response.esi.esi.id;

    (void)model_call_free(call);
    return id;
}

static void submit_refused(struct rt_bytes script, enum model_reason reason, const char *message)
{
    struct model_call *call = answered(send(new_submit(script, 0)), reason);

    cr_assert_str_eq(call->response.error.message, message);
    (void)model_call_free(call);
}

static struct model_call *new_call(enum model_call_kind kind, uint64_t id, const char *key)
{
    struct model_call *call = model_call_new(kind);

    call->request.esi = (struct model_esi_request){.id = id, .wait = true};
    if (key)
        call->request.esi.key = rt_bytes_of_string(key);
    return call;
}

static void ask(enum model_call_kind kind, uint64_t id, const char *key, enum model_reason reason)
{
    (void)model_call_free(answered(send(new_call(kind, id, key)), reason));
}

static void expect_state(uint64_t id, enum model_esi_state state)
{
    struct model_call *call = model_call_new(MODEL_CALL_ESI_STATUS);

    call->request.esi = (struct model_esi_request){.id = id};
    (void)answered(send(call), MODEL_REASON_NONE);
    cr_assert_str_eq(model_esi_state_name(call->response.esi.esi.state),
                     model_esi_state_name(state));
    (void)model_call_free(call);
}

/* ---- orders and notes ---- */

/* The next order must be this one. */
static void expect_order(enum esi_service_order_kind kind, uint64_t id)
{
    struct esi_service_order *order = esi_service_take_order(service);

    cr_assert_not_null(order, "no order %d for %llu", (int)kind, (unsigned long long)id);
    cr_assert_eq((int)order->kind, (int)kind);
    cr_assert_eq(order->id, id);
    (void)esi_service_order_free(order);
}

static void expect_no_order(void)
{
    struct esi_service_order *order = esi_service_take_order(service);

    cr_assert_null(order, "order %d for %u", order ? (int)order->kind : 0, order ? order->id : 0);
}

static void tell(uint64_t id, struct esi_service_note note, struct esi_result *result)
{
    struct rt_list results = RT_LIST_INIT(results);

    if (result)
        rt_list_push_back(&results, &result->link);
    note.is_open = true;
    note.results = &results;
    esi_service_take_note(service, (uint32_t)id, &note);
}

static void open(uint64_t id)
{
    expect_order(ESI_SERVICE_START, id);
    tell(id, (struct esi_service_note){0}, NULL);
}

static struct esi_result result_of(enum model_statement_kind kind, const char *key, uint32_t line,
                                   enum esi_outcome outcome)
{
    return (struct esi_result){
        .statement = {.kind = kind, .key = rt_bytes_of_string(key), .line = line},
        .outcome = outcome};
}

static void done(uint64_t id, enum model_statement_kind kind, const char *key, uint32_t line)
{
    struct esi_result result = result_of(kind, key, line, ESI_OUTCOME_OK);

    tell(id, (struct esi_service_note){0}, &result);
}

static void waiting(uint64_t id, const char *key, uint32_t line)
{
    struct esi_result result = result_of(MODEL_STATEMENT_GET, key, line, ESI_OUTCOME_WAITING);

    tell(id, (struct esi_service_note){0}, &result);
}

static void turn(uint64_t id)
{
    tell(id, (struct esi_service_note){.has_turn = true}, NULL);
}

static void end(uint64_t id, enum esi_script_state state)
{
    const struct esi_summary summary = {.state = state};

    tell(id, (struct esi_service_note){.is_last = true, .summary = &summary}, NULL);
}

/* ---- scripts ---- */

Test(service, c95_planning_begins_when_an_esi_connects)
{
    begin(ESI_POLICY_FIFO);
    cr_assert_eq(submit("GET k\nSTORE k\n"), 1);
    cr_assert_eq(submit("GET k\n"), 2);
    expect_state(1, MODEL_ESI_NEW);
    open(1);
    open(2);
    expect_order(ESI_SERVICE_GRANT, 1);
    expect_no_order();
    expect_state(1, MODEL_ESI_RUNNING);
    expect_state(2, MODEL_ESI_READY);
    done(1, MODEL_STATEMENT_GET, "k", 1);
    expect_order(ESI_SERVICE_GRANT, 1);
    done(1, MODEL_STATEMENT_STORE, "k", 2);
    expect_order(ESI_SERVICE_GRANT, 1);
    end(1, ESI_SCRIPT_OK);
    expect_state(1, MODEL_ESI_FINISHED);
    expect_order(ESI_SERVICE_GRANT, 2);
    finish();
}

Test(service, c95_not_while_it_is_paused)
{
    begin_blocked(ESI_POLICY_FIFO, true, NULL, 0);
    (void)submit("GET k\n");
    open(1);
    expect_no_order();
    ask(MODEL_CALL_ESI_RESUME, 0, NULL, MODEL_REASON_NONE);
    expect_order(ESI_SERVICE_GRANT, 1);
    ask(MODEL_CALL_ESI_PAUSE, 0, NULL, MODEL_REASON_NONE);
    done(1, MODEL_STATEMENT_GET, "k", 1);
    expect_no_order();
    finish();
}

Test(service, no_line_before_the_blocked_keys_are_locked)
{
    const struct esi_service_config config = {.planner = {.policy = ESI_POLICY_FIFO}};

    test_env_init(&fake, 1);
    service = esi_service_new(&config, &fake.env);
    (void)submit("GET k\n");
    open(1);
    expect_no_order();
    esi_service_begin(service);
    expect_order(ESI_SERVICE_GRANT, 1);
    finish();
}

Test(service, a_retried_submit_returns_the_same_esi)
{
    struct rt_bytes script = RT_BYTES_LITERAL("GET k\n");

    begin(ESI_POLICY_FIFO);
    for (uint64_t seq = 1; seq <= 2; seq++)
        for (int i = 0; i < 2; i++) {
            struct model_call *call = answered(send(new_submit(script, seq)), MODEL_REASON_NONE);

            cr_assert_eq(call->response.esi.esi.id, seq);
            (void)model_call_free(call);
        }
    cr_assert_eq(esi_service_n_live(service), 2);
    finish();
}

Test(service, a_script_with_errors)
{
    begin(ESI_POLICY_FIFO);
    submit_refused(RT_BYTES_LITERAL("GET k\nSET k\nPUSH\n"), MODEL_REASON_INVALID_FIELD,
                   "script:2:6: expected a blank and a value; 2 errors in all");
    submit_refused(RT_BYTES_LITERAL("# nothing\n"), MODEL_REASON_INVALID_FIELD,
                   "the script has no statement");
    expect_no_order();
    finish();
}

static struct rt_bytes repeat(char *memory, const char *line, size_t n)
{
    size_t size = strlen(line);

    for (size_t i = 0; i < n; i++)
        memcpy(memory + i * size, line, size);
    return rt_bytes_of(memory, n * size);
}

Test(service, statements_at_the_limit_and_past_it)
{
    static char text[(ESI_SERVICE_STATEMENTS_MAX + 1) * 6];

    begin(ESI_POLICY_FIFO);
    (void)model_call_free(
        answered(send(new_submit(repeat(text, "GET a\n", ESI_SERVICE_STATEMENTS_MAX), 0)),
                 MODEL_REASON_NONE));
    submit_refused(repeat(text, "GET a\n", ESI_SERVICE_STATEMENTS_MAX + 1),
                   MODEL_REASON_LIMIT_REACHED,
                   "the script has 100001 statements, valid are 1 to 100000");
    finish();
}

Test(service, text_at_the_limit_and_past_it)
{
    static char text[MODEL_ESI_SCRIPT_MAX];
    struct rt_bytes script = rt_bytes_of(text, sizeof(text));

    begin(ESI_POLICY_FIFO);
    memset(text, '#', sizeof(text));
    memcpy(text, "GET a\n", 6);
    for (uint64_t id = 1; id <= ESI_SERVICE_TEXT_MAX / MODEL_ESI_SCRIPT_MAX; id++) {
        (void)model_call_free(answered(send(new_submit(script, 0)), MODEL_REASON_NONE));
        open(id);
        if (id == 1)
            expect_order(ESI_SERVICE_GRANT, 1);
    }
    submit_refused(RT_BYTES_LITERAL("GET a\n"), MODEL_REASON_LIMIT_REACHED,
                   "the scripts that run have 16777216 of 16777216 bytes");
    end(1, ESI_SCRIPT_FAILED);
    cr_assert_eq(submit("GET a\n"), 17);
    finish();
}

Test(service, live_esis_at_the_limit_and_past_it)
{
    begin(ESI_POLICY_FIFO);
    for (int i = 0; i < ESI_PLANNER_LIVE_MAX; i++)
        (void)submit("GET a\n");
    submit_refused(RT_BYTES_LITERAL("GET a\n"), MODEL_REASON_LIMIT_REACHED,
                   "1000 ESIs are running");
    finish();
}

Test(service, only_so_many_that_have_ended_stay_known)
{
    begin(ESI_POLICY_FIFO);
    for (uint64_t id = 1; id <= ESI_SERVICE_FINISHED_MAX; id++) {
        (void)submit("GET a\n");
        expect_order(ESI_SERVICE_START, id);
        end(id, ESI_SCRIPT_SESSION_LOST);
        while (service && esi_service_n_live(service) == 0) {
            struct esi_service_order *order = esi_service_take_order(service);

            if (!order)
                break;
            (void)esi_service_order_free(order);
        }
    }
    ask(MODEL_CALL_ESI_STATUS, 1, NULL, MODEL_REASON_NONE);
    (void)submit("GET a\n");
    expect_order(ESI_SERVICE_START, ESI_SERVICE_FINISHED_MAX + 1);
    end(ESI_SERVICE_FINISHED_MAX + 1, ESI_SCRIPT_OK);
    ask(MODEL_CALL_ESI_STATUS, 1, NULL, MODEL_REASON_ESI_UNKNOWN);
    ask(MODEL_CALL_ESI_STATUS, 2, NULL, MODEL_REASON_NONE);
    finish();
}

/* ---- waiting for keys ---- */

/* ESI 1 holds k and waits between two lines, 2 waits for k; paused. */
static void block_2_on_k(void)
{
    begin(ESI_POLICY_FIFO);
    (void)submit("GET k\nGET other\nSTORE k\n");
    (void)submit("GET k\nSTORE k\n");
    open(1);
    open(2);
    expect_order(ESI_SERVICE_GRANT, 1);
    done(1, MODEL_STATEMENT_GET, "k", 1);
    expect_order(ESI_SERVICE_GRANT, 1);
    waiting(1, "other", 2); /* of a session that is none of ours */
    expect_order(ESI_SERVICE_GRANT, 2);
    waiting(2, "k", 1);
    expect_state(2, MODEL_ESI_BLOCKED);
    ask(MODEL_CALL_ESI_PAUSE, 0, NULL, MODEL_REASON_NONE);
    turn(1);
    expect_state(1, MODEL_ESI_READY);
    expect_no_order();
}

Test(service, a_turn_makes_ready_and_the_get_runs_again)
{
    block_2_on_k();
    ask(MODEL_CALL_ESI_RESUME, 0, NULL, MODEL_REASON_NONE);
    expect_order(ESI_SERVICE_GRANT, 1);
    done(1, MODEL_STATEMENT_GET, "other", 2);
    expect_order(ESI_SERVICE_GRANT, 1);
    done(1, MODEL_STATEMENT_STORE, "k", 3);
    expect_order(ESI_SERVICE_GRANT, 1);
    end(1, ESI_SCRIPT_OK);
    /* Its line is ordered already; it begins with the coordinator's word. */
    expect_no_order();
    expect_state(2, MODEL_ESI_RUNNING);
    turn(2);
    expect_order(ESI_SERVICE_GRANT, 2);
    finish();
}

Test(service, a_turn_that_does_not_come_gives_way)
{
    block_2_on_k();
    ask(MODEL_CALL_ESI_RESUME, 0, NULL, MODEL_REASON_NONE);
    expect_order(ESI_SERVICE_GRANT, 1);
    done(1, MODEL_STATEMENT_STORE, "k", 2);
    expect_order(ESI_SERVICE_GRANT, 1);
    end(1, ESI_SCRIPT_OK);
    expect_state(2, MODEL_ESI_RUNNING);
    (void)submit("GET free\n");
    open(3);
    expect_no_order();
    test_env_advance_us(&fake, ESI_SERVICE_TURN_US - 1);
    esi_service_tick(service);
    expect_no_order();
    cr_assert_eq(esi_service_next_wakeup_us(service), rt_env_now_us(&fake.env) + 1);
    test_env_advance_us(&fake, 1);
    esi_service_tick(service);
    expect_state(2, MODEL_ESI_BLOCKED);
    expect_order(ESI_SERVICE_GRANT, 3);
    cr_assert_eq(esi_service_next_wakeup_us(service), RT_NEVER);
    finish();
}

/* ---- the console ---- */

Test(service, c76_block_gives_a_free_key_to_the_esi)
{
    struct model_call *block = new_call(MODEL_CALL_ESI_BLOCK, 1, "free");
    struct esi_service_order *order;

    begin_blocked(ESI_POLICY_FIFO, true, NULL, 0);
    (void)submit("GET k\n");
    open(1);
    (void)send(block);
    cr_assert_not(is_answered(block));
    order = esi_service_take_order(service);
    cr_assert_not_null(order);
    cr_assert_eq((int)order->kind, (int)ESI_SERVICE_LOCK);
    cr_assert(rt_bytes_equal(rt_bytes_of(order->key, order->key_size), RT_BYTES_LITERAL("free")));
    (void)esi_service_order_free(order);
    done(1, MODEL_STATEMENT_GET, "free", 0);
    (void)answered(block, MODEL_REASON_NONE);
    cr_assert_eq(block->response.esi.esi.state, MODEL_ESI_READY);
    cr_assert_eq(block->response.esi.esi.n_ok, 0);
    (void)model_call_free(block);
    finish();
}

Test(service, a_lock_that_a_block_cannot_get_is_its_failure)
{
    struct esi_result result = result_of(MODEL_STATEMENT_GET, "free", 0, ESI_OUTCOME_FAILED);
    struct model_call *block = new_call(MODEL_CALL_ESI_BLOCK, 1, "free");

    begin_blocked(ESI_POLICY_FIFO, true, NULL, 0);
    (void)submit("GET k\n");
    open(1);
    (void)send(block);
    expect_order(ESI_SERVICE_LOCK, 1);
    ask(MODEL_CALL_ESI_RESUME, 0, NULL, MODEL_REASON_NONE);
    expect_no_order(); /* its session is busy */
    result.code = RT_INVALID_ARGUMENT;
    result.error.reason = MODEL_REASON_KEY_TOO_LONG;
    tell(1, (struct esi_service_note){0}, &result);
    (void)model_call_free(answered(block, MODEL_REASON_KEY_TOO_LONG));
    expect_order(ESI_SERVICE_GRANT, 1);
    finish();
}

Test(service, c77_block_on_a_held_key_queues)
{
    struct model_call *list = model_call_new(MODEL_CALL_ESI_LIST);

    block_2_on_k();
    (void)submit("GET x\n");
    open(3);
    ask(MODEL_CALL_ESI_BLOCK, 3, "k", MODEL_REASON_NONE);
    expect_state(3, MODEL_ESI_BLOCKED);
    expect_no_order();
    list->request.esi_list = (struct model_esi_list_request){.waits_for = RT_BYTES_LITERAL("k")};
    (void)answered(send(list), MODEL_REASON_NONE);
    cr_assert_eq(list->response.esi_list.n_esis, 2);
    cr_assert_eq(list->response.esi_list.esis[0].id, 2);
    cr_assert_eq(list->response.esi_list.esis[1].id, 3);
    cr_assert(rt_bytes_equal(list->response.esi_list.esis[1].waits_for, RT_BYTES_LITERAL("k")));
    (void)model_call_free(list);
    finish();
}

/* Under `locking = none` anybody writes. */
Test(service, a_put_frees_no_lock_of_another)
{
    begin(ESI_POLICY_PARALLEL);
    for (uint64_t id = 1; id <= 3; id++) {
        (void)submit("GET k\nGET x\nGET y\n");
        open(id);
        expect_order(ESI_SERVICE_GRANT, id);
    }
    ask(MODEL_CALL_ESI_PAUSE, 0, NULL, MODEL_REASON_NONE);
    done(1, MODEL_STATEMENT_GET, "k", 1);
    done(2, MODEL_STATEMENT_PUT, "k", 1);
    done(3, MODEL_STATEMENT_GET, "x", 1);
    ask(MODEL_CALL_ESI_BLOCK, 3, "k", MODEL_REASON_NONE);
    expect_state(3, MODEL_ESI_BLOCKED);
    expect_no_order();
    ask(MODEL_CALL_ESI_RESUME, 0, NULL, MODEL_REASON_NONE);
    expect_order(ESI_SERVICE_GRANT, 1);
    expect_order(ESI_SERVICE_GRANT, 2);
    done(1, MODEL_STATEMENT_PUT, "k", 2);
    expect_state(3, MODEL_ESI_RUNNING);
    finish();
}

Test(service, c77_block_of_a_running_esi_takes_effect_after_its_line)
{
    struct model_call *block = new_call(MODEL_CALL_ESI_BLOCK, 1, "k");
    const struct rt_bytes key = RT_BYTES_LITERAL("k");

    begin_blocked(ESI_POLICY_FIFO, false, &key, 1);
    (void)submit("GET x\nSTORE x\n");
    open(1);
    expect_order(ESI_SERVICE_GRANT, 1);
    (void)send(block);
    cr_assert_not(is_answered(block));
    expect_state(1, MODEL_ESI_RUNNING);
    done(1, MODEL_STATEMENT_GET, "x", 1);
    (void)answered(block, MODEL_REASON_NONE);
    cr_assert_eq(block->response.esi.esi.state, MODEL_ESI_BLOCKED);
    expect_no_order();
    (void)model_call_free(block);
    /* Made ready, it goes on behind its line. */
    ask(MODEL_CALL_ESI_UNBLOCK, 0, "k", MODEL_REASON_NONE);
    expect_order(ESI_SERVICE_GRANT, 1);
    finish();
}

Test(service, c78_block_of_an_esi_that_cannot_be_blocked)
{
    block_2_on_k();
    ask(MODEL_CALL_ESI_BLOCK, 9, "x", MODEL_REASON_ESI_UNKNOWN);
    ask(MODEL_CALL_ESI_BLOCK, UINT64_C(4294967297), "x", MODEL_REASON_ESI_UNKNOWN);
    ask(MODEL_CALL_ESI_BLOCK, 2, "x", MODEL_REASON_ESI_STATE); /* blocked */
    ask(MODEL_CALL_ESI_BLOCK, 1, "x", MODEL_REASON_ESI_STATE); /* its GET is to run again */
    expect_state(2, MODEL_ESI_BLOCKED);
    end(1, ESI_SCRIPT_FAILED);
    ask(MODEL_CALL_ESI_BLOCK, 1, "x", MODEL_REASON_ESI_STATE); /* finished */
    expect_no_order();
    finish();
}

Test(service, c79_unblock_makes_the_first_waiter_ready_and_the_key_stays_held)
{
    struct model_call *unblock = new_call(MODEL_CALL_ESI_UNBLOCK, 0, "k");

    block_2_on_k();
    (void)answered(send(unblock), MODEL_REASON_NONE);
    cr_assert_eq(unblock->response.esi_unblock.woken, 2);
    cr_assert_eq(unblock->response.esi_unblock.n_waiting, 0);
    (void)model_call_free(unblock);
    expect_state(2, MODEL_ESI_READY);
    /* 1 runs into another key; then 2 has its line, and waits for k again. */
    ask(MODEL_CALL_ESI_RESUME, 0, NULL, MODEL_REASON_NONE);
    expect_order(ESI_SERVICE_GRANT, 1);
    waiting(1, "other", 2);
    expect_state(2, MODEL_ESI_BLOCKED);
    expect_no_order();
    finish();
}

Test(service, unblock_without_waiters_frees_a_key_that_was_blocked_at_start)
{
    const struct rt_bytes keys[] = {RT_BYTES_LITERAL("k"), RT_BYTES_LITERAL("l")};
    struct model_call *unblock = new_call(MODEL_CALL_ESI_UNBLOCK, 0, "l");

    begin_blocked(ESI_POLICY_FIFO, false, keys, 2);
    (void)answered(send(unblock), MODEL_REASON_NONE);
    cr_assert_eq(unblock->response.esi_unblock.woken, 0);
    (void)model_call_free(unblock);
    expect_order(ESI_SERVICE_UNLOCK, 0);
    ask(MODEL_CALL_ESI_UNBLOCK, 0, "l", MODEL_REASON_KEY_NOT_IDENTIFIED);
    expect_no_order();
    finish();
}

Test(service, c81_unblock_of_an_unknown_key)
{
    block_2_on_k();
    ask(MODEL_CALL_ESI_UNBLOCK, 0, "nobody", MODEL_REASON_KEY_NOT_IDENTIFIED);
    expect_state(2, MODEL_ESI_BLOCKED);
    expect_no_order();
    finish();
}

Test(service, c82_kill_of_a_running_esi_waits_for_its_line)
{
    struct model_call *kill = new_call(MODEL_CALL_ESI_KILL, 1, NULL);
    struct model_call *wait = new_call(MODEL_CALL_ESI_STATUS, 1, NULL);

    block_2_on_k();
    ask(MODEL_CALL_ESI_RESUME, 0, NULL, MODEL_REASON_NONE);
    expect_order(ESI_SERVICE_GRANT, 1);
    (void)send(kill);
    (void)send(wait);
    expect_no_order();
    expect_state(1, MODEL_ESI_ENDING);
    done(1, MODEL_STATEMENT_GET, "other", 2);
    expect_order(ESI_SERVICE_STOP, 1);
    expect_no_order();
    cr_assert_not(is_answered(kill));
    end(1, ESI_SCRIPT_ABORTED);
    (void)answered(kill, MODEL_REASON_NONE);
    cr_assert_eq(kill->response.esi.esi.end, MODEL_ESI_END_KILLED);
    (void)answered(wait, MODEL_REASON_NONE);
    /* The first that waits for its key is ready: its line waits for the coordinator's word alone.
     */
    expect_state(2, MODEL_ESI_RUNNING);
    turn(2);
    expect_order(ESI_SERVICE_GRANT, 2);
    (void)model_call_free(kill);
    (void)model_call_free(wait);
    ask(MODEL_CALL_ESI_KILL, 1, NULL, MODEL_REASON_ESI_STATE);
    ask(MODEL_CALL_ESI_KILL, 9, NULL, MODEL_REASON_ESI_UNKNOWN);
    finish();
}

Test(service, kill_of_a_blocked_esi_is_at_once)
{
    struct model_call *kill = new_call(MODEL_CALL_ESI_KILL, 2, NULL);

    block_2_on_k();
    (void)send(kill);
    expect_order(ESI_SERVICE_STOP, 2);
    end(2, ESI_SCRIPT_ABORTED);
    (void)model_call_free(answered(kill, MODEL_REASON_NONE));
    finish();
}

Test(service, c86_deadlock_has_exactly_those_in_circles)
{
    struct model_call *deadlock = model_call_new(MODEL_CALL_ESI_DEADLOCK);

    begin(ESI_POLICY_FIFO);
    for (uint64_t id = 1; id <= 3; id++)
        (void)submit("GET a\nGET b\n");
    for (uint64_t id = 1; id <= 3; id++)
        open(id);
    expect_order(ESI_SERVICE_GRANT, 1);
    done(1, MODEL_STATEMENT_GET, "a", 1);
    expect_order(ESI_SERVICE_GRANT, 1);
    waiting(1, "b", 2); /* that 2 is to get: the coordinator's order, not the planner's */
    expect_order(ESI_SERVICE_GRANT, 2);
    done(2, MODEL_STATEMENT_GET, "b", 1);
    expect_order(ESI_SERVICE_GRANT, 2);
    waiting(2, "a", 2);
    expect_order(ESI_SERVICE_GRANT, 3);
    waiting(3, "a", 1);
    (void)answered(send(deadlock), MODEL_REASON_NONE);
    cr_assert_eq(deadlock->response.esi_list.n_esis, 2);
    cr_assert_eq(deadlock->response.esi_list.esis[0].id, 1);
    cr_assert_eq(deadlock->response.esi_list.esis[1].id, 2);
    (void)model_call_free(deadlock);
    finish();
}

Test(service, list_page_by_page)
{
    uint64_t expected = 1;

    begin(ESI_POLICY_SJF_SD);
    for (int i = 0; i < 5; i++)
        (void)submit("GET a\n");
    for (uint64_t after = 0; after < 5;) {
        struct model_call *list = model_call_new(MODEL_CALL_ESI_LIST);

        list->request.esi_list = (struct model_esi_list_request){.after = after, .page_size = 2};
        (void)answered(send(list), MODEL_REASON_NONE);
        for (size_t i = 0; i < list->response.esi_list.n_esis; i++)
            cr_assert_eq(list->response.esi_list.esis[i].id, expected++);
        cr_assert_eq(list->response.esi_list.more, expected <= 5);
        cr_assert_str_eq(list->response.esi_list.planner, "sjf-sd");
        cr_assert_eq(list->response.esi_list.esis[0].estimate_milli, 3000);
        after = expected - 1;
        (void)model_call_free(list);
    }
    finish();
}

/* One page of those that wait for k, one a page: its number, or 0. */
static uint64_t next_waiter(uint64_t after, bool more)
{
    struct model_call *list = model_call_new(MODEL_CALL_ESI_LIST);
    const struct model_esi_list_response *listed = &list->response.esi_list;
    uint64_t id;

    list->request.esi_list = (struct model_esi_list_request){
        .waits_for = RT_BYTES_LITERAL("k"), .after = after, .page_size = 1};
    (void)answered(send(list), MODEL_REASON_NONE);
    cr_assert_leq(listed->n_esis, 1);
    cr_assert_eq(listed->more, more);
    id = listed->n_esis > 0 ? listed->esis[0].id : 0;
    (void)model_call_free(list);
    return id;
}

Test(service, waiters_page_by_page)
{
    block_2_on_k();
    (void)submit("GET x\n");
    open(3);
    ask(MODEL_CALL_ESI_BLOCK, 3, "k", MODEL_REASON_NONE);
    cr_assert_eq(next_waiter(0, true), 2);
    cr_assert_eq(next_waiter(2, false), 3);
    cr_assert_eq(next_waiter(3, false), 0);
    cr_assert_eq(next_waiter(1, true), 2, "who waits no more begins anew");
    finish();
}

/* ---- ends ---- */

Test(service, callers_that_go_away)
{
    struct model_call *wait = new_call(MODEL_CALL_ESI_STATUS, 1, NULL);
    struct model_call *block = new_call(MODEL_CALL_ESI_BLOCK, 1, "x");

    begin(ESI_POLICY_FIFO);
    (void)submit("GET k\nSTORE k\n");
    open(1);
    expect_order(ESI_SERVICE_GRANT, 1);
    (void)send(wait);
    (void)send(block);
    esi_service_cancel(service, wait);
    esi_service_cancel(service, block);
    (void)model_call_free(answered(wait, MODEL_REASON_CANCELLED));
    (void)model_call_free(answered(block, MODEL_REASON_CANCELLED));
    done(1, MODEL_STATEMENT_GET, "k", 1);
    expect_order(ESI_SERVICE_GRANT, 1);
    end(1, ESI_SCRIPT_OK);
    expect_no_order();
    finish();
}

Test(service, drain_stops_all_and_takes_no_more)
{
    struct model_call *block = new_call(MODEL_CALL_ESI_BLOCK, 1, "x");

    begin(ESI_POLICY_FIFO);
    (void)submit("GET k\nSTORE k\n");
    (void)submit("GET k\n");
    open(1);
    open(2);
    expect_order(ESI_SERVICE_GRANT, 1);
    (void)send(block);
    esi_service_drain(service);
    expect_order(ESI_SERVICE_STOP, 1);
    expect_order(ESI_SERVICE_STOP, 2);
    submit_refused(RT_BYTES_LITERAL("GET a\n"), MODEL_REASON_DRAINING,
                   "the service is shutting down");
    end(2, ESI_SCRIPT_ABORTED);
    cr_assert_not(esi_service_is_drained(service));
    end(1, ESI_SCRIPT_ABORTED);
    cr_assert(esi_service_is_drained(service));
    (void)model_call_free(answered(block, MODEL_REASON_ESI_STATE));
    finish();
}

Test(service, calls_of_other_services)
{
    begin(ESI_POLICY_FIFO);
    ask(MODEL_CALL_KEY_STATUS, 0, NULL, MODEL_REASON_INVALID_FIELD);
    finish();
}
