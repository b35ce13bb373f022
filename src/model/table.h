/* SPDX-License-Identifier: Apache-2.0 */
/* The one shape of every result: typed columns with units, rows of cells, a few named values
 * beside them. One printer makes text, JSON and CSV of it (model/table_print.h), so CLI, REST, web
 * and Python get the same numbers.
 *
 *     struct table *t = table_new(a, S("hlo_stats"), S("Operations"));
 *     table_column(t, S("operation"), S("Operation"), CELL_TEXT, S(""));
 *     table_column(t, S("self_time_ps"), S("Self time"), CELL_U64, S("ps"));
 *     struct cell *row = table_row(t);          n_columns cells, all unknown
 *     row[0] = cell_text(name); row[1] = cell_u64(ps);
 *
 * A cell that was not measured stays unknown: it prints as "–", null or an empty field, never 0.
 * Everything is allocated in the table's arena; text cells borrow bytes that live as long.
 * On an arena beyond its cap the functions answer NULL / do nothing and table_ok() says so. */
#ifndef TACHO_MODEL_TABLE_H
#define TACHO_MODEL_TABLE_H

#include "base/arena.h"
#include "model/note.h"

enum cell_type { CELL_TEXT = 0, CELL_I64, CELL_U64, CELL_F64, CELL_BOOL };

struct cell {
    bool known;
    enum cell_type type;
    union {
        str text;
        int64_t i64;
        uint64_t u64;
        double f64;
        bool yes;
    };
};

struct column {
    str name;  /* snake_case, ends with its unit where it has one: the JSON key */
    str title; /* for people */
    str unit;  /* "ps", "ns", "s", "bytes", "%", "FLOP/s", "" … */
    enum cell_type type;
};

struct table_value { /* a named value of the whole table: KPI, total, property */
    struct column column;
    struct cell cell;
};

struct table {
    struct arena *arena;
    str name, title;
    struct column *columns;
    struct table_value *values;
    struct note *notes;
    struct cell *cells; /* n_rows * n_columns, row by row */
    uint32_t n_columns, columns_capacity;
    uint32_t n_values, values_capacity;
    uint32_t n_notes, notes_capacity;
    uint32_t n_rows, rows_capacity;
    bool full;          /* the arena refused something */
    struct table *next; /* a tool may answer several tables */
};

struct table *table_new(struct arena *a, str name, str title);
/* All columns come before the first row. */
void table_column(struct table *t, str name, str title, enum cell_type type, str unit);
/* Returns the new row's cells; valid until the next call. */
struct cell *table_row(struct table *t);
static inline struct cell *table_cell(const struct table *t, uint32_t row, uint32_t column)
{
    return &t->cells[(size_t)row * t->n_columns + column];
}
void table_value(struct table *t, str name, str title, struct cell c, str unit);
/* Adds count to the note of that code, made when new. */
void table_note(struct table *t, str code, uint64_t count, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* Column index, or UINT32_MAX. */
uint32_t table_find_column(const struct table *t, str name);
/* Stable sort by one column; unknown cells last. */
enum table_order { TABLE_ASCENDING = 0, TABLE_DESCENDING };
void table_sort(struct table *t, uint32_t column, enum table_order order);
MUST_CHECK bool table_ok(const struct table *t, struct err *e);

static inline struct cell cell_unknown(void)
{
    return (struct cell){0};
}
static inline struct cell cell_text(str s)
{
    return (struct cell){.known = true, .type = CELL_TEXT, .text = s};
}
/* A moment as RFC 3339 text, in the arena. */
struct cell cell_moment(struct arena *a, int64_t wall_ns);
static inline struct cell cell_i64(int64_t v)
{
    return (struct cell){.known = true, .type = CELL_I64, .i64 = v};
}
static inline struct cell cell_u64(uint64_t v)
{
    return (struct cell){.known = true, .type = CELL_U64, .u64 = v};
}
static inline struct cell cell_f64(double v)
{
    return (struct cell){.known = true, .type = CELL_F64, .f64 = v};
}
static inline struct cell cell_bool(bool v)
{
    return (struct cell){.known = true, .type = CELL_BOOL, .yes = v};
}

#endif
