/* SPDX-License-Identifier: Apache-2.0 */
/* tacho convert: a profile in the format of another program. */
#include "cli/cli.h"
#include "cli/export_out.h"

bool cmd_convert(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct export_wish wish = {.profile = argv[1],
                               .out = argv[2],
                               .to = flags_text(cli->flags, FLAG_convert_to),
                               .host = flags_text(cli->flags, FLAG_convert_host)};
    (void)argc;
    flags_number(cli->flags, FLAG_convert_from, &wish.from_ns);
    flags_number(cli->flags, FLAG_convert_until, &wish.until_ns);
    return export_out(cli, &wish, e);
}
