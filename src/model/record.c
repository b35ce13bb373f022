/* SPDX-License-Identifier: Apache-2.0 */
#include "model/record.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"

void record_set_init(struct record_set *s, size_t cap_bytes)
{
    memset(s, 0, sizeof *s);
    arena_init(&s->arena, "run", cap_bytes != 0 ? cap_bytes : LIMIT_ARENA_RUN_BYTES);
}

void record_set_release(struct record_set *s)
{
    arena_release(&s->arena);
    memset(s, 0, sizeof *s);
}

struct record *record_set_add(struct record_set *s)
{
    if (!ARENA_PUSH(&s->arena, s->records, s->n_records, s->records_capacity))
        return NULL;
    struct record *r = &s->records[s->n_records - 1];
    *r = (struct record){.step = -1};
    return r;
}

struct record_process *record_set_add_process(struct record_set *s)
{
    if (!ARENA_PUSH(&s->arena, s->processes, s->n_processes, s->processes_capacity))
        return NULL;
    struct record_process *p = &s->processes[s->n_processes - 1];
    *p = (struct record_process){.rank = -1};
    return p;
}

static int compare_records(const void *left, const void *right)
{
    const struct record *a = left, *b = right;
    if (a->process == b->process && a->seq != b->seq && a->wall_ns == b->wall_ns)
        return a->seq < b->seq ? -1 : 1;
    if (a->wall_ns != b->wall_ns)
        return a->wall_ns < b->wall_ns ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return 0;
}

void record_set_sort(struct record_set *s)
{
    if (s->n_records > 1)
        qsort(s->records, s->n_records, sizeof *s->records, compare_records);
}

void record_set_note(struct record_set *s, str code, uint64_t count, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    note_add(&s->arena, &s->notes, &s->n_notes, &s->notes_capacity, code, count, format, args);
    va_end(args);
}

/* Whether process i is the first of the set with its rank, and that rank is one of the world's. */
static bool is_first_of_rank(const struct record_set *s, uint32_t i, uint32_t world)
{
    const struct record_process *p = &s->processes[i];
    if (p->runner || p->rank < 0 || (uint32_t)p->rank >= world)
        return false;
    for (uint32_t k = 0; k < i; k++)
        if (!s->processes[k].runner && s->processes[k].rank == p->rank)
            return false;
    return true;
}

uint32_t record_set_missing_ranks(const struct record_set *s, uint32_t *world)
{
    uint32_t seen = 0;
    *world = 0;
    for (uint32_t i = 0; i < s->n_processes; i++)
        *world = s->processes[i].world_size > *world ? s->processes[i].world_size : *world;
    for (uint32_t i = 0; i < s->n_processes; i++)
        seen += is_first_of_rank(s, i, *world);
    return *world - seen;
}
