/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/main_loop.h"

const struct cli_global_flag cli_global_flags[] = {
    {"--json", "print one JSON document"},
    {"--csv", "print CSV, where the result is a table"},
    {"--xprof", "print XProf's own JSON, where XProf has the tool"},
    {"--help", "this help; with a command, its help (-h)"},
    {"--version", "the version (-V)"},
};
const size_t n_cli_global_flags = sizeof cli_global_flags / sizeof *cli_global_flags;

void cli_flag_form(char out[static CLI_FLAG_FORM_MAX], const char *name, const char *argument)
{
    snprintf(out, CLI_FLAG_FORM_MAX, "%s%s%s", name, argument[0] == '\0' ? "" : " ", argument);
}

static void print_flag(const char *name, const char *argument, const char *help, const char *more)
{
    char form[CLI_FLAG_FORM_MAX];
    cli_flag_form(form, name, argument);
    printf("  %-22s %s%s\n", form, help, more);
}

static void print_global_flags(void)
{
    puts("\nEverywhere:");
    for (size_t i = 0; i < n_cli_global_flags; i++)
        print_flag(cli_global_flags[i].name, "", cli_global_flags[i].help, "");
    for (int f = 0; f < CONFIG_N_FIELDS; f++)
        if (config_table[f].flag[0] != '\0') {
            char help[CLI_FLAG_HELP_MAX];
            cli_config_flag_help(help, (enum config_field)f);
            print_flag(config_table[f].flag, cli_config_argument((enum config_field)f), help, "");
        }
}

void cli_config_flag_help(char out[static CLI_FLAG_HELP_MAX], enum config_field f)
{
    const struct config_entry *c = &config_table[f];
    snprintf(out, CLI_FLAG_HELP_MAX, "%s%s", strncmp(c->flag, "--no-", 5) == 0 ? "do not " : "",
             c->help);
}

const char *cli_config_argument(enum config_field f)
{
    static const char *const words[] = {
        [CONFIG_TEXT] = "TEXT",         [CONFIG_BOOL] = "",
        [CONFIG_I64] = "NUMBER",        [CONFIG_BYTES] = "BYTES",
        [CONFIG_DURATION] = "DURATION", [CONFIG_PATH] = "PATH",
    };
    return words[config_table[f].type];
}

void cli_print_help(void)
{
    puts("tacho: records what an ML workload does and explains where its time went\n\n"
         "Usage: tacho COMMAND [ARGUMENTS]\n");
    for (size_t i = 0; i < n_cli_commands; i++)
        printf("  %-22s %s\n", cli_commands[i].name, cli_commands[i].summary);
    print_global_flags();
}

void cli_usage(const struct cli_command *c, struct buf *out)
{
    buf_addf(out, "tacho %s", c->name);
    for (int i = 0; i < FLAG_N; i++) {
        const struct flag *flag = &flag_table[i];
        char form[CLI_FLAG_FORM_MAX];
        if (strcmp(flag->command, c->name) != 0)
            continue;
        cli_flag_form(form, flag->name, flag->argument);
        buf_addf(out, " [%s]%s", form, flag->repeat == FLAG_REPEATED ? "…" : "");
    }
    if (c->arguments[0] != '\0')
        buf_addf(out, " %s%s", c->most == CLI_REST ? "[--] " : "", c->arguments);
}

void cli_print_command_help(const struct cli_command *c)
{
    struct buf usage;
    bool any = false;
    buf_init(&usage, 1 << 16);
    cli_usage(c, &usage);
    printf("tacho %s: %s\n\nUsage: %.*s\n\n%s\n", c->name, c->summary, STR_ARG(buf_str(&usage)),
           c->help);
    buf_release(&usage);
    for (int i = 0; i < FLAG_N; i++) {
        const struct flag *flag = &flag_table[i];
        if (strcmp(flag->command, c->name) != 0)
            continue;
        if (!any)
            puts("\nFlags:");
        any = true;
        print_flag(flag->name, flag->argument, flag->help,
                   flag->repeat == FLAG_REPEATED ? " (may be repeated)" : "");
    }
    print_global_flags();
}
