/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/file.h"
#include "journal_bytes.h"
#include "store/block.h"
#include "store/seen.h"
#include "store/store.h"

static char dir[64];
static char path[128];

static int setup(void **state)
{
    (void)state;
    memcpy(dir, "/tmp/tacho-store-XXXXXX", sizeof "/tmp/tacho-store-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/tacho.db", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    struct err e = {0};
    return dir_remove(dir, &e) ? 0 : -1;
}

static void run_sql(const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
}

static const struct {
    int version;
    const char *sql;
} released[] = {
#define X(version, sql) {version, sql},
#include "store/migrations.def"
#undef X
};
#define N_RELEASED (sizeof released / sizeof released[0])

static void migrates_from_every_version(void **state)
{
    (void)state;
    for (size_t from = 0; from < N_RELEASED; from++) {
        char set[128];
        unlink(path);
        for (size_t i = 0; i <= from; i++)
            run_sql(released[i].sql);
        run_sql("INSERT INTO runs(run, name) VALUES('old', 'kept')");
        snprintf(set, sizeof set, "PRAGMA user_version=%d; PRAGMA application_id=0x7461636f",
                 released[from].version);
        run_sql(set);
        struct err e = {0};
        struct store_meta *m = sqlite_open(path, &e);
        if (m == NULL)
            fail_msg("from version %d: %s", released[from].version, e.msg);
        struct arena a;
        struct store_run r;
        int64_t batch;
        uint64_t n_after;
        arena_init(&a, "test", 0);
        assert_true(m->ops->run_get(m, S("old"), &a, &r, &e));
        assert_true(str_eq(r.name, S("kept")));
        assert_true(m->ops->compacted(m, S("old"), &batch, &n_after, &e));
        assert_int_equal(batch, 0);
        arena_release(&a);
        m->ops->close(m);
    }
}

static void newer_is_refused_in_words(void **state)
{
    (void)state;
    struct err e = {0};
    struct store_meta *m = sqlite_open(path, &e);
    assert_non_null(m);
    m->ops->close(m);
    run_sql("PRAGMA user_version=9999");
    assert_null(sqlite_open(path, &e));
    assert_int_equal(e.code, ERR_TOO_NEW);
    assert_non_null(strstr(e.msg, "9999"));
}

static void foreign_database_is_refused(void **state)
{
    (void)state;
    struct err e = {0};
    run_sql("CREATE TABLE other(x)");
    assert_null(sqlite_open(path, &e));
    assert_int_equal(e.code, ERR_PARSE);
    unlink(path);
    assert_true(file_replace(path,
                             S("this is no database at all, but a text of some length ......"
                               "................................................."),
                             0644, &e));
    assert_null(sqlite_open(path, &e));
    assert_int_equal(e.code, ERR_PARSE);
}

static bool ingest(struct store_meta *m, uint8_t id, const struct buf *b, str run,
                   struct store_ingested *out, struct err *e)
{
    struct journal_record rec;
    struct journal_info info;
    const int64_t n = journal_parse((const uint8_t *)b->p, b->n, &rec);
    assert_true(n > 0);
    assert_true(journal_parse_header(&rec, &info, e));
    assert_int_equal(info.id[0], id);
    const struct store_ingest in = {.info = &info,
                                    .header = {b->p, (size_t)n},
                                    .run = run,
                                    .records = buf_str(b),
                                    .received_ns = 5};
    return m->ops->ingest(m, &in, out, e);
}

static void ingest_takes_each_record_once(void **state)
{
    (void)state;
    struct err e = {0};
    struct store_meta *m = sqlite_open(path, &e);
    assert_non_null(m);
    struct buf first, again;
    struct store_ingested out;
    buf_init(&first, 1 << 20);
    buf_init(&again, 1 << 20);
    add_header(&first, 7, S("r1"), 0);
    add_metric(&first, 1, 2000, 1, S("loss"), 3.0);
    add_metric(&first, 4, 2000, 4, S("loss"), 2.0); /* 2 and 3 are late */
    assert_true(ingest(m, 7, &first, S("r1"), &out, &e));
    assert_int_equal(out.n_new, 3);
    assert_int_equal(out.next_seq, 5);
    assert_int_equal(out.n_missing, 1);
    assert_true(ingest(m, 7, &first, S("r1"), &out, &e)); /* the same again */
    assert_int_equal(out.n_new, 0);
    assert_int_equal(out.batch, 0);
    add_header(&again, 7, S("r1"), 0);
    for (uint64_t i = 1; i < 6; i++)
        add_metric(&again, i, 2000, (int64_t)i, S("loss"), 1.0);
    assert_true(ingest(m, 7, &again, S("r1"), &out, &e));
    assert_int_equal(out.n_new, 3); /* 2, 3 and 5 */
    assert_int_equal(out.next_seq, 6);
    assert_int_equal(out.n_missing, 0);
    assert_false(ingest(m, 7, &again, S("r2"), &out, &e)); /* a journal stays with its run */
    assert_int_equal(e.code, ERR_CONFLICT);
    struct arena a;
    struct store_batch *batches;
    uint32_t n;
    arena_init(&a, "test", 0);
    assert_true(m->ops->batches(m, S("r1"), 0, 1 << 20, &a, &batches, &n, &e));
    assert_int_equal(n, 2);
    assert_true(m->ops->batches(m, S("r1"), batches[0].id, 1, &a, &batches, &n, &e));
    assert_int_equal(n, 1);
    arena_release(&a);
    buf_release(&first);
    buf_release(&again);
    m->ops->close(m);
}

#define WRITERS 8
#define PER_WRITER 25

struct writer {
    struct store_meta *m;
    uint8_t id;
    uint64_t n_new;
};

static void *write_many(void *arg)
{
    struct writer *w = arg;
    for (uint64_t i = 0; i < PER_WRITER; i++) {
        struct err e = {0};
        struct buf b;
        struct store_ingested out;
        buf_init(&b, 1 << 16);
        add_header(&b, w->id, S("many"), w->id);
        add_metric(&b, i + 1, 2000 + i, (int64_t)i, S("loss"), 1.0);
        if (ingest(w->m, w->id, &b, S("many"), &out, &e))
            w->n_new += out.n_new;
        buf_release(&b);
    }
    return NULL;
}

static void writers_share_commits(void **state)
{
    (void)state;
    struct err e = {0};
    struct store_meta *m = sqlite_open(path, &e);
    pthread_t threads[WRITERS];
    struct writer w[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        w[i] = (struct writer){.m = m, .id = (uint8_t)(i + 1)};
        pthread_create(&threads[i], NULL, write_many, &w[i]);
    }
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(w[i].n_new, PER_WRITER + 1);
    }
    struct arena a;
    struct store_journal *journals;
    uint32_t n;
    arena_init(&a, "test", 0);
    assert_true(m->ops->journals(m, S("many"), &a, &journals, &n, &e));
    assert_int_equal(n, WRITERS);
    assert_int_equal(journals[0].n_records, PER_WRITER + 1);
    arena_release(&a);
    m->ops->close(m);
}

