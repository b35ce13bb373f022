/* SPDX-License-Identifier: Apache-2.0 */
/* Journals, their batches and the local files they come from. */
#include "base/limits.h"
#include "store/seen.h"
#include "store/sqlite_meta.h"

struct ingest {
    const struct store_ingest *in;
    struct store_ingested *out;
    struct seen seen;
    bool known;      /* the journal has a row */
    struct buf kept; /* records that were not there before */
    uint64_t first_seq;
};

static bool read_seen(struct ingest *g, struct db *db, struct err *e)
{
    struct db_query q;
    struct arena a;
    if (!db_begin(&q, db, "SELECT next_seq, missing, run FROM journals WHERE journal = ?1", e))
        return false;
    arena_init(&a, "journal row", 0);
    db_text(&q, 1, str_from(g->in->info->id_hex));
    g->known = db_step(&q);
    bool other_run = false;
    if (g->known) {
        g->seen.next_seq = (uint64_t)db_get_i64(&q, 0);
        const str missing = db_get_str(&q, 1, &a);
        g->seen.n_missing = (uint32_t)(missing.n / sizeof(struct store_range));
        if (g->seen.n_missing > STORE_MISSING_MAX)
            g->seen.n_missing = STORE_MISSING_MAX;
        if (g->seen.n_missing > 0)
            memcpy(g->seen.missing, missing.p, g->seen.n_missing * sizeof(struct store_range));
        other_run = !str_eq(db_get_str(&q, 2, &a), g->in->run);
    }
    arena_release(&a);
    if (!db_end(&q, e))
        return false;
    return !other_run ||
           err_set(e, ERR_CONFLICT, "journal '%s' belongs to another run", g->in->info->id_hex);
}

static bool keep_new(struct ingest *g, struct err *e)
{
    str rest = g->in->records;
    while (rest.n > 0) {
        struct journal_record rec;
        const int64_t n = journal_parse((const uint8_t *)rest.p, rest.n, &rec);
        if (n <= 0)
            return err_at(e, ERR_PARSE, (uint64_t)(rest.p - g->in->records.p),
                          "not a whole journal record");
        if (seen_add(&g->seen, rec.seq)) {
            if (g->out->n_new++ == 0)
                g->first_seq = rec.seq;
            buf_add(&g->kept, rest.p, (size_t)n);
        }
        rest = str_sub(rest, (size_t)n, rest.n);
    }
    return buf_ok(&g->kept, "a batch of records", e);
}

static bool put_run(struct ingest *g, struct db *db, struct err *e)
{
    struct db_query q;
    if (!db_begin(&q, db,
                  "INSERT INTO runs(run, started_ns, last_ns) VALUES(?1, ?2, ?2)"
                  " ON CONFLICT(run) DO NOTHING",
                  e))
        return false;
    db_text(&q, 1, g->in->run);
    db_i64(&q, 2, g->in->info->anchor.wall_ns);
    return db_run(&q, e);
}

static bool put_journal(struct ingest *g, struct db *db, struct err *e)
{
    struct db_query q;
    const struct journal_info *info = g->in->info;
    if (!db_begin(&q, db,
                  "INSERT INTO journals(journal, run, host, rank, pid, header, next_seq, n_records,"
                  " missing, first_received_ns, last_received_ns)"
                  " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)"
                  " ON CONFLICT(journal) DO UPDATE SET next_seq = ?7, n_records = n_records + ?8,"
                  " missing = ?9, last_received_ns = ?10",
                  e))
        return false;
    db_text(&q, 1, str_from(info->id_hex));
    db_text(&q, 2, g->in->run);
    db_text(&q, 3, str_from(info->host));
    db_i64(&q, 4, info->rank);
    db_i64(&q, 5, info->pid);
    db_blob(&q, 6, g->in->header);
    db_i64(&q, 7, (int64_t)g->seen.next_seq);
    db_i64(&q, 8, (int64_t)g->out->n_new);
    db_blob(&q, 9,
            (str){(const char *)g->seen.missing, g->seen.n_missing * sizeof(struct store_range)});
    db_i64(&q, 10, g->in->received_ns);
    return db_run(&q, e);
}

static bool put_batch(struct ingest *g, struct db *db, struct err *e)
{
    struct db_query q;
    if (!db_begin(&q, db,
                  "INSERT INTO batches(run, journal, first_seq, n_records, received_ns, records)"
                  " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
                  e))
        return false;
    db_text(&q, 1, g->in->run);
    db_text(&q, 2, str_from(g->in->info->id_hex));
    db_i64(&q, 3, (int64_t)g->first_seq);
    db_i64(&q, 4, (int64_t)g->out->n_new);
    db_i64(&q, 5, g->in->received_ns);
    db_blob(&q, 6, buf_str(&g->kept));
    if (!db_run(&q, e))
        return false;
    g->out->batch = sqlite3_last_insert_rowid(db->handle);
    if (!db_begin(&q, db, "UPDATE runs SET last_batch = ?2 WHERE run = ?1", e))
        return false;
    db_text(&q, 1, g->in->run);
    db_i64(&q, 2, g->out->batch);
    return db_run(&q, e);
}

static bool put_file(struct ingest *g, struct db *db, struct err *e)
{
    struct db_query q;
    if (g->in->file.n == 0)
        return true;
    if (!db_begin(&q, db,
                  "INSERT INTO files(file, followed_bytes) VALUES(?1, ?2)"
                  " ON CONFLICT(file) DO UPDATE SET followed_bytes = ?2",
                  e))
        return false;
    db_text(&q, 1, g->in->file);
    db_i64(&q, 2, (int64_t)g->in->file_size_bytes);
    return db_run(&q, e);
}

