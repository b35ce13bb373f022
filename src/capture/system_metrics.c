/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/system_metrics.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/host_facts.h"
#include "capture/nvml.h"

const struct system_metric_row system_metric_table[SYSTEM_METRIC_N] = {
#define X(name, word, unit, help) {word, unit, help},
#include "model/metrics.def"
#undef X
};

static const char *const file_paths[SYSTEM_FILE_N] = {
    "/proc/stat",    "/proc/meminfo",      "/proc/loadavg",         "/proc/diskstats",
    "/proc/net/dev", "/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io",
};

struct sink {
    struct system_sample *out;
    size_t n, max;
};

static void put(struct sink *s, enum system_metric m, const char *label, uint64_t id, double v)
{
    if (s->n == s->max || isnan(v))
        return;
    struct system_sample *o = &s->out[s->n++];
    if (label == NULL)
        snprintf(o->name, sizeof o->name, "%s", system_metric_table[m].name);
    else
        snprintf(o->name, sizeof o->name, "%s{%s=\"%" PRIu64 "\"}", system_metric_table[m].name,
                 label, id);
    o->value = v;
}

void system_metrics_open(struct system_metrics *m, const struct host_roots *at)
{
    *m = (struct system_metrics){0};
    for (int i = 0; i < SYSTEM_FILE_N; i++)
        m->fds[i] = open(file_paths[i], O_RDONLY | O_CLOEXEC);
    amd_open(&m->amd, at->sys);
    tpu_open(&m->tpu, at, getenv("TPU_RUNTIME_METRICS_PORTS"));
}

void system_metrics_close(struct system_metrics *m)
{
    for (int i = 0; i < SYSTEM_FILE_N; i++)
        if (m->fds[i] > 0)
            close(m->fds[i]);
    for (int i = 0; i < SYSTEM_FILE_N; i++)
        m->fds[i] = -1;
    amd_close(&m->amd);
    tpu_close(&m->tpu);
}

static str read_file(const struct system_metrics *m, enum system_file f, char *out, size_t size)
{
    const ssize_t got = m->fds[f] == -1 ? 0 : pread(m->fds[f], out, size - 1, 0);
    out[got > 0 ? got : 0] = '\0';
    return (str){out, got > 0 ? (size_t)got : 0};
}

static double per_second(uint64_t now, uint64_t before, double seconds)
{
    return seconds <= 0 || now < before ? NAN : (double)(now - before) / seconds;
}

static void sample_cpu(struct system_metrics *m, struct sink *s)
{
    char text[512]; /* the first line is enough */
    unsigned long long v[8] = {0};
    const str t = read_file(m, SYSTEM_FILE_STAT, text, sizeof text);
    if (t.n == 0 || sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2],
                           &v[3], &v[4], &v[5], &v[6], &v[7]) < 4)
        return;
    uint64_t total = 0;
    for (int i = 0; i < 8; i++)
        total += v[i];
    const uint64_t busy = total - v[3] - v[4];
    if (m->cpu_total > 0 && total > m->cpu_total && busy >= m->cpu_busy)
        put(s, SYSTEM_METRIC_CPU_PERCENT, NULL, 0,
            100.0 * (double)(busy - m->cpu_busy) / (double)(total - m->cpu_total));
    m->cpu_busy = busy;
    m->cpu_total = total;
    double load;
    if (read_file(m, SYSTEM_FILE_LOADAVG, text, sizeof text).n > 0 &&
        sscanf(text, "%lf", &load) == 1)
        put(s, SYSTEM_METRIC_LOAD, NULL, 0, load);
}

static void sample_memory(const struct system_metrics *m, struct sink *s)
{
    char text[2048];
    unsigned long long total_kib = 0, available_kib = 0;
    if (read_file(m, SYSTEM_FILE_MEMINFO, text, sizeof text).n == 0)
        return;
    const char *total = strstr(text, "MemTotal:"), *available = strstr(text, "MemAvailable:");
    if (total == NULL || available == NULL || sscanf(total, "MemTotal: %llu", &total_kib) != 1 ||
        sscanf(available, "MemAvailable: %llu", &available_kib) != 1)
        return;
    put(s, SYSTEM_METRIC_MEMORY_USED, NULL, 0, (double)(total_kib - available_kib) * 1024);
    put(s, SYSTEM_METRIC_MEMORY_AVAILABLE, NULL, 0, (double)available_kib * 1024);
}

