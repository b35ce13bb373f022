/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual table over a struct table that a source made. The parameters of the source are hidden
 * columns in_<parameter>, also arguments: op_profile('h1') is op_profile WHERE in_host = 'h1'. With
 * parameters the source is run again; its table has the columns of the run without them. */
#include "query/sql_inside.h"

#define VALUES UINT32_MAX /* in place of a table's number: the named values of all of them */
#define PARAMS_MAX 16

struct shape { /* what the module knows of its table */
    struct sql_db *d;
    const struct sql_source *source;
    const struct table *table; /* as it is without parameters */
    uint32_t number;           /* of the source's tables, or VALUES */
    str params[PARAMS_MAX];
    int n_params;
    struct err failure; /* of the source: there is no table */
};

struct result_vtab {
    sqlite3_vtab base;
    const struct shape *shape;
};

struct result_cursor {
    sqlite3_vtab_cursor base;
    const struct table *table;
    const uint32_t *columns; /* of the table, for each of the shape; NULL: the same */
    str given[PARAMS_MAX];
    uint32_t row;
};

static const struct shape *shape_of(sqlite3_vtab *v)
{
    return ((struct result_vtab *)v)->shape;
}

int sql_failed(struct sql_db *d, char **message, const struct err *e)
{
    if (d->failure.code == ERR_NONE)
        d->failure = *e;
    sqlite3_free(*message);
    *message = sqlite3_mprintf("%s", e->msg);
    return SQLITE_ERROR;
}

void sql_result_text(sqlite3_context *c, str s)
{
    sqlite3_result_text64(c, s.n == 0 ? "" : s.p, s.n, SQLITE_STATIC, SQLITE_UTF8);
}

void sql_result_cell(sqlite3_context *c, const struct cell *cell)
{
    if (!cell->known) {
        sqlite3_result_null(c);
        return;
    }
    switch (cell->type) {
    case CELL_TEXT:
        sql_result_text(c, cell->text);
        break;
    case CELL_I64:
        sqlite3_result_int64(c, cell->i64);
        break;
    case CELL_U64: /* beyond SQLite's integers it is a real number */
        if (cell->u64 <= INT64_MAX)
            sqlite3_result_int64(c, (sqlite3_int64)cell->u64);
        else
            sqlite3_result_double(c, (double)cell->u64);
        break;
    case CELL_F64:
        sqlite3_result_double(c, cell->f64);
        break;
    case CELL_BOOL:
        sqlite3_result_int(c, cell->yes);
        break;
    }
}

/* ---- the named values as a table ---- */

static struct table *values_table(struct arena *a, const struct table *first)
{
    struct table *t = table_new(a, S("values"), S("Values"));
    if (t == NULL)
        return NULL;
    table_column(t, S("table_name"), S("Table"), CELL_TEXT, S(""));
    table_column(t, S("name"), S("Name"), CELL_TEXT, S(""));
    table_column(t, S("value"), S("Value"), CELL_F64, S(""));
    table_column(t, S("unit"), S("Unit"), CELL_TEXT, S(""));
    for (; first != NULL; first = first->next)
        for (uint32_t i = 0; i < first->n_values; i++) {
            struct cell *row = table_row(t);
            if (row == NULL)
                return NULL;
            row[0] = cell_text(first->name);
            row[1] = cell_text(first->values[i].column.name);
            row[2] = first->values[i].cell;
            row[3] = cell_text(first->values[i].column.unit);
        }
    return t;
}

static const struct table *numbered(struct arena *a, const struct table *first, uint32_t number)
{
    if (number == VALUES)
        return values_table(a, first);
    while (first != NULL && number-- > 0)
        first = first->next;
    return first;
}

/* ---- the module ---- */

static const char *sql_type(enum cell_type type)
{
    switch (type) {
    case CELL_TEXT:
        return "TEXT";
    case CELL_I64:
    case CELL_U64:
    case CELL_BOOL:
        return "INTEGER";
    case CELL_F64:
        return "REAL";
    }
    return "";
}

static void put_identifier(struct buf *out, str name)
{
    buf_add_char(out, '"');
    for (size_t i = 0; i < name.n && name.p[i] != '\0'; i++) {
        if (name.p[i] == '"')
            buf_add_char(out, '"');
        buf_add_char(out, name.p[i]);
    }
    buf_add_char(out, '"');
}

