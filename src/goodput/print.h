/* SPDX-License-Identifier: Apache-2.0 */
/* A ledger as the document of `tacho goodput --json` and as text for a person. Everything printed
 * is clipped to the view's span. Source of the keys: SURFACE. */
#ifndef TACHO_GOODPUT_PRINT_H
#define TACHO_GOODPUT_PRINT_H

#include "base/json.h"
#include "model/ledger.h"
#include "model/table.h"

#define LEDGER_WINDOWS_MAX 16

struct ledger_view {
    int64_t from_ns, to_ns;                 /* within the ledger's; ledger_view_all fills them */
    int64_t windows_ns[LEDGER_WINDOWS_MAX]; /* lengths back from to_ns */
    uint32_t n_windows;
    const struct ledger_part *excluded; /* sorted and apart: in no sum */
    uint32_t n_excluded;
    bool steps, ranks; /* list each step, each rank (text) */
    bool colour;
};

struct ledger_view ledger_view_all(const struct ledger *l);
/* `notes` are the set's. False when the arena a is full. */
MUST_CHECK bool ledger_print_json(const struct ledger *l, const struct record_set *notes,
                                  const struct ledger_view *view, struct arena *a, struct json *j,
                                  struct err *e);
MUST_CHECK bool ledger_print_text(const struct ledger *l, const struct record_set *notes,
                                  const struct ledger_view *view, struct arena *a, struct buf *out,
                                  struct err *e);
/* The rows of the ledger, of the view's span and of each window; then, when the view asks for them, a
 * table of steps and one of ranks (`next`). NULL when the arena a is full. */
struct table *ledger_table(const struct ledger *l, const struct ledger_view *view, struct arena *a,
                           struct err *e);

#endif
