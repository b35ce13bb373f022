/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/nvml.h"

#include <dlfcn.h>
#include <pthread.h>

struct utilization {
    unsigned gpu, memory;
};
struct memory {
    unsigned long long total, free, used;
};
typedef void *device_handle;

static struct {
    int (*init)(void);
    int (*count)(unsigned *);
    int (*handle)(unsigned, device_handle *);
    int (*name)(device_handle, char *, unsigned);
    int (*utilization)(device_handle, struct utilization *);
    int (*memory)(device_handle, struct memory *);
    int (*power)(device_handle, unsigned *); /* milliwatts */
    int (*temperature)(device_handle, int, unsigned *);
    unsigned n_devices;
} nvml;
static pthread_once_t nvml_once = PTHREAD_ONCE_INIT;

/* POSIX lets a symbol's address be stored as a function this way; a cast would not be ISO C. */
static void take(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

static void load(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
    take(library, "nvmlInit_v2", &nvml.init);
    take(library, "nvmlDeviceGetCount_v2", &nvml.count);
    take(library, "nvmlDeviceGetHandleByIndex_v2", &nvml.handle);
    take(library, "nvmlDeviceGetName", &nvml.name);
    take(library, "nvmlDeviceGetUtilizationRates", &nvml.utilization);
    take(library, "nvmlDeviceGetMemoryInfo", &nvml.memory);
    take(library, "nvmlDeviceGetPowerUsage", &nvml.power);
    take(library, "nvmlDeviceGetTemperature", &nvml.temperature);
    if (nvml.init == NULL || nvml.count == NULL || nvml.handle == NULL || nvml.init() != 0 ||
        nvml.count(&nvml.n_devices) != 0)
        nvml.n_devices = 0;
}

uint32_t nvml_device_count(void)
{
    pthread_once(&nvml_once, load);
    return nvml.n_devices;
}

void nvml_device_sample(uint32_t device, struct gpu_sample *out)
{
    device_handle h;
    struct utilization u;
    struct memory m;
    unsigned v;
    *out = GPU_SAMPLE_NONE;
    if (device >= nvml_device_count() || nvml.handle(device, &h) != 0)
        return;
    if (nvml.utilization != NULL && nvml.utilization(h, &u) == 0)
        out->utilization_percent = u.gpu;
    if (nvml.memory != NULL && nvml.memory(h, &m) == 0)
        out->memory_used_bytes = (double)m.used;
    if (nvml.power != NULL && nvml.power(h, &v) == 0)
        out->power_w = v / 1000.0;
    if (nvml.temperature != NULL && nvml.temperature(h, 0, &v) == 0)
        out->temperature_celsius = v;
}

void nvml_facts_json(struct json *j)
{
    for (uint32_t i = 0; i < nvml_device_count(); i++) {
        device_handle h;
        struct memory m;
        char name[96] = "";
        if (nvml.handle(i, &h) != 0)
            continue;
        json_object(j);
        json_kcstr(j, "kind", "nvidia_gpu");
        json_ku64(j, "device", i);
        if (nvml.name != NULL && nvml.name(h, name, sizeof name) == 0)
            json_kcstr(j, "name", name);
        if (nvml.memory != NULL && nvml.memory(h, &m) == 0)
            json_ku64(j, "memory_bytes", m.total);
        json_end(j);
    }
}
