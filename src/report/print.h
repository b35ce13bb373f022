/* SPDX-License-Identifier: Apache-2.0 */
/* A report as text, as JSON (keys of SURFACE) and as one HTML page that needs nothing else: no script,
 * no request, hostile text escaped. `ledger` may be NULL; the page draws its bar. Thread: any. */
#ifndef TACHO_REPORT_PRINT_H
#define TACHO_REPORT_PRINT_H

#include "base/json.h"
#include "model/ledger.h"
#include "model/report.h"

MUST_CHECK bool report_print_text(const struct report *r, bool colour, struct buf *out,
                                  struct err *e);
void report_print_json(const struct report *r, struct json *j);
MUST_CHECK bool report_print_html(const struct report *r, const struct ledger *ledger,
                                  struct buf *out, struct err *e);
/* The findings, a row each; evidence and fix joined by "; ". NULL when the arena a is full. */
struct table *report_table(const struct report *r, struct arena *a);

/* What the impact's percent is a share of, in words. */
const char *report_whole(const struct finding *f);

#endif
