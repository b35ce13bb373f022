/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/framework_ops.h"

#include <stdlib.h>

#include "analysis/framework_op.h"
#include "analysis/op_rates.h"

static bool add_operation(struct framework_rows *out, struct op_map *by_name,
                          const struct op_metrics *m, struct arena *a)
{
    struct framework_op op = {FRAMEWORK_UNKNOWN, m->name, S("Unknown")};
    if (m->provenance.n > 0)
        op = framework_op_parse(m->provenance);
    const struct op_key key = {0, op.name};
    const uint32_t *at = op_map_get(by_name, key);
    if (at == NULL) {
        if (!ARENA_PUSH(a, out->items, out->n, out->capacity))
            return false;
        out->items[out->n - 1] = (struct framework_row){.name = op.name, .type = op.type};
        *op_map_put(by_name, key) = out->n - 1;
    }
    struct framework_row *row = &out->items[at == NULL ? out->n - 1 : *at];
    row->occurrences = m->occurrences > row->occurrences ? m->occurrences : row->occurrences;
    row->time_ps = op_add(row->time_ps, m->time_ps);
    row->self_ps = op_add(row->self_ps, m->self_ps);
    row->matrix_ps = op_add(row->matrix_ps, m->matrix_ps);
    if (!op_runs_others(m))
        op_work_add(&row->work, m, 1);
    row->is_eager = m->is_eager;
    row->uses_matrix_units |= m->uses_matrix_units;
    return true;
}

static int by_self(const void *x, const void *y)
{
    const struct framework_row *a = x, *b = y;
    if (a->self_ps != b->self_ps)
        return a->self_ps > b->self_ps ? -1 : 1;
    return str_cmp(a->name, b->name);
}

bool framework_rows_of(const struct op_db *db, struct arena *a, struct framework_rows *out,
                       struct err *e)
{
    struct op_map by_name = {0};
    bool ok = true;
    *out = (struct framework_rows){0};
    for (uint32_t i = 0; ok && i < db->n_ops; i++)
        ok = add_operation(out, &by_name, &db->ops[i], a);
    op_map_release(&by_name);
    if (!ok)
        return arena_full(a, e);
    if (out->n > 1)
        qsort(out->items, out->n, sizeof *out->items, by_self);
    return true;
}
