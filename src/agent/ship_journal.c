/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ship_inside.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/process.h"
#include "base/sha256.h"
#include "journal/reader.h"
#include "journal/run_identity.h"

#define JOURNAL_MEDIA_TYPE "application/vnd.tachograph.journal"
#define RECORD_BYTES_MAX (sizeof(struct journal_record_header) + JOURNAL_PAYLOAD_MAX)
/* Then the file is closed until it grows: a data folder may hold thousands. */
#define QUIET_PASSES 120
#define COLD_NS (60 * (uint64_t)NS_PER_S) /* and at once when it was last written so long ago */
#define LOOK_EVERY 1024                   /* records between looks at the time */
#define GONE_PASSES 100                   /* a file that was not met for so long is no more */

struct ship_journal {
    struct journal_reader reader;
    char *path, *run;  /* owned */
    struct buf header; /* its first record, as it stands */
    struct buf batch;  /* header and records that are not acknowledged yet; empty = none */
    struct buf side;   /* payload that goes before the batch; empty = none */
    char side_hex[SHA256_HEX];
    uint64_t n_in_batch;
    uint64_t have_to;         /* the server has every record below it … */
    json_t *missing;          /* … but those in these half-open ranges, NULL = none */
    uint32_t asked_at;        /* n_restarts when the server was asked that */
    uint64_t sent_to, n_lost; /* of the file when it was closed: next number, those not in it */
    int64_t slept_at_bytes;   /* size of the file when it was closed; 0 = never open */
    uint32_t quiet_passes;
    uint64_t met_at_pass;
    struct ship_retry retry;
    struct process_mark writer; /* on this host; pid 0 = on another, or gone */
    bool open, greeted, passed_over, foreign;
};

static void close_journal(struct ship_journal *j)
{
    if (j->open)
        journal_reader_close(&j->reader);
    buf_release(&j->header);
    buf_release(&j->batch);
    buf_release(&j->side);
    json_decref(j->missing);
    j->missing = NULL;
    j->open = j->greeted = false;
    j->n_in_batch = j->have_to = j->quiet_passes = 0;
}

void ship_journals_free(struct ship *s)
{
    for (size_t i = 0; ship_journal_map_next(&s->journals, &i);) {
        struct ship_journal *j = s->journals.values[i - 1];
        close_journal(j);
        free(j->path);
        free(j->run);
        free(j);
    }
    ship_journal_map_release(&s->journals);
}

static struct ship_journal *journal_at(struct ship *s, const char *path, str run)
{
    struct ship_journal **found = ship_journal_map_get(&s->journals, str_from(path));
    if (found != NULL)
        return *found;
    struct ship_journal *j = map_alloc(1, sizeof *j);
    j->path = strdup(path);
    j->run = strndup(run.p, run.n);
    must(j->path != NULL && j->run != NULL);
    *ship_journal_map_put(&s->journals, str_from(j->path)) = j;
    return j;
}

/* The header record is the first of the file; the reader has checked it. */
static bool read_header(struct ship_journal *j, struct err *e)
{
    uint8_t bytes[RECORD_BYTES_MAX];
    struct journal_record rec;
    const ssize_t n = pread(j->reader.fd, bytes, sizeof bytes, 0);
    const int64_t used = n < 0 ? -1 : journal_parse(bytes, (size_t)n, &rec);
    if (used <= 0)
        return err_at(e, ERR_PARSE, 0, "'%s' does not begin with a journal header", j->path);
    buf_add(&j->header, bytes, (size_t)used);
    return buf_ok(&j->header, "a journal's header", e);
}

/* A journal of this host names its writer. */
static void know_writer(struct ship *s, struct ship_journal *j)
{
    const struct journal_info *info = &j->reader.info;
    struct run_identity me;
    run_identity_find(&me);
    j->foreign = strcmp(me.host, info->host) != 0;
    j->writer = (struct process_mark){.pid = j->foreign ? 0 : (pid_t)info->pid,
                                      .boottime_ns = info->anchor.boottime_ns};
    memcpy(j->writer.boot_id, info->boot_id, sizeof j->writer.boot_id);
    if (j->foreign && s->options.here_only)
        close_journal(j);
}

uint32_t ship_count_writers(struct ship *s)
{
    uint32_t n = 0;
    for (size_t i = 0; ship_journal_map_next(&s->journals, &i);) {
        struct ship_journal *j = s->journals.values[i - 1];
        if (j->open && j->met_at_pass + GONE_PASSES < s->n_passes)
            close_journal(j);
        if (j->writer.pid <= 0)
            continue;
        if (process_look(&j->writer) == PROCESS_LIVES)
            n++;
        else
            j->writer.pid = 0;
    }
    return n;
}

