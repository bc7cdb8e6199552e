/*
 * JUnit's XML: exact documents, counts that are those of the testcases, any byte in them.
 */
#include "esi-client/junit.h"

#include "runtime/base/json.h"
#include "tests/support/check.h"

TestSuite(junit, .fini = test_alloc_expect_none);

static struct esi_script_errors errors;

struct fixture {
    struct esi_script *script;
    struct esi_tally tally;
    struct esi_summary summary;
};

static void start(struct fixture *f, struct rt_bytes text)
{
    struct rt_error err;

    *f = (struct fixture){.summary = {.state = ESI_SCRIPT_OK, .opened = true}};
    cr_assert_eq(
        esi_script_parse("a<b>.esi", text, MODEL_DIALECT_EXTENDED, &f->script, &errors, &err),
        RT_OK, "%s", err.message);
    cr_assert_eq(esi_tally_init(&f->tally, f->script, &err), RT_OK);
}

static void add(struct fixture *f, uint32_t line, enum esi_outcome outcome, uint64_t latency_us)
{
    struct esi_result result = {
        .statement = {.line = line}, .outcome = outcome, .latency_us = latency_us};

    esi_tally_add(&f->tally, &result);
}

static void fail(struct fixture *f, enum esi_script_state state, uint32_t line,
                 enum model_reason reason, const char *message)
{
    struct model_response response;

    model_response_fail(&response, reason, "%s", message);
    f->summary.state = state;
    f->summary.line = line;
    f->summary.code = response.code;
    f->summary.error = response.error;
}

/* Of the one suite. */
static void finish(struct fixture *f, struct rt_buffer *text)
{
    esi_junit_suite(&f->tally, &f->summary, 7, text);
    cr_assert_eq(rt_buffer_check(text, NULL), RT_OK);
    esi_tally_deinit(&f->tally);
    (void)esi_script_free(f->script);
}

static void expect(struct fixture *f, const char *expected)
{
    struct rt_buffer text = {0};

    finish(f, &text);
    cr_assert_str_eq(rt_buffer_string(&text), expected);
    rt_buffer_deinit(&text);
}

#define PROPERTIES(state)                                                                          \
    "    <properties>\n"                                                                           \
    "      <property name=\"seed\" value=\"7\"/>\n"                                                \
    "      <property name=\"state\" value=\"" state "\"/>\n"                                       \
    "    </properties>\n"

#define CASE(name, time)                                                                           \
    "    <testcase name=\"" name "\" classname=\"a&lt;b&gt;.esi\" time=\"" time "\""

Test(junit, a_testcase_for_each_statement_whatever_its_rounds)
{
    struct fixture f;

    start(&f, RT_BYTES_LITERAL("GET k\n\nREPEAT 2\nSET k${i} \"v\" & w\nEND\nSLEEP 5"));
    add(&f, 1, ESI_OUTCOME_WAITING, 400);
    add(&f, 0, ESI_OUTCOME_OK, 77);
    add(&f, 1, ESI_OUTCOME_OK, 1500000);
    add(&f, 4, ESI_OUTCOME_OK, 20);
    add(&f, 4, ESI_OUTCOME_OK, 30);
    add(&f, 6, ESI_OUTCOME_OK, 5000);
    f.summary.duration_us = 2000001;
    expect(&f, "  <testsuite name=\"a&lt;b&gt;.esi\" tests=\"3\" failures=\"0\" errors=\"0\" "
               "skipped=\"0\" time=\"2.000001\">\n" PROPERTIES("ok")
                   CASE("1: GET k", "1.500000") "/>\n" CASE(
                       "4: SET k${i} &quot;\\&quot;v\\&quot; &amp; w&quot;",
                       "0.000050") "/>\n" CASE("6: SLEEP 5", "0.005000") "/>\n"
                                                                         "  </testsuite>\n");
}

Test(junit, a_failure_and_what_was_not_reached)
{
    struct fixture f;

    start(&f, RT_BYTES_LITERAL("REPEAT 9\nGET k\nSET k v\nEND\nSTORE k"));
    add(&f, 2, ESI_OUTCOME_OK, 1);
    add(&f, 3, ESI_OUTCOME_OK, 2);
    add(&f, 2, ESI_OUTCOME_FAILED, 3);
    fail(&f, ESI_SCRIPT_FAILED, 2, MODEL_REASON_KEY_TOO_LONG, "41 'bytes'\n<b>");
    f.summary.round = 2;
    expect(&f, "  <testsuite name=\"a&lt;b&gt;.esi\" tests=\"3\" failures=\"1\" errors=\"0\" "
               "skipped=\"1\" time=\"0.000000\">\n" PROPERTIES("failed")
                   CASE("2: GET k",
                        "0.000004") ">\n"
                                    "      <failure type=\"INVALID_ARGUMENT KEY_TOO_LONG\" "
                                    "message=\"41 &apos;bytes&apos;\\x0a&lt;b&gt; (round 2)\"/>\n"
                                    "    </testcase>\n" CASE(
                                        "3: SET k &quot;v&quot;",
                                        "0.000002") "/>\n" CASE("5: STORE k",
                                                                "0.000000") ">\n"
                                                                            "      <skipped/>\n"
                                                                            "    </testcase>\n"
                                                                            "  </testsuite>\n");
}

