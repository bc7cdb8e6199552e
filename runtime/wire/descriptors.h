/*
 * The public API described for reflection.
 */
#ifndef WIRE_DESCRIPTORS_H
#define WIRE_DESCRIPTORS_H

#include "runtime/base/bytes.h"

/* A serialized google.protobuf.FileDescriptorSet of every file in proto/, imports included, without
 * comments. Constant; any thread. */
struct rt_bytes wire_descriptor_set(void);

#endif
