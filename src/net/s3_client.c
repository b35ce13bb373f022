/* SPDX-License-Identifier: Apache-2.0 */
#include "net/s3_client.h"

#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "net/curl_inside.h"
#include "net/http_client.h"

#define N_TRIES_DEFAULT 6
#define N_TRIES_UNHEARD 3 /* of a question that nobody answers at all */
#define FIRST_PAUSE_MS 200
#define PAUSE_MS_MAX 5000
#define STALL_MS_DEFAULT 30000
#define WHOLE_MS 3600000 /* of one request: what makes it fail earlier is a stall */
#define URL_BYTES_MAX 16384
#define REASON_BYTES_MAX 65536
#define SAID_BYTES_MAX 140
#define ADDRESS "s3://"
#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

bool s3_is_address(const char *word)
{
    return strncmp(word, ADDRESS, sizeof ADDRESS - 1) == 0;
}

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_made_of(str s, const char *more)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\0' || (!is_alnum(s.p[i]) && strchr(more, s.p[i]) == NULL))
            return false;
    return s.n > 0;
}

bool s3_name_parse(const char *word, struct s3_name *out, struct err *e)
{
    str rest = str_from(word);
    *out = (struct s3_name){0};
    if (s3_is_address(word))
        str_cut(str_sub(rest, sizeof ADDRESS - 1, rest.n), '/', &out->bucket, &out->key);
    const str b = out->bucket;
    if (b.n < 3 || b.n > 63 || !is_alnum(b.p[0]) || !is_made_of(b, "-._") ||
        str_find(b, S("..")) >= 0)
        return err_set(e, ERR_USAGE, "'%s' is no address of S3: s3://BUCKET/KEY", word);
    if (out->key.n > 1024 || !str_is_utf8(out->key))
        return err_set(e, ERR_USAGE,
                       "the key of 's3://%.*s/…' is longer than 1024 bytes or not UTF-8",
                       STR_ARG(b));
    return true;
}

bool s3_access_check(const struct s3_access *s, struct err *e)
{
    const str url = str_from(s->endpoint), region = str_from(s->region);
    const size_t begin = str_starts(url, S("https://")) ? 8 : str_starts(url, S("http://")) ? 7 : 0;
    const str rest = str_sub(url, begin, url.n);
    /* not said what it is: a user and a password may stand in it */
    if (begin == 0 || !is_made_of(rest, "-._:[]/") || str_ends(rest, S("/")) || url.n > 256) {
        err_set(e, ERR_USAGE, "the S3 endpoint is no address");
        return err_hint(e, "it is http[s]://HOST[:PORT]; keys go into settings of their own");
    }
    if (region.n > 40 || !is_made_of(region, "-_"))
        return err_set(e, ERR_USAGE, "'%s' is no region of S3", s->region);
    if (s->key[0] != '\0' && s->secret[0] == '\0')
        return err_set(e, ERR_USAGE, "an S3 access key is set, and no secret key");
    return true;
}

/* Percent-encodes all but RFC 3986's unreserved letters, as the signature wants it. */
static void add_encoded(struct buf *b, str s, bool is_path)
{
    for (size_t i = 0; i < s.n; i++)
        if (is_made_of(str_sub(s, i, i + 1), is_path ? "-._~/" : "-._~"))
            buf_add_char(b, s.p[i]);
        else
            buf_addf(b, "%%%02X", (unsigned char)s.p[i]);
}

static void url_of(struct buf *url, const struct s3_access *s, const struct s3_name *name)
{
    buf_init(url, URL_BYTES_MAX);
    buf_addf(url, "%s/%.*s/", s->endpoint, STR_ARG(name->bucket));
    add_encoded(url, name->key, true);
}

/* What an answer of the server's means, before what was being done is put before it. */
struct meaning {
    const char *s3_code;
    enum err_code code;
    const char *sentence, *hint;
};

