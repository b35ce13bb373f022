/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/sha256.h"
#include "journal/run_identity.h"

#define SMALL_PAYLOAD 992 /* copied beside its header, for a plain write */
#define NAME_BYTES 1024
#define PAGE_BYTES 4096
#define THREAD_MAX 0xffffffu /* numbers of threads have 24 bits */

/* A page that reads 0 in a forked child. NULL where the kernel cannot: then getpid tells. */
static const volatile uint32_t *make_fork_page(void)
{
#ifdef MADV_WIPEONFORK
    uint32_t *page =
        mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, PAGE_BYTES, MADV_WIPEONFORK) == 0) {
        *page = 1;
        return page;
    }
    munmap(page, PAGE_BYTES);
#endif
    return NULL;
}

static bool is_owner(const struct journal_writer *w)
{
    return w->not_forked != NULL ? *w->not_forked != 0 : (uint32_t)getpid() == w->pid;
}

bool journal_writer_is_open(const struct journal_writer *w)
{
    return atomic_load_explicit(&w->fd_plus_1, memory_order_relaxed) != 0 && is_owner(w);
}

static bool note_drop(struct journal_writer *w, int error)
{
    atomic_fetch_add(&w->n_dropped, 1);
    atomic_fetch_add(&w->n_dropped_total, 1);
    atomic_store(&w->last_errno, error);
    if (atomic_fetch_add(&w->n_failures, 1) + 1 >= JOURNAL_WRITER_PATIENCE)
        atomic_store(&w->retry_boottime_ns, clock_boottime_ns() + JOURNAL_WRITER_RETRY_NS);
    return false;
}

/* SIGXFSZ would end the workload, so a write beyond the limit is never made. The limit is read anew
 * when what is known is older than a millisecond: the call costs half as much as the write. */
static bool fits_limit(struct journal_writer *w, size_t n, uint64_t now_ns)
{
    const uint64_t end = atomic_fetch_add_explicit(&w->n_bytes, n, memory_order_relaxed) + n;
    const uint64_t read_ns = atomic_load_explicit(&w->limit_read_ns, memory_order_relaxed);
    if (read_ns == 0 || now_ns - read_ns >= JOURNAL_LIMIT_EVERY_NS) {
        struct rlimit limit;
        const bool none = getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY;
        atomic_store_explicit(&w->limit_bytes, none ? UINT64_MAX : limit.rlim_cur,
                              memory_order_relaxed);
        atomic_store_explicit(&w->limit_read_ns, now_ns, memory_order_relaxed);
    }
    return end <= atomic_load_explicit(&w->limit_bytes, memory_order_relaxed);
}

static void put_header(struct journal_record_header *h, struct journal_writer *w, uint16_t type,
                       uint16_t flags, uint64_t boottime_ns, str head, str tail)
{
    *h = (struct journal_record_header){
        .sync = JOURNAL_SYNC,
        .type = type,
        .flags = flags,
        .length = (uint32_t)(head.n + tail.n),
        .boottime_ns = boottime_ns,
        .seq = atomic_fetch_add_explicit(&w->seq, 1, memory_order_relaxed),
    };
    const uint8_t *bytes = (const uint8_t *)h;
    uint32_t crc = crc32c(0, bytes + 4, 8);
    crc = crc32c(crc, bytes + 16, 16);
    crc = head.n > 0 ? crc32c(crc, head.p, head.n) : crc;
    h->crc = tail.n > 0 ? crc32c(crc, tail.p, tail.n) : crc;
}

static ssize_t put_bytes(int fd, struct journal_record_header *h, str head, str tail)
{
    const size_t n = head.n + tail.n;
    if (n <= SMALL_PAYLOAD) {
        uint8_t record[sizeof *h + SMALL_PAYLOAD];
        memcpy(record, h, sizeof *h);
        if (head.n > 0)
            memcpy(record + sizeof *h, head.p, head.n);
        if (tail.n > 0)
            memcpy(record + sizeof *h + head.n, tail.p, tail.n);
        return write(fd, record, sizeof *h + n);
    }
    const struct iovec parts[3] = {
        {h, sizeof *h}, {(void *)(uintptr_t)head.p, head.n}, {(void *)(uintptr_t)tail.p, tail.n}};
    return writev(fd, parts, 3);
}

