/* SPDX-License-Identifier: Apache-2.0 */
#include "model/filter.h"

#include <math.h>

#include "base/clock.h"
#include "base/limits.h"

enum node_kind { NODE_AND = 0, NODE_OR, NODE_NOT, NODE_COMPARE, NODE_WORD };
enum compare { COMPARE_EQ = 0, COMPARE_NE, COMPARE_LT, COMPARE_LE, COMPARE_GT, COMPARE_GE };
enum verdict { NO = 0, UNKNOWN, YES }; /* AND is the least of its parts, OR the greatest */

struct node {
    enum node_kind kind;
    struct node *child, *next; /* AND, OR, NOT: the first part; the part after this one */
    const struct filter_field *field;
    str key; /* after "config." */
    enum compare compare;
    bool asks_presence; /* key:* */
    bool is_number;
    double number;
    int64_t wall_ns;
    str text;
};

struct filter {
    struct node *root; /* NULL: everything */
    const struct filter_field *fields;
    uint32_t n_fields;
};

struct parser {
    str text;
    size_t at;
    unsigned depth;
    int64_t now_ns;
    struct filter *filter;
    struct arena *arena;
    struct err *e;
};

/* ---- words ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void skip_space(struct parser *p)
{
    while (p->at < p->text.n && is_space(p->text.p[p->at]))
        p->at++;
}

static bool is_next(struct parser *p, char c)
{
    return p->at < p->text.n && p->text.p[p->at] == c;
}

static bool ends_word(char c, bool is_value)
{
    return is_space(c) || c == '(' || c == ')' || c == '"' || c == '\'' ||
           (!is_value && memchr("<>=!:", c, 5) != NULL);
}

static str peek_word(const struct parser *p, bool is_value)
{
    size_t to = p->at;
    while (to < p->text.n && !ends_word(p->text.p[to], is_value))
        to++;
    return str_sub(p->text, p->at, to);
}

/* "…" or '…', a backslash before what is meant itself. */
static bool take_quoted(struct parser *p, str *out)
{
    const size_t from = p->at;
    const char quote = p->text.p[p->at++];
    char *to = ARENA_ARRAY(p->arena, char, p->text.n - from);
    size_t n = 0;
    if (to == NULL)
        return arena_full(p->arena, p->e);
    while (p->at < p->text.n && p->text.p[p->at] != quote) {
        p->at += p->text.p[p->at] == '\\';
        if (p->at < p->text.n)
            to[n++] = p->text.p[p->at++];
    }
    if (p->at >= p->text.n)
        return err_at(p->e, ERR_USAGE, from, "filter: the quote is never closed");
    p->at++;
    *out = (str){to, n};
    return true;
}

/* The keyword, when it stands here as a word of its own. */
static bool take_keyword(struct parser *p, str keyword)
{
    skip_space(p);
    const str word = peek_word(p, false);
    if (!str_eq_nocase(word, keyword))
        return false;
    p->at += word.n;
    return true;
}

/* ---- parts ---- */

static struct node *new_node(struct parser *p, enum node_kind kind)
{
    struct node *n = ARENA_NEW(p->arena, struct node);
    if (n == NULL)
        arena_full(p->arena, p->e);
    else
        n->kind = kind;
    return n;
}

static bool unknown_field(struct parser *p, str word, size_t at)
{
    str names = {0};
    const struct filter *f = p->filter;
    for (uint32_t i = 0; i < f->n_fields; i++)
        names = arena_printf(p->arena, "%.*s%s%s%s", STR_ARG(names), i > 0 ? ", " : "",
                             f->fields[i].name,
                             str_ends(str_from(f->fields[i].name), S(".")) ? "KEY" : "");
    return err_at(p->e, ERR_USAGE, at, "filter: no field '%.*s' (there are %.*s)",
                  STR_ARG(str_clip_utf8(word, 40)), STR_ARG(names));
}

