/* SPDX-License-Identifier: Apache-2.0 */
/* tacho report: what costs a run its time, with the numbers and what to do. */
#include <stdio.h>

#include "base/file.h"
#include "base/limits.h"
#include "cli/report_load.h"
#include "cli/table_out.h"
#include "report/print.h"

static bool print_csv(const struct cli *cli, const struct report *r, struct err *e)
{
    struct arena a;
    arena_init(&a, "findings", LIMIT_ARENA_REQUEST_BYTES);
    const struct table *t = report_table(r, &a);
    const bool ok =
        t == NULL || a.overflow ? arena_full(&a, e) : table_ok(t, e) && table_out(cli, t, e);
    arena_release(&a);
    return ok;
}

static bool print(const struct cli *cli, const struct report *r, struct err *e)
{
    if (cli->output == CLI_OUTPUT_CSV)
        return print_csv(cli, r, e);
    struct buf text;
    buf_init(&text, LIMIT_PARSER_OUTPUT_BYTES);
    bool ok;
    if (cli->output == CLI_OUTPUT_JSON) {
        struct json j;
        json_init_buf(&j, &text);
        report_print_json(r, &j);
        ok = json_done(&j, e) && buf_add_char(&text, '\n');
    } else {
        ok = report_print_text(r, cli->colour, &text, e);
    }
    if (ok && (fwrite(text.p, 1, text.n, stdout) != text.n || fflush(stdout) != 0))
        ok = err_sys(e, "cannot print");
    buf_release(&text);
    return ok;
}

static bool write_page(const struct report_loaded *l, const char *path, struct err *e)
{
    struct buf page;
    buf_init(&page, LIMIT_PARSER_OUTPUT_BYTES);
    const bool ok =
        report_print_html(&l->report, l->has_ledger ? &l->ledger : NULL, &page, e) &&
        (file_replace(path, buf_str(&page), 0644, e) || err_wrap(e, "cannot write '%s'", path));
    buf_release(&page);
    return ok;
}

bool cmd_report(struct cli *cli, int argc, char **argv, struct err *e)
{
    const char *html = flags_text(cli->flags, FLAG_report_html);
    struct report_loaded loaded;
    const bool ok = report_load(cli, argv[1], &loaded, e) &&
                    (html == NULL || write_page(&loaded, html, e)) && print(cli, &loaded.report, e);
    report_unload(&loaded);
    return ok;
}
