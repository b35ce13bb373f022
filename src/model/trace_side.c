/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_side.h"

#include "base/map.h"

enum guess { GUESS_NONE = 0, GUESS_START, GUESS_DURATION };
enum flag { FLAG_BITMAP = 1, FLAG_GUESSED = 2 };

static const struct {
    str name;
    enum guess guess;
} slots[SIDE_SLOTS] = {
#define X(symbol, name, guess) {STR_INIT(name), GUESS_##guess},
#include "model/side_stats.def"
#undef X
};

enum side_slot side_find(str name)
{
    for (unsigned i = 0; i < SIDE_SLOTS; i++)
        if (str_eq(slots[i].name, name))
            return (enum side_slot)i;
    return SIDE_SLOTS;
}

static size_t bitmap_words(uint32_t n)
{
    return ((size_t)n + 63) / 64;
}

void side_table_init(struct side_table *t, uint32_t capacity)
{
    must(capacity % 64 == 0);
    *t = (struct side_table){.capacity = capacity,
                             .items = map_alloc((size_t)SIDE_SLOTS * SIDE_KINDS, sizeof *t->items)};
}

void side_table_release(struct side_table *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        map_free(t->items[i].values);
        map_free(t->items[i].present);
    }
    map_free(t->items);
    *t = (struct side_table){0};
}

struct side_rows *side_table_rows(struct side_table *t, enum side_slot slot, enum side_kind kind)
{
    uint8_t *at = &t->at[slot * SIDE_KINDS + kind];
    if (*at == 0) {
        struct side_rows *r = &t->items[t->n++];
        *at = (uint8_t)t->n;
        r->slot = slot;
        r->kind = kind;
        r->values = map_alloc(t->capacity, sizeof *r->values);
        r->present = map_alloc(bitmap_words(t->capacity), sizeof *r->present);
    }
    return &t->items[*at - 1];
}

void side_table_clear(struct side_table *t, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < t->n; i++) {
        uint64_t *bits = t->items[i].present;
        uint32_t row = first;
        while (row < first + n && row % 64 != 0)
            bits[row / 64] &= ~(UINT64_C(1) << (row % 64)), row++;
        for (; row + 64 <= first + n; row += 64)
            bits[row / 64] = 0;
        for (; row < first + n; row++)
            bits[row / 64] &= ~(UINT64_C(1) << (row % 64));
    }
}

static bool bit(const uint64_t *bits, uint32_t i)
{
    return (bits[i / 64] >> (i % 64) & 1) != 0;
}

void side_table_reorder(struct side_table *t, const uint32_t *order, uint32_t n, uint64_t *scratch)
{
    uint64_t *bits = map_alloc(bitmap_words(t->capacity), sizeof *bits);
    for (uint32_t i = 0; i < t->n; i++) {
        struct side_rows *r = &t->items[i];
        memset(bits, 0, bitmap_words(t->capacity) * sizeof *bits);
        for (uint32_t k = 0; k < n; k++) {
            scratch[k] = r->values[order[k]];
            bits[k / 64] |= (uint64_t)bit(r->present, order[k]) << (k % 64);
        }
        memcpy(r->values, scratch, n * sizeof *scratch);
        memcpy(r->present, bits, bitmap_words(t->capacity) * sizeof *bits);
    }
    map_free(bits);
}

void side_table_move(struct side_table *t, uint32_t from, uint32_t n)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct side_rows *r = &t->items[i];
        memmove(r->values, r->values + from, n * sizeof *r->values);
        for (uint32_t k = 0; k < n; k++)
            if (bit(r->present, from + k))
                r->present[k / 64] |= UINT64_C(1) << (k % 64);
            else
                r->present[k / 64] &= ~(UINT64_C(1) << (k % 64));
    }
    side_table_clear(t, n, t->capacity - n);
}

size_t side_bytes_most(const struct side_table *t, uint32_t n)
{
    return 1 + (size_t)t->n * (3 + 8 * bitmap_words(n) + TRACE_COLUMN_BYTES_MAX(n)) +
           TRACE_COLUMN_SLACK;
}

/* Values of the rows that have one, dense; answers how many. guess: what is taken off each, or NULL. */
static uint32_t gather(const struct side_rows *r, uint32_t first, uint32_t n, bool is_dense,
                       const uint64_t *guess, uint64_t *out)
{
    uint32_t k = 0;
    if (is_dense) { /* the compiler makes wide instructions of it */
        for (uint32_t i = 0; i < n; i++)
            out[i] = r->values[first + i] - (guess == NULL ? 0 : guess[first + i]);
        return n;
    }
    for (uint32_t i = 0; i < n; i++)
        if (bit(r->present, first + i))
            out[k++] = r->values[first + i] - (guess == NULL ? 0 : guess[first + i]);
    return k;
}

static uint32_t count_present(const struct side_rows *r, uint32_t first, uint32_t n,
                              uint8_t *bitmap)
{
    uint32_t count = 0;
    memset(bitmap, 0, 8 * bitmap_words(n));
    if (first % 64 == 0 && n % 64 == 0) {
        memcpy(bitmap, &r->present[first / 64], n / 8);
        for (uint32_t w = 0; w < n / 64; w++)
            count += (uint32_t)__builtin_popcountll(r->present[first / 64 + w]);
        return count;
    }
    for (uint32_t i = 0; i < n; i++)
        if (bit(r->present, first + i)) {
            bitmap[i / 8] |= (uint8_t)(1u << (i % 8));
            count++;
        }
    return count;
}

