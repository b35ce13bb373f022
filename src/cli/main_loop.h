/* SPDX-License-Identifier: Apache-2.0 */
/* From argv to exit status: finds the command, takes its flags and those of every command (--json,
 * config.def) out of argv wherever they stand, runs it, prints its error. "--" ends the flags. */
#ifndef TACHO_CLI_MAIN_LOOP_H
#define TACHO_CLI_MAIN_LOOP_H

#include "cli/cli.h"

int main_loop(int argc, char **argv);

extern const struct cli_command cli_commands[];
extern const size_t n_cli_commands;
/* NULL when there is no such command. */
const struct cli_command *cli_command_find(const char *name);

#endif
