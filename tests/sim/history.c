/*
 * History of client operations: see history.h. Invariant: numbers are dense and never reused, and
 * an operation returns at most once. One thread.
 */
#include "tests/sim/history.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/alloc.h"
#include "runtime/base/env.h"
#include "runtime/base/map.h"

struct sim_op_index {
    struct model_request_id id;
    uint32_t number;
    UT_hash_handle hh;
};

const char *sim_op_kind_name(enum sim_op_kind kind)
{
    static const char *const names[] = {
        [SIM_OP_SET] = "SET",       [SIM_OP_STORE] = "STORE", [SIM_OP_PUT] = "PUT",
        [SIM_OP_DELETE] = "DELETE", [SIM_OP_READ] = "READ",   [SIM_OP_REVERT] = "revert",
        [SIM_OP_FORGET] = "forget", [SIM_OP_DUMP] = "dump",
    };

    return names[kind];
}

void sim_history_init(struct sim_history *history)
{
    *history = (struct sim_history){0};
}

void sim_history_deinit(struct sim_history *history)
{
    struct sim_op_index *entry;
    struct sim_op_index *next;

    HASH_ITER (hh, history->by_request, entry, next) {
        HASH_DEL(history->by_request, entry);
        (void)rt_free(entry);
    }
    history->ops = rt_free(history->ops);
    history->n_ops = 0;
    history->capacity = 0;
}

uint32_t sim_history_invoke(struct sim_history *history, uint8_t client, uint8_t key,
                            enum sim_op_kind kind, uint64_t now_us)
{
    uint32_t number = ++history->n_ops;

    if (number > history->capacity) {
        history->capacity = history->capacity ? history->capacity * 2 : 512;
        history->ops = rt_xrealloc(history->ops, history->capacity * sizeof(*history->ops));
    }
    history->ops[number - 1] = (struct sim_op){
        .number = number,
        .client = client,
        .key = key,
        .kind = kind,
        .value = kind == SIM_OP_SET || kind == SIM_OP_PUT ? number : 0,
        .invoke_us = now_us,
        .return_us = RT_NEVER,
    };
    return number;
}

struct sim_op *sim_history_op(const struct sim_history *history, uint32_t number)
{
    rt_assert(number >= 1 && number <= history->n_ops);
    return &history->ops[number - 1];
}

void sim_history_identify(struct sim_history *history, uint32_t number,
                          const struct model_request_id *id)
{
    struct sim_op_index *entry;

    sim_history_op(history, number)->request_id = *id;
    if (sim_history_find(history, id) != 0)
        return;
    entry = rt_xalloc(sizeof(*entry));
    entry->id.client = id->client;
    entry->id.seq = id->seq;
    entry->number = number;
    HASH_ADD(hh, history->by_request, id, sizeof(entry->id), entry);
}

uint32_t sim_history_find(const struct sim_history *history, const struct model_request_id *id)
{
    struct sim_op_index *entry;

    HASH_FIND(hh, history->by_request, id, sizeof(*id), entry);
    return entry ? entry->number : 0;
}

void sim_history_return(struct sim_history *history, uint32_t number, enum sim_result result,
                        uint64_t now_us)
{
    struct sim_op *op = sim_history_op(history, number);

    rt_assert(op->result == SIM_RESULT_PENDING);
    op->result = result;
    op->return_us = now_us;
}

enum sim_result sim_op_effective_result(const struct sim_op *op)
{
    if (op->result == SIM_RESULT_PENDING || (op->result == SIM_RESULT_NO && op->tainted))
        return SIM_RESULT_MAYBE;
    return op->result;
}

struct rt_bytes sim_value_encode(uint32_t number, uint8_t *buffer)
{
    size_t size = 8 + number * 7 % (SIM_VALUE_MAX - 8);

    (void)snprintf((char *)buffer, SIM_VALUE_MAX, "%08x", number);
    for (size_t i = 8; i < size; i++)
        buffer[i] = (uint8_t)('a' + (number + i) % 26);
    return rt_bytes_of(buffer, size);
}

uint32_t sim_value_decode(struct rt_bytes bytes)
{
    uint8_t expected[SIM_VALUE_MAX];
    char digits[9] = {0};
    uint32_t number;

    if (bytes.size < 8 || bytes.size > SIM_VALUE_MAX)
        return SIM_VALUE_FOREIGN;
    memcpy(digits, bytes.data, 8);
    number = (uint32_t)strtoul(digits, NULL, 16);
    if (!rt_bytes_equal(sim_value_encode(number, expected), bytes))
        return SIM_VALUE_FOREIGN;
    return number;
}
