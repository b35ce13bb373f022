/* SPDX-License-Identifier: Apache-2.0 */
/* A string is a pointer and a length, passed by value in two registers. It is not NUL-terminated
 * and owns nothing: whoever made the bytes says how long they live. `{0}` is the empty string.
 *
 *     str line = ..., key;
 *     while (str_cut(line, '=', &key, &line)) printf("%.*s\n", STR_ARG(key));
 *
 * Header only and libc only: guest code (the journal writer) includes it too. */
#ifndef TACHO_BASE_STR_H
#define TACHO_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const char *p; /* bytes, borrowed; may be NULL only when n is 0 */
    size_t n;      /* length in bytes */
} str;

#define S(literal) ((str){"" literal, sizeof(literal) - 1})
#define STR_ARG(s) (int)(s).n, (s).p
/* `S()` for static initialisers. */
#define STR_INIT(literal)                                                                          \
    {                                                                                              \
        "" literal, sizeof(literal) - 1                                                            \
    }

static inline str str_from(const char *cstring)
{
    return (str){cstring, cstring == NULL ? 0 : strlen(cstring)};
}

#ifdef __clang_analyzer__
#define STR_HOLDS(s) ((s).n != 0 && (s).p == NULL ? __builtin_unreachable() : (void)0)
#else
#define STR_HOLDS(s) ((void)0) /* only a str of no bytes may have no address */
#endif

static inline bool str_eq(str a, str b)
{
    STR_HOLDS(a);
    STR_HOLDS(b);
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_starts(str s, str prefix)
{
    STR_HOLDS(s);
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

static inline bool str_ends(str s, str suffix)
{
    return s.n >= suffix.n &&
           (suffix.n == 0 || memcmp(s.p + (s.n - suffix.n), suffix.p, suffix.n) == 0);
}

/* Bytes [from, to) of s, both clamped to its length. Borrows s. */
static inline str str_sub(str s, size_t from, size_t to)
{
    if (to > s.n)
        to = s.n;
    if (from > to)
        from = to;
    return (str){s.p == NULL ? NULL : s.p + from, to - from};
}

/* Position of the first `c`, or -1. */
static inline ptrdiff_t str_find_char(str s, char c)
{
    STR_HOLDS(s);
    const char *hit = s.n == 0 ? NULL : memchr(s.p, c, s.n);
    return hit == NULL ? -1 : hit - s.p;
}

/* Splits at the first `separator`: *head is what stands before it, *tail what stands after it.
 * Without a separator the whole of s is the head and the tail is empty. False when s is empty.
 * tail may point at the variable that s came from. */
static inline bool str_cut(str s, char separator, str *head, str *tail)
{
    if (s.n == 0)
        return false;
    const ptrdiff_t at = str_find_char(s, separator);
    *head = at < 0 ? s : str_sub(s, 0, (size_t)at);
    *tail = at < 0 ? (str){0} : str_sub(s, (size_t)at + 1, s.n);
    return true;
}

/* Order of the bytes as memcmp has it, the shorter first when one begins the other. */
int str_cmp(str a, str b);
bool str_eq_nocase(str a, str b);             /* ASCII letters only */
ptrdiff_t str_find(str s, str needle);        /* first position or -1; an empty needle is at 0 */
ptrdiff_t str_find_nocase(str s, str needle); /* the same, ASCII case ignored */
str str_trim(str s);                          /* without ASCII white space at both ends */
uint64_t str_hash(str s);  /* 64 bits, well mixed; not for hostile keys on disk */
uint64_t str_fnv1a(str s); /* FNV-1a 64: the one that the UI computes too */

/* Numbers: the whole string must be one, in decimal; false otherwise (also on overflow).
 * str_to_f64 takes what strtod takes in the C locale, inf and nan included. */
bool str_to_u64(str s, uint64_t *out);
bool str_to_i64(str s, int64_t *out);
bool str_to_f64(str s, double *out);
/* "500ms", "2s", "1h", "3d", or a bare number in `bare_unit_ns`; result in nanoseconds. */
bool str_to_duration_ns(str s, int64_t bare_unit_ns, int64_t *out_ns);
/* "16MiB", "512", "2GB": bytes. */
bool str_to_bytes(str s, uint64_t *out_bytes);
/* Longest prefix of s of at most max bytes that does not cut a UTF-8 sequence. */
str str_clip_utf8(str s, size_t max);
/* True when s is well-formed UTF-8 (no surrogates, no overlong forms). */
bool str_is_utf8(str s);

#endif
