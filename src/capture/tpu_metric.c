/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/tpu_metric.h"

#include <math.h>

#include "format/wire.h"

size_t tpu_metric_request(str name, char *out, size_t out_size)
{
    if (name.n > 127 || out_size < name.n + 2)
        return 0;
    out[0] = 1 << 3 | WIRE_LEN; /* metric_name = 1 */
    out[1] = (char)name.n;
    if (name.n > 0)
        memcpy(out + 2, name.p, name.n);
    return name.n + 2;
}

static struct wire inside(const struct wire *w)
{
    return wire_from(w->bytes, wire_bytes_pos(w));
}

/* Newer runtimes name a device by its digits, older by a number. */
static bool read_attr_value(struct wire w, bool *known, uint64_t *device, struct err *e)
{
    while (wire_next(&w)) {
        if (w.field == 1 && w.type == WIRE_LEN)
            *known = str_to_u64(w.bytes, device);
        else if (w.field == 3 && w.type == WIRE_VARINT) {
            *device = w.number;
            *known = w.number <= INT64_MAX;
        }
    }
    return wire_ok(&w, e);
}

static bool read_attribute(struct wire w, bool *known, uint64_t *device, struct err *e)
{
    while (wire_next(&w))
        if (w.field == 2 && w.type == WIRE_LEN && !read_attr_value(inside(&w), known, device, e))
            return false;
    return wire_ok(&w, e);
}

static bool read_gauge(struct wire w, double *value, struct err *e)
{
    while (wire_next(&w)) {
        if (w.field == 1 && w.type == WIRE_I64)
            memcpy(value, &w.number, sizeof *value);
        else if (w.field == 2 && w.type == WIRE_VARINT)
            *value = w.number <= INT64_MAX ? (double)w.number : NAN;
    }
    return wire_ok(&w, e);
}

static void add(struct tpu_values *out, uint64_t device, double value)
{
    for (uint32_t i = 0; i < out->n; i++)
        if (out->of[i].device == device)
            return;
    if (out->n < TPU_DEVICES_MAX)
        out->of[out->n++] = (struct tpu_value){device, value};
}

static bool read_metric(struct wire w, struct tpu_values *out, struct err *e)
{
    bool known = false;
    uint64_t device = 0;
    double value = NAN;
    while (wire_next(&w)) {
        if (w.type != WIRE_LEN)
            continue;
        if (w.field == 1 && !read_attribute(inside(&w), &known, &device, e))
            return false;
        if (w.field == 3 && !read_gauge(inside(&w), &value, e))
            return false;
    }
    if (known && isfinite(value) && value >= 0)
        add(out, device, value);
    return wire_ok(&w, e);
}

static bool read_tpu_metric(struct wire w, struct tpu_values *out, struct err *e)
{
    while (wire_next(&w))
        if (w.field == 3 && w.type == WIRE_LEN && !read_metric(inside(&w), out, e))
            return false;
    return wire_ok(&w, e);
}

bool tpu_metric_read(str message, struct tpu_values *out, struct err *e)
{
    const uint32_t n_before = out->n;
    struct wire w = wire_from(message, 0);
    bool ok = true;
    while (ok && wire_next(&w))
        if (w.field == 1 && w.type == WIRE_LEN)
            ok = read_tpu_metric(inside(&w), out, e);
    ok = ok && wire_ok(&w, e);
    if (!ok)
        out->n = n_before;
    return ok;
}
