/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/compact.h"

#include <stdlib.h>

#include "base/limits.h"
#include "store/block.h"
#include "store/run_decode.h"

struct compaction {
    struct arena a;
    struct store_block *blocks;
    uint32_t n_blocks, capacity;
};

static int by_series_and_time(const void *left, const void *right)
{
    const struct record *a = left, *b = right;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    const int names = str_cmp(a->text, b->text);
    if (names != 0)
        return names;
    if (a->wall_ns != b->wall_ns)
        return a->wall_ns < b->wall_ns ? -1 : 1;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

static bool add_block(struct compaction *c, const struct run_decoder *d, const struct record *r,
                      uint32_t n, struct err *e)
{
    struct block_point *points = ARENA_ARRAY(&c->a, struct block_point, n);
    if (points == NULL || !ARENA_PUSH(&c->a, c->blocks, c->n_blocks, c->capacity))
        return arena_full(&c->a, e);
    for (uint32_t i = 0; i < n; i++)
        points[i] = (struct block_point){r[i].wall_ns, r[i].value, r[i].step};
    struct store_block *b = &c->blocks[c->n_blocks - 1];
    *b = (struct store_block){
        .run = str_from(d->run),
        .journal = d->set.processes[r->process].journal_id,
        .name = r->text,
        .kind = r->kind == RECORD_METRIC ? S("metric") : S("system"),
        .from_ns = r[0].wall_ns,
        .to_ns = r[n - 1].wall_ns,
        .n_points = n,
    };
    return block_encode(points, n, &c->a, &b->points, &b->levels, e);
}

static bool make_blocks(struct compaction *c, const struct run_decoder *d, struct err *e)
{
    const struct record *r = d->set.records;
    uint32_t from = 0;
    for (uint32_t i = 1; i <= d->set.n_records; i++) {
        const bool same = i < d->set.n_records && r[i].process == r[from].process &&
                          r[i].kind == r[from].kind && str_eq(r[i].text, r[from].text);
        if (same && i - from < BLOCK_POINTS_MAX)
            continue;
        if (!add_block(c, d, &r[from], i - from, e))
            return false;
        from = i;
    }
    return true;
}

bool compact_run(struct store_meta *meta, struct store_blob *blob, str run, uint32_t *n_blocks,
                 struct err *e)
{
    struct run_decoder d;
    struct compaction c = {0};
    int64_t from;
    uint64_t n_after;
    *n_blocks = 0;
    if (!meta->ops->compacted(meta, run, &from, &n_after, e))
        return false;
    arena_init(&c.a, "compaction", LIMIT_ARENA_RUN_BYTES);
    run_decoder_init(&d, meta, blob, run, RUN_DECODE_METRICS, from);
    bool ok = run_decoder_more(&d, e);
    if (ok && d.set.n_records > 1)
        qsort(d.set.records, d.set.n_records, sizeof *d.set.records, by_series_and_time);
    ok = ok && make_blocks(&c, &d, e);
    if (ok && d.batch > from)
        ok = meta->ops->blocks_put(meta, run, d.batch, c.blocks, c.n_blocks, e);
    *n_blocks = c.n_blocks;
    run_decoder_release(&d);
    arena_release(&c.a);
    return ok;
}
