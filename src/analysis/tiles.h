/* SPDX-License-Identifier: Apache-2.0 */
/* What the trace view asks for, as JSON (docs/formats/api.md, routes sessions/{s}/trace…).
 *
 * Times are picoseconds since the session's origin: every target's clock shifted onto it. A tile is
 * 1,024 buckets of 2^level ps. Nothing vanishes: events shorter than a bucket that share one become
 * a cell (bucket, coverage, count, name that covers most of it, depth). A tile that would be too
 * large is answered with wider buckets: `bucket_ps` of the answer says which.
 *
 * Parameters come as text from outside and are checked here (ERR_USAGE, ERR_NOT_FOUND).
 * Thread: one at a time per profile. */
#ifndef TACHO_ANALYSIS_TILES_H
#define TACHO_ANALYSIS_TILES_H

#include "analysis/tool.h"

enum tiles_view {
    TILES_SUMMARY = 0,
    TILES_TILE,
    TILES_EVENT,
    TILES_SEARCH,
    TILES_SELECT,
    TILES_FLOWS
};

/* The view of that word ("", "tile", "event", "search", "select", "flows"); false when there is none. */
bool tiles_view_find(str word, enum tiles_view *out);
/* Writes one JSON document. The request's parameters are those of the route. */
MUST_CHECK bool tiles_answer(enum tiles_view view, const struct tool_request *r, struct arena *a,
                             struct buf *out, struct err *e);

#endif
