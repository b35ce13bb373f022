/* SPDX-License-Identifier: Apache-2.0 */
/* rank_compare: the steps of each rank beside those of its cohort, and each device's whole window. */
#include <math.h>

#include "analysis/rank_compare.h"
#include "analysis/tool.h"

static struct cell time_cell(const struct rank_value *v)
{
    return v->known ? cell_u64((uint64_t)llround(v->value_ps)) : cell_unknown();
}

static struct cell number(double v)
{
    return isnan(v) ? cell_unknown() : cell_f64(v);
}

static void declare_participant(struct table *t)
{
    table_column(t, S("participant"), S("Participant"), CELL_TEXT, S(""));
    table_column(t, S("rank"), S("Rank"), CELL_I64, S(""));
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("device"), S("Device"), CELL_TEXT, S(""));
}

static void fill_participant(struct cell *row, const struct work_device *d)
{
    row[0] = cell_text(d->label);
    row[1] = d->has_rank ? cell_i64(d->rank) : cell_unknown();
    row[2] = d->trace->host.n > 0 ? cell_text(d->trace->host) : cell_unknown();
    row[3] = cell_text(d->name);
}

/* ---- means of a step ---- */

static struct table *ranks_table(const struct rank_compare *r, struct arena *a)
{
    static const enum rank_part shown[] = {RANK_STEP, RANK_COMPUTE, RANK_COMM,
                                           RANK_COPY, RANK_IDLE,    RANK_WAIT};
    struct table *t = table_new(a, S("rank_compare"), S("Ranks, a step"));
    if (t == NULL)
        return NULL;
    declare_participant(t);
    table_column(t, S("cohort"), S("Cohort"), CELL_U64, S(""));
    table_column(t, S("steps"), S("Steps"), CELL_U64, S(""));
    table_column(t, S("step_ps"), S("Step"), CELL_U64, S("ps"));
    table_column(t, S("compute_ps"), S("Compute"), CELL_U64, S("ps"));
    table_column(t, S("comm_exposed_ps"), S("Communication alone"), CELL_U64, S("ps"));
    table_column(t, S("copy_exposed_ps"), S("Copies alone"), CELL_U64, S("ps"));
    table_column(t, S("idle_ps"), S("Idle"), CELL_U64, S("ps"));
    table_column(t, S("comm_wait_ps"), S("Waiting for others"), CELL_U64, S("ps"));
    for (uint32_t i = 0; i < r->budget.work.n; i++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            return NULL;
        fill_participant(row, &r->budget.work.items[i]);
        row[4] = cell_u64(r->rows[i].cohort);
        row[5] = cell_u64(r->rows[i].n_steps);
        for (size_t k = 0; k < sizeof shown / sizeof *shown; k++)
            row[6 + k] = time_cell(&r->rows[i].parts[shown[k]]);
    }
    return t;
}

/* ---- beside the median ---- */

static bool part_row(struct table *t, const struct rank_compare *r, uint32_t device,
                     enum rank_part part)
{
    const struct rank_value *v = &r->rows[device].parts[part];
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = cell_text(r->budget.work.items[device].label);
    row[1] = cell_u64(r->rows[device].cohort);
    row[2] = cell_u64(r->rows[device].cohort_size);
    row[3] = cell_text(str_from(rank_part_word(part)));
    row[4] = time_cell(v);
    row[5] = cell_u64((uint64_t)llround(v->median_ps));
    row[6] = cell_i64(llround(v->value_ps - v->median_ps));
    row[7] = number(v->ratio);
    row[8] = number(v->z);
    row[9] = v->has_outlier ? cell_bool(v->outlier) : cell_unknown();
    return true;
}

static struct table *parts_table(const struct rank_compare *r, struct arena *a)
{
    struct table *t = table_new(a, S("parts"), S("Beside the cohort's median"));
    if (t == NULL)
        return NULL;
    table_column(t, S("participant"), S("Participant"), CELL_TEXT, S(""));
    table_column(t, S("cohort"), S("Cohort"), CELL_U64, S(""));
    table_column(t, S("cohort_size"), S("Cohort's size"), CELL_U64, S(""));
    table_column(t, S("part"), S("Part"), CELL_TEXT, S(""));
    table_column(t, S("value_ps"), S("A step"), CELL_U64, S("ps"));
    table_column(t, S("median_ps"), S("Median"), CELL_U64, S("ps"));
    table_column(t, S("excess_ps"), S("Over the median"), CELL_I64, S("ps"));
    table_column(t, S("ratio"), S("Ratio"), CELL_F64, S(""));
    table_column(t, S("z"), S("z"), CELL_F64, S(""));
    table_column(t, S("outlier"), S("Outlier"), CELL_BOOL, S(""));
    for (uint32_t i = 0; i < r->budget.work.n; i++)
        for (uint32_t p = 0; p < RANK_PARTS; p++)
            if (r->rows[i].parts[p].known && !part_row(t, r, i, (enum rank_part)p))
                return NULL;
    return t;
}

