/*
 * Scripts: lines and their numbers, all errors at once with quote and caret, limits.
 */
#include "esi-client/script.h"

#include <stdlib.h>

#include "tests/support/check.h"

TestSuite(script, .fini = test_alloc_expect_none);

static struct esi_script_errors errors;

static struct esi_script *parse(struct rt_bytes text)
{
    struct esi_script *script;
    struct rt_error err;

    cr_assert_eq(esi_script_parse("a.esi", text, MODEL_DIALECT_EXTENDED, &script, &errors, &err),
                 RT_OK, "%s", err.message);
    cr_assert_eq(errors.n_errors, 0);
    return script;
}

static void expect_errors(struct rt_bytes text, const char *expected)
{
    struct esi_script *script;
    struct rt_buffer buffer = {0};

    cr_assert_eq(esi_script_parse("a.esi", text, MODEL_DIALECT_EXTENDED, &script, &errors, NULL),
                 RT_INVALID_ARGUMENT);
    esi_script_errors_format("a.esi", &errors, &buffer);
    cr_assert_str_eq(rt_buffer_string(&buffer), expected);
    rt_buffer_deinit(&buffer);
}

#define TEXT RT_BYTES_LITERAL

Test(script, statements_keep_their_lines)
{
    char text[] = "# a comment\n"
                  "GET k\n"
                  "\n"
                  "  set k two words \n"
                  "STORE k\n";
    struct esi_script *script = parse(rt_bytes_of(text, sizeof(text) - 1));

    memset(text, 'x', sizeof(text));
    cr_assert_str_eq(script->name, "a.esi");
    cr_assert_eq(script->n_steps, 3);
    cr_assert_eq(script->steps[0].statement.kind, MODEL_STATEMENT_GET);
    cr_assert_eq(script->steps[0].statement.line, 2);
    cr_assert_eq(script->steps[1].statement.kind, MODEL_STATEMENT_SET);
    cr_assert_eq(script->steps[1].statement.line, 4);
    cr_assert(rt_bytes_equal(script->steps[1].statement.key, TEXT("k")));
    cr_assert(rt_bytes_equal(script->steps[1].statement.value, TEXT("two words")));
    cr_assert_eq(script->steps[2].statement.kind, MODEL_STATEMENT_STORE);
    cr_assert_eq(script->steps[2].statement.line, 5);
    (void)esi_script_free(script);
    cr_assert_null(esi_script_free(NULL));
}

Test(script, c93_crlf_and_a_last_line_without_newline)
{
    struct esi_script *script = parse(TEXT("GET k\r\nSET k a b\r\n\r\nSTORE k"));

    cr_assert_eq(script->n_steps, 3);
    cr_assert(rt_bytes_equal(script->steps[1].statement.value, TEXT("a b")));
    cr_assert(rt_bytes_equal(script->steps[2].statement.key, TEXT("k")));
    cr_assert_eq(script->steps[2].statement.line, 4);
    (void)esi_script_free(script);
}

Test(script, c90_nothing_but_blank_lines_and_comments)
{
    static const struct rt_bytes texts[] = {{0}, TEXT("\n"), TEXT("\n\n  \n# x"), TEXT("#")};

    for (size_t i = 0; i < RT_ARRAY_SIZE(texts); i++) {
        struct esi_script *script = parse(texts[i]);

        cr_assert_eq(script->n_steps, 0);
        (void)esi_script_free(script);
    }
}

Test(script, all_errors_are_collected_with_quote_and_caret)
{
    expect_errors(
        TEXT("GET k\n"
             "GETT k\n"
             "  SET key\n"
             "# fine\n"
             "STORE k now\r\n"
             "GET"),
        "a.esi:2:1: expected GET, SET or STORE, or READ, PUT, DEL, EXPECT, SLEEP, REPEAT, "
        "END\n"
        "    GETT k\n"
        "    ^\n"
        "a.esi:3:10: expected a blank and a value\n"
        "      SET key\n"
        "             ^\n"
        "a.esi:5:9: expected the end of the line\n"
        "    STORE k now\n"
        "            ^\n"
        "a.esi:6:4: expected a blank and a key\n"
        "    GET\n"
        "       ^\n");
}

Test(script, the_error_itself_names_the_first)
{
    struct esi_script *script;
    struct rt_error err;

    cr_assert_eq(esi_script_parse("b.esi", TEXT("\nGET\nX\n"), MODEL_DIALECT_EXTENDED, &script,
                                  &errors, &err),
                 RT_INVALID_ARGUMENT);
    cr_assert_str_eq(err.message, "b.esi:2:4: expected a blank and a key");
}

