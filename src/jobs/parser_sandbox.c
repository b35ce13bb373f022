/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/parser_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#endif

static int int_order(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

static void close_between(unsigned from, unsigned to) /* both included */
{
    if (from > to || syscall(SYS_close_range, from, to, 0) == 0)
        return;
    const unsigned most = to > 65536 ? 65536 : to;
    for (unsigned fd = from; fd <= most; fd++)
        close((int)fd);
}

void sandbox_close_others(int *fds, uint32_t n)
{
    qsort(fds, n, sizeof *fds, int_order);
    unsigned from = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (fds[i] < 0)
            continue;
        if ((unsigned)fds[i] > from)
            close_between(from, (unsigned)fds[i] - 1);
        from = (unsigned)fds[i] + 1;
    }
    close_between(from, UINT32_MAX);
}

static uint64_t address_space_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long long pages = 0;
    if (f != NULL) {
        if (fscanf(f, "%llu", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool limit_set(int resource, uint64_t value, const char *what, struct err *e)
{
    struct rlimit now;
    if (getrlimit((__rlimit_resource_t)resource, &now) == 0 && value > now.rlim_max)
        value = now.rlim_max;
    const struct rlimit r = {value, value};
    return setrlimit((__rlimit_resource_t)resource, &r) == 0 ||
           err_sys(e, "cannot limit the parser's %s", what);
}

/* No path may be opened from here on. */
static void landlock_enter(void)
{
    const struct landlock_ruleset_attr rules = {
        .handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                             LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
                             LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                             LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
                             LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                             LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                             LANDLOCK_ACCESS_FS_MAKE_SYM};
    const long fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (fd < 0)
        return;
    syscall(SYS_landlock_restrict_self, (int)fd, 0);
    close((int)fd);
}

#ifdef SANDBOX_ARCH
#define ALLOW(name)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static bool seccomp_enter(struct err *e)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SANDBOX_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read),
        ALLOW(pread64),
        ALLOW(write),
        ALLOW(pwrite64),
        ALLOW(writev),
        ALLOW(lseek),
        ALLOW(fstat),
        ALLOW(close),
        ALLOW(brk),
        ALLOW(mmap),
        ALLOW(munmap),
        ALLOW(mremap),
        ALLOW(mprotect),
        ALLOW(madvise),
        ALLOW(futex),
        ALLOW(clock_gettime),
        ALLOW(getrandom),
        ALLOW(rt_sigaction),
        ALLOW(rt_sigprocmask),
        ALLOW(rt_sigreturn),
        ALLOW(getpid),
        ALLOW(gettid),
        ALLOW(tgkill),
        ALLOW(sysinfo),
        ALLOW(set_robust_list),
        ALLOW(rseq),
        ALLOW(exit),
        ALLOW(exit_group),
        /* threads of its own, no process: glibc falls back from clone3, whose flags a filter cannot see */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        /* fstat(3) of glibc: the call with a path is allowed only for "" (flag AT_EMPTY_PATH) */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AT_EMPTY_PATH, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    const struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ||
           err_sys(e, "cannot filter the parser's system calls");
}
#else
static bool seccomp_enter(struct err *e)
{
    (void)e;
    return true;
}
#endif

#define HEAP_MOST_BYTES (4 << 20) /* what is larger goes back to the system when it is freed */

bool sandbox_enter(const struct sandbox_limits *limits, struct err *e)
{
    const uint64_t memory = address_space_bytes() + limits->memory_bytes;
    mallopt(M_ARENA_MAX,
            1); /* a heap for each thread would take address space of a size of its own */
    mallopt(M_TRIM_THRESHOLD, INT_MAX); /* pages that were had are used again: each costs a fault */
    mallopt(M_MMAP_THRESHOLD, HEAP_MOST_BYTES);
    if (!SANITIZED && !limit_set(RLIMIT_AS, memory, "memory", e))
        return false;
    if (!limit_set(RLIMIT_CPU, limits->cpu_s, "CPU time", e) ||
        !limit_set(RLIMIT_FSIZE, limits->file_bytes, "file size", e) ||
        !limit_set(RLIMIT_CORE, 0, "core file", e))
        return false;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_sys(e, "cannot give up new privileges");
    landlock_enter(); /* takes a descriptor for a moment */
    if (!limit_set(RLIMIT_NOFILE, 0, "descriptors", e))
        return false;
    return SANITIZED || seccomp_enter(e);
}
