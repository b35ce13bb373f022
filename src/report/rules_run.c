/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over a run's ledger. Amounts are seconds of the ledger, percent is of the elapsed time. */
#include <stdlib.h>

#include "base/clock.h"
#include "report/rules.h"

#define SECONDS(ns) ((double)(ns) / 1e9)
#define SLOW_STARTUP_NS (600 * NS_PER_S)
#define SLOW_STARTUP_PERCENT 5.0 /* of the run, that all starts took: below it nothing is said */
#define SHORT_RUN_NS (3600 * NS_PER_S)
#define JITTER_STEPS_MIN 100
#define STALL_STEPS_MIN 10
#define STALL_RATIO 5 /* so many medians long is no jitter: a step like that stands for itself */
#define JITTER_RATIO 1.5
#define JITTER_DEVIATION 0.05
#define SLOW_STEP_MIN 0.05 /* beyond the median, and three MADs */
#define WARM_UP_STEPS 3
#define SAVE_BLOCKS_STEPS 10
#define SLOW_STRETCH_SHARE                                                                         \
    0.5 /* a load is of the slow kind from this share of a slow one (p90) on */

static double share_of(const struct ledger *l, int64_t ns)
{
    return l->total_ns > 0 ? 100.0 * (double)ns / (double)l->total_ns : 0;
}

static struct finding_dose dose_of(const struct ledger *l, int64_t ns, const char *bound)
{
    return (struct finding_dose){.metric = "elapsed",
                                 .amount_s = SECONDS(ns),
                                 .percent = share_of(l, ns),
                                 .bound = bound,
                                 .confidence = FINDING_HIGH,
                                 .cap = FINDING_P0};
}

static bool recorded(const struct rules *x, enum record_phase phase)
{
    const struct record_set *s = x->in->set;
    for (uint32_t i = 0; i < s->n_records; i++)
        if (s->records[i].phase == phase &&
            (s->records[i].kind == RECORD_BEGIN || s->records[i].kind == RECORD_CHECKPOINT))
            return true;
    return false;
}

static void set_span(struct finding *f, int64_t from_ns, int64_t to_ns)
{
    f->has_span = true;
    f->span_from = from_ns;
    f->span_to = to_ns;
}

static int compare_i64(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

struct loads { /* waits for input inside the loop */
    int64_t total_ns, *each_ns;
    uint32_t n, capacity;
    int64_t slow_ns, slow_from_ns, slow_to_ns, slow_first, slow_last; /* the slow ones among them */
    uint32_t n_slow;
};

/* Loads after the first step of their attempt; the one before it belongs to starting up. */
static bool is_loop_load(const struct ledger *l, const struct ledger_segment *s)
{
    if (s->category != LEDGER_DATA_LOADING_SYNC || s->attempt == 0 || s->attempt > l->n_attempts)
        return false;
    const struct ledger_attempt *a = &l->attempts[s->attempt - 1];
    for (uint32_t i = 0; i < l->n_steps; i++)
        if (l->steps[i].attempt == a->number)
            return l->steps[i].from_ns < s->from_ns;
    return false;
}

static void find_slow_loads(const struct ledger *l, struct loads *out)
{
    if (out->n == 0)
        return;
    qsort(out->each_ns, out->n, sizeof *out->each_ns, compare_i64);
    const uint64_t p90 = (uint64_t)(out->n - 1) * 9 / 10;
    const double slow = (double)out->each_ns[p90] * SLOW_STRETCH_SHARE;
    out->slow_first = INT64_MAX;
    out->slow_last = -1;
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        const int64_t ns = s->to_ns - s->from_ns;
        if ((double)ns < slow || !is_loop_load(l, s))
            continue;
        if (out->n_slow++ == 0)
            out->slow_from_ns = s->from_ns;
        out->slow_to_ns = s->to_ns;
        out->slow_ns += ns;
        if (s->step >= 0 && s->step < out->slow_first)
            out->slow_first = s->step;
        if (s->step > out->slow_last)
            out->slow_last = s->step;
    }
}

static struct loads find_loads(struct rules *x)
{
    const struct ledger *l = x->in->ledger;
    struct loads out = {0};
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        if (!is_loop_load(l, s) || !ARENA_PUSH(&x->r->arena, out.each_ns, out.n, out.capacity))
            continue;
        out.each_ns[out.n - 1] = s->to_ns - s->from_ns;
        out.total_ns += s->to_ns - s->from_ns;
    }
    find_slow_loads(l, &out);
    return out;
}

