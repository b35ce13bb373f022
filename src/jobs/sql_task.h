/* SPDX-License-Identifier: Apache-2.0 */
/* A query (query/sql.h) over a profile, in a parser; its table as tools are printed. Thread: any. */
#ifndef TACHO_JOBS_SQL_TASK_H
#define TACHO_JOBS_SQL_TASK_H

#include "analysis/tool.h"
#include "jobs/parser.h"

/* format: TOOL_TEXT, TOOL_JSON or TOOL_CSV. max_steps 0: the limit of limits.def. */
MUST_CHECK bool sql_task_run(const char *path, const struct parser_limits *limits, str text,
                             uint64_t max_steps, enum tool_format format, struct buf *out,
                             struct err *e);

#endif
