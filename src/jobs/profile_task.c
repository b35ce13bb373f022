/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/profile_task.h"

#include "analysis/facts.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/pool.h"
#include "format/profile_open.h"
#include "jobs/answer_cache.h"
#include "jobs/import_place.h"

struct work {
    struct profile_source *source;
    profile_fn fn;
    profile_stream_fn stream_fn; /* instead of fn */
    void *ctx;
};

static bool work_run(void *ctx, int out_fd, struct err *e)
{
    struct work *w = ctx;
    struct profile *p = profile_load(w->source, e);
    if (p == NULL)
        return false;
    if (w->stream_fn != NULL) {
        const bool done = w->stream_fn(p, w->ctx, out_fd, e);
        profile_free(p);
        return done;
    }
    struct buf out;
    buf_init(&out, LIMIT_PARSER_OUTPUT_BYTES);
    const bool ok = w->fn(p, w->ctx, &out, e) && buf_ok(&out, "the result", e) &&
                    file_write_all(out_fd, out.p, out.n, e);
    buf_release(&out);
    profile_free(p);
    return ok;
}

#define FDS_PER_FILE 5

/* Every descriptor that the parser of a source needs; owned. `more`: one more, or -1. */
static int *source_fds(const struct profile_source *s, int more)
{
    int *fds = map_alloc((size_t)s->n_files * FDS_PER_FILE + 1, sizeof *fds);
    for (uint32_t i = 0; i < s->n_files; i++) {
        int *of = &fds[FDS_PER_FILE * i];
        of[0] = s->files[i].fd;
        of[1] = s->files[i].spill_fd;
        of[2] = s->files[i].import_fd;
        of[3] = s->files[i].index_fd;
        of[4] = s->files[i].index_out_fd;
    }
    fds[s->n_files * FDS_PER_FILE] = more;
    return fds;
}

static struct parser_task task_of(struct work *w, const int *fds)
{
    w->source->n_threads = pool_cpu_count();
    return (struct parser_task){.what = w->source->path.p,
                                .keep_fds = fds,
                                .n_keep_fds = w->source->n_files * FDS_PER_FILE + 1,
                                .fn = work_run,
                                .ctx = w};
}

/* To out, or where that is NULL to the sink. */
static bool work_start(struct work *w, const struct parser_limits *limits, struct buf *out,
                       const struct parser_sink *sink, struct err *e)
{
    int *fds = source_fds(w->source, -1);
    const struct parser_task task = task_of(w, fds);
    const bool ok =
        out != NULL ? parser_run(limits, &task, out, e) : parser_run_to(limits, &task, sink, e);
    map_free(fds);
    return ok;
}

struct parser_child *profile_task_open(struct profile_source *s, const struct parser_limits *limits,
                                       profile_stream_fn fn, void *ctx, int fd, struct err *e)
{
    struct work w = {.source = s, .stream_fn = fn, .ctx = ctx};
    int *fds = source_fds(s, fd);
    const struct parser_task task = task_of(&w, fds);
    struct parser_child *c = parser_open(limits, &task, e);
    map_free(fds);
    return c;
}

static bool source_run(struct profile_source *s, const struct parser_limits *limits, profile_fn fn,
                       void *ctx, struct buf *out, struct err *e)
{
    struct work w = {.source = s, .fn = fn, .ctx = ctx};
    return work_start(&w, limits, out, NULL, e);
}

static bool plain_run(const char *path, const struct parser_limits *limits, profile_fn fn,
                      void *ctx, struct buf *out, struct err *e)
{
    struct profile_source source;
    if (!profile_find(&source, path, e))
        return false;
    const bool ok = source_run(&source, limits, fn, ctx, out, e);
    profile_source_release(&source);
    return ok;
}

/* Or the XSpace of an earlier import. */
static bool uses_index(const struct profile_source *s)
{
    for (uint32_t i = 0; i < s->n_files; i++)
        if (s->files[i].index_fd >= 0 || s->files[i].was_imported)
            return true;
    return false;
}

