/* SPDX-License-Identifier: Apache-2.0 */
/* summary: what a profile holds. Keys and their meaning: SURFACE "tacho tool summary --json". */
#include "analysis/tool.h"

#include "base/limits.h"

struct warning_row {
    str code, message;
    uint64_t count;
};

struct summary {
    uint32_t planes, device_planes, host_planes, lines;
    uint64_t events, zero_duration, suspect, total_busy_ps;
    uint64_t from_ps, to_ps; /* first start and last end */
    struct map_u64_u32 step_set;
    int64_t *steps, *ranks;
    uint32_t n_steps, steps_capacity, n_ranks, ranks_capacity;
    struct map_str_u32 name_set, host_set;
    str *line_names, *hosts;
    uint32_t n_line_names, names_capacity, n_hosts, hosts_capacity;
    struct warning_row *warnings;
    uint32_t n_warnings, warnings_capacity;
};

struct interval {
    uint64_t from_ps, to_ps;
};

static bool is_device(const struct trace_plane *p)
{
    return p->kind == TRACE_PLANE_TPU || p->kind == TRACE_PLANE_TPU_SPARSE ||
           p->kind == TRACE_PLANE_GPU || p->kind == TRACE_PLANE_CUSTOM;
}

/* Lines whose events are the device's own work, not a view on it. */
static bool is_work_line(const struct trace_line *line)
{
    return str_starts(line->name, S("Stream #")) || str_eq(line->name, S("XLA Ops"));
}

static bool warn(struct arena *a, struct summary *s, str code, str message, uint64_t count)
{
    for (uint32_t i = 0; i < s->n_warnings; i++)
        if (str_eq(s->warnings[i].code, code) && str_eq(s->warnings[i].message, message)) {
            s->warnings[i].count += count;
            return true;
        }
    if (!ARENA_PUSH(a, s->warnings, s->n_warnings, s->warnings_capacity))
        return false;
    s->warnings[s->n_warnings - 1] = (struct warning_row){code, message, count};
    return true;
}

static bool add_name(struct arena *a, struct map_str_u32 *set, str **list, uint32_t *n,
                     uint32_t *capacity, str name)
{
    if (map_str_u32_get(set, name) != NULL)
        return true;
    *map_str_u32_put(set, name) = 1;
    if (!ARENA_PUSH(a, *list, *n, *capacity))
        return false;
    (*list)[*n - 1] = name;
    return true;
}

static bool add_step(struct arena *a, struct summary *s, int64_t step)
{
    if (map_u64_u32_get(&s->step_set, (uint64_t)step) != NULL)
        return true;
    *map_u64_u32_put(&s->step_set, (uint64_t)step) = 1;
    if (!ARENA_PUSH(a, s->steps, s->n_steps, s->steps_capacity))
        return false;
    s->steps[s->n_steps - 1] = step;
    return true;
}

static int interval_order(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return x->from_ps < y->from_ps ? -1 : x->from_ps > y->from_ps;
}

/* Union over the work lines of one device: the merged stretches of each, merged again. */
static bool plane_busy(const struct trace *t, const struct trace_plane *p, uint64_t *busy_ps,
                       struct arena *a, struct err *e)
{
    struct interval *all = NULL;
    uint32_t n = 0, capacity = 0;
    for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
        struct trace_cursor c;
        if (!is_work_line(&t->lines[l]))
            continue;
        bool open = false;
        for (trace_cursor_init_work(&c, t, l); trace_cursor_next(&c);) {
            const uint64_t end = c.event.start_ps + c.event.dur_ps;
            if (c.event.num_occurrences > 0 || c.event.dur_ps == 0)
                continue;
            if (open && c.event.start_ps <= all[n - 1].to_ps) {
                all[n - 1].to_ps = end > all[n - 1].to_ps ? end : all[n - 1].to_ps;
                continue;
            }
            if (!ARENA_PUSH(a, all, n, capacity)) {
                trace_cursor_release(&c);
                return arena_full(a, e);
            }
            all[n - 1] = (struct interval){c.event.start_ps, end};
            open = true;
        }
        if (!trace_cursor_ok(&c, e))
            return false;
    }
    if (n > 0)
        qsort(all, n, sizeof *all, interval_order);
    uint64_t reached = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t from = all[i].from_ps > reached ? all[i].from_ps : reached;
        if (all[i].to_ps > from)
            *busy_ps += all[i].to_ps - from;
        reached = all[i].to_ps > reached ? all[i].to_ps : reached;
    }
    return true;
}

