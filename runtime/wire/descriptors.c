/*
 * The embedded descriptor set: see descriptors.h. Constant data.
 */
#include "runtime/wire/descriptors.h"

#include "redistinto/v1/descriptor_set.h"

struct rt_bytes wire_descriptor_set(void)
{
    return rt_bytes_of(redistinto_descriptor_set, sizeof(redistinto_descriptor_set));
}
