/* SPDX-License-Identifier: Apache-2.0 */
/* collective_match: each collective on all who took part, who waited and who came last. */
#include <stdlib.h>

#include "analysis/collective_match.h"
#include "analysis/tool.h"

#define INSTANCES_SHOWN 200

struct totals { /* of one collective */
    uint64_t instances, matched, bytes, time_ps, transfer_ps, wait_ps, sized_ps;
    double bus_bytes;
    uint32_t most;
    uint64_t *last; /* times that each device came last */
};

static str label_at(const struct collectives *c, uint32_t device)
{
    return c->devices.items[device].label;
}

static struct cell known_text(str s)
{
    return s.n > 0 ? cell_text(s) : cell_unknown();
}

static struct cell percent(uint64_t part, uint64_t all)
{
    return all > 0 ? cell_f64(100.0 * (double)part / (double)all) : cell_unknown();
}

static void add_instance(struct totals *t, const struct collectives *c,
                         const struct collective_instance *x)
{
    const struct collective *of = &c->items[x->collective];
    /* how many took part is not how many were captured */
    const double crossed = collective_bus_bytes(of->kind, x->bytes, of->group_size);
    t->instances++;
    t->bytes += x->bytes;
    t->most = x->n > t->most ? x->n : t->most;
    for (uint32_t i = 0; i < x->n; i++)
        t->time_ps += c->parts[x->first + i].dur_ps;
    if (!x->matched)
        return;
    t->matched++;
    t->transfer_ps += x->transfer_ps;
    t->wait_ps += x->wait_ps;
    if (x->last != UINT32_MAX)
        t->last[x->last]++;
    if (crossed > 0) {
        t->bus_bytes += crossed;
        t->sized_ps += x->transfer_ps;
    }
}

static uint32_t most_often_last(const struct totals *t, uint32_t n_devices)
{
    uint32_t who = UINT32_MAX;
    for (uint32_t i = 0; i < n_devices; i++)
        if (t->last[i] > 0 && (who == UINT32_MAX || t->last[i] > t->last[who]))
            who = i;
    return who;
}

static void declare_collectives(struct table *t)
{
    table_column(t, S("collective"), S("Collective"), CELL_TEXT, S(""));
    table_column(t, S("kind"), S("Kind"), CELL_TEXT, S(""));
    table_column(t, S("group"), S("Group"), CELL_TEXT, S(""));
    table_column(t, S("group_size"), S("Group size"), CELL_U64, S(""));
    table_column(t, S("participants"), S("Captured"), CELL_U64, S(""));
    table_column(t, S("instances"), S("Count"), CELL_U64, S(""));
    table_column(t, S("matched"), S("Matched"), CELL_U64, S(""));
    table_column(t, S("bytes"), S("Payload"), CELL_U64, S("bytes"));
    table_column(t, S("time_ps"), S("Time of all"), CELL_U64, S("ps"));
    table_column(t, S("transfer_ps"), S("Transfer"), CELL_U64, S("ps"));
    table_column(t, S("wait_ps"), S("Waiting of all"), CELL_U64, S("ps"));
    table_column(t, S("bus_bytes_per_s"), S("Bus bandwidth"), CELL_F64, S("bytes/s"));
    table_column(t, S("last"), S("Most often last"), CELL_TEXT, S(""));
    table_column(t, S("last_share_percent"), S("Last in"), CELL_F64, S("%"));
    table_column(t, S("program_id"), S("Program"), CELL_U64, S(""));
}

static bool collective_row(struct table *t, const struct collectives *c, uint32_t index,
                           const struct totals *s)
{
    const struct collective *of = &c->items[index];
    const uint32_t last = most_often_last(s, c->devices.n);
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    row[0] = cell_text(of->name);
    row[1] = known_text(of->kind);
    row[2] = known_text(of->group);
    row[3] = of->group_size > 0 ? cell_u64(of->group_size) : cell_unknown();
    row[4] = cell_u64(s->most);
    row[5] = cell_u64(s->instances);
    row[6] = cell_u64(s->matched);
    row[7] = s->bytes > 0 ? cell_u64(s->bytes) : cell_unknown();
    row[8] = cell_u64(s->time_ps);
    row[9] = s->matched > 0 ? cell_u64(s->transfer_ps) : cell_unknown();
    row[10] = s->matched > 0 ? cell_u64(s->wait_ps) : cell_unknown();
    row[11] =
        s->sized_ps > 0 ? cell_f64(s->bus_bytes * 1e12 / (double)s->sized_ps) : cell_unknown();
    row[12] = last != UINT32_MAX ? cell_text(label_at(c, last)) : cell_unknown();
    row[13] = last != UINT32_MAX ? percent(s->last[last], s->matched) : cell_unknown();
    row[14] = of->program_id > 0 ? cell_u64(of->program_id) : cell_unknown();
    return true;
}