Test(script, quotes_are_escaped_and_the_caret_still_points)
{
    expect_errors(TEXT("GET ca\xc3\xb1"
                       "a\tx\x1b\n"),
                  "a.esi:1:11: expected the end of the line\n"
                  "    GET ca\xc3\xb1"
                  "a\\tx\\x1b\n"
                  "              ^\n");
    expect_errors(TEXT("SET k a\0b"), "a.esi:1:8: expected no NUL byte\n"
                                      "    SET k a\\x00b\n"
                                      "           ^\n");
}

Test(script, long_lines_are_cut_around_the_error)
{
    char line[300];
    struct rt_buffer buffer = {0};
    struct esi_script *script;
    const char *text, *caret;

    memset(line, 'k', sizeof(line));
    memcpy(line, "GET ", 4);
    line[200] = ' ';
    line[201] = '!';
    cr_assert_eq(esi_script_parse("a", rt_bytes_of(line, sizeof(line)), MODEL_DIALECT_EXTENDED,
                                  &script, &errors, NULL),
                 RT_INVALID_ARGUMENT);
    cr_assert_eq(errors.items[0].column, 202);
    cr_assert(errors.items[0].cut_before && errors.items[0].cut_behind);
    esi_script_errors_format("a", &errors, &buffer);
    text = strchr(rt_buffer_string(&buffer), '\n') + 1;
    caret = strchr(text, '\n') + 1;
    /* The mark of the cut is three bytes in one column. */
    cr_assert_eq(strchr(text, '!') - text - 2, strchr(caret, '^') - caret);
    cr_assert_lt(strchr(text, '\n') - text, 90);
    rt_buffer_deinit(&buffer);
}

Test(script, an_error_behind_a_full_quote)
{
    char line[49 + 1] = "SET ";
    struct esi_script *script;

    memset(line + 4, 'k', 45);
    cr_assert_eq(esi_script_parse("a", rt_bytes_of(line, 49), MODEL_DIALECT_EXTENDED, &script,
                                  &errors, NULL),
                 RT_INVALID_ARGUMENT);
    cr_assert_eq(errors.items[0].column, 50);
    cr_assert_eq(errors.items[0].quote_at, errors.items[0].quote_size);
}

Test(script, errors_at_the_limit_and_past_it)
{
    char text[2 * (ESI_SCRIPT_ERRORS_MAX + 1)];
    struct esi_script *script;
    struct rt_buffer buffer = {0};

    for (size_t i = 0; i < sizeof(text); i += 2)
        memcpy(text + i, "x\n", 2);
    cr_assert_eq(esi_script_parse("a", rt_bytes_of(text, sizeof(text) - 2), MODEL_DIALECT_EXTENDED,
                                  &script, &errors, NULL),
                 RT_INVALID_ARGUMENT);
    cr_assert_eq(errors.n_items, ESI_SCRIPT_ERRORS_MAX);
    cr_assert_eq(errors.n_errors, ESI_SCRIPT_ERRORS_MAX);
    esi_script_errors_format("a", &errors, &buffer);
    cr_assert_null(strstr(rt_buffer_string(&buffer), "in all"));

    rt_buffer_reset(&buffer);
    cr_assert_eq(esi_script_parse("a", rt_bytes_of(text, sizeof(text)), MODEL_DIALECT_EXTENDED,
                                  &script, &errors, NULL),
                 RT_INVALID_ARGUMENT);
    cr_assert_eq(errors.n_items, ESI_SCRIPT_ERRORS_MAX);
    cr_assert_eq(errors.n_errors, ESI_SCRIPT_ERRORS_MAX + 1);
    esi_script_errors_format("a", &errors, &buffer);
    cr_assert_not_null(strstr(rt_buffer_string(&buffer), "a: 101 errors in all"));
    rt_buffer_deinit(&buffer);
}

Test(script, size_limit_and_limit_plus_one)
{
    char *text = malloc(ESI_SCRIPT_SIZE_MAX + 1);
    struct esi_script *script;
    struct rt_error err;

    memset(text, '#', ESI_SCRIPT_SIZE_MAX + 1);
    script = parse(rt_bytes_of(text, ESI_SCRIPT_SIZE_MAX));
    (void)esi_script_free(script);
    cr_assert_eq(esi_script_parse("a", rt_bytes_of(text, ESI_SCRIPT_SIZE_MAX + 1),
                                  MODEL_DIALECT_EXTENDED, &script, &errors, &err),
                 RT_RESOURCE_EXHAUSTED);
    cr_assert_not_null(strstr(err.message, "0 to 16777216"));
    cr_assert_eq(errors.n_errors, 0);
    free(text);
}

