/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_pick.h"

#include "base/file.h"
#include "model/secrets.h"

#define AHEAD_LEAST 4096
#define AHEAD_MOST 262144

enum { SLOT_UNKNOWN = 0, SLOT_NOT_ASKED, SLOT_FIRST };

static bool plane_knows(const struct trace_plane *plane, str name)
{
    for (uint32_t i = 0; i < plane->n_stat_names; i++)
        if (str_eq(plane->stat_names[i], name))
            return true;
    return false;
}

void trace_picker_init(struct trace_picker *p, const struct trace *t, uint32_t line_index,
                       const str *names, uint32_t n)
{
    must(n <= TRACE_PICK_MAX);
    *p = (struct trace_picker){.trace = t,
                               .plane = &t->planes[t->lines[line_index].plane_index],
                               .names = names,
                               .n = n,
                               .ahead = AHEAD_LEAST};
    arena_init(&p->texts, "texts of events", 0);
    p->own.group = TRACE_GROUP_UNREAD;
    p->all_on_side = true;
    for (uint32_t i = 0; i < n && t->source != NULL; i++) {
        const enum side_slot slot = side_find(names[i]);
        if (!plane_knows(p->plane, names[i]))
            continue;
        p->any = true;
        if (slot == SIDE_SLOTS)
            p->all_on_side = false;
        else
            p->wanted[slot] = (uint8_t)(1 + i);
    }
}

void trace_picker_follow(struct trace_picker *p, const struct trace_cursor *c)
{
    p->cursor = c;
}

void trace_picker_release(struct trace_picker *p)
{
    free(p->bytes);
    p->bytes = NULL;
    trace_group_view_release(&p->own);
    side_view_release(&p->side);
    arena_release(&p->texts);
}

static uint8_t slot_of(const struct trace_picker *p, uint64_t stat_id)
{
    const uint32_t *at = map_u64_u32_get(&p->plane->stat_name_by_id, stat_id);
    for (uint32_t i = 0; at != NULL && i < p->n; i++)
        if (str_eq(p->plane->stat_names[*at], p->names[i]))
            return (uint8_t)(SLOT_FIRST + i);
    return SLOT_NOT_ASKED;
}

struct trace_stat *trace_picker_take(struct trace_picker *p, uint64_t stat_id)
{
    uint8_t slot = stat_id < TRACE_PICK_SMALL ? p->slots[stat_id] : slot_of(p, stat_id);
    if (slot == SLOT_UNKNOWN)
        slot = p->slots[stat_id] = slot_of(p, stat_id);
    if (slot == SLOT_NOT_ASKED || (p->seen >> (slot - SLOT_FIRST) & 1) != 0)
        return NULL;
    p->seen |= 1u << (slot - SLOT_FIRST);
    return &p->values[slot - SLOT_FIRST];
}

/* Events that follow each other in the file are read many at once; where they jump, few are. */
static bool read_from(struct trace_picker *p, uint64_t pos, size_t n, struct err *e)
{
    if (p->file_bytes == 0 && !file_size(p->trace->fd, &p->file_bytes, e))
        return false;
    if (p->n_bytes > 0 && pos >= p->at && pos - p->at <= p->n_bytes + AHEAD_LEAST)
        p->ahead = p->ahead < AHEAD_MOST ? p->ahead * 2 : AHEAD_MOST;
    else if (p->n_bytes > 0)
        p->ahead = p->ahead > AHEAD_LEAST ? p->ahead / 2 : AHEAD_LEAST;
    size_t want = n > p->ahead ? n : p->ahead;
    if (p->file_bytes > pos && want > p->file_bytes - pos)
        want = p->file_bytes - pos > n ? (size_t)(p->file_bytes - pos) : n;
    if (want > p->capacity) {
        free(p->bytes);
        p->bytes = malloc(want);
        must(p->bytes != NULL);
        p->capacity = want;
    }
    p->n_bytes = 0;
    if (!file_pread_all(p->trace->fd, p->bytes, want, pos, e))
        return err_wrap(e, "cannot read event of '%.*s'", STR_ARG(p->trace->file));
    p->at = pos;
    p->n_bytes = want;
    return true;
}

