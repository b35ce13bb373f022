/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets in a trace. Profiles carry whole environments, command lines and headers with tokens in them; nothing
 * that is shown, exported or reported may hold one. The reader masks a trace as soon as it is loaded, and texts
 * of single events are masked where they are decoded (trace_event_stats, trace_pick): whoever has the trace has
 * no secret. The file itself is left as it is. Rules: model/secrets.h. Thread: as the loading of the trace. */
#ifndef TACHO_MODEL_TRACE_MASK_H
#define TACHO_MODEL_TRACE_MASK_H

#include "model/trace.h"

/* Masks all text that the trace holds and counts it in its notes. Doing so again changes nothing. */
void trace_mask(struct trace *t);
/* Masks stats in place; what is new lives in a. Returns how many were masked. */
uint64_t trace_mask_stats(struct trace_stats stats, struct arena *a);

#endif
