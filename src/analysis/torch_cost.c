/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/torch_cost.h"

#include <stdlib.h>

#define OPERANDS 4 /* that are looked at */
#define DIMS 3

static const struct product {
    str name;
    uint32_t a, b; /* which operands are the factors */
    uint32_t n_dims;
} products[] = {
    {STR_INIT("aten::mm"), 0, 1, 2},
    {STR_INIT("aten::addmm"), 1, 2, 2},
    {STR_INIT("aten::bmm"), 0, 1, 3},
    {STR_INIT("aten::baddbmm"), 1, 2, 3},
};

static const struct product *find(str name)
{
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (str_eq(products[i].name, name))
            return &products[i];
    return NULL;
}

bool torch_has_cost(str name)
{
    return find(name) != NULL;
}

str torch_category(str name)
{
    const ptrdiff_t colons = str_find(name, S("::"));
    if (str_starts(name, S("torch::autograd::")) || str_find(name, S("Backward")) > 0)
        return S("autograd");
    return colons > 0 ? str_sub(name, 0, (size_t)colons) : S("operator");
}

struct operand {
    uint64_t dims[DIMS];
    uint32_t n; /* DIMS + 1: more, or nothing that can be read */
};

static void skip(str *s, const char *set)
{
    while (s->n > 0 && str_find_char(str_from(set), s->p[0]) >= 0)
        *s = str_sub(*s, 1, s->n);
}

/* One "[32,64]"; false where no list begins. Lists of lists are more than it reads. */
static bool take_operand(str *s, struct operand *out)
{
    *out = (struct operand){0};
    skip(s, ", \n\r\t");
    if (s->n == 0 || s->p[0] != '[')
        return false;
    const ptrdiff_t end = str_find_char(*s, ']');
    if (end < 0)
        return false;
    str item, rest = str_sub(*s, 1, (size_t)end);
    *s = str_sub(*s, (size_t)end + 1, s->n);
    while (rest.n > 0 && str_cut(rest, ',', &item, &rest)) {
        if (out->n >= DIMS || !str_to_u64(str_trim(item), &out->dims[out->n])) {
            out->n = DIMS + 1;
            return true;
        }
        out->n++;
    }
    return true;
}

static uint64_t type_bytes(str types, uint32_t operand)
{
    static const struct {
        str name;
        uint64_t bytes;
    } known[] = {{STR_INIT("float"), 4},         {STR_INIT("double"), 8},
                 {STR_INIT("c10::BFloat16"), 2}, {STR_INIT("c10::Half"), 2},
                 {STR_INIT("int"), 4},           {STR_INIT("long int"), 8},
                 {STR_INIT("signed char"), 1},   {STR_INIT("unsigned char"), 1}};
    str item = {0}, rest = types;
    for (uint32_t i = 0; i <= operand; i++)
        if (!str_cut(rest, ',', &item, &rest))
            return 0;
    skip(&item, "[\" \n\r\t");
    const ptrdiff_t quote = str_find_char(item, '"');
    item = quote < 0 ? item : str_sub(item, 0, (size_t)quote);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (str_eq(known[i].name, item))
            return known[i].bytes;
    return 0;
}

static uint64_t mul(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

struct torch_cost torch_cost(str name, str dims, str types)
{
    struct torch_cost c = {0};
    const struct product *p = find(name);
    struct operand operands[OPERANDS] = {{{0}, 0}};
    if (p == NULL || !str_starts(dims, S("[")))
        return c;
    dims = str_sub(dims, 1, dims.n);
    for (uint32_t i = 0; i < OPERANDS && take_operand(&dims, &operands[i]); i++)
        continue;
    const struct operand *a = &operands[p->a], *b = &operands[p->b];
    const uint32_t first = p->n_dims - 2; /* of the matrix itself */
    const uint64_t bytes = type_bytes(types, p->a);
    if (a->n != p->n_dims || b->n != p->n_dims || a->dims[first + 1] != b->dims[first] ||
        bytes == 0 || (first > 0 && a->dims[0] != b->dims[0]))
        return c;
    const uint64_t batch = first > 0 ? a->dims[0] : 1;
    const uint64_t m = a->dims[first], k = b->dims[first], n = b->dims[first + 1];
    c.known = true;
    c.flops = mul(mul(2, batch), mul(mul(m, n), k));
    c.read_bytes = mul(mul(batch, bytes), add(mul(m, k), mul(k, n)));
    c.write_bytes = mul(mul(batch, bytes), mul(m, n));
    return c;
}
