/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/derived_lines.h"

#include "analysis/framework_op.h"
#include "analysis/group_follow.h"
#include "analysis/spans.h"
#include "base/limits.h"
#include "model/trace_pick.h"

#define NS_PS 1000u
#define LEVELS 32 /* name scopes further inside are not drawn */

const char *const derived_names[DERIVED_KINDS] = {"Framework Name Scope", "Framework Ops",
                                                  "XLA Modules", "XLA Ops", "Source code"};

struct open_event {
    bool open;
    struct buf key; /* what it is told apart by; the name is a part of it */
    size_t name_at, name_bytes;
    uint64_t start_ps, end_ps;
    int32_t group;
};

struct builder {
    struct open_event lines[DERIVED_KINDS][LEVELS];
    struct buf text; /* scratch */
    derived_fn fn;
    void *ctx;
    struct err *err;
};

static bool close_one(struct builder *b, enum derived_kind kind, uint32_t level)
{
    struct open_event *o = &b->lines[kind][level];
    if (!o->open)
        return true;
    o->open = false;
    const str key = buf_str(&o->key), name = str_sub(key, o->name_at, o->name_at + o->name_bytes);
    const struct derived_event ev = {.kind = kind,
                                     .level = level,
                                     .name = name,
                                     .long_name = str_eq(key, name) ? (str){0} : key,
                                     .start_ps = o->start_ps,
                                     .end_ps = o->end_ps,
                                     .group = o->group};
    return b->fn(b->ctx, &ev, b->err);
}

static bool close_levels(struct builder *b, enum derived_kind kind, uint32_t level)
{
    for (uint32_t i = LEVELS; i-- > level;)
        if (!close_one(b, kind, i))
            return false;
    return true;
}

/* Of events that cover the same time each inner one becomes a nanosecond shorter than the one around it, so that the
 * viewer, which sorts by duration, stacks them in this order. */
static void tell_apart(struct builder *b, enum derived_kind kind, uint32_t level)
{
    struct open_event *o = b->lines[kind];
    uint64_t begin = 0, end = 0, shorter_ps = 0;
    for (uint32_t i = level; i < LEVELS && o[i].open; i++) {
        const bool same = i > level && o[i].start_ps == begin && o[i].end_ps == end;
        begin = o[i].start_ps;
        end = o[i].end_ps;
        if (same && end - begin > shorter_ps + 2 * NS_PS)
            o[i].end_ps -= (shorter_ps += NS_PS);
    }
}

/* Ends the line's events from the level on, the innermost first, and those of the lines that hang on it. */
static bool close_from(struct builder *b, enum derived_kind kind, uint32_t level)
{
    tell_apart(b, kind, level);
    if (!close_levels(b, kind, level))
        return false;
    if (level > 0)
        return true;
    if (kind == DERIVED_MODULES)
        return close_from(b, DERIVED_NAME_SCOPES, 0) && close_from(b, DERIVED_OPS, 0);
    return kind != DERIVED_NAME_SCOPES || close_from(b, DERIVED_FRAMEWORK_OPS, 0);
}

struct operation { /* one execution, as the device ran it */
    uint64_t start_ps, end_ps;
    int32_t group;
};

static bool expand_or_add(struct builder *b, enum derived_kind kind, uint32_t level, str key,
                          str name, const struct operation *op)
{
    struct open_event *o = &b->lines[kind][level];
    if (o->open && o->group == op->group && str_eq(buf_str(&o->key), key)) {
        o->end_ps = op->end_ps > o->end_ps ? op->end_ps : o->end_ps;
        o->start_ps = op->start_ps < o->start_ps ? op->start_ps : o->start_ps;
        return true;
    }
    if (!close_from(b, kind, level))
        return false;
    if (o->key.cap == 0)
        buf_init(&o->key, LIMIT_XSPACE_NAME_BYTES * 2);
    buf_clear(&o->key);
    buf_add_str(&o->key, key);
    o->name_at = (size_t)(name.p - key.p);
    o->name_bytes = name.n;
    o->start_ps = op->start_ps;
    o->end_ps = op->end_ps;
    o->group = op->group;
    o->open = true;
    return buf_ok(&o->key, "a name", b->err);
}

static bool add(struct builder *b, enum derived_kind kind, str name, const struct operation *op)
{
    return name.n == 0 || expand_or_add(b, kind, 0, name, name, op);
}

/* "a/b/c": a and b are scopes. An operation in none leaves those open that are. */
static bool add_scopes(struct builder *b, str path, const struct operation *op)
{
    str head, rest = path;
    uint32_t level = 0;
    while (str_cut(rest, '/', &head, &rest) && rest.n > 0 && level < LEVELS)
        if (!expand_or_add(b, DERIVED_NAME_SCOPES, level++, head, head, op))
            return false;
    return level == 0 || close_from(b, DERIVED_NAME_SCOPES, level);
}

