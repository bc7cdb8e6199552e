/*
 * A whole ESI script: text in, steps or every error out. The language is that of
 * runtime/model/statement.h; lines end with a newline, the last one may lack it. REPEAT and END
 * enclose at least one statement, and ${i} stands between them. A script is not unrolled: what its
 * steps come to, one statement after the other, is cursor.h's to say.
 *
 * A script owns a copy of its text, and its steps point into it. Pure, re-entrant.
 */
#ifndef ESI_SCRIPT_H
#define ESI_SCRIPT_H

#include "esi-client/session.h"
#include "runtime/base/buffer.h"
#include "runtime/model/statement.h"

enum {
    ESI_SCRIPT_SIZE_MAX = 16 * 1024 * 1024,             /* bytes */
    ESI_SCRIPT_STEPS_MAX = 1000000,                     /* lines that are not empty */
    ESI_SCRIPT_EXECUTED_MAX = 100000000,                /* statements, all rounds counted */
    ESI_SCRIPT_DEPTH_MAX = 16,                          /* REPEATs within each other */
    ESI_SCRIPT_EXPANDED_MAX = MODEL_STATEMENT_SIZE_MAX, /* bytes of key and value, expanded */
    ESI_SCRIPT_NAME_MAX = 255,                          /* bytes that are kept of a longer name */
    ESI_SCRIPT_ERRORS_MAX = 100,                        /* that are kept; the rest is counted */
    ESI_SCRIPT_QUOTE_MAX = 72, /* bytes of a line around an error that are kept */
};

enum esi_step_kind {
    ESI_STEP_STATEMENT,
    ESI_STEP_REPEAT,
    ESI_STEP_END,
};

struct esi_step {
    enum esi_step_kind kind;
    bool has_expansions;
    uint32_t partner;               /* of REPEAT its END, of END its REPEAT: an index */
    uint32_t rounds;                /* REPEAT */
    struct esi_statement statement; /* of all kinds the line; key and value are not expanded */
};

struct esi_script {
    char name[ESI_SCRIPT_NAME_MAX + 1]; /* file name or what the caller calls it */
    struct esi_step *steps;             /* owned */
    size_t n_steps;
    size_t n_statements; /* of the steps */
    uint64_t n_executed; /* statements of a run that succeeds */
    size_t expanded_max; /* bytes that key and value of a step may expand to, together */
    bool is_random;      /* has ${rand} or ${zipf} */
    bool has_expect;
    char *text; /* owned */
};

struct esi_script_error {
    uint32_t line;        /* from 1 */
    size_t column;        /* from 1, in bytes */
    const char *expected; /* static */
    uint8_t quote[ESI_SCRIPT_QUOTE_MAX];
    size_t quote_size;
    size_t quote_at; /* where in the quote the error is; quote_size = just behind it */
    bool cut_before; /* the line began before the quote */
    bool cut_behind; /* the line goes on behind the quote */
};

struct esi_script_errors {
    struct esi_script_error items[ESI_SCRIPT_ERRORS_MAX];
    size_t n_items;
    size_t n_errors; /* in all */
};

/* INVALID_ARGUMENT: errors in the text, all collected in `ret_errors` (written in every case);
 * RESOURCE_EXHAUSTED: a limit, or no memory, and then there are none. */
RT_MUST_USE enum rt_code esi_script_parse(const char *name, struct rt_bytes text,
                                          enum model_dialect dialect,
                                          struct esi_script **ret_script,
                                          struct esi_script_errors *ret_errors,
                                          struct rt_error *err);

/* Accepts NULL, returns NULL. */
struct esi_script *esi_script_free(struct esi_script *script);

/* "name:line:column: expected …", the line quoted and escaped, and a caret below the place. */
void esi_script_error_format(const char *name, const struct esi_script_error *error,
                             struct rt_buffer *buffer);

/* All of them, and how many more there were. */
void esi_script_errors_format(const char *name, const struct esi_script_errors *errors,
                              struct rt_buffer *buffer);

#endif
