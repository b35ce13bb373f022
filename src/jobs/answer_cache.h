/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of tools over large profiles, kept in the cache folder, so that the second question costs no pass over the
 * events. An answer is known by the tool, its parameters and format, the profile's files (path, size, time, checksum of
 * their ends) and this program itself: a new build asks anew. Old ones are deleted when there are many; all may be deleted
 * at any time. What is damaged is not taken.
 *
 *     struct answer_key key;
 *     if (answer_key_of(&key, &source, tool->name, params, n, format) && answer_find(places, &key, out)) return true;
 *     ... run the tool ...
 *     answer_keep(places, &key, answer);
 *
 * Thread: any, and many processes. */
#ifndef TACHO_JOBS_ANSWER_CACHE_H
#define TACHO_JOBS_ANSWER_CACHE_H

#include "analysis/tool.h"
#include "base/sha256.h"
#include "jobs/index_place.h"

struct answer_key {
    char hex[SHA256_HEX];
};

/* False when answers about this profile are not kept: it is small, or its files cannot be looked at. */
bool answer_key_of(struct answer_key *key, const struct profile_source *s, const struct tool *tool,
                   const struct tool_param *params, uint32_t n_params, enum tool_format format);
/* Adds the answer to out. */
bool answer_find(const struct index_places *places, const struct answer_key *key, struct buf *out);
void answer_keep(const struct index_places *places, const struct answer_key *key, str answer);

#endif
