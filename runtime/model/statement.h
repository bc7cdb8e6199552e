/*
 * The statement language, one line at a time:
 *
 *   GET key | SET key value… | STORE key
 *
 * and its extensions:
 *
 *   READ key | PUT key value… | DEL key | EXPECT value… | SLEEP ms | REPEAT n | END
 *
 * Keywords in any case; space and tab are blanks, any run of them between keyword and key; blanks
 * around the line and one carriage return at its end do not count. A value is everything after the
 * one blank that follows the key, or EXPECT. Lines without a statement (blank, or beginning with
 * '#') are skipped. Bytes, not characters: whatever is no blank is part of a key, and only NUL is
 * refused. With the extensions keys and values are templates (template.h); blanks between the
 * braces of "${…}" belong to the key. How long keys and values may be is not the language's
 * business, how long a line may be is.
 *
 * Pure, re-entrant, allocates nothing.
 */
#ifndef MODEL_STATEMENT_H
#define MODEL_STATEMENT_H

#include "runtime/model/message.h"

enum {
    /* Bytes of one statement, blanks around it aside: the largest value, the longest key, and room
     * for the keyword and blanks. */
    MODEL_STATEMENT_SIZE_MAX = MODEL_VALUE_MAX + MODEL_KEY_MAX + 16,
    MODEL_STATEMENT_SLEEP_MS_MAX = 60 * 60 * 1000,
    MODEL_STATEMENT_ROUNDS_MAX = 100 * 1000 * 1000, /* of one REPEAT */
};

enum model_dialect {
    MODEL_DIALECT_EXTENDED,
    MODEL_DIALECT_CLASSIC, /* without the extensions, which are refused by their names */
    MODEL_DIALECT_PLAIN,   /* without; what looks like an expansion is text */
};

struct model_statement {
    enum model_statement_kind kind; /* of a STATEMENT: GET, SET, STORE, READ, PUT or DELETE */
    struct rt_bytes key;            /* views into the line, not expanded */
    struct rt_bytes value;          /* of an EXPECT too */
    uint64_t number;                /* SLEEP: milliseconds; REPEAT: rounds */
    bool has_expansions;            /* key or value has "${" in it */
    size_t column;                  /* of the keyword, from 1 */
    size_t round_column;            /* of the first ${i}, 0 = none */
};

struct model_statement_error {
    size_t column;        /* from 1, in bytes of the line as given */
    const char *expected; /* static: "a key", "the end of the line" */
};

enum model_line {
    MODEL_LINE_EMPTY,
    MODEL_LINE_STATEMENT, /* for these *ret_statement is set, */
    MODEL_LINE_EXPECT,
    MODEL_LINE_SLEEP,
    MODEL_LINE_REPEAT,
    MODEL_LINE_END,
    MODEL_LINE_ERROR, /* for this *ret_error */
};

/* `line` without its newline. */
enum model_line model_statement_parse(struct rt_bytes line, enum model_dialect dialect,
                                      struct model_statement *ret_statement,
                                      struct model_statement_error *ret_error);

#endif
