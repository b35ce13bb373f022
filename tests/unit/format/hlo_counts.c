/* SPDX-License-Identifier: Apache-2.0 */
/* hlo_counts FILE: each HLO module of an XSpace as a line of JSON, as format/hlo.h reads it: no tool prints these yet. For
 * tests/golden/test_seeds.py. */
#include <fcntl.h>

#include "base/limits.h"
#include "format/hlo.h"
#include "format/xspace.h"

static bool print_module(str proto, struct err *e)
{
    struct arena a;
    struct hlo_module m;
    arena_init(&a, "hlo", 0);
    const bool ok = hlo_parse(proto, 0, &a, &m, e);
    if (ok) {
        const struct hlo_computation *entry = hlo_computation_by_id(&m, m.entry_id);
        printf("{\"name\":\"%.*s\",\"program_id\":%lld,\"computations\":%u,"
               "\"entry_instructions\":%u,\"instructions\":%u}\n",
               STR_ARG(m.name), (long long)m.id, m.n_computations, entry == NULL ? 0 : entry->n,
               m.n_instructions);
        hlo_module_release(&m);
    }
    arena_release(&a);
    return ok;
}

static bool print_all(const struct trace *t, struct err *e)
{
    for (uint32_t i = 0; i < t->n_planes; i++)
        for (uint32_t k = 0; k < t->planes[i].n_event_metadata; k++) {
            const struct trace_stat *s =
                trace_stat_find(t->planes[i].event_metadata[k].stats, S("Hlo Proto"));
            if (s != NULL && !print_module(s->text, e))
                return false;
        }
    return true;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    const struct xspace_options o = {.file = S("file"), .spill_fd = -1, .index_fd = -1};
    const int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    struct trace *t = fd < 0 ? NULL : xspace_load(fd, &o, &e);
    const bool ok = t != NULL && print_all(t, &e);
    if (!ok)
        fprintf(stderr, "usage: hlo_counts FILE (%s)\n", e.msg);
    trace_free(t);
    return ok ? 0 : 1;
}
