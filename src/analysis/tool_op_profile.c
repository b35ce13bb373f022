/* SPDX-License-Identifier: Apache-2.0 */
/* op_profile: where the device time goes, as a tree. Formulas: XProf's op_profile_builder. */
#include "analysis/op_tree.h"
#include "analysis/tool.h"
#include "model/table_print.h"

#define XPROF_CHILDREN 100 /* what XProf shows of a node's children unless asked for more */

struct question {
    enum op_tree_group group;
    uint64_t limit; /* children of a node that are shown; 0 = all */
};

static bool read_question(const struct tool_request *r, struct question *q, struct err *e)
{
    static const char *const names[] = {"program", "category", "provenance"};
    const str group = tool_param(r, S("group_by")), limit = tool_param(r, S("op_profile_limit"));
    *q = (struct question){.group = OP_TREE_PROGRAM};
    if (limit.n > 0 && !str_to_u64(limit, &q->limit))
        return err_set(e, ERR_USAGE, "op_profile_limit is '%.*s', not a number", STR_ARG(limit));
    for (int i = OP_TREE_PROGRAM; i <= OP_TREE_PROVENANCE; i++)
        if (str_eq(group, str_from(names[i])))
            q->group = (enum op_tree_group)i;
    if (group.n > 0 && !str_eq(group, str_from(names[q->group])))
        return err_set(e, ERR_USAGE,
                       "group_by is '%.*s'; it may be program, category or provenance",
                       STR_ARG(group));
    return true;
}

/* --- our own table ---------------------------------------------------------------------------- */

struct printer {
    struct table *table;
    const struct op_db *db;
    uint64_t limit;
    bool indent; /* for people */
};

static void declare_columns(struct table *t)
{
    table_column(t, S("name"), S("Name"), CELL_TEXT, S(""));
    table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
    table_column(t, S("self_share_percent"), S("Share"), CELL_F64, S("%"));
    table_column(t, S("flops_utilization_percent"), S("FLOP use"), CELL_F64, S("%"));
    table_column(t, S("memory_utilization_percent"), S("Memory use"), CELL_F64, S("%"));
    table_column(t, S("occurrences"), S("Count"), CELL_U64, S(""));
    table_column(t, S("flops_per_s"), S("FLOP rate"), CELL_F64, S("FLOP/s"));
    table_column(t, S("bytes_per_s"), S("Memory rate"), CELL_F64, S("bytes/s"));
    table_column(t, S("kind"), S("Kind"), CELL_TEXT, S(""));
    table_column(t, S("depth"), S("Depth"), CELL_U64, S(""));
    table_column(t, S("source"), S("Source"), CELL_TEXT, S(""));
}

/* 100 * a / b, unknown where either is. */
static struct cell percent(double a, double b, bool known)
{
    return known && b > 0 ? cell_f64(100.0 * a / b) : cell_unknown();
}

static struct cell name_cell(const struct printer *p, str name, uint32_t depth)
{
    if (name.n == 0)
        name = S("(none)");
    return cell_text(
        p->indent ? arena_printf(p->table->arena, "%*s%.*s", (int)(2 * depth), "", STR_ARG(name))
                  : name);
}

static bool add_row(const struct printer *p, const struct op_node *node, uint32_t depth,
                    uint64_t total_ps)
{
    const struct op_amount *x = &node->sum;
    const struct device_info *d = &p->db->device;
    const double giga_flops = op_giga_rate((double)x->flops, (double)x->time_ps);
    const double giga_bytes = op_giga_rate((double)x->hbm_bytes, (double)x->time_ps);
    struct cell *row = table_row(p->table);
    if (row == NULL)
        return false;
    row[0] = name_cell(p, node->kind == OP_NODE_ROOT ? S("total") : node->name, depth);
    row[1] = cell_u64(x->time_ps);
    row[2] = percent((double)x->time_ps, (double)total_ps, true);
    row[3] = percent(giga_flops, d->peak_tera_flops * 1e3, x->has_cost && x->time_ps > 0);
    row[4] = percent(giga_bytes, d->hbm_gb, x->has_bytes && x->time_ps > 0);
    if (node->kind == OP_NODE_CATEGORY || node->kind == OP_NODE_DUPLICATES ||
        node->kind == OP_NODE_OPERATION)
        row[5] = cell_u64(x->occurrences);
    if (x->has_cost && x->time_ps > 0)
        row[6] = cell_f64(op_giga_rate((double)x->model_flops, (double)x->time_ps) * 1e9);
    if (x->has_bytes && x->time_ps > 0)
        row[7] = cell_f64(giga_bytes * 1e9);
    row[8] = cell_text(str_from(op_node_kind_name(node->kind)));
    row[9] = cell_u64(depth);
    if (node->op != NULL && node->op->source_file.n > 0)
        row[10] =
            cell_text(arena_printf(p->table->arena, "%.*s:%lld", STR_ARG(node->op->source_file),
                                   (long long)node->op->source_line));
    return true;
}