static bool find_field(struct parser *p, str word, size_t at, struct node *n)
{
    for (uint32_t i = 0; i < p->filter->n_fields; i++) {
        const struct filter_field *f = &p->filter->fields[i];
        const str name = str_from(f->name);
        const bool is_prefix = str_ends(name, S("."));
        if (is_prefix ? word.n <= name.n || !str_eq_nocase(str_sub(word, 0, name.n), name)
                      : !str_eq_nocase(word, name))
            continue;
        n->field = f;
        n->key = is_prefix ? str_sub(word, name.n, word.n) : (str){0};
        return true;
    }
    return unknown_field(p, word, at);
}

static bool take_operator(struct parser *p, enum compare *out)
{
    static const struct {
        const char *word;
        enum compare compare;
    } operators[] = {{"<=", COMPARE_LE}, {">=", COMPARE_GE}, {"!=", COMPARE_NE}, {"<", COMPARE_LT},
                     {">", COMPARE_GT},  {"=", COMPARE_EQ},  {":", COMPARE_EQ}};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const str word = str_from(operators[i].word);
        if (!str_eq(str_sub(p->text, p->at, p->at + word.n), word))
            continue;
        *out = operators[i].compare;
        p->at += word.n;
        return true;
    }
    return false;
}

static bool to_time(const struct parser *p, str text, int64_t *out)
{
    int64_t n;
    char day[32];
    if (clock_parse_rfc3339(text, out))
        return true;
    if (str_to_i64(text, &n))
        return !__builtin_mul_overflow(n, NS_PER_S, out);
    if (text.n == 10) {
        const int length = snprintf(day, sizeof day, "%.*sT00:00:00Z", STR_ARG(text));
        if (clock_parse_rfc3339((str){day, (size_t)length}, out))
            return true;
    }
    const bool is_back = str_starts(text, S("-"));
    if (!is_back && !str_starts(text, S("+")))
        return false;
    if (!str_to_duration_ns(str_sub(text, 1, text.n), NS_PER_S, &n))
        return false;
    return is_back ? !__builtin_sub_overflow(p->now_ns, n, out)
                   : !__builtin_add_overflow(p->now_ns, n, out);
}

/* What the value means for the field; the position is where it stands. */
static bool take_meaning(struct parser *p, size_t at, struct node *n)
{
    int64_t ns;
    const str shown = str_clip_utf8(n->text, 60);
    n->is_number = str_to_f64(n->text, &n->number) && isfinite(n->number);
    switch (n->field->type) {
    case FILTER_NUMBER:
        return n->is_number ||
               err_at(p->e, ERR_USAGE, at, "filter: '%.*s' is not a number", STR_ARG(shown));
    case FILTER_TIME:
        return to_time(p, n->text, &n->wall_ns) ||
               err_at(p->e, ERR_USAGE, at,
                      "filter: '%.*s' is not a time (RFC 3339, a date, Unix seconds, or -72h)",
                      STR_ARG(shown));
    case FILTER_DURATION:
        if (n->is_number)
            return true;
        n->is_number = str_to_duration_ns(n->text, NS_PER_S, &ns);
        n->number = n->is_number ? (double)ns / (double)NS_PER_S : 0;
        return n->is_number ||
               err_at(p->e, ERR_USAGE, at, "filter: '%.*s' is not a duration (500ms, 2s, 1h)",
                      STR_ARG(shown));
    default:
        return true;
    }
}

static bool take_value(struct parser *p, struct node *n)
{
    skip_space(p);
    const size_t at = p->at;
    if (is_next(p, '"') || is_next(p, '\'')) {
        if (!take_quoted(p, &n->text))
            return false;
    } else {
        n->text = peek_word(p, true);
        p->at += n->text.n;
        if (n->text.n == 0)
            return err_at(p->e, ERR_USAGE, at, "filter: a value is missing");
        n->asks_presence = str_eq(n->text, S("*"));
    }
    if (n->asks_presence && n->compare != COMPARE_EQ && n->compare != COMPARE_NE)
        return err_at(p->e, ERR_USAGE, at, "filter: '*' goes with ':', '=' and '!=' only");
    const bool is_order = n->compare > COMPARE_NE;
    if (is_order && n->field->type == FILTER_TEXT)
        return err_at(p->e, ERR_USAGE, at, "filter: '%s' is text, which has no order",
                      n->field->name);
    return n->asks_presence || take_meaning(p, at, n);
}

