/* SPDX-License-Identifier: Apache-2.0 */
/* tacho completion SHELL: a script for bash, zsh or fish, made from commands.def and config.def. */
#include "cli/main_loop.h"

static void print_words(void)
{
    for (size_t i = 0; i < n_cli_commands; i++)
        printf("%s ", cli_commands[i].name);
}

static void print_flags(void)
{
    fputs("--json --csv --xprof --help --version", stdout);
    for (int f = 0; f < CONFIG_N_FIELDS; f++)
        if (config_table[f].flag[0] != '\0')
            printf(" %s", config_table[f].flag);
}

static void print_bash(void)
{
    puts("_tacho() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]}\n"
         "    if [[ $word == -* ]]; then");
    fputs("        COMPREPLY=($(compgen -W '", stdout);
    print_flags();
    puts("' -- \"$word\"))\n"
         "    elif [[ $COMP_CWORD -eq 1 ]]; then");
    fputs("        COMPREPLY=($(compgen -W '", stdout);
    print_words();
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
    puts("    )\n"
         "    if (( CURRENT == 2 )); then\n"
         "        _describe command commands\n"
         "    elif [[ $PREFIX == -* ]]; then");
    fputs("        compadd -- ", stdout);
    print_flags();
    puts("\n    else\n"
         "        _files\n"
         "    fi\n"
         "}\n"
         "compdef _tacho tacho");
}

static void print_fish(void)
{
    for (size_t i = 0; i < n_cli_commands; i++) {
        printf("complete -c tacho -n __fish_use_subcommand -f -a %s -d ", cli_commands[i].name);
        print_quoted(cli_commands[i].summary);
        putchar('\n');
    }
    puts("complete -c tacho -l json -d 'print one JSON document'\n"
         "complete -c tacho -l csv -d 'print CSV'");
    for (int f = 0; f < CONFIG_N_FIELDS; f++)
        if (config_table[f].flag[0] != '\0') {
            printf("complete -c tacho -l %s -d ", config_table[f].flag + 2);
            print_quoted(config_table[f].help);
            putchar('\n');
        }
}

bool cmd_completion(struct cli *cli, int argc, char **argv, struct err *e)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; argc == 2 && i < sizeof shells / sizeof *shells; i++)
        if (strcmp(argv[1], shells[i].shell) == 0) {
            shells[i].print();
            return true;
        }
    return err_set(e, ERR_USAGE, "tacho completion takes bash, zsh or fish");
}
