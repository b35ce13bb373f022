/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/host_facts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/json.h"
#include "capture/amd.h"
#include "capture/libtpu_find.h"
#include "capture/nvml.h"
#include "capture/tpu.h"

const struct host_roots host_roots_here = {"/sys", "/dev"};

str host_read_text(const char *path, char *out, size_t out_size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return (str){out, 0};
    const ssize_t got = read(fd, out, out_size - 1);
    close(fd);
    out[got > 0 ? got : 0] = '\0';
    return str_trim((str){out, got > 0 ? (size_t)got : 0});
}

str host_cgroup_dir(char *out, size_t out_size)
{
    char text[2048];
    str rest = host_read_text("/proc/self/cgroup", text, sizeof text), line;
    while (str_cut(rest, '\n', &line, &rest)) {
        if (!str_starts(line, S("0::/")))
            continue;
        const str below = str_sub(line, 3, line.n);
        const int n = snprintf(out, out_size, "/sys/fs/cgroup%.*s", STR_ARG(below));
        return n > 0 && (size_t)n < out_size ? (str){out, (size_t)n} : (str){out, 0};
    }
    return (str){out, 0};
}

static str cgroup_text(const char *file, char *out, size_t out_size)
{
    char dir[1024], path[1152];
    const str d = host_cgroup_dir(dir, sizeof dir);
    if (d.n == 0)
        return (str){out, 0};
    snprintf(path, sizeof path, "%.*s/%s", STR_ARG(d), file);
    return host_read_text(path, out, out_size);
}

uint64_t host_cgroup_oom_kills(void)
{
    char text[512];
    str rest = cgroup_text("memory.events", text, sizeof text), line;
    uint64_t n = 0;
    while (str_cut(rest, '\n', &line, &rest))
        if (str_starts(line, S("oom_kill ")))
            (void)str_to_u64(str_sub(line, 9, line.n), &n);
    return n;
}

static void put_text(struct json *j, const char *key, str text)
{
    if (text.n > 0)
        json_kstr(j, key, text);
}

static void put_kernel(struct json *j)
{
    struct utsname u;
    char text[4096];
    if (uname(&u) == 0) {
        json_kcstr(j, "kernel", u.release);
        json_kcstr(j, "architecture", u.machine);
        json_kcstr(j, "hostname", u.nodename);
    }
    str rest = host_read_text("/etc/os-release", text, sizeof text), line;
    while (str_cut(rest, '\n', &line, &rest)) {
        if (!str_starts(line, S("PRETTY_NAME=")))
            continue;
        str name = str_sub(line, 12, line.n);
        if (name.n >= 2 && name.p[0] == '"')
            name = str_sub(name, 1, name.n - 1);
        put_text(j, "os", name);
    }
}

static void put_cpu(struct json *j)
{
    char text[8192];
    str rest = host_read_text("/proc/cpuinfo", text, sizeof text), line, value;
    while (str_cut(rest, '\n', &line, &rest)) {
        if (!str_starts(line, S("model name")) || !str_cut(line, ':', &line, &value))
            continue;
        put_text(j, "cpu_model", str_trim(value));
        break;
    }
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    if (n > 0)
        json_ki64(j, "cpu_count", n);
}

static void put_memory(struct json *j)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0)
        json_ku64(j, "memory_bytes", (uint64_t)pages * (uint64_t)page_bytes);
}

static void put_cgroup(struct json *j)
{
    char text[128];
    uint64_t bytes, quota_us, period_us;
    str quota, period, max = cgroup_text("memory.max", text, sizeof text);
    if (str_to_u64(max, &bytes))
        json_ku64(j, "cgroup_memory_limit_bytes", bytes);
    max = cgroup_text("cpu.max", text, sizeof text);
    if (str_cut(max, ' ', &quota, &period) && str_to_u64(quota, &quota_us) &&
        str_to_u64(period, &period_us) && period_us > 0)
        json_kf64(j, "cgroup_cpu_limit", (double)quota_us / (double)period_us);
}

static void put_libtpu(struct json *j, const char *command)
{
    struct libtpu_found found;
    const bool here = libtpu_find(command, &found);
    json_kbool(j, "libtpu", here);
    put_text(j, "libtpu_path", str_from(found.path));
    put_text(j, "libtpu_version", str_from(found.version));
}

bool host_facts_text(const struct host_roots *at, const char *command, struct buf *out,
                     struct err *e)
{
    struct json writer, *j = &writer;
    json_init_buf(j, out);
    json_object(j);
    put_kernel(j);
    put_cpu(j);
    put_memory(j);
    put_cgroup(j);
    json_key(j, "accelerators");
    json_array(j);
    nvml_facts_json(j);
    amd_facts_json(at->sys, nvml_device_count(), j);
    tpu_facts_json(at, j);
    json_end(j);
    put_libtpu(j, command);
    json_end(j);
    return json_done(j, e);
}
