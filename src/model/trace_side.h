/* SPDX-License-Identifier: Apache-2.0 */
/* Side columns: the few arguments of events that analysis asks for of every event (side_stats.def), kept with
 * the row group of the events.
 *
 *   section = count u8, then for each: slot u8 · kind u8 · flags u8 · [bitmap of rows] · column
 *
 * A section's column holds a value for each of its rows, in order; without a bitmap these are all rows. A stat
 * whose rows have values of several kinds has a section for each. Text that is not a reference stays in the XSpace
 * (SIDE_ELSEWHERE has a bitmap and no column). Sections may be hostile (index files): side_view checks each.
 *
 * Thread: rows are written by one; a view is for one reader. */
#ifndef TACHO_MODEL_TRACE_SIDE_H
#define TACHO_MODEL_TRACE_SIDE_H

#include "base/err.h"
#include "base/str.h"
#include "model/trace_column.h"

enum side_slot {
#define X(symbol, name, guess) SIDE_##symbol,
#include "model/side_stats.def"
#undef X
    SIDE_SLOTS
};

enum side_kind { SIDE_F64 = 0, SIDE_U64, SIDE_I64, SIDE_REFERENCE, SIDE_ELSEWHERE, SIDE_KINDS };

/* The slot of a stat of that name, or SIDE_SLOTS. */
enum side_slot side_find(str name);

/* Values of one slot and kind while rows are gathered: a place for each row. */
struct side_rows {
    enum side_slot slot;
    enum side_kind kind;
    uint64_t *values;  /* [capacity], owned */
    uint64_t *present; /* bits, owned */
};

struct side_table {
    uint32_t capacity; /* rows */
    struct side_rows *items;
    uint32_t n;
    uint8_t at[SIDE_SLOTS * SIDE_KINDS]; /* index + 1 into items, or 0 */
};

void side_table_init(struct side_table *t, uint32_t capacity);
void side_table_release(struct side_table *t);
/* The place of values of that slot and kind, made when there is none. */
struct side_rows *side_table_rows(struct side_table *t, enum side_slot slot, enum side_kind kind);
/* Sets the value of a row; a second one of the same slot and kind is left out by the caller. */
static inline void side_table_set(struct side_table *t, uint32_t row, enum side_slot slot,
                                  enum side_kind kind, uint64_t value)
{
    const uint8_t at = t->at[slot * SIDE_KINDS + kind];
    struct side_rows *r = at != 0 ? &t->items[at - 1] : side_table_rows(t, slot, kind);
    r->values[row] = value;
    r->present[row / 64] |= UINT64_C(1) << (row % 64);
}
/* Forgets rows [first, first + n). */
void side_table_clear(struct side_table *t, uint32_t first, uint32_t n);
/* Row i takes what order[i] had. scratch: capacity values. */
void side_table_reorder(struct side_table *t, const uint32_t *order, uint32_t n, uint64_t *scratch);
/* Moves rows [from, from + n) to [0, n). */
void side_table_move(struct side_table *t, uint32_t from, uint32_t n);
/* Most bytes that n rows may take packed. */
size_t side_bytes_most(const struct side_table *t, uint32_t n);
/* Packs rows [first, first + n); answers the bytes written. scratch: n values. */
size_t side_pack(const struct side_table *t, uint32_t first, uint32_t n, const uint64_t *start_ps,
                 const uint64_t *dur_ps, uint64_t *scratch, uint8_t *out);

#define SIDE_RANKS 129 /* a rank every 64 rows */

/* One section of a packed group. */
struct side_column {
    enum side_slot slot;
    enum side_kind kind;
    bool has_all; /* a value for each row */
    uint32_t
        guessed_from; /* values are differences to this column of the group; beyond them: to none */
    const uint8_t *bitmap; /* borrows; NULL with has_all */
    struct trace_column values;
    uint16_t ranks[SIDE_RANKS]; /* rows with a value before row 64 i */
};

struct side_view {
    uint32_t n_rows, n, n_capacity;
    struct side_column *items; /* owned, used again */
};

/* Reads the sections in bytes. Borrows bytes, behind which TRACE_COLUMN_SLACK bytes may be read. */
MUST_CHECK bool side_view_read(struct side_view *v, const uint8_t *bytes, size_t n_bytes,
                               uint32_t n_rows, struct err *e);
void side_view_release(struct side_view *v);
/* What a section keeps for a row; false when that is nothing. */
static inline bool side_value(const struct side_column *c, uint32_t row, uint64_t *out)
{
    uint32_t rank = row;
    if (!c->has_all) {
        uint64_t word;
        memcpy(&word, c->bitmap + (size_t)(row / 64) * 8, 8);
        if ((word >> (row % 64) & 1) == 0)
            return false;
        rank = c->ranks[row / 64] +
               (uint32_t)__builtin_popcountll(word & ((UINT64_C(1) << (row % 64)) - 1));
        if (c->kind == SIDE_ELSEWHERE)
            return true;
    }
    *out = trace_column_at(&c->values, rank);
    return true;
}

#endif
