/* SPDX-License-Identifier: Apache-2.0 */
#include "store/seen.h"

static uint32_t find_missing(const struct seen *s, uint64_t seq)
{
    for (uint32_t i = 0; i < s->n_missing; i++)
        if (seq >= s->missing[i].from && seq < s->missing[i].to)
            return i;
    return UINT32_MAX;
}

bool seen_has(const struct seen *s, uint64_t seq)
{
    return seq < s->next_seq && find_missing(s, seq) == UINT32_MAX;
}

static void remove_at(struct seen *s, uint32_t i)
{
    memmove(&s->missing[i], &s->missing[i + 1], (s->n_missing - i - 1) * sizeof s->missing[0]);
    s->n_missing--;
}

static void fill(struct seen *s, uint32_t i, uint64_t seq)
{
    struct store_range *r = &s->missing[i];
    if (seq == r->from) {
        r->from++;
    } else if (seq == r->to - 1) {
        r->to--;
    } else {
        if (s->n_missing == STORE_MISSING_MAX) {
            r->from = seq + 1; /* the lower part is closed */
            return;
        }
        memmove(r + 1, r, (s->n_missing - i) * sizeof *r);
        s->n_missing++;
        r[0].to = seq;
        r[1].from = seq + 1;
        return;
    }
    if (r->from == r->to)
        remove_at(s, i);
}

bool seen_add(struct seen *s, uint64_t seq)
{
    if (seq >= UINT64_MAX - 1)
        return false;
    if (seq >= s->next_seq) {
        if (seq > s->next_seq) {
            if (s->n_missing == STORE_MISSING_MAX)
                remove_at(s, 0);
            s->missing[s->n_missing++] = (struct store_range){s->next_seq, seq};
        }
        s->next_seq = seq + 1;
        return true;
    }
    const uint32_t i = find_missing(s, seq);
    if (i == UINT32_MAX)
        return false;
    fill(s, i, seq);
    return true;
}
