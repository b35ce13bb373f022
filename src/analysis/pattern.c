/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/pattern.h"

bool pattern_compile(struct pattern *p, str key, str text, struct err *e)
{
    char pattern[1024], why[120];
    if (text.n == 0)
        return true;
    if (text.n >= sizeof pattern || memchr(text.p, '\0', text.n) != NULL)
        return err_set(e, ERR_USAGE, "%.*s is longer than %zu bytes", STR_ARG(key),
                       sizeof pattern - 1);
    memcpy(pattern, text.p, text.n);
    pattern[text.n] = '\0';
    const int failed = regcomp(&p->regex, pattern, REG_EXTENDED | REG_NOSUB);
    if (failed != 0) {
        regerror(failed, &p->regex, why, sizeof why);
        return err_set(e, ERR_USAGE, "%.*s '%s' is no regular expression: %s", STR_ARG(key),
                       pattern, why);
    }
    p->given = true;
    return true;
}

bool pattern_fits(const struct pattern *p, str name)
{
    if (!p->given)
        return true;
    regmatch_t span = {.rm_so = 0, .rm_eo = (regoff_t)name.n};
    return regexec(&p->regex, name.n == 0 ? "" : name.p, 1, &span, REG_STARTEND) == 0;
}

void pattern_release(struct pattern *p)
{
    if (p->given)
        regfree(&p->regex);
    p->given = false;
}
