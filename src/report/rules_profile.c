/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over the facts of a profile. Amounts are seconds of a step, percent is of the step time; without
 * steps both are of the window that was profiled, and confidence is low. */
#include "report/rules.h"

#define STEPS_MIN 3
#define STEPS_FOR_P0 5
#define IDLE_PERCENT 10.0
#define COMPILE_PERCENT 3.0

struct ground {      /* what shares are of */
    double whole_ps; /* of all devices: busy and idle */
    double step_s;   /* median step, or the window */
    const char *metric;
    uint32_t n_steps; /* complete ones */
};

/* Steps with their neighbours on both sides: the first and last of a host may be cut. */
static uint32_t complete_steps(const struct profile_facts *f)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i + 1 < f->n_steps; i++)
        n += str_eq(f->steps[i - 1].host, f->steps[i].host) &&
             str_eq(f->steps[i + 1].host, f->steps[i].host);
    return n;
}

static struct ground ground_of(const struct profile_facts *f)
{
    struct ground g = {.metric = "elapsed", .n_steps = complete_steps(f)};
    if (f->busy_ps.known && f->idle_ps.known)
        g.whole_ps = (double)f->busy_ps.ps + (double)f->idle_ps.ps;
    if (f->median_step_ps.known && g.n_steps >= STEPS_MIN) {
        g.metric = "step_time";
        g.step_s = (double)f->median_step_ps.ps / 1e12;
    } else if (f->window_ps.known) {
        g.step_s = (double)f->window_ps.ps / 1e12;
    }
    return g;
}

static struct finding_dose dose_of(const struct ground *g, double share,
                                   enum finding_confidence confidence)
{
    const bool steps = g->n_steps >= STEPS_MIN;
    return (struct finding_dose){.metric = g->metric,
                                 .amount_s = share * g->step_s,
                                 .percent = 100 * share,
                                 .bound = "upper",
                                 .confidence = steps ? confidence : FINDING_LOW,
                                 .cap = g->n_steps >= STEPS_FOR_P0 ? FINDING_P0 : FINDING_P1};
}

static double step_sum_ps(const struct profile_facts *f)
{
    double sum = 0;
    for (uint32_t i = 0; i < f->n_steps; i++)
        sum += (double)f->steps[i].dur_ps;
    return sum;
}

/* Returns the share of the step that waits for input; 0 when nothing was found or measured. */
static double input_bound(struct rules *x, const struct ground *g, struct finding **fired)
{
    const struct profile_facts *f = x->in->facts;
    const double steps_ps = step_sum_ps(f);
    if (!f->input_wait_ps.known || steps_ps <= 0) {
        rules_abstain(x, FINDING_INPUT_BOUND, "an input pipeline in the profile, inside steps");
        return 0;
    }
    double share = (double)f->input_wait_ps.ps / steps_ps;
    const double waits = share;
    if (g->whole_ps > 0 && (double)f->idle_ps.ps / g->whole_ps < share)
        share = (double)f->idle_ps.ps / g->whole_ps; /* waiting costs only where devices are idle */
    if (100 * waits < 5)
        return 0;
    *fired = rules_fire(x, FINDING_INPUT_BOUND, dose_of(g, share, FINDING_HIGH));
    if (*fired == NULL)
        return 0;
    const str each = rules_duration(x, (int64_t)(share * g->step_s * 1e9));
    (*fired)->what = arena_printf(
        &x->r->arena, "Each step waits for its input: at most %.*s, %.1f %% of the step time.",
        STR_ARG(each), 100 * share);
    rules_evidence(x, *fired, "overview_page", "input_wait", cell_f64(100 * waits), "%",
                   S("of the steps"));
    if (g->whole_ps > 0)
        rules_evidence(x, *fired, "overview_page", "device_idle",
                       cell_f64(100 * (double)f->idle_ps.ps / g->whole_ps), "%",
                       S("of device time"));
    rules_evidence(x, *fired, "overview_page", "input_wait_time", cell_f64(share * g->step_s), "s",
                   S("a step"));
    return share;
}

static double recompilation(struct rules *x, const struct ground *g, struct finding **fired)
{
    const struct profile_facts *f = x->in->facts;
    if (!f->host_compile_ps.known || !f->window_ps.known || f->window_ps.ps == 0) {
        rules_abstain(x, FINDING_RECOMPILATION, "host lanes with compilation, and steps");
        return 0;
    }
    double share = (double)f->host_compile_ps.ps / (double)f->window_ps.ps;
    if (g->whole_ps > 0 && (double)f->idle_ps.ps / g->whole_ps < share)
        share = (double)f->idle_ps.ps / g->whole_ps;
    if (f->n_compiles_after_warmup == 0 || 100 * share < COMPILE_PERCENT)
        return 0;
    *fired = rules_fire(x, FINDING_RECOMPILATION, dose_of(g, share, FINDING_HIGH));
    if (*fired == NULL)
        return 0;
    (*fired)->what = arena_printf(
        &x->r->arena, "%u compilations after the second step take at most %.1f %% of the time.",
        f->n_compiles_after_warmup, 100 * share);
    rules_evidence(x, *fired, "trace_viewer", "compilations", cell_u64(f->n_compiles_after_warmup),
                   "", S("after the second step"));
    rules_evidence(x, *fired, "trace_viewer", "compile_time",
                   cell_f64((double)f->host_compile_ps.ps / 1e12), "s", S("host"));
    rules_evidence(x, *fired, "trace_viewer", "compile_share", cell_f64(100 * share), "%",
                   S("of the window, at most idle time"));
    return share;
}

