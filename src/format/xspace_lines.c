/* SPDX-License-Identifier: Apache-2.0 */
/* All lines of an XSpace. A fixed number of lines is decoded side by side, in rounds: in each round every one goes on
 * for a stretch, on as many threads as there are; then what came of it is kept, in the order of the lines. So the
 * result, and the bytes of an index, do not depend on the number of threads, and memory is that of the lines at hand. */
#include "base/limits.h"
#include "base/pool.h"
#include "format/xspace_line.h"

#define SLOTS 8
/* Below it a round is not worth a thread's start. */
#define THREADS_LEAST_BYTES (UINT64_C(1) << 20)
#define IDS_LEAST                                                                                  \
    1024 /* ids up to it, and a few times the number of entries, are looked up in an array */
#define IDS_SPREAD 8

/* Groups of one line, by level; the line's own are the last. */
struct line_groups {
    struct trace_group *items[PYRAMID_LEVELS + 1]; /* owned */
    uint32_t n[PYRAMID_LEVELS + 1], capacity[PYRAMID_LEVELS + 1];
    uint32_t n_levels, level_log2[PYRAMID_LEVELS];
    uint64_t n_rows[PYRAMID_LEVELS];
};

struct lines {
    struct xspace_reader *r;
    struct line_decoder slots[SLOTS];
    struct line_groups **groups; /* by line; NULL: none yet */
    uint64_t memory_bytes;       /* of groups that are held */
    uint32_t next;               /* line to begin */
};

static uint64_t ids_most(uint64_t n)
{
    return n * IDS_SPREAD > IDS_LEAST ? n * IDS_SPREAD : IDS_LEAST;
}

static bool plane_ids_make(struct xspace_reader *r, const struct trace_plane *p,
                           struct plane_ids *out, struct err *e)
{
    struct arena *a = &r->trace->arena;
    uint64_t most = 0, limit = ids_most(p->n_event_metadata);
    for (size_t i = 0; map_u64_u32_next(&p->metadata_by_id, &i);)
        if (p->metadata_by_id.keys[i - 1] < limit && p->metadata_by_id.keys[i - 1] >= most)
            most = p->metadata_by_id.keys[i - 1] + 1;
    out->metadata = ARENA_ARRAY(a, uint32_t, most + 1);
    out->n_metadata = (uint32_t)most;
    limit = ids_most(p->n_stat_names);
    most = 0;
    for (size_t i = 0; map_u64_u32_next(&p->stat_name_by_id, &i);)
        if (p->stat_name_by_id.keys[i - 1] < limit && p->stat_name_by_id.keys[i - 1] >= most)
            most = p->stat_name_by_id.keys[i - 1] + 1;
    out->names = ARENA_ARRAY(a, uint32_t, most + 1);
    out->slots = ARENA_ARRAY(a, uint8_t, most + 1);
    out->n_names = (uint32_t)most;
    if (out->metadata == NULL || out->names == NULL || out->slots == NULL)
        return arena_full(a, e);
    memset(out->metadata, 0xff, out->n_metadata * sizeof *out->metadata);
    memset(out->names, 0xff, out->n_names * sizeof *out->names);
    memset(out->slots, SIDE_SLOTS, out->n_names);
    for (size_t i = 0; map_u64_u32_next(&p->metadata_by_id, &i);)
        if (p->metadata_by_id.keys[i - 1] < out->n_metadata)
            out->metadata[p->metadata_by_id.keys[i - 1]] = p->metadata_by_id.values[i - 1];
    for (size_t i = 0; map_u64_u32_next(&p->stat_name_by_id, &i);) {
        const uint64_t id = p->stat_name_by_id.keys[i - 1];
        const enum side_slot slot = side_find(p->stat_names[p->stat_name_by_id.values[i - 1]]);
        if (id < out->n_names) {
            out->names[id] = p->stat_name_by_id.values[i - 1];
            out->slots[id] = (uint8_t)slot;
        } else if (slot != SIDE_SLOTS) {
            out->has_large_slot = true;
        }
    }
    return true;
}

