/* SPDX-License-Identifier: Apache-2.0 */
#include "report/build.h"

#include <stdlib.h>

#include "base/limits.h"
#include "model/table_print.h"
#include "report/rules.h"

#define OPTIMAL_IDLE_PERCENT 5.0
#define OPTIMAL_INPUT_PERCENT 5.0
#define OPTIMAL_LOST_PERCENT 5.0 /* recovery and lost work */
#define STEP_ROWS_MAX 1000

const char *finding_priority_word(enum finding_priority p)
{
    return p == FINDING_P0 ? "P0" : p == FINDING_P1 ? "P1" : "P2";
}

const char *finding_confidence_word(enum finding_confidence c)
{
    return c == FINDING_HIGH ? "high" : c == FINDING_MEDIUM ? "medium" : "low";
}

void report_release(struct report *r)
{
    arena_release(&r->arena);
    memset(r, 0, sizeof *r);
}

/* Priority, then percent, then confidence, then id. */
static int compare_findings(const void *left, const void *right)
{
    const struct finding *a = left, *b = right;
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    if (a->impact.percent != b->impact.percent)
        return a->impact.percent > b->impact.percent ? -1 : 1;
    if (a->confidence != b->confidence)
        return a->confidence < b->confidence ? -1 : 1;
    return str_cmp(a->id, b->id);
}

/* A run and its profile may both find the same: the larger dose stays, the other's evidence joins it. */
static void merge_same(struct report *r)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->n_findings; i++) {
        struct finding *f = &r->findings[i], *first = NULL;
        for (uint32_t k = 0; k < kept; k++)
            if (str_eq(r->findings[k].id, f->id))
                first = &r->findings[k];
        if (first == NULL) {
            r->findings[kept++] = *f;
            continue;
        }
        for (uint32_t k = 0; k < f->n_evidence; k++)
            if (ARENA_PUSH(&r->arena, first->evidence, first->n_evidence, first->evidence_capacity))
                first->evidence[first->n_evidence - 1] = f->evidence[k];
    }
    r->n_findings = kept < LIMIT_REPORT_FINDINGS ? kept : (uint32_t)LIMIT_REPORT_FINDINGS;
}

/* What fired from the run needs no abstention of the profile's rule, and the other way round. */
static void drop_answered(struct report *r)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->n_abstained; i++) {
        bool answered = false;
        for (uint32_t k = 0; k < r->n_findings; k++)
            answered |= str_eq(r->findings[k].id, r->abstained[i].id);
        if (!answered)
            r->abstained[kept++] = r->abstained[i];
    }
    r->n_abstained = kept;
}

static void key_metric(struct report *r, const char *name, const char *title, struct cell c,
                       const char *unit)
{
    if (!ARENA_PUSH(&r->arena, r->key_metrics, r->n_key_metrics, r->key_metrics_capacity))
        return;
    r->key_metrics[r->n_key_metrics - 1] = (struct table_value){.column = {.name = str_from(name),
                                                                           .title = str_from(title),
                                                                           .unit = str_from(unit),
                                                                           .type = c.type},
                                                                .cell = c};
}

static struct cell seconds(int64_t ns, bool known)
{
    return known ? cell_f64((double)ns / 1e9) : cell_unknown();
}

static struct cell fact_seconds(struct fact_ps f)
{
    return f.known ? cell_f64((double)f.ps / 1e12) : cell_unknown();
}

static double run_percent(const struct ledger *l, enum ledger_category c)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < l->n_totals; i++)
        if (l->totals[i].category == c)
            sum += l->totals[i].total_ns;
    return l->total_ns > 0 ? 100.0 * (double)sum / (double)l->total_ns : 0;
}

static struct cell idle_percent(const struct profile_facts *f)
{
    const double whole = (double)f->busy_ps.ps + (double)f->idle_ps.ps;
    return f->busy_ps.known && f->idle_ps.known && whole > 0
               ? cell_f64(100 * (double)f->idle_ps.ps / whole)
               : cell_unknown();
}

