/* SPDX-License-Identifier: Apache-2.0 */
#include "server/ingest_body.h"

#include <zstd.h>

#include "base/file.h"
#include "base/limits.h"

static bool expand(str *body, struct arena *a, struct err *e)
{
    const unsigned long long n = ZSTD_getFrameContentSize(body->p, body->n);
    if (body->n == 0 || n == ZSTD_CONTENTSIZE_ERROR)
        return err_at(e, ERR_PARSE, 0, "the body is not a Zstandard frame");
    if (n == ZSTD_CONTENTSIZE_UNKNOWN)
        return err_at(e, ERR_PARSE, 0, "the Zstandard frame does not say its size");
    if (n > LIMIT_HTTP_BODY_BYTES)
        return err_set(e, ERR_LIMIT, "the records are %llu bytes, more than %llu", n,
                       (unsigned long long)LIMIT_HTTP_BODY_BYTES);
    char *to = ARENA_ARRAY(a, char, (size_t)n + 1);
    if (to == NULL)
        return arena_full(a, e);
    const size_t size = ZSTD_decompress(to, (size_t)n, body->p, body->n);
    if (ZSTD_isError(size) || size != n)
        return err_at(e, ERR_PARSE, 0, "the Zstandard frame is damaged");
    *body = (str){to, size};
    return true;
}

static bool take_record(struct ingest_body *out, str *rest, struct journal_record *rec,
                        struct err *e)
{
    const uint64_t at = (uint64_t)(rest->p - out->records.p);
    const int64_t n = journal_parse((const uint8_t *)rest->p, rest->n, rec);
    if (n <= 0)
        return err_at(e, ERR_PARSE, at, n == 0 ? "the last record is cut" : "not a journal record");
    rec->offset = at;
    *rest = str_sub(*rest, (size_t)n, rest->n);
    out->n_records++;
    return true;
}

bool ingest_body_parse(struct ingest_body *out, str body, bool is_zstd, struct arena *a,
                       struct err *e)
{
    struct journal_record rec;
    memset(out, 0, sizeof *out);
    if (is_zstd && !expand(&body, a, e))
        return false;
    out->records = body;
    str rest = body;
    if (body.n == 0)
        return err_at(e, ERR_PARSE, 0, "the body is empty");
    if (!take_record(out, &rest, &rec, e))
        return false;
    if (rec.type != JOURNAL_HEADER || rec.seq != 0)
        return err_at(e, ERR_PARSE, 0, "the first record is not a journal's header");
    if (!journal_parse_header(&rec, &out->info, e))
        return false;
    if (!path_is_safe_name(str_from(out->info.run)))
        return err_at(e, ERR_PARSE, 0, "the header's run id cannot be a name");
    out->header = str_sub(body, 0, body.n - rest.n);
    while (rest.n > 0) {
        if (!take_record(out, &rest, &rec, e))
            return false;
        if (rec.type == JOURNAL_HEADER)
            return err_at(e, ERR_PARSE, rec.offset, "a second header: one journal a request");
        if (rec.seq == 0)
            return err_at(e, ERR_PARSE, rec.offset, "a record with number 0");
    }
    return true;
}