static bool add_framework_op(struct builder *b, str full_name, const struct operation *op)
{
    if (full_name.n == 0)
        return true;
    const struct framework_op f = framework_op_parse(full_name);
    const bool known = f.kind == FRAMEWORK_TENSORFLOW || f.kind == FRAMEWORK_JAX;
    if (known && !add_scopes(b, f.name, op))
        return false;
    const bool within = f.type.p >= full_name.p && f.type.p < full_name.p + full_name.n;
    return expand_or_add(b, DERIVED_FRAMEWORK_OPS, 0, full_name,
                         known && within ? f.type : full_name, op);
}

/* Formats into the builder's scratch. */
static str text_of(struct builder *b, const char *format, ...) PRINTF_LIKE(2, 3);
static str text_of(struct builder *b, const char *format, ...)
{
    va_list args;
    if (b->text.cap == 0)
        buf_init(&b->text, LIMIT_XSPACE_NAME_BYTES * 2);
    buf_clear(&b->text);
    va_start(args, format);
    buf_addv(&b->text, format, args);
    va_end(args);
    return buf_str(&b->text);
}

static str file_name(str path)
{
    ptrdiff_t at;
    while ((at = str_find_char(path, '/')) >= 0)
        path = str_sub(path, (size_t)at + 1, path.n);
    return path;
}

/* ---- GPU ---- */

enum kernel_stat { KERNEL_DETAILS = 0, HLO_OP, HLO_MODULE, PROGRAM_ID, TF_OP, KERNEL_STATS };
static const str kernel_stats[KERNEL_STATS] = {STR_INIT("kernel_details"), STR_INIT("hlo_op"),
                                               STR_INIT("hlo_module"), STR_INIT("program_id"),
                                               STR_INIT("tf_op")};

static const struct trace_stat *stat_of(const struct trace_stat *own,
                                        const struct trace_event_metadata *md, str name)
{
    return own->type != TRACE_STAT_NONE || md == NULL ? own : trace_stat_find(md->stats, name);
}

struct kernel {
    str op, module, tf_op;
    bool is_kernel;
    const struct hlo_program *program;
};

static void read_kernel(struct kernel *k, const struct trace_stat *stats,
                        const struct trace_event_metadata *md, const struct hlo_index *hlo)
{
    int64_t id;
    str details = {0};
    *k = (struct kernel){0};
    trace_stat_str(stat_of(&stats[HLO_OP], md, kernel_stats[HLO_OP]), &k->op);
    trace_stat_str(stat_of(&stats[HLO_MODULE], md, kernel_stats[HLO_MODULE]), &k->module);
    trace_stat_str(stat_of(&stats[TF_OP], md, kernel_stats[TF_OP]), &k->tf_op);
    trace_stat_str(stat_of(&stats[KERNEL_DETAILS], md, kernel_stats[KERNEL_DETAILS]), &details);
    k->is_kernel = details.n > 0;
    if (trace_stat_i64(stat_of(&stats[PROGRAM_ID], md, kernel_stats[PROGRAM_ID]), &id))
        k->program = hlo_index_program(hlo, (uint64_t)id);
    if (k->program == NULL && k->module.n > 0)
        k->program = hlo_index_named(hlo, k->module);
}

/* "outer::inner": one level each. */
static bool add_hlo_ops(struct builder *b, const struct kernel *k, const struct operation *op)
{
    str rest = k->op;
    for (uint32_t level = 0; rest.n > 0 && level < LEVELS; level++) {
        const ptrdiff_t at = str_find(rest, S("::"));
        const str name = at < 0 ? rest : str_sub(rest, 0, (size_t)at);
        rest = at < 0 ? (str){0} : str_sub(rest, (size_t)at + 2, rest.n);
        const str key = k->program == NULL
                            ? text_of(b, "%.*s/%.*s", STR_ARG(k->module), STR_ARG(name))
                            : text_of(b, "%llu/%.*s", (unsigned long long)k->program->program_id,
                                      STR_ARG(name));
        const str in_key = str_sub(key, key.n - (name.n < key.n ? name.n : key.n), key.n);
        if (!expand_or_add(b, DERIVED_OPS, level, key, in_key, op))
            return false;
    }
    return true;
}

static str innermost(str op)
{
    ptrdiff_t at;
    while ((at = str_find(op, S("::"))) >= 0)
        op = str_sub(op, (size_t)at + 2, op.n);
    return op;
}

