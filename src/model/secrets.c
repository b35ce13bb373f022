/* SPDX-License-Identifier: Apache-2.0 */
#include "model/secrets.h"

#include <ctype.h>
#include <math.h>

#include "base/buf.h"
#include "base/limits.h"

#define PEM "-----BEGIN "

static const str last_words[] = {
#define LAST_WORD(word) STR_INIT(word),
#include "model/secrets.def"
};
static const str anywhere[] = {
#define ANYWHERE(part) STR_INIT(part),
#include "model/secrets.def"
};

enum body { ALNUM, WORD, DOTTED };

static const struct {
    str prefix;
    size_t least; /* bytes of the whole value */
    enum body body;
} prefixes[] = {
#define PREFIX(prefix, least, body) {STR_INIT(prefix), least, body},
#include "model/secrets.def"
};

/* The last word of a_b, a-b, a.b, aB, without regard to case. */
static str last_word(str key)
{
    size_t from = key.n;
    while (from > 0 && isalnum((unsigned char)key.p[from - 1])) {
        from--;
        if (isupper((unsigned char)key.p[from]) && from > 0 &&
            islower((unsigned char)key.p[from - 1]))
            break;
    }
    return str_sub(key, from, key.n);
}

bool secret_key(str key)
{
    const str last = last_word(key);
    for (size_t i = 0; i < sizeof last_words / sizeof *last_words; i++)
        if (str_eq_nocase(last, last_words[i]))
            return true;
    for (size_t i = 0; i < sizeof anywhere / sizeof *anywhere; i++)
        if (str_find_nocase(key, anywhere[i]) >= 0)
            return true;
    return false;
}

enum letter_class { CLASS_LOWER = 0, CLASS_UPPER, CLASS_DIGIT, CLASS_SIGN, CLASS_OTHER };

static enum letter_class class_of(char c)
{
    if (islower((unsigned char)c))
        return CLASS_LOWER;
    if (isupper((unsigned char)c))
        return CLASS_UPPER;
    if (isdigit((unsigned char)c))
        return CLASS_DIGIT;
    return strchr("+/_=-", c) != NULL && c != '\0' ? CLASS_SIGN : CLASS_OTHER;
}

static double entropy_bits(str s)
{
    uint32_t seen[256] = {0};
    double bits = 0;
    for (size_t i = 0; i < s.n; i++)
        seen[(unsigned char)s.p[i]]++;
    for (size_t i = 0; i < 256; i++) {
        const double p = (double)seen[i] / (double)s.n;
        if (seen[i] > 0)
            bits -= p * log2(p);
    }
    return bits;
}

/* Random text changes between letter cases and digits at every second letter; words and CamelCase
 * names at every fourth at most. Hex and paths lack a class or have the wrong first letter. */
static bool looks_random(str s)
{
    uint32_t n_of[5] = {0};
    size_t changes = 0;
    if (s.n < 24 || s.n > 512 || s.p[0] == '/' || s.p[0] == '.' || s.p[0] == '-')
        return false;
    for (size_t i = 0; i < s.n; i++) {
        const enum letter_class c = class_of(s.p[i]);
        n_of[c]++;
        changes += i > 0 && c != class_of(s.p[i - 1]);
    }
    if (n_of[CLASS_OTHER] > 0 || n_of[CLASS_LOWER] == 0 || n_of[CLASS_UPPER] == 0 ||
        n_of[CLASS_DIGIT] == 0 || n_of[CLASS_SIGN] * 6 > s.n)
        return false;
    return (double)changes >= 0.38 * (double)s.n && entropy_bits(s) >= 3.9;
}

static bool is_jwt(str s)
{
    str head, rest, body, sign;
    return s.n > 30 && str_starts(s, S("eyJ")) && str_cut(s, '.', &head, &rest) &&
           str_cut(rest, '.', &body, &sign) && str_starts(body, S("eyJ"));
}

bool secret_value(str value)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (value.n >= prefixes[i].least && str_starts(value, prefixes[i].prefix) &&
            str_find_char(value, ' ') < 0)
            return true;
    if ((str_starts(value, S("Bearer ")) && value.n > 15) || str_starts(value, S(PEM)))
        return true;
    return is_jwt(value) || looks_random(value);
}

