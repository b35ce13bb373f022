/* SPDX-License-Identifier: Apache-2.0 */
/* How a tool is run: limits of its answer, parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "../xspace_build.h"
#include "analysis/tool.h"
#include "format/xspace.h"

static int setup(void **state)
{
    static struct profile p;
    static struct trace *traces[1];
    static const int64_t events[][3] = {{1, 0, 10}, {1, 20, 10}, {1, 40, 10}};
    struct err e = {0};
    struct buf space;
    const struct xspace_options o = {.file = S("t"), .host = S("t"), .spill_fd = -1};
    make_space(&space, events, 3);
    traces[0] = xspace_load_memory(buf_str(&space), &o, &e);
    assert_non_null(traces[0]);
    buf_release(&space);
    p = (struct profile){.traces = traces, .n_traces = 1};
    *state = &p;
    return 0;
}

static int teardown(void **state)
{
    struct profile *p = *state;
    trace_free(p->traces[0]);
    return 0;
}

/* Whatever the tool, and wherever in its answer the limit lies. */
static void an_answer_beyond_its_limit_names_what_narrows_it(void **state)
{
    static const char *const names[] = {"trace_viewer", "trace_viewer@", "list_xplane_events",
                                        "get_xspace_proto"};
    const struct tool_request r = {.profile = *state, .whole = *state};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t cap = 16; cap <= 256; cap *= 4) {
            const struct tool *tool = tool_find(str_from(names[i]));
            struct buf out;
            struct err e = {0};
            assert_non_null(tool);
            buf_init(&out, cap);
            assert_false(tool_print(tool, &r, TOOL_XPROF, &out, &e));
            assert_int_equal(e.code, ERR_LIMIT);
            assert_non_null(strstr(e.msg, names[i]));
            assert_non_null(strstr(e.hint, "host"));
            buf_release(&out);
        }
}

static void an_answer_within_its_limit_is_whole(void **state)
{
    const struct tool_request r = {.profile = *state, .whole = *state};
    struct buf out;
    struct err e = {0};
    buf_init(&out, 1 << 20);
    assert_true(tool_print(tool_find(S("trace_viewer@")), &r, TOOL_XPROF, &out, &e));
    assert_true(str_find(buf_str(&out), S("\"returnedEventsSize\":3")) > 0);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_beyond_its_limit_names_what_narrows_it),
        cmocka_unit_test(an_answer_within_its_limit_is_whole),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