static bool is_joint(str word)
{
    return str_eq_nocase(word, S("AND")) || str_eq_nocase(word, S("OR"));
}

/* key op value, or a bare word. */
static struct node *take_restriction(struct parser *p)
{
    const size_t at = p->at;
    struct node *n = new_node(p, NODE_WORD);
    if (n == NULL)
        return NULL;
    if (is_next(p, '"') || is_next(p, '\''))
        return take_quoted(p, &n->text) ? n : NULL;
    n->text = peek_word(p, false);
    p->at += n->text.n;
    if (n->text.n == 0 || is_joint(n->text)) {
        err_at(p->e, ERR_USAGE, at, "filter: a condition is missing before '%.*s'",
               STR_ARG(str_clip_utf8(str_sub(p->text, at, p->text.n), 40)));
        return NULL;
    }
    skip_space(p);
    if (!take_operator(p, &n->compare))
        return n;
    n->kind = NODE_COMPARE;
    return find_field(p, n->text, at, n) && take_value(p, n) ? n : NULL;
}

static struct node *take_all(struct parser *p);

static struct node *take_term(struct parser *p)
{
    struct node *n = NULL;
    skip_space(p);
    if (++p->depth > LIMIT_FILTER_DEPTH) {
        err_at(p->e, ERR_LIMIT, p->at, "filter: nested deeper than %d", (int)LIMIT_FILTER_DEPTH);
        return NULL;
    }
    if (is_next(p, '(')) {
        const size_t from = p->at++;
        n = take_all(p);
        if (n != NULL && !is_next(p, ')')) {
            err_at(p->e, ERR_USAGE, from, "filter: the parenthesis is never closed");
            return NULL;
        }
        p->at++;
    } else if (is_next(p, '-') || take_keyword(p, S("NOT"))) {
        p->at += is_next(p, '-');
        n = new_node(p, NODE_NOT);
        if (n != NULL && (n->child = take_term(p)) == NULL)
            return NULL;
    } else {
        n = take_restriction(p);
    }
    p->depth--;
    return n;
}

/* term OR term … */
static struct node *take_any(struct parser *p)
{
    struct node *n = new_node(p, NODE_OR), **end = n == NULL ? NULL : &n->child;
    while (n != NULL) {
        if ((*end = take_term(p)) == NULL)
            return NULL;
        end = &(*end)->next;
        if (!take_keyword(p, S("OR")))
            return n;
    }
    return NULL;
}

/* … AND …, up to the end or a closing parenthesis. */
static struct node *take_all(struct parser *p)
{
    struct node *n = new_node(p, NODE_AND), **end = n == NULL ? NULL : &n->child;
    while (n != NULL) {
        if ((*end = take_any(p)) == NULL)
            return NULL;
        end = &(*end)->next;
        if (take_keyword(p, S("AND")))
            continue;
        skip_space(p);
        if (p->at >= p->text.n || is_next(p, ')'))
            return n;
    }
    return NULL;
}

struct filter *filter_parse(str text, const struct filter_field *fields, uint32_t n_fields,
                            int64_t now_ns, struct arena *a, struct err *e)
{
    struct filter *f = ARENA_NEW(a, struct filter);
    struct parser p = {.arena = a, .e = e, .filter = f, .now_ns = now_ns};
    p.text = arena_str(a, text);
    if (f == NULL || p.text.p == NULL) {
        arena_full(a, e);
        return NULL;
    }
    if (text.n > LIMIT_FILTER_BYTES) {
        err_set(e, ERR_LIMIT, "the filter is longer than %d bytes", (int)LIMIT_FILTER_BYTES);
        return NULL;
    }
    *f = (struct filter){.fields = fields, .n_fields = n_fields};
    skip_space(&p);
    if (p.at >= text.n)
        return f;
    f->root = take_all(&p);
    if (f->root == NULL)
        return NULL;
    if (p.at < text.n) {
        err_at(e, ERR_USAGE, p.at, "filter: a ')' without its '('");
        return NULL;
    }
    return f;
}

