/* SPDX-License-Identifier: Apache-2.0 */
#include "net/s3_xml.h"

#include "base/clock.h"
#include "base/limits.h"

#define DEPTH_MAX 8
#define CODE_POINT_MAX 0x10ffff

struct element {
    str name;
    size_t text_from; /* where its content begins */
    bool has_children;
};

/* What a reader of one kind of answer does with it. */
struct reader {
    void *ctx;
    /* An element with text only, or empty: raw text, entities not decoded. parent is empty at the root. */
    bool (*leaf)(void *ctx, str parent, str name, str text, struct err *e);
    bool (*open)(void *ctx, str parent, str name, struct err *e); /* of every element */
};

struct walk {
    str in;
    size_t at;
    struct element open[DEPTH_MAX];
    unsigned depth;
    bool had_root;
};

static bool bad(const struct walk *w, const char *what, struct err *e)
{
    return err_at(e, ERR_PARSE, w->at, "not an answer of S3: %s", what);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':';
}

static str take_name(struct walk *w)
{
    const size_t from = w->at;
    while (w->at < w->in.n && is_name(w->in.p[w->at]))
        w->at++;
    const str whole = str_sub(w->in, from, w->at);
    const ptrdiff_t colon = str_find_char(whole, ':');
    return colon < 0 ? whole : str_sub(whole, (size_t)colon + 1, whole.n);
}

/* To behind `end`, from here. */
static bool skip_past(struct walk *w, str end, struct err *e)
{
    const ptrdiff_t at = str_find(str_sub(w->in, w->at, w->in.n), end);
    if (at < 0)
        return bad(w, "it ends in the middle of its markup", e);
    w->at += (size_t)at + end.n;
    return true;
}

static str parent_name(const struct walk *w)
{
    return w->depth == 0 ? (str){0} : w->open[w->depth - 1].name;
}

static bool element_close(struct walk *w, const struct reader *r, size_t text_to, struct err *e)
{
    const struct element *it = &w->open[--w->depth];
    return it->has_children ||
           r->leaf(r->ctx, parent_name(w), it->name, str_sub(w->in, it->text_from, text_to), e);
}

/* The attributes of a start tag are passed over; > may stand in a quoted one. */
static bool skip_attributes(struct walk *w, bool *is_empty, struct err *e)
{
    char quote = '\0';
    for (; w->at < w->in.n; w->at++) {
        const char c = w->in.p[w->at];
        if (quote != '\0')
            quote = c == quote ? '\0' : quote;
        else if (c == '"' || c == '\'')
            quote = c;
        else if (c == '<')
            break;
        else if (c == '>') {
            *is_empty = w->in.p[w->at - 1] == '/';
            w->at++;
            return true;
        }
    }
    return bad(w, "a tag does not end", e);
}

static bool take_start(struct walk *w, const struct reader *r, struct err *e)
{
    const size_t tag_at = w->at - 1;
    const str name = take_name(w);
    bool is_empty = false;
    if (name.n == 0 || (w->depth == 0 && w->had_root))
        return bad(w, "no element where one should begin", e);
    if (w->depth == DEPTH_MAX)
        return bad(w, "elements too deep within each other", e);
    if (!skip_attributes(w, &is_empty, e))
        return false;
    if (w->depth > 0)
        w->open[w->depth - 1].has_children = true;
    if (r->open != NULL && !r->open(r->ctx, parent_name(w), name, e))
        return false;
    w->had_root = true;
    w->open[w->depth++] = (struct element){.name = name, .text_from = is_empty ? tag_at : w->at};
    return !is_empty || element_close(w, r, tag_at, e);
}

static bool take_end(struct walk *w, const struct reader *r, struct err *e)
{
    const size_t text_to = w->at - 2;
    const str name = take_name(w);
    while (w->at < w->in.n && is_space(w->in.p[w->at]))
        w->at++;
    if (w->depth == 0 || !str_eq(name, w->open[w->depth - 1].name) || w->at >= w->in.n ||
        w->in.p[w->at] != '>')
        return bad(w, "an end tag that ends nothing", e);
    w->at++;
    return element_close(w, r, text_to, e);
}

