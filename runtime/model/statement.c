/*
 * Statement parser: see statement.h. Invariant: `at` only moves forward inside the trimmed line.
 * Pure.
 */
#include "runtime/model/statement.h"

#include "runtime/model/template.h"

#define TEXT_OF_(number) #number
#define TEXT_OF(number)  TEXT_OF_(number)

#define SIZE_MAX_TEXT   1048847
#define SLEEP_MAX_TEXT  3600000
#define ROUNDS_MAX_TEXT 100000000

_Static_assert(MODEL_STATEMENT_SIZE_MAX == SIZE_MAX_TEXT, "the text names the limit");
_Static_assert(MODEL_STATEMENT_SLEEP_MS_MAX == SLEEP_MAX_TEXT, "the text names the limit");
_Static_assert(MODEL_STATEMENT_ROUNDS_MAX == ROUNDS_MAX_TEXT, "the text names the limit");

#define OFF_IN_CLASSIC(what) what " is an extension, off in the classic profile"

enum shape {
    SHAPE_KEY,
    SHAPE_KEY_VALUE,
    SHAPE_VALUE,
    SHAPE_NUMBER,
    SHAPE_WORD,
};

struct keyword {
    const char *word;
    const char *off; /* what classic says; NULL = it has the word */
    enum model_line line;
    enum shape shape;
    enum model_statement_kind kind;
    uint64_t min; /* NUMBER */
    uint64_t max;
    const char *expected; /* NUMBER: the range */
};

#define CLASSIC_EXPECTED "GET, SET or STORE"
#define OFF(word)        CLASSIC_EXPECTED "; " OFF_IN_CLASSIC(word)

static const struct keyword keywords[] = {
    {.word = "GET", .line = MODEL_LINE_STATEMENT, .kind = MODEL_STATEMENT_GET},
    {.word = "SET",
     .line = MODEL_LINE_STATEMENT,
     .shape = SHAPE_KEY_VALUE,
     .kind = MODEL_STATEMENT_SET},
    {.word = "STORE", .line = MODEL_LINE_STATEMENT, .kind = MODEL_STATEMENT_STORE},
    {.word = "READ",
     .off = OFF("READ"),
     .line = MODEL_LINE_STATEMENT,
     .kind = MODEL_STATEMENT_READ},
    {.word = "PUT",
     .off = OFF("PUT"),
     .line = MODEL_LINE_STATEMENT,
     .shape = SHAPE_KEY_VALUE,
     .kind = MODEL_STATEMENT_PUT},
    {.word = "DEL",
     .off = OFF("DEL"),
     .line = MODEL_LINE_STATEMENT,
     .kind = MODEL_STATEMENT_DELETE},
    {.word = "EXPECT", .off = OFF("EXPECT"), .line = MODEL_LINE_EXPECT, .shape = SHAPE_VALUE},
    {.word = "SLEEP",
     .off = OFF("SLEEP"),
     .line = MODEL_LINE_SLEEP,
     .shape = SHAPE_NUMBER,
     .min = 0,
     .max = MODEL_STATEMENT_SLEEP_MS_MAX,
     .expected = "a blank and a number of milliseconds from 0 to " TEXT_OF(SLEEP_MAX_TEXT)},
    {.word = "REPEAT",
     .off = OFF("REPEAT"),
     .line = MODEL_LINE_REPEAT,
     .shape = SHAPE_NUMBER,
     .min = 1,
     .max = MODEL_STATEMENT_ROUNDS_MAX,
     .expected = "a blank and a number of rounds from 1 to " TEXT_OF(ROUNDS_MAX_TEXT)},
    {.word = "END", .off = OFF("END"), .line = MODEL_LINE_END, .shape = SHAPE_WORD},
};

struct cursor {
    enum model_dialect dialect;
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
    struct cursor cursor = {.line = line.data, .at = line.data, .end = line.data + line.size};

    if (cursor.at < cursor.end && cursor.end[-1] == '\r')
        cursor.end--;
    while (cursor.at < cursor.end && is_blank(*cursor.at))
        cursor.at++;
    while (cursor.at < cursor.end && is_blank(cursor.end[-1]))
        cursor.end--;
    return cursor;
}

