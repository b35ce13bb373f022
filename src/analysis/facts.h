/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a profile (model/profile_facts.h), measured on its traces.
 *
 *     struct profile_facts f;
 *     if (!profile_facts_of(profile, a, &f, e)) return false;
 *
 * Facts leave the parser packed: profile_facts_pack there, profile_facts_unpack on the other side,
 * which trusts nothing: lengths, counts and words are checked (ERR_PARSE with the byte). Unpacked
 * text borrows the bytes. Numbers are in the machine's own order; another version of the packing is refused.
 *
 * Thread: one at a time per arena. */
#ifndef TACHO_ANALYSIS_FACTS_H
#define TACHO_ANALYSIS_FACTS_H

#include "base/buf.h"
#include "model/profile_facts.h"

MUST_CHECK bool profile_facts_of(const struct profile *p, struct arena *a,
                                 struct profile_facts *out, struct err *e);

MUST_CHECK bool profile_facts_pack(const struct profile_facts *f, struct buf *out, struct err *e);
MUST_CHECK bool profile_facts_unpack(str bytes, struct arena *a, struct profile_facts *out,
                                     struct err *e);

#endif
