/* SPDX-License-Identifier: Apache-2.0 */
#include "format/export.h"

#include "base/file.h"
#include "base/limits.h"
#include "format/export_inside.h"

#define FLUSH_BYTES ((size_t)1 << 18)
#define PROGRESS_EVERY 65536 /* events */
#define GZIP_LEVEL 6
#define GZIP_WINDOW (15 + 16)

const struct exporter export_table[] = {
#define X(symbol, name, endings, type, help) {name, endings, type, help, export_##symbol},
#include "format/exports.def"
#undef X
};
const uint32_t export_count = sizeof export_table / sizeof *export_table;

const struct exporter *export_find(str name)
{
    for (uint32_t i = 0; i < export_count; i++)
        if (str_eq(name, str_from(export_table[i].name)))
            return &export_table[i];
    return NULL;
}

const struct exporter *export_for_path(str path)
{
    const struct exporter *best = NULL;
    size_t best_n = 0;
    str ending, rest;
    for (uint32_t i = 0; i < export_count; i++)
        for (rest = str_from(export_table[i].endings); str_cut(rest, ',', &ending, &rest);)
            if (str_ends(path, ending) && path.n > ending.n && ending.n > best_n) {
                best = &export_table[i];
                best_n = ending.n;
            }
    return best;
}

/* ---- the stream ---- */