static void add_key_metrics(struct report *r, const struct report_input *in)
{
    const struct ledger *l = in->ledger;
    if (l != NULL) {
        const bool steps = l->step_stats.n > 0;
        key_metric(r, "goodput_percent", "Goodput",
                   l->workload_silent ? cell_unknown()
                                      : cell_f64(run_percent(l, LEDGER_PRODUCTIVE_STEP)),
                   "%");
        key_metric(r, "goodput_time_s", "Productive time",
                   seconds(l->productive_ns, !l->workload_silent), "s");
        key_metric(r, "total_elapsed_s", "Elapsed time", seconds(l->total_ns, true), "s");
        key_metric(r, "step_time_p50_s", "Step time, median", seconds(l->step_stats.p50_ns, steps),
                   "s");
        key_metric(r, "step_time_p99_s", "Step time, p99", seconds(l->step_stats.p99_ns, steps),
                   "s");
        key_metric(r, "attempts", "Attempts", cell_u64(l->n_attempts), "");
        key_metric(r, "disruptions", "Disruptions", cell_u64(l->n_disruptions), "");
    }
    if (in->facts != NULL) {
        key_metric(r, "profile_step_time_s", "Step time in the profile, median",
                   fact_seconds(in->facts->median_step_ps), "s");
        key_metric(r, "profile_window_s", "Profiled time", fact_seconds(in->facts->window_ps), "s");
        key_metric(r, "device_idle_percent", "Devices idle", idle_percent(in->facts), "%");
        key_metric(r, "devices", "Devices", cell_u64(in->facts->n_devices), "");
    }
}

static void add_section(struct report *r, str name, struct table *t)
{
    if (t != NULL && ARENA_PUSH(&r->arena, r->sections, r->n_sections, r->sections_capacity))
        r->sections[r->n_sections - 1] = (struct report_section){name, t};
}

static void add_ledger_section(struct report *r, const struct ledger *l)
{
    struct table *t = table_new(&r->arena, S("ledger"), S("Where the time went"));
    if (t == NULL)
        return;
    table_column(t, S("category"), S("Category"), CELL_TEXT, S(""));
    table_column(t, S("seconds"), S("Time"), CELL_F64, S("s"));
    table_column(t, S("percent"), S("Share"), CELL_F64, S("%"));
    table_column(t, S("count"), S("Count"), CELL_U64, S(""));
    for (uint32_t i = 0; i < l->n_totals; i++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            return;
        row[0] = cell_text(l->totals[i].word);
        row[1] = seconds(l->totals[i].total_ns, true);
        row[2] = cell_f64(100.0 * (double)l->totals[i].total_ns /
                          (double)(l->total_ns > 0 ? l->total_ns : 1));
        row[3] = cell_u64(l->totals[i].count);
    }
    add_section(r, S("ledger"), t);
}

static struct table *steps_table(struct report *r)
{
    struct table *t = table_new(&r->arena, S("steps"), S("Steps"));
    if (t == NULL)
        return NULL;
    table_column(t, S("step"), S("Step"), CELL_I64, S(""));
    table_column(t, S("attempt"), S("Attempt"), CELL_U64, S(""));
    table_column(t, S("seconds"), S("Time"), CELL_F64, S("s"));
    table_column(t, S("input_s"), S("Input"), CELL_F64, S("s"));
    table_column(t, S("state"), S("State"), CELL_TEXT, S(""));
    return t;
}

static void add_run_steps(struct report *r, const struct ledger *l)
{
    struct table *t = l->n_steps > 0 ? steps_table(r) : NULL;
    if (t == NULL)
        return;
    const uint32_t from = l->n_steps > STEP_ROWS_MAX ? l->n_steps - STEP_ROWS_MAX : 0;
    for (uint32_t i = from; i < l->n_steps; i++) {
        const struct ledger_step *s = &l->steps[i];
        struct cell *row = table_row(t);
        if (row == NULL)
            return;
        row[0] = cell_i64(s->step);
        row[1] = cell_u64(s->attempt);
        row[2] = seconds(s->dur_ns, true);
        row[4] = cell_text(s->wasted ? S("wasted") : s->startup ? S("start-up") : S("kept"));
    }
    if (from > 0)
        table_note(t, S("steps_left_out"), from, "earlier steps, left out");
    add_section(r, S("steps"), t);
}

