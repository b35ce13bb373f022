/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/frames.h"

#define ADDRESS " at 0x"
#define ADDRESS_BYTES (sizeof ADDRESS - 1)

bool frame_is_python(str name)
{
    const ptrdiff_t call = str_find(name, S("): "));
    return str_starts(name, S("$")) || str_starts(name, S("<built-in ")) ||
           str_starts(name, S("nn.Module: ")) ||
           (call > 0 && str_find_char(name, '(') < call && name.p[call - 1] >= '0' &&
            name.p[call - 1] <= '9');
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

str frame_clean(str name, struct arena *a)
{
    if (str_starts(name, S("ProfilerStep#")))
        return str_sub(name, 0, sizeof "ProfilerStep" - 1);
    if (str_find(name, S(ADDRESS)) < 0 && str_find_char(name, ';') < 0)
        return name;
    char *const out = arena_alloc(a, name.n + 1, 1);
    size_t n = 0;
    for (size_t i = 0; out != NULL && i < name.n; i++) {
        if (str_starts(str_sub(name, i, name.n), S(ADDRESS))) {
            for (i += ADDRESS_BYTES; i < name.n && is_hex(name.p[i]);)
                i++;
            if (i >= name.n)
                break;
        }
        out[n++] = name.p[i] == ';' ? ',' : name.p[i];
    }
    return (str){out, n};
}
