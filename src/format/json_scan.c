/* SPDX-License-Identifier: Apache-2.0 */
#include "format/json_scan.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/map.h"

#define WINDOW_BYTES 65536

struct json_input {
    int fd;
    bool is_gzip, at_end;
    uint64_t file_pos; /* of the next byte to read */
    uint64_t base;     /* position of window[0] in the text */
    size_t at, n;      /* next byte, bytes in window */
    z_stream z;
    uint8_t raw[WINDOW_BYTES]; /* compressed */
    uint8_t window[WINDOW_BYTES];
};

static bool read_raw(struct json_input *in, uint8_t *to, size_t *n, struct err *e)
{
    ssize_t got;
    do
        got = pread(in->fd, to, WINDOW_BYTES, (off_t)in->file_pos);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_sys(e, "cannot read");
    *n = (size_t)got;
    in->file_pos += (size_t)got;
    return true;
}

/* Fills the window with decompressed bytes; members follow each other without a seam. */
static bool inflate_more(struct json_input *in, struct err *e)
{
    in->z.next_out = in->window;
    in->z.avail_out = WINDOW_BYTES;
    while (in->z.avail_out == WINDOW_BYTES && !in->at_end) {
        if (in->z.avail_in == 0) {
            size_t n;
            if (!read_raw(in, in->raw, &n, e))
                return false;
            if (n == 0)
                return err_at(e, ERR_PARSE, in->file_pos, "gzip stream is cut off");
            in->z.next_in = in->raw;
            in->z.avail_in = (uInt)n;
        }
        const int rc = inflate(&in->z, Z_NO_FLUSH);
        if (rc == Z_STREAM_END) {
            size_t n = in->z.avail_in;
            if (n == 0 && !read_raw(in, in->raw, &n, e))
                return false;
            if (in->z.avail_in == 0) {
                in->z.next_in = in->raw;
                in->z.avail_in = (uInt)n;
            }
            in->at_end = n == 0 || in->z.next_in[0] != 0x1f || inflateReset(&in->z) != Z_OK;
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            return err_at(e, ERR_PARSE, in->file_pos - in->z.avail_in, "damaged gzip stream");
        }
    }
    in->n = WINDOW_BYTES - in->z.avail_out;
    return true;
}

/* The next byte without taking it; -1 at the end or on failure (then s->failure is set). */
static int refill(struct json_scan *s)
{
    struct json_input *const in = s->input;
    in->base += in->n;
    in->at = in->n = 0;
    const bool ok =
        in->is_gzip ? inflate_more(in, &s->failure) : read_raw(in, in->window, &in->n, &s->failure);
    return ok && in->n > 0 ? in->window[0] : -1;
}

static inline int peek(struct json_scan *s)
{
    struct json_input *const in = s->input;
    return in->at < in->n ? in->window[in->at] : refill(s);
}

static inline int take(struct json_scan *s)
{
    const int c = peek(s);
    if (c >= 0)
        s->input->at++;
    return c;
}

static uint64_t position(const struct json_scan *s)
{
    return s->input->base + s->input->at;
}

static enum json_scan_token fail(struct json_scan *s, const char *what)
{
    s->at_end = s->failure.code == ERR_NONE && s->input->at >= s->input->n && peek(s) < 0 &&
                s->failure.code == ERR_NONE;
    if (s->failure.code == ERR_NONE)
        err_at(&s->failure, ERR_PARSE, position(s), "%s", what);
    return s->token = JSON_SCAN_FAILED;
}

static int peek_solid(struct json_scan *s)
{
    int c;
    while ((c = peek(s)) == ' ' || c == '\n' || c == '\r' || c == '\t')
        s->input->at++;
    return c;
}

