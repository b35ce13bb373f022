/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/memory_xprof.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/grouping.h"
#include "analysis/memory_tables.h"

struct printer {
    struct json *j;
    struct arena *arena;
    struct err *err;
    bool several_hosts;
};

static void big(struct json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_strf(j, "%lld", v == MEMORY_UNKNOWN ? 0 : (long long)v);
}
static void big_unsigned(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_strf(j, "%llu", (unsigned long long)v);
}

static void print_use(struct json *j, const char *key, const struct memory_use *u, int64_t peak)
{
    json_key(j, key);
    json_object(j);
    big(j, "stackReservedBytes", u->stack);
    big(j, "heapAllocatedBytes", u->heap);
    big(j, "freeMemoryBytes", u->free);
    json_kf64(j, "fragmentation", isnan(u->fragmentation_ratio) ? 0 : u->fragmentation_ratio);
    big(j, "peakBytesInUse", peak);
    json_end(j);
}

struct activity {
    bool is_release;
    struct memory_description what;
    int64_t step;
};

static void print_activity(struct json *j, const struct activity *x)
{
    json_object(j);
    json_kcstr(j, "memoryActivity", x->is_release ? "DEALLOCATION" : "ALLOCATION");
    big(j, "requestedBytes", x->what.requested_bytes);
    big(j, "allocationBytes", x->what.bytes);
    big_unsigned(j, "address", x->what.address);
    json_kstr(j, "tfOpName", x->what.op);
    big(j, "stepId", x->step);
    json_kstr(j, "regionType", x->what.region);
    json_kstr(j, "dataType", x->what.data_type.n > 0 ? x->what.data_type : S("INVALID"));
    json_kstr(j, "tensorShape", x->what.shape);
    json_end(j);
}

static void print_snapshot(struct json *j, const struct trace *t, uint64_t time_ps,
                           const struct memory_use *u, const struct activity *x)
{
    json_object(j);
    big_unsigned(j, "timeOffsetPs", memory_time_ps(t, time_ps));
    print_use(j, "aggregationStats", u, u->lifetime_peak);
    json_key(j, "activityMetadata");
    print_activity(j, x);
    json_end(j);
}

/* A release is described as what it takes back, but for its own sizes. */
static bool print_sample(struct printer *p, const struct memory_allocator *m,
                         const struct memory_sample *s)
{
    const struct arena_mark mark = arena_mark(p->arena);
    struct activity x = {.is_release = s->is_release, .step = s->step};
    struct memory_description own;
    if (!memory_describe(m->trace, &s->event, p->arena, &own, p->err))
        return false;
    x.what = own;
    if (s->has_piece && !memory_describe(m->trace, &s->piece, p->arena, &x.what, p->err))
        return false;
    x.what.requested_bytes = own.requested_bytes;
    x.what.bytes = own.bytes;
    x.what.address = own.address;
    print_snapshot(p->j, m->trace, s->time_ps, &s->use, &x);
    arena_reset(p->arena, mark);
    return true;
}

static void print_summary(struct json *j, const struct memory_allocator *m)
{
    json_key(j, "profileSummary");
    json_object(j);
    big(j, "peakBytesUsageLifetime", m->lifetime_peak_bytes);
    print_use(j, "peakStats", &m->peak, memory_in_use(&m->peak));
    big_unsigned(j, "peakStatsTimePs", memory_time_ps(m->trace, m->peak_time_ps));
    big(j, "memoryCapacity", memory_capacity(m));
    json_end(j);
}

/* What is live and no piece of the profile: its sizes and names are XProf's. */
static uint32_t special_allocations(const struct memory_allocator *m, struct activity out[2])
{
    uint32_t n = 0;
    if (m->before_bytes != MEMORY_UNKNOWN && m->before_bytes > 0)
        out[n++] = (struct activity){.what = {.op = S("unused preallocated device memory"),
                                              .region = S("persist/dynamic"),
                                              .requested_bytes = m->before_bytes,
                                              .bytes = m->before_bytes}};
    if (m->peak.stack != MEMORY_UNKNOWN && m->peak.stack > 0)
        out[n++] = (struct activity){.what = {.op = S("stack"),
                                              .region = S("stack"),
                                              .requested_bytes = m->peak.stack,
                                              .bytes = m->peak.stack}};
    for (uint32_t i = 0; i < n; i++) {
        out[i].what.shape = S("unknown");
        out[i].step = m->peak_step;
    }
    return n;
}

static void print_active(struct json *j, int64_t snapshot, int64_t special, uint64_t n)
{
    json_object(j);
    big(j, "snapshotIndex", snapshot);
    big(j, "specialIndex", special);
    big_unsigned(j, "numOccurrences", n);
    json_end(j);
}

/* All that is live by size, what is special among it. */
static void print_all_active(struct json *j, const struct memory_group *groups, uint32_t n,
                             const struct activity *special, uint32_t n_special)
{
    uint32_t next = 0, index = 0;
    bool done[2] = {n_special < 1, n_special < 2};
    json_key(j, "activeAllocations");
    json_array(j);
    while (next < n || !done[0] || !done[1]) {
        uint32_t s = 2; /* the larger of the special ones that are left */
        for (uint32_t i = 0; i < n_special; i++)
            if (!done[i] && (s == 2 || special[i].what.bytes > special[s].what.bytes))
                s = i;
        if (s < 2 && (next == n || special[s].what.bytes > groups[next].what.bytes)) {
            print_active(j, -(int64_t)s - 1, s, 1);
            done[s] = true;
        } else {
            print_active(j, index++, -1, groups[next++].n);
        }
    }
    json_end(j);
}

