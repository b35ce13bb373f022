/* SPDX-License-Identifier: Apache-2.0 */
/* What a run did, before every moment has one category: attempts, step executions and spans that may
 * overlap. from_entries.c and from_journals.c fill it, steps.c judges the steps, paint.c makes the
 * segments. Private to goodput/. All times are wall nanoseconds; everything lives in the set's arena. */
#ifndef TACHO_GOODPUT_TIMELINE_H
#define TACHO_GOODPUT_TIMELINE_H

#include "model/ledger.h"

#define TIMELINE_NO_STEP UINT32_MAX
#define TIMELINE_LATEST_NS 8500000000000000000LL

struct timeline_span {
    int64_t from_ns, to_ns;
    enum ledger_category category;
    str detail;
    uint32_t step_index; /* into steps when this is step work, else TIMELINE_NO_STEP */
    int64_t step;        /* number, -1 = none */
    uint32_t attempt;    /* 1… */
};

struct timeline_step { /* one execution of a step */
    int64_t step, from_ns, to_ns;
    uint32_t attempt;
    uint32_t group;         /* steps between two (re)starts */
    bool cold;              /* the first of its group */
    bool complete;          /* known to have reached its end */
    bool end_unknown;       /* it ended somewhere before to_ns: the rest is not step work */
    bool in_progress;       /* runs still */
    bool died;              /* its process ended inside it */
    bool lost;              /* done again later, or thrown away */
    int64_t stuck_after_ns; /* it stopped moving after so much work, as ranks say; -1 = unknown */
    /* found by painting and judging: */
    int64_t work_ns;  /* step work without what has a category of its own */
    int64_t extra_ns; /* first part of the work: program_startup */
    int64_t keep_ns;  /* then this much is the step's own category */
    enum ledger_category own, rest;
};

struct timeline {
    struct record_set *set;
    struct arena *a;
    int64_t from_ns, to_ns; /* the run */
    bool running;
    bool workload_silent; /* `tacho run` alone recorded */
    struct timeline_span *spans;
    uint32_t n_spans, spans_capacity;
    struct timeline_step *steps; /* in order of from_ns */
    uint32_t n_steps, steps_capacity;
    struct ledger_attempt *attempts; /* [from_ns, to_ns): alive */
    uint32_t n_attempts, attempts_capacity;
    uint32_t n_groups;
    int64_t *disruptions_ns; /* when: the step that came again, or the end without one */
    uint32_t n_disruptions, disruptions_capacity;
    uint64_t n_loads, n_prefetches; /* of the lead process, as in struct ledger */
    int32_t lead_rank;
    uint32_t lead_process; /* whose metrics and phases count; UINT32_MAX = several */
};

/* Something that had the loop begin again, or ended it badly. */
void timeline_disrupted(struct timeline *t, int64_t at_ns);
/* Adds a span when it is not empty. */
void timeline_add(struct timeline *t, enum ledger_category category, str detail, int64_t from_ns,
                  int64_t to_ns, int64_t step, uint32_t attempt);
struct timeline_step *timeline_add_step(struct timeline *t, int64_t step, int64_t from_ns,
                                        uint32_t attempt);
struct ledger_attempt *timeline_add_attempt(struct timeline *t, int64_t from_ns, int64_t to_ns);
/* False for step work. */
bool timeline_category(enum record_phase p, enum ledger_category *c);
/* The custom type in upper case, the kind of an elastic wait in lower case, EVAL; else empty. */
str timeline_detail(struct timeline *t, enum record_phase p, str type);

MUST_CHECK bool timeline_from_entries(struct timeline *t, struct err *e);
MUST_CHECK bool timeline_from_journals(struct timeline *t, struct err *e);

/* Sets the attempt of each process of the set from the attempts. */
void timeline_number_processes(struct timeline *t);

/* One piece of the painted run: nothing but `other` when span is UINT32_MAX. */
struct timeline_piece {
    int64_t from_ns, to_ns;
    uint32_t span;
};
/* Every moment gets the span of highest rank there, so that pieces touch and cover the run. */
struct timeline_piece *timeline_paint(struct timeline *t, uint32_t *n);
/* Warm times, start-up, lost and last steps; fills work_ns … rest of each step. */
void timeline_judge_steps(struct timeline *t, const struct timeline_piece *pieces, uint32_t n);
/* Ranks: their step times, who is slow and what it costs, who hung. */
void timeline_ranks(struct timeline *t, struct ledger *out);
/* When ranks say that one of them never finished the step that its attempt died in. */
bool timeline_hung_step(const struct timeline *t, uint32_t attempt, int64_t step,
                        int64_t *after_ns);
/* Index of the first record of the set at or after ns. */
uint32_t timeline_record_at(const struct timeline *t, int64_t ns);
/* The middle of n values, which are reordered; -1 when n is 0. */
int64_t timeline_median(int64_t *values, uint32_t n);

#endif