/* Loads from indexes where there are some, else makes them. */
static bool indexed_run(const char *path, const struct parser_limits *limits, bool lines_only,
                        profile_fn fn, void *ctx, struct buf *out, struct err *e)
{
    bool ok = false, again = true;
    for (bool fresh = false; !ok && again; fresh = true) {
        struct profile_source source;
        if (!profile_find(&source, path, e))
            return false;
        import_place_find(&source, limits->indexes, fresh);
        index_place_find(&source, limits->indexes, fresh);
        err_clear(e);
        source.lines_only = lines_only;
        ok = source_run(&source, limits, fn, ctx, out, e);
        if (ok) {
            import_place_keep(&source);
            index_place_keep(&source);
        }
        /* A damaged index costs time only; a wrong question is answered alike without it. */
        again = uses_index(&source) && e->code != ERR_USAGE && e->code != ERR_NOT_FOUND;
        profile_source_release(&source);
    }
    return ok;
}

bool profile_task_run(const char *path, const struct parser_limits *limits, profile_fn fn,
                      void *ctx, struct buf *out, struct err *e)
{
    return limits->indexes == NULL ? plain_run(path, limits, fn, ctx, out, e)
                                   : indexed_run(path, limits, false, fn, ctx, out, e);
}

static bool nothing(struct profile *p, void *ctx, struct buf *out, struct err *e)
{
    (void)p, (void)ctx, (void)out, (void)e;
    return true;
}

/* ---- streams ---- */

/* What a stream handed out. Where an index turns out damaged in the middle of one, the profile is gone over once
 * more, and what was handed out is passed over: an export has the same bytes each time. */
struct handed_out {
    const struct parser_sink *to;
    uint64_t n_bytes, n_passed; /* passed over in this run */
    uint32_t sum, sum_passed;
    bool is_refused; /* the sink takes no more */
};

static bool has_changed(struct err *e)
{
    return err_set(e, ERR_PARSE, "the profile changed while it was read");
}

static bool hand_out(void *ctx, str bytes, struct err *e)
{
    struct handed_out *h = ctx;
    const uint64_t left = h->n_bytes - h->n_passed;
    const size_t n = left < bytes.n ? (size_t)left : bytes.n;
    h->sum_passed = crc32c(h->sum_passed, bytes.p, n);
    h->n_passed += n;
    if (n > 0 && h->n_passed == h->n_bytes && h->sum_passed != h->sum)
        return has_changed(e);
    const str more = str_sub(bytes, n, bytes.n);
    if (more.n == 0)
        return true;
    h->n_bytes += more.n;
    h->n_passed = h->n_bytes;
    h->sum = h->sum_passed = crc32c(h->sum, more.p, more.n);
    h->is_refused = !h->to->take(h->to->ctx, more, e);
    return !h->is_refused;
}

static bool makes_index(const struct profile_source *s)
{
    for (uint32_t i = 0; i < s->n_files; i++)
        if (s->files[i].index_out_fd >= 0)
            return true;
    return false;
}

/* Opens a profile with its indexes. Those that are missing are made first, not on the way: whoever makes one has
 * others wait for it, and a stream goes as fast as its reader. */
static bool stream_open(struct profile_source *s, const char *path,
                        const struct parser_limits *limits, bool fresh, bool *uses, struct err *e)
{
    struct buf none;
    *uses = false;
    if (!profile_find(s, path, e))
        return false;
    if (limits->indexes == NULL)
        return true;
    import_place_find(s, limits->indexes, fresh);
    index_place_find(s, limits->indexes, fresh);
    *uses = uses_index(s);
    if (!makes_index(s))
        return true;
    buf_init(&none, LIMIT_ARENA_REQUEST_BYTES);
    const bool ok = source_run(s, limits, nothing, NULL, &none, e);
    if (ok) {
        import_place_keep(s);
        index_place_keep(s);
    }
    buf_release(&none);
    profile_source_release(s);
    if (!ok || !profile_find(s, path, e))
        return false;
    import_place_find(s, limits->indexes, false);
    index_place_look(s, limits->indexes);
    *uses = uses_index(s);
    return true;
}

bool profile_task_stream(const char *path, const struct parser_limits *limits, profile_stream_fn fn,
                         void *ctx, const struct parser_sink *sink, struct err *e)
{
    struct handed_out out = {.to = sink};
    const struct parser_sink to = {hand_out, &out};
    bool ok = false, again = true;
    for (bool fresh = false; !ok && again; fresh = true) {
        struct profile_source source;
        bool uses;
        err_clear(e);
        out.n_passed = 0;
        out.sum_passed = 0;
        ok = stream_open(&source, path, limits, fresh, &uses, e);
        if (ok) {
            struct work w = {.source = &source, .stream_fn = fn, .ctx = ctx};
            ok = work_start(&w, limits, NULL, &to, e);
            profile_source_release(&source);
        }
        again =
            !fresh && uses && !out.is_refused && e->code != ERR_USAGE && e->code != ERR_NOT_FOUND;
    }
    return ok;
}