static void add_explains(struct rules *x, struct finding *f, enum finding_kind kind)
{
    if (f != NULL && ARENA_PUSH(&x->r->arena, f->explains, f->n_explains, f->explains_capacity))
        f->explains[f->n_explains - 1] = str_from(rules_id(kind));
}

/* Share of the profiled window that the run's ledger has in other categories than steps: loading, saving,
 * compiling and their kin. Devices idle then have a recorded cause, which the rules of the run judge. */
static double recorded_share(const struct rules *x)
{
    const struct profile_facts *f = x->in->facts;
    const struct ledger *l = x->in->ledger;
    if (l == NULL || !f->has_epoch || f->window_ps.ps < 1000)
        return 0;
    const int64_t from = f->window_from_ns, to = from + (int64_t)(f->window_ps.ps / 1000);
    int64_t sum = 0;
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        const int64_t begin = s->from_ns > from ? s->from_ns : from,
                      end = s->to_ns < to ? s->to_ns : to;
        if (end > begin && s->category != LEDGER_PRODUCTIVE_STEP &&
            s->category != LEDGER_WASTED_PROGRESS && s->category != LEDGER_IN_PROGRESS_STEP &&
            s->category != LEDGER_IDLE && s->category != LEDGER_OTHER)
            sum += end - begin;
    }
    return (double)sum / (double)(to - from);
}

/* Idle time that no cause has taken. */
static void gpu_gaps(struct rules *x, const struct ground *g, double taken, struct finding *cause)
{
    const struct profile_facts *f = x->in->facts;
    if (g->whole_ps <= 0) {
        rules_abstain(x, FINDING_GPU_GAPS, "device rows");
        return;
    }
    const double idle = (double)f->idle_ps.ps / g->whole_ps;
    const double left = idle - taken;
    if (100 * idle >= IDLE_PERCENT && taken >= 0.8 * idle)
        add_explains(x, cause, FINDING_GPU_GAPS);
    if (100 * left < IDLE_PERCENT || (taken > 0 && taken >= 0.8 * idle))
        return;
    struct finding *made = rules_fire(x, FINDING_GPU_GAPS, dose_of(g, left, FINDING_MEDIUM));
    if (made == NULL)
        return;
    made->what = arena_printf(&x->r->arena,
                              "%u device%s idle for %.1f %% of the time without a recorded cause.",
                              f->n_devices, f->n_devices == 1 ? " is" : "s are", 100 * left);
    rules_evidence(x, made, "overview_page", "device_idle", cell_f64(100 * idle), "%",
                   S("of device time"));
    rules_evidence(x, made, "overview_page", "idle_unexplained", cell_f64(100 * left), "%",
                   S("of device time"));
    rules_evidence(x, made, "overview_page", "devices", cell_u64(f->n_devices), "", S(""));
}

static void profile_incomplete(struct rules *x, const struct ground *g)
{
    const struct profile_facts *f = x->in->facts;
    struct arena *a = &x->r->arena;
    str why = {0};
    uint32_t world = 0;
    const uint32_t missing = x->in->set == NULL ? 0 : record_set_missing_ranks(x->in->set, &world);
    const str ranks = arena_printf(a, "%u of the run's %u ranks recorded nothing", missing, world);
    struct {
        bool fires;
        str text;
    } rows[] = {
        {f->n_dropped > 0, S("events were dropped")},
        {f->n_errors > 0, S("the profiler reported errors")},
        {f->n_devices == 0, S("no device rows")},
        {!f->has_steps, S("no steps")},
        {f->has_steps && g->n_steps < STEPS_MIN, S("fewer than three complete steps")},
        {f->has_ops && !f->has_hlo, S("no HLO")},
        {missing > 0, ranks},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].fires)
            why = why.n == 0 ? rows[i].text
                             : arena_printf(a, "%.*s, %.*s", STR_ARG(why), STR_ARG(rows[i].text));
    if (why.n == 0)
        return;
    struct finding *made = rules_fire(x, FINDING_PROFILE_INCOMPLETE,
                                      (struct finding_dose){.metric = "step_time",
                                                            .amount_s = -1,
                                                            .percent = -1,
                                                            .bound = "upper",
                                                            .confidence = FINDING_HIGH});
    if (made == NULL)
        return;
    made->what = arena_printf(a, "The profile cannot carry every conclusion: %.*s.", STR_ARG(why));
    rules_evidence(x, made, "summary", "complete_steps", cell_u64(g->n_steps), "", x->in->profile);
    rules_evidence(x, made, "summary", "device_rows", cell_u64(f->n_devices), "", x->in->profile);
    rules_evidence(x, made, "summary", "dropped_events", cell_u64(f->n_dropped), "",
                   x->in->profile);
    rules_evidence(x, made, "summary", "errors", cell_u64(f->n_errors), "", x->in->profile);
    rules_evidence(x, made, "summary", "hlo", cell_bool(f->has_hlo), "", x->in->profile);
    if (missing > 0)
        rules_evidence(x, made, "goodput", "missing_ranks", cell_u64(missing), "", S(""));
}

void rules_of_profile(struct rules *x)
{
    const struct ground g = ground_of(x->in->facts);
    struct finding *input = NULL, *compile = NULL;
    /* Findings move when more are added: each is used before the next rule adds one. */
    const uint32_t before = x->r->n_findings;
    const double input_share = input_bound(x, &g, &input);
    const double compile_share = recompilation(x, &g, &compile);
    struct finding *cause = NULL;
    if (input != NULL || compile != NULL)
        cause = &x->r->findings[input != NULL && compile != NULL && compile_share > input_share
                                    ? before + 1
                                    : before];
    gpu_gaps(x, &g, input_share + compile_share + recorded_share(x), cause);
    profile_incomplete(x, &g);
}
