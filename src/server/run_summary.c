/* SPDX-License-Identifier: Apache-2.0 */
#include "server/run_summary.h"

#include "base/clock.h"
#include "model/table_print.h"
#include "server/doc.h"

/* {"jax":"0.4.30","torch":"2.1"} -> "jax 0.4.30, torch 2.1" */
static str framework_of(struct doc *root, struct arena *a)
{
    struct doc *frameworks = doc_get(root, "framework"), *version;
    const char *name;
    void *at = NULL;
    str out = {0};
    if (doc_is_text(frameworks))
        return doc_string(frameworks, a);
    while (doc_next(frameworks, &at, &name, &version)) {
        const str text = doc_string(version, a);
        out = arena_printf(a, "%.*s%s%s%s%.*s", STR_ARG(out), out.n > 0 ? ", " : "", name,
                           text.n == 0 ? "" : " ", STR_ARG(text));
    }
    return out;
}

/* The first record that says a thing is right. */
static void take_start(struct run_summary *s, const struct record *r, struct arena *a)
{
    struct err ignored = {0};
    struct doc *root = doc_parse(r->text, &ignored);
    if (s->name.n == 0)
        s->name = doc_text(root, "name", a);
    if (s->group.n == 0)
        s->group = doc_text(root, "group", a);
    if (s->framework.n == 0)
        s->framework = framework_of(root, a);
    if (s->labels.n == 0)
        s->labels = doc_dump(doc_object(root, "labels"), a);
    if (s->argv.n == 0 && doc_is_array(doc_get(root, "argv")))
        s->argv = doc_dump(doc_get(root, "argv"), a);
    doc_free(root);
}

static void take_config(struct doc *all, const struct record *r)
{
    struct err ignored = {0};
    struct doc *d = doc_parse(r->text, &ignored);
    doc_merge(all, d);
    doc_free(d);
}

static void scan_records(const struct record_set *set, struct arena *a, struct run_summary *s)
{
    struct doc *configs = doc_new();
    for (uint32_t i = 0; i < set->n_records; i++) {
        const struct record *r = &set->records[i];
        switch (r->kind) {
        case RECORD_RUNNER_START:
        case RECORD_PROCESS_START:
            take_start(s, r, a);
            break;
        case RECORD_CONFIG:
            take_config(configs, r);
            break;
        case RECORD_HOST:
            if (s->facts.n == 0)
                s->facts = r->text;
            break;
        case RECORD_BEGIN:
            if (r->phase == PHASE_STEP)
                s->step = r->step;
            break;
        default:
            break;
        }
    }
    s->configs = doc_dump(configs, a);
    doc_free(configs);
}

static uint32_t count_hosts(const struct record_set *set)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < set->n_processes; i++) {
        bool seen = false;
        for (uint32_t k = 0; k < i && !seen; k++)
            seen = str_eq(set->processes[i].host, set->processes[k].host);
        n += !seen;
    }
    return n;
}

/* The newest process of that kind, or NULL. */
static const struct record_process *newest_process(const struct record_set *set, bool runner)
{
    const struct record_process *newest = NULL;
    for (uint32_t i = 0; i < set->n_processes; i++)
        if (set->processes[i].runner == runner &&
            (newest == NULL || set->processes[i].start_ns > newest->start_ns))
            newest = &set->processes[i];
    return newest;
}

static const struct record *end_of(const struct record_set *set, const struct record_process *p)
{
    for (uint32_t i = set->n_records; i > 0; i--) {
        const struct record *r = &set->records[i - 1];
        if ((r->kind == RECORD_RUNNER_END || r->kind == RECORD_PROCESS_END) &&
            &set->processes[r->process] == p)
            return r;
    }
    return NULL;
}

/* As the workload said it itself: the newest process that ended badly, else any that ended, if all ended. */
static const struct record_process *workload_end(const struct record_set *set)
{
    const struct record_process *newest = newest_process(set, false);
    for (uint32_t i = 0; newest != NULL && i < set->n_processes; i++) {
        const struct record_process *p = &set->processes[i];
        const struct record *end = end_of(set, p);
        if (p->runner || p->attempt != newest->attempt)
            continue;
        if (end == NULL)
            return p;
        if (end->code != 0)
            newest = p;
    }
    return newest;
}

