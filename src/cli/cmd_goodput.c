/* SPDX-License-Identifier: Apache-2.0 */
/* tacho goodput: where a run's wall time went, each nanosecond in one category. */
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "cli/run_arg.h"
#include "goodput/ledger_build.h"
#include "model/table_print.h"

static double percent(int64_t part_ns, int64_t whole_ns)
{
    return whole_ns > 0 ? 100.0 * (double)part_ns / (double)whole_ns : 0;
}

static void put_seconds(struct json *j, const char *key, int64_t ns)
{
    json_key(j, key);
    json_fixed(j, ns, 9);
}

static void put_time(struct json *j, const char *key, int64_t wall_ns)
{
    char text[CLOCK_RFC3339_MAX];
    const size_t n = clock_format_rfc3339(wall_ns, text);
    json_kstr(j, key, (str){text, n});
}

static void put_totals(struct json *j, const struct ledger_total *totals, uint32_t n,
                       int64_t whole_ns)
{
    json_key(j, "ledger");
    json_array(j);
    for (uint32_t i = 0; i < n; i++) {
        json_object(j);
        json_kstr(j, "category", totals[i].word);
        put_seconds(j, "seconds", totals[i].total_ns);
        json_kf64(j, "percent", percent(totals[i].total_ns, whole_ns));
        json_ku64(j, "count", totals[i].count);
        json_end(j);
    }
    json_end(j);
}

static void put_step_time(struct json *j, const struct ledger_step_stats *s)
{
    const struct {
        const char *key;
        int64_t ns;
    } rows[] = {{"ideal_s", s->ideal_ns}, {"mean_s", s->mean_ns}, {"p50_s", s->p50_ns},
                {"p99_s", s->p99_ns}, {"deviation_s", s->deviation_ns}};
    json_key(j, "step_time");
    json_object(j);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (s->n == 0)
            json_knull(j, rows[i].key);
        else
            put_seconds(j, rows[i].key, rows[i].ns);
    }
    json_end(j);
}

static void put_notes(struct json *j, const struct record_set *set)
{
    json_key(j, "warnings");
    json_array(j);
    for (uint32_t i = 0; i < set->n_notes; i++) {
        json_object(j);
        json_kstr(j, "code", set->notes[i].code);
        json_kstr(j, "message", set->notes[i].message);
        json_ku64(j, "count", set->notes[i].count);
        json_end(j);
    }
    json_end(j);
}

static bool print_json(const struct record_set *set, const struct ledger *l, struct err *e)
{
    struct json j;
    json_init_fd(&j, STDOUT_FILENO);
    json_object(&j);
    json_kstr(&j, "run", l->run);
    json_key(&j, "lead_rank");
    if (l->lead_rank < 0)
        json_null(&j);
    else
        json_i64(&j, l->lead_rank);
    json_ku64(&j, "attempts", l->n_attempts);
    put_time(&j, "from", l->from_ns);
    put_time(&j, "to", l->to_ns);
    put_seconds(&j, "total_elapsed_s", l->total_ns);
    json_kf64(&j, "goodput_percent", percent(l->productive_ns, l->total_ns));
    put_seconds(&j, "goodput_time_s", l->productive_ns);
    put_seconds(&j, "badput_time_s", l->total_ns - l->productive_ns);
    put_totals(&j, l->totals, l->n_totals, l->total_ns);
    json_ku64(&j, "disruptions", l->disruptions);
    json_key(&j, "max_productive_step");
    if (l->max_productive_step < 0)
        json_null(&j);
    else
        json_i64(&j, l->max_productive_step);
    put_step_time(&j, &l->step_stats);
    put_notes(&j, set);
    json_end(&j);
    return json_done(&j, e);
}

/* "Productive for 5.2 s of 8.1 s (64.2 %). Most was lost to data_loading_sync: 2.1 s." */
static void print_headline(const struct ledger *l, struct arena *a)
{
    const struct ledger_total *worst = NULL;
    for (uint32_t i = 0; i < l->n_totals; i++)
        if (l->totals[i].category != LEDGER_PRODUCTIVE_STEP &&
            (worst == NULL || l->totals[i].total_ns > worst->total_ns))
            worst = &l->totals[i];
    const str good = format_duration_ns(a, l->productive_ns),
              all = format_duration_ns(a, l->total_ns);
    printf("Productive for %.*s of %.*s (%.1f %%).", STR_ARG(good), STR_ARG(all),
           percent(l->productive_ns, l->total_ns));
    if (worst != NULL) {
        const str lost = format_duration_ns(a, worst->total_ns);
        printf(" Most of the rest is %.*s: %.*s.", STR_ARG(worst->word), STR_ARG(lost));
    }
    printf("\n%u attempt%s, %u disruption%s", l->n_attempts, l->n_attempts == 1 ? "" : "s",
           l->disruptions, l->disruptions == 1 ? "" : "s");
    if (l->step_stats.n > 0) {
        const str p50 = format_duration_ns(a, l->step_stats.p50_ns);
        printf(", step median %.*s", STR_ARG(p50));
    }
    printf("\n\n");
}

static bool print_text(const struct record_set *set, const struct ledger *l, struct err *e)
{
    struct arena a;
    arena_init(&a, "goodput", LIMIT_ARENA_REQUEST_BYTES);
    print_headline(l, &a);
    for (uint32_t i = 0; i < l->n_totals; i++) {
        const struct ledger_total *t = &l->totals[i];
        const double share = percent(t->total_ns, l->total_ns);
        const str took = format_duration_ns(&a, t->total_ns);
        printf("%-26.*s %12.*s %6.1f %%  ", STR_ARG(t->word), STR_ARG(took), share);
        for (int k = 0; k < (int)(share * 0.4 + 0.5); k++)
            fputs("█", stdout);
        putchar('\n');
    }
    const str sum = format_duration_ns(&a, l->total_ns);
    printf("%-26s %12.*s\n", "wall time", STR_ARG(sum));
    for (uint32_t i = 0; i < set->n_notes; i++)
        printf("note: %.*s (%lu)\n", STR_ARG(set->notes[i].message),
               (unsigned long)set->notes[i].count);
    const bool ok = !a.overflow || arena_full(&a, e);
    arena_release(&a);
    return ok;
}

bool cmd_goodput(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct record_set set;
    struct ledger ledger;
    char dir[RUN_ARG_PATH_MAX];
    if (argc > 2)
        return err_set(e, ERR_USAGE, "tacho goodput takes one run: tacho goodput [RUN]");
    const bool ok = run_arg_load(cli, argc > 1 ? argv[1] : NULL, &set, dir, e) &&
                    ledger_build(&set, &ledger, e) &&
                    (cli->output == CLI_OUTPUT_JSON ? print_json(&set, &ledger, e)
                                                    : print_text(&set, &ledger, e));
    record_set_release(&set);
    return ok;
}
