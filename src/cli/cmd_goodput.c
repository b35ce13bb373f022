/* SPDX-License-Identifier: Apache-2.0 */
/* tacho goodput: where a run's wall time went, each nanosecond in one category. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/run_arg.h"
#include "goodput/ledger_build.h"
#include "goodput/print.h"

struct options {
    const char *run;
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    struct ledger_view view;
};

/* A moment: RFC 3339 or Unix seconds. */
static bool take_time(str word, const char *flag, int64_t *ns, struct err *e)
{
    double seconds;
    if (clock_parse_rfc3339(word, ns))
        return true;
    if (str_to_f64(word, &seconds) && seconds >= 0 && seconds < 8e9) {
        *ns = (int64_t)(seconds * 1e6 + 0.5) * NS_PER_US;
        return true;
    }
    return err_set(e, ERR_USAGE, "%s needs a time such as 2026-11-29T20:00:00Z or Unix seconds, not '%.*s'",
                   flag, STR_ARG(word));
}

static bool take_window(struct options *o, str word, struct err *e)
{
    int64_t ns;
    if (!str_to_duration_ns(word, NS_PER_S, &ns) || ns <= 0)
        return err_set(e, ERR_USAGE, "--window needs a duration such as 1h, not '%.*s'", STR_ARG(word));
    if (o->view.n_windows == LEDGER_WINDOWS_MAX)
        return err_set(e, ERR_USAGE, "at most %d windows", LEDGER_WINDOWS_MAX);
    o->view.windows_ns[o->view.n_windows++] = ns;
    return true;
}

static bool take_value(struct options *o, str flag, str value, struct err *e)
{
    if (str_eq(flag, S("--window")))
        return take_window(o, value, e);
    if (str_eq(flag, S("--from"))) {
        o->has_from = true;
        return take_time(value, "--from", &o->from_ns, e);
    }
    o->has_to = true;
    return take_time(value, "--to", &o->to_ns, e);
}

static bool parse(struct options *o, int argc, char **argv, struct err *e)
{
    for (int i = 1; i < argc; i++) {
        str flag = str_from(argv[i]), value = {0};
        const bool joined = str_starts(flag, S("--")) && str_find_char(flag, '=') > 0;
        if (joined)
            (void)str_cut(flag, '=', &flag, &value);
        if (str_eq(flag, S("--steps")) && !joined) {
            o->view.steps = true;
        } else if (str_eq(flag, S("--ranks")) && !joined) {
            o->view.ranks = true;
        } else if (str_eq(flag, S("--window")) || str_eq(flag, S("--from")) ||
                   str_eq(flag, S("--to"))) {
            if (!joined && i + 1 == argc)
                return err_set(e, ERR_USAGE, "%s needs a value", argv[i]);
            if (!take_value(o, flag, joined ? value : str_from(argv[++i]), e))
                return false;
        } else if (str_starts(flag, S("-")) && flag.n > 1) {
            return err_set(e, ERR_USAGE, "tacho goodput has no flag '%s'", argv[i]);
        } else if (o->run != NULL) {
            return err_set(e, ERR_USAGE, "tacho goodput takes one run, not '%s' too", argv[i]);
        } else {
            o->run = argv[i];
        }
    }
    return true;
}

/* The span to print: what was asked for, within the run. */
static bool clip(struct options *o, const struct ledger *l, struct err *e)
{
    o->view.from_ns = o->has_from && o->from_ns > l->from_ns ? o->from_ns : l->from_ns;
    o->view.to_ns = o->has_to && o->to_ns < l->to_ns ? o->to_ns : l->to_ns;
    if (o->view.from_ns < o->view.to_ns || l->from_ns == l->to_ns)
        return true;
    char from[CLOCK_RFC3339_MAX], to[CLOCK_RFC3339_MAX];
    clock_format_rfc3339(l->from_ns, from);
    clock_format_rfc3339(l->to_ns, to);
    return err_set(e, ERR_USAGE, "nothing of the run lies between --from and --to; it ran from %s to %s",
                   from, to);
}

static bool print(const struct cli *cli, const struct ledger *l, const struct record_set *set,
                  const struct ledger_view *view, struct err *e)
{
    struct arena a;
    struct buf text;
    arena_init(&a, "goodput", LIMIT_ARENA_TOOL_BYTES);
    buf_init(&text, LIMIT_PARSER_OUTPUT_BYTES);
    bool ok;
    if (cli->output == CLI_OUTPUT_JSON) {
        struct json j;
        json_init_buf(&j, &text);
        ok = ledger_print_json(l, set, view, &a, &j, e) && json_done(&j, e) && buf_add_char(&text, '\n');
    } else {
        ok = ledger_print_text(l, set, view, &a, &text, e);
    }
    if (ok && (fwrite(text.p, 1, text.n, stdout) != text.n || fflush(stdout) != 0))
        ok = err_sys(e, "cannot print");
    buf_release(&text);
    arena_release(&a);
    return ok;
}

bool cmd_goodput(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct record_set set;
    struct ledger ledger;
    char dir[RUN_ARG_PATH_MAX];
    struct options o = {.view.colour = cli->colour};
    if (!parse(&o, argc, argv, e))
        return false;
    bool ok = run_arg_load_any(cli, o.run, &set, dir, e);
    if (ok && o.has_to)
        set.query_ns = o.to_ns; /* a run that has not ended is seen as it was then */
    ok = ok && ledger_build(&set, &ledger, e) && clip(&o, &ledger, e) &&
         print(cli, &ledger, &set, &o.view, e);
    record_set_release(&set);
    return ok;
}
