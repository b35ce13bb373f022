/* SPDX-License-Identifier: Apache-2.0 */
/* tacho why: one sentence, three numbers, one next command. */
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "cli/report_load.h"
#include "model/table_print.h"

struct answer {
    str sentence, next;
    struct finding_evidence numbers[3];
    uint32_t n_numbers;
};

static void add_number(struct answer *w, const struct finding_evidence *v)
{
    if (w->n_numbers < 3)
        w->numbers[w->n_numbers++] = *v;
}

static struct answer answer_of(struct arena *a, const struct report *r, const char *run)
{
    struct answer w = {0};
    const str source = r->is_run ? S("goodput") : S("profile");
    const str name = run == NULL ? S("last") : str_from(run);
    if (r->n_findings > 0) {
        const struct finding *f = &r->findings[0];
        w.sentence = f->what;
        for (uint32_t i = 0; i < f->n_evidence; i++)
            add_number(&w, &f->evidence[i]);
        w.next = arena_printf(a, "tacho report %.*s", STR_ARG(name));
    } else {
        /* What no rule knows may still cost time: the summary names the largest of it. */
        w.sentence =
            r->silent ? r->summary : arena_printf(a, "No finding. %.*s", STR_ARG(r->summary));
        w.next = arena_printf(a, r->is_run ? "tacho goodput %.*s" : "tacho tool hlo_stats %.*s",
                              STR_ARG(name));
    }
    for (uint32_t i = 0; i < r->n_key_metrics; i++) {
        const struct table_value *v = &r->key_metrics[i];
        const struct finding_evidence number = {
            source, v->column.name, v->cell, v->column.unit, {0}};
        if (v->cell.known)
            add_number(&w, &number);
    }
    return w;
}

static bool print_json(const struct answer *w, struct err *e)
{
    struct json j;
    json_init_fd(&j, STDOUT_FILENO);
    json_object(&j);
    json_kstr(&j, "sentence", w->sentence);
    json_key(&j, "numbers");
    json_array(&j);
    for (uint32_t i = 0; i < w->n_numbers; i++) {
        const struct cell *c = &w->numbers[i].value;
        json_object(&j);
        json_kstr(&j, "name", w->numbers[i].metric);
        if (c->type == CELL_U64)
            json_ku64(&j, "value", c->u64);
        else if (c->type == CELL_F64)
            json_kf64(&j, "value", c->f64);
        else
            json_knull(&j, "value");
        json_kstr(&j, "unit", w->numbers[i].unit);
        json_end(&j);
    }
    json_end(&j);
    json_kstr(&j, "next", w->next);
    json_end(&j);
    return json_done(&j, e);
}

static void print_text(struct arena *a, const struct answer *w)
{
    const str said = text_printable(a, w->sentence), next = text_printable(a, w->next);
    printf("%.*s\n", STR_ARG(said));
    for (uint32_t i = 0; i < w->n_numbers; i++) {
        const str value = cell_format(a, &w->numbers[i].value, w->numbers[i].unit);
        printf("  %-24.*s %.*s\n", STR_ARG(w->numbers[i].metric), STR_ARG(value));
    }
    printf("next: %.*s\n", STR_ARG(next));
}

bool cmd_why(struct cli *cli, int argc, char **argv, struct err *e)
{
    struct report_loaded loaded;
    struct arena a;
    const char *run = argv[1];
    arena_init(&a, "why", LIMIT_ARENA_REQUEST_BYTES);
    bool ok = report_load(cli, run, &loaded, e);
    if (ok) {
        const struct answer w = answer_of(&a, &loaded.report, run);
        if (cli->output == CLI_OUTPUT_JSON)
            ok = print_json(&w, e);
        else
            print_text(&a, &w);
    }
    arena_release(&a);
    report_unload(&loaded);
    return ok;
}
