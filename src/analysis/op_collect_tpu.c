/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/memo.h"
#include "analysis/op_collect.h"
#include "analysis/op_steps.h"
#include "analysis/spans.h"
#include "model/trace_pick.h"

struct open_op { /* an event that is still running */
    uint64_t begin_ps, end_ps, children_ps;
    uint32_t metadata_index;
    double scale;
    uint64_t stall_ps;
    struct op_step *step; /* NULL: in none, or not asked for */
};

struct collector {
    struct op_db *db;
    const struct trace *trace;
    struct err *err;
    const struct trace_plane *plane;
    struct op_tally *tallies;       /* one a metadata entry of the plane */
    const struct op_metrics **once; /* likewise what one execution does; NULL: not computed yet */
    struct open_op *open;
    uint32_t n_open, open_capacity;
    struct trace_numbers *numbers; /* [ASKED], of the events at hand */
    struct memo off_duty;          /* whether an operation is */
    bool has_clock;                /* events may carry the device's own clock */
    uint64_t first_ps, last_ps;    /* over operations and steps */
    uint64_t duty_begin, duty_end; /* running union of busy intervals */
    uint64_t duty_first, duty_last, duty_busy;
};

/* A varint of the breakdown message; false at its end or where it is damaged. */
static bool take_varint(str *s, uint64_t *out)
{
    *out = 0;
    STR_HOLDS(*s);
    for (unsigned shift = 0; s->n > 0 && shift < 64; shift += 7) {
        const uint8_t byte = (uint8_t)s->p[0];
        *s = str_sub(*s, 1, s->n);
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* MemoryAccessBreakdown: repeated {operation 1 (1 read, 2 write), memory space 2, bytes 3} as 1. */
static void add_breakdown(struct op_metrics *m, str message, uint64_t n)
{
    uint64_t tag, length;
    while (take_varint(&message, &tag) && tag == (1 << 3 | 2) && take_varint(&message, &length)) {
        str item = str_sub(message, 0, length);
        message = str_sub(message, item.n, message.n);
        uint64_t value[4] = {0}, field, v;
        while (take_varint(&item, &field) && (field & 7) == 0 && take_varint(&item, &v))
            if (field >> 3 < 4)
                value[field >> 3] = v;
        const uint64_t space = value[2] >= 1 && value[2] <= 3 ? value[2] - 1 : OP_SPACE_OTHER;
        uint64_t *to = value[1] == 2 ? &m->write_bytes[space] : &m->read_bytes[space];
        *to = op_add(*to, op_mul(value[3], n));
        m->has_breakdown = true;
    }
}

static uint64_t meta_u64(const struct trace_event_metadata *md, str name, bool *has)
{
    int64_t v = 0;
    const struct trace_stat *s = trace_stat_find(md->stats, name);
    const bool found = s != NULL && (s->type == TRACE_STAT_U64 || trace_stat_i64(s, &v));
    if (has != NULL)
        *has = found;
    if (!found)
        return 0;
    return s->type == TRACE_STAT_U64 ? s->u64 : v < 0 ? 0 : (uint64_t)v;
}

static str meta_str(const struct trace_event_metadata *md, str name)
{
    str v = {0};
    trace_stat_str(trace_stat_find(md->stats, name), &v);
    return v;
}

/* Adds the cost of n executions, which stands in the metadata. */
static void add_cost(struct op_metrics *m, const struct trace_event_metadata *md, uint64_t n)
{
    bool has_flops;
    const uint64_t flops = op_mul(meta_u64(md, S("flops"), &has_flops), n);
    const uint64_t model = op_mul(meta_u64(md, S("model_flops"), NULL), n);
    m->has_cost = m->has_cost || has_flops;
    m->flops = op_add(m->flops, flops);
    m->model_flops = op_add(m->model_flops, model > 0 ? model : flops);
    m->bytes = op_add(m->bytes, op_mul(meta_u64(md, S("bytes_accessed"), NULL), n));
    const struct trace_stat *breakdown = trace_stat_find(md->stats, S("memory_access_breakdown"));
    if (breakdown != NULL && breakdown->type == TRACE_STAT_BYTES)
        add_breakdown(m, breakdown->text, n);
}

/* 0: the module itself, which is no operation. */
static bool is_module(const struct trace_event_metadata *md)
{
    bool has_symbol;
    return meta_u64(md, S("symbol_id"), &has_symbol) == 0 && has_symbol;
}

/* Finds the step that the event began in. */
static bool find_step(struct collector *c, const struct trace_line *line,
                      const struct trace_event *ev, struct op_step **step)
{
    if (c->db->steps == NULL)
        return true;
    const struct trace_event_metadata *md = trace_event_meta(c->trace, line, ev);
    if (md == NULL || is_module(md))
        return true;
    *step = op_steps_at(c->db->steps, line->plane_index, ev->start_ps);
    if (*step == NULL || c->once[ev->metadata_index] != NULL)
        return true;
    struct op_metrics *once = ARENA_NEW(c->db->arena, struct op_metrics);
    if (once == NULL)
        return arena_full(c->db->arena, c->err);
    once->category = meta_str(md, S("hlo_category"));
    add_cost(once, md, 1);
    c->once[ev->metadata_index] = once;
    return true;
}

static void close_op(struct collector *c)
{
    const struct open_op *o = &c->open[--c->n_open];
    const uint64_t time = o->end_ps - o->begin_ps;
    const uint64_t self = time > o->children_ps ? time - o->children_ps : 0;
    if (o->metadata_index < c->plane->n_event_metadata) {
        struct op_tally *t = &c->tallies[o->metadata_index];
        op_tally_add(t, time, self);
        if (o->step != NULL)
            op_step_add(o->step, c->once[o->metadata_index], self, o->stall_ps, time > self);
        t->dma_stall_ps += o->stall_ps;
        t->normalized_ps += (double)time * o->scale;
    }
    if (c->n_open > 0)
        c->open[c->n_open - 1].children_ps += time;
}

static bool open_op(struct collector *c, const struct open_op *o, struct op_step *step)
{
    while (c->n_open > 0 && c->open[c->n_open - 1].end_ps < o->end_ps)
        close_op(c);
    while (c->n_open > 0 && c->open[c->n_open - 1].begin_ps > o->begin_ps)
        close_op(c);
    if (!ARENA_PUSH(c->db->arena, c->open, c->n_open, c->open_capacity))
        return arena_full(c->db->arena, c->err);
    c->open[c->n_open - 1] = *o;
    c->open[c->n_open - 1].step = step;
    return true;
}

enum asked { OFFSET = 0, DURATION, STALL, SCALE, ASKED };
static const str asked_names[ASKED] = {STR_INIT("device_offset_ps"), STR_INIT("device_duration_ps"),
                                       STR_INIT("dma_stall_duration_ps"),
                                       STR_INIT("Time Scale Multiplier")};

/* The event's span on the device's clock where it has one, and its other numbers: numbers[ASKED], of which i are the
 * event's; NULL: it has none. */
static inline struct open_op op_at(const struct trace_event *ev,
                                   const struct trace_numbers *numbers, uint32_t i)
{
    struct open_op o = {.begin_ps = ev->start_ps,
                        .end_ps = ev->start_ps + ev->dur_ps,
                        .metadata_index = ev->metadata_index,
                        .scale = 1};
    int64_t begin, time, stall;
    if (numbers == NULL)
        return o;
    if (trace_number_i64(&numbers[OFFSET], i, &begin) &&
        trace_number_i64(&numbers[DURATION], i, &time) && begin >= 0 && time >= 0) {
        o.begin_ps = (uint64_t)begin;
        o.end_ps = op_add((uint64_t)begin, (uint64_t)time);
    }
    if (trace_number_i64(&numbers[STALL], i, &stall) && stall > 0)
        o.stall_ps = (uint64_t)stall;
    trace_number_f64(&numbers[SCALE], i, &o.scale);
    return o;
}

static void widen(struct collector *c, const struct open_op *o)
{
    c->first_ps = o->begin_ps < c->first_ps ? o->begin_ps : c->first_ps;
    c->last_ps = o->end_ps > c->last_ps ? o->end_ps : c->last_ps;
}

static str category_of(const struct trace_event_metadata *m)
{
    str category = {0};
    if (m != NULL)
        trace_stat_str(trace_stat_find(m->stats, S("hlo_category")), &category);
    return category;
}

static bool is_off_duty(struct collector *c, const struct trace_line *line,
                        const struct trace_event *ev)
{
    enum { NO = 1, YES };
    uint8_t *known = memo_at(&c->off_duty, c->trace, line, ev);
    if (*known == 0)
        *known = op_is_off_duty(category_of(trace_event_meta(c->trace, line, ev))) ? YES : NO;
    return *known == YES;
}

static void count_duty(struct collector *c, const struct trace_line *line,
                       const struct trace_event *ev, bool may_be_busy)
{
    const uint64_t begin = ev->start_ps, end = ev->start_ps + ev->dur_ps;
    c->duty_first = begin < c->duty_first ? begin : c->duty_first;
    c->duty_last = end > c->duty_last ? end : c->duty_last;
    if (!may_be_busy || is_off_duty(c, line, ev))
        return;
    if (begin > c->duty_end) {
        c->duty_busy += c->duty_end - c->duty_begin;
        c->duty_begin = begin;
        c->duty_end = end;
    } else if (end > c->duty_end) {
        c->duty_end = end;
    }
}

/* Each event of the line, with its numbers. */
static bool each_op(struct collector *c, uint32_t line_index,
                    bool (*take)(struct collector *c, const struct trace_line *line,
                                 const struct trace_event *ev, const struct open_op *o))
{
    const struct trace_line *line = &c->trace->lines[line_index];
    struct trace_numbers *const numbers = c->has_clock ? c->numbers : NULL;
    struct trace_cursor cursor;
    struct trace_picker p;
    const struct trace_event *events;
    bool ok = true;
    trace_picker_init(&p, c->trace, line_index, asked_names, ASKED);
    trace_picker_follow(&p, &cursor);
    trace_cursor_init(&cursor, c->trace, line_index);
    trace_cursor_leave_src(&cursor);
    for (uint32_t n; ok && (n = trace_cursor_take(&cursor, &events)) > 0;) {
        ok = numbers == NULL || trace_pick_numbers(&p, events, n, numbers, c->err);
        for (uint32_t i = 0; ok && i < n; i++) {
            const struct open_op o = op_at(&events[i], numbers, i);
            ok = take(c, line, &events[i], &o);
        }
    }
    trace_cursor_release(&cursor);
    trace_picker_release(&p);
    return ok && trace_cursor_ok(&cursor, c->err);
}

static bool collect_op(struct collector *c, const struct trace_line *line,
                       const struct trace_event *ev, const struct open_op *o)
{
    widen(c, o);
    count_duty(c, line, ev, true);
    struct op_step *step = NULL;
    return find_step(c, line, ev, &step) && open_op(c, o, step);
}

static bool collect_ops(struct collector *c, uint32_t line_index)
{
    const bool ok = each_op(c, line_index, collect_op);
    while (c->n_open > 0)
        close_op(c);
    c->duty_busy += c->duty_end - c->duty_begin;
    c->duty_begin = c->duty_end;
    return ok;
}

/* Steps bound the span of the core; modules the window of the duty cycle. */
static bool collect_step(struct collector *c, const struct trace_line *line,
                         const struct trace_event *ev, const struct open_op *o)
{
    (void)line, (void)ev;
    widen(c, o);
    return true;
}

static bool collect_module(struct collector *c, const struct trace_line *line,
                           const struct trace_event *ev, const struct open_op *o)
{
    (void)o;
    count_duty(c, line, ev, false);
    return true;
}

/* "file.py:12" */
static void set_source(struct op_metrics *m, str source)
{
    str file, line;
    int64_t number;
    const ptrdiff_t colon = str_find_char(source, ':');
    if (colon < 0)
        return;
    file = str_sub(source, 0, (size_t)colon);
    line = str_sub(source, (size_t)colon + 1, source.n);
    if (!str_to_i64(line, &number))
        return;
    m->source_file = file;
    m->source_line = number;
}

static void describe(struct op_db *db, struct op_metrics *m, const struct trace_event_metadata *md)
{
    m->core = OP_CORE_TENSOR;
    m->long_name = md->display_name.n > 0 ? md->name : (str){0};
    m->category = meta_str(md, S("hlo_category"));
    m->provenance = meta_str(md, S("tf_op"));
    m->deduplicated_name = meta_str(md, S("deduplicated_name"));
    m->source_stack = meta_str(md, S("source_stack"));
    set_source(m, meta_str(md, S("source")));
    const struct hlo_program *p = hlo_index_program(&db->hlo, m->program_id);
    if (p != NULL && p->readable) {
        m->module = &p->module;
        m->instruction = hlo_find(&p->module, m->name);
    }
}

static bool fold(struct collector *c)
{
    for (uint32_t i = 0; i < c->plane->n_event_metadata; i++) {
        const struct trace_event_metadata *md = &c->plane->event_metadata[i];
        const struct op_tally *t = &c->tallies[i];
        if (t->occurrences == 0 || is_module(md))
            continue;
        const str name = md->display_name.n > 0 ? md->display_name : md->name;
        struct op_metrics *m = op_db_put(c->db, meta_u64(md, S("program_id"), NULL), name);
        if (m == NULL)
            return arena_full(c->db->arena, c->err);
        if (m->occurrences == 0)
            describe(c->db, m, md);
        add_cost(m, md, t->occurrences);
        op_metrics_add(m, t);
    }
    return true;
}

static bool collect_plane(struct collector *c)
{
    c->first_ps = c->duty_first = UINT64_MAX;
    c->last_ps = c->duty_last = c->duty_busy = c->duty_begin = c->duty_end = 0;
    c->has_clock = spans_plane_names(c->plane, S("device_duration_ps")) ||
                   spans_plane_names(c->plane, S("dma_stall_duration_ps")) ||
                   spans_plane_names(c->plane, S("Time Scale Multiplier"));
    c->tallies = ARENA_ARRAY(c->db->arena, struct op_tally, c->plane->n_event_metadata);
    c->once = ARENA_ARRAY(c->db->arena, const struct op_metrics *,
                          c->db->steps == NULL ? 0 : c->plane->n_event_metadata);
    if ((c->tallies == NULL || (c->once == NULL && c->db->steps != NULL)) &&
        c->plane->n_event_metadata > 0)
        return arena_full(c->db->arena, c->err);
    for (uint32_t i = c->plane->first_line; i < c->plane->first_line + c->plane->n_lines; i++) {
        const str name = c->trace->lines[i].name;
        if (str_eq(name, S("XLA Ops"))) {
            if (!collect_ops(c, i))
                return false;
        } else if (str_eq(name, S("Steps")) || str_eq(name, S("XLA Modules"))) {
            if (!each_op(c, i, str_eq(name, S("Steps")) ? collect_step : collect_module))
                return false;
        }
    }
    if (c->last_ps > c->first_ps)
        c->db->total_ps += c->last_ps - c->first_ps;
    if (c->duty_last > c->duty_first) {
        c->db->duty_busy_ps += c->duty_busy;
        c->db->duty_idle_ps += c->duty_last - c->duty_first - c->duty_busy;
    }
    return fold(c);
}

bool op_collect_tpu(struct op_db *db, const struct trace *t, struct err *e)
{
    struct collector c = {
        .db = db, .trace = t, .err = e, .numbers = map_alloc(ASKED, sizeof(struct trace_numbers))};
    bool ok = true;
    for (uint32_t i = 0; ok && i < t->n_planes; i++)
        if (t->planes[i].kind == TRACE_PLANE_TPU) {
            c.plane = &t->planes[i];
            ok = collect_plane(&c);
        }
    memo_release(&c.off_duty);
    map_free(c.numbers);
    return ok;
}
