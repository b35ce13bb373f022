/* SPDX-License-Identifier: Apache-2.0 */
/* The intervals of `tacho goodput --exclude FILE`: a JSON array of
 * {"start_time_utc":"2026-11-30T01:00:00Z","end_time_utc":…}, RFC 3339 with a time zone. Source:
 * ml_goodput_measurement's exclusions (docs/guide/goodput.md). */
#ifndef TACHO_CLI_EXCLUDED_H
#define TACHO_CLI_EXCLUDED_H

#include "base/arena.h"
#include "model/ledger.h"

/* Sorted, those that overlap or touch made one; in a. ERR_PARSE names the file and the interval. */
MUST_CHECK bool excluded_read(const char *path, struct arena *a, struct ledger_part **out,
                              uint32_t *n, struct err *e);

#endif
