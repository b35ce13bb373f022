/* SPDX-License-Identifier: Apache-2.0 */
/* HloProto bytes to struct hlo_module (model/hlo.h).
 *
 * `pos` is where the bytes begin in their file, for messages. Text in the module borrows `bytes`.
 * Unknown fields are skipped. On failure the module is released. Thread: any. */
#ifndef TACHO_FORMAT_HLO_H
#define TACHO_FORMAT_HLO_H

#include "model/hlo.h"

MUST_CHECK bool hlo_parse(str bytes, uint64_t pos, struct arena *a, struct hlo_module *out,
                          struct err *e);

#endif
