/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of our own journals. The runner's journal tells when an attempt's command began and
 * ended, to the moment; without one the newest record of the workload is the last sign of life. */
#include "goodput/intervals.h"

struct life {         /* of one attempt's lead process and runner */
    uint32_t process; /* UINT32_MAX = the command never recorded anything */
    int64_t from_ns, to_ns;
    int64_t process_from_ns; /* its own records begin here */
    bool ended;              /* seen to end, not only silent */
    int32_t code, signal;
    str reason;
};

struct journals {
    struct timeline *t;
    struct life *lives;
    uint32_t n_lives, capacity;
};

static void find_end(const struct timeline *t, uint32_t process, enum record_kind kind,
                     struct life *out)
{
    for (uint32_t i = t->set->n_records; i > 0; i--) {
        const struct record *r = &t->set->records[i - 1];
        if (r->process != process || r->kind != kind)
            continue;
        out->ended = true;
        out->to_ns = r->wall_ns;
        out->code = r->code;
        out->signal = r->signal;
        out->reason = r->text;
        return;
    }
}

/* The lowest rank that recorded a phase; when none did, the lowest there is. */
static int32_t find_lead(const struct timeline *t)
{
    int32_t lead = -1;
    for (uint32_t i = 0; i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        if (r->kind != RECORD_BEGIN || r->process >= t->set->n_processes)
            continue;
        const struct record_process *p = &t->set->processes[r->process];
        if (!p->runner && p->rank >= 0 && (lead < 0 || p->rank < lead))
            lead = p->rank;
    }
    for (uint32_t i = 0; lead < 0 && i < t->set->n_processes; i++)
        if (!t->set->processes[i].runner)
            lead = t->set->processes[i].rank;
    return lead;
}

static struct life life_of(const struct timeline *t, uint32_t process)
{
    const struct record_process *p = &t->set->processes[process];
    struct life l = {.process = process, .code = -1, .to_ns = p->last_ns};
    l.from_ns = l.process_from_ns = p->start_ns;
    find_end(t, process, p->runner ? RECORD_RUNNER_END : RECORD_PROCESS_END, &l);
    if (l.to_ns < l.from_ns)
        l.to_ns = l.from_ns;
    return l;
}

static void insert_life(struct journals *j, struct life l)
{
    if (!ARENA_PUSH(j->t->a, j->lives, j->n_lives, j->capacity))
        return;
    uint32_t at = j->n_lives - 1;
    for (; at > 0 && j->lives[at - 1].from_ns > l.from_ns; at--)
        j->lives[at] = j->lives[at - 1];
    j->lives[at] = l;
}

/* Two processes of the lead rank at once are one attempt: the first speaks for it. */
static void merge_overlaps(struct journals *j)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < j->n_lives; i++) {
        if (kept > 0 && j->lives[i].from_ns < j->lives[kept - 1].to_ns) {
            record_set_note(
                j->t->set, S("overlapping_process"), 1,
                "processes of the lead rank beside another one, left out of the ledger");
            continue;
        }
        j->lives[kept++] = j->lives[i];
    }
    j->n_lives = kept;
}

/* Nothing but `tacho run` wrote: those that ran at one time, on several hosts, are one attempt. It ended
 * when all have, and as the one did that ended badly. */
static void join(struct life *l, const struct life *runner)
{
    const bool bad = l->code > 0 || l->signal != 0;
    l->from_ns = runner->from_ns < l->from_ns ? runner->from_ns : l->from_ns;
    l->to_ns = runner->to_ns > l->to_ns ? runner->to_ns : l->to_ns;
    if (runner->ended && !bad) {
        l->code = runner->code;
        l->signal = runner->signal;
        l->reason = runner->reason;
    }
    l->ended = l->ended && runner->ended;
}

/* The runner's life is the outer one: the first attempt in it begins with it, the last ends with it. */
static void apply_runner(struct journals *j, const struct life *runner)
{
    const str host = j->t->set->processes[runner->process].host;
    struct life *first = NULL, *last = NULL;
    bool overlaps = false;
    for (uint32_t i = 0; i < j->n_lives; i++) {
        struct life *l = &j->lives[i];
        const bool beside = l->from_ns < runner->to_ns && runner->from_ns < l->to_ns;
        if (beside && !overlaps && j->t->workload_silent)
            join(l, runner);
        overlaps |= beside;
        if (l->process == UINT32_MAX || l->process_from_ns < runner->from_ns ||
            l->process_from_ns > runner->to_ns ||
            !str_eq(j->t->set->processes[l->process].host, host))
            continue;
        first = first == NULL ? l : first;
        last = l;
    }
    if (first != NULL) {
        first->from_ns = runner->from_ns;
        if (runner->to_ns > last->to_ns || runner->ended)
            last->to_ns = runner->to_ns;
        if (runner->ended) {
            last->ended = true;
            last->code = runner->code;
            last->signal = runner->signal;
            last->reason = runner->reason;
        }
    } else if (!overlaps) {
        struct life alone = *runner;
        alone.process = UINT32_MAX;
        insert_life(j, alone);
    }
}