/* One row for the children beyond the limit, so that what is shown still adds up. */
static bool add_rest(const struct printer *p, const struct op_node *node, uint64_t shown,
                     uint32_t depth, uint64_t total_ps)
{
    uint64_t time_ps = 0;
    for (uint64_t i = shown; i < node->n_children; i++)
        time_ps = op_add(time_ps, node->children[i]->sum.time_ps);
    struct cell *row = table_row(p->table);
    if (row == NULL)
        return false;
    row[0] = name_cell(
        p,
        arena_printf(p->table->arena, "%llu more", (unsigned long long)(node->n_children - shown)),
        depth);
    row[1] = cell_u64(time_ps);
    row[2] = percent((double)time_ps, (double)total_ps, true);
    row[8] = cell_text(S("rest"));
    row[9] = cell_u64(depth);
    return true;
}

static bool add_rows(const struct printer *p, const struct op_node *node, uint32_t depth,
                     uint64_t total_ps)
{
    if (!add_row(p, node, depth, total_ps))
        return false;
    const uint64_t shown =
        p->limit > 0 && p->limit < node->n_children ? p->limit : node->n_children;
    for (uint64_t i = 0; i < shown; i++)
        if (!add_rows(p, node->children[i], depth + 1, total_ps))
            return false;
    return shown == node->n_children || add_rest(p, node, shown, depth + 1, total_ps);
}

static void add_values(struct table *t, const struct op_db *db)
{
    uint64_t n_unknown = 0;
    for (uint32_t i = 0; i < db->n_ops; i++)
        n_unknown += !db->ops[i].has_cost && db->ops[i].time_ps == db->ops[i].self_ps;
    const struct device_info *d = &db->device;
    op_db_values(db, t);
    table_value(t, S("device"), S("Device"), cell_text(d->type), S(""));
    table_value(t, S("peak_flops_per_s"), S("Peak FLOP rate"),
                d->peak_tera_flops > 0 ? cell_f64(d->peak_tera_flops * 1e12) : cell_unknown(),
                S("FLOP/s"));
    table_value(t, S("peak_bytes_per_s"), S("Peak memory rate"),
                d->hbm_gb > 0 ? cell_f64(d->hbm_gb * 1e9) : cell_unknown(), S("bytes/s"));
    device_memory_note(d, t);
    if (n_unknown > 0)
        table_note(t, S("cost_unknown"), n_unknown,
                   "operations of unknown cost add time but no FLOP to their groups");
    if (db->hlo.n_damaged > 0)
        table_note(t, S("hlo_damaged"), db->hlo.n_damaged, "HLO modules could not be read");
}

static bool make_table(const struct tool_request *r, bool indent, struct arena *a,
                       struct table **out, struct err *e)
{
    struct op_db db;
    struct question q;
    if (!read_question(r, &q, e) || !op_db_build(&db, r->profile, (str){0}, a, e))
        return false;
    const struct op_node *root =
        op_tree_build(&db, (struct op_tree_options){.group = q.group}, a, e);
    *out = root == NULL ? NULL : table_new(a, S("op_profile"), S("Operation profile"));
    if (*out != NULL) {
        const struct printer p = {.table = *out, .db = &db, .limit = q.limit, .indent = indent};
        declare_columns(*out);
        add_values(*out, &db);
        if (db.n_ops > 0 && !add_rows(&p, root, 0, root->sum.time_ps))
            (*out)->full = true;
    }
    op_db_release(&db);
    return *out != NULL || (root != NULL && arena_full(a, e));
}

