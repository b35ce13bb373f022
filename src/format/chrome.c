/* SPDX-License-Identifier: Apache-2.0 */
#include "format/chrome.h"

#include <inttypes.h>
#include <math.h>

#include "base/limits.h"
#include "format/json_scan.h"
#include "format/xspace_write.h"

struct argument {
    str name, text;
    enum json_scan_token type;
};

struct moment { /* of a microsecond number: exact to the picosecond */
    bool known;
    int64_t ns;
    uint32_t sub_ps;
};

struct slice { /* one entry of the event list */
    str name, phase, category, pid, tid;
    struct moment start;
    struct moment length;
    struct argument *args;
    uint32_t n_args, args_capacity;
};

struct begun { /* a B that waits for its E */
    struct slice slice;
    struct begun *outer;
};

struct process {
    str pid, name, label;
    struct xspace_plane_out *plane; /* NULL until something ran */
    bool runs_kernels;
    struct process *next;
};

/* Of one thread id. Kineto lays the user's annotations and waits over the kernels of a stream; and thread 0
 * of process 0 may be of the host while process 0 also stands for GPU 0. */
enum row { ROW_HOST = 0, ROW_KERNELS, ROW_OVER_KERNELS, N_ROWS };

struct thread {
    struct process *process;
    int64_t id;
    str name;
    struct xspace_line_out *rows[N_ROWS]; /* NULL until there is something on them */
    struct begun *open;
};

MAP_DEFINE(process_map, str, struct process *, str_hash, str_eq);
MAP_DEFINE(thread_map, str, struct thread, str_hash, str_eq);

struct import {
    struct json_scan scan;
    struct xspace_writer w;
    struct arena scratch; /* of the entry at hand */
    struct process_map processes;
    struct process *first, **last;
    struct thread_map threads; /* by pid, a zero byte, tid */
    str thread_key;            /* of the entry at hand */
    uint64_t n_unended, n_unbegun, n_left_out, n_no_time, n_slices;
    int64_t base_ns, rank;
    bool cut, has_rank;
};

/* "1234.5678" microseconds. Powers of ten go through a double. */
static struct moment moment_of(str text)
{
    struct moment m = {0};
    str whole, part = {0};
    int64_t us = 0;
    if (str_find_char(text, 'e') >= 0 || str_find_char(text, 'E') >= 0) {
        double v;
        if (!str_to_f64(text, &v) || !isfinite(v) || fabs(v) > 9e15)
            return m;
        const double ns = floor(v * 1e3);
        return (struct moment){true, (int64_t)ns, (uint32_t)((v * 1e3 - ns) * 1e3)};
    }
    if (!str_cut(text, '.', &whole, &part) || !str_to_i64(whole, &us) || us > INT64_MAX / 2000 ||
        us < INT64_MIN / 2000)
        return m;
    int64_t ps = 0;
    for (size_t i = 0; i < 6; i++)
        ps = ps * 10 + (i < part.n ? part.p[i] - '0' : 0);
    if (whole.p[0] == '-')
        ps = -ps;
    const int64_t ns = us * 1000 + (ps >= 0 ? ps / 1000 : -((999 - ps) / 1000));
    return (struct moment){true, ns, (uint32_t)(ps - (ns - us * 1000) * 1000)};
}

static str keep(struct import *im, str s)
{
    return arena_str(&im->scratch, s);
}

/* The value at hand as an argument; what is nested is kept as JSON. */
static bool take_argument(struct import *im, struct slice *s, str name)
{
    struct argument a = {.name = name, .type = im->scan.token, .text = im->scan.text};
    struct buf nested;
    buf_init(&nested, LIMIT_JSON_STRING_BYTES);
    bool ok = true;
    if (a.type == JSON_SCAN_OBJECT || a.type == JSON_SCAN_ARRAY) {
        ok = json_scan_copy(&im->scan, &nested);
        a.text = buf_str(&nested);
        a.type = JSON_SCAN_STRING;
    }
    a.text = keep(im, a.text);
    buf_release(&nested);
    if (!ok || !ARENA_PUSH(&im->scratch, s->args, s->n_args, s->args_capacity))
        return false;
    s->args[s->n_args - 1] = a;
    return true;
}

