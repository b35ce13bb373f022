/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/main_loop.h"

#include <unistd.h>

#include "base/json.h"
#include "base/log.h"

const struct cli_command cli_commands[] = {
#define X(name, function, arguments, summary, help) {name, function, arguments, summary, help},
#include "cli/commands.def"
#undef X
};
const size_t n_cli_commands = sizeof cli_commands / sizeof *cli_commands;

struct globals {
    enum cli_output output;
    bool help, version;
};

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < n_cli_commands; i++)
        if (strcmp(cli_commands[i].name, name) == 0)
            return &cli_commands[i];
    return NULL;
}

static void print_global_flags(void)
{
    puts("\nEverywhere:\n"
         "  --json                 print one JSON document\n"
         "  --csv                  print CSV, where the result is a table\n"
         "  --xprof                print XProf's own JSON, where XProf has the tool\n"
         "  -h, --help             this help; with a command, its help\n"
         "  -V, --version          the version");
    for (int f = 0; f < CONFIG_N_FIELDS; f++)
        if (config_table[f].flag[0] != '\0')
            printf("  %-22s %s\n", config_table[f].flag, config_table[f].help);
}

void cli_print_help(void)
{
    puts("tacho: records what an ML workload does and explains where its time went\n\n"
         "Usage: tacho COMMAND [ARGUMENTS]\n");
    for (size_t i = 0; i < n_cli_commands; i++)
        printf("  %-22s %s\n", cli_commands[i].name, cli_commands[i].summary);
    print_global_flags();
}

void cli_print_command_help(const struct cli_command *command)
{
    printf("tacho %s: %s\n\nUsage: tacho %s %s\n\n%s\n", command->name, command->summary,
           command->name, command->arguments, command->help);
    print_global_flags();
}

/* The global flag at argv[i], if it is one: returns how many arguments it took, 0 when it is none,
 * -1 with e set when its value is wrong. */
static int take_config_flag(struct config *c, int argc, char **argv, int i, struct err *e)
{
    str name = str_from(argv[i]), value = {0};
    const ptrdiff_t at = str_find_char(name, '=');
    if (at >= 0) {
        value = str_sub(name, (size_t)at + 1, name.n);
        name = str_sub(name, 0, (size_t)at);
    }
    const enum config_field f = config_find_flag(name);
    if (f == CONFIG_N_FIELDS)
        return 0;
    int n = 1;
    if (config_table[f].type == CONFIG_BOOL && at < 0) {
        value = str_starts(name, S("--no-")) ? S("false") : S("true");
    } else if (at < 0) {
        if (i + 1 >= argc) {
            err_set(e, ERR_USAGE, "%s needs a value", config_table[f].flag);
            return -1;
        }
        value = str_from(argv[i + 1]);
        n = 2;
    }
    return config_set_flag(c, f, value, e) ? n : -1;
}

static bool take_global(struct globals *g, const char *arg)
{
    static const struct {
        const char *word;
        enum cli_output output;
    } outputs[] = {
        {"--json", CLI_OUTPUT_JSON}, {"--csv", CLI_OUTPUT_CSV}, {"--xprof", CLI_OUTPUT_XPROF}};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        if (strcmp(arg, outputs[i].word) == 0) {
            g->output = outputs[i].output;
            return true;
        }
    if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
        return g->help = true;
    if (strcmp(arg, "--version") == 0 || strcmp(arg, "-V") == 0)
        return g->version = true;
    return false;
}

/* Takes the global flags out of argv, in place, up to "--". */
static bool take_flags(struct globals *g, struct config *c, int *argc, char **argv, struct err *e)
{
    int to = 1, i = 1;
    while (i < *argc && strcmp(argv[i], "--") != 0) {
        if (take_global(g, argv[i])) {
            i++;
            continue;
        }
        const int n = take_config_flag(c, *argc, argv, i, e);
        if (n < 0)
            return false;
        if (n > 0)
            i += n;
        else
            argv[to++] = argv[i++];
    }
    while (i < *argc)
        argv[to++] = argv[i++];
    argv[to] = NULL;
    *argc = to;
    return true;
}

static bool set_up_log(const struct config *c, struct err *e)
{
    static const str levels[] = {STR_INIT("debug"), STR_INIT("info"), STR_INIT("warn"),
                                 STR_INIT("error")};
    const str level = config_text(c, CONFIG_FIELD_log_level);
    const str format = config_text(c, CONFIG_FIELD_log_format);
    if (!str_eq(format, S("text")) && !str_eq(format, S("json")))
        return err_set(e, ERR_USAGE, "log_format must be text or json, not '%.*s'", STR_ARG(format));
    for (int i = 0; i < 4; i++)
        if (str_eq(level, levels[i])) {
            log_setup((enum log_level)i,
                      str_eq(format, S("json")) ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
            return true;
        }
    return err_set(e, ERR_USAGE, "log_level must be debug, info, warn or error, not '%.*s'",
                   STR_ARG(level));
}

/* Bytes of hostile names must not steer the terminal. */
static void print_line(const char *prefix, const char *text)
{
    fputs(prefix, stderr);
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            fprintf(stderr, "\\x%02x", (unsigned char)*text);
        else
            fputc(*text, stderr);
    fputc('\n', stderr);
}

static void print_error(enum cli_output output, const struct err *e)
{
    print_line("tacho: ", e->msg[0] == '\0' ? err_meaning(e->code) : e->msg);
    if (e->hint[0] != '\0')
        print_line("hint: ", e->hint);
    if (output != CLI_OUTPUT_JSON)
        return;
    struct json j;
    struct err ignored;
    json_init_fd(&j, STDOUT_FILENO);
    j.pretty = true;
    json_object(&j);
    json_key(&j, "error");
    json_object(&j);
    json_kcstr(&j, "code", err_word(e->code));
    json_kcstr(&j, "message", e->msg);
    json_kcstr(&j, "hint", e->hint);
    json_end(&j);
    json_end(&j);
    if (!json_done(&j, &ignored))
        print_line("tacho: ", ignored.msg);
}

static bool run_command(struct cli *cli, const struct globals *g, int argc, char **argv,
                        struct err *e)
{
    if (g->version) {
        puts("tacho " TACHO_VERSION);
        return true;
    }
    if (argc < 2) {
        cli_print_help();
        if (!g->help)
            cli->exit_status = err_exit_status(ERR_USAGE);
        return true;
    }
    const struct cli_command *command = cli_command_find(argv[1]);
    if (command == NULL) {
        err_set(e, ERR_USAGE, "there is no command '%s'", argv[1]);
        return err_hint(e, "tacho --help lists the commands");
    }
    if (g->help) {
        cli_print_command_help(command);
        return true;
    }
    cli->command = command->name;
    return command->fn(cli, argc - 1, argv + 1, e);
}

int main_loop(int argc, char **argv)
{
    struct config config = {0};
    struct globals g = {0};
    struct err e = {.pos = ERR_NO_POS};
    struct cli cli = {.config = &config};
    cli.colour = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
    bool done = config_load(&config, NULL, &e) && take_flags(&g, &config, &argc, argv, &e) &&
                set_up_log(&config, &e);
    cli.output = g.output;
    if (done)
        done = run_command(&cli, &g, argc, argv, &e);
    if (fflush(stdout) != 0 && done)
        done = err_sys(&e, "cannot write the output");
    if (!done) {
        if (e.code == ERR_NONE)
            e.code = ERR_INTERNAL;
        print_error(cli.output, &e);
    }
    const int status = done || cli.exit_status != 0 ? cli.exit_status : err_exit_status(e.code);
    config_release(&config);
    return status;
}
