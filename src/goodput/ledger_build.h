/* SPDX-License-Identifier: Apache-2.0 */
/* Records of our own journals → the ledger of the lead rank (the lowest one seen).
 *
 *   runner   |start ............ end|   |start ....... end|
 *   rank 0      |prep|load|step|…✗         |prep|load|step|…|
 *   ledger   other prep  input step  recovery …   lost steps are wasted_progress
 *
 * Every nanosecond goes to the innermost thing that was going on: checkpoint, data loading, custom
 * and the like win over the step around them, a phase over the process around it; time with a process
 * but without a phase is `other`, time between two attempts `infrastructure_recovery`. A step is
 * wasted when a later attempt begins at or before it, or when it was cut by the end of its
 * process. The first step of an attempt beyond the median of the warm steps is `program_startup`.
 * Source of the classes: model/categories.def. Thread: any. */
#ifndef TACHO_GOODPUT_LEDGER_BUILD_H
#define TACHO_GOODPUT_LEDGER_BUILD_H

#include "model/ledger.h"

/* Everything in *out is allocated in set's arena and lives as long; set must be sorted
 * (record_set_sort). Fails with ERR_NOT_FOUND when the records hold no process of the workload, with
 * ERR_LIMIT beyond the arena's cap. */
MUST_CHECK bool ledger_build(struct record_set *set, struct ledger *out, struct err *e);

#endif
