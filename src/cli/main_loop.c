/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/main_loop.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/help.h"
#include "cli/s3_arg.h"

const struct cli_command cli_commands[] = {
#define X(name, function, least, most, arguments, summary, help)                                   \
    {name, function, least, most, arguments, summary, help},
#include "cli/commands.def"
#undef X
};
const size_t n_cli_commands = sizeof cli_commands / sizeof *cli_commands;

struct globals {
    enum cli_output output;
    bool help, version;
    const struct cli_command *command;
};

const struct cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < n_cli_commands; i++)
        if (strcmp(cli_commands[i].name, name) == 0)
            return &cli_commands[i];
    return NULL;
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

/* A flag of the command line at argv[i]: how many arguments it took, -1 with e set. */
static int take_flag(struct globals *g, struct config *c, struct flags *f, int argc, char **argv,
                     int i, struct err *e)
{
    int n = g->command == NULL ? 0 : flags_take(f, g->command->name, argc, argv, i, e);
    if (n == 0 && take_global(g, argv[i]))
        return 1;
    if (n == 0)
        n = take_config_flag(c, argc, argv, i, e);
    if (n != 0)
        return n;
    if (g->command == NULL)
        return err_set(e, ERR_USAGE, "there is no flag '%s' of every command", argv[i]) - 1;
    err_set(e, ERR_USAGE, "tacho %s has no flag '%s'", g->command->name, argv[i]);
    return err_hint(e, "tacho %s --help lists its flags", g->command->name) - 1;
}

static bool take_command(struct globals *g, const char *word, struct err *e)
{
    g->command = cli_command_find(word);
    if (g->command != NULL)
        return true;
    err_set(e, ERR_USAGE, "there is no command '%s'", word);
    return err_hint(e, "tacho --help lists the commands");
}

/* Finds the command and takes all flags out of argv, in place: what is left are the program, the
 * command and its arguments. "--" ends the flags, and so does the first word of a CLI_REST. */
static bool take_flags(struct globals *g, struct config *c, struct flags *f, int *argc, char **argv,
                       struct err *e)
{
    int to = 1, i = 1;
    while (i < *argc && strcmp(argv[i], "--") != 0) {
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            const int n = take_flag(g, c, f, *argc, argv, i, e);
            if (n < 0)
                return false;
            i += n;
            continue;
        }
        if (g->command != NULL && g->command->most == CLI_REST)
            break;
        if (g->command == NULL && !take_command(g, argv[i], e))
            return false;
        argv[to++] = argv[i++];
    }
    if (i < *argc && strcmp(argv[i], "--") == 0)
        i++;
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
        return err_set(e, ERR_USAGE, "log_format must be text or json, not '%.*s'",
                       STR_ARG(format));
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

/* The form of an error about flags: what the line asks for, read or not yet. */
static enum cli_output output_asked(int argc, char **argv)
{
    struct globals g = {0};
    for (int i = 1; i < argc && argv[i] != NULL && strcmp(argv[i], "--") != 0; i++)
        (void)take_global(&g, argv[i]);
    return g.output;
}

static bool check_count(const struct cli_command *c, int n, struct err *e)
{
    if (n >= c->least && n <= c->most)
        return true;
    if (c->most == 0)
        err_set(e, ERR_USAGE, "tacho %s takes no arguments", c->name);
    else if (n < c->least)
        err_set(e, ERR_USAGE, "tacho %s needs %s", c->name, c->arguments);
    else
        err_set(e, ERR_USAGE, "tacho %s takes %s, and nothing more", c->name, c->arguments);
    return err_hint(e, "tacho %s --help", c->name);
}

static bool run_command(struct cli *cli, const struct globals *g, int argc, char **argv,
                        struct err *e)
{
    if (g->version) {
        puts("tacho " TACHO_VERSION);
        return true;
    }
    if (g->command == NULL) {
        cli_print_help();
        if (!g->help)
            cli->exit_status = err_exit_status(ERR_USAGE);
        return true;
    }
    if (g->help) {
        cli_print_command_help(g->command);
        return true;
    }
    cli->command = g->command->name;
    return check_count(g->command, argc - 2, e) && g->command->fn(cli, argc - 1, argv + 1, e);
}

/* Whoever started us may have closed these (daemons do): else a file of ours gets the number, and what is
 * printed goes into it, or the output of `tacho run`'s command is taken for its input. */
static void open_standard_files(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1)
            (void)!open("/dev/null", O_RDWR); /* the lowest free number: this one */
}

int main_loop(int argc, char **argv)
{
    open_standard_files();
    struct config config = {0};
    struct flags flags;
    struct globals g = {0};
    struct err e = {.pos = ERR_NO_POS};
    struct cli cli = {.config = &config, .flags = &flags};
    flags_init(&flags);
    cli.colour = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
    bool done = config_load(&config, NULL, &e) &&
                take_flags(&g, &config, &flags, &argc, argv, &e) && set_up_log(&config, &e);
    cli.output = done ? g.output : output_asked(argc, argv);
    if (done)
        done = run_command(&cli, &g, argc, argv, &e);
    if (fflush(stdout) != 0 && done)
        done = err_sys(&e, "cannot write the output");
    if (!done) {
        if (e.code == ERR_NONE)
            e.code = ERR_INTERNAL;
        s3_arg_explain(&cli, &e);
        print_error(cli.output, &e);
        /* A command that stands for another one keeps that one's statuses free. */
        if (g.command != NULL && g.command->most == CLI_REST && cli.exit_status == 0)
            cli.exit_status = 125;
    }
    const int status = done || cli.exit_status != 0 ? cli.exit_status : err_exit_status(e.code);
    s3_arg_release(&cli);
    flags_release(&flags);
    config_release(&config);
    return status;
}