static void input_bound(struct rules *x)
{
    const struct ledger *l = x->in->ledger;
    if (x->in->set->entries_only || l->n_loads == 0) {
        rules_abstain(x, FINDING_INPUT_BOUND, "records of data loading inside the loop");
        return;
    }
    const struct loads loads = find_loads(x);
    if (loads.n_slow == 0) /* none inside the loop */
        return;
    struct finding *f = rules_fire(x, FINDING_INPUT_BOUND, dose_of(l, loads.total_ns, "upper"));
    if (f == NULL)
        return;
    const str total = rules_duration(x, loads.total_ns), slow = rules_duration(x, loads.slow_ns);
    const int64_t each_ns = loads.slow_ns / loads.n_slow;
    const str each = rules_duration(x, each_ns);
    f->what =
        arena_printf(&x->r->arena, "The loop waited %.*s for its next batch, %.1f %% of the run",
                     STR_ARG(total), share_of(l, loads.total_ns));
    str where = {0};
    if (loads.slow_last >= 0) {
        where = arena_printf(&x->r->arena, "steps %lld to %lld", (long long)loads.slow_first,
                             (long long)loads.slow_last);
        f->what = arena_printf(&x->r->arena, "%.*s; %.*s of it in %u loads of %.*s, %.*s.",
                               STR_ARG(f->what), STR_ARG(slow), loads.n_slow, STR_ARG(each),
                               STR_ARG(where));
    } else {
        f->what = arena_printf(&x->r->arena, "%.*s.", STR_ARG(f->what));
    }
    rules_evidence(x, f, "goodput", "loop_load_wait", cell_f64(SECONDS(loads.total_ns)), "s",
                   S("lead rank, inside the loop"));
    rules_evidence(x, f, "goodput", "loop_load_share", cell_f64(share_of(l, loads.total_ns)), "%",
                   S("of elapsed time"));
    rules_evidence(x, f, "goodput", "slow_loads", cell_u64(loads.n_slow), "", where);
    rules_evidence(x, f, "goodput", "slow_load_time", cell_f64(SECONDS(each_ns)), "s",
                   S("mean of the slow loads"));
    rules_evidence(x, f, "goodput", "slow_loads_total", cell_f64(SECONDS(loads.slow_ns)), "s",
                   where);
    set_span(f, loads.slow_from_ns, loads.slow_to_ns);
}

/* A save at the very end delays no step. It is no sign of blocking saves by itself; where the saves before
 * it block, one like them (up to twice the longest) is part of what saving costs. */
static int64_t last_step_from(const struct ledger *l)
{
    int64_t last = INT64_MIN;
    for (uint32_t i = 0; i < l->n_segments; i++)
        if (l->segments[i].category == LEDGER_PRODUCTIVE_STEP ||
            l->segments[i].category == LEDGER_WASTED_PROGRESS ||
            l->segments[i].category == LEDGER_IN_PROGRESS_STEP)
            last = l->segments[i].from_ns;
    return last;
}

struct saves {
    int64_t total_ns, longest_ns; /* the longest of those inside the loop */
    int64_t from_ns, to_ns;
    uint32_t n;
};

/* Those inside the loop, and after its last step those that are like them: a last export holds no step up. */
static struct saves find_saves(const struct ledger *l)
{
    const int64_t last = last_step_from(l);
    struct saves v = {.from_ns = -1, .to_ns = -1};
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        if (s->category != LEDGER_CHECKPOINT_SAVE || s->from_ns >= last)
            continue;
        const int64_t ns = s->to_ns - s->from_ns;
        v.total_ns += ns;
        v.longest_ns = ns > v.longest_ns ? ns : v.longest_ns;
        v.from_ns = v.n++ == 0 ? s->from_ns : v.from_ns;
        v.to_ns = s->to_ns;
    }
    for (uint32_t i = 0; i < l->n_segments && v.n > 0; i++) {
        const struct ledger_segment *s = &l->segments[i];
        if (s->category != LEDGER_CHECKPOINT_SAVE || s->from_ns < last ||
            s->to_ns - s->from_ns > 2 * v.longest_ns)
            continue;
        v.total_ns += s->to_ns - s->from_ns;
        v.to_ns = s->to_ns;
        v.n++;
    }
    return v;
}

