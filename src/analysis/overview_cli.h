/* SPDX-License-Identifier: Apache-2.0 */
/* What get_overview and get_kpi_metrics share: the steps of each host alone, the slow device. */
#ifndef TACHO_ANALYSIS_OVERVIEW_CLI_H
#define TACHO_ANALYSIS_OVERVIEW_CLI_H

#include "analysis/overview.h"
#include "base/json.h"

/* Of several hosts: step_time_scope, step_time_warning and per_host_step_time_ms, with four numbers a
 * host or its mean alone; always: the straggler, an object or null. */
enum overview_hosts { OVERVIEW_HOSTS_MEANS = 0, OVERVIEW_HOSTS_ALL };
MUST_CHECK bool overview_cli_hosts(struct json *j, const struct overview *o,
                                   enum overview_hosts form, struct arena *a, struct err *e);
/* custom_call_share_pct, and what is not known of them as custom_call_warning. */
void overview_cli_custom_calls(struct json *j, const struct overview *o);

/* A row of our own tables: what, how much, in which unit; NaN is unknown. */
MUST_CHECK bool overview_row(struct table *t, const char *metric, double v, const char *unit);
struct table *overview_table(struct arena *a, str name, str title);

#endif
