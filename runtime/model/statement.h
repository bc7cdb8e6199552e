/*
 * The statement language, one line at a time:
 *
 *   GET key | SET key value… | STORE key
 *
 * Keywords in any case; space and tab are blanks, any run of them between keyword and key; blanks
 * around the line and one carriage return at its end do not count. A value is everything after the
 * one blank that follows the key. Lines without a statement (blank, or beginning with '#') are
 * skipped. Bytes, not characters: whatever is no blank is part of a key, and only NUL is refused.
 * How long keys and values may be is not the language's business, how long a line may be is.
 *
 * Pure, re-entrant, allocates nothing.
 */
#ifndef MODEL_STATEMENT_H
#define MODEL_STATEMENT_H

#include "runtime/model/message.h"

enum {
    /* Bytes of one statement, blanks around it aside: the largest value, the longest key, and room
     * for the keyword and blanks. */
    MODEL_STATEMENT_SIZE_MAX = MODEL_VALUE_MAX + MODEL_KEY_MAX + 16
};

struct model_statement {
    enum model_statement_kind kind; /* GET, SET or STORE */
    struct rt_bytes key;            /* views into the line */
    struct rt_bytes value;
};

struct model_statement_error {
    size_t column;        /* from 1, in bytes of the line as given */
    const char *expected; /* static: "a key", "the end of the line" */
};

enum model_line {
    MODEL_LINE_EMPTY,
    MODEL_LINE_STATEMENT, /* *ret_statement is set */
    MODEL_LINE_ERROR,     /* *ret_error is set */
};

/* `line` without its newline. */
enum model_line model_statement_parse(struct rt_bytes line, struct model_statement *ret_statement,
                                      struct model_statement_error *ret_error);

#endif