static bool add_instruction(struct builder *b, const struct hlo_instruction *in,
                            const struct hlo_module *m, const struct operation *op)
{
    str file;
    int64_t line;
    hlo_source(m, in, &file, &line);
    if (in->op_name.n > 0 &&
        !add_framework_op(b, text_of(b, "%.*s:%.*s", STR_ARG(in->op_name), STR_ARG(in->op_type)),
                          op))
        return false;
    return file.n == 0 ||
           add(b, DERIVED_SOURCE,
               text_of(b, "%.*s:%lld", STR_ARG(file_name(file)), (long long)line), op);
}

static bool add_kernel(struct builder *b, const struct kernel *k, const struct operation *op)
{
    if (!k->is_kernel)
        return true;
    if (k->module.n > 0) {
        const str name = k->program == NULL ? k->module
                                            : text_of(b, "%.*s(%llu)", STR_ARG(k->module),
                                                      (unsigned long long)k->program->program_id);
        if (!add(b, DERIVED_MODULES, name, op))
            return false;
    }
    if (k->op.n == 0 || k->module.n == 0)
        return add_framework_op(b, k->tf_op, op);
    if (!add_hlo_ops(b, k, op))
        return false;
    const struct hlo_instruction *in = k->program == NULL || !k->program->readable
                                           ? NULL
                                           : hlo_find(&k->program->module, innermost(k->op));
    return in == NULL || add_instruction(b, in, &k->program->module, op);
}

/* ---- TPU ---- */

/* Framework operation and source stand with the metadata of the operation. */
static bool add_tpu(struct builder *b, const struct trace_event_metadata *md,
                    const struct operation *op)
{
    str tf_op = {0}, source = {0};
    if (md == NULL)
        return true;
    trace_stat_str(trace_stat_find(md->stats, S("tf_op")), &tf_op);
    trace_stat_str(trace_stat_find(md->stats, S("source")), &source);
    return add_framework_op(b, tf_op, op) && add(b, DERIVED_SOURCE, source, op);
}

bool derived_from(const struct trace *t, uint32_t line_index)
{
    const enum trace_plane_kind kind = t->planes[t->lines[line_index].plane_index].kind;
    return (kind == TRACE_PLANE_GPU || kind == TRACE_PLANE_TPU) &&
           spans_is_work_line(t, line_index);
}

static bool walk(struct builder *b, const struct trace *t, uint32_t line_index,
                 const struct grouping *g, const struct hlo_index *hlo)
{
    const struct trace_line *line = &t->lines[line_index];
    const bool gpu = t->planes[line->plane_index].kind == TRACE_PLANE_GPU;
    struct trace_cursor c;
    struct trace_picker p;
    struct group_follow groups;
    bool ok = true;
    group_follow_init(&groups, t, g, line_index);
    trace_picker_init(&p, t, line_index, kernel_stats, gpu ? KERNEL_STATS : 0);
    trace_picker_follow(&p, &c);
    for (trace_cursor_init(&c, t, line_index); ok && trace_cursor_next(&c);) {
        const struct trace_event *ev = &c.event;
        const struct trace_event_metadata *md = trace_event_meta(t, line, ev);
        const struct operation op = {ev->start_ps, ev->start_ps + ev->dur_ps,
                                     group_follow_at(&groups, c.index, ev->start_ps)};
        struct kernel k;
        if (ev->num_occurrences > 0)
            continue;
        if (!gpu) {
            ok = add_tpu(b, md, &op);
        } else if ((ok = trace_pick(&p, ev, b->err))) {
            read_kernel(&k, p.values, md, hlo);
            ok = add_kernel(b, &k, &op);
        }
    }
    trace_cursor_release(&c);
    trace_picker_release(&p);
    ok = ok && group_follow_ok(&groups, b->err);
    group_follow_release(&groups);
    return ok && trace_cursor_ok(&c, b->err);
}

bool derived_lines(const struct trace *t, uint32_t line_index, const struct grouping *g,
                   const struct hlo_index *hlo, derived_fn fn, void *ctx, struct err *e)
{
    struct builder *b = map_alloc(1, sizeof *b);
    b->fn = fn;
    b->ctx = ctx;
    b->err = e;
    bool ok = walk(b, t, line_index, g, hlo);
    for (unsigned kind = 0; ok && kind < DERIVED_KINDS; kind++)
        ok = close_levels(b, kind, 0); /* the last ones keep their time */
    for (unsigned kind = 0; kind < DERIVED_KINDS; kind++)
        for (unsigned level = 0; level < LEVELS; level++)
            buf_release(&b->lines[kind][level].key);
    buf_release(&b->text);
    map_free(b);
    return ok;
}
