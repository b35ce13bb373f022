/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/xprof_cli.h"

#include <math.h>

/* The names of the files. */
static void files(struct json *j, const char *key, const struct profile *p)
{
    json_key(j, key);
    json_array(j);
    for (uint32_t i = 0; i < p->n_traces; i++)
        json_str(j, trace_target(p->traces[i]));
    json_end(j);
}

void xprof_cli_begin(struct json *j, const struct tool_request *r)
{
    const struct profile *p = r->profile;
    const bool combined = p->n_traces > 1;
    json_object(j);
    json_key(j, "capture");
    json_object(j);
    json_kstr(j, "input", p->path);
    json_kstr(j, "run", p->name);
    files(j, "files_used", p);
    files(j, "files_available", r->whole);
    json_kbool(j, "combined", combined);
    json_key(j, "warnings");
    json_array(j);
    if (combined)
        json_strf(j, "the numbers are of all %u hosts together; host=NAME asks for one",
                  p->n_traces);
    json_end(j);
    json_end(j);
}

bool xprof_cli_end(struct json *j, struct err *e)
{
    json_end(j);
    return json_done(j, e);
}

void xprof_cli_number(struct json *j, const char *key, double v, int places)
{
    char text[64];
    json_key(j, key);
    if (!isfinite(v)) {
        json_null(j);
        return;
    }
    snprintf(text, sizeof text, "%.*f", places, v);
    json_f64(j, strtod(text, NULL)); /* as few digits as say it */
}
