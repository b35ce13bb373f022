/* SPDX-License-Identifier: Apache-2.0 */
/* tacho help: all commands, or one; with --json every table of the program. */
#include <unistd.h>

#include "cli/help.h"
#include "cli/main_loop.h"

bool cmd_help(struct cli *cli, int argc, char **argv, struct err *e)
{
    if (cli->output == CLI_OUTPUT_JSON) {
        struct json j;
        json_init_fd(&j, STDOUT_FILENO);
        j.pretty = true;
        help_tables_json(&j);
        return json_done(&j, e);
    }
    if (argc == 1) {
        cli_print_help();
        return true;
    }
    const struct cli_command *command = cli_command_find(argv[1]);
    if (command == NULL)
        return err_set(e, ERR_NOT_FOUND, "there is no command '%s'", argv[1]);
    cli_print_command_help(command);
    return true;
}
