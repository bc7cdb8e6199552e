/*
 * What clients asked for and were told: one operation a statement or direct request, on global
 * simulated time. Every written value carries the number of its operation, so values are unique.
 *
 * Operations of kind REVERT are no client's: they mark that an owner's process or incarnation
 * ended, after which the key may fall back from its last visible to its last durable value.
 */
#ifndef SIM_HISTORY_H
#define SIM_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/model/message.h"

enum {
    SIM_KEYS_MAX = 8,
    SIM_VALUE_MAX = 64,           /* bytes of an encoded value */
    SIM_VALUE_FOREIGN = 1u << 31, /* decoded from bytes that no operation wrote */
};

enum sim_op_kind {
    SIM_OP_SET,
    SIM_OP_STORE,
    SIM_OP_PUT,
    SIM_OP_DELETE,
    SIM_OP_READ,   /* GET too: value is what was seen, 0 = none */
    SIM_OP_REVERT, /* optional: visible := durable */
    SIM_OP_DUMP,   /* optional: durable := visible, if that is the value */
    SIM_OP_FORGET, /* optional: visible := durable := none (on-owner-down = forget) */
};

enum sim_result {
    SIM_RESULT_PENDING, /* as MAYBE */
    SIM_RESULT_OK,
    SIM_RESULT_NO,    /* promised: not applied */
    SIM_RESULT_MAYBE, /* applied, not yet, or never */
};

struct sim_op {
    uint32_t number; /* from 1; the value of a write */
    uint8_t client;
    uint8_t key;
    enum sim_op_kind kind;
    enum sim_result result;
    uint32_t value;   /* written, or seen by a READ */
    bool has_version; /* result OK and the answer gave one */
    bool tainted;     /* a copy of the request that the client does not know of was not refused */
    struct model_version version;
    uint64_t token;
    struct model_request_id request_id;
    uint64_t invoke_us;
    uint64_t return_us; /* UINT64_MAX while open */
};

struct sim_history {
    struct sim_op *ops; /* owned; ops[n].number == n + 1 */
    uint32_t n_ops;
    uint32_t capacity;
    struct sim_op_index *by_request; /* owned */
};

const char *sim_op_kind_name(enum sim_op_kind kind);

void sim_history_init(struct sim_history *history);
void sim_history_deinit(struct sim_history *history);

/* Returns the new operation's number; for writes its value is that number. */
uint32_t sim_history_invoke(struct sim_history *history, uint8_t client, uint8_t key,
                            enum sim_op_kind kind, uint64_t now_us);

/* Valid until the next invoke. */
struct sim_op *sim_history_op(const struct sim_history *history, uint32_t number);

/* The id under which the operation travels; an operation has one. */
void sim_history_identify(struct sim_history *history, uint32_t number,
                          const struct model_request_id *id);

/* 0 when unknown. */
uint32_t sim_history_find(const struct sim_history *history, const struct model_request_id *id);

/* Ends an operation. For a READ, op->value is set by the caller before. */
void sim_history_return(struct sim_history *history, uint32_t number, enum sim_result result,
                        uint64_t now_us);

/* What a checker has to believe: NO of a tainted operation is MAYBE, PENDING is MAYBE. */
enum sim_result sim_op_effective_result(const struct sim_op *op);

/* Encodes into buffer[SIM_VALUE_MAX]; lengths differ from number to number. */
struct rt_bytes sim_value_encode(uint32_t number, uint8_t *buffer);

/* SIM_VALUE_FOREIGN for bytes that sim_value_encode() did not make. */
uint32_t sim_value_decode(struct rt_bytes bytes);

#endif
