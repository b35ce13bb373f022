/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/collective_collect.h"

#include "model/trace_pick.h"

struct collector {
    struct collectives *out;
    struct arena *arena;
    struct err *err;
    const struct trace *trace;
    struct hlo_index hlo; /* of the trace */
    struct collective_map known;
    struct memo kinds;
    uint32_t *open, n_open, open_capacity; /* parts that wait for their -done */
};

struct sighting { /* of one collective by one device */
    struct collective_key key;
    str kind;
    uint32_t group_size;
    uint64_t bytes;
    int64_t sequence;
};

static uint32_t collective_at(struct collector *c, const struct sighting *s)
{
    struct collectives *out = c->out;
    const uint32_t *at = collective_map_get(&c->known, s->key);
    if (at != NULL)
        return *at;
    struct collective_key key = s->key; /* its text may be of the event at hand */
    key.name = arena_str(c->arena, key.name);
    key.group = arena_str(c->arena, key.group);
    if (key.name.p == NULL || !ARENA_PUSH(c->arena, out->items, out->n, out->capacity))
        return UINT32_MAX;
    out->items[out->n - 1] = (struct collective){.name = key.name,
                                                 .kind = s->kind,
                                                 .group = key.group,
                                                 .program_id = key.program_id,
                                                 .group_size = s->group_size};
    *collective_map_put(&c->known, key) = out->n - 1;
    return out->n - 1;
}

static bool add_part(struct collector *c, uint32_t device, const struct trace_event *ev,
                     const struct sighting *s)
{
    struct collectives *out = c->out;
    const uint32_t at = collective_at(c, s);
    if (at == UINT32_MAX || !ARENA_PUSH(c->arena, out->parts, out->n_parts, out->parts_capacity))
        return arena_full(c->arena, c->err);
    out->parts[out->n_parts - 1] =
        (struct collective_part){.device = device,
                                 .collective = at,
                                 .sequence = s->sequence,
                                 .start_ps = ev->start_ps + c->trace->shift_ps,
                                 .dur_ps = ev->dur_ps,
                                 .bytes = s->bytes};
    return true;
}

/* ---- what XLA says of its operations ---- */

static uint64_t operand_bytes(const struct hlo_module *m, const struct hlo_instruction *in)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < in->operand_ids.n; i++) {
        const struct hlo_instruction *operand = hlo_operand(m, in, i);
        if (operand == NULL || __builtin_add_overflow(sum, hlo_shape_bytes(&operand->shape), &sum))
            return 0;
    }
    return (uint64_t)sum;
}

/* Among several groups of replicas a device is known by its place among all, when all were captured. */
static void place_in_groups(struct collector *c, struct sighting *s, const struct hlo_groups *g,
                            uint32_t device)
{
    const int64_t n = hlo_groups_count(g), all = hlo_groups_devices(g);
    int64_t i = 0;
    const bool placed = n == 1 || (all == c->out->devices.n && hlo_group_of(g, device, &i));
    int64_t size = hlo_group_size(g, i);
    if (!placed && size != hlo_groups_largest(g))
        size = 0;
    for (int64_t k = 0; !placed && size > 0 && k < g->n_lists; k++)
        if (hlo_group_size(g, k) != size)
            size = 0; /* of one or the other */
    s->group_size = size > UINT32_MAX ? 0 : (uint32_t)size;
    if (n < 2)
        s->key.group = (str){0};
    else if (placed)
        s->key.group = arena_printf(c->arena, "group %lld", (long long)i);
    else
        s->key.group = arena_printf(c->arena, "of device %u", device); /* unknown: with nobody */
}

/* The payload as the devices together see it: an all-gather hands out what all of them bring. */
static void describe(struct collector *c, struct sighting *s, uint32_t device)
{
    const struct hlo_program *p = hlo_index_program(&c->hlo, s->key.program_id);
    const struct hlo_instruction *in =
        p == NULL || !p->readable ? NULL : hlo_find(&p->module, s->key.name);
    if (in == NULL)
        return;
    if (work_collective(in->opcode).n > 0)
        s->kind = work_collective(in->opcode);
    place_in_groups(c, s, in->groups, device);
    s->bytes = operand_bytes(&p->module, in);
    if (str_eq(s->kind, S("all-gather")))
        s->bytes *= s->group_size; /* 0, unknown, where the size is */
}

