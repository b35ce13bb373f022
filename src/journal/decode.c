/* SPDX-License-Identifier: Apache-2.0 */
/* Journal records to plain records (model/record.h). */
#include <stdio.h>

#include "base/file.h"
#include "journal/presence.h"
#include "journal/reader.h"
#include "model/record.h"

#define CLOCK_SET_NS NS_PER_S /* an anchor that is off by more tells of a clock that was set */

static str rest_of(const struct journal_record *rec, size_t from)
{
    return rec->n <= from ? (str){0} : (str){(const char *)rec->payload + from, rec->n - from};
}

static struct record *add_record(struct record_set *s, uint32_t process,
                                 const struct journal_record *rec, enum record_kind kind, str text)
{
    struct record *out = record_set_add(s);
    if (out == NULL)
        return NULL;
    out->kind = kind;
    out->wall_ns = rec->wall_ns;
    out->process = process;
    out->seq = rec->seq;
    out->text = text.n == 0 ? (str){0} : arena_str(&s->arena, text);
    return out;
}

static bool is_known_phase(uint8_t number)
{
    switch (number) {
#define X(name, value, word, category, meaning) case value:
#include "model/phases.def"
#undef X
        return true;
    default:
        return false;
    }
}

static void decode_phase(struct record_set *s, uint32_t process, const struct journal_record *rec)
{
    struct journal_begin_end payload;
    memcpy(&payload, rec->payload, sizeof payload);
    if (!is_known_phase(payload.phase)) {
        record_set_note(s, S("unknown_phase"), 1,
                        "records of a phase that this version does not know");
        return;
    }
    struct record *out =
        add_record(s, process, rec, rec->type == JOURNAL_BEGIN ? RECORD_BEGIN : RECORD_END,
                   rest_of(rec, sizeof payload));
    if (out == NULL)
        return;
    out->phase = (enum record_phase)payload.phase;
    out->step = payload.step;
    out->thread =
        payload.thread[0] | (uint32_t)payload.thread[1] << 8 | (uint32_t)payload.thread[2] << 16;
}

static bool decode_metrics(struct record_set *s, uint32_t process, const struct journal_record *rec)
{
    int64_t step;
    uint16_t count;
    memcpy(&step, rec->payload, sizeof step);
    memcpy(&count, rec->payload + 8, sizeof count);
    size_t at = 10;
    for (unsigned i = 0; i < count; i++) {
        double value;
        uint16_t n;
        if (rec->n - at < 10)
            return false;
        memcpy(&value, rec->payload + at, sizeof value);
        memcpy(&n, rec->payload + at + 8, sizeof n);
        at += 10;
        if (rec->n - at < n)
            return false;
        struct record *out = add_record(
            s, process, rec, rec->type == JOURNAL_METRICS ? RECORD_METRIC : RECORD_SYSTEM,
            (str){(const char *)rec->payload + at, n});
        if (out == NULL)
            return true;
        out->step = step;
        out->value = value;
        at += n;
    }
    return true;
}

static void decode_end_of(struct record_set *s, uint32_t process, const struct journal_record *rec)
{
    struct record *out = add_record(
        s, process, rec, rec->type == JOURNAL_PROCESS_END ? RECORD_PROCESS_END : RECORD_RUNNER_END,
        rest_of(rec, 8));
    if (out == NULL)
        return;
    memcpy(&out->code, rec->payload, 4);
    memcpy(&out->signal, rec->payload + 4, 4);
    if (process < s->n_processes)
        s->processes[process].ended = true;
}

static void decode_checkpoint(struct record_set *s, uint32_t process,
                              const struct journal_record *rec)
{
    struct record *out = add_record(s, process, rec, RECORD_CHECKPOINT, (str){0});
    if (out == NULL)
        return;
    out->phase = rec->payload[0] == 2 ? PHASE_CHECKPOINT_RESTORE : PHASE_CHECKPOINT_SAVE;
    memcpy(&out->step, rec->payload + 8, 8);
    memcpy(&out->duration_ns, rec->payload + 16, 8);
}

static void decode_dropped(struct record_set *s, uint32_t process, const struct journal_record *rec)
{
    uint64_t n;
    struct record *out = add_record(s, process, rec, RECORD_DROPPED, (str){0});
    if (out == NULL)
        return;
    memcpy(&n, rec->payload, sizeof n);
    memcpy(&out->code, rec->payload + 8, 4);
    out->value = (double)n;
}

