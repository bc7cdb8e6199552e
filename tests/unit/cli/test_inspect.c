/*
 * Answers as text and JSON: every member, "none", bytes that are no text.
 */
#include "cli/inspect.h"

#include "tests/support/check.h"

TestSuite(inspect, .fini = test_alloc_expect_none);

static void expect(struct rt_buffer *buffer, const char *expected)
{
    cr_assert_str_eq(rt_buffer_string(buffer), expected);
    rt_buffer_deinit(buffer);
}

static struct model_key_status_response placed_status(void)
{
    static struct rt_bytes waiters[] = {RT_BYTES_LITERAL("w1"), RT_BYTES_LITERAL("w2")};

    return (struct model_key_status_response){
        .known = true,
        .has_value = true,
        .value = RT_BYTES_LITERAL("v\n"),
        .version = {7, 5, 2},
        .stored = true,
        .owner = "instance-1",
        .owner_state = MODEL_MEMBER_ALIVE,
        .epoch = 7,
        .holder = "me",
        .waiters = waiters,
        .n_waiters = 2,
    };
}

Test(inspect, status_of_a_placed_key)
{
    struct model_key_status_response status = placed_status();
    struct rt_buffer buffer = {0};

    cli_inspect_append_status(RT_BYTES_LITERAL("a"), &status, CLI_OUTPUT_TEXT, &buffer);
    expect(&buffer, "key          a\n"
                    "value        v\\x0a\n"
                    "owner        instance-1, alive, epoch 7\n"
                    "locked by    me\n"
                    "waiting      w1, w2\n");
    cli_inspect_append_status(RT_BYTES_LITERAL("a"), &status, CLI_OUTPUT_JSON, &buffer);
    expect(&buffer, "{\"key\":\"a\",\"known\":true,\"value\":\"v\\n\",\"stored\":true,"
                    "\"version\":{\"epoch\":7,\"incarnation\":5,\"seq\":2},"
                    "\"owner\":\"instance-1\",\"owner_state\":\"alive\",\"epoch\":7,"
                    "\"would_place\":null,\"holder\":\"me\",\"waiters\":[\"w1\",\"w2\"],"
                    "\"value_unavailable\":false}\n");
}

Test(inspect, status_of_an_unknown_key)
{
    struct model_key_status_response status = {.would_place = "instance-2"};
    struct rt_buffer buffer = {0};

    cli_inspect_append_status(RT_BYTES_LITERAL("\xff"), &status, CLI_OUTPUT_TEXT, &buffer);
    expect(&buffer, "key          \\xff  (unknown)\n"
                    "value        (none)\n"
                    "owner        (none)\n"
                    "would go to  instance-2\n"
                    "locked by    (nobody)\n"
                    "waiting      (nobody)\n");
    cli_inspect_append_status(RT_BYTES_LITERAL("\xff"), &status, CLI_OUTPUT_JSON, &buffer);
    expect(&buffer,
           "{\"key\":{\"base64\":\"/w==\"},\"known\":false,\"value\":null,\"stored\":false,"
           "\"version\":null,\"owner\":null,\"owner_state\":null,\"epoch\":null,"
           "\"would_place\":\"instance-2\",\"holder\":null,\"waiters\":[],"
           "\"value_unavailable\":false}\n");
}

Test(inspect, status_with_nowhere_to_go_and_no_answer)
{
    struct model_key_status_response status = {.known = true};
    struct rt_buffer buffer = {0};

    cli_inspect_append_status(RT_BYTES_LITERAL("a"), &status, CLI_OUTPUT_TEXT, &buffer);
    cr_assert_not_null(strstr(rt_buffer_string(&buffer), "would go to  (no instance)\n"));
    rt_buffer_reset(&buffer);
    status = placed_status();
    status.value_unavailable = true;
    status.has_value = false;
    status.owner_state = MODEL_MEMBER_DEAD;
    cli_inspect_append_status(RT_BYTES_LITERAL("a"), &status, CLI_OUTPUT_TEXT, &buffer);
    cr_assert_not_null(
        strstr(rt_buffer_string(&buffer), "value        (unknown: the owner could not be asked)"));
    cr_assert_not_null(strstr(rt_buffer_string(&buffer), "instance-1, dead, epoch 7\n"));
    rt_buffer_deinit(&buffer);
}

