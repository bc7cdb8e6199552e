/*
 * Private to runtime/wire: what the operations on keys and batches of them share. See codec.h.
 */
#ifndef WIRE_DATA_H
#define WIRE_DATA_H

#include "redistinto/v1/instance.pb-c.h"
#include "runtime/wire/codec.h"

Redistinto__V1__Consistency wire_put_consistency(enum model_consistency consistency);
enum model_consistency wire_take_consistency(struct wire_input *in,
                                             Redistinto__V1__Consistency consistency);

extern const struct wire_codec wire_pipeline_codec;

#endif
