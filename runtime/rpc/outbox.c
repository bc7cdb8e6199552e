/*
 * Output queue: see outbox.h.
 */
#include "runtime/rpc/outbox.h"

#include <grpc/byte_buffer.h>

#include "runtime/base/alloc.h"

enum {
    FIRST_CAPACITY = 2
};

bool rpc_outbox_has_room(struct rpc_outbox *outbox, size_t size)
{
    bool fits = outbox->count == 0 ||
                (outbox->count < outbox->max_count && outbox->bytes < outbox->max_bytes &&
                 size <= outbox->max_bytes - outbox->bytes);

    outbox->was_refused |= !fits;
    return fits;
}

static void grow(struct rpc_outbox *outbox)
{
    uint32_t capacity = outbox->capacity ? outbox->capacity * 2 : FIRST_CAPACITY;
    struct rpc_outbox_item *items = rt_xalloc(capacity * sizeof(*items));

    for (uint32_t i = 0; i < outbox->count; i++)
        items[i] = outbox->items[(outbox->first + i) % outbox->capacity];
    (void)rt_free(outbox->items);
    outbox->items = items;
    outbox->capacity = capacity;
    outbox->first = 0;
}

void rpc_outbox_push(struct rpc_outbox *outbox, grpc_byte_buffer *buffer, size_t size)
{
    if (outbox->count == outbox->capacity)
        grow(outbox);
    outbox->items[(outbox->first + outbox->count) % outbox->capacity] =
        (struct rpc_outbox_item){buffer, size};
    outbox->count++;
    outbox->bytes += size;
}

grpc_byte_buffer *rpc_outbox_pop(struct rpc_outbox *outbox)
{
    struct rpc_outbox_item item;

    if (outbox->count == 0)
        return NULL;
    item = outbox->items[outbox->first];
    outbox->first = (outbox->first + 1) % outbox->capacity;
    outbox->count--;
    outbox->bytes -= item.size;
    return item.buffer;
}

bool rpc_outbox_take_writable(struct rpc_outbox *outbox)
{
    if (!outbox->was_refused || outbox->count > outbox->max_count / 2 ||
        outbox->bytes > outbox->max_bytes / 2)
        return false;
    outbox->was_refused = false;
    return true;
}

void rpc_outbox_clear(struct rpc_outbox *outbox)
{
    grpc_byte_buffer *buffer;

    while ((buffer = rpc_outbox_pop(outbox)))
        grpc_byte_buffer_destroy(buffer);
    outbox->was_refused = false;
}

void rpc_outbox_deinit(struct rpc_outbox *outbox)
{
    rpc_outbox_clear(outbox);
    outbox->items = rt_free(outbox->items);
    outbox->capacity = 0;
}
