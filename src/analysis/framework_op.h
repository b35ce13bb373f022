/* SPDX-License-Identifier: Apache-2.0 */
/* Names of framework operations, as XLA and TensorFlow write them into profiles:
 * "a/b/MatMul:MatMul", "jit(f)/jvp(g)/dot_general:", "Iterator::Map::TFRecord".
 * Pure functions of text; results borrow it. */
#ifndef TACHO_ANALYSIS_FRAMEWORK_OP_H
#define TACHO_ANALYSIS_FRAMEWORK_OP_H

#include "base/str.h"

enum framework_kind {
    FRAMEWORK_UNKNOWN = 0,
    FRAMEWORK_TENSORFLOW,
    FRAMEWORK_JAX,
    FRAMEWORK_DATASET,
    FRAMEWORK_TORCH, /* "aten::mm" */
    FRAMEWORK_COPY_H2D,
    FRAMEWORK_COPY_D2H,
    FRAMEWORK_COPY_D2D,
    FRAMEWORK_COPY_H2H,
};

struct framework_op {
    enum framework_kind kind;
    str name;
    str type; /* "Unknown" when it cannot be told */
};

struct framework_op framework_op_parse(str full_name);

/* Copies between host and devices, by the name of the event. XProf knows "MemcpyHtoD" only;
 * recorders write "MemcpyH2D" too. */
enum framework_kind copy_kind(str event_name);

#endif