#define HINT_KEYS "see s3_access_key, s3_secret_key and s3_session_token in tacho doctor"
#define HINT_CLOCK "set this machine's clock"

static const struct meaning meanings[] = {
    {"NoSuchBucket", ERR_NOT_FOUND, "there is no such bucket", NULL},
    {"NoSuchKey", ERR_NOT_FOUND, "there is no such object", NULL},
    {"InvalidAccessKeyId", ERR_UNAUTHORIZED, "the server does not know the access key", HINT_KEYS},
    {"XAdminUserNotFound", ERR_UNAUTHORIZED, "the server does not know the access key",
     HINT_KEYS}, /* so says versitygw */
    {"SignatureDoesNotMatch", ERR_UNAUTHORIZED, "the secret key is not that of the access key",
     HINT_KEYS},
    {"ExpiredToken", ERR_UNAUTHORIZED, "the session token has expired", HINT_KEYS},
    {"InvalidToken", ERR_UNAUTHORIZED, "the session token is not valid", HINT_KEYS},
    {"RequestTimeTooSkewed", ERR_UNAUTHORIZED, "this machine's clock and the server's differ",
     HINT_CLOCK},
    {"AccessDenied", ERR_DENIED, "access is denied", HINT_KEYS},
    {"PreconditionFailed", ERR_CONFLICT, "the object has changed", NULL},
};

static const struct meaning statuses[] = {
    {"301", ERR_USAGE, "the bucket is in another region", NULL},
    {"307", ERR_USAGE, "the bucket is in another region", NULL},
    {"401", ERR_UNAUTHORIZED, "the server does not take the access key", HINT_KEYS},
    {"403", ERR_DENIED, "access is denied", HINT_KEYS},
    {"404", ERR_NOT_FOUND, "there is no such object", NULL},
    {"412", ERR_CONFLICT, "the object has changed", NULL},
    {"429", ERR_UNAVAILABLE, "the server asks for fewer requests", NULL},
    {"503", ERR_UNAVAILABLE, "the server is overloaded", NULL},
};

static const struct meaning *meaning_find(const struct meaning *all, size_t n, str code)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(code, str_from(all[i].s3_code)))
            return &all[i];
    return NULL;
}

/* Their region, when they say it and it can be one. */
static bool refuse_region(const struct s3_access *s, const struct http_answer *r, str region,
                          struct err *e)
{
    if (region.n == 0)
        region = str_from(r->bucket_region);
    if (region.n > 40 || !is_made_of(region, "-_") || str_eq(region, str_from(s->region)))
        return false;
    err_set(e, ERR_USAGE, "the bucket is in region '%.*s', not '%s'", STR_ARG(region), s->region);
    err_hint(e, "set s3_region (TACHO_S3_REGION or AWS_REGION)");
    return true;
}

static void say_clock(const struct http_answer *r, struct err *e)
{
    const time_t theirs = curl_getdate(r->date, NULL);
    const int64_t ours = clock_wall_ns() / NS_PER_S;
    if (theirs > 0 && theirs != ours)
        err_set(e, ERR_UNAUTHORIZED, "this machine's clock is %lld s %s the server's",
                (long long)(ours > theirs ? ours - theirs : theirs - ours),
                ours > theirs ? "ahead of" : "behind");
    err_hint(e, HINT_CLOCK);
}

/* Their code and sentence where we have none of our own: whatever they send, one line of letters. */
static void say_theirs(int status, const struct s3_error *said, struct err *e)
{
    const enum err_code code = status >= 500 ? ERR_UNAVAILABLE : ERR_FAILED;
    const str words = str_clip_utf8(said->message, SAID_BYTES_MAX);
    if (said->code.n > 0 && said->code.n < 64 && is_made_of(said->code, ""))
        err_set(e, code, "the server answers %.*s (%d): %.*s", STR_ARG(said->code), status,
                STR_ARG(words));
    else
        err_set(e, code, "the server answers with status %d", status);
}