/* A name that an earlier column has gets its number. The values column has no type of its own. */
static void put_columns(struct buf *out, const struct shape *s, struct arena *a)
{
    const struct table *t = s->table;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        str name = t->columns[i].name;
        if (table_find_column(t, name) != i)
            name = arena_printf(a, "%.*s_%u", STR_ARG(name), i + 1);
        buf_add_str(out, i == 0 ? S("") : S(", "));
        put_identifier(out, name);
        buf_addf(out, " %s", s->number == VALUES && i == 2 ? "" : sql_type(t->columns[i].type));
    }
    for (int i = 0; i < s->n_params; i++) {
        buf_add_str(out, S(", "));
        put_identifier(out, arena_printf(a, "in_%.*s", STR_ARG(s->params[i])));
        buf_add_str(out, S(" HIDDEN"));
    }
}

static int result_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                          sqlite3_vtab **out, char **message)
{
    struct shape *s = aux;
    struct buf text;
    (void)db, (void)argc, (void)argv;
    if (s->failure.code != ERR_NONE)
        return sql_failed(s->d, message, &s->failure);
    buf_init(&text, (size_t)1 << 20);
    buf_add_str(&text, S("CREATE TABLE x("));
    put_columns(&text, s, s->d->arena);
    buf_add_char(&text, ')');
    int rc = text.overflow ? SQLITE_TOOBIG : sql_declare(s->d, text.p);
    buf_release(&text);
    struct result_vtab *v = rc == SQLITE_OK ? sqlite3_malloc(sizeof *v) : NULL;
    if (rc != SQLITE_OK || v == NULL)
        return rc != SQLITE_OK ? rc : SQLITE_NOMEM;
    *v = (struct result_vtab){.shape = s};
    *out = &v->base;
    return SQLITE_OK;
}

static int result_disconnect(sqlite3_vtab *v)
{
    sqlite3_free(v);
    return SQLITE_OK;
}

/* idxNum: bit i = parameter i is given; arguments come in that order. */
static int result_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    const struct shape *s = shape_of(v);
    const int n_columns = (int)s->table->n_columns;
    int at[PARAMS_MAX] = {0}, n = 0;
    for (int i = 0; i < info->nConstraint; i++) {
        const int param = info->aConstraint[i].iColumn - n_columns;
        if (param < 0 || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (!info->aConstraint[i].usable)
            return SQLITE_CONSTRAINT;
        at[param] = i + 1;
    }
    for (int param = 0; param < s->n_params; param++)
        if (at[param] > 0) {
            info->aConstraintUsage[at[param] - 1].argvIndex = ++n;
            info->aConstraintUsage[at[param] - 1].omit = 1;
            info->idxNum |= 1 << param;
        }
    info->estimatedCost = s->table->n_rows + (n > 0 ? 1e6 : 1);
    info->estimatedRows = s->table->n_rows;
    return SQLITE_OK;
}

static int result_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    struct result_cursor *c = sqlite3_malloc(sizeof *c);
    (void)v;
    if (c == NULL)
        return SQLITE_NOMEM;
    *c = (struct result_cursor){0};
    *out = &c->base;
    return SQLITE_OK;
}

static int result_close(sqlite3_vtab_cursor *c)
{
    sqlite3_free(c);
    return SQLITE_OK;
}

static bool run_again(struct result_cursor *c, const struct shape *s,
                      const struct tool_param *params, uint32_t n, struct err *e)
{
    struct table *first = NULL;
    if (!sql_source_run(s->d, s->source, params, n, &first, e))
        return false;
    c->table = numbered(s->d->arena, first, s->number);
    if (c->table == NULL)
        return err_set(e, ERR_NOT_FOUND, "there is no such table with these parameters");
    uint32_t *columns = ARENA_ARRAY(s->d->arena, uint32_t, s->table->n_columns);
    for (uint32_t i = 0; columns != NULL && i < s->table->n_columns; i++)
        columns[i] = table_find_column(c->table, s->table->columns[i].name);
    c->columns = columns;
    return columns != NULL || arena_full(s->d->arena, e);
}

static int result_filter(sqlite3_vtab_cursor *cursor, int mask, const char *name, int argc,
                         sqlite3_value **argv)
{
    struct result_cursor *c = (struct result_cursor *)cursor;
    const struct shape *s = shape_of(cursor->pVtab);
    struct tool_param params[PARAMS_MAX];
    uint32_t n = 0;
    struct err e = {0};
    (void)name, (void)argc;
    *c = (struct result_cursor){.base = c->base, .table = s->table};
    for (int i = 0, arg = 0; i < s->n_params; i++) {
        if ((mask & 1 << i) == 0)
            continue;
        const char *text = (const char *)sqlite3_value_text(argv[arg++]);
        c->given[i] = arena_str(s->d->arena, str_from(text));
        if (c->given[i].n > 0)
            params[n++] = (struct tool_param){s->params[i], c->given[i]};
    }
    if (n == 0 || run_again(c, s, params, n, &e))
        return SQLITE_OK;
    return sql_failed(s->d, &cursor->pVtab->zErrMsg, &e);
}

