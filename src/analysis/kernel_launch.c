/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/kernels.h"

/* No machine has more: NVIDIA 255, AMD 512 with its accumulation registers. */
#define MOST_REGISTERS 1024

static bool take_dims(str text, uint32_t out[3])
{
    str part;
    uint64_t v[3];
    for (int i = 0; i < 3; i++)
        if (!str_cut(text, ',', &part, &text) || !str_to_u64(part, &v[i]) || v[i] > UINT32_MAX)
            return false;
    if (text.n > 0)
        return false;
    for (int i = 0; i < 3; i++)
        out[i] = (uint32_t)v[i];
    return true;
}

static void take_bytes(str value, int64_t *out)
{
    uint64_t v;
    if (str_to_u64(value, &v) && v <= UINT32_MAX)
        *out = (int64_t)v;
}

static void take_token(struct kernel_launch *l, str key, str value)
{
    double percent;
    if (str_eq(key, S("regs")))
        take_bytes(value, &l->registers_per_thread);
    else if (str_eq(key, S("static_shared")) || str_eq(key, S("group_mem")))
        take_bytes(value, &l->static_shared_bytes);
    else if (str_eq(key, S("dynamic_shared")))
        take_bytes(value, &l->dynamic_shared_bytes);
    else if (str_eq(key, S("grid")))
        (void)take_dims(value, l->grid);
    else if (str_eq(key, S("block")))
        (void)take_dims(value, l->block);
    else if (str_eq(key, S("occ_pct")) && str_to_f64(value, &percent) && percent > 0 &&
             percent <= 100)
        l->occupancy_percent = percent;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n';
}

struct kernel_launch kernel_launch_parse(str details)
{
    struct kernel_launch l = {.registers_per_thread = KERNEL_UNKNOWN,
                              .static_shared_bytes = KERNEL_UNKNOWN,
                              .dynamic_shared_bytes = KERNEL_UNKNOWN};
    size_t at = 0;
    while (at < details.n) {
        size_t end = at;
        while (end < details.n && !is_space(details.p[end]))
            end++;
        const str token = str_sub(details, at, end);
        const ptrdiff_t colon = str_find_char(token, ':');
        if (colon > 0)
            take_token(&l, str_sub(token, 0, (size_t)colon),
                       str_sub(token, (size_t)colon + 1, token.n));
        at = end + 1;
    }
    if (l.registers_per_thread > MOST_REGISTERS) /* the halves of a pointer */
        l.registers_per_thread = l.static_shared_bytes = KERNEL_UNKNOWN;
    return l;
}

int64_t kernel_shared_bytes(const struct kernel_launch *l)
{
    if (l->static_shared_bytes == KERNEL_UNKNOWN)
        return KERNEL_UNKNOWN; /* the dynamic part alone is not the whole */
    return l->static_shared_bytes + (l->dynamic_shared_bytes > 0 ? l->dynamic_shared_bytes : 0);
}

str kernel_dims_text(const uint32_t dims[3], struct arena *a)
{
    if (dims[0] == 0 && dims[1] == 0 && dims[2] == 0)
        return (str){0};
    return arena_printf(a, "%u,%u,%u", dims[0], dims[1], dims[2]);
}

static bool starts_nocase(str s, str prefix)
{
    return s.n >= prefix.n && str_eq_nocase(str_sub(s, 0, prefix.n), prefix);
}

bool kernel_is_name_of_one(str name)
{
    return !starts_nocase(name, S("memcpy")) && !starts_nocase(name, S("memset")) &&
           !starts_nocase(name, S("CopyHostToDevice")) && !starts_nocase(name, S("CopyDeviceTo"));
}
