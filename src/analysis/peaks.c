/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/peaks.h"

#define NVIDIA PEAK_NVIDIA
#define AMD PEAK_AMD
#define GOOGLE PEAK_GOOGLE

const struct peak_arch peak_archs[] = {
#define ARCH(vendor, key, name, fp64, fp64m, fp32, tf32, bf16, fp16, fp8, fp4, int8, shared,       \
             threads, source)                                                                      \
    {vendor, key,     name,  {fp64, fp64m, fp32, tf32, bf16, fp16, fp8, fp4, int8},                \
     shared, threads, source},
#define PRODUCT(...)
#include "analysis/peaks.def"
#undef ARCH
#undef PRODUCT
};
const uint32_t peak_n_archs = sizeof peak_archs / sizeof *peak_archs;

const struct peak_product peak_products[] = {
#define ARCH(...)
#define PRODUCT(vendor, key, name, words, cores, mhz, memory, fp64, fp64m, fp32, tf32, bf16, fp16, \
                fp8, fp4, int8, source)                                                            \
    {vendor, key, name,   words,                                                                   \
     cores,  mhz, memory, {fp64, fp64m, fp32, tf32, bf16, fp16, fp8, fp4, int8},                   \
     source},
#include "analysis/peaks.def"
#undef ARCH
#undef PRODUCT
};
const uint32_t peak_n_products = sizeof peak_products / sizeof *peak_products;

str peak_vendor_name(enum peak_vendor v)
{
    static const str names[] = {STR_INIT("NVIDIA"), STR_INIT("AMD"), STR_INIT("Google")};
    return names[v];
}

str peak_type_name(enum peak_type t)
{
    static const str names[] = {STR_INIT("fp64"), STR_INIT("fp64_matrix"), STR_INIT("fp32"),
                                STR_INIT("tf32"), STR_INIT("bf16"),        STR_INIT("fp16"),
                                STR_INIT("fp8"),  STR_INIT("fp4"),         STR_INIT("int8")};
    return names[t];
}

static bool capability(const char *key, int64_t *major, int64_t *minor)
{
    str head, rest;
    return str_cut(str_from(key), '.', &head, &rest) && str_to_i64(head, major) &&
           str_to_i64(rest, minor);
}

const struct peak_arch *peak_arch_nvidia(int64_t major, int64_t minor)
{
    const struct peak_arch *found = NULL;
    int64_t a, b, best = -1;
    for (uint32_t i = 0; i < peak_n_archs; i++) {
        const struct peak_arch *x = &peak_archs[i];
        if (x->vendor == PEAK_NVIDIA && capability(x->key, &a, &b) && a == major && b <= minor &&
            b > best) {
            best = b;
            found = x;
        }
    }
    return found;
}

const struct peak_arch *peak_arch_amd(str target)
{
    str key, rest;
    if (!str_cut(target, ':', &key, &rest))
        return NULL;
    for (uint32_t i = 0; i < peak_n_archs; i++)
        if (peak_archs[i].vendor == PEAK_AMD && str_eq(key, str_from(peak_archs[i].key)))
            return &peak_archs[i];
    return NULL;
}

const struct peak_arch *peak_arch_of(const struct peak_product *p)
{
    for (uint32_t i = 0; i < peak_n_archs; i++)
        if (peak_archs[i].vendor == p->vendor &&
            str_eq(str_from(peak_archs[i].key), str_from(p->arch)))
            return &peak_archs[i];
    return NULL;
}

static bool is_between_words(char c)
{
    return c == ' ' || c == '-' || c == '_' || c == '(' || c == ')';
}

static bool has_word(str text, str word)
{
    for (size_t at = 0; at < text.n;) {
        size_t end = at;
        while (end < text.n && !is_between_words(text.p[end]))
            end++;
        if (str_eq_nocase(str_sub(text, at, end), word))
            return true;
        at = end + 1;
    }
    return false;
}

static bool has_all_words(str text, const char *words)
{
    str word, rest = str_from(words);
    while (str_cut(rest, ' ', &word, &rest))
        if (!has_word(text, word))
            return false;
    return text.n > 0;
}

static bool near(double a, double b, double part)
{
    return a > (1 - part) * b && a < (1 + part) * b;
}

static bool has_shape(const struct peak_product *p, double cores, double memory_gb)
{
    return p->cores > 0 && cores >= p->cores && cores <= p->cores &&
           (near(memory_gb, p->memory_gb, 0.04) ||
            (p->vendor == PEAK_AMD && near(2 * memory_gb, p->memory_gb, 0.04)));
}

const struct peak_product *peak_product_gpu(const struct peak_arch *arch, str name, double cores,
                                            double memory_gb, double mhz)
{
    const struct peak_product *of_shape = NULL, *of_clock = NULL;
    uint32_t n_of_shape = 0, n_of_clock = 0;
    for (uint32_t i = 0; arch != NULL && i < peak_n_products; i++) {
        const struct peak_product *p = &peak_products[i];
        if (peak_arch_of(p) != arch)
            continue;
        if (has_all_words(name, p->words))
            return p;
        if (!has_shape(p, cores, memory_gb))
            continue;
        of_shape = p;
        n_of_shape++;
        if (near(mhz, p->mhz, 0.01)) {
            of_clock = p;
            n_of_clock++;
        }
    }
    return n_of_shape == 1 ? of_shape : n_of_clock == 1 ? of_clock : NULL;
}

const struct peak_product *peak_product_tpu(str type)
{
    for (uint32_t i = 0; i < peak_n_products; i++) {
        str one, rest = str_from(peak_products[i].words);
        while (peak_products[i].vendor == PEAK_GOOGLE && str_cut(rest, '|', &one, &rest))
            if (str_eq_nocase(type, one))
                return &peak_products[i];
    }
    return NULL;
}

double peak_derived(const struct peak_arch *arch, enum peak_type t, double cores, double mhz)
{
    return arch->flops_per_clock[t] * cores * mhz / 1e6;
}

double peak_xprof_flops_per_clock(const struct peak_arch *arch)
{
    static const enum peak_type counted[] = {PEAK_FP32, PEAK_TF32, PEAK_FP16};
    double most = 0;
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (arch->flops_per_clock[counted[i]] > most)
            most = arch->flops_per_clock[counted[i]];
    return most;
}