static void jobs_are_taken_once(void **state)
{
    (void)state;
    struct err e = {0};
    struct store_meta *m = sqlite_open(path, &e);
    struct arena a;
    struct store_job job;
    int64_t id, same;
    arena_init(&a, "test", 0);
    assert_true(m->ops->job_add(m, S("report"), S("r~s"), 1, &id, &e));
    assert_true(m->ops->job_add(m, S("report"), S("r~s"), 2, &same, &e));
    assert_int_equal(id, same);
    for (int tries = 1; tries <= 3; tries++) {
        assert_true(m->ops->job_claim(m, 3, &a, &job, &e));
        assert_int_equal(job.tries, tries);
        assert_false(m->ops->job_claim(m, 3, &a, &job, &e));
        assert_int_equal(e.code, ERR_NOT_FOUND);
        assert_true(m->ops->jobs_recover(m, &e));
    }
    assert_true(m->ops->job_get(m, id, &a, &job, &e));
    assert_true(str_eq(job.state, S("failed")));
    arena_release(&a);
    m->ops->close(m);
}

static void blobs_stay_in_the_folder(void **state)
{
    (void)state;
    struct err e = {0};
    struct arena a;
    struct store_blob *b = folder_open(dir, &e);
    str out;
    uint64_t size;
    arena_init(&a, "test", 0);
    assert_true(b->ops->put(b, S("runs/r/x.json"), S("{}"), &e));
    assert_true(b->ops->get(b, S("runs/r/x.json"), 100, &a, &out, &e));
    assert_true(str_eq(out, S("{}")));
    assert_int_equal(b->ops->open(b, S("runs/../../etc/passwd"), &size, &e), -1);
    assert_int_equal(b->ops->open(b, S("/etc/passwd"), &size, &e), -1);
    assert_true(b->ops->put(b, S("up/part.0"), S("abc"), &e));
    assert_true(b->ops->put(b, S("up/part.1"), S("def"), &e));
    assert_false(b->ops->join(b, S("up/whole"), S("up/part."), 2, S("00"), &size, &e));
    assert_int_equal(e.code, ERR_PARSE);
    assert_true(b->ops->join(b, S("up/whole"), S("up/part."), 2,
                             S("bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721"),
                             &size, &e));
    assert_int_equal(size, 6);
    arena_release(&a);
    b->ops->close(b);
}