static void checkpoint_blocking(struct rules *x)
{
    const struct ledger *l = x->in->ledger;
    if (!recorded(x, PHASE_CHECKPOINT_SAVE)) {
        rules_abstain(x, FINDING_CHECKPOINT_BLOCKING, "records of checkpoint saves");
        return;
    }
    const struct saves v = find_saves(l);
    struct finding *f = rules_fire(x, FINDING_CHECKPOINT_BLOCKING, dose_of(l, v.total_ns, "upper"));
    if (f == NULL)
        return;
    const str sum = rules_duration(x, v.total_ns), most = rules_duration(x, v.longest_ns);
    f->what = arena_printf(
        &x->r->arena,
        "%u saves blocked the loop for %.*s, %.1f %% of the run; the longest took %.*s", v.n,
        STR_ARG(sum), share_of(l, v.total_ns), STR_ARG(most));
    const int64_t p50 = l->step_stats.n > 0 ? l->step_stats.p50_ns : 0;
    if (p50 > 0 && v.longest_ns / p50 >= SAVE_BLOCKS_STEPS)
        f->what = arena_printf(&x->r->arena, "%.*s, the time of %lld steps.", STR_ARG(f->what),
                               (long long)(v.longest_ns / p50));
    else
        f->what = arena_printf(&x->r->arena, "%.*s.", STR_ARG(f->what));
    rules_evidence(x, f, "goodput", "checkpoint_save", cell_f64(SECONDS(v.total_ns)), "s",
                   S("lead rank"));
    rules_evidence(x, f, "goodput", "saves", cell_u64(v.n), "", S("lead rank"));
    rules_evidence(x, f, "goodput", "longest_save", cell_f64(SECONDS(v.longest_ns)), "s", S(""));
    if (p50 > 0)
        rules_evidence(x, f, "goodput", "step_time_p50", cell_f64(SECONDS(p50)), "s",
                       S("warm steps"));
    rules_evidence(x, f, "goodput", "checkpoint_save_share", cell_f64(share_of(l, v.total_ns)), "%",
                   S("of elapsed time"));
    set_span(f, v.from_ns, v.to_ns);
}

/* An attempt that ended of its own will and was continued at an older step meant to. */
static bool planned(const struct ledger *l, uint32_t attempt)
{
    return attempt >= 1 && attempt <= l->n_attempts && l->attempts[attempt - 1].code == 0 &&
           l->attempts[attempt - 1].signal == 0;
}

/* Downtime larger than the lost work is the larger loss: the sentence must not hide it. */
static void say_downtime(struct rules *x, struct finding *f, int64_t lost_ns)
{
    const struct ledger *l = x->in->ledger;
    int64_t away = 0;
    for (uint32_t i = 0; i < l->n_totals; i++)
        if (l->totals[i].category == LEDGER_INFRASTRUCTURE_RECOVERY)
            away += l->totals[i].total_ns;
    if (away <= lost_ns)
        return;
    const str gone = rules_duration(x, away);
    f->what = arena_printf(&x->r->arena,
                           "%.*s Another %.*s (%.1f %%) passed before the next attempt began.",
                           STR_ARG(f->what), STR_ARG(gone), share_of(l, away));
    rules_evidence(x, f, "goodput", "infrastructure_recovery", cell_f64(SECONDS(away)), "s",
                   S("not in the cost"));
}

/* A cut step that stood for long is no work that was done: the longest one is named. */
static void say_stalled(struct rules *x, struct finding *f)
{
    const struct ledger *l = x->in->ledger;
    const struct ledger_segment *most = NULL;
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        if (s->category == LEDGER_WASTED_PROGRESS && s->step >= 0 && !planned(l, s->attempt) &&
            (most == NULL || s->to_ns - s->from_ns > most->to_ns - most->from_ns))
            most = s;
    }
    if (most == NULL || l->step_stats.n < STALL_STEPS_MIN ||
        most->to_ns - most->from_ns <= STALL_RATIO * l->step_stats.p50_ns)
        return;
    const int64_t stood = most->to_ns - most->from_ns;
    const str text = rules_duration(x, stood), p50 = rules_duration(x, l->step_stats.p50_ns);
    f->what = arena_printf(&x->r->arena, "%.*s Of it %.*s are step %lld alone (median step %.*s).",
                           STR_ARG(f->what), STR_ARG(text), (long long)most->step, STR_ARG(p50));
    rules_evidence(x, f, "goodput", "longest_lost_step", cell_f64(SECONDS(stood)), "s",
                   arena_printf(&x->r->arena, "step %lld", (long long)most->step));
}