static bool take_arguments(struct import *im, struct slice *s)
{
    if (im->scan.token != JSON_SCAN_OBJECT)
        return json_scan_skip(&im->scan);
    while (json_scan_next(&im->scan) == JSON_SCAN_KEY) {
        const str name = keep(im, im->scan.text);
        if (json_scan_next(&im->scan) == JSON_SCAN_FAILED || !take_argument(im, s, name))
            return false;
    }
    return im->scan.token == JSON_SCAN_OBJECT_END;
}

static bool take_member(struct import *im, struct slice *s, str key)
{
    const struct {
        str key;
        str *text;
    } texts[] = {{S("name"), &s->name},
                 {S("ph"), &s->phase},
                 {S("cat"), &s->category},
                 {S("pid"), &s->pid},
                 {S("tid"), &s->tid}};
    if (json_scan_next(&im->scan) == JSON_SCAN_FAILED)
        return false;
    if (str_eq(key, S("args")))
        return take_arguments(im, s);
    const bool plain = im->scan.token == JSON_SCAN_STRING || im->scan.token == JSON_SCAN_NUMBER;
    if (plain && str_eq(key, S("ts")))
        s->start = moment_of(im->scan.text);
    else if (plain && str_eq(key, S("dur")))
        s->length = moment_of(im->scan.text);
    else
        for (size_t i = 0; plain && i < sizeof texts / sizeof *texts; i++)
            if (str_eq(key, texts[i].key))
                *texts[i].text = keep(im, im->scan.text);
    return json_scan_skip(&im->scan);
}

static struct process *process_of(struct import *im, str pid)
{
    struct process **slot = process_map_get(&im->processes, pid);
    if (slot != NULL)
        return *slot;
    struct process *p = ARENA_NEW(&im->w.arena, struct process);
    if (p == NULL)
        return NULL;
    p->pid = arena_str(&im->w.arena, pid);
    *im->last = p;
    im->last = &p->next;
    *process_map_put(&im->processes, p->pid) = p;
    return p;
}

static struct thread *thread_of(struct import *im, const struct slice *s)
{
    const str key = arena_printf(&im->scratch, "%.*s%c%.*s", STR_ARG(s->pid), 0, STR_ARG(s->tid));
    struct thread *t = thread_map_get(&im->threads, key);
    if (t != NULL)
        return t;
    struct process *p = process_of(im, s->pid);
    if (p == NULL)
        return NULL;
    t = thread_map_put(&im->threads, arena_str(&im->w.arena, key));
    t->process = p;
    t->name = arena_str(&im->w.arena, s->tid);
    if (!str_to_i64(s->tid, &t->id))
        t->id = (int64_t)(str_fnv1a(s->tid) >> 1);
    return t;
}

static str argument_text(const struct slice *s, str name)
{
    for (uint32_t i = 0; i < s->n_args; i++)
        if (str_eq(s->args[i].name, name))
            return s->args[i].text;
    return (str){0};
}

/* ph M: the names of processes and threads. */
static void take_metadata(struct import *im, const struct slice *s)
{
    if (str_eq(s->name, S("thread_name"))) {
        struct thread *t = thread_of(im, s);
        if (t != NULL)
            t->name = arena_str(&im->w.arena, argument_text(s, S("name")));
        return;
    }
    struct process *p = process_of(im, s->pid);
    if (p != NULL && str_eq(s->name, S("process_name")))
        p->name = arena_str(&im->w.arena, argument_text(s, S("name")));
    else if (p != NULL && str_eq(s->name, S("process_labels")))
        p->label = arena_str(&im->w.arena, argument_text(s, S("labels")));
}

