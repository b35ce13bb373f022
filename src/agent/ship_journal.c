/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/ship_inside.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/process.h"
#include "base/sha256.h"
#include "journal/reader.h"
#include "journal/run_identity.h"

#define JOURNAL_MEDIA_TYPE "application/vnd.tachograph.journal"
#define RECORD_BYTES_MAX (sizeof(struct journal_record_header) + JOURNAL_PAYLOAD_MAX)
#define QUIET_PASSES                                                                               \
    120 /* then the file is closed until it grows: a data folder may hold thousands */

struct ship_journal {
    struct ship_journal *next;
    struct journal_reader reader;
    char *path, *run;  /* owned */
    struct buf header; /* its first record, as it stands */
    struct buf batch;  /* header and records that are not acknowledged yet; empty = none */
    struct buf side;   /* payload that goes before the batch; empty = none */
    char side_hex[SHA256_HEX];
    uint64_t n_in_batch;
    uint64_t have_to;       /* the server has every record below it … */
    json_t *missing;        /* … but those in these half-open ranges, NULL = none */
    int64_t slept_at_bytes; /* size of the file when it was closed; 0 = never open */
    uint32_t quiet_passes;
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

void ship_journals_free(struct ship_journal *j)
{
    while (j != NULL) {
        struct ship_journal *next = j->next;
        close_journal(j);
        free(j->path);
        free(j->run);
        free(j);
        j = next;
    }
}

static struct ship_journal *journal_at(struct ship *s, const char *path, str run)
{
    for (struct ship_journal *j = s->journals; j != NULL; j = j->next)
        if (strcmp(j->path, path) == 0)
            return j;
    struct ship_journal *j = map_alloc(1, sizeof *j);
    j->path = strdup(path);
    j->run = strndup(run.p, run.n);
    must(j->path != NULL && j->run != NULL);
    j->next = s->journals;
    s->journals = j;
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

static void count_writer(struct ship *s, struct ship_journal *j)
{
    if (j->writer.pid <= 0)
        return;
    if (process_look(&j->writer) == PROCESS_LIVES)
        s->n_writers++;
    else
        j->writer.pid = 0;
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
                                   .body = buf_str(&j->side)};
    if (!ship_ask(s, &q, NULL, e))
        return false;
    buf_clear(&j->side);
    return true;
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
    if (next > 0 && !j->greeted) {
        j->greeted = true;
        j->have_to = (uint64_t)next;
        j->missing = json_incref(json_object_get(said, "missing"));
    }
    json_decref(said);
    if (next <= 0)
        return err_set(e, ERR_UNREACHABLE, "'%s' does not answer as a tachograph server",
                       s->options.server);
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

/* Keeps the payload that lies in a file of its own, to go before the batch. One that is lost has none:
 * its record says so by itself. */
static void take_side(struct ship_journal *j, const struct journal_record *rec)
{
    const struct journal_record_header *h = (const void *)rec->raw;
    uint8_t digest[SHA256_BYTES];
    struct sha256 sha;
    if ((h->flags & JOURNAL_FLAG_SIDE) == 0 || (rec->flags & JOURNAL_FLAG_SIDE) != 0)
        return;
    sha256_init(&sha);
    sha256_add(&sha, rec->payload, rec->n);
    sha256_end(&sha, digest);
    sha256_hex(digest, j->side_hex);
    buf_add(&j->side, rec->payload, rec->n);
}

static bool add_record(struct ship_journal *j, const struct journal_record *rec, struct err *e)
{
    if (rec->type == JOURNAL_HEADER || server_has(j, rec->seq))
        return true;
    if (j->batch.n == 0)
        buf_add_str(&j->batch, buf_str(&j->header));
    buf_add(&j->batch, rec->raw, rec->n_raw);
    j->n_in_batch++;
    take_side(j, rec);
    return buf_ok(&j->batch, "a batch of records", e) && buf_ok(&j->side, "a side file", e);
}

static bool send_new(struct ship *s, struct ship_journal *j, struct err *e)
{
    if ((!j->greeted || j->batch.n > 0) && !send_batch(s, j, e))
        return false;
    for (;;) {
        struct journal_record rec;
        const enum journal_got got = journal_reader_next(&j->reader, &rec, e);
        if (got == JOURNAL_FAILED || (got == JOURNAL_GOT_RECORD && !add_record(j, &rec, e)))
            return false;
        const bool is_full = j->batch.n >= LIMIT_JOURNAL_BATCH_BYTES || j->side.n > 0;
        const bool is_due = is_full || (got == JOURNAL_AT_END && j->batch.n > 0);
        j->quiet_passes = is_due ? 0 : j->quiet_passes + (got == JOURNAL_AT_END);
        if (is_due && !send_batch(s, j, e))
            return false;
        if (got == JOURNAL_AT_END)
            return true;
    }
}

bool ship_journal(struct ship *s, const char *path, str run, struct err *e)
{
    struct ship_journal *j = journal_at(s, path, run);
    struct stat st;
    count_writer(s, j);
    if (j->passed_over || (j->foreign && s->options.here_only) || stat(path, &st) != 0 ||
        (!j->open && st.st_size == j->slept_at_bytes))
        return true; /* also a file that was made and has no header yet: its writer is at it */
    const bool was_open = j->open;
    bool ok = was_open || open_journal(j, e);
    if (ok && !was_open)
        know_writer(s, j);
    ok = ok && (!j->open || send_new(s, j, e));
    if (ok && j->quiet_passes >= QUIET_PASSES) {
        j->slept_at_bytes = st.st_size;
        close_journal(j);
    }
    if (!ok && e->code != ERR_UNAUTHORIZED && !ship_may_pass(e)) {
        j->passed_over = ok = true;
        ship_pass_over(s, path, e);
        close_journal(j);
        err_clear(e);
    }
    return ok;
}
