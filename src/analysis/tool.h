/* SPDX-License-Identifier: Apache-2.0 */
/* An analysis tool: a pure function from a loaded profile and a few parameters to tables.
 *
 * A tool is one row in tools.def and one definition in its own file:
 *
 *     const struct tool_functions tool_hlo_stats = {.run = hlo_stats_run, .xprof = hlo_stats_xprof};
 *
 * Every tool takes the parameters host, device and steps (analysis/selection.h). They are applied before
 * it runs: r->profile is the part that was asked for, r->params are the tool's own.
 *
 * Tools read no file, clock or environment; they run inside the parser's sandbox. Tables are
 * allocated in the arena and may be several (table.next). Thread: one at a time per arena. */
#ifndef TACHO_ANALYSIS_TOOL_H
#define TACHO_ANALYSIS_TOOL_H

#include "base/buf.h"
#include "base/json.h"
#include "model/table.h"
#include "model/trace.h"

#define TOOL_COMMON_PARAMETERS "host,device,steps"

struct tool_param {
    str key, value;
};

struct tool_request {
    struct profile *profile;     /* borrowed; for a tool the part that was asked for */
    const struct profile *whole; /* for a tool: what that is a part of */
    const struct tool_param *params;
    uint32_t n_params;
};

struct tool_functions {
    /* The result as tables. Never NULL. */
    bool (*run)(const struct tool_request *, struct arena *, struct table **out, struct err *);
    /* XProf's own JSON (or text) of the same tool; NULL where XProf has none. */
    bool (*xprof)(const struct tool_request *, struct arena *, struct buf *out, struct err *);
    /* --json where it is not the tables' document; NULL: the tables are printed. */
    bool (*json)(const struct tool_request *, struct arena *, struct json *j, struct err *);
    /* Has an answer without a PROFILE: r->profile is then one without traces. */
    bool needs_none;
};

struct tool {
    const char *name, *title;
    const char *parameters; /* names, comma separated: the common ones and its own */
    const char *help;
    const struct tool_functions *functions;
};

#define X(symbol, name, title, parameters, help) extern const struct tool_functions tool_##symbol;
#include "analysis/tools.def"
#undef X

extern const struct tool tool_table[];
extern const uint32_t tool_count;

/* NULL when there is no such tool. */
const struct tool *tool_find(str name);
/* Whether the tool takes a parameter of that name, its own or a common one. */
bool tool_has_param(const struct tool *tool, str key);
/* The parameter's value, or an empty string. */
str tool_param(const struct tool_request *r, str key);
/* Each stat as a member of the open object; bytes as their number, a stat without a value as null. */
void tool_print_stats(struct json *j, struct trace_stats stats);

/* The tool's tables; parameters as in tool_print. They live in a. */
MUST_CHECK bool tool_run(const struct tool *tool, const struct tool_request *r, struct arena *a,
                         struct table **out, struct err *e);
/* Runs the tool: ERR_USAGE for a parameter that it does not know, ERR_NOT_FOUND for a host, device or step
 * that the profile does not have. */
enum tool_format { TOOL_TEXT = 0, TOOL_JSON, TOOL_CSV, TOOL_XPROF };
MUST_CHECK bool tool_print(const struct tool *tool, const struct tool_request *r,
                           enum tool_format format, struct buf *out, struct err *e);

#endif
