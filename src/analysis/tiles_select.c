/* SPDX-License-Identifier: Apache-2.0 */
/* What lies in a selected stretch of time: sums by name, clipped to it, and how busy it was. */
#include "analysis/tiles_internal.h"

struct row {
    str name;
    uint64_t count, total_ps, self_ps, min_ps, max_ps;
};

struct open_event { /* an event that may have children */
    uint64_t end_ps;
    uint32_t row;
};

struct interval {
    uint64_t from_ps, to_ps;
};

struct selection {
    uint64_t from_ps, to_ps;
    struct arena *a;
    struct row *rows;
    uint32_t n_rows, rows_capacity;
    struct map_str_u32 row_ids;
    uint32_t *
        row_of; /* of the plane at hand: by metadata index, the last for unknown ones; row + 1, or 0 */
    uint32_t n_row_of;
    struct open_event *open;
    uint32_t n_open, open_capacity;
    struct interval *busy;
    uint32_t n_busy, busy_capacity;
};

static bool row_find(struct selection *s, str name, uint32_t *out)
{
    const uint32_t *at = map_str_u32_get(&s->row_ids, name);
    if (at != NULL) {
        *out = *at;
        return true;
    }
    *out = s->n_rows;
    *map_str_u32_put(&s->row_ids, name) = s->n_rows;
    if (!ARENA_PUSH(s->a, s->rows, s->n_rows, s->rows_capacity))
        return false;
    s->rows[s->n_rows - 1] = (struct row){.name = name, .min_ps = UINT64_MAX};
    return true;
}

/* A stretch of one line, whose stretches come in order of their start. */
static bool busy_add(struct selection *s, uint32_t first, uint64_t from_ps, uint64_t to_ps)
{
    if (s->n_busy > first && from_ps <= s->busy[s->n_busy - 1].to_ps) {
        struct interval *last = &s->busy[s->n_busy - 1];
        last->to_ps = to_ps > last->to_ps ? to_ps : last->to_ps;
        return true;
    }
    if (!ARENA_PUSH(s->a, s->busy, s->n_busy, s->busy_capacity))
        return false;
    s->busy[s->n_busy - 1] = (struct interval){from_ps, to_ps};
    return true;
}

/* The row of an event's name; a name is looked up once for each entry of the plane's metadata. */
static bool event_row(struct selection *s, const struct trace *t, const struct trace_line *line,
                      const struct trace_event *ev, uint32_t *out)
{
    const uint32_t unknown = s->n_row_of - 1;
    uint32_t *known = &s->row_of[ev->metadata_index < unknown ? ev->metadata_index : unknown];
    if (*known == 0) {
        if (!row_find(s, trace_event_name(t, line, ev), out))
            return false;
        *known = *out + 1;
    }
    *out = *known - 1;
    return true;
}

static bool event_add(struct selection *s, uint32_t row, uint32_t first_busy, uint64_t start_ps,
                      uint64_t end_ps)
{
    const uint64_t from = start_ps > s->from_ps ? start_ps : s->from_ps;
    const uint64_t to = end_ps < s->to_ps ? end_ps : s->to_ps;
    const uint64_t inside = to - from;
    struct row *r = &s->rows[row];
    r->count++;
    r->total_ps += inside;
    r->self_ps += inside;
    r->min_ps = inside < r->min_ps ? inside : r->min_ps;
    r->max_ps = inside > r->max_ps ? inside : r->max_ps;
    while (s->n_open > 0 && s->open[s->n_open - 1].end_ps <= start_ps)
        s->n_open--;
    if (s->n_open > 0 && end_ps <= s->open[s->n_open - 1].end_ps)
        s->rows[s->open[s->n_open - 1].row].self_ps -= inside;
    else
        s->n_open = 0; /* overlaps in part: nobody's child */
    if (!ARENA_PUSH(s->a, s->open, s->n_open, s->open_capacity))
        return false;
    s->open[s->n_open - 1] = (struct open_event){end_ps, row};
    return busy_add(s, first_busy, from, to);
}

