/*
 * Answers about the cluster as text for people and as JSON for programs. JSON members keep their
 * names; "none" is null. Each appends complete lines. Pure.
 */
#ifndef CLI_INSPECT_H
#define CLI_INSPECT_H

#include "cli/context.h"
#include "runtime/base/buffer.h"
#include "runtime/model/message.h"

enum {
    CLI_INSPECT_VALUE_MAX = 256 /* bytes of a value that text shows */
};

/* JSON: key, known, value, stored, version, owner, owner_state, epoch, would_place, holder,
 * waiters, value_unavailable. */
void cli_inspect_append_status(struct rt_bytes key, const struct model_key_status_response *status,
                               enum cli_output output, struct rt_buffer *buffer);

/* JSON: key, value, version, stored, stale, sets_lost, owner, epoch. Text is the value as it is
 * and, if `ends_line`, a newline. */
void cli_inspect_append_value(struct rt_bytes key, const struct model_execute_response *response,
                              enum cli_output output, bool ends_line, struct rt_buffer *buffer);

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
