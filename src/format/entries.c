/* SPDX-License-Identifier: Apache-2.0 */
#include "format/entries.h"

#include <jansson.h>
#include <math.h>
#include <zlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "format/xspace.h"

#define LATEST_S 8.0e9    /* beyond this differences of nanoseconds do not fit */
#define LONGEST_S 1.0e9   /* of one save or restore */
#define HEAD_BYTES 65536u /* in which a trace says that it is one */

struct parse { /* one file being read */
    struct record_set *set;
    const char *name;
    uint64_t good, bad, unknown, other_job;
    uint64_t first_bad_line, first_bad_byte;
    uint64_t line, byte;              /* of the value at hand */
    char why[JSON_ERROR_TEXT_LENGTH]; /* what was wrong with the first bad one */
};

/* What a flat key says. Order of the table is the order of trial: one entry says one thing. */
static const struct phase_key {
    const char *key;
    enum record_phase phase;
    bool is_end;
    const char *type_key; /* key that names the custom type, or NULL */
} phase_keys[] = {
    {"job_start_time", PHASE_JOB, false, NULL},
    {"job_end_time", PHASE_JOB, true, NULL},
    {"step_start_time", PHASE_STEP, false, NULL},
    {"tpu_init_start_time", PHASE_ACCELERATOR_INIT, false, NULL},
    {"tpu_init_end_time", PHASE_ACCELERATOR_INIT, true, NULL},
    {"training_prep_start_time", PHASE_TRAINING_PREP, false, NULL},
    {"training_prep_end_time", PHASE_TRAINING_PREP, true, NULL},
    {"data_loading_start_time", PHASE_DATA_LOADING, false, NULL},
    {"data_loading_end_time", PHASE_DATA_LOADING, true, NULL},
    {"custom_badput_event_start_time", PHASE_CUSTOM, false, "custom_badput_event_type"},
    {"custom_badput_event_end_time", PHASE_CUSTOM, true, "custom_badput_event_type"},
    {"elastic_wait_start_time", PHASE_ELASTIC_WAIT, false, "elastic_wait_event_type"},
    {"elastic_wait_end_time", PHASE_ELASTIC_WAIT, true, "elastic_wait_event_type"},
    {"elastic_reinit_start_time", PHASE_ELASTIC_REINIT, false, NULL},
    {"elastic_reinit_end_time", PHASE_ELASTIC_REINIT, true, NULL},
};

static bool seconds_to_ns(const json_t *v, int64_t *ns)
{
    if (!json_is_number(v))
        return false;
    const double s = json_number_value(v);
    if (!isfinite(s) || s < 0 || s > LATEST_S)
        return false;
    *ns = (int64_t)llround(s * 1e6) * NS_PER_US;
    return true;
}

static bool text_of(const json_t *v, str *out)
{
    if (!json_is_string(v))
        return false;
    *out = (str){json_string_value(v), json_string_length(v)};
    return true;
}

static bool bad(struct parse *p, const char *why)
{
    if (p->bad + p->unknown == 0) {
        p->first_bad_line = p->line;
        p->first_bad_byte = p->byte;
        snprintf(p->why, sizeof p->why, "%s", why);
    }
    p->bad++;
    return false;
}

static struct record *add(struct parse *p, enum record_kind kind, int64_t wall_ns, uint32_t process)
{
    struct record *r = record_set_add(p->set);
    if (r == NULL)
        return NULL;
    r->kind = kind;
    r->wall_ns = wall_ns;
    r->process = process;
    r->seq = p->line;
    p->good++;
    return r;
}

static uint32_t process_of(struct parse *p, int32_t rank, str host)
{
    struct record_set *s = p->set;
    for (uint32_t i = 0; i < s->n_processes; i++)
        if (s->processes[i].rank == rank) {
            if (s->processes[i].host.n == 0 && host.n > 0)
                s->processes[i].host = arena_str(&s->arena, host);
            return i;
        }
    struct record_process *made = record_set_add_process(s);
    if (made == NULL)
        return 0;
    made->rank = rank;
    made->host = host.n == 0 ? (str){0} : arena_str(&s->arena, host);
    return s->n_processes - 1;
}

