/* SPDX-License-Identifier: Apache-2.0 */
/* Where the XSpace that was made of a foreign file is kept, so that it is imported once: `imports/<hash>.xplane.pb`
 * in the cache folder, the hash being of the file's path, size and modification time. The file itself is not
 * touched, and a changed one is imported again.
 *
 *     import_place_find(&source, &places, false);   the XSpace that is there, or a place for one
 *     ... a parser loads the source ...
 *     import_place_keep(&source);
 *
 * As with indexes, nobody ever sees half of one. Readable by its owner only: it holds what the file held.
 * Cannot fail: without a place the file is imported each time. Thread: any. */
#ifndef TACHO_JOBS_IMPORT_PLACE_H
#define TACHO_JOBS_IMPORT_PLACE_H

#include "jobs/index_place.h"

/* `fresh`: what lies there is not to be read, only replaced. */
void import_place_find(struct profile_source *s, const struct index_places *places, bool fresh);
void import_place_keep(struct profile_source *s);

#endif
