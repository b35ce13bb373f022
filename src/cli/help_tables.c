/* SPDX-License-Identifier: Apache-2.0 */
/* Every table of the program as one JSON document: arrays of objects, whose keys are the columns. */
#include "analysis/tool.h"
#include "cli/help.h"
#include "cli/main_loop.h"

#define BEGIN(name) (json_key(j, name), json_array(j))
#define END() json_end(j)

static void row2(struct json *j, const char *k1, const char *v1, const char *k2, const char *v2)
{
    json_kcstr(j, k1, v1);
    json_kcstr(j, k2, v2);
}

static void flag_rows(struct json *j, const char *command)
{
    BEGIN("flags");
    for (int i = 0; i < FLAG_N; i++) {
        const struct flag *f = &flag_table[i];
        if (strcmp(f->command, command) != 0)
            continue;
        json_object(j);
        row2(j, "name", f->name, "argument", f->argument);
        row2(j, "type", flag_type_word(f->type), "default", f->fallback);
        json_kbool(j, "repeated", f->repeat == FLAG_REPEATED);
        json_kcstr(j, "help", f->help);
        json_end(j);
    }
    END();
}

static void commands(struct json *j)
{
    BEGIN("commands");
    for (size_t i = 0; i < n_cli_commands; i++) {
        const struct cli_command *c = &cli_commands[i];
        struct buf usage;
        buf_init(&usage, 1 << 16);
        cli_usage(c, &usage);
        json_object(j);
        row2(j, "name", c->name, "summary", c->summary);
        json_kstr(j, "usage", buf_str(&usage));
        json_kcstr(j, "help", c->help);
        flag_rows(j, c->name);
        json_end(j);
        buf_release(&usage);
    }
    END();
    BEGIN("global_flags");
    for (size_t i = 0; i < n_cli_global_flags; i++) {
        json_object(j);
        row2(j, "name", cli_global_flags[i].name, "help", cli_global_flags[i].help);
        json_end(j);
    }
    END();
}

static void config(struct json *j)
{
    static const char *const types[] = {"text", "bool", "number", "bytes", "duration", "path"};
    BEGIN("config");
    for (int f = 0; f < CONFIG_N_FIELDS; f++) {
        const struct config_entry *c = &config_table[f];
        json_object(j);
        row2(j, "key", c->key, "environment", c->env);
        row2(j, "flag", c->flag, "argument", cli_config_argument((enum config_field)f));
        char flag_help[CLI_FLAG_HELP_MAX];
        cli_config_flag_help(flag_help, (enum config_field)f);
        row2(j, "type", types[c->type], "default", c->fallback);
        json_kcstr(j, "flag_help", c->flag[0] == '\0' ? "" : flag_help);
        json_kcstr(j, "help", c->help);
        json_end(j);
    }
    END();
}

#define ROW(...) (json_object(j), __VA_ARGS__, json_end(j))

static void errors_and_limits(struct json *j)
{
    BEGIN("errors");
#define X(name, word, http, exit_status, meaning)                                                  \
    ROW(json_kcstr(j, "code", word), json_ki64(j, "exit_status", exit_status),                     \
        json_ki64(j, "http_status", http), json_kcstr(j, "meaning", meaning));
#include "base/errors.def"
#undef X
    END();
    BEGIN("limits");
#define X(name, value, unit, meaning)                                                              \
    ROW(json_kcstr(j, "limit", #name), json_ki64(j, "value", value),                               \
        row2(j, "unit", unit, "bounds", meaning));
#include "base/limits.def"
#undef X
    END();
}

static void model(struct json *j)
{
    BEGIN("categories");
#define X(name, word, family, productive, meaning)                                                 \
    ROW(row2(j, "category", word, "family", family), json_kcstr(j, "meaning", meaning));
#include "model/categories.def"
#undef X
    END();
    BEGIN("metrics");
#define X(id, name, unit, meaning)                                                                 \
    ROW(row2(j, "metric", name, "unit", unit), json_kcstr(j, "meaning", meaning));
#include "model/metrics.def"
#undef X
    END();
    BEGIN("findings");
#define X(symbol, id, layer, trigger, listed, title, confirmed, fixes)                             \
    ROW(row2(j, "finding", id, "title", title), json_kf64(j, "from_percent", trigger),             \
        json_kf64(j, "listed_from_percent", listed),                                               \
        row2(j, "confirmed_by", confirmed, "fixes", fixes));
#include "report/findings.def"
#undef X
    END();
}

static void routes_and_tools(struct json *j)
{
    BEGIN("routes");
#define X(method, path, role, speed, handler, summary)                                             \
    ROW(row2(j, "method", #method, "path", path), row2(j, "role", #role, "summary", summary));
#include "server/routes.def"
#undef X
    END();
    BEGIN("tools");
    for (uint32_t i = 0; i < tool_count; i++)
        ROW(row2(j, "tool", tool_table[i].name, "title", tool_table[i].title),
            row2(j, "parameters", tool_table[i].parameters, "help", tool_table[i].help));
    END();
}

void help_tables_json(struct json *j)
{
    json_object(j);
    json_kcstr(j, "version", TACHO_VERSION);
    commands(j);
    config(j);
    errors_and_limits(j);
    model(j);
    routes_and_tools(j);
    json_end(j);
}
