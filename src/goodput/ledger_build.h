/* SPDX-License-Identifier: Apache-2.0 */
/* Records to the ledger of the lead rank (the lowest rank that recorded phases).
 *
 *     struct ledger l;
 *     if (!ledger_build(&set, &l, e)) return false;       l lives in the set's arena
 *     must(ledger_check(&l));
 *
 * The set is sorted. A set from flat entries (entries_only) tells neither the end of a step nor the
 * moment of a crash: then a step ends where the next begins, the last one takes a warm step's time,
 * a load between two steps runs beside the step, and what follows the last record of a dead attempt is
 * infrastructure_recovery. Our journals tell all of it; a load that a thread without steps recorded runs
 * beside the loop there, and is in no category. What was estimated or left out is in the
 * set's notes. Of our journals, each process's attempt is set too. When only `tacho run` recorded, its
 * attempts are `other` and the ledger is workload_silent. ERR_PARSE when no entry tells when the run
 * was. Meaning of the categories:
 * categories.def. Thread: any, one per set. */
#ifndef TACHO_GOODPUT_LEDGER_BUILD_H
#define TACHO_GOODPUT_LEDGER_BUILD_H

#include "model/ledger.h"

MUST_CHECK bool ledger_build(struct record_set *s, struct ledger *out, struct err *e);
/* Over the warm steps that begin in one of the parts (sorted, apart, up to to_ns) and reach out of none
 * but at to_ns; scratch in a. */
struct ledger_step_stats ledger_step_stats(const struct ledger *l, const struct ledger_part *parts,
                                           uint32_t n_parts, int64_t to_ns, struct arena *a);

#endif
