/* SPDX-License-Identifier: Apache-2.0 */
/* Chosen stats of the events of one line, for passes over many events: nothing is allocated for an
 * event, what was not asked for is not decoded, and the file is read ahead.
 *
 *     static const str names[] = {STR_INIT("_r"), STR_INIT("step_num")};
 *     struct trace_picker p;
 *     trace_picker_init(&p, t, line, names, 2);
 *     for (trace_cursor_init(&c, t, line); ok && trace_cursor_next(&c);)
 *         if ((ok = trace_pick(&p, &c.event, e)))
 *             ... p.values[0], p.values[1]; type TRACE_STAT_NONE: the event has no such stat ...
 *     trace_picker_release(&p);
 *
 * Names that side_stats.def has are read from the side columns, the others from the profile's file.
 * Names are distinct. The first stat of a name counts, as in trace_stat_find. Text is valid until the
 * next pick. The names must outlive the picker. Events are best picked in the order of a cursor. Errors are those
 * of trace_event_stats. Thread: one at a time. */
#ifndef TACHO_MODEL_TRACE_PICK_H
#define TACHO_MODEL_TRACE_PICK_H

#include "model/trace.h"
#include "model/trace_groups.h"

#define TRACE_PICK_MAX 12    /* names */
#define TRACE_PICK_SMALL 256 /* ids below are looked up once */

struct trace_picker {
    struct trace_stat values[TRACE_PICK_MAX]; /* in the order of the names; no names in them */
    /* private: */
    const struct trace *trace;
    const struct trace_plane *plane;
    const str *names;
    uint32_t n;
    uint32_t seen;                     /* bit i: the event at hand has values[i] */
    bool any;                          /* the plane knows one of the names */
    bool all_on_side;                  /* every name that the plane knows has a side column */
    uint8_t wanted[SIDE_SLOTS];        /* by side slot: 1 + i of names[i], or 0 */
    const struct trace_cursor *cursor; /* whose row groups are used; or NULL */
    struct trace_group_view own;       /* of an event that is not the cursor's */
    const struct trace_group_view
        *view;              /* of the event at hand: own, or the cursor's; NULL: none yet */
    uint32_t group;         /* that side is of, with a view, … */
    const uint8_t *side_at; /* … and of these bytes */
    struct side_view side;
    uint32_t n_sections; /* of them, those asked for: */
    uint8_t sections[SIDE_SLOTS * SIDE_KINDS];
    uint8_t slots[TRACE_PICK_SMALL]; /* of stat ids: 0 unknown yet, 1 not asked for, 2 + i */
    char *bytes;                     /* of the file, read ahead; owned */
    uint64_t at, file_bytes;         /* where bytes begin; of the file, 0 unknown yet */
    size_t n_bytes, capacity, ahead;
    struct arena texts; /* inflated text of the event at hand */
};

void trace_picker_init(struct trace_picker *p, const struct trace *t, uint32_t line_index,
                       const str *names, uint32_t n);
/* The events are that cursor's: its row groups are not opened a second time. The cursor stays where it is. */
void trace_picker_follow(struct trace_picker *p, const struct trace_cursor *c);
MUST_CHECK bool trace_pick(struct trace_picker *p, const struct trace_event *ev, struct err *e);
/* The stats of one name, as numbers, of a batch of events: I64, U64 or F64, or NONE where it is no number. */
struct trace_numbers {
    bool any;                           /* false: no event has it, and the rest says nothing */
    uint8_t types[TRACE_CURSOR_WINDOW]; /* enum trace_stat_type */
    uint64_t bits[TRACE_CURSOR_WINDOW]; /* as in trace_stat */
};
static inline bool trace_numbers_has(const struct trace_numbers *numbers, uint32_t i)
{
    return numbers->any && numbers->types[i] != TRACE_STAT_NONE;
}
/* What trace_pick would give for each of n events that trace_cursor_take gave at once, name by name: out[names]. Text
 * that is a number counts as one. */
MUST_CHECK bool trace_pick_numbers(struct trace_picker *p, const struct trace_event *events,
                                   uint32_t n, struct trace_numbers *out, struct err *e);
static inline bool trace_number_i64(const struct trace_numbers *numbers, uint32_t i, int64_t *out)
{
    if (!trace_numbers_has(numbers, i))
        return false;
    const struct trace_stat s = {.type = (enum trace_stat_type)numbers->types[i],
                                 .u64 = numbers->bits[i]};
    if (s.type != TRACE_STAT_I64)
        return trace_stat_i64(&s, out);
    *out = s.i64;
    return true;
}
static inline bool trace_number_f64(const struct trace_numbers *numbers, uint32_t i, double *out)
{
    if (!trace_numbers_has(numbers, i))
        return false;
    const struct trace_stat s = {.type = (enum trace_stat_type)numbers->types[i],
                                 .u64 = numbers->bits[i]};
    return trace_stat_f64(&s, out);
}
void trace_picker_release(struct trace_picker *p);

/* For the source: where a stat of that id goes, or NULL when it is not asked for or had already. */
struct trace_stat *trace_picker_take(struct trace_picker *p, uint64_t stat_id);

#endif
