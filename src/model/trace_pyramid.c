/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_pyramid.h"

#include "base/limits.h"

#define BUCKET_EVENTS 16 /* of the finest level, about */
#define BUCKET_LOG2_MAX 52

struct cell { /* count 0: none */
    uint64_t covered_ps, vote_ps, count;
    uint64_t start_ps, index; /* of its first event, shown itself when it is alone */
    uint32_t name;            /* metadata index */
};

struct level {
    uint32_t log2;
    bool has_bucket;
    uint64_t bucket;         /* the open one */
    struct cell *cells;      /* of it, by depth; owned */
    uint32_t n_depths, room; /* depths in use; allocated */
    struct trace_rows rows;  /* not emitted yet */
    uint32_t n_closed;       /* of them: those of buckets that are closed */
};

struct pyramid {
    pyramid_emit emit;
    void *ctx;
    struct level levels[PYRAMID_LEVELS];
    uint32_t n_levels;
};

struct pyramid *pyramid_new(pyramid_emit emit, void *ctx)
{
    struct pyramid *p = map_alloc(1, sizeof *p);
    p->emit = emit;
    p->ctx = ctx;
    return p;
}

void pyramid_free(struct pyramid *p)
{
    if (p == NULL)
        return;
    for (uint32_t i = 0; i < p->n_levels; i++) {
        map_free(p->levels[i].cells);
        trace_rows_release(&p->levels[i].rows);
    }
    map_free(p);
}

/* Each level has a quarter of the rows of the one before, and less: room for them is less too. */
static uint32_t group_rows(uint32_t level)
{
    return level == 0 ? PYRAMID_GROUP_ROWS : PYRAMID_GROUP_ROWS / 4;
}

void pyramid_begin(struct pyramid *p, uint64_t span_ps, uint64_t n_events)
{
    const uint64_t want = span_ps / (n_events == 0 ? 1 : n_events) * BUCKET_EVENTS;
    uint32_t log2 = 0;
    while (log2 < BUCKET_LOG2_MAX && UINT64_C(1) << log2 < want)
        log2 += PYRAMID_STEP_LOG2;
    for (; p->n_levels < PYRAMID_LEVELS && log2 <= BUCKET_LOG2_MAX; log2 += PYRAMID_STEP_LOG2) {
        p->levels[p->n_levels].log2 = log2;
        trace_rows_init(&p->levels[p->n_levels].rows, group_rows(p->n_levels) + 64);
        p->n_levels++;
    }
}

static void rows_emit(struct pyramid *p, uint32_t l, uint32_t n)
{
    struct trace_group g;
    struct level *level = &p->levels[l];
    if (n == 0)
        return;
    trace_group_pack(&level->rows, 0, n, &g);
    p->emit(p->ctx, l, &g);
    trace_rows_shift(&level->rows, n);
    level->n_closed -= n;
}

/* A row of the open bucket goes where its start belongs: few rows are open at once. */
static void row_add(struct pyramid *p, uint32_t l, const struct trace_event *ev)
{
    struct level *level = &p->levels[l];
    struct trace_rows *r = &level->rows;
    if (r->n >= group_rows(l))
        rows_emit(p, l, level->n_closed);
    if (r->n ==
        r->capacity) /* a bucket with more rows than a group: its order within is given up */
        rows_emit(p, l, level->n_closed = r->n);
    uint32_t at = r->n++;
    for (; at > level->n_closed && r->start_ps[at - 1] > ev->start_ps; at--) {
        r->start_ps[at] = r->start_ps[at - 1];
        r->dur_ps[at] = r->dur_ps[at - 1];
        r->src[at] = r->src[at - 1];
        r->src_bytes[at] = r->src_bytes[at - 1];
        r->metadata_index[at] = r->metadata_index[at - 1];
        r->num_occurrences[at] = r->num_occurrences[at - 1];
        r->depth[at] = r->depth[at - 1];
    }
    r->start_ps[at] = ev->start_ps;
    r->dur_ps[at] = ev->dur_ps;
    r->src[at] = ev->src;
    r->src_bytes[at] = ev->src_bytes;
    r->metadata_index[at] = ev->metadata_index;
    r->num_occurrences[at] = ev->num_occurrences;
    r->depth[at] = ev->depth;
}

