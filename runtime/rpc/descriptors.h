/*
 * Descriptors of .proto files, found by file name, symbol or extension. Internal to runtime/rpc.
 *
 * Filled before the server starts and const afterwards, so that any thread may look things up.
 * What goes in is part of the program: it is checked, but not limited like a peer's data.
 */
#ifndef RPC_DESCRIPTORS_H
#define RPC_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/bytes.h"
#include "runtime/base/error.h"

enum {
    RPC_DESCRIPTOR_FILES_MAX = 64, /* bits of a file's imports */
};

struct rpc_descriptor_symbol;
struct rpc_descriptor_extension;

struct rpc_descriptor_file {
    char *name;    /* owned */
    uint8_t *data; /* owned: a serialized FileDescriptorProto */
    size_t size;
    uint64_t closure; /* bits of the indexes of this file and all that it imports */
};

/* Zeroed = empty. */
struct rpc_descriptors {
    struct rpc_descriptor_file files[RPC_DESCRIPTOR_FILES_MAX];
    unsigned n_files;
    struct rpc_descriptor_symbol *symbols;       /* owned, a hash */
    struct rpc_descriptor_extension *extensions; /* owned, a list */
};

/* Adds the files of a serialized FileDescriptorSet that has all imports in front of who imports
 * them (protoc --include_imports); a file that is there already with the same content is left out.
 * INVALID_ARGUMENT: no such set, or an import is missing; ALREADY_EXISTS: a file with other content
 * under a used name; RESOURCE_EXHAUSTED: more than RPC_DESCRIPTOR_FILES_MAX files. After a failure
 * the files in front of the bad one are in. */
RT_MUST_USE enum rt_code rpc_descriptors_add(struct rpc_descriptors *descriptors,
                                             struct rt_bytes set, struct rt_error *err);

void rpc_descriptors_deinit(struct rpc_descriptors *descriptors);

/* The file of this name; the one that declares this symbol ("pkg.Service", "pkg.Service.Method",
 * "pkg.Message.Inner.field", no leading dot); the one that extends the message of this name with
 * this field number. NULL when there is none. */
const struct rpc_descriptor_file *rpc_descriptors_by_name(const struct rpc_descriptors *descriptors,
                                                          const char *name);
const struct rpc_descriptor_file *rpc_descriptors_by_symbol(
    const struct rpc_descriptors *descriptors, const char *symbol);
const struct rpc_descriptor_file *rpc_descriptors_by_extension(
    const struct rpc_descriptors *descriptors, const char *type, int32_t number);

bool rpc_descriptors_has_message(const struct rpc_descriptors *descriptors, const char *type);

/* Field numbers of the extensions of a message: writes up to `max` and returns how many there are.
 */
size_t rpc_descriptors_extension_numbers(const struct rpc_descriptors *descriptors,
                                         const char *type, int32_t *ret_numbers, size_t max);

#endif
