/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file from its begin to its end, gunzipped where the file is gzip (also of many members).
 *
 *     struct input in;
 *     if (!input_open(&in, fd, e)) return false;               borrows fd, which can seek
 *     while (input_read(&in, room, sizeof room, &n, e) && n > 0) ...
 *     input_release(&in);
 *
 * A gzip that grows beyond LIMIT_INFLATED_BYTES fails with ERR_LIMIT, a damaged or cut one with ERR_PARSE
 * and the byte of the file. Thread: one at a time. */
#ifndef TACHO_FORMAT_INPUT_H
#define TACHO_FORMAT_INPUT_H

#include "base/err.h"
#include "base/str.h"

struct input_gunzip;

struct input {
    int fd;
    bool at_end;
    uint64_t file_pos;           /* of the next byte to read from the file */
    uint64_t n_out;              /* bytes handed out */
    struct input_gunzip *gunzip; /* owned; NULL: the bytes as they are */
};

MUST_CHECK bool input_open(struct input *in, int fd, struct err *e);
/* Up to room bytes; *n is 0 only at the end. */
MUST_CHECK bool input_read(struct input *in, void *to, size_t room, size_t *n, struct err *e);
void input_release(struct input *in);

#endif
