/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine with two NVIDIA GPUs would answer; the second says nothing but its name. */
#include <stdint.h>
#include <string.h>

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out);
int nvmlDeviceGetName(void *device, char *out, unsigned size);
int nvmlDeviceGetUtilizationRates(void *device, unsigned out[2]);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long out[3]);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);

#define NOT_SUPPORTED 3

int nvmlInit_v2(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = 2;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out)
{
    static char devices[2];
    *out = &devices[i];
    devices[i] = (char)i;
    return 0;
}

int nvmlDeviceGetName(void *device, char *out, unsigned size)
{
    (void)device;
    if (size < sizeof "Made GPU")
        return NOT_SUPPORTED;
    memcpy(out, "Made GPU", sizeof "Made GPU");
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned out[2])
{
    out[0] = 71;
    out[1] = 5;
    return *(char *)device == 0 ? 0 : NOT_SUPPORTED;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long out[3])
{
    out[0] = 1000;
    out[1] = 400;
    out[2] = 600;
    return *(char *)device == 0 ? 0 : NOT_SUPPORTED;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = 250500;
    return *(char *)device == 0 ? 0 : NOT_SUPPORTED;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    *celsius = 64;
    return *(char *)device == 0 && sensor == 0 ? 0 : NOT_SUPPORTED;
}
