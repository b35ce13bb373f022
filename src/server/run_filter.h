/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of runs: which fields a run has (run_fields.def), and their values from the run object of
 * the API, so that the server and `tacho runs list` answer alike.
 *
 *     struct filter *f = run_filter_parse(text, clock_wall_ns(), &arena, e);
 *     if (run_filter_fits(f, summary, details)) ...
 *
 * summary: the run object as JSON text; details: an object with `configs` and `labels` (both may be
 * in the run object itself: then pass it twice). Text that is no object is a run of which nothing is
 * known. Thread: any. */
#ifndef TACHO_SERVER_RUN_FILTER_H
#define TACHO_SERVER_RUN_FILTER_H

#include "model/filter.h"

struct run_view;

struct filter *run_filter_parse(str text, int64_t now_ns, struct arena *a, struct err *e);
bool run_filter_fits(const struct filter *f, str summary, str details);
/* The same for the run in a folder <data>/runs/<run>, whose journals are read. */
MUST_CHECK bool run_filter_fits_folder(const struct filter *f, const char *dir, str run, bool *fits,
                                       struct err *e);

#endif
