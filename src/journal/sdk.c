/* SPDX-License-Identifier: Apache-2.0 */
/* The public C API over the journal writer. Guest code: libc only, no lock, no thread. */
#include "tachograph/tachograph.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal/run_identity.h"
#include "journal/writer.h"

#define JSON_TEXT_MAX 8192
#define ARGV_BYTES 2048

#define X(name, value, word, category, meaning) PHASE_NUMBER_##name = value,
enum {
#include "model/phases.def"
};
#undef X
_Static_assert((int)PHASE_NUMBER_STEP == (int)TACHO_STEP &&
                   (int)PHASE_NUMBER_IDLE == (int)TACHO_IDLE,
               "public numbers are those of phases.def");

struct tacho_run {
    struct journal_writer writer;
    struct run_identity identity;
    _Atomic int64_t open_step; /* of tacho_step; -1 = none */
};

struct json_text { /* JSON of bounded size, cut at a whole member when it would not fit */
    char p[JSON_TEXT_MAX];
    size_t n;
};

static void json_bytes(struct json_text *j, const char *p, size_t n)
{
    if (j->n + n < sizeof j->p) {
        memcpy(j->p + j->n, p, n);
        j->n += n;
    }
}

static void json_quoted(struct json_text *j, const char *s)
{
    json_bytes(j, "\"", 1);
    for (; *s != '\0'; s++) {
        const unsigned char c = (unsigned char)*s;
        char escape[8];
        if (c == '"' || c == '\\') {
            const char pair[2] = {'\\', (char)c};
            json_bytes(j, pair, 2);
        } else if (c < 0x20) {
            json_bytes(j, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", c));
        } else {
            json_bytes(j, s, 1);
        }
    }
    json_bytes(j, "\"", 1);
}

static void json_comma(struct json_text *j)
{
    if (j->n > 1)
        json_bytes(j, ",", 1);
}

static void json_text_member(struct json_text *j, const char *key, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    const size_t before = j->n;
    json_comma(j);
    json_quoted(j, key);
    json_bytes(j, ":", 1);
    json_quoted(j, value);
    if (j->n + 64 > sizeof j->p) /* may be cut in the middle: leave it out whole */
        j->n = before;
}

static void json_number_member(struct json_text *j, const char *key, int64_t value)
{
    char text[96];
    json_comma(j);
    json_bytes(j, text, (size_t)snprintf(text, sizeof text, "\"%s\":%lld", key, (long long)value));
}

static void json_argv_member(struct json_text *j)
{
    char text[ARGV_BYTES];
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return;
    text[n] = '\0';
    json_comma(j);
    json_bytes(j, "\"argv\":[", 8);
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(text + at) + 1) {
        if (at > 0)
            json_bytes(j, ",", 1);
        json_quoted(j, text + at);
    }
    json_bytes(j, "]", 1);
}

static void write_process_start(tacho_run *run, const char *name, const char *group)
{
    const struct run_identity *id = &run->identity;
    struct json_text j = {.n = 0};
    json_bytes(&j, "{", 1);
    json_text_member(&j, "name", name);
    json_text_member(&j, "group", group);
    json_text_member(&j, "host", id->host);
    json_text_member(&j, "launcher", id->launcher);
    json_text_member(&j, "version", "tacho-c/" TACHO_VERSION);
    json_number_member(&j, "pid", getpid());
    if (id->rank >= 0)
        json_number_member(&j, "rank", id->rank);
    if (id->world_size > 0)
        json_number_member(&j, "world_size", id->world_size);
    if (id->local_rank >= 0)
        json_number_member(&j, "local_rank", id->local_rank);
    if (j.n + 2 * ARGV_BYTES < sizeof j.p)
        json_argv_member(&j);
    json_bytes(&j, "}", 1);
    (void)journal_write(&run->writer, JOURNAL_PROCESS_START, (str){0}, (str){j.p, j.n});
}

/* The caller's options as far as its struct reaches; what it does not know is zero. */
static struct tacho_opts known_opts(const struct tacho_opts *opts)
{
    struct tacho_opts out = TACHO_OPTS_INIT;
    if (opts != NULL && opts->sz >= sizeof opts->sz)
        memcpy(&out, opts, opts->sz < sizeof out ? opts->sz : sizeof out);
    return out;
}