/* False always. */
static bool refuse(const struct s3_access *s, const struct http_answer *r, struct err *e)
{
    char number[16];
    struct arena a;
    struct s3_error said = {0};
    struct err ignored = {0};
    arena_init(&a, "error of S3", REASON_BYTES_MAX * 4);
    if (r->body.n > 0 && !s3_xml_error(buf_str(&r->body), &a, &said, &ignored))
        said = (struct s3_error){0};
    snprintf(number, sizeof number, "%d", r->status);
    const struct meaning *m = meaning_find(meanings, sizeof meanings / sizeof *meanings, said.code);
    if (m == NULL && (said.code.n == 0 || r->status < 400 || r->status == 429))
        m = meaning_find(statuses, sizeof statuses / sizeof *statuses, str_from(number));
    const bool is_elsewhere = (m == NULL || m->code == ERR_USAGE) && r->status < 500 &&
                              refuse_region(s, r, said.region, e);
    if (!is_elsewhere && m != NULL) {
        err_set(e, m->code, "%s", m->sentence);
        if (m->code == ERR_DENIED && s->key[0] == '\0')
            err_hint(e, "no key is set: the request was not signed; see s3_access_key");
        else if (m->hint != NULL)
            err_hint(e, "%s", m->hint);
        if (str_eq(said.code, S("RequestTimeTooSkewed")))
            say_clock(r, e);
    } else if (!is_elsewhere) {
        say_theirs(r->status, &said, e);
    }
    arena_release(&a);
    return false;
}

struct ask {
    const struct s3_access *s;
    const struct http_request *q;
    bool (*may_go_on)(void *ctx);
    void *ctx;
    bool (*is_whole)(void *ctx,
                     struct err *e); /* of an answer below 300; false with UNREACHABLE asks again */
};

static bool may_pass(const struct http_answer *r, const struct err *e)
{
    return r->status >= 500 || r->status == 429 || r->status == 408 || e->code == ERR_UNREACHABLE;
}

/* Longer after each try; half of it by chance, so that many do not come back at once. */
static void wait_before(unsigned n_tried)
{
    const uint64_t longest = n_tried > 5 ? PAUSE_MS_MAX : (uint64_t)FIRST_PAUSE_MS << (n_tried - 1);
    const uint64_t ms = longest > PAUSE_MS_MAX ? PAUSE_MS_MAX : longest;
    const uint64_t ns = (ms / 2 + clock_monotonic_ns() % (ms / 2 + 1)) * (uint64_t)NS_PER_MS;
    const struct timespec pause = {.tv_sec = (time_t)(ns / (uint64_t)NS_PER_S),
                                   .tv_nsec = (long)(ns % (uint64_t)NS_PER_S)};
    nanosleep(&pause, NULL);
}

/* Until an answer below 300 has come whole, or trying again is of no use. The caller releases r. */
static bool ask(const struct ask *a, struct http_answer *r, struct err *e)
{
    const unsigned most = a->s->n_tries == 0 ? N_TRIES_DEFAULT : a->s->n_tries;
    for (unsigned n = 1;; n++) {
        err_clear(e);
        const bool came = http_do(a->q, r, e);
        if (came && r->status < 300 && (a->is_whole == NULL || a->is_whole(a->ctx, e)))
            return true;
        if (r->status >= 300)
            refuse(a->s, r, e);
        const bool unheard = r->status == 0 && n >= N_TRIES_UNHEARD && a->may_go_on == NULL;
        if (!may_pass(r, e) || n >= most || unheard ||
            (a->may_go_on != NULL && !a->may_go_on(a->ctx)))
            return false;
        http_answer_release(r);
        wait_before(n);
    }
}

struct call {
    struct buf url;
    struct http_aws aws;
    struct http_request q;
};

