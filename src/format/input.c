/* SPDX-License-Identifier: Apache-2.0 */
#include "format/input.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>
#include <zlib.h>

#include "base/limits.h"
#include "base/map.h"

#define RAW_BYTES 262144

struct input_gunzip {
    z_stream z;
    uint8_t raw[RAW_BYTES];
};

static bool read_file(struct input *in, void *to, size_t room, size_t *n, struct err *e)
{
    ssize_t got;
    do
        got = pread(in->fd, to, room, (off_t)in->file_pos);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_sys(e, "cannot read");
    *n = (size_t)got;
    in->file_pos += (size_t)got;
    return true;
}

bool input_open(struct input *in, int fd, struct err *e)
{
    uint8_t magic[2];
    size_t n = 0;
    *in = (struct input){.fd = fd};
    if (!read_file(in, magic, sizeof magic, &n, e))
        return false;
    in->file_pos = 0;
    if (n < 2 || magic[0] != 0x1f || magic[1] != 0x8b)
        return true;
    in->gunzip = map_alloc(1, sizeof *in->gunzip);
    return inflateInit2(&in->gunzip->z, 16 + MAX_WBITS) == Z_OK ||
           err_set(e, ERR_LIMIT, "no memory to decompress");
}

/* Compressed bytes to go on with; *n is 0 at the end of the file. */
static bool raw_more(struct input *in, size_t *n, struct err *e)
{
    z_stream *const z = &in->gunzip->z;
    *n = z->avail_in;
    if (*n > 0)
        return true;
    if (!read_file(in, in->gunzip->raw, RAW_BYTES, n, e))
        return false;
    z->next_in = in->gunzip->raw;
    z->avail_in = (uInt)*n;
    return true;
}

/* A member has ended: another one follows without a seam, or what follows is padding. */
static bool next_member(struct input *in, struct err *e)
{
    z_stream *const z = &in->gunzip->z;
    size_t n;
    if (!raw_more(in, &n, e))
        return false;
    in->at_end = n == 0 || z->next_in[0] != 0x1f || inflateReset(z) != Z_OK;
    return true;
}

static bool inflate_some(struct input *in, void *to, size_t room, size_t *n, struct err *e)
{
    z_stream *const z = &in->gunzip->z;
    const uInt most = room > UINT32_MAX ? UINT32_MAX : (uInt)room;
    z->next_out = to;
    z->avail_out = most;
    while (z->avail_out == most && !in->at_end) {
        size_t left;
        if (!raw_more(in, &left, e))
            return false;
        if (left == 0)
            return err_at(e, ERR_PARSE, in->file_pos, "gzip stream is cut off");
        const int rc = inflate(z, Z_NO_FLUSH);
        if (rc == Z_STREAM_END) {
            if (!next_member(in, e))
                return false;
        } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
            return err_at(e, ERR_PARSE, in->file_pos - z->avail_in, "damaged gzip stream");
        }
    }
    *n = most - z->avail_out;
    if (in->n_out + *n > LIMIT_INFLATED_BYTES)
        return err_at(e, ERR_LIMIT, in->file_pos - z->avail_in,
                      "the gzip holds more than %" PRIu64 " bytes", (uint64_t)LIMIT_INFLATED_BYTES);
    return true;
}

bool input_read(struct input *in, void *to, size_t room, size_t *n, struct err *e)
{
    const bool ok =
        in->gunzip == NULL ? read_file(in, to, room, n, e) : inflate_some(in, to, room, n, e);
    in->n_out += ok ? *n : 0;
    return ok;
}

void input_release(struct input *in)
{
    if (in->gunzip != NULL)
        inflateEnd(&in->gunzip->z);
    map_free(in->gunzip);
    *in = (struct input){.fd = -1};
}
