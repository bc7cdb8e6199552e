/*
 * Encoding of persisted records and ordered keys: fixed-width big-endian numbers (so encoded
 * numbers sort as bytes) and byte strings behind a u32 length. Own code: a record is a handful of
 * fields that must stay readable by later versions, and decoding must not allocate.
 *
 * Writing goes to an rt_buffer, whose failure rule applies. A reader borrows its input and hands
 * out views into it. The first read past the end marks it as failed; from then on every read gives
 * zero or an empty view. Check once at the end with rt_codec_finish().
 */
#ifndef RT_BASE_CODEC_H
#define RT_BASE_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/buffer.h"
#include "runtime/base/bytes.h"
#include "runtime/base/compiler.h"
#include "runtime/base/error.h"

void rt_codec_put_u8(struct rt_buffer *buffer, uint8_t value);
void rt_codec_put_u16(struct rt_buffer *buffer, uint16_t value);
void rt_codec_put_u32(struct rt_buffer *buffer, uint32_t value);
void rt_codec_put_u64(struct rt_buffer *buffer, uint64_t value);
/* Length first; more than UINT32_MAX bytes fail the buffer. */
void rt_codec_put_bytes(struct rt_buffer *buffer, struct rt_bytes bytes);
/* Without length: for the tail of a key, or ids of a known size. */
void rt_codec_put_raw(struct rt_buffer *buffer, struct rt_bytes bytes);

struct rt_codec_reader {
    struct rt_bytes rest; /* not read yet */
    bool failed;
};

static inline struct rt_codec_reader rt_codec_reader_of(struct rt_bytes record)
{
    return (struct rt_codec_reader){.rest = record};
}

uint8_t rt_codec_get_u8(struct rt_codec_reader *reader);
uint16_t rt_codec_get_u16(struct rt_codec_reader *reader);
uint32_t rt_codec_get_u32(struct rt_codec_reader *reader);
uint64_t rt_codec_get_u64(struct rt_codec_reader *reader);
struct rt_bytes rt_codec_get_bytes(struct rt_codec_reader *reader);
struct rt_bytes rt_codec_get_raw(struct rt_codec_reader *reader, size_t size);
/* All that is left, maybe nothing. */
struct rt_bytes rt_codec_get_rest(struct rt_codec_reader *reader);

/* RT_OK when nothing failed and everything was read, else RT_DATA_LOSS naming `what`. A record that
 * may grow fields starts with a version and reads what it does not know with get_rest. */
RT_MUST_USE enum rt_code rt_codec_finish(const struct rt_codec_reader *reader, const char *what,
                                         struct rt_error *err);

#endif
