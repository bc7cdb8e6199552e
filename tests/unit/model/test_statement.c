/*
 * The statement language: cases C50 and C88 to C93, the extensions and how classic refuses them,
 * errors with their columns, limits.
 */
#include "runtime/model/statement.h"

#include <stdlib.h>

#include "tests/support/check.h"

static enum model_dialect dialect;

static void set_up(void)
{
    dialect = MODEL_DIALECT_EXTENDED;
}

TestSuite(statement, .init = set_up, .fini = test_alloc_expect_none);

#define ANY_KEYWORD "GET, SET or STORE, or READ, PUT, DEL, EXPECT, SLEEP, REPEAT, END"

static void expect_statement(struct rt_bytes line, enum model_statement_kind kind, const char *key,
                             const char *value)
{
    struct model_statement statement;
    struct model_statement_error error;

    cr_assert_eq(model_statement_parse(line, dialect, &statement, &error), MODEL_LINE_STATEMENT,
                 "%.*s", (int)line.size, (const char *)line.data);
    cr_assert_eq(statement.kind, kind);
    cr_assert(rt_bytes_equal(statement.key, rt_bytes_of_string(key)), "key of '%.*s'",
              (int)line.size, (const char *)line.data);
    cr_assert(rt_bytes_equal(statement.value, rt_bytes_of_string(value)), "value of '%.*s'",
              (int)line.size, (const char *)line.data);
}

static void expect_empty(struct rt_bytes line)
{
    struct model_statement statement;
    struct model_statement_error error;

    cr_assert_eq(model_statement_parse(line, dialect, &statement, &error), MODEL_LINE_EMPTY);
}

static void expect_error(struct rt_bytes line, size_t column, const char *expected)
{
    struct model_statement statement;
    struct model_statement_error error;

    cr_assert_eq(model_statement_parse(line, dialect, &statement, &error), MODEL_LINE_ERROR, "%.*s",
                 (int)line.size, (const char *)line.data);
    cr_assert_eq(error.column, column, "column %zu of '%.*s'", error.column, (int)line.size,
                 (const char *)line.data);
    cr_assert_str_eq(error.expected, expected);
}

#define LINE RT_BYTES_LITERAL

Test(statement, the_three_statements)
{
    expect_statement(LINE("GET k"), MODEL_STATEMENT_GET, "k", "");
    expect_statement(LINE("SET k v"), MODEL_STATEMENT_SET, "k", "v");
    expect_statement(LINE("STORE k"), MODEL_STATEMENT_STORE, "k", "");
    expect_statement(LINE("SET a:b/c#d.e (v)"), MODEL_STATEMENT_SET, "a:b/c#d.e", "(v)");
}

Test(statement, c50_value_is_everything_after_the_second_blank)
{
    expect_statement(LINE("SET k one two"), MODEL_STATEMENT_SET, "k", "one two");
    expect_statement(LINE("SET k one  two\tthree"), MODEL_STATEMENT_SET, "k", "one  two\tthree");
    expect_statement(LINE("SET k  led by a blank"), MODEL_STATEMENT_SET, "k", " led by a blank");
    expect_statement(LINE("SET k\tv"), MODEL_STATEMENT_SET, "k", "v");
    expect_statement(LINE("SET k \tv"), MODEL_STATEMENT_SET, "k", "\tv");
    expect_statement(LINE("SET   k v w"), MODEL_STATEMENT_SET, "k", "v w");
    expect_statement(LINE("SET k # no comment"), MODEL_STATEMENT_SET, "k", "# no comment");
    expect_statement(LINE("SET GET SET"), MODEL_STATEMENT_SET, "GET", "SET");
}

Test(statement, c88_blanks_around_the_line_are_ignored)
{
    expect_statement(LINE("  GET k"), MODEL_STATEMENT_GET, "k", "");
    expect_statement(LINE("GET k \t "), MODEL_STATEMENT_GET, "k", "");
    expect_statement(LINE("\t SET k a b \t"), MODEL_STATEMENT_SET, "k", "a b");
    expect_statement(LINE(" STORE \t k "), MODEL_STATEMENT_STORE, "k", "");
}