/* Which names of events carry step_num: asked once a name, because asking reads the file. */
enum asked { ASK = 0, HAS_STEPS, HAS_NONE };

static bool event_step(const struct trace *t, const struct trace_line *line,
                       const struct trace_event *ev, uint8_t *asked, struct arena *a,
                       struct summary *s, struct err *e)
{
    if (ev->metadata_index == UINT32_MAX || asked[ev->metadata_index] == HAS_NONE)
        return true;
    struct trace_stats stats;
    const struct arena_mark m = arena_mark(a);
    if (!trace_event_stats(t, line, ev, a, &stats, e))
        return false;
    int64_t step;
    const bool found = trace_stat_i64(trace_stat_find(stats, S("step_num")), &step);
    arena_reset(a, m);
    asked[ev->metadata_index] = found ? HAS_STEPS : HAS_NONE;
    return !found || add_step(a, s, step) || arena_full(a, e);
}

/* From the first start to the last end, over all hosts where their clocks can be compared. */
static void span_add(struct summary *s, uint64_t start_ps, uint64_t dur_ps)
{
    s->from_ps = start_ps < s->from_ps ? start_ps : s->from_ps;
    s->to_ps = start_ps + dur_ps > s->to_ps ? start_ps + dur_ps : s->to_ps;
}

/* Step markers of host threads; on TPU also the line "Steps", whose events are named by number. */
static bool line_scan(const struct trace *t, uint32_t l, uint8_t *asked, struct arena *a,
                      struct summary *s, struct err *e)
{
    const struct trace_line *line = &t->lines[l];
    const struct trace_plane *plane = &t->planes[line->plane_index];
    struct trace_cursor c;
    for (trace_cursor_init_work(&c, t, l); trace_cursor_next(&c);) {
        const struct trace_event *ev = &c.event;
        s->suspect += c.is_cut;
        if (ev->num_occurrences == 0) {
            s->zero_duration += ev->dur_ps == 0;
            span_add(s, ev->start_ps + t->shift_ps, ev->dur_ps);
        }
        if (asked != NULL && plane->kind == TRACE_PLANE_HOST &&
            !event_step(t, line, ev, asked, a, s, e)) {
            trace_cursor_release(&c);
            return false;
        }
    }
    return trace_cursor_ok(&c, e);
}

static bool device_steps(const struct trace *t, struct arena *a, struct summary *s, struct err *e)
{
    for (uint32_t l = 0; l < t->n_lines; l++) {
        const struct trace_line *line = &t->lines[l];
        if (!is_device(&t->planes[line->plane_index]) || !str_eq(line->name, S("Steps")))
            continue;
        struct trace_cursor c;
        int64_t step;
        for (trace_cursor_init(&c, t, l); trace_cursor_next(&c);)
            if (str_to_i64(trace_event_name(t, line, &c.event), &step) && !add_step(a, s, step)) {
                trace_cursor_release(&c);
                return arena_full(a, e);
            }
        if (!trace_cursor_ok(&c, e))
            return false;
    }
    return true;
}

static bool has_stat(const struct trace_plane *p, str name)
{
    for (uint32_t i = 0; i < p->n_stat_names; i++)
        if (str_eq(p->stat_names[i], name))
            return true;
    return false;
}

static bool trace_warnings(const struct trace *t, struct arena *a, struct summary *s)
{
    bool ok = true;
    for (uint32_t i = 0; i < t->n_notes; i++)
        ok = ok && warn(a, s, t->notes[i].code, t->notes[i].message, t->notes[i].count);
    for (uint32_t i = 0; i < t->n_errors; i++)
        ok = ok && warn(a, s, S("profiler_error"), t->errors[i], 1);
    for (uint32_t i = 0; i < t->n_warnings; i++)
        ok = ok && warn(a, s, S("profiler_warning"), t->warnings[i], 1);
    return ok;
}

/* The rank of the process that a trace is of, as the importer kept it. */
static bool add_rank(const struct trace *t, struct arena *a, struct summary *s)
{
    int64_t rank;
    for (uint32_t i = 0; i < t->n_planes; i++) {
        if (!trace_stat_i64(trace_stat_find(t->planes[i].stats, S("rank")), &rank))
            continue;
        for (uint32_t k = 0; k < s->n_ranks; k++)
            if (s->ranks[k] == rank)
                return true;
        if (!ARENA_PUSH(a, s->ranks, s->n_ranks, s->ranks_capacity))
            return false;
        s->ranks[s->n_ranks - 1] = rank;
        return true;
    }
    return true;
}

