/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/secrets.h"

#include <ctype.h>
#include <math.h>

static const str secret_last_words[] = {
    STR_INIT("token"),         STR_INIT("secret"),     STR_INIT("password"),    STR_INIT("passwd"),
    STR_INIT("passphrase"),    STR_INIT("credential"), STR_INIT("credentials"), STR_INIT("auth"),
    STR_INIT("authorization"), STR_INIT("key"),        STR_INIT("apikey"),      STR_INIT("cookie"),
    STR_INIT("pat"),           STR_INIT("dsn"),
};
static const str secret_anywhere[] = {
    STR_INIT("secret"), STR_INIT("password"), STR_INIT("passwd"),      STR_INIT("credential"),
    STR_INIT("apikey"), STR_INIT("api_key"),  STR_INIT("private_key"), STR_INIT("access_key"),
};
static const struct {
    str prefix;
    size_t least; /* bytes of the whole value */
} secret_prefixes[] = {
    {STR_INIT("ghp_"), 20},     {STR_INIT("gho_"), 20},  {STR_INIT("ghu_"), 20},
    {STR_INIT("ghs_"), 20},     {STR_INIT("ghr_"), 20},  {STR_INIT("github_pat_"), 24},
    {STR_INIT("glpat-"), 20},   {STR_INIT("sk-"), 20},   {STR_INIT("sk_live_"), 20},
    {STR_INIT("rk_live_"), 20}, {STR_INIT("AKIA"), 20},  {STR_INIT("ASIA"), 20},
    {STR_INIT("AIza"), 35},     {STR_INIT("ya29."), 20}, {STR_INIT("hf_"), 20},
    {STR_INIT("xoxb-"), 15},    {STR_INIT("xoxp-"), 15}, {STR_INIT("xoxa-"), 15},
    {STR_INIT("xoxr-"), 15},    {STR_INIT("xoxs-"), 15}, {STR_INIT("xapp-"), 15},
    {STR_INIT("npm_"), 30},     {STR_INIT("pypi-"), 30}, {STR_INIT("-----BEGIN "), 20},
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
    for (size_t i = 0; i < sizeof secret_last_words / sizeof *secret_last_words; i++)
        if (str_eq_nocase(last, secret_last_words[i]))
            return true;
    for (size_t i = 0; i < sizeof secret_anywhere / sizeof *secret_anywhere; i++)
        if (str_find_nocase(key, secret_anywhere[i]) >= 0)
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
    for (size_t i = 0; i < sizeof secret_prefixes / sizeof *secret_prefixes; i++)
        if (value.n >= secret_prefixes[i].least && str_starts(value, secret_prefixes[i].prefix) &&
            (value.p[0] == '-' || str_find_char(value, ' ') < 0))
            return true;
    if (str_starts(value, S("Bearer ")) && value.n > 15)
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

void secret_mask_json(json_t *value, const char *key)
{
    const char *name;
    size_t i;
    json_t *child;
    void *next;
    if (json_is_object(value)) {
        json_object_foreach_safe(value, next, name, child) secret_mask_json(child, name);
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, child) secret_mask_json(child, key);
    } else if (json_is_string(value)) {
        struct arena a;
        arena_init(&a, "mask", 0);
        const str text = {json_string_value(value), json_string_length(value)};
        const str safe = secret_mask(&a, str_from(key), text);
        if (safe.p != text.p)
            json_string_setn(value, safe.p, safe.n);
        arena_release(&a);
    }
}
