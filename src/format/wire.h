/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf wire format over bytes in memory, read field by field, never beyond the end.
 *
 *     struct wire w = wire_from(bytes, offset_in_file);
 *     while (wire_next(&w))
 *         switch (w.field) {
 *         case 2: name = w.bytes; break;              wire type LEN
 *         case 1: id = (int64_t)w.number; break;      VARINT, I64, I32
 *         }
 *     if (!wire_ok(&w, e)) return false;              "... at byte N" of the file
 *
 * Groups (wire types 3 and 4) are refused: no format that we read has them.
 * Source: protobuf.dev/programming-guides/encoding. Thread: one at a time. */
#ifndef TACHO_FORMAT_WIRE_H
#define TACHO_FORMAT_WIRE_H

#include "base/err.h"
#include "base/str.h"

enum wire_type { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_LEN = 2, WIRE_I32 = 5 };

struct wire {
    const uint8_t *p, *end;
    const uint8_t *start;
    uint64_t base;     /* position of start in the file */
    const char *wrong; /* what is broken, or NULL; static text */
    const uint8_t *wrong_at;
    uint32_t field; /* of the current field */
    enum wire_type type;
    uint64_t number;         /* VARINT, I64, I32 */
    str bytes;               /* LEN; borrows */
    const uint8_t *field_at; /* where its tag is */
};

static inline struct wire wire_from(str bytes, uint64_t base)
{
    const uint8_t *p = (const uint8_t *)bytes.p;
    return (struct wire){.p = p, .start = p, .end = bytes.n == 0 ? p : p + bytes.n, .base = base};
}

/* Position in the file of a byte of the message. */
static inline uint64_t wire_pos(const struct wire *w, const uint8_t *at)
{
    return w->base + (at == NULL ? 0 : (uint64_t)(at - w->start));
}

static inline bool wire_fail(struct wire *w, const uint8_t *at, const char *what)
{
    w->wrong = what;
    w->wrong_at = at;
    return false;
}

/* A varint at *p; false when it is longer than 10 bytes or runs beyond the end. */
static inline bool wire_varint(const uint8_t **p, const uint8_t *end, uint64_t *out)
{
    const uint8_t *at = *p;
    if (at < end && *at < 0x80) {
        *out = *at;
        *p = at + 1;
        return true;
    }
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
        const uint8_t byte = *at++;
        if (shift == 63 && byte > 1)
            return false;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = v;
            *p = at;
            return true;
        }
    }
    return false;
}

/* The next field; false at the end or at the first broken byte. */
static inline bool wire_next(struct wire *w)
{
    if (w->p >= w->end || w->wrong != NULL)
        return false;
    uint64_t tag;
    w->field_at = w->p;
    if (!wire_varint(&w->p, w->end, &tag) || tag > UINT32_MAX || tag < 8)
        return wire_fail(w, w->field_at, "damaged field tag");
    w->field = (uint32_t)tag >> 3;
    w->type = (enum wire_type)(tag & 7);
    const uint8_t *const value_at = w->p;
    uint64_t n;
    switch (w->type) {
    case WIRE_VARINT:
        return wire_varint(&w->p, w->end, &w->number) || wire_fail(w, value_at, "damaged number");
    case WIRE_LEN:
        if (!wire_varint(&w->p, w->end, &n))
            return wire_fail(w, value_at, "damaged length");
        if (n > (uint64_t)(w->end - w->p))
            return wire_fail(w, value_at, "field is longer than the message around it");
        w->bytes = (str){(const char *)w->p, (size_t)n};
        w->p += n;
        return true;
    case WIRE_I64:
        if (w->end - w->p < 8)
            return wire_fail(w, value_at, "message ends inside a 64-bit field");
        memcpy(&w->number, w->p, 8);
        w->p += 8;
        return true;
    case WIRE_I32:
        if (w->end - w->p < 4)
            return wire_fail(w, value_at, "message ends inside a 32-bit field");
        w->number = (uint32_t)w->p[0] | (uint32_t)w->p[1] << 8 | (uint32_t)w->p[2] << 16 |
                    (uint32_t)w->p[3] << 24;
        w->p += 4;
        return true;
    }
    return wire_fail(w, w->field_at, "unknown wire type");
}

/* Position of the current LEN field's content in the file. */
static inline uint64_t wire_bytes_pos(const struct wire *w)
{
    return wire_pos(w, w->end == w->start ? w->start : (const uint8_t *)w->bytes.p);
}

static inline bool wire_ok(const struct wire *w, struct err *e)
{
    if (w->wrong == NULL)
        return true;
    return err_at(e, ERR_PARSE, wire_pos(w, w->wrong_at), "%s", w->wrong);
}

/* Takes the next number off the content of a packed repeated field of varints. */
static inline bool wire_packed_next(str *rest, uint64_t *out)
{
    const uint8_t *p = (const uint8_t *)rest->p;
    if (rest->n == 0 || !wire_varint(&p, p + rest->n, out))
        return false;
    *rest = (str){(const char *)p, rest->n - (size_t)(p - (const uint8_t *)rest->p)};
    return true;
}

#endif