static void call_init(struct call *c, const struct s3_access *s, const struct s3_name *name)
{
    static const char *const content[] = {"x-amz-content-sha256: " EMPTY_SHA256, NULL};
    url_of(&c->url, s, name);
    c->aws = (struct http_aws){s->region, s->key, s->secret, s->session_token};
    c->q = (struct http_request){.headers = content,
                                 .timeout_ms = WHOLE_MS,
                                 .idle_ms = s->stall_ms == 0     ? STALL_MS_DEFAULT
                                            : s->stall_ms < 1000 ? 1000
                                                                 : s->stall_ms,
                                 .is_foreign = true,
                                 .ca_file = s->ca_file,
                                 .aws = s->key[0] == '\0' ? NULL : &c->aws};
}

static bool call_ready(struct call *c, struct err *e)
{
    if (!buf_ok(&c->url, "the address of an object", e))
        return false;
    c->q.url = c->url.p;
    return true;
}

static bool failed(const struct s3_name *name, struct err *e)
{
    return err_wrap(e, "cannot read 's3://%.*s/%.*s'", STR_ARG(name->bucket), STR_ARG(name->key));
}

static void keep_etag(const char *value, char out[static S3_ETAG_MAX])
{
    str s = str_from(value);
    if (s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"')
        s = str_sub(s, 1, s.n - 1);
    snprintf(out, S3_ETAG_MAX, "%.*s", STR_ARG(s));
}

/* An answer to HEAD has no body: the same question as GET of one byte says why. */
static void ask_why(const struct s3_access *s, const struct s3_name *name, struct err *e)
{
    static const char *const one[] = {"x-amz-content-sha256: " EMPTY_SHA256, "Range: bytes=0-0",
                                      NULL};
    struct call c;
    struct http_answer r = {0};
    struct err why = {0};
    call_init(&c, s, name);
    c.q.headers = one;
    c.q.max_answer_bytes = REASON_BYTES_MAX;
    if (call_ready(&c, &why) && !http_do(&c.q, &r, &why) && r.status >= 300 && r.status < 500) {
        refuse(s, &r, &why);
        *e = why;
    }
    http_answer_release(&r);
    buf_release(&c.url);
}

bool s3_head(const struct s3_access *s, const struct s3_name *name, struct s3_object *out,
             struct err *e)
{
    struct call c;
    struct http_answer r = {0};
    call_init(&c, s, name);
    c.q.method = "HEAD";
    const struct ask a = {.s = s, .q = &c.q};
    bool ok = call_ready(&c, e) && ask(&a, &r, e);
    if (!ok && r.status >= 300 && r.status < 500)
        ask_why(s, name, e);
    if (ok) {
        const time_t modified = curl_getdate(r.last_modified, NULL);
        *out = (struct s3_object){.size_bytes = (uint64_t)r.length_bytes,
                                  .modified_ns = modified > 0 ? modified * NS_PER_S : 0};
        keep_etag(r.etag, out->etag);
        ok = (r.length_bytes >= 0 && out->etag[0] != '\0') ||
             err_set(e, ERR_PARSE, "not an answer of S3: it has no size or no ETag");
    }
    http_answer_release(&r);
    buf_release(&c.url);
    return ok || failed(name, e);
}

struct reading {
    const struct s3_range *range;
    s3_take_fn take;
    void *ctx;
    bool (*may_go_on)(void *ctx);
    uint64_t n_got;
    struct err *e;
};

/* Are these the bytes that were asked for, of the object that was asked for? */
static bool is_that_range(const struct s3_range *want, const struct http_answer *r, struct err *e)
{
    char expected[96], etag[S3_ETAG_MAX];
    keep_etag(r->etag, etag);
    if (strcmp(etag, want->etag) != 0)
        return err_set(e, ERR_CONFLICT, "the object has changed");
    if (r->status == 200 && want->from == 0 && want->n_bytes == want->of_bytes)
        return true; /* all of it: some servers say that so */
    snprintf(expected, sizeof expected, "bytes %llu-%llu/%llu", (unsigned long long)want->from,
             (unsigned long long)(want->from + want->n_bytes - 1),
             (unsigned long long)want->of_bytes);
    if (r->status != 206)
        return err_set(e, ERR_PARSE, "the server does not answer with a range, but with status %d",
                       r->status);
    return strcmp(r->content_range, expected) == 0 ||
           err_set(e, ERR_PARSE, "the server answers with another range than '%s'", expected);
}

static bool take_bytes(void *ctx, const struct http_answer *r, const char *p, size_t n)
{
    struct reading *g = ctx;
    if (g->n_got == 0 && !is_that_range(g->range, r, g->e))
        return false;
    if (n > g->range->n_bytes - g->n_got)
        return err_set(g->e, ERR_PARSE, "the server answers with more bytes than the range has");
    if (!g->take(g->ctx, g->n_got, p, n, g->e))
        return false;
    g->n_got += n;
    return true;
}

static bool is_whole(void *ctx, struct err *e)
{
    struct reading *g = ctx;
    const uint64_t got = g->n_got;
    g->n_got = 0; /* for the next try */
    return got == g->range->n_bytes ||
           err_set(e, ERR_UNREACHABLE, "the answer ends after %llu of %llu bytes",
                   (unsigned long long)got, (unsigned long long)g->range->n_bytes);
}

static bool reading_goes_on(void *ctx)
{
    struct reading *g = ctx;
    g->n_got = 0;
    return g->may_go_on == NULL || g->may_go_on(g->ctx);
}

static bool line_goes_on(void *ctx)
{
    const struct reading *g = ctx;
    return g->may_go_on == NULL || g->may_go_on(g->ctx);
}

bool s3_get(const struct s3_access *s, const struct s3_name *name, const struct s3_range *range,
            s3_take_fn take, void *ctx, bool (*may_go_on)(void *ctx), struct err *e)
{
    char span[96], match[S3_ETAG_MAX + 32];
    const char *const headers[] = {"x-amz-content-sha256: " EMPTY_SHA256, span, match, NULL};
    struct reading g = {.range = range, .take = take, .ctx = ctx, .may_go_on = may_go_on, .e = e};
    struct call c;
    struct http_answer r = {0};
    snprintf(span, sizeof span, "Range: bytes=%llu-%llu", (unsigned long long)range->from,
             (unsigned long long)(range->from + range->n_bytes - 1));
    snprintf(match, sizeof match, "If-Match: \"%s\"", range->etag);
    call_init(&c, s, name);
    c.q.headers = headers;
    c.q.take = take_bytes;
    c.q.take_ctx = &g;
    c.q.may_go_on = line_goes_on;
    c.q.may_go_on_ctx = &g;
    c.q.max_answer_bytes = REASON_BYTES_MAX;
    const struct ask a = {
        .s = s, .q = &c.q, .may_go_on = reading_goes_on, .ctx = &g, .is_whole = is_whole};
    const bool ok = call_ready(&c, e) && ask(&a, &r, e);
    http_answer_release(&r);
    buf_release(&c.url);
    return ok || failed(name, e);
}

bool s3_list(const struct s3_access *s, const struct s3_name *name, str after, struct arena *a,
             struct s3_page *out, struct err *e)
{
    struct call c;
    struct http_answer r = {0};
    const struct s3_name bucket = {.bucket = name->bucket};
    call_init(&c, s, &bucket);
    buf_add_str(&c.url, S("?")); /* in the order of the letters: so it is signed */
    if (after.n > 0) {
        buf_add_str(&c.url, S("continuation-token="));
        add_encoded(&c.url, after, false);
        buf_add_char(&c.url, '&');
    }
    buf_add_str(&c.url, S("encoding-type=url&list-type=2&prefix="));
    add_encoded(&c.url, name->key, false);
    const struct ask q = {.s = s, .q = &c.q};
    const bool ok = call_ready(&c, e) && ask(&q, &r, e) && s3_xml_list(buf_str(&r.body), a, out, e);
    http_answer_release(&r);
    buf_release(&c.url);
    return ok || failed(name, e);
}
