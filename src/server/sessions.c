/* SPDX-License-Identifier: Apache-2.0 */
#include "server/sessions.h"

#include <dirent.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "jobs/queue.h"
#include "server/doc.h"
#include "server/run_cache.h"

bool session_split(str id, str *run, str *name, struct err *e)
{
    const ptrdiff_t at = str_find_char(id, '~');
    if (at > 0) {
        *run = str_sub(id, 0, (size_t)at);
        *name = str_sub(id, (size_t)at + 1, id.n);
        if (path_is_safe_name(*run) && path_is_safe_name(*name))
            return true;
    }
    return err_set(e, ERR_NOT_FOUND, "no session '%.*s'", STR_ARG(id));
}

str session_key(struct arena *a, str run, str name)
{
    return arena_printf(a, "runs/%.*s/plugins/profile/%.*s", STR_ARG(run), STR_ARG(name));
}

char *session_folder(struct server *s, str id, struct arena *a, struct err *e)
{
    struct store_session t;
    str run, name;
    if (!session_split(id, &run, &name, e) || !s->meta->ops->session_get(s->meta, id, a, &t, e))
        return NULL;
    return path_join(a, s->data_dir, session_key(a, run, name));
}

struct parser_limits server_parser_limits(const struct server *s)
{
    return (struct parser_limits){
        .memory_bytes = s->parser_memory_bytes, .cpu_s = s->parser_cpu_s, .indexes = &s->indexes};
}

/* What a SESSION record of the run says about it. */
static void take_record(struct server *s, struct store_session *t, struct arena *a)
{
    struct err ignored = {0};
    struct run_view *v = run_view_open(s->runs, t->run, &ignored);
    if (v == NULL)
        return;
    for (uint32_t i = 0; i < v->decoder.set.n_records; i++) {
        const struct record *r = &v->decoder.set.records[i];
        if (r->kind != RECORD_SESSION)
            continue;
        struct doc *d = doc_parse(r->text, &ignored);
        const char *name = doc_cstr(d, "session");
        if (name != NULL && str_eq(str_from(name), t->name)) {
            t->kind = doc_text(d, "kind", a);
            t->from_ns = doc_i64(d, "from_wall_ns", 0);
            t->to_ns = doc_i64(d, "to_wall_ns", 0);
        }
        doc_free(d);
    }
    run_view_close(v);
}

/* host of "host.3" is "host": a rank follows the last dot when it is a number. */
static str host_of(str target)
{
    for (size_t i = target.n; i > 1; i--) {
        uint64_t rank;
        if (target.p[i - 1] == '.')
            return str_to_u64(str_sub(target, i, target.n), &rank) ? str_sub(target, 0, i - 1)
                                                                   : target;
    }
    return target;
}

struct folder_view {
    struct store_target *targets;
    uint32_t n, capacity;
    uint64_t size_bytes;
    int64_t oldest_ns;
};

static bool look_at(struct server *s, str key, struct arena *a, struct folder_view *f,
                    struct err *e)
{
    str *names;
    size_t n;
    if (!s->blob->ops->list(s->blob, key, a, &names, &n, e))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        const char *path = path_join(a, s->data_dir,
                                     arena_printf(a, "%.*s/%.*s", STR_ARG(key), STR_ARG(names[i])));
        if (!str_ends(names[i], S(TRACE_FILE_ENDING)) || !path_is_safe_name(names[i]) ||
            lstat(path, &st) == -1 || !S_ISREG(st.st_mode))
            continue;
        if (!ARENA_PUSH(a, f->targets, f->n, f->capacity))
            return arena_full(a, e);
        const str target = str_sub(names[i], 0, names[i].n - TRACE_FILE_ENDING_BYTES);
        f->targets[f->n - 1] = (struct store_target){.target = target,
                                                     .host = host_of(target),
                                                     .size_bytes = (uint64_t)st.st_size,
                                                     .planes = -1,
                                                     .lines = -1,
                                                     .events = -1};
        f->size_bytes += (uint64_t)st.st_size;
        const int64_t made = st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
        if (f->n == 1 || made < f->oldest_ns)
            f->oldest_ns = made;
    }
    return true;
}

bool session_register(struct server *s, str run, str name, bool *is_new, struct err *e)
{
    struct arena a;
    struct folder_view f = {0};
    struct store_session old, t = {.run = run,
                                   .name = name,
                                   .status = S("complete"),
                                   .report_status = S("pending"),
                                   .n_findings = -1};
    int64_t job;
    *is_new = false;
    arena_init(&a, "session", 0);
    t.session = arena_printf(&a, "%.*s~%.*s", STR_ARG(run), STR_ARG(name));
    bool ok = look_at(s, session_key(&a, run, name), &a, &f, e);
    struct err absent = {0};
    const bool known = ok && s->meta->ops->session_get(s->meta, t.session, &a, &old, &absent);
    if (ok && f.n > 0 && (!known || old.size_bytes != f.size_bytes || old.n_targets != f.n)) {
        t.size_bytes = f.size_bytes;
        t.n_targets = f.n;
        t.created_ns = known ? old.created_ns : f.oldest_ns;
        take_record(s, &t, &a);
        ok = s->meta->ops->session_put(s->meta, &t, f.targets, f.n, e) &&
             queue_add(s->queue, S("report"), t.session, &job, e);
        *is_new = ok;
    }
    arena_release(&a);
    return ok;
}

static void put_number(struct json *j, const char *key, int64_t v)
{
    if (v < 0)
        json_knull(j, key);
    else
        json_ki64(j, key, v);
}

static void put_target(const struct store_target *t, struct json *j)
{
    json_object(j);
    json_kstr(j, "target", t->target);
    json_kstr_or_null(j, "host", t->host);
    json_ku64(j, "size_bytes", t->size_bytes);
    put_number(j, "planes", t->planes);
    put_number(j, "lines", t->lines);
    put_number(j, "events", t->events);
    json_end(j);
}

void session_put(const struct store_session *t, const struct store_target *targets, uint32_t n,
                 struct json *j)
{
    json_object(j);
    json_kstr(j, "session", t->session);
    json_kstr(j, "run", t->run);
    json_kstr(j, "name", t->name);
    json_kstr_or_null(j, "kind", t->kind);
    json_ktime(j, "from", t->from_ns);
    json_ktime(j, "to", t->to_ns);
    json_key(j, "duration_s");
    if (t->from_ns != 0 && t->to_ns >= t->from_ns)
        json_fixed(j, t->to_ns - t->from_ns, 9);
    else
        json_null(j);
    json_ktime(j, "created", t->created_ns);
    json_ku64(j, "size_bytes", t->size_bytes);
    json_key(j, "targets");
    if (targets == NULL) {
        json_u64(j, t->n_targets);
    } else {
        json_array(j);
        for (uint32_t i = 0; i < n; i++)
            put_target(&targets[i], j);
        json_end(j);
    }
    json_kstr(j, "status", t->status);
    json_kstr(j, "report_status", t->report_status);
    put_number(j, "findings", t->n_findings);
    const bool failed = str_eq(t->report_status, S("failed"));
    json_kstr_or_null(j, "first_finding", failed ? (str){0} : t->first_finding);
    json_kstr_or_null(j, "report_error", failed ? t->first_finding : (str){0});
    json_key(j, "etag");
    json_strf(j, "%llu-%u-%.*s", (unsigned long long)t->size_bytes, t->n_targets,
              STR_ARG(t->report_status));
    json_end(j);
}
