/* SPDX-License-Identifier: Apache-2.0 */
/* Flat ml-goodput-measurement entries, as plain records.
 *
 * A file is JSON lines, one JSON array, or a Cloud Logging export ({"entries":[…]}, or lines or an
 * array of entries with `jsonPayload`), gzip or not: recognised by content. A folder may hold
 * entries.jsonl, ranks.jsonl and metrics.jsonl, any of them. Times in the file are Unix seconds; they
 * are rounded to microseconds, because a double tells no more.
 *
 * Records made: process 0 is the recorder, whose rank is 0 (it runs on rank 0 by contract).
 * BEGIN and END for phases, BEGIN alone for steps (their end is never logged), CHECKPOINT with wall_ns at its
 * end (as in our journals), ELASTIC. A row of ranks.jsonl is two METRIC records on the process of that rank,
 * `step.compute_s` and `step.wait_s` with the attempt in `code`; a value that the file has as null
 * is NaN: the rank never got there.
 *
 * Bad lines are left out and counted in the set's notes; exact repeats too. A file without any
 * entry is ERR_PARSE at its first bad byte. Memory: the set's arena. Source: facts/goodput.md §2. */
#ifndef TACHO_FORMAT_ENTRIES_H
#define TACHO_FORMAT_ENTRIES_H

#include "base/err.h"
#include "model/record.h"

/* A file or a folder. The set is initialised by the caller, and sorted on return. */
MUST_CHECK bool entries_load(struct record_set *s, const char *path, struct err *e);
/* The same of text in memory; `name` is for messages. Several calls add to one set. */
MUST_CHECK bool entries_parse(struct record_set *s, str text, const char *name, struct err *e);

#endif
