/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers what each device spent in collectives, for collective_match.c. Not for others. */
#ifndef TACHO_ANALYSIS_COLLECTIVE_COLLECT_H
#define TACHO_ANALYSIS_COLLECTIVE_COLLECT_H

#include "analysis/collective_match.h"
#include "analysis/hlo_index.h"

struct collective_key {
    uint64_t program_id;
    str name, group;
};
static inline uint64_t collective_key_hash(struct collective_key k)
{
    return str_hash(k.name) ^ (str_hash(k.group) * 31) ^ map_hash_u64(k.program_id);
}
static inline bool collective_key_eq(struct collective_key a, struct collective_key b)
{
    return a.program_id == b.program_id && str_eq(a.name, b.name) && str_eq(a.group, b.group);
}
MAP_DEFINE(collective_map, struct collective_key, uint32_t, collective_key_hash, collective_key_eq);

/* out->devices is there; fills out->items and out->parts (with starts of the session's clock). */
MUST_CHECK bool collectives_collect(const struct profile *p, struct arena *a,
                                    struct collectives *out, struct err *e);

#endif
