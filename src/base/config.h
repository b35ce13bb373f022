/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of config.def with where each value came from.
 * The file is $XDG_CONFIG_HOME/tachograph/config or TACHO_CONFIG: lines `key = value`, `#` comments.
 * Loaded once by main; everything below the CLI gets values, never a struct config. */
#ifndef TACHO_BASE_CONFIG_H
#define TACHO_BASE_CONFIG_H

#include "base/arena.h"

enum config_type {
    CONFIG_TEXT = 0,
    CONFIG_BOOL,
    CONFIG_I64,
    CONFIG_BYTES,
    CONFIG_DURATION,
    CONFIG_PATH
};
enum config_source {
    CONFIG_FROM_DEFAULT = 0,
    CONFIG_FROM_FILE,
    CONFIG_FROM_ENVIRONMENT,
    CONFIG_FROM_FLAG
};

enum config_field {
#define X(field, key, env, flag, type, fallback, help) CONFIG_FIELD_##field,
#include "base/config.def"
#undef X
    CONFIG_N_FIELDS
};

struct config_entry { /* one row of the table */
    const char *key, *env, *flag;
    enum config_type type;
    const char *fallback, *help;
};
extern const struct config_entry config_table[CONFIG_N_FIELDS];

struct config_value {
    str text;       /* as written; in the config's arena */
    int64_t number; /* BOOL 0/1, I64, BYTES, DURATION in ns */
    enum config_source source;
    uint32_t line; /* of the file, when it came from there */
};

struct config {
    struct arena arena;
    str file; /* path that was read; empty when there is none */
    struct config_value values[CONFIG_N_FIELDS];
};

/* Defaults, then the file, then the environment. An unknown key or a bad value fails with
 * ERR_USAGE, the file and the line. file NULL: the usual place, absent is fine. */
MUST_CHECK bool config_load(struct config *c, const char *file, struct err *e);
/* A flag's value; ERR_USAGE when it is not of the field's type. */
MUST_CHECK bool config_set_flag(struct config *c, enum config_field f, str value, struct err *e);
void config_release(struct config *c);
/* The field that `--name` sets, or CONFIG_N_FIELDS. "--no-output" sets record_output to false. */
enum config_field config_find_flag(str flag);
/* Parses text in memory, as config_load does with the file: for the fuzz target and tests. */
MUST_CHECK bool config_parse(struct config *c, str text, const char *name, struct err *e);

static inline str config_text(const struct config *c, enum config_field f)
{
    return c->values[f].text;
}
static inline int64_t config_number(const struct config *c, enum config_field f)
{
    return c->values[f].number;
}
const char *config_source_word(enum config_source s); /* "default", "file", "environment", "flag" */

#endif
