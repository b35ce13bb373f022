/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdlib.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

int str_cmp(str a, str b)
{
    const size_t n = a.n < b.n ? a.n : b.n;
    const int order = n == 0 ? 0 : memcmp(a.p, b.p, n);
    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

bool str_eq_nocase(str a, str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

ptrdiff_t str_find(str s, str needle)
{
    if (needle.n == 0)
        return 0;
    if (s.n < needle.n)
        return -1;
    const char *hit = memmem(s.p, s.n, needle.p, needle.n);
    return hit == NULL ? -1 : hit - s.p;
}

ptrdiff_t str_find_nocase(str s, str needle)
{
    if (needle.n == 0)
        return 0;
    for (size_t i = 0; i + needle.n <= s.n; i++)
        if (str_eq_nocase((str){s.p + i, needle.n}, needle))
            return (ptrdiff_t)i;
    return -1;
}

str str_trim(str s)
{
    while (s.n > 0 && is_space(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

uint64_t str_hash(str s)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ s.n;
    size_t i = 0;
    for (; i + 8 <= s.n; i += 8) {
        uint64_t word;
        memcpy(&word, s.p + i, 8);
        h = (h ^ mix(word)) * 0x9fb21c651e98df25u;
    }
    if (i < s.n) {
        uint64_t word = 0;
        memcpy(&word, s.p + i, s.n - i);
        h = (h ^ mix(word)) * 0x9fb21c651e98df25u;
    }
    return mix(h);
}

uint64_t str_fnv1a(str s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3u;
    return h;
}

bool str_to_u64(str s, uint64_t *out)
{
    uint64_t value = 0;
    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.p[i] - '0'), &value))
            return false;
    }
    *out = value;
    return true;
}

bool str_to_i64(str s, int64_t *out)
{
    const bool minus = s.n > 0 && s.p[0] == '-';
    const uint64_t most = (uint64_t)INT64_MAX + (minus ? 1 : 0);
    uint64_t value;
    if (s.n > 0 && (s.p[0] == '-' || s.p[0] == '+'))
        s = str_sub(s, 1, s.n);
    if (!str_to_u64(s, &value) || value > most)
        return false;
    *out = minus ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

bool str_to_f64(str s, double *out)
{
    char text[128];
    if (s.n == 0 || s.n >= sizeof text || is_space(s.p[0]))
        return false;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    char *end;
    const double value = strtod(text, &end);
    if (end != text + s.n)
        return false;
    *out = value;
    return true;
}

struct unit {
    str word;
    uint64_t factor;
};

/* Splits "1.5GiB" into the number and the unit's factor; a bare number takes `bare`. */
static bool split_unit(str s, const struct unit *units, size_t n_units, uint64_t bare, str *number,
                       uint64_t *factor)
{
    size_t n = 0;
    s = str_trim(s);
    while (n < s.n &&
           (s.p[n] == '+' || s.p[n] == '-' || s.p[n] == '.' || (s.p[n] >= '0' && s.p[n] <= '9')))
        n++;
    *number = str_sub(s, 0, n);
    const str word = str_trim(str_sub(s, n, s.n));
    *factor = bare;
    if (word.n == 0)
        return n > 0;
    for (size_t i = 0; i < n_units; i++)
        if (str_eq_nocase(word, units[i].word)) {
            *factor = units[i].factor;
            return n > 0;
        }
    return false;
}

/* number * factor, exact for integers; false when negative where `least` forbids or too large. */
static bool scale(str number, uint64_t factor, int64_t *out)
{
    int64_t whole;
    if (str_to_i64(number, &whole))
        return !__builtin_mul_overflow(whole, factor, out);
    double value;
    if (!str_to_f64(number, &value))
        return false;
    value *= (double)factor;
    if (!(value > -9.2e18 && value < 9.2e18))
        return false;
    *out = (int64_t)(value + (value < 0 ? -0.5 : 0.5));
    return true;
}

bool str_to_duration_ns(str s, int64_t bare_unit_ns, int64_t *out_ns)
{
    static const struct unit units[] = {
        {STR_INIT("ns"), 1},
        {STR_INIT("us"), 1000},
        {STR_INIT("µs"), 1000},
        {STR_INIT("ms"), 1000000},
        {STR_INIT("s"), 1000000000},
        {STR_INIT("m"), 60000000000},
        {STR_INIT("min"), 60000000000},
        {STR_INIT("h"), 3600000000000},
        {STR_INIT("d"), 86400000000000},
        {STR_INIT("w"), 604800000000000},
    };
    str number;
    uint64_t factor;
    return split_unit(s, units, sizeof units / sizeof *units, (uint64_t)bare_unit_ns, &number,
                      &factor) &&
           scale(number, factor, out_ns);
}

bool str_to_bytes(str s, uint64_t *out_bytes)
{
    static const struct unit units[] = {
        {STR_INIT("B"), 1},
        {STR_INIT("kB"), 1000},
        {STR_INIT("MB"), 1000000},
        {STR_INIT("GB"), 1000000000},
        {STR_INIT("TB"), 1000000000000},
        {STR_INIT("KiB"), 1024},
        {STR_INIT("K"), 1024},
        {STR_INIT("MiB"), 1048576},
        {STR_INIT("M"), 1048576},
        {STR_INIT("GiB"), 1073741824},
        {STR_INIT("G"), 1073741824},
        {STR_INIT("TiB"), 1099511627776},
        {STR_INIT("T"), 1099511627776},
    };
    str number;
    uint64_t factor;
    int64_t bytes;
    if (!split_unit(s, units, sizeof units / sizeof *units, 1, &number, &factor) ||
        !scale(number, factor, &bytes) || bytes < 0)
        return false;
    *out_bytes = (uint64_t)bytes;
    return true;
}

str str_clip_utf8(str s, size_t max)
{
    if (s.n <= max)
        return s;
    size_t n = max;
    while (n > 0 && max - n < 3 && ((uint8_t)s.p[n] & 0xc0) == 0x80)
        n--;
    return str_sub(s, 0, n);
}

/* Length of the UTF-8 sequence at s.p[i], or 0 when it is not well-formed (Unicode table 3-7). */
static size_t utf8_length(str s, size_t i)
{
    const uint8_t *p = (const uint8_t *)s.p + i;
    const size_t left = s.n - i;
    uint8_t low = 0x80, high = 0xbf;
    size_t n;
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xc2 && p[0] <= 0xdf)
        n = 2;
    else if (p[0] >= 0xe0 && p[0] <= 0xef)
        n = 3;
    else if (p[0] >= 0xf0 && p[0] <= 0xf4)
        n = 4;
    else
        return 0;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (left < n || p[1] < low || p[1] > high)
        return 0;
    for (size_t k = 2; k < n; k++)
        if ((p[k] & 0xc0) != 0x80)
            return 0;
    return n;
}

bool str_is_utf8(str s)
{
    for (size_t i = 0; i < s.n;) {
        const size_t n = utf8_length(s, i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}
