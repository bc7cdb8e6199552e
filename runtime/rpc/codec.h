/*
 * Messages ⇄ core's byte buffers, errors ⇄ status and trailers. Internal to runtime/rpc; no state.
 */
#ifndef RPC_CODEC_H
#define RPC_CODEC_H

#include <grpc/grpc.h>
#include <protobuf-c/protobuf-c.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

/* The trailer that carries a serialized google.rpc.Status. */
#define RPC_DETAIL_KEY "grpc-status-details-bin"

/* A fresh buffer for one send (core takes the slices out of it). *ret_size may be NULL. */
grpc_byte_buffer *rpc_encode(const ProtobufCMessage *message, size_t *ret_size);

/* Decodes into the arena; borrows the buffer. INVALID_ARGUMENT when it is no such message or NULL,
 * RESOURCE_EXHAUSTED when the decoded form is over the arena's limit. */
RT_MUST_USE enum rt_code rpc_decode(grpc_byte_buffer *buffer,
                                    const ProtobufCMessageDescriptor *type, struct rt_arena *arena,
                                    ProtobufCMessage **ret_message, struct rt_error *err);

/* The first value under `key`; a view of the array. */
bool rpc_metadata_find(const grpc_metadata_array *array, const char *key,
                       struct rt_bytes *ret_value);

/* A received status as an error. detail is a view of `trailers`. */
void rpc_error_of_status(grpc_status_code status, grpc_slice text,
                         const grpc_metadata_array *trailers, struct rt_error *ret_err);

/* Whether core accepts it; else INVALID_ARGUMENT. */
RT_MUST_USE enum rt_code rpc_metadata_check(const char *key, struct rt_bytes value,
                                            struct rt_error *err);

static inline struct rt_bytes rpc_bytes_of_slice(const grpc_slice *slice)
{
    return rt_bytes_of(GRPC_SLICE_START_PTR(*slice), GRPC_SLICE_LENGTH(*slice));
}

#endif