/* ---- TPU ---- */

/* The start that waits longest for a -done of that kind; its part lasts until then. */
static void close_part(struct collector *c, str kind, uint64_t end_ps)
{
    for (uint32_t i = 0; i < c->n_open; i++) {
        struct collective_part *part = &c->out->parts[c->open[i]];
        if (!str_eq(c->out->items[part->collective].kind, kind))
            continue;
        part->dur_ps = end_ps > part->start_ps ? end_ps - part->start_ps : 0;
        memmove(&c->open[i], &c->open[i + 1], (c->n_open - i - 1) * sizeof *c->open);
        c->n_open--;
        return;
    }
}

static bool add_core_event(struct collector *c, uint32_t device, uint32_t line,
                           const struct trace_event *ev, bool transfers)
{
    const struct trace_event_metadata *m = trace_event_meta(c->trace, &c->trace->lines[line], ev);
    str name = trace_event_name(c->trace, &c->trace->lines[line], ev);
    const bool async = work_is_async_line(c->trace, line);
    const bool starts = str_find(name, S("-start")) >= 0, ends = str_find(name, S("-done")) >= 0;
    int64_t program = 0;
    if (!async && transfers && (starts || ends))
        return true;
    if (str_ends(name, S("-async")))
        name = str_sub(name, 0, name.n - 6);
    if (m != NULL)
        trace_stat_i64(trace_stat_find(m->stats, S("program_id")), &program);
    struct sighting s = {.key = {.program_id = (uint64_t)program, .name = name},
                         .kind = work_collective(name),
                         .sequence = INT64_MIN};
    if (!async && ends) {
        close_part(c, s.kind, ev->start_ps + ev->dur_ps + c->trace->shift_ps);
        return true;
    }
    describe(c, &s, device);
    if (!add_part(c, device, ev, &s))
        return false;
    if (!async && starts) {
        if (!ARENA_PUSH(c->arena, c->open, c->n_open, c->open_capacity))
            return arena_full(c->arena, c->err);
        c->open[c->n_open - 1] = c->out->n_parts - 1;
    }
    return true;
}

/* ---- GPU ---- */

enum asked {
    HLO_OP = 0,
    PROGRAM_ID,
    COLLECTIVE,
    GROUP_NAME,
    GROUP_RANKS,
    IN_ELEMENTS,
    OUT_ELEMENTS,
    TYPE,
    GROUP_SIZE,
    SEQUENCE,
    FROM_RANK,
    TO_RANK,
    ASKED
};
static const str asked_names[ASKED] = {STR_INIT("hlo_op"),
                                       STR_INIT("program_id"),
                                       STR_INIT("Collective name"),
                                       STR_INIT("Process Group Name"),
                                       STR_INIT("Process Group Ranks"),
                                       STR_INIT("In msg nelems"),
                                       STR_INIT("Out msg nelems"),
                                       STR_INIT("dtype"),
                                       STR_INIT("Group size"),
                                       STR_INIT("Seq"),
                                       STR_INIT("Src Rank"),
                                       STR_INIT("Dst Rank")};

/* Of one element of PyTorch's type; 0 unknown. */
static uint64_t type_bytes(str type)
{
    static const struct {
        str name;
        uint64_t bytes;
    } types[] = {{STR_INIT("Double"), 8}, {STR_INIT("Long"), 8},     {STR_INIT("ComplexFloat"), 8},
                 {STR_INIT("Float"), 4},  {STR_INIT("Int"), 4},      {STR_INIT("Half"), 2},
                 {STR_INIT("Short"), 2},  {STR_INIT("BFloat16"), 2}, {STR_INIT("Char"), 1},
                 {STR_INIT("Byte"), 1},   {STR_INIT("Bool"), 1}};
    if (str_starts(type, S("Float8")))
        return 1;
    if (str_starts(type, S("c10::")))
        type = str_sub(type, 5, type.n);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (str_eq_nocase(type, types[i].name))
            return types[i].bytes;
    return 0;
}