Test(statement, c89_keywords_in_any_case)
{
    expect_statement(LINE("get k"), MODEL_STATEMENT_GET, "k", "");
    expect_statement(LINE("Set K V"), MODEL_STATEMENT_SET, "K", "V");
    expect_statement(LINE("sToRe k"), MODEL_STATEMENT_STORE, "k", "");
}

Test(statement, c90_blank_lines_and_comments_are_skipped)
{
    expect_empty((struct rt_bytes){0});
    expect_empty(LINE(" "));
    expect_empty(LINE(" \t \t"));
    expect_empty(LINE("#"));
    expect_empty(LINE("# GET k"));
    expect_empty(LINE("   #comment"));
    expect_empty(LINE("\r"));
}

Test(statement, c90_the_rest_is_an_error)
{
    expect_error(LINE("PUSH k"), 1, ANY_KEYWORD);
    expect_error(LINE("DELETE k"), 1, ANY_KEYWORD);
    expect_error(LINE("  GETS k"), 3, ANY_KEYWORD);
    expect_error(LINE("GE k"), 1, ANY_KEYWORD);
    expect_error(LINE("\xef\xbb\xbfGET k"), 1, ANY_KEYWORD);
    dialect = MODEL_DIALECT_CLASSIC;
    expect_error(LINE("PUSH k"), 1, "GET, SET or STORE");
    dialect = MODEL_DIALECT_PLAIN;
    expect_error(LINE("PUSH k"), 1, "GET, SET or STORE");
    expect_error(LINE("READ k"), 1, "GET, SET or STORE");
    dialect = MODEL_DIALECT_EXTENDED;
    expect_error(LINE("GET"), 4, "a blank and a key");
    expect_error(LINE("\tstore  "), 7, "a blank and a key");
    expect_error(LINE("SET"), 4, "a blank and a key");
    expect_error(LINE("GET k extra"), 7, "the end of the line");
    expect_error(LINE("STORE  k \t x"), 12, "the end of the line");
    expect_error(LINE("\v"), 1, ANY_KEYWORD);
}

Test(statement, columns_count_bytes)
{
    expect_error(LINE("GET ca\xc3\xb1"
                      "a x"),
                 11, "the end of the line");
}

Test(statement, c92_set_without_a_value)
{
    expect_error(LINE("SET k"), 6, "a blank and a value");
    expect_error(LINE("SET k   "), 6, "a blank and a value");
    expect_error(LINE("  set   key\r"), 12, "a blank and a value");
}

Test(statement, c93_carriage_return_is_stripped_once)
{
    expect_statement(LINE("GET k\r"), MODEL_STATEMENT_GET, "k", "");
    expect_statement(LINE("SET k v w \r"), MODEL_STATEMENT_SET, "k", "v w");
    expect_statement(LINE("SET k v\r\r"), MODEL_STATEMENT_SET, "k", "v\r");
    expect_statement(LINE("SET k a\rb"), MODEL_STATEMENT_SET, "k", "a\rb");
}

Test(statement, bytes_not_characters)
{
    expect_statement(LINE("SET ca\xc3\xb1"
                          "a \xff\xfe\x01"),
                     MODEL_STATEMENT_SET,
                     "ca\xc3\xb1"
                     "a",
                     "\xff\xfe\x01");
}

Test(statement, nul_is_refused_wherever_it_is)
{
    expect_error(LINE("SET k a\0b"), 8, "no NUL byte");
    expect_error(LINE("GET\0k"), 4, "no NUL byte");
    expect_error(LINE("# \0"), 3, "no NUL byte");
    expect_error(LINE("\0"), 1, "no NUL byte");
}

/* ---- extensions ------------------------------------------------------------------------------ */

static struct model_statement expect_line(struct rt_bytes line, enum model_line kind)
{
    struct model_statement statement = {0};
    struct model_statement_error error = {0};

    cr_assert_eq(model_statement_parse(line, dialect, &statement, &error), kind, "%.*s: %s",
                 (int)line.size, (const char *)line.data, error.expected);
    return statement;
}

