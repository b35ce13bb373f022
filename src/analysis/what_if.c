/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/what_if.h"

#include <stdlib.h>

#include "analysis/cohort.h"
#include "base/limits.h"

struct builder {
    const struct step_budget *budget;
    const struct what_if_question *question;
    struct arena *arena;
    struct err *err;
    struct what_if *out;
    uint32_t *cohorts; /* of each device */
};

/* --- what it took ----------------------------------------------------------------------------- */

struct named { /* of one device */
    struct builder *b;
    const struct work_device *device;
    struct memo names;
    struct spans others; /* work that is not asked about */
    struct arena scratch;
};

enum { OTHER_NAME = 1, ASKED_NAME };

static bool is_asked(struct named *n, uint32_t line, const struct trace_event *ev)
{
    const struct trace *t = n->device->trace;
    uint8_t *known = memo_at(&n->names, t, &t->lines[line], ev);
    if (*known != 0)
        return *known == ASKED_NAME;
    const str name = trace_event_name(t, &t->lines[line], ev);
    str head, rest = n->b->question->ops;
    *known = OTHER_NAME;
    while (str_cut(rest, ',', &head, &rest))
        if (head.n > 0 && str_starts(name, head))
            *known = ASKED_NAME;
    return *known == ASKED_NAME;
}

static bool see(void *ctx, uint32_t line, const struct trace_cursor *c, enum work_kind kind,
                struct err *e)
{
    struct named *n = ctx;
    const struct trace_event *ev = &c->event;
    if (kind == WORK_NONE || kind == WORK_WAIT || ev->num_occurrences > 0)
        return true;
    if (is_asked(n, line, ev)) {
        n->b->out->n_named++;
        n->b->out->is_waiting |= kind == WORK_COMM;
        return true;
    }
    return spans_add(&n->others, &n->scratch, ev->start_ps, ev->start_ps + ev->dur_ps) ||
           arena_full(&n->scratch, e);
}

static bool measure_ops(struct builder *b, uint32_t device, uint64_t *took_ps)
{
    const struct budget_device *d = &b->budget->devices[device];
    struct named n = {.b = b, .device = d->device};
    arena_init(&n.scratch, "operations of a device", LIMIT_ARENA_TOOL_BYTES);
    const bool ok = work_each(d->device, see, &n, b->err);
    memo_release(&n.names);
    spans_close(&n.others);
    for (uint32_t i = 0; ok && i < d->n_steps; i++)
        took_ps[i] = spans_within(&d->device->busy, d->steps[i].begin_ps, d->steps[i].end_ps) -
                     spans_within(&n.others, d->steps[i].begin_ps, d->steps[i].end_ps);
    arena_release(&n.scratch);
    return ok;
}

static bool measure(struct builder *b, uint32_t device, uint64_t **out)
{
    const struct budget_device *d = &b->budget->devices[device];
    uint64_t *took_ps = *out = ARENA_ARRAY(b->arena, uint64_t, d->n_steps);
    if (took_ps == NULL && d->n_steps > 0)
        return arena_full(b->arena, b->err);
    if (b->question->ops.n > 0)
        return measure_ops(b, device, took_ps);
    for (uint32_t i = 0; i < d->n_steps; i++)
        took_ps[i] = b->question->part == BUDGET_PARTS ? budget_idle_ps(&d->steps[i])
                                                       : d->steps[i].part_ps[b->question->part];
    return true;
}

/* --- what it takes in the middle -------------------------------------------------------------- */

static bool add_rows(struct builder *b, uint32_t device, const uint64_t *took_ps)
{
    const struct budget_device *d = &b->budget->devices[device];
    struct what_if *out = b->out;
    for (uint32_t i = 0; i < d->n_steps; i++) {
        if (!d->steps[i].is_complete)
            continue;
        if (!ARENA_PUSH(b->arena, out->rows, out->n_rows, out->rows_capacity))
            return arena_full(b->arena, b->err);
        out->rows[out->n_rows - 1] =
            (struct what_if_row){.device = d,
                                 .step = &d->steps[i],
                                 .cohort = b->cohorts[device],
                                 .now_ps = took_ps[i],
                                 .step_ps = d->steps[i].end_ps - d->steps[i].begin_ps};
    }
    return true;
}

static int by_number(const void *x, const void *y)
{
    const struct what_if_row *a = x, *b = y;
    if (a->step->number != b->step->number)
        return a->step->number < b->step->number ? -1 : 1;
    if (a->cohort != b->cohort)
        return a->cohort < b->cohort ? -1 : 1;
    return a->device < b->device ? -1 : a->device > b->device;
}

static int by_device(const void *x, const void *y)
{
    const struct what_if_row *a = x, *b = y;
    return a->device < b->device ? -1 : a->device > b->device;
}