static bool take_markup(struct walk *w, const struct reader *r, struct err *e)
{
    const str rest = str_sub(w->in, w->at, w->in.n);
    if (str_starts(rest, S("<?")))
        return skip_past(w, S("?>"), e);
    if (str_starts(rest, S("<!--")) && (w->depth == 0 || w->open[w->depth - 1].has_children))
        return skip_past(w, S("-->"), e);
    if (str_starts(rest, S("<!")))
        return bad(w, "markup that S3 does not use", e);
    if (str_starts(rest, S("</"))) {
        w->at += 2;
        return take_end(w, r, e);
    }
    w->at++;
    return take_start(w, r, e);
}

static bool walk(str xml, const struct reader *r, struct err *e)
{
    struct walk w = {.in = xml};
    if (str_starts(xml, S("\xef\xbb\xbf")))
        w.at = 3;
    while (w.at < w.in.n) {
        if (w.in.p[w.at] == '<') {
            if (!take_markup(&w, r, e))
                return false;
        } else if (w.depth == 0 && !is_space(w.in.p[w.at])) {
            return bad(&w, "text outside of its elements", e);
        } else {
            w.at++;
        }
    }
    return (w.had_root && w.depth == 0) || bad(&w, "it ends too early", e);
}

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(c | (n == 2 ? 0xc0u : n == 3 ? 0xe0u : 0xf0u));
    return n;
}

/* "#38", "#x26": 0 when it is none. */
static uint32_t number_of(str entity)
{
    const bool is_hex = str_starts(entity, S("#x"));
    uint32_t c = 0;
    if (entity.n < (is_hex ? 3u : 2u) || entity.p[0] != '#')
        return 0;
    for (size_t i = is_hex ? 2 : 1; i < entity.n; i++) {
        const char d = entity.p[i];
        const uint32_t v = d >= '0' && d <= '9'             ? (uint32_t)(d - '0')
                           : is_hex && d >= 'a' && d <= 'f' ? (uint32_t)(d - 'a' + 10)
                           : is_hex && d >= 'A' && d <= 'F' ? (uint32_t)(d - 'A' + 10)
                                                            : UINT32_MAX;
        if (v == UINT32_MAX || c > CODE_POINT_MAX)
            return 0;
        c = c * (is_hex ? 16 : 10) + v;
    }
    return c > CODE_POINT_MAX || (c >= 0xd800 && c < 0xe000) ? 0 : c;
}

static uint32_t entity_of(str entity)
{
    static const struct {
        str name;
        char c;
    } named[] = {{STR_INIT("lt"), '<'},
                 {STR_INIT("gt"), '>'},
                 {STR_INIT("amp"), '&'},
                 {STR_INIT("quot"), '"'},
                 {STR_INIT("apos"), '\''}};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (str_eq(entity, named[i].name))
            return (uint32_t)named[i].c;
    return number_of(entity);
}

/* The text with its entities decoded, in a. */
static bool text_of(struct arena *a, str raw, str *out, struct err *e)
{
    char *to = arena_alloc(a, raw.n + 1, 1);
    size_t n = 0;
    if (to == NULL)
        return arena_full(a, e);
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] != '&') {
            to[n++] = raw.p[i];
            continue;
        }
        const str rest = str_sub(raw, i + 1, raw.n);
        const ptrdiff_t end = str_find_char(rest, ';');
        const uint32_t c = end <= 0 ? 0 : entity_of(str_sub(rest, 0, (size_t)end));
        if (c == 0)
            return err_set(e, ERR_PARSE, "not an answer of S3: an entity that it does not use");
        n += put_utf8(to + n, c);
        i += (size_t)end + 1;
    }
    *out = (str){to, n};
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Keys of a listing that was asked for as encoding-type=url, decoded in place. */
static bool url_decode(str *s, struct arena *a, struct err *e)
{
    char *to = arena_cstr(a, *s);
    size_t n = 0;
    if (to == NULL)
        return arena_full(a, e);
    for (size_t i = 0; i < s->n; i++) {
        if (s->p[i] != '%') {
            to[n++] = s->p[i] == '+' ? ' ' : s->p[i];
            continue;
        }
        const int high = i + 2 < s->n ? hex_digit(s->p[i + 1]) : -1;
        const int low = i + 2 < s->n ? hex_digit(s->p[i + 2]) : -1;
        if (high < 0 || low < 0)
            return err_set(e, ERR_PARSE, "not an answer of S3: a key that is not URL-encoded");
        to[n++] = (char)(high * 16 + low);
        i += 2;
    }
    to[n] = '\0';
    *s = (str){to, n};
    return true;
}

