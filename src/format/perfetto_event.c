/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "base/limits.h"
#include "format/perfetto_internal.h"

#define ANNOTATION_DEPTH 8
#define CATEGORIES_MOST 16
#define EVENT_FLOWS 16

/* A track event without its annotations. */
struct event {
    int32_t type;
    uint64_t track, name_iid;
    str name;
    bool has_track, has_name, has_value, has_delta, has_absolute;
    double value;
    uint64_t category_iids[CATEGORIES_MOST];
    str categories[CATEGORIES_MOST];
    uint32_t n_category_iids, n_categories;
    uint64_t flows[EVENT_FLOWS], ends[EVENT_FLOWS];
    uint32_t n_flows, n_ends;
    uint64_t counters[2][DEFAULT_COUNTERS]; /* tracks of more samples: whole numbers, doubles */
    double counter_values[2][DEFAULT_COUNTERS];
    uint32_t n_counters[2], n_counter_values[2];
    int64_t delta_us, absolute_us, dur_us;
};

/* -- state of a sequence -- */

void perfetto_interned(struct perfetto *p, struct sequence *s, str message)
{
    struct wire w = wire_from(message, 0);
    while (wire_next(&w)) {
        const int kind = w.field == 1    ? INTERNED_CATEGORY
                         : w.field == 2  ? INTERNED_EVENT
                         : w.field == 3  ? INTERNED_ANNOTATION
                         : w.field == 29 ? INTERNED_STRING
                                         : -1;
        if (kind < 0 || w.type != WIRE_LEN)
            continue;
        uint64_t iid = 0;
        str text = {0};
        struct wire one = wire_from(w.bytes, 0);
        while (wire_next(&one)) {
            if (one.field == 1 && one.type == WIRE_VARINT)
                iid = one.number;
            else if (one.field == 2 && one.type == WIRE_LEN)
                text = one.bytes;
        }
        *map_u64_u32_put(&s->interned[kind], iid) = interner_id(&p->texts, text);
    }
}

void perfetto_defaults(struct sequence *s, str message)
{
    struct wire w = wire_from(message, 0);
    s->n_counters = s->n_double_counters = 0;
    while (wire_next(&w)) {
        if (w.field == 58 && w.type == WIRE_VARINT)
            s->clock = (uint32_t)w.number;
        if (w.field != 11 || w.type != WIRE_LEN)
            continue;
        struct wire one = wire_from(w.bytes, 0);
        while (wire_next(&one)) {
            if (one.type != WIRE_VARINT)
                continue;
            if (one.field == 11)
                s->track = one.number;
            else if (one.field == 31 && s->n_counters < DEFAULT_COUNTERS)
                s->counters[s->n_counters++] = one.number;
            else if (one.field == 45 && s->n_double_counters < DEFAULT_COUNTERS)
                s->double_counters[s->n_double_counters++] = one.number;
        }
    }
}

static str interned_text(struct perfetto *p, const struct packet *k, enum interned kind,
                         uint64_t iid)
{
    const uint32_t *id = map_u64_u32_get(&k->sequence->interned[kind], iid);
    p->n_unknown_name += id == NULL;
    return id == NULL ? S("?") : interner_str(&p->texts, *id);
}

/* -- reading -- */

static double double_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* A number of a repeated field, that may be packed. */
static void take_repeated(struct event *ev, uint32_t field, uint64_t v)
{
    if (field == 3 && ev->n_category_iids < CATEGORIES_MOST)
        ev->category_iids[ev->n_category_iids++] = v;
    else if ((field == 36 || field == 47) && ev->n_flows < EVENT_FLOWS)
        ev->flows[ev->n_flows++] = v;
    else if ((field == 42 || field == 48) && ev->n_ends < EVENT_FLOWS)
        ev->ends[ev->n_ends++] = v;
    else if ((field == 31 || field == 45) && ev->n_counters[field == 45] < DEFAULT_COUNTERS)
        ev->counters[field == 45][ev->n_counters[field == 45]++] = v;
    else if (field == 12 && ev->n_counter_values[0] < DEFAULT_COUNTERS)
        ev->counter_values[0][ev->n_counter_values[0]++] = (double)(int64_t)v;
    else if (field == 46 && ev->n_counter_values[1] < DEFAULT_COUNTERS)
        ev->counter_values[1][ev->n_counter_values[1]++] = double_of(v);
}

