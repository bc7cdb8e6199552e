/*
 * Output queue of a stream: encoded messages waiting for the one send that core allows at a time.
 * A ring that keeps its memory between calls. Guarded by its call's lock. Internal to runtime/rpc.
 */
#ifndef RPC_OUTBOX_H
#define RPC_OUTBOX_H

#include <grpc/grpc.h>
#include <stdbool.h>
#include <stdint.h>

struct rpc_outbox_item {
    grpc_byte_buffer *buffer; /* owned */
    size_t size;
};

/* Zeroed with the two limits set is an empty outbox. */
struct rpc_outbox {
    struct rpc_outbox_item *items; /* owned */
    uint32_t capacity;
    uint32_t first;
    uint32_t count;
    uint32_t max_count;
    size_t max_bytes;
    size_t bytes;
    bool was_refused; /* since the last rpc_outbox_take_writable() */
};

/* An empty outbox has room for anything. false is remembered for rpc_outbox_take_writable(). */
bool rpc_outbox_has_room(struct rpc_outbox *outbox, size_t size);

/* Takes the buffer; whether there is room is the caller's question. */
void rpc_outbox_push(struct rpc_outbox *outbox, grpc_byte_buffer *buffer, size_t size);

/* NULL when empty; the caller owns the buffer. */
grpc_byte_buffer *rpc_outbox_pop(struct rpc_outbox *outbox);

/* true once after a refusal, as soon as half of the room is free. */
bool rpc_outbox_take_writable(struct rpc_outbox *outbox);

/* Destroys what is queued; keeps the ring. */
void rpc_outbox_clear(struct rpc_outbox *outbox);

/* The same, and frees the ring. */
void rpc_outbox_deinit(struct rpc_outbox *outbox);

#endif
