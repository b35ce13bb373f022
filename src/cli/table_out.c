/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table_out.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/limits.h"
#include "model/table_print.h"

struct cell table_out_time(const struct cli *cli, struct arena *a, int64_t wall_ns)
{
    if (wall_ns == 0)
        return cell_unknown();
    if (cli->output == CLI_OUTPUT_TEXT)
        wall_ns -= (wall_ns % NS_PER_S + NS_PER_S) % NS_PER_S;
    return cell_moment(a, wall_ns);
}

bool table_out(const struct cli *cli, const struct table *t, struct err *e)
{
    const struct table_style style = {.colour = cli->colour};
    struct buf b;
    struct json j;
    buf_init(&b, LIMIT_ARENA_REQUEST_BYTES);
    bool ok = true;
    if (cli->output == CLI_OUTPUT_JSON) {
        json_init_buf(&j, &b);
        table_print_json(t, &j);
        ok = json_done(&j, e) && buf_add_char(&b, '\n');
    } else if (cli->output == CLI_OUTPUT_CSV) {
        table_print_csv(t, &b);
    } else {
        table_print_text(t, &style, &b);
    }
    ok = ok && buf_ok(&b, "the table", e);
    if (ok && fwrite(b.p, 1, b.n, stdout) != b.n)
        ok = err_sys(e, "cannot print");
    buf_release(&b);
    return ok;
}
