/*
 * ESIs as text for people and as JSON for programs. JSON members keep their names; "none" is null.
 * Each appends complete lines. Pure.
 */
#ifndef CLI_ESI_INSPECT_H
#define CLI_ESI_INSPECT_H

#include "cli/context.h"
#include "runtime/base/buffer.h"
#include "runtime/base/json.h"
#include "runtime/model/message.h"

/* The members of the open object: id, name, state, end, line, statements, ok, estimate (in lines),
 * waits_for, reason, message. */
void cli_esi_inspect_write(struct rt_json *json, const struct model_esi_info *esi);

/* "3 name finished: failed at line 2, 1 of 4 statements; message (REASON)" or such an object. */
void cli_esi_inspect_append(const struct model_esi_info *esi, enum cli_output output,
                            struct rt_buffer *buffer);

/* One line for each; `n_esis` may be 0. */
void cli_esi_inspect_append_table(const struct model_esi_info *esis, size_t n_esis,
                                  struct rt_buffer *buffer);

#endif
