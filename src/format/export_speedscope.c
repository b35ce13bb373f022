/* SPDX-License-Identifier: Apache-2.0 */
/* speedscope: an evented profile for each line (a second one for what overlaps in part, and so on, as
 * model/nest.h places it), a sampled one for each line of samples. Times are nanoseconds with
 * three decimals. Frames are numbered as they come and stand last.
 * Source: speedscope's file-format-spec.ts. */
#include "format/export_inside.h"
#include "model/nest.h"
#include "model/trace_pick.h"

struct scope {
    struct export_work *w;
    struct json j;
    struct arena arena;
    struct interner frames; /* ids from 1; the file's count from 0 */
    bool full;
};

static uint32_t frame_of(struct scope *s, str name)
{
    const uint32_t id = interner_id(&s->frames, name);
    s->full = s->full || id == UINT32_MAX;
    return id;
}

static void put_frame(struct scope *s, uint32_t id)
{
    json_u64(&s->j, id == 0 || id == UINT32_MAX ? 0 : id - 1);
}

static void put_mark(struct scope *s, const char *type, uint32_t frame, uint64_t at_ps)
{
    json_object(&s->j);
    json_kcstr(&s->j, "type", type);
    json_key(&s->j, "frame");
    put_frame(s, frame);
    json_key(&s->j, "at");
    json_fixed(&s->j, (int64_t)at_ps, 3);
    json_end(&s->j);
}

static void profile_begin(struct scope *s, const char *type, const char *unit,
                          const struct trace *t, uint32_t l, uint32_t lane)
{
    const struct trace_plane *plane = &t->planes[t->lines[l].plane_index];
    json_object(&s->j);
    json_kcstr(&s->j, "type", type);
    json_kcstr(&s->j, "unit", unit);
    json_key(&s->j, "name");
    const struct arena_mark m = arena_mark(&s->w->scratch);
    str name = arena_printf(&s->w->scratch, "%.*s%s%.*s / %.*s", STR_ARG(t->host),
                            t->host.n > 0 ? " / " : "", STR_ARG(export_plane_name(plane)),
                            STR_ARG(export_line_name(&t->lines[l])));
    if (lane > 0)
        name = arena_printf(&s->w->scratch, "%.*s (%u)", STR_ARG(name), lane + 1);
    json_str(&s->j, name);
    arena_reset(&s->w->scratch, m);
}

static bool is_slice(const struct export_cursor *c)
{
    const struct trace_event_metadata *meta = trace_event_meta(c->trace, c->line, &c->event);
    return c->event.num_occurrences == 0 &&
           (meta == NULL || trace_stat_find(meta->stats, S("stack")) == NULL);
}

struct lane_state { /* of one pass over a line */
    struct nest nest;
    uint32_t wanted, n_lanes;
    uint64_t n_left_out, last_ps;
    bool opened;
};

static void close_until(struct scope *s, struct lane_state *l, uint32_t lane, uint64_t until_ps)
{
    for (struct nest_open ended; nest_pop(&l->nest, lane, until_ps, &ended);)
        if (lane == l->wanted) {
            put_mark(s, "C", ended.tag, ended.end_ps);
            l->last_ps = ended.end_ps > l->last_ps ? ended.end_ps : l->last_ps;
        }
}

static void put_slice(struct scope *s, const struct export_cursor *c, struct lane_state *l)
{
    const struct export_options *o = s->w->options;
    const uint64_t end = c->start_ps + c->event.dur_ps;
    const struct nest_open open = {.start_ps = c->start_ps > o->from_ps ? c->start_ps : o->from_ps,
                                   .end_ps = o->to_ps > 0 && end > o->to_ps ? o->to_ps : end,
                                   .tag =
                                       frame_of(s, trace_event_name(c->trace, c->line, &c->event))};
    const uint32_t lane = nest_find(&l->nest, open.start_ps, open.end_ps);
    if (lane == NEST_NONE) {
        l->n_left_out++;
        return;
    }
    close_until(s, l, lane, open.start_ps);
    nest_push(&l->nest, lane, open);
    if (lane == l->wanted)
        put_mark(s, "O", open.tag, open.start_ps);
}

/* One lane of a line, as a profile. Says how many lanes there are. */
static bool put_lane(struct scope *s, const struct trace *t, uint32_t line, struct lane_state *l,
                     struct err *e)
{
    struct export_cursor c;
    bool ok = true, begun = false;
    const uint64_t n_before = s->w->counts->n_events;
    for (export_cursor_init(&c, s->w, t, line); ok && export_next(&c);) {
        if (!is_slice(&c))
            continue;
        if (!begun) {
            profile_begin(s, "evented", "nanoseconds", t, line, l->wanted);
            json_key(&s->j, "events");
            json_array(&s->j);
            begun = true;
        }
        put_slice(s, &c, l);
        ok = export_flush(s->w, e);
    }
    for (uint32_t lane = 0; lane < l->nest.n; lane++)
        close_until(s, l, lane, UINT64_MAX);
    if (begun) {
        json_end(&s->j);
        json_key(&s->j, "startValue");
        json_u64(&s->j, 0);
        json_key(&s->j, "endValue");
        json_fixed(&s->j, (int64_t)l->last_ps, 3);
        json_end(&s->j);
    }
    l->n_lanes = l->nest.n;
    nest_release(&l->nest);
    if (l->wanted > 0)
        s->w->counts->n_events = n_before;
    return export_cursor_end(&c, e) && ok;
}

