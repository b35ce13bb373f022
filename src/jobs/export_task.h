/* SPDX-License-Identifier: Apache-2.0 */
/* Exports a profile (format/export.h) in a parser: what it writes goes to the sink as it comes.
 * options->progress runs in the parser, which has stderr. Thread: any. */
#ifndef TACHO_JOBS_EXPORT_TASK_H
#define TACHO_JOBS_EXPORT_TASK_H

#include "format/export.h"
#include "jobs/parser.h"

MUST_CHECK bool export_task_run(const char *path, const struct parser_limits *limits,
                                const struct exporter *x, const struct export_options *options,
                                const struct parser_sink *sink, struct export_counts *counts,
                                struct err *e);

#endif
