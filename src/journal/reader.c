/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/sha256.h"

#define WINDOW_BYTES (256u * 1024u)
#define FIRST_SYNC_BYTE 0xa7
#define SIDE_REFERENCE_BYTES 40

_Static_assert(WINDOW_BYTES >= 2 * (sizeof(struct journal_record_header) + JOURNAL_PAYLOAD_MAX),
               "the window holds any record");

int64_t journal_parse(const uint8_t *p, size_t n, struct journal_record *rec)
{
    const uint32_t sync = JOURNAL_SYNC;
    if (memcmp(p, &sync, n < sizeof sync ? n : sizeof sync) != 0)
        return -1;
    struct journal_record_header h;
    if (n < sizeof h)
        return 0;
    memcpy(&h, p, sizeof h);
    if (h.length > JOURNAL_PAYLOAD_MAX)
        return -1;
    if (n - sizeof h < h.length)
        return 0;
    uint32_t crc = crc32c(0, p + 4, 8);
    crc = crc32c(crc, p + 16, 16);
    crc = crc32c(crc, p + sizeof h, h.length);
    if (crc != h.crc)
        return -1;
    *rec = (struct journal_record){
        .type = (enum journal_type)h.type,
        .flags = h.flags,
        .boottime_ns = h.boottime_ns,
        .seq = h.seq,
        .payload = p + sizeof h,
        .n = h.length,
        .raw = p,
        .n_raw = sizeof h + h.length,
    };
    return (int64_t)rec->n_raw;
}

/* A text with a 16-bit length before it, clipped into out. False when the payload ends before it. */
static bool take_text(const struct journal_record *rec, size_t *at, char *out, size_t out_size)
{
    uint16_t n;
    if (rec->n - *at < sizeof n)
        return false;
    memcpy(&n, rec->payload + *at, sizeof n);
    *at += sizeof n;
    if (rec->n - *at < n)
        return false;
    const str text = str_clip_utf8((str){(const char *)rec->payload + *at, n}, out_size - 1);
    if (text.n > 0)
        memcpy(out, text.p, text.n);
    out[text.n] = '\0';
    *at += n;
    return true;
}

bool journal_parse_header(const struct journal_record *rec, struct journal_info *info,
                          struct err *e)
{
    struct journal_header_fixed h;
    memset(info, 0, sizeof *info);
    if (rec->type != JOURNAL_HEADER)
        return err_at(e, ERR_PARSE, rec->offset,
                      "journal begins with a record of type %d, not a header", (int)rec->type);
    if (rec->n < sizeof h)
        return err_at(e, ERR_PARSE, rec->offset, "journal header of %zu bytes, expected %zu",
                      rec->n, sizeof h);
    memcpy(&h, rec->payload, sizeof h);
    if (h.version != JOURNAL_VERSION)
        return err_set(e, ERR_TOO_NEW, "journal of version %u; this program reads version %u",
                       h.version, JOURNAL_VERSION);
    memcpy(info->id, h.journal_id, sizeof info->id);
    for (size_t i = 0; i < sizeof info->id; i++)
        snprintf(info->id_hex + 2 * i, 3, "%02x", info->id[i]);
    memcpy(info->boot_id, h.boot_id, sizeof info->boot_id);
    info->role = h.role == JOURNAL_ROLE_RUNNER ? JOURNAL_ROLE_RUNNER : JOURNAL_ROLE_WORKLOAD;
    info->anchor = (struct clock_anchor){h.boottime_ns, h.monotonic_ns, h.wall_ns};
    info->rank = h.rank;
    info->world_size = h.world_size;
    info->pid = h.pid;
    info->restart_count = h.restart_count;
    size_t at = sizeof h;
    if (!take_text(rec, &at, info->run, sizeof info->run) ||
        !take_text(rec, &at, info->host, sizeof info->host) ||
        !take_text(rec, &at, info->writer, sizeof info->writer))
        return err_at(e, ERR_PARSE, rec->offset, "journal header ends inside a text");
    if (rec->n - at >= sizeof info->pid_namespace)
        memcpy(&info->pid_namespace, rec->payload + at, sizeof info->pid_namespace);
    return true;
}