static struct table *collectives_table(const struct collectives *c, struct arena *a)
{
    struct table *t = table_new(a, S("collective_match"), S("Collectives"));
    struct totals *s = ARENA_ARRAY(a, struct totals, (size_t)c->n + 1);
    if (t == NULL || s == NULL)
        return NULL;
    declare_collectives(t);
    for (uint32_t i = 0; i < c->n; i++)
        if ((s[i].last = ARENA_ARRAY(a, uint64_t, (size_t)c->devices.n + 1)) == NULL)
            return NULL;
    for (uint32_t i = 0; i < c->n_instances; i++)
        add_instance(&s[c->instances[i].collective], c, &c->instances[i]);
    for (uint32_t i = 0; i < c->n && collective_row(t, c, i, &s[i]); i++)
        continue;
    table_sort(t, table_find_column(t, S("time_ps")), TABLE_DESCENDING);
    table_sort(t, table_find_column(t, S("wait_ps")), TABLE_DESCENDING);
    return t;
}

/* ---- who waited ---- */

static struct table *ranks_table(const struct collectives *c, struct arena *a)
{
    struct table *t = table_new(a, S("ranks"), S("Who waited"));
    if (t == NULL)
        return NULL;
    table_column(t, S("participant"), S("Participant"), CELL_TEXT, S(""));
    table_column(t, S("rank"), S("Rank"), CELL_I64, S(""));
    table_column(t, S("host"), S("Host"), CELL_TEXT, S(""));
    table_column(t, S("device"), S("Device"), CELL_TEXT, S(""));
    table_column(t, S("collectives"), S("Collectives"), CELL_U64, S(""));
    table_column(t, S("matched"), S("Matched"), CELL_U64, S(""));
    table_column(t, S("time_ps"), S("Time in them"), CELL_U64, S("ps"));
    table_column(t, S("wait_ps"), S("Waiting"), CELL_U64, S("ps"));
    table_column(t, S("wait_share_percent"), S("Waiting share"), CELL_F64, S("%"));
    table_column(t, S("last_count"), S("Came last"), CELL_U64, S(""));
    table_column(t, S("last_share_percent"), S("Last in"), CELL_F64, S("%"));
    table_column(t, S("late_ps"), S("Entered after the first"), CELL_U64, S("ps"));
    for (uint32_t i = 0; i < c->devices.n; i++) {
        const struct work_device *d = &c->devices.items[i];
        const struct collective_rank *r = &c->ranks[i];
        struct cell *row = table_row(t);
        if (row == NULL)
            return NULL;
        row[0] = cell_text(d->label);
        row[1] = d->has_rank ? cell_i64(d->rank) : cell_unknown();
        row[2] = known_text(d->trace->host);
        row[3] = cell_text(d->name);
        row[4] = cell_u64(r->parts);
        row[5] = cell_u64(r->matched);
        row[6] = cell_u64(r->time_ps);
        if (r->matched > 0) {
            row[7] = cell_u64(r->wait_ps);
            row[8] = percent(r->wait_ps, r->matched_ps);
            row[9] = cell_u64(r->last_count);
            row[10] = percent(r->last_count, r->matched);
        }
        row[11] = r->n_late > 0 ? cell_u64(r->late_ps) : cell_unknown();
    }
    return t;
}

/* ---- one by one ---- */

static int by_wait(const void *x, const void *y)
{
    const struct collective_instance *a = *(const struct collective_instance *const *)x,
                                     *b = *(const struct collective_instance *const *)y;
    if (a->wait_ps != b->wait_ps)
        return a->wait_ps < b->wait_ps ? 1 : -1;
    return a < b ? -1 : a > b;
}

static int by_place(const void *x, const void *y)
{
    const struct collective_instance *a = *(const struct collective_instance *const *)x,
                                     *b = *(const struct collective_instance *const *)y;
    return a < b ? -1 : a > b;
}

static void declare_instances(struct table *t)
{
    table_column(t, S("start_ps"), S("Start"), CELL_U64, S("ps"));
    table_column(t, S("collective"), S("Collective"), CELL_TEXT, S(""));
    table_column(t, S("group"), S("Group"), CELL_TEXT, S(""));
    table_column(t, S("sequence"), S("Sequence"), CELL_I64, S(""));
    table_column(t, S("participants"), S("Captured"), CELL_U64, S(""));
    table_column(t, S("bytes"), S("Payload"), CELL_U64, S("bytes"));
    table_column(t, S("transfer_ps"), S("Transfer"), CELL_U64, S("ps"));
    table_column(t, S("wait_ps"), S("Waiting of all"), CELL_U64, S("ps"));
    table_column(t, S("longest_wait_ps"), S("Longest wait"), CELL_U64, S("ps"));
    table_column(t, S("waited_most"), S("Waited most"), CELL_TEXT, S(""));
    table_column(t, S("last"), S("Last"), CELL_TEXT, S(""));
    table_column(t, S("entered_apart_ps"), S("Entered apart"), CELL_U64, S("ps"));
}

