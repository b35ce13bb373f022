/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "base/file.h"

enum { IN_OBJECT = 1, HAS_ITEM = 2, AFTER_KEY = 4 }; /* bits of state[depth] */

void json_init(struct json *j, json_sink sink, void *ctx)
{
    j->sink = sink;
    j->ctx = ctx;
    j->failed = j->pretty = false;
    j->depth = 0;
    j->n_not_finite = 0;
    j->n_out = 0;
    memset(j->state, 0, sizeof j->state);
}

static bool buf_sink(void *ctx, const char *p, size_t n)
{
    return buf_add(ctx, p, n);
}

static bool fd_sink(void *ctx, const char *p, size_t n)
{
    struct err e;
    return file_write_all((int)(intptr_t)ctx, p, n, &e);
}

void json_init_buf(struct json *j, struct buf *b)
{
    json_init(j, buf_sink, b);
}

void json_init_fd(struct json *j, int fd)
{
    json_init(j, fd_sink, (void *)(intptr_t)fd);
}

static void flush(struct json *j)
{
    if (!j->failed && j->n_out > 0 && !j->sink(j->ctx, j->out, j->n_out))
        j->failed = true;
    j->n_out = 0;
}

static void put(struct json *j, const char *p, size_t n)
{
    while (n > 0 && !j->failed) {
        if (j->n_out == sizeof j->out)
            flush(j);
        const size_t room = sizeof j->out - j->n_out;
        const size_t part = n < room ? n : room;
        memcpy(j->out + j->n_out, p, part);
        j->n_out += part;
        p += part;
        n -= part;
    }
}

static void put_char(struct json *j, char c)
{
    put(j, &c, 1);
}

static void new_line(struct json *j)
{
    static const char spaces[2 * JSON_DEPTH_MAX + 1] =
        "                                                                "
        "                                                                ";
    if (!j->pretty)
        return;
    put_char(j, '\n');
    put(j, spaces, 2 * (size_t)j->depth);
}

/* What stands before a value or a key: a comma after the one before, a line when pretty. */
static void before_item(struct json *j)
{
    uint8_t *state = &j->state[j->depth];
    if (j->depth == 0) {
        must((*state & HAS_ITEM) == 0);
    } else {
        if (*state & HAS_ITEM)
            put_char(j, ',');
        new_line(j);
    }
    *state |= HAS_ITEM;
}

static void before_value(struct json *j)
{
    uint8_t *state = &j->state[j->depth];
    if (*state & IN_OBJECT) {
        must(*state & AFTER_KEY);
        *state &= (uint8_t)~AFTER_KEY;
        return;
    }
    before_item(j);
}

static void open_level(struct json *j, char bracket, uint8_t state)
{
    before_value(j);
    must(j->depth + 1 < JSON_DEPTH_MAX);
    put_char(j, bracket);
    j->state[++j->depth] = state;
}

void json_object(struct json *j)
{
    open_level(j, '{', IN_OBJECT);
}

void json_array(struct json *j)
{
    open_level(j, '[', 0);
}

void json_end(struct json *j)
{
    must(j->depth > 0);
    const uint8_t state = j->state[j->depth];
    must((state & AFTER_KEY) == 0);
    j->depth--;
    if (state & HAS_ITEM)
        new_line(j);
    put_char(j, state & IN_OBJECT ? '}' : ']');
}

/* Bytes of the well-formed UTF-8 sequence that s begins with; 0 when it does not. */
static size_t sequence_length(str s)
{
    const uint8_t first = (uint8_t)s.p[0];
    const size_t n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    return n <= s.n && str_is_utf8(str_sub(s, 0, n)) ? n : 0;
}

static size_t escape(uint8_t c, char out[static 8])
{
    switch (c) {
    case '"':
        return (size_t)snprintf(out, 8, "\\\"");
    case '\\':
        return (size_t)snprintf(out, 8, "\\\\");
    case '\n':
        return (size_t)snprintf(out, 8, "\\n");
    case '\r':
        return (size_t)snprintf(out, 8, "\\r");
    case '\t':
        return (size_t)snprintf(out, 8, "\\t");
    default:
        return (size_t)snprintf(out, 8, "\\u%04x", c);
    }
}

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void put_string(struct json *j, str s)
{
    put_char(j, '"');
    while (s.n > 0) {
        size_t n = 0;
        while (n < s.n && is_plain((uint8_t)s.p[n]))
            n++;
        put(j, s.p, n);
        s = str_sub(s, n, s.n);
        if (s.n == 0)
            break;
        if ((uint8_t)s.p[0] < 0x80) {
            char text[8];
            put(j, text, escape((uint8_t)s.p[0], text));
            s = str_sub(s, 1, s.n);
            continue;
        }
        const size_t length = sequence_length(s);
        if (length == 0)
            put(j, "\xef\xbf\xbd", 3);
        else
            put(j, s.p, length);
        s = str_sub(s, length == 0 ? 1 : length, s.n);
    }
    put_char(j, '"');
}

