/* SPDX-License-Identifier: Apache-2.0 */
/* Where the indexes of a profile's files lie: `<target>.tacho` beside the XSpace, and where that folder
 * cannot be written, `<hash of its path>.tacho` in the cache folder.
 *
 *     index_place_find(&source, dir, false);      gives each file an index to read, or a place to write one
 *     ... a parser loads the source ...
 *     index_place_keep(&source);        puts what was written, and is whole, in its place
 *
 * A new index is an unlinked file until it is whole, then it is renamed into its place: nobody ever
 * sees half of one, and a killed process leaves nothing. Those who would make the same index wait
 * for the first (flock of the XSpace). A profile without a place is decoded each time. Thread: any. */
#ifndef TACHO_JOBS_INDEX_PLACE_H
#define TACHO_JOBS_INDEX_PLACE_H

#include "format/profile_open.h"

/* `fresh`: whatever lies there is not to be read, only replaced. cache_dir: the option `cache`, empty
 * for its default, $XDG_CACHE_HOME/tachograph (else ~/.cache/tachograph). Cannot fail. */
void index_place_find(struct profile_source *s, const char *cache_dir, bool fresh);
void index_place_keep(struct profile_source *s);

#endif