static bool print_allocator(struct printer *p, const struct memory_allocator *m)
{
    struct json *j = p->j;
    struct memory_group *groups;
    struct activity special[2];
    uint32_t n;
    if (!memory_groups_of(m, p->arena, &groups, &n, p->err))
        return false;
    const uint32_t n_special = special_allocations(m, special);
    json_object(j);
    json_key(j, "memoryProfileSnapshots");
    json_array(j);
    for (uint32_t i = 0; i < n; i++) {
        const struct activity x = {.what = groups[i].what, .step = groups[i].first->step};
        print_snapshot(j, m->trace, groups[i].first->time_ps, &groups[i].first->use, &x);
    }
    json_end(j);
    print_summary(j, m);
    print_all_active(j, groups, n, special, n_special);
    json_key(j, "specialAllocations");
    json_array(j);
    for (uint32_t i = 0; i < n_special; i++)
        print_activity(j, &special[i]);
    json_end(j);
    json_key(j, "sampledTimelineSnapshots");
    json_array(j);
    for (uint32_t i = 0; i < m->n_timeline; i++)
        if (!print_sample(p, m, &m->timeline[i]))
            return false;
    json_end(j);
    json_end(j);
    return true;
}

static str allocator_id(const struct printer *p, const struct memory_allocator *m)
{
    return p->several_hosts
               ? arena_printf(p->arena, "%.*s/%.*s", STR_ARG(m->trace->host), STR_ARG(m->name))
               : m->name;
}

static bool print_allocators(struct printer *p, const struct memory_profile *m)
{
    json_key(p->j, "memoryProfilePerAllocator");
    json_object(p->j);
    for (uint32_t i = 0; i < m->n_allocators; i++) {
        json_key_str(p->j, allocator_id(p, &m->allocators[i]));
        if (!print_allocator(p, &m->allocators[i]))
            return false;
    }
    json_end(p->j);
    return true;
}

/* --- modules of TPU cores ---------------------------------------------------------------------- */

static bool print_modules(struct printer *p, const struct trace *t, uint32_t line, uint64_t *id)
{
    struct json *j = p->j;
    const str plane = t->planes[t->lines[line].plane_index].name;
    struct trace_cursor c;
    for (trace_cursor_init(&c, t, line); trace_cursor_next(&c);) {
        json_object(j);
        json_kstr(j, "name", trace_event_name(t, &t->lines[line], &c.event));
        big_unsigned(j, "startTimePs", memory_time_ps(t, c.event.start_ps));
        big_unsigned(j, "endTimePs", memory_time_ps(t, c.event.start_ps + c.event.dur_ps));
        big_unsigned(j, "id", (*id)++);
        json_kstr(j, "planeName",
                  str_starts(plane, S("/device:")) ? str_sub(plane, 8, plane.n) : plane);
        json_end(j);
    }
    trace_cursor_release(&c);
    return trace_cursor_ok(&c, p->err);
}

static bool print_all_modules(struct printer *p, const struct profile *profile)
{
    uint64_t id = 0;
    json_key(p->j, "hloModules");
    json_array(p->j);
    for (uint32_t i = 0; i < profile->n_traces; i++) {
        const struct trace *t = profile->traces[i];
        for (uint32_t l = 0; l < t->n_lines; l++)
            if (t->planes[t->lines[l].plane_index].kind == TRACE_PLANE_TPU &&
                str_eq(t->lines[l].name, S("XLA Modules")) && !print_modules(p, t, l, &id))
                return false;
    }
    json_end(p->j);
    return true;
}

/* ------------------------------------------------------------------------------------------------ */

static bool groupings_of(const struct profile *p, struct arena *a, struct grouping **out,
                         struct err *e)
{
    *out = ARENA_ARRAY(a, struct grouping, (size_t)p->n_traces + 1);
    if (*out == NULL)
        return arena_full(a, e);
    for (uint32_t i = 0; i < p->n_traces; i++)
        if (!grouping_of(p->traces[i], a, &(*out)[i], e))
            return false;
    return true;
}

bool memory_xprof_print(const struct tool_request *r, struct arena *a, struct buf *out,
                        struct err *e)
{
    struct json j;
    struct memory_profile m;
    struct grouping *groupings;
    struct printer p = {.j = &j, .arena = a, .err = e, .several_hosts = r->profile->n_traces > 1};
    if (!groupings_of(r->profile, a, &groupings, e) ||
        !memory_profile_of(r->profile, groupings, a, &m, e))
        return false;
    json_init_buf(&j, out);
    json_object(&j);
    if (!print_allocators(&p, &m))
        return false;
    json_ku64(&j, "numHosts", r->profile->n_traces);
    json_key(&j, "memoryIds");
    json_array(&j);
    for (uint32_t i = 0; i < m.n_allocators; i++)
        json_str(&j, allocator_id(&p, &m.allocators[i]));
    json_end(&j);
    json_ki64(&j, "version", 1);
    if (!print_all_modules(&p, r->profile))
        return false;
    json_end(&j);
    return json_done(&j, e);
}
