/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

void buf_init(struct buf *b, size_t cap_bytes)
{
    *b = (struct buf){.cap = cap_bytes};
}

void buf_release(struct buf *b)
{
    free(b->p);
    *b = (struct buf){0};
}

void buf_clear(struct buf *b)
{
    b->n = 0;
    b->overflow = false;
    if (b->p != NULL)
        b->p[0] = '\0';
}

char *buf_reserve(struct buf *b, size_t n)
{
    if (b->overflow || n > b->cap - b->n) {
        b->overflow = true;
        return NULL;
    }
    const size_t need = b->n + n + 1;
    if (need > b->alloc) {
        size_t alloc = b->alloc < 64 ? 64 : b->alloc * 2;
        if (alloc > b->cap + 1)
            alloc = b->cap + 1;
        if (alloc < need)
            alloc = need;
        char *p = realloc(b->p, alloc);
        if (p == NULL) {
            fprintf(stderr, "tacho: out of memory (%zu bytes)\n", alloc);
            abort();
        }
        b->p = p;
        b->alloc = alloc;
    }
    /* The caller fills the room itself: the byte behind it keeps the buffer terminated. */
    b->p[b->n + n] = '\0';
    return b->p + b->n;
}

bool buf_add(struct buf *b, const void *p, size_t n)
{
    char *to = buf_reserve(b, n);
    if (to == NULL)
        return false;
    if (n > 0)
        memcpy(to, p, n);
    b->n += n;
    return true;
}

bool buf_add_str(struct buf *b, str s)
{
    return buf_add(b, s.p, s.n);
}

bool buf_add_char(struct buf *b, char c)
{
    return buf_add(b, &c, 1);
}

bool buf_addv(struct buf *b, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    char *to = n < 0 ? NULL : buf_reserve(b, (size_t)n);
    if (to != NULL) {
        vsnprintf(to, (size_t)n + 1, format, again);
        b->n += (size_t)n;
    } else {
        b->overflow = true;
    }
    va_end(again);
    return to != NULL;
}

bool buf_addf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const bool added = buf_addv(b, format, args);
    va_end(args);
    return added;
}

void buf_consume(struct buf *b, size_t n)
{
    must(n <= b->n);
    if (n == 0)
        return;
    b->n -= n;
    memmove(b->p, b->p + n, b->n);
    b->p[b->n] = '\0';
}

bool buf_ok(const struct buf *b, const char *what, struct err *e)
{
    if (!b->overflow)
        return true;
    return err_set(e, ERR_LIMIT, "%s is larger than its limit of %zu bytes", what, b->cap);
}