static void add_profile_steps(struct report *r, const struct profile_facts *f)
{
    struct table *t = f->n_steps > 0 ? steps_table(r) : NULL;
    if (t == NULL)
        return;
    for (uint32_t i = 0; i < f->n_steps && i < STEP_ROWS_MAX; i++) {
        struct cell *row = table_row(t);
        if (row == NULL)
            return;
        row[0] = cell_i64(f->steps[i].number);
        row[2] = cell_f64((double)f->steps[i].dur_ps / 1e12);
        row[3] = fact_seconds(f->steps[i].input_ps);
    }
    add_section(r, S("steps"), t);
}

static void add_ops(struct report *r, const struct profile_facts *f)
{
    struct table *t = f->n_top_ops > 0
                          ? table_new(&r->arena, S("op_profile"), S("Operations that take most"))
                          : NULL;
    if (t == NULL)
        return;
    table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
    table_column(t, S("category"), S("Category"), CELL_TEXT, S(""));
    table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
    table_column(t, S("share"), S("Share"), CELL_F64, S("%"));
    table_column(t, S("source"), S("Source"), CELL_TEXT, S(""));
    for (uint32_t i = 0; i < f->n_top_ops; i++) {
        const struct op_fact *op = &f->top_ops[i];
        struct cell *row = table_row(t);
        if (row == NULL)
            return;
        row[0] = cell_text(op->name);
        row[1] = op->category.n > 0 ? cell_text(op->category) : cell_unknown();
        row[2] = cell_u64(op->self_ps);
        row[3] = f->op_self_ps > 0 ? cell_f64(100.0 * (double)op->self_ps / (double)f->op_self_ps)
                                   : cell_unknown();
        row[4] = op->source.n > 0 ? cell_text(op->source) : cell_unknown();
    }
    add_section(r, S("op_profile"), t);
}

static void add_environment(struct report *r, const struct report_input *in)
{
    struct table *t = table_new(&r->arena, S("environment"), S("Environment"));
    if (t == NULL || in->set == NULL)
        return;
    table_column(t, S("rank"), S("Rank"), CELL_I64, S(""));
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("pid"), S("Process"), CELL_U64, S(""));
    for (uint32_t i = 0; i < in->set->n_processes && i < STEP_ROWS_MAX; i++) {
        const struct record_process *p = &in->set->processes[i];
        struct cell *row = p->runner ? NULL : table_row(t);
        if (row == NULL)
            continue;
        row[0] = p->rank >= 0 ? cell_i64(p->rank) : cell_unknown();
        row[1] = p->host.n > 0 ? cell_text(p->host) : cell_unknown();
        row[2] = p->pid != 0 ? cell_u64(p->pid) : cell_unknown();
    }
    add_section(r, S("environment"), t);
}

static void add_devices(struct report *r, const struct profile_facts *f)
{
    static const char *const kinds[] = {"", "cpu", "gpu", "tpu"};
    struct table *t =
        f->n_devices > 0 ? table_new(&r->arena, S("environment"), S("Environment")) : NULL;
    if (t == NULL)
        return;
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("device"), S("Device"), CELL_TEXT, S(""));
    table_column(t, S("kind"), S("Kind"), CELL_TEXT, S(""));
    table_column(t, S("busy_s"), S("Busy"), CELL_F64, S("s"));
    table_column(t, S("idle_s"), S("Idle"), CELL_F64, S("s"));
    for (uint32_t i = 0; i < f->n_devices && i < STEP_ROWS_MAX; i++) {
        const struct device_fact *d = &f->devices[i];
        struct cell *row = table_row(t);
        if (row == NULL)
            return;
        row[0] = d->host.n > 0 ? cell_text(d->host) : cell_unknown();
        row[1] = cell_text(d->name);
        row[2] = d->kind != DEVICE_NONE ? cell_text(str_from(kinds[d->kind])) : cell_unknown();
        row[3] = cell_f64((double)d->busy_ps / 1e12);
        row[4] = cell_f64((double)d->idle_ps / 1e12);
    }
    if (f->n_devices > STEP_ROWS_MAX)
        table_note(t, S("devices_left_out"), f->n_devices - STEP_ROWS_MAX,
                   "further devices, left out");
    add_section(r, S("environment"), t);
}

