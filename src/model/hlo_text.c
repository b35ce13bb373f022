/* SPDX-License-Identifier: Apache-2.0 */
#include "base/limits.h"
#include "model/hlo.h"

static str type_name(uint32_t type)
{
    static const char *const names[] = {
        "invalid",    "pred",       "s8",       "s16",       "s32",    "s64",
        "u8",         "u16",        "u32",      "u64",       "f16",    "f32",
        "f64",        "tuple",      "opaque",   "c64",       "bf16",   "token",
        "c128",       "f8e5m2",     "f8e4m3fn", "s4",        "u4",     "f8e4m3b11fnuz",
        "f8e5m2fnuz", "f8e4m3fnuz", "s2",       "u2",        "f8e4m3", "f8e3m4",
        "s1",         "u1",         "f4e2m1fn", "f8e8m0fnu", "buffer",
    };
    return str_from(type < sizeof names / sizeof *names ? names[type] : names[0]);
}

static void add_numbers(struct buf *b, struct hlo_numbers n, const char *separator)
{
    for (uint32_t i = 0; i < n.n; i++)
        buf_addf(b, "%s%lld", i == 0 ? "" : separator, (long long)n.items[i]);
}

static void add_layout(struct buf *b, const struct hlo_shape *s)
{
    if (s->minor_to_major.n == 0 && s->n_tiles == 0 && s->memory_space == 0)
        return;
    buf_add_char(b, '{');
    add_numbers(b, s->minor_to_major, ",");
    if (s->n_tiles > 0 || s->memory_space != 0)
        buf_add_char(b, ':');
    for (uint32_t i = 0; i < s->n_tiles; i++) {
        buf_addf(b, "%s(", i == 0 ? "T" : "");
        add_numbers(b, s->tiles[i], ",");
        buf_add_char(b, ')');
    }
    if (s->memory_space != 0)
        buf_addf(b, "S(%lld)", (long long)s->memory_space);
    buf_add_char(b, '}');
}

static void add_shape(struct buf *b, const struct hlo_shape *s)
{
    if (s->type == HLO_TUPLE) {
        buf_add_char(b, '(');
        for (uint32_t i = 0; i < s->n_tuple; i++) {
            if (i > 0)
                buf_add_str(b, S(", "));
            add_shape(b, &s->tuple[i]);
        }
        buf_add_char(b, ')');
        return;
    }
    buf_add_str(b, type_name(s->type));
    buf_add_char(b, '[');
    add_numbers(b, s->dims, ",");
    buf_add_char(b, ']');
    add_layout(b, s);
}

static void add_operands(struct buf *b, const struct hlo_module *m,
                         const struct hlo_instruction *in)
{
    for (uint32_t i = 0; i < in->operand_ids.n; i++) {
        const struct hlo_instruction *o = hlo_operand(m, in, i);
        if (i > 0)
            buf_add_str(b, S(", "));
        if (o == NULL)
            continue;
        add_shape(b, &o->shape);
        buf_addf(b, " %%%.*s", STR_ARG(o->name));
    }
}

static bool any_window(const struct hlo_instruction *in, unsigned what)
{
    for (uint32_t i = 0; i < in->n_window; i++) {
        const struct hlo_window_dim *w = &in->window[i];
        if ((what == 0 && w->stride != 1) || (what == 1 && (w->pad_low != 0 || w->pad_high != 0)) ||
            (what == 2 && w->base_dilation != 1) || (what == 3 && w->window_dilation != 1) ||
            (what == 4 && w->reversed))
            return true;
    }
    return false;
}

static void add_window(struct buf *b, const struct hlo_instruction *in)
{
    static const char *const titles[] = {
        " stride=", " pad=", " lhs_dilate=", " rhs_dilate=", " rhs_reversal="};
    buf_add_str(b, S(", window={size="));
    for (uint32_t i = 0; i < in->n_window; i++)
        buf_addf(b, "%s%lld", i == 0 ? "" : "x", (long long)in->window[i].size);
    for (unsigned what = 0; what < 5; what++) {
        if (!any_window(in, what))
            continue;
        buf_addf(b, "%s", titles[what]);
        for (uint32_t i = 0; i < in->n_window; i++) {
            const struct hlo_window_dim *w = &in->window[i];
            const char *x = i == 0 ? "" : "x";
            if (what == 1)
                buf_addf(b, "%s%lld_%lld", x, (long long)w->pad_low, (long long)w->pad_high);
            else
                buf_addf(b, "%s%lld", x,
                         (long long)(what == 0   ? w->stride
                                     : what == 2 ? w->base_dilation
                                     : what == 3 ? w->window_dilation
                                                 : w->reversed));
        }
    }
    buf_add_char(b, '}');
}

