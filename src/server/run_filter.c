/* SPDX-License-Identifier: Apache-2.0 */
#include "server/run_filter.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/limits.h"
#include "server/doc.h"
#include "server/run_cache.h"
#include "server/run_summary.h"

static const struct filter_field fields[] = {
#define X(name, type, is_searched, meaning) {name, FILTER_##type, is_searched},
#include "server/run_fields.def"
#undef X
};

struct filter *run_filter_parse(str text, int64_t now_ns, struct arena *a, struct err *e)
{
    return filter_parse(text, fields, sizeof fields / sizeof *fields, now_ns, a, e);
}

struct run_docs {
    struct doc *summary, *details;
    struct arena *arena; /* of the values' texts */
};

/* "a.b.c": the member of that name, else a's "b.c", else … */
static struct doc *find_member(struct doc *d, str key, struct arena *a)
{
    const char *name = arena_cstr(a, key);
    struct doc *found = name == NULL ? NULL : doc_get(d, name);
    for (size_t i = 0; found == NULL && i < key.n; i++) {
        if (key.p[i] != '.')
            continue;
        const char *head = arena_cstr(a, str_sub(key, 0, i));
        struct doc *below = head == NULL ? NULL : doc_object(d, head);
        if (below != NULL)
            return find_member(below, str_sub(key, i + 1, key.n), a);
    }
    return found;
}

/* Null is no value; true, objects and arrays are what they look like as JSON. */
static bool take_value(struct doc *d, enum filter_type type, struct arena *a,
                       struct filter_value *out)
{
    out->text = doc_string(d, a);
    if (type == FILTER_TIME)
        return clock_parse_rfc3339(out->text, &out->wall_ns);
    if (doc_is_text(d))
        return true;
    out->is_number = doc_number(d, &out->number);
    if (!out->is_number)
        out->text = doc_dump(d, a);
    return out->is_number || (out->text.n > 0 && !str_eq(out->text, S("null")));
}

static bool value_of(void *ctx, const struct filter_field *f, str key, uint32_t index,
                     struct filter_value *out)
{
    static const char *const state[] = {"phase", "reason", "health"};
    struct run_docs *r = ctx;
    if (strcmp(f->name, "state") == 0) {
        while (index < sizeof state / sizeof *state &&
               !doc_is_text(doc_get(r->summary, state[index])))
            index++; /* a run without a reason has two */
        return index < sizeof state / sizeof *state &&
               take_value(doc_get(r->summary, state[index]), f->type, r->arena, out);
    }
    if (index > 0)
        return false;
    const char *all = strcmp(f->name, "config.") == 0 ? "configs" : "labels";
    return take_value(key.n == 0 ? doc_get(r->summary, f->name)
                                 : find_member(doc_get(r->details, all), key, r->arena),
                      f->type, r->arena, out);
}

bool run_filter_fits(const struct filter *f, str summary, str details)
{
    struct err ignored = {0};
    struct arena a;
    arena_init(&a, "filter", LIMIT_ARENA_REQUEST_BYTES);
    struct run_docs r = {.summary = doc_parse(summary, &ignored), .arena = &a};
    r.details = str_eq(summary, details) ? r.summary : doc_parse(details, &ignored);
    const bool fits = filter_fits(f, value_of, &r);
    if (r.details != r.summary)
        doc_free(r.details);
    doc_free(r.summary);
    arena_release(&a);
    return fits;
}

bool run_filter_fits_folder(const struct filter *f, const char *dir, str run, bool *fits,
                            struct err *e)
{
    struct run_view v;
    struct run_summary sum;
    struct buf text;
    struct arena a;
    struct json j;
    if (!run_view_load(&v, dir, run, e))
        return false;
    arena_init(&a, "summary of a run", LIMIT_ARENA_REQUEST_BYTES);
    buf_init(&text, LIMIT_ARENA_REQUEST_BYTES);
    json_init_buf(&j, &text);
    run_summary_make(&v, clock_wall_ns(), &a, &sum);
    run_summary_put(&v, &sum, RUN_SESSIONS_UNKNOWN, (str){0}, RUN_FULL, &a, &j);
    const bool ok = json_done(&j, e) && buf_ok(&text, "the summary", e);
    *fits = ok && run_filter_fits(f, buf_str(&text), buf_str(&text));
    buf_release(&text);
    arena_release(&a);
    run_view_unload(&v);
    return ok;
}