static bool is_optimal(const struct report *r, const struct report_input *in)
{
    for (uint32_t i = 0; i < r->n_findings; i++)
        if (r->findings[i].priority <= FINDING_P1)
            return false;
    if (in->ledger != NULL &&
        (in->ledger->step_stats.n == 0 || run_percent(in->ledger, LEDGER_HANG) > 0 ||
         run_percent(in->ledger, LEDGER_INFRASTRUCTURE_RECOVERY) +
                 run_percent(in->ledger, LEDGER_WASTED_PROGRESS) +
                 run_percent(in->ledger, LEDGER_ELASTIC_WAIT) +
                 run_percent(in->ledger, LEDGER_ELASTIC_REINIT) >
             OPTIMAL_LOST_PERCENT ||
         run_percent(in->ledger, LEDGER_IDLE) > OPTIMAL_IDLE_PERCENT ||
         run_percent(in->ledger, LEDGER_DATA_LOADING_SYNC) > OPTIMAL_INPUT_PERCENT))
        return false;
    if (in->facts != NULL) {
        const struct cell idle = idle_percent(in->facts);
        if (!idle.known || idle.f64 > OPTIMAL_IDLE_PERCENT || !in->facts->input_wait_ps.known)
            return false;
    }
    return in->ledger != NULL || in->facts != NULL;
}

static const struct ledger_total *largest_loss(const struct ledger *l)
{
    const struct ledger_total *most = NULL;
    for (uint32_t i = 0; i < l->n_totals; i++)
        if (l->totals[i].category != LEDGER_PRODUCTIVE_STEP &&
            (most == NULL || l->totals[i].total_ns > most->total_ns))
            most = &l->totals[i];
    return most;
}

/* What `tacho run` alone knows, what was not measured, and the line that measures it. */
static str silent_sentences(struct report *r, const struct ledger *l)
{
    struct arena *a = &r->arena;
    const struct ledger_attempt *last = l->n_attempts > 0 ? &l->attempts[l->n_attempts - 1] : NULL;
    const str all = format_duration_ns(a, l->total_ns);
    str end = S("has no end on record");
    if (last != NULL && last->signal != 0)
        end = arena_printf(a, "was ended by signal %d", last->signal);
    else if (last != NULL && last->code >= 0)
        end = arena_printf(a, "ended with exit status %d", last->code);
    return arena_printf(a,
                        "%.*s %s %.*s in %u attempt%s and %.*s. The workload recorded nothing, so "
                        "steps, loading and checkpoints were not measured: add `import tachograph; "
                        "run = tachograph.init()` to it, and `with "
                        "run.record(tachograph.Event.STEP, step):` around each step.",
                        STR_ARG(r->subject), l->running ? "has run for" : "took", STR_ARG(all),
                        l->n_attempts, l->n_attempts == 1 ? "" : "s", STR_ARG(end));
}

static str first_sentences(struct report *r, const struct report_input *in)
{
    struct arena *a = &r->arena;
    const char *status = r->optimal ? "OPTIMAL" : "NEEDS_ATTENTION";
    if (in->ledger == NULL) {
        const struct cell idle = idle_percent(in->facts),
                          step = fact_seconds(in->facts->median_step_ps);
        const str time = cell_format(a, &step, S("s")), share = cell_format(a, &idle, S("%"));
        str said = arena_printf(a, "%.*s covers %u host%s and %u device%s, ", STR_ARG(r->subject),
                                in->facts->n_hosts, in->facts->n_hosts == 1 ? "" : "s",
                                in->facts->n_devices, in->facts->n_devices == 1 ? "" : "s");
        said = step.known ? arena_printf(a, "%.*smedian step %.*s: %s.", STR_ARG(said),
                                         STR_ARG(time), status)
                          : arena_printf(a, "%.*swith no step time: %s.", STR_ARG(said), status);
        return idle.known ? arena_printf(a, "%.*s Devices were idle for %.*s of the time.",
                                         STR_ARG(said), STR_ARG(share))
                          : said;
    }
    const struct ledger *l = in->ledger;
    const str all = format_duration_ns(a, l->total_ns),
              good = format_duration_ns(a, l->productive_ns);
    if (l->workload_silent)
        return silent_sentences(r, l);
    str s = arena_printf(a, "%.*s %s %.*s in %u attempt%s, %.1f %% of it productive (%.*s): %s.",
                         STR_ARG(r->subject), l->running ? "has run for" : "took", STR_ARG(all),
                         l->n_attempts, l->n_attempts == 1 ? "" : "s",
                         run_percent(l, LEDGER_PRODUCTIVE_STEP), STR_ARG(good), status);
    const struct ledger_total *most = largest_loss(l);
    if (most != NULL) {
        const str lost = format_duration_ns(a, most->total_ns);
        s = arena_printf(a, "%.*s The largest other part is %.*s: %.*s.", STR_ARG(s),
                         STR_ARG(most->word), STR_ARG(lost));
    }
    return s;
}

