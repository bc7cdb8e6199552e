/*
 * Private to runtime/wire: what became of a statement, for Execute and Lock.
 */
#ifndef WIRE_OUTCOME_H
#define WIRE_OUTCOME_H

#include "redistinto/v1/coordinator.pb-c.h"
#include "runtime/wire/convert.h"

Redistinto__V1__StatementOutcome wire_put_outcome(enum model_outcome outcome);

/* Of the field "outcome". */
enum model_outcome wire_take_outcome(struct wire_input *in,
                                     Redistinto__V1__StatementOutcome outcome);

#endif