static void write_argument(struct import *im, struct xspace_line_out *l, const struct argument *a)
{
    int64_t number;
    double real;
    if (a->type == JSON_SCAN_NUMBER && str_to_i64(a->text, &number))
        xspace_writer_stat_i64(&im->w, l, a->name, number);
    else if (a->type == JSON_SCAN_NUMBER && str_to_f64(a->text, &real) && isfinite(real))
        xspace_writer_stat_f64(&im->w, l, a->name, real);
    else if (a->type != JSON_SCAN_NULL && a->type != JSON_SCAN_NUMBER)
        xspace_writer_stat_str(&im->w, l, a->name, a->text);
}

static bool is_kernel(str category)
{
    return str_eq_nocase(category, S("kernel")) || str_eq(category, S("gpu_memcpy")) ||
           str_eq(category, S("gpu_memset"));
}

static struct xspace_line_out *line_of(struct import *im, struct thread *t, str category)
{
    const enum row row =
        is_kernel(category) ? ROW_KERNELS
        : str_eq(category, S("gpu_user_annotation")) || str_eq(category, S("cuda_sync"))
            ? ROW_OVER_KERNELS
            : ROW_HOST;
    struct process *p = t->process;
    p->runs_kernels |= row != ROW_HOST;
    if (p->plane == NULL)
        p->plane = xspace_writer_plane(&im->w);
    if (t->rows[row] == NULL)
        t->rows[row] = xspace_writer_line(&im->w, p->plane, t->id, t->name);
    return t->rows[row];
}

static void write_slice(struct import *im, struct thread *t, const struct slice *s, uint64_t dur_ps)
{
    struct xspace_line_out *line = line_of(im, t, s->category);
    for (uint32_t i = 0; i < s->n_args; i++)
        write_argument(im, line, &s->args[i]);
    int64_t step;
    if (str_starts(s->name, S("ProfilerStep#")) &&
        str_to_i64(str_sub(s->name, 13, s->name.n), &step)) {
        xspace_writer_stat_i64(&im->w, line, S("_r"), 1);
        xspace_writer_stat_i64(&im->w, line, S("step_num"), step);
    }
    if (s->category.n > 0)
        xspace_writer_stat_str(&im->w, line, S("category"), s->category);
    xspace_writer_event(&im->w, line, s->name, s->start.ns, s->start.sub_ps, dur_ps);
    im->n_slices++;
}

static uint64_t span_ps(struct moment from, struct moment to)
{
    const __int128 ps = ((__int128)to.ns - from.ns) * 1000 + to.sub_ps - from.sub_ps;
    return ps < 0 || ps > INT64_MAX ? 0 : (uint64_t)ps;
}

/* A copy that outlives the entry at hand. */
static bool slice_keep(struct import *im, struct slice *s)
{
    struct arena *const a = &im->w.arena;
    s->name = arena_str(a, s->name);
    s->category = arena_str(a, s->category);
    struct argument *args = ARENA_ARRAY(a, struct argument, s->n_args);
    for (uint32_t i = 0; args != NULL && i < s->n_args; i++)
        args[i] = (struct argument){arena_str(a, s->args[i].name), arena_str(a, s->args[i].text),
                                    s->args[i].type};
    s->args = args;
    return args != NULL || s->n_args == 0;
}

static void take_begin(struct import *im, struct thread *t, struct slice s)
{
    struct begun *b = ARENA_NEW(&im->w.arena, struct begun);
    if (b == NULL || !slice_keep(im, &s))
        return;
    *b = (struct begun){s, t->open};
    t->open = b;
    im->n_unended++;
}

static void take_end(struct import *im, struct thread *t, const struct slice *s)
{
    struct begun *const b = t->open;
    if (b == NULL) {
        im->n_unbegun++;
        return;
    }
    t->open = b->outer;
    im->n_unended--;
    write_slice(im, t, &b->slice, span_ps(b->slice.start, s->start));
}

