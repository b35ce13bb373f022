/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_mask.h"

#include "model/secrets.h"

uint64_t trace_mask_stats(struct trace_stats stats, struct arena *a)
{
    uint64_t n = 0;
    /* const is for those who are given the trace */
    struct trace_stat *const items = (struct trace_stat *)(uintptr_t)stats.items;
    for (uint32_t i = 0; i < stats.n; i++) {
        if (items[i].type != TRACE_STAT_STR)
            continue;
        const str safe = secret_mask_named(a, items[i].name, items[i].text);
        n += safe.p != items[i].text.p;
        items[i].text = safe;
    }
    return n;
}

static uint64_t mask_text(str *text, struct arena *a, enum secret_scope scope)
{
    const str safe = secret_mask_text(a, *text, scope);
    const bool masked = safe.p != text->p;
    *text = safe;
    return masked;
}

static uint64_t mask_plane(struct trace_plane *p, struct arena *a)
{
    uint64_t n = trace_mask_stats(p->stats, a) + mask_text(&p->name, a, SECRET_TOKENS);
    for (uint32_t i = 0; i < p->n_stat_names; i++)
        n += mask_text(&p->stat_names[i], a, SECRET_ALL);
    for (uint32_t i = 0; i < p->n_event_metadata; i++) {
        struct trace_event_metadata *m = &p->event_metadata[i];
        n += mask_text(&m->name, a, SECRET_TOKENS);
        n += mask_text(&m->display_name, a, SECRET_TOKENS);
        n += trace_mask_stats(m->stats, a);
    }
    return n;
}

void trace_mask(struct trace *t)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < t->n_planes; i++)
        n += mask_plane(&t->planes[i], &t->arena);
    for (uint32_t i = 0; i < t->n_lines; i++)
        n += mask_text(&t->lines[i].name, &t->arena, SECRET_TOKENS) +
             mask_text(&t->lines[i].display_name, &t->arena, SECRET_TOKENS);
    for (uint32_t i = 0; i < t->n_errors; i++)
        n += mask_text(&t->errors[i], &t->arena, SECRET_ALL);
    for (uint32_t i = 0; i < t->n_warnings; i++)
        n += mask_text(&t->warnings[i], &t->arena, SECRET_ALL);
    if (n > 0)
        trace_note(t, S("secrets"), n,
                   "texts hold secrets and are shown with " SECRET_MASK " in their place");
}
