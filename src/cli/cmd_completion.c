/* SPDX-License-Identifier: Apache-2.0 */
/* tacho completion SHELL: a script for bash, zsh or fish, made from commands.def, flags.def and config.def. */
#include "cli/help.h"
#include "cli/main_loop.h"

/* The flags that any command takes, each behind `before` and followed by `after`. */
static void print_global_names(const char *before, const char *after)
{
    for (size_t i = 0; i < n_cli_global_flags; i++)
        printf("%s%s%s", before, cli_global_flags[i].name, after);
    for (int f = 0; f < CONFIG_N_FIELDS; f++)
        if (config_table[f].flag[0] != '\0')
            printf("%s%s%s", before, config_table[f].flag, after);
}

static void print_command_flags(const char *command)
{
    for (int i = 0; i < FLAG_N; i++)
        if (strcmp(flag_table[i].command, command) == 0)
            printf(" %s", flag_table[i].name);
}

/* Shell code that sets `flags` from the command in `variable`: the same in bash and zsh. */
static void print_case(const char *variable)
{
    fputs("    local flags='", stdout);
    print_global_names(" ", "");
    printf("'\n    case %s in\n", variable);
    for (size_t c = 0; c < n_cli_commands; c++) {
        printf("    %s) flags+='", cli_commands[c].name);
        print_command_flags(cli_commands[c].name);
        puts("' ;;");
    }
    puts("    esac");
}

static void print_bash(void)
{
    puts("_tacho() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]}");
    print_case("${COMP_WORDS[1]}");
    fputs("    if [[ $word == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
          "    elif [[ $COMP_CWORD -eq 1 ]]; then\n"
          "        COMPREPLY=($(compgen -W '",
          stdout);
    for (size_t i = 0; i < n_cli_commands; i++)
        printf("%s ", cli_commands[i].name);
    puts("' -- \"$word\"))\n"
         "    else\n"
         "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "    fi\n"
         "}\n"
         "complete -o filenames -F _tacho tacho");
}

static void print_quoted(const char *text)
{
    putchar('\'');
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    putchar('\'');
}

static void print_zsh(void)
{
    puts("#compdef tacho\n"
         "_tacho() {\n"
         "    local -a commands=(");
    for (size_t i = 0; i < n_cli_commands; i++) {
        char row[256];
        snprintf(row, sizeof row, "%s:%s", cli_commands[i].name, cli_commands[i].summary);
        fputs("        ", stdout);
        print_quoted(row);
        putchar('\n');
    }
    puts("    )");
    print_case("${words[2]}");
    puts("    if (( CURRENT == 2 )); then\n"
         "        _describe command commands\n"
         "    elif [[ $PREFIX == -* ]]; then\n"
         "        compadd -- ${=flags}\n"
         "    else\n"
         "        _files\n"
         "    fi\n"
         "}\n"
         "compdef _tacho tacho");
}

static void print_fish_flag(const char *command, const char *name, bool takes, const char *help)
{
    fputs("complete -c tacho", stdout);
    if (command != NULL)
        printf(" -n '__fish_seen_subcommand_from %s'", command);
    printf(" -l %s%s -d ", name + 2, takes ? " -r" : "");
    print_quoted(help);
    putchar('\n');
}

static void print_fish(void)
{
    for (size_t i = 0; i < n_cli_commands; i++) {
        printf("complete -c tacho -n __fish_use_subcommand -f -a %s -d ", cli_commands[i].name);
        print_quoted(cli_commands[i].summary);
        putchar('\n');
    }
    for (int i = 0; i < FLAG_N; i++)
        print_fish_flag(flag_table[i].command, flag_table[i].name, flag_table[i].type != FLAG_BOOL,
                        flag_table[i].help);
    for (size_t i = 0; i < n_cli_global_flags; i++)
        print_fish_flag(NULL, cli_global_flags[i].name, false, cli_global_flags[i].help);
    for (int f = 0; f < CONFIG_N_FIELDS; f++)
        if (config_table[f].flag[0] != '\0') {
            char help[CLI_FLAG_HELP_MAX];
            cli_config_flag_help(help, (enum config_field)f);
            print_fish_flag(NULL, config_table[f].flag, config_table[f].type != CONFIG_BOOL, help);
        }
}

bool cmd_completion(struct cli *cli, int argc, char **argv, struct err *e)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(argv[1], shells[i].shell) == 0) {
            shells[i].print();
            return true;
        }
    return err_set(e, ERR_USAGE, "tacho completion takes bash, zsh or fish, not '%s'", argv[1]);
}