/* One record, one call. errno of the caller stays as it was. */
static bool put_record(struct journal_writer *w, uint16_t type, uint16_t flags,
                       uint64_t boottime_ns, str head, str tail)
{
    const int fd = atomic_load_explicit(&w->fd_plus_1, memory_order_relaxed) - 1;
    const size_t n = sizeof(struct journal_record_header) + head.n + tail.n;
    const int saved = errno;
    if (!fits_limit(w, n, boottime_ns)) {
        atomic_fetch_sub(&w->n_bytes, n);
        errno = saved;
        return note_drop(w, EFBIG);
    }
    struct journal_record_header h;
    put_header(&h, w, type, flags, boottime_ns, head, tail);
    ssize_t written;
    do
        written = put_bytes(fd, &h, head, tail);
    while (written == -1 && errno == EINTR);
    const int error = written == -1 ? errno : ENOSPC;
    errno = saved;
    if (written == (ssize_t)n) {
        if (atomic_load_explicit(&w->n_failures, memory_order_relaxed) != 0)
            atomic_store(&w->n_failures, 0);
        return true;
    }
    atomic_fetch_sub(&w->n_bytes, n - (written > 0 ? (size_t)written : 0));
    return note_drop(w, error);
}

/* Says what was dropped, once the file takes records again. */
static void tell_dropped(struct journal_writer *w, uint64_t now_ns)
{
    const uint64_t n = atomic_exchange(&w->n_dropped, 0);
    if (n == 0)
        return;
    struct __attribute__((packed)) {
        uint64_t n;
        int32_t error;
    } payload = {n, atomic_load(&w->last_errno)};
    if (!put_record(w, JOURNAL_DROPPED, 0, now_ns, (str){(const char *)&payload, sizeof payload},
                    (str){0})) {
        atomic_fetch_add(&w->n_dropped, n - 1); /* the DROPPED record itself is none of them */
        atomic_fetch_sub(&w->n_dropped_total, 1);
    }
}

static void put_anchor(struct journal_writer *w)
{
    const struct clock_anchor a = clock_anchor_take();
    struct __attribute__((packed)) {
        int64_t wall_ns;
        uint64_t monotonic_ns;
    } payload = {a.wall_ns, a.monotonic_ns};
    (void)put_record(w, JOURNAL_ANCHOR, 0, a.boottime_ns,
                     (str){(const char *)&payload, sizeof payload}, (str){0});
}

/* Anchors and DROPPED records go before the record that finds them due. */
static void put_due(struct journal_writer *w, uint64_t now_ns)
{
    if (atomic_load_explicit(&w->n_dropped, memory_order_relaxed) != 0)
        tell_dropped(w, now_ns);
    uint64_t last_ns = atomic_load_explicit(&w->anchor_boottime_ns, memory_order_relaxed);
    if (now_ns - last_ns >= JOURNAL_ANCHOR_EVERY_NS && now_ns > last_ns &&
        atomic_compare_exchange_strong(&w->anchor_boottime_ns, &last_ns, now_ns))
        put_anchor(w);
}

static bool is_quiet(struct journal_writer *w)
{
    if (atomic_load_explicit(&w->n_failures, memory_order_relaxed) < JOURNAL_WRITER_PATIENCE)
        return false;
    if (clock_boottime_ns() >= atomic_load(&w->retry_boottime_ns))
        return false;
    atomic_fetch_add(&w->n_dropped, 1);
    atomic_fetch_add(&w->n_dropped_total, 1);
    return true;
}

/* Writes all of both parts to a new file, staying below RLIMIT_FSIZE. */
static int write_side(const char *path, str head, str tail)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        head.n + tail.n > limit.rlim_cur)
        return EFBIG;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (fd == -1)
        return errno;
    int error = 0;
    const str parts[2] = {head, tail};
    for (int i = 0; i < 2 && error == 0; i++) {
        for (size_t at = 0; at < parts[i].n && error == 0;) {
            const ssize_t n = write(fd, parts[i].p + at, parts[i].n - at);
            if (n > 0)
                at += (size_t)n;
            else if (n == 0 || errno != EINTR)
                error = n == 0 ? ENOSPC : errno;
        }
    }
    if (close(fd) != 0 && error == 0)
        error = errno;
    return error;
}

