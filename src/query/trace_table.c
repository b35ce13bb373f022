/* SPDX-License-Identifier: Apache-2.0 */
/* trace: the events of a profile as a virtual table.
 *
 *   host plane kind line name start_ps dur_ps end_ps depth occurrences | args line_id target
 *
 * Times are picoseconds since the session's origin. The columns behind the bar are hidden: args is the
 * JSON object of the event's arguments (its own before its metadata's), decoded only where a query
 * names it; line_id numbers the lines of the session; target is the name of the XSpace. Equality of
 * host, plane, line, target and bounds of start_ps choose what is read at all. */
#include <math.h>

#include "model/trace_json.h"
#include "query/sql_inside.h"

enum trace_column_id {
    COLUMN_HOST = 0,
    COLUMN_PLANE,
    COLUMN_KIND,
    COLUMN_LINE,
    COLUMN_NAME,
    COLUMN_START,
    COLUMN_DUR,
    COLUMN_END,
    COLUMN_DEPTH,
    COLUMN_OCCURRENCES,
    COLUMN_ARGS,
    COLUMN_LINE_ID,
    COLUMN_TARGET,
};

static const char schema[] =
    "CREATE TABLE x(host TEXT, plane TEXT, kind TEXT, line TEXT, name TEXT, start_ps INTEGER, "
    "dur_ps INTEGER, end_ps INTEGER, depth INTEGER, occurrences INTEGER, args TEXT HIDDEN, "
    "line_id INTEGER HIDDEN, target TEXT HIDDEN)";

#define LINE_SHIFT 36 /* a rowid is the line's number above, the event's below */

/* Bits of idxNum, in the order of arguments. */
enum {
    BY_HOST = 1,
    BY_PLANE = 2,
    BY_LINE = 4,
    BY_TARGET = 8,
    FROM = 16,
    UNTIL = 32,
    BY_LINE_ID = 64
};

struct trace_vtab {
    sqlite3_vtab base;
    struct sql_db *d;
};

struct event_cursor {
    sqlite3_vtab_cursor base;
    struct sql_db *d;
    struct trace_cursor at;
    bool reading, done;   /* at is at an event; there are no more */
    uint32_t trace, line; /* where it is */
    uint64_t line_id;     /* of that line, in the session */
    char *texts[4];       /* wanted host, plane, line, target; owned by SQLite's allocator */
    int64_t from_ps, until_ps, wanted_line_id;
};

static int trace_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **message)
{
    (void)db, (void)argc, (void)argv, (void)message;
    const int rc = sql_declare(aux, schema);
    struct trace_vtab *v = rc == SQLITE_OK ? sqlite3_malloc(sizeof *v) : NULL;
    if (v == NULL)
        return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
    *v = (struct trace_vtab){.d = aux};
    *out = &v->base;
    return SQLITE_OK;
}

static int trace_disconnect(sqlite3_vtab *v)
{
    sqlite3_free(v);
    return SQLITE_OK;
}

/* The bit of a constraint that narrows what is read, or 0. SQLite checks all of them itself too. */
static int bit_of(sqlite3_index_info *info, int i)
{
    const int op = info->aConstraint[i].op;
    const bool equal = op == SQLITE_INDEX_CONSTRAINT_EQ;
    const char *collation = sqlite3_vtab_collation(info, i);
    const bool exact = equal && (collation == NULL || sqlite3_stricmp(collation, "BINARY") == 0);
    switch (info->aConstraint[i].iColumn) {
    case COLUMN_HOST:
        return exact ? BY_HOST : 0;
    case COLUMN_PLANE:
        return exact ? BY_PLANE : 0;
    case COLUMN_LINE:
        return exact ? BY_LINE : 0;
    case COLUMN_TARGET:
        return exact ? BY_TARGET : 0;
    case COLUMN_LINE_ID:
        return equal ? BY_LINE_ID : 0;
    case COLUMN_START:
        return op == SQLITE_INDEX_CONSTRAINT_GE || op == SQLITE_INDEX_CONSTRAINT_GT   ? FROM
               : op == SQLITE_INDEX_CONSTRAINT_LE || op == SQLITE_INDEX_CONSTRAINT_LT ? UNTIL
                                                                                      : 0;
    default:
        return 0;
    }
}

static int trace_best_index(sqlite3_vtab *v, sqlite3_index_info *info)
{
    const struct profile *p = ((struct trace_vtab *)v)->d->profile;
    int at[7] = {0}, n = 0;
    double events = 1;
    for (uint32_t i = 0; i < p->n_traces; i++)
        events += (double)p->traces[i]->n_events;
    for (int i = 0; i < info->nConstraint; i++) {
        const int bit = info->aConstraint[i].usable ? bit_of(info, i) : 0;
        if (bit != 0)
            at[__builtin_ctz((unsigned)bit)] = i + 1;
    }
    for (int i = 0; i < 7; i++)
        if (at[i] > 0) {
            info->aConstraintUsage[at[i] - 1].argvIndex = ++n;
            info->idxNum |= 1 << i;
            events /= 4;
        }
    info->estimatedCost = events;
    info->estimatedRows = (sqlite3_int64)events + 1;
    return SQLITE_OK;
}

