/* SPDX-License-Identifier: Apache-2.0 */
/* What stands inside an index: the first byte says whether the rest is the content of a trace block, of a
 * dictionary, of a row group (behind the checksums, which would keep a fuzzer out), or a whole file. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "format/index_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void fuzz_trace(str in, struct arena *a)
{
    struct trace t = {.groups = trace_groups_new()};
    struct index_walk w = {.in = in, .a = a};
    struct err e = {0};
    index_walk_trace(&w, &t);
    if (index_walk_ok(&w, "the trace block", &e) && index_trace_check(&t, &e))
        for (uint32_t l = 0; l < t.n_lines; l++)
            must(t.lines[l].first_group + t.lines[l].n_groups <= t.groups->n);
    trace_groups_free(t.groups);
}

static void fuzz_plane(str in, struct arena *a)
{
    struct trace_plane p = {0};
    struct index_walk w = {.in = in, .a = a};
    struct err e = {0};
    index_walk_plane(&w, &p);
    const bool ok = index_walk_ok(&w, "a dictionary", &e);
    must(ok || e.code != ERR_NONE);
    map_u64_u32_release(&p.metadata_by_id);
    map_u64_u32_release(&p.stat_name_by_id);
}

static void fuzz_group(str in)
{
    static struct trace_event events[300];
    struct trace_group_view v = {0};
    struct side_view side = {0};
    struct err e = {0};
    uint64_t end = 0, value, sum = 0;
    uint8_t *bytes = map_alloc(in.n + TRACE_COLUMN_SLACK, 1);
    memcpy(bytes, in.p, in.n);
    bool ok = trace_group_view_read(&v, bytes, in.n, 300, &e);
    if (ok)
        trace_group_unpack(&v, 0, 300, &end, events);
    ok = ok && side_view_read(&side, v.side, v.side_bytes, 300, &e);
    for (uint32_t i = 0; ok && i < side.n; i++)
        for (uint32_t row = 0; row < 300; row++)
            sum += side_value(&side.items[i], row, &value) ? value : 0;
    must(ok || e.code != ERR_NONE);
    side_view_release(&side);
    map_free(bytes);
}

static void fuzz_file(str in)
{
    const int fd = memfd_create("index", MFD_CLOEXEC), xspace = memfd_create("xspace", MFD_CLOEXEC);
    const struct index_options o = {.file = S("fuzz")};
    struct err e = {0};
    must(fd >= 0 && xspace >= 0);
    if (file_write_all(fd, in.p, in.n, &e)) {
        struct trace *t = index_load(fd, xspace, &o, &e);
        must(t != NULL || e.code != ERR_NONE);
        trace_free(t);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    const str in = {(const char *)data + 1, n - 1};
    struct arena a;
    arena_init(&a, "fuzz", 64u << 20);
    switch (data[0] % 4) {
    case 0:
        fuzz_trace(in, &a);
        break;
    case 1:
        fuzz_plane(in, &a);
        break;
    case 2:
        fuzz_group(in);
        break;
    case 3:
        fuzz_file(in);
        break;
    }
    arena_release(&a);
    return 0;
}