/* What the profile was before it was imported. */
static str kind_of(const struct profile *p)
{
    str kind;
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++)
            if (trace_stat_str(trace_stat_find(p->traces[i]->planes[k].stats, S("imported_from")),
                               &kind))
                return kind;
    return S("xspace");
}

static bool trace_add(const struct trace *t, struct arena *a, struct summary *s, struct err *e)
{
    for (uint32_t i = 0; i < t->n_planes; i++) {
        s->planes += !t->planes[i].left_out;
        s->lines += t->planes[i].n_lines;
    }
    s->events += t->n_events;
    if (t->host.n > 0 &&
        !add_name(a, &s->host_set, &s->hosts, &s->n_hosts, &s->hosts_capacity, t->host))
        return arena_full(a, e);
    for (uint32_t i = 0; i < t->n_planes; i++) {
        const struct trace_plane *p = &t->planes[i];
        s->device_planes += is_device(p);
        s->host_planes += p->kind == TRACE_PLANE_HOST;
        if (is_device(p) && !plane_busy(t, p, &s->total_busy_ps, a, e))
            return false;
        uint8_t *asked =
            has_stat(p, S("step_num")) ? ARENA_ARRAY(a, uint8_t, p->n_event_metadata + 1) : NULL;
        for (uint32_t l = p->first_line; l < p->first_line + p->n_lines; l++) {
            if (!line_scan(t, l, asked, a, s, e))
                return false;
            if (!add_name(a, &s->name_set, &s->line_names, &s->n_line_names, &s->names_capacity,
                          t->lines[l].name))
                return arena_full(a, e);
        }
    }
    return (add_rank(t, a, s) && trace_warnings(t, a, s)) || arena_full(a, e);
}

static uint64_t duration_ps(const struct summary *s)
{
    return s->to_ps > s->from_ps ? s->to_ps - s->from_ps : 0;
}

static int number_order(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static bool summary_fill(const struct profile *p, struct arena *a, struct summary *s, struct err *e)
{
    for (uint32_t i = 0; i < p->n_traces; i++)
        if (!trace_add(p->traces[i], a, s, e))
            return false;
    for (uint32_t i = 0; s->n_steps == 0 && i < p->n_traces; i++)
        if (!device_steps(p->traces[i], a, s, e))
            return false;
    if (s->n_steps > 1)
        qsort(s->steps, s->n_steps, sizeof *s->steps, number_order);
    if (s->n_ranks > 1)
        qsort(s->ranks, s->n_ranks, sizeof *s->ranks, number_order);
    if (s->n_steps == 0 &&
        !warn(a, s, S("no_steps"),
              S("the profile marks no steps; mark them with jax.profiler.StepTraceAnnotation or "
                "run.record(Event.STEP, step)"),
              1))
        return arena_full(a, e);
    return s->suspect == 0 ||
           warn(a, s, S("suspect_duration"),
                S("events of a stream lasted beyond the end of the event after them: counted up to "
                  "its start"),
                s->suspect) ||
           arena_full(a, e);
}

static bool summary_of(const struct profile *p, struct arena *a, struct summary *s, struct err *e)
{
    *s = (struct summary){.from_ps = UINT64_MAX};
    const bool ok = summary_fill(p, a, s, e);
    map_u64_u32_release(&s->step_set);
    map_str_u32_release(&s->name_set);
    map_str_u32_release(&s->host_set);
    return ok;
}

static void json_numbers(struct json *j, const char *key, const int64_t *numbers, uint32_t n)
{
    json_key(j, key);
    json_array(j);
    for (uint32_t i = 0; i < n; i++)
        json_i64(j, numbers[i]);
    json_end(j);
}

static bool summary_json(const struct tool_request *r, struct arena *a, struct json *j,
                         struct err *e)
{
    struct summary s;
    if (!summary_of(r->profile, a, &s, e))
        return false;
    json_object(j);
    json_kstr(j, "kind", kind_of(r->profile));
    json_ku64(j, "sessions", 1);
    json_ku64(j, "planes", s.planes);
    json_ku64(j, "device_planes", s.device_planes);
    json_ku64(j, "host_planes", s.host_planes);
    json_ku64(j, "lines", s.lines);
    json_ku64(j, "events", s.events);
    json_kstrs(j, "hosts", s.hosts, s.n_hosts);
    json_numbers(j, "ranks", s.ranks, s.n_ranks);
    json_ku64(j, "total_busy_ps", s.total_busy_ps);
    json_ku64(j, "duration_ns", duration_ps(&s) / 1000);
    json_numbers(j, "steps", s.steps, s.n_steps);
    json_kstrs(j, "line_names", s.line_names, s.n_line_names);
    json_ku64(j, "zero_duration_events", s.zero_duration);
    json_ku64(j, "suspect_events", s.suspect);
    json_key(j, "warnings");
    json_array(j);
    for (uint32_t i = 0; i < s.n_warnings; i++) {
        json_object(j);
        json_kstr(j, "code", s.warnings[i].code);
        json_kstr(j, "message", s.warnings[i].message);
        json_ku64(j, "count", s.warnings[i].count);
        json_end(j);
    }
    json_end(j);
    json_end(j);
    return true;
}

/* The reader's own sum counts impossible durations whole. */
static bool line_busy(const struct trace *t, uint32_t l, bool suspect, uint64_t *busy_ps,
                      struct err *e)
{
    *busy_ps = t->lines[l].busy_ps;
    if (!suspect)
        return true;
    struct trace_cursor c;
    uint64_t reached = 0;
    *busy_ps = 0;
    for (trace_cursor_init_work(&c, t, l); trace_cursor_next(&c);) {
        const uint64_t end = c.event.start_ps + c.event.dur_ps;
        if (c.event.num_occurrences > 0 || end <= reached)
            continue;
        *busy_ps += end - (c.event.start_ps > reached ? c.event.start_ps : reached);
        reached = end;
    }
    return trace_cursor_ok(&c, e);
}

static struct table *lines_table(const struct profile *p, bool suspect, struct arena *a,
                                 struct err *e)
{
    struct table *t = table_new(a, S("lines"), S("Lines"));
    if (t == NULL)
        return arena_full(a, e), NULL;
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("plane"), S("Plane"), CELL_TEXT, S(""));
    table_column(t, S("line"), S("Line"), CELL_TEXT, S(""));
    table_column(t, S("events"), S("Events"), CELL_U64, S(""));
    table_column(t, S("busy_ps"), S("Busy"), CELL_U64, S("ps"));
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t l = 0; l < p->traces[i]->n_lines; l++) {
            const struct trace_line *line = &p->traces[i]->lines[l];
            uint64_t busy_ps;
            if (p->traces[i]->planes[line->plane_index].left_out)
                continue;
            if (!line_busy(p->traces[i], l, suspect, &busy_ps, e))
                return NULL;
            struct cell *row = table_row(t);
            if (row == NULL)
                return arena_full(a, e), NULL;
            row[0] = p->traces[i]->host.n > 0 ? cell_text(p->traces[i]->host) : cell_unknown();
            row[1] = cell_text(p->traces[i]->planes[line->plane_index].name);
            row[2] = cell_text(line->display_name.n > 0 ? line->display_name : line->name);
            row[3] = cell_u64(line->n_events);
            row[4] = cell_u64(busy_ps);
        }
    return t;
}

