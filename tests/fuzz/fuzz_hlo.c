/* SPDX-License-Identifier: Apache-2.0 */
/* An HLO module: read, each instruction printed, sorted into its category and costed, fusions opened. */
#include "analysis/cost.h"
#include "format/hlo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void walk(const struct hlo_module *m, struct arena *a)
{
    for (uint32_t i = 0; i < m->n_instructions; i++) {
        const struct hlo_instruction *in = &m->instructions[i];
        const struct arena_mark mark = arena_mark(a);
        str text = {0};
        const bool printed = hlo_text(m, in, a, &text);
        must(!printed || str_starts(text, S("%")));
        hlo_stack(m, in, a);
        int64_t group = 0;
        for (int64_t d = -1; d < 9; d++)
            must(!hlo_group_of(in->groups, d, &group) || hlo_group_size(in->groups, group) > 0);
        must(hlo_groups_devices(in->groups) >= hlo_groups_largest(in->groups));
        hlo_category(m, in);
        must(hlo_shape_bytes(&in->shape) >= 0 && hlo_shape_elements(&in->shape) >= 0);
        must(in->name.n == 0 || hlo_find(m, in->name) != NULL);
        const struct op_cost c = cost_of(m, in);
        must(!c.known || (c.flops >= 0 && c.device_flops >= 0 && c.bytes >= 0 && c.hbm_read >= 0 &&
                          c.hbm_write >= 0));
        const struct hlo_computation *body = hlo_fused(m, in);
        must(body == NULL ||
             (body->first <= m->n_instructions && body->n <= m->n_instructions - body->first));
        arena_reset(a, mark);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct hlo_module m;
    struct err e = {0};
    arena_init(&a, "fuzz", 64u << 20);
    if (hlo_parse((str){(const char *)data, n}, 0, &a, &m, &e)) {
        walk(&m, &a);
        hlo_module_release(&m);
    } else {
        must(e.code != ERR_NONE);
    }
    arena_release(&a);
    return 0;
}
