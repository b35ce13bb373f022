/* SPDX-License-Identifier: Apache-2.0 */
/* An HLO module: the program that a profile's operations come from.
 *
 *   hlo_module ─ computations ─ instructions ─ shape, operands, called computations, metadata
 *
 * Read by format/hlo.h from the HloProto that profilers keep beside a trace. Only what analysis
 * needs is kept. Ids are those of the proto; instructions are found by id or by name. All text and
 * arrays borrow the proto's bytes or live in the arena given to the reader.
 *
 * Source: xla/service/hlo.proto, xla/xla_data.proto. Read only once loaded, any thread. */
#ifndef TACHO_MODEL_HLO_H
#define TACHO_MODEL_HLO_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"

enum hlo_type {
    HLO_PRED = 1,
    HLO_S8,
    HLO_S16,
    HLO_S32,
    HLO_S64,
    HLO_U8,
    HLO_U16,
    HLO_U32,
    HLO_U64,
    HLO_F16,
    HLO_F32,
    HLO_F64,
    HLO_TUPLE,
    HLO_OPAQUE,
    HLO_C64,
    HLO_BF16,
    HLO_TOKEN,
    HLO_C128,
};

struct hlo_numbers {
    const int64_t *items;
    uint32_t n;
};

struct hlo_shape {
    uint32_t type; /* enum hlo_type, or a newer number */
    struct hlo_numbers dims;
    struct hlo_shape *tuple;
    uint32_t n_tuple;
    struct hlo_numbers minor_to_major;
    struct hlo_numbers *tiles;
    uint32_t n_tiles;
    int64_t memory_space;
};

struct hlo_window_dim {
    int64_t size, stride, pad_low, pad_high, window_dilation, base_dilation;
    bool reversed;
};

struct hlo_conv_dims {
    int64_t input_batch, input_feature, kernel_input_feature, kernel_output_feature;
    int64_t output_batch, output_feature;
    struct hlo_numbers input_spatial, kernel_spatial, output_spatial;
};

struct hlo_dot_dims {
    struct hlo_numbers lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;
};

/* Axes of arrays of devices; more hold no sense, as each real one is of 2 or more. */
#define HLO_AXES_MAX 64

/* Numbers 0, 1, … laid out row by row in an array of `dims`, whose axes then stand in the order `perm`. */
struct hlo_iota {
    struct hlo_numbers dims, perm; /* no perm: as they are */
};

struct hlo_mesh_axis {
    str name;
    int64_t size;
};

struct hlo_axis_ref {             /* an axis of a mesh, or the part [pre_size, size, rest] of it */
    int64_t axis, pre_size, size; /* size 0: all of it */
};

struct hlo_mesh {
    struct hlo_mesh_axis *axes;
    uint32_t n_axes;
    struct hlo_axis_ref *refs; /* over these a collective goes */
    uint32_t n_refs;
    struct hlo_numbers device_ids; /* by place in the mesh; else */
    struct hlo_iota order;         /* this gives them; else place 0 is device 0 … */
};

/* Who takes part in a collective together: as lists, or in a short form that is never written out (a few bytes of a
 * file can stand for 2^60 devices). */
struct hlo_groups {
    struct hlo_numbers *lists;
    uint32_t n_lists, lists_capacity;
    int64_t n, size; /* of the short form; 0: it holds no sense */
    struct hlo_iota
        iota; /* places (devices, or places in the mesh) as they follow, `size` a group */
    struct hlo_mesh *mesh;
};

struct hlo_instruction {
    str name, opcode;
    struct hlo_shape shape;
    int64_t id;
    struct hlo_numbers operand_ids, called_ids;
    str op_name, op_type, source_file, deduplicated_name;
    int64_t source_line, stack_frame_id;
    str fusion_kind; /* "kLoop" … */
    str custom_call_target;
    str comparison_direction; /* "LT" … */
    int64_t api_version;      /* of a custom call */
    int64_t parameter_number, tuple_index, channel_id;
    struct hlo_numbers dimensions;
    struct hlo_groups *groups; /* NULL: not given */
    struct hlo_window_dim *window;
    uint32_t n_window;
    struct hlo_conv_dims conv;
    struct hlo_dot_dims dot;
    int64_t feature_group_count, batch_group_count;
    bool has_conv, has_dot, is_host_transfer, use_global_device_ids;
};

