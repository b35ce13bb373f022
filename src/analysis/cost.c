/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cost.h"

#include <math.h>

/* Windows and fused computations larger than this are not walked: their cost is unknown. */
#define WALK_MAX 1000000
#define FUSED_MAX 4096

static int64_t mul(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Clock cycles of one element on an Ampere (sm_86) streaming multiprocessor, XLA's default
 * profile; what is not listed takes 3. */
static int64_t cycles_per_element(str opcode, uint32_t type)
{
    static const struct {
        const char *opcode;
        int64_t f16, f32, f64;
    } slow[] = {
        {"atan2", 482, 486, 3747},
        {"cbrt", 925, 867, 6339},
        {"cosine", 691, 662, 1717},
        {"exponential", 108, 86, 1652},
        {"exponential-minus-one", 396, 381, 1900},
        {"log", 266, 244, 608},
        {"log-plus-one", 284, 262, 2073},
        {"logistic", 226, 176, 2412},
        {"power", 975, 925, 5511},
        {"rsqrt", 97, 75, 698},
        {"sine", 3, 662, 1789},
        {"sqrt", 97, 75, 986},
        {"tanh", 212, 190, 1609},
        {"add", 3, 3, 97},
        {"multiply", 3, 3, 97},
        {"subtract", 3, 3, 97},
        {"divide", 3, 3, 2016},
    };
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
        if (str_eq(opcode, str_from(slow[i].opcode)))
            return type == HLO_F16   ? slow[i].f16
                   : type == HLO_F32 ? slow[i].f32
                   : type == HLO_F64 ? slow[i].f64
                                     : 3;
    return 3;
}

static int64_t elementwise_flops(str opcode, const struct hlo_shape *s)
{
    uint32_t type = s->type;
    if (type == HLO_TUPLE && s->n_tuple > 0)
        type = s->tuple[0].type;
    return mul(cycles_per_element(opcode, type), hlo_shape_elements(s));
}

static int64_t dot_flops(const struct hlo_module *m, const struct hlo_instruction *in)
{
    const struct hlo_instruction *lhs = hlo_operand(m, in, 0);
    int64_t contracted = 1;
    for (uint32_t i = 0; lhs != NULL && i < in->dot.lhs_contracting.n; i++) {
        const int64_t d = in->dot.lhs_contracting.items[i];
        if (d >= 0 && d < lhs->shape.dims.n)
            contracted = mul(contracted, lhs->shape.dims.items[d]);
    }
    return mul(2, mul(hlo_shape_elements(&in->shape), contracted));
}

static int64_t dim(const struct hlo_shape *s, int64_t index)
{
    return index >= 0 && index < s->dims.n ? s->dims.items[index] : 1;
}

/* Pairs (output position, window position) of one spatial dimension that meet an input element and
 * not padding. */
static int64_t window_hits(const struct hlo_window_dim *w, int64_t input, int64_t output)
{
    const int64_t base = w->base_dilation < 1 ? 1 : w->base_dilation;
    const int64_t dilated = input < 1 ? 0 : add(mul(input - 1, base), 1);
    int64_t hits = 0;
    if (w->size < 0 || output < 0 || mul(w->size, output) > WALK_MAX)
        return -1;
    for (int64_t k = 0; k < w->size; k++)
        for (int64_t o = 0; o < output; o++) {
            const int64_t from = add(mul(o, w->stride), mul(k, w->window_dilation));
            int64_t at;
            if (!__builtin_sub_overflow(from, w->pad_low, &at))
                hits += at >= 0 && at < dilated && at % base == 0;
        }
    return hits;
}

/* -1 when it cannot be told. */
static int64_t conv_flops(const struct hlo_module *m, const struct hlo_instruction *in)
{
    const struct hlo_instruction *lhs = hlo_operand(m, in, 0), *rhs = hlo_operand(m, in, 1);
    const struct hlo_conv_dims *c = &in->conv;
    if (lhs == NULL || rhs == NULL || !in->has_conv)
        return -1;
    const struct hlo_shape *out = in->shape.n_tuple > 0 ? &in->shape.tuple[0] : &in->shape;
    int64_t n = mul(dim(out, c->output_batch), dim(out, c->output_feature));
    n = mul(n, dim(&rhs->shape, c->kernel_input_feature));
    for (uint32_t i = 0; i < in->n_window; i++) {
        if (i >= c->input_spatial.n || i >= c->output_spatial.n)
            return -1;
        const int64_t hits =
            window_hits(&in->window[i], dim(&lhs->shape, c->input_spatial.items[i]),
                        dim(out, c->output_spatial.items[i]));
        if (hits < 0)
            return -1;
        n = mul(n, hits);
    }
    return mul(2, n);
}

static str reducer_opcode(const struct hlo_module *m, const struct hlo_instruction *in)
{
    const struct hlo_computation *c =
        in->called_ids.n == 0 ? NULL : hlo_computation_by_id(m, in->called_ids.items[0]);
    const struct hlo_instruction *root = c == NULL ? NULL : hlo_by_id(m, c->root_id);
    return root == NULL ? S("add") : root->opcode;
}

static bool has_no_flops(str op)
{
    static const char *const words[] = {
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "copy",
        "transpose",
        "reshape",
        "broadcast",
        "slice",
        "dynamic-slice",
        "dynamic-update-slice",
        "pad",
        "iota",
        "gather",
        "reverse",
        "copy-start",
        "copy-done",
        "all-gather",
        "all-gather-start",
        "all-gather-done",
        "all-reduce-done",
        "all-to-all",
        "collective-permute",
        "infeed",
        "outfeed",
        "send",
        "send-done",
        "recv",
        "recv-done",
        "after-all",
        "optimization-barrier",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq(op, str_from(words[i])))
            return true;
    return false;
}

/* FLOPs of one instruction that is not a fusion; -1 when unknown. */
static int64_t plain_flops(const struct hlo_module *m, const struct hlo_instruction *in)
{
    const str op = in->opcode;
    if (has_no_flops(op))
        return 0;
    if (hlo_is_elementwise(op))
        return elementwise_flops(op, &in->shape);
    if (str_eq(op, S("dot")))
        return dot_flops(m, in);
    if (str_eq(op, S("convolution")))
        return conv_flops(m, in);
    if (str_eq(op, S("custom-call")))
        return str_starts(in->custom_call_target, S("__cudnn$conv")) ? conv_flops(m, in) : -1;
    if (str_starts(op, S("all-reduce")) || str_eq(op, S("reduce-scatter")))
        return elementwise_flops(reducer_opcode(m, in), &in->shape);
    if (str_eq(op, S("concatenate")))
        return mul(6, hlo_shape_elements(&in->shape));
    if (str_eq(op, S("reduce"))) {
        const struct hlo_instruction *input = hlo_operand(m, in, 0);
        const int64_t n = input == NULL ? 0 : hlo_shape_elements(&input->shape);
        const int64_t out = hlo_shape_elements(&in->shape);
        const uint32_t type = input == NULL ? 0 : input->shape.type;
        return mul(n > out ? n - out : 0, cycles_per_element(reducer_opcode(m, in), type));
    }
    return -1;
}

/* Share of an operand's elements that the instruction reads (or how often it reads them). */
static double operand_share(const struct hlo_instruction *in, const struct hlo_instruction *operand,
                            uint32_t index)
{
    const str op = in->opcode;
    const double have = (double)hlo_shape_elements(&operand->shape);
    const bool part = str_eq(op, S("slice")) || str_eq(op, S("broadcast")) ||
                      ((str_eq(op, S("dynamic-slice")) || str_eq(op, S("gather"))) && index == 0);
    return part && have > 0 ? (double)hlo_shape_elements(&in->shape) / have : 1;
}

/* How much of each fused instruction is computed once for the fusion's result: the walk goes from
 * the root to the parameters; `roots` are sets (bits) of the instructions through whose
 * elementwise users a value is reached, so that two users of one shape count once. */
struct fused_walk {
    const struct hlo_module *m;
    const struct hlo_instruction *first;
    uint32_t n, words;
    uint64_t *roots;    /* n sets of `words` words */
    double *root_share; /* of an instruction as a root */
};

static uint32_t fused_index(const struct fused_walk *w, const struct hlo_instruction *in)
{
    return in >= w->first && in < w->first + w->n ? (uint32_t)(in - w->first) : UINT32_MAX;
}

static double fused_share(const struct fused_walk *w, uint32_t i)
{
    double share = 0;
    for (uint32_t r = 0; r < w->n; r++)
        if (w->roots[(size_t)i * w->words + r / 64] >> (r % 64) & 1)
            share += w->root_share[r];
    return share;
}

static void fused_visit_operand(struct fused_walk *w, const struct hlo_instruction *in, uint32_t i,
                                uint32_t operand_index, double share)
{
    const struct hlo_instruction *o = hlo_operand(w->m, in, operand_index);
    const uint32_t at = o == NULL ? UINT32_MAX : fused_index(w, o);
    if (at == UINT32_MAX)
        return;
    uint64_t *to = &w->roots[(size_t)at * w->words];
    if (hlo_is_elementwise(in->opcode) || str_eq(in->opcode, S("tuple")) ||
        str_eq(in->opcode, S("get-tuple-element"))) {
        for (uint32_t k = 0; k < w->words; k++)
            to[k] |= w->roots[(size_t)i * w->words + k];
        return;
    }
    const double elements = (double)hlo_shape_elements(&o->shape);
    to[at / 64] |= UINT64_C(1) << (at % 64);
    if (elements > 0)
        w->root_share[at] +=
            ceil(share * operand_share(in, o, operand_index) * elements) / elements;
}

/* Adds what one fused instruction costs at its share. False when that is unknown. */
static bool fused_count(const struct fused_walk *w, const struct hlo_instruction *fusion,
                        const struct hlo_instruction *in, double share, struct op_cost *c)
{
    if (str_eq(in->opcode, S("parameter"))) {
        const struct hlo_instruction *from =
            in->parameter_number < 0 ? NULL
                                     : hlo_operand(w->m, fusion, (uint32_t)in->parameter_number);
        const double bytes = (double)hlo_shape_bytes(from == NULL ? &in->shape : &from->shape);
        c->hbm_read = add(c->hbm_read, (int64_t)(bytes * (share < 1 ? share : 1)));
        return true;
    }
    const int64_t flops = plain_flops(w->m, in);
    if (flops > 0)
        c->flops = add(c->flops, (int64_t)(share * (double)flops));
    return flops >= 0;
}

static void fused_run(struct fused_walk *w, const struct hlo_instruction *fusion, uint32_t root,
                      struct op_cost *c)
{
    w->root_share[root] = 1;
    w->roots[(size_t)root * w->words + root / 64] |= UINT64_C(1) << (root % 64);
    c->known = true;
    /* Instructions are listed operands first: backwards every user comes before what it uses. */
    for (uint32_t i = w->n; i-- > 0;) {
        const struct hlo_instruction *in = &w->first[i];
        const double share = fused_share(w, i);
        if (!fused_count(w, fusion, in, share, c))
            c->known = false;
        for (uint32_t k = 0; k < in->operand_ids.n; k++)
            fused_visit_operand(w, in, i, k, share);
    }
}

/* Bytes that the root writes: a dynamic-update-slice writes its update only. */
static int64_t root_bytes(const struct hlo_module *m, const struct hlo_instruction *root)
{
    const struct hlo_instruction *update =
        str_eq(root->opcode, S("dynamic-update-slice")) ? hlo_operand(m, root, 1) : NULL;
    return hlo_shape_bytes(update == NULL ? &root->shape : &update->shape);
}

static struct op_cost fusion_cost(const struct hlo_module *m, const struct hlo_instruction *in)
{
    struct op_cost c = {0};
    const struct hlo_computation *body = hlo_fused(m, in);
    const struct hlo_instruction *root = body == NULL ? NULL : hlo_by_id(m, body->root_id);
    if (root == NULL || body->n == 0 || body->n > FUSED_MAX)
        return c;
    struct fused_walk w = {
        .m = m, .first = &m->instructions[body->first], .n = body->n, .words = (body->n + 63) / 64};
    const uint32_t at = fused_index(&w, root);
    if (at == UINT32_MAX)
        return c;
    w.roots = map_alloc((size_t)w.n * w.words, sizeof *w.roots);
    w.root_share = map_alloc(w.n, sizeof *w.root_share);
    fused_run(&w, in, at, &c);
    map_free(w.roots);
    map_free(w.root_share);
    c.hbm_write = root_bytes(m, root);
    c.bytes = add(c.hbm_read, c.hbm_write);
    return c;
}

static void moved_bytes(const struct hlo_module *m, const struct hlo_instruction *in,
                        struct op_cost *c)
{
    for (uint32_t i = 0; i < in->operand_ids.n; i++) {
        const struct hlo_instruction *o = hlo_operand(m, in, i);
        if (o != NULL)
            c->hbm_read = add(c->hbm_read, hlo_shape_bytes(&o->shape));
    }
    /* A convolution call's second result is scratch memory; the model counts no write for it. */
    const bool tuple = in->shape.type == HLO_TUPLE;
    const int64_t out = hlo_shape_bytes(
        tuple && in->shape.n_tuple > 0 && str_eq(in->opcode, S("custom-call")) ? &in->shape.tuple[0]
                                                                               : &in->shape);
    c->hbm_write = tuple ? 0 : out;
    c->bytes = add(c->hbm_read, out);
    /* Ring steps: each rank's part travels on, is read and written at every hop. */
    const int64_t known = hlo_groups_largest(in->groups);
    const int64_t n = known <= 0 ? 1 : known < INT32_MAX ? known : INT32_MAX;
    if (str_eq(in->opcode, S("all-gather")))
        c->bytes = mul(hlo_shape_bytes(&in->shape) / n, 3 * n - 1);
    else if (str_eq(in->opcode, S("reduce-scatter")))
        c->bytes = mul(hlo_shape_bytes(&in->shape), 3 * n - 1);
}

static void count_narrow_inputs(const struct hlo_module *m, const struct hlo_instruction *in,
                                struct op_cost *c)
{
    unsigned widest = 0;
    for (uint32_t i = 0; i < in->operand_ids.n; i++) {
        const struct hlo_instruction *o = hlo_operand(m, in, i);
        const unsigned bits = o == NULL ? 0 : hlo_type_bits(o->shape.type);
        widest = bits > widest ? bits : widest;
    }
    c->device_flops = widest == 8 ? c->flops / 2 : widest == 4 ? c->flops / 4 : c->flops;
}

struct op_cost cost_of(const struct hlo_module *m, const struct hlo_instruction *in)
{
    struct op_cost c = {0};
    if (str_eq(in->opcode, S("fusion"))) {
        c = fusion_cost(m, in);
    } else {
        const int64_t flops = plain_flops(m, in);
        c.known = flops >= 0;
        c.flops = flops > 0 ? flops : 0;
        if (c.known || !str_eq(in->opcode, S("custom-call")))
            moved_bytes(m, in, &c);
    }
    count_narrow_inputs(m, in, &c);
    return c;
}

/* (m, k) times (k, n), either of them perhaps transposed: k is what the operands share. */
static int64_t contracted(const struct hlo_shape *a, const struct hlo_shape *b,
                          const struct hlo_shape *out)
{
    if (a->dims.n != 2 || b->dims.n != 2 || out->dims.n != 2)
        return 0;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            const int64_t rows = a->dims.items[1 - i], columns = b->dims.items[1 - k];
            if (a->dims.items[i] == b->dims.items[k] &&
                ((out->dims.items[0] == rows && out->dims.items[1] == columns) ||
                 (out->dims.items[0] == columns && out->dims.items[1] == rows)))
                return a->dims.items[i];
        }
    return 0;
}

struct op_cost cost_of_product_call(const struct hlo_module *m, const struct hlo_instruction *in)
{
    const str target = in->custom_call_target;
    const struct hlo_instruction *a = hlo_operand(m, in, 0), *b = hlo_operand(m, in, 1);
    const struct hlo_shape *out = in->shape.n_tuple > 0 ? &in->shape.tuple[0] : &in->shape;
    struct op_cost c = {0};
    if (!str_eq(in->opcode, S("custom-call")) || a == NULL || b == NULL ||
        (str_find(target, S("gemm")) < 0 && str_find(target, S("matmul")) < 0))
        return c;
    const int64_t k = contracted(&a->shape, &b->shape, out);
    if (k <= 0)
        return c;
    c.known = true;
    c.flops = mul(mul(2, k), hlo_shape_elements(out));
    c.hbm_read = add(hlo_shape_bytes(&a->shape), hlo_shape_bytes(&b->shape));
    c.hbm_write = hlo_shape_bytes(out);
    c.bytes = add(c.hbm_read, c.hbm_write);
    count_narrow_inputs(m, in, &c);
    return c;
}
