/* SPDX-License-Identifier: Apache-2.0 */
/* What every subcommand gets and gives. One file a subcommand (cmd_NAME.c), one row in commands.def;
 * main is a loop over the table. A command finds its flags taken out of argv (cli->flags, flags.def) and the
 * number of its arguments checked; argv[0] is its name. It prints results on
 * stdout, and returns false with e set; main prints the error and maps it to the exit status. */
#ifndef TACHO_CLI_CLI_H
#define TACHO_CLI_CLI_H

#include "base/config.h"
#include "base/err.h"
#include "cli/flags.h"

enum cli_output { CLI_OUTPUT_TEXT = 0, CLI_OUTPUT_JSON, CLI_OUTPUT_CSV, CLI_OUTPUT_XPROF };

struct s3_opened;

struct cli {
    struct config *config; /* loaded; flags of config.def already applied and removed from argv */
    const char *command;   /* "tool" */
    const struct flags *flags; /* the command's own, checked against flags.def */
    enum cli_output output;    /* --json, --csv, --xprof, already removed from argv */
    bool colour;               /* stdout is a terminal and NO_COLOR is not set */
    struct s3_opened *s3;      /* what an s3:// argument was brought to (cli/s3_arg.h); owned */
    int exit_status;           /* a command may end with a status of its own (`tacho run`) */
};

typedef bool (*cli_fn)(struct cli *cli, int argc, char **argv, struct err *e);

/* Of cli_command.most: any number; or a command of the person's own, before which our flags end. */
enum { CLI_ANY = 1 << 30, CLI_REST };

struct cli_command {
    const char *name;
    cli_fn fn;
    int least, most;       /* arguments beside flags */
    const char *arguments; /* "PROFILE [key=value…]" */
    const char *summary;   /* one line of --help and of the man page */
    const char *help;      /* paragraphs of the man page */
};

#define X(name, function, least, most, arguments, summary, help)                                   \
    bool function(struct cli *cli, int argc, char **argv, struct err *e);
#include "cli/commands.def"
#undef X

#endif
