/* SPDX-License-Identifier: Apache-2.0 */
/* get_hlo_stats: hlo_stats as XProf's command line prints it: the first operations by self time. */
#include "analysis/op_brief.h"
#include "analysis/op_rates.h"
#include "analysis/op_xprof.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

#define LIMIT 20 /* XProf's, unless asked for more */

static bool get_hlo_stats_run(const struct tool_request *r, struct arena *a, struct table **out,
                              struct err *e)
{
    uint64_t limit;
    const struct tool_request all = {.profile = r->profile, .whole = r->whole};
    if (!op_limit(r, S("limit"), LIMIT, &limit, e) || !tool_hlo_stats.run(&all, a, out, e))
        return false;
    if ((*out)->n_rows > limit)
        (*out)->n_rows = (uint32_t)limit;
    return true;
}

static void write_record(struct json *j, const struct op_db *db, const struct op_metrics *m,
                         uint32_t rank)
{
    const struct op_rates r = op_rates_of(m, m->time_ps, &db->device);
    json_object(j);
    json_ku64(j, "rank", rank);
    json_ku64(j, "program_id", m->program_id);
    json_kstr(j, "category", m->category);
    json_kstr(j, "op_name", op_xprof_name(m));
    json_kstr(j, "tf_op_name", m->provenance);
    json_ku64(j, "occurrences", m->occurrences);
    json_kf64(j, "total_time_us", (double)m->time_ps / 1e6);
    json_kf64(j, "total_self_time_us", (double)m->self_ps / 1e6);
    json_kf64(j, "self_time_percent",
              db->total_ps > 0 ? 100.0 * (double)m->self_ps / (double)db->total_ps : 0);
    const bool known = m->has_cost || !op_is_custom_call(m);
    if (known) {
        json_kf64(j, "measured_flop_rate", r.rate[OP_COMPUTE]);
        json_ku64(j, "flops", m->model_flops);
        json_kf64(j, "measured_memory_bw_gbs", op_giga_rate((double)m->bytes, (double)m->time_ps));
    } else {
        json_knull(j, "measured_flop_rate");
        json_knull(j, "flops");
        json_knull(j, "measured_memory_bw_gbs");
    }
    json_kstr(j, "bound_by", op_resource_name(&db->device, r.bound));
    json_kstr(j, "source_file", m->source_file);
    json_ki64(j, "source_line", m->source_line);
    json_kstr(j, "core_type", op_xprof_core(m));
    json_kcstr(j, "parent_op_name", "");
    json_end(j);
}

static bool get_hlo_stats_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                                struct err *e)
{
    struct op_db db;
    struct json j;
    uint64_t limit;
    if (!op_limit(r, S("limit"), LIMIT, &limit, e) || !op_db_build(&db, r->profile, (str){0}, a, e))
        return false;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    json_key(&j, "records");
    json_array(&j);
    for (uint32_t i = 0; i < db.n_ops && i < limit; i++)
        write_record(&j, &db, &db.ops[i], i + 1);
    json_end(&j);
    json_kbool(&j, "truncated", limit < db.n_ops);
    json_ku64(&j, "total_records", db.n_ops);
    json_ku64(&j, "returned_records", limit < db.n_ops ? limit : db.n_ops);
    json_ku64(&j, "top_level_records", db.n_ops);
    xprof_cli_number(&j, "total_self_time_ms_all_records", (double)db.self_ps / 1e9, 4);
    op_db_release(&db);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_get_hlo_stats = {.run = get_hlo_stats_run,
                                                  .xprof = get_hlo_stats_xprof};
