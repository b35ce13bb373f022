/* SPDX-License-Identifier: Apache-2.0 */
/* get_hosts: the hosts of a profile, in the order of its files. */
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

static bool hosts_run(const struct tool_request *r, struct arena *a, struct table **out,
                      struct err *e)
{
    struct table *t = *out = table_new(a, S("get_hosts"), S("Hosts"));
    if (t == NULL)
        return arena_full(a, e);
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("machine"), S("Machine"), CELL_TEXT, S(""));
    table_column(t, S("devices"), S("Devices"), CELL_U64, S(""));
    table_column(t, S("events"), S("Events"), CELL_U64, S(""));
    for (uint32_t i = 0; i < r->profile->n_traces; i++) {
        const struct trace *trace = r->profile->traces[i];
        struct cell *row = table_row(t);
        if (row == NULL)
            return arena_full(a, e);
        uint64_t devices = 0;
        for (uint32_t k = 0; k < trace->n_planes; k++)
            devices += trace->planes[k].kind == TRACE_PLANE_TPU ||
                       trace->planes[k].kind == TRACE_PLANE_GPU;
        row[0] = cell_text(trace_target(trace));
        row[1] = trace->n_hostnames > 0 ? cell_text(trace->hostnames[0]) : cell_unknown();
        row[2] = cell_u64(devices);
        row[3] = cell_u64(trace->n_events);
    }
    return true;
}

static bool hosts_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                        struct err *e)
{
    struct json j;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    json_key(&j, "hosts");
    json_array(&j);
    for (uint32_t i = 0; i < r->profile->n_traces; i++) {
        json_object(&j);
        json_kstr(&j, "hostname", trace_target(r->profile->traces[i]));
        json_end(&j);
    }
    json_end(&j);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_get_hosts = {.run = hosts_run, .xprof = hosts_xprof};
