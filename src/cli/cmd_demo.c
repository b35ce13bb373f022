/* SPDX-License-Identifier: Apache-2.0 */
/* tacho demo: a real small training, recorded to its planted crash and on, accounted for, explained and
 * served. It trains with what the machine has and installs nothing. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/run_arg.h"
#include "server/http.h"

extern char **environ;

#define WORDS_MAX 16

struct demo {
    struct arena arena;
    const char *self;    /* this binary */
    const char *root;    /* the folder with examples/ and python/ */
    const char *c_train; /* the C example, built; NULL: not there */
    const char *state;   /* checkpoint of the training; removed at the end */
    const char *data;
    const char *command[4]; /* of the training */
};

/* The exit status, or 128 + signal; -1 when it could not be started. */
static int run_words(const char *const words[], const char *quiet)
{
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    for (int fd = STDOUT_FILENO; quiet != NULL && fd <= STDERR_FILENO; fd++)
        posix_spawn_file_actions_addopen(&files, fd, quiet, O_WRONLY, 0);
    char *argv[WORDS_MAX + 1] = {0};
    must(words[0] != NULL);
    for (size_t i = 0; i < WORDS_MAX && words[i] != NULL; i++) {
        argv[i] = strdup(words[i]);
        must(argv[i] != NULL);
    }
    fflush(NULL);
    pid_t pid;
    int status = 0;
    const int failed = posix_spawnp(&pid, words[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    for (size_t i = 0; argv[i] != NULL; i++)
        free(argv[i]);
    if (failed != 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char *self_path(struct arena *a)
{
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    return n <= 0 || n == (ssize_t)sizeof path ? NULL : arena_cstr(a, (str){path, (size_t)n});
}

/* Beside the binary as installed, or above it in a source tree. */
static bool find_examples(struct demo *d, struct err *e)
{
    const str bin = path_dir(str_from(d->self)), parent = path_dir(bin);
    const char *const above = arena_cstr(&d->arena, parent);
    const char *const roots[] = {path_join(&d->arena, above, S("share/tachograph")), above};
    const char *const built[] = {
        path_join(&d->arena, above, S("libexec/tachograph/c_train")),
        path_join(&d->arena, arena_cstr(&d->arena, bin), S("examples/c_train"))};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        if (!file_exists(path_join(&d->arena, roots[i], S("examples/jax_train.py"))))
            continue;
        d->root = roots[i];
        d->c_train = file_exists(built[i]) ? built[i] : NULL;
        return true;
    }
    return err_set(e, ERR_NOT_FOUND, "the examples are neither beside '%s' nor above it",
                   d->self) ||
           err_hint(
               e,
               "install with make install, or run the binary of a build folder in the source tree");
}

/* A Python that has the module, or NULL. */
static const char *find_python(struct demo *d, const char *module)
{
    const char *const pythons[] = {path_join(&d->arena, d->root, S(".venv/bin/python3")), "python3",
                                   "/usr/bin/python3"};
    const char *const code = arena_printf(&d->arena, "import %s", module).p;
    for (size_t i = 0; i < sizeof pythons / sizeof *pythons; i++)
        if (run_words((const char *const[]){pythons[i], "-c", code, NULL}, "/dev/null") == 0)
            return pythons[i];
    return NULL;
}

static bool choose_example(struct demo *d, str asked, struct err *e)
{
    static const struct {
        const char *word, *module, *script;
    } kinds[] = {{"jax", "jax", "examples/jax_train.py"},
                 {"torch", "torch", "examples/torch_train.py"}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (asked.n > 0 && !str_eq(asked, str_from(kinds[i].word)))
            continue;
        const char *python = find_python(d, kinds[i].module);
        if (python == NULL)
            continue;
        d->command[0] = python;
        d->command[1] = path_join(&d->arena, d->root, str_from(kinds[i].script));
        d->command[2] = d->state;
        const char *const package = path_join(&d->arena, d->root, S("python"));
        const char *const path = getenv("PYTHONPATH");
        return setenv("PYTHONPATH",
                      path == NULL ? package : arena_printf(&d->arena, "%s:%s", package, path).p,
                      1) == 0;
    }
    if (asked.n == 0 || str_eq(asked, S("c"))) {
        d->command[0] = d->c_train;
        d->command[1] = d->state;
    }
    return d->command[0] != NULL ||
           err_set(e, ERR_NOT_FOUND, "this machine has no %s to train with",
                   asked.n == 0 ? "JAX, PyTorch or built C example" : asked.p);
}

static bool train(struct demo *d, struct err *e)
{
    const char *words[WORDS_MAX + 1] = {d->self, "run", "--name", "demo", "--"};
    for (size_t i = 0; d->command[i] != NULL; i++)
        words[5 + i] = d->command[i];
    const int crash = run_words(words, NULL);
    if (crash == 0 || crash < 0 || crash >= 125)
        return err_set(e, ERR_FAILED,
                       "the training was to crash as planted, and ended with status %d", crash);
    printf(
        "demo: the run crashed as planted (exit status %d); it goes on from its last checkpoint\n",
        crash);
    words[4] = "--resume";
    words[5] = "--";
    for (size_t i = 0; d->command[i] != NULL; i++)
        words[6 + i] = d->command[i];
    const int status = run_words(words, NULL);
    return status == 0 ||
           err_set(e, ERR_FAILED, "the training that was resumed ended with status %d", status);
}

static bool explain(struct demo *d, struct err *e)
{
    const char *const page = path_join(&d->arena, d->data, S("summary.html"));
    if (run_words((const char *const[]){d->self, "goodput", "last", NULL}, NULL) != 0 ||
        run_words((const char *const[]){d->self, "report", "last", "--html", page, NULL}, NULL) !=
            0)
        return err_set(e, ERR_FAILED, "the demo's run could not be explained");
    printf("demo: the report as a page: %s\n", page);
    printf("demo: look again with: TACHO_DATA=%s %s why last\n", d->data, d->self);
    return true;
}

static bool run_demo(struct demo *d, str example, struct err *e)
{
    char state[] = "/tmp/tacho-demo-XXXXXX";
    if (mkdtemp(state) == NULL)
        return err_sys(e, "cannot make a folder in /tmp");
    d->state = arena_cstr(&d->arena, str_from(state));
    bool ok = choose_example(d, example, e);
    if (ok)
        printf("demo: training with %s%s%s\n", d->command[0], d->command[1] == d->state ? "" : " ",
               d->command[1] == d->state ? "" : d->command[1]);
    ok = ok && train(d, e) && explain(d, e);
    struct err left = {0};
    if (!dir_remove(state, &left))
        fprintf(stderr, "tacho: demo: %s\n", left.msg);
    return ok;
}

/* Becomes `tacho serve`. Where nobody chose an address and the usual one is taken, any free port
 * serves: the demo is not to end in an error after all its work. */
static bool serve(struct demo *d, struct cli *cli, struct err *e)
{
    const struct config_value *asked = &cli->config->values[CONFIG_FIELD_listen];
    const char *listen = arena_cstr(&d->arena, asked->text);
    if (asked->source == CONFIG_FROM_DEFAULT && http_address_in_use(asked->text)) {
        printf("demo: %s is in use; the UI gets a free port\n", listen);
        listen = "127.0.0.1:0";
    }
    printf("demo: serving the run until Ctrl-C:\n");
    fflush(stdout);
    execl(d->self, "tacho", "serve", "--listen", listen,
          flags_on(cli->flags, FLAG_demo_open) ? "--open" : NULL, (char *)NULL);
    return err_sys(e, "cannot start '%s serve'", d->self);
}

bool cmd_demo(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct demo d = {0};
    char data[RUN_ARG_PATH_MAX];
    arena_init(&d.arena, "demo", LIMIT_ARENA_REQUEST_BYTES);
    d.self = self_path(&d.arena);
    d.data = data;
    bool ok = d.self != NULL || err_set(e, ERR_IO, "cannot read /proc/self/exe");
    ok = ok && run_arg_data_dir(cli, data, e) && find_examples(&d, e);
    ok = ok && (setenv("TACHO_DATA", data, 1) == 0 || err_sys(e, "cannot set TACHO_DATA"));
    ok = ok && run_demo(&d, str_from(flags_text(cli->flags, FLAG_demo_example)), e);
    if (ok && !flags_on(cli->flags, FLAG_demo_no_serve))
        ok = serve(&d, cli, e);
    arena_release(&d.arena);
    return ok;
}