static void put_stack(struct scope *s, str stack)
{
    str frame;
    json_array(&s->j);
    while (str_cut(stack, ';', &frame, &stack))
        put_frame(s, frame_of(s, frame));
    json_end(&s->j);
}

/* Stacks, or weights, of a line of samples. */
static bool put_samples(struct scope *s, const struct trace *t, uint32_t line, bool weights,
                        double *total, struct err *e)
{
    static const str names[] = {STR_INIT("weight")};
    struct trace_picker p;
    struct export_cursor c;
    bool ok = true;
    const uint64_t n_before = s->w->counts->n_events;
    json_key(&s->j, weights ? "weights" : "samples");
    json_array(&s->j);
    trace_picker_init(&p, t, line, names, 1);
    for (export_cursor_init(&c, s->w, t, line); ok && export_next(&c);) {
        const struct trace_event_metadata *meta = trace_event_meta(t, c.line, &c.event);
        const struct trace_stat *stack =
            meta == NULL ? NULL : trace_stat_find(meta->stats, S("stack"));
        double v = 1;
        if (stack == NULL)
            continue;
        if (!weights) {
            put_stack(s, stack->text);
        } else if ((ok = trace_pick(&p, &c.event, e))) {
            if (!trace_stat_f64(&p.values[0], &v))
                v = 1;
            json_f64(&s->j, v);
            *total += v;
        }
        ok = ok && export_flush(s->w, e);
    }
    json_end(&s->j);
    trace_picker_release(&p);
    s->w->counts->n_events = n_before; /* counted by the pass over slices */
    return export_cursor_end(&c, e) && ok;
}

static bool put_sampled(struct scope *s, const struct trace *t, uint32_t line, struct err *e)
{
    double total = 0;
    profile_begin(s, "sampled", "none", t, line, 0);
    if (!put_samples(s, t, line, false, &total, e) || !put_samples(s, t, line, true, &total, e))
        return false;
    json_key(&s->j, "startValue");
    json_u64(&s->j, 0);
    json_key(&s->j, "endValue");
    json_f64(&s->j, total);
    json_end(&s->j);
    return true;
}

/* What a line holds that is no slice. */
static bool line_counts(struct scope *s, const struct trace *t, uint32_t line, uint64_t *n_slices,
                        uint64_t *n_samples, struct err *e)
{
    struct trace_cursor c;
    *n_slices = *n_samples = 0;
    for (trace_cursor_init(&c, t, line); trace_cursor_next(&c);) {
        const struct export_cursor at = {.trace = t, .line = &t->lines[line], .event = c.event};
        *n_slices += is_slice(&at);
        *n_samples += !is_slice(&at) && c.event.num_occurrences == 0;
    }
    s->w->counts->n_left_out += t->lines[line].n_events - *n_slices - *n_samples;
    return trace_cursor_ok(&c, e);
}

static bool put_line(struct scope *s, const struct trace *t, uint32_t line, struct err *e)
{
    uint64_t n_slices, n_samples;
    struct lane_state l = {.n_lanes = 1};
    if (!line_counts(s, t, line, &n_slices, &n_samples, e))
        return false;
    for (uint32_t lane = 0; n_slices > 0 && lane < l.n_lanes; lane++) {
        l = (struct lane_state){.wanted = lane};
        if (!put_lane(s, t, line, &l, e))
            return false;
        s->w->counts->n_left_out += lane == 0 ? l.n_left_out : 0;
    }
    if (n_slices == 0)
        s->w->counts->n_events += n_samples;
    return n_samples == 0 || put_sampled(s, t, line, e);
}

static bool put_frames(struct scope *s, struct err *e)
{
    json_key(&s->j, "shared");
    json_object(&s->j);
    json_key(&s->j, "frames");
    json_array(&s->j);
    for (uint32_t id = 1; id < s->frames.n; id++) {
        json_object(&s->j);
        json_kstr(&s->j, "name", interner_str(&s->frames, id));
        json_end(&s->j);
        if (!export_flush(s->w, e))
            return false;
    }
    json_end(&s->j);
    json_end(&s->j);
    return true;
}

static bool put_all(struct scope *s, struct err *e)
{
    json_object(&s->j);
    json_kcstr(&s->j, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_kcstr(&s->j, "exporter", "tacho " TACHO_VERSION);
    json_kstr(&s->j, "name", s->w->profile->name);
    json_key(&s->j, "profiles");
    json_array(&s->j);
    for (const struct trace *t = NULL; (t = export_next_trace(s->w, t)) != NULL;)
        for (uint32_t l = 0; l < t->n_lines; l++)
            if (!put_line(s, t, l, e))
                return false;
    json_end(&s->j);
    if (!put_frames(s, e))
        return false;
    json_end(&s->j);
    return s->full ? arena_full(&s->arena, e) : json_done(&s->j, e);
}

bool export_speedscope(struct export_work *w, struct err *e)
{
    struct scope s = {.w = w};
    arena_init(&s.arena, "frames", 0);
    interner_init(&s.frames, &s.arena);
    json_init_buf(&s.j, &w->out);
    const bool ok = put_all(&s, e);
    interner_release(&s.frames);
    arena_release(&s.arena);
    return ok;
}