Test(statement, extensions)
{
    struct model_statement statement;

    expect_statement(LINE("READ k"), MODEL_STATEMENT_READ, "k", "");
    expect_statement(LINE("del  k "), MODEL_STATEMENT_DELETE, "k", "");
    expect_statement(LINE("Put k one  two"), MODEL_STATEMENT_PUT, "k", "one  two");
    statement = expect_line(LINE(" expect  two  words \r"), MODEL_LINE_EXPECT);
    cr_assert(rt_bytes_equal(statement.value, LINE(" two  words")));
    statement = expect_line(LINE("SLEEP\t 250"), MODEL_LINE_SLEEP);
    cr_assert_eq(statement.number, 250);
    statement = expect_line(LINE("repeat 007"), MODEL_LINE_REPEAT);
    cr_assert_eq(statement.number, 7);
    (void)expect_line(LINE("  End "), MODEL_LINE_END);
}

Test(statement, extensions_with_something_wrong)
{
    static const char sleep[] = "a blank and a number of milliseconds from 0 to 3600000";
    static const char repeat[] = "a blank and a number of rounds from 1 to 100000000";

    expect_error(LINE("READ"), 5, "a blank and a key");
    expect_error(LINE("DEL k v"), 7, "the end of the line");
    expect_error(LINE("PUT k"), 6, "a blank and a value");
    expect_error(LINE("EXPECT "), 7, "a blank and a value");
    expect_error(LINE("END k"), 5, "the end of the line");
    expect_error(LINE("SLEEP"), 6, sleep);
    expect_error(LINE("SLEEP -1"), 7, sleep);
    expect_error(LINE("SLEEP 1s"), 7, sleep);
    expect_error(LINE("SLEEP 1 2"), 9, "the end of the line");
    expect_error(LINE("REPEAT ten"), 8, repeat);
    expect_error(LINE("REPEAT 99999999999999999999999999"), 8, repeat);
}

Test(statement, numbers_at_their_limits_and_past_them)
{
    cr_assert_eq(expect_line(LINE("SLEEP 0"), MODEL_LINE_SLEEP).number, 0);
    cr_assert_eq(expect_line(LINE("SLEEP 3600000"), MODEL_LINE_SLEEP).number,
                 MODEL_STATEMENT_SLEEP_MS_MAX);
    (void)expect_line(LINE("SLEEP 3600001"), MODEL_LINE_ERROR);
    cr_assert_eq(expect_line(LINE("REPEAT 1"), MODEL_LINE_REPEAT).number, 1);
    cr_assert_eq(expect_line(LINE("REPEAT 100000000"), MODEL_LINE_REPEAT).number,
                 MODEL_STATEMENT_ROUNDS_MAX);
    (void)expect_line(LINE("REPEAT 0"), MODEL_LINE_ERROR);
    (void)expect_line(LINE("REPEAT 100000001"), MODEL_LINE_ERROR);
}

Test(statement, blanks_of_an_expansion_belong_to_the_key)
{
    struct model_statement statement;

    expect_statement(LINE("GET k${rand 1 2}:${zipf \t 9}x "), MODEL_STATEMENT_GET,
                     "k${rand 1 2}:${zipf \t 9}x", "");
    expect_statement(LINE("SET ${i} ${i}"), MODEL_STATEMENT_SET, "${i}", "${i}");
    statement = expect_line(LINE("SET a$ b$c{${i}}"), MODEL_LINE_STATEMENT);
    cr_assert(statement.has_expansions);
    cr_assert_eq(statement.round_column, 12);
    statement = expect_line(LINE("SET a${$}{i} b$c{}$"), MODEL_LINE_STATEMENT);
    cr_assert(statement.has_expansions);
    cr_assert_eq(statement.round_column, 0);
    statement = expect_line(LINE("SET a$b c$ {i}$"), MODEL_LINE_STATEMENT);
    cr_assert_not(statement.has_expansions);
}

