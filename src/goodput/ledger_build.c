/* SPDX-License-Identifier: Apache-2.0 */
#include "goodput/ledger_build.h"

#include <stdlib.h>

struct span { /* something that was going on; the innermost one takes the time */
    int64_t from_ns, to_ns, step;
    enum ledger_category category;
    str detail;
    uint32_t attempt; /* 1… */
    bool open;        /* no END was written */
    bool first;       /* first step of its attempt */
};

struct life { /* one attempt: from the runner's start to its end where there is a runner */
    int64_t from_ns, to_ns, process_from_ns, first_step;
    uint32_t process;
    bool ended;
    int32_t code, signal;
    str reason;
};

struct build {
    struct record_set *set;
    struct arena *arena;
    struct ledger *out;
    struct life *lives;
    uint32_t n_lives, lives_capacity;
    struct span *spans;
    uint32_t n_spans, spans_capacity;
};

static int by_start(const void *a, const void *b)
{
    const struct life *x = a, *y = b;
    return (x->process_from_ns > y->process_from_ns) - (x->process_from_ns < y->process_from_ns);
}

static int by_from(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The lowest rank that any process of the workload has; processes without one count as rank -1
 * and lead only when nobody knows a rank. INT32_MAX when there is no process. */
static int32_t lead_rank(const struct record_set *set)
{
    int32_t best = INT32_MAX;
    bool unknown = false;
    for (uint32_t i = 0; i < set->n_processes; i++) {
        const struct record_process *p = &set->processes[i];
        if (p->runner)
            continue;
        if (p->rank >= 0 && p->rank < best)
            best = p->rank;
        unknown |= p->rank < 0;
    }
    return best == INT32_MAX && unknown ? -1 : best;
}

/* Takes the start of the runner that watched this process, if one did. */
static void widen_to_runner(const struct build *b, struct life *life)
{
    const struct record_process *p = &b->set->processes[life->process];
    for (uint32_t i = 0; i < b->set->n_processes; i++) {
        const struct record_process *r = &b->set->processes[i];
        if (!r->runner || r->start_ns > p->start_ns || r->last_ns < p->start_ns ||
            r->start_ns > life->from_ns)
            continue;
        life->from_ns = r->start_ns;
        if (r->last_ns > life->to_ns)
            life->to_ns = r->last_ns;
    }
}

/* How the attempt ended: the runner knows (a crash logs nothing itself), else the process. */
static void find_end(const struct build *b, struct life *life, const struct record *r)
{
    const struct record_process *p = &b->set->processes[r->process];
    const bool runner = r->kind == RECORD_RUNNER_END && p->start_ns <= life->process_from_ns &&
                        r->wall_ns >= life->process_from_ns;
    if (!runner && !(r->kind == RECORD_PROCESS_END && r->process == life->process && !life->ended))
        return;
    if (runner && life->ended && life->to_ns < r->wall_ns && life->from_ns > p->start_ns)
        return;
    life->ended = true;
    life->code = r->code;
    life->signal = r->signal;
    life->reason = r->text;
    if (runner)
        life->to_ns = r->wall_ns;
}

static bool find_lives(struct build *b)
{
    for (uint32_t i = 0; i < b->set->n_processes; i++) {
        const struct record_process *p = &b->set->processes[i];
        if (p->runner || p->rank != b->out->lead_rank)
            continue;
        if (!ARENA_PUSH(b->arena, b->lives, b->n_lives, b->lives_capacity))
            return false;
        struct life *life = &b->lives[b->n_lives - 1];
        *life = (struct life){p->start_ns, p->last_ns, p->start_ns, -1, i, false, -1, 0, {0}};
        widen_to_runner(b, life);
    }
    qsort(b->lives, b->n_lives, sizeof *b->lives, by_start);
    for (uint32_t k = 0; k < b->n_lives; k++)
        for (uint32_t i = 0; i < b->set->n_records; i++)
            find_end(b, &b->lives[k], &b->set->records[i]);
    /* Two attempts never overlap: the later one's start ends the one before. */
    for (uint32_t k = 0; k + 1 < b->n_lives; k++) {
        struct life *next = &b->lives[k + 1];
        if (next->from_ns < b->lives[k].to_ns)
            next->from_ns = b->lives[k].to_ns < next->process_from_ns ? b->lives[k].to_ns
                                                                      : next->process_from_ns;
        if (b->lives[k].to_ns > next->from_ns)
            b->lives[k].to_ns = next->from_ns;
    }
    return true;
}

static enum ledger_category category_of(enum record_phase phase)
{
    static const struct {
        enum record_phase phase;
        enum ledger_category category;
    } map[] = {
        {PHASE_ACCELERATOR_INIT, LEDGER_INITIALIZATION},
        {PHASE_TRAINING_PREP, LEDGER_TRAINING_PREP},
        {PHASE_DATA_LOADING, LEDGER_DATA_LOADING_SYNC},
        {PHASE_STEP, LEDGER_PRODUCTIVE_STEP},
        {PHASE_CHECKPOINT_SAVE, LEDGER_CHECKPOINT_SAVE},
        {PHASE_CHECKPOINT_RESTORE, LEDGER_CHECKPOINT_RESTORE},
        {PHASE_COMPILE, LEDGER_PROGRAM_STARTUP},
        {PHASE_EVAL, LEDGER_CUSTOM},
        {PHASE_CUSTOM, LEDGER_CUSTOM},
        {PHASE_ELASTIC_WAIT, LEDGER_ELASTIC_WAIT},
        {PHASE_ELASTIC_REINIT, LEDGER_ELASTIC_REINIT},
        {PHASE_IDLE, LEDGER_IDLE},
    };
    for (size_t i = 0; i < sizeof map / sizeof *map; i++)
        if (map[i].phase == phase)
            return map[i].category;
    return LEDGER_OTHER;
}

static bool open_span(struct build *b, const struct record *r, uint32_t attempt)
{
    const struct life *life = &b->lives[attempt - 1];
    if (!ARENA_PUSH(b->arena, b->spans, b->n_spans, b->spans_capacity))
        return false;
    b->spans[b->n_spans - 1] = (struct span){
        .from_ns = r->wall_ns,
        .to_ns = life->to_ns,
        .step = r->step,
        .category = category_of(r->phase),
        .detail = r->phase == PHASE_EVAL                                        ? S("EVAL")
                  : r->phase == PHASE_CUSTOM || r->phase == PHASE_ELASTIC_WAIT ? r->text
                                                                               : (str){0},
        .attempt = attempt,
        .open = true,
    };
    return true;
}

/* Ends the newest open span of that kind in the attempt. An END without a BEGIN says nothing. */
static void close_span(struct build *b, const struct record *r, uint32_t attempt, uint32_t from)
{
    const enum ledger_category category = category_of(r->phase);
    for (uint32_t i = b->n_spans; i-- > from;) {
        struct span *s = &b->spans[i];
        if (!s->open || s->category != category || s->attempt != attempt)
            continue;
        if (r->phase == PHASE_CUSTOM && !str_eq(s->detail, r->text))
            continue;
        s->open = false;
        s->to_ns = r->wall_ns > s->from_ns ? r->wall_ns : s->from_ns;
        return;
    }
}

static bool find_spans(struct build *b)
{
    for (uint32_t k = 0; k < b->n_lives; k++) {
        const uint32_t from = b->n_spans;
        struct life *life = &b->lives[k];
        for (uint32_t i = 0; i < b->set->n_records; i++) {
            const struct record *r = &b->set->records[i];
            if (r->process != life->process || r->phase == PHASE_JOB)
                continue;
            if (r->kind == RECORD_END)
                close_span(b, r, k + 1, from);
            if (r->kind != RECORD_BEGIN)
                continue;
            if (!open_span(b, r, k + 1))
                return false;
            if (r->phase == PHASE_STEP && r->step >= 0 && life->first_step < 0) {
                life->first_step = r->step;
                b->spans[b->n_spans - 1].first = true;
            }
        }
    }
    return true;
}

/* Whether a later attempt did this step, or one before it, again. */
static bool was_redone(const struct build *b, const struct span *s)
{
    for (uint32_t k = s->attempt; k < b->n_lives; k++)
        if (b->lives[k].first_step >= 0 && b->lives[k].first_step <= s->step)
            return true;
    return false;
}

static bool judge_steps(struct build *b)
{
    struct ledger *l = b->out;
    for (uint32_t i = 0; i < b->n_spans; i++) {
        struct span *s = &b->spans[i];
        if (s->category != LEDGER_PRODUCTIVE_STEP)
            continue;
        const bool cut = s->open && (b->lives[s->attempt - 1].ended || s->attempt < b->n_lives);
        const bool wasted = cut || was_redone(b, s);
        if (wasted)
            s->category = LEDGER_WASTED_PROGRESS;
        else if (s->open)
            s->category = LEDGER_IN_PROGRESS_STEP;
        else if (s->step > l->max_productive_step)
            l->max_productive_step = s->step;
        if (s->open)
            continue;
        if (!ARENA_PUSH(b->arena, l->steps, l->n_steps, l->steps_capacity))
            return false;
        l->steps[l->n_steps - 1] = (struct ledger_step){
            s->step, s->from_ns, s->to_ns - s->from_ns, s->attempt, wasted, s->first};
    }
    return true;
}

/* Median and kin of the warm steps (all complete ones but the first of each attempt). */
static bool measure_steps(struct build *b)
{
    struct ledger *l = b->out;
    int64_t *times = ARENA_ARRAY(b->arena, int64_t, l->n_steps + 1), sum = 0;
    uint32_t n = 0;
    if (times == NULL)
        return false;
    for (uint32_t i = 0; i < l->n_steps; i++)
        if (!l->steps[i].startup)
            sum += times[n++] = l->steps[i].dur_ns;
    if (n == 0)
        return true;
    qsort(times, n, sizeof *times, by_value);
    const int64_t p50 = times[n / 2];
    int64_t *off = ARENA_ARRAY(b->arena, int64_t, n), within = 0, n_within = 0;
    if (off == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++)
        off[i] = llabs(times[i] - p50);
    qsort(off, n, sizeof *off, by_value);
    for (uint32_t i = 0; i < n; i++)
        if (times[i] <= p50 + 3 * off[n / 2]) {
            within += times[i];
            n_within++;
        }
    l->step_stats = (struct ledger_step_stats){
        .n = n, .ideal_ns = within / n_within, .mean_ns = sum / n, .p50_ns = p50,
        .p99_ns = times[(uint64_t)(n - 1) * 99 / 100], .deviation_ns = off[n / 2]};
    return true;
}

/* The first step of an attempt beyond its warm time is start-up, laid over the step. */
static bool add_startup(struct build *b)
{
    const uint32_t n = b->n_spans;
    if (b->out->step_stats.n < 2)
        return true;
    for (uint32_t i = 0; i < n; i++) {
        const struct span s = b->spans[i];
        const int64_t extra = s.to_ns - s.from_ns - b->out->step_stats.p50_ns;
        if (!s.first || s.open || extra <= 0)
            continue;
        if (!ARENA_PUSH(b->arena, b->spans, b->n_spans, b->spans_capacity))
            return false;
        b->spans[b->n_spans - 1] = s;
        b->spans[b->n_spans - 1].to_ns = s.from_ns + extra;
        b->spans[b->n_spans - 1].category = LEDGER_PROGRAM_STARTUP;
    }
    return true;
}

static bool add_segment(struct build *b, int64_t from_ns, int64_t to_ns, const struct span *s)
{
    struct ledger *l = b->out;
    struct ledger_segment *last = l->n_segments > 0 ? &l->segments[l->n_segments - 1] : NULL;
    if (last != NULL && last->category == s->category && str_eq(last->detail, s->detail) &&
        last->step == s->step && last->attempt == s->attempt) {
        last->to_ns = to_ns;
        return true;
    }
    if (!ARENA_PUSH(b->arena, l->segments, l->n_segments, l->segments_capacity))
        return false;
    l->segments[l->n_segments - 1] =
        (struct ledger_segment){from_ns, to_ns, s->category, s->detail, s->step, s->attempt};
    return true;
}

/* What went on at at_ns when no span was open: inside an attempt nobody says, between two of them
 * the run recovers. */
static struct span background(const struct build *b, int64_t at_ns)
{
    for (uint32_t k = 0; k < b->n_lives; k++)
        if (at_ns >= b->lives[k].from_ns && at_ns < b->lives[k].to_ns)
            return (struct span){.step = -1, .category = LEDGER_OTHER, .attempt = k + 1};
    return (struct span){.step = -1, .category = LEDGER_INFRASTRUCTURE_RECOVERY};
}

/* All starts and ends of spans and attempts, sorted. */
static int64_t *list_edges(const struct build *b, uint32_t *n)
{
    int64_t *edges = ARENA_ARRAY(b->arena, int64_t, 2 * ((size_t)b->n_spans + b->n_lives) + 1);
    *n = 0;
    if (edges == NULL)
        return NULL;
    for (uint32_t i = 0; i < b->n_spans; i++) {
        edges[(*n)++] = b->spans[i].from_ns;
        edges[(*n)++] = b->spans[i].to_ns;
    }
    for (uint32_t k = 0; k < b->n_lives; k++) {
        edges[(*n)++] = b->lives[k].from_ns;
        edges[(*n)++] = b->lives[k].to_ns;
    }
    qsort(edges, *n, sizeof *edges, by_value);
    return edges;
}

/* Of the open spans the one that began last, of two that began together the shorter one; NULL when
 * none is open. Drops those that have ended from the list. */
static const struct span *innermost(const struct build *b, int64_t at_ns, uint32_t *open,
                                    uint32_t *n_open)
{
    const struct span *best = NULL;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < *n_open; k++) {
        const struct span *s = &b->spans[open[k]];
        if (s->to_ns <= at_ns)
            continue;
        open[kept++] = open[k];
        if (best == NULL || s->from_ns > best->from_ns ||
            (s->from_ns == best->from_ns && s->to_ns < best->to_ns))
            best = s;
    }
    *n_open = kept;
    return best;
}

