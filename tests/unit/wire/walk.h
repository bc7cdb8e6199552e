/*
 * Walks over every field that a kind of call puts on the wire, in one of two ways: to fill it with
 * random valid content, or to write it down. Two messages are equal when their texts are.
 */
#ifndef TESTS_UNIT_WIRE_WALK_H
#define TESTS_UNIT_WIRE_WALK_H

#include "runtime/base/buffer.h"
#include "runtime/base/rng.h"
#include "runtime/model/message.h"

enum walk_mode {
    WALK_FILL,
    WALK_DUMP,
};

struct walk {
    enum walk_mode mode;
    struct rt_rng rng;      /* WALK_FILL */
    struct rt_arena *arena; /* WALK_FILL: memory of byte strings and arrays */
    struct rt_buffer text;  /* WALK_DUMP: "field=value\n" …, to be freed by the caller */
};

/* request->kind is set by the caller. */
void walk_request(struct walk *walk, struct model_request *request);

/* response->code is set by the caller; after a failure the error is walked. */
void walk_response(struct walk *walk, enum model_call_kind kind, struct model_response *response);

#endif