static void add_phase(struct parse *p, const json_t *o, const struct phase_key *key)
{
    int64_t ns;
    str type = {0};
    const json_t *step = json_object_get(o, "step_count");
    if (!seconds_to_ns(json_object_get(o, key->key), &ns)) {
        bad(p, "a time that is not a number of Unix seconds");
        return;
    }
    if (key->phase == PHASE_STEP && !json_is_integer(step)) {
        bad(p, "a step without a whole step_count");
        return;
    }
    if (key->type_key != NULL && !text_of(json_object_get(o, key->type_key), &type))
        type = S("unknown");
    struct record *r = add(p, key->is_end ? RECORD_END : RECORD_BEGIN, ns, 0);
    if (r == NULL)
        return;
    r->phase = key->phase;
    if (key->phase == PHASE_STEP)
        r->step = json_integer_value(step);
    if (type.n > 0)
        r->text = arena_str(&p->set->arena, type);
}

/* Orbax writes saves and restores into the same log, with the blocking duration. `logged_ns` is the
 * time of the log entry (its end) where the export has one. */
static void add_checkpoint(struct parse *p, const json_t *o, str type, int64_t logged_ns)
{
    const bool save = str_eq(type, S("save"));
    const char *const duration_keys[] = {
        save ? "checkpoint_manager_blocking_duration_secs" : "checkpoint_manager_duration_secs",
        save ? "checkpointer_blocking_duration_secs" : "checkpointer_duration_secs"};
    const char *const start_keys[] = {
        save ? "checkpoint_manager_blocking_start_time" : "checkpoint_manager_start_time",
        save ? "checkpointer_blocking_start_time" : "checkpointer_start_time"};
    int64_t start_ns = 0, duration_ns = 0;
    bool found = false;
    for (size_t i = 0; i < 2 && !found; i++) {
        if (!seconds_to_ns(json_object_get(o, duration_keys[i]), &duration_ns) ||
            duration_ns > (int64_t)(LONGEST_S * 1e9))
            continue;
        found = seconds_to_ns(json_object_get(o, start_keys[i]), &start_ns);
        if (!found && logged_ns != 0) {
            start_ns = logged_ns - duration_ns;
            found = true;
        }
    }
    if (!found) {
        bad(p, "a checkpoint entry without time or duration");
        return;
    }
    struct record *r = add(p, RECORD_CHECKPOINT, start_ns + duration_ns, 0);
    if (r == NULL)
        return;
    r->phase = save ? PHASE_CHECKPOINT_SAVE : PHASE_CHECKPOINT_RESTORE;
    r->duration_ns = duration_ns;
    const json_t *step = json_object_get(o, "step");
    r->step = json_is_integer(step) ? json_integer_value(step) : -1;
}

static void add_slices(struct parse *p, const json_t *o)
{
    int64_t ns;
    if (!seconds_to_ns(json_object_get(o, "elastic_slice_counts_timestamp"), &ns)) {
        bad(p, "slice counts without a time");
        return;
    }
    struct record *r = add(p, RECORD_ELASTIC, ns, 0);
    if (r != NULL)
        r->text =
            arena_printf(&p->set->arena, "%lld/%lld/%lld",
                         (long long)json_integer_value(json_object_get(o, "active_slices")),
                         (long long)json_integer_value(json_object_get(o, "total_slices")),
                         (long long)json_integer_value(json_object_get(o, "available_slices")));
}