static bool line_add(struct selection *s, const struct trace *t, uint32_t l, struct err *e)
{
    const uint32_t first_busy = s->n_busy;
    struct trace_cursor c;
    bool ok = true;
    s->n_open = 0;
    s->n_row_of = t->planes[t->lines[l].plane_index].n_event_metadata + 1;
    s->row_of = ARENA_ARRAY(s->a, uint32_t, s->n_row_of);
    if (s->row_of == NULL)
        return arena_full(s->a, e);
    trace_cursor_init(&c, t, l);
    trace_cursor_seek(&c, s->from_ps < t->shift_ps ? 0 : s->from_ps - t->shift_ps);
    while (ok && trace_cursor_next(&c)) {
        const uint64_t start = c.event.start_ps + t->shift_ps, end = start + c.event.dur_ps;
        if (start >= s->to_ps)
            break;
        uint32_t row;
        if (c.event.num_occurrences == 0 && (end > s->from_ps || start >= s->from_ps))
            ok = event_row(s, t, &t->lines[l], &c.event, &row) &&
                 event_add(s, row, first_busy, start, end);
    }
    trace_cursor_release(&c);
    return ok ? trace_cursor_ok(&c, e) : arena_full(s->a, e);
}

static int interval_order(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return x->from_ps < y->from_ps ? -1 : x->from_ps > y->from_ps;
}

static int row_order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->total_ps != y->total_ps)
        return x->total_ps > y->total_ps ? -1 : 1;
    return str_cmp(x->name, y->name);
}

static uint64_t busy_union(struct selection *s)
{
    uint64_t busy = 0, reached = 0;
    if (s->n_busy > 0)
        qsort(s->busy, s->n_busy, sizeof *s->busy, interval_order);
    for (uint32_t i = 0; i < s->n_busy; i++) {
        const uint64_t from = s->busy[i].from_ps > reached ? s->busy[i].from_ps : reached;
        busy += s->busy[i].to_ps > from ? s->busy[i].to_ps - from : 0;
        reached = s->busy[i].to_ps > reached ? s->busy[i].to_ps : reached;
    }
    return busy;
}

static void selection_write(struct selection *s, struct json *j)
{
    if (s->n_rows > 0)
        qsort(s->rows, s->n_rows, sizeof *s->rows, row_order);
    json_object(j);
    json_key(j, "rows");
    json_array(j);
    for (uint32_t i = 0; i < s->n_rows; i++) {
        const struct row *r = &s->rows[i];
        json_object(j);
        json_kstr(j, "name", r->name);
        json_ku64(j, "count", r->count);
        json_ku64(j, "total_ps", r->total_ps);
        json_ku64(j, "self_ps", r->self_ps);
        json_ku64(j, "min_ps", r->min_ps);
        json_ku64(j, "max_ps", r->max_ps);
        json_end(j);
    }
    json_end(j);
    const uint64_t busy = busy_union(s);
    json_ku64(j, "busy_ps", busy);
    json_ku64(j, "idle_ps", s->to_ps - s->from_ps - busy);
    json_end(j);
}

bool tiles_select(const struct tool_request *r, struct arena *a, struct json *j, struct err *e)
{
    struct trace *t;
    uint32_t *lines, n_lines;
    struct selection s = {.a = a};
    if (!tiles_target(r, &t, e) || !tiles_lines(r, t, true, a, &lines, &n_lines, e) ||
        !tiles_u64(r, S("from_ps"), 0, &s.from_ps, e) ||
        !tiles_u64(r, S("to_ps"), t->end_ps + t->shift_ps, &s.to_ps, e))
        return false;
    if (s.from_ps > s.to_ps)
        return err_set(e, ERR_USAGE, "'from_ps' is after 'to_ps'");
    bool ok = true;
    for (uint32_t i = 0; i < n_lines && ok; i++)
        ok = line_add(&s, t, lines[i], e);
    if (ok)
        selection_write(&s, j);
    map_str_u32_release(&s.row_ids);
    return ok;
}