static bool ingest_change(struct db *db, void *arg, struct err *e)
{
    struct ingest *g = arg;
    if (!read_seen(g, db, e) || !keep_new(g, e) || !put_file(g, db, e))
        return false;
    if (g->known && g->out->n_new == 0)
        return true;
    return put_run(g, db, e) && put_journal(g, db, e) &&
           (g->out->n_new == 0 || put_batch(g, db, e));
}

bool sqlite_ingest(struct store_meta *m, const struct store_ingest *in, struct store_ingested *out,
                   struct err *e)
{
    struct ingest g = {.in = in, .out = out};
    memset(out, 0, sizeof *out);
    buf_init(&g.kept, LIMIT_HTTP_BODY_BYTES + 1);
    const bool ok = sqlite_commit(m, ingest_change, &g, e);
    out->next_seq = g.seen.next_seq;
    out->n_missing = g.seen.n_missing;
    memcpy(out->missing, g.seen.missing, sizeof out->missing);
    buf_release(&g.kept);
    return ok;
}

#define JOURNAL_COLUMNS                                                                            \
    "SELECT journal, run, host, header, next_seq, n_records, first_received_ns, last_received_ns " \
    "FROM journals "

static void take_journal(struct db_query *q, struct arena *a, struct store_journal *out)
{
    *out = (struct store_journal){
        .id = db_get_str(q, 0, a),
        .run = db_get_str(q, 1, a),
        .host = db_get_str(q, 2, a),
        .header = db_get_str(q, 3, a),
        .next_seq = (uint64_t)db_get_i64(q, 4),
        .n_records = (uint64_t)db_get_i64(q, 5),
        .first_received_ns = db_get_i64(q, 6),
        .last_received_ns = db_get_i64(q, 7),
    };
}

bool sqlite_journal_get(struct store_meta *m, str id, struct arena *a, struct store_journal *out,
                        struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    bool found = false;
    bool ok = db_begin(&q, db, JOURNAL_COLUMNS "WHERE journal = ?1", e);
    if (ok) {
        db_text(&q, 1, id);
        found = db_step(&q);
        if (found)
            take_journal(&q, a, out);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    if (ok && !found)
        return err_set(e, ERR_NOT_FOUND, "no journal '%.*s'", STR_ARG(id));
    return ok && (!a->overflow || arena_full(a, e));
}

bool sqlite_journals(struct store_meta *m, str run, struct arena *a, struct store_journal **out,
                     uint32_t *n, struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    uint32_t capacity = 0;
    *out = NULL;
    *n = 0;
    bool ok = db_begin(&q, db, JOURNAL_COLUMNS "WHERE run = ?1 ORDER BY rowid", e);
    if (ok) {
        db_text(&q, 1, run);
        while (db_step(&q) && ARENA_PUSH(a, *out, *n, capacity))
            take_journal(&q, a, &(*out)[*n - 1]);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    return ok && (!a->overflow || arena_full(a, e));
}

bool sqlite_batches(struct store_meta *m, str run, int64_t after, uint64_t max_bytes,
                    struct arena *a, struct store_batch **out, uint32_t *n, struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    uint32_t capacity = 0;
    uint64_t bytes = 0;
    *out = NULL;
    *n = 0;
    bool ok = db_begin(&q, db,
                       "SELECT id, journal, received_ns, records FROM batches"
                       " WHERE run = ?1 AND id > ?2 ORDER BY id",
                       e);
    if (ok) {
        db_text(&q, 1, run);
        db_i64(&q, 2, after);
        while (bytes < max_bytes && db_step(&q) && ARENA_PUSH(a, *out, *n, capacity)) {
            struct store_batch *b = &(*out)[*n - 1];
            b->id = db_get_i64(&q, 0);
            b->journal = db_get_str(&q, 1, a);
            b->received_ns = db_get_i64(&q, 2);
            b->records = db_get_str(&q, 3, a);
            bytes += b->records.n + 1;
        }
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    return ok && (!a->overflow || arena_full(a, e));
}

static bool read_number(struct store_meta *m, const char *sql, str key, int64_t *out, struct err *e)
{
    struct db *db = sqlite_reader_take(m);
    struct db_query q;
    *out = 0;
    bool ok = db_begin(&q, db, sql, e);
    if (ok) {
        db_text(&q, 1, key);
        if (db_step(&q))
            *out = db_get_i64(&q, 0);
        ok = db_end(&q, e);
    }
    sqlite_reader_give(m, db);
    return ok;
}

bool sqlite_last_batch(struct store_meta *m, str run, int64_t *out, struct err *e)
{
    return read_number(m, "SELECT last_batch FROM runs WHERE run = ?1", run, out, e);
}

bool sqlite_compacted(struct store_meta *m, str run, int64_t *batch, uint64_t *n_after,
                      struct err *e)
{
    int64_t n;
    if (!read_number(m, "SELECT compacted_batch FROM runs WHERE run = ?1", run, batch, e) ||
        !read_number(m,
                     "SELECT count(*) FROM batches WHERE run = ?1 AND id >"
                     " (SELECT compacted_batch FROM runs WHERE run = ?1)",
                     run, &n, e))
        return false;
    *n_after = (uint64_t)n;
    return true;
}

bool sqlite_file_followed(struct store_meta *m, str file, uint64_t *size_bytes, struct err *e)
{
    int64_t size = 0;
    const bool ok =
        read_number(m, "SELECT followed_bytes FROM files WHERE file = ?1", file, &size, e);
    *size_bytes = (uint64_t)size;
    return ok;
}