static void add_metric(struct parse *p, const json_t *o, str name, const json_t *value)
{
    int64_t ns;
    if (!seconds_to_ns(json_object_get(o, "time"), &ns)) {
        bad(p, "a metric without a time");
        return;
    }
    struct record *r = add(p, RECORD_METRIC, ns, 0);
    if (r == NULL)
        return;
    const json_t *step = json_object_get(o, "step");
    r->text = arena_str(&p->set->arena, name);
    r->step = json_is_integer(step) ? json_integer_value(step) : -1;
    r->value = json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void add_rank(struct parse *p, const json_t *o)
{
    static const char *const keys[2] = {"compute_s", "wait_s"};
    static const char *const names[2] = {"step.compute_s", "step.wait_s"};
    int64_t ns;
    str host = {0};
    const json_t *step = json_object_get(o, "step"), *rank = json_object_get(o, "rank");
    const json_t *attempt = json_object_get(o, "attempt");
    if (!json_is_integer(step) || !json_is_integer(rank) || json_integer_value(rank) < 0 ||
        json_integer_value(rank) > INT32_MAX || !seconds_to_ns(json_object_get(o, "start"), &ns)) {
        bad(p, "a rank's step without rank, step or start");
        return;
    }
    (void)text_of(json_object_get(o, "host"), &host);
    const uint32_t process = process_of(p, (int32_t)json_integer_value(rank), host);
    for (size_t i = 0; i < 2; i++) {
        const json_t *v = json_object_get(o, keys[i]);
        struct record *r = add(p, RECORD_METRIC, ns, process);
        if (r == NULL)
            return;
        r->text = str_from(names[i]);
        r->step = json_integer_value(step);
        r->value = json_is_number(v) ? json_number_value(v) : (double)NAN;
        r->code = json_is_integer(attempt) ? (int32_t)json_integer_value(attempt) : 0;
    }
}

static bool is_our_job(struct parse *p, const json_t *o)
{
    str job = {0};
    if (!text_of(json_object_get(o, "job_name"), &job) || job.n == 0)
        return true;
    if (p->set->run.n == 0)
        p->set->run = arena_str(&p->set->arena, job);
    if (str_eq(job, p->set->run))
        return true;
    p->other_job++;
    return false;
}

static void add_flat(struct parse *p, const json_t *o, int64_t logged_ns)
{
    str type = {0}, name = {0};
    if (!is_our_job(p, o))
        return;
    for (size_t i = 0; i < sizeof phase_keys / sizeof phase_keys[0]; i++) {
        if (json_object_get(o, phase_keys[i].key) != NULL) {
            add_phase(p, o, &phase_keys[i]);
            return;
        }
    }
    if (text_of(json_object_get(o, "event_type"), &type) &&
        (str_eq(type, S("save")) || str_ends(type, S("restore"))))
        add_checkpoint(p, o, type, logged_ns);
    else if (json_object_get(o, "elastic_slice_counts_timestamp") != NULL)
        add_slices(p, o);
    else if (json_object_get(o, "compute_s") != NULL)
        add_rank(p, o);
    else if (text_of(json_object_get(o, "name"), &name) && json_object_get(o, "value") != NULL)
        add_metric(p, o, name, json_object_get(o, "value"));
    else {
        bad(p, "an object without any key of an entry");
        p->bad--;
        p->unknown++;
    }
}

/* An entry, or a Cloud Logging entry around one. */
static void add_value(struct parse *p, const json_t *v)
{
    str when = {0};
    int64_t logged_ns = 0;
    if (!json_is_object(v)) {
        bad(p, "not a JSON object");
        return;
    }
    const json_t *payload = json_object_get(v, "jsonPayload");
    if (!json_is_object(payload)) {
        add_flat(p, v, 0);
        return;
    }
    if (!text_of(json_object_get(v, "timestamp"), &when) || !clock_parse_rfc3339(when, &logged_ns))
        logged_ns = 0;
    add_flat(p, payload, logged_ns);
}

static void add_array(struct parse *p, const json_t *array)
{
    const size_t n = json_array_size(array);
    for (size_t i = 0; i < n; i++) {
        p->line = i + 1;
        add_value(p, json_array_get(array, i));
    }
}

static void parse_lines(struct parse *p, str text)
{
    str line, rest = text;
    json_error_t je;
    for (p->line = 1; rest.n > 0; p->line++) {
        const char *const at = rest.p;
        (void)str_cut(rest, '\n', &line, &rest);
        p->byte = (uint64_t)(at - text.p);
        line = str_trim(line);
        if (line.n == 0)
            continue;
        if (line.n > LIMIT_JSON_LINE_BYTES) {
            bad(p, "a line longer than 1 MiB");
            continue;
        }
        json_t *v = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, &je);
        if (v == NULL)
            bad(p, je.text);
        else
            add_value(p, v);
        json_decref(v);
    }
}

