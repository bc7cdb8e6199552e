/*
 * What users type for ids and versions. Pure, re-entrant.
 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include "runtime/model/ids.h"

/* 32 hexadecimal digits; INVALID_ARGUMENT says so. */
RT_MUST_USE enum rt_code cli_text_parse_id(const char *text, struct model_id *ret_id,
                                           struct rt_error *err);

/* "EPOCH.INCARNATION.SEQ", three numbers of 64 bits; INVALID_ARGUMENT says so. */
RT_MUST_USE enum rt_code cli_text_parse_version(const char *text, struct model_version *ret_version,
                                                struct rt_error *err);

#endif
