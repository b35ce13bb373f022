/* SPDX-License-Identifier: Apache-2.0 */
/* tacho help: all commands, or one. */
#include "cli/help.h"
#include "cli/main_loop.h"

bool cmd_help(struct cli *cli, int argc, char **argv, struct err *e)
{
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
