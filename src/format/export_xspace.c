/* SPDX-License-Identifier: Apache-2.0 */
/* xspace: what the profile was read from, with stars over its secrets. Of a foreign format it is the XSpace that
 * was made of it. */
#include "base/file.h"
#include "format/export_inside.h"
#include "format/xspace_mask.h"

#define BLOCK_BYTES ((uint64_t)1 << 18)

/* Stars over what of the secrets lies in the block at `at`. Returns the first that reaches beyond it. */
static uint32_t overwrite(char *block, uint64_t at, uint64_t n, const struct xspace_secret *secrets,
                          uint32_t i, uint32_t n_secrets)
{
    for (; i < n_secrets && secrets[i].pos < at + n; i++) {
        const uint64_t end = secrets[i].pos + secrets[i].n;
        const uint64_t from = secrets[i].pos > at ? secrets[i].pos - at : 0;
        const uint64_t to = end < at + n ? end - at : n;
        if (end > at)
            memset(block + from, '*', to - from);
        if (end > at + n)
            break;
    }
    return i;
}

static bool copy_bytes(struct export_work *w, const struct trace *t, struct err *e)
{
    const int fd = t->fd;
    uint64_t size_bytes;
    struct xspace_secret *secrets;
    uint32_t n_secrets, next = 0;
    if (!xspace_secrets(t, &w->scratch, &secrets, &n_secrets, e))
        return false;
    if (!file_size(fd, &size_bytes, e))
        return false;
    for (uint64_t at = 0, n; at < size_bytes; at += n) {
        n = size_bytes - at < BLOCK_BYTES ? size_bytes - at : BLOCK_BYTES;
        char *room = buf_reserve(&w->out, n);
        if (room == NULL)
            return buf_ok(&w->out, "a block of the XSpace", e);
        if (!file_pread_all(fd, room, n, at, e))
            return false;
        next = overwrite(room, at, n, secrets, next, n_secrets);
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
    return copy_bytes(w, t, e);
}