/* One of the three groups of `dim_labels`: the letters in the order of the dimensions. */
static void add_labels(struct buf *b, int64_t first, char first_letter, int64_t second,
                       char second_letter, struct hlo_numbers spatial)
{
    const int64_t n = (int64_t)spatial.n + 2;
    for (int64_t d = 0; d < n; d++) {
        if (d == first)
            buf_add_char(b, first_letter);
        else if (d == second)
            buf_add_char(b, second_letter);
        else
            for (uint32_t i = 0; i < spatial.n; i++)
                if (spatial.items[i] == d)
                    buf_addf(b, "%u", i);
    }
}

static void add_conv(struct buf *b, const struct hlo_instruction *in)
{
    const struct hlo_conv_dims *c = &in->conv;
    buf_add_str(b, S(", dim_labels="));
    add_labels(b, c->input_batch, 'b', c->input_feature, 'f', c->input_spatial);
    buf_add_char(b, '_');
    add_labels(b, c->kernel_input_feature, 'i', c->kernel_output_feature, 'o', c->kernel_spatial);
    buf_add_str(b, S("->"));
    add_labels(b, c->output_batch, 'b', c->output_feature, 'f', c->output_spatial);
    if (in->feature_group_count > 1)
        buf_addf(b, ", feature_group_count=%lld", (long long)in->feature_group_count);
    if (in->batch_group_count > 1)
        buf_addf(b, ", batch_group_count=%lld", (long long)in->batch_group_count);
}

static void add_set(struct buf *b, const char *key, struct hlo_numbers n)
{
    buf_addf(b, ", %s={", key);
    add_numbers(b, n, ",");
    buf_add_char(b, '}');
}

static void add_dot(struct buf *b, const struct hlo_instruction *in)
{
    if (in->dot.lhs_batch.n > 0)
        add_set(b, "lhs_batch_dims", in->dot.lhs_batch);
    add_set(b, "lhs_contracting_dims", in->dot.lhs_contracting);
    if (in->dot.rhs_batch.n > 0)
        add_set(b, "rhs_batch_dims", in->dot.rhs_batch);
    add_set(b, "rhs_contracting_dims", in->dot.rhs_contracting);
}

static void add_iota(struct buf *b, const struct hlo_iota *x)
{
    buf_add_str(b, S("<=["));
    add_numbers(b, x->dims, ",");
    buf_add_char(b, ']');
    if (x->dims.n > 1) {
        buf_add_str(b, S("T("));
        add_numbers(b, x->perm, ",");
        buf_add_char(b, ')');
    }
}

static void add_mesh(struct buf *b, const struct hlo_mesh *m)
{
    buf_add_str(b, S("mesh["));
    for (uint32_t i = 0; i < m->n_axes; i++) {
        buf_add_str(b, i == 0 ? S("'") : S(",'"));
        buf_add_str(b, m->axes[i].name);
        buf_addf(b, "'=%lld", (long long)m->axes[i].size);
    }
    buf_add_char(b, ']');
    if (m->device_ids.n > 0 || m->order.dims.n > 0) {
        buf_add_str(b, S(", device_ids=("));
        add_numbers(b, m->device_ids, ",");
        if (m->order.dims.n > 0)
            add_iota(b, &m->order);
        buf_add_char(b, ')');
    }
    buf_add_str(b, S(" {"));
    for (uint32_t i = 0; i < m->n_refs; i++) {
        const struct hlo_axis_ref *r = &m->refs[i];
        buf_add_str(b, i == 0 ? S("'") : S(",'"));
        if (r->axis >= 0 && r->axis < m->n_axes)
            buf_add_str(b, m->axes[r->axis].name);
        buf_add_char(b, '\'');
        if (r->size > 0)
            buf_addf(b, ":(%lld)%lld", (long long)r->pre_size, (long long)r->size);
    }
    buf_add_char(b, '}');
}

