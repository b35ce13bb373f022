/* SPDX-License-Identifier: Apache-2.0 */
/* tacho report: what costs a run its time, with the numbers and what to do. */
#include <stdio.h>

#include "base/file.h"
#include "base/limits.h"
#include "cli/report_load.h"
#include "report/print.h"

static bool print(const struct cli *cli, const struct report *r, struct err *e)
{
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
    const bool ok = report_print_html(&l->report, &l->ledger, &page, e) &&
                    (file_replace(path, buf_str(&page), 0644, e) || err_wrap(e, "cannot write '%s'", path));
    buf_release(&page);
    return ok;
}

static bool parse(int argc, char **argv, const char **run, const char **html, struct err *e)
{
    for (int i = 1; i < argc; i++) {
        const str word = str_from(argv[i]);
        if (str_starts(word, S("--html="))) {
            *html = argv[i] + 7;
        } else if (str_eq(word, S("--html"))) {
            if (i + 1 == argc)
                return err_set(e, ERR_USAGE, "--html needs a file");
            *html = argv[++i];
        } else if (str_starts(word, S("-")) && word.n > 1) {
            return err_set(e, ERR_USAGE, "tacho report has no flag '%s'", argv[i]);
        } else if (*run != NULL) {
            return err_set(e, ERR_USAGE, "tacho report takes one run, not '%s' too", argv[i]);
        } else {
            *run = argv[i];
        }
    }
    return true;
}

bool cmd_report(struct cli *cli, int argc, char **argv, struct err *e)
{
    const char *run = NULL, *html = NULL;
    struct report_loaded loaded;
    if (!parse(argc, argv, &run, &html, e))
        return false;
    const bool ok = report_load(cli, run, &loaded, e) && (html == NULL || write_page(&loaded, html, e)) &&
                    print(cli, &loaded.report, e);
    report_unload(&loaded);
    return ok;
}
