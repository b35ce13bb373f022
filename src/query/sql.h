/* SPDX-License-Identifier: Apache-2.0 */
/* One SELECT over a profile: SQLite's virtual tables over the trace and over what the tools say.
 *
 *   trace                one row an event; see trace_table.c for its columns
 *   steps ops stacks     of tables.def, made from the trace
 *   <tool>               the first table of each tool of tools.def that has columns, run when the query
 *                        names it; without one its named values
 *   <tool>_<table>       every table of it; <tool>_values: its named values
 *                        the tool's parameters are hidden columns in_<parameter>
 *   tables               the names of all these
 *
 *     const struct sql_query q = {.profile = p, .text = S("SELECT name, sum(dur_ps) ...")};
 *     if (!sql_run(&q, &arena, &table, e)) ...
 *
 * Nothing but one SELECT is taken: an authorizer refuses the rest (ATTACH, PRAGMA, writes). The database
 * is empty and in memory. Steps of SQLite's machine and its memory are bounded (limits.def SQL_*).
 * ERR_USAGE with SQLite's message and the byte of the text; ERR_LIMIT beyond a bound.
 * Floors: docs/why/030-sql-in-the-parser.md. Thread: one query at a time in a process (SQLite's heap
 * limit is the process's); runs in the parser. */
#ifndef TACHO_QUERY_SQL_H
#define TACHO_QUERY_SQL_H

#include "model/table.h"
#include "model/trace.h"

struct sql_query {
    struct profile *profile; /* borrowed */
    str text;
    uint64_t max_steps; /* 0: LIMIT_SQL_STEPS */
};

/* The result is one table named "sql"; everything lives in a. */
MUST_CHECK bool sql_run(const struct sql_query *q, struct arena *a, struct table **out,
                        struct err *e);

#endif
