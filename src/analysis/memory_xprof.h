/* SPDX-License-Identifier: Apache-2.0 */
/* XProf's JSON of memory_profile: its MemoryProfile message (memory_profile.proto), numbers of 64 bits as
 * text. Of several hosts an allocator is called host/allocator. */
#ifndef TACHO_ANALYSIS_MEMORY_XPROF_H
#define TACHO_ANALYSIS_MEMORY_XPROF_H

#include "analysis/tool.h"

bool memory_xprof_print(const struct tool_request *r, struct arena *a, struct buf *out,
                        struct err *e);

#endif
