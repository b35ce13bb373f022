/* SPDX-License-Identifier: Apache-2.0 */
#include "store/run_decode.h"

#include "base/limits.h"
#include "base/sha256.h"

#define BATCH_BYTES (16u << 20) /* read at once */

void run_decoder_init(struct run_decoder *d, struct store_meta *meta, struct store_blob *blob,
                      str run, enum run_decode_what what, int64_t after_batch)
{
    *d = (struct run_decoder){.meta = meta, .blob = blob, .what = what, .batch = after_batch};
    snprintf(d->run, sizeof d->run, "%.*s", STR_ARG(run));
    record_set_init(&d->set, LIMIT_ARENA_RUN_BYTES);
    arena_init(&d->arena, "journals of a run", 0);
}

void run_decoder_release(struct run_decoder *d)
{
    record_set_release(&d->set);
    arena_release(&d->arena);
    d->journals = NULL;
    d->n_journals = d->journals_capacity = 0;
    d->batch = 0;
}

static struct run_decoder_journal *find_journal(struct run_decoder *d, str id)
{
    for (uint32_t i = 0; i < d->n_journals; i++)
        if (str_eq(str_from(d->journals[i].info.id_hex), id))
            return &d->journals[i];
    return NULL;
}

static struct run_decoder_journal *add_journal(struct run_decoder *d,
                                               const struct store_journal *row, struct err *e)
{
    struct journal_record rec;
    struct journal_info info;
    if (journal_parse((const uint8_t *)row->header.p, row->header.n, &rec) <= 0) {
        err_set(e, ERR_INTERNAL, "the header of journal '%.*s' is damaged", STR_ARG(row->id));
        return NULL;
    }
    if (!journal_parse_header(&rec, &info, e))
        return NULL;
    const uint32_t process = journal_decode_process(&d->set, &info);
    if (process == UINT32_MAX ||
        !ARENA_PUSH(&d->arena, d->journals, d->n_journals, d->journals_capacity)) {
        arena_full(&d->set.arena, e);
        return NULL;
    }
    struct run_decoder_journal *j = &d->journals[d->n_journals - 1];
    *j = (struct run_decoder_journal){.process = process, .info = info};
    return j;
}

bool run_decoder_processes(struct run_decoder *d, struct err *e)
{
    struct store_journal *rows;
    struct arena a;
    uint32_t n;
    arena_init(&a, "journals", 0);
    bool ok = d->meta->ops->journals(d->meta, str_from(d->run), &a, &rows, &n, e);
    for (uint32_t i = 0; ok && i < n; i++) {
        struct run_decoder_journal *j = find_journal(d, rows[i].id);
        if (j == NULL)
            j = add_journal(d, &rows[i], e);
        ok = j != NULL;
        if (ok)
            d->set.processes[j->process].n_lost = rows[i].next_seq - rows[i].n_records;
    }
    arena_release(&a);
    return ok;
}

/* Puts a side file's bytes in the payload's place; a missing one is noted by the decoder. */
static void load_side(struct run_decoder *d, struct journal_record *rec, struct arena *a)
{
    struct err ignored = {0};
    char hex[SHA256_HEX];
    str content;
    if ((rec->flags & JOURNAL_FLAG_SIDE) == 0 || rec->n != 8 + SHA256_BYTES)
        return;
    sha256_hex(rec->payload + 8, hex);
    const str key = arena_printf(a, "runs/%s/journals/side/%s", d->run, hex);
    if (!d->blob->ops->get(d->blob, key, LIMIT_JOURNAL_SIDE_BYTES, a, &content, &ignored))
        return;
    rec->payload = (const uint8_t *)content.p;
    rec->n = content.n;
    rec->flags &= (uint16_t)~JOURNAL_FLAG_SIDE;
}

static bool is_wanted(const struct run_decoder *d, const struct journal_record *rec)
{
    return d->what == RUN_DECODE_ALL || rec->type == JOURNAL_METRICS || rec->type == JOURNAL_SYSTEM;
}

static bool decode_batch(struct run_decoder *d, const struct store_batch *b, struct arena *a,
                         struct err *e)
{
    struct run_decoder_journal *j = find_journal(d, b->journal);
    if (j == NULL) {
        struct store_journal row;
        if (!d->meta->ops->journal_get(d->meta, b->journal, a, &row, e) ||
            (j = add_journal(d, &row, e)) == NULL)
            return false;
    }
    str rest = b->records;
    struct journal_record rec;
    int64_t n;
    while ((n = journal_parse((const uint8_t *)rest.p, rest.n, &rec)) > 0) {
        rest = str_sub(rest, (size_t)n, rest.n);
        if (!is_wanted(d, &rec))
            continue;
        rec.wall_ns = (int64_t)((uint64_t)j->info.anchor.wall_ns +
                                (rec.boottime_ns - j->info.anchor.boottime_ns));
        load_side(d, &rec, a);
        if (!journal_decode_record(&d->set, j->process, &rec, e))
            return false;
    }
    d->batch = b->id;
    return rest.n == 0 || err_set(e, ERR_INTERNAL, "batch %lld is damaged", (long long)b->id);
}

bool run_decoder_more(struct run_decoder *d, struct err *e)
{
    struct arena a;
    bool ok = true;
    uint32_t n = 1;
    arena_init(&a, "batches", LIMIT_ARENA_DEFAULT_BYTES);
    while (ok && n > 0) {
        struct store_batch *batches;
        ok = d->meta->ops->batches(d->meta, str_from(d->run), d->batch, BATCH_BYTES, &a, &batches,
                                   &n, e);
        for (uint32_t i = 0; ok && i < n; i++)
            ok = decode_batch(d, &batches[i], &a, e);
        arena_release(&a);
    }
    return ok;
}
