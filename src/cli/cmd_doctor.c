/* SPDX-License-Identifier: Apache-2.0 */
/* tacho doctor: each setting with its source, and the facts of this machine that matter. */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/pool.h"
#include "cli/cli.h"
#include "cli/run_arg.h"
#include "cli/table_out.h"
#include "model/secrets.h"

static struct table *settings_table(struct arena *a, const struct config *c)
{
    struct table *t = table_new(a, S("settings"), S("Settings"));
    table_column(t, S("setting"), S("Setting"), CELL_TEXT, S(""));
    table_column(t, S("value"), S("Value"), CELL_TEXT, S(""));
    table_column(t, S("source"), S("Source"), CELL_TEXT, S(""));
    table_column(t, S("where"), S("Where"), CELL_TEXT, S(""));
    for (int f = 0; f < CONFIG_N_FIELDS; f++) {
        const struct config_value *v = &c->values[f];
        struct cell *row = table_row(t);
        if (row == NULL)
            break;
        row[0] = cell_text(str_from(config_table[f].key));
        /* Whoever has the token or a key of S3 may use it: they are never printed. */
        if (v->text.n > 0)
            row[1] = cell_text(secret_key(str_from(config_table[f].key)) ? S("(set)") : v->text);
        row[2] = cell_text(str_from(config_source_word(v->source)));
        if (v->source == CONFIG_FROM_FILE)
            row[3] = cell_text(arena_printf(a, "%.*s:%u", STR_ARG(c->file), v->line));
        else if (v->source == CONFIG_FROM_ENVIRONMENT)
            row[3] = cell_text(str_from(config_table[f].env));
        else if (v->source == CONFIG_FROM_FLAG)
            row[3] = cell_text(str_from(config_table[f].flag));
    }
    return t;
}

/* One number from a file of /proc/sys; unknown when it cannot be read. */
static struct cell proc_number(struct arena *a, const char *path)
{
    struct err ignored;
    str text;
    int64_t v;
    if (!file_read(a, path, 64, &text, &ignored) || !str_to_i64(str_trim(text), &v))
        return cell_unknown();
    return cell_i64(v);
}

/* Boot time goes on during suspend, monotonic time does not. In whole seconds: the two clocks are
 * not read at the same moment. */
static uint64_t asleep_s(void)
{
    const struct clock_anchor now = clock_anchor_take();
    return now.boottime_ns < now.monotonic_ns ? 0 : (now.boottime_ns - now.monotonic_ns) / NS_PER_S;
}

static void data_facts(struct arena *a, struct table *t, const char *data)
{
    /* The folder may not exist yet: then what it will be made in counts. */
    const char *there = data;
    while (!file_exists(there) && strcmp(there, "/") != 0 && strcmp(there, ".") != 0) {
        there = arena_cstr(a, path_dir(str_from(there)));
        if (there == NULL)
            return;
    }
    struct statvfs fs;
    table_value(t, S("data_folder"), S("Data folder"), cell_text(str_from(data)), S(""));
    table_value(t, S("data_writable"), S("  writable"), cell_bool(access(there, W_OK) == 0), S(""));
    table_value(t, S("data_remote"), S("  on a network file system"),
                cell_bool(dir_is_remote(there)), S(""));
    table_value(t, S("data_free_bytes"), S("  free"),
                statvfs(there, &fs) == 0 ? cell_u64((uint64_t)fs.f_bavail * fs.f_frsize)
                                         : cell_unknown(),
                S("bytes"));
}

static struct table *facts_table(struct arena *a, const char *data)
{
    struct table *t = table_new(a, S("environment"), S("Environment"));
    struct utsname u;
    table_value(t, S("version"), S("tacho"), cell_text(S(TACHO_VERSION)), S(""));
    if (uname(&u) == 0)
        table_value(t, S("kernel"), S("Kernel"),
                    cell_text(arena_printf(a, "%s %s %s", u.sysname, u.release, u.machine)), S(""));
    table_value(t, S("cpus"), S("Processors that tacho may use"), cell_u64(pool_cpu_count()),
                S(""));
    table_value(t, S("perf_event_paranoid"), S("perf_event_paranoid"),
                proc_number(a, "/proc/sys/kernel/perf_event_paranoid"), S(""));
    table_value(t, S("ptrace_scope"), S("ptrace_scope"),
                proc_number(a, "/proc/sys/kernel/yama/ptrace_scope"), S(""));
    table_value(t, S("suspended_s"), S("Time asleep since boot"), cell_u64(asleep_s()), S("s"));
    data_facts(a, t, data);
    return t;
}

bool cmd_doctor(struct cli *cli, int argc, char **argv, struct err *e)
{
    char data[RUN_ARG_PATH_MAX];
    struct arena a;
    if (!run_arg_data_dir(cli, data, e))
        return false;
    arena_init(&a, "doctor", LIMIT_ARENA_REQUEST_BYTES);
    struct table *facts = facts_table(&a, data), *settings = settings_table(&a, cli->config);
    bool done = table_ok(facts, e) && table_ok(settings, e);
    if (done) {
        facts->next = settings;
        done = table_out(cli, facts, e);
    }
    arena_release(&a);
    return done;
}