static struct rt_bytes rest_of(const struct cursor *cursor)
{
    return rt_bytes_of(cursor->at, (size_t)(cursor->end - cursor->at));
}

static struct rt_bytes take_word(struct cursor *cursor)
{
    const uint8_t *start = cursor->at;

    while (cursor->at < cursor->end && !is_blank(*cursor->at))
        cursor->at++;
    return rt_bytes_of(start, (size_t)(cursor->at - start));
}

/* A word whose expansions may have blanks in them. One without its brace ends with the line. */
static struct rt_bytes take_key(struct cursor *cursor)
{
    const uint8_t *start = cursor->at;

    if (cursor->dialect != MODEL_DIALECT_EXTENDED)
        return take_word(cursor);
    while (cursor->at < cursor->end && !is_blank(*cursor->at)) {
        struct rt_bytes rest = rest_of(cursor);
        const uint8_t *brace;

        if (rest.size < 2 || rest.data[0] != '$' || rest.data[1] != '{') {
            cursor->at++;
            continue;
        }
        brace = memchr(rest.data, '}',
                       rest.size < MODEL_TEMPLATE_EXPANSION_MAX ? rest.size
                                                                : MODEL_TEMPLATE_EXPANSION_MAX);
        cursor->at = brace ? brace + 1 : cursor->end;
    }
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

static const struct keyword *find_keyword(struct rt_bytes word)
{
    for (size_t i = 0; i < RT_ARRAY_SIZE(keywords); i++)
        if (is_keyword(word, keywords[i].word))
            return &keywords[i];
    return NULL;
}

/* ---- expansions ------------------------------------------------------------------------------ */

static const char *off_expansion(const struct model_part *part)
{
    switch (part->kind) {
    case MODEL_PART_TEXT:
        return "no ${$}; " OFF_IN_CLASSIC("it");
    case MODEL_PART_ROUND:
        return "no ${i}; " OFF_IN_CLASSIC("it");
    case MODEL_PART_RANDOM:
        return "no ${rand a b}; " OFF_IN_CLASSIC("it");
    case MODEL_PART_ZIPF:
        return "no ${zipf n}; " OFF_IN_CLASSIC("it");
    }
    return "";
}

/* Whoever writes an expansion here means one; anything else is the text that it always was. */
static bool refuse_expansions(const struct cursor *cursor, struct rt_bytes text,
                              struct model_statement_error *ret_error)
{
    const uint8_t *end = text.data + text.size;
    const uint8_t *at = text.data;

    while ((at = model_template_find(rt_bytes_of(at, (size_t)(end - at)))) < end) {
        struct rt_bytes rest = rt_bytes_of(at, (size_t)(end - at));
        struct model_template_error ignored;
        struct model_part part;

        if (model_template_next(&rest, &part, &ignored)) {
            (void)fail(cursor, at, off_expansion(&part), ret_error);
            return false;
        }
        at += 2;
    }
    return true;
}

static bool check_expansions(const struct cursor *cursor, struct rt_bytes text,
                             struct model_statement *statement,
                             struct model_statement_error *ret_error)
{
    struct rt_bytes rest = text;

    if (text.size == 0 || model_template_find(text) == text.data + text.size)
        return true;
    statement->has_expansions = true;
    while (rest.size > 0) {
        const uint8_t *at = rest.data;
        struct model_template_error error;
        struct model_part part;

        if (!model_template_next(&rest, &part, &error)) {
            (void)fail(cursor, error.at, error.expected, ret_error);
            return false;
        }
        if (part.kind == MODEL_PART_ROUND && statement->round_column == 0)
            statement->round_column = (size_t)(at - cursor->line) + 1;
    }
    return true;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static enum model_line expect_end(struct cursor *cursor, enum model_line line,
                                  struct model_statement_error *ret_error)
{
    skip_blanks(cursor);
    if (cursor->at != cursor->end)
        return fail(cursor, cursor->at, "the end of the line", ret_error);
    return line;
}

static enum model_line parse_number(struct cursor *cursor, const struct keyword *keyword,
                                    struct model_statement *statement,
                                    struct model_statement_error *ret_error)
{
    const uint8_t *start;