static uint8_t *section_pack(const struct side_rows *r, uint32_t first, uint32_t n,
                             const uint64_t *guess, uint64_t *scratch, uint8_t *p)
{
    uint8_t *const head = p;
    const uint32_t count = count_present(r, first, n, p + 3);
    if (count == 0)
        return p;
    head[0] = (uint8_t)r->slot;
    head[1] = (uint8_t)r->kind;
    head[2] = 0;
    p += 3;
    if (count < n || r->kind == SIDE_ELSEWHERE) {
        head[2] |= FLAG_BITMAP;
        p += 8 * bitmap_words(n);
    }
    if (r->kind == SIDE_ELSEWHERE)
        return p;
    gather(r, first, n, count == n, NULL, scratch);
    size_t bytes = trace_column_pack(scratch, count, p);
    if (guess == NULL || (r->kind != SIDE_I64 && r->kind != SIDE_U64))
        return p + bytes;
    const uint8_t width = p[0];
    gather(r, first, n, count == n, guess, scratch);
    bytes = trace_column_pack(scratch, count, p);
    if (p[0] < width) {
        head[2] |= FLAG_GUESSED;
        return p + bytes;
    }
    gather(r, first, n, count == n, NULL, scratch);
    return p + trace_column_pack(scratch, count, p);
}

size_t side_pack(const struct side_table *t, uint32_t first, uint32_t n, const uint64_t *start_ps,
                 const uint64_t *dur_ps, uint64_t *scratch, uint8_t *out)
{
    const uint64_t *const guesses[] = {NULL, start_ps, dur_ps};
    uint8_t *p = out + 1;
    out[0] = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct side_rows *r = &t->items[i];
        uint8_t *const end = section_pack(r, first, n, guesses[slots[r->slot].guess], scratch, p);
        out[0] = (uint8_t)(out[0] + (end != p));
        p = end;
    }
    return (size_t)(p - out);
}

static uint32_t column_ranks(struct side_column *c, uint32_t n_rows)
{
    uint32_t count = 0;
    for (uint32_t w = 0; w < bitmap_words(n_rows); w++) {
        uint64_t word;
        c->ranks[w] = (uint16_t)count;
        memcpy(&word, c->bitmap + 8 * (size_t)w, 8);
        if (64 * w + 64 > n_rows && n_rows % 64 != 0)
            word &= (UINT64_C(1) << (n_rows % 64)) - 1;
        count += (uint32_t)__builtin_popcountll(word);
    }
    return count;
}

/* One section at p; answers its bytes, or 0 when it is damaged. */
static size_t section_read(struct side_column *c, const uint8_t *p, size_t left, uint32_t n_rows)
{
    size_t at = 3;
    if (left < 3 || p[0] >= SIDE_SLOTS || p[1] >= SIDE_KINDS || p[2] > (FLAG_BITMAP | FLAG_GUESSED))
        return 0;
    c->slot = (enum side_slot)p[0];
    c->kind = (enum side_kind)p[1];
    c->has_all = (p[2] & FLAG_BITMAP) == 0;
    c->guessed_from = (p[2] & FLAG_GUESSED) == 0            ? UINT32_MAX
                      : slots[c->slot].guess == GUESS_START ? TRACE_COLUMN_START
                                                            : TRACE_COLUMN_DURATION;
    c->bitmap = NULL;
    uint32_t count = n_rows;
    if (!c->has_all) {
        if (left - at < 8 * bitmap_words(n_rows))
            return 0;
        c->bitmap = p + at;
        at += 8 * bitmap_words(n_rows);
        count = column_ranks(c, n_rows);
    }
    if (c->kind == SIDE_ELSEWHERE)
        return c->has_all ? 0 : at;
    const size_t bytes = trace_column_read(&c->values, p + at, left - at, count);
    return bytes == 0 ? 0 : at + bytes;
}

bool side_view_read(struct side_view *v, const uint8_t *bytes, size_t n_bytes, uint32_t n_rows,
                    struct err *e)
{
    v->n = 0;
    v->n_rows = n_rows;
    if (n_bytes < 1 || n_rows > 64 * (SIDE_RANKS - 1))
        return err_at(e, ERR_PARSE, 0, "side columns are damaged");
    if (bytes[0] > v->n_capacity) {
        map_free(v->items);
        v->n_capacity = bytes[0];
        v->items = map_alloc(v->n_capacity, sizeof *v->items);
    }
    size_t at = 1;
    for (uint32_t i = 0; i < bytes[0]; i++) {
        const size_t taken = section_read(&v->items[i], bytes + at, n_bytes - at, n_rows);
        if (taken == 0)
            return err_at(e, ERR_PARSE, at, "side columns are damaged");
        at += taken;
        v->n++;
    }
    return at == n_bytes || err_at(e, ERR_PARSE, at, "side columns have bytes too many");
}

void side_view_release(struct side_view *v)
{
    map_free(v->items);
    *v = (struct side_view){0};
}
