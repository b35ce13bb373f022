/* SPDX-License-Identifier: Apache-2.0 */
/* What is summed and counted of one span of a ledger, without what the view excludes. The totals sum to
 * whole_ns exactly. Private to the printers of goodput/. */
#ifndef TACHO_GOODPUT_SUMS_H
#define TACHO_GOODPUT_SUMS_H

#include "goodput/print.h"

struct ledger_sums {
    const struct ledger_total *items;
    uint32_t n;
    int64_t whole_ns, good_ns, excluded_ns; /* whole + excluded = the span */
    uint32_t n_attempts, n_disruptions;     /* that overlap it, that lie in it */
    int64_t max_productive_step;            /* -1 = none */
    struct ledger_step_stats step_stats;
};

MUST_CHECK bool ledger_sums(const struct ledger *l, const struct ledger_view *v, int64_t from_ns,
                            int64_t to_ns, struct arena *a, struct ledger_sums *out, struct err *e);
/* Where window i of the view begins. */
int64_t ledger_window_from(const struct ledger_view *v, uint32_t i);
/* Whether a step began at a moment that the view shows. */
bool ledger_view_has(const struct ledger_view *v, int64_t ns);
double ledger_percent(int64_t part_ns, int64_t whole_ns);

#endif