static void take_timed(struct import *im, const struct slice *s)
{
    const char phase = s->phase.p[0];
    if (!s->start.known || (phase == 'X' && (!s->length.known || s->length.ns < 0))) {
        im->n_no_time++;
        return;
    }
    struct thread *t = thread_of(im, s);
    if (t == NULL)
        return;
    if (phase == 'B')
        take_begin(im, t, *s);
    else if (phase == 'E')
        take_end(im, t, s);
    else
        write_slice(im, t, s, span_ps((struct moment){0}, s->length));
}

static bool take_entry(struct import *im)
{
    if (im->scan.token != JSON_SCAN_OBJECT)
        return json_scan_skip(&im->scan); /* null after a last comma, say */
    const struct arena_mark mark = arena_mark(&im->scratch);
    struct slice s = {0};
    while (json_scan_next(&im->scan) == JSON_SCAN_KEY)
        if (!take_member(im, &s, keep(im, im->scan.text)))
            break;
    const bool ok = im->scan.token == JSON_SCAN_OBJECT_END;
    if (ok && s.phase.n == 1 && strchr("XBE", s.phase.p[0]) != NULL)
        take_timed(im, &s);
    else if (ok && str_eq(s.phase, S("M")))
        take_metadata(im, &s);
    else if (ok)
        im->n_left_out++;
    arena_reset(&im->scratch, mark);
    return ok;
}

/* Behind the list's bracket. Programs that are stopped leave the list open. */
static bool take_list(struct import *im)
{
    while (json_scan_next(&im->scan) != JSON_SCAN_ARRAY_END)
        if (im->scan.token == JSON_SCAN_FAILED || !take_entry(im)) {
            im->cut = im->n_slices > 0 && json_scan_at_end(&im->scan);
            return im->cut;
        }
    return true;
}

/* Behind the brace of distributedInfo. */
static bool take_rank(struct import *im)
{
    while (json_scan_next(&im->scan) == JSON_SCAN_KEY) {
        const bool is_rank = str_eq(im->scan.text, S("rank"));
        if (json_scan_next(&im->scan) == JSON_SCAN_FAILED)
            return false;
        im->has_rank |= is_rank && str_to_i64(im->scan.text, &im->rank);
        if (!json_scan_skip(&im->scan))
            return false;
    }
    return im->scan.token == JSON_SCAN_OBJECT_END;
}

static bool take_document(struct import *im)
{
    bool seen = false;
    if (json_scan_next(&im->scan) == JSON_SCAN_ARRAY)
        return take_list(im) && (im->cut || json_scan_next(&im->scan) == JSON_SCAN_END);
    if (im->scan.token != JSON_SCAN_OBJECT)
        return false;
    while (json_scan_next(&im->scan) == JSON_SCAN_KEY) {
        const bool is_list = str_eq(im->scan.text, S("traceEvents"));
        const bool is_base = str_eq(im->scan.text, S("baseTimeNanoseconds"));
        const bool is_ranks = str_eq(im->scan.text, S("distributedInfo"));
        if (json_scan_next(&im->scan) == JSON_SCAN_FAILED)
            return false;
        if (is_base && !str_to_i64(im->scan.text, &im->base_ns))
            im->base_ns = 0;
        seen = seen || is_list;
        if (!(is_list && im->scan.token == JSON_SCAN_ARRAY     ? take_list(im)
              : is_ranks && im->scan.token == JSON_SCAN_OBJECT ? take_rank(im)
                                                               : json_scan_skip(&im->scan)))
            return false;
        if (im->cut)
            return true;
    }
    return seen && im->scan.token == JSON_SCAN_OBJECT_END &&
           json_scan_next(&im->scan) == JSON_SCAN_END;
}

static void warn(struct import *im, uint64_t n, const char *what)
{
    if (n > 0)
        xspace_writer_warn(&im->w, arena_printf(&im->w.arena, "%" PRIu64 " %s", n, what));
}

