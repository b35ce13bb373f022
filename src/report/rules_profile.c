/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over the facts of a profile. What is measured inside steps is seconds of a step and a share of the
 * step time; all else is seconds and a share of the window that was profiled ("profiled"): steps may cover a
 * small part of it, so a share of the one is never applied to the other. With few steps confidence is low. */
#include "report/rules.h"

#define STEPS_MIN 3
#define STEPS_FOR_P0 5
#define IDLE_PERCENT 10.0
#define COMPILE_PERCENT 3.0

struct ground { /* what shares are of; times of a host or device on average, in seconds */
    bool has_idle;
    double window_s, idle_share;        /* of the window */
    double step_s;                      /* median step */
    double steps_s;                     /* all steps of a host */
    double step_waits_s;                /* of steps_s, nothing computed for want of input */
    double step_idle_s;                 /* of steps_s, no device worked: nor copied */
    double idle_waits_s;                /* of step_idle_s, at most: for want of input */
    double complete_s, complete_idle_s; /* complete steps of all hosts; idle as above */
    uint32_t n_steps;                   /* complete ones */
};

/* A step with neighbours on both sides: the first and last of a host may be cut. */
static bool is_complete(const struct profile_facts *f, uint32_t i)
{
    return i > 0 && i + 1 < f->n_steps && str_eq(f->steps[i - 1].host, f->steps[i].host) &&
           str_eq(f->steps[i + 1].host, f->steps[i].host);
}

static void add_step(struct ground *g, const struct step_fact *s, bool complete)
{
    const uint64_t waits = s->input_ps.known ? s->input_ps.ps : 0;
    const uint64_t busy = s->device_busy_ps.known ? s->device_busy_ps.ps : s->dur_ps;
    const uint64_t idle = s->dur_ps > busy ? s->dur_ps - busy : 0;
    g->steps_s += (double)s->dur_ps / 1e12;
    g->step_waits_s += (double)waits / 1e12;
    g->step_idle_s += (double)idle / 1e12;
    if (complete) {
        g->n_steps++;
        g->complete_s += (double)s->dur_ps / 1e12;
        g->complete_idle_s += (double)idle / 1e12;
    }
    g->idle_waits_s += (double)(waits < idle ? waits : idle) / 1e12;
}

static struct ground ground_of(const struct profile_facts *f)
{
    struct ground g = {0};
    double n_hosts = 0;
    for (uint32_t i = 0; i < f->n_steps; i++) {
        n_hosts += i == 0 || !str_eq(f->steps[i - 1].host, f->steps[i].host);
        add_step(&g, &f->steps[i], is_complete(f, i));
    }
    if (n_hosts > 0) {
        g.steps_s /= n_hosts;
        g.step_idle_s /= n_hosts;
        g.step_waits_s /= n_hosts;
        g.idle_waits_s /= n_hosts;
    }
    const double whole = (double)f->busy_ps.ps + (double)f->idle_ps.ps;
    g.has_idle = f->busy_ps.known && f->idle_ps.known && whole > 0;
    if (g.has_idle)
        g.idle_share = (double)f->idle_ps.ps / whole;
    if (f->window_ps.known)
        g.window_s = (double)f->window_ps.ps / 1e12;
    if (f->median_step_ps.known)
        g.step_s = (double)f->median_step_ps.ps / 1e12;
    return g;
}

