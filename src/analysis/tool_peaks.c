/* SPDX-License-Identifier: Apache-2.0 */
/* peaks: what accelerators can do at most, and who says so. Without a profile every product and architecture
 * of the table; with one the devices of the profile, with the numbers that other tools use for them. */
#include <math.h>

#include "analysis/device_info.h"
#include "analysis/tool.h"

struct peak_tables {
    struct table *rates, *memory;
    struct arena *arena;
};

static bool begin(struct peak_tables *t, struct arena *a)
{
    *t = (struct peak_tables){.arena = a};
    t->rates = table_new(a, S("rates"), S("Peak rates"));
    t->memory = table_new(a, S("memory"), S("Memory"));
    if (t->rates == NULL || t->memory == NULL)
        return false;
    t->rates->next = t->memory;
    table_column(t->rates, S("device"), S("Device"), CELL_TEXT, S(""));
    table_column(t->rates, S("architecture"), S("Architecture"), CELL_TEXT, S(""));
    table_column(t->rates, S("type"), S("Type"), CELL_TEXT, S(""));
    table_column(t->rates, S("flops_per_s"), S("Peak"), CELL_F64, S("FLOP/s"));
    table_column(t->rates, S("ridge_flops_per_byte"), S("Ridge"), CELL_F64, S("FLOP/byte"));
    table_column(t->rates, S("basis"), S("Basis"), CELL_TEXT, S(""));
    table_column(t->rates, S("source"), S("Source"), CELL_TEXT, S(""));
    table_column(t->memory, S("device"), S("Device"), CELL_TEXT, S(""));
    table_column(t->memory, S("memory"), S("Memory"), CELL_TEXT, S(""));
    table_column(t->memory, S("bytes_per_s"), S("Peak"), CELL_F64, S("bytes/s"));
    table_column(t->memory, S("basis"), S("Basis"), CELL_TEXT, S(""));
    table_column(t->memory, S("source"), S("Source"), CELL_TEXT, S(""));
    return true;
}

struct origin { /* of a number */
    str basis, source;
};

static struct origin data_sheet(const struct peak_product *p)
{
    return (struct origin){S("data sheet"), str_from(p->source)};
}

static struct origin derived(str formula)
{
    return (struct origin){S("derived"), formula};
}

static const struct origin said = {STR_INIT("profile"), STR_INIT("said by the device's plane")};

/* The ridge is the rate over the memory's, derived whatever the rate is. Numbers are whole millions: the
 * table's decimals leave no trace. */
static void add_rate(struct peak_tables *t, str device, str arch, str type, double tera_flops,
                     double memory_gb, struct origin from)
{
    if (!(tera_flops > 0))
        return;
    struct cell *row = table_row(t->rates);
    if (row == NULL)
        return;
    row[0] = cell_text(device);
    if (arch.n > 0)
        row[1] = cell_text(arch);
    row[2] = cell_text(type);
    row[3] = cell_f64(round(tera_flops * 1e6) * 1e6);
    if (memory_gb > 0)
        row[4] = cell_f64(tera_flops * 1e3 / memory_gb);
    row[5] = cell_text(from.basis);
    row[6] = cell_text(from.source);
}

static void add_memory(struct peak_tables *t, str device, str memory, double giga_bytes,
                       struct origin from)
{
    if (!(giga_bytes > 0))
        return;
    struct cell *row = table_row(t->memory);
    if (row == NULL)
        return;
    row[0] = cell_text(device);
    row[1] = cell_text(memory);
    row[2] = cell_f64(round(giga_bytes * 1e3) * 1e6);
    row[3] = cell_text(from.basis);
    row[4] = cell_text(from.source);
}

static struct origin clock_formula(struct arena *a, double per_clock, const char *unit,
                                   double cores, double mhz)
{
    return derived(
        arena_printf(a, "%g cores x %g %s a clock x %g MHz", cores, per_clock, unit, mhz));
}

static str arch_name(const struct peak_arch *arch)
{
    return arch == NULL ? S("") : str_from(arch->name);
}

/* What the architecture would do with so many cores at that clock. */
static void add_derived(struct peak_tables *t, str device, const struct peak_arch *arch,
                        double cores, double mhz, double memory_gb)
{
    if (arch == NULL || !(cores > 0) || !(mhz > 0))
        return;
    for (enum peak_type i = 0; i < PEAK_TYPES; i++)
        add_rate(t, device, arch_name(arch), peak_type_name(i), peak_derived(arch, i, cores, mhz),
                 memory_gb, clock_formula(t->arena, arch->flops_per_clock[i], "FLOP", cores, mhz));
    const double bytes = arch->shared_bytes_per_clock;
    add_memory(t, device, S("shared memory"), bytes * cores * mhz / 1e3,
               clock_formula(t->arena, bytes, "bytes", cores, mhz));
}

static void add_product(struct peak_tables *t, str device, const struct peak_product *p)
{
    const str arch = arch_name(peak_arch_of(p));
    for (enum peak_type i = 0; i < PEAK_TYPES; i++)
        add_rate(t, device, arch, peak_type_name(i), p->tera_flops[i], p->memory_gb, data_sheet(p));
    add_memory(t, device, S("device memory"), p->memory_gb, data_sheet(p));
}

/* --- the whole table --------------------------------------------------------------------------- */

