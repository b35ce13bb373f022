/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the metrics of a run's newest batches into blocks, one series each (store/block.h). The
 * batches stay; the blocks and the mark up to which they go are one commit. Thread: one a run at a
 * time. */
#ifndef TACHO_JOBS_COMPACT_H
#define TACHO_JOBS_COMPACT_H

#include "store/store.h"

/* All batches that are in no block yet; *n_blocks how many blocks came of it. */
MUST_CHECK bool compact_run(struct store_meta *meta, struct store_blob *blob, str run,
                            uint32_t *n_blocks, struct err *e);

#endif
