/* SPDX-License-Identifier: Apache-2.0 */
/* Where the indexes of a profile's files lie: `<target>.tacho` beside an XSpace of the data folder, and for
 * files elsewhere, and where that folder cannot be written, `<hash of its path>.tacho` in the cache folder.
 *
 *     index_place_find(&source, &places, false);    gives each file an index to read, or a place to write one
 *     ... a parser loads the source ...
 *     index_place_keep(&source);        puts what was written, and is whole, in its place
 *
 * A new index is an unlinked file until it is whole, then it is renamed into its place: nobody ever
 * sees half of one, and a killed process leaves nothing. Those who would make the same index wait
 * for the first (flock of the XSpace). A profile without a place is decoded each time. Thread: any. */
#ifndef TACHO_JOBS_INDEX_PLACE_H
#define TACHO_JOBS_INDEX_PLACE_H

#include "format/profile_open.h"

struct index_places {
    const char *
        cache; /* the option `cache`; empty for its default, $XDG_CACHE_HOME/tachograph (else ~/.cache/tachograph) */
    const char *data; /* the data folder; NULL: every file is taken to lie in it */
    uint64_t
        least_bytes; /* of an XSpace: smaller ones are decoded as fast as their index is read */
};

/* `fresh`: whatever lies there is not to be read, only replaced. Cannot fail. */
void index_place_find(struct profile_source *s, const struct index_places *places, bool fresh);
/* Gives each file the index that is there, if it is: writes nothing and waits for nobody. True when every file has one. */
bool index_place_look(struct profile_source *s, const struct index_places *places);
/* The folder for `name` in the cache, made when it is not there; NULL when there is none. In the arena. */
const char *index_cache_folder(struct arena *a, const struct index_places *places,
                               const char *name);
void index_place_keep(struct profile_source *s);
/* Gives an unlinked file the name `path`, in place of what has it. Cannot fail: without it there is none. */
void index_link(struct arena *a, int fd, const char *path);

#endif
