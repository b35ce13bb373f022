/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/tool.h"

#include "analysis/selection.h"
#include "base/limits.h"
#include "model/table_print.h"
#include "model/trace_json.h"

const struct tool tool_table[] = {
#define X(symbol, name, title, parameters, help)                                                   \
    {name, title,                                                                                  \
     sizeof parameters > 1 ? TOOL_COMMON_PARAMETERS "," parameters : TOOL_COMMON_PARAMETERS, help, \
     &tool_##symbol},
#include "analysis/tools.def"
#undef X
};
const uint32_t tool_count = sizeof tool_table / sizeof *tool_table;

const struct tool *tool_find(str name)
{
    for (uint32_t i = 0; i < tool_count; i++)
        if (str_eq(name, str_from(tool_table[i].name)))
            return &tool_table[i];
    return NULL;
}

str tool_param(const struct tool_request *r, str key)
{
    for (uint32_t i = 0; i < r->n_params; i++)
        if (str_eq(r->params[i].key, key))
            return r->params[i].value;
    return (str){0};
}

/* Whether a comma separated list has the word. */
static bool has_word(const char *list, str word)
{
    str head, rest = str_from(list);
    while (str_cut(rest, ',', &head, &rest))
        if (str_eq(str_trim(head), word))
            return true;
    return false;
}

static bool is_common(str key)
{
    return has_word(TOOL_COMMON_PARAMETERS, key);
}

bool tool_has_param(const struct tool *tool, str key)
{
    return has_word(tool->parameters, key);
}

static bool tool_check_params(const struct tool *tool, const struct tool_request *r, struct err *e)
{
    for (uint32_t i = 0; i < r->n_params; i++)
        if (!tool_has_param(tool, r->params[i].key)) {
            err_set(e, ERR_USAGE, "tool '%s' has no parameter '%.*s'", tool->name,
                    STR_ARG(r->params[i].key));
            return err_hint(e, "parameters: %s", tool->parameters);
        }
    return true;
}

static bool tool_print_tables(const struct tool *tool, const struct tool_request *r,
                              struct arena *a, enum tool_format format, struct buf *out,
                              struct err *e)
{
    struct table *first = NULL;
    if (!tool->functions->run(r, a, &first, e))
        return false;
    for (const struct table *t = first; t != NULL; t = t->next)
        if (!table_ok(t, e))
            return false;
    struct json j;
    const struct table_style style = {0};
    switch (format) { /* the printers take all tables of the list */
    case TOOL_JSON:
        json_init_buf(&j, out);
        table_print_json(first, &j);
        if (!json_done(&j, e))
            return false;
        buf_add_char(out, '\n');
        break;
    case TOOL_CSV:
        table_print_csv(first, out);
        break;
    case TOOL_TEXT:
    case TOOL_XPROF:
        table_print_text(first, &style, out);
        break;
    }
    return buf_ok(out, "the result", e);
}

static bool tool_print_own_json(const struct tool *tool, const struct tool_request *r,
                                struct arena *a, struct buf *out, struct err *e)
{
    struct json j;
    json_init_buf(&j, out);
    if (!tool->functions->json(r, a, &j, e))
        return false;
    return json_done(&j, e) && buf_add_char(out, '\n') && buf_ok(out, "the result", e);
}

/* The request as the tool sees it: the part of the profile that is asked for, and the tool's own
 * parameters. */
static bool tool_narrow(const struct tool_request *r, struct arena *a, struct tool_request *out,
                        struct err *e)
{
    const struct selection s = {.host = tool_param(r, S("host")),
                                .device = tool_param(r, S("device")),
                                .steps = tool_param(r, S("steps"))};
    struct tool_param *own = ARENA_ARRAY(a, struct tool_param, r->n_params);
    if (own == NULL && r->n_params > 0)
        return arena_full(a, e);
    *out = (struct tool_request){.whole = r->profile, .params = own};
    for (uint32_t i = 0; i < r->n_params; i++)
        if (!is_common(r->params[i].key))
            own[out->n_params++] = r->params[i];
    return selection_view(&s, r->profile, a, &out->profile, e);
}

static bool too_large(const struct tool *tool, const struct buf *out, struct err *e)
{
    err_set(e, ERR_LIMIT, "the answer of tool '%s' is larger than %zu bytes", tool->name, out->cap);
    return *tool->parameters == '\0' ||
           err_hint(e, "ask for a part of it with its parameters: %s", tool->parameters);
}

bool tool_run(const struct tool *tool, const struct tool_request *r, struct arena *a,
              struct table **out, struct err *e)
{
    struct tool_request part;
    if (!tool_check_params(tool, r, e) || !tool_narrow(r, a, &part, e) ||
        !tool->functions->run(&part, a, out, e))
        return false;
    for (const struct table *t = *out; t != NULL; t = t->next)
        if (!table_ok(t, e))
            return false;
    return true;
}

bool tool_print(const struct tool *tool, const struct tool_request *r, enum tool_format format,
                struct buf *out, struct err *e)
{
    if (!tool_check_params(tool, r, e))
        return false;
    if (format == TOOL_XPROF && tool->functions->xprof == NULL)
        return err_set(e, ERR_USAGE, "tool '%s' has no form of XProf's", tool->name);
    struct arena a;
    struct tool_request part;
    arena_init(&a, tool->name, LIMIT_ARENA_TOOL_BYTES);
    bool ok = tool_narrow(r, &a, &part, e);
    if (ok && format == TOOL_XPROF)
        ok = tool->functions->xprof(&part, &a, out, e) && buf_ok(out, "the result", e);
    else if (ok && format == TOOL_JSON && tool->functions->json != NULL)
        ok = tool_print_own_json(tool, &part, &a, out, e);
    else if (ok)
        ok = tool_print_tables(tool, &part, &a, format, out, e);
    arena_release(&a);
    if (out->overflow) {
        (void)!too_large(tool, out, e);
        return false;
    }
    return ok;
}

void tool_print_stats(struct json *j, struct trace_stats stats)
{
    for (uint32_t i = 0; i < stats.n; i++)
        trace_stat_json(j, &stats.items[i]);
}
