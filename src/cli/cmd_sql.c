/* SPDX-License-Identifier: Apache-2.0 */
/* tacho sql: one SELECT over a profile. */
#include "base/limits.h"
#include "cli/parser_out.h"
#include "cli/profile_limits.h"
#include "cli/session_arg.h"
#include "jobs/sql_task.h"

bool cmd_sql(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct profile_limits limits;
    int64_t max_steps = 0;
    struct buf out;
    struct arena a;
    const char *path;
    (void)argc;
    profile_limits_of(cli, &limits);
    flags_number(cli->flags, FLAG_sql_max_steps, &max_steps);
    buf_init(&out, LIMIT_PARSER_OUTPUT_BYTES);
    arena_init(&a, "profile argument", LIMIT_ARENA_REQUEST_BYTES);
    const bool ok = session_arg_profile(cli, &a, argv[1], &path, e) &&
                    sql_task_run(path, &limits.parser, str_from(argv[2]), (uint64_t)max_steps,
                                 parser_out_format(cli), &out, e) &&
                    parser_out_print(&out, e);
    arena_release(&a);
    buf_release(&out);
    return ok;
}