/* ---- tools, views, facts ---- */

struct tool_work {
    const struct tool *tool;
    const struct tool_param *params;
    uint32_t n_params;
    enum tool_format format;
};

static bool tool_work_run(struct profile *p, void *ctx, struct buf *out, struct err *e)
{
    const struct tool_work *w = ctx;
    const struct tool_request r = {.profile = p, .params = w->params, .n_params = w->n_params};
    return tool_print(w->tool, &r, w->format, out, e);
}

static bool key_of(struct answer_key *key, const char *path, const struct tool_work *w)
{
    struct profile_source source;
    struct err ignored = {0}; /* said when it is opened for the answer */
    if (!profile_find(&source, path, &ignored))
        return false;
    const bool ok = answer_key_of(key, &source, w->tool, w->params, w->n_params, w->format);
    profile_source_release(&source);
    return ok;
}

bool profile_task_tool(const char *path, const struct parser_limits *limits,
                       const struct tool *tool, const struct tool_param *params, uint32_t n_params,
                       enum tool_format format, struct buf *out, struct err *e)
{
    struct tool_work w = {.tool = tool, .params = params, .n_params = n_params, .format = format};
    struct answer_key key;
    const size_t before = out->n;
    const bool keeps = limits->indexes != NULL && key_of(&key, path, &w);
    if (keeps && answer_find(limits->indexes, &key, out))
        return true;
    if (!profile_task_run(path, limits, tool_work_run, &w, out, e))
        return false;
    if (keeps)
        answer_keep(limits->indexes, &key, str_sub(buf_str(out), before, out->n));
    return true;
}

bool profile_task_view(enum tiles_view view, const struct tool_request *r, struct buf *out,
                       struct err *e)
{
    struct arena a;
    arena_init(&a, "trace view", LIMIT_ARENA_TOOL_BYTES);
    const bool ok = tiles_answer(view, r, &a, out, e);
    arena_release(&a);
    return ok;
}

struct view_work {
    enum tiles_view view;
    const struct tool_param *params;
    uint32_t n_params;
};

static bool view_work_run(struct profile *p, void *ctx, struct buf *out, struct err *e)
{
    const struct view_work *w = ctx;
    const struct tool_request r = {.profile = p, .params = w->params, .n_params = w->n_params};
    return profile_task_view(w->view, &r, out, e);
}

bool profile_task_trace(const char *path, const struct parser_limits *limits, enum tiles_view view,
                        const struct tool_param *params, uint32_t n_params, struct buf *out,
                        struct err *e)
{
    struct view_work w = {.view = view, .params = params, .n_params = n_params};
    return limits->indexes == NULL ? plain_run(path, limits, view_work_run, &w, out, e)
                                   : indexed_run(path, limits, true, view_work_run, &w, out, e);
}

static bool facts_work_run(struct profile *p, void *ctx, struct buf *out, struct err *e)
{
    struct profile_facts f;
    struct arena a;
    (void)ctx;
    arena_init(&a, "profile facts", LIMIT_ARENA_TOOL_BYTES);
    const bool ok = profile_facts_of(p, &a, &f, e) && profile_facts_pack(&f, out, e);
    arena_release(&a);
    return ok;
}

bool profile_task_facts(const char *path, const struct parser_limits *limits, struct arena *a,
                        struct profile_facts *out, struct err *e)
{
    struct buf packed;
    buf_init(&packed, LIMIT_PARSER_OUTPUT_BYTES);
    bool ok = profile_task_run(path, limits, facts_work_run, NULL, &packed, e);
    if (ok) {
        const str kept = arena_str(a, buf_str(&packed));
        ok = kept.p != NULL ? profile_facts_unpack(kept, a, out, e) : arena_full(a, e);
    }
    buf_release(&packed);
    return ok;
}

bool profile_task_index(const char *path, const struct parser_limits *limits, struct err *e)
{
    struct buf out;
    buf_init(&out, LIMIT_ARENA_REQUEST_BYTES);
    const bool ok = indexed_run(path, limits, true, nothing, NULL, &out, e);
    buf_release(&out);
    return ok;
}
