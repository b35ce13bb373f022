/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a query share. */
#ifndef TACHO_QUERY_SQL_INSIDE_H
#define TACHO_QUERY_SQL_INSIDE_H

#include <sqlite3.h>

#include "analysis/tool.h"
#include "query/sql.h"

/* Whatever makes tables: a tool, or a row of tables.def. */
struct sql_source {
    const char *name, *parameters, *help;
    const struct tool *tool; /* or */
    bool (*make)(const struct tool_request *r, struct arena *a, struct table **out, struct err *e);
};

struct sql_db {
    sqlite3 *db;
    struct profile *profile;
    struct arena *arena;
    struct sql_source *sources;
    uint32_t n_sources;
    uint64_t n_steps_left;
    bool declaring;     /* a table of ours: its CREATE TABLE is let pass */
    struct err failure; /* of ours, behind SQLite's error */
};

#define X(symbol, name, help)                                                                      \
    bool sql_make_##symbol(const struct tool_request *r, struct arena *a, struct table **out,      \
                           struct err *e);
#include "query/tables.def"
#undef X

/* The sources of a query; false beyond the arena's cap. */
bool sql_sources(struct sql_db *d, struct err *e);
/* Runs a source with its parameters. */
MUST_CHECK bool sql_source_run(const struct sql_db *d, const struct sql_source *s,
                               const struct tool_param *params, uint32_t n, struct table **out,
                               struct err *e);

/* Registers the event table "trace". */
MUST_CHECK bool sql_trace_register(struct sql_db *d, struct err *e);
/* Runs the source and registers its tables; one that fails is a table whose use fails. */
MUST_CHECK bool sql_source_register(struct sql_db *d, const struct sql_source *s, struct err *e);

/* Tells SQLite the columns of a table of ours. */
int sql_declare(struct sql_db *d, const char *schema);
/* A failure as SQLite has it: kept for the end of the query, its text handed to SQLite. */
int sql_failed(struct sql_db *d, char **message, const struct err *e);
void sql_result_cell(sqlite3_context *c, const struct cell *cell);
void sql_result_text(sqlite3_context *c, str s);

#endif