static bool is_plain(str v)
{
    double number;
    return v.n == 0 || (v.n <= 8 && str_to_f64(v, &number)) || str_eq_nocase(v, S("true")) ||
           str_eq_nocase(v, S("false")) || str_eq_nocase(v, S("none")) ||
           str_eq_nocase(v, S("null"));
}

/* scheme://user:password@host: the part between the colon and the @. */
static bool url_password(str v, size_t *from, size_t *to)
{
    const ptrdiff_t scheme = str_find(v, S("://"));
    if (scheme < 0)
        return false;
    str rest = str_sub(v, (size_t)scheme + 3, v.n);
    const ptrdiff_t slash = str_find_char(rest, '/');
    if (slash >= 0)
        rest = str_sub(rest, 0, (size_t)slash);
    const ptrdiff_t at = str_find_char(rest, '@'), colon = str_find_char(rest, ':');
    if (at < 0 || colon < 0 || colon > at)
        return false;
    *from = (size_t)(rest.p - v.p) + (size_t)colon + 1;
    *to = (size_t)(rest.p - v.p) + (size_t)at;
    return *to > *from;
}

str secret_mask(struct arena *a, str key, str value)
{
    size_t from, to;
    if ((secret_key(key) && !is_plain(value)) || secret_value(value))
        return S(SECRET_MASK);
    if (url_password(value, &from, &to))
        return arena_printf(a, "%.*s" SECRET_MASK "%.*s", STR_ARG(str_sub(value, 0, from)),
                            STR_ARG(str_sub(value, to, value.n)));
    return value;
}

void secret_mask_argv(struct arena *a, str *argv, size_t n)
{
    str key_before = {0};
    for (size_t i = 0; i < n; i++) {
        const ptrdiff_t eq = str_find_char(argv[i], '=');
        const bool flag = str_starts(argv[i], S("-"));
        if (eq > 0 && str_find_char(str_sub(argv[i], 0, (size_t)eq), ' ') < 0) {
            const str key = str_sub(argv[i], 0, (size_t)eq);
            const str value = str_sub(argv[i], (size_t)eq + 1, argv[i].n);
            const str safe = secret_mask(a, key, value);
            if (safe.p != value.p)
                argv[i] = arena_printf(a, "%.*s=%.*s", STR_ARG(key), STR_ARG(safe));
        } else if (!flag || secret_value(argv[i])) {
            argv[i] = secret_mask(a, key_before, argv[i]);
        }
        key_before = flag && eq < 0 ? argv[i] : (str){0};
    }
}

/* -- secrets inside of a text -- */

/* The longest name, and the longest part of a value, that is looked at to tell whether it is a secret: a hostile
 * text costs no more than its length. */
#define KEY_BYTES 96
#define LOOK_BYTES 512

/* Letters of a word; and what a secret, or a value that may be one, can begin with. */
static const bool is_word_letter[256] = {
    ['0' ... '9'] = true, ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['_'] = true};
static const bool is_begin[256] = {
    ['='] = true, [':'] = true, ['-'] = true, ['g'] = true, ['s'] = true,
    ['r'] = true, ['h'] = true, ['n'] = true, ['p'] = true, ['x'] = true,
    ['y'] = true, ['e'] = true, ['A'] = true, ['B'] = true, ['b'] = true};

static bool is_in_body(char c, enum body body)
{
    return isalnum((unsigned char)c) || (body >= WORD && (c == '_' || c == '-')) ||
           (body == DOTTED && c == '.');
}

/* Behind the letters of a body, at `most` at the furthest. */
static size_t body_end(str s, size_t at, size_t most, enum body body)
{
    most = most < s.n ? most : s.n;
    while (at < most && is_in_body(s.p[at], body))
        at++;
    return at;
}

static bool has_digit(str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (isdigit((unsigned char)s.p[i]))
            return true;
    return false;
}

static bool has_letter(str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (isalpha((unsigned char)s.p[i]))
            return true;
    return false;
}

/* A token of a well-known service at `at`. One without a digit is a word that begins alike. */
static bool token_at(str text, size_t at, struct secret_range *r)
{
    const str rest = str_sub(text, at, text.n);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t n = prefixes[i].prefix.n;
        if (!str_starts(rest, prefixes[i].prefix))
            continue;
        n = body_end(rest, n, LOOK_BYTES, prefixes[i].body);
        if (n >= prefixes[i].least && has_digit(str_sub(rest, prefixes[i].prefix.n, n))) {
            *r = (struct secret_range){at, at + body_end(rest, n, rest.n, prefixes[i].body)};
            return true;
        }
    }
    return false;
}