/* Where each rank has a `tacho run` of its own, the ends of the others are not the lead rank's. */
static bool is_of_other_rank(const struct timeline *t, const struct record_process *runner)
{
    if (runner->rank < 0 || runner->rank == t->lead_rank)
        return false;
    for (uint32_t i = 0; i < t->set->n_processes; i++) {
        const struct record_process *p = &t->set->processes[i];
        if (!p->runner && p->rank == runner->rank && str_eq(p->host, runner->host))
            return true;
    }
    return false;
}

static void find_lives(struct journals *j)
{
    struct timeline *t = j->t;
    for (uint32_t i = 0; i < t->set->n_processes; i++) {
        const struct record_process *p = &t->set->processes[i];
        if (!p->runner && p->rank == t->lead_rank)
            insert_life(j, life_of(t, i));
    }
    merge_overlaps(j);
    for (uint32_t i = 0; i < t->set->n_processes; i++) {
        const struct record_process *p = &t->set->processes[i];
        if (!p->runner || is_of_other_rank(t, p))
            continue;
        const struct life runner = life_of(t, i);
        apply_runner(j, &runner);
    }
    for (uint32_t i = 0; i + 1 < j->n_lives; i++)
        if (j->lives[i].to_ns > j->lives[i + 1].from_ns)
            j->lives[i].to_ns = j->lives[i + 1].from_ns;
}

static bool ended_badly(const struct ledger_attempt *a)
{
    return a->code > 0 || a->signal != 0;
}

static void add_attempts(struct journals *j)
{
    struct timeline *t = j->t;
    for (uint32_t i = 0; i < j->n_lives; i++) {
        const struct life *l = &j->lives[i];
        struct ledger_attempt *a = timeline_add_attempt(t, l->from_ns, l->to_ns);
        if (a == NULL)
            return;
        a->code = l->ended ? l->code : -1;
        a->signal = l->signal;
        a->reason = l->ended ? l->reason : i + 1 < j->n_lives ? S("lost") : (str){0};
        if (i + 1 < j->n_lives)
            timeline_add(t, LEDGER_INFRASTRUCTURE_RECOVERY, (str){0}, l->to_ns,
                         j->lives[i + 1].from_ns, -1, 0);
    }
    struct life *last = &j->lives[j->n_lives - 1];
    t->running = !last->ended;
    if (t->running && t->set->query_ns > last->to_ns)
        t->attempts[j->n_lives - 1].to_ns = last->to_ns = t->set->query_ns;
}

static void add_step(struct journals *j, const struct interval *v, uint32_t number)
{
    struct timeline *t = j->t;
    struct ledger_attempt *a = &t->attempts[number - 1];
    struct timeline_step *s = timeline_add_step(t, v->step, v->from_ns, number);
    if (s == NULL)
        return;
    s->complete = !v->open;
    s->to_ns = v->open ? v->replaced_ns : v->to_ns;
    if (s->to_ns > a->to_ns)
        s->to_ns = a->to_ns;
    if (v->open && v->replaced_ns == INT64_MAX) {
        const bool last = number == t->n_attempts;
        s->in_progress = last && t->running;
        s->died = !s->in_progress && (!last || ended_badly(a));
    }
    a->first_step = a->first_step < 0 ? v->step : a->first_step;
    a->last_step = v->step > a->last_step ? v->step : a->last_step;
}

/* The lead process's phases; returns when the last of them was seen. */
static int64_t add_phases(struct journals *j, const struct life *l, uint32_t number)
{
    struct timeline *t = j->t;
    struct intervals in = {0};
    int64_t seen_ns = l->process_from_ns;
    intervals_pair(t, l->process, l->process_from_ns, l->to_ns, false, &in);
    for (uint32_t i = 0; i < in.n; i++) {
        const struct interval *v = &in.items[i];
        enum ledger_category c;
        int64_t end = v->open ? v->replaced_ns : v->to_ns;
        end = end < l->to_ns ? end : l->to_ns;
        seen_ns = end > seen_ns ? end : seen_ns;
        t->n_loads += v->phase == PHASE_DATA_LOADING && !intervals_is_prefetch(&in, v);
        if (v->phase == PHASE_STEP)
            add_step(j, v, number);
        else if (intervals_is_prefetch(&in, v))
            t->n_prefetches++;
        else if (timeline_category(v->phase, &c))
            timeline_add(t, c, timeline_detail(t, v->phase, v->type), v->from_ns, end, v->step,
                         number);
    }
    if (in.n_ends_alone > 0)
        record_set_note(t->set, S("end_without_begin"), in.n_ends_alone,
                        "ends of a phase whose begin is not there");
    return seen_ns;
}