static struct cell *cell_at(struct level *l, uint32_t depth)
{
    if (depth >= l->room) {
        const uint32_t room = depth < 8 ? 8 : depth * 2;
        struct cell *grown = map_alloc(room, sizeof *grown);
        if (l->room > 0)
            memcpy(grown, l->cells, l->room * sizeof *grown);
        map_free(l->cells);
        l->cells = grown;
        l->room = room;
    }
    l->n_depths = depth >= l->n_depths ? depth + 1 : l->n_depths;
    return &l->cells[depth];
}

/* Boyer and Moore's majority vote, weighed by time. */
static void cell_vote(struct cell *c, uint32_t name, uint64_t weight_ps)
{
    if (c->count == 0 || c->name == name) {
        c->name = name;
        c->vote_ps += weight_ps;
    } else if (c->vote_ps < weight_ps) {
        c->name = name;
        c->vote_ps = weight_ps - c->vote_ps;
    } else {
        c->vote_ps -= weight_ps;
    }
}

static void cell_merge(struct cell *to, const struct cell *from)
{
    cell_vote(to, from->name, from->vote_ps);
    if (to->count == 0) {
        to->start_ps = from->start_ps;
        to->index = from->index;
    }
    to->covered_ps += from->covered_ps;
    to->count += from->count;
}

/* An event that is alone is shown itself. */
static void cell_row(struct pyramid *p, uint32_t l, uint32_t depth, const struct cell *c)
{
    const bool alone = c->count == 1;
    const struct trace_event row = {.start_ps = alone ? c->start_ps
                                                      : p->levels[l].bucket << p->levels[l].log2,
                                    .dur_ps = c->covered_ps,
                                    .src = alone ? c->index : 0,
                                    .src_bytes = alone ? 0 : PYRAMID_CELL,
                                    .metadata_index = c->name,
                                    .num_occurrences = alone                   ? 0
                                                       : c->count > UINT32_MAX ? UINT32_MAX
                                                                               : (uint32_t)c->count,
                                    .depth = (uint16_t)depth};
    row_add(p, l, &row);
}

/* The open bucket is over: its cells become rows, and parts of the next level's. */
static void bucket_close(struct pyramid *p, uint32_t l)
{
    struct level *level = &p->levels[l];
    for (uint32_t d = 0; d < level->n_depths; d++) {
        struct cell *c = &level->cells[d];
        if (c->count == 0)
            continue;
        cell_row(p, l, d, c);
        if (l + 1 < p->n_levels)
            cell_merge(cell_at(&p->levels[l + 1], d), c);
        *c = (struct cell){0};
    }
    level->n_depths = 0;
    level->n_closed = level->rows.n;
}

/* Opens the bucket of start_ps on each level, finest first: what closes there is a part of the next. */
static void levels_advance(struct pyramid *p, uint64_t start_ps)
{
    for (uint32_t l = 0; l < p->n_levels; l++) {
        struct level *level = &p->levels[l];
        const uint64_t bucket = start_ps >> level->log2;
        if (level->has_bucket && bucket == level->bucket)
            return; /* the wider ones hold it too */
        if (level->has_bucket)
            bucket_close(p, l);
        level->bucket = bucket;
        level->has_bucket = true;
    }
}

void pyramid_add(struct pyramid *p, uint64_t index, uint64_t start_ps, uint64_t dur_ps,
                 uint32_t metadata_index, uint16_t depth)
{
    levels_advance(p, start_ps);
    for (uint32_t l = 0; l < p->n_levels; l++) {
        if (dur_ps >> p->levels[l].log2 == 0) {
            struct cell *c = cell_at(&p->levels[l], depth);
            if (c->count == 0)
                *c = (struct cell){.start_ps = start_ps, .index = index};
            cell_vote(c, metadata_index, dur_ps);
            c->covered_ps += dur_ps;
            c->count++;
            return;
        }
        row_add(p, l,
                &(struct trace_event){.start_ps = start_ps,
                                      .dur_ps = dur_ps,
                                      .src = index,
                                      .metadata_index = metadata_index,
                                      .depth = depth});
    }
}

uint32_t pyramid_end(struct pyramid *p, uint32_t bucket_log2[PYRAMID_LEVELS])
{
    for (uint32_t l = 0; l < p->n_levels; l++) {
        bucket_close(p, l);
        rows_emit(p, l, p->levels[l].rows.n);
        bucket_log2[l] = p->levels[l].log2;
    }
    return p->n_levels;
}