    skip_blanks(cursor);
    start = cursor->at;
    if (!model_template_parse_number(take_word(cursor), keyword->max, &statement->number) ||
        statement->number < keyword->min)
        return fail(cursor, start, keyword->expected, ret_error);
    return expect_end(cursor, keyword->line, ret_error);
}

/* At the blank before it. */
static enum model_line parse_value(struct cursor *cursor, const struct keyword *keyword,
                                   struct model_statement *statement,
                                   struct model_statement_error *ret_error)
{
    if (cursor->at == cursor->end)
        return fail(cursor, cursor->at, "a blank and a value", ret_error);
    cursor->at++;
    statement->value = rest_of(cursor);
    return keyword->line;
}

static enum model_line parse_key(struct cursor *cursor, const struct keyword *keyword,
                                 struct model_statement *statement,
                                 struct model_statement_error *ret_error)
{
    skip_blanks(cursor);
    if (cursor->at == cursor->end)
        return fail(cursor, cursor->at, "a blank and a key", ret_error);
    statement->key = take_key(cursor);
    if (keyword->shape == SHAPE_KEY_VALUE)
        return parse_value(cursor, keyword, statement, ret_error);
    return expect_end(cursor, keyword->line, ret_error);
}

static enum model_line parse_shape(struct cursor *cursor, const struct keyword *keyword,
                                   struct model_statement *statement,
                                   struct model_statement_error *ret_error)
{
    switch (keyword->shape) {
    case SHAPE_KEY:
    case SHAPE_KEY_VALUE:
        return parse_key(cursor, keyword, statement, ret_error);
    case SHAPE_VALUE:
        return parse_value(cursor, keyword, statement, ret_error);
    case SHAPE_NUMBER:
        return parse_number(cursor, keyword, statement, ret_error);
    case SHAPE_WORD:
        return expect_end(cursor, keyword->line, ret_error);
    }
    return MODEL_LINE_ERROR;
}

static enum model_line parse_statement(struct cursor *cursor, struct model_statement *ret_statement,
                                       struct model_statement_error *ret_error)
{
    bool is_extended = cursor->dialect == MODEL_DIALECT_EXTENDED;
    const uint8_t *start = cursor->at;
    const struct keyword *keyword = find_keyword(take_word(cursor));
    struct rt_bytes operands = rest_of(cursor);
    struct model_statement statement = {0};
    enum model_line line;

    if (!keyword && is_extended)
        return fail(cursor, start,
                    CLASSIC_EXPECTED ", or READ, PUT, DEL, EXPECT, SLEEP, REPEAT, END", ret_error);
    if (!keyword || (keyword->off && cursor->dialect == MODEL_DIALECT_PLAIN))
        return fail(cursor, start, CLASSIC_EXPECTED, ret_error);
    if (keyword->off && !is_extended)
        return fail(cursor, start, keyword->off, ret_error);

    statement.kind = keyword->kind;
    statement.column = (size_t)(start - cursor->line) + 1;
    line = parse_shape(cursor, keyword, &statement, ret_error);
    if (line == MODEL_LINE_ERROR)
        return line;
    if (cursor->dialect == MODEL_DIALECT_CLASSIC && !refuse_expansions(cursor, operands, ret_error))
        return MODEL_LINE_ERROR;
    if (is_extended && (!check_expansions(cursor, statement.key, &statement, ret_error) ||
                        !check_expansions(cursor, statement.value, &statement, ret_error)))
        return MODEL_LINE_ERROR;
    *ret_statement = statement;
    return line;
}

enum model_line model_statement_parse(struct rt_bytes line, enum model_dialect dialect,
                                      struct model_statement *ret_statement,
                                      struct model_statement_error *ret_error)
{
    struct cursor cursor;
    const uint8_t *nul;

    if (line.size == 0)
        return MODEL_LINE_EMPTY;
    cursor = trim(line);
    cursor.dialect = dialect;
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
