/* SPDX-License-Identifier: Apache-2.0 */
#include "model/table.h"

#include <stdarg.h>

#include "base/buf.h"
#include "base/clock.h"

struct cell cell_moment(struct arena *a, int64_t wall_ns)
{
    char text[CLOCK_RFC3339_MAX];
    const size_t n = clock_format_rfc3339(wall_ns, text);
    return cell_text(arena_str(a, (str){text, n}));
}

struct table *table_new(struct arena *a, str name, str title)
{
    struct table *t = ARENA_NEW(a, struct table);
    if (t != NULL) {
        t->arena = a;
        t->name = name;
        t->title = title;
    }
    return t;
}

void table_column(struct table *t, str name, str title, enum cell_type type, str unit)
{
    if (t == NULL || t->full)
        return;
    must(t->n_rows == 0);
    if (!ARENA_PUSH(t->arena, t->columns, t->n_columns, t->columns_capacity)) {
        t->full = true;
        return;
    }
    t->columns[t->n_columns - 1] =
        (struct column){.name = name, .title = title, .unit = unit, .type = type};
}

/* Room for one more row; rows double. */
static bool grow_rows(struct table *t)
{
    const uint64_t capacity = t->rows_capacity == 0 ? 16 : 2 * (uint64_t)t->rows_capacity;
    if (capacity > UINT32_MAX)
        return false;
    struct cell *cells =
        arena_grow(t->arena, t->cells, (size_t)t->n_rows * t->n_columns,
                   (size_t)capacity * t->n_columns, sizeof *t->cells, _Alignof(struct cell));
    if (cells == NULL)
        return false;
    t->cells = cells;
    t->rows_capacity = (uint32_t)capacity;
    return true;
}

struct cell *table_row(struct table *t)
{
    if (t == NULL || t->full)
        return NULL;
    if (t->n_rows == t->rows_capacity && !grow_rows(t)) {
        t->full = true;
        return NULL;
    }
    return table_cell(t, t->n_rows++, 0);
}

void table_value(struct table *t, str name, str title, struct cell c, str unit)
{
    if (t == NULL || t->full)
        return;
    if (!ARENA_PUSH(t->arena, t->values, t->n_values, t->values_capacity)) {
        t->full = true;
        return;
    }
    t->values[t->n_values - 1] = (struct table_value){
        .column = {.name = name, .title = title, .unit = unit, .type = c.type},
        .cell = c,
    };
}

void table_note(struct table *t, str code, uint64_t count, const char *format, ...)
{
    if (t == NULL || t->full)
        return;
    va_list args;
    va_start(args, format);
    note_add(t->arena, &t->notes, &t->n_notes, &t->notes_capacity, code, count, format, args);
    va_end(args);
    t->full |= t->arena->overflow;
}

uint32_t table_find_column(const struct table *t, str name)
{
    for (uint32_t i = 0; i < t->n_columns; i++)
        if (str_eq(t->columns[i].name, name))
            return i;
    return UINT32_MAX;
}

static double as_f64(const struct cell *c)
{
    switch (c->type) {
    case CELL_I64:
        return (double)c->i64;
    case CELL_U64:
        return (double)c->u64;
    case CELL_F64:
        return c->f64;
    case CELL_BOOL:
        return c->yes ? 1 : 0;
    case CELL_TEXT:
        break;
    }
    return 0;
}

/* Order of two known cells; integers of one type exactly, NaN first. */
static int compare_known(const struct cell *a, const struct cell *b)
{
    if (a->type == CELL_TEXT && b->type == CELL_TEXT)
        return str_cmp(a->text, b->text);
    if (a->type == CELL_I64 && b->type == CELL_I64)
        return (a->i64 > b->i64) - (a->i64 < b->i64);
    if (a->type == CELL_U64 && b->type == CELL_U64)
        return (a->u64 > b->u64) - (a->u64 < b->u64);
    const double x = as_f64(a), y = as_f64(b);
    if (x != x || y != y)
        return (y != y) - (x != x) == 0 ? 0 : x != x ? -1 : 1;
    return (x > y) - (x < y);
}

struct sort_key {
    const struct table *t;
    uint32_t column;
    enum table_order order;
};

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct sort_key *key = ctx;
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct cell *x = table_cell(key->t, i, key->column);
    const struct cell *y = table_cell(key->t, k, key->column);
    int order = 0;
    if (x->known != y->known)
        return x->known ? -1 : 1;
    if (x->known)
        order = compare_known(x, y);
    if (order != 0)
        return key->order == TABLE_DESCENDING ? -order : order;
    return (i > k) - (i < k);
}

void table_sort(struct table *t, uint32_t column, enum table_order order)
{
    if (t->full || column >= t->n_columns || t->n_rows < 2)
        return;
    struct sort_key key = {t, column, order};
    uint32_t *rows = ARENA_ARRAY(t->arena, uint32_t, t->n_rows);
    struct cell *sorted =
        ARENA_ARRAY(t->arena, struct cell, (size_t)t->rows_capacity * t->n_columns);
    if (rows == NULL || sorted == NULL) {
        t->full = true;
        return;
    }
    for (uint32_t i = 0; i < t->n_rows; i++)
        rows[i] = i;
    qsort_r(rows, t->n_rows, sizeof *rows, compare_rows, &key);
    for (uint32_t i = 0; i < t->n_rows; i++)
        memcpy(sorted + (size_t)i * t->n_columns, table_cell(t, rows[i], 0),
               t->n_columns * sizeof *sorted);
    t->cells = sorted;
}

bool table_ok(const struct table *t, struct err *e)
{
    if (t == NULL)
        return err_set(e, ERR_LIMIT, "the result needs more memory than its limit");
    return t->full ? arena_full(t->arena, e) : true;
}
