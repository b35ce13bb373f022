/* SPDX-License-Identifier: Apache-2.0 */
/* A POSIX extended regular expression that a person asked with, on names. Expressions and names may be hostile:
 * the time they take is bounded by the parser's limits (jobs/parser.h), their length here.
 *
 *     struct pattern p = {0};
 *     if (!pattern_compile(&p, S("event_regex"), text, e)) return false;     an empty text: all fit
 *     if (pattern_fits(&p, name)) ...
 *     pattern_release(&p);
 */
#ifndef TACHO_ANALYSIS_PATTERN_H
#define TACHO_ANALYSIS_PATTERN_H

#include <regex.h>

#include "base/err.h"
#include "base/str.h"

struct pattern {
    bool given;
    regex_t regex;
};

/* ERR_USAGE, naming the parameter `key`, for what is no expression. */
MUST_CHECK bool pattern_compile(struct pattern *p, str key, str text, struct err *e);
bool pattern_fits(const struct pattern *p, str name);
void pattern_release(struct pattern *p);

#endif
