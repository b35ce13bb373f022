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

const struct ledger_part *ledger_part_at(const struct ledger_part *parts, uint32_t n, int64_t ns)
{
    uint32_t low = 0, high = n; /* the first part that ends after ns */
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (parts[middle].to_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && parts[low].from_ns <= ns ? &parts[low] : NULL;
}

struct summing {
    struct arena *a;
    struct ledger_total *totals;
    uint32_t n, capacity;
    const struct ledger_segment *previous; /* that was added */
};

static bool add_time(struct summing *x, const struct ledger_segment *s, int64_t ns)
{
    bool found;
    const uint32_t at = find_total(x->totals, x->n, s, &found);
    if (!found) {
        if (!ARENA_PUSH(x->a, x->totals, x->n, x->capacity))
            return false;
        memmove(&x->totals[at + 1], &x->totals[at], (x->n - 1 - at) * sizeof *x->totals);
        x->totals[at] = (struct ledger_total){
            .category = s->category, .detail = s->detail, .word = total_word(x->a, s)};
    }
    must(x->totals != NULL); /* found, or added */
    x->totals[at].total_ns += ns;
    const struct ledger_segment *p = x->previous;
    if (p == NULL || (p != s && (p->category != s->category || s->step < 0 || p->step != s->step ||
                                 p->attempt != s->attempt)))
        x->totals[at].count++;
    x->previous = s;
    return true;
}

struct ledger_total *ledger_sum(const struct ledger *l, const struct ledger_part *parts,
                                uint32_t n_parts, struct arena *a, uint32_t *n)
{
    struct summing x = {.a = a};
    uint32_t first = 0; /* part that does not end before the segment */
    *n = 0;
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        while (first < n_parts && parts[first].to_ns <= s->from_ns)
            first++;
        for (uint32_t k = first; k < n_parts && parts[k].from_ns < s->to_ns; k++) {
            const int64_t from = s->from_ns > parts[k].from_ns ? s->from_ns : parts[k].from_ns;
            const int64_t to = s->to_ns < parts[k].to_ns ? s->to_ns : parts[k].to_ns;
            if (!add_time(&x, s, to - from))
                return NULL;
        }
    }
    *n = x.n;
    return x.totals;
}

struct ledger_total *ledger_window(const struct ledger *l, int64_t from_ns, int64_t to_ns,
                                   struct arena *a, uint32_t *n)
{
    const struct ledger_part part = {from_ns, to_ns};
    return ledger_sum(l, &part, from_ns < to_ns, a, n);
}
