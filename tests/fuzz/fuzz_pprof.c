/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a pprof profile: refused with a reason, or an XSpace that our own reader takes. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "format/pprof.h"
#include "format/xspace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = {0};
    const int from = memfd_create("pprof", 0), to = memfd_create("xspace", 0);
    must(from >= 0 && to >= 0 && file_write_all(from, data, size, &e));
    if (pprof_import(from, to, &e)) {
        const struct xspace_options o = {.file = S("input"), .spill_fd = -1, .index_fd = -1};
        struct trace *t = xspace_load(to, &o, &e);
        must(t != NULL);
        trace_free(t);
    } else {
        must(e.code != ERR_NONE && e.msg[0] != '\0');
        close(to);
    }
    close(from);
    return 0;
}
