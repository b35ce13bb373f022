/* SPDX-License-Identifier: Apache-2.0 */
/* tacho convert: a profile in the format of another program. */
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/export_out.h"
#include "cli/session_arg.h"

bool cmd_convert(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct arena a;
    struct export_wish wish = {.out = argv[2],
                               .to = flags_text(cli->flags, FLAG_convert_to),
                               .host = flags_text(cli->flags, FLAG_convert_host)};
    (void)argc;
    flags_number(cli->flags, FLAG_convert_from, &wish.from_ns);
    flags_number(cli->flags, FLAG_convert_until, &wish.until_ns);
    arena_init(&a, "profile argument", LIMIT_ARENA_REQUEST_BYTES);
    const bool ok =
        session_arg_profile(cli, &a, argv[1], &wish.profile, e) && export_out(cli, &wish, e);
    arena_release(&a);
    return ok;
}