static int trace_open(sqlite3_vtab *v, sqlite3_vtab_cursor **out)
{
    struct event_cursor *c = sqlite3_malloc(sizeof *c);
    if (c == NULL)
        return SQLITE_NOMEM;
    *c = (struct event_cursor){.d = ((struct trace_vtab *)v)->d};
    *out = &c->base;
    return SQLITE_OK;
}

static void forget(struct event_cursor *c)
{
    if (c->reading)
        trace_cursor_release(&c->at);
    c->reading = false;
    for (size_t i = 0; i < sizeof c->texts / sizeof *c->texts; i++) {
        sqlite3_free(c->texts[i]);
        c->texts[i] = NULL;
    }
}

static int trace_close(sqlite3_vtab_cursor *cursor)
{
    forget((struct event_cursor *)cursor);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static const struct trace *trace_at(const struct event_cursor *c)
{
    return c->d->profile->traces[c->trace];
}

static bool text_fits(const char *wanted, str s)
{
    return wanted == NULL || str_eq(str_from(wanted), s);
}

static bool line_fits(const struct event_cursor *c)
{
    const struct trace *t = trace_at(c);
    const struct trace_line *line = &t->lines[c->line];
    return line->n_events > 0 && text_fits(c->texts[0], t->host) &&
           text_fits(c->texts[1], t->planes[line->plane_index].name) &&
           text_fits(c->texts[2], line->name) && text_fits(c->texts[3], trace_target(t)) &&
           (c->wanted_line_id < 0 || (uint64_t)c->wanted_line_id == c->line_id);
}

/* Goes on to the next line that is wanted, from the current one. False at the end. */
static bool line_begin(struct event_cursor *c)
{
    const struct profile *p = c->d->profile;
    for (; c->trace < p->n_traces; c->trace++, c->line = 0) {
        for (; c->line < trace_at(c)->n_lines; c->line++, c->line_id++) {
            if (!line_fits(c))
                continue;
            const uint64_t shift_ps = trace_at(c)->shift_ps;
            trace_cursor_init(&c->at, trace_at(c), c->line);
            c->reading = true;
            if (c->from_ps > 0 && (uint64_t)c->from_ps > shift_ps)
                trace_cursor_seek(&c->at, (uint64_t)c->from_ps - shift_ps);
            return true;
        }
    }
    return false;
}

static int advance(struct event_cursor *c)
{
    struct err e = {0};
    while (!c->done) {
        if (!c->reading && !line_begin(c)) {
            c->done = true;
            break;
        }
        while (trace_cursor_next(&c->at)) {
            const uint64_t start_ps = c->at.event.start_ps + trace_at(c)->shift_ps;
            if (c->until_ps < 0 || start_ps > (uint64_t)c->until_ps)
                break;
            if (c->from_ps <= 0 || start_ps >= (uint64_t)c->from_ps)
                return SQLITE_OK;
        }
        const bool ok = trace_cursor_ok(&c->at, &e);
        trace_cursor_release(&c->at);
        c->reading = false;
        c->line++;
        c->line_id++;
        if (!ok)
            return sql_failed(c->d, &c->base.pVtab->zErrMsg, &e);
    }
    return SQLITE_OK;
}

static bool take_text(char **out, sqlite3_value *v)
{
    const char *text =
        sqlite3_value_type(v) == SQLITE_TEXT ? (const char *)sqlite3_value_text(v) : NULL;
    if (text == NULL)
        return true; /* of another type: SQLite compares */
    *out = sqlite3_mprintf("%s", text);
    return *out != NULL;
}

/* A bound as a whole number, further out where it is between two; what is no number bounds nothing. */
static int64_t bound(sqlite3_value *v, int64_t otherwise)
{
    if (sqlite3_value_type(v) == SQLITE_INTEGER)
        return sqlite3_value_int64(v);
    const double real = sqlite3_value_type(v) == SQLITE_FLOAT ? sqlite3_value_double(v) : NAN;
    if (!(fabs(real) < 9e18))
        return otherwise;
    return otherwise > 0 ? (int64_t)ceil(real) : (int64_t)floor(real);
}

static int trace_filter(sqlite3_vtab_cursor *cursor, int mask, const char *name, int argc,
                        sqlite3_value **argv)
{
    struct event_cursor *c = (struct event_cursor *)cursor;
    int arg = 0;
    bool ok = true;
    (void)name, (void)argc;
    forget(c);
    *c = (struct event_cursor){
        .base = c->base, .d = c->d, .until_ps = INT64_MAX, .wanted_line_id = -1};
    for (int i = 0; i < 4; i++)
        if ((mask & 1 << i) != 0)
            ok = take_text(&c->texts[i], argv[arg++]) && ok;
    if ((mask & FROM) != 0)
        c->from_ps = bound(argv[arg++], 0);
    if ((mask & UNTIL) != 0)
        c->until_ps = bound(argv[arg++], INT64_MAX);
    if ((mask & BY_LINE_ID) != 0)
        c->wanted_line_id = bound(argv[arg], -1);
    return ok ? advance(c) : SQLITE_NOMEM;
}

static int trace_next(sqlite3_vtab_cursor *cursor)
{
    return advance((struct event_cursor *)cursor);
}

static int trace_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct event_cursor *)cursor)->done;
}

