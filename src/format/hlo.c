/* SPDX-License-Identifier: Apache-2.0 */
#include "format/hlo.h"

#include "format/hlo_inside.h"

/* Shapes nest through tuples; XLA itself has no deeper ones. */
#define SHAPE_DEPTH_MAX 64

struct parser {
    struct arena *arena;
    struct err *err;
    struct hlo_module *module;
    uint32_t computations_capacity, instructions_capacity, frames_capacity;
    struct index { /* file names, function names, locations of the stack frames */
        str *files, *functions;
        struct hlo_frame *places;
        uint32_t n_files, n_functions, n_places;
        uint32_t files_capacity, functions_capacity, places_capacity;
    } index;
};

static bool full(struct parser *p)
{
    return arena_full(p->arena, p->err);
}

static struct wire inside(const struct wire *w)
{
    return wire_from(w->bytes, wire_bytes_pos(w));
}

static bool parse_tile(struct parser *p, struct wire w, struct hlo_numbers *out)
{
    while (wire_next(&w))
        if (w.field == 1 && !hlo_take_numbers(p->arena, &w, out, p->err))
            return false;
    return wire_ok(&w, p->err);
}

static bool parse_layout(struct parser *p, struct wire w, struct hlo_shape *out, uint32_t *capacity)
{
    while (wire_next(&w)) {
        if (w.field == 1 && !hlo_take_numbers(p->arena, &w, &out->minor_to_major, p->err))
            return false;
        if (w.field == 6 && w.type == WIRE_LEN) {
            if (!ARENA_PUSH(p->arena, out->tiles, out->n_tiles, *capacity))
                return full(p);
            if (!parse_tile(p, inside(&w), &out->tiles[out->n_tiles - 1]))
                return false;
        }
        if (w.field == 8)
            out->memory_space = (int64_t)w.number;
    }
    return wire_ok(&w, p->err);
}

static bool parse_shape(struct parser *p, struct wire w, unsigned depth, struct hlo_shape *out)
{
    uint32_t tuple_capacity = 0, tiles_capacity = 0;
    if (depth > SHAPE_DEPTH_MAX)
        return err_at(p->err, ERR_LIMIT, w.base, "shape nested deeper than %d", SHAPE_DEPTH_MAX);
    while (wire_next(&w)) {
        bool ok = true;
        if (w.field == 2)
            out->type = (uint32_t)w.number;
        else if (w.field == 3)
            ok = hlo_take_numbers(p->arena, &w, &out->dims, p->err);
        else if (w.field == 4 && w.type == WIRE_LEN)
            ok = ARENA_PUSH(p->arena, out->tuple, out->n_tuple, tuple_capacity)
                     ? parse_shape(p, inside(&w), depth + 1, &out->tuple[out->n_tuple - 1])
                     : full(p);
        else if (w.field == 5 && w.type == WIRE_LEN)
            ok = parse_layout(p, inside(&w), out, &tiles_capacity);
        if (!ok)
            return false;
    }
    return wire_ok(&w, p->err);
}

static bool parse_metadata(struct parser *p, struct wire w, struct hlo_instruction *in)
{
    while (wire_next(&w))
        switch (w.field) {
        case 1:
            in->op_type = w.bytes;
            break;
        case 2:
            in->op_name = w.bytes;
            break;
        case 3:
            in->source_file = w.bytes;
            break;
        case 4:
            in->source_line = (int64_t)w.number;
            break;
        case 12:
            in->deduplicated_name = w.bytes;
            break;
        case 15:
            in->stack_frame_id = (int64_t)w.number;
            break;
        default:
            break;
        }
    return wire_ok(&w, p->err);
}

static bool parse_window(struct parser *p, struct wire w, struct hlo_instruction *in)
{
    uint32_t capacity = in->n_window;
    while (wire_next(&w)) {
        if (w.field != 1 || w.type != WIRE_LEN)
            continue;
        if (!ARENA_PUSH(p->arena, in->window, in->n_window, capacity))
            return full(p);
        struct hlo_window_dim *d = &in->window[in->n_window - 1];
        struct wire v = inside(&w);
        while (wire_next(&v))
            switch (v.field) {
            case 1:
                d->size = (int64_t)v.number;
                break;
            case 2:
                d->stride = (int64_t)v.number;
                break;
            case 3:
                d->pad_low = (int64_t)v.number;
                break;
            case 4:
                d->pad_high = (int64_t)v.number;
                break;
            case 5:
                d->window_dilation = (int64_t)v.number;
                break;
            case 6:
                d->base_dilation = (int64_t)v.number;
                break;
            case 7:
                d->reversed = v.number != 0;
                break;
            default:
                break;
            }
        if (!wire_ok(&v, p->err))
            return false;
    }
    return wire_ok(&w, p->err);
}

