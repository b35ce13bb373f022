/* SPDX-License-Identifier: Apache-2.0 */
/* tacho tools: the analysis tools. tacho tool: one of them on a profile, in the parser's sandbox. */
#include "base/limits.h"
#include "cli/parser_out.h"
#include "cli/profile_limits.h"
#include "cli/session_arg.h"
#include "cli/table_out.h"
#include "jobs/profile_task.h"

bool cmd_tools(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct arena a;
    arena_init(&a, "tools", LIMIT_ARENA_REQUEST_BYTES);
    struct table *t = table_new(&a, S("tools"), S("Tools"));
    table_column(t, S("name"), S("Tool"), CELL_TEXT, S(""));
    table_column(t, S("title"), S("Title"), CELL_TEXT, S(""));
    table_column(t, S("parameters"), S("Parameters"), CELL_TEXT, S(""));
    table_column(t, S("help"), S("What it shows"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < tool_count; i++) {
        struct cell *row = table_row(t);
        row[0] = cell_text(str_from(tool_table[i].name));
        row[1] = cell_text(str_from(tool_table[i].title));
        row[2] = cell_text(str_from(tool_table[i].parameters));
        row[3] = cell_text(str_from(tool_table[i].help));
    }
    const bool ok = table_ok(t, e) && table_out(cli, t, e);
    arena_release(&a);
    return ok;
}

static bool params_take(struct arena *a, int n, char **words, struct tool_param **out,
                        struct err *e)
{
    *out = ARENA_ARRAY(a, struct tool_param, (size_t)n + 1);
    if (*out == NULL)
        return arena_full(a, e);
    for (int i = 0; i < n; i++) {
        const str word = str_from(words[i]);
        const ptrdiff_t at = str_find_char(word, '=');
        if (at <= 0)
            return err_set(e, ERR_USAGE, "a parameter is key=value, not '%s'", words[i]);
        (*out)[i].key = str_sub(word, 0, (size_t)at);
        (*out)[i].value = str_sub(word, (size_t)at + 1, word.n);
    }
    return true;
}

/* The answer of a tool that needs no profile: nothing is decoded, so nothing is sandboxed. */
static bool tool_print_alone(const struct cli *cli, const struct tool *tool,
                             const struct tool_param *params, uint32_t n, struct buf *out,
                             struct err *e)
{
    struct profile none = {0};
    const struct tool_request r = {
        .profile = &none, .whole = &none, .params = params, .n_params = n};
    return tool_print(tool, &r, parser_out_format(cli), out, e);
}

static bool tool_run_and_print(struct cli *cli, const struct tool *tool, const char *path,
                               const struct tool_param *params, uint32_t n, struct err *e)
{
    struct profile_limits limits;
    profile_limits_of(cli, &limits);
    struct buf out;
    buf_init(&out, LIMIT_PARSER_OUTPUT_BYTES);
    bool ok = path == NULL ? tool_print_alone(cli, tool, params, n, &out, e)
                           : profile_task_tool(path, &limits.parser, tool, params, n,
                                               parser_out_format(cli), &out, e);
    ok = ok && parser_out_print(&out, e);
    buf_release(&out);
    return ok;
}

static bool tool_answer(struct cli *cli, const struct tool *tool, int argc, char **argv,
                        struct arena *a, struct err *e)
{
    struct tool_param *params;
    const char *path = NULL;
    const bool has_profile = argc > 2 && !(tool->functions->needs_none && strchr(argv[2], '='));
    const int first = has_profile ? 3 : 2;
    if (!has_profile && !tool->functions->needs_none)
        return err_set(e, ERR_USAGE, "tacho tool %s needs a PROFILE", tool->name);
    if (!params_take(a, argc - first, argv + first, &params, e) ||
        (has_profile && !session_arg_profile(cli, a, argv[2], &path, e)))
        return false;
    return tool_run_and_print(cli, tool, path, params, (uint32_t)(argc - first), e);
}

bool cmd_tool(struct cli *cli, int argc, char **argv, struct err *e)
{
    const struct tool *tool = tool_find(str_from(argv[1]));
    if (tool == NULL) {
        err_set(e, ERR_NOT_FOUND, "there is no tool '%s'", argv[1]);
        return err_hint(e, "tacho tools lists the tools");
    }
    struct arena a;
    arena_init(&a, "parameters", LIMIT_ARENA_REQUEST_BYTES);
    const bool ok = tool_answer(cli, tool, argc, argv, &a, e);
    arena_release(&a);
    return ok;
}