/* Cuts the run's time at every edge and gives each piece to the innermost span. */
static bool sweep(struct build *b)
{
    const struct ledger *l = b->out;
    uint32_t n = 0, n_open = 0, next = 0;
    const int64_t *edges = list_edges(b, &n);
    uint32_t *open = ARENA_ARRAY(b->arena, uint32_t, (size_t)b->n_spans + 1);
    if (edges == NULL || open == NULL)
        return false;
    qsort(b->spans, b->n_spans, sizeof *b->spans, by_from);
    for (uint32_t i = 0; i + 1 < n; i++) {
        const int64_t at = edges[i], to = edges[i + 1] < l->to_ns ? edges[i + 1] : l->to_ns;
        if (to <= at || at < l->from_ns)
            continue;
        while (next < b->n_spans && b->spans[next].from_ns <= at)
            open[n_open++] = next++;
        const struct span *best = innermost(b, at, open, &n_open), none = background(b, at);
        if (!add_segment(b, at, to, best != NULL ? best : &none))
            return false;
    }
    return true;
}

static bool list_attempts(struct build *b)
{
    struct ledger *l = b->out;
    for (uint32_t k = 0; k < b->n_lives; k++) {
        const struct life *life = &b->lives[k];
        if (!ARENA_PUSH(b->arena, l->attempts, l->n_attempts, l->attempts_capacity))
            return false;
        struct ledger_attempt *a = &l->attempts[k];
        *a = (struct ledger_attempt){k + 1,      life->from_ns, life->to_ns,  life->first_step,
                                     -1,         life->code,    life->signal, life->reason};
        for (uint32_t i = 0; i < l->n_steps; i++)
            if (l->steps[i].attempt == k + 1 && l->steps[i].step > a->last_step)
                a->last_step = l->steps[i].step;
    }
    l->disruptions = l->n_attempts - 1;
    l->running = !b->lives[b->n_lives - 1].ended;
    return true;
}

