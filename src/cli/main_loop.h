/* SPDX-License-Identifier: Apache-2.0 */
/* From argv to exit status: takes the global flags out, finds the command, runs it, prints its
 * error. Global flags may stand anywhere before `--`; those of config.def that a command takes
 * itself (--no-output of `tacho run`) are applied all the same. */
#ifndef TACHO_CLI_MAIN_LOOP_H
#define TACHO_CLI_MAIN_LOOP_H

#include "cli/cli.h"

int main_loop(int argc, char **argv);

extern const struct cli_command cli_commands[];
extern const size_t n_cli_commands;
/* NULL when there is no such command. */
const struct cli_command *cli_command_find(const char *name);
void cli_print_help(void);                                    /* all commands, global flags */
void cli_print_command_help(const struct cli_command *command);

#endif