/* Reads on behind the window's bytes. 1 = some came, 0 = the end so far, -1 = failed. */
static int refill(struct journal_reader *r, struct err *e)
{
    if (r->at > 0) {
        memmove(r->window, r->window + r->at, r->have - r->at);
        r->window_offset += r->at;
        r->have -= r->at;
        r->at = 0;
    }
    for (;;) {
        const ssize_t n = pread(r->fd, r->window + r->have, r->window_bytes - r->have,
                                (off_t)(r->window_offset + r->have));
        if (n == -1 && errno == EINTR)
            continue;
        if (n == -1) {
            err_sys(e, "cannot read '%s'", r->path);
            return -1;
        }
        r->have += (size_t)n;
        return n > 0;
    }
}

/* True when a whole record begins somewhere behind `at`: then what stands at `at` is no record that
 * is still being written. */
static bool is_record_behind(const struct journal_reader *r)
{
    struct journal_record rec;
    size_t at = r->at + 1;
    while (at < r->have) {
        const uint8_t *hit = memchr(r->window + at, FIRST_SYNC_BYTE, r->have - at);
        if (hit == NULL)
            return false;
        at = (size_t)(hit - r->window);
        if (journal_parse(hit, r->have - at, &rec) > 0)
            return true;
        at++;
    }
    return false;
}

static void skip_damage(struct journal_reader *r)
{
    if (!r->in_damage) {
        if (r->damage.n_places++ == 0)
            r->damage.first_offset = r->window_offset + r->at;
        r->in_damage = true;
    }
    const size_t left = r->have - r->at;
    const uint8_t *hit = left > 1 ? memchr(r->window + r->at + 1, FIRST_SYNC_BYTE, left - 1) : NULL;
    const size_t n = hit == NULL ? left : (size_t)(hit - r->window) - r->at;
    r->damage.lost_bytes += n;
    r->at += n;
}

static void add_gap(struct journal_reader *r, uint64_t from, uint64_t to)
{
    if (r->n_gaps == JOURNAL_GAPS_MAX) { /* the oldest will not be filled any more */
        memmove(r->gaps, r->gaps + 1, (JOURNAL_GAPS_MAX - 1) * sizeof r->gaps[0]);
        r->n_gaps--;
    }
    r->gaps[r->n_gaps++] = (struct journal_gap){from, to};
}

/* Takes one number out of the gap that holds it. */
static void fill_gap(struct journal_reader *r, uint64_t seq)
{
    for (uint32_t i = 0; i < r->n_gaps; i++) {
        struct journal_gap *g = &r->gaps[i];
        if (seq < g->from || seq >= g->to)
            continue;
        r->damage.lost_records--;
        const uint64_t end = g->to;
        g->to = seq;
        if (g->from == g->to) {
            memmove(g, g + 1, (r->n_gaps - i - 1) * sizeof *g);
            r->n_gaps--;
        }
        if (seq + 1 < end)
            add_gap(r, seq + 1, end);
        return;
    }
}

static void note_seq(struct journal_reader *r, uint64_t seq)
{
    if (seq < r->next_seq) {
        fill_gap(r, seq);
        return;
    }
    if (seq > r->next_seq) {
        r->damage.lost_records += seq - r->next_seq;
        add_gap(r, r->next_seq, seq);
    }
    r->next_seq = seq == UINT64_MAX ? seq : seq + 1;
}

static void note_anchor(struct journal_reader *r, const struct journal_record *rec)
{
    if (rec->type != JOURNAL_ANCHOR || rec->n < 16)
        return;
    r->anchor.boottime_ns = rec->boottime_ns;
    memcpy(&r->anchor.wall_ns, rec->payload, 8);
    memcpy(&r->anchor.monotonic_ns, rec->payload + 8, 8);
}

static int64_t wall_of(const struct clock_anchor *a, uint64_t boottime_ns)
{
    return (int64_t)((uint64_t)a->wall_ns + (boottime_ns - a->boottime_ns));
}

static bool read_side(struct journal_reader *r, const char *path, uint64_t size)
{
    struct err ignored = {0};
    const int fd = file_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &ignored);
    if (fd == -1)
        return false;
    uint64_t real_size = 0;
    bool ok = file_size(fd, &real_size, &ignored) && real_size == size;
    if (ok && size > r->side_bytes) {
        uint8_t *larger = realloc(r->side, size);
        must(larger != NULL);
        r->side = larger;
        r->side_bytes = size;
    }
    ok = ok && file_pread_all(fd, r->side, size, 0, &ignored);
    close(fd);
    return ok;
}