static void take_number(struct event *ev, uint32_t field, uint64_t v)
{
    switch (field) {
    case 9:
        ev->type = (int32_t)v;
        break;
    case 10:
        ev->name_iid = v;
        ev->has_name = true;
        break;
    case 11:
        ev->track = v;
        ev->has_track = true;
        break;
    case 30:
        ev->value = (double)(int64_t)v;
        ev->has_value = true;
        break;
    case 44:
        ev->value = double_of(v);
        ev->has_value = true;
        break;
    case 1:
        ev->delta_us = (int64_t)v;
        ev->has_delta = true;
        break;
    case 16:
        ev->absolute_us = (int64_t)v;
        ev->has_absolute = true;
        break;
    default:
        take_repeated(ev, field, v);
    }
}

/* The phases of Chrome's JSON, as old traces have them. */
static void take_legacy(struct event *ev, str message)
{
    struct wire w = wire_from(message, 0);
    while (wire_next(&w)) {
        if (w.type != WIRE_VARINT)
            continue;
        if (w.field == 2 && ev->type == EVENT_UNSPECIFIED)
            ev->type = w.number == 'B'                                         ? EVENT_BEGIN
                       : w.number == 'E'                                       ? EVENT_END
                       : w.number == 'X'                                       ? EVENT_WHOLE
                       : w.number == 'I' || w.number == 'i' || w.number == 'R' ? EVENT_INSTANT
                                                                               : EVENT_UNSPECIFIED;
        else if (w.field == 3)
            ev->dur_us = (int64_t)w.number;
    }
}

static bool event_read(struct event *ev, str message)
{
    struct wire w = wire_from(message, 0);
    while (wire_next(&w)) {
        if (w.type != WIRE_LEN) {
            take_number(ev, w.field, w.number);
        } else if (w.field == 23) {
            ev->name = w.bytes;
            ev->has_name = true;
        } else if (w.field == 22 && ev->n_categories < CATEGORIES_MOST) {
            ev->categories[ev->n_categories++] = w.bytes;
        } else if (w.field == 6) {
            take_legacy(ev, w.bytes);
        } else if (w.field == 3 || w.field == 12 || w.field == 31 || w.field == 45) {
            uint64_t v;
            for (str rest = w.bytes; wire_packed_next(&rest, &v);)
                take_repeated(ev, w.field, v);
        } else if (w.field == 46 || w.field == 47 || w.field == 48) {
            for (size_t i = 0; i + 8 <= w.bytes.n; i += 8) {
                uint64_t v;
                memcpy(&v, w.bytes.p + i, sizeof v);
                take_repeated(ev, w.field, v);
            }
        }
    }
    return w.wrong == NULL;
}

/* -- annotations -- */

struct annotation {
    str name, text;
    uint64_t number;
    uint32_t field; /* of the value */
    bool named;
};

static struct annotation annotation_of(struct perfetto *p, const struct packet *k, str message)
{
    struct annotation a = {0};
    struct wire w = wire_from(message, 0);
    while (wire_next(&w)) {
        if (w.field == 1 && w.type == WIRE_VARINT) {
            a.name = interned_text(p, k, INTERNED_ANNOTATION, w.number);
            a.named = true;
        } else if (w.field == 10 && w.type == WIRE_LEN) {
            a.name = w.bytes;
            a.named = true;
        } else if ((w.field >= 2 && w.field <= 9) || w.field == 17) {
            a.field = w.field;
            a.number = w.number;
            a.text = w.type == WIRE_LEN ? w.bytes : (str){0};
        }
    }
    return a;
}

