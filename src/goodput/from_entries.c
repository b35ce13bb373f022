/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of flat entries: what the recorder of rank 0 logged, with no step ends and no crashes. */
#include "goodput/intervals.h"

struct entries { /* of process 0 */
    struct timeline *t;
    struct intervals phases;
};

static bool is_recorder(const struct record *r)
{
    return r->process == 0 && r->kind != RECORD_METRIC;
}

/* Inside an elastic re-initialisation, edges included: equal times may be logged in any order. */
static bool in_reinit(const struct entries *x, int64_t ns)
{
    for (uint32_t i = 0; i < x->phases.n; i++)
        if (x->phases.items[i].phase == PHASE_ELASTIC_REINIT && x->phases.items[i].from_ns <= ns &&
            ns <= x->phases.items[i].to_ns)
            return true;
    return false;
}

/* An attempt begins with a job start, or with device init after steps where no job start was logged. */
static void find_attempts(struct entries *x)
{
    struct timeline *t = x->t;
    bool steps_seen = false, any = false;
    for (uint32_t i = 0; i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        if (!is_recorder(r))
            continue;
        const bool job = r->kind == RECORD_BEGIN && r->phase == PHASE_JOB;
        const bool init = r->kind == RECORD_BEGIN && r->phase == PHASE_ACCELERATOR_INIT &&
                          steps_seen && !in_reinit(x, r->wall_ns);
        if (job || init) {
            (void)timeline_add_attempt(t, r->wall_ns, r->wall_ns);
            steps_seen = false;
            any = true;
        }
        steps_seen |= any && r->kind == RECORD_BEGIN && r->phase == PHASE_STEP;
    }
}

static void start_without_job(struct timeline *t)
{
    for (uint32_t i = 0; i < t->set->n_records; i++) {
        if (!is_recorder(&t->set->records[i]))
            continue;
        record_set_note(t->set, S("no_job_start"), 1,
                        "no job start is logged: the run is counted from its first entry");
        (void)timeline_add_attempt(t, t->set->records[i].wall_ns, t->set->records[i].wall_ns);
        return;
    }
}

struct seen {             /* of one attempt */
    int64_t last_ns;      /* last sign of life; prefetching is none */
    int64_t job_end_ns;   /* -1 = not logged */
    int64_t last_step_ns; /* -1 = no step */
    int64_t last_step;
};

static struct seen look(const struct timeline *t, int64_t from_ns, int64_t until_ns)
{
    struct seen s = {.last_ns = from_ns, .job_end_ns = -1, .last_step_ns = -1, .last_step = -1};
    for (uint32_t i = timeline_record_at(t, from_ns); i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        if (r->wall_ns >= until_ns)
            break;
        if (!is_recorder(r))
            continue;
        if (r->phase == PHASE_STEP) {
            s.last_step_ns = r->wall_ns;
            s.last_step = r->step;
        }
        if (r->phase == PHASE_JOB && r->kind == RECORD_END)
            s.job_end_ns = r->wall_ns;
        if (r->phase != PHASE_DATA_LOADING || s.last_step_ns < 0)
            s.last_ns = r->wall_ns;
    }
    if (s.job_end_ns < s.last_step_ns)
        s.job_end_ns = -1;
    return s;
}

static void end_attempts(struct timeline *t)
{
    for (uint32_t i = 0; i < t->n_attempts; i++) {
        struct ledger_attempt *a = &t->attempts[i];
        const bool last = i + 1 == t->n_attempts;
        const int64_t until = last ? INT64_MAX : t->attempts[i + 1].from_ns;
        const struct seen s = look(t, a->from_ns, until);
        int64_t after_ns;
        if (s.job_end_ns >= 0) {
            a->to_ns = s.job_end_ns;
            a->reason = S("exit");
        } else if (last) {
            a->to_ns = t->set->query_ns > s.last_ns ? t->set->query_ns : s.last_ns;
            t->running = true;
        } else if (timeline_hung_step(t, i + 1, s.last_step, &after_ns)) {
            a->to_ns = until;
            a->reason = S("hang");
            record_set_note(
                t->set, S("hang_end"), 1,
                "nobody logged when the hung attempt was killed: its recovery counts as hang");
        } else {
            a->to_ns = s.last_ns;
            a->reason = S("lost");
        }
        timeline_add(t, LEDGER_INFRASTRUCTURE_RECOVERY, (str){0}, a->to_ns, last ? a->to_ns : until,
                     -1, 0);
    }
}