static uint64_t payload(const struct trace_stat *v, bool out)
{
    int64_t elements;
    uint64_t bytes;
    str type = {0};
    if (!trace_stat_i64(&v[out ? OUT_ELEMENTS : IN_ELEMENTS], &elements) || elements <= 0 ||
        !trace_stat_str(&v[TYPE], &type) ||
        __builtin_mul_overflow((uint64_t)elements, type_bytes(type), &bytes))
        return 0;
    return bytes;
}

/* As PyTorch describes its process groups. */
static void describe_group(struct collector *c, struct sighting *s, const struct trace_stat *v)
{
    str group = {0}, ranks = {0};
    int64_t n, from, to;
    trace_stat_str(&v[COLLECTIVE], &s->key.name);
    s->kind = work_collective_of_kernel(s->key.name);
    trace_stat_str(&v[GROUP_NAME], &group);
    trace_stat_str(&v[GROUP_RANKS], &ranks);
    s->key.group = ranks.n > 0 ? ranks : group;
    if (trace_stat_i64(&v[GROUP_SIZE], &n) && n > 0 && n <= UINT32_MAX)
        s->group_size = (uint32_t)n;
    if (trace_stat_i64(&v[SEQUENCE], &n))
        s->sequence = n;
    s->bytes = payload(v, str_eq(s->kind, S("all-gather")));
    const bool point = str_eq(s->key.name, S("send")) || str_eq(s->key.name, S("recv"));
    if (point) { /* what one sends the other receives */
        s->key.name = s->kind = S("send-recv");
        if (trace_stat_i64(&v[FROM_RANK], &from) && trace_stat_i64(&v[TO_RANK], &to))
            s->key.group = arena_printf(c->arena, "%lld to %lld", (long long)from, (long long)to);
        s->group_size = 2;
    }
}

static bool add_kernel(struct collector *c, uint32_t device, uint32_t line,
                       const struct trace_event *ev, const struct trace_stat *v)
{
    struct sighting s = {.sequence = INT64_MIN};
    str text;
    int64_t program = 0;
    const str kernel = trace_event_name(c->trace, &c->trace->lines[line], ev);
    if (trace_stat_str(&v[HLO_OP], &s.key.name) && s.key.name.n > 0) {
        trace_stat_i64(&v[PROGRAM_ID], &program);
        s.key.program_id = (uint64_t)program;
        s.kind = work_collective(s.key.name);
        describe(c, &s, device);
    } else if (trace_stat_str(&v[COLLECTIVE], &text) && text.n > 0) {
        describe_group(c, &s, v);
    } else {
        s.key.name = kernel;
    }
    if (s.kind.n == 0)
        s.kind = work_collective_of_kernel(kernel);
    return add_part(c, device, ev, &s);
}

/* ---- all ---- */

static bool collect_line(struct collector *c, uint32_t device, uint32_t line, bool transfers)
{
    const struct trace *t = c->trace;
    const bool is_gpu = t->planes[t->lines[line].plane_index].kind == TRACE_PLANE_GPU;
    struct trace_cursor cursor;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, t, line, asked_names, is_gpu ? ASKED : 0);
    trace_picker_follow(&p, &cursor);
    c->n_open = 0;
    for (trace_cursor_init_work(&cursor, t, line); ok && trace_cursor_next(&cursor);) {
        const struct trace_event *ev = &cursor.event;
        if (ev->num_occurrences > 0 || work_kind_at(&c->kinds, t, line, ev) != WORK_COMM)
            continue;
        if (!is_gpu)
            ok = add_core_event(c, device, line, ev, transfers);
        else
            ok = trace_pick(&p, ev, c->err) && add_kernel(c, device, line, ev, p.values);
    }
    trace_picker_release(&p);
    trace_cursor_release(&cursor);
    return ok && trace_cursor_ok(&cursor, c->err);
}

