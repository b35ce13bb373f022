/* SPDX-License-Identifier: Apache-2.0 */
/* A growable byte buffer that never grows beyond its named limit.
 *
 * p is never dereferenced when n is 0; p[n] is always NUL when p is not NULL. A refused append sets
 * `overflow` for good and adds nothing, so a writer may append many times and check once with
 * buf_ok(). Thread: one at a time. */
#ifndef TACHO_BASE_BUF_H
#define TACHO_BASE_BUF_H

#include <stdarg.h>

#include "base/err.h"
#include "base/str.h"

struct buf {
    char *p;       /* owned */
    size_t n;      /* bytes used */
    size_t alloc;  /* bytes allocated */
    size_t cap;    /* most bytes it may hold, from limits.def */
    bool overflow; /* an append was refused */
};

void buf_init(struct buf *b, size_t cap_bytes);
void buf_release(struct buf *b); /* frees and zeroes; cap too */
void buf_clear(struct buf *b);   /* empty, memory and cap kept, overflow cleared */

bool buf_add(struct buf *b, const void *p, size_t n);
bool buf_add_str(struct buf *b, str s);
bool buf_add_char(struct buf *b, char c);
bool buf_addf(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);
bool buf_addv(struct buf *b, const char *format, va_list args) PRINTF_LIKE(2, 0);
/* Room for n more bytes at b->p + b->n; the caller then adds what it wrote to b->n. */
char *buf_reserve(struct buf *b, size_t n);
/* Removes the first n bytes. */
void buf_consume(struct buf *b, size_t n);

static inline str buf_str(const struct buf *b)
{
    return (str){b->p, b->n};
}

/* True when no append was refused; else sets ERR_LIMIT, saying what `what` was. */
MUST_CHECK bool buf_ok(const struct buf *b, const char *what, struct err *e);

#endif