static void blocks_keep_every_point_and_extreme(void **state)
{
    (void)state;
    enum { N = 1000 };
    static struct block_point p[N];
    for (int i = 0; i < N; i++)
        p[i] = (struct block_point){1700000000000000000 + i * 1000, i == 500 ? 99.5 : sin(i), i};
    p[7].value = NAN;
    struct err e = {0};
    struct arena a;
    str points, levels;
    struct block_point *back;
    struct block_bucket *buckets;
    uint32_t n;
    arena_init(&a, "test", 0);
    assert_true(block_encode(p, N, &a, &points, &levels, &e));
    assert_true(block_decode_points(points, &a, &back, &n, &e));
    assert_int_equal(n, N);
    assert_memory_equal(back, p, sizeof p);
    assert_true(block_decode_level(levels, 256, &a, &buckets, &n, &e));
    assert_int_equal(n, 4);
    assert_true(buckets[1].max == 99.5);
    assert_int_equal(buckets[0].count, 256);
    assert_int_equal(buckets[0].n_finite, 255);
    assert_false(block_decode_points(str_sub(points, 0, points.n / 2), &a, &back, &n, &e));
    assert_false(block_decode_level(points, 16, &a, &buckets, &n, &e));
    arena_release(&a);
}

static void seen_counts_each_number_once(void **state)
{
    (void)state;
    static struct seen s;
    uint64_t n = 0;
    for (uint64_t i = 0; i < 100; i += 2)
        n += seen_add(&s, i);
    for (uint64_t i = 0; i < 100; i++)
        n += seen_add(&s, i);
    for (uint64_t i = 0; i < 100; i++)
        n += seen_add(&s, i);
    assert_int_equal(n, 100);
    assert_int_equal(s.n_missing, 0);
    assert_true(seen_add(&s, 1000));
    assert_true(seen_add(&s, 500));
    assert_int_equal(s.n_missing, 2);
    assert_true(seen_has(&s, 500));
    assert_false(seen_has(&s, 501));
    assert_false(seen_add(&s, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(migrates_from_every_version, setup, teardown),
        cmocka_unit_test_setup_teardown(newer_is_refused_in_words, setup, teardown),
        cmocka_unit_test_setup_teardown(foreign_database_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(ingest_takes_each_record_once, setup, teardown),
        cmocka_unit_test_setup_teardown(writers_share_commits, setup, teardown),
        cmocka_unit_test_setup_teardown(jobs_are_taken_once, setup, teardown),
        cmocka_unit_test_setup_teardown(blobs_stay_in_the_folder, setup, teardown),
        cmocka_unit_test(blocks_keep_every_point_and_extreme),
        cmocka_unit_test(seen_counts_each_number_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