static void decode_output(struct record_set *s, uint32_t process, const struct journal_record *rec)
{
    struct record *out = add_record(s, process, rec, RECORD_OUTPUT, rest_of(rec, 1));
    if (out != NULL)
        out->code = rec->payload[0];
}

static const struct {
    enum record_kind kind; /* RECORD_NONE: handled by hand or not a record */
    uint16_t least_bytes;
} type_table[JOURNAL_TYPE_MAX + 1] = {
    [JOURNAL_ANCHOR] = {RECORD_NONE, 16},
    [JOURNAL_BEGIN] = {RECORD_BEGIN, 12},
    [JOURNAL_END] = {RECORD_END, 12},
    [JOURNAL_METRICS] = {RECORD_METRIC, 10},
    [JOURNAL_SYSTEM] = {RECORD_SYSTEM, 10},
    [JOURNAL_PROCESS_START] = {RECORD_PROCESS_START, 0},
    [JOURNAL_PROCESS_END] = {RECORD_PROCESS_END, 8},
    [JOURNAL_CONFIG] = {RECORD_CONFIG, 0},
    [JOURNAL_HOST] = {RECORD_HOST, 0},
    [JOURNAL_OUTPUT] = {RECORD_OUTPUT, 1},
    [JOURNAL_SESSION] = {RECORD_SESSION, 0},
    [JOURNAL_EVENT] = {RECORD_EVENT, 0},
    [JOURNAL_HEARTBEAT] = {RECORD_HEARTBEAT, 0},
    [JOURNAL_DROPPED] = {RECORD_DROPPED, 12},
    [JOURNAL_CHECKPOINT] = {RECORD_CHECKPOINT, 24},
    [JOURNAL_RUNNER_START] = {RECORD_RUNNER_START, 0},
    [JOURNAL_RUNNER_END] = {RECORD_RUNNER_END, 8},
};

static void decode_typed(struct record_set *s, uint32_t process, const struct journal_record *rec)
{
    switch (rec->type) {
    case JOURNAL_BEGIN:
    case JOURNAL_END:
        decode_phase(s, process, rec);
        return;
    case JOURNAL_METRICS:
    case JOURNAL_SYSTEM:
        if (!decode_metrics(s, process, rec))
            record_set_note(s, S("record_malformed"), 1, "records with a payload that ends early");
        return;
    case JOURNAL_PROCESS_END:
    case JOURNAL_RUNNER_END:
        decode_end_of(s, process, rec);
        return;
    case JOURNAL_CHECKPOINT:
        decode_checkpoint(s, process, rec);
        return;
    case JOURNAL_DROPPED:
        decode_dropped(s, process, rec);
        return;
    case JOURNAL_OUTPUT:
        decode_output(s, process, rec);
        return;
    default:
        (void)add_record(s, process, rec, type_table[rec->type].kind, rest_of(rec, 0));
    }
}

bool journal_decode_record(struct record_set *s, uint32_t process, const struct journal_record *rec,
                           struct err *e)
{
    if (process < s->n_processes) {
        struct record_process *p = &s->processes[process];
        p->n_records++;
        if (rec->wall_ns > p->last_ns)
            p->last_ns = rec->wall_ns;
    }
    if (rec->type == JOURNAL_HEADER || rec->type == JOURNAL_ANCHOR)
        return true;
    if ((int)rec->type <= 0 || rec->type > JOURNAL_TYPE_MAX)
        record_set_note(s, S("unknown_type"), 1,
                        "records of a type that this version does not know");
    else if ((rec->flags & JOURNAL_FLAG_SIDE) != 0)
        record_set_note(s, S("side_missing"), 1, "records whose side file is missing or damaged");
    else if (rec->n < type_table[rec->type].least_bytes)
        record_set_note(s, S("record_malformed"), 1, "records with a payload that ends early");
    else
        decode_typed(s, process, rec);
    return s->arena.overflow ? arena_full(&s->arena, e) : true;
}

uint32_t journal_decode_process(struct record_set *s, const struct journal_info *info)
{
    struct record_process *p = record_set_add_process(s);
    if (p == NULL)
        return UINT32_MAX;
    p->journal_id = arena_str(&s->arena, str_from(info->id_hex));
    p->host = arena_str(&s->arena, str_from(info->host));
    p->runner = info->role == JOURNAL_ROLE_RUNNER;
    p->rank = info->rank;
    p->world_size = p->runner ? 0 : info->world_size;
    p->pid = info->pid;
    p->pid_namespace = info->pid_namespace;
    p->boottime_ns = info->anchor.boottime_ns;
    memcpy(p->boot_id, info->boot_id, sizeof p->boot_id);
    p->attempt = info->restart_count < UINT32_MAX - 1 ? info->restart_count + 1 : 0;
    p->start_ns = p->last_ns = info->anchor.wall_ns;
    if (s->run.n == 0)
        s->run = arena_str(&s->arena, str_from(info->run));
    return s->n_processes - 1;
}

