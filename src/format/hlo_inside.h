/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that read HloProto. */
#ifndef TACHO_FORMAT_HLO_INSIDE_H
#define TACHO_FORMAT_HLO_INSIDE_H

#include "format/wire.h"
#include "model/hlo.h"

/* Adds the current field, packed or single, to a list of numbers. */
MUST_CHECK bool hlo_take_numbers(struct arena *a, const struct wire *w, struct hlo_numbers *out,
                                 struct err *e);
/* One of an instruction's fields that say who takes part in a collective: 49, 87, 92, 93. */
MUST_CHECK bool hlo_parse_groups(struct arena *a, const struct wire *w, struct hlo_groups **out,
                                 struct err *e);

#endif