static bool op_profile_run(const struct tool_request *r, struct arena *a, struct table **out,
                           struct err *e)
{
    return make_table(r, true, a, out, e);
}

/* The same table, names without the indentation: depth says where a row belongs. */
static bool op_profile_json(const struct tool_request *r, struct arena *a, struct json *j,
                            struct err *e)
{
    struct table *t;
    if (!make_table(r, false, a, &t, e) || !table_ok(t, e))
        return false;
    table_print_json(t, j);
    return true;
}

/* --- XProf's form ------------------------------------------------------------------------------ */

struct writer {
    struct json *json;
    const struct op_db *db;
    uint64_t limit;
    uint64_t total_ps;
};

static void three(struct json *j, const char *key, double a, double b, double c)
{
    json_key(j, key);
    json_array(j);
    json_f64(j, a);
    json_f64(j, b);
    json_f64(j, c);
    json_end(j);
}

/* Share of a peak that the bytes of a node use, at most 1. */
static double memory_use(const struct op_node *node, uint64_t bytes, double peak_gb)
{
    const double use =
        peak_gb > 0 ? op_giga_rate((double)bytes, (double)node->sum.time_ps) / peak_gb : 0;
    return use < 1 ? use : 1;
}

static void write_metrics(const struct writer *w, const struct op_node *node)
{
    struct json *j = w->json;
    const struct op_amount *x = &node->sum;
    const struct device_info *d = &w->db->device;
    const bool fused = node->kind == OP_NODE_FUSED;
    const uint64_t n = fused ? 1 : x->occurrences;
    const double share = w->total_ps > 0 ? (double)x->time_ps / (double)w->total_ps : 0;
    const double use = d->peak_tera_flops > 0 ? op_giga_rate((double)x->flops, (double)x->time_ps) /
                                                    (d->peak_tera_flops * 1e3)
                                              : 0;
    json_key(j, "metrics");
    json_object(j);
    json_kf64(j, "flops", (use < 1 ? use : 1) * share);
    three(j, "bandwidthUtils", memory_use(node, x->hbm_bytes, d->hbm_gb),
          memory_use(node, x->sram_read_bytes, d->sram_read_gb),
          memory_use(node, x->sram_write_bytes, d->sram_write_gb));
    json_ku64(j, "rawTime", x->time_ps);
    json_ku64(j, "rawFlops", x->model_flops);
    three(j, "rawBytesAccessedArray", (double)x->hbm_bytes, (double)x->sram_read_bytes,
          (double)x->sram_write_bytes);
    json_ku64(j, "occurrences", n);
    json_kf64(j, "avgTimePs", n > 0 ? (double)x->time_ps / (double)n : 0);
    json_ku64(j, "bf16Flops", x->flops);
    json_kf64(j, "uncappedFlops", use * share);
    json_kf64(j, "normalizedTimePs", x->normalized_ps);
    json_end(j);
}

struct symbol { /* what XProf says of an instruction */
    str expression, provenance, category, file, stack;
    int64_t line;
    uint64_t program_id;
};

static bool symbol_of(const struct writer *w, const struct op_node *node, struct arena *a,
                      struct symbol *s)
{
    const struct op_metrics *m = node->op;
    *s = (struct symbol){.category = S("IDLE")};
    if (node->kind == OP_NODE_FUSED) {
        const struct hlo_instruction *in = node->fused;
        s->category = hlo_category(node->module, in);
        s->provenance = arena_printf(a, "%.*s:%.*s", STR_ARG(in->op_name), STR_ARG(in->op_type));
        return hlo_text(node->module, in, a, &s->expression);
    }
    if (m == NULL)
        return true;
    *s = (struct symbol){m->long_name,    m->provenance,  m->category,  m->source_file,
                         m->source_stack, m->source_line, m->program_id};
    if (node->kind == OP_NODE_DUPLICATES && str_ends(m->category, S(" fusion")))
        s->provenance = (str){0};
    if (w->db->device.is_gpu && s->file.n == 0)
        s->line = -1;
    return true;
}