/* Whole disks only: a partition's bytes are its disk's too. */
static bool is_whole_disk(const char *name)
{
    const size_t n = strlen(name);
    if (strncmp(name, "loop", 4) == 0 || strncmp(name, "ram", 3) == 0 ||
        strncmp(name, "dm-", 3) == 0)
        return false;
    if (strncmp(name, "nvme", 4) == 0 || strncmp(name, "mmcblk", 6) == 0)
        return strchr(name + 4, 'p') == NULL;
    return n > 0 && !isdigit((unsigned char)name[n - 1]);
}

static void sample_disk(struct system_metrics *m, struct sink *s, double seconds)
{
    char text[16384], name[64];
    unsigned long long sectors_read, sectors_written;
    uint64_t read_bytes = 0, write_bytes = 0;
    str rest = read_file(m, SYSTEM_FILE_DISKSTATS, text, sizeof text), line;
    if (rest.n == 0)
        return;
    while (str_cut(rest, '\n', &line, &rest)) {
        if (sscanf(line.p, "%*u %*u %63s %*u %*u %llu %*u %*u %*u %llu", name, &sectors_read,
                   &sectors_written) != 3 ||
            !is_whole_disk(name))
            continue;
        read_bytes += sectors_read * 512;
        write_bytes += sectors_written * 512;
    }
    put(s, SYSTEM_METRIC_DISK_READ, NULL, 0, per_second(read_bytes, m->disk_read_bytes, seconds));
    put(s, SYSTEM_METRIC_DISK_WRITE, NULL, 0,
        per_second(write_bytes, m->disk_write_bytes, seconds));
    m->disk_read_bytes = read_bytes;
    m->disk_write_bytes = write_bytes;
}

static void sample_network(struct system_metrics *m, struct sink *s, double seconds)
{
    char text[16384];
    unsigned long long receive, transmit;
    uint64_t receive_bytes = 0, transmit_bytes = 0;
    str rest = read_file(m, SYSTEM_FILE_NETWORK, text, sizeof text), line, name, numbers;
    if (rest.n == 0)
        return;
    while (str_cut(rest, '\n', &line, &rest)) {
        if (!str_cut(line, ':', &name, &numbers) || numbers.n == 0 ||
            str_eq(str_trim(name), S("lo")) ||
            sscanf(numbers.p, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &receive, &transmit) != 2)
            continue;
        receive_bytes += receive;
        transmit_bytes += transmit;
    }
    put(s, SYSTEM_METRIC_NETWORK_RECEIVE, NULL, 0,
        per_second(receive_bytes, m->receive_bytes, seconds));
    put(s, SYSTEM_METRIC_NETWORK_TRANSMIT, NULL, 0,
        per_second(transmit_bytes, m->transmit_bytes, seconds));
    m->receive_bytes = receive_bytes;
    m->transmit_bytes = transmit_bytes;
}

static void sample_pressure(const struct system_metrics *m, struct sink *s)
{
    char text[256];
    double avg10;
    for (int i = 0; i < 3; i++)
        if (read_file(m, (enum system_file)(SYSTEM_FILE_PRESSURE_CPU + i), text, sizeof text).n >
                0 &&
            sscanf(text, "some avg10=%lf", &avg10) == 1)
            put(s, (enum system_metric)(SYSTEM_METRIC_PRESSURE_CPU + i), NULL, 0, avg10);
}

