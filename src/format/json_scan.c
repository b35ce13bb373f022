/* SPDX-License-Identifier: Apache-2.0 */
#include "format/json_scan.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/limits.h"
#include "base/map.h"

#define WINDOW_BYTES (UINT32_C(1) << 18)
#define PADDING_BYTES 32 /* zeros behind a window: no look at 16 bytes needs a check of its end */

struct json_window {
    struct json_window *next;
    size_t capacity;
    uint8_t bytes[];
};

static uint64_t position(const struct json_scan *s, const uint8_t *at)
{
    return s->end_pos - (uint64_t)(s->end - at);
}

/* -- windows -- */

static struct json_window *window_new(struct json_scan *s, size_t capacity)
{
    struct json_window *w = s->spare;
    if (w != NULL && w->capacity >= capacity) {
        s->spare = w->next;
        return w;
    }
    w = malloc(sizeof *w + capacity + PADDING_BYTES);
    if (w == NULL) {
        err_set(&s->failure, ERR_LIMIT, "no memory for %zu bytes of JSON", capacity);
        return NULL;
    }
    w->next = NULL;
    w->capacity = capacity;
    return w;
}

static void windows_free(struct json_window *w)
{
    while (w != NULL) {
        struct json_window *const next = w->next;
        free(w);
        w = next;
    }
}

void json_scan_forget(struct json_scan *s)
{
    s->holds = false;
    struct json_window *const held = s->held;
    if (held == NULL)
        return;
    if (s->spare == NULL && held->capacity == WINDOW_BYTES) {
        s->spare = held;
        s->held = held->next;
        held->next = NULL;
    }
    windows_free(s->held);
    s->held = NULL;
    s->held_bytes = 0;
}

void json_scan_hold(struct json_scan *s)
{
    s->holds = true;
}

/* Moves on to a window that begins with the bytes from *from on, and points *from and at into it. False at
 * the end of the text and on failure. */
static bool more(struct json_scan *s, uint8_t **from)
{
    const size_t kept = (size_t)(s->end - *from), ahead = (size_t)(s->at - *from);
    if (s->failure.code != ERR_NONE)
        return false;
    if (kept > LIMIT_JSON_STRING_BYTES)
        return err_at(&s->failure, ERR_LIMIT, position(s, *from), "string is too long");
    if (s->holds && s->held_bytes > LIMIT_JSON_ENTRY_BYTES)
        return err_at(&s->failure, ERR_LIMIT, position(s, *from), "entry is too long");
    struct json_window *w = window_new(s, kept > WINDOW_BYTES / 2 ? kept * 2 : WINDOW_BYTES);
    size_t n = 0;
    if (w == NULL)
        return false;
    memcpy(w->bytes, *from, kept);
    const bool ok = input_read(&s->input, w->bytes + kept, w->capacity - kept, &n, &s->failure);
    n = ok ? n : 0;
    memset(w->bytes + kept + n, 0, PADDING_BYTES);
    if (s->window != NULL) {
        s->window->next = s->held;
        s->held = s->window;
        s->held_bytes += s->window->capacity;
    }
    s->window = w;
    *from = w->bytes;
    s->at = w->bytes + ahead;
    s->end = w->bytes + kept + n;
    s->end_pos += n;
    return n > 0;
}

static enum json_scan_token fail_at(struct json_scan *s, uint8_t *at, const char *what)
{
    s->at_end = s->failure.code == ERR_NONE && s->at >= s->end;
    if (s->failure.code == ERR_NONE)
        err_at(&s->failure, ERR_PARSE, position(s, at), "%s", what);
    return s->token = JSON_SCAN_FAILED;
}

static enum json_scan_token fail(struct json_scan *s, const char *what)
{
    return fail_at(s, s->at, what);
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static inline uint8_t *pass_space(uint8_t *p)
{
#ifdef __SSE2__
    if (*p == '\n') { /* and the indentation behind it */
        const __m128i blank = _mm_set1_epi8(' ');
        for (p++;; p += 16) {
            const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
            const unsigned mask = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, blank)) ^ 0xffff;
            if (mask != 0) {
                p += __builtin_ctz(mask);
                break;
            }
        }
    }
#endif
    while (is_space(*p))
        p++;
    return p;
}