Test(inspect, status_cuts_a_long_value_in_text_only)
{
    static uint8_t bytes[CLI_INSPECT_VALUE_MAX + 1];
    struct model_key_status_response status = placed_status();
    struct rt_buffer buffer = {0};

    memset(bytes, 'x', sizeof(bytes));
    status.stored = false;
    status.value = rt_bytes_of(bytes, CLI_INSPECT_VALUE_MAX);
    cli_inspect_append_status(RT_BYTES_LITERAL("a"), &status, CLI_OUTPUT_TEXT, &buffer);
    cr_assert_null(strstr(rt_buffer_string(&buffer), "..."));
    cr_assert_not_null(strstr(rt_buffer_string(&buffer), "x  (not stored)\n"));
    rt_buffer_reset(&buffer);
    status.value = rt_bytes_of(bytes, CLI_INSPECT_VALUE_MAX + 1);
    cli_inspect_append_status(RT_BYTES_LITERAL("a"), &status, CLI_OUTPUT_TEXT, &buffer);
    cr_assert_not_null(strstr(rt_buffer_string(&buffer), "x... (257 bytes)  (not stored)\n"));
    rt_buffer_reset(&buffer);
    cli_inspect_append_status(RT_BYTES_LITERAL("a"), &status, CLI_OUTPUT_JSON, &buffer);
    cr_assert_gt(buffer.size, CLI_INSPECT_VALUE_MAX + 1);
    cr_assert_null(strstr(rt_buffer_string(&buffer), "..."));
    rt_buffer_deinit(&buffer);
}

static const struct model_execute_response result = {
    .data = {.version = {7, 5, 2}, .has_value = true, .value = RT_BYTES_LITERAL("a\0b")},
    .instance = "i",
    .epoch = 7,
    .lock_token = 9,
};

static void expect_result(enum model_statement_kind kind,
                          const struct model_execute_response *response, const char *as_json,
                          const char *as_text)
{
    struct rt_buffer buffer = {0};
    struct rt_json json;

    rt_json_init(&json, &buffer);
    rt_json_object_begin(&json, NULL);
    cli_inspect_write_result(&json, kind, response);
    rt_json_object_end(&json);
    expect(&buffer, as_json);
    cli_inspect_append_result(kind, response, &buffer);
    expect(&buffer, as_text);
}

Test(inspect, results)
{
    struct model_execute_response stored = result;

    expect_result(MODEL_STATEMENT_READ, &result,
                  "{\"value\":\"a\\u0000b\",\"version\":{\"epoch\":7,\"incarnation\":5,\"seq\":2},"
                  "\"stored\":false,\"stale\":false,\"sets_lost\":false,\"owner\":\"i\","
                  "\"epoch\":7}",
                  "version=7.5.2 stored=no owner=i epoch=7");
    expect_result(MODEL_STATEMENT_GET, &result,
                  "{\"value\":\"a\\u0000b\",\"version\":{\"epoch\":7,\"incarnation\":5,\"seq\":2},"
                  "\"stored\":false,\"sets_lost\":false,\"owner\":\"i\",\"epoch\":7,"
                  "\"lock_token\":9}",
                  "version=7.5.2 stored=no owner=i epoch=7 lock_token=9");
    stored.data.stored = stored.data.sets_lost = stored.lock_lost = true;
    expect_result(MODEL_STATEMENT_STORE, &stored,
                  "{\"version\":{\"epoch\":7,\"incarnation\":5,\"seq\":2},\"stored\":true,"
                  "\"sets_lost\":true,\"owner\":\"i\",\"epoch\":7,\"lock_lost\":true}",
                  "version=7.5.2 stored=yes owner=i epoch=7 sets_lost lock_lost");
}

Test(inspect, result_that_evicted_keys)
{
    struct rt_bytes evicted[] = {RT_BYTES_LITERAL("k1"), RT_BYTES_LITERAL("k\n")};
    struct model_execute_response set = result;

    set.data.evicted = evicted;
    set.data.n_evicted = 2;
    expect_result(MODEL_STATEMENT_SET, &set,
                  "{\"version\":{\"epoch\":7,\"incarnation\":5,\"seq\":2},\"stored\":false,"
                  "\"sets_lost\":false,\"owner\":\"i\",\"epoch\":7,\"evicted\":[\"k1\",\"k\\n\"]}",
                  "version=7.5.2 stored=no owner=i epoch=7 evicted=k1,k\\x0a");
}

Test(inspect, result_of_a_key_without_value)
{
    static const struct model_execute_response nothing = {.lock_token = 3};

    expect_result(MODEL_STATEMENT_GET, &nothing,
                  "{\"value\":null,\"version\":null,\"stored\":false,\"sets_lost\":false,"
                  "\"owner\":null,\"epoch\":null,\"lock_token\":3}",
                  "version=none owner=none lock_token=3");
    expect_result(MODEL_STATEMENT_DELETE, &nothing,
                  "{\"version\":null,\"stored\":false,\"sets_lost\":false,\"owner\":null,"
                  "\"epoch\":null}",
                  "version=none owner=none");
}

static struct model_instance_info instances[] = {
    {"instance-1", "127.0.0.1:7410", MODEL_MEMBER_ALIVE, 3, 1, 90, 100, 10, 250},
    {"b", "unix:/b", MODEL_MEMBER_LEFT, 4, 2, 0, 5, 0, 99999},
};

