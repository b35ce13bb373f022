/* SPDX-License-Identifier: Apache-2.0 */
/* tacho version: what this binary is. */
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/table_out.h"

bool cmd_version(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct arena a;
    if (cli->output == CLI_OUTPUT_TEXT) {
        puts("tacho " TACHO_VERSION);
        return true;
    }
    arena_init(&a, "version", LIMIT_ARENA_REQUEST_BYTES);
    struct table *t = table_new(&a, S("version"), S("Version"));
    table_value(t, S("version"), S("Version"), cell_text(S(TACHO_VERSION)), S(""));
    table_value(t, S("compiler"), S("Compiler"), cell_text(S(__VERSION__)), S(""));
    const bool done = table_ok(t, e) && table_out(cli, t, e);
    arena_release(&a);
    return done;
}
