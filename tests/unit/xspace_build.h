/* SPDX-License-Identifier: Apache-2.0 */
/* Small XSpaces for tests, written field by field. */
#ifndef TACHO_TESTS_XSPACE_BUILD_H
#define TACHO_TESTS_XSPACE_BUILD_H

#include "base/buf.h"

static inline void put_varint(struct buf *b, uint64_t v)
{
    do {
        buf_add_char(b, (char)((v & 0x7f) | (v > 0x7f ? 0x80 : 0)));
        v >>= 7;
    } while (v != 0);
}
static inline void put_number(struct buf *b, uint32_t field, int64_t v)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)v);
}
static inline void put_bytes(struct buf *b, uint32_t field, str s)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, s.n);
    buf_add_str(b, s);
}
static inline void put_event(struct buf *line, int64_t id, int64_t offset, int64_t duration)
{
    struct buf ev;
    buf_init(&ev, 1 << 16);
    put_number(&ev, 1, id);
    put_number(&ev, 2, offset);
    put_number(&ev, 3, duration);
    put_bytes(line, 4, buf_str(&ev));
    buf_release(&ev);
}
static inline void put_entry(struct buf *plane, uint32_t field, int64_t id, str name)
{
    struct buf value, entry;
    buf_init(&value, 1 << 16);
    buf_init(&entry, 1 << 16);
    put_number(&value, 1, id);
    put_bytes(&value, 2, name);
    put_number(&entry, 1, id);
    put_bytes(&entry, 2, buf_str(&value));
    put_bytes(plane, field, buf_str(&entry));
    buf_release(&value);
    buf_release(&entry);
}

/* One GPU plane with one line; events as triples of (id, offset, duration). */
static inline void make_space(struct buf *space, const int64_t (*events)[3], size_t n)
{
    struct buf line, plane;
    buf_init(&line, 1 << 24);
    buf_init(&plane, 1 << 24);
    buf_init(space, 1 << 24);
    put_number(&line, 1, 7);
    put_bytes(&line, 2, S("Stream #7"));
    put_number(&line, 3, 1000);
    for (size_t i = 0; i < n; i++)
        put_event(&line, events[i][0], events[i][1], events[i][2]);
    put_number(&plane, 1, 1);
    put_bytes(&plane, 2, S("/device:GPU:3"));
    put_bytes(&plane, 3, buf_str(&line));
    put_entry(&plane, 4, 1, S("kernel"));
    put_entry(&plane, 4, 2, S("copy"));
    put_entry(&plane, 5, 1, S("flops"));
    put_bytes(space, 1, buf_str(&plane));
    put_bytes(space, 3, S("a warning"));
    put_bytes(space, 4, S("host-a"));
    buf_release(&line);
    buf_release(&plane);
}

#endif
