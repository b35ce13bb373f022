/* SPDX-License-Identifier: Apache-2.0 */
/* xspace: what the profile was read from. Of JSON it is the XSpace that was made of it. */
#include "base/file.h"
#include "format/export_inside.h"

#define BLOCK_BYTES ((uint64_t)1 << 18)

static bool copy_bytes(struct export_work *w, int fd, struct err *e)
{
    uint64_t size_bytes;
    if (!file_size(fd, &size_bytes, e))
        return false;
    for (uint64_t at = 0, n; at < size_bytes; at += n) {
        n = size_bytes - at < BLOCK_BYTES ? size_bytes - at : BLOCK_BYTES;
        char *room = buf_reserve(&w->out, n);
        if (room == NULL)
            return buf_ok(&w->out, "a block of the XSpace", e);
        if (!file_pread_all(fd, room, n, at, e))
            return false;
        w->out.n += n;
        if (!export_flush(w, e))
            return false;
    }
    return true;
}

bool export_xspace(struct export_work *w, struct err *e)
{
    const struct trace *t = export_next_trace(w, NULL);
    if (export_next_trace(w, t) != NULL) {
        err_set(e, ERR_USAGE, "an XSpace is of one target, and the session has %u",
                w->profile->n_traces);
        return err_hint(e, "choose one with host, such as '%.*s'", STR_ARG(trace_target(t)));
    }
    if (w->options->from_ps > 0 || w->options->to_ps > 0)
        return err_set(e, ERR_USAGE, "an XSpace is written whole: no time range");
    w->counts->n_events = t->n_events;
    return copy_bytes(w, t->fd, e);
}