static bool write_symbol(const struct writer *w, const struct op_node *node, struct arena *a)
{
    struct json *j = w->json;
    struct symbol s;
    if (!symbol_of(w, node, a, &s))
        return false;
    json_key(j, "xla");
    json_object(j);
    json_kcstr(j, "op", "");
    json_kstr(j, "expression", s.expression);
    json_kstr(j, "provenance", s.provenance);
    json_kstr(j, "category", s.category);
    json_ku64(j, "computationPrimitiveSize", 0);
    json_kcstr(j, "fingerprint", "0");
    json_key(j, "programId");
    json_strf(j, "%llu", (unsigned long long)s.program_id);
    json_key(j, "sourceInfo");
    json_object(j);
    json_kstr(j, "fileName", s.file);
    json_ki64(j, "lineNumber", s.line);
    json_kstr(j, "stackFrame", s.stack);
    json_end(j);
    json_kcstr(j, "xprofKernelMetadata", "");
    json_end(j);
    return true;
}

static bool write_node(const struct writer *w, const struct op_node *node, struct arena *a)
{
    struct json *j = w->json;
    bool ok = true;
    json_object(j);
    json_kstr(j, "name", node->name);
    write_metrics(w, node);
    if (node->kind >= OP_NODE_DUPLICATES)
        ok = write_symbol(w, node, a);
    json_key(j, "children");
    json_array(j);
    for (uint32_t i = 0; ok && i < node->n_children && i < w->limit; i++)
        ok = write_node(w, node->children[i], a);
    json_end(j);
    json_ku64(j, "numChildren", node->n_children);
    json_end(j);
    return ok;
}

/* Nominal clock over the clock that was, of all operations. */
static double clock_scale(const struct op_db *db)
{
    double normalized = 0, time = 0;
    for (uint32_t i = 0; i < db->n_ops; i++) {
        normalized += db->ops[i].normalized_ps;
        time += (double)db->ops[i].time_ps;
    }
    return time > 0 ? normalized / time : 0;
}

static bool write_profile(const struct op_db *db, const struct question *q, struct arena *a,
                          struct json *j, struct err *e)
{
    static const char *const keys[][2] = {{"byProgram", "byProgramExcludeIdle"},
                                          {"byCategory", "byCategoryExcludeIdle"},
                                          {"byProvenance", "byProvenanceExcludeIdle"}};
    json_object(j);
    for (int i = 0; i < 2; i++) {
        const struct op_tree_options options = {.group = q->group,
                                                .exclude_idle = i == 1,
                                                .with_fused = db->device.is_tpu,
                                                .as_xprof = true};
        const struct op_node *root = op_tree_build(db, options, a, e);
        if (root == NULL)
            return false;
        const struct writer w = {j, db, q->limit > 0 ? q->limit : XPROF_CHILDREN,
                                 root->sum.time_ps};
        json_key(j, keys[q->group][i]);
        if (!write_node(&w, root, a))
            return arena_full(a, e);
    }
    json_kcstr(j, "deviceType", db->device.is_tpu ? "TPU" : db->device.is_gpu ? "GPU" : "CPU_ONLY");
    json_kf64(j, "aggDvfsTimeScaleMultiplier", clock_scale(db));
    json_end(j);
    return json_done(j, e);
}

static bool op_profile_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                             struct err *e)
{
    struct op_db db;
    struct question q;
    struct json j;
    if (!read_question(r, &q, e) || !op_db_build(&db, r->profile, (str){0}, a, e))
        return false;
    json_init_buf(&j, out);
    const bool ok = write_profile(&db, &q, a, &j, e);
    op_db_release(&db);
    return ok;
}

const struct tool_functions tool_op_profile = {
    .run = op_profile_run, .xprof = op_profile_xprof, .json = op_profile_json};
