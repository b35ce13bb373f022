/* SPDX-License-Identifier: Apache-2.0 */
#include "model/table_print.h"

#include <inttypes.h>
#include <math.h>

#define BOLD "\033[1m"
#define MUTED "\033[2m"
#define PLAIN "\033[0m"
#define GAP 2               /* blanks between columns */
#define CELL_WIDTH_LEAST 12 /* a text column is not cut below this */
#define SCRATCH_BYTES ((size_t)256 << 20)

/* Characters that a terminal shows; every code point counts as one. */
static size_t width_of(str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((uint8_t)s.p[i] & 0xc0) != 0x80;
    return n;
}

/* The first `width` characters of s. */
static str first_characters(str s, size_t width)
{
    size_t i = 0;
    for (size_t n = 0; i < s.n; i++)
        if (((uint8_t)s.p[i] & 0xc0) != 0x80 && n++ == width)
            break;
    return str_sub(s, 0, i);
}

static bool is_control(uint8_t c)
{
    return c < 0x20 || c == 0x7f;
}

str text_printable(struct arena *a, str s)
{
    bool safe = str_is_utf8(s);
    const bool text = safe;
    for (size_t i = 0; safe && i < s.n; i++)
        safe = !is_control((uint8_t)s.p[i]) &&
               !((uint8_t)s.p[i] == 0xc2 && i + 1 < s.n && (uint8_t)s.p[i + 1] < 0xa0);
    if (safe)
        return s;
    struct buf b;
    buf_init(&b, s.n * 4 + 1);
    for (size_t i = 0; i < s.n; i++) {
        const uint8_t c = (uint8_t)s.p[i];
        const bool c1 = c == 0xc2 && i + 1 < s.n && (uint8_t)s.p[i + 1] < 0xa0;
        if (is_control(c) || c1 || (!text && c >= 0x80))
            buf_addf(&b, "\\x%02x", c1 ? (uint8_t)s.p[++i] : c);
        else
            buf_add_char(&b, (char)c);
    }
    const str kept = arena_str(a, buf_str(&b));
    buf_release(&b);
    return kept;
}

static void add_blanks(struct buf *out, size_t n)
{
    while (n-- > 0)
        buf_add_char(out, ' ');
}

/* One cell padded to its column; numbers stand right. The last left-aligned one is not padded. */
static void add_cell(struct buf *out, str text, size_t width, bool right, bool last)
{
    size_t n = width_of(text);
    const bool cut = n > width;
    if (cut) {
        text = first_characters(text, width - 1);
        n = width;
    }
    if (right)
        add_blanks(out, width - n);
    buf_add_str(out, text);
    if (cut)
        buf_add_str(out, S("…"));
    if (!right && !last)
        add_blanks(out, width - n);
}

struct layout {
    struct arena *arena; /* scratch of one table */
    const struct table *t;
    str *texts; /* n_rows * n_columns, formatted */
    size_t *widths;
    uint32_t n_rows; /* that are shown */
};

static bool is_right(const struct column *c)
{
    return c->type != CELL_TEXT && c->type != CELL_BOOL;
}

/* Cuts the widest text columns until the line fits into `width`. */
static void fit(struct layout *l, size_t width)
{
    size_t total = 0;
    for (uint32_t c = 0; c < l->t->n_columns; c++)
        total += l->widths[c] + (c > 0 ? GAP : 0);
    while (total > width) {
        uint32_t widest = UINT32_MAX;
        for (uint32_t c = 0; c < l->t->n_columns; c++)
            if (!is_right(&l->t->columns[c]) && l->widths[c] > CELL_WIDTH_LEAST &&
                (widest == UINT32_MAX || l->widths[c] > l->widths[widest]))
                widest = c;
        if (widest == UINT32_MAX)
            return;
        l->widths[widest]--;
        total--;
    }
}

static bool measure(struct layout *l)
{
    const struct table *t = l->t;
    l->texts = ARENA_ARRAY(l->arena, str, (size_t)l->n_rows * t->n_columns);
    l->widths = ARENA_ARRAY(l->arena, size_t, t->n_columns);
    if (l->texts == NULL || l->widths == NULL)
        return false;
    for (uint32_t c = 0; c < t->n_columns; c++)
        l->widths[c] = width_of(t->columns[c].title);
    for (uint32_t r = 0; r < l->n_rows; r++)
        for (uint32_t c = 0; c < t->n_columns; c++) {
            const str text = text_printable(
                l->arena, cell_format(l->arena, table_cell(t, r, c), t->columns[c].unit));
            l->texts[(size_t)r * t->n_columns + c] = text;
            const size_t n = width_of(text);
            if (n > l->widths[c])
                l->widths[c] = n;
        }
    return true;
}

