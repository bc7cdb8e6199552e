/*
 * Lines of the shell: every statement and word, what is no line, completion.
 */
#include "cli/shell_line.h"

#include "runtime/base/alloc.h"
#include "tests/support/check.h"

TestSuite(shell_line, .fini = test_alloc_expect_none);

static void expect_statement(const char *text, bool is_escaped, enum model_statement_kind kind,
                             struct rt_bytes key, struct rt_bytes value)
{
    struct cli_shell_line line = {0};
    struct rt_error err = RT_ERROR_INIT;

    cr_assert_eq(cli_shell_line_parse(&line, rt_bytes_of_string(text), is_escaped, &err), RT_OK,
                 "%s: %s", text, err.message);
    cr_assert_eq(line.kind, CLI_SHELL_LINE_STATEMENT, "%s", text);
    cr_assert_eq(line.statement, kind, "%s", text);
    cr_assert(rt_bytes_equal(line.key, key), "%s", text);
    cr_assert(rt_bytes_equal(line.value, value), "%s", text);
    cli_shell_line_deinit(&line);
}

static void expect_word(const char *text, enum cli_shell_line_kind kind)
{
    struct cli_shell_line line = {0};

    cr_assert_eq(cli_shell_line_parse(&line, rt_bytes_of_string(text), false, NULL), RT_OK, "%s",
                 text);
    cr_assert_eq(line.kind, kind, "%s", text);
    cli_shell_line_deinit(&line);
}

static void expect_refused(struct rt_bytes text, bool is_escaped, const char *said)
{
    struct cli_shell_line line = {0};
    struct rt_error err = RT_ERROR_INIT;

    cr_assert_eq(cli_shell_line_parse(&line, text, is_escaped, &err), RT_INVALID_ARGUMENT);
    cr_assert_str_eq(err.message, said);
    cli_shell_line_deinit(&line);
}

#define KEY     RT_BYTES_LITERAL("k")
#define NOTHING ((struct rt_bytes){0})

Test(shell_line, statements)
{
    expect_statement("GET k", false, MODEL_STATEMENT_GET, KEY, NOTHING);
    expect_statement(" \tset  k  a b\t\r", false, MODEL_STATEMENT_SET, KEY,
                     RT_BYTES_LITERAL(" a b"));
    expect_statement("Store k", false, MODEL_STATEMENT_STORE, KEY, NOTHING);
    expect_statement("READ k", false, MODEL_STATEMENT_READ, KEY, NOTHING);
    expect_statement("put k v", false, MODEL_STATEMENT_PUT, KEY, RT_BYTES_LITERAL("v"));
    expect_statement("PUT k \\x00", false, MODEL_STATEMENT_PUT, KEY, RT_BYTES_LITERAL("\\x00"));
    expect_statement("del k", false, MODEL_STATEMENT_DELETE, KEY, NOTHING);
}

Test(shell_line, escapes)
{
    expect_statement("PUT a\\x20b\\x00 \\\\\\x0a", true, MODEL_STATEMENT_PUT,
                     RT_BYTES_LITERAL("a b\0"), RT_BYTES_LITERAL("\\\n"));
    expect_refused(RT_BYTES_LITERAL("GET a\\"), true,
                   "in the key: the backslash at byte 2 begins neither \\\\ nor \\xNN");
    expect_refused(RT_BYTES_LITERAL("SET a b\\q"), true,
                   "in the value: the backslash at byte 2 begins neither \\\\ nor \\xNN");
}

Test(shell_line, words)
{
    expect_word("", CLI_SHELL_LINE_EMPTY);
    expect_word(" \t\r", CLI_SHELL_LINE_EMPTY);
    expect_word(" # GET k", CLI_SHELL_LINE_EMPTY);
    expect_word("session", CLI_SHELL_LINE_SESSION);
    expect_word(" HELP ", CLI_SHELL_LINE_HELP);
    expect_word("quit\r", CLI_SHELL_LINE_QUIT);
}

Test(shell_line, says_what_it_expected)
{
    const char *words = "at column 2: expected GET, SET, STORE, READ, PUT, DEL, session, help or "
                        "quit";

    expect_refused(RT_BYTES_LITERAL(" GETS k"), false, words);
    expect_refused(RT_BYTES_LITERAL(" AWAIT k"), false, words);
    expect_refused(RT_BYTES_LITERAL(" READ"), false, "at column 6: expected a blank and a key");
    expect_refused(RT_BYTES_LITERAL(" DEL k x"), false,
                   "at column 8: expected the end of the line");
    expect_refused(RT_BYTES_LITERAL("PUT k"), false, "at column 6: expected a blank and a value");
    expect_refused(RT_BYTES_LITERAL("READ a\0b"), false, "at column 7: expected no NUL byte");
    expect_refused(RT_BYTES_LITERAL("quit now"), false,
                   "at column 6: expected the end of the line");
}

Test(shell_line, longest_statement)
{
    struct rt_buffer text = {0};
    struct cli_shell_line line = {0};
    struct rt_error err = RT_ERROR_INIT;

    rt_buffer_append_string(&text, "PUT k ");
    while (text.size < MODEL_STATEMENT_SIZE_MAX)
        rt_buffer_append_byte(&text, 'v');
    cr_assert_eq(cli_shell_line_parse(&line, rt_buffer_bytes(&text), false, &err), RT_OK);
    cr_assert_eq(line.value.size, MODEL_STATEMENT_SIZE_MAX - strlen("PUT k "));
    rt_buffer_append_byte(&text, 'v');
    cr_assert_eq(cli_shell_line_parse(&line, rt_buffer_bytes(&text), false, &err),
                 RT_INVALID_ARGUMENT);
    cli_shell_line_deinit(&line);
    rt_buffer_deinit(&text);
}

/* ---- completion ------------------------------------------------------------------------------ */

static void append_word(const char *word, void *ctx)
{
    rt_buffer_printf(ctx, "%s ", word);
}

static void expect_completions(const char *beginning, const char *words)
{
    struct rt_buffer found = {0};

    cli_shell_line_complete(rt_bytes_of_string(beginning), append_word, &found);
    cr_assert_str_eq(rt_buffer_string(&found), words);
    rt_buffer_deinit(&found);
}

Test(shell_line, completion)
{
    expect_completions("", "GET SET STORE READ PUT DEL session help quit ");
    expect_completions("s", "SET STORE session ");
    expect_completions(" Ses", "session ");
    expect_completions("GET", "GET ");
    expect_completions("GETS", "");
    expect_completions("GET k", "");
}