bool export_gzip(struct export_work *w, struct err *e)
{
    w->is_gzip =
        deflateInit2(&w->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    return w->is_gzip || err_set(e, ERR_LIMIT, "no memory to compress the export");
}

static bool write_gzip(struct export_work *w, int flush, struct err *e)
{
    unsigned char packed[1 << 15];
    w->gzip.next_in = (Bytef *)(void *)w->out.p;
    w->gzip.avail_in = (uInt)w->out.n;
    do {
        w->gzip.next_out = packed;
        w->gzip.avail_out = sizeof packed;
        if (deflate(&w->gzip, flush) == Z_STREAM_ERROR)
            return err_set(e, ERR_INTERNAL, "cannot compress the export");
        if (!file_write_all(w->fd, packed, sizeof packed - w->gzip.avail_out, e))
            return false;
    } while (w->gzip.avail_out == 0);
    return true;
}

static bool flush_all(struct export_work *w, int gzip_flush, struct err *e)
{
    const bool ok =
        buf_ok(&w->out, "an event", e) &&
        (w->is_gzip ? write_gzip(w, gzip_flush, e) : file_write_all(w->fd, w->out.p, w->out.n, e));
    buf_clear(&w->out);
    return ok;
}

bool export_flush(struct export_work *w, struct err *e)
{
    return w->out.n < FLUSH_BYTES || flush_all(w, Z_NO_FLUSH, e);
}

/* ---- the walk ---- */

static bool is_wanted(const struct export_work *w, const struct trace *t)
{
    const str host = w->options->host;
    return host.n == 0 || str_eq(host, t->host) || str_eq(host, trace_target(t));
}

const struct trace *export_next_trace(const struct export_work *w, const struct trace *after)
{
    const struct profile *p = w->profile;
    bool seen = after == NULL;
    for (uint32_t i = 0; i < p->n_traces; i++) {
        if (seen && is_wanted(w, p->traces[i]))
            return p->traces[i];
        seen = seen || p->traces[i] == after;
    }
    return NULL;
}

str export_line_name(const struct trace_line *line)
{
    return line->display_name.n > 0 ? line->display_name : line->name.n > 0 ? line->name : S("?");
}

str export_plane_name(const struct trace_plane *plane)
{
    return plane->name.n > 0 ? plane->name : S("?");
}

/* The length of the well-formed sequence that s begins with, or 0. */
static size_t sequence_bytes(str s)
{
    const uint8_t c = (uint8_t)s.p[0];
    const size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    return n <= s.n && str_is_utf8(str_sub(s, 0, n)) ? n : 0;
}

str export_utf8(struct arena *a, str s)
{
    if (str_is_utf8(s))
        return s;
    struct buf b;
    buf_init(&b, s.n * 3 + 1);
    while (s.n > 0) {
        const size_t n = sequence_bytes(s);
        buf_add_str(&b, n == 0 ? S("\xef\xbf\xbd") : str_sub(s, 0, n));
        s = str_sub(s, n == 0 ? 1 : n, s.n);
    }
    const str kept = arena_str(a, buf_str(&b));
    buf_release(&b);
    return kept;
}

void export_cursor_init(struct export_cursor *c, struct export_work *w, const struct trace *t,
                        uint32_t line_index)
{
    *c = (struct export_cursor){
        .work = w, .trace = t, .line = &t->lines[line_index], .line_index = line_index};
    trace_cursor_init(&c->cursor, t, line_index);
    if (w->options->from_ps > t->shift_ps)
        trace_cursor_seek(&c->cursor, w->options->from_ps - t->shift_ps);
}

static void note_progress(struct export_work *w)
{
    if (w->counts->n_events % PROGRESS_EVERY == 0 && w->options->progress != NULL)
        w->options->progress(w->options->progress_ctx, w->counts->n_events, w->n_total);
}

bool export_next(struct export_cursor *c)
{
    const struct export_options *o = c->work->options;
    while (trace_cursor_next(&c->cursor)) {
        c->event = c->cursor.event;
        c->start_ps = c->event.start_ps + c->trace->shift_ps;
        if (o->to_ps > 0 && c->start_ps >= o->to_ps)
            return false;
        if (c->start_ps < o->from_ps && c->start_ps + c->event.dur_ps <= o->from_ps)
            continue;
        c->work->counts->n_events++;
        note_progress(c->work);
        return true;
    }
    return false;
}

bool export_cursor_end(struct export_cursor *c, struct err *e)
{
    const bool ok = trace_cursor_ok(&c->cursor, e);
    trace_cursor_release(&c->cursor);
    return ok;
}

/* ---- what events say ---- */

static bool number_of(struct trace_stats stats, str name, int64_t *out)
{
    return trace_stat_i64(trace_stat_find(stats, name), out);
}

/* Contexts of all kinds and correlations share one space of flow ids. */
static uint64_t flow_id(int64_t kind, int64_t id)
{
    const uint64_t mixed = map_hash_u64((uint64_t)id ^ map_hash_u64((uint64_t)kind + 1));
    return mixed >> 1 | 1; /* fits the signed integers of readers, and is not 0 */
}

#define FLOW_OF_LAUNCH (-1) /* no context kind of XProf's is negative */

uint32_t export_flows(const struct trace *t, const struct trace_line *line,
                      struct trace_stats stats, struct export_flow out[static EXPORT_FLOWS_MAX])
{
    const enum trace_plane_kind kind = t->planes[line->plane_index].kind;
    uint32_t n = 0;
    int64_t type, id;
    if (number_of(stats, S("_pt"), &type) && number_of(stats, S("_p"), &id))
        out[n++] = (struct export_flow){flow_id(type, id), true};
    if (number_of(stats, S("_ct"), &type) && number_of(stats, S("_c"), &id))
        out[n++] = (struct export_flow){flow_id(type, id), false};
    if ((kind == TRACE_PLANE_HOST || kind == TRACE_PLANE_GPU) &&
        number_of(stats, S("correlation_id"), &id) && id != 0)
        out[n++] = (struct export_flow){flow_id(FLOW_OF_LAUNCH, id), kind == TRACE_PLANE_HOST};
    return n;
}

bool export_counter(const struct trace_event *ev, struct trace_stats stats, double *value)
{
    return ev->dur_ps == 0 && trace_stat_f64(trace_stat_find(stats, S("counter_value")), value);
}

/* ---- one export ---- */

static bool write_all(const struct exporter *x, struct export_work *w, struct err *e)
{
    if (w->options->is_gzip && !export_gzip(w, e))
        return false;
    return x->run(w, e) && flush_all(w, Z_FINISH, e);
}

bool export_write(const struct exporter *x, const struct profile *p, const struct export_options *o,
                  int fd, struct export_counts *counts, struct err *e)
{
    struct export_work w = {.profile = p, .options = o, .counts = counts, .fd = fd};
    *counts = (struct export_counts){0};
    if (export_next_trace(&w, NULL) == NULL)
        return err_set(e, ERR_NOT_FOUND, "the session has no host '%.*s'", STR_ARG(o->host));
    for (const struct trace *t = NULL; (t = export_next_trace(&w, t)) != NULL;)
        w.n_total += t->n_events;
    buf_init(&w.out, LIMIT_ARENA_TOOL_BYTES);
    arena_init(&w.scratch, "exported event", 0);
    const bool ok = write_all(x, &w, e);
    if (w.is_gzip)
        deflateEnd(&w.gzip);
    arena_release(&w.scratch);
    buf_release(&w.out);
    return ok;
}