/* Puts the side file's bytes in the payload's place. */
static void load_side(struct journal_reader *r, struct journal_record *rec)
{
    if ((rec->flags & JOURNAL_FLAG_SIDE) == 0)
        return;
    uint64_t size = 0;
    char hex[SHA256_HEX], path[4096];
    uint8_t digest[SHA256_BYTES];
    const uint8_t *reference = rec->payload;
    const bool is_reference = rec->n == SIDE_REFERENCE_BYTES;
    rec->payload = NULL;
    rec->n = 0;
    if (!is_reference)
        return;
    memcpy(&size, reference, sizeof size);
    sha256_hex(reference + sizeof size, hex);
    const str dir = path_dir(str_from(r->path));
    const int n = snprintf(path, sizeof path, "%.*s/side/%s", STR_ARG(dir), hex);
    if (n < 0 || (size_t)n >= sizeof path || size == 0 || size > LIMIT_JOURNAL_SIDE_BYTES ||
        !read_side(r, path, size))
        return;
    struct sha256 sha;
    sha256_init(&sha);
    sha256_add(&sha, r->side, size);
    sha256_end(&sha, digest);
    if (memcmp(digest, reference + sizeof size, sizeof digest) != 0)
        return;
    rec->payload = r->side;
    rec->n = size;
    rec->flags &= (uint16_t)~JOURNAL_FLAG_SIDE;
}

static void take_record(struct journal_reader *r, struct journal_record *rec)
{
    rec->offset = r->window_offset + r->at;
    r->at += rec->n_raw;
    r->in_damage = false;
    r->damage.tail_bytes = 0;
    note_seq(r, rec->seq);
    note_anchor(r, rec);
    rec->wall_ns = wall_of(&r->anchor, rec->boottime_ns);
    load_side(r, rec);
}

enum journal_got journal_reader_next(struct journal_reader *r, struct journal_record *rec,
                                     struct err *e)
{
    for (;;) {
        const size_t left = r->have - r->at;
        const int64_t n = left == 0 ? 0 : journal_parse(r->window + r->at, left, rec);
        if (n > 0) {
            take_record(r, rec);
            return JOURNAL_GOT_RECORD;
        }
        if (n < 0) {
            skip_damage(r);
            continue;
        }
        const int more = refill(r, e);
        if (more < 0)
            return JOURNAL_FAILED;
        if (more > 0)
            continue;
        if (is_record_behind(r)) {
            skip_damage(r);
            continue;
        }
        r->damage.tail_bytes = r->have - r->at;
        return JOURNAL_AT_END;
    }
}

bool journal_reader_open(struct journal_reader *r, const char *path, struct err *e)
{
    memset(r, 0, sizeof *r);
    r->fd = file_open(path, O_RDONLY | O_NONBLOCK, 0, e);
    if (r->fd == -1)
        return false;
    r->path = strdup(path);
    r->window = malloc(WINDOW_BYTES);
    must(r->path != NULL && r->window != NULL);
    r->window_bytes = WINDOW_BYTES;
    struct journal_record rec = {0};
    int more = 1;
    int64_t n = 0;
    while (more > 0 && n == 0) {
        more = refill(r, e);
        n = r->have == 0 ? 0 : journal_parse(r->window, r->have, &rec);
    }
    bool ok = more >= 0;
    if (ok && n <= 0)
        ok = err_at(e, ERR_PARSE, 0,
                    n == 0 ? "journal ends inside its header" : "not a journal: no header record");
    ok = ok && journal_parse_header(&rec, &r->info, e);
    if (!ok) {
        if (more >= 0)
            err_wrap(e, "cannot read '%s'", path);
        journal_reader_close(r);
        return false;
    }
    r->anchor = r->info.anchor;
    return true;
}

void journal_reader_close(struct journal_reader *r)
{
    if (r->window != NULL)
        close(r->fd);
    free(r->path);
    free(r->window);
    free(r->side);
    memset(r, 0, sizeof *r);
    r->fd = -1;
}