static void restart_wasted(struct rules *x)
{
    const struct ledger *l = x->in->ledger;
    int64_t total = 0, from = -1, to = -1;
    uint32_t steps = 0;
    if (l->n_steps == 0) {
        rules_abstain(x, FINDING_RESTART_WASTED, "records of steps");
        return;
    }
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        if (s->category != LEDGER_WASTED_PROGRESS || planned(l, s->attempt))
            continue;
        total += s->to_ns - s->from_ns;
        from = from < 0 ? s->from_ns : from;
        to = s->to_ns;
    }
    for (uint32_t i = 0; i < l->n_steps; i++)
        steps += l->steps[i].wasted && !planned(l, l->steps[i].attempt);
    struct finding *f = rules_fire(x, FINDING_RESTART_WASTED, dose_of(l, total, "exact"));
    if (f == NULL)
        return;
    const str lost = rules_duration(x, total);
    f->what = arena_printf(&x->r->arena,
                           "%.*s of step work (%.1f %% of the run) was lost: %u whole steps and "
                           "what was cut, in %u disruption%s.",
                           STR_ARG(lost), share_of(l, total), steps, l->n_disruptions,
                           l->n_disruptions == 1 ? "" : "s");
    rules_evidence(x, f, "goodput", "wasted_progress", cell_f64(SECONDS(total)), "s",
                   S("lead rank"));
    rules_evidence(x, f, "goodput", "wasted_progress_share", cell_f64(share_of(l, total)), "%",
                   S("of elapsed time"));
    rules_evidence(x, f, "goodput", "lost_steps", cell_u64(steps), "", S("whole steps"));
    rules_evidence(x, f, "goodput", "disruptions", cell_u64(l->n_disruptions), "", S(""));
    say_stalled(x, f);
    say_downtime(x, f, total);
    set_span(f, from, to);
}

static bool is_startup(enum ledger_category c)
{
    return c == LEDGER_INITIALIZATION || c == LEDGER_TRAINING_PREP || c == LEDGER_PROGRAM_STARTUP;
}

struct startups {
    int64_t total_ns;
    int64_t fastest_ns, slowest_ns; /* of the attempts that came up */
    int64_t excess_ns;              /* what those took beyond the fastest */
};

/* False when the arena is full. */
static bool find_startups(const struct ledger *l, struct arena *a, struct startups *out)
{
    int64_t *each_ns = ARENA_ARRAY(a, int64_t, l->n_attempts + 1);
    *out = (struct startups){.fastest_ns = INT64_MAX};
    if (each_ns == NULL)
        return false;
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        if (is_startup(s->category) && s->attempt >= 1 && s->attempt <= l->n_attempts) {
            each_ns[s->attempt - 1] += s->to_ns - s->from_ns;
            out->total_ns += s->to_ns - s->from_ns;
        }
    }
    for (uint32_t i = 0; i < l->n_attempts; i++) {
        if (l->attempts[i].first_step < 0)
            continue; /* it never came up: no measure of how long that takes */
        out->fastest_ns = each_ns[i] < out->fastest_ns ? each_ns[i] : out->fastest_ns;
        out->slowest_ns = each_ns[i] > out->slowest_ns ? each_ns[i] : out->slowest_ns;
    }
    for (uint32_t i = 0; i < l->n_attempts; i++)
        out->excess_ns += l->attempts[i].first_step >= 0 ? each_ns[i] - out->fastest_ns : 0;
    return true;
}

