/* SPDX-License-Identifier: Apache-2.0 */
/* The whole profile and each of its steps set against the limits of the device: what roofline_model
 * and its kin show beside the operations of the op_db.
 *
 *     struct roofline f;
 *     if (!roofline_of(&f, profile, a, e)) return false;
 *     ... f.db.ops, f.whole, f.steps ...
 *     roofline_release(&f);
 *
 * Feeds are infeed and outfeed, in which a TPU core waits for its host or hands it data: a part's
 * `work` leaves them out and `all` has them; so do the times. Time is that of all cores together: a
 * core has a step for as long as the core that needs longest. Source: XProf's
 * op_stats_to_roofline_model. Picoseconds; everything lives in the arena. */
#ifndef TACHO_ANALYSIS_ROOFLINE_H
#define TACHO_ANALYSIS_ROOFLINE_H

#include "analysis/op_rates.h"

struct roofline_part {           /* the whole profile, or a step */
    const struct op_step *step;  /* NULL: the whole */
    uint64_t time_ps, feeds_ps;  /* the latter is in the former */
    struct op_metrics all, work; /* sums: rates, bytes, stalls */
};

struct roofline {
    struct op_db db;
    struct roofline_part whole;
    struct roofline_part *steps; /* in the order of time */
    uint32_t n_steps;
    uint32_t n_devices; /* cores that ran something or could have; at least 1 */
    bool has_megacore, has_merged_vmem;
    double clock_scale; /* nominal clock over the clock that was; 0 without operations */
};

enum roofline_feeds { ROOFLINE_WITHOUT_FEEDS = 0, ROOFLINE_WITH_FEEDS };

static inline uint64_t roofline_time_ps(const struct roofline_part *p, enum roofline_feeds f)
{
    return f == ROOFLINE_WITH_FEEDS || p->feeds_ps > p->time_ps ? p->time_ps
                                                                : p->time_ps - p->feeds_ps;
}
static inline const struct op_metrics *roofline_sum(const struct roofline_part *p,
                                                    enum roofline_feeds f)
{
    return f == ROOFLINE_WITH_FEEDS ? &p->all : &p->work;
}
static inline bool roofline_shows(const struct op_metrics *m, enum roofline_feeds f)
{
    return f == ROOFLINE_WITH_FEEDS || !op_is_feed(m);
}

MUST_CHECK bool roofline_of(struct roofline *out, const struct profile *p, struct arena *a,
                            struct err *e);
void roofline_release(struct roofline *f);
/* The device has that memory, and its peak is known. VMEM that is not one memory with CMEM is none to XProf. */
bool roofline_has_memory(const struct roofline *f, enum op_resource r);

/* Rows of XProf's roofline_model JSON, both tables of it. */
struct json;
struct buf;
void roofline_xprof(const struct roofline *f, struct json *j, struct buf *scratch);

#endif