static bool parse_conv(struct parser *p, struct wire w, struct hlo_conv_dims *c)
{
    while (wire_next(&w)) {
        bool ok = true;
        switch (w.field) {
        case 3:
            c->kernel_input_feature = (int64_t)w.number;
            break;
        case 4:
            c->kernel_output_feature = (int64_t)w.number;
            break;
        case 6:
            ok = hlo_take_numbers(p->arena, &w, &c->kernel_spatial, p->err);
            break;
        case 7:
            c->input_batch = (int64_t)w.number;
            break;
        case 8:
            c->input_feature = (int64_t)w.number;
            break;
        case 9:
            c->output_batch = (int64_t)w.number;
            break;
        case 10:
            c->output_feature = (int64_t)w.number;
            break;
        case 11:
            ok = hlo_take_numbers(p->arena, &w, &c->input_spatial, p->err);
            break;
        case 12:
            ok = hlo_take_numbers(p->arena, &w, &c->output_spatial, p->err);
            break;
        default:
            break;
        }
        if (!ok)
            return false;
    }
    return wire_ok(&w, p->err);
}

static bool parse_dot(struct parser *p, struct wire w, struct hlo_dot_dims *d)
{
    struct hlo_numbers *const lists[] = {&d->lhs_contracting, &d->rhs_contracting, &d->lhs_batch,
                                         &d->rhs_batch};
    while (wire_next(&w))
        if (w.field >= 1 && w.field <= 4 &&
            !hlo_take_numbers(p->arena, &w, lists[w.field - 1], p->err))
            return false;
    return wire_ok(&w, p->err);
}

/* Fields that are messages or lists. */
static bool parse_part(struct parser *p, const struct wire *w, struct hlo_instruction *in)
{
    if (w->field == 14)
        return hlo_take_numbers(p->arena, w, &in->dimensions, p->err);
    if (w->field == 36)
        return hlo_take_numbers(p->arena, w, &in->operand_ids, p->err);
    if (w->field == 38)
        return hlo_take_numbers(p->arena, w, &in->called_ids, p->err);
    if (w->type != WIRE_LEN)
        return true;
    switch (w->field) {
    case 3:
        return parse_shape(p, inside(w), 0, &in->shape);
    case 7:
        return parse_metadata(p, inside(w), in);
    case 15:
        return parse_window(p, inside(w), in);
    case 16:
        in->has_conv = true;
        return parse_conv(p, inside(w), &in->conv);
    case 30:
        in->has_dot = true;
        return parse_dot(p, inside(w), &in->dot);
    case 49: /* until 2024: groups one by one */
    case 87:
    case 92:
    case 93:
        return hlo_parse_groups(p->arena, w, &in->groups, p->err);
    default:
        return true;
    }
}

static bool parse_instruction(struct parser *p, struct wire w, struct hlo_instruction *in)
{
    while (wire_next(&w)) {
        switch (w.field) {
        case 1:
            in->name = w.bytes;
            break;
        case 2:
            in->opcode = w.bytes;
            break;
        case 9:
            in->parameter_number = (int64_t)w.number;
            break;
        case 11:
            in->fusion_kind = w.bytes;
            break;
        case 13:
            in->tuple_index = (int64_t)w.number;
            break;
        case 26:
            in->channel_id = (int64_t)w.number;
            break;
        case 28:
            in->custom_call_target = w.bytes;
            break;
        case 35:
            in->id = (int64_t)w.number;
            break;
        case 47:
            in->is_host_transfer = w.number != 0;
            break;
        case 50:
            in->feature_group_count = (int64_t)w.number;
            break;
        case 58:
            in->batch_group_count = (int64_t)w.number;
            break;
        case 63:
            in->comparison_direction = w.bytes;
            break;
        case 71:
            in->use_global_device_ids = w.number != 0;
            break;
        case 77:
            in->api_version = (int64_t)w.number;
            break;
        default:
            if (!parse_part(p, &w, in))
                return false;
        }
    }
    return wire_ok(&w, p->err);
}

static bool parse_computation(struct parser *p, struct wire w)
{
    struct hlo_module *m = p->module;
    if (!ARENA_PUSH(p->arena, m->computations, m->n_computations, p->computations_capacity))
        return full(p);
    struct hlo_computation c = {.first = m->n_instructions};
    while (wire_next(&w)) {
        switch (w.field) {
        case 1:
            c.name = w.bytes;
            break;
        case 5:
            c.id = (int64_t)w.number;
            break;
        case 6:
            c.root_id = (int64_t)w.number;
            break;
        case 7:
            c.is_fusion = w.number != 0;
            break;
        default:
            break;
        }
        if (w.field != 2 || w.type != WIRE_LEN)
            continue;
        if (!ARENA_PUSH(p->arena, m->instructions, m->n_instructions, p->instructions_capacity))
            return full(p);
        if (!parse_instruction(p, inside(&w), &m->instructions[m->n_instructions - 1]))
            return false;
    }
    c.n = m->n_instructions - c.first;
    m->computations[m->n_computations - 1] = c;
    return wire_ok(&w, p->err);
}