static void add_groups(struct buf *b, const struct hlo_groups *g)
{
    buf_add_str(b, S(", replica_groups="));
    if (g != NULL && g->mesh != NULL) {
        add_mesh(b, g->mesh);
        return;
    }
    if (g != NULL && g->n > 0) {
        buf_addf(b, "[%lld,%lld]", (long long)g->n, (long long)g->size);
        add_iota(b, &g->iota);
        return;
    }
    buf_add_char(b, '{');
    for (uint32_t i = 0; g != NULL && i < g->n_lists; i++) {
        buf_add_str(b, i == 0 ? S("{") : S(",{"));
        add_numbers(b, g->lists[i], ",");
        buf_add_char(b, '}');
    }
    buf_add_char(b, '}');
}

static void add_collective(struct buf *b, const struct hlo_instruction *in)
{
    if (in->channel_id > 0)
        buf_addf(b, ", channel_id=%lld", (long long)in->channel_id);
    add_groups(b, in->groups);
    const bool gather = str_starts(in->opcode, S("all-gather"));
    if (gather)
        add_set(b, "dimensions", in->dimensions);
    if (in->use_global_device_ids)
        buf_add_str(b, S(", use_global_device_ids=true"));
    if (!gather && in->dimensions.n > 0)
        add_set(b, "dimensions", in->dimensions);
}

static void add_custom_call(struct buf *b, const struct hlo_instruction *in)
{
    static const char *const api[] = {"API_VERSION_UNSPECIFIED", "", "API_VERSION_STATUS_RETURNING",
                                      "API_VERSION_STATUS_RETURNING_UNIFIED",
                                      "API_VERSION_TYPED_FFI"};
    if (in->n_window > 0)
        add_window(b, in);
    if (in->has_conv)
        add_conv(b, in);
    buf_addf(b, ", custom_call_target=\"%.*s\"", STR_ARG(in->custom_call_target));
    if (in->api_version != 1 && in->api_version >= 0 && in->api_version < 5)
        buf_addf(b, ", api_version=%s", api[in->api_version]);
}

/* What the opcode has beside its operands, up to the called computations. */
static void add_attributes(struct buf *b, const struct hlo_instruction *in)
{
    const str op = in->opcode;
    if (str_starts(op, S("all-")) || str_starts(op, S("reduce-scatter")))
        add_collective(b, in);
    else if (str_eq(op, S("custom-call")))
        add_custom_call(b, in);
    else if (str_eq(op, S("dot")))
        add_dot(b, in);
    else if (str_eq(op, S("convolution"))) {
        add_window(b, in);
        add_conv(b, in);
    } else if (str_eq(op, S("get-tuple-element")))
        buf_addf(b, ", index=%lld", (long long)in->tuple_index);
    else if (str_eq(op, S("compare")))
        buf_addf(b, ", direction=%.*s", STR_ARG(in->comparison_direction));
    else if (str_starts(op, S("send")) || str_starts(op, S("recv"))) {
        buf_addf(b, ", channel_id=%lld", (long long)in->channel_id);
        if (in->is_host_transfer)
            buf_add_str(b, S(", is_host_transfer=true"));
    } else if (in->dimensions.n > 0 || str_eq(op, S("broadcast")))
        add_set(b, "dimensions", in->dimensions);
}

static void add_called(struct buf *b, const struct hlo_module *m, const struct hlo_instruction *in)
{
    const bool fusion = str_eq(in->opcode, S("fusion"));
    if (fusion)
        buf_addf(b, ", kind=%.*s", STR_ARG(in->fusion_kind));
    for (uint32_t i = 0; i < in->called_ids.n; i++) {
        const struct hlo_computation *c = hlo_computation_by_id(m, in->called_ids.items[i]);
        const char *key = "to_apply";
        if (fusion)
            key = "calls";
        else if (str_eq(in->opcode, S("while")))
            key = i == 0 ? "body" : "condition";
        if (c != NULL)
            buf_addf(b, ", %s=%%%.*s", key, STR_ARG(c->name));
    }
}

bool hlo_text(const struct hlo_module *m, const struct hlo_instruction *in, struct arena *a,
              str *out)
{
    struct buf b;
    buf_init(&b, LIMIT_XSPACE_NAME_BYTES);
    buf_addf(&b, "%%%.*s = ", STR_ARG(in->name));
    add_shape(&b, &in->shape);
    buf_addf(&b, " %.*s(", STR_ARG(in->opcode));
    if (str_eq(in->opcode, S("parameter")))
        buf_addf(&b, "%lld", (long long)in->parameter_number);
    add_operands(&b, m, in);
    buf_add_char(&b, ')');
    add_attributes(&b, in);
    add_called(&b, m, in);
    *out = arena_str(a, buf_str(&b));
    buf_release(&b);
    return out->p != NULL;
}