static bool open_journal(struct ship_journal *j, struct err *e)
{
    buf_init(&j->header, RECORD_BYTES_MAX);
    buf_init(&j->batch, LIMIT_JOURNAL_BATCH_BYTES + 2 * RECORD_BYTES_MAX);
    buf_init(&j->side, LIMIT_HTTP_BODY_BYTES);
    j->open = journal_reader_open(&j->reader, j->path, e);
    if (j->open && read_header(j, e))
        return true;
    close_journal(j);
    return false;
}

/* -- what goes out -- */

static bool send_side(struct ship *s, struct ship_journal *j, struct err *e)
{
    char path[512];
    if (j->side.n == 0)
        return true;
    snprintf(path, sizeof path, "runs/%s/side/%s", j->run, j->side_hex);
    const struct ship_request q = {.method = "PUT",
                                   .path = path,
                                   .type = "application/octet-stream",
                                   .body = buf_str(&j->side),
                                   .is_whole = true};
    if (!ship_ask(s, &q, NULL, e)) {
        if (e->code != ERR_LIMIT)
            return false;
        ship_pass_over(s, path, e); /* the record that names it says what is lost */
        err_clear(e);
    }
    buf_clear(&j->side);
    return true;
}

/* A server that was started anew may have been put back to a backup: all are to ask again. */
static void note_server(struct ship *s, const json_t *said)
{
    const char *started = json_string_value(json_object_get(said, "server_started"));
    if (started == NULL || strcmp(started, s->server_started) == 0)
        return;
    s->n_restarts += s->server_started[0] != '\0';
    snprintf(s->server_started, sizeof s->server_started, "%s", started);
}

/* Sends header and batch, the header alone to ask; takes over what the server says it has. */
static bool send_batch(struct ship *s, struct ship_journal *j, struct err *e)
{
    json_t *said = NULL;
    const struct ship_request q = {.method = "POST",
                                   .path = "journal",
                                   .type = JOURNAL_MEDIA_TYPE,
                                   .body = buf_str(j->batch.n > 0 ? &j->batch : &j->header)};
    if (fdatasync(j->reader.fd) != 0 && errno != EINVAL && errno != EROFS)
        return err_sys(e, "cannot sync '%s'", j->path);
    if (!send_side(s, j, e) || !ship_ask(s, &q, &said, e))
        return false;
    const json_int_t next = json_integer_value(json_object_get(said, "next_seq"));
    note_server(s, said);
    if (next > 0 && !j->greeted) {
        j->greeted = true;
        j->asked_at = s->n_restarts;
        j->have_to = (uint64_t)next;
        j->missing = json_incref(json_object_get(said, "missing"));
    }
    json_decref(said);
    if (next <= 0) {
        s->n_answers--; /* that was none */
        return err_set(e, ERR_UNREACHABLE,
                       "'%s' does not answer as a tachograph server: no next_seq",
                       s->options.server);
    }
    s->n_records += j->n_in_batch;
    j->n_in_batch = 0;
    buf_clear(&j->batch);
    return true;
}

static bool server_has(const struct ship_journal *j, uint64_t seq)
{
    size_t i;
    json_t *range;
    if (seq >= j->have_to)
        return false;
    json_array_foreach(j->missing, i, range)
    {
        if (seq >= (uint64_t)json_integer_value(json_array_get(range, 0)) &&
            seq < (uint64_t)json_integer_value(json_array_get(range, 1)))
            return false;
    }
    return true;
}

/* Whether the server still has all that it took of a file that did not grow since. */
static bool server_has_all(const struct ship_journal *j)
{
    size_t i;
    json_t *range;
    uint64_t n_missing = 0;
    json_array_foreach(j->missing, i, range)
    {
        n_missing += (uint64_t)(json_integer_value(json_array_get(range, 1)) -
                                json_integer_value(json_array_get(range, 0)));
    }
    return j->have_to >= j->sent_to && n_missing <= j->n_lost;
}

/* Keeps the payload that lies in a file of its own, to go before the batch. One that is lost has none:
 * its record says so by itself. */
static void take_side(struct ship *s, struct ship_journal *j, const struct journal_record *rec)
{
    const struct journal_record_header *h = (const void *)rec->raw;
    uint8_t digest[SHA256_BYTES];
    struct sha256 sha;
    if ((h->flags & JOURNAL_FLAG_SIDE) == 0 || (rec->flags & JOURNAL_FLAG_SIDE) != 0)
        return;
    if (rec->n > LIMIT_HTTP_BODY_BYTES) {
        struct err why;
        err_set(&why, ERR_LIMIT, "a side file has %zu bytes, a server takes %lld", rec->n,
                (long long)LIMIT_HTTP_BODY_BYTES);
        ship_pass_over(s, j->path, &why);
        return;
    }
    sha256_init(&sha);
    sha256_add(&sha, rec->payload, rec->n);
    sha256_end(&sha, digest);
    sha256_hex(digest, j->side_hex);
    buf_add(&j->side, rec->payload, rec->n);
}

