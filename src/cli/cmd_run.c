/* SPDX-License-Identifier: Apache-2.0 */
/* tacho run: record a command as a run. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/run_find.h"
#include "agent/runner.h"
#include "agent/ship.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "capture/host_facts.h"
#include "capture/secrets_json.h"
#include "capture/system_metrics.h"
#include "cli/cli.h"
#include "cli/run_arg.h"
#include "server/local_socket.h"

#define FACTS_BYTES (1u << 20)
#define SAMPLE_LEAST_NS NS_PER_MS
#define SAMPLE_USUAL_NS (10 * NS_PER_S) /* as in config.def */

static bool add_label(json_t *labels, const char *text, struct err *e)
{
    const char *eq = strchr(text, '=');
    char key[128];
    if (eq == NULL || eq == text || (size_t)(eq - text) >= sizeof key)
        return err_set(e, ERR_USAGE, "--label takes key=value, not '%s'", text);
    memcpy(key, text, (size_t)(eq - text));
    key[eq - text] = '\0';
    if (json_object_set_new(labels, key, json_string(eq + 1)) != 0)
        return err_set(e, ERR_USAGE, "label '%s' is not UTF-8", key);
    return true;
}

static bool add_labels(const struct flags *f, json_t *labels, struct err *e)
{
    for (const struct flag_value *v = NULL; (v = flags_next(f, FLAG_run_label, v)) != NULL;)
        if (!add_label(labels, v->text, e))
            return false;
    return true;
}

static bool load_config(const char *path, json_t **out, struct err *e)
{
    struct arena a;
    str text;
    json_error_t why;
    if (path == NULL)
        return true;
    arena_init(&a, "config", LIMIT_CONFIG_FILE_BYTES * 2);
    bool ok = file_read(&a, path, LIMIT_CONFIG_FILE_BYTES, &text, e);
    if (ok) {
        *out = json_loadb(text.p, text.n, 0, &why);
        if (*out == NULL)
            ok = err_at(e, ERR_PARSE, (uint64_t)why.position, "config '%s': %s", path, why.text);
        else if (!json_is_object(*out))
            ok = err_at(e, ERR_PARSE, 0, "config '%s' is not a JSON object", path);
        else
            secret_mask_json(*out, NULL);
    }
    arena_release(&a);
    return ok;
}

/* The run of that name when it is to be resumed, else the one of the environment. */
static bool choose_run(struct runner_plan *p, struct err *e)
{
    struct arena a;
    struct run_found found;
    p->attempt = 1;
    run_identity_find(&p->id);
    if (!p->resume) {
        if (p->id.alone != NULL)
            fprintf(stderr, "tacho: %s: set TACHO_RUN_ID, the same for all\n", p->id.alone);
        return true;
    }
    if (p->name == NULL)
        return err_set(e, ERR_USAGE, "--resume needs --name: the run to go on with");
    arena_init(&a, "resume", LIMIT_ARENA_REQUEST_BYTES);
    bool ok = run_find_named(&a, p->data_dir, str_from(p->name), &found, e);
    if (ok && found.run.n < sizeof p->id.run) {
        memcpy(p->id.run, found.run.p, found.run.n);
        p->id.run[found.run.n] = '\0';
        p->attempt = found.n_attempts + 1;
    }
    arena_release(&a);
    return ok;
}

static json_t *facts_json(const char *command)
{
    struct buf b;
    struct err ignored = {0};
    json_t *facts = NULL;
    buf_init(&b, FACTS_BYTES);
    if (host_facts_text(&host_roots_here, command, &b, &ignored))
        facts = json_loadb(b.p, b.n, 0, NULL);
    buf_release(&b);
    return facts;
}

static bool dry_run(struct cli *cli, const struct runner_plan *p)
{
    json_t *o = json_pack("{}"), *metrics = json_pack("[]"), *value;
    const char *key;
    json_object_set_new(o, "run", json_string(p->id.run));
    json_object_set_new(o, "journals", json_sprintf("%s/runs/%s/journals", p->data_dir, p->id.run));
    json_object_set_new(o, "start", runner_start_json(p));
    if (p->config != NULL)
        json_object_set(o, "config", p->config);
    json_object_set_new(o, "host", facts_json(p->argv[0]));
    for (int i = 0; i < SYSTEM_METRIC_N; i++)
        json_array_append_new(metrics, json_string(system_metric_table[i].name));
    json_object_set_new(o, "system_metrics", metrics);
    json_object_set_new(o, "sample_interval_s", json_real((double)p->sample_interval_ns / 1e9));
    json_object_set_new(o, "output_tail_bytes",
                        json_integer(p->record_output ? LIMIT_OUTPUT_TAIL_BYTES : 0));
    if (p->ship != NULL)
        json_object_set_new(o, "sent_to", json_string(p->ship->server));
    if (cli->output == CLI_OUTPUT_JSON) {
        json_dumpf(o, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        puts("nothing was run; this would be recorded:");
        json_object_foreach(o, key, value)
        {
            char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_INDENT(2));
            printf("%s: %s\n", key, text == NULL ? "" : text);
            free(text);
        }
    }
    json_decref(o);
    return true;
}