static str name_at(const str *names, uint32_t n, int64_t id)
{
    return id > 0 && id <= n ? names[id - 1] : (str){0};
}

static bool parse_location(struct parser *p, struct wire w)
{
    struct index *x = &p->index;
    int64_t file = 0, function = 0;
    struct hlo_frame f = {0};
    while (wire_next(&w))
        switch (w.field) {
        case 1:
            file = (int64_t)w.number;
            break;
        case 2:
            function = (int64_t)w.number;
            break;
        case 3:
            f.line = (int64_t)w.number;
            break;
        case 4:
            f.column = (int64_t)w.number;
            break;
        default:
            break;
        }
    f.file = name_at(x->files, x->n_files, file);
    f.function = name_at(x->functions, x->n_functions, function);
    if (!ARENA_PUSH(p->arena, x->places, x->n_places, x->places_capacity))
        return full(p);
    x->places[x->n_places - 1] = f;
    return wire_ok(&w, p->err);
}

static bool parse_frame(struct parser *p, struct wire w)
{
    struct hlo_module *m = p->module;
    int64_t place = 0, parent = 0;
    while (wire_next(&w)) {
        if (w.field == 1)
            place = (int64_t)w.number;
        else if (w.field == 2)
            parent = (int64_t)w.number;
    }
    if (!ARENA_PUSH(p->arena, m->frames, m->n_frames, p->frames_capacity))
        return full(p);
    if (place > 0 && place <= p->index.n_places)
        m->frames[m->n_frames - 1] = p->index.places[place - 1];
    m->frames[m->n_frames - 1].parent = parent;
    return wire_ok(&w, p->err);
}

/* Writers put names, then locations, then frames: fields 1 to 4 in this order. */
static bool parse_frames(struct parser *p, struct wire w)
{
    struct index *x = &p->index;
    while (wire_next(&w)) {
        bool ok = true;
        if (w.type != WIRE_LEN)
            continue;
        if (w.field == 1) {
            ok = ARENA_PUSH(p->arena, x->files, x->n_files, x->files_capacity) || full(p);
            if (ok)
                x->files[x->n_files - 1] = w.bytes;
        } else if (w.field == 2) {
            ok = ARENA_PUSH(p->arena, x->functions, x->n_functions, x->functions_capacity) ||
                 full(p);
            if (ok)
                x->functions[x->n_functions - 1] = w.bytes;
        } else if (w.field == 3)
            ok = parse_location(p, inside(&w));
        else if (w.field == 4)
            ok = parse_frame(p, inside(&w));
        if (!ok)
            return false;
    }
    return wire_ok(&w, p->err);
}

static bool parse_module(struct parser *p, struct wire w)
{
    struct hlo_module *m = p->module;
    while (wire_next(&w)) {
        bool ok = true;
        switch (w.field) {
        case 1:
            m->name = w.bytes;
            break;
        case 3:
            ok = w.type != WIRE_LEN || parse_computation(p, inside(&w));
            break;
        case 5:
            m->id = (int64_t)w.number;
            break;
        case 6:
            m->entry_id = (int64_t)w.number;
            break;
        case 17:
            ok = w.type != WIRE_LEN || parse_frames(p, inside(&w));
            break;
        default:
            break;
        }
        if (!ok)
            return false;
    }
    return wire_ok(&w, p->err);
}

/* Some writers repeat the computation in the high half of an instruction's id and leave it out of
 * the references; both forms are found by the id as written. */
static void index_module(struct hlo_module *m)
{
    for (uint32_t i = 0; i < m->n_computations; i++)
        *map_u64_u32_put(&m->computation_by_id, (uint64_t)m->computations[i].id) = i;
    for (uint32_t i = 0; i < m->n_instructions; i++) {
        *map_u64_u32_put(&m->instruction_by_id, (uint64_t)m->instructions[i].id) = i;
        *map_str_u32_put(&m->instruction_by_name, m->instructions[i].name) = i;
    }
}

bool hlo_parse(str bytes, uint64_t pos, struct arena *a, struct hlo_module *out, struct err *e)
{
    struct parser p = {.arena = a, .err = e, .module = out};
    *out = (struct hlo_module){0};
    struct wire w = wire_from(bytes, pos);
    while (wire_next(&w))
        if (w.field == 1 && w.type == WIRE_LEN && !parse_module(&p, inside(&w)))
            return err_wrap(e, "HLO module");
    if (!wire_ok(&w, e))
        return err_wrap(e, "HLO module");
    index_module(out);
    return true;
}