static const char *kind_word(enum trace_plane_kind kind)
{
    switch (kind) {
    case TRACE_PLANE_HOST:
        return "host";
    case TRACE_PLANE_TPU:
        return "tpu";
    case TRACE_PLANE_TPU_SPARSE:
        return "sparse_core";
    case TRACE_PLANE_GPU:
        return "gpu";
    case TRACE_PLANE_CUSTOM:
        return "custom";
    case TRACE_PLANE_METADATA:
        return "metadata";
    case TRACE_PLANE_ENVIRONMENT:
        return "environment";
    case TRACE_PLANE_OTHER:
        break;
    }
    return "other";
}

static int result_args(const struct event_cursor *c, sqlite3_context *context)
{
    const struct trace *t = trace_at(c);
    const struct trace_line *line = &t->lines[c->line];
    const struct arena_mark m = arena_mark(c->d->arena);
    const struct trace_event_metadata *meta = trace_event_meta(t, line, &c->at.event);
    struct trace_stats stats;
    struct json j;
    struct buf out;
    struct err e = {0};
    buf_init(&out, (size_t)1 << 24);
    bool ok = trace_event_stats(t, line, &c->at.event, c->d->arena, &stats, &e);
    json_init_buf(&j, &out);
    json_object(&j);
    if (ok)
        tool_print_stats(&j, stats);
    for (uint32_t i = 0; ok && meta != NULL && i < meta->stats.n; i++)
        if (trace_stat_find(stats, meta->stats.items[i].name) == NULL)
            trace_stat_json(&j, &meta->stats.items[i]);
    json_end(&j);
    ok = ok && json_done(&j, &e);
    if (ok)
        sqlite3_result_text64(context, out.p, out.n, SQLITE_TRANSIENT, SQLITE_UTF8);
    buf_release(&out);
    arena_reset(c->d->arena, m);
    return ok ? SQLITE_OK : sql_failed(c->d, &c->base.pVtab->zErrMsg, &e);
}

static void result_ps(sqlite3_context *context, uint64_t ps)
{
    const struct cell cell = cell_u64(ps);
    sql_result_cell(context, &cell);
}

static int trace_column(sqlite3_vtab_cursor *cursor, sqlite3_context *context, int i)
{
    const struct event_cursor *c = (const struct event_cursor *)cursor;
    const struct trace *t = trace_at(c);
    const struct trace_line *line = &t->lines[c->line];
    const struct trace_event *ev = &c->at.event;
    switch ((enum trace_column_id)i) {
    case COLUMN_HOST:
        if (t->host.n > 0)
            sql_result_text(context, t->host);
        break;
    case COLUMN_PLANE:
        sql_result_text(context, t->planes[line->plane_index].name);
        break;
    case COLUMN_KIND:
        sql_result_text(context, str_from(kind_word(t->planes[line->plane_index].kind)));
        break;
    case COLUMN_LINE:
        sql_result_text(context, line->name);
        break;
    case COLUMN_NAME:
        sql_result_text(context, trace_event_name(t, line, ev));
        break;
    case COLUMN_START:
        result_ps(context, ev->start_ps + t->shift_ps);
        break;
    case COLUMN_DUR:
        result_ps(context, ev->dur_ps);
        break;
    case COLUMN_END:
        result_ps(context, ev->start_ps + t->shift_ps + ev->dur_ps);
        break;
    case COLUMN_DEPTH:
        sqlite3_result_int(context, ev->depth);
        break;
    case COLUMN_OCCURRENCES:
        sqlite3_result_int64(context, ev->num_occurrences > 0 ? ev->num_occurrences : 1);
        break;
    case COLUMN_ARGS:
        return result_args(c, context);
    case COLUMN_LINE_ID:
        sqlite3_result_int64(context, (sqlite3_int64)c->line_id);
        break;
    case COLUMN_TARGET:
        sql_result_text(context, trace_target(t));
        break;
    }
    return SQLITE_OK;
}

static int trace_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *out)
{
    const struct event_cursor *c = (const struct event_cursor *)cursor;
    *out = (sqlite3_int64)(c->line_id << LINE_SHIFT | c->at.index);
    return SQLITE_OK;
}

static const sqlite3_module trace_module = {
    .iVersion = 1,
    .xConnect = trace_connect,
    .xDisconnect = trace_disconnect,
    .xBestIndex = trace_best_index,
    .xOpen = trace_open,
    .xClose = trace_close,
    .xFilter = trace_filter,
    .xNext = trace_next,
    .xEof = trace_eof,
    .xColumn = trace_column,
    .xRowid = trace_rowid,
};

bool sql_trace_register(struct sql_db *d, struct err *e)
{
    return sqlite3_create_module(d->db, "trace", &trace_module, d) == SQLITE_OK ||
           err_set(e, ERR_LIMIT, "cannot make table 'trace': %s", sqlite3_errmsg(d->db));
}
