/* SPDX-License-Identifier: Apache-2.0 */
/* overview_page as XProf's JSON: an array of seven tables (operations, steps, run environment,
 * advice, inference latency, {}, diagnostics). Formulas: XProf's op_stats_to_overview_page and
 * op_stats_to_input_pipeline_analysis; what it rounds to one place we round, too. */
#ifndef TACHO_ANALYSIS_OVERVIEW_XPROF_H
#define TACHO_ANALYSIS_OVERVIEW_XPROF_H

#include "analysis/tool.h"

MUST_CHECK bool overview_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                               struct err *e);

#endif
