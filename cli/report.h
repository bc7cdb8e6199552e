/*
 * How a verb ends: its result on stdout, or its failure. In text mode a failure is one line on
 * stderr, "redistinto: VERB: message (CODE REASON)"; in JSON mode it is an object on stdout,
 * {"error": {"code", "reason", "message", "applied"}}, where reason may be null.
 *
 * Each returns the exit code for it.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/context.h"
#include "runtime/base/buffer.h"
#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "runtime/model/exit.h"
#include "runtime/model/message.h"

/* Failed here, before anything had an effect elsewhere. */
enum model_exit cli_report_error(struct cli_context *context, const struct rt_error *err);

/* The user's words are wrong: exit code 2, whatever err->code is. */
enum model_exit cli_report_usage(struct cli_context *context, const struct rt_error *err);

/* What a service answered; response->code is not RT_OK. */
enum model_exit cli_report_failure(struct cli_context *context,
                                   const struct model_response *response);

/* The member "error" of the open object, for results that go on beside failures. */
void cli_report_write_failure(struct rt_json *json, enum rt_code code,
                              const struct model_error *error);

/* Writes the buffer's content to stdout and flushes it. OK, or what was reported because the buffer
 * had failed or stdout takes no more. */
enum model_exit cli_report_result(struct cli_context *context, const struct rt_buffer *buffer);

#endif