static void slow_startup(struct rules *x)
{
    const struct ledger *l = x->in->ledger;
    struct startups v;
    if (!find_startups(l, &x->r->arena, &v))
        return;
    if (v.total_ns == 0) {
        rules_abstain(x, FINDING_SLOW_STARTUP,
                      "records of initialization, preparation or first steps");
        return;
    }
    if (share_of(l, v.total_ns) < SLOW_STARTUP_PERCENT || v.slowest_ns <= SLOW_STARTUP_NS)
        return;
    struct finding_dose dose = dose_of(l, v.excess_ns, "upper");
    dose.cap = l->total_ns < SHORT_RUN_NS ? FINDING_P2 : FINDING_P0;
    struct finding *f = rules_fire(x, FINDING_SLOW_STARTUP, dose);
    if (f == NULL)
        return;
    const str sum = rules_duration(x, v.total_ns), most = rules_duration(x, v.slowest_ns),
              least = rules_duration(x, v.fastest_ns);
    f->what = arena_printf(&x->r->arena,
                           "Starting took %.*s in %u attempts (%.1f %% of the run), up to %.*s; "
                           "the fastest needed %.*s.",
                           STR_ARG(sum), l->n_attempts, share_of(l, v.total_ns), STR_ARG(most),
                           STR_ARG(least));
    rules_evidence(x, f, "goodput", "startup_total", cell_f64(SECONDS(v.total_ns)), "s",
                   S("initialization, training_prep, program_startup"));
    rules_evidence(x, f, "goodput", "attempts", cell_u64(l->n_attempts), "", S(""));
    rules_evidence(x, f, "goodput", "startup_slowest", cell_f64(SECONDS(v.slowest_ns)), "s",
                   S("attempt"));
    rules_evidence(x, f, "goodput", "startup_fastest", cell_f64(SECONDS(v.fastest_ns)), "s",
                   S("attempt"));
    rules_evidence(x, f, "goodput", "startup_share", cell_f64(share_of(l, v.total_ns)), "%",
                   S("of elapsed time"));
}

/* When the fourth step of that attempt began; what is compiled before is warm-up. */
static int64_t warm_from(const struct ledger *l, uint32_t attempt)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < l->n_steps; i++)
        if (l->steps[i].attempt == attempt && ++seen > WARM_UP_STEPS)
            return l->steps[i].from_ns;
    return INT64_MAX;
}

static void recompilation(struct rules *x)
{
    const struct ledger *l = x->in->ledger;
    int64_t total = 0, warm = INT64_MAX;
    uint32_t n = 0, attempt = 0;
    if (!recorded(x, PHASE_COMPILE)) {
        rules_abstain(x, FINDING_RECOMPILATION, "records of compilation");
        return;
    }
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        if (s->attempt != 0 && s->attempt != attempt) {
            attempt = s->attempt;
            warm = warm_from(l, attempt);
        }
        if (s->category != LEDGER_PROGRAM_STARTUP || s->from_ns < warm)
            continue;
        total += s->to_ns - s->from_ns;
        n++;
    }
    struct finding *f = rules_fire(x, FINDING_RECOMPILATION, dose_of(l, total, "upper"));
    if (f == NULL)
        return;
    const str sum = rules_duration(x, total);
    f->what =
        arena_printf(&x->r->arena, "%u compilations after warm-up took %.*s, %.1f %% of the run.",
                     n, STR_ARG(sum), share_of(l, total));
    rules_evidence(x, f, "goodput", "compile_after_warm_up", cell_f64(SECONDS(total)), "s",
                   S("lead rank"));
    rules_evidence(x, f, "goodput", "compilations", cell_u64(n), "", S("after the third step"));
    rules_evidence(x, f, "goodput", "compile_share", cell_f64(share_of(l, total)), "%",
                   S("of elapsed time"));
}

struct jitter {
    int64_t p50, mad, excess, first, last;
    int64_t longest, longest_step, open, open_step; /* open: of a step that still runs, else 0 */
    uint32_t n, n_slow;
    uint64_t period; /* between slow steps, when it is always the same; 0 = none */
};

static bool is_warm(const struct ledger_step *s)
{
    return !s->startup && s->dur_ns > 0;
}