static int result_next(sqlite3_vtab_cursor *cursor)
{
    ((struct result_cursor *)cursor)->row++;
    return SQLITE_OK;
}

static int result_eof(sqlite3_vtab_cursor *cursor)
{
    const struct result_cursor *c = (const struct result_cursor *)cursor;
    return c->row >= c->table->n_rows;
}

static int result_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int i)
{
    const struct result_cursor *c = (const struct result_cursor *)cursor;
    const struct shape *s = shape_of(cursor->pVtab);
    const uint32_t n = s->table->n_columns;
    if ((uint32_t)i >= n) {
        sql_result_text(context, c->given[(uint32_t)i - n]);
        return SQLITE_OK;
    }
    const uint32_t column = c->columns == NULL ? (uint32_t)i : c->columns[i];
    if (column < c->table->n_columns)
        sql_result_cell(context, table_cell(c->table, c->row, column));
    return SQLITE_OK; /* else NULL */
}

static int result_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *out)
{
    *out = ((struct result_cursor *)cursor)->row;
    return SQLITE_OK;
}

static const sqlite3_module result_module = {
    .iVersion = 1,
    .xConnect = result_connect,
    .xDisconnect = result_disconnect,
    .xBestIndex = result_best_index,
    .xOpen = result_open,
    .xClose = result_close,
    .xFilter = result_filter,
    .xNext = result_next,
    .xEof = result_eof,
    .xColumn = result_column,
    .xRowid = result_rowid,
};

/* ---- registering ---- */

static struct shape *shape_new(struct sql_db *d, const struct sql_source *source)
{
    struct shape *s = ARENA_NEW(d->arena, struct shape);
    str name, rest = str_from(source->parameters);
    if (s == NULL)
        return NULL;
    s->d = d;
    s->source = source;
    while (s->n_params < PARAMS_MAX && str_cut(rest, ',', &name, &rest))
        s->params[s->n_params++] = str_trim(name);
    return s;
}

static bool add_module(struct sql_db *d, str name, struct shape *s, struct err *e)
{
    const char *cname = arena_cstr(d->arena, name);
    if (cname == NULL || s == NULL)
        return arena_full(d->arena, e);
    return sqlite3_create_module(d->db, cname, &result_module, s) == SQLITE_OK ||
           err_set(e, ERR_LIMIT, "cannot make table '%s': %s", cname, sqlite3_errmsg(d->db));
}

static bool add_table(struct sql_db *d, const struct sql_source *source, str name,
                      const struct table *t, uint32_t number, struct err *e)
{
    struct shape *s = shape_new(d, source);
    if (s == NULL || t == NULL)
        return arena_full(d->arena, e);
    s->table = t;
    s->number = number;
    return t->n_columns == 0 || add_module(d, name, s, e);
}

bool sql_source_register(struct sql_db *d, const struct sql_source *source, struct err *e)
{
    struct table *first = NULL;
    struct err failure = {0};
    struct arena *const a = d->arena;
    const str base = str_from(source->name);
    if (!sql_source_run(d, source, NULL, 0, &first, &failure)) {
        struct shape *s = shape_new(d, source);
        err_wrap(&failure, "table '%s'", source->name);
        if (s != NULL)
            s->failure = failure;
        return add_module(d, base, s, e);
    }
    const struct table *values = values_table(a, first);
    bool named = false; /* the first table with columns has the source's own name */
    uint32_t number = 0;
    for (const struct table *t = first; t != NULL; t = t->next, number++) {
        const str full = arena_printf(a, "%.*s_%.*s", STR_ARG(base), STR_ARG(t->name));
        if (!add_table(d, source, full, t, number, e) ||
            (!named && !add_table(d, source, base, t, number, e)))
            return false;
        named = named || t->n_columns > 0;
    }
    return add_table(d, source, arena_printf(a, "%.*s_values", STR_ARG(base)), values, VALUES, e) &&
           (named || add_table(d, source, base, values, VALUES, e));
}
