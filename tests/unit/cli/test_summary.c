/*
 * What `dev` says: the box, to the column, and the JSON object.
 */
#include "cli/summary.h"

#include <jansson.h>

#include "tests/support/check.h"

TestSuite(summary, .fini = test_alloc_expect_none);

static const struct cli_summary_member instances[] = {
    {"instance-1", "127.0.0.1:7410", 12},
    {"instance-2", "127.0.0.1:40001", 1234567},
};

static const struct cli_summary summary = {
    .coordinator = {"coordinator", "127.0.0.1:7400", 11},
    .instances = instances,
    .n_instances = 2,
    .pid = 10,
    .data_dir = "/tmp/redistinto-ñ",
    .is_temporary = true,
    .profile = "default",
    .distribution = "equitable-load",
    .rules = {{"key-max", "255"},
              {"locking", "optional"},
              {"on-owner-down", "keep"},
              {"compaction", "local"},
              {"growth", "relocate"},
              {"eviction", "spill"},
              {"store", "lmdb"},
              {"dump-interval", "0ms"}},
};

Test(summary, ascii_box)
{
    struct rt_buffer buffer = {0};

    cli_summary_append_box(&summary, false, &buffer);
    cr_assert_str_eq(rt_buffer_string(&buffer),
                     "+--------------------------------------------------------------+\n"
                     "| Redistinto: a development cluster, not for production        |\n"
                     "|                                                              |\n"
                     "| coordinator   127.0.0.1:7400          pid 11                 |\n"
                     "| instance-1    127.0.0.1:7410          pid 12                 |\n"
                     "| instance-2    127.0.0.1:40001         pid 1234567            |\n"
                     "|                                                              |\n"
                     "| profile       default, distribution equitable-load           |\n"
                     "| rules         key-max 255, locking optional,                 |\n"
                     "|               on-owner-down keep, compaction local,          |\n"
                     "|               growth relocate, eviction spill,               |\n"
                     "|               store lmdb, dump-interval 0ms                  |\n"
                     "| data          /tmp/redistinto-ñ (removed at the end)         |\n"
                     "| try           redistinto --coordinator 127.0.0.1:7400 health |\n"
                     "|                                                              |\n"
                     "| Ctrl-C stops all of it.                                      |\n"
                     "+--------------------------------------------------------------+\n");
    rt_buffer_deinit(&buffer);
}

Test(summary, utf8_box)
{
    struct cli_summary kept = summary;
    struct rt_buffer buffer = {0};
    const char *text;

    kept.is_temporary = false;
    cli_summary_append_box(&kept, true, &buffer);
    text = rt_buffer_string(&buffer);
    cr_assert_eq(strncmp(text, "┌──", strlen("┌──")), 0);
    cr_assert_not_null(strstr(text, "│ Redistinto: a development cluster, not for production  "));
    cr_assert_not_null(strstr(text, "──┐\n"));
    cr_assert_not_null(strstr(text, "──┘\n"));
    cr_assert_not_null(strstr(text, "/tmp/redistinto-ñ   "));
    cr_assert_null(strstr(text, "removed"));
    cr_assert_null(strchr(text, '\033'));
    rt_buffer_deinit(&buffer);
}

Test(summary, with_an_esi_service)
{
    struct cli_summary with_esi = summary;
    struct rt_buffer buffer = {0};

    with_esi.esi = (struct cli_summary_member){"esi", "127.0.0.1:7470", 13};
    cli_summary_append_box(&with_esi, false, &buffer);
    cr_assert_not_null(
        strstr(rt_buffer_string(&buffer),
               "| instance-2    127.0.0.1:40001         pid 1234567            |\n"
               "| esi           127.0.0.1:7470          pid 13                 |\n"));
    rt_buffer_reset(&buffer);
    cli_summary_append_json(&with_esi, &buffer);
    cr_assert_not_null(
        strstr(rt_buffer_string(&buffer), "\"esi\":\"127.0.0.1:7470\",\"esi_pid\":13,"));
    rt_buffer_reset(&buffer);
    cli_summary_append_json(&summary, &buffer);
    cr_assert_not_null(strstr(rt_buffer_string(&buffer), "\"esi\":null,\"esi_pid\":null,"));
    rt_buffer_deinit(&buffer);
}

Test(summary, json)
{
    struct rt_buffer buffer = {0};
    json_t *root;
    json_t *instance;

    cli_summary_append_json(&summary, &buffer);
    cr_assert_eq(buffer.data[buffer.size - 1], '\n');
    root = json_loads(rt_buffer_string(&buffer), 0, NULL);
    cr_assert_not_null(root);
    cr_assert_str_eq(json_string_value(json_object_get(root, "coordinator")), "127.0.0.1:7400");
    cr_assert_eq(json_integer_value(json_object_get(root, "coordinator_pid")), 11);
    cr_assert_eq(json_integer_value(json_object_get(root, "pid")), 10);
    cr_assert_str_eq(json_string_value(json_object_get(root, "data_dir")), "/tmp/redistinto-ñ");
    cr_assert_eq(json_array_size(json_object_get(root, "instances")), 2);
    instance = json_array_get(json_object_get(root, "instances"), 1);
    cr_assert_str_eq(json_string_value(json_object_get(instance, "name")), "instance-2");
    cr_assert_str_eq(json_string_value(json_object_get(instance, "address")), "127.0.0.1:40001");
    cr_assert_eq(json_integer_value(json_object_get(instance, "pid")), 1234567);
    cr_assert_str_eq(json_string_value(json_object_get(root, "profile")), "default");
    cr_assert_str_eq(json_string_value(json_object_get(root, "distribution")), "equitable-load");
    cr_assert_eq(json_object_size(json_object_get(root, "rules")), CLI_RULES);
    cr_assert_str_eq(json_string_value(json_object_get(json_object_get(root, "rules"), "eviction")),
                     "spill");
    json_decref(root);
    rt_buffer_deinit(&buffer);
}