/* The next byte that is not white space, without taking it; -1 at the end or on failure. */
static int peek_solid(struct json_scan *s)
{
    for (;;) {
        s->at = pass_space(s->at);
        if (s->at < s->end)
            return *s->at;
        uint8_t *from = s->at;
        if (!more(s, &from))
            return -1;
    }
}

/* -- strings -- */

/* The first quote, backslash or control character; the zeros behind the window are such. */
static uint8_t *string_stop(uint8_t *p)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    const __m128i control = _mm_set1_epi8(0x1f);
    for (;; p += 16) {
        const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        const __m128i hit =
            _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                         _mm_cmpeq_epi8(_mm_min_epu8(v, control), v));
        const unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask != 0)
            return p + __builtin_ctz(mask);
    }
#else
    while (*p != '"' && *p != '\\' && *p >= 0x20)
        p++;
    return p;
#endif
}

static size_t put_utf8(uint8_t *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (uint8_t)(0xc0 | c >> 6);
        to[1] = (uint8_t)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (uint8_t)(0xe0 | c >> 12);
        to[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        to[2] = (uint8_t)(0x80 | (c & 0x3f));
        return 3;
    }
    to[0] = (uint8_t)(0xf0 | c >> 18);
    to[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    to[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    to[3] = (uint8_t)(0x80 | (c & 0x3f));
    return 4;
}

static bool hex4(const uint8_t *p, const uint8_t *end, uint32_t *out)
{
    *out = 0;
    if (end - p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        const int c = p[i];
        const int digit = c >= '0' && c <= '9'                 ? c - '0'
                          : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                               : -1;
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

/* "\uXXXX" at p, with its low half where it is the high half of a pair. Bytes taken; 0: it is none. */
static size_t take_unicode(const uint8_t *p, const uint8_t *end, uint32_t *c)
{
    uint32_t low;
    if (!hex4(p + 2, end, c))
        return 0;
    if (*c < 0xd800 || *c >= 0xe000)
        return 6;
    if (*c < 0xdc00 && end - p >= 12 && p[6] == '\\' && p[7] == 'u' && hex4(p + 8, end, &low) &&
        low >= 0xdc00 && low < 0xe000) {
        *c = 0x10000 + ((*c - 0xd800) << 10) + (low - 0xdc00);
        return 12;
    }
    *c = 0xfffd;
    return 6;
}

/* Undoes the escapes of [from, end) in place: no escape is shorter than what it stands for. */
static size_t unescape(struct json_scan *s, uint8_t *from, const uint8_t *end)
{
    static const char named[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    uint8_t *to = from;
    const uint8_t *p = from;
    while (p < end) {
        const uint8_t *const slash = memchr(p, '\\', (size_t)(end - p));
        const size_t plain = (size_t)((slash == NULL ? end : slash) - p);
        memmove(to, p, plain);
        to += plain;
        p += plain;
        if (slash == NULL)
            break;
        uint32_t c = 0;
        const char *const at = p + 1 < end ? strchr(named, p[1]) : NULL;
        const size_t taken = p + 1 < end && p[1] == 'u' ? take_unicode(p, end, &c) : 0;
        if (taken > 0) {
            to += put_utf8(to, c);
            p += taken;
        } else if (at != NULL && *at != '\0') {
            *to++ = (uint8_t)meant[at - named];
            p += 2;
        } else {
            s->n_bad_escapes++;
            *to++ = *p++;
        }
    }
    return (size_t)(to - from);
}

/* A string that has escapes or does not lie in the window whole; at is where the look at it stopped. */
static bool take_long_string(struct json_scan *s, uint8_t *from)
{
    bool escapes = false;
    for (;;) {
        const uint8_t c = *s->at;
        if (s->at >= s->end || (c == '\\' && s->at + 1 >= s->end)) {
            if (!more(s, &from)) {
                s->at = s->end;
                return fail(s, "file ends inside a string") != JSON_SCAN_FAILED;
            }
        } else if (c == '\\') {
            escapes = true;
            s->at += 2;
        } else if (c == '"') {
            break;
        } else {
            return fail(s, "control character in a string") != JSON_SCAN_FAILED;
        }
        s->at = string_stop(s->at);
    }
    const size_t n = escapes ? unescape(s, from, s->at) : (size_t)(s->at - from);
    s->text = (str){(const char *)from, n};
    s->at++;
    return true;
}

/* Behind the opening quote. */
static inline bool take_string(struct json_scan *s)
{
    uint8_t *const from = s->at;
    s->at = string_stop(from);
    if (*s->at != '"')
        return take_long_string(s, from);
    s->text = (str){(const char *)from, (size_t)(s->at - from)};
    s->at++;
    return true;
}

/* -- numbers and words -- */

static const uint8_t *digits(const uint8_t *p)
{
    while (*p >= '0' && *p <= '9')
        p++;
    return p;
}

/* Behind -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? at p; NULL: there is none. */
static const uint8_t *number_end(const uint8_t *p)
{
    p += *p == '-';
    const uint8_t *const whole = p;
    p = digits(p);
    if (p == whole || (*whole == '0' && p > whole + 1))
        return NULL;
    if (*p == '.') {
        const uint8_t *const part = ++p;
        p = digits(p);
        if (p == part)
            return NULL;
    }
    if ((*p | 32) == 'e') {
        p++;
        p += *p == '+' || *p == '-';
        const uint8_t *const power = p;
        p = digits(p);
        if (p == power)
            return NULL;
    }
    return p;
}

static bool ends_word(uint8_t c)
{
    return is_space(c) || c == ',' || c == ']' || c == '}' || c == ':' || c == '[' || c == '{' ||
           c == '"';
}

#define WORD_BYTES 512

/* A number that touches the end of the window, or another word. */
static enum json_scan_token take_word(struct json_scan *s)
{
    uint8_t *from = s->at;
    for (;;) {
        while (s->at < s->end && !ends_word(*s->at) && s->at - from < WORD_BYTES)
            s->at++;
        if (s->at < s->end || !more(s, &from))
            break;
    }
    if (s->failure.code != ERR_NONE)
        return fail(s, "");
    s->text = (str){(const char *)from, (size_t)(s->at - from)};
    if (str_eq(s->text, S("true")))
        return JSON_SCAN_TRUE;
    if (str_eq(s->text, S("false")))
        return JSON_SCAN_FALSE;
    if (str_eq(s->text, S("null")))
        return JSON_SCAN_NULL;
    const str bare =
        str_sub(s->text, s->text.n > 0 && (s->text.p[0] == '-' || s->text.p[0] == '+'), s->text.n);
    if (str_eq_nocase(bare, S("inf")) || str_eq_nocase(bare, S("nan")) ||
        str_eq_nocase(bare, S("infinity"))) {
        s->n_not_finite++;
        return JSON_SCAN_NUMBER;
    }
    return number_end(from) == s->at ? JSON_SCAN_NUMBER : fail(s, "neither a value nor its end");
}

static inline enum json_scan_token take_number(struct json_scan *s)
{
    uint8_t *const from = s->at;
    const uint8_t *const stop = number_end(from);
    if (stop == NULL || stop >= s->end || !ends_word(*stop))
        return take_word(s);
    s->text = (str){(const char *)from, (size_t)(stop - from)};
    s->at += s->text.n;
    return JSON_SCAN_NUMBER;
}

/* -- tokens -- */

static enum json_scan_token begin(struct json_scan *s, uint8_t bracket)
{
    if (s->depth == JSON_SCAN_DEPTH)
        return fail(s, "nested too deep");
    s->at++;
    s->open[s->depth++] = bracket;
    s->want = bracket == '{' ? JSON_SCAN_NAME_OR_END : JSON_SCAN_VALUE_OR_END;
    return bracket == '{' ? JSON_SCAN_OBJECT : JSON_SCAN_ARRAY;
}

static enum json_scan_token end(struct json_scan *s)
{
    s->at++;
    s->want = JSON_SCAN_COMMA;
    return s->open[--s->depth] == '{' ? JSON_SCAN_OBJECT_END : JSON_SCAN_ARRAY_END;
}

static enum json_scan_token take_name(struct json_scan *s)
{
    if (*s->at != '"')
        return fail(s, "expected a name in quotes");
    s->at++;
    if (!take_string(s))
        return JSON_SCAN_FAILED;
    if (*s->at != ':' && peek_solid(s) != ':')
        return fail(s, "expected ':'");
    s->at++;
    s->want = JSON_SCAN_VALUE;
    return JSON_SCAN_KEY;
}

static enum json_scan_token take_value(struct json_scan *s, int c)
{
    if (c == '{' || c == '[')
        return begin(s, (uint8_t)c);
    s->want = JSON_SCAN_COMMA;
    if (c != '"')
        return take_number(s);
    s->at++;
    return take_string(s) ? JSON_SCAN_STRING : JSON_SCAN_FAILED;
}

enum json_scan_token json_scan_next(struct json_scan *s)
{
    if (s->failure.code != ERR_NONE)
        return s->token = JSON_SCAN_FAILED;
    if (s->held != NULL && !s->holds)
        json_scan_forget(s);
    int c = *s->at > ' ' ? *s->at : peek_solid(s);
    s->text = (str){0};
    if (s->depth == 0 && s->want == JSON_SCAN_COMMA) {
        s->pos = position(s, s->at);
        return c < 0 && s->failure.code == ERR_NONE ? (s->token = JSON_SCAN_END)
                                                    : fail(s, "more than one value");
    }
    const char closing = s->depth == 0 ? '\0' : s->open[s->depth - 1] == '{' ? '}' : ']';
    if (s->want == JSON_SCAN_COMMA && c == ',') {
        s->at++;
        s->want = closing == '}' ? JSON_SCAN_NAME : JSON_SCAN_VALUE;
        c = *s->at > ' ' ? *s->at : peek_solid(s);
    } else if (s->want == JSON_SCAN_COMMA && c >= 0 && c != closing) {
        return fail(s, "expected ',' or an end");
    }
    s->pos = position(s, s->at);
    if (c < 0)
        return fail(s, "file ends too early");
    if (s->want != JSON_SCAN_VALUE && s->want != JSON_SCAN_NAME && c == closing)
        return s->token = end(s);
    s->token = s->want == JSON_SCAN_NAME || s->want == JSON_SCAN_NAME_OR_END ? take_name(s)
                                                                             : take_value(s, c);
    return s->token;
}

enum json_scan_token json_scan_member(struct json_scan *s, str *name)
{
    if (s->want != JSON_SCAN_COMMA && s->want != JSON_SCAN_NAME_OR_END)
        return fail(s, "not inside an object");
    if (s->held != NULL && !s->holds)
        json_scan_forget(s);
    uint8_t *p = pass_space(s->at);
    if (s->want == JSON_SCAN_COMMA && *p == ',')
        p = pass_space(p + 1);
    else if (s->want == JSON_SCAN_COMMA)
        p = s->end; /* an end, or damage */
    if (*p == '"' && p < s->end) {
        uint8_t *const stop = string_stop(p + 1);
        uint8_t *colon = *stop == '"' ? pass_space(stop + 1) : s->end;
        uint8_t *const value = *colon == ':' ? pass_space(colon + 1) : s->end;
        if (value < s->end) {
            *name = (str){(const char *)p + 1, (size_t)(stop - p) - 1};
            s->at = value;
            s->pos = position(s, value);
            s->text = (str){0};
            return s->token = take_value(s, *value);
        }
    }
    if (json_scan_next(s) != JSON_SCAN_KEY)
        return s->token;
    *name = s->text;
    return json_scan_next(s);
}

/* -- whole values -- */

/* The first quote, bracket or zero. */
static uint8_t *bracket_stop(uint8_t *p)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), zero = _mm_setzero_si128();
    const __m128i lower = _mm_set1_epi8(0x20); /* makes { of [ and } of ] */
    const __m128i begins = _mm_set1_epi8('{'), ends = _mm_set1_epi8('}');
    for (;; p += 16) {
        const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        const __m128i folded = _mm_or_si128(v, lower);
        const __m128i hit =
            _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(folded, begins), _mm_cmpeq_epi8(folded, ends)),
                         _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, zero)));
        const unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask != 0)
            return p + __builtin_ctz(mask);
    }