static bool bearer_at(str text, size_t at, struct secret_range *r)
{
    size_t n = at + 7;
    if (n >= text.n || !str_eq_nocase(str_sub(text, at, n), S("Bearer ")))
        return false;
    while (n < text.n && (is_in_body(text.p[n], DOTTED) ||
                          (text.p[n] != '\0' && strchr("~+/=", text.p[n]) != NULL)))
        n++;
    *r = (struct secret_range){at + 7, n};
    return n - at >= 15 && has_digit(str_sub(text, at + 7, n));
}

static bool jwt_at(str text, size_t at, struct secret_range *r)
{
    if (!is_jwt(str_sub(text, at, body_end(text, at, at + LOOK_BYTES, DOTTED))))
        return false;
    *r = (struct secret_range){at, body_end(text, at, text.n, DOTTED)};
    return true;
}

static bool pem_at(str text, size_t at, struct secret_range *r)
{
    const str rest = str_sub(text, at, text.n);
    if (!str_starts(rest, S(PEM)))
        return false;
    const ptrdiff_t ends = str_find(rest, S("-----END "));
    const ptrdiff_t dashes =
        ends < 0 ? -1 : str_find(str_sub(rest, (size_t)ends + 9, rest.n), S("-----"));
    *r =
        (struct secret_range){at, dashes < 0 ? text.n : at + (size_t)ends + 9 + (size_t)dashes + 5};
    return true;
}

/* The password of the URL whose "://" is at `at`. */
static bool url_at(str text, size_t at, struct secret_range *r)
{
    size_t n = at + 3, colon = 0;
    for (; n < text.n && strchr("/?# \t\r\n\"'<>\\", text.p[n]) == NULL; n++) {
        if (text.p[n] == ':' && colon == 0)
            colon = n;
        if (text.p[n] == '@' && colon > 0 && n > colon + 1) {
            *r = (struct secret_range){colon + 1, n};
            return true;
        }
    }
    return false;
}

/* The name before the separator at `at`: KEY=, KEY:, "KEY":, 'KEY' :, \"KEY\":. */
static str key_before(str text, size_t at)
{
    size_t to = at;
    while (to > 0 && at - to < 8 && strchr(" \"'\\", text.p[to - 1]) != NULL)
        to--;
    size_t from = to;
    while (from > 0 && to - from < KEY_BYTES && is_in_body(text.p[from - 1], DOTTED))
        from--;
    while (from < to && text.p[from] == '-') /* of a flag */
        from++;
    return str_sub(text, from, to);
}

/* The value behind a separator, without its quotes, at most so many bytes of it. */
static struct secret_range value_behind(str text, size_t at, size_t most)
{
    size_t from = at;
    while (from < text.n && from - at < KEY_BYTES && text.p[from] == ' ')
        from++;
    size_t quote = from;
    while (quote < text.n && quote - from < KEY_BYTES && text.p[quote] == '\\')
        quote++;
    const char mark =
        quote < text.n && (text.p[quote] == '"' || text.p[quote] == '\'') ? text.p[quote] : '\0';
    if (mark != '\0')
        from = quote + 1;
    const size_t end = most < text.n - from ? from + most : text.n;
    size_t to = from;
    while (to < end && (mark != '\0' ? text.p[to] != mark && text.p[to] != '\\'
                                     : strchr(" \t\r\n,;&\"'<>)]}", text.p[to]) == NULL))
        to++;
    return (struct secret_range){from, to};
}

/* Names that can mean nothing else. */
static bool is_plain_secret_key(str key)
{
    if (str_eq_nocase(key, S("authorization")) || str_eq_nocase(key, S("cookie")))
        return true;
    for (size_t i = 0; i < sizeof anywhere / sizeof *anywhere; i++)
        if (str_find_nocase(key, anywhere[i]) >= 0)
            return true;
    return false;
}

/* Names that may mean something else ("cache_key") count with values that have letters and digits, as tokens
 * do. */
bool secret_is_named(str key, str value)
{
    if (value.n == 0 || is_plain(value) || str_eq(value, S(SECRET_MASK)))
        return false;
    return is_plain_secret_key(key) ||
           (secret_key(key) && value.n >= 8 && has_digit(value) && has_letter(value));
}

