/* SPDX-License-Identifier: Apache-2.0 */
/* Lines in no order: the keys of all events in sorted runs, in a temporary file, merged by a heap; each event is then
 * decoded where it stands. Without a temporary file the runs stay in memory. */
#include "base/file.h"
#include "base/limits.h"
#include "format/xspace_line.h"

#define RUN_KEYS (UINT32_C(1) << 18)
#define RUNS_MOST 65536
#define MERGE_KEYS 1024
#define WINDOW_BYTES 8192 /* events that follow each other here may lie anywhere */

struct key {
    uint64_t start_ps, dur_ps, src;
    uint32_t src_bytes, unused;
};

struct run {
    uint64_t offset; /* of what is left, in the file */
    uint32_t left;
    struct key *keys; /* the next ones: a window on the file, or all of the run; owned */
    uint32_t at, n;
};

struct sorter {
    struct xspace_reader *r;
    struct key *keys; /* being gathered; owned */
    uint32_t n_keys;
    struct run *runs; /* owned */
    uint32_t n_runs, runs_capacity;
    uint32_t *heap; /* of runs, least first; owned; NULL until the merge begins */
    uint32_t n_heap;
    struct window window;
};

struct sorter *sorter_new(struct xspace_reader *r)
{
    struct sorter *s = map_alloc(1, sizeof *s);
    s->r = r;
    s->keys = map_alloc(RUN_KEYS, sizeof *s->keys);
    s->window = (struct window){.fd = r->window.fd, .size = r->window.size, .ahead = WINDOW_BYTES};
    return s;
}

void sorter_free(struct sorter *s)
{
    if (s == NULL)
        return;
    for (uint32_t i = 0; i < s->n_runs; i++)
        map_free(s->runs[i].keys);
    free(s->runs);
    map_free(s->keys);
    map_free(s->heap);
    window_release(&s->window);
    map_free(s);
}

static bool key_before(const struct key *a, const struct key *b)
{
    return trace_order(a->start_ps, a->dur_ps, a->src, b->start_ps, b->dur_ps, b->src);
}

static int key_order(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->src == y->src)
        return 0;
    return key_before(x, y) ? -1 : 1;
}

/* The keys at hand become a run. */
static bool run_end(struct sorter *s, struct err *e)
{
    if (s->n_keys == 0)
        return true;
    if (s->n_runs == RUNS_MOST)
        return err_set(e, ERR_LIMIT, "a line has more than %u unordered runs of events", RUNS_MOST);
    if (s->n_runs == s->runs_capacity) {
        s->runs_capacity = s->runs_capacity == 0 ? 16 : s->runs_capacity * 2;
        s->runs = realloc(s->runs, s->runs_capacity * sizeof *s->runs);
        must(s->runs != NULL);
    }
    struct run *run = &s->runs[s->n_runs];
    *run = (struct run){0};
    qsort(s->keys, s->n_keys, sizeof *s->keys, key_order);
    const size_t bytes = s->n_keys * sizeof *s->keys;
    if (s->r->sort_fd < 0) {
        run->keys = malloc(bytes);
        if (run->keys == NULL)
            return err_set(e, ERR_LIMIT, "a line has more unordered events than fit in memory");
        memcpy(run->keys, s->keys, bytes);
        run->n = s->n_keys;
    } else {
        run->offset = atomic_fetch_add(&s->r->sort_bytes, bytes);
        run->left = s->n_keys;
        if (!file_pwrite_all(s->r->sort_fd, s->keys, bytes, run->offset, e))
            return err_wrap(e, "cannot sort a line's events in the temporary file");
    }
    s->n_runs++;
    s->n_keys = 0;
    return true;
}

bool sorter_add(struct sorter *s, const struct trace_rows *rows, struct err *e)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        if (s->n_keys == RUN_KEYS && !run_end(s, e))
            return false;
        s->keys[s->n_keys++] = (struct key){.start_ps = rows->start_ps[i],
                                            .dur_ps = rows->dur_ps[i],
                                            .src = rows->src[i],
                                            .src_bytes = rows->src_bytes[i]};
    }
    return true;
}

/* Makes sure that a run's next key is at hand; false at its end or on failure. */
static bool run_fill(struct sorter *s, struct run *run, struct err *e)
{
    if (run->at < run->n)
        return true;
    const uint32_t n = run->left < MERGE_KEYS ? run->left : MERGE_KEYS;
    if (n == 0)
        return false;
    if (run->keys == NULL)
        run->keys = map_alloc(MERGE_KEYS, sizeof *run->keys);
    if (!file_pread_all(s->r->sort_fd, run->keys, n * sizeof *run->keys, run->offset, e))
        return false;
    run->offset += n * sizeof *run->keys;
    run->left -= n;
    run->at = 0;
    run->n = n;
    return true;
}

static const struct key *run_key(const struct sorter *s, uint32_t run)
{
    return &s->runs[run].keys[s->runs[run].at];
}

static void heap_sink(struct sorter *s, uint32_t i)
{
    for (;;) {
        uint32_t least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < s->n_heap; child++)
            if (key_before(run_key(s, s->heap[child]), run_key(s, s->heap[least])))
                least = child;
        if (least == i)
            return;
        const uint32_t run = s->heap[i];
        s->heap[i] = s->heap[least];
        s->heap[least] = run;
        i = least;
    }
}

static bool merge_begin(struct sorter *s, struct err *e)
{
    if (!run_end(s, e))
        return false;
    map_free(s->keys);
    s->keys = NULL;
    s->heap = map_alloc((size_t)s->n_runs + 1, sizeof *s->heap);
    for (uint32_t i = 0; i < s->n_runs; i++) {
        if (!run_fill(s, &s->runs[i], e))
            return false;
        s->heap[s->n_heap++] = i;
    }
    for (uint32_t i = s->n_heap / 2; i-- > 0;)
        heap_sink(s, i);
    return true;
}

bool sorter_merge(struct sorter *s, struct line_decoder *d, uint32_t n, bool *more, struct err *e)
{
    if (s->heap == NULL && !merge_begin(s, e))
        return false;
    for (uint32_t i = 0; i < n && s->n_heap > 0; i++) {
        struct run *run = &s->runs[s->heap[0]];
        const struct key *k = &run->keys[run->at++];
        if (!line_decoder_take(d, &s->window, k->src, k->src_bytes, e))
            return false;
        if (!run_fill(s, run, e)) {
            if (run->left > 0)
                return false;
            s->heap[0] = s->heap[--s->n_heap];
        }
        heap_sink(s, 0);
    }
    *more = s->n_heap > 0;
    return true;
}
