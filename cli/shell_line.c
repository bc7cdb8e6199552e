/*
 * Lines of the shell: see shell_line.h. Invariant: whatever takes a key is read by the parser of
 * scripts, so blanks, cases and values mean the same everywhere. Pure.
 */
#include "cli/shell_line.h"

#include <strings.h>

#include "cli/escape.h"

struct word {
    const char *name;
    enum cli_shell_line_kind kind;
    enum model_statement_kind statement;
    const char *like; /* statement of scripts with the same form; NULL: the word stands alone */
};

static const struct word words[] = {
    {"GET", CLI_SHELL_LINE_STATEMENT, MODEL_STATEMENT_GET, "GET"},
    {"SET", CLI_SHELL_LINE_STATEMENT, MODEL_STATEMENT_SET, "SET"},
    {"STORE", CLI_SHELL_LINE_STATEMENT, MODEL_STATEMENT_STORE, "STORE"},
    {"READ", CLI_SHELL_LINE_STATEMENT, MODEL_STATEMENT_READ, "GET"},
    {"PUT", CLI_SHELL_LINE_STATEMENT, MODEL_STATEMENT_PUT, "SET"},
    {"DEL", CLI_SHELL_LINE_STATEMENT, MODEL_STATEMENT_DELETE, "GET"},
    {.name = "session", .kind = CLI_SHELL_LINE_SESSION},
    {.name = "help", .kind = CLI_SHELL_LINE_HELP},
    {.name = "quit", .kind = CLI_SHELL_LINE_QUIT},
};

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

static size_t n_blanks(struct rt_bytes line)
{
    size_t n = 0;

    while (n < line.size && is_blank(line.data[n]))
        n++;
    return n;
}

static size_t n_of_word(struct rt_bytes line)
{
    size_t n = 0;

    while (n < line.size && !is_blank(line.data[n]))
        n++;
    return n;
}

static struct rt_bytes behind(struct rt_bytes line, size_t n)
{
    return rt_bytes_of(line.data + n, line.size - n);
}

static const struct word *find(struct rt_bytes text)
{
    for (size_t i = 0; i < RT_ARRAY_SIZE(words); i++)
        if (strlen(words[i].name) == text.size &&
            strncasecmp(words[i].name, (const char *)text.data, text.size) == 0)
            return &words[i];
    return NULL;
}

static enum rt_code refuse(size_t column, const char *expected, struct rt_error *err)
{
    return rt_fail(err, RT_INVALID_ARGUMENT, "at column %zu: expected %s", column, expected);
}

/* ---- statements ------------------------------------------------------------------------------ */

static enum rt_code unescape(struct rt_bytes *bytes, struct rt_buffer *buffer, const char *what,
                             struct rt_error *err)
{
    enum rt_code code;

    rt_buffer_reset(buffer);
    code = cli_escape_parse(*bytes, buffer, err);
    if (code == RT_OK)
        code = rt_buffer_check(buffer, err);
    if (code != RT_OK)
        return rt_wrap(err, "in the %s", what);
    *bytes = rt_buffer_bytes(buffer);
    return RT_OK;
}

/* The line with the word that it is like. */
static enum rt_code parse_like(struct cli_shell_line *result, const struct word *word,
                               struct rt_bytes rest, size_t n_before, struct rt_error *err)
{
    struct model_statement statement;
    struct model_statement_error error;
    size_t n_like = strlen(word->like);

    rt_buffer_reset(&result->text);
    rt_buffer_append_string(&result->text, word->like);
    rt_buffer_append(&result->text, rest);
    if (rt_buffer_check(&result->text, err) != RT_OK)
        return RT_RESOURCE_EXHAUSTED;
    if (model_statement_parse(rt_buffer_bytes(&result->text), MODEL_DIALECT_PLAIN, &statement,
                              &error) != MODEL_LINE_STATEMENT)
        return refuse(error.column - n_like + n_before, error.expected, err);
    result->key = statement.key;
    result->value = statement.value;
    return RT_OK;
}

static enum rt_code parse_statement(struct cli_shell_line *result, const struct word *word,
                                    struct rt_bytes rest, size_t n_before, bool is_escaped,
                                    struct rt_error *err)
{
    enum rt_code code = parse_like(result, word, rest, n_before, err);

    result->statement = word->statement;
    if (code == RT_OK && is_escaped)
        code = unescape(&result->key, &result->unescaped_key, "key", err);
    if (code == RT_OK && is_escaped)
        code = unescape(&result->value, &result->unescaped_value, "value", err);
    return code;
}

enum rt_code cli_shell_line_parse(struct cli_shell_line *result, struct rt_bytes line,
                                  bool is_escaped, struct rt_error *err)
{
    size_t n_before = n_blanks(line);
    size_t n_word = n_of_word(behind(line, n_before));
    struct rt_bytes text = rt_bytes_of(line.data + n_before, n_word);
    struct rt_bytes rest = behind(line, n_before + n_word);
    const struct word *word = find(text);

    result->kind = CLI_SHELL_LINE_EMPTY;
    if (n_word == 0 || text.data[0] == '#')
        return RT_OK;
    if (word == NULL)
        return refuse(n_before + 1, "GET, SET, STORE, READ, PUT, DEL, session, help or quit", err);
    result->kind = word->kind;
    if (word->kind == CLI_SHELL_LINE_STATEMENT)
        return parse_statement(result, word, rest, n_before + n_word, is_escaped, err);
    if (n_blanks(rest) < rest.size)
        return refuse(n_before + n_word + n_blanks(rest) + 1, "the end of the line", err);
    return RT_OK;
}

void cli_shell_line_deinit(struct cli_shell_line *line)
{
    rt_buffer_deinit(&line->text);
    rt_buffer_deinit(&line->unescaped_key);
    rt_buffer_deinit(&line->unescaped_value);
}

/* ---- completion ------------------------------------------------------------------------------ */

void cli_shell_line_complete(struct rt_bytes beginning, void (*add)(const char *word, void *ctx),
                             void *ctx)
{
    struct rt_bytes text = behind(beginning, n_blanks(beginning));

    for (size_t i = 0; i < RT_ARRAY_SIZE(words); i++)
        if (text.size <= strlen(words[i].name) &&
            strncasecmp(words[i].name, (const char *)text.data, text.size) == 0)
            add(words[i].name, ctx);
}