/* True when the text is one document: an array, or an object with `entries`. */
static bool parse_document(struct parse *p, str text, struct err *e, bool *ok)
{
    json_error_t je;
    json_t *v = json_loadb(text.p, text.n, JSON_REJECT_DUPLICATES, &je);
    if (v == NULL) {
        *ok =
            text.p[0] != '[' || err_at(e, ERR_PARSE, (uint64_t)(je.position > 0 ? je.position : 0),
                                       "'%s', line %d: %s", p->name, je.line, je.text);
        return text.p[0] == '[';
    }
    *ok = true;
    const json_t *entries = json_is_array(v) ? v : json_object_get(v, "entries");
    if (json_is_array(entries)) {
        add_array(p, entries);
    } else {
        p->line = 1;
        add_value(p, v);
    }
    json_decref(v);
    return true;
}

static bool finish(struct parse *p, struct err *e)
{
    struct record_set *s = p->set;
    if (s->arena.overflow)
        return arena_full(&s->arena, e);
    if (p->good == 0 && p->other_job == 0 && p->bad + p->unknown == 0)
        return err_at(e, ERR_PARSE, 0, "'%s' holds no entry", p->name);
    if (p->good == 0 && p->other_job == 0)
        return err_at(e, ERR_PARSE, p->first_bad_byte, "'%s' holds no entry: line %llu is %s",
                      p->name, (unsigned long long)p->first_bad_line, p->why);
    if (p->bad > 0)
        record_set_note(s, S("bad_line"), p->bad,
                        "lines that are no entries, in '%s' first line %llu (byte %llu): %s",
                        p->name, (unsigned long long)p->first_bad_line,
                        (unsigned long long)p->first_bad_byte, p->why);
    if (p->unknown > 0)
        record_set_note(s, S("unknown_entry"), p->unknown,
                        "entries of a kind that is not known, in '%s'", p->name);
    if (p->other_job > 0)
        record_set_note(s, S("other_job"), p->other_job, "entries of other jobs, left out, in '%s'",
                        p->name);
    return true;
}

static bool inflate_text(str in, struct buf *out, const char *name, struct err *e)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)in.p, .avail_in = (unsigned)in.n};
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
        return err_set(e, ERR_INTERNAL, "cannot start zlib");
    int got = Z_OK;
    while (got != Z_BUF_ERROR) {
        char *room = buf_reserve(out, 65536);
        if (room == NULL)
            break;
        z.next_out = (unsigned char *)room;
        z.avail_out = 65536;
        got = inflate(&z, Z_NO_FLUSH);
        out->n += 65536 - z.avail_out;
        if (got == Z_STREAM_END && z.avail_in > 0)
            got = inflateReset(&z); /* the next member */
        if (got != Z_OK)
            break;
    }
    const uint64_t at = z.total_in;
    inflateEnd(&z);
    if (out->overflow)
        return buf_ok(out, name, e);
    return got == Z_STREAM_END ||
           err_at(e, ERR_PARSE, at, "'%s': %s", name,
                  got == Z_BUF_ERROR ? "gzip data ends early" : "damaged gzip data");
}

static bool is_gzip(str text)
{
    return str_starts(text, S("\x1f\x8b"));
}

static bool parse_plain(struct record_set *s, str text, bool was_gzip, const char *name,
                        struct err *e)
{
    struct parse p = {.set = s, .name = name};
    str first, rest, t = str_trim(text);
    const str head = str_sub(text, 0, text.n < HEAD_BYTES ? text.n : HEAD_BYTES);
    bool ok = true;
    s->entries_only = true;
    if (s->n_processes == 0)
        (void)process_of(&p, 0, (str){0});
    if (t.n == 0)
        return err_at(e, ERR_PARSE, 0, "'%s' is empty", name);
    if (t.p[0] != '{' && t.p[0] != '[' && xspace_looks_like(text))
        return err_at(e, ERR_PARSE, 0,
                      "'%s' is an XSpace profile%s, not a run (%stacho report and tacho tool take "
                      "it), as seen",
                      name, was_gzip ? " compressed by gzip" : "",
                      was_gzip ? "gunzip it, then " : "");
    if (t.p[0] != '{' && t.p[0] != '[')
        return err_at(e, ERR_PARSE, (uint64_t)(t.p - text.p), "'%s'%s is no JSON, line 1", name,
                      was_gzip ? ", decompressed," : "");
    /* An array is one document; so is an object that does not end on its first line. */
    (void)str_cut(t, '\n', &first, &rest);
    if ((t.p[0] == '{' && rest.n > 0 && str_ends(str_trim(first), S("}"))) ||
        !parse_document(&p, t, e, &ok))
        parse_lines(&p, text);
    if (ok && p.good == 0 && str_find(head, S("\"traceEvents\"")) >= 0)
        return err_at(
            e, ERR_PARSE, 0,
            "'%s' is a JSON trace, not a run (tacho report and tacho tool take it), as seen", name);
    return ok && finish(&p, e);
}

