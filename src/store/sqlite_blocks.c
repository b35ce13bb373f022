/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_meta.h"

struct blocks_change {
    str run;
    int64_t batch;
    const struct store_block *blocks;
    uint32_t n;
};

static bool put_block(struct db *db, const struct store_block *b, struct err *e)
{
    struct db_query q;
    if (!db_begin(&q, db,
                  "INSERT INTO blocks(run, journal, name, kind, from_ns, to_ns, n_points, points,"
                  " levels) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                  e))
        return false;
    db_text(&q, 1, b->run);
    db_text(&q, 2, b->journal);
    db_text(&q, 3, b->name);
    db_text(&q, 4, b->kind);
    db_i64(&q, 5, b->from_ns);
    db_i64(&q, 6, b->to_ns);
    db_i64(&q, 7, (int64_t)b->n_points);
    db_blob(&q, 8, b->points);
    db_blob(&q, 9, b->levels);
    return db_run(&q, e);
}

static bool blocks_put_change(struct db *db, void *arg, struct err *e)
{
    const struct blocks_change *c = arg;
    struct db_query q;
    for (uint32_t i = 0; i < c->n; i++)
        if (!put_block(db, &c->blocks[i], e))
            return false;
    if (!db_begin(&q, db, "UPDATE runs SET compacted_batch = ?2 WHERE run = ?1", e))
        return false;
    db_text(&q, 1, c->run);
    db_i64(&q, 2, c->batch);
    return db_run(&q, e);
}

bool sqlite_blocks_put(struct store_meta *m, str run, int64_t batch,
                       const struct store_block *blocks, uint32_t n, struct err *e)
{
    struct blocks_change c = {run, batch, blocks, n};
    return sqlite_commit(m, blocks_put_change, &c, e);
}

bool sqlite_blocks(struct store_meta *m, str run, str name, struct arena *a,
                   struct store_block **out, uint32_t *n, struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    uint32_t capacity = 0;
    *out = NULL;
    *n = 0;
    bool ok =
        db_begin(&q, db,
                 "SELECT id, run, journal, name, kind, from_ns, to_ns, n_points, points, levels"
                 " FROM blocks WHERE run = ?1 AND (?2 = '' OR name = ?2)"
                 " ORDER BY name, from_ns, id",
                 e);
    if (ok) {
        db_text(&q, 1, run);
        db_text(&q, 2, name);
        while (db_step(&q) && ARENA_PUSH(a, *out, *n, capacity))
            (*out)[*n - 1] = (struct store_block){
                .id = db_get_i64(&q, 0),
                .run = db_get_str(&q, 1, a),
                .journal = db_get_str(&q, 2, a),
                .name = db_get_str(&q, 3, a),
                .kind = db_get_str(&q, 4, a),
                .from_ns = db_get_i64(&q, 5),
                .to_ns = db_get_i64(&q, 6),
                .n_points = (uint64_t)db_get_i64(&q, 7),
                .points = db_get_str(&q, 8, a),
                .levels = db_get_str(&q, 9, a),
            };
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    return ok && (!a->overflow || arena_full(a, e));
}
