/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ledger.h"

static const struct {
    const char *word, *family, *meaning;
} categories[LEDGER_N_CATEGORIES] = {
#define X(name, word, family, productive, meaning) {word, family, meaning},
#include "model/categories.def"
#undef X
};

const char *ledger_category_word(enum ledger_category c)
{
    return categories[c].word;
}

const char *ledger_category_family(enum ledger_category c)
{
    return categories[c].family;
}

const char *ledger_category_meaning(enum ledger_category c)
{
    return categories[c].meaning;
}

bool ledger_check(const struct ledger *l)
{
    int64_t at_ns = l->from_ns, sum_ns = 0;
    for (uint32_t i = 0; i < l->n_segments; i++) {
        if (l->segments[i].from_ns != at_ns || l->segments[i].to_ns <= at_ns)
            return false;
        at_ns = l->segments[i].to_ns;
    }
    for (uint32_t i = 0; i < l->n_totals; i++)
        sum_ns += l->totals[i].total_ns;
    return at_ns == l->to_ns && sum_ns == l->total_ns && l->total_ns == l->to_ns - l->from_ns;
}

struct totals {
    struct ledger_total *items;
    uint32_t n, capacity;
};

/* The total of that segment's category and detail; made in its place in the order when new. */
static struct ledger_total *total_of(struct totals *t, struct arena *a,
                                     const struct ledger_segment *s)
{
    uint32_t at = 0;
    for (; at < t->n; at++) {
        const struct ledger_total *have = &t->items[at];
        const int order = have->category != s->category
                              ? (have->category < s->category ? -1 : 1)
                              : str_cmp(have->detail, s->detail);
        if (order == 0)
            return &t->items[at];
        if (order > 0)
            break;
    }
    if (!ARENA_PUSH(a, t->items, t->n, t->capacity))
        return NULL;
    memmove(&t->items[at + 1], &t->items[at], (t->n - 1 - at) * sizeof *t->items);
    const char *word = ledger_category_word(s->category);
    t->items[at] = (struct ledger_total){
        .category = s->category,
        .detail = s->detail,
        .word = s->detail.n == 0 ? str_from(word)
                                 : arena_printf(a, "%s:%.*s", word, STR_ARG(s->detail)),
    };
    return &t->items[at];
}

struct ledger_total *ledger_window(const struct ledger *l, int64_t from_ns, int64_t to_ns,
                                   struct arena *a, uint32_t *n)
{
    struct totals totals = {0};
    for (uint32_t i = 0; i < l->n_segments; i++) {
        const struct ledger_segment *s = &l->segments[i];
        const int64_t from = s->from_ns > from_ns ? s->from_ns : from_ns;
        const int64_t to = s->to_ns < to_ns ? s->to_ns : to_ns;
        if (from >= to)
            continue;
        struct ledger_total *t = total_of(&totals, a, s);
        if (t == NULL)
            return NULL;
        t->total_ns += to - from;
        t->count++;
    }
    *n = totals.n;
    return totals.items;
}
