/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/tee.h"
#include "base/clock.h"
#include "capture/host_facts.h"
#include "capture/system_metrics.h"
#include "journal/writer.h"
#include "model/secrets.h"

#define OUTPUT_EVERY_NS (60 * NS_PER_S)
#define DENSE_NS (5 * NS_PER_S) /* samples every second this long after the start */
#define FACTS_BYTES (1u << 20)

struct runner {
    const struct runner_plan *plan;
    struct journal_writer journal;
    struct system_metrics metrics;
    struct tee tee;
    struct buf scratch;
    pid_t pid, shipper; /* -1 = nothing is sent */
    uint64_t start_ns, next_sample_ns, next_output_ns, oom_kills;
    sigset_t before; /* mask of whoever started us: CMD gets it back */
};

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGWINCH};

extern char **environ;

static json_t *text_json(str s)
{
    json_t *t = json_stringn(s.p == NULL ? "" : s.p, s.n);
    return t != NULL ? t : json_string("(not UTF-8)");
}

static json_t *environment_json(void)
{
    struct arena a;
    arena_init(&a, "environment", 0);
    json_t *env = json_pack("{}"); /* base/json.h has jansson's other name */
    for (char **v = environ; v != NULL && *v != NULL; v++) {
        str name, value;
        char key[256];
        if (!str_cut(str_from(*v), '=', &name, &value) || name.n == 0 || name.n >= sizeof key)
            continue;
        memcpy(key, name.p, name.n);
        key[name.n] = '\0';
        json_object_set_new(env, key, text_json(secret_mask(&a, name, value)));
    }
    arena_release(&a);
    return env;
}

static json_t *argv_json(char **argv)
{
    struct arena a;
    arena_init(&a, "argv", 0);
    size_t n = 0;
    while (argv[n] != NULL)
        n++;
    str *words = ARENA_ARRAY(&a, str, n + 1);
    json_t *list = json_pack("[]");
    for (size_t i = 0; words != NULL && i < n; i++)
        words[i] = str_from(argv[i]);
    if (words != NULL)
        secret_mask_argv(&a, words, n);
    for (size_t i = 0; words != NULL && i < n; i++)
        json_array_append_new(list, text_json(words[i]));
    arena_release(&a);
    return list;
}

json_t *runner_start_json(const struct runner_plan *p)
{
    char cwd[4096];
    json_t *o = json_pack("{}");
    json_object_set_new(o, "argv", argv_json(p->argv));
    if (getcwd(cwd, sizeof cwd) != NULL)
        json_object_set_new(o, "cwd", text_json(str_from(cwd)));
    if (p->name != NULL)
        json_object_set_new(o, "name", json_string(p->name));
    if (p->group != NULL)
        json_object_set_new(o, "group", json_string(p->group));
    json_object_set(o, "labels", p->labels);
    json_object_set_new(o, "attempt", json_integer(p->attempt));
    json_object_set_new(o, "resume", json_boolean(p->resume));
    if (p->record_environment)
        json_object_set_new(o, "env", environment_json());
    return o;
}

static void write_json(struct runner *r, enum journal_type type, json_t *o)
{
    char *text = json_dumps(o, JSON_COMPACT);
    if (text != NULL)
        journal_write(&r->journal, type, str_from(text), (str){0});
    free(text);
}

static void write_host(struct runner *r)
{
    struct buf b;
    struct err ignored = {0};
    buf_init(&b, FACTS_BYTES);
    if (host_facts_text(&host_roots_here, r->plan->argv[0], &b, &ignored))
        journal_write(&r->journal, JOURNAL_HOST, buf_str(&b), (str){0});
    buf_release(&b);
}