Test(statement, unknown_expansions_have_a_column)
{
    static const char any[] = "${i}, ${rand a b}, ${zipf n}, or ${$} for a dollar sign";

    expect_error(LINE("GET k${j}"), 6, any);
    expect_error(LINE("SET k${i} v ${ i}"), 13, any);
    expect_error(LINE("  SET k v${}"), 10, any);
    expect_error(LINE("GET k${i"), 6,
                 "a closing brace within 64 bytes from \"${\"; ${$} is a dollar sign");
}

Test(statement, classic_refuses_extensions_by_name)
{
    dialect = MODEL_DIALECT_CLASSIC;
    expect_error(LINE("READ k"), 1,
                 "GET, SET or STORE; READ is an extension, off in the classic profile");
    expect_error(LINE(" put k v"), 2,
                 "GET, SET or STORE; PUT is an extension, off in the classic profile");
    expect_error(LINE("DEL k"), 1,
                 "GET, SET or STORE; DEL is an extension, off in the classic profile");
    expect_error(LINE("SLEEP"), 1,
                 "GET, SET or STORE; SLEEP is an extension, off in the classic profile");
    expect_error(LINE("REPEAT 2"), 1,
                 "GET, SET or STORE; REPEAT is an extension, off in the classic profile");
    expect_error(LINE("END"), 1,
                 "GET, SET or STORE; END is an extension, off in the classic profile");
    expect_error(LINE("EXPECT v"), 1,
                 "GET, SET or STORE; EXPECT is an extension, off in the classic profile");
    expect_error(LINE("SET k v${i}"), 8, "no ${i}; it is an extension, off in the classic profile");
    expect_error(LINE("SET k${rand 1 2} v"), 6,
                 "no ${rand a b}; it is an extension, off in the classic profile");
    expect_error(LINE("SET k ${}${zipf 5}"), 10,
                 "no ${zipf n}; it is an extension, off in the classic profile");
}

Test(statement, what_is_no_expansion_is_text_without_the_extensions)
{
    static const enum model_dialect without[] = {MODEL_DIALECT_CLASSIC, MODEL_DIALECT_PLAIN};

    for (size_t i = 0; i < RT_ARRAY_SIZE(without); i++) {
        dialect = without[i];
        expect_statement(LINE("SET k$ ${HOME} $1 ${"), MODEL_STATEMENT_SET, "k$", "${HOME} $1 ${");
    }
    expect_statement(LINE("SET k${i} ${rand 1 2}"), MODEL_STATEMENT_SET, "k${i}", "${rand 1 2}");
}

/* ---- limits ---------------------------------------------------------------------------------- */

Test(statement, key_length_is_not_judged_here)
{
    char line[4 + MODEL_KEY_MAX + 2] = "GET ";
    struct model_statement statement;
    struct model_statement_error error;

    memset(line + 4, 'k', MODEL_KEY_MAX + 1);
    cr_assert_eq(model_statement_parse(rt_bytes_of(line, 4 + MODEL_KEY_MAX + 1), dialect,
                                       &statement, &error),
                 MODEL_LINE_STATEMENT);
    cr_assert_eq(statement.key.size, MODEL_KEY_MAX + 1);
}

Test(statement, line_limit_and_limit_plus_one)
{
    size_t size = MODEL_STATEMENT_SIZE_MAX;
    char *line = malloc(size + 4);
    struct model_statement statement;
    struct model_statement_error error;

    memset(line, 'v', size + 4);
    memcpy(line, "  SET k ", 8);
    cr_assert_eq(model_statement_parse(rt_bytes_of(line, size + 2), dialect, &statement, &error),
                 MODEL_LINE_STATEMENT);
    cr_assert_eq(statement.value.size, size - 6);
    cr_assert_geq(statement.value.size, MODEL_VALUE_MAX);
    cr_assert_eq(model_statement_parse(rt_bytes_of(line, size + 3), dialect, &statement, &error),
                 MODEL_LINE_ERROR);
    cr_assert_eq(error.column, size + 3);
    cr_assert_not_null(strstr(error.expected, "1048847"));

    /* Only statements have a limit. */
    memset(line, ' ', size + 4);
    expect_empty(rt_bytes_of(line, size + 4));
    line[0] = '#';
    line[size + 3] = 'x';
    expect_empty(rt_bytes_of(line, size + 4));
    free(line);
}
