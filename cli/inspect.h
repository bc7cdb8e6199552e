/*
 * Answers about the cluster as text for people and as JSON for programs. JSON members keep their
 * names; "none" is null. Each appends complete lines. Pure.
 */
#ifndef CLI_INSPECT_H
#define CLI_INSPECT_H

#include "cli/context.h"
#include "runtime/base/buffer.h"
#include "runtime/base/json.h"
#include "runtime/model/message.h"

enum {
    CLI_INSPECT_VALUE_MAX = 256 /* bytes of a value that text shows */
};

/* JSON: key, known, value, stored, version, owner, owner_state, epoch, would_place, holder,
 * waiters, value_unavailable. */
void cli_inspect_append_status(struct rt_bytes key, const struct model_key_status_response *status,
                               enum cli_output output, struct rt_buffer *buffer);

/* What a statement came to, as members of the open object: value (GET, READ), version, stored,
 * stale (READ), sets_lost, owner, epoch, lock_token (GET), lock_lost (STORE, PUT), evicted (SET,
 * PUT). */
void cli_inspect_write_result(struct rt_json *json, enum model_statement_kind kind,
                              const struct model_execute_response *response);

/* The same but the value as "version=E.I.S stored=yes ..." for people, without newline. */
void cli_inspect_append_result(enum model_statement_kind kind,
                               const struct model_execute_response *response,
                               struct rt_buffer *buffer);

/* Lists are given page by page; begin and end make one whole of them. */
struct cli_inspect_list;

struct cli_inspect_list *cli_inspect_instances_begin(enum cli_output output,
                                                     struct rt_buffer *buffer);
/* JSON: name, address, state, incarnation, keys, entries_free, entries_total, last_renew_ms. */
void cli_inspect_instances_add(struct cli_inspect_list *list,
                               const struct model_list_instances_response *page);

struct cli_inspect_list *cli_inspect_keys_begin(enum cli_output output, struct rt_buffer *buffer);
/* JSON: key, owner, epoch, holder. */
void cli_inspect_keys_add(struct cli_inspect_list *list,
                          const struct model_list_keys_response *page);

/* One member and whether it serves. */
struct cli_inspect_health {
    const char *name;
    const char *address;
    const char *state; /* of an instance; NULL for the coordinator */
    bool is_serving;
    const char *message; /* why it could not be asked; NULL when it answered */
};

struct cli_inspect_list *cli_inspect_health_begin(enum cli_output output, struct rt_buffer *buffer);
/* JSON: name, address, state, serving, message. */
void cli_inspect_health_add(struct cli_inspect_list *list, const struct cli_inspect_health *health);
/* Only for health, before the end: the whole. */
void cli_inspect_health_sum(struct cli_inspect_list *list, bool is_serving);

/* Completes the output and frees the list; returns NULL. */
struct cli_inspect_list *cli_inspect_list_end(struct cli_inspect_list *list);

#endif