static int open_run(tacho_run *run, const struct tacho_opts *o)
{
    char data_dir[2048];
    run_identity_find(&run->identity);
    if (o->run_id != NULL) {
        if (!run_id_is_valid(o->run_id))
            return EINVAL;
        snprintf(run->identity.run, sizeof run->identity.run, "%s", o->run_id);
    }
    if (o->data_dir == NULL && !run_data_dir(data_dir, sizeof data_dir))
        return ENOENT;
    const struct journal_writer_opts writer_opts = {
        .data_dir = o->data_dir != NULL ? o->data_dir : data_dir,
        .run = run->identity.run,
        .host = run->identity.host,
        .rank = run->identity.rank,
        .world_size = run->identity.world_size,
        .restart_count = run->identity.restart_count,
    };
    return journal_writer_open(&run->writer, &writer_opts);
}

tacho_run *tacho_open(const struct tacho_opts *opts)
{
    const struct tacho_opts o = known_opts(opts);
    tacho_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return NULL;
    atomic_store(&run->open_step, -1);
    const int error = open_run(run, &o);
    if (error != 0) {
        free(run);
        errno = error;
        return NULL;
    }
    write_process_start(run, o.name != NULL ? o.name : getenv("TACHO_RUN_NAME"),
                        o.group != NULL ? o.group : getenv("TACHO_RUN_GROUP"));
    tacho_config(run, o.config_json);
    return run;
}

const char *tacho_run_id(const tacho_run *run)
{
    return run == NULL ? "" : run->identity.run;
}

const char *tacho_journal_path(const tacho_run *run)
{
    return run == NULL ? "" : run->writer.path;
}

static void write_event(tacho_run *run, enum journal_type type, enum tacho_event event,
                        int64_t step, const char *custom_type)
{
    if (run != NULL && event > 0 && event <= UINT8_MAX)
        (void)journal_write_phase(&run->writer, type, (uint8_t)event, step,
                                  str_sub(str_from(custom_type), 0, 1024));
}

void tacho_event_begin(tacho_run *run, enum tacho_event event, int64_t step,
                       const char *custom_type)
{
    write_event(run, JOURNAL_BEGIN, event, step, custom_type);
}

void tacho_event_end(tacho_run *run, enum tacho_event event, int64_t step, const char *custom_type)
{
    write_event(run, JOURNAL_END, event, step, custom_type);
}

void tacho_step(tacho_run *run, int64_t step)
{
    if (run == NULL)
        return;
    const int64_t open = atomic_exchange(&run->open_step, step < 0 ? -1 : step);
    if (open >= 0)
        write_event(run, JOURNAL_END, TACHO_STEP, open, NULL);
    if (step >= 0)
        write_event(run, JOURNAL_BEGIN, TACHO_STEP, step, NULL);
}

void tacho_metric(tacho_run *run, const char *name, double value, int64_t step)
{
    if (run != NULL && name != NULL)
        (void)journal_write_metric(&run->writer, JOURNAL_METRICS, step, str_from(name), value);
}

void tacho_config(tacho_run *run, const char *json)
{
    if (run != NULL && json != NULL)
        (void)journal_write(&run->writer, JOURNAL_CONFIG, (str){0}, str_from(json));
}

void tacho_checkpoint(tacho_run *run, enum tacho_checkpoint kind, int64_t step, int64_t duration_ns)
{
    if (run != NULL)
        (void)journal_write_checkpoint(&run->writer, (enum journal_checkpoint_kind)kind, step,
                                       duration_ns);
}

void tacho_heartbeat(tacho_run *run)
{
    if (run != NULL)
        (void)journal_write(&run->writer, JOURNAL_HEARTBEAT, (str){0}, (str){0});
}

uint64_t tacho_dropped(const tacho_run *run)
{
    return run == NULL ? 0 : atomic_load(&run->writer.n_dropped_total);
}

void tacho_close(tacho_run *run, int exit_code)
{
    if (run == NULL)
        return;
    tacho_step(run, -1);
    (void)journal_write_end_of(&run->writer, JOURNAL_PROCESS_END, exit_code, 0, S("exit"));
    journal_writer_close(&run->writer);
    free(run);
}
