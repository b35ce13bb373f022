/* SPDX-License-Identifier: Apache-2.0 */
/* What `--help` prints, from commands.def, flags.def and config.def; and all tables of the program as one
 * JSON document (`tacho help --json`), of which tools/gen-docs makes the man and reference pages. */
#ifndef TACHO_CLI_HELP_H
#define TACHO_CLI_HELP_H

#include "base/buf.h"
#include "base/json.h"
#include "cli/cli.h"

struct cli_global_flag { /* those beside config.def's */
    const char *name, *help;
};
extern const struct cli_global_flag cli_global_flags[];
extern const size_t n_cli_global_flags;

#define CLI_FLAG_FORM_MAX 96
void cli_flag_form(char out[static CLI_FLAG_FORM_MAX], const char *name, const char *argument);
const char *cli_config_argument(enum config_field f); /* "PATH"; "" for a flag that takes none */
/* What the flag of a setting does: "--no-x" of "keep x" does "not keep x". */
#define CLI_FLAG_HELP_MAX 256
void cli_config_flag_help(char out[static CLI_FLAG_HELP_MAX], enum config_field f);
/* "tacho run [--name NAME] … CMD…" */
void cli_usage(const struct cli_command *c, struct buf *out);

void cli_print_help(void); /* all commands, flags of every command */
void cli_print_command_help(const struct cli_command *command);
void help_tables_json(struct json *j); /* every table; the schema is its own keys */

#endif
