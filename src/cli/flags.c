/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags.h"

#include <math.h>

#include "base/clock.h"
#include "base/limits.h"

const struct flag flag_table[FLAG_N] = {
#define X(command, id, name, argument, type, repeat, fallback, help)                               \
    {#command, name, argument, FLAG_##type, FLAG_##repeat, fallback, help},
#include "cli/flags.def"
#undef X
};

void flags_init(struct flags *f)
{
    *f = (struct flags){0};
    arena_init(&f->arena, "flags", LIMIT_ARENA_REQUEST_BYTES);
}

void flags_release(struct flags *f)
{
    arena_release(&f->arena);
    *f = (struct flags){0};
}

static bool parse_time(str s, int64_t *ns)
{
    double seconds;
    if (clock_parse_rfc3339(s, ns))
        return true;
    if (!str_to_f64(s, &seconds) || !(seconds >= 0 && seconds < 8e9))
        return false;
    *ns = (int64_t)llround(seconds * 1e6) * NS_PER_US;
    return true;
}

static bool parse_number(enum flag_type type, str s, int64_t *out)
{
    switch (type) {
    case FLAG_COUNT:
        return str_to_i64(s, out) && *out > 0;
    case FLAG_DURATION:
        return str_to_duration_ns(s, NS_PER_S, out) && *out > 0;
    case FLAG_TIME:
        return parse_time(s, out);
    case FLAG_BOOL:
    case FLAG_TEXT:
    case FLAG_FILE:
        break;
    }
    *out = 1;
    return true;
}

static const char *wanted(enum flag_type type)
{
    static const char *const words[] = {
        [FLAG_BOOL] = "no value",
        [FLAG_TEXT] = "text",
        [FLAG_FILE] = "a file",
        [FLAG_COUNT] = "a whole number above 0",
        [FLAG_DURATION] = "a duration such as 500ms or 1h",
        [FLAG_TIME] = "a time such as 2026-11-29T20:00:00Z or Unix seconds",
    };
    return words[type];
}

const char *flag_type_word(enum flag_type t)
{
    static const char *const words[] = {"bool", "text", "file", "count", "duration", "time"};
    return words[t];
}

static enum flag_id find(const char *command, str name)
{
    for (int i = 0; i < FLAG_N; i++)
        if (strcmp(flag_table[i].command, command) == 0 &&
            str_eq(name, str_from(flag_table[i].name)))
            return (enum flag_id)i;
    return FLAG_N;
}

int flags_take(struct flags *f, const char *command, int argc, char **argv, int i, struct err *e)
{
    const str word = str_from(argv[i]);
    const ptrdiff_t eq = str_find_char(word, '=');
    const enum flag_id id = find(command, eq < 0 ? word : str_sub(word, 0, (size_t)eq));
    if (id == FLAG_N)
        return 0;
    const struct flag *flag = &flag_table[id];
    struct flag_value v = {.id = id, .text = eq < 0 ? argv[i + 1] : argv[i] + eq + 1};
    const bool takes = flag->type != FLAG_BOOL;
    if (!takes && eq >= 0)
        return err_set(e, ERR_USAGE, "%s takes no value", flag->name) - 1;
    if (takes && eq < 0 && i + 1 >= argc)
        return err_set(e, ERR_USAGE, "%s needs a value", flag->name) - 1;
    if (!takes)
        v.text = "";
    if (!parse_number(flag->type, str_from(v.text), &v.number))
        return err_set(e, ERR_USAGE, "%s needs %s, not '%.60s'", flag->name, wanted(flag->type),
                       v.text) -
               1;
    if (!ARENA_PUSH(&f->arena, f->values, f->n_values, f->values_capacity))
        return arena_full(&f->arena, e) - 1;
    f->values[f->n_values - 1] = v;
    return takes && eq < 0 ? 2 : 1;
}

const struct flag_value *flags_next(const struct flags *f, enum flag_id id,
                                    const struct flag_value *after)
{
    for (uint32_t i = after == NULL ? 0 : (uint32_t)(after - f->values) + 1; i < f->n_values; i++)
        if (f->values[i].id == id)
            return &f->values[i];
    return NULL;
}

static const struct flag_value *last(const struct flags *f, enum flag_id id)
{
    for (uint32_t i = f->n_values; i > 0; i--)
        if (f->values[i - 1].id == id)
            return &f->values[i - 1];
    return NULL;
}

bool flags_on(const struct flags *f, enum flag_id id)
{
    return last(f, id) != NULL;
}

const char *flags_text(const struct flags *f, enum flag_id id)
{
    const struct flag_value *v = last(f, id);
    if (v != NULL)
        return v->text;
    return flag_table[id].fallback[0] == '\0' ? NULL : flag_table[id].fallback;
}

bool flags_number(const struct flags *f, enum flag_id id, int64_t *out)
{
    const struct flag_value *v = last(f, id);
    if (v == NULL)
        return flag_table[id].fallback[0] != '\0' &&
               parse_number(flag_table[id].type, str_from(flag_table[id].fallback), out);
    *out = v->number;
    return true;
}
