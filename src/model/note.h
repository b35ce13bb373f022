/* SPDX-License-Identifier: Apache-2.0 */
/* What was repaired, guessed or left out, counted and said once with the result: the same shape for
 * traces, records and tables. Text lives in the arena it was added with. */
#ifndef TACHO_MODEL_NOTE_H
#define TACHO_MODEL_NOTE_H

#include <stdarg.h>

#include "base/arena.h"

struct note {
    str code, message; /* code: a snake_case word */
    uint64_t count;
};

/* Adds count to the note of that code in (items, n, capacity), made when new: then the text is
 * the message. Beyond the arena's cap a new note is left out and the arena's `overflow` says so. */
void note_add(struct arena *a, struct note **items, uint32_t *n, uint32_t *capacity, str code,
              uint64_t count, const char *format, va_list args) PRINTF_LIKE(7, 0);

#endif