static bool build_all(struct build *b)
{
    struct ledger *l = b->out;
    if (!find_lives(b) || !find_spans(b) || !judge_steps(b) || !measure_steps(b) ||
        !add_startup(b))
        return false;
    l->from_ns = b->lives[0].from_ns;
    l->to_ns = b->lives[b->n_lives - 1].to_ns;
    l->total_ns = l->to_ns - l->from_ns;
    if (!sweep(b) || !list_attempts(b))
        return false;
    l->totals = ledger_window(l, l->from_ns, l->to_ns, b->arena, &l->n_totals);
    for (uint32_t i = 0; i < l->n_totals; i++)
        if (l->totals[i].category == LEDGER_PRODUCTIVE_STEP)
            l->productive_ns = l->totals[i].total_ns;
    return !b->arena->overflow;
}

bool ledger_build(struct record_set *set, struct ledger *out, struct err *e)
{
    struct build b = {.set = set, .arena = &set->arena, .out = out};
    *out = (struct ledger){.arena = &set->arena, .run = set->run, .lead_rank = lead_rank(set),
                           .max_productive_step = -1};
    if (out->lead_rank == INT32_MAX) {
        err_set(e, ERR_NOT_FOUND, "run '%.*s' has no journal of its workload", STR_ARG(set->run));
        return err_hint(e, "call tachograph.init() or tacho_open() in the training program");
    }
    if (!build_all(&b))
        return arena_full(&set->arena, e);
    must(ledger_check(out));
    return true;
}
