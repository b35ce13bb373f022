/* SPDX-License-Identifier: Apache-2.0 */
/* get_kernel_stats, a command of XProf: time of the devices by the name of what ran (kernel_times.h). */
#include "analysis/kernel_times.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

#define DEFAULT_LIMIT 10

/* The rows asked for: those of a name, else the first of them. */
static bool keep_asked(const struct tool_request *r, struct kernel_times *c, struct err *e)
{
    const str text = tool_param(r, S("limit")), wanted = tool_param(r, S("kernel_name"));
    int64_t limit = DEFAULT_LIMIT;
    if (text.n > 0 && !str_to_i64(text, &limit))
        return err_set(e, ERR_USAGE, "limit is a count, not '%.*s'", STR_ARG(text));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (wanted.n == 0 ? limit <= 0 || kept < limit : str_eq(c->items[i].name, wanted))
            c->items[kept++] = c->items[i];
    c->n = kept;
    return true;
}

static bool get_kernel_stats_run(const struct tool_request *r, struct arena *a, struct table **out,
                                 struct err *e)
{
    struct kernel_times c;
    if (!kernel_times_of(r->profile, a, &c, e) || !keep_asked(r, &c, e))
        return false;
    struct table *t = *out = table_new(a, S("get_kernel_stats"), S("Kernels by name"));
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("kernel"), S("Kernel"), CELL_TEXT, S(""));
    table_column(t, S("occurrences"), S("Count"), CELL_U64, S(""));
    table_column(t, S("total_time_ps"), S("Total time"), CELL_U64, S("ps"));
    table_column(t, S("average_time_ps"), S("Average"), CELL_F64, S("ps"));
    for (uint32_t i = 0; i < c.n; i++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            break;
        row[0] = cell_text(c.items[i].name);
        row[1] = cell_u64(c.items[i].count);
        row[2] = cell_u64(c.items[i].total_ps);
        row[3] = cell_f64((double)c.items[i].total_ps / (double)c.items[i].count);
    }
    if (c.n == 0)
        table_note(t, S("no_kernels"), 1, "no kernel of this kind is in the profile");
    return true;
}

/* --- XProf's form ---------------------------------------------------------------------------- */

static bool get_kernel_stats_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                                   struct err *e)
{
    struct kernel_times c;
    struct json j;
    if (!kernel_times_of(r->profile, a, &c, e) || !keep_asked(r, &c, e))
        return false;
    json_init_buf(&j, out);
    if (c.n == 0) {
        xprof_cli_begin(&j, r);
        json_kcstr(&j, "info", "No kernel stats found");
        return xprof_cli_end(&j, e);
    }
    json_array(&j);
    for (uint32_t i = 0; i < c.n; i++)
        kernel_time_put(&j, &c.items[i]);
    json_end(&j);
    return json_done(&j, e);
}

const struct tool_functions tool_get_kernel_stats = {.run = get_kernel_stats_run,
                                                     .xprof = get_kernel_stats_xprof};
