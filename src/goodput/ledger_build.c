/* SPDX-License-Identifier: Apache-2.0 */
#include "goodput/ledger_build.h"

#include "goodput/timeline.h"

/* Records whose time cannot be are dropped before anything subtracts two of them. */
static void drop_impossible(struct record_set *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n_records; i++) {
        const struct record *r = &s->records[i];
        if (r->wall_ns >= 0 && r->wall_ns < TIMELINE_LATEST_NS && r->duration_ns >= 0)
            s->records[kept++] = *r;
    }
    if (kept < s->n_records)
        record_set_note(s, S("time_impossible"), s->n_records - kept,
                        "records with a time before 1970 or after 2239, left out");
    s->n_records = kept;
}

static void emit(struct timeline *t, struct ledger *out, const struct timeline_span *span,
                 enum ledger_category category, int64_t from_ns, int64_t to_ns)
{
    struct ledger_segment *last = out->n_segments > 0 ? &out->segments[out->n_segments - 1] : NULL;
    const int64_t step = span == NULL ? -1 : span->step;
    const uint32_t attempt = span == NULL ? 0 : span->attempt;
    const str detail =
        span == NULL || span->step_index != TIMELINE_NO_STEP ? (str){0} : span->detail;
    if (to_ns <= from_ns)
        return;
    if (last != NULL && last->category == category && last->step == step &&
        last->attempt == attempt && str_eq(last->detail, detail)) {
        last->to_ns = to_ns;
        return;
    }
    if (ARENA_PUSH(t->a, out->segments, out->n_segments, out->segments_capacity))
        out->segments[out->n_segments - 1] =
            (struct ledger_segment){from_ns, to_ns, category, detail, step, attempt};
}

/* A piece of step work is start-up first, then the step's own category, then what came after. */
static void emit_step(struct timeline *t, struct ledger *out, const struct timeline_piece *p,
                      int64_t *used)
{
    const struct timeline_span *span = &t->spans[p->span];
    const struct timeline_step *s = &t->steps[span->step_index];
    int64_t at = p->from_ns;
    while (at < p->to_ns) {
        const int64_t done = used[span->step_index];
        const bool starting = done < s->extra_ns;
        const bool keeping = !starting && done - s->extra_ns < s->keep_ns;
        int64_t n = p->to_ns - at;
        if (starting && s->extra_ns - done < n)
            n = s->extra_ns - done;
        else if (keeping && s->keep_ns - (done - s->extra_ns) < n)
            n = s->keep_ns - (done - s->extra_ns);
        emit(t, out, span,
             starting  ? LEDGER_PROGRAM_STARTUP
             : keeping ? s->own
                       : s->rest,
             at, at + n);
        used[span->step_index] += n;
        at += n;
    }
}

static bool emit_all(struct timeline *t, struct ledger *out, const struct timeline_piece *pieces,
                     uint32_t n)
{
    int64_t *used = ARENA_ARRAY(t->a, int64_t, t->n_steps + 1);
    if (used == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct timeline_span *span =
            pieces[i].span == UINT32_MAX ? NULL : &t->spans[pieces[i].span];
        if (span != NULL && span->step_index != TIMELINE_NO_STEP)
            emit_step(t, out, &pieces[i], used);
        else
            emit(t, out, span, span == NULL ? LEDGER_OTHER : span->category, pieces[i].from_ns,
                 pieces[i].to_ns);
    }
    return true;
}

static void add_step_spans(struct timeline *t)
{
    for (uint32_t i = 0; i < t->n_steps; i++) {
        const struct timeline_step *s = &t->steps[i];
        const uint32_t before = t->n_spans;
        timeline_add(t, LEDGER_PRODUCTIVE_STEP, (str){0}, s->from_ns, s->to_ns, s->step,
                     s->attempt);
        if (t->n_spans > before)
            t->spans[before].step_index = i;
    }
}

static void copy_steps(struct timeline *t, struct ledger *out)
{
    for (uint32_t i = 0; i < t->n_steps; i++) {
        const struct timeline_step *s = &t->steps[i];
        if (!s->lost && !s->in_progress && s->complete && s->step > out->max_productive_step)
            out->max_productive_step = s->step;
        if (!s->complete || s->end_unknown ||
            !ARENA_PUSH(t->a, out->steps, out->n_steps, out->steps_capacity))
            continue;
        out->steps[out->n_steps - 1] =
            (struct ledger_step){s->step, s->from_ns, s->work_ns, s->attempt, s->lost, s->cold};
    }
}

static bool fill(struct timeline *t, struct ledger *out, struct err *e)
{
    const struct ledger_part all = {t->from_ns, t->to_ns};
    uint32_t n = 0;
    add_step_spans(t);
    struct timeline_piece *pieces = timeline_paint(t, &n);
    timeline_judge_steps(t, pieces, n);
    out->from_ns = t->from_ns;
    out->to_ns = t->to_ns;
    out->total_ns = t->to_ns - t->from_ns;
    if (!emit_all(t, out, pieces, n))
        return arena_full(t->a, e);
    copy_steps(t, out);
    out->step_stats = ledger_step_stats(out, &all, 1, t->to_ns, t->a);
    timeline_ranks(t, out);
    out->totals = ledger_window(out, out->from_ns, out->to_ns, t->a, &out->n_totals);
    out->totals_capacity = out->n_totals;
    for (uint32_t i = 0; i < out->n_totals; i++)
        if (out->totals[i].category == LEDGER_PRODUCTIVE_STEP)
            out->productive_ns += out->totals[i].total_ns;
    return t->a->overflow ? arena_full(t->a, e) : true;
}

bool ledger_build(struct record_set *s, struct ledger *out, struct err *e)
{
    struct timeline t = {.set = s, .a = &s->arena, .lead_rank = -1};
    *out = (struct ledger){.arena = &s->arena, .run = s->run, .max_productive_step = -1};
    drop_impossible(s);
    if (!(s->entries_only ? timeline_from_entries(&t, e) : timeline_from_journals(&t, e)))
        return false;
    if (s->arena.overflow)
        return arena_full(&s->arena, e);
    out->lead_rank = t.lead_rank;
    out->attempts = t.attempts;
    out->n_attempts = out->attempts_capacity = t.n_attempts;
    out->disruptions_ns = t.disruptions_ns;
    out->n_disruptions = t.n_disruptions;
    out->n_loads = t.n_loads;
    out->n_prefetches = t.n_prefetches;
    if (t.n_prefetches > 0)
        record_set_note(s, S("load_prefetched"), t.n_prefetches,
                        "data loads of threads that record no step: they do not hold the loop up");
    out->running = t.running;
    out->workload_silent = t.workload_silent;
    if (!fill(&t, out, e))
        return false;
    slow_must(ledger_check(out));
    return true;
}