static struct table *clock_table(struct arena *a)
{
    struct table *t = table_new(a, S("per_clock"), S("One SM or CU in a clock"));
    if (t == NULL)
        return NULL;
    table_column(t, S("vendor"), S("Vendor"), CELL_TEXT, S(""));
    table_column(t, S("target"), S("Target"), CELL_TEXT, S(""));
    table_column(t, S("architecture"), S("Architecture"), CELL_TEXT, S(""));
    for (enum peak_type i = 0; i < PEAK_TYPES; i++)
        table_column(t, peak_type_name(i), peak_type_name(i), CELL_F64, S("FLOP"));
    table_column(t, S("shared_memory_bytes"), S("Shared memory"), CELL_F64, S("bytes"));
    table_column(t, S("threads"), S("Threads"), CELL_F64, S(""));
    table_column(t, S("source"), S("Source"), CELL_TEXT, S(""));
    for (uint32_t k = 0; k < peak_n_archs; k++) {
        const struct peak_arch *x = &peak_archs[k];
        struct cell *row = table_row(t);
        if (row == NULL)
            return NULL;
        row[0] = cell_text(peak_vendor_name(x->vendor));
        row[1] = cell_text(str_from(x->key));
        row[2] = cell_text(str_from(x->name));
        for (uint32_t i = 0; i < PEAK_TYPES; i++)
            if (x->flops_per_clock[i] > 0)
                row[3 + i] = cell_f64(x->flops_per_clock[i]);
        row[3 + PEAK_TYPES] = cell_f64(x->shared_bytes_per_clock);
        row[4 + PEAK_TYPES] = cell_f64(x->threads);
        row[5 + PEAK_TYPES] = cell_text(str_from(x->source));
    }
    return t;
}

static void add_all_products(struct peak_tables *t)
{
    for (uint32_t i = 0; i < peak_n_products; i++) {
        const struct peak_product *p = &peak_products[i];
        const str device = str_from(p->name);
        add_product(t, device, p);
        add_derived(t, device, peak_arch_of(p), p->cores, p->mhz, p->memory_gb);
    }
}

/* --- the devices of a profile ------------------------------------------------------------------ */

static bool is_device(const struct trace_plane *p)
{
    return p->kind == TRACE_PLANE_GPU || p->kind == TRACE_PLANE_TPU;
}

static bool is_alike(const struct device_info *a, const struct device_info *b)
{
    return str_eq(a->type, b->type) && a->arch == b->arch && a->product == b->product &&
           fabs(a->peak_tera_flops - b->peak_tera_flops) <= 0 && fabs(a->hbm_gb - b->hbm_gb) <= 0 &&
           fabs(a->cores - b->cores) <= 0 && fabs(a->clock_mhz - b->clock_mhz) <= 0;
}

static str device_name(const struct device_info *d, struct arena *a)
{
    return d->product == NULL ? d->type
                              : arena_printf(a, "%.*s (%s)", STR_ARG(d->type), d->product->name);
}

static void add_device(struct peak_tables *t, const struct device_info *d)
{
    const str name = device_name(d, t->arena);
    struct origin peak = said;
    if (d->derived && d->arch != NULL)
        peak = clock_formula(t->arena, peak_xprof_flops_per_clock(d->arch), "FLOP", d->cores,
                             d->clock_mhz);
    add_rate(t, name, arch_name(d->arch), S("used"), d->peak_tera_flops, d->hbm_gb, peak);
    add_derived(t, name, d->arch, d->cores, d->clock_mhz, d->hbm_gb);
    add_memory(t, name, S("device memory"), d->hbm_gb, said);
    add_memory(t, name, S("CMEM read"), d->cmem_read_gb, said);
    add_memory(t, name, S("CMEM write"), d->cmem_write_gb, said);
    add_memory(t, name, S("VMEM read"), d->vmem_read_gb, said);
    add_memory(t, name, S("VMEM write"), d->vmem_write_gb, said);
    if (d->product == NULL)
        return;
    add_product(t, name, d->product);
    device_memory_note(d, t->memory);
}

static bool add_profile(struct peak_tables *t, const struct profile *p, struct err *e)
{
    struct device_info *seen = NULL;
    uint32_t n = 0, capacity = 0;
    for (uint32_t i = 0; i < p->n_traces; i++)
        for (uint32_t k = 0; k < p->traces[i]->n_planes; k++) {
            if (!is_device(&p->traces[i]->planes[k]))
                continue;
            const struct device_info d = device_info_of(&p->traces[i]->planes[k], t->arena);
            uint32_t at = 0;
            while (at < n && !is_alike(&seen[at], &d))
                at++;
            if (at < n)
                continue;
            if (!ARENA_PUSH(t->arena, seen, n, capacity))
                return arena_full(t->arena, e);
            seen[n - 1] = d;
            add_device(t, &d);
        }
    if (n == 0)
        table_note(t->rates, S("no_accelerator"), 1, "profile without a GPU or TPU");
    return true;
}

static bool peaks_run(const struct tool_request *r, struct arena *a, struct table **out,
                      struct err *e)
{
    struct peak_tables t;
    if (!begin(&t, a))
        return arena_full(a, e);
    *out = t.rates;
    if (r->profile->n_traces > 0)
        return add_profile(&t, r->profile, e);
    add_all_products(&t);
    t.memory->next = clock_table(a);
    return t.memory->next != NULL || arena_full(a, e);
}

const struct tool_functions tool_peaks = {.run = peaks_run, .needs_none = true};