static void write_annotation(struct perfetto *p, const struct packet *k, struct xspace_line_out *l,
                             const struct annotation *a)
{
    const uint32_t id = xspace_writer_stat_id(&p->w, l->plane, buf_str(&p->name));
    switch (a->field) {
    case 2:
        xspace_writer_stat_str(l, id, a->number != 0 ? S("true") : S("false"));
        break;
    case 3:
    case 7:
        xspace_writer_stat_u64(l, id, a->number);
        break;
    case 4:
        xspace_writer_stat_i64(l, id, (int64_t)a->number);
        break;
    case 5:
        if (isfinite(double_of(a->number)))
            xspace_writer_stat_f64(l, id, double_of(a->number));
        break;
    case 6:
    case 9:
        xspace_writer_stat_str(l, id, a->text);
        break;
    case 17:
        xspace_writer_stat_str(l, id, interned_text(p, k, INTERNED_STRING, a->number));
        break;
    default:
        break;
    }
}

/* The annotation and those in it, under the name in p->name. */
static void add_annotation(struct perfetto *p, const struct packet *k, struct xspace_line_out *l,
                           str message, unsigned depth)
{
    const struct annotation a = annotation_of(p, k, message);
    const size_t outer = p->name.n;
    if (a.named && outer > 0)
        buf_add_char(&p->name, '.');
    buf_add_str(&p->name, a.name);
    if (a.field != 0)
        write_annotation(p, k, l, &a);
    const size_t mine = p->name.n;
    uint32_t n = 0;
    struct wire w = wire_from(message, 0);
    while (depth < ANNOTATION_DEPTH && wire_next(&w)) {
        if (w.type != WIRE_LEN || (w.field != 11 && w.field != 12))
            continue;
        if (w.field == 12)
            buf_addf(&p->name, "[%u]", n++);
        add_annotation(p, k, l, w.bytes, depth + 1);
        p->name.n = mine;
    }
    p->name.n = outer;
}

/* -- writing -- */

static void add_counter(struct perfetto *p, uint64_t uuid, double value, int64_t at_ns)
{
    struct track *t = perfetto_track(p, uuid);
    struct pf_process *r = t == NULL ? NULL : perfetto_process(p, t);
    if (r == NULL || !isfinite(value))
        return;
    value *= (double)t->multiplier;
    if (t->is_incremental)
        value = t->sum += value;
    if (r->counters == NULL)
        r->counters = xspace_writer_line(&p->w, r->plane, INT64_MAX - 1, S("_counters_"));
    buf_clear(&p->text);
    buf_add_str(&p->text, t->name.n > 0 ? t->name : S("counter"));
    if (t->unit.n > 0)
        buf_addf(&p->text, " (%.*s)", STR_ARG(t->unit));
    if (r->counters == NULL)
        return;
    xspace_writer_stat_f64(r->counters, xspace_writer_stat_id(&p->w, r->plane, S("counter_value")),
                           value);
    xspace_writer_event(&p->w, r->counters, xspace_writer_name(&p->w, r->plane, buf_str(&p->text)),
                        at_ns, 0, 0);
    p->n_events++;
}

static void add_counters(struct perfetto *p, const struct sequence *s, const struct event *ev,
                         int64_t at_ns)
{
    for (int kind = 0; kind < 2; kind++) {
        const bool own = ev->n_counters[kind] > 0;
        const uint64_t *uuids = own         ? ev->counters[kind]
                                : kind == 0 ? s->counters
                                            : s->double_counters;
        const uint32_t n = own         ? ev->n_counters[kind]
                           : kind == 0 ? s->n_counters
                                       : s->n_double_counters;
        for (uint32_t i = 0; i < n && i < ev->n_counter_values[kind]; i++)
            add_counter(p, uuids[i], ev->counter_values[kind][i], at_ns);
    }
}

static void add_categories(struct perfetto *p, const struct packet *k, const struct event *ev,
                           struct xspace_line_out *l)
{
    buf_clear(&p->text);
    for (uint32_t i = 0; i < ev->n_category_iids + ev->n_categories; i++) {
        if (i > 0)
            buf_add_char(&p->text, ',');
        buf_add_str(&p->text, i < ev->n_category_iids
                                  ? interned_text(p, k, INTERNED_CATEGORY, ev->category_iids[i])
                                  : ev->categories[i - ev->n_category_iids]);
    }
    if (p->text.n > 0)
        xspace_writer_stat_str(l, xspace_writer_stat_id(&p->w, l->plane, S("category")),
                               buf_str(&p->text));
}