static void write_summary(struct report *r, const struct report_input *in)
{
    struct arena *a = &r->arena;
    uint32_t urgent = 0;
    r->summary = first_sentences(r, in);
    for (uint32_t i = 0; i < r->n_findings; i++)
        urgent += r->findings[i].priority <= FINDING_P1;
    if (r->n_findings > 0)
        r->summary =
            arena_printf(a, "%.*s %.*s", STR_ARG(r->summary), STR_ARG(r->findings[0].what));
    if (urgent > 1)
        r->summary = arena_printf(a, "%.*s %u more finding%s of priority P0 or P1.",
                                  STR_ARG(r->summary), urgent - 1, urgent == 2 ? " is" : "s are");
    if (r->n_abstained > 0)
        r->summary =
            arena_printf(a, "%.*s %u rule%s could not judge: see what was not measured.",
                         STR_ARG(r->summary), r->n_abstained, r->n_abstained == 1 ? "" : "s");
}

/* Such as a file that was cut: numbers of a part must not look like numbers of the whole. */
static void add_warnings(struct report *r, const struct profile_facts *f)
{
    if (f->n_warnings > 0 && ARENA_PUSH(&r->arena, r->notes, r->n_notes, r->notes_capacity))
        r->notes[r->n_notes - 1] = (struct note){
            S("profile_warnings"),
            S("warnings about the profile's files: tacho tool summary lists them"), f->n_warnings};
}

bool report_build(struct report *r, const struct report_input *in, struct err *e)
{
    memset(r, 0, sizeof *r);
    arena_init(&r->arena, "report", LIMIT_ARENA_TOOL_BYTES);
    must(in->ledger != NULL || in->facts != NULL);
    struct rules x = {.r = r, .in = in, .floor_percent = 1};
    r->subject = arena_str(&r->arena, in->subject);
    r->is_run = in->ledger != NULL;
    r->silent = in->ledger != NULL && in->ledger->workload_silent && in->facts == NULL;
    if (in->ledger != NULL)
        rules_of_run(&x);
    x.floor_percent = 1;
    if (in->facts != NULL) {
        rules_of_profile(&x);
    } else {
        rules_abstain(&x, FINDING_GPU_GAPS, "a profile");
        rules_abstain(&x, FINDING_PROFILE_INCOMPLETE, "a profile");
    }
    if (r->n_findings > 1)
        qsort(r->findings, r->n_findings, sizeof *r->findings, compare_findings);
    merge_same(r);
    drop_answered(r);
    add_key_metrics(r, in);
    if (in->ledger != NULL) {
        add_ledger_section(r, in->ledger);
        add_run_steps(r, in->ledger);
        add_environment(r, in);
    }
    if (in->facts != NULL && in->ledger == NULL) {
        add_profile_steps(r, in->facts);
        add_devices(r, in->facts);
    }
    if (in->facts != NULL)
        add_ops(r, in->facts);
    if (in->facts != NULL)
        add_warnings(r, in->facts);
    r->optimal = is_optimal(r, in);
    write_summary(r, in);
    return r->arena.overflow ? arena_full(&r->arena, e) : true;
}
