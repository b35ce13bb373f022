/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf wire format, written: into a buf, or to where there is room.
 *
 *     wire_put_number(&b, 1, id);          field 1, VARINT
 *     wire_put_bytes(&b, 2, name);         field 2, LEN
 *     wire_put_i64(&b, 47, flow_id);       field 47, I64
 *     wire_put_head(&b, 3, n); ...         field 3, LEN: its n bytes follow
 *
 * Source: protobuf.dev/programming-guides/encoding. Thread: one at a time. */
#ifndef TACHO_FORMAT_WIRE_WRITE_H
#define TACHO_FORMAT_WIRE_WRITE_H

#include "base/buf.h"

/* At p, which has room for 10 bytes; returns behind it. */
static inline uint8_t *wire_set_varint(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static inline size_t wire_varint_n(uint64_t v)
{
    return (size_t)(63 - __builtin_clzll(v | 1)) / 7 + 1;
}

static inline void wire_put_varint(struct buf *b, uint64_t v)
{
    uint8_t *const p = (uint8_t *)buf_reserve(b, 10);
    if (p != NULL)
        b->n += (size_t)(wire_set_varint(p, v) - p);
}

static inline void wire_put_number(struct buf *b, uint32_t field, uint64_t v)
{
    wire_put_varint(b, field << 3);
    wire_put_varint(b, v);
}

static inline void wire_put_head(struct buf *b, uint32_t field, uint64_t n)
{
    wire_put_varint(b, field << 3 | 2);
    wire_put_varint(b, n);
}

static inline void wire_put_bytes(struct buf *b, uint32_t field, str s)
{
    wire_put_head(b, field, s.n);
    buf_add_str(b, s);
}

static inline void wire_put_i64(struct buf *b, uint32_t field, uint64_t v)
{
    wire_put_varint(b, field << 3 | 1);
    buf_add(b, &v, sizeof v);
}

static inline void wire_put_f64(struct buf *b, uint32_t field, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    wire_put_i64(b, field, bits);
}

#endif
