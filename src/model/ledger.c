/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ledger.h"

static const struct {
    str word, family, meaning;
} categories[LEDGER_N_CATEGORIES] = {
#define X(name, word, family, productive, meaning)                                                 \
    [LEDGER_##name] = {STR_INIT(word), STR_INIT(family), STR_INIT(meaning)},
#include "model/categories.def"
#undef X
};

const char *ledger_category_word(enum ledger_category c)
{
    return (unsigned)c < LEDGER_N_CATEGORIES ? categories[c].word.p : "other";
}

const char *ledger_category_family(enum ledger_category c)
{
    return (unsigned)c < LEDGER_N_CATEGORIES ? categories[c].family.p : "other";
}

const char *ledger_category_meaning(enum ledger_category c)
{
    return (unsigned)c < LEDGER_N_CATEGORIES ? categories[c].meaning.p : "";
}

bool ledger_check(const struct ledger *l)
{
    int64_t at = l->from_ns, sum = 0;
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        if (s->from_ns != at || s->to_ns <= s->from_ns)
            return false;
        at = s->to_ns;
    }
    for (uint32_t i = 0; i < l->n_totals; i++)
        sum += l->totals[i].total_ns;
    return at == l->to_ns && l->total_ns == l->to_ns - l->from_ns && sum == l->total_ns;
}

/* Position of (category, detail) among the totals, or where it belongs. */
static uint32_t find_total(const struct ledger_total *t, uint32_t n, const struct ledger_segment *s,
                           bool *found)
{
    uint32_t i = 0;
    while (i < n && (t[i].category < s->category ||
                     (t[i].category == s->category && str_cmp(t[i].detail, s->detail) < 0)))
        i++;
    *found = i < n && t[i].category == s->category && str_eq(t[i].detail, s->detail);
    return i;
}

static str total_word(struct arena *a, const struct ledger_segment *s)
{
    const char *word = ledger_category_word(s->category);
    return s->detail.n == 0 ? str_from(word) : arena_printf(a, "%s:%.*s", word, STR_ARG(s->detail));
}

struct ledger_total *ledger_window(const struct ledger *l, int64_t from_ns, int64_t to_ns,
                                   struct arena *a, uint32_t *n)
{
    struct ledger_total *totals = NULL;
    const struct ledger_segment *previous = NULL;
    uint32_t capacity = 0;
    *n = 0;
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        const int64_t from = s->from_ns > from_ns ? s->from_ns : from_ns;
        const int64_t to = s->to_ns < to_ns ? s->to_ns : to_ns;
        bool found;
        if (to <= from)
            continue;
        const uint32_t at = find_total(totals, *n, s, &found);
        if (!found) {
            if (!ARENA_PUSH(a, totals, *n, capacity))
                return NULL;
            memmove(&totals[at + 1], &totals[at], (*n - 1 - at) * sizeof *totals);
            totals[at] = (struct ledger_total){
                .category = s->category, .detail = s->detail, .word = total_word(a, s)};
        }
        totals[at].total_ns += to - from;
        if (previous == NULL || previous->category != s->category || s->step < 0 ||
            previous->step != s->step || previous->attempt != s->attempt)
            totals[at].count++;
        previous = s;
    }
    return totals;
}
