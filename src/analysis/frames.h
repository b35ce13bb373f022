/* SPDX-License-Identifier: Apache-2.0 */
/* Names of host events as frames of a call stack.
 *
 * Python functions are written "$file.py:130 function" by XProf's tracer and "file.py(118): function",
 * "<built-in method …>" or "nn.Module: Linear_0" by PyTorch's. Pure functions of text. */
#ifndef TACHO_ANALYSIS_FRAMES_H
#define TACHO_ANALYSIS_FRAMES_H

#include "base/arena.h"

bool frame_is_python(str name);
/* The name without what keeps equal stacks apart, the address of an object (" at 0x7f…") and the number of
 * PyTorch's step, and with a comma for the `;` that parts frames. Borrows the name where it can. */
str frame_clean(str name, struct arena *a);

#endif