#else
    while (*p != '"' && *p != '\0' && (*p | 0x20) != '{' && (*p | 0x20) != '}')
        p++;
    return p;
#endif
}

/* Of a value that is passed over, what has to stay together: from `from` on, unless it gets too long. */
struct keep {
    uint8_t *from; /* NULL: nothing */
    size_t most;
};

static bool more_kept(struct json_scan *s, struct keep *k)
{
    if (k->from != NULL && (size_t)(s->at - k->from) > k->most)
        k->from = NULL;
    uint8_t *from = k->from != NULL ? k->from : s->at;
    const bool ok = more(s, &from);
    k->from = k->from != NULL ? from : NULL;
    if (k->from == NULL && !s->holds)
        json_scan_forget(s);
    return ok;
}

/* Passes over a string, behind its opening quote. */
static bool pass_string(struct json_scan *s, struct keep *k)
{
    for (;;) {
        s->at = string_stop(s->at);
        const uint8_t c = *s->at;
        if (s->at >= s->end || (c == '\\' && s->at + 1 >= s->end)) {
            if (!more_kept(s, k)) {
                s->at = s->end;
                return fail(s, "file ends inside a string") != JSON_SCAN_FAILED;
            }
        } else if (c == '\\') {
            s->at += 2;
        } else if (c == '"') {
            s->at++;
            return true;
        } else {
            return fail(s, "control character in a string") != JSON_SCAN_FAILED;
        }
    }
}

