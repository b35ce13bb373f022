/* SPDX-License-Identifier: Apache-2.0 */
/* Stored batches back to records: what journal/reader.h does for files, from a store.
 *
 *     struct run_decoder d;
 *     run_decoder_init(&d, meta, blob, run, RUN_DECODE_ALL, 0);
 *     if (!run_decoder_more(&d, e)) ...      all batches that are new since the last call
 *     ... d.set (call record_set_sort) ...
 *     run_decoder_release(&d);
 *
 * Thread: one at a time. */
#ifndef TACHO_STORE_RUN_DECODE_H
#define TACHO_STORE_RUN_DECODE_H

#include "model/record.h"
#include "store/store.h"

enum run_decode_what { RUN_DECODE_ALL = 0, RUN_DECODE_METRICS /* and system metrics */ };

struct run_decoder_journal {
    uint32_t process; /* in the set */
    struct journal_info info;
};

struct run_decoder {
    struct store_meta *meta;
    struct store_blob *blob;
    char run[256];
    enum run_decode_what what;
    struct record_set set;
    int64_t batch; /* newest that is in the set; batches up to the one given to init are left out */
    struct arena arena;
    struct run_decoder_journal *journals;
    uint32_t n_journals, journals_capacity;
};

void run_decoder_init(struct run_decoder *d, struct store_meta *meta, struct store_blob *blob,
                      str run, enum run_decode_what what, int64_t after_batch);
void run_decoder_release(struct run_decoder *d);
/* ERR_LIMIT when the run's records are more than LIMIT_ARENA_RUN_BYTES. */
MUST_CHECK bool run_decoder_more(struct run_decoder *d, struct err *e);
/* Makes the processes of all the run's journals known, with what each lost, also of those without a
 * batch after after_batch. */
MUST_CHECK bool run_decoder_processes(struct run_decoder *d, struct err *e);

#endif