static uint32_t attempt_at(const struct timeline *t, int64_t ns)
{
    uint32_t low = 0, high = t->n_attempts; /* the last attempt that began at or before ns */
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (t->attempts[middle].from_ns <= ns)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* End of the blocking saves of that step after from_ns: proof that the step was done. */
static int64_t saved_until(const struct timeline *t, int64_t step, int64_t from_ns,
                           int64_t until_ns)
{
    int64_t end = -1;
    for (uint32_t i = timeline_record_at(t, from_ns); i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        if (r->wall_ns > until_ns)
            break;
        if (r->kind == RECORD_CHECKPOINT && r->phase == PHASE_CHECKPOINT_SAVE && r->step == step &&
            r->wall_ns - r->duration_ns >= from_ns)
            end = r->wall_ns;
    }
    return end;
}

/* Where a re-initialisation begins to cut a step, waiting before it included; -1 = it does not. */
static int64_t elastic_cut(const struct entries *x, int64_t from_ns, int64_t until_ns)
{
    int64_t first = -1;
    bool reinit = false;
    for (uint32_t i = intervals_at(&x->phases, from_ns);
         i < x->phases.n && x->phases.items[i].from_ns < until_ns; i++) {
        const struct interval *v = &x->phases.items[i];
        if ((v->phase != PHASE_ELASTIC_WAIT && v->phase != PHASE_ELASTIC_REINIT))
            continue;
        if (first < 0)
            first = v->from_ns;
        reinit |= v->phase == PHASE_ELASTIC_REINIT;
    }
    return reinit ? first : -1;
}

static void finish_last_step(struct timeline *t, struct timeline_step *s)
{
    const struct ledger_attempt *a = &t->attempts[s->attempt - 1];
    const int64_t saved = saved_until(t, s->step, s->from_ns, a->to_ns);
    int64_t after_ns;
    s->to_ns = a->to_ns;
    if (saved >= 0) {
        s->to_ns = saved;
        s->complete = true;
    } else if (str_eq(a->reason, S("exit"))) {
        s->complete = s->end_unknown = true;
    } else if (str_eq(a->reason, S("hang")) &&
               timeline_hung_step(t, a->number, s->step, &after_ns)) {
        s->stuck_after_ns = after_ns;
        s->died = true;
    } else if (s->attempt == t->n_attempts) {
        s->in_progress = true;
    }
}

static void begin_group(struct timeline *t, struct timeline_step *s, bool disrupted)
{
    s->cold = true;
    t->n_groups++;
    if (disrupted)
        timeline_disrupted(t, s->from_ns);
}

static void link_steps(struct entries *x)
{
    struct timeline *t = x->t;
    for (uint32_t i = 0; i < t->n_steps; i++) {
        struct timeline_step *s = &t->steps[i];
        struct timeline_step *before = i > 0 ? s - 1 : NULL;
        struct timeline_step *next =
            i + 1 < t->n_steps && s[1].attempt == s->attempt ? s + 1 : NULL;
        if (before == NULL || before->attempt != s->attempt)
            begin_group(t, s, before != NULL);
        else if (s->step <= before->step || !before->complete)
            begin_group(t, s, true);
        s->group = t->n_groups;
        if (next == NULL) {
            finish_last_step(t, s);
            continue;
        }
        const int64_t cut = elastic_cut(x, s->from_ns, next->from_ns);
        s->complete = cut < 0;
        s->to_ns = cut < 0 ? next->from_ns : cut;
    }
}

static void collect_steps(struct timeline *t)
{
    for (uint32_t i = 0; i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        if (!is_recorder(r) || r->kind != RECORD_BEGIN || r->phase != PHASE_STEP ||
            r->wall_ns < t->attempts[0].from_ns)
            continue;
        struct ledger_attempt *a = &t->attempts[attempt_at(t, r->wall_ns)];
        (void)timeline_add_step(t, r->step, r->wall_ns, a->number);
        a->first_step = a->first_step < 0 ? r->step : a->first_step;
        a->last_step = r->step > a->last_step ? r->step : a->last_step;
    }
}

/* A load blocks the loop only where no step runs: before the first of a group. */
static bool load_blocks(const struct entries *x, const struct interval *v)
{
    const struct timeline *t = x->t;
    uint32_t low = 0, high = t->n_steps; /* steps that began at or before the load */
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (t->steps[middle].from_ns <= v->from_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return true;
    const struct timeline_step *s = &t->steps[low - 1];
    return s->attempt != t->attempts[attempt_at(t, v->from_ns)].number || v->from_ns >= s->to_ns;
}

static void add_phases(struct entries *x)
{
    struct timeline *t = x->t;
    for (uint32_t i = 0; i < x->phases.n; i++) {
        const struct interval *v = &x->phases.items[i];
        const struct ledger_attempt *a = &t->attempts[attempt_at(t, v->from_ns)];
        enum ledger_category c;
        if (!timeline_category(v->phase, &c) ||
            (v->phase == PHASE_DATA_LOADING && !load_blocks(x, v)))
            continue;
        const int64_t end = v->to_ns < v->replaced_ns ? v->to_ns : v->replaced_ns;
        timeline_add(t, c, timeline_detail(t, v->phase, v->type), v->from_ns,
                     end < a->to_ns ? end : a->to_ns, -1, a->number);
    }
    for (uint32_t i = 0; i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        enum ledger_category c;
        if (r->kind != RECORD_CHECKPOINT || !timeline_category(r->phase, &c) ||
            r->duration_ns > r->wall_ns)
            continue;
        const struct ledger_attempt *a = &t->attempts[attempt_at(t, r->wall_ns - r->duration_ns)];
        timeline_add(t, c, (str){0}, r->wall_ns - r->duration_ns,
                     r->wall_ns < a->to_ns ? r->wall_ns : a->to_ns, r->step, a->number);
    }
}

bool timeline_from_entries(struct timeline *t, struct err *e)
{
    struct entries x = {.t = t};
    t->lead_process = 0;
    t->lead_rank = 0;
    intervals_pair(t, 0, 0, INT64_MAX, true, &x.phases);
    find_attempts(&x);
    if (t->n_attempts == 0)
        start_without_job(t);
    if (t->n_attempts == 0)
        return err_set(e, ERR_PARSE, "no entry tells when the job ran");
    end_attempts(t);
    t->from_ns = t->attempts[0].from_ns;
    t->to_ns = t->attempts[t->n_attempts - 1].to_ns;
    collect_steps(t);
    link_steps(&x);
    add_phases(&x);
    if (x.phases.n_ends_alone > 0)
        record_set_note(t->set, S("end_without_begin"), x.phases.n_ends_alone,
                        "ends of a phase whose begin is not there");
    return true;
}