void json_key_str(struct json *j, str key)
{
    uint8_t *state = &j->state[j->depth];
    must(*state & IN_OBJECT);
    must((*state & AFTER_KEY) == 0);
    before_item(j);
    put_string(j, key);
    put(j, ": ", j->pretty ? 2 : 1);
    *state |= AFTER_KEY;
}

void json_key(struct json *j, const char *key)
{
    json_key_str(j, str_from(key));
}

void json_str(struct json *j, str s)
{
    before_value(j);
    put_string(j, s);
}

void json_cstr(struct json *j, const char *s)
{
    if (s == NULL)
        json_null(j);
    else
        json_str(j, str_from(s));
}

void json_strf(struct json *j, const char *format, ...)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    va_list args;
    va_start(args, format);
    buf_addv(&b, format, args);
    va_end(args);
    json_str(j, buf_str(&b));
    buf_release(&b);
}

static void put_value(struct json *j, const char *p, size_t n)
{
    before_value(j);
    put(j, p, n);
}

void json_i64(struct json *j, int64_t v)
{
    char text[24];
    put_value(j, text, (size_t)snprintf(text, sizeof text, "%" PRId64, v));
}

void json_u64(struct json *j, uint64_t v)
{
    char text[24];
    put_value(j, text, (size_t)snprintf(text, sizeof text, "%" PRIu64, v));
}

size_t json_format_f64(double v, char out[static JSON_F64_MAX])
{
    size_t n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = (size_t)snprintf(out, JSON_F64_MAX, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            break;
    }
    return n;
}

void json_f64(struct json *j, double v)
{
    char text[JSON_F64_MAX];
    if (!isfinite(v)) {
        j->n_not_finite++;
        json_null(j);
        return;
    }
    put_value(j, text, json_format_f64(v, text));
}

void json_bool(struct json *j, bool v)
{
    json_raw(j, v ? S("true") : S("false"));
}

void json_null(struct json *j)
{
    json_raw(j, S("null"));
}

void json_raw(struct json *j, str text)
{
    put_value(j, text.p, text.n);
}

void json_fixed(struct json *j, int64_t v, unsigned digits_after)
{
    char text[48];
    const uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    uint64_t one = 1;
    must(digits_after <= 18);
    for (unsigned i = 0; i < digits_after; i++)
        one *= 10;
    size_t n = (size_t)snprintf(text, sizeof text, "%s%" PRIu64, v < 0 ? "-" : "", size / one);
    if (size % one != 0) {
        n += (size_t)snprintf(text + n, sizeof text - n, ".%0*" PRIu64, (int)digits_after,
                              size % one);
        while (text[n - 1] == '0')
            n--;
    }
    put_value(j, text, n);
}

void json_kstr(struct json *j, const char *key, str v)
{
    json_key(j, key);
    json_str(j, v);
}

void json_kstrs(struct json *j, const char *key, const str *items, size_t n)
{
    json_key(j, key);
    json_array(j);
    for (size_t i = 0; i < n; i++)
        json_str(j, items[i]);
    json_end(j);
}

void json_kcstr(struct json *j, const char *key, const char *v)
{
    json_key(j, key);
    json_cstr(j, v);
}

void json_ki64(struct json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_i64(j, v);
}

void json_ku64(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_u64(j, v);
}

void json_kf64(struct json *j, const char *key, double v)
{
    json_key(j, key);
    json_f64(j, v);
}

void json_kbool(struct json *j, const char *key, bool v)
{
    json_key(j, key);
    json_bool(j, v);
}

void json_knull(struct json *j, const char *key)
{
    json_key(j, key);
    json_null(j);
}

bool json_done(struct json *j, struct err *e)
{
    must(j->depth == 0);
    if (j->pretty)
        put_char(j, '\n');
    flush(j);
    if (!j->failed)
        return true;
    if (j->sink == buf_sink)
        return buf_ok(j->ctx, "the JSON document", e);
    return j->sink == fd_sink ? err_sys(e, "cannot write the JSON document")
                              : err_set(e, ERR_IO, "cannot write the JSON document");
}