static void add_rows(struct layout *l, const struct table_style *style, struct buf *out)
{
    const struct table *t = l->t;
    if (style->colour)
        buf_add_str(out, S(MUTED));
    for (uint32_t c = 0; c < t->n_columns; c++) {
        add_blanks(out, c > 0 ? GAP : 0);
        add_cell(out, t->columns[c].title, l->widths[c], is_right(&t->columns[c]),
                 c + 1 == t->n_columns);
    }
    if (style->colour)
        buf_add_str(out, S(PLAIN));
    buf_add_char(out, '\n');
    for (uint32_t r = 0; r < l->n_rows; r++) {
        for (uint32_t c = 0; c < t->n_columns; c++) {
            add_blanks(out, c > 0 ? GAP : 0);
            add_cell(out, l->texts[(size_t)r * t->n_columns + c], l->widths[c],
                     is_right(&t->columns[c]), c + 1 == t->n_columns);
        }
        buf_add_char(out, '\n');
    }
    if (l->n_rows < t->n_rows)
        buf_addf(out, "… %u more rows\n", t->n_rows - l->n_rows);
}

static void add_values(const struct table *t, struct arena *a, struct buf *out)
{
    size_t width = 0;
    for (uint32_t i = 0; i < t->n_values; i++) {
        const size_t n = width_of(t->values[i].column.title);
        if (n > width)
            width = n;
    }
    for (uint32_t i = 0; i < t->n_values; i++) {
        const struct table_value *v = &t->values[i];
        add_cell(out, v->column.title, width, false, false);
        add_blanks(out, GAP);
        buf_add_str(out, text_printable(a, cell_format(a, &v->cell, v->column.unit)));
        buf_add_char(out, '\n');
    }
}

static void add_notes(const struct table *t, struct arena *a, struct buf *out)
{
    for (uint32_t i = 0; i < t->n_notes; i++) {
        const str message = text_printable(a, t->notes[i].message);
        buf_addf(out, "note: %.*s", STR_ARG(message));
        if (t->notes[i].count > 1)
            buf_addf(out, " (%" PRIu64 " times)", t->notes[i].count);
        buf_add_char(out, '\n');
    }
}

static void print_one(const struct table *t, const struct table_style *style, struct arena *a,
                      struct buf *out)
{
    struct layout l = {.arena = a, .t = t, .n_rows = t->n_rows};
    if (style->max_rows > 0 && l.n_rows > style->max_rows)
        l.n_rows = style->max_rows;
    if (t->title.n > 0)
        buf_addf(out, "%s%.*s%s\n", style->colour ? BOLD : "", STR_ARG(t->title),
                 style->colour ? PLAIN : "");
    add_values(t, a, out);
    if (t->n_columns > 0) {
        if (t->n_values > 0)
            buf_add_char(out, '\n');
        if (measure(&l)) {
            if (style->width > 0)
                fit(&l, style->width);
            add_rows(&l, style, out);
        } else {
            out->overflow = true;
        }
    }
    add_notes(t, a, out);
}

void table_print_text(const struct table *t, const struct table_style *style, struct buf *out)
{
    for (const struct table *one = t; one != NULL; one = one->next) {
        struct arena scratch;
        arena_init(&scratch, "table text", SCRATCH_BYTES);
        if (one != t)
            buf_add_char(out, '\n');
        print_one(one, style, &scratch, out);
        arena_release(&scratch);
    }
}

void cell_print_json(struct json *j, const struct cell *c)
{
    if (!c->known) {
        json_null(j);
        return;
    }
    switch (c->type) {
    case CELL_TEXT:
        json_str(j, c->text);
        break;
    case CELL_I64:
        json_i64(j, c->i64);
        break;
    case CELL_U64:
        json_u64(j, c->u64);
        break;
    case CELL_F64:
        json_f64(j, c->f64);
        break;
    case CELL_BOOL:
        json_bool(j, c->yes);
        break;
    }
}