/* What stands behind the separator at `at` when the name before it is a secret's, or it is random. */
static bool keyed_at(str text, size_t at, struct secret_range *r)
{
    const str key = key_before(text, at);
    if (key.n == 0)
        return false;
    *r = value_behind(text, at + 1, LOOK_BYTES + 1);
    const str value = str_sub(text, r->from, r->to);
    if (value.n == 0 || value.p[0] == '[' || value.p[0] == '{')
        return false;
    if (!secret_is_named(key, value))
        return looks_random(value);
    /* "Authorization: Basic dXNlcg==" goes on */
    const bool scheme = str_eq_nocase(value, S("basic")) || str_eq_nocase(value, S("bearer")) ||
                        str_eq_nocase(value, S("digest")) || str_eq_nocase(value, S("token"));
    *r = value_behind(text, scheme ? r->to : at + 1, SIZE_MAX);
    return r->to > r->from;
}

/* `--token hunter2`: `at` is at the flag's first dash. */
static bool flag_at(str text, size_t at, struct secret_range *r)
{
    size_t from = at;
    while (from < text.n && from - at < 2 && text.p[from] == '-')
        from++;
    const size_t to = body_end(text, from, from + KEY_BYTES, WORD);
    if (to == from || to >= text.n || text.p[to] != ' ' || !secret_key(str_sub(text, from, to)))
        return false;
    *r = value_behind(text, to, SIZE_MAX);
    const str value = str_sub(text, r->from, r->to);
    return value.n > 0 && value.p[0] != '-' && !is_plain(value);
}

static bool begins_secret(str text, size_t at, enum secret_scope scope, struct secret_range *r)
{
    switch (text.p[at]) {
    case '-':
        return pem_at(text, at, r) || (scope == SECRET_ALL && flag_at(text, at, r));
    case 'B':
    case 'b':
        return bearer_at(text, at, r);
    case 'e':
        return str_starts(str_sub(text, at, text.n), S("eyJ")) && jwt_at(text, at, r);
    default:
        return token_at(text, at, r);
    }
}

/* The first secret that begins at or behind `at`. */
static bool next_part(str text, size_t at, enum secret_scope scope, struct secret_range *r)
{
    for (size_t i = at; i < text.n; i++) {
        const char c = text.p[i];
        if (!is_begin[(uint8_t)c])
            continue;
        if (c == ':' && text.n - i > 3 && memcmp(text.p + i, "://", 3) == 0) {
            if (url_at(text, i, r))
                return true;
        } else if (c == ':' || c == '=') {
            if (scope == SECRET_ALL && keyed_at(text, i, r))
                return true;
        } else if ((i == 0 || !is_word_letter[(uint8_t)text.p[i - 1]]) &&
                   begins_secret(text, i, scope, r)) {
            return true;
        }
    }
    return false;
}

bool secret_next(str text, size_t at, enum secret_scope scope, struct secret_range *r)
{
    if (next_part(text, at, scope, r))
        return true;
    *r = (struct secret_range){0, text.n};
    return at == 0 && scope == SECRET_ALL && looks_random(text);
}

str secret_mask_text(struct arena *a, str text, enum secret_scope scope)
{
    struct secret_range r;
    size_t at = 0;
    if (!secret_next(text, 0, scope, &r))
        return text;
    struct buf out;
    buf_init(&out, LIMIT_ARENA_TRACE_BYTES);
    do {
        if (r.to > at && r.to - r.from == sizeof SECRET_MASK - 1 &&
            memcmp(text.p + r.from, SECRET_MASK, r.to - r.from) == 0) {
            buf_add_str(&out, str_sub(text, at, r.to));
        } else {
            buf_add_str(&out, str_sub(text, at, r.from));
            buf_add_str(&out, S(SECRET_MASK));
        }
        at = r.to;
    } while (at < text.n && secret_next(text, at, scope, &r));
    buf_add_str(&out, str_sub(text, at, text.n));
    const str kept = out.overflow ? (str){0} : arena_str(a, buf_str(&out));
    buf_release(&out);
    return kept.p == NULL ? S(SECRET_MASK) : kept;
}

str secret_mask_named(struct arena *a, str key, str value)
{
    return secret_is_named(key, value) ? S(SECRET_MASK) : secret_mask_text(a, value, SECRET_ALL);
}
