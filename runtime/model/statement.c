/*
 * Statement parser: see statement.h. Invariant: `at` only moves forward inside the trimmed line.
 * Pure.
 */
#include "runtime/model/statement.h"

#define TEXT_OF_(number) #number
#define TEXT_OF(number)  TEXT_OF_(number)

#define SIZE_MAX_TEXT 1048847

_Static_assert(MODEL_STATEMENT_SIZE_MAX == SIZE_MAX_TEXT, "the text names the limit");

struct cursor {
    const uint8_t *line; /* where columns are counted from */
    const uint8_t *at;
    const uint8_t *end;
};

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

static enum model_line fail(const struct cursor *cursor, const uint8_t *at, const char *expected,
                            struct model_statement_error *ret_error)
{
    ret_error->column = (size_t)(at - cursor->line) + 1;
    ret_error->expected = expected;
    return MODEL_LINE_ERROR;
}

static struct cursor trim(struct rt_bytes line)
{
    struct cursor cursor = {line.data, line.data, line.data + line.size};

    if (cursor.at < cursor.end && cursor.end[-1] == '\r')
        cursor.end--;
    while (cursor.at < cursor.end && is_blank(*cursor.at))
        cursor.at++;
    while (cursor.at < cursor.end && is_blank(cursor.end[-1]))
        cursor.end--;
    return cursor;
}

static struct rt_bytes take_word(struct cursor *cursor)
{
    const uint8_t *start = cursor->at;

    while (cursor->at < cursor->end && !is_blank(*cursor->at))
        cursor->at++;
    return rt_bytes_of(start, (size_t)(cursor->at - start));
}

static void skip_blanks(struct cursor *cursor)
{
    while (cursor->at < cursor->end && is_blank(*cursor->at))
        cursor->at++;
}

/* ASCII only, whatever the locale. */
static bool is_keyword(struct rt_bytes word, const char *keyword)
{
    if (word.size != strlen(keyword))
        return false;
    for (size_t i = 0; i < word.size; i++) {
        uint8_t upper = word.data[i] >= 'a' && word.data[i] <= 'z'
                            ? (uint8_t)(word.data[i] - 'a' + 'A')
                            : word.data[i];

        if (upper != (uint8_t)keyword[i])
            return false;
    }
    return true;
}

static bool find_kind(struct rt_bytes word, enum model_statement_kind *ret_kind)
{
    static const enum model_statement_kind kinds[] = {MODEL_STATEMENT_GET, MODEL_STATEMENT_SET,
                                                      MODEL_STATEMENT_STORE};

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++)
        if (is_keyword(word, model_statement_kind_name(kinds[i]))) {
            *ret_kind = kinds[i];
            return true;
        }
    return false;
}

static enum model_line parse_statement(struct cursor *cursor, struct model_statement *ret_statement,
                                       struct model_statement_error *ret_error)
{
    struct model_statement statement = {0};
    const uint8_t *start = cursor->at;

    if (!find_kind(take_word(cursor), &statement.kind))
        return fail(cursor, start, "GET, SET or STORE", ret_error);
    skip_blanks(cursor);
    if (cursor->at == cursor->end)
        return fail(cursor, cursor->at, "a blank and a key", ret_error);
    statement.key = take_word(cursor);

    if (statement.kind != MODEL_STATEMENT_SET) {
        skip_blanks(cursor);
        if (cursor->at != cursor->end)
            return fail(cursor, cursor->at, "the end of the line", ret_error);
    } else if (cursor->at == cursor->end) {
        return fail(cursor, cursor->at, "a blank and a value", ret_error);
    } else {
        statement.value = rt_bytes_of(cursor->at + 1, (size_t)(cursor->end - cursor->at) - 1);
    }
    *ret_statement = statement;
    return MODEL_LINE_STATEMENT;
}

enum model_line model_statement_parse(struct rt_bytes line, struct model_statement *ret_statement,
                                      struct model_statement_error *ret_error)
{
    struct cursor cursor;
    const uint8_t *nul;

    if (line.size == 0)
        return MODEL_LINE_EMPTY;
    cursor = trim(line);
    nul = memchr(line.data, '\0', line.size);
    if (nul)
        return fail(&cursor, nul, "no NUL byte", ret_error);
    if (cursor.at == cursor.end || *cursor.at == '#')
        return MODEL_LINE_EMPTY;
    if (cursor.end - cursor.at > MODEL_STATEMENT_SIZE_MAX)
        return fail(&cursor, cursor.at + MODEL_STATEMENT_SIZE_MAX,
                    "the end of the line: a statement has at most " TEXT_OF(SIZE_MAX_TEXT) " bytes",
                    ret_error);
    return parse_statement(&cursor, ret_statement, ret_error);
}
