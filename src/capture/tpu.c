/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/tpu.h"

#include <glob.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "net/grpc_call.h"

#define GOOGLE_VENDOR "0x1ae0"
#define PORTS_USUAL "8431"
#define PAUSE_FIRST_NS NS_PER_S
#define PAUSE_MAX_NS (64 * NS_PER_S)

/* Source: tpu_info/device.py of AI-Hypercomputer/cloud-accelerator-diagnostics. */
static const struct {
    const char *device, *subsystem; /* PCI; NULL = any */
    const char *name;
} chips[] = {
    {"0x0027", "0x004e", "TPU v2"}, {"0x0027", "0x004f", "TPU v3"}, {"0x005e", NULL, "TPU v4"},
    {"0x0063", NULL, "TPU v5e"},    {"0x0062", NULL, "TPU v5p"},    {"0x006f", NULL, "TPU v6e"},
    {"0x0076", NULL, "TPU7x"},
};

static str pci_text(const char *folder, const char *file, char *out, size_t out_size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return host_read_text(path, out, out_size);
}

/* Google's vendor number is on network cards (gVNIC) and disks of its virtual machines too. */
static bool is_tpu(const char *folder)
{
    char text[64];
    if (!str_eq(pci_text(folder, "vendor", text, sizeof text), S(GOOGLE_VENDOR)))
        return false;
    const str class = pci_text(folder, "class", text, sizeof text);
    return !str_starts(class, S("0x01")) && !str_starts(class, S("0x02"));
}

static bool any_matches(const char *root, const char *pattern, glob_t *found)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, pattern);
    *found = (glob_t){0};
    return glob(path, 0, NULL, found) == 0;
}

static bool device_file_is_here(const char *dev, const char *pattern)
{
    glob_t found;
    const bool here = any_matches(dev, pattern, &found);
    globfree(&found);
    return here;
}

/* Puts the folders of the TPUs first in found's list; returns their number. */
static size_t pci_tpus(const struct host_roots *at, glob_t *found)
{
    size_t n = 0;
    if (!any_matches(at->sys, "bus/pci/devices/*", found))
        return 0;
    for (size_t i = 0; i < found->gl_pathc; i++)
        if (is_tpu(found->gl_pathv[i])) {
            char *const folder = found->gl_pathv[i];
            found->gl_pathv[i] = found->gl_pathv[n];
            found->gl_pathv[n++] = folder;
        }
    return n;
}

static bool tpu_is_here(const struct host_roots *at)
{
    glob_t pci = {0};
    if (device_file_is_here(at->dev, "accel[0-9]*"))
        return true;
    const bool here = device_file_is_here(at->dev, "vfio/[0-9]*") && pci_tpus(at, &pci) > 0;
    globfree(&pci);
    return here;
}

static void take_ports(struct tpu *t, str rest)
{
    str word;
    while (t->n_ports < TPU_PORTS_MAX && str_cut(rest, ',', &word, &rest)) {
        uint64_t number;
        if (str_to_u64(str_trim(word), &number) && number > 0 && number <= UINT16_MAX)
            t->port[t->n_ports++] = (struct tpu_port){.number = (uint16_t)number};
    }
}

void tpu_open(struct tpu *t, const struct host_roots *at, const char *ports)
{
    *t = (struct tpu){.wait_ms = TPU_SAMPLE_MS};
    buf_init(&t->answer, LIMIT_TPU_ANSWER_BYTES);
    if (ports != NULL && ports[0] != '\0')
        take_ports(t, str_from(ports));
    else if (tpu_is_here(at))
        take_ports(t, S(PORTS_USUAL));
}

void tpu_close(struct tpu *t)
{
    buf_release(&t->answer);
    t->n_ports = 0;
}