/* A server that is set gets the run, but the one of this data folder, which follows it by itself. */
static const struct ship_child_options *shipping_of(const struct cli *cli, const char *data_dir,
                                                    struct arena *a, struct ship_child_options *out)
{
    struct local_server own;
    struct err absent = {0};
    const str server = ship_server_url(config_text(cli->config, CONFIG_FIELD_server));
    const str token = config_text(cli->config, CONFIG_FIELD_token);
    if (server.n == 0 || config_number(cli->config, CONFIG_FIELD_ship) == 0 ||
        (local_server_find(data_dir, &own, &absent) &&
         str_eq(server, ship_server_url(str_from(own.url)))))
        return NULL;
    *out = (struct ship_child_options){.server = arena_cstr(a, server),
                                       .token = token.n == 0 ? NULL : arena_cstr(a, token)};
    return out;
}

/* The command finds the folder by TACHO_DATA, wherever it has gone to by then. */
static bool make_absolute(char data[static RUN_ARG_PATH_MAX], struct err *e)
{
    char cwd[RUN_ARG_PATH_MAX], relative[RUN_ARG_PATH_MAX];
    if (data[0] == '/' || getcwd(cwd, sizeof cwd) == NULL)
        return true;
    memcpy(relative, data, sizeof relative);
    const int n = snprintf(data, RUN_ARG_PATH_MAX, "%s/%s", cwd, relative);
    return n < RUN_ARG_PATH_MAX ||
           err_set(e, ERR_USAGE, "the data folder's path is longer than %d bytes",
                   RUN_ARG_PATH_MAX - 1);
}

static bool run_planned(struct cli *cli, json_t *labels, char **argv, struct err *e)
{
    const struct flags *f = cli->flags;
    char data[RUN_ARG_PATH_MAX];
    struct ship_child_options shipping;
    struct arena a;
    json_t *config = NULL;
    if (!run_arg_data_dir(cli, data, e) || !make_absolute(data, e) ||
        !load_config(flags_text(f, FLAG_run_config), &config, e))
        return false;
    secret_mask_json(labels, NULL);
    struct runner_plan p = {
        .data_dir = data,
        .argv = argv,
        .name = flags_text(f, FLAG_run_name),
        .group = flags_text(f, FLAG_run_group),
        .labels = labels,
        .config = config,
        .resume = flags_on(f, FLAG_run_resume),
        .record_output = config_number(cli->config, CONFIG_FIELD_record_output) != 0,
        .record_environment = config_number(cli->config, CONFIG_FIELD_record_environment) != 0,
        .sample_interval_ns = config_number(cli->config, CONFIG_FIELD_sample_interval)};
    if (p.sample_interval_ns < SAMPLE_LEAST_NS)
        p.sample_interval_ns = SAMPLE_USUAL_NS;
    arena_init(&a, "run", LIMIT_ARENA_REQUEST_BYTES);
    p.ship = shipping_of(cli, data, &a, &shipping);
    bool ok = choose_run(&p, e);
    if (ok && flags_on(f, FLAG_run_dry_run)) {
        ok = dry_run(cli, &p);
        cli->exit_status = 0;
    } else if (ok) {
        struct runner_end end = {.exit_status = 125};
        ok = runner_run(&p, &end, e);
        cli->exit_status = end.exit_status;
    }
    arena_release(&a);
    json_decref(config);
    return ok;
}

bool cmd_run(struct cli *cli, int argc, char **argv, struct err *e)
{
    json_t *labels = json_pack("{}");
    cli->exit_status = 125; /* until the command has started, a failure is ours */
    const bool ok = add_labels(cli->flags, labels, e) && run_planned(cli, labels, argv + 1, e);
    json_decref(labels);
    return ok;
}