/* Whether any process that did not say its end goes on: seen by this host's kernel, or, where that
 * cannot tell, by records that are not too old. */
static bool goes_on(const struct record_set *set, int64_t now_ns, int64_t silence_s)
{
    for (uint32_t i = 0; i < set->n_processes; i++) {
        const struct record_process *p = &set->processes[i];
        if (p->ended)
            continue;
        if (p->presence == PRESENCE_THERE ||
            (p->presence == PRESENCE_UNKNOWN && now_ns - p->last_ns <= silence_s * NS_PER_S))
            return true;
    }
    return false;
}

static void find_state(const struct run_view *v, int64_t now_ns, struct arena *a,
                       struct run_summary *s)
{
    const struct record_set *set = &v->decoder.set;
    const struct record_process *p = newest_process(set, true), *workload = workload_end(set);
    const int64_t silence_s = p == NULL ? WORKLOAD_SILENCE_S : RUNNER_SILENCE_S;
    const int64_t runner_start_ns = p == NULL ? INT64_MIN : p->start_ns;
    const struct record *end = p == NULL ? NULL : end_of(set, p);
    const bool live = end == NULL && goes_on(set, now_ns, silence_s);
    if (end == NULL && !live && workload != NULL && workload->start_ns >= runner_start_ns)
        end = end_of(set, workload);
    s->phase = "ACTIVE";
    s->health = "ok";
    if (end != NULL) {
        s->phase = end->code == 0 && end->signal == 0 ? "COMPLETED" : "FAILED";
        s->reason = end->text.n > 0    ? arena_cstr(a, end->text)
                    : end->signal != 0 ? "signal"
                                       : "exit";
        s->ended_ns = s->last_ns;
    } else if (!live) {
        s->phase = "FAILED";
        s->reason = "lost";
        s->ended_ns = s->last_ns;
    } else {
        s->is_live = true;
    }
    if (v->has_ledger && s->is_live && v->ledger.n_segments > 0 &&
        v->ledger.segments[v->ledger.n_segments - 1].category == LEDGER_HANG)
        s->health = "hung";
}

void run_summary_make(const struct run_view *v, int64_t now_ns, struct arena *a,
                      struct run_summary *out)
{
    *out = (struct run_summary){.step = -1};
    for (uint32_t i = 0; i < v->decoder.set.n_processes; i++) {
        const struct record_process *p = &v->decoder.set.processes[i];
        if (out->started_ns == 0 || p->start_ns < out->started_ns)
            out->started_ns = p->start_ns;
        if (p->last_ns > out->last_ns)
            out->last_ns = p->last_ns;
    }
    for (uint32_t i = 0; i < v->decoder.set.n_processes; i++)
        if (v->decoder.set.processes[i].attempt > out->n_attempts)
            out->n_attempts = v->decoder.set.processes[i].attempt;
    if (v->has_ledger)
        out->n_attempts = v->ledger.n_attempts;
    out->n_hosts = count_hosts(&v->decoder.set);
    scan_records(&v->decoder.set, a, out);
    find_state(v, now_ns, a, out);
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0.0;
}

static void put_ledger(const struct ledger *l, struct json *j)
{
    json_key(j, "ledger");
    json_array(j);
    for (uint32_t i = 0; i < l->n_totals; i++) {
        json_object(j);
        json_kstr(j, "category", l->totals[i].word);
        json_key(j, "seconds");
        json_fixed(j, l->totals[i].total_ns, 9);
        json_kf64(j, "percent", share(l->totals[i].total_ns, l->total_ns));
        json_end(j);
    }
    json_end(j);
}

