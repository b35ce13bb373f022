/* SPDX-License-Identifier: Apache-2.0 */
#include "store/s3_fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/pool.h"

#define AT_ONCE 6     /* ranges */
#define FILES_OPEN 32 /* of a batch */
#define MAP_MAGIC "TACHOS3\1"
#define BLOCK_BYTES 65536

struct map_head {
    char magic[8];
    uint64_t size_bytes, range_bytes;
    char etag[S3_ETAG_MAX];
};

struct map_range {
    uint32_t is_done, crc;
};

struct part {
    const struct s3_fetch_file *file;
    char *path, *map_path; /* in the fetch's arena */
    int fd, map_fd;
    uint64_t n_ranges;
};

struct todo {
    struct part *part;
    uint64_t range;
};

struct fetch {
    const struct s3_access *s;
    const struct s3_fetch_options *o;
    struct arena arena;
    uint64_t range_bytes, of_bytes;
    _Atomic bool gave_up;
    pthread_mutex_t lock; /* of what follows */
    uint64_t n_bytes;
    struct err e; /* the first one */
};

static uint64_t range_from(const struct fetch *f, uint64_t range)
{
    return range * f->range_bytes;
}

static uint64_t range_length(const struct fetch *f, const struct part *p, uint64_t range)
{
    const uint64_t left = p->file->object.size_bytes - range_from(f, range);
    return left < f->range_bytes ? left : f->range_bytes;
}

static void count(struct fetch *f, uint64_t more, uint64_t less)
{
    pthread_mutex_lock(&f->lock);
    f->n_bytes += more - less;
    if (f->o->show != NULL)
        f->o->show(f->o->ctx, f->n_bytes, f->of_bytes);
    pthread_mutex_unlock(&f->lock);
}

/* ---- which ranges are there ---- */

static void head_of(const struct fetch *f, const struct part *p, struct map_head *out)
{
    *out = (struct map_head){.magic = MAP_MAGIC,
                             .size_bytes = p->file->object.size_bytes,
                             .range_bytes = f->range_bytes};
    snprintf(out->etag, sizeof out->etag, "%s", p->file->object.etag);
}

/* The part is this object's; else the map begins anew. */
static bool map_take(const struct fetch *f, struct part *p, bool *is_same, struct err *e)
{
    struct map_head want, is;
    struct err ignored = {0};
    head_of(f, p, &want);
    *is_same = file_pread_all(p->map_fd, &is, sizeof is, 0, &ignored) &&
               memcmp(&is, &want, sizeof is) == 0;
    if (*is_same)
        return true;
    if (ftruncate(p->map_fd, 0) != 0)
        return err_sys(e, "cannot write '%s'", p->map_path);
    return file_pwrite_all(p->map_fd, &want, sizeof want, 0, e);
}

static uint64_t map_place(uint64_t range)
{
    return sizeof(struct map_head) + range * sizeof(struct map_range);
}

/* The bytes of a range that the map calls done are there, and are those that came. */
static bool is_there(const struct fetch *f, const struct part *p, uint64_t range)
{
    char block[BLOCK_BYTES];
    struct map_range r;
    struct err ignored = {0};
    uint32_t crc = 0;
    if (!file_pread_all(p->map_fd, &r, sizeof r, map_place(range), &ignored) || r.is_done != 1)
        return false;
    const uint64_t n = range_length(f, p, range);
    for (uint64_t at = 0; at < n;) {
        const size_t step = n - at < sizeof block ? (size_t)(n - at) : sizeof block;
        if (!file_pread_all(p->fd, block, step, range_from(f, range) + at, &ignored))
            return false;
        crc = crc32c(crc, block, step);
        at += step;
    }
    return crc == r.crc;
}

/* ---- one range ---- */

struct receipt {
    struct fetch *f;
    const struct part *part;
    uint64_t range, n_got;
    uint32_t crc;
};

static bool receive(void *ctx, uint64_t offset, const char *p, size_t n, struct err *e)
{
    struct receipt *r = ctx;
    if (offset == 0) { /* it is tried again */
        count(r->f, 0, r->n_got);
        r->n_got = r->crc = 0;
    }
    if (!file_pwrite_all(r->part->fd, p, n, range_from(r->f, r->range) + offset, e))
        return err_wrap(e, "cannot write '%s'", r->part->path);
    r->crc = crc32c(r->crc, p, n);
    r->n_got += n;
    count(r->f, n, 0);
    return true;
}

static bool goes_on(void *ctx)
{
    const struct receipt *r = ctx;
    return !atomic_load(&r->f->gave_up);
}

static bool range_fetch(struct fetch *f, const struct todo *t, struct err *e)
{
    struct receipt r = {.f = f, .part = t->part, .range = t->range};
    const struct s3_object *object = &t->part->file->object;
    const struct s3_range range = {.from = range_from(f, t->range),
                                   .n_bytes = range_length(f, t->part, t->range),
                                   .etag = object->etag,
                                   .of_bytes = object->size_bytes};
    if (!s3_get(f->s, &t->part->file->name, &range, receive, &r, goes_on, e))
        return false;
    const struct map_range done = {.is_done = 1, .crc = r.crc};
    return file_pwrite_all(t->part->map_fd, &done, sizeof done, map_place(t->range), e);
}

struct batch {
    struct fetch *f;
    struct todo *todo;
};