struct hlo_computation {
    str name;
    int64_t id, root_id;
    bool is_fusion;
    uint32_t first, n; /* module.instructions[first …] */
};

struct hlo_frame { /* one place in the program's source */
    str file, function;
    int64_t line, column;
    int64_t parent; /* frame id, 0 = outermost */
};

struct hlo_module {
    str name;
    int64_t id;
    int64_t entry_id;
    struct hlo_computation *computations;
    uint32_t n_computations;
    struct hlo_instruction *instructions;
    uint32_t n_instructions;
    struct hlo_frame *frames; /* frames[id - 1] */
    uint32_t n_frames;
    struct map_u64_u32 instruction_by_id; /* to an index */
    struct map_str_u32 instruction_by_name;
    struct map_u64_u32 computation_by_id;
};

/* NULL when there is none. */
const struct hlo_instruction *hlo_find(const struct hlo_module *m, str name);
const struct hlo_instruction *hlo_by_id(const struct hlo_module *m, int64_t id);
const struct hlo_computation *hlo_computation_by_id(const struct hlo_module *m, int64_t id);
const struct hlo_instruction *hlo_operand(const struct hlo_module *m,
                                          const struct hlo_instruction *in, uint32_t index);
/* The computation that a fusion wraps, or NULL. */
const struct hlo_computation *hlo_fused(const struct hlo_module *m,
                                        const struct hlo_instruction *in);

/* Bits of one element; 0 for tuples, tokens and unknown types. */
unsigned hlo_type_bits(uint32_t type);
/* Of all leaves. Saturate at INT64_MAX: sizes come from a file. */
int64_t hlo_shape_elements(const struct hlo_shape *s);
int64_t hlo_shape_bytes(const struct hlo_shape *s);

/* Groups of a collective; NULL or empty ones are all devices, whose number is not known. */
int64_t hlo_groups_count(const struct hlo_groups *g);          /* 0 not known */
int64_t hlo_group_size(const struct hlo_groups *g, int64_t i); /* 0 not known */
int64_t hlo_groups_largest(const struct hlo_groups *g); /* devices of the largest; 0 not known */
int64_t hlo_groups_devices(const struct hlo_groups *g); /* of all; 0 not known */
/* False: the device is in none. */
bool hlo_group_of(const struct hlo_groups *g, int64_t device, int64_t *group);
/* Whether the layout holds sense, and how many numbers it orders. */
bool hlo_iota_numbers(const struct hlo_iota *x, int64_t *out);

bool hlo_is_elementwise(str opcode);
/* XLA's word for what kind of operation it is: "loop fusion", "data formatting", the opcode … */
str hlo_category(const struct hlo_module *m, const struct hlo_instruction *in);

/* One line of HLO text, as XLA prints it for profilers: `%add.1 = f32[4]{0} add(f32[4]{0} %a, …)`.
 * False only beyond the arena's cap. */
bool hlo_text(const struct hlo_module *m, const struct hlo_instruction *in, struct arena *a,
              str *out);
/* The line of the program's source that the instruction comes from: its own, else that of its innermost frame, which
 * is all that newer programs keep. An empty file: not known. */
void hlo_source(const struct hlo_module *m, const struct hlo_instruction *in, str *file,
                int64_t *line);
/* Where the instruction comes from, "file:line:column" a line, innermost first. */
str hlo_stack(const struct hlo_module *m, const struct hlo_instruction *in, struct arena *a);

void hlo_module_release(struct hlo_module *m); /* the maps; arrays belong to the arena */

#endif
