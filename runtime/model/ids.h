/*
 * Identities. Epochs, incarnations and lock tokens are numbers of one durable counter of the
 * coordinator, with the generation (raised by an operator's restore) in the top 16 bits: they are
 * comparable with each other and never reused. Source: design "Identities".
 */
#ifndef MODEL_IDS_H
#define MODEL_IDS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "runtime/base/bytes.h"
#include "runtime/base/error.h"
#include "runtime/model/limits.h"

enum {
    MODEL_GENERATION_SHIFT = 48
};

/* Cluster, store, boot, client and session ids. All zero means "none". */
struct model_id {
    uint8_t bytes[16];
};

/* A retried request carries the same id and has one effect. seq >= 1; 0 means "no id". */
struct model_request_id {
    struct model_id client;
    uint64_t seq;
};

/* Compared in the order of the fields, everywhere. */
struct model_version {
    uint64_t epoch;
    uint64_t incarnation;
    uint64_t seq;
};

static inline uint64_t model_counter_first(uint16_t generation)
{
    return (uint64_t)generation << MODEL_GENERATION_SHIFT;
}

static inline bool model_id_is_none(const struct model_id *id)
{
    static const struct model_id none;

    return memcmp(id, &none, sizeof(none)) == 0;
}

static inline bool model_id_equal(const struct model_id *a, const struct model_id *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* <0, 0, >0 */
int model_version_compare(const struct model_version *a, const struct model_version *b);

enum {
    MODEL_ID_TEXT_SIZE = 33
};

/* 32 lower-case hexadecimal digits and NUL. */
void model_id_format(const struct model_id *id, char ret_text[MODEL_ID_TEXT_SIZE]);

/* Names of instances and sessions: 1..MODEL_NAME_MAX of [A-Za-z0-9._-]. INVALID_ARGUMENT names
 * `what` and the value. */
RT_MUST_USE enum rt_code model_name_check(const char *what, struct rt_bytes name,
                                          struct rt_error *err);

#endif
