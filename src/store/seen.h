/* SPDX-License-Identifier: Apache-2.0 */
/* Which record numbers of a journal are there: all below next_seq but those in `missing`. Threads
 * of a workload write a little out of order and damage leaves holes, so one number is not enough to
 * take each record exactly once. When STORE_MISSING_MAX holes are open, the oldest is closed for
 * good. */
#ifndef TACHO_STORE_SEEN_H
#define TACHO_STORE_SEEN_H

#include "store/store.h"

struct seen {
    uint64_t next_seq;
    struct store_range missing[STORE_MISSING_MAX]; /* sorted, apart from each other */
    uint32_t n_missing;
};

bool seen_has(const struct seen *s, uint64_t seq);
/* Adds the number; false when it was there. */
bool seen_add(struct seen *s, uint64_t seq);

#endif
