/* SPDX-License-Identifier: Apache-2.0 */
/* PROFILE, as SURFACE.md defines it: a file, a folder of several files (one session, one target a
 * file), or an XProf logdir at any level (the newest session in it).
 *
 * Two steps, so that the second may run in a parser that can open nothing:
 *
 *     struct profile_source s;
 *     if (!profile_find(&s, path, e)) return false;       opens every file, decodes nothing
 *     struct profile *p = profile_load(&s, e);            decodes; p takes the descriptors
 *     ...
 *     profile_free(p);
 *     profile_source_release(&s);
 *
 * Files are recognised by content. Errors name the file. Thread: one at a time. */
#ifndef TACHO_FORMAT_PROFILE_OPEN_H
#define TACHO_FORMAT_PROFILE_OPEN_H

#include "base/arena.h"
#include "model/trace.h"

struct profile_file {
    char *path; /* as found */
    str target; /* file name without its ending: "host-0", "host-0.3" */
    str host;   /* of the file name; empty when the name says nothing */
    int fd;     /* owned until loaded */
    int import_fd; /* unlinked temporary file for the XSpace made from a foreign format, or -1; owned until loaded */
    const char *import_path; /* where that XSpace is to be kept; NULL: nowhere */
    bool was_imported;       /* fd is the XSpace that was made of the file at path */
    int spill_fd;            /* unlinked temporary file for row groups, or -1; owned until loaded */
    int index_fd;            /* its index, to load from instead, or -1; owned until loaded */
    int index_out_fd; /* an empty file that takes its index when it is decoded, or -1; owned */
    const char *index_path; /* where that one belongs */
    uint64_t size_bytes;
};

struct profile_source {
    struct arena arena;
    str name; /* of the session: its folder's name, or the file's */
    str path; /* what the user named */
    struct profile_file *files;
    uint32_t n_files, capacity;
    bool lines_only;      /* what format/index.h says of it */
    unsigned n_threads;   /* that decode; 0 or 1: the calling one alone */
    uint64_t most_events; /* about that many are decoded, the first of each line; 0: all */
};

MUST_CHECK bool profile_find(struct profile_source *s, const char *path, struct err *e);
void profile_source_release(struct profile_source *s);
/* NULL and e on failure. Takes the descriptors of s either way. */
struct profile *profile_load(struct profile_source *s, struct err *e);

/* Which of two sessions is the newer one: by XProf's time stamps where both names are such, else by when they were written. */
bool profile_session_is_newer(str name, int64_t mtime_ns, str than, int64_t than_mtime_ns);
/* The name ends as those of traces in other formats do, gzip or not; for where the bytes are not at hand. */
bool profile_is_named_foreign(str name);

/* True for a file that is a profile by its first bytes, or is named as an XSpace (it may be damaged). */
bool profile_is_file(const char *path);

/* Both steps in this process. */
struct profile *profile_open(const char *path, struct err *e);

#endif
