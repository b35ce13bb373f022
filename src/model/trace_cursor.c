/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "model/trace_groups.h"

struct cursor_room {
    struct trace_group_view view;
    struct trace_event window[TRACE_CURSOR_WINDOW]; /* stays in the nearest cache */
};

static const struct trace_group *cursor_groups(const struct trace_cursor *c)
{
    return &c->trace->groups->items[c->first_group];
}

/* Stands before event `first` of all that the groups hold. */
static void cursor_place(struct trace_cursor *c, uint64_t first)
{
    while (first > 0 && c->group < c->n_groups && first >= cursor_groups(c)[c->group].n_events)
        first -= cursor_groups(c)[c->group++].n_events;
    c->row = (uint32_t)first;
}

void trace_cursor_init(struct trace_cursor *c, const struct trace *t, uint32_t line_index)
{
    const struct trace_line *line = &t->lines[line_index];
    *c = (struct trace_cursor){.trace = t,
                               .line_index = line_index,
                               .first_group = line->first_group,
                               .n_groups = line->n_groups,
                               .base_ps = line->base_ps,
                               .left = line->n_events,
                               .index = UINT64_MAX};
    cursor_place(c, line->first_event);
}

void trace_cursor_init_level(struct trace_cursor *c, const struct trace *t, uint32_t line_index,
                             uint32_t level)
{
    const struct trace_line *line = &t->lines[line_index];
    const struct trace_level *of = &t->levels[line->first_level + level];
    *c = (struct trace_cursor){.trace = t,
                               .line_index = line_index,
                               .first_group = of->first_group,
                               .n_groups = of->n_groups,
                               .base_ps = line->base_ps,
                               .left = of->n_rows,
                               .index = UINT64_MAX};
}

void trace_cursor_init_work(struct trace_cursor *c, const struct trace *t, uint32_t line_index)
{
    trace_cursor_init(c, t, line_index);
    c->cuts = str_starts(t->lines[line_index].name, S("Stream #"));
}

void trace_cursor_release(struct trace_cursor *c)
{
    if (c->room == NULL)
        return;
    trace_group_view_release(&c->room->view);
    free(c->room);
    c->room = NULL;
}

static bool cursor_fail(struct trace_cursor *c)
{
    c->failed = &c->failure;
    return false;
}

static bool cursor_open(struct trace_cursor *c)
{
    if (c->room == NULL) {
        c->room = calloc(1, sizeof *c->room);
        must(c->room != NULL);
    }
    return trace_group_view_open(&c->room->view, c->trace->groups, c->first_group + c->group,
                                 &c->failure) ||
           cursor_fail(c);
}

/* Unpacks the next rows; false at the end or on failure. */
static bool cursor_fill(struct trace_cursor *c)
{
    while (c->group < c->n_groups && c->row >= cursor_groups(c)[c->group].n_events) {
        c->group++;
        c->row = 0;
    }
    if (c->group >= c->n_groups || !cursor_open(c))
        return false;
    const struct trace_group_view *v = &c->room->view;
    if (!c->leaves_src && (c->n_window == 0 || c->row == 0))
        c->src_end = trace_group_src_end(v, c->row);
    const uint32_t left = v->n_rows - c->row;
    c->n_window = left < TRACE_CURSOR_WINDOW ? left : TRACE_CURSOR_WINDOW;
    c->at = 0;
    trace_group_unpack(v, c->row, c->n_window, c->leaves_src ? NULL : &c->src_end, c->room->window);
    for (uint32_t i = 0; i < c->n_window; i++)
        c->room->window[i].start_ps += c->base_ps;
    c->row += c->n_window;
    return true;
}

static bool cursor_has_more(struct trace_cursor *c)
{
    return c->failed == NULL && c->left > 0 && (c->at < c->n_window || cursor_fill(c));
}

static bool cursor_step(struct trace_cursor *c)
{
    if (!cursor_has_more(c))
        return false;
    c->event = c->room->window[c->at++];
    c->index++;
    c->left--;
    return true;
}

static bool event_lasts(const struct trace_event *ev)
{
    return ev->dur_ps > 0 && ev->num_occurrences == 0;
}

static void ahead_set(struct trace_cursor *c, uint64_t index, uint64_t start_ps, uint64_t dur_ps)
{
    c->ahead_index = index;
    c->ahead_start_ps = start_ps;
    c->ahead_end_ps = start_ps + dur_ps;
}

/* Looks through what is unpacked, then through the rest of the row group. */
static bool ahead_here(struct trace_cursor *c)
{
    for (uint32_t i = c->at; i < c->n_window; i++) {
        const struct trace_event *ev = &c->room->window[i];
        if (event_lasts(ev)) {
            ahead_set(c, c->index + 1 + i - c->at, ev->start_ps, ev->dur_ps);
            return true;
        }
    }
    const struct trace_group_view *v = &c->room->view;
    for (uint32_t row = c->row; row < v->n_rows; row++) {
        const uint64_t dur = trace_column_at(&v->columns[TRACE_COLUMN_DURATION], row);
        if (dur > 0 && trace_column_at(&v->columns[TRACE_COLUMN_OCCURRENCES], row) == 0) {
            ahead_set(c, c->index + 1 + (c->n_window - c->at) + (row - c->row),
                      c->base_ps + trace_column_at(&v->columns[TRACE_COLUMN_START], row), dur);
            return true;
        }
    }
    return false;
}