/* ---- the whole window of each device ---- */

static uint64_t length(const struct spans *s)
{
    return spans_within(s, 0, UINT64_MAX);
}

static struct table *windows_table(const struct rank_compare *r, struct arena *a)
{
    struct table *t = table_new(a, S("windows"), S("From first to last work"));
    if (t == NULL)
        return NULL;
    declare_participant(t);
    table_column(t, S("window_ps"), S("Window"), CELL_U64, S("ps"));
    table_column(t, S("busy_ps"), S("Busy"), CELL_U64, S("ps"));
    table_column(t, S("compute_ps"), S("Compute"), CELL_U64, S("ps"));
    table_column(t, S("comm_ps"), S("Communication"), CELL_U64, S("ps"));
    table_column(t, S("comm_exposed_ps"), S("Communication alone"), CELL_U64, S("ps"));
    table_column(t, S("copy_ps"), S("Copies"), CELL_U64, S("ps"));
    table_column(t, S("copy_exposed_ps"), S("Copies alone"), CELL_U64, S("ps"));
    table_column(t, S("idle_ps"), S("Idle"), CELL_U64, S("ps"));
    for (uint32_t i = 0; i < r->budget.work.n; i++) {
        const struct work_device *d = &r->budget.work.items[i];
        const bool is_cpu = d->plane_index == UINT32_MAX;
        const uint64_t busy = length(&d->busy), compute = length(&d->compute),
                       both = length(&d->compute_comm);
        struct cell *row = table_row(t);
        if (row == NULL)
            return NULL;
        fill_participant(row, d);
        row[4] = cell_u64(d->to_ps > d->from_ps ? d->to_ps - d->from_ps : 0);
        row[5] = cell_u64(busy);
        row[6] = cell_u64(compute);
        row[7] = cell_u64(length(&d->comm));
        row[8] = cell_u64(both - compute);
        row[9] = is_cpu ? cell_unknown() : cell_u64(length(&d->copy));
        row[10] = is_cpu ? cell_unknown() : cell_u64(busy - both);
        row[11] = cell_u64(d->to_ps > d->from_ps ? d->to_ps - d->from_ps - busy : 0);
    }
    return t;
}

static void verdict(struct table *t, const struct rank_compare *r)
{
    const bool found = r->straggler != UINT32_MAX;
    table_value(t, S("cohorts"), S("Cohorts"), cell_u64(r->n_cohorts), S(""));
    table_value(t, S("straggler"), S("Straggler"),
                found ? cell_text(r->budget.work.items[r->straggler].label) : cell_unknown(),
                S(""));
    table_value(t, S("straggler_part"), S("by its"),
                found ? cell_text(str_from(rank_part_word(r->culprit))) : cell_unknown(), S(""));
    table_value(t, S("straggler_excess_ps"), S("over the median, a step"),
                found ? cell_u64((uint64_t)llround(r->excess_ps)) : cell_unknown(), S("ps"));
    if (r->budget.work.n < 3)
        table_note(t, S("too_few"), 1,
                   "no rank can stand out among fewer than three that do equal work");
}

static bool rank_compare_run(const struct tool_request *r, struct arena *a, struct table **out,
                             struct err *e)
{
    struct rank_compare c;
    if (!rank_compare_of(r->profile, a, &c, e))
        return false;
    struct table *ranks = ranks_table(&c, a), *parts = parts_table(&c, a),
                 *windows = windows_table(&c, a);
    if (ranks == NULL || parts == NULL || windows == NULL)
        return arena_full(a, e);
    verdict(ranks, &c);
    ranks->next = windows;
    windows->next = parts;
    *out = ranks;
    return true;
}

const struct tool_functions tool_rank_compare = {.run = rank_compare_run};