/* Those at least `least` ns beyond the median. */
static void find_slow_steps(const struct ledger *l, int64_t least, struct jitter *j)
{
    bool regular = true;
    j->first = j->last = -1;
    for (uint32_t i = 0; i < l->n_steps; i++) {
        const struct ledger_step *s = &l->steps[i];
        if (!is_warm(s) || s->dur_ns - j->p50 <= least)
            continue;
        j->excess += s->dur_ns - j->p50;
        if (s->dur_ns > j->longest) {
            j->longest = s->dur_ns;
            j->longest_step = s->step;
        }
        if (j->n_slow++ == 0)
            j->first = s->step;
        else if (s->step <= j->last ||
                 (j->period != 0 && (uint64_t)(s->step - j->last) != j->period))
            regular = false;
        else
            j->period = (uint64_t)(s->step - j->last);
        j->last = s->step;
    }
    if (!regular || j->n_slow < 3)
        j->period = 0;
}

static struct jitter measure_jitter(struct rules *x)
{
    const struct ledger *l = x->in->ledger;
    struct jitter j = {0};
    int64_t *work = ARENA_ARRAY(&x->r->arena, int64_t, l->n_steps + 1);
    if (work == NULL)
        return j;
    for (uint32_t i = 0; i < l->n_steps; i++)
        if (is_warm(&l->steps[i]))
            work[j.n++] = l->steps[i].dur_ns;
    if (j.n == 0)
        return j;
    qsort(work, j.n, sizeof *work, compare_i64);
    j.p50 = work[j.n / 2];
    for (uint32_t i = 0; i < j.n; i++)
        work[i] = work[i] > j.p50 ? work[i] - j.p50 : j.p50 - work[i];
    qsort(work, j.n, sizeof *work, compare_i64);
    j.mad = work[j.n / 2];
    return j;
}

static int64_t beyond_noise(const struct jitter *j)
{
    const int64_t least = (int64_t)((double)j->p50 * SLOW_STEP_MIN),
                  mads = (int64_t)(3 * 1.4826 * (double)j->mad);
    return least > mads ? least : mads;
}

static const struct ledger_rank *slow_rank(const struct ledger *l)
{
    const struct ledger_rank *most = NULL;
    for (uint32_t i = 0; i < l->n_ranks; i++)
        if (l->ranks[i].straggler && l->ranks[i].cost_ns > 0 &&
            (most == NULL || l->ranks[i].cost_ns > most->cost_ns))
            most = &l->ranks[i];
    return most;
}

static void say_jitter(struct rules *x, struct finding *f, const struct jitter *j)
{
    const struct ledger_rank *rank = slow_rank(x->in->ledger);
    struct arena *a = &x->r->arena;
    const str sum = rules_duration(x, j->excess), p50 = rules_duration(x, j->p50);
    f->what =
        arena_printf(a,
                     "%u of %u warm steps %s slower than the rest and took %.*s longer in "
                     "all (median step %.*s)",
                     j->n_slow, j->n, j->n_slow == 1 ? "was" : "were", STR_ARG(sum), STR_ARG(p50));
    if (j->period > 1)
        f->what = arena_printf(a, "%.*s; they come every %llu steps.", STR_ARG(f->what),
                               (unsigned long long)j->period);
    else if (rank != NULL)
        f->what = arena_printf(a, "%.*s; rank %d (%.*s) computes longest in steps %lld to %lld.",
                               STR_ARG(f->what), rank->rank, STR_ARG(rank->host),
                               (long long)rank->first_slow_step, (long long)rank->last_slow_step);
    else if (j->n_slow > 1)
        f->what = arena_printf(a, "%.*s, in steps %lld to %lld.", STR_ARG(f->what),
                               (long long)j->first, (long long)j->last);
    else
        f->what = arena_printf(a, "%.*s: step %lld.", STR_ARG(f->what), (long long)j->first);
    if (j->open > 0) {
        const str open = rules_duration(x, j->open);
        const str said = f->what;
        f->what =
            arena_printf(a, "Step %lld has run for %.*s and is not finished (median step %.*s).",
                         (long long)j->open_step, STR_ARG(open), STR_ARG(p50));
        if (j->n_slow > 0)
            f->what = arena_printf(a, "%.*s %.*s", STR_ARG(f->what), STR_ARG(said));
        rules_evidence(x, f, "goodput", "unfinished_step", cell_f64(SECONDS(j->open)), "s",
                       arena_printf(a, "step %lld", (long long)j->open_step));
    }
    if (rank != NULL)
        rules_evidence(x, f, "goodput", "straggler_cost", cell_f64(SECONDS(rank->cost_ns)), "s",
                       arena_printf(a, "rank %d", rank->rank));
}