static bool summary_run(const struct tool_request *r, struct arena *a, struct table **out,
                        struct err *e)
{
    struct summary s;
    if (!summary_of(r->profile, a, &s, e))
        return false;
    struct table *t = table_new(a, S("summary"), S("Summary"));
    struct table *lines = lines_table(r->profile, s.suspect > 0, a, e);
    if (lines == NULL)
        return false;
    if (t == NULL)
        return arena_full(a, e);
    table_value(t, S("kind"), S("Kind"), cell_text(kind_of(r->profile)), S(""));
    table_value(t, S("hosts"), S("Hosts"), cell_u64(s.n_hosts), S(""));
    table_value(t, S("planes"), S("Planes"), cell_u64(s.planes), S(""));
    table_value(t, S("device_planes"), S("Devices"), cell_u64(s.device_planes), S(""));
    table_value(t, S("host_planes"), S("Host planes"), cell_u64(s.host_planes), S(""));
    table_value(t, S("lines"), S("Lines"), cell_u64(s.lines), S(""));
    table_value(t, S("events"), S("Events"), cell_u64(s.events), S(""));
    table_value(t, S("duration_ps"), S("Duration"), cell_u64(duration_ps(&s)), S("ps"));
    table_value(t, S("total_busy_ps"), S("Devices busy, in sum"),
                s.device_planes > 0 ? cell_u64(s.total_busy_ps) : cell_unknown(), S("ps"));
    table_value(t, S("steps"), S("Steps"), cell_u64(s.n_steps), S(""));
    for (uint32_t i = 0; i < s.n_warnings; i++)
        table_note(t, s.warnings[i].code, s.warnings[i].count, "%.*s",
                   STR_ARG(s.warnings[i].message));
    t->next = lines;
    *out = t;
    return true;
}

const struct tool_functions tool_summary = {.run = summary_run, .json = summary_json};