enum asked_cpu { CPU_OP = 0, CPU_PROGRAM, CPU_ORDINAL, CPU_RUN, CPU_ASKED };
static const str cpu_names[CPU_ASKED] = {STR_INIT("hlo_op"), STR_INIT("program_id"),
                                         STR_INIT("device_ordinal"), STR_INIT("run_id")};

static bool add_cpu_event(struct collector *c, const struct trace_event *ev,
                          const struct trace_stat *v)
{
    int64_t program = 0, ordinal = -1, run = INT64_MIN;
    str op = {0};
    if (!trace_stat_str(&v[CPU_OP], &op) || work_collective(op).n == 0)
        return true;
    trace_stat_i64(&v[CPU_PROGRAM], &program);
    trace_stat_i64(&v[CPU_ORDINAL], &ordinal);
    trace_stat_i64(&v[CPU_RUN], &run);
    const uint32_t device = work_device_find(&c->out->devices, c->trace, UINT32_MAX, ordinal);
    if (device == UINT32_MAX)
        return true;
    struct sighting s = {.key = {.program_id = (uint64_t)program, .name = op},
                         .kind = work_collective(op),
                         .sequence = run};
    describe(c, &s, device);
    return add_part(c, device, ev, &s);
}

static bool collect_thread(struct collector *c, uint32_t line)
{
    struct trace_cursor cursor;
    struct trace_picker p;
    bool ok = true;
    trace_picker_init(&p, c->trace, line, cpu_names, CPU_ASKED);
    trace_picker_follow(&p, &cursor);
    for (trace_cursor_init(&cursor, c->trace, line); ok && trace_cursor_next(&cursor);)
        ok = trace_pick(&p, &cursor.event, c->err) && add_cpu_event(c, &cursor.event, p.values);
    trace_picker_release(&p);
    trace_cursor_release(&cursor);
    return ok && trace_cursor_ok(&cursor, c->err);
}

static bool collect_device(struct collector *c, uint32_t device)
{
    const struct work_device *d = &c->out->devices.items[device];
    if (d->plane_index == UINT32_MAX)
        return true;
    const struct trace_plane *p = &c->trace->planes[d->plane_index];
    const bool transfers = work_has_transfers(c->trace, p);
    bool ok = true;
    for (uint32_t l = p->first_line; ok && l < p->first_line + p->n_lines; l++)
        if (spans_is_work_line(c->trace, l) || work_is_async_line(c->trace, l))
            ok = collect_line(c, device, l, transfers);
    return ok;
}

static bool has_cpus(const struct collector *c)
{
    for (uint32_t i = 0; i < c->out->devices.n; i++)
        if (c->out->devices.items[i].trace == c->trace &&
            c->out->devices.items[i].plane_index == UINT32_MAX)
            return true;
    return false;
}

static bool collect_trace(struct collector *c)
{
    bool ok = hlo_index_add(&c->hlo, c->trace, c->arena, c->err);
    for (uint32_t i = 0; ok && i < c->out->devices.n; i++)
        if (c->out->devices.items[i].trace == c->trace)
            ok = collect_device(c, i);
    for (uint32_t l = 0; ok && has_cpus(c) && l < c->trace->n_lines; l++)
        if (c->trace->planes[c->trace->lines[l].plane_index].kind == TRACE_PLANE_HOST)
            ok = collect_thread(c, l);
    hlo_index_release(&c->hlo);
    c->hlo = (struct hlo_index){0};
    return ok;
}

bool collectives_collect(const struct profile *p, struct arena *a, struct collectives *out,
                         struct err *e)
{
    struct collector c = {.out = out, .arena = a, .err = e};
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->n_traces; i++) {
        c.trace = p->traces[i];
        ok = collect_trace(&c);
    }
    memo_release(&c.kinds);
    collective_map_release(&c.known);
    return ok;
}
