/* SPDX-License-Identifier: Apache-2.0 */
#include "model/hlo.h"

const struct hlo_instruction *hlo_find(const struct hlo_module *m, str name)
{
    const uint32_t *at = map_str_u32_get(&m->instruction_by_name, name);
    return at == NULL ? NULL : &m->instructions[*at];
}

const struct hlo_instruction *hlo_by_id(const struct hlo_module *m, int64_t id)
{
    const uint32_t *at = map_u64_u32_get(&m->instruction_by_id, (uint64_t)id);
    return at == NULL ? NULL : &m->instructions[*at];
}

const struct hlo_computation *hlo_computation_by_id(const struct hlo_module *m, int64_t id)
{
    const uint32_t *at = map_u64_u32_get(&m->computation_by_id, (uint64_t)id);
    return at == NULL ? NULL : &m->computations[*at];
}

const struct hlo_instruction *hlo_operand(const struct hlo_module *m,
                                          const struct hlo_instruction *in, uint32_t index)
{
    return index < in->operand_ids.n ? hlo_by_id(m, in->operand_ids.items[index]) : NULL;
}

void hlo_source(const struct hlo_module *m, const struct hlo_instruction *in, str *file,
                int64_t *line)
{
    *file = in->source_file;
    *line = in->source_line;
    if (file->n == 0 && in->stack_frame_id > 0 && in->stack_frame_id <= m->n_frames) {
        *file = m->frames[in->stack_frame_id - 1].file;
        *line = m->frames[in->stack_frame_id - 1].line;
    }
}

const struct hlo_computation *hlo_fused(const struct hlo_module *m,
                                        const struct hlo_instruction *in)
{
    if (!str_eq(in->opcode, S("fusion")) || in->called_ids.n == 0)
        return NULL;
    return hlo_computation_by_id(m, in->called_ids.items[0]);
}

unsigned hlo_type_bits(uint32_t type)
{
    static const uint8_t bits[] = {
        [HLO_PRED] = 8,
        [HLO_S8] = 8,
        [HLO_S16] = 16,
        [HLO_S32] = 32,
        [HLO_S64] = 64,
        [HLO_U8] = 8,
        [HLO_U16] = 16,
        [HLO_U32] = 32,
        [HLO_U64] = 64,
        [HLO_F16] = 16,
        [HLO_F32] = 32,
        [HLO_F64] = 64,
        [HLO_C64] = 64,
        [HLO_BF16] = 16,
        [HLO_C128] = 128,
        [19] = 8 /* F8E5M2 */,
        [20] = 8 /* F8E4M3FN */,
        [21] = 4 /* S4 */,
        [22] = 4 /* U4 */,
        [23] = 8,
        [24] = 8,
        [25] = 8,
        [26] = 2,
        [27] = 2,
        [28] = 8,
        [29] = 8,
        [30] = 1,
        [31] = 1,
        [32] = 4 /* F4E2M1FN */,
        [33] = 8 /* F8E8M0FNU */,
    };
    return type < sizeof bits ? bits[type] : 0;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t array_elements(const struct hlo_shape *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->dims.n; i++)
        n = times(n, s->dims.items[i] < 0 ? 0 : s->dims.items[i]);
    return n;
}

int64_t hlo_shape_elements(const struct hlo_shape *s)
{
    if (s->type == HLO_TOKEN || s->type == HLO_OPAQUE)
        return 0;
    if (s->type != HLO_TUPLE)
        return array_elements(s);
    int64_t n = 0;
    for (uint32_t i = 0; i < s->n_tuple; i++)
        n = plus(n, hlo_shape_elements(&s->tuple[i]));
    return n;
}

int64_t hlo_shape_bytes(const struct hlo_shape *s)
{
    if (s->type != HLO_TUPLE) {
        const int64_t bits = times(hlo_type_bits(s->type) == 0 ? 0 : array_elements(s),
                                   (int64_t)hlo_type_bits(s->type));
        return bits / 8 + (bits % 8 != 0);
    }
    int64_t n = 0;
    for (uint32_t i = 0; i < s->n_tuple; i++)
        n = plus(n, hlo_shape_bytes(&s->tuple[i]));
    return n;
}

bool hlo_is_elementwise(str opcode)
{
    static const char *const words[] = {
        "abs",
        "add",
        "and",
        "atan2",
        "bitcast-convert",
        "cbrt",
        "ceil",
        "clamp",
        "compare",
        "complex",
        "convert",
        "copy",
        "cosine",
        "count-leading-zeros",
        "divide",
        "erf",
        "exponential",
        "exponential-minus-one",
        "floor",
        "imag",
        "is-finite",
        "log",
        "log-plus-one",
        "logistic",
        "map",
        "maximum",
        "minimum",
        "multiply",
        "negate",
        "not",
        "or",
        "popcnt",
        "power",
        "real",
        "reduce-precision",
        "remainder",
        "round-nearest-afz",
        "round-nearest-even",
        "rsqrt",
        "select",
        "shift-left",
        "shift-right-arithmetic",
        "shift-right-logical",
        "sign",
        "sine",
        "sqrt",
        "stochastic-convert",
        "subtract",
        "tan",
        "tanh",
        "xor",
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_eq(opcode, str_from(words[i])))
            return true;
    return false;
}

str hlo_category(const struct hlo_module *m, const struct hlo_instruction *in)
{
    (void)m;
    if (str_eq(in->opcode, S("transpose")) || str_eq(in->opcode, S("copy")) ||
        str_eq(in->opcode, S("reshape")) || str_eq(in->opcode, S("dynamic-reshape")))
        return S("data formatting");
    if (str_eq(in->opcode, S("fusion"))) {
        if (str_eq(in->fusion_kind, S("kLoop")))
            return S("loop fusion");
        if (str_eq(in->fusion_kind, S("kInput")))
            return S("input fusion");
        if (str_eq(in->fusion_kind, S("kOutput")))
            return S("output fusion");
        return S("custom fusion");
    }
    if (in->is_host_transfer) {
        static const struct {
            str opcode, category;
        } host[] = {{STR_INIT("send"), STR_INIT("host send")},
                    {STR_INIT("send-done"), STR_INIT("host send-done")},
                    {STR_INIT("recv"), STR_INIT("host recv")},
                    {STR_INIT("recv-done"), STR_INIT("host recv-done")}};
        for (size_t i = 0; i < sizeof host / sizeof *host; i++)
            if (str_eq(in->opcode, host[i].opcode))
                return host[i].category;
    }
    return hlo_is_elementwise(in->opcode) ? S("non-fusion elementwise") : in->opcode;
}

#define STACK_FRAMES_MAX 256

str hlo_stack(const struct hlo_module *m, const struct hlo_instruction *in, struct arena *a)
{
    str text = {0};
    int64_t id = in->stack_frame_id;
    for (unsigned depth = 0; depth < STACK_FRAMES_MAX && id > 0 && id <= m->n_frames; depth++) {
        const struct hlo_frame *f = &m->frames[id - 1];
        text = arena_printf(a, "%.*s%.*s:%lld:%lld\n", STR_ARG(text), STR_ARG(f->file),
                            (long long)f->line, (long long)f->column);
        id = f->parent;
    }
    return text;
}

void hlo_module_release(struct hlo_module *m)
{
    map_u64_u32_release(&m->instruction_by_id);
    map_str_u32_release(&m->instruction_by_name);
    map_u64_u32_release(&m->computation_by_id);
}