struct list {
    struct arena *a;
    struct s3_page *page;
    bool is_list, is_encoded;
};

static bool list_open(void *ctx, str parent, str name, struct err *e)
{
    struct list *l = ctx;
    if (parent.n == 0 && !(l->is_list = str_eq(name, S("ListBucketResult"))))
        return err_set(e, ERR_PARSE, "not a listing of S3, but '%.*s'", STR_ARG(name));
    if (!str_eq(name, S("Contents")) || !str_eq(parent, S("ListBucketResult")))
        return true;
    return ARENA_PUSH(l->a, l->page->items, l->page->n, l->page->capacity) || arena_full(l->a, e);
}

static str without_quotes(str s)
{
    return s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"' ? str_sub(s, 1, s.n - 1) : s;
}

static bool list_item(struct list *l, str name, str raw, struct err *e)
{
    struct s3_listed *it = &l->page->items[l->page->n - 1];
    str text;
    if (str_eq(name, S("Key")))
        return text_of(l->a, raw, &it->key, e);
    if (str_eq(name, S("ETag"))) {
        if (!text_of(l->a, raw, &text, e))
            return false;
        it->etag = without_quotes(text);
        return true;
    }
    if (str_eq(name, S("Size")) && !str_to_u64(raw, &it->size_bytes))
        return err_set(e, ERR_PARSE, "not a listing of S3: a size that is no number");
    if (str_eq(name, S("LastModified")) && !clock_parse_rfc3339(raw, &it->modified_ns))
        return err_set(e, ERR_PARSE, "not a listing of S3: a time that is none");
    return true;
}

static bool list_leaf(void *ctx, str parent, str name, str raw, struct err *e)
{
    struct list *l = ctx;
    if (str_eq(parent, S("Contents")))
        return l->page->n == 0 || list_item(l, name, raw, e);
    if (!str_eq(parent, S("ListBucketResult")))
        return true;
    if (str_eq(name, S("IsTruncated")))
        l->page->is_cut = str_eq(str_trim(raw), S("true"));
    else if (str_eq(name, S("EncodingType")))
        l->is_encoded = str_eq(str_trim(raw), S("url"));
    else if (str_eq(name, S("NextContinuationToken")))
        return text_of(l->a, raw, &l->page->next, e);
    return true;
}

bool s3_xml_list(str xml, struct arena *a, struct s3_page *out, struct err *e)
{
    struct list l = {.a = a, .page = out};
    const struct reader r = {.ctx = &l, .leaf = list_leaf, .open = list_open};
    *out = (struct s3_page){0};
    if (!walk(xml, &r, e))
        return false;
    for (uint32_t i = 0; i < out->n; i++) {
        if (l.is_encoded && !url_decode(&out->items[i].key, a, e))
            return false;
        if (out->items[i].key.n == 0 || out->items[i].etag.n == 0)
            return err_set(e, ERR_PARSE, "not a listing of S3: an object without a key or an ETag");
    }
    if (out->is_cut && out->next.n == 0)
        return err_set(e, ERR_PARSE, "not a listing of S3: cut, and no word how it goes on");
    return true;
}

struct error_read {
    struct arena *a;
    struct s3_error *out;
};

static bool error_open(void *ctx, str parent, str name, struct err *e)
{
    (void)ctx;
    return parent.n > 0 || str_eq(name, S("Error")) ||
           err_set(e, ERR_PARSE, "not an error of S3, but '%.*s'", STR_ARG(name));
}

static bool error_leaf(void *ctx, str parent, str name, str raw, struct err *e)
{
    struct error_read *r = ctx;
    if (!str_eq(parent, S("Error")))
        return true;
    str *to = str_eq(name, S("Code"))      ? &r->out->code
              : str_eq(name, S("Message")) ? &r->out->message
              : str_eq(name, S("Region"))  ? &r->out->region
                                           : NULL;
    return to == NULL || text_of(r->a, raw, to, e);
}

bool s3_xml_error(str xml, struct arena *a, struct s3_error *out, struct err *e)
{
    struct error_read read = {.a = a, .out = out};
    const struct reader r = {.ctx = &read, .leaf = error_leaf, .open = error_open};
    *out = (struct s3_error){0};
    return walk(xml, &r, e) &&
           (out->code.n > 0 || err_set(e, ERR_PARSE, "not an error of S3: it has no code"));
}