Test(script, statements_limit_and_limit_plus_one)
{
    size_t size = 6 * (size_t)(ESI_SCRIPT_STEPS_MAX + 1);
    char *text = malloc(size);
    struct esi_script *script;
    struct rt_error err;

    for (size_t i = 0; i < size; i += 6)
        memcpy(text + i, "GET k\n", 6);
    script = parse(rt_bytes_of(text, size - 6));
    cr_assert_eq(script->n_steps, ESI_SCRIPT_STEPS_MAX);
    cr_assert_eq(script->steps[ESI_SCRIPT_STEPS_MAX - 1].statement.line, ESI_SCRIPT_STEPS_MAX);
    (void)esi_script_free(script);
    cr_assert_eq(esi_script_parse("a", rt_bytes_of(text, size), MODEL_DIALECT_EXTENDED, &script,
                                  &errors, &err),
                 RT_RESOURCE_EXHAUSTED);
    cr_assert_not_null(strstr(err.message, "0 to 1000000"));
    free(text);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

Test(script, repeats_know_their_ends)
{
    struct esi_script *script = parse(TEXT("REPEAT 3\n"
                                           "  GET k${i}\n"
                                           "  REPEAT 2\n"
                                           "    READ k${rand 1 9}\n"
                                           "    EXPECT v\n"
                                           "  END\n"
                                           "END\n"
                                           "SLEEP 7\n"));

    cr_assert_eq(script->n_steps, 8);
    cr_assert_eq(script->n_statements, 4);
    cr_assert_eq(script->n_executed, 3 * (1 + 2 * 2) + 1);
    cr_assert_eq(script->expanded_max, 2);
    cr_assert(script->is_random && script->has_expect);
    cr_assert_eq(script->steps[0].kind, ESI_STEP_REPEAT);
    cr_assert_eq(script->steps[0].rounds, 3);
    cr_assert_eq(script->steps[0].partner, 6);
    cr_assert_eq(script->steps[2].partner, 5);
    cr_assert_eq(script->steps[5].kind, ESI_STEP_END);
    cr_assert_eq(script->steps[5].partner, 2);
    cr_assert_eq(script->steps[6].partner, 0);
    cr_assert_eq(script->steps[4].statement.target, ESI_TARGET_EXPECT);
    cr_assert_eq(script->steps[7].statement.target, ESI_TARGET_SLEEP);
    cr_assert_eq(script->steps[7].statement.sleep_ms, 7);
    (void)esi_script_free(script);

    script = parse(TEXT("SET k v"));
    cr_assert_not(script->is_random || script->has_expect);
    cr_assert_eq(script->n_executed, 1);
    (void)esi_script_free(script);
}

Test(script, blocks_with_something_wrong)
{
    expect_errors(TEXT("GET a${i}\n"
                       "END\n"
                       " REPEAT 2\n"
                       "\n"
                       " END\n"
                       "REPEAT 5\n"
                       "GET b${i}\n"),
                  "a.esi:1:6: expected a REPEAT around ${i}\n"
                  "    GET a${i}\n"
                  "         ^\n"
                  "a.esi:2:1: expected a REPEAT before END\n"
                  "    END\n"
                  "    ^\n"
                  "a.esi:5:2: expected a statement between REPEAT and END\n"
                  "     END\n"
                  "     ^\n"
                  "a.esi:6:1: expected an END behind this REPEAT\n"
                  "    REPEAT 5\n"
                  "    ^\n");
    /* A line that is wrong is one error, not two. */
    expect_errors(
        TEXT("REPEAT 2\nGETS k\nEND"),
        "a.esi:2:1: expected GET, SET or STORE, or READ, PUT, DEL, EXPECT, SLEEP, REPEAT, "
        "END\n"
        "    GETS k\n"
        "    ^\n");
}

static void append_nested(struct rt_buffer *text, size_t depth)
{
    for (size_t i = 0; i < depth; i++)
        rt_buffer_append_string(text, "REPEAT 1\n");
    rt_buffer_append_string(text, "GET k${i}\n");
    for (size_t i = 0; i < depth; i++)
        rt_buffer_append_string(text, "END\n");
}

Test(script, depth_at_its_limit_and_past_it)
{
    struct rt_buffer text = {0};
    struct esi_script *script;
    struct rt_error err;

    append_nested(&text, ESI_SCRIPT_DEPTH_MAX);
    script = parse(rt_buffer_bytes(&text));
    cr_assert_eq(script->n_executed, 1);
    (void)esi_script_free(script);

    rt_buffer_reset(&text);
    append_nested(&text, ESI_SCRIPT_DEPTH_MAX + 2);
    cr_assert_eq(esi_script_parse("a", rt_buffer_bytes(&text), MODEL_DIALECT_EXTENDED, &script,
                                  &errors, &err),
                 RT_INVALID_ARGUMENT);
    cr_assert_str_eq(err.message, "a:17:1: expected at most 16 REPEATs within each other");
    cr_assert_eq(errors.n_errors, 2);
    rt_buffer_deinit(&text);
}

Test(script, rounds_at_their_limit_and_past_it)
{
    struct esi_script *script = parse(TEXT("REPEAT 10000\nREPEAT 10000\nGET k\nEND\nEND"));
    struct rt_error err;

    cr_assert_eq(script->n_executed, ESI_SCRIPT_EXECUTED_MAX);
    (void)esi_script_free(script);
    expect_errors(TEXT("GET k\n REPEAT 10000\nREPEAT 5000\nGET k\nGET k\nEND\nGET k\nEND"),
                  "a.esi:2:2: expected at most 100000000 statements in all rounds together\n"
                  "     REPEAT 10000\n"
                  "     ^\n");
    /* Each block is within the limit, all of them are not. */
    cr_assert_eq(esi_script_parse("a", TEXT("REPEAT 100000000\nGET k\nEND\nGET k"),
                                  MODEL_DIALECT_EXTENDED, &script, &errors, &err),
                 RT_RESOURCE_EXHAUSTED);
    cr_assert_not_null(strstr(err.message, "100000001 statements in all rounds together; 0 to"));
}

/* A PUT whose key and value come to `size` bytes in the last round, from fewer in the script. */
static enum rt_code parse_growing(size_t size)
{
    struct rt_buffer text = {0};
    struct esi_script *script;
    enum rt_code code;

    rt_buffer_append_string(&text, "REPEAT 100000\nPUT k ");
    for (size_t i = 0; i < (size - 1) / 6; i++)
        rt_buffer_append_string(&text, "${i}");
    for (size_t i = 0; i < (size - 1) % 6; i++)
        rt_buffer_append_byte(&text, 'v');
    rt_buffer_append_string(&text, "\nEND");
    code = esi_script_parse("a", rt_buffer_bytes(&text), MODEL_DIALECT_EXTENDED, &script, &errors,
                            NULL);
    if (code == RT_OK) {
        cr_assert_eq(script->expanded_max, size);
        (void)esi_script_free(script);
    }
    rt_buffer_deinit(&text);
    return code;
}

Test(script, expanded_size_at_its_limit_and_past_it)
{
    cr_assert_eq(parse_growing(ESI_SCRIPT_EXPANDED_MAX), RT_OK);
    cr_assert_eq(parse_growing(ESI_SCRIPT_EXPANDED_MAX + 1), RT_INVALID_ARGUMENT);
    cr_assert_eq(errors.items[0].line, 2);
    cr_assert_eq(errors.items[0].column, 1);
    cr_assert_not_null(strstr(errors.items[0].expected, "at most 1048847 bytes together"));
}

Test(script, classic_has_no_extensions)
{
    struct esi_script *script;
    struct rt_error err;

    cr_assert_eq(
        esi_script_parse("a", TEXT("GET k\nREAD k"), MODEL_DIALECT_CLASSIC, &script, &errors, &err),
        RT_INVALID_ARGUMENT);
    cr_assert_not_null(strstr(err.message, "a:2:1: expected GET, SET or STORE; READ is an"));
    cr_assert_eq(
        esi_script_parse("a", TEXT("SET k$ ${"), MODEL_DIALECT_CLASSIC, &script, &errors, &err),
        RT_OK);
    cr_assert_not(script->steps[0].has_expansions);
    (void)esi_script_free(script);
}

Test(script, c45_an_overlong_key_is_left_to_the_coordinator)
{
    char text[4 + MODEL_KEY_MAX + 1] = "GET ";
    struct esi_script *script;

    memset(text + 4, 'k', MODEL_KEY_MAX + 1);
    script = parse(rt_bytes_of(text, sizeof(text)));
    cr_assert_eq(script->steps[0].statement.key.size, MODEL_KEY_MAX + 1);
    (void)esi_script_free(script);
}

Test(script, a_long_name_is_cut)
{
    char name[ESI_SCRIPT_NAME_MAX + 2];
    struct esi_script *script;

    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    cr_assert_eq(
        esi_script_parse(name, TEXT("GET k"), MODEL_DIALECT_EXTENDED, &script, &errors, NULL),
        RT_OK);
    cr_assert_eq(strlen(script->name), ESI_SCRIPT_NAME_MAX);
    (void)esi_script_free(script);
}

Test(script, every_allocation_can_fail)
{
    struct esi_script *script;
    size_t n_failed = 0;

    for (size_t countdown = 0;; countdown++) {
        enum rt_code code;

        test_alloc_fail_after(countdown, 1);
        code = esi_script_parse("a", TEXT("GET k\nSTORE k\n"), MODEL_DIALECT_EXTENDED, &script,
                                &errors, NULL);
        if (test_alloc_failures() == n_failed) {
            cr_assert_eq(code, RT_OK);
            break;
        }
        n_failed = test_alloc_failures();
        cr_assert_eq(code, RT_RESOURCE_EXHAUSTED);
    }
    test_alloc_fail_never();
    cr_assert_eq(n_failed, 2);
    (void)esi_script_free(script);
}