static void fire_jitter(struct rules *x, const struct jitter *j)
{
    const struct ledger *l = x->in->ledger;
    const struct ledger_step_stats *s = &l->step_stats;
    const int64_t held = j->open > 0 ? j->open - j->p50 : 0;
    struct finding *f = rules_fire(x, FINDING_STEP_JITTER, dose_of(l, j->excess + held, "upper"));
    if (f == NULL)
        return;
    say_jitter(x, f, j);
    rules_evidence(x, f, "goodput", "slow_steps", cell_u64(j->n_slow), "", S("warm steps"));
    rules_evidence(x, f, "goodput", "warm_steps", cell_u64(j->n), "", S(""));
    rules_evidence(x, f, "goodput", "step_time_p50", cell_f64(SECONDS(j->p50)), "s",
                   S("warm steps"));
    if (j->n_slow > 0)
        rules_evidence(x, f, "goodput", "longest_step", cell_f64(SECONDS(j->longest)), "s",
                       arena_printf(&x->r->arena, "step %lld", (long long)j->longest_step));
    rules_evidence(x, f, "goodput", "step_time_p99", cell_f64(SECONDS(s->p99_ns)), "s",
                   S("warm steps"));
    rules_evidence(x, f, "goodput", "deviation",
                   cell_f64(100 * (double)s->deviation_ns / (double)s->p50_ns), "%",
                   S("of the median step"));
}

/* The step that runs now, when it has stood for longer than any step should. */
static void find_open_step(const struct ledger *l, struct jitter *j)
{
    const struct ledger_segment *s = l->n_segments > 0 ? &l->segments[l->n_segments - 1] : NULL;
    if (!l->running || s == NULL || s->category != LEDGER_IN_PROGRESS_STEP ||
        j->n < STALL_STEPS_MIN || s->to_ns - s->from_ns <= STALL_RATIO * j->p50)
        return;
    j->open = s->to_ns - s->from_ns;
    j->open_step = s->step;
}

/* Too few steps to judge how they vary. One that stood still is seen all the same. */
static void stalled_steps(struct rules *x, struct jitter *j)
{
    const uint32_t before = x->r->n_findings;
    if (j->n >= STALL_STEPS_MIN && j->p50 > 0) {
        find_slow_steps(x->in->ledger, (STALL_RATIO - 1) * j->p50, j);
        if (j->n_slow > 0 || j->open > 0)
            fire_jitter(x, j);
    }
    if (x->r->n_findings == before)
        rules_abstain(x, FINDING_STEP_JITTER, "100 warm steps");
}

static void step_jitter(struct rules *x)
{
    const struct ledger *l = x->in->ledger;
    const struct ledger_step_stats *s = &l->step_stats;
    struct jitter j = measure_jitter(x);
    if (s->n == 0 || s->p50_ns <= 0) {
        rules_abstain(x, FINDING_STEP_JITTER, "100 warm steps");
        return;
    }
    find_open_step(l, &j);
    if (j.n < JITTER_STEPS_MIN) {
        stalled_steps(x, &j);
        return;
    }
    const double ratio = (double)s->p99_ns / (double)s->p50_ns;
    const double deviation = (double)s->deviation_ns / (double)s->p50_ns;
    if (ratio < JITTER_RATIO && deviation < JITTER_DEVIATION && j.open == 0)
        return;
    find_slow_steps(l, beyond_noise(&j), &j);
    fire_jitter(x, &j);
}

/* Less than this share is noise of the steps themselves. */
static void set_floor(struct rules *x)
{
    const struct jitter j = measure_jitter(x);
    x->floor_percent = 1;
    if (j.n == 0 || j.p50 <= 0)
        return;
    double root = 1;
    while (root * root < j.n)
        root++;
    const double noise = 100 * 2 * 1.4826 * (double)j.mad / (double)j.p50 / root;
    if (noise > x->floor_percent)
        x->floor_percent = noise;
}

void rules_of_run(struct rules *x)
{
    set_floor(x);
    input_bound(x);
    checkpoint_blocking(x);
    restart_wasted(x);
    slow_startup(x);
    recompilation(x);
    step_jitter(x);
}