static void note_clock(struct record_set *s, const struct journal_reader *r,
                       const struct journal_record *rec)
{
    if (rec->type != JOURNAL_ANCHOR || rec->n < 16)
        return;
    const uint64_t now = (uint64_t)r->anchor.wall_ns - r->anchor.boottime_ns;
    const uint64_t first = (uint64_t)r->info.anchor.wall_ns - r->info.anchor.boottime_ns;
    const int64_t moved_ns = (int64_t)(now - first);
    if (moved_ns > CLOCK_SET_NS || moved_ns < -CLOCK_SET_NS)
        record_set_note(s, S("clock_set"), 1,
                        "anchors of a wall clock that was set while the journal was written");
}

/* Which bytes and how many records a journal lost. An incomplete record at its end may still be whole. */
static void note_damage(struct record_set *s, const struct journal_reader *r)
{
    const struct journal_damage *d = &r->damage;
    if (d->n_places > 0)
        record_set_note(s, S("journal_damaged"), d->n_places,
                        "places in '%s' are no record: %llu bytes, the first at byte %llu; %llu "
                        "records are lost",
                        r->path, (unsigned long long)d->lost_bytes,
                        (unsigned long long)d->first_offset, (unsigned long long)d->lost_records);
    else if (d->lost_records > 0)
        record_set_note(s, S("journal_gap"), d->lost_records,
                        "records are missing between others of '%s'", r->path);
    if (d->tail_bytes > 0)
        record_set_note(s, S("journal_cut"), 1,
                        "the last %llu bytes of '%s' are no whole record: it is being written, or "
                        "was cut",
                        (unsigned long long)d->tail_bytes, r->path);
}

static bool decode_open(struct record_set *s, struct journal_reader *r, uint32_t process,
                        struct err *e)
{
    struct journal_record rec;
    enum journal_got got;
    while ((got = journal_reader_next(r, &rec, e)) == JOURNAL_GOT_RECORD) {
        note_clock(s, r, &rec);
        rec.wall_ns = (int64_t)((uint64_t)r->info.anchor.wall_ns +
                                (rec.boottime_ns - r->info.anchor.boottime_ns));
        if (!journal_decode_record(s, process, &rec, e))
            return false;
    }
    if (got == JOURNAL_FAILED)
        return false;
    struct record_process *p = &s->processes[process];
    p->n_lost = r->damage.lost_records;
    p->lost_bytes = r->damage.lost_bytes;
    note_damage(s, r);
    return true;
}

bool journal_decode_file(struct record_set *s, const char *path, struct err *e)
{
    struct journal_reader r;
    if (!journal_reader_open(&r, path, e))
        return false;
    const uint32_t process = journal_decode_process(s, &r.info);
    if (process != UINT32_MAX)
        s->processes[process].presence = presence_of(&s->processes[process]);
    const bool ok =
        process == UINT32_MAX ? arena_full(&s->arena, e) : decode_open(s, &r, process, e);
    journal_reader_close(&r);
    if (ok)
        record_set_sort(s);
    return ok;
}

bool journal_decode_run(struct record_set *s, const char *run_dir, struct err *e)
{
    str *names = NULL;
    size_t n_names = 0;
    const char *dir = path_join(&s->arena, run_dir, S("journals"));
    if (dir == NULL)
        return arena_full(&s->arena, e);
    if (!dir_list(&s->arena, dir, &names, &n_names, e))
        return false;
    uint32_t n_journals = 0;
    for (size_t i = 0; i < n_names; i++) {
        if (!str_ends(names[i], S(".journal")))
            continue;
        const char *path = path_join(&s->arena, dir, names[i]);
        if (path == NULL)
            return arena_full(&s->arena, e);
        n_journals++;
        struct err failure = {0};
        if (journal_decode_file(s, path, &failure))
            continue;
        if (failure.code == ERR_LIMIT) {
            *e = failure;
            return false;
        }
        record_set_note(s, S("journal_unreadable"), 1, "%s", failure.msg);
    }
    if (n_journals == 0)
        return err_set(e, ERR_NOT_FOUND, "no journal in '%s'", dir);
    return true;
}
