/* SPDX-License-Identifier: Apache-2.0 */
/* Metric series of a run: which there are, and one of them in as few points as asked for. Every
 * minimum and maximum survives: a point is a bucket with min, mean and max. What is compacted comes
 * from blocks (store/block.h), at the level that suits the number of points; what is newer from
 * batches. Thread: any. */
#ifndef TACHO_SERVER_SERIES_H
#define TACHO_SERVER_SERIES_H

#include "server/server_inside.h"

struct series_request {
    str name;            /* whole, labels too */
    uint32_t max_points; /* of each series */
    bool has_from, has_to;
    int64_t from_ns, to_ns; /* wall */
};

/* {"metrics":[…]} */
MUST_CHECK bool series_put_list(struct server *s, str run, struct arena *a, struct json *j,
                                struct err *e);
/* {"name","unit","x","series":[…],"seconds_per_point"}; ERR_NOT_FOUND when no process has it. */
MUST_CHECK bool series_put_points(struct server *s, str run, const struct series_request *r,
                                  struct arena *a, struct json *j, struct err *e);

#endif
