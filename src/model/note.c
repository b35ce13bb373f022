/* SPDX-License-Identifier: Apache-2.0 */
#include "model/note.h"

void note_add(struct arena *a, struct note **items, uint32_t *n, uint32_t *capacity, str code,
              uint64_t count, const char *format, va_list args)
{
    for (uint32_t i = 0; i < *n; i++)
        if (str_eq((*items)[i].code, code)) {
            (*items)[i].count += count;
            return;
        }
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    if (!ARENA_PUSH(a, *items, *n, *capacity))
        return;
    (*items)[*n - 1] = (struct note){arena_str(a, code), arena_str(a, str_from(text)), count};
}
