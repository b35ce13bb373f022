/* SPDX-License-Identifier: Apache-2.0 */
#include "goodput/timeline.h"

#include <stdlib.h>

/* What happens inside something else wins over it: a save over its step, a re-initialisation over the
 * device init in it. */
static int rank_of(const struct timeline_span *s)
{
    if (s->step_index != TIMELINE_NO_STEP)
        return 0;
    switch (s->category) {
    case LEDGER_INITIALIZATION:
    case LEDGER_TRAINING_PREP:
        return 1;
    case LEDGER_PROGRAM_STARTUP:
    case LEDGER_DATA_LOADING_SYNC:
    case LEDGER_IDLE:
        return 2;
    case LEDGER_CHECKPOINT_SAVE:
    case LEDGER_CHECKPOINT_RESTORE:
        return 3;
    case LEDGER_CUSTOM:
        return 4;
    case LEDGER_ELASTIC_WAIT:
        return 5;
    case LEDGER_ELASTIC_REINIT:
        return 6;
    default:
        return 7;
    }
}

static int compare_spans(const void *left, const void *right)
{
    const struct timeline_span *a = left, *b = right;
    if (a->from_ns != b->from_ns)
        return a->from_ns < b->from_ns ? -1 : 1;
    const int ra = rank_of(a), rb = rank_of(b);
    if (ra != rb)
        return ra < rb ? -1 : 1;
    if (a->to_ns != b->to_ns)
        return a->to_ns < b->to_ns ? 1 : -1;
    return a->step_index < b->step_index ? -1 : a->step_index > b->step_index;
}

struct heap { /* of span indices, the one that is painted on top */
    const struct timeline_span *spans;
    uint32_t *items, n;
};

static bool above(const struct heap *h, uint32_t a, uint32_t b)
{
    const int ra = rank_of(&h->spans[a]), rb = rank_of(&h->spans[b]);
    return ra != rb ? ra > rb : a > b; /* of equal rank the one that began later */
}

static void heap_swap(struct heap *h, uint32_t a, uint32_t b)
{
    const uint32_t kept = h->items[a];
    h->items[a] = h->items[b];
    h->items[b] = kept;
}

static void heap_push(struct heap *h, uint32_t item)
{
    uint32_t i = h->n++;
    h->items[i] = item;
    for (; i > 0 && above(h, h->items[i], h->items[(i - 1) / 2]); i = (i - 1) / 2)
        heap_swap(h, i, (i - 1) / 2);
}

static void heap_pop(struct heap *h)
{
    h->items[0] = h->items[--h->n];
    for (uint32_t i = 0;;) {
        uint32_t best = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < h->n; child++)
            if (above(h, h->items[child], h->items[best]))
                best = child;
        if (best == i)
            return;
        heap_swap(h, i, best);
        i = best;
    }
}

struct timeline_piece *timeline_paint(struct timeline *t, uint32_t *n)
{
    struct timeline_piece *pieces = NULL;
    uint32_t capacity = 0, next = 0;
    struct heap h = {.items = ARENA_ARRAY(t->a, uint32_t, t->n_spans + 1)};
    *n = 0;
    if (h.items == NULL)
        return NULL;
    if (t->n_spans > 1)
        qsort(t->spans, t->n_spans, sizeof *t->spans, compare_spans);
    h.spans = t->spans;
    for (int64_t at = t->from_ns; at < t->to_ns;) {
        while (next < t->n_spans && t->spans[next].from_ns <= at)
            heap_push(&h, next++);
        while (h.n > 0 && t->spans[h.items[0]].to_ns <= at)
            heap_pop(&h);
        const uint32_t top = h.n > 0 ? h.items[0] : UINT32_MAX;
        int64_t until = t->to_ns;
        if (top != UINT32_MAX && t->spans[top].to_ns < until)
            until = t->spans[top].to_ns;
        if (next < t->n_spans && t->spans[next].from_ns < until)
            until = t->spans[next].from_ns;
        if (*n > 0 && pieces[*n - 1].span == top) {
            pieces[*n - 1].to_ns = until;
        } else if (ARENA_PUSH(t->a, pieces, *n, capacity)) {
            pieces[*n - 1] = (struct timeline_piece){at, until, top};
        } else {
            return NULL;
        }
        at = until;
    }
    return pieces;
}