static void open_journal(struct runner *r)
{
    const struct runner_plan *p = r->plan;
    const struct journal_writer_opts o = {.data_dir = p->data_dir,
                                          .run = p->id.run,
                                          .host = p->id.host,
                                          .role = JOURNAL_ROLE_RUNNER,
                                          .rank = p->id.rank,
                                          .world_size = p->id.world_size,
                                          .restart_count = p->id.restart_count};
    const int failed = journal_writer_open(&r->journal, &o);
    if (failed != 0) {
        fprintf(stderr, "tacho: nothing is recorded: cannot write in '%s': %s\n", p->data_dir,
                strerror(failed));
        return;
    }
    json_t *start = runner_start_json(p);
    write_json(r, JOURNAL_RUNNER_START, start);
    json_decref(start);
    if (p->config != NULL)
        write_json(r, JOURNAL_CONFIG, p->config);
    write_host(r);
}

static void sample(struct runner *r)
{
    struct system_sample samples[SYSTEM_METRICS_MAX];
    const size_t n = system_metrics_sample(&r->metrics, r->pid, samples, SYSTEM_METRICS_MAX);
    const int64_t no_step = -1;
    const uint16_t count = (uint16_t)n;
    buf_clear(&r->scratch);
    buf_add(&r->scratch, &no_step, sizeof no_step);
    buf_add(&r->scratch, &count, sizeof count);
    for (size_t i = 0; i < n; i++) {
        const uint16_t length = (uint16_t)strlen(samples[i].name);
        buf_add(&r->scratch, &samples[i].value, sizeof samples[i].value);
        buf_add(&r->scratch, &length, sizeof length);
        buf_add(&r->scratch, samples[i].name, length);
    }
    journal_write(&r->journal, JOURNAL_SYSTEM, buf_str(&r->scratch), (str){0});
    const uint64_t now = clock_boottime_ns();
    const int64_t interval =
        now - r->start_ns < (uint64_t)DENSE_NS ? NS_PER_S : r->plan->sample_interval_ns;
    r->next_sample_ns = now + (uint64_t)interval;
}

static void write_output(struct runner *r)
{
    for (int stream = 1; stream <= 2 && r->plan->record_output; stream++) {
        tee_take(&r->tee, stream, &r->scratch);
        if (r->scratch.n > 0)
            journal_write_output(&r->journal, (uint8_t)stream, buf_str(&r->scratch));
    }
    r->next_output_ns = clock_boottime_ns() + OUTPUT_EVERY_NS;
}

static _Noreturn void become_command(const struct runner *r, int failed_to)
{
    const struct runner_plan *p = r->plan;
    (void)setenv("TACHO_RUN_ID", p->id.run, 1);
    (void)setenv("TACHO_DATA", p->data_dir, 1);
    if (p->name != NULL)
        (void)setenv("TACHO_RUN_NAME", p->name, 1);
    if (p->group != NULL)
        (void)setenv("TACHO_RUN_GROUP", p->group, 1);
    if (p->ship != NULL) {
        (void)setenv("TACHO_SERVER", p->ship->server, 1);
        (void)setenv("TACHO_SHIP", "off", 1); /* it is done already */
    }
    if (p->record_output)
        tee_enter(&r->tee);
    sigprocmask(SIG_SETMASK, &r->before, NULL);
    execvp(p->argv[0], p->argv);
    const int why = errno;
    (void)!write(failed_to, &why, sizeof why);
    _exit(127);
}

/* The pipe closes by itself when exec succeeds; else it brings the errno. */
static bool start_command(struct runner *r, struct runner_end *end, struct err *e)
{
    int ends[2], why = 0;
    end->exit_status = 125;
    if (pipe2(ends, O_CLOEXEC) == -1)
        return err_sys(e, "cannot start '%s'", r->plan->argv[0]);
    r->pid = fork();
    if (r->pid == -1)
        return err_sys(e, "cannot start '%s'", r->plan->argv[0]);
    if (r->pid == 0)
        become_command(r, ends[1]);
    close(ends[1]);
    if (r->plan->record_output)
        tee_leave_to_command(&r->tee);
    ssize_t got;
    while ((got = read(ends[0], &why, sizeof why)) == -1 && errno == EINTR)
        ;
    close(ends[0]);
    if (got != (ssize_t)sizeof why)
        return true;
    (void)waitpid(r->pid, NULL, 0);
    end->exit_status = why == ENOENT ? 127 : 126;
    errno = why;
    return err_sys(e, "cannot run '%s'", r->plan->argv[0]);
}

