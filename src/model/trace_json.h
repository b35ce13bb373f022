/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of events as JSON: one rule for every view, export and query. */
#ifndef TACHO_MODEL_TRACE_JSON_H
#define TACHO_MODEL_TRACE_JSON_H

#include "base/json.h"
#include "model/trace.h"

/* A member of the open object; bytes as their number, a stat without a value as null. */
void trace_stat_json(struct json *j, const struct trace_stat *s);

#endif