Test(junit, how_a_script_ends)
{
    struct rt_buffer text = {0};
    struct fixture f;

    /* May have been applied. */
    start(&f, RT_BYTES_LITERAL("STORE k"));
    add(&f, 1, ESI_OUTCOME_UNKNOWN, 1);
    fail(&f, ESI_SCRIPT_UNKNOWN, 1, MODEL_REASON_NONE, "no answer");
    f.summary.code = RT_DEADLINE_EXCEEDED;
    cr_assert_eq(esi_junit_count(&f.tally, &f.summary).n_errors, 1);
    finish(&f, &text);
    cr_assert_not_null(strstr(rt_buffer_string(&text),
                              "<error type=\"DEADLINE_EXCEEDED\" message=\"no answer\"/>"));
    rt_buffer_reset(&text);

    /* Stored, and its lock lost: every result was ok. */
    start(&f, RT_BYTES_LITERAL("STORE k\nGET k"));
    add(&f, 1, ESI_OUTCOME_OK, 1);
    f.summary.state = ESI_SCRIPT_FAILED;
    f.summary.lock_lost = true;
    f.summary.line = 1;
    cr_assert_eq(esi_junit_count(&f.tally, &f.summary).n_failures, 1);
    finish(&f, &text);
    cr_assert_not_null(strstr(rt_buffer_string(&text), "<failure type=\"LOCK_LOST\""));
    rt_buffer_reset(&text);

    /* There was no session: no statement is to blame. */
    start(&f, RT_BYTES_LITERAL("GET k"));
    fail(&f, ESI_SCRIPT_SESSION_LOST, 0, MODEL_REASON_DRAINING, "away");
    cr_assert_eq(esi_junit_count(&f.tally, &f.summary).n_tests, 2);
    cr_assert_eq(esi_junit_count(&f.tally, &f.summary).n_errors, 1);
    cr_assert_eq(esi_junit_count(&f.tally, &f.summary).n_skipped, 1);
    finish(&f, &text);
    cr_assert_not_null(strstr(rt_buffer_string(&text), "<testcase name=\"session\""));
    cr_assert_not_null(
        strstr(rt_buffer_string(&text), "<error type=\"UNAVAILABLE DRAINING\" message=\"away\"/>"));
    rt_buffer_reset(&text);

    /* Stopped between two statements. */
    start(&f, RT_BYTES_LITERAL("GET k\nSTORE k"));
    add(&f, 1, ESI_OUTCOME_OK, 1);
    f.summary.state = ESI_SCRIPT_ABORTED;
    finish(&f, &text);
    cr_assert_not_null(strstr(rt_buffer_string(&text),
                              "<error type=\"aborted\" message=\"the script was stopped\"/>"));
    rt_buffer_deinit(&text);
}

Test(junit, any_byte_becomes_a_character_of_xml)
{
    char script[600] = "GET ";
    char message[256];
    size_t size = strlen(script);
    struct rt_buffer text = {0};
    struct fixture f;

    for (int byte = 1; byte < 256; byte++) {
        message[byte - 1] = (char)byte;
        if (byte != '\n' && byte != '\t' && byte != ' ') /* a key has none of these */
            script[size++] = (char)byte;
        if (byte == 0xf0) { /* valid UTF-8 that XML has no characters for, and one that it has */
            memcpy(script + size, "\xef\xbf\xbe\xef\xbf\xbf\xc3\xb1", 8);
            size += 8;
        }
    }
    message[255] = '\0';
    script[size++] = '!';
    start(&f, rt_bytes_of(script, size));
    add(&f, 1, ESI_OUTCOME_FAILED, 1);
    fail(&f, ESI_SCRIPT_FAILED, 1, MODEL_REASON_STORE_ERROR, message);
    finish(&f, &text);
    cr_assert(rt_json_is_utf8(rt_buffer_bytes(&text)));
    for (size_t i = 0; i < text.size; i++)
        cr_assert(text.data[i] >= 0x20 || text.data[i] == '\n', "byte %02x", text.data[i]);
    cr_assert_not_null(strstr(rt_buffer_string(&text), "\\x01\\x02"));
    cr_assert_not_null(strstr(rt_buffer_string(&text), "&amp;&apos;()"));
    cr_assert_not_null(strstr(rt_buffer_string(&text), "\\xef\\xbf\\xbe\\xef\\xbf\\xbf\xc3\xb1"));
    cr_assert_null(strstr(rt_buffer_string(&text), "\xef\xbf\xbe"));
    cr_assert_null(strstr(rt_buffer_string(&text), "\xef\xbf\xbf"));
    rt_buffer_deinit(&text);
}

Test(junit, the_document_around_the_suites)
{
    struct esi_junit_counts counts = {.n_tests = 4, .n_failures = 1, .n_errors = 2, .n_skipped = 1};
    struct rt_buffer text = {0};

    esi_junit_begin(&counts, 1000001, &text);
    esi_junit_end(&text);
    cr_assert_str_eq(rt_buffer_string(&text),
                     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                     "<testsuites name=\"redistinto-esi\" tests=\"4\" failures=\"1\" errors=\"2\" "
                     "skipped=\"1\" time=\"1.000001\">\n"
                     "</testsuites>\n");
    rt_buffer_deinit(&text);
}

Test(junit, without_memory)
{
    struct esi_tally tally;
    struct rt_error err = RT_ERROR_INIT;
    struct esi_script script = {.name = "a", .n_steps = 3};

    test_alloc_fail_after(0, 1);
    cr_assert_eq(esi_tally_init(&tally, &script, &err), RT_RESOURCE_EXHAUSTED);
    test_alloc_fail_never();
}