/* Where nothing else is known, the ledger itself says how it went. */
static str verdict_of(const struct ledger *l, struct arena *a)
{
    const struct ledger_total *worst = NULL;
    for (uint32_t i = 0; i < l->n_totals; i++)
        if (l->totals[i].category != LEDGER_PRODUCTIVE_STEP &&
            (worst == NULL || l->totals[i].total_ns > worst->total_ns))
            worst = &l->totals[i];
    const str good = format_duration_ns(a, l->productive_ns),
              all = format_duration_ns(a, l->total_ns);
    if (l->workload_silent)
        return arena_printf(a, "Took %.*s; the workload recorded nothing.", STR_ARG(all));
    if (worst == NULL || worst->total_ns == 0)
        return arena_printf(a, "Productive for %.*s of %.*s.", STR_ARG(good), STR_ARG(all));
    const str lost = format_duration_ns(a, worst->total_ns);
    return arena_printf(a, "Productive for %.*s of %.*s; most of the rest is %.*s, %.*s.",
                        STR_ARG(good), STR_ARG(all), STR_ARG(worst->word), STR_ARG(lost));
}

static void put_ledger_facts(const struct run_view *v, str verdict, struct arena *a, struct json *j)
{
    static const char *const unknown[] = {"wall_s", "goodput_percent", "ledger", "step_time_p50_s",
                                          "verdict"};
    const struct ledger *l = &v->ledger;
    if (!v->has_ledger) {
        for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
            json_knull(j, unknown[i]);
        return;
    }
    json_key(j, "wall_s");
    json_fixed(j, l->total_ns, 9);
    if (l->workload_silent)
        json_knull(j, "goodput_percent");
    else
        json_kf64(j, "goodput_percent", share(l->productive_ns, l->total_ns));
    put_ledger(l, j);
    json_key(j, "step_time_p50_s");
    if (l->step_stats.n > 0)
        json_fixed(j, l->step_stats.p50_ns, 9);
    else
        json_null(j);
    json_kstr(j, "verdict", verdict.n > 0 ? verdict : verdict_of(l, a));
}

static void put_json_or(struct json *j, const char *key, str text, const char *otherwise)
{
    json_key(j, key);
    json_raw(j, text.n > 0 ? text : str_from(otherwise));
}

void run_summary_put_details(const struct run_summary *s, struct json *j)
{
    json_object(j);
    put_json_or(j, "configs", s->configs, "{}");
    put_json_or(j, "labels", s->labels, "{}");
    json_end(j);
}

/* Text of a record is only put in as it is when it is JSON. */
static str checked_object(str text, struct arena *a)
{
    struct err ignored = {0};
    struct doc *d = doc_parse(text, &ignored);
    const str out = doc_dump(d, a);
    doc_free(d);
    return out;
}

void run_summary_put(const struct run_view *v, const struct run_summary *s, uint32_t n_sessions,
                     str verdict, enum run_detail detail, struct arena *a, struct json *j)
{
    json_object(j);
    json_kcstr(j, "run", v->run);
    json_kstr(j, "name", s->name.n > 0 ? s->name : str_from(v->run));
    json_kstr_or_null(j, "group", s->group);
    json_kcstr(j, "phase", s->phase);
    json_kcstr(j, "reason", s->reason);
    json_kcstr(j, "health", s->health);
    json_ktime(j, "started", s->started_ns);
    json_ktime(j, "ended", s->ended_ns);
    json_ktime(j, "last", s->last_ns);
    put_ledger_facts(v, verdict, a, j);
    if (s->n_attempts > 0)
        json_ku64(j, "attempts", s->n_attempts);
    else
        json_knull(j, "attempts");
    json_key(j, "step");
    if (s->step >= 0)
        json_i64(j, s->step);
    else
        json_null(j);
    json_ku64(j, "hosts", s->n_hosts);
    if (n_sessions == RUN_SESSIONS_UNKNOWN)
        json_knull(j, "sessions");
    else
        json_ku64(j, "sessions", n_sessions);
    json_kstr_or_null(j, "framework", s->framework);
    json_kbool(j, "live", s->is_live);
    if (detail == RUN_FULL) {
        put_json_or(j, "configs", s->configs, "{}");
        put_json_or(j, "labels", s->labels, "{}");
        put_json_or(j, "host_facts", checked_object(s->facts, a), "{}");
        put_json_or(j, "argv", s->argv, "[]");
    }
    json_end(j);
}
