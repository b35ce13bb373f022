/* SPDX-License-Identifier: Apache-2.0 */
/* Of which attempt each process was: told from its life, as the launcher's count starts anew with each
 * `tacho run`. */
#include "goodput/timeline.h"

static int64_t overlap_ns(const struct record_process *p, const struct ledger_attempt *a)
{
    const int64_t from = p->start_ns > a->from_ns ? p->start_ns : a->from_ns;
    const int64_t to = p->last_ns < a->to_ns ? p->last_ns : a->to_ns;
    return to - from;
}

/* The attempt that it shares most time with; one without a life of its own, the last that had begun.
 * A `tacho run` around several attempts (a launcher that restarts its ranks) is of none of them: 0. */
static uint32_t attempt_of(const struct timeline *t, const struct record_process *p)
{
    uint32_t best = 1, n_shared = 0;
    int64_t most_ns = 0;
    for (uint32_t i = 0; i < t->n_attempts; i++) {
        const int64_t shared_ns = overlap_ns(p, &t->attempts[i]);
        n_shared += shared_ns > 0;
        if (shared_ns > most_ns || (most_ns == 0 && t->attempts[i].from_ns <= p->start_ns)) {
            best = i + 1;
            most_ns = shared_ns > most_ns ? shared_ns : most_ns;
        }
    }
    return p->runner && n_shared > 1 ? 0 : best;
}

void timeline_number_processes(struct timeline *t)
{
    for (uint32_t i = 0; i < t->set->n_processes && t->n_attempts > 0; i++)
        t->set->processes[i].attempt = attempt_of(t, &t->set->processes[i]);
}