static bool write_large(struct journal_writer *w, enum journal_type type, str head, str tail)
{
    struct __attribute__((packed)) {
        uint64_t size;
        uint8_t digest[SHA256_BYTES];
    } payload = {.size = head.n + tail.n};
    struct sha256 sha;
    sha256_init(&sha);
    sha256_add(&sha, head.p, head.n);
    sha256_add(&sha, tail.p, tail.n);
    sha256_end(&sha, payload.digest);
    char hex[SHA256_HEX], path[PAGE_BYTES + 100], temporary[PAGE_BYTES + 140];
    sha256_hex(payload.digest, hex);
    const char *slash = strrchr(w->path, '/');
    const int n_dir = slash == NULL ? 0 : (int)(slash - w->path);
    snprintf(path, sizeof path, "%.*s/side", n_dir, w->path);
    const int saved = errno;
    (void)mkdir(path, 0750);
    snprintf(path, sizeof path, "%.*s/side/%s", n_dir, w->path, hex);
    snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, syscall(SYS_gettid));
    int error = write_side(temporary, head, tail);
    if (error == 0 && rename(temporary, path) != 0)
        error = errno;
    if (error != 0)
        (void)unlink(temporary);
    errno = saved;
    if (error != 0)
        return note_drop(w, error);
    return put_record(w, (uint16_t)type, JOURNAL_FLAG_SIDE, clock_boottime_ns(),
                      (str){(const char *)&payload, sizeof payload}, (str){0});
}

bool journal_write(struct journal_writer *w, enum journal_type type, str head, str tail)
{
    if (!journal_writer_is_open(w) || is_quiet(w))
        return false;
    const uint64_t now_ns = clock_boottime_ns();
    put_due(w, now_ns);
    if (head.n + tail.n > JOURNAL_PAYLOAD_MAX)
        return write_large(w, type, head, tail);
    return put_record(w, (uint16_t)type, 0, now_ns, head, tail);
}

/* Numbers and not the kernel's ids, which cost a call, are used again, and are wrong after a fork.
 * Initial-exec: the other models allocate at a thread's first access, and end the process when they
 * cannot. */
static uint32_t thread_number(void)
{
    static __thread uint32_t mine __attribute__((tls_model("initial-exec")));
    static _Atomic uint32_t n_threads;
    if (mine == 0 && atomic_load_explicit(&n_threads, memory_order_relaxed) < THREAD_MAX)
        mine = atomic_fetch_add_explicit(&n_threads, 1, memory_order_relaxed) + 1;
    return mine <= THREAD_MAX ? mine : 0;
}

bool journal_write_phase(struct journal_writer *w, enum journal_type type, uint8_t phase,
                         int64_t step, str custom_type)
{
    const uint32_t thread = thread_number();
    const struct journal_begin_end payload = {
        .phase = phase,
        .thread = {(uint8_t)thread, (uint8_t)(thread >> 8), (uint8_t)(thread >> 16)},
        .step = step};
    return journal_write(w, type, (str){(const char *)&payload, sizeof payload}, custom_type);
}

bool journal_write_metric(struct journal_writer *w, enum journal_type type, int64_t step, str name,
                          double value)
{
    struct __attribute__((packed)) {
        int64_t step;
        uint16_t n;
        double value;
        uint16_t n_name;
    } head = {step, 1, value, (uint16_t)(name.n < NAME_BYTES ? name.n : NAME_BYTES)};
    return journal_write(w, type, (str){(const char *)&head, sizeof head},
                         str_sub(name, 0, NAME_BYTES));
}

bool journal_write_checkpoint(struct journal_writer *w, enum journal_checkpoint_kind kind,
                              int64_t step, int64_t duration_ns)
{
    struct __attribute__((packed)) {
        uint8_t kind, zero[7];
        int64_t step, duration_ns;
    } payload = {.kind = (uint8_t)kind, .step = step, .duration_ns = duration_ns};
    return journal_write(w, JOURNAL_CHECKPOINT, (str){(const char *)&payload, sizeof payload},
                         (str){0});
}

bool journal_write_output(struct journal_writer *w, uint8_t stream, str text)
{
    const char head = (char)stream;
    return journal_write(w, JOURNAL_OUTPUT, (str){&head, 1}, text);
}

bool journal_write_end_of(struct journal_writer *w, enum journal_type type, int32_t exit_code,
                          int32_t signal, str reason)
{
    const int32_t payload[2] = {exit_code, signal};
    return journal_write(w, type, (str){(const char *)payload, sizeof payload}, reason);
}

/* Random bytes; where the kernel has none to give, clocks and the pid, which name a journal well
 * enough. */
static void fill_random(uint8_t *p, size_t n)
{
#ifdef SYS_getrandom
    if (syscall(SYS_getrandom, p, n, 1 /* GRND_NONBLOCK */) == (long)n)
        return;
#endif
    const uint64_t seed[3] = {clock_boottime_ns(), (uint64_t)clock_wall_ns(), (uint64_t)getpid()};
    uint8_t digest[SHA256_BYTES];
    struct sha256 sha;
    sha256_init(&sha);
    sha256_add(&sha, seed, sizeof seed);
    sha256_end(&sha, digest);
    memcpy(p, digest, n < sizeof digest ? n : sizeof digest);
}