/* UNAVAILABLE is an answer too: a runtime that does not have this metric, or not yet. */
static bool ask(struct tpu *t, const struct tpu_port *p, str name, uint64_t end_ns,
                struct tpu_values *out, bool *answered)
{
    char request[128], url[128];
    struct err e = {0};
    const uint64_t now = clock_monotonic_ns();
    const size_t n = tpu_metric_request(name, request, sizeof request);
    if (now + NS_PER_MS > end_ns)
        return false;
    snprintf(url, sizeof url,
             "http://localhost:%u/tpu.monitoring.runtime.RuntimeMetricService/GetRuntimeMetric",
             p->number);
    const bool ok = grpc_call(url, (str){request, n}, (end_ns - now) / NS_PER_MS, &t->answer, &e) &&
                    tpu_metric_read(buf_str(&t->answer), out, &e);
    *answered = *answered || ok;
    return ok || e.code == ERR_UNAVAILABLE;
}

static bool ask_port(struct tpu *t, struct tpu_port *p, uint64_t end_ns, struct tpu_sample *out)
{
    bool answered = false;
    if (!ask(t, p, S("tpu.runtime.tensorcore.dutycycle.percent"), end_ns, &out->duty_cycle_percent,
             &answered) ||
        !ask(t, p, S("tpu.runtime.hbm.memory.usage.bytes"), end_ns, &out->memory_used_bytes,
             &answered))
        return false;
    if (p->total_known)
        return answered;
    const uint32_t n_before = out->memory_total_bytes.n;
    const bool ok = ask(t, p, S("tpu.runtime.hbm.memory.total.bytes"), end_ns,
                        &out->memory_total_bytes, &answered);
    p->total_known = out->memory_total_bytes.n > n_before;
    return ok && answered;
}

void tpu_sample(struct tpu *t, uint64_t now_ns, struct tpu_sample *out)
{
    out->duty_cycle_percent.n = out->memory_used_bytes.n = out->memory_total_bytes.n = 0;
    const uint64_t end_ns = clock_monotonic_ns() + (uint64_t)t->wait_ms * NS_PER_MS;
    for (uint32_t i = 0; i < t->n_ports; i++) {
        struct tpu_port *p = &t->port[i];
        const uint64_t at_ns = clock_monotonic_ns();
        if (now_ns < p->next_ask_ns || at_ns >= end_ns)
            continue;
        /* One that hangs must not take the time of those behind it. */
        const uint64_t share_ns = (end_ns - at_ns) / (t->n_ports - i);
        if (ask_port(t, p, at_ns + share_ns, out)) {
            p->pause_ns = 0;
            continue;
        }
        p->pause_ns = p->pause_ns == 0 ? PAUSE_FIRST_NS : 2 * p->pause_ns;
        if (p->pause_ns > PAUSE_MAX_NS)
            p->pause_ns = PAUSE_MAX_NS;
        p->next_ask_ns = now_ns + p->pause_ns;
    }
}

static void put_pci(struct json *j, const char *folder)
{
    char device[64], subsystem[64];
    const str d = pci_text(folder, "device", device, sizeof device);
    const str s = pci_text(folder, "subsystem_device", subsystem, sizeof subsystem);
    json_object(j);
    json_kcstr(j, "kind", "tpu");
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        if (str_eq(d, str_from(chips[i].device)) &&
            (chips[i].subsystem == NULL || str_eq(s, str_from(chips[i].subsystem)))) {
            json_kcstr(j, "name", chips[i].name);
            break;
        }
    if (d.n > 0)
        json_kstr(j, "pci_device", d);
    json_kstr(j, "pci_address", str_from(strrchr(folder, '/') + 1));
    json_end(j);
}

/* The device files when the kernel does not show the bus. */
static void put_files(struct json *j, const struct host_roots *at)
{
    glob_t found;
    if (any_matches(at->dev, "accel[0-9]*", &found))
        for (size_t i = 0; i < found.gl_pathc; i++) {
            json_object(j);
            json_kcstr(j, "kind", "tpu");
            json_kcstr(j, "path", found.gl_pathv[i]);
            json_end(j);
        }
    globfree(&found);
}

void tpu_facts_json(const struct host_roots *at, struct json *j)
{
    glob_t pci = {0};
    if (!tpu_is_here(at))
        return;
    const size_t n = pci_tpus(at, &pci);
    for (size_t i = 0; i < n; i++)
        put_pci(j, pci.gl_pathv[i]);
    if (n == 0)
        put_files(j, at);
    globfree(&pci);
}
