/*
 * uthash with this project's allocator: include this instead of uthash.h. Hash maps of control
 * structures; the coordinator's key table and the instance's key index are tables of their own
 * (uthash costs 56 bytes a handle).
 */
#ifndef RT_BASE_MAP_H
#define RT_BASE_MAP_H

#include "runtime/base/alloc.h"

#define uthash_malloc(size)        rt_xalloc(size)
#define uthash_free(pointer, size) ((void)rt_free(pointer))
#include <uthash.h>

#endif