/* ---- what fits ---- */

/* `*` at an end stands for anything. */
static bool text_fits(str have, str want)
{
    const bool open_front = str_starts(want, S("*")),
               open_back = want.n > 1 && str_ends(want, S("*"));
    want = str_sub(want, open_front, want.n - open_back);
    if (open_front && open_back)
        return str_find_nocase(have, want) >= 0;
    if (open_front)
        return have.n >= want.n && str_eq_nocase(str_sub(have, have.n - want.n, have.n), want);
    return open_back ? str_eq_nocase(str_sub(have, 0, want.n), want) : str_eq_nocase(have, want);
}

static bool order_fits(enum compare c, bool less, bool equal)
{
    switch (c) {
    case COMPARE_LT:
        return less;
    case COMPARE_LE:
        return less || equal;
    case COMPARE_GT:
        return !less && !equal;
    case COMPARE_GE:
        return !less;
    default:
        return equal; /* EQ, and NE, which the caller turns round */
    }
}

/* One value; NE answers as EQ. Text has no order: that is UNKNOWN. */
static enum verdict value_fits(const struct node *n, const struct filter_value *v)
{
    if (n->field->type == FILTER_TIME)
        return order_fits(n->compare, v->wall_ns < n->wall_ns, v->wall_ns == n->wall_ns) ? YES : NO;
    if (n->is_number && v->is_number) /* a NaN is neither less nor equal, nor known */
        return isnan(v->number)                                                        ? UNKNOWN
               : order_fits(n->compare, v->number < n->number, v->number == n->number) ? YES
                                                                                       : NO;
    if (n->compare > COMPARE_NE)
        return UNKNOWN;
    return !v->is_number && text_fits(v->text, n->text) ? YES : NO;
}

static enum verdict compare_fits(const struct node *n, filter_value_fn value, void *ctx)
{
    struct filter_value v = {0};
    enum verdict best = UNKNOWN;
    uint32_t i = 0;
    for (; value(ctx, n->field, n->key, i, &v); i++) {
        const enum verdict one = n->asks_presence ? YES : value_fits(n, &v);
        best = i == 0 || one > best ? one : best;
        v = (struct filter_value){0};
    }
    if (n->asks_presence)
        best = i > 0 ? YES : NO;
    return n->compare == COMPARE_NE ? YES - best : best;
}

static enum verdict word_fits(const struct filter *f, const struct node *n, filter_value_fn value,
                              void *ctx)
{
    for (uint32_t i = 0; i < f->n_fields; i++) {
        struct filter_value v = {0};
        for (uint32_t k = 0; f->fields[i].is_searched && value(ctx, &f->fields[i], (str){0}, k, &v);
             k++)
            if (str_find_nocase(v.text, n->text) >= 0)
                return YES;
    }
    return NO;
}

/* Depth: LIMIT_FILTER_DEPTH at most, three levels each. */
static enum verdict node_fits(const struct filter *f, const struct node *n, filter_value_fn value,
                              void *ctx)
{
    if (n->kind == NODE_COMPARE)
        return compare_fits(n, value, ctx);
    if (n->kind == NODE_WORD)
        return word_fits(f, n, value, ctx);
    if (n->kind == NODE_NOT)
        return YES - node_fits(f, n->child, value, ctx);
    const bool all = n->kind == NODE_AND;
    const enum verdict settled = all ? NO : YES;
    enum verdict out = all ? YES : NO;
    for (const struct node *part = n->child; part != NULL && out != settled; part = part->next) {
        const enum verdict one = node_fits(f, part, value, ctx);
        out = (all ? one < out : one > out) ? one : out;
    }
    return out;
}

bool filter_fits(const struct filter *f, filter_value_fn value, void *ctx)
{
    return f->root == NULL || node_fits(f, f->root, value, ctx) == YES;
}