/* Finds the next event that lasts, which may lie groups ahead, and behind the part that a view shows. */
static bool cursor_look_ahead(struct trace_cursor *c)
{
    if (ahead_here(c))
        return true;
    const uint32_t rest = c->room->view.n_rows - c->row;
    struct trace_cursor next = {.trace = c->trace,
                                .line_index = c->line_index,
                                .first_group = c->first_group,
                                .n_groups = c->n_groups,
                                .base_ps = c->base_ps,
                                .leaves_src = true,
                                .group = c->group + 1,
                                .left = UINT64_MAX,
                                .index = c->index + (c->n_window - c->at) + rest};
    ahead_set(c, UINT64_MAX, UINT64_MAX, 0);
    while (cursor_step(&next))
        if (event_lasts(&next.event)) {
            ahead_set(c, next.index, next.event.start_ps, next.event.dur_ps);
            break;
        }
    trace_cursor_release(&next);
    if (next.failed == NULL)
        return true;
    c->failure = next.failure;
    return cursor_fail(c);
}

/* Of the event that the cursor has just given. */
static bool cursor_cut(struct trace_cursor *c, struct trace_event *ev)
{
    c->is_cut = false;
    if (ev->num_occurrences > 0)
        return true;
    if (c->ahead_index <= c->index && !cursor_look_ahead(c))
        return false;
    c->is_cut = ev->start_ps < c->ahead_start_ps && c->ahead_end_ps < ev->start_ps + ev->dur_ps;
    if (c->is_cut)
        ev->dur_ps = c->ahead_start_ps - ev->start_ps;
    return true;
}

bool trace_cursor_next(struct trace_cursor *c)
{
    if (cursor_step(c) && (!c->cuts || cursor_cut(c, &c->event)))
        return true;
    trace_cursor_release(c);
    return false;
}

uint32_t trace_cursor_take(struct trace_cursor *c, const struct trace_event **events)
{
    bool ok = cursor_has_more(c);
    const uint32_t here = ok ? c->n_window - c->at : 0;
    const uint32_t n = here < c->left ? here : (uint32_t)c->left;
    struct trace_event *const first = ok ? &c->room->window[c->at] : NULL;
    *events = first;
    for (uint32_t i = 0; ok && c->cuts && i < n; i++) {
        c->at++;
        c->index++;
        ok = cursor_cut(c, &first[i]);
    }
    if (!ok) {
        trace_cursor_release(c);
        return 0;
    }
    c->at += c->cuts ? 0 : n;
    c->index += c->cuts ? 0 : n;
    c->left -= n;
    return n;
}

void trace_cursor_skip(struct trace_cursor *c, uint64_t n)
{
    n = n < c->left ? n : c->left;
    c->group = 0;
    cursor_place(c, c->trace->lines[c->line_index].first_event + n);
    c->index += n;
    c->left -= n;
}

void trace_cursor_leave_src(struct trace_cursor *c)
{
    c->leaves_src = true;
}

const struct trace_group_view *trace_cursor_view(const struct trace_cursor *c)
{
    return c->room == NULL ? NULL : &c->room->view;
}

void trace_cursor_seek(struct trace_cursor *c, uint64_t from_ps)
{
    const struct trace_line *line = &c->trace->lines[c->line_index];
    const uint64_t from = from_ps < c->base_ps ? 0 : from_ps - c->base_ps;
    const uint64_t all = c->left + c->index + 1; /* what the cursor gives from its first event on */
    const uint64_t first = c->first_group == line->first_group ? line->first_event : 0;
    const struct trace_group *items = cursor_groups(c);
    uint64_t before = 0; /* events of the groups that are passed over */
    c->group = c->at = c->n_window = 0;
    c->ahead_index = 0;
    while (c->group < c->n_groups &&
           (before + items[c->group].n_events <= first ||
            (items[c->group].last_start_ps < from && items[c->group].max_end_ps <= from)))
        before += items[c->group++].n_events;
    c->row = before < first ? (uint32_t)(first - before) : 0;
    if (c->group < c->n_groups && cursor_open(c)) {
        const struct trace_group_view *v = &c->room->view;
        const struct trace_column *start = &v->columns[TRACE_COLUMN_START];
        const struct trace_column *dur = &v->columns[TRACE_COLUMN_DURATION];
        while (c->row < v->n_rows && trace_column_at(start, c->row) < from &&
               trace_column_at(start, c->row) + trace_column_at(dur, c->row) <= from)
            c->row++;
    }
    const uint64_t passed = before + c->row - first;
    c->index = passed - 1;
    c->left = passed < all ? all - passed : 0;
}

bool trace_cursor_ok(const struct trace_cursor *c, struct err *e)
{
    if (c->failed == NULL)
        return true;
    *e = c->failure;
    return false;
}