static size_t put_text(uint8_t *p, const char *s, size_t max)
{
    const size_t length = s == NULL ? 0 : strlen(s);
    const uint16_t n = (uint16_t)(length < max ? length : max);
    memcpy(p, &n, sizeof n);
    if (n > 0)
        memcpy(p + sizeof n, s, n);
    return sizeof n + n;
}

static bool put_journal_header(struct journal_writer *w, const struct journal_writer_opts *o,
                               struct clock_anchor a)
{
    uint8_t payload[sizeof(struct journal_header_fixed) + 3 * (2 + 256) + sizeof(uint64_t)];
    const uint64_t pid_namespace = run_pid_namespace();
    struct journal_header_fixed h = {
        .version = JOURNAL_VERSION,
        .role = o->role,
        .boottime_ns = a.boottime_ns,
        .monotonic_ns = a.monotonic_ns,
        .wall_ns = a.wall_ns,
        .rank = o->rank,
        .world_size = o->world_size,
        .pid = w->pid,
        .restart_count = o->restart_count,
    };
    memcpy(h.journal_id, w->journal_id, sizeof h.journal_id);
    clock_boot_id(h.boot_id);
    memcpy(payload, &h, sizeof h);
    size_t n = sizeof h;
    n += put_text(payload + n, o->run, 127);
    n += put_text(payload + n, o->host, 255);
    n += put_text(payload + n, o->writer != NULL ? o->writer : "tacho-c/" TACHO_VERSION, 63);
    memcpy(payload + n, &pid_namespace, sizeof pid_namespace);
    n += sizeof pid_namespace;
    return put_record(w, JOURNAL_HEADER, 0, a.boottime_ns, (str){(const char *)payload, n},
                      (str){0});
}

/* Makes every folder of path, which is changed meanwhile and restored. */
static int make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const int failed = mkdir(path, 0750);
        const int error = errno;
        *slash = '/';
        if (failed != 0 && error != EEXIST && error != EISDIR && error != EROFS)
            return error;
    }
    return 0;
}

static int open_file(struct journal_writer *w, const struct journal_writer_opts *o,
                     uint64_t start_ns)
{
    char rank[16] = "run";
    if (o->role != JOURNAL_ROLE_RUNNER || o->rank >= 0)
        snprintf(rank, sizeof rank, "%d", o->rank);
    const int n =
        snprintf(w->path, sizeof w->path, "%s/runs/%s/journals/%s-%s-%u-%llu.journal", o->data_dir,
                 o->run, o->host, rank, w->pid, (unsigned long long)start_ns);
    if (n < 0 || (size_t)n >= sizeof w->path)
        return ENAMETOOLONG;
    const int error = make_folders(w->path);
    if (error != 0)
        return error;
    const int fd = open(w->path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd == -1)
        return errno;
    atomic_store(&w->fd_plus_1, fd + 1);
    return 0;
}

int journal_writer_open(struct journal_writer *w, const struct journal_writer_opts *o)
{
    memset(w, 0, sizeof *w);
    if (o->data_dir == NULL || o->run == NULL || o->host == NULL || o->data_dir[0] == '\0' ||
        o->run[0] == '\0' || strchr(o->run, '/') != NULL || strchr(o->host, '/') != NULL)
        return EINVAL;
    const int saved = errno;
    const struct clock_anchor a = clock_anchor_take();
    w->pid = (uint32_t)getpid();
    fill_random(w->journal_id, sizeof w->journal_id);
    int error = open_file(w, o, a.boottime_ns);
    if (error == 0) {
        w->not_forked = make_fork_page();
        atomic_store(&w->anchor_boottime_ns, a.boottime_ns);
        if (!put_journal_header(w, o, a)) {
            error = atomic_load(&w->last_errno);
            (void)unlink(w->path); /* without a header it says nothing about anyone */
            journal_writer_close(w);
        }
    }
    errno = saved;
    return error;
}

void journal_writer_close(struct journal_writer *w)
{
    const int fd = atomic_exchange(&w->fd_plus_1, 0) - 1;
    if (fd >= 0)
        close(fd);
    if (w->not_forked != NULL)
        munmap((void *)(uintptr_t)w->not_forked, PAGE_BYTES);
    w->not_forked = NULL;
}