static bool instance_row(struct table *t, const struct collectives *c,
                         const struct collective_instance *x)
{
    const struct collective *of = &c->items[x->collective];
    const struct collective_part *most = &c->parts[x->first];
    struct cell *row = table_row(t);
    if (row == NULL)
        return false;
    for (uint32_t i = 1; i < x->n; i++)
        if (c->parts[x->first + i].wait_ps > most->wait_ps)
            most = &c->parts[x->first + i];
    row[0] = cell_u64(x->start_ps);
    row[1] = cell_text(of->name);
    row[2] = known_text(of->group);
    row[3] = x->sequence != INT64_MIN ? cell_i64(x->sequence) : cell_unknown();
    row[4] = cell_u64(x->n);
    row[5] = x->bytes > 0 ? cell_u64(x->bytes) : cell_unknown();
    if (x->matched) {
        row[6] = cell_u64(x->transfer_ps);
        row[7] = cell_u64(x->wait_ps);
        row[8] = cell_u64(most->wait_ps);
        row[9] = most->wait_ps > 0 ? cell_text(label_at(c, most->device)) : cell_unknown();
    }
    row[10] = x->last != UINT32_MAX ? cell_text(label_at(c, x->last)) : cell_unknown();
    row[11] = x->has_apart ? cell_u64(x->apart_ps) : cell_unknown();
    return true;
}

/* Those in which most was waited, in the order of time. */
static struct table *instances_table(const struct collectives *c, uint64_t limit, struct arena *a)
{
    struct table *t = table_new(a, S("instances"), S("One by one"));
    const struct collective_instance **shown =
        ARENA_ARRAY(a, const struct collective_instance *, (size_t)c->n_instances + 1);
    if (t == NULL || shown == NULL)
        return NULL;
    declare_instances(t);
    size_t n = c->n_instances;
    for (size_t i = 0; i < n; i++)
        shown[i] = &c->instances[i];
    if (n > limit) {
        qsort(shown, n, sizeof(void *), by_wait);
        table_note(t, S("left_out"), n - limit,
                   "collectives in which less was waited are left out (instances=N shows more)");
        n = (size_t)limit;
        qsort(shown, n, sizeof(void *), by_place);
    }
    for (size_t i = 0; i < n && instance_row(t, c, shown[i]); i++)
        continue;
    return t;
}

static void totals_and_notes(struct table *t, const struct collectives *c)
{
    uint64_t wait = 0, matched = 0;
    for (uint32_t i = 0; i < c->devices.n; i++) {
        wait += c->ranks[i].wait_ps;
        matched += c->ranks[i].matched;
    }
    table_value(t, S("participants"), S("Participants"), cell_u64(c->devices.n), S(""));
    table_value(t, S("instances"), S("Collectives"), cell_u64(c->n_instances), S(""));
    table_value(t, S("wait_ps"), S("Waiting of all"), matched > 0 ? cell_u64(wait) : cell_unknown(),
                S("ps"));
    if (c->n_instances == 0)
        table_note(t, S("no_collectives"), 1, "no collective is in the profile");
    if (c->n_unmatched > 0)
        table_note(t, S("unmatched"), c->n_unmatched,
                   "collectives have one participant in the profile: what was transfer and what "
                   "waiting is unknown");
    if (c->n_incomplete > 0)
        table_note(t, S("incomplete"), c->n_incomplete,
                   "collectives had more participants than were captured: the transfer is at most "
                   "what is shown");
    if (c->n_sizes_differ > 0)
        table_note(t, S("sizes_differ"), c->n_sizes_differ,
                   "collectives whose participants name different payloads: size unknown");
}

static bool collective_match_run(const struct tool_request *r, struct arena *a, struct table **out,
                                 struct err *e)
{
    struct collectives c;
    uint64_t limit = INSTANCES_SHOWN;
    const str asked = tool_param(r, S("instances"));
    if (asked.n > 0 && !str_to_u64(asked, &limit))
        return err_set(e, ERR_USAGE, "instances is a number, not '%.*s'", STR_ARG(asked));
    if (!collectives_of(r->profile, a, &c, e))
        return false;
    struct table *first = collectives_table(&c, a), *ranks = ranks_table(&c, a),
                 *instances = instances_table(&c, limit, a);
    if (first == NULL || ranks == NULL || instances == NULL)
        return arena_full(a, e);
    totals_and_notes(first, &c);
    first->next = ranks;
    ranks->next = instances;
    *out = first;
    return true;
}

const struct tool_functions tool_collective_match = {.run = collective_match_run};