static bool ids_make(struct xspace_reader *r, struct err *e)
{
    r->ids = ARENA_ARRAY(&r->trace->arena, struct plane_ids, (size_t)r->trace->n_planes + 1);
    if (r->ids == NULL)
        return arena_full(&r->trace->arena, e);
    for (uint32_t i = 0; i < r->trace->n_planes; i++)
        if (r->trace->planes[i].n_lines > 0 &&
            !plane_ids_make(r, &r->trace->planes[i], &r->ids[i], e))
            return false;
    return true;
}

static void groups_free(struct line_groups *g)
{
    for (uint32_t l = 0; g != NULL && l <= PYRAMID_LEVELS; l++) {
        for (uint32_t i = 0; i < g->n[l]; i++)
            free(g->items[l][i].bytes);
        free(g->items[l]);
    }
    map_free(g);
}

/* Keeps a group: in the file when it belongs there or memory is full, in memory while there is room. */
static bool output_keep(struct lines *s, struct line_groups *g, struct line_output *out,
                        struct err *e)
{
    const struct xspace_reader *r = s->r;
    const bool has_room = s->memory_bytes + out->group.n_bytes <= LIMIT_TRACE_IN_FLIGHT_BYTES;
    const uint32_t l = out->level == LINE_EVENTS ? PYRAMID_LEVELS : out->level;
    if (r->store != NULL && (r->keeps_all || !has_room) &&
        !index_put(r->store, &out->group, &out->packed, e))
        return false;
    if (r->store == NULL || has_room) {
        s->memory_bytes += out->group.n_bytes;
    } else {
        free(out->group.bytes);
        out->group.bytes = NULL;
    }
    if (r->store != NULL && !r->keeps_all && has_room)
        out->group.stored_bytes = 0;
    if (g->n[l] == g->capacity[l]) {
        g->capacity[l] = g->capacity[l] == 0 ? 4 : g->capacity[l] * 2;
        g->items[l] = realloc(g->items[l], g->capacity[l] * sizeof *g->items[l]);
        must(g->items[l] != NULL);
    }
    g->items[l][g->n[l]++] = out->group;
    out->group.bytes = NULL;
    if (l < PYRAMID_LEVELS)
        g->n_rows[l] += out->group.n_events;
    return true;
}

static void groups_forget(struct lines *s, uint32_t line)
{
    const struct line_groups *g = s->groups[line];
    for (uint32_t l = 0; g != NULL && l <= PYRAMID_LEVELS; l++)
        for (uint32_t i = 0; i < g->n[l]; i++)
            s->memory_bytes -= g->items[l][i].bytes == NULL ? 0 : g->items[l][i].n_bytes;
    groups_free(s->groups[line]);
    s->groups[line] = NULL;
}

static bool line_keep(struct lines *s, struct line_decoder *d, struct err *e)
{
    struct line_groups **g = &s->groups[d->line_index];
    if (d->restarted)
        groups_forget(s, d->line_index);
    d->restarted = false;
    if (*g == NULL)
        *g = map_alloc(1, sizeof **g);
    bool ok = true;
    for (uint32_t i = 0; i < d->n_outputs; i++) {
        ok = ok && output_keep(s, *g, &d->outputs[i], e);
        free(d->outputs[i].group.bytes);
        free(d->outputs[i].packed.bytes);
    }
    d->n_outputs = 0;
    return ok;
}

static void line_notes(struct trace *t, const struct line_decoder *d)
{
    const struct event_sink *s = &d->sink;
    if (s->n_bad > 0)
        trace_note(t, S("bad_event"), s->n_bad, "events with impossible times were left out");
    if (s->n_long > 0)
        trace_note(t, S("long_event"), s->n_long, "events of more than 2 GiB were left out");
    if (s->n_unknown > 0)
        trace_note(t, S("unknown_event_name"), s->n_unknown,
                   "events name an id that the file does not explain");
    if (s->n_aggregated > 0)
        trace_note(t, S("aggregated_event"), s->n_aggregated,
                   "events are sums of several and have no start");
    if (s->n_bad_stats > 0)
        trace_note(t, S("bad_argument"), s->n_bad_stats,
                   "arguments of events are damaged and were left out");
    if (d->n_too_deep > 0)
        trace_note(t, S("too_deep"), d->n_too_deep, "events are nested deeper than is kept");
}

