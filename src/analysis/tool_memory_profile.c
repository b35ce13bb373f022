/* SPDX-License-Identifier: Apache-2.0 */
/* memory_profile: each allocator's peak, what was live then, and its memory over time; get_memory_profile,
 * a command of XProf: the peaks alone. */
#include <math.h>
#include <stdlib.h>

#include "analysis/memory_tables.h"
#include "analysis/memory_xprof.h"
#include "analysis/tool.h"
#include "analysis/xprof_cli.h"

static bool memory_profile_run(const struct tool_request *r, struct arena *a, struct table **out,
                               struct err *e)
{
    struct memory_profile m;
    struct table **at = out;
    if (!memory_profile_of(r->profile, NULL, a, &m, e))
        return false;
    *at = memory_table_peaks(&m, a);
    if (*at == NULL)
        return arena_full(a, e);
    at = &(*at)->next;
    *at = memory_table_live(&m, a, e);
    if (*at == NULL)
        return false;
    at = &(*at)->next;
    *at = memory_table_timeline(&m, a);
    return *at != NULL || arena_full(a, e);
}

static bool get_memory_profile_run(const struct tool_request *r, struct arena *a,
                                   struct table **out, struct err *e)
{
    struct memory_profile m;
    if (!memory_profile_of(r->profile, NULL, a, &m, e))
        return false;
    *out = memory_table_peaks(&m, a);
    return *out != NULL || arena_full(a, e);
}

/* --- XProf's command -------------------------------------------------------------------------- */

static void print_gib(struct json *j, const char *key, int64_t bytes)
{
    xprof_cli_number(j, key, bytes == MEMORY_UNKNOWN ? NAN : (double)bytes / 1073741824.0, 2);
}

static bool get_memory_profile_xprof(const struct tool_request *r, struct arena *a, struct buf *out,
                                     struct err *e)
{
    struct memory_profile m;
    struct json j;
    if (!memory_profile_of(r->profile, NULL, a, &m, e))
        return false;
    const struct memory_allocator *most = memory_fullest(&m);
    const struct memory_use none = {MEMORY_UNKNOWN, MEMORY_UNKNOWN, MEMORY_UNKNOWN, MEMORY_UNKNOWN,
                                    NAN};
    const struct memory_use *u = most == NULL ? &none : &most->peak;
    const int64_t capacity = most == NULL ? MEMORY_UNKNOWN : memory_capacity(most);
    const bool known = capacity != MEMORY_UNKNOWN && capacity > 0;
    json_init_buf(&j, out);
    xprof_cli_begin(&j, r);
    print_gib(&j, "memory_capacity_gib", capacity);
    print_gib(&j, "peak_memory_usage_gib", memory_in_use(u));
    json_key(&j, "peak_usage_details");
    json_object(&j);
    print_gib(&j, "stack_reservation_gib", u->stack);
    print_gib(&j, "heap_allocation_gib", u->heap);
    print_gib(&j, "free_memory_gib", u->free);
    xprof_cli_number(&j, "fragmentation_percent", 100.0 * u->fragmentation_ratio, 2);
    xprof_cli_number(&j, "utilization_percent",
                     known ? 100.0 * (double)memory_in_use(u) / (double)capacity : NAN, 2);
    json_end(&j);
    return xprof_cli_end(&j, e);
}

const struct tool_functions tool_memory_profile = {.run = memory_profile_run,
                                                   .xprof = memory_xprof_print};
const struct tool_functions tool_get_memory_profile = {.run = get_memory_profile_run,
                                                       .xprof = get_memory_profile_xprof};
