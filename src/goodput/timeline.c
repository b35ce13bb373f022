/* SPDX-License-Identifier: Apache-2.0 */
#include "goodput/timeline.h"

#include <stdlib.h>

void timeline_add(struct timeline *t, enum ledger_category category, str detail, int64_t from_ns,
                  int64_t to_ns, int64_t step, uint32_t attempt)
{
    if (to_ns <= from_ns || !ARENA_PUSH(t->a, t->spans, t->n_spans, t->spans_capacity))
        return;
    t->spans[t->n_spans - 1] = (struct timeline_span){.from_ns = from_ns,
                                                      .to_ns = to_ns,
                                                      .category = category,
                                                      .detail = detail,
                                                      .step_index = TIMELINE_NO_STEP,
                                                      .step = step,
                                                      .attempt = attempt};
}

void timeline_disrupted(struct timeline *t, int64_t at_ns)
{
    if (ARENA_PUSH(t->a, t->disruptions_ns, t->n_disruptions, t->disruptions_capacity))
        t->disruptions_ns[t->n_disruptions - 1] = at_ns;
}

struct timeline_step *timeline_add_step(struct timeline *t, int64_t step, int64_t from_ns,
                                        uint32_t attempt)
{
    if (!ARENA_PUSH(t->a, t->steps, t->n_steps, t->steps_capacity))
        return NULL;
    struct timeline_step *s = &t->steps[t->n_steps - 1];
    *s = (struct timeline_step){.step = step,
                                .from_ns = from_ns,
                                .to_ns = from_ns,
                                .attempt = attempt,
                                .stuck_after_ns = -1,
                                .own = LEDGER_PRODUCTIVE_STEP,
                                .rest = LEDGER_OTHER};
    return s;
}

struct ledger_attempt *timeline_add_attempt(struct timeline *t, int64_t from_ns, int64_t to_ns)
{
    if (!ARENA_PUSH(t->a, t->attempts, t->n_attempts, t->attempts_capacity))
        return NULL;
    struct ledger_attempt *made = &t->attempts[t->n_attempts - 1];
    *made = (struct ledger_attempt){.number = t->n_attempts,
                                    .from_ns = from_ns,
                                    .to_ns = to_ns,
                                    .first_step = -1,
                                    .last_step = -1,
                                    .code = -1};
    return made;
}

bool timeline_category(enum record_phase p, enum ledger_category *c)
{
    static const struct {
        enum record_phase phase;
        enum ledger_category category;
    } rows[] = {
        {PHASE_ACCELERATOR_INIT, LEDGER_INITIALIZATION},
        {PHASE_TRAINING_PREP, LEDGER_TRAINING_PREP},
        {PHASE_DATA_LOADING, LEDGER_DATA_LOADING_SYNC},
        {PHASE_CHECKPOINT_SAVE, LEDGER_CHECKPOINT_SAVE},
        {PHASE_CHECKPOINT_RESTORE, LEDGER_CHECKPOINT_RESTORE},
        {PHASE_COMPILE, LEDGER_PROGRAM_STARTUP},
        {PHASE_EVAL, LEDGER_CUSTOM},
        {PHASE_CUSTOM, LEDGER_CUSTOM},
        {PHASE_ELASTIC_WAIT, LEDGER_ELASTIC_WAIT},
        {PHASE_ELASTIC_REINIT, LEDGER_ELASTIC_REINIT},
        {PHASE_IDLE, LEDGER_IDLE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].phase == p) {
            *c = rows[i].category;
            return true;
        }
    }
    return false;
}

str timeline_detail(struct timeline *t, enum record_phase p, str type)
{
    if (p == PHASE_EVAL)
        return S("EVAL");
    if (p != PHASE_CUSTOM && p != PHASE_ELASTIC_WAIT)
        return (str){0};
    if (type.n == 0)
        type = S("unknown");
    char *word = arena_cstr(t->a, str_clip_utf8(type, 200));
    if (word == NULL)
        return (str){0};
    const str known = str_from(word);
    if (p == PHASE_ELASTIC_WAIT)
        return str_find_nocase(known, S("scale_up")) >= 0 ? S("scale_up") : S("slice_down");
    for (char *c = word; *c != '\0'; c++)
        if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    return str_from(word);
}

uint32_t timeline_record_at(const struct timeline *t, int64_t ns)
{
    uint32_t low = 0, high = t->set->n_records;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (t->set->records[middle].wall_ns < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int compare_i64(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

int64_t timeline_median(int64_t *values, uint32_t n)
{
    if (n == 0)
        return -1;
    qsort(values, n, sizeof *values, compare_i64);
    return n % 2 == 1 ? values[n / 2] : values[n / 2 - 1] + (values[n / 2] - values[n / 2 - 1]) / 2;
}
