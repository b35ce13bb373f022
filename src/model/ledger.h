/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: a run's wall time, each nanosecond in exactly one category.
 * Invariant (ledger_check): segments are sorted, touch, cover [from_ns, to_ns) exactly, so the
 * category totals sum to total_ns exactly. Made by goodput/ledger_build; printed by goodput/print. */
#ifndef TACHO_MODEL_LEDGER_H
#define TACHO_MODEL_LEDGER_H

#include "model/record.h"

enum ledger_category {
#define X(name, word, family, productive, meaning) LEDGER_##name,
#include "model/categories.def"
#undef X
    LEDGER_N_CATEGORIES
};
const char *ledger_category_word(enum ledger_category c);
const char *ledger_category_family(enum ledger_category c);

struct ledger_segment {
    int64_t from_ns, to_ns; /* wall */
    enum ledger_category category;
    str detail;       /* TYPE of custom, kind of elastic_wait; else empty */
    int64_t step;     /* -1 = none */
    uint32_t attempt; /* 1… ; 0 between attempts */
};

struct ledger_total {
    enum ledger_category category;
    str detail;
    str word; /* "custom:EVAL", "elastic_wait:slice_down", "productive_step" */
    int64_t total_ns;
    uint64_t count; /* merged occurrences */
};

struct ledger_attempt {
    uint32_t number;
    int64_t from_ns, to_ns;
    int64_t first_step, last_step; /* -1 = none */
    int32_t code, signal;          /* of its end; code -1 = not known */
    str reason;                    /* exit, signal, exception, oom, preempted, lost, hang or "" */
};

struct ledger_step {               /* kept step times, for deviation and jitter */
    int64_t step, from_ns, dur_ns; /* dur: step work without what is accounted elsewhere */
    uint32_t attempt;
    bool wasted, startup;
};

struct ledger_rank {
    int32_t rank;
    str host;
    int64_t step_p50_ns;   /* -1 = not known */
    double slower_percent; /* than the median of the ranks */
    bool straggler;
    int64_t cost_ns; /* at most this much of the run's time is its slowness */
    int64_t first_slow_step, last_slow_step; /* -1 = none */
    int64_t hung_step;                       /* it never finished that step; -1 = none */
};

struct ledger_step_stats { /* over warm steps; n = 0: unknown */
    uint64_t n;
    int64_t ideal_ns, mean_ns, p50_ns, p99_ns, deviation_ns;
};

struct ledger {
    struct arena *arena; /* borrowed: the record set's */
    str run;
    int32_t lead_rank; /* -1 = not known */
    int64_t from_ns, to_ns, total_ns, productive_ns;
    struct ledger_segment *segments;
    uint32_t n_segments, segments_capacity;
    struct ledger_total *totals; /* in the order of categories.def, then detail */
    uint32_t n_totals, totals_capacity;
    struct ledger_attempt *attempts;
    uint32_t n_attempts, attempts_capacity;
    struct ledger_step *steps;
    uint32_t n_steps, steps_capacity;
    struct ledger_rank *ranks;
    uint32_t n_ranks, ranks_capacity;
    struct ledger_step_stats step_stats;
    /* When the loop went on after one, or ended with it; wall, ascending. */
    int64_t *disruptions_ns;
    uint32_t n_disruptions;
    uint64_t n_loads;            /* of the lead rank's journals, that may hold its loop up */
    uint64_t n_prefetches;       /* loads of threads that record no step: in no category */
    int64_t max_productive_step; /* -1 = none */
    bool running;                /* no end seen */
    bool workload_silent;        /* `tacho run` alone recorded: what was productive is not known */
};

/* True when the invariant holds. For tests and slow_must. */
bool ledger_check(const struct ledger *l);
struct ledger_part { /* [from_ns, to_ns), not empty */
    int64_t from_ns, to_ns;
};
/* The part that ns is in, or NULL; they are sorted and apart. */
const struct ledger_part *ledger_part_at(const struct ledger_part *parts, uint32_t n, int64_t ns);
/* Totals over these parts only, which are sorted and apart; allocated in a. They sum to the parts' time
 * within the ledger exactly. */
struct ledger_total *ledger_sum(const struct ledger *l, const struct ledger_part *parts,
                                uint32_t n_parts, struct arena *a, uint32_t *n);
/* The same over one part, which may be empty. */
struct ledger_total *ledger_window(const struct ledger *l, int64_t from_ns, int64_t to_ns,
                                   struct arena *a, uint32_t *n);

#endif
