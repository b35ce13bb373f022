/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "model/trace_groups.h"

static const struct trace_line *cursor_line(const struct trace_cursor *c)
{
    return &c->trace->lines[c->line_index];
}

void trace_cursor_init(struct trace_cursor *c, const struct trace *t, uint32_t line_index)
{
    const struct trace_line *line = &t->lines[line_index];
    *c = (struct trace_cursor){
        .trace = t, .line_index = line_index, .index = UINT64_MAX, .end = line->n_events};
    uint64_t skip = line->first_event;
    while (skip > 0 && c->group < line->n_groups) {
        const uint32_t n = t->groups->items[line->first_group + c->group].n_events;
        if (skip < n)
            break;
        skip -= n;
        c->group++;
    }
    c->skip = (uint32_t)skip;
}

void trace_cursor_init_work(struct trace_cursor *c, const struct trace *t, uint32_t line_index)
{
    trace_cursor_init(c, t, line_index);
    c->cuts = str_starts(t->lines[line_index].name, S("Stream #"));
}

void trace_cursor_release(struct trace_cursor *c)
{
    free(c->window);
    c->window = NULL;
}

/* Unpacks the group that the cursor stands at. */
static bool cursor_fill(struct trace_cursor *c)
{
    const struct trace_line *line = cursor_line(c);
    const struct trace_group *item = &c->trace->groups->items[line->first_group + c->group];
    const uint64_t most = line->is_part || line->n_events > LIMIT_TRACE_GROUP_EVENTS
                              ? LIMIT_TRACE_GROUP_EVENTS
                              : line->n_events;
    if (c->window == NULL) {
        c->window = malloc(most * sizeof *c->window);
        must(c->window != NULL);
    }
    if (item->n_events > most) { /* of an index that is damaged */
        c->failed = &c->failure;
        return err_set(&c->failure, ERR_PARSE, "row group has more events than its line");
    }
    if (!trace_groups_read(c->trace->groups, line->first_group + c->group, c->window,
                           &c->failure)) {
        c->failed = &c->failure;
        return false;
    }
    c->n_in_group = item->n_events;
    for (uint32_t i = 0; i < c->n_in_group; i++)
        c->window[i].start_ps += line->base_ps;
    c->at = c->skip < c->n_in_group ? c->skip : c->n_in_group;
    c->skip = 0;
    return true;
}

/* Finds the next event that lasts, which may lie groups ahead. */
static bool cursor_look_ahead(struct trace_cursor *c)
{
    const uint32_t left = c->n_in_group - c->at;
    struct trace_cursor next = {.trace = c->trace,
                                .line_index = c->line_index,
                                .group = c->group + 1,
                                .index = c->index + left,
                                .end = UINT64_MAX}; /* also behind the part that a view shows */
    const struct trace_event *found = NULL;
    for (uint32_t i = 0; found == NULL && i < left; i++)
        if (c->window[c->at + i].dur_ps > 0 && c->window[c->at + i].num_occurrences == 0) {
            found = &c->window[c->at + i];
            c->ahead_index = c->index + 1 + i;
        }
    while (found == NULL && trace_cursor_next(&next))
        if (next.event.dur_ps > 0 && next.event.num_occurrences == 0) {
            found = &next.event;
            c->ahead_index = next.index;
        }
    c->ahead_start_ps = c->ahead_end_ps = UINT64_MAX;
    if (found == NULL)
        c->ahead_index = UINT64_MAX;
    else
        c->ahead_start_ps = found->start_ps, c->ahead_end_ps = found->start_ps + found->dur_ps;
    trace_cursor_release(&next);
    if (next.failed == NULL)
        return true;
    c->failure = next.failure;
    c->failed = &c->failure;
    trace_cursor_release(c);
    return false;
}

static bool cursor_cut(struct trace_cursor *c)
{
    struct trace_event *ev = &c->event;
    c->is_cut = false;
    if (!c->cuts || ev->num_occurrences > 0)
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
    const struct trace_line *line = cursor_line(c);
    while (c->failed == NULL && c->index + 1 < c->end && c->at >= c->n_in_group) {
        if (c->n_in_group > 0)
            c->group++;
        c->at = c->n_in_group = 0;
        if (c->group >= line->n_groups || !cursor_fill(c))
            break;
    }
    if (c->failed != NULL || c->at >= c->n_in_group || c->index + 1 >= c->end) {
        trace_cursor_release(c);
        return false;
    }
    c->event = c->window[c->at++];
    c->index++;
    return cursor_cut(c);
}

void trace_cursor_seek(struct trace_cursor *c, uint64_t from_ps)
{
    const struct trace_line *line = cursor_line(c);
    const struct trace_group *items = &c->trace->groups->items[line->first_group];
    const uint64_t from = from_ps < line->base_ps ? 0 : from_ps - line->base_ps;
    uint64_t before = 0; /* events of the groups that are passed over */
    c->group = 0;
    c->at = c->n_in_group = 0;
    c->ahead_index = 0;
    while (c->group < line->n_groups &&
           (before + items[c->group].n_events <= line->first_event ||
            (items[c->group].last_start_ps < from && items[c->group].max_end_ps <= from)))
        before += items[c->group++].n_events;
    c->skip = before < line->first_event ? (uint32_t)(line->first_event - before) : 0;
    c->index = before + c->skip - line->first_event - 1;
    if (c->group >= line->n_groups || !cursor_fill(c))
        return;
    while (c->at < c->n_in_group && c->window[c->at].start_ps < from_ps &&
           c->window[c->at].start_ps + c->window[c->at].dur_ps <= from_ps)
        c->at++;
    c->index = before + c->at - line->first_event - 1;
}

bool trace_cursor_ok(const struct trace_cursor *c, struct err *e)
{
    if (c->failed == NULL)
        return true;
    *e = c->failure;
    return false;
}
