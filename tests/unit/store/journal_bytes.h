/* SPDX-License-Identifier: Apache-2.0 */
/* Makes journal records in memory, for tests of the store and the server. */
#ifndef TACHO_TEST_JOURNAL_BYTES_H
#define TACHO_TEST_JOURNAL_BYTES_H

#include "base/buf.h"
#include "base/crc32c.h"
#include "journal/reader.h"

static inline void add_record(struct buf *b, enum journal_type type, uint64_t seq,
                              uint64_t boottime_ns, str payload)
{
    struct journal_record_header h = {.sync = JOURNAL_SYNC,
                                      .type = (uint16_t)type,
                                      .length = (uint32_t)payload.n,
                                      .boottime_ns = boottime_ns,
                                      .seq = seq};
    const char *p = (const char *)&h;
    uint32_t crc = crc32c(0, p + 4, 8);
    crc = crc32c(crc, p + 16, 16);
    h.crc = crc32c(crc, payload.p, payload.n);
    buf_add(b, &h, sizeof h);
    buf_add_str(b, payload);
}

static inline void add_text(struct buf *b, str s)
{
    const uint16_t n = (uint16_t)s.n;
    buf_add(b, &n, sizeof n);
    buf_add_str(b, s);
}

/* The header record of journal `id` (any byte) of that run. */
static inline void add_header(struct buf *b, uint8_t id, str run, int32_t rank)
{
    struct buf payload;
    struct journal_header_fixed f = {.version = JOURNAL_VERSION,
                                     .boottime_ns = 1000,
                                     .monotonic_ns = 1000,
                                     .wall_ns = 1700000000000000000,
                                     .rank = rank,
                                     .world_size = 1,
                                     .pid = 42,
                                     .restart_count = UINT32_MAX};
    memset(f.journal_id, id, sizeof f.journal_id);
    buf_init(&payload, 4096);
    buf_add(&payload, &f, sizeof f);
    add_text(&payload, run);
    add_text(&payload, S("host-1"));
    add_text(&payload, S("test/1"));
    add_record(b, JOURNAL_HEADER, 0, 1000, buf_str(&payload));
    buf_release(&payload);
}

static inline void add_metric(struct buf *b, uint64_t seq, uint64_t boottime_ns, int64_t step,
                              str name, double value)
{
    struct buf payload;
    const uint16_t one = 1;
    buf_init(&payload, 4096);
    buf_add(&payload, &step, sizeof step);
    buf_add(&payload, &one, sizeof one);
    buf_add(&payload, &value, sizeof value);
    add_text(&payload, name);
    add_record(b, JOURNAL_METRICS, seq, boottime_ns, buf_str(&payload));
    buf_release(&payload);
}

#endif