/* Names of planes, once it is known how many there are. */
static void name_planes(struct import *im)
{
    uint32_t n_hosts = 0, n_devices = 0;
    for (const struct process *p = im->first; p != NULL; p = p->next)
        n_hosts += p->plane != NULL && !p->runs_kernels;
    for (struct process *p = im->first; p != NULL; p = p->next) {
        const str name = p->name.n > 0 ? p->name : S("process");
        if (p->plane == NULL)
            continue;
        if (p->runs_kernels)
            p->plane->name = arena_printf(&im->w.arena, "/device:GPU:%u", n_devices++);
        else if (n_hosts == 1)
            p->plane->name = S("/host:CPU");
        else
            p->plane->name =
                arena_printf(&im->w.arena, "/host:CPU %.*s %.*s", STR_ARG(name), STR_ARG(p->pid));
    }
}

/* What XProf's writers call the row of a stream, and rows of a device that are not its work: other tools
 * know it by that. */
static void name_rows(struct import *im)
{
    struct arena *const a = &im->w.arena;
    for (size_t i = 0; thread_map_next(&im->threads, &i);) {
        const struct thread *t = &im->threads.values[i - 1];
        const str name = str_trim(t->name);
        size_t digits = name.n;
        while (digits > 0 && name.p[digits - 1] >= '0' && name.p[digits - 1] <= '9')
            digits--;
        const str number = str_sub(name, digits, name.n);
        if (t->rows[ROW_HOST] != NULL)
            t->rows[ROW_HOST]->name = t->process->runs_kernels
                                          ? arena_printf(a, "Framework Ops %.*s", STR_ARG(t->name))
                                          : t->name;
        if (t->rows[ROW_KERNELS] != NULL)
            t->rows[ROW_KERNELS]->name = str_starts(t->name, S("Stream #"))
                                             ? t->name
                                             : arena_printf(a, "Stream #%.*s", STR_ARG(number));
        if (t->rows[ROW_OVER_KERNELS] != NULL)
            t->rows[ROW_OVER_KERNELS]->name =
                arena_printf(a, "Framework Name Scope #%.*s", STR_ARG(number));
    }
}

static bool import_finish(struct import *im, int to_fd, struct err *e)
{
    name_planes(im);
    name_rows(im);
    for (struct xspace_plane_out *p = im->w.planes; p != NULL && im->has_rank; p = p->next)
        xspace_writer_plane_i64(&im->w, p, S("rank"), im->rank);
    warn(im, im->n_unended, "slices began and have no end: left out");
    warn(im, im->n_unbegun, "ends without a begin: left out");
    warn(im, im->n_no_time, "slices without a time or a length: left out");
    warn(im, im->n_left_out, "counters, flows, instants and other entries: left out");
    warn(im, im->scan.n_bad_escapes, "backslashes that escape nothing: kept");
    warn(im, im->scan.n_not_finite, "numbers that are not finite: unknown");
    warn(im, im->cut, "file is cut inside its event list: what followed is missing");
    im->w.shift_ns = im->base_ns;
    return xspace_writer_save(&im->w, to_fd, e);
}

static bool import_run(struct import *im, int to_fd, struct err *e)
{
    if (take_document(im) || im->cut)
        return import_finish(im, to_fd, e);
    if (!json_scan_ok(&im->scan, e))
        return false;
    if (im->scratch.overflow || im->w.arena.overflow)
        return arena_full(im->scratch.overflow ? &im->scratch : &im->w.arena, e);
    return err_at(e, ERR_PARSE, im->scan.pos, "JSON without a list of trace events");
}

bool chrome_import(int from_fd, int to_fd, struct err *e)
{
    struct import im = {0};
    im.last = &im.first;
    xspace_writer_init(&im.w);
    arena_init(&im.scratch, "trace entry", 0);
    const bool ok = json_scan_open(&im.scan, from_fd, e) && import_run(&im, to_fd, e);
    json_scan_release(&im.scan);
    arena_release(&im.scratch);
    process_map_release(&im.processes);
    thread_map_release(&im.threads);
    xspace_writer_release(&im.w);
    return ok;
}