/* Text of the plane's dictionary was masked when the trace was loaded. */
static void mask_values(struct trace_picker *p, str message)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct trace_stat *const s = &p->values[i];
        const bool own =
            p->texts.chunk != NULL || (uintptr_t)s->text.p - (uintptr_t)message.p < message.n;
        if (s->type == TRACE_STAT_STR && own)
            s->text = secret_mask_text(&p->texts, s->text, SECRET_ALL);
    }
}

/* Sections of the row group that hold what is asked for. */
static bool open_group(struct trace_picker *p, uint32_t group, struct err *e)
{
    const struct trace_group_view *of = p->cursor == NULL ? NULL : trace_cursor_view(p->cursor);
    if (of == NULL || of->group != group) {
        of = &p->own;
        if (!trace_group_view_open(&p->own, p->trace->groups, group, e))
            return false;
    }
    if (p->view == of && p->group == group && p->side_at == of->side)
        return true;
    p->view = NULL;
    if (!side_view_read(&p->side, of->side, of->side_bytes, of->n_rows, e))
        return false;
    p->view = of;
    p->group = group;
    p->side_at = of->side;
    p->n_sections = 0;
    for (uint32_t i = 0; i < p->side.n; i++)
        if (p->wanted[p->side.items[i].slot] != 0 && p->n_sections < sizeof p->sections)
            p->sections[p->n_sections++] = (uint8_t)i;
    return true;
}

/* NONE: no number. */
static const enum trace_stat_type types_of_kinds[SIDE_KINDS] = {
    [SIDE_F64] = TRACE_STAT_F64, [SIDE_U64] = TRACE_STAT_U64, [SIDE_I64] = TRACE_STAT_I64};

static inline void value_set(const struct trace_picker *p, struct trace_stat *s,
                             enum side_kind kind, uint64_t value)
{
    s->type = types_of_kinds[kind];
    s->u64 = value; /* the bits of doubles and signed numbers too */
    if (kind == SIDE_REFERENCE) {
        s->type = TRACE_STAT_STR;
        s->text = value < p->plane->n_stat_names ? p->plane->stat_names[value] : (str){0};
    }
}

/* False in *here: the file has to be asked. */
static bool pick_side(struct trace_picker *p, const struct trace_event *ev, bool *here,
                      struct err *e)
{
    *here = false;
    if (!open_group(p, ev->group, e))
        return false;
    if (ev->row >= p->view->n_rows)
        return err_set(e, ERR_PARSE, "an event is not where its row group ends");
    for (uint32_t i = 0; i < p->n_sections; i++) {
        const struct side_column *c = &p->side.items[p->sections[i]];
        uint64_t value = 0;
        if (!side_value(c, ev->row, &value))
            continue;
        if (c->guessed_from < TRACE_GROUP_COLUMNS)
            value += trace_column_at(&p->view->columns[c->guessed_from], ev->row);
        if (c->kind == SIDE_ELSEWHERE)
            return true;
        value_set(p, &p->values[p->wanted[c->slot] - 1], c->kind, value);
    }
    *here = true;
    return true;
}

static bool pick_file(struct trace_picker *p, const struct trace_event *ev, struct err *e)
{
    p->seen = 0;
    if (p->texts.chunk != NULL)
        arena_release(&p->texts);
    if ((ev->src < p->at || ev->src - p->at > p->n_bytes ||
         ev->src_bytes > p->n_bytes - (ev->src - p->at)) &&
        !read_from(p, ev->src, ev->src_bytes, e))
        return false;
    const str message = {p->bytes + (ev->src - p->at), ev->src_bytes};
    if (!p->trace->source->pick(p, message, ev->src, e))
        return false;
    mask_values(p, message);
    return true;
}