bool entries_parse(struct record_set *s, str text, const char *name, struct err *e)
{
    if (!is_gzip(text))
        return parse_plain(s, text, false, name, e);
    struct buf plain;
    buf_init(&plain, LIMIT_ENTRIES_FILE_BYTES);
    bool ok = text.n <= UINT32_MAX ? inflate_text(text, &plain, name, e)
                                   : err_set(e, ERR_LIMIT, "'%s' is too large", name);
    ok = ok && parse_plain(s, buf_str(&plain), true, name, e);
    buf_release(&plain);
    return ok;
}

static bool same(const struct record *a, const struct record *b)
{
    return a->wall_ns == b->wall_ns && a->kind == b->kind && a->phase == b->phase &&
           a->step == b->step && a->process == b->process && a->duration_ns == b->duration_ns &&
           a->code == b->code && str_eq(a->text, b->text) &&
           /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): a NaN repeats itself too */
           memcmp(&a->value, &b->value, sizeof a->value) == 0;
}

/* Two writers of one log, or a retry, repeat entries: an exact repeat says nothing new. */
static void drop_repeats(struct record_set *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n_records; i++) {
        bool repeat = false;
        for (uint32_t k = kept; !repeat && k > 0 && kept - k < 64 &&
                                s->records[k - 1].wall_ns == s->records[i].wall_ns;
             k--)
            repeat = same(&s->records[k - 1], &s->records[i]);
        if (!repeat)
            s->records[kept++] = s->records[i];
    }
    if (kept < s->n_records)
        record_set_note(s, S("repeated_entry"), s->n_records - kept,
                        "exact repeats of entries, left out");
    s->n_records = kept;
}

static bool load_file(struct record_set *s, const char *path, struct err *e)
{
    str text;
    struct arena a;
    arena_init(&a, "entries file", LIMIT_ENTRIES_FILE_BYTES + LIMIT_JSON_LINE_BYTES);
    const bool ok =
        file_read(&a, path, LIMIT_ENTRIES_FILE_BYTES, &text, e) && entries_parse(s, text, path, e);
    arena_release(&a);
    return ok;
}

static bool load_folder(struct record_set *s, const char *path, struct err *e)
{
    static const str names[] = {STR_INIT("entries.jsonl"), STR_INIT("ranks.jsonl"),
                                STR_INIT("metrics.jsonl")};
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *file = path_join(&s->arena, path, names[i]);
        if (file == NULL)
            return arena_full(&s->arena, e);
        if (!file_exists(file))
            continue;
        n++;
        if (!load_file(s, file, e))
            return false;
    }
    return n > 0 || err_set(e, ERR_NOT_FOUND,
                            "no entries.jsonl, ranks.jsonl or metrics.jsonl in '%s'", path);
}

bool entries_load(struct record_set *s, const char *path, struct err *e)
{
    if (!(file_is_dir(path) ? load_folder(s, path, e) : load_file(s, path, e)))
        return false;
    record_set_sort(s);
    drop_repeats(s);
    for (uint32_t i = 0; i < s->n_records; i++) {
        struct record_process *p = &s->processes[s->records[i].process];
        const int64_t at = s->records[i].wall_ns;
        p->start_ns = p->n_records == 0 ? at : p->start_ns;
        p->last_ns = at;
        p->n_records++;
    }
    return true;
}