static void add_utf8(struct buf *b, uint32_t c)
{
    if (c < 0x80) {
        buf_add_char(b, (char)c);
    } else if (c < 0x800) {
        buf_add_char(b, (char)(0xc0 | c >> 6));
        buf_add_char(b, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        buf_add_char(b, (char)(0xe0 | c >> 12));
        buf_add_char(b, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_add_char(b, (char)(0x80 | (c & 0x3f)));
    } else {
        buf_add_char(b, (char)(0xf0 | c >> 18));
        buf_add_char(b, (char)(0x80 | (c >> 12 & 0x3f)));
        buf_add_char(b, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_add_char(b, (char)(0x80 | (c & 0x3f)));
    }
}

static bool take_hex4(struct json_scan *s, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        const int c = take(s);
        const int digit = c >= '0' && c <= '9'                 ? c - '0'
                          : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                               : -1;
        if (c < 0 || digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return true;
}

static bool take_escape(struct json_scan *s);

/* After "\u": one code unit, with its low half where it is the high half of a pair. */
static bool take_unicode(struct json_scan *s)
{
    uint32_t c, low;
    if (!take_hex4(s, &c))
        return false;
    while (c >= 0xd800 && c < 0xdc00 && peek(s) == '\\') {
        s->input->at++;
        if (peek(s) != 'u') {
            add_utf8(&s->scratch, 0xfffd);
            return take_escape(s);
        }
        s->input->at++;
        if (!take_hex4(s, &low))
            return false;
        if (low >= 0xdc00 && low < 0xe000) {
            add_utf8(&s->scratch, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
            return true;
        }
        add_utf8(&s->scratch, 0xfffd);
        c = low;
    }
    add_utf8(&s->scratch, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
    return true;
}

/* Behind a backslash. */
static bool take_escape(struct json_scan *s)
{
    static const char named[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const int c = peek(s);
    if (c < 0x20)
        return false;
    const char *const at = strchr(named, c);
    if (c != 'u' && at == NULL) {
        s->n_bad_escapes++;
        return buf_add_char(&s->scratch, '\\');
    }
    s->input->at++;
    return c == 'u' ? take_unicode(s) : buf_add_char(&s->scratch, meant[at - named]);
}

/* Behind the opening quote. A string that lies whole in the window is not copied. */
static bool take_string(struct json_scan *s)
{
    struct json_input *const in = s->input;
    buf_clear(&s->scratch);
    for (;;) {
        const size_t from = in->at;
        while (in->at < in->n && in->window[in->at] != '"' && in->window[in->at] != '\\' &&
               in->window[in->at] >= 0x20)
            in->at++;
        const str run = {(const char *)in->window + from, in->at - from};
        const bool at_quote = in->at < in->n && in->window[in->at] == '"';
        if (at_quote && s->scratch.n == 0) {
            s->text = run;
            in->at++;
            return true;
        }
        if (!buf_add_str(&s->scratch, run))
            return fail(s, "string is too long") != JSON_SCAN_FAILED;
        const int c = take(s);
        if (c == '"') {
            s->text = buf_str(&s->scratch);
            return true;
        }
        if (c == '\\') {
            if (!take_escape(s))
                return fail(s, "damaged escape in a string") != JSON_SCAN_FAILED;
        } else if (c < 0) {
            return fail(s, "file ends inside a string") != JSON_SCAN_FAILED;
        } else if (c < 0x20) {
            return fail(s, "control character in a string") != JSON_SCAN_FAILED;
        } else {
            in->at--; /* a new window */
        }
    }
}

/* -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)? */
static bool is_number(str t)
{
    size_t i = 0;
    const size_t n = t.n;
    i += i < n && t.p[i] == '-';
    const size_t whole = i;
    while (i < n && t.p[i] >= '0' && t.p[i] <= '9')
        i++;
    if (i == whole || (t.p[whole] == '0' && i > whole + 1))
        return false;
    if (i < n && t.p[i] == '.') {
        const size_t part = ++i;
        while (i < n && t.p[i] >= '0' && t.p[i] <= '9')
            i++;
        if (i == part)
            return false;
    }
    if (i < n && (t.p[i] | 32) == 'e') {
        i++;
        i += i < n && (t.p[i] == '+' || t.p[i] == '-');
        const size_t power = i;
        while (i < n && t.p[i] >= '0' && t.p[i] <= '9')
            i++;
        if (i == power)
            return false;
    }
    return i == n;
}

static enum json_scan_token take_word(struct json_scan *s)
{
    buf_clear(&s->scratch);
    for (int c; (c = peek(s)) >= 0 && strchr(",:]}{[\" \t\r\n", c) == NULL && s->scratch.n < 512;
         s->input->at++)
        buf_add_char(&s->scratch, (char)c);
    s->text = buf_str(&s->scratch);
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
    return is_number(s->text) ? JSON_SCAN_NUMBER : fail(s, "neither a value nor its end");
}

static enum json_scan_token begin(struct json_scan *s, uint8_t bracket)
{
    s->input->at++;
    if (s->depth == JSON_SCAN_DEPTH)
        return fail(s, "nested too deep");
    s->open[s->depth++] = bracket;
    s->want = bracket == '{' ? JSON_SCAN_NAME_OR_END : JSON_SCAN_VALUE_OR_END;
    return bracket == '{' ? JSON_SCAN_OBJECT : JSON_SCAN_ARRAY;
}

static enum json_scan_token end(struct json_scan *s)
{
    s->input->at++;
    s->want = JSON_SCAN_COMMA;
    return s->open[--s->depth] == '{' ? JSON_SCAN_OBJECT_END : JSON_SCAN_ARRAY_END;
}

static enum json_scan_token take_name(struct json_scan *s)
{
    if (peek(s) != '"')
        return fail(s, "expected a name in quotes");
    s->input->at++;
    if (!take_string(s))
        return JSON_SCAN_FAILED;
    if (s->text.p != s->scratch.p) { /* looking for the colon may move the window */
        buf_clear(&s->scratch);
        buf_add_str(&s->scratch, s->text);
        s->text = buf_str(&s->scratch);
    }
    if (peek_solid(s) != ':')
        return fail(s, "expected ':'");
    s->input->at++;
    s->want = JSON_SCAN_VALUE;
    return JSON_SCAN_KEY;
}

static enum json_scan_token take_value(struct json_scan *s, int c)
{
    if (c == '{' || c == '[')
        return begin(s, (uint8_t)c);
    s->want = JSON_SCAN_COMMA;
    if (c != '"')
        return take_word(s);
    s->input->at++;
    return take_string(s) ? JSON_SCAN_STRING : JSON_SCAN_FAILED;
}

enum json_scan_token json_scan_next(struct json_scan *s)
{
    if (s->failure.code != ERR_NONE)
        return s->token = JSON_SCAN_FAILED;
    int c = peek_solid(s);
    s->text = (str){0};
    if (s->depth == 0 && s->want == JSON_SCAN_COMMA) {
        s->pos = position(s);
        return c < 0 && s->failure.code == ERR_NONE ? (s->token = JSON_SCAN_END)
                                                    : fail(s, "more than one value");
    }
    const char closing = s->depth == 0 ? '\0' : s->open[s->depth - 1] == '{' ? '}' : ']';
    if (s->want == JSON_SCAN_COMMA && c == ',') {
        s->input->at++;
        s->want = closing == '}' ? JSON_SCAN_NAME : JSON_SCAN_VALUE;
        c = peek_solid(s);
    } else if (s->want == JSON_SCAN_COMMA && c >= 0 && c != closing) {
        return fail(s, "expected ',' or an end");
    }
    s->pos = position(s);
    if (c < 0)
        return fail(s, "file ends too early");
    if (s->want != JSON_SCAN_VALUE && s->want != JSON_SCAN_NAME && c == closing)
        return s->token = end(s);
    s->token = s->want == JSON_SCAN_NAME || s->want == JSON_SCAN_NAME_OR_END ? take_name(s)
                                                                             : take_value(s, c);
    return s->token;
}

bool json_scan_skip(struct json_scan *s)
{
    if (s->token != JSON_SCAN_OBJECT && s->token != JSON_SCAN_ARRAY)
        return s->token != JSON_SCAN_FAILED;
    const uint32_t outside = s->depth - 1;
    while (s->depth > outside)
        if (json_scan_next(s) == JSON_SCAN_FAILED)
            return false;
    return true;
}

static bool copy_token(struct json_scan *s, struct json *j)
{
    switch (s->token) {
    case JSON_SCAN_OBJECT:
        json_object(j);
        return true;
    case JSON_SCAN_ARRAY:
        json_array(j);
        return true;
    case JSON_SCAN_OBJECT_END:
    case JSON_SCAN_ARRAY_END:
        json_end(j);
        return true;
    case JSON_SCAN_KEY:
        json_key_str(j, s->text);
        return true;
    case JSON_SCAN_STRING:
        json_str(j, s->text);
        return true;
    case JSON_SCAN_NUMBER:
        if (!is_number(s->text)) {
            json_null(j);
            return true;
        }
        json_raw(j, s->text);
        return true;
    case JSON_SCAN_TRUE:
    case JSON_SCAN_FALSE:
    case JSON_SCAN_NULL:
        json_raw(j, s->text);
        return true;
    case JSON_SCAN_FAILED:
    case JSON_SCAN_END:
        break;
    }
    return false;
}

bool json_scan_copy(struct json_scan *s, struct buf *out)
{
    const uint32_t outside =
        s->depth - (s->token == JSON_SCAN_OBJECT || s->token == JSON_SCAN_ARRAY);
    struct json j;
    json_init_buf(&j, out);
    bool ok = copy_token(s, &j);
    while (ok && s->depth > outside)
        ok = json_scan_next(s) != JSON_SCAN_FAILED && copy_token(s, &j);
    return ok && (json_done(&j, &s->failure) || fail(s, "value is too long") != JSON_SCAN_FAILED);
}

bool json_scan_open(struct json_scan *s, int fd, struct err *e)
{
    *s = (struct json_scan){0};
    struct json_input *const in = s->input = map_alloc(1, sizeof *in);
    in->fd = fd;
    buf_init(&s->scratch, LIMIT_JSON_STRING_BYTES);
    if (!read_raw(in, in->window, &in->n, e))
        return false;
    in->is_gzip = in->n >= 2 && in->window[0] == 0x1f && in->window[1] == 0x8b;
    if (in->is_gzip) {
        in->n = 0;
        in->file_pos = 0;
        if (inflateInit2(&in->z, 16 + MAX_WBITS) != Z_OK)
            return err_set(e, ERR_LIMIT, "no memory to decompress");
    }
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
    if (s->input != NULL && s->input->is_gzip)
        inflateEnd(&s->input->z);
    free(s->input);
    buf_release(&s->scratch);
    *s = (struct json_scan){0};
}

bool json_scan_looks_like(str head)
{
    if (head.n >= 2 && (uint8_t)head.p[0] == 0x1f && (uint8_t)head.p[1] == 0x8b)
        return true;
    head = str_trim(head);
    return head.n > 0 && (head.p[0] == '{' || head.p[0] == '[');
}