bool trace_pick(struct trace_picker *p, const struct trace_event *ev, struct err *e)
{
    bool here = false;
    for (uint32_t i = 0; i < p->n; i++)
        p->values[i].type = TRACE_STAT_NONE;
    if (!p->any || ev->src_bytes == 0)
        return true;
    if (p->all_on_side && !pick_side(p, ev, &here, e))
        return false;
    if (here || p->trace->fd < 0)
        return true;
    for (uint32_t i = 0; i < p->n; i++)
        p->values[i].type = TRACE_STAT_NONE;
    return pick_file(p, ev, e);
}

/* A section's values for n rows from `first` on. */
static void numbers_fill(const struct trace_picker *p, const struct side_column *c, uint32_t first,
                         uint32_t n, struct trace_numbers *out)
{
    const struct trace_column *const guess =
        c->guessed_from < TRACE_GROUP_COLUMNS ? &p->view->columns[c->guessed_from] : NULL;
    const uint8_t type = (uint8_t)types_of_kinds[c->kind];
    if (!out->any)
        memset(out->types, TRACE_STAT_NONE, n);
    out->any = true;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t value = 0;
        if (!side_value(c, first + i, &value))
            continue;
        out->types[i] = type;
        out->bits[i] = value + (guess == NULL ? 0 : trace_column_at(guess, first + i));
    }
}

static bool all_are_numbers(const struct trace_picker *p)
{
    for (uint32_t i = 0; i < p->n_sections; i++)
        if (types_of_kinds[p->side.items[p->sections[i]].kind] == TRACE_STAT_NONE)
            return false;
    return true;
}

static bool numbers_one_by_one(struct trace_picker *p, const struct trace_event *events, uint32_t n,
                               struct trace_numbers *out, struct err *e)
{
    struct trace_event
        whole[TRACE_CURSOR_WINDOW]; /* the cursor may have left the place in the file out */
    uint64_t end = trace_group_src_end(p->view, events[0].row);
    trace_group_unpack(p->view, events[0].row, n, &end, whole);
    for (uint32_t i = 0; i < n; i++) {
        if (!trace_pick(p, &whole[i], e))
            return false;
        for (uint32_t k = 0; k < p->n; k++) {
            struct trace_stat s = p->values[k];
            if (s.type == TRACE_STAT_STR && trace_stat_i64(&p->values[k], &s.i64))
                s.type = TRACE_STAT_I64;
            else if (s.type == TRACE_STAT_STR && trace_stat_f64(&p->values[k], &s.f64))
                s.type = TRACE_STAT_F64;
            else if (s.type == TRACE_STAT_STR || s.type == TRACE_STAT_BYTES)
                s.type = TRACE_STAT_NONE;
            out[k].any = true;
            out[k].types[i] = (uint8_t)s.type;
            out[k].bits[i] = s.u64;
        }
    }
    return true;
}

bool trace_pick_numbers(struct trace_picker *p, const struct trace_event *events, uint32_t n,
                        struct trace_numbers *out, struct err *e)
{
    for (uint32_t k = 0; k < p->n; k++)
        out[k].any = false;
    if (!p->any || n == 0)
        return true;
    must(n <= TRACE_CURSOR_WINDOW && events[n - 1].group == events[0].group &&
         events[n - 1].row == events[0].row + n - 1);
    if (!open_group(p, events[0].group, e))
        return false;
    if (events[n - 1].row >= p->view->n_rows)
        return err_set(e, ERR_PARSE, "an event is not where its row group ends");
    if (!p->all_on_side || !all_are_numbers(p))
        return numbers_one_by_one(p, events, n, out, e);
    for (uint32_t i = 0; i < p->n_sections; i++) {
        const struct side_column *c = &p->side.items[p->sections[i]];
        numbers_fill(p, c, events[0].row, n, &out[p->wanted[c->slot] - 1]);
    }
    return true;
}