/* A share of the step time, or of the window. */
static struct finding_dose dose_of(const struct ground *g, bool of_steps, double share,
                                   enum finding_confidence confidence)
{
    const bool steps = g->n_steps >= STEPS_MIN;
    return (struct finding_dose){.metric = of_steps ? "step_time" : "profiled",
                                 .amount_s = share * (of_steps ? g->step_s : g->window_s),
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

/* Each returns the idle seconds of the window that it explains; 0 when nothing was found or measured. */
static double input_bound(struct rules *x, const struct ground *g, struct finding **fired)
{
    const struct profile_facts *f = x->in->facts;
    if (!f->input_wait_ps.known || g->steps_s <= 0) {
        rules_abstain(x, FINDING_INPUT_BOUND, "an input pipeline in the profile, inside steps");
        return 0;
    }
    const bool of_steps = g->n_steps >= STEPS_MIN || g->window_s <= 0;
    const double share = of_steps ? g->step_waits_s / g->steps_s : g->step_waits_s / g->window_s;
    if (100 * g->step_waits_s / g->steps_s < 5)
        return 0;
    *fired = rules_fire(x, FINDING_INPUT_BOUND, dose_of(g, of_steps, share, FINDING_HIGH));
    if (*fired == NULL)
        return 0;
    const double cost_s = share * (of_steps ? g->step_s : g->window_s);
    const double most_s = (double)INT64_MAX / 1e9; /* beyond it only in damaged files */
    const str cost = rules_duration(x, cost_s < most_s ? (int64_t)(cost_s * 1e9) : INT64_MAX);
    (*fired)->what =
        arena_printf(&x->r->arena, "%s: at most %.*s, %.1f %% of the %s time.",
                     of_steps ? "Each step waits for its input" : "Steps wait for their input",
                     STR_ARG(cost), 100 * share, of_steps ? "step" : "profiled");
    rules_evidence(x, *fired, "overview_page", "input_wait",
                   cell_f64(100 * (double)f->input_wait_ps.ps / step_sum_ps(f)), "%",
                   S("of the steps"));
    if (g->has_idle)
        rules_evidence(x, *fired, "overview_page", "device_idle", cell_f64(100 * g->idle_share),
                       "%", S("of device time"));
    rules_evidence(x, *fired, "overview_page", "input_wait_time", cell_f64(cost_s), "s",
                   of_steps ? S("a step") : S("of the profiled time"));
    return g->idle_waits_s;
}

static double recompilation(struct rules *x, const struct ground *g, struct finding **fired)
{
    const struct profile_facts *f = x->in->facts;
    if (!f->host_compile_ps.known || !f->host_compile_idle_ps.known || g->window_s <= 0) {
        rules_abstain(x, FINDING_RECOMPILATION, "host lanes with compilation, and steps");
        return 0;
    }
    const double n_hosts = f->n_hosts > 0 ? f->n_hosts : 1;
    const double idle_s = (double)f->host_compile_idle_ps.ps / 1e12 / n_hosts;
    const double share = idle_s / g->window_s;
    if (f->n_compiles_after_warmup == 0 || 100 * share < COMPILE_PERCENT)
        return 0;
    *fired = rules_fire(x, FINDING_RECOMPILATION, dose_of(g, false, share, FINDING_HIGH));
    if (*fired == NULL)
        return 0;
    (*fired)->what = arena_printf(
        &x->r->arena,
        "%u compilations after the second step take at most %.1f %% of the profiled time.",
        f->n_compiles_after_warmup, 100 * share);
    rules_evidence(x, *fired, "trace_viewer", "compilations", cell_u64(f->n_compiles_after_warmup),
                   "", S("after the second step"));
    rules_evidence(x, *fired, "trace_viewer", "compile_time",
                   cell_f64((double)f->host_compile_ps.ps / 1e12), "s", S("on all hosts"));
    rules_evidence(x, *fired, "trace_viewer", "compile_share", cell_f64(100 * share), "%",
                   S("of the profiled time, while no device worked"));
    return idle_s;
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

/* Idle time that no cause has taken. It is told a step where the steps hold it, else of the window: between
 * steps may lie what no step shows. */
static void gpu_gaps(struct rules *x, const struct ground *g, double taken_s, struct finding *cause)
{
    const struct profile_facts *f = x->in->facts;
    if (!g->has_idle || g->window_s <= 0) {
        rules_abstain(x, FINDING_GPU_GAPS, "device rows");
        return;
    }
    const double idle = g->idle_share, taken = taken_s / g->window_s + recorded_share(x);
    const double left = idle - taken;
    if (100 * idle >= IDLE_PERCENT && taken >= 0.8 * idle)
        add_explains(x, cause, FINDING_GPU_GAPS);
    if (100 * left < IDLE_PERCENT || (taken > 0 && taken >= 0.8 * idle))
        return;
    const bool in_steps =
        g->n_steps >= STEPS_MIN && g->step_idle_s >= 0.8 * idle * g->window_s && g->complete_s > 0;
    const double share = in_steps ? g->complete_idle_s / g->complete_s * (left / idle) : left;
    struct finding *made =
        rules_fire(x, FINDING_GPU_GAPS, dose_of(g, in_steps, share, FINDING_MEDIUM));
    if (made == NULL)
        return;
    made->what = arena_printf(
        &x->r->arena, "%u device%s idle for %.1f %% of the %s time without a recorded cause.",
        f->n_devices, f->n_devices == 1 ? " is" : "s are", 100 * share,
        in_steps ? "step" : "profiled");
    rules_evidence(x, made, "overview_page", "device_idle", cell_f64(100 * idle), "%",
                   S("of device time"));
    rules_evidence(x, made, "overview_page", "idle_unexplained", cell_f64(100 * left), "%",
                   S("of device time"));
    if (g->steps_s > 0)
        rules_evidence(x, made, "overview_page", "idle_in_steps",
                       cell_f64(100 * g->step_idle_s / g->steps_s), "%",
                       S("of the steps, all devices at once"));
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
    const double input_s = input_bound(x, &g, &input);
    const double compile_s = recompilation(x, &g, &compile);
    struct finding *cause = NULL;
    if (input != NULL || compile != NULL)
        cause = &x->r->findings[input != NULL && compile != NULL && compile_s > input_s ? before + 1
                                                                                        : before];
    gpu_gaps(x, &g, input_s + compile_s, cause);
    profile_incomplete(x, &g);
}
