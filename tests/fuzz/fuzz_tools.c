/* SPDX-License-Identifier: Apache-2.0 */
/* Every tool, in every form, on a hostile XSpace: an answer, the same one twice, or an error that says why. */
#include "analysis/tool.h"
#include "base/limits.h"
#include "format/xspace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool print(const struct tool *tool, const struct tool_request *r, enum tool_format format,
                  struct buf *out)
{
    struct err e = {0};
    buf_init(out, 1u << 20);
    const bool ok = tool_print(tool, r, format, out, &e);
    must(ok ? e.code == ERR_NONE : e.code != ERR_NONE && e.msg[0] != '\0');
    return ok;
}

static void run(const struct tool *tool, struct profile *p, enum tool_format format)
{
    const struct tool_request r = {.profile = p, .whole = p};
    struct buf first, second;
    const bool ok = print(tool, &r, format, &first);
    must(print(tool, &r, format, &second) == ok);
    must(!ok || str_eq(buf_str(&first), buf_str(&second)));
    buf_release(&first);
    buf_release(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct xspace_options o = {.file = S("fuzz"), .spill_fd = -1, .index_fd = -1};
    struct err e = {0};
    struct trace *t = xspace_load_memory((str){(const char *)data, n}, &o, &e);
    must(t != NULL || e.code != ERR_NONE);
    if (t == NULL)
        return 0;
    struct profile p = {.traces = &t, .n_traces = 1};
    profile_align(&p);
    for (uint32_t i = 0; i < tool_count; i++) {
        run(&tool_table[i], &p, TOOL_JSON);
        if (tool_table[i].functions->xprof != NULL)
            run(&tool_table[i], &p, TOOL_XPROF);
    }
    trace_free(t);
    return 0;
}
