/* SPDX-License-Identifier: Apache-2.0 */
#include "base/config.h"

#include "base/file.h"
#include "base/limits.h"

const struct config_entry config_table[CONFIG_N_FIELDS] = {
#define X(field, key, env, flag, type, fallback, help)                                             \
    [CONFIG_FIELD_##field] = {key, env, flag, CONFIG_##type, fallback, help},
#include "base/config.def"
#undef X
};

static bool parse_bool(str s, int64_t *out)
{
    static const str yes[] = {STR_INIT("true"), STR_INIT("yes"), STR_INIT("on"), STR_INIT("1")};
    static const str no[] = {STR_INIT("false"), STR_INIT("no"), STR_INIT("off"), STR_INIT("0")};
    for (size_t i = 0; i < 4; i++) {
        *out = str_eq_nocase(s, yes[i]);
        if (*out == 1 || str_eq_nocase(s, no[i]))
            return true;
    }
    return false;
}

static bool parse_number(enum config_type type, str s, int64_t *out)
{
    uint64_t bytes;
    switch (type) {
    case CONFIG_BOOL:
        return parse_bool(s, out);
    case CONFIG_I64:
        return str_to_i64(s, out);
    case CONFIG_DURATION:
        return str_to_duration_ns(s, 1000000000, out) && *out >= 0;
    case CONFIG_BYTES:
        if (!str_to_bytes(s, &bytes))
            return false;
        *out = (int64_t)bytes;
        return true;
    case CONFIG_TEXT:
    case CONFIG_PATH:
        break;
    }
    *out = 0;
    return true;
}

static const char *type_words(enum config_type type)
{
    static const char *const words[] = {
        [CONFIG_TEXT] = "text",
        [CONFIG_BOOL] = "true or false",
        [CONFIG_I64] = "a whole number",
        [CONFIG_BYTES] = "a size such as 16MiB",
        [CONFIG_DURATION] = "a duration such as 10s",
        [CONFIG_PATH] = "a path",
    };
    return words[type];
}

/* Sets one field; `name` is how the person wrote it ("--data", "TACHO_DATA", "data"). */
static bool set_field(struct config *c, enum config_field f, str text, enum config_source source,
                      const char *name, struct err *e)
{
    int64_t number;
    if (text.n > 0 && memchr(text.p, '\0', text.n) != NULL)
        return err_set(e, ERR_USAGE, "%s holds a zero byte", name);
    if (!parse_number(config_table[f].type, text, &number))
        return err_set(e, ERR_USAGE, "%s must be %s, not '%.*s'", name,
                       type_words(config_table[f].type), (int)(text.n > 60 ? 60 : text.n), text.p);
    const str kept = arena_str(&c->arena, text);
    if (kept.p == NULL)
        return arena_full(&c->arena, e);
    c->values[f] = (struct config_value){.text = kept, .number = number, .source = source};
    return true;
}

static bool set_defaults(struct config *c, struct err *e)
{
    *c = (struct config){0};
    arena_init(&c->arena, "configuration", 4 * (size_t)LIMIT_CONFIG_FILE_BYTES);
    for (int f = 0; f < CONFIG_N_FIELDS; f++)
        if (!set_field(c, (enum config_field)f, str_from(config_table[f].fallback),
                       CONFIG_FROM_DEFAULT, config_table[f].key, e))
            return false;
    return true;
}

static enum config_field find_key(str key)
{
    for (int f = 0; f < CONFIG_N_FIELDS; f++)
        if (str_eq(key, str_from(config_table[f].key)))
            return (enum config_field)f;
    return CONFIG_N_FIELDS;
}

static bool parse_line(struct config *c, str line, uint32_t number, struct err *e)
{
    line = str_trim(line);
    if (line.n == 0 || line.p[0] == '#')
        return true;
    if (str_find_char(line, '=') < 0)
        return err_set(e, ERR_USAGE, "expected 'key = value'");
    str key, value;
    if (!str_cut(line, '=', &key, &value))
        return true;
    key = str_trim(key);
    const enum config_field f = find_key(key);
    if (f == CONFIG_N_FIELDS)
        return err_set(e, ERR_USAGE, "unknown key '%.*s'", (int)(key.n > 60 ? 60 : key.n), key.p);
    if (!set_field(c, f, str_trim(value), CONFIG_FROM_FILE, config_table[f].key, e))
        return false;
    c->values[f].line = number;
    return true;
}

bool config_parse(struct config *c, str text, const char *name, struct err *e)
{
    /* A zeroed config is as good as one that config_load made. */
    if (c->arena.name == NULL && !set_defaults(c, e))
        return false;
    uint32_t number = 0;
    for (str line; str_cut(text, '\n', &line, &text);)
        if (!parse_line(c, line, ++number, e))
            return err_wrap(e, "%s: line %u", name, number);
    return true;
}

/* The usual place of the file, or empty when there is no home folder. */
static str usual_file(struct arena *a)
{
    const char *config_home = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config_home != NULL && config_home[0] == '/')
        return arena_printf(a, "%s/tachograph/config", config_home);
    if (home != NULL && home[0] != '\0')
        return arena_printf(a, "%s/.config/tachograph/config", home);
    return (str){0};
}

static bool load_file(struct config *c, const char *file, struct err *e)
{
    const char *named = file != NULL ? file : getenv("TACHO_CONFIG");
    const bool needed = named != NULL && named[0] != '\0';
    const str path = needed ? arena_str(&c->arena, str_from(named)) : usual_file(&c->arena);
    str text;
    if (path.n == 0)
        return true;
    if (!file_read(&c->arena, path.p, (size_t)LIMIT_CONFIG_FILE_BYTES, &text, e))
        return !needed && e->code == ERR_NOT_FOUND;
    c->file = path;
    return config_parse(c, text, path.p, e);
}

bool config_load(struct config *c, const char *file, struct err *e)
{
    if (!set_defaults(c, e) || !load_file(c, file, e))
        return false;
    for (int f = 0; f < CONFIG_N_FIELDS; f++) {
        const char *value = getenv(config_table[f].env);
        if (value != NULL && value[0] != '\0' &&
            !set_field(c, (enum config_field)f, str_from(value), CONFIG_FROM_ENVIRONMENT,
                       config_table[f].env, e))
            return false;
    }
    return true;
}

bool config_set_flag(struct config *c, enum config_field f, str value, struct err *e)
{
    return set_field(c, f, value, CONFIG_FROM_FLAG, config_table[f].flag, e);
}

void config_release(struct config *c)
{
    arena_release(&c->arena);
    *c = (struct config){0};
}

enum config_field config_find_flag(str flag)
{
    for (int f = 0; f < CONFIG_N_FIELDS; f++)
        if (config_table[f].flag[0] != '\0' && str_eq(flag, str_from(config_table[f].flag)))
            return (enum config_field)f;
    return CONFIG_N_FIELDS;
}

const char *config_source_word(enum config_source s)
{
    static const char *const words[] = {"default", "file", "environment", "flag"};
    return words[s];
}