Test(inspect, instances)
{
    struct model_list_instances_response page = {.instances = instances, .n_instances = 2};
    struct rt_buffer buffer = {0};
    struct cli_inspect_list *list = cli_inspect_instances_begin(CLI_OUTPUT_TEXT, &buffer);

    cli_inspect_instances_add(list, &page);
    cr_assert_null(cli_inspect_list_end(list));
    expect(&buffer,
           "NAME        ADDRESS         STATE  INCARNATION  KEYS  FREE  ENTRIES  RENEWED MS AGO\n"
           "instance-1  127.0.0.1:7410  alive            3    10    90      100             250\n"
           "b           unix:/b         left             4     0     0        5           99999\n");
    page.n_instances = 1;
    list = cli_inspect_instances_begin(CLI_OUTPUT_JSON, &buffer);
    cli_inspect_instances_add(list, &page);
    cr_assert_null(cli_inspect_list_end(list));
    expect(&buffer, "{\"instances\":[{\"name\":\"instance-1\",\"address\":\"127.0.0.1:7410\","
                    "\"state\":\"alive\",\"incarnation\":3,\"keys\":10,\"entries_free\":90,"
                    "\"entries_total\":100,\"last_renew_ms\":250}]}\n");
}

Test(inspect, keys_of_two_pages)
{
    struct model_key_info first[] = {{RT_BYTES_LITERAL("a"), "instance-1", 7, "me"}};
    struct model_key_info second[] = {{RT_BYTES_LITERAL("b"), "", 0, ""}};
    struct model_list_keys_response pages[] = {{first, 1, true}, {second, 1, false}};
    struct rt_buffer buffer = {0};
    struct cli_inspect_list *list = cli_inspect_keys_begin(CLI_OUTPUT_TEXT, &buffer);

    cli_inspect_keys_add(list, &pages[0]);
    cli_inspect_keys_add(list, &pages[1]);
    cr_assert_null(cli_inspect_list_end(list));
    expect(&buffer, "KEY  OWNER       EPOCH  LOCKED BY\n"
                    "a    instance-1      7  me\n"
                    "b    -               -  -\n");
    list = cli_inspect_keys_begin(CLI_OUTPUT_JSON, &buffer);
    cli_inspect_keys_add(list, &pages[0]);
    cli_inspect_keys_add(list, &pages[1]);
    cr_assert_null(cli_inspect_list_end(list));
    expect(&buffer,
           "{\"keys\":[{\"key\":\"a\",\"owner\":\"instance-1\",\"epoch\":7,\"holder\":\"me\"},"
           "{\"key\":\"b\",\"owner\":null,\"epoch\":null,\"holder\":null}]}\n");
}

Test(inspect, empty_lists)
{
    struct rt_buffer buffer = {0};

    cr_assert_null(cli_inspect_list_end(cli_inspect_keys_begin(CLI_OUTPUT_JSON, &buffer)));
    expect(&buffer, "{\"keys\":[]}\n");
    cr_assert_null(cli_inspect_list_end(cli_inspect_instances_begin(CLI_OUTPUT_JSON, &buffer)));
    expect(&buffer, "{\"instances\":[]}\n");
}

static struct cli_inspect_list *health_list(enum cli_output output, struct rt_buffer *buffer)
{
    static const struct cli_inspect_health rows[] = {
        {.name = "coordinator", .address = "c:1", .is_serving = true},
        {.name = "i", .address = "i:1", .state = "dead", .message = "refused"},
    };
    struct cli_inspect_list *list = cli_inspect_health_begin(output, buffer);

    for (size_t i = 0; i < RT_ARRAY_SIZE(rows); i++)
        cli_inspect_health_add(list, &rows[i]);
    cli_inspect_health_sum(list, false);
    return list;
}

Test(inspect, health)
{
    struct rt_buffer buffer = {0};

    cr_assert_null(cli_inspect_list_end(health_list(CLI_OUTPUT_TEXT, &buffer)));
    expect(&buffer, "NAME         ADDRESS  STATE  SERVING  MESSAGE\n"
                    "coordinator  c:1      -      yes      -\n"
                    "i            i:1      dead   no       refused\n");
    cr_assert_null(cli_inspect_list_end(health_list(CLI_OUTPUT_JSON, &buffer)));
    expect(&buffer, "{\"members\":[{\"name\":\"coordinator\",\"address\":\"c:1\",\"state\":null,"
                    "\"serving\":true,\"message\":null},{\"name\":\"i\",\"address\":\"i:1\","
                    "\"state\":\"dead\",\"serving\":false,\"message\":\"refused\"}],"
                    "\"serving\":false}\n");
}