static void json_columns(const struct table *t, struct json *j)
{
    static const char *const types[] = {"text", "i64", "u64", "f64", "bool"};
    json_key(j, "columns");
    json_array(j);
    for (uint32_t c = 0; c < t->n_columns; c++) {
        json_object(j);
        json_kstr(j, "name", t->columns[c].name);
        json_kstr(j, "title", t->columns[c].title);
        json_kstr(j, "unit", t->columns[c].unit);
        json_kcstr(j, "type", types[t->columns[c].type]);
        json_end(j);
    }
    json_end(j);
}

static void json_notes(const struct table *t, struct json *j)
{
    json_key(j, "notes");
    json_array(j);
    for (uint32_t i = 0; i < t->n_notes; i++) {
        json_object(j);
        json_kstr(j, "code", t->notes[i].code);
        json_kstr(j, "message", t->notes[i].message);
        json_ku64(j, "count", t->notes[i].count);
        json_end(j);
    }
    json_end(j);
}

static void json_one(const struct table *t, struct json *j)
{
    json_object(j);
    json_kstr(j, "table", t->name);
    json_kstr(j, "title", t->title);
    json_columns(t, j);
    json_key(j, "values");
    json_object(j);
    for (uint32_t i = 0; i < t->n_values; i++) {
        json_key_str(j, t->values[i].column.name);
        cell_print_json(j, &t->values[i].cell);
    }
    json_end(j);
    json_key(j, "rows");
    json_array(j);
    for (uint32_t r = 0; r < t->n_rows; r++) {
        json_array(j);
        for (uint32_t c = 0; c < t->n_columns; c++)
            cell_print_json(j, table_cell(t, r, c));
        json_end(j);
    }
    json_end(j);
    json_notes(t, j);
    json_end(j);
}

void table_print_json(const struct table *t, struct json *j)
{
    if (t->next == NULL) {
        json_one(t, j);
        return;
    }
    json_object(j);
    json_key(j, "tables");
    json_array(j);
    for (; t != NULL; t = t->next)
        json_one(t, j);
    json_end(j);
    json_end(j);
}

static void csv_text(struct buf *out, str s)
{
    bool quoted = false;
    for (size_t i = 0; i < s.n && !quoted; i++)
        quoted = s.p[i] == ',' || s.p[i] == '"' || s.p[i] == '\n' || s.p[i] == '\r';
    if (!quoted) {
        buf_add_str(out, s);
        return;
    }
    buf_add_char(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"')
            buf_add_char(out, '"');
        buf_add_char(out, s.p[i]);
    }
    buf_add_char(out, '"');
}

static void csv_cell(struct buf *out, const struct cell *c)
{
    char number[JSON_F64_MAX];
    if (!c->known)
        return;
    switch (c->type) {
    case CELL_TEXT:
        csv_text(out, c->text);
        break;
    case CELL_I64:
        buf_addf(out, "%" PRId64, c->i64);
        break;
    case CELL_U64:
        buf_addf(out, "%" PRIu64, c->u64);
        break;
    case CELL_F64:
        if (isfinite(c->f64))
            buf_add(out, number, json_format_f64(c->f64, number));
        break;
    case CELL_BOOL:
        buf_add_str(out, c->yes ? S("true") : S("false"));
        break;
    }
}

/* A table without columns prints its values, so that nothing is lost. */
static void csv_values(const struct table *t, struct buf *out)
{
    buf_add_str(out, S("name,value\r\n"));
    for (uint32_t i = 0; i < t->n_values; i++) {
        csv_text(out, t->values[i].column.name);
        buf_add_char(out, ',');
        csv_cell(out, &t->values[i].cell);
        buf_add_str(out, S("\r\n"));
    }
}

static void csv_one(const struct table *t, struct buf *out)
{
    if (t->n_columns == 0) {
        csv_values(t, out);
        return;
    }
    for (uint32_t c = 0; c < t->n_columns; c++) {
        if (c > 0)
            buf_add_char(out, ',');
        csv_text(out, t->columns[c].name);
    }
    buf_add_str(out, S("\r\n"));
    for (uint32_t r = 0; r < t->n_rows; r++) {
        for (uint32_t c = 0; c < t->n_columns; c++) {
            if (c > 0)
                buf_add_char(out, ',');
            csv_cell(out, table_cell(t, r, c));
        }
        buf_add_str(out, S("\r\n"));
    }
}

void table_print_csv(const struct table *t, struct buf *out)
{
    for (const struct table *one = t; one != NULL; one = one->next) {
        if (one != t)
            buf_add_str(out, S("\r\n"));
        csv_one(one, out);
    }
}