/* Adds the children of every thread of pid to the list; the kernel lists them by thread. */
static size_t add_children(pid_t pid, pid_t *list, size_t n, size_t max)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return n;
    for (const struct dirent *d = readdir(tasks); d != NULL; d = readdir(tasks)) {
        char file[384];
        if (!isdigit((unsigned char)d->d_name[0]))
            continue;
        snprintf(file, sizeof file, "%s/%s/children", path, d->d_name);
        str rest = host_read_text(file, text, sizeof text), word;
        uint64_t child;
        while (str_cut(rest, ' ', &word, &rest))
            if (n < max && str_to_u64(word, &child) && child < INT32_MAX)
                list[n++] = (pid_t)child;
    }
    closedir(tasks);
    return n;
}

static void sample_tree(struct sink *s, pid_t pid)
{
    pid_t list[512] = {pid};
    const double page_bytes = (double)sysconf(_SC_PAGESIZE);
    double sum = 0;
    bool seen = false;
    char path[64], text[128];
    unsigned long long pages;
    for (size_t i = 0, n = 1; i < n; i++) {
        n = add_children(list[i], list, n, sizeof list / sizeof *list);
        snprintf(path, sizeof path, "/proc/%d/statm", (int)list[i]);
        if (host_read_text(path, text, sizeof text).n == 0 || sscanf(text, "%*u %llu", &pages) != 1)
            continue;
        sum += (double)pages * page_bytes;
        seen = true;
        if (i < SYSTEM_METRICS_PROCESSES)
            put(s, SYSTEM_METRIC_PROCESS_RSS, "pid", (uint64_t)list[i], (double)pages * page_bytes);
    }
    /* Nobody left to ask is not zero bytes. */
    if (seen)
        put(s, SYSTEM_METRIC_TREE_RSS, NULL, 0, sum);
}

static void put_gpu(struct sink *s, uint32_t device, const struct gpu_sample *g)
{
    put(s, SYSTEM_METRIC_GPU_UTILIZATION, "device", device, g->utilization_percent);
    put(s, SYSTEM_METRIC_GPU_MEMORY_USED, "device", device, g->memory_used_bytes);
    put(s, SYSTEM_METRIC_GPU_POWER, "device", device, g->power_w);
    put(s, SYSTEM_METRIC_GPU_TEMPERATURE, "device", device, g->temperature_celsius);
}

/* A host may have GPUs of both makers: AMD's numbers go on where NVIDIA's end (host_facts.h). */
static void sample_gpus(const struct system_metrics *m, struct sink *s)
{
    struct gpu_sample g;
    const uint32_t n_nvidia = nvml_device_count();
    for (uint32_t i = 0; i < n_nvidia; i++) {
        nvml_device_sample(i, &g);
        put_gpu(s, i, &g);
    }
    for (uint32_t i = 0; i < m->amd.n; i++) {
        amd_sample(&m->amd, i, &g);
        put_gpu(s, n_nvidia + i, &g);
    }
}

static void put_tpu(struct sink *s, enum system_metric m, const struct tpu_values *v)
{
    for (uint32_t i = 0; i < v->n; i++)
        put(s, m, "device", v->of[i].device, v->of[i].value);
}

static void sample_tpu(struct system_metrics *m, struct sink *s, uint64_t now_ns)
{
    struct tpu_sample t;
    tpu_sample(&m->tpu, now_ns, &t);
    put_tpu(s, SYSTEM_METRIC_TPU_DUTY_CYCLE, &t.duty_cycle_percent);
    put_tpu(s, SYSTEM_METRIC_TPU_MEMORY_USED, &t.memory_used_bytes);
    put_tpu(s, SYSTEM_METRIC_TPU_MEMORY_TOTAL, &t.memory_total_bytes);
}

size_t system_metrics_sample(struct system_metrics *m, pid_t pid, struct system_sample *out,
                             size_t max)
{
    struct sink s = {out, 0, max};
    const uint64_t now = clock_boottime_ns();
    const double seconds = m->at_ns == 0 ? 0 : (double)(now - m->at_ns) / 1e9;
    sample_cpu(m, &s);
    sample_memory(m, &s);
    sample_disk(m, &s, seconds);
    sample_network(m, &s, seconds);
    sample_pressure(m, &s);
    if (pid > 0)
        sample_tree(&s, pid);
    sample_gpus(m, &s);
    sample_tpu(m, &s, now);
    m->at_ns = now;
    return s.n;
}