/* Behind the bracket of a value: passes over the rest of it. */
static bool pass_value(struct json_scan *s, struct keep *k)
{
    const uint32_t outside = s->depth - 1;
    while (s->depth > outside) {
        s->at = bracket_stop(s->at);
        const uint8_t c = *s->at;
        if (s->at >= s->end) {
            if (!more_kept(s, k))
                return fail(s, "file ends too early") != JSON_SCAN_FAILED;
            continue;
        }
        if (c == '\0')
            return fail(s, "neither a value nor its end") != JSON_SCAN_FAILED;
        s->at++;
        if (c == '"') {
            if (!pass_string(s, k))
                return false;
        } else if (c == '{' || c == '[') {
            if (s->depth == JSON_SCAN_DEPTH)
                return fail_at(s, s->at - 1, "nested too deep") != JSON_SCAN_FAILED;
            s->open[s->depth++] = c;
        } else if (s->open[--s->depth] != (c == '}' ? '{' : '[')) {
            s->at--;
            return fail(s, "the bracket does not fit the one it ends") != JSON_SCAN_FAILED;
        }
    }
    s->want = JSON_SCAN_COMMA;
    s->token = s->open[s->depth] == '{' ? JSON_SCAN_OBJECT_END : JSON_SCAN_ARRAY_END;
    return true;
}