static int by_value(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static uint64_t median_of(uint64_t *values, uint32_t n)
{
    qsort(values, n, sizeof *values, by_value);
    const uint64_t low = values[(n - 1) / 2], high = values[n / 2];
    return low + (high - low) / 2;
}

static uint64_t waits_ps(const struct what_if_row *r)
{
    return budget_idle_ps(r->step) + r->step->part_ps[BUDGET_COMM];
}

static void answer(struct what_if_row *r, uint64_t median_ps, uint32_t n, uint64_t waited_ps)
{
    r->median_ps = median_ps;
    r->n_cohort = n;
    r->waited_ps = waited_ps;
    r->then_ps = r->step_ps - waited_ps - r->now_ps + median_ps;
}

/* Rows of one step and cohort. `values` has room for all rows. */
static void compare_cohort(const struct builder *b, struct what_if_row *rows, uint32_t n,
                           uint64_t *values)
{
    uint64_t least_ps = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        values[i] = rows[i].now_ps;
        least_ps = waits_ps(&rows[i]) < least_ps ? waits_ps(&rows[i]) : least_ps;
    }
    const uint64_t median_ps = median_of(values, n);
    for (uint32_t i = 0; i < n; i++)
        answer(&rows[i], median_ps, n, b->out->is_waiting ? 0 : waits_ps(&rows[i]) - least_ps);
}

/* Rows of one device: those without a cohort against each other. */
static void compare_alone(struct what_if_row *rows, uint32_t n, uint64_t *values)
{
    uint32_t alone = 0;
    for (uint32_t i = 0; i < n; i++)
        if (rows[i].n_cohort == 0)
            values[alone++] = rows[i].now_ps;
    if (alone == 0)
        return;
    const uint64_t median_ps = median_of(values, alone);
    for (uint32_t i = 0; i < n; i++)
        if (rows[i].n_cohort == 0)
            answer(&rows[i], median_ps, alone, 0);
}

static void compare(struct builder *b, uint64_t *values)
{
    struct what_if_row *rows = b->out->rows;
    const uint32_t n = b->out->n_rows;
    if (n > 1)
        qsort(rows, n, sizeof *rows, by_number);
    for (uint32_t from = 0, to; from < n; from = to) {
        to = from + 1;
        while (to < n && rows[to].step->number == rows[from].step->number &&
               rows[to].cohort == rows[from].cohort)
            to++;
        if (to - from > 1)
            compare_cohort(b, &rows[from], to - from, values);
    }
    if (n > 1)
        qsort(rows, n, sizeof *rows, by_device);
    for (uint32_t from = 0, to; from < n; from = to) {
        to = from + 1;
        while (to < n && rows[to].device == rows[from].device)
            to++;
        compare_alone(&rows[from], to - from, values);
    }
    if (n > 1)
        qsort(rows, n, sizeof *rows, by_number);
}

static bool sum_steps(struct builder *b, uint64_t *values)
{
    struct what_if *out = b->out;
    for (uint32_t i = 0; i < out->n_rows; i++) {
        const struct what_if_row *r = &out->rows[i];
        if (out->n_steps == 0 || out->steps[out->n_steps - 1].number != r->step->number) {
            if (!ARENA_PUSH(b->arena, out->steps, out->n_steps, out->steps_capacity))
                return arena_full(b->arena, b->err);
            out->steps[out->n_steps - 1] = (struct what_if_step){.number = r->step->number};
        }
        struct what_if_step *s = &out->steps[out->n_steps - 1];
        s->now_ps = r->step_ps > s->now_ps ? r->step_ps : s->now_ps;
        s->then_ps = r->then_ps > s->then_ps ? r->then_ps : s->then_ps;
    }
    if (out->n_steps == 0)
        return true;
    for (uint32_t i = 0; i < out->n_steps; i++)
        values[i] = out->steps[i].now_ps;
    out->median_now_ps = median_of(values, out->n_steps);
    for (uint32_t i = 0; i < out->n_steps; i++)
        values[i] = out->steps[i].then_ps;
    out->median_then_ps = median_of(values, out->n_steps);
    return true;
}

bool what_if_of(const struct step_budget *budget, const struct what_if_question *q, struct arena *a,
                struct what_if *out, struct err *e)
{
    struct builder b = {budget, q, a, e, out, ARENA_ARRAY(a, uint32_t, budget->work.n)};
    *out = (struct what_if){0};
    if (b.cohorts == NULL && budget->work.n > 0)
        return arena_full(a, e);
    (void)cohorts_of(budget, b.cohorts);
    out->is_waiting = q->ops.n == 0 && q->part != BUDGET_COMPUTE && q->part != BUDGET_COPY;
    for (uint32_t i = 0; i < budget->work.n; i++) {
        uint64_t *took_ps;
        if (!measure(&b, i, &took_ps) || !add_rows(&b, i, took_ps))
            return false;
    }
    uint64_t *values = ARENA_ARRAY(a, uint64_t, out->n_rows);
    if (values == NULL && out->n_rows > 0)
        return arena_full(a, e);
    compare(&b, values);
    return sum_steps(&b, values);
}
