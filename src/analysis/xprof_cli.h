/* SPDX-License-Identifier: Apache-2.0 */
/* What the answers of XProf's command line have in common: an object that begins with `capture`, which
 * says what was read.
 *
 *     struct json j;
 *     json_init_buf(&j, out);
 *     xprof_cli_begin(&j, r);
 *     ... members ...
 *     return xprof_cli_end(&j, e);
 *
 * Numbers are numbers (XProf has some as text with a percent sign), rounded to the places that XProf
 * prints; what was not measured is null (XProf: -1.0, "N/A" or 0). */
#ifndef TACHO_ANALYSIS_XPROF_CLI_H
#define TACHO_ANALYSIS_XPROF_CLI_H

#include "analysis/tool.h"

void xprof_cli_begin(struct json *j, const struct tool_request *r);
MUST_CHECK bool xprof_cli_end(struct json *j, struct err *e);

/* A member of so many decimal places; NaN prints null. */
void xprof_cli_number(struct json *j, const char *key, double v, int places);

#endif
