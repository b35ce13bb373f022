/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/profile_task.h"

#include "analysis/facts.h"
#include "base/file.h"
#include "base/limits.h"
#include "format/profile_open.h"

struct work {
    struct profile_source *source;
    profile_fn fn;
    void *ctx;
};

static bool work_run(void *ctx, int out_fd, struct err *e)
{
    struct work *w = ctx;
    struct profile *p = profile_load(w->source, e);
    if (p == NULL)
        return false;
    struct buf out;
    buf_init(&out, LIMIT_PARSER_OUTPUT_BYTES);
    const bool ok = w->fn(p, w->ctx, &out, e) && buf_ok(&out, "the result", e) &&
                    file_write_all(out_fd, out.p, out.n, e);
    buf_release(&out);
    profile_free(p);
    return ok;
}

bool profile_task_run(const char *path, const struct parser_limits *limits, profile_fn fn, void *ctx,
                      struct buf *out, struct err *e)
{
    struct profile_source source;
    if (!profile_find(&source, path, e))
        return false;
    int *fds = map_alloc((size_t)source.n_files * 3, sizeof *fds);
    for (uint32_t i = 0; i < source.n_files; i++) {
        fds[3 * i] = source.files[i].fd;
        fds[3 * i + 1] = source.files[i].spill_fd;
        fds[3 * i + 2] = source.files[i].import_fd;
    }
    struct work w = {.source = &source, .fn = fn, .ctx = ctx};
    const struct parser_task task = {
        .what = path, .keep_fds = fds, .n_keep_fds = source.n_files * 3, .fn = work_run, .ctx = &w};
    const bool ok = parser_run(limits, &task, out, e);
    map_free(fds);
    profile_source_release(&source);
    return ok;
}

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

bool profile_task_tool(const char *path, const struct parser_limits *limits, const struct tool *tool,
                       const struct tool_param *params, uint32_t n_params, enum tool_format format,
                       struct buf *out, struct err *e)
{
    struct tool_work w = {
        .tool = tool, .params = params, .n_params = n_params, .format = format};
    return profile_task_run(path, limits, tool_work_run, &w, out, e);
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
    struct arena a;
    arena_init(&a, "trace view", LIMIT_ARENA_TOOL_BYTES);
    const bool ok = tiles_answer(w->view, &r, &a, out, e);
    arena_release(&a);
    return ok;
}

bool profile_task_trace(const char *path, const struct parser_limits *limits, enum tiles_view view,
                        const struct tool_param *params, uint32_t n_params, struct buf *out,
                        struct err *e)
{
    struct view_work w = {.view = view, .params = params, .n_params = n_params};
    return profile_task_run(path, limits, view_work_run, &w, out, e);
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