static void take_signal(struct runner *r, const siginfo_t *info)
{
    if (info->si_signo == SIGWINCH)
        tee_resize(&r->tee);
    /* A key of the terminal reaches CMD too: it is in the same foreground group. */
    if (info->si_signo != SIGCHLD && info->si_code != SI_KERNEL)
        (void)kill(r->pid, info->si_signo);
}

static int watch(struct runner *r, const sigset_t *signals)
{
    for (;;) {
        int status;
        const pid_t got = waitpid(r->pid, &status, WNOHANG);
        if (got == r->pid)
            return status;
        const uint64_t now = clock_boottime_ns();
        if (now >= r->next_sample_ns)
            sample(r);
        if (now >= r->next_output_ns)
            write_output(r);
        uint64_t next =
            r->next_sample_ns < r->next_output_ns ? r->next_sample_ns : r->next_output_ns;
        const uint64_t wait_ns = next > now ? next - now : 0;
        const struct timespec wait = {(time_t)(wait_ns / NS_PER_S), (long)(wait_ns % NS_PER_S)};
        siginfo_t info;
        if (sigtimedwait(signals, &info, &wait) > 0)
            take_signal(r, &info);
    }
}

static void end_of(struct runner *r, int status, struct runner_end *end)
{
    *end = (struct runner_end){.code = -1, .reason = "signal"};
    if (WIFEXITED(status)) {
        end->code = WEXITSTATUS(status);
        end->exit_status = end->code;
        end->reason = "exit";
    } else {
        end->signal = WTERMSIG(status);
        end->exit_status = 128 + end->signal;
        if (end->signal == SIGKILL && host_cgroup_oom_kills() > r->oom_kills)
            end->reason = "oom";
    }
}

static void start_shipping(struct runner *r)
{
    struct err e = {0};
    const struct runner_plan *p = r->plan;
    r->shipper = -1;
    if (p->ship == NULL || !journal_writer_is_open(&r->journal))
        return;
    r->shipper = ship_child_start(p->ship, p->data_dir, p->id.run, &r->before, &e);
    if (r->shipper == -1)
        fprintf(stderr, "tacho: %s; the journals wait in '%s'\n", e.msg, p->data_dir);
}

bool runner_run(const struct runner_plan *p, struct runner_end *end, struct err *e)
{
    struct runner r = {.plan = p, .tee = {.master = -1}};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        sigaddset(&signals, forwarded[i]);
    end->exit_status = 125;
    sigprocmask(SIG_BLOCK, &signals, &r.before);
    if (p->record_output && !tee_start(&r.tee, e))
        return false;
    buf_init(&r.scratch, 2 * LIMIT_OUTPUT_TAIL_BYTES);
    r.oom_kills = host_cgroup_oom_kills();
    r.start_ns = clock_boottime_ns();
    open_journal(&r);
    system_metrics_open(&r.metrics, &host_roots_here);
    const bool started = start_command(&r, end, e);
    if (started) {
        start_shipping(&r);
        sample(&r);
        r.next_output_ns = clock_boottime_ns() + OUTPUT_EVERY_NS;
        end_of(&r, watch(&r, &signals), end);
        sample(&r);
        tee_drain(&r.tee);
        write_output(&r);
        journal_write_end_of(&r.journal, JOURNAL_RUNNER_END, end->code, end->signal,
                             str_from(end->reason));
    } else if (journal_writer_is_open(&r.journal)) {
        (void)unlink(r.journal.path); /* nothing ran: leave no run behind */
    }
    journal_writer_close(&r.journal);
    if (started)
        ship_child_end(r.shipper, &signals);
    system_metrics_close(&r.metrics);
    buf_release(&r.scratch);
    sigprocmask(SIG_SETMASK, &r.before, NULL);
    return started;
}