bool json_scan_skip(struct json_scan *s)
{
    if (s->token != JSON_SCAN_OBJECT && s->token != JSON_SCAN_ARRAY)
        return s->token != JSON_SCAN_FAILED;
    return pass_value(s, &(struct keep){0});
}

bool json_scan_raw(struct json_scan *s, size_t most, str *out)
{
    if (s->token != JSON_SCAN_OBJECT && s->token != JSON_SCAN_ARRAY)
        return false;
    struct keep k = {s->at - 1, most};
    if (!pass_value(s, &k))
        return false;
    const size_t n = k.from == NULL ? SIZE_MAX : (size_t)(s->at - k.from);
    *out = n > most ? (str){0} : (str){(const char *)k.from, n};
    return true;
}

/* -- life -- */

bool json_scan_open(struct json_scan *s, int fd, struct err *e)
{
    *s = (struct json_scan){0};
    if (!input_open(&s->input, fd, e))
        return false;
    s->window = window_new(s, WINDOW_BYTES);
    if (s->window == NULL)
        return json_scan_ok(s, e);
    memset(s->window->bytes, 0, PADDING_BYTES);
    s->at = s->end = s->window->bytes;
    return true;
}

bool json_scan_at_end(const struct json_scan *s)
{
    return s->at_end;
}

bool json_scan_ok(const struct json_scan *s, struct err *e)
{
    if (s->failure.code == ERR_NONE)
        return true;
    *e = s->failure;
    return false;
}

void json_scan_release(struct json_scan *s)
{
    windows_free(s->window);
    windows_free(s->held);
    windows_free(s->spare);
    input_release(&s->input);
    *s = (struct json_scan){0};
}

bool json_scan_looks_like(str head)
{
    head = str_trim(head);
    return head.n > 0 && (head.p[0] == '{' || head.p[0] == '[');
}
