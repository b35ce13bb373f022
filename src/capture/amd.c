/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/amd.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "capture/host_facts.h"

#define AMD_VENDOR "0x1002"

/* The number of ".../cardN"; -1 for a connector ("card0-DP-1") or a number that no kernel gives. */
static int card_number(const char *path)
{
    const char *digits = strrchr(path, '/') + strlen("/card");
    uint64_t n;
    return str_to_u64(str_from(digits), &n) && n < 1000000 ? (int)n : -1;
}

static str device_text(const char *sys_root, int card, const char *file, char *out, size_t out_size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/class/drm/card%d/device/%s", sys_root, card, file);
    return host_read_text(path, out, out_size);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* glob sorts card10 before card2: a device's number must not hang on how many cards there are. */
static uint32_t list_cards(const char *sys_root, int cards[static AMD_GPUS_MAX])
{
    glob_t found = {0};
    char pattern[512], text[64];
    uint32_t n = 0;
    snprintf(pattern, sizeof pattern, "%s/class/drm/card[0-9]*", sys_root);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && n < AMD_GPUS_MAX; i++) {
            const int card = card_number(found.gl_pathv[i]);
            if (card >= 0 &&
                str_eq(device_text(sys_root, card, "vendor", text, sizeof text), S(AMD_VENDOR)))
                cards[n++] = card;
        }
    globfree(&found);
    qsort(cards, n, sizeof *cards, by_number);
    return n;
}

static int open_file(const char *sys_root, int card, const char *pattern)
{
    char path[512];
    glob_t found = {0};
    int fd = -1;
    snprintf(path, sizeof path, "%s/class/drm/card%d/device/%s", sys_root, card, pattern);
    if (glob(path, 0, NULL, &found) == 0)
        fd = open(found.gl_pathv[0], O_RDONLY | O_CLOEXEC);
    globfree(&found);
    return fd;
}

void amd_open(struct amd_gpus *a, const char *sys_root)
{
    static const char *const files[AMD_FILE_N][2] = {
        [AMD_FILE_BUSY] = {"gpu_busy_percent", NULL},
        [AMD_FILE_VRAM_USED] = {"mem_info_vram_used", NULL},
        [AMD_FILE_POWER] = {"hwmon/hwmon*/power1_average", "hwmon/hwmon*/power1_input"},
        [AMD_FILE_TEMPERATURE] = {"hwmon/hwmon*/temp1_input", "hwmon/hwmon*/temp2_input"},
    };
    int cards[AMD_GPUS_MAX];
    a->n = list_cards(sys_root, cards);
    for (uint32_t i = 0; i < a->n; i++) {
        struct amd_gpu *g = &a->gpu[i];
        g->card = cards[i];
        for (int f = 0; f < AMD_FILE_N; f++) {
            g->fds[f] = open_file(sys_root, g->card, files[f][0]);
            if (g->fds[f] == -1 && files[f][1] != NULL)
                g->fds[f] = open_file(sys_root, g->card, files[f][1]);
        }
    }
}

void amd_close(struct amd_gpus *a)
{
    for (uint32_t i = 0; i < a->n; i++)
        for (int f = 0; f < AMD_FILE_N; f++)
            if (a->gpu[i].fds[f] != -1)
                close(a->gpu[i].fds[f]);
    a->n = 0;
}

static double read_number(const struct amd_gpu *g, enum amd_file f)
{
    char text[64];
    uint64_t v;
    const ssize_t got = g->fds[f] == -1 ? -1 : pread(g->fds[f], text, sizeof text, 0);
    if (got <= 0 || !str_to_u64(str_trim((str){text, (size_t)got}), &v))
        return NAN;
    return (double)v;
}

void amd_sample(const struct amd_gpus *a, uint32_t i, struct gpu_sample *out)
{
    *out = GPU_SAMPLE_NONE;
    if (i >= a->n)
        return;
    const struct amd_gpu *g = &a->gpu[i];
    out->utilization_percent = read_number(g, AMD_FILE_BUSY);
    out->memory_used_bytes = read_number(g, AMD_FILE_VRAM_USED);
    out->power_w = read_number(g, AMD_FILE_POWER) / 1e6;
    out->temperature_celsius = read_number(g, AMD_FILE_TEMPERATURE) / 1e3;
}

void amd_facts_json(const char *sys_root, uint32_t first_device, struct json *j)
{
    int cards[AMD_GPUS_MAX];
    const uint32_t n = list_cards(sys_root, cards);
    for (uint32_t i = 0; i < n; i++) {
        char text[256];
        uint64_t bytes;
        json_object(j);
        json_kcstr(j, "kind", "amd_gpu");
        json_ku64(j, "device", first_device + i);
        str t = device_text(sys_root, cards[i], "product_name", text, sizeof text);
        if (t.n > 0)
            json_kstr(j, "name", t);
        t = device_text(sys_root, cards[i], "device", text, sizeof text);
        if (t.n > 0)
            json_kstr(j, "pci_device", t);
        t = device_text(sys_root, cards[i], "mem_info_vram_total", text, sizeof text);
        if (str_to_u64(t, &bytes))
            json_ku64(j, "memory_bytes", bytes);
        json_end(j);
    }
}