static void add_flow(struct perfetto *p, struct track *t, uint64_t id, int64_t at_ns, bool ends)
{
    if (ARENA_PUSH(&p->w.arena, p->flows, p->n_flows, p->flows_capacity))
        p->flows[p->n_flows - 1] = (struct pf_flow){.id = id,
                                                    .at_ns = at_ns,
                                                    .order = p->n_flows,
                                                    .track = t,
                                                    .event = t->line->n_events - 1,
                                                    .ends = ends};
}

static void add_event(struct perfetto *p, const struct packet *k, const struct event *ev,
                      struct track *t, str message, int64_t at_ns)
{
    struct xspace_line_out *l = perfetto_line(p, t);
    if (l == NULL)
        return;
    struct wire w = wire_from(message, 0);
    while (wire_next(&w))
        if (w.field == 4 && w.type == WIRE_LEN) {
            buf_clear(&p->name);
            add_annotation(p, k, l, w.bytes, 0);
        }
    if (ev->type != EVENT_END)
        add_categories(p, k, ev, l);
    const str name = ev->name.n > 0 ? ev->name
                     : ev->has_name ? interned_text(p, k, INTERNED_EVENT, ev->name_iid)
                                    : S("?");
    const uint64_t dur_ps = ev->type == EVENT_INSTANT ? 0
                            : ev->type != EVENT_WHOLE ? XSPACE_OPEN
                            : ev->dur_us < 0 || ev->dur_us > INT64_MAX / 1000000
                                ? 0
                                : (uint64_t)ev->dur_us * 1000000;
    const uint64_t before = l->n_events;
    xspace_writer_event(&p->w, l, xspace_writer_name(&p->w, l->plane, name), at_ns, 0, dur_ps);
    if (l->n_events == before)
        return;
    buf_add_char(&t->types, (char)ev->type);
    p->n_events += dur_ps != XSPACE_OPEN;
    for (uint32_t i = 0; ev->type != EVENT_END && i < ev->n_flows; i++)
        add_flow(p, t, ev->flows[i], at_ns, false);
    for (uint32_t i = 0; ev->type != EVENT_END && i < ev->n_ends; i++)
        add_flow(p, t, ev->ends[i], at_ns, true);
}

bool perfetto_packet_time(struct perfetto *p, const struct packet *k, int64_t *out_ns)
{
    const uint32_t clock = k->has_clock             ? k->clock
                           : k->sequence->clock > 0 ? k->sequence->clock
                           : p->primary_clock > 0   ? p->primary_clock
                                                    : 6;
    const bool ok = perfetto_time(p, k, clock, k->timestamp, out_ns);
    p->n_unknown_clock += !ok;
    return ok;
}

static bool event_time(struct perfetto *p, const struct packet *k, const struct event *ev,
                       int64_t *out_ns)
{
    if (!ev->has_delta && !ev->has_absolute)
        return perfetto_packet_time(p, k, out_ns);
    int64_t us = ev->absolute_us;
    if (ev->has_delta && (__builtin_add_overflow(k->sequence->reference_us, ev->delta_us, &us)))
        return false;
    if (ev->has_delta)
        k->sequence->reference_us = us;
    return !__builtin_mul_overflow(us, 1000, out_ns);
}

void perfetto_track_event(struct perfetto *p, const struct packet *k, str message)
{
    struct event ev = {0};
    int64_t at_ns;
    if (!event_read(&ev, message)) {
        p->n_damaged++;
        return;
    }
    if (!event_time(p, k, &ev, &at_ns))
        return;
    add_counters(p, k->sequence, &ev, at_ns);
    const uint64_t uuid = ev.has_track ? ev.track : k->sequence->track;
    if (ev.type == EVENT_COUNTER) {
        if (ev.has_value)
            add_counter(p, uuid, ev.value, at_ns);
        return;
    }
    if ((ev.type < EVENT_BEGIN || ev.type > EVENT_INSTANT) && ev.type != EVENT_WHOLE) {
        p->n_left_out++;
        return;
    }
    struct track *t = perfetto_track(p, uuid);
    if (t != NULL)
        add_event(p, k, &ev, t, message, at_ns);
}
