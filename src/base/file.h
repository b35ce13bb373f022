/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders: whole reads with a cap, whole writes that replace atomically, names.
 * Errors name the path. Thread: any. */
#ifndef TACHO_BASE_FILE_H
#define TACHO_BASE_FILE_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"

/* The whole file into the arena; ERR_LIMIT when longer than max_bytes. */
MUST_CHECK bool file_read(struct arena *a, const char *path, size_t max_bytes, str *out,
                          struct err *e);
/* Writes path.tmp-<random>, fsyncs, renames over path, fsyncs the folder. */
MUST_CHECK bool file_replace(const char *path, str content, mode_t mode, struct err *e);
/* open(2) with O_CLOEXEC; -1 and e on failure. */
int file_open(const char *path, int flags, mode_t mode, struct err *e);
/* All n bytes, through short writes and EINTR. */
MUST_CHECK bool file_write_all(int fd, const void *p, size_t n, struct err *e);
/* All n bytes at offset; a short file is ERR_PARSE with the position. */
MUST_CHECK bool file_pread_all(int fd, void *p, size_t n, uint64_t offset, struct err *e);
MUST_CHECK bool file_pwrite_all(int fd, const void *p, size_t n, uint64_t offset, struct err *e);
MUST_CHECK bool file_size(int fd, uint64_t *size_bytes, struct err *e);
bool file_exists(const char *path);
bool file_is_dir(const char *path);

/* Makes the folder and its parents. */
MUST_CHECK bool dir_make(const char *path, mode_t mode, struct err *e);
/* Removes a folder and all below it; never follows a link. */
MUST_CHECK bool dir_remove(const char *path, struct err *e);
/* Names in the folder but . and .., sorted by bytes, in the arena. */
MUST_CHECK bool dir_list(struct arena *a, const char *path, str **names, size_t *n, struct err *e);
/* True when the file system of path is a network one (NFS, SMB, FUSE, 9p, Lustre …). */
bool dir_is_remote(const char *path);

/* "a/b", NUL-terminated, in the arena. */
char *path_join(struct arena *a, const char *dir, str name);
str path_base(str path); /* after the last slash */
str path_dir(str path);  /* before it; "." when there is none */
/* True when s can be one path component of ours: 1..200 bytes of [A-Za-z0-9._+=@-], not starting
 * with a dot. Every name that comes from outside passes here before it meets a path. */
bool path_is_safe_name(str s);
/* A name of ours like s: its first 150 bytes, other characters as '_'; `fallback` when s is empty. In the arena,
 * NUL-terminated; p NULL beyond its cap. */
str path_safe_name(struct arena *a, str s, str fallback);

#endif