static void add_checkpoints(struct journals *j, const struct life *l, uint32_t number)
{
    struct timeline *t = j->t;
    for (uint32_t i = timeline_record_at(t, l->process_from_ns); i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        enum ledger_category c;
        if (r->wall_ns > l->to_ns)
            break;
        if (r->process != l->process || r->kind != RECORD_CHECKPOINT ||
            !timeline_category(r->phase, &c))
            continue;
        const int64_t from = r->duration_ns < r->wall_ns ? r->wall_ns - r->duration_ns : 0;
        timeline_add(t, c, (str){0}, from > l->from_ns ? from : l->from_ns, r->wall_ns, r->step,
                     number);
    }
}

/* An attempt without a step died on the way up: what follows its last record is recovery. */
static void add_dead_attempt(struct journals *j, uint32_t number, int64_t seen_ns)
{
    const struct life *l = &j->lives[number - 1];
    if (j->t->workload_silent)
        return; /* it may have trained all the time: no record says */
    if (number < j->n_lives && j->t->attempts[number - 1].first_step < 0)
        timeline_add(j->t, LEDGER_INFRASTRUCTURE_RECOVERY, (str){0}, seen_ns, l->to_ns, -1, number);
}

static bool reinit_between(const struct timeline *t, int64_t from_ns, int64_t to_ns)
{
    for (uint32_t i = timeline_record_at(t, from_ns); i < t->set->n_records; i++) {
        const struct record *r = &t->set->records[i];
        if (r->wall_ns > to_ns)
            return false;
        if (r->kind == RECORD_BEGIN && r->phase == PHASE_ELASTIC_REINIT)
            return true;
    }
    return false;
}

static void group_steps(struct timeline *t)
{
    for (uint32_t i = 0; i < t->n_steps; i++) {
        struct timeline_step *s = &t->steps[i];
        const bool again = i == 0 || s[-1].attempt != s->attempt || s->step <= s[-1].step ||
                           reinit_between(t, s[-1].from_ns, s->from_ns);
        if (again) {
            s->cold = true;
            t->n_groups++;
            if (i > 0)
                timeline_disrupted(t, s->from_ns);
        }
        s->group = t->n_groups;
    }
    if (t->n_steps > 0 && t->n_attempts > 0 && ended_badly(&t->attempts[t->n_attempts - 1]) &&
        t->steps[t->n_steps - 1].attempt == t->n_attempts)
        timeline_disrupted(t, t->attempts[t->n_attempts - 1].to_ns);
}

/* Without steps each attempt after the first is what a step that comes again is otherwise. */
static void disrupted_by_attempts(struct timeline *t)
{
    const struct ledger_attempt *last = &t->attempts[t->n_attempts - 1];
    for (uint32_t i = 1; i < t->n_attempts; i++)
        timeline_disrupted(t, t->attempts[i].from_ns);
    if (ended_badly(last))
        timeline_disrupted(t, last->to_ns);
}

bool timeline_from_journals(struct timeline *t, struct err *e)
{
    struct journals j = {.t = t};
    bool workload = false;
    for (uint32_t i = 0; i < t->set->n_processes; i++)
        workload |= !t->set->processes[i].runner;
    t->workload_silent = !workload;
    if (!workload)
        record_set_note(t->set, S("workload_silent"), 1,
                        "the workload recorded nothing: its time is `other`; to have it measured, "
                        "add to it `import tachograph; run = tachograph.init()`, and around each "
                        "step `with run.record(tachograph.Event.STEP, step):`");
    t->lead_rank = find_lead(t);
    find_lives(&j);
    if (t->a->overflow)
        return arena_full(t->a, e);
    if (j.n_lives == 0)
        return err_set(e, ERR_PARSE, "no journal of the run tells when it ran");
    add_attempts(&j);
    timeline_number_processes(t);
    if (t->a->overflow)
        return arena_full(t->a, e);
    for (uint32_t i = 0; i < j.n_lives; i++) {
        int64_t seen_ns = j.lives[i].from_ns;
        if (j.lives[i].process != UINT32_MAX) {
            seen_ns = add_phases(&j, &j.lives[i], i + 1);
            add_checkpoints(&j, &j.lives[i], i + 1);
        }
        add_dead_attempt(&j, i + 1, seen_ns);
    }
    t->from_ns = t->attempts[0].from_ns;
    t->to_ns = t->attempts[t->n_attempts - 1].to_ns;
    group_steps(t);
    if (t->workload_silent)
        disrupted_by_attempts(t);
    return true;
}