static void batch_range(void *arg, size_t i)
{
    const struct batch *b = arg;
    struct fetch *f = b->f;
    struct err e = {0};
    if (atomic_load(&f->gave_up) || range_fetch(f, &b->todo[i], &e))
        return;
    pthread_mutex_lock(&f->lock);
    if (!atomic_exchange(&f->gave_up, true))
        f->e = e;
    pthread_mutex_unlock(&f->lock);
}

/* ---- files ---- */

/* All of its room now: a full disk is said before hours of fetching, and not filled up for it. */
static bool make_room(const struct part *p, struct err *e)
{
    const off_t n = (off_t)p->file->object.size_bytes;
    if (ftruncate(p->fd, n) == 0 &&
        (n == 0 || fallocate(p->fd, 0, 0, n) == 0 || errno == EOPNOTSUPP || errno == ENOSYS))
        return true;
    err_sys(e, "cannot make room for %lld bytes at '%s'", (long long)n, p->path);
    unlink(p->path);
    unlink(p->map_path);
    return false;
}

static bool part_open(struct fetch *f, struct part *p, const struct s3_fetch_file *file,
                      bool *is_same, struct err *e)
{
    const int flags = O_RDWR | O_CREAT | O_NOFOLLOW;
    *p = (struct part){.file = file, .fd = -1, .map_fd = -1};
    p->n_ranges = (file->object.size_bytes + f->range_bytes - 1) / f->range_bytes;
    p->path = arena_cstr(&f->arena, arena_printf(&f->arena, "%s.part", file->path));
    p->map_path = arena_cstr(&f->arena, arena_printf(&f->arena, "%s.part-map", file->path));
    if (p->path == NULL || p->map_path == NULL)
        return arena_full(&f->arena, e);
    return (p->fd = file_open(p->path, flags, 0600, e)) >= 0 &&
           (p->map_fd = file_open(p->map_path, flags, 0600, e)) >= 0 &&
           map_take(f, p, is_same, e) && make_room(p, e);
}

static bool part_keep(const struct part *p, struct err *e)
{
    const int64_t at = p->file->object.modified_ns;
    const struct timespec when = {.tv_sec = at / NS_PER_S, .tv_nsec = at % NS_PER_S};
    const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, when};
    if (at > 0 && futimens(p->fd, times) != 0)
        return err_sys(e, "cannot set the time of '%s'", p->path);
    if (fsync(p->fd) != 0 || rename(p->path, p->file->path) != 0)
        return err_sys(e, "cannot make '%s'", p->file->path);
    unlink(p->map_path);
    return true;
}

static void part_close(const struct part *p)
{
    if (p->fd >= 0)
        close(p->fd);
    if (p->map_fd >= 0)
        close(p->map_fd);
}

static bool todo_of(struct fetch *f, struct part *p, bool is_same, struct todo **todo, uint32_t *n,
                    uint32_t *capacity, struct err *e)
{
    for (uint64_t i = 0; i < p->n_ranges; i++) {
        if (is_same && is_there(f, p, i)) {
            count(f, range_length(f, p, i), 0);
            continue;
        }
        if (!ARENA_PUSH(&f->arena, *todo, *n, *capacity))
            return arena_full(&f->arena, e);
        (*todo)[*n - 1] = (struct todo){p, i};
    }
    return true;
}

/* An object that was replaced never comes back: its parts are of no use. */
static void forget_parts(const struct part *parts, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        unlink(parts[i].path);
        unlink(parts[i].map_path);
    }
}

static bool batch_run(struct fetch *f, const struct s3_fetch_file *files, uint32_t n, struct err *e)
{
    struct part parts[FILES_OPEN];
    struct todo *todo = NULL;
    uint32_t n_todo = 0, capacity = 0, n_open = 0;
    bool ok = true;
    for (; ok && n_open < n; n_open++) {
        bool is_same = false;
        ok = part_open(f, &parts[n_open], &files[n_open], &is_same, e) &&
             todo_of(f, &parts[n_open], is_same, &todo, &n_todo, &capacity, e);
    }
    if (ok) {
        struct batch b = {f, todo};
        pool_for(AT_ONCE, n_todo, batch_range, &b);
        if (!(ok = !atomic_load(&f->gave_up)))
            *e = f->e;
        if (e->code == ERR_CONFLICT && !ok)
            forget_parts(parts, n_open);
    }
    for (uint32_t i = 0; i < n_open; i++) {
        ok = ok && part_keep(&parts[i], e);
        part_close(&parts[i]);
    }
    return ok;
}

bool s3_fetch(const struct s3_access *s, const struct s3_fetch_file *files, uint32_t n,
              const struct s3_fetch_options *o, struct err *e)
{
    struct fetch f = {.s = s,
                      .o = o,
                      .range_bytes = o->range_bytes == 0 ? LIMIT_S3_RANGE_BYTES : o->range_bytes,
                      .lock = PTHREAD_MUTEX_INITIALIZER};
    bool ok = true;
    for (uint32_t i = 0; i < n; i++)
        f.of_bytes += files[i].object.size_bytes;
    for (uint32_t at = 0; ok && at < n; at += FILES_OPEN) {
        arena_init(&f.arena, "fetch from S3", LIMIT_ARENA_DEFAULT_BYTES);
        ok = batch_run(&f, files + at, n - at < FILES_OPEN ? n - at : FILES_OPEN, e);
        arena_release(&f.arena);
    }
    pthread_mutex_destroy(&f.lock);
    return ok;
}