static bool line_done(struct lines *s, struct line_decoder *d, struct err *e)
{
    struct trace *t = s->r->trace;
    struct trace_line *line = &t->lines[d->line_index];
    struct line_groups *g = s->groups[d->line_index];
    *line = d->line;
    line->name = arena_str(&t->arena, d->line.name);
    line->display_name = arena_str(&t->arena, d->line.display_name);
    g->n_levels = d->n_levels;
    memcpy(g->level_log2, d->level_log2, sizeof g->level_log2);
    line->is_partial = d->is_partial;
    t->is_partial = t->is_partial || d->is_partial;
    line_notes(t, d);
    return !t->arena.overflow || arena_full(&t->arena, e);
}

static void slot_step(void *arg, size_t i)
{
    struct lines *s = arg;
    if (!s->slots[i].ended)
        line_decoder_step(&s->slots[i]);
}

/* One stretch of each line at hand. False when all lines are done, or on failure (then e says which). */
static bool round_run(struct lines *s, struct err *e)
{
    const struct trace *t = s->r->trace;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (s->slots[i].ended && s->next < t->n_lines)
            line_decoder_begin(&s->slots[i], s->next++);
        if (!s->slots[i].ended)
            bytes += s->slots[i].extent.n;
    }
    pool_for(bytes < THREADS_LEAST_BYTES ? 1 : s->r->n_threads, SLOTS, slot_step, s);
    bool goes_on = false;
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct line_decoder *d = &s->slots[i];
        if (d->failed) {
            *e = d->err;
            return false;
        }
        if (!d->has_line)
            continue;
        if (!line_keep(s, d, e) || (d->ended && !line_done(s, d, e)))
            return false;
        d->has_line = !d->ended;
        goes_on = goes_on || d->has_line;
    }
    return goes_on || s->next < t->n_lines;
}

/* The groups of all lines into the trace, line after line, each with its levels behind it. */
static bool groups_place(struct lines *s, struct err *e)
{
    struct trace *t = s->r->trace;
    uint32_t capacity = 0;
    for (uint32_t i = 0; i < t->n_lines; i++) {
        struct line_groups *g = s->groups[i];
        struct trace_line *line = &t->lines[i];
        line->first_group = t->groups->n;
        line->first_level = t->n_levels;
        for (uint32_t k = 0; g != NULL && k < g->n[PYRAMID_LEVELS]; k++)
            trace_groups_add(t->groups, &g->items[PYRAMID_LEVELS][k]);
        line->n_groups = t->groups->n - line->first_group;
        for (uint32_t l = 0; g != NULL && l < g->n_levels; l++) {
            if (!ARENA_PUSH(&t->arena, t->levels, t->n_levels, capacity))
                return arena_full(&t->arena, e);
            t->levels[t->n_levels - 1] = (struct trace_level){.bucket_log2 = g->level_log2[l],
                                                              .first_group = t->groups->n,
                                                              .n_groups = g->n[l],
                                                              .n_rows = g->n_rows[l]};
            for (uint32_t k = 0; k < g->n[l]; k++)
                trace_groups_add(t->groups, &g->items[l][k]);
        }
        line->n_levels = t->n_levels - line->first_level;
        for (uint32_t l = 0; g != NULL && l <= PYRAMID_LEVELS; l++)
            g->n[l] = 0; /* the trace has their bytes now */
        groups_free(g);
        s->groups[i] = NULL;
    }
    return true;
}

bool xspace_lines_decode(struct xspace_reader *r, struct err *e)
{
    const uint32_t n_lines = r->trace->n_lines;
    if (!ids_make(r, e))
        return false;
    r->most_line_events = UINT64_MAX;
    if (r->most_events > 0)
        r->most_line_events = r->most_events / ((uint64_t)n_lines + 1) + 1;
    struct lines *s = map_alloc(1, sizeof *s);
    s->r = r;
    s->groups = map_alloc((size_t)n_lines + 1, sizeof *s->groups);
    for (uint32_t i = 0; i < SLOTS; i++)
        line_decoder_init(&s->slots[i], r);
    struct err failure = {0};
    while (round_run(s, &failure))
        ;
    bool ok = failure.code == ERR_NONE || (*e = failure, false);
    ok = ok && groups_place(s, e);
    for (uint32_t i = 0; i < SLOTS; i++)
        line_decoder_release(&s->slots[i]);
    for (uint32_t i = 0; i < n_lines; i++)
        groups_free(s->groups[i]);
    map_free(s->groups);
    map_free(s);
    return ok;
}