static bool add_record(struct ship *s, struct ship_journal *j, const struct journal_record *rec,
                       struct err *e)
{
    if (rec->type == JOURNAL_HEADER || server_has(j, rec->seq))
        return true;
    if (j->batch.n == 0)
        buf_add_str(&j->batch, buf_str(&j->header));
    buf_add(&j->batch, rec->raw, rec->n_raw);
    j->n_in_batch++;
    take_side(s, j, rec);
    return buf_ok(&j->batch, "a batch of records", e) && buf_ok(&j->side, "a side file", e);
}

static bool send_new(struct ship *s, struct ship_journal *j, bool is_as_it_was, struct err *e)
{
    if ((!j->greeted || j->batch.n > 0) && !send_batch(s, j, e))
        return false;
    if (is_as_it_was && server_has_all(j))
        return true;
    const size_t room =
        s->body_bytes_max > RECORD_BYTES_MAX ? s->body_bytes_max - RECORD_BYTES_MAX : 0;
    const size_t full = room < LIMIT_JOURNAL_BATCH_BYTES ? room : LIMIT_JOURNAL_BATCH_BYTES;
    for (uint32_t n = 1;; n++) {
        struct journal_record rec;
        if (n % LOOK_EVERY == 0 && !ship_may_go_on(s, e))
            return false;
        const enum journal_got got = journal_reader_next(&j->reader, &rec, e);
        if (got == JOURNAL_FAILED || (got == JOURNAL_GOT_RECORD && !add_record(s, j, &rec, e)))
            return false;
        const bool is_full = j->batch.n >= full || j->side.n > 0;
        const bool is_due = is_full || (got == JOURNAL_AT_END && j->batch.n > 0);
        j->quiet_passes = is_due ? 0 : j->quiet_passes + (got == JOURNAL_AT_END);
        if (is_due && !send_batch(s, j, e))
            return false;
        if (got == JOURNAL_AT_END)
            return true;
    }
}

/* Whether a failure to read a file here comes again each time; 0 = it was the server's. */
static bool is_lasting(int sys_errno)
{
    static const int passing[] = {0, EIO, EAGAIN, EMFILE, ENFILE, ENOMEM, ESTALE, ETIMEDOUT};
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (sys_errno == passing[i])
            return false;
    return true;
}

/* After a failure: true when the others are to go on. */
static bool give_up_now(struct ship *s, struct ship_journal *j, bool is_cold, struct err *e)
{
    if (e->code == ERR_UNAUTHORIZED)
        return false;
    const bool was_deleted = !j->open && e->sys_errno == ENOENT;
    const bool again = ship_may_pass(e) && !is_lasting(e->sys_errno);
    if (is_cold || !again || j->batch.n > s->body_bytes_max)
        close_journal(j);
    if (again)
        return ship_try_later(s, &j->retry, e);
    if (!was_deleted) {
        j->passed_over = true;
        ship_pass_over(s, j->path, e);
    }
    err_clear(e);
    return true;
}

bool ship_journal(struct ship *s, const char *path, str run, struct err *e)
{
    struct ship_journal *j = journal_at(s, path, run);
    struct stat st;
    j->met_at_pass = s->n_passes;
    s->n_met++;
    if (j->passed_over || (j->foreign && s->options.here_only))
        return true;
    if (stat(path, &st) != 0) {
        close_journal(j);
        return true;
    }
    if (j->open && j->greeted && j->asked_at != s->n_restarts)
        close_journal(j);                            /* begins anew */
    s->busy = s->busy || j->open || st.st_size == 0; /* 0: its writer is at it */
    const bool is_as_it_was = !j->open && st.st_size == j->slept_at_bytes;
    if ((is_as_it_was && (st.st_size == 0 || j->asked_at == s->n_restarts)) ||
        ship_has_to_wait(s, &j->retry))
        return true;
    const int64_t age_ns =
        clock_wall_ns() - st.st_mtim.tv_sec * (int64_t)NS_PER_S - st.st_mtim.tv_nsec;
    const bool was_open = j->open, is_cold = age_ns > (int64_t)COLD_NS;
    bool ok = was_open || open_journal(j, e);
    if (ok && !was_open)
        know_writer(s, j);
    if (!ok || (j->open && !send_new(s, j, is_as_it_was, e)))
        return give_up_now(s, j, is_cold, e);
    j->retry = (struct ship_retry){0};
    if (is_cold || j->quiet_passes >= QUIET_PASSES) {
        if (!is_as_it_was || j->reader.next_seq > j->sent_to) {
            j->sent_to = j->reader.next_seq;
            j->n_lost = j->reader.damage.lost_records;
        }
        j->slept_at_bytes = st.st_size;
        close_journal(j);
    }
    s->busy = s->busy || j->open;
    return true;
}
