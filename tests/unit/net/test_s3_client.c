/* SPDX-License-Identifier: Apache-2.0 */
/* Names, settings, and what is said of each answer; tests/e2e/test_s3.py has whole transfers and signatures. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/s3_client.h"

#define ANSWERS_MAX 8

struct server { /* answers the connections in turn, the last answer again and again */
    int fd;
    const char *answers[ANSWERS_MAX];
    char url[64], got[ANSWERS_MAX][4096];
    unsigned n_asked;
    pthread_t thread;
};

static void serve_one(struct server *s, int fd)
{
    char *got = s->got[s->n_asked < ANSWERS_MAX ? s->n_asked : ANSWERS_MAX - 1];
    size_t n = 0;
    while (n + 1 < sizeof s->got[0] && strstr(got, "\r\n\r\n") == NULL) {
        const ssize_t done = recv(fd, got + n, sizeof s->got[0] - 1 - n, 0);
        if (done <= 0)
            break;
        got[n += (size_t)done] = '\0';
    }
    unsigned i = s->n_asked++;
    while (i > 0 && (i >= ANSWERS_MAX || s->answers[i] == NULL))
        i--;
    send(fd, s->answers[i], strlen(s->answers[i]), MSG_NOSIGNAL);
}

static void *serve(void *arg)
{
    struct server *s = arg;
    for (int fd; (fd = accept(s->fd, NULL, NULL)) >= 0; close(fd))
        serve_one(s, fd);
    return NULL;
}

static void server_start(struct server *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 8), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &n), 0);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_stop(struct server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

static struct s3_access access_to(const struct server *s)
{
    return (struct s3_access){.endpoint = s->url,
                              .region = "us-east-1",
                              .key = "the-key-id",
                              .secret = "the-secret",
                              .session_token = "",
                              .n_tries = 3};
}

static void names(void **state)
{
    static const char *const bad[] = {"s3://",           "s3:/bucket/x",  "s3://ab/x",
                                      "S3://bucket/x",   "s3://-bucket",  "s3://a..b/x",
                                      "s3://bu%63ket/x", "s3://b@cket/x", "s3://bucket/\xff"};
    struct s3_name n;
    struct err e = {0};
    (void)state;
    assert_true(s3_name_parse("s3://bucket/a b/c%41.pb", &n, &e));
    assert_true(str_eq(n.bucket, S("bucket")) && str_eq(n.key, S("a b/c%41.pb")));
    assert_true(s3_name_parse("s3://my.bucket-1", &n, &e) && n.key.n == 0);
    assert_true(s3_name_parse("s3://bucket//x/", &n, &e) && str_eq(n.key, S("/x/")));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (s3_name_parse(bad[i], &n, &e))
            fail_msg("taken: %s", bad[i]);
        assert_int_equal(e.code, ERR_USAGE);
    }
    assert_false(s3_is_address("/s3://x"));
}

static void endpoints(void **state)
{
    static const char *const bad[] = {
        "host",         "ftp://host",   "http://", "http://user:secret@host", "https://host/?q",
        "http://host/", "http://h\r\nx"};
    struct s3_access s = {.region = "us-east-1", .key = "", .secret = "", .session_token = ""};
    struct err e = {0};
    (void)state;
    s.endpoint = "https://s3.eu-west-1.amazonaws.com";
    assert_true(s3_access_check(&s, &e));
    s.endpoint = "http://[::1]:9000";
    assert_true(s3_access_check(&s, &e));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s.endpoint = bad[i];
        if (s3_access_check(&s, &e))
            fail_msg("taken: %s", bad[i]);
        assert_null(strstr(e.msg, "secret"));
    }
    s.endpoint = "http://host";
    s.region = "a:b";
    assert_false(s3_access_check(&s, &e));
    s.region = "auto";
    s.key = "key";
    assert_false(s3_access_check(&s, &e)); /* without its secret */
}

static void head(void **state)
{
    struct server s = {
        .answers = {"HTTP/1.1 200 OK\r\nContent-Length: 70000000000\r\nETag: \"ab-2\"\r\n"
                    "Last-Modified: Sat, 31 Jan 2026 23:59:59 GMT\r\n\r\n"}};
    const struct s3_name n = {S("bucket"), S("a b/\xc3\xa9+.pb")};
    struct s3_object o;
    struct err e = {0};
    (void)state;
    server_start(&s);
    const struct s3_access to = access_to(&s);
    assert_true(s3_head(&to, &n, &o, &e));
    server_stop(&s);
    assert_int_equal(s.n_asked, 1);
    assert_int_equal(o.size_bytes, 70000000000);
    assert_string_equal(o.etag, "ab-2");
    assert_true(o.modified_ns == 1769903999000000000);
    assert_non_null(strstr(s.got[0], "HEAD /bucket/a%20b/%C3%A9%2B.pb HTTP/1.1\r\n"));
    assert_non_null(strstr(s.got[0], "Authorization: AWS4-HMAC-SHA256 Credential=the-key-id/"));
    assert_null(strstr(s.got[0], "Tachograph-Protocol"));
    assert_null(strstr(s.got[0], "the-secret"));
}

/* What HEAD of an object fails with; its error's body comes with the GET after it. */
static void refused(const char *status, const char *more, const char *body, enum err_code code,
                    const char *words)
{
    char no_body[256], answer[1024];
    struct server s = {.answers = {no_body, answer}};
    const struct s3_name n = {S("bucket"), S("key")};
    struct s3_object o;
    struct err e = {0};
    snprintf(no_body, sizeof no_body, "HTTP/1.1 %s\r\n%sContent-Length: 0\r\n\r\n", status, more);
    snprintf(answer, sizeof answer, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, more,
             strlen(body), body);
    server_start(&s);
    const struct s3_access to = access_to(&s);
    assert_false(s3_head(&to, &n, &o, &e));
    server_stop(&s);
    assert_int_equal(e.code, code);
    if (strstr(e.msg, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, e.msg);
    assert_true(strncmp(e.msg, "cannot read 's3://bucket/key': ", 31) == 0);
    assert_null(strstr(e.msg, "the-secret"));
    assert_null(strstr(e.msg, "the-key-id"));
}

static void what_is_said(void **state)
{
    (void)state;
    refused("404 Not Found", "", "<Error><Code>NoSuchKey</Code></Error>", ERR_NOT_FOUND,
            "no such object");
    refused("404 Not Found", "", "<Error><Code>NoSuchBucket</Code></Error>", ERR_NOT_FOUND,
            "no such bucket");
    refused("404 Not Found", "", "<html>", ERR_NOT_FOUND, "no such object");
    refused("403 Forbidden", "",
            "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>the-key-id</AWSAccessKeyId></"
            "Error>",
            ERR_UNAUTHORIZED, "the secret key is not that of the access key");
    refused("403 Forbidden", "", "<Error><Code>AccessDenied</Code></Error>", ERR_DENIED,
            "access is denied");
    refused("403 Forbidden", "Date: Sat, 31 Jan 2026 23:59:59 GMT\r\n",
            "<Error><Code>RequestTimeTooSkewed</Code></Error>", ERR_UNAUTHORIZED,
            "s ahead of the server's");
    refused("301 Moved Permanently",
            "x-amz-bucket-region: eu-west-1\r\nLocation: http://127.0.0.1:1/\r\n",
            "<Error><Code>PermanentRedirect</Code></Error>", ERR_USAGE,
            "in region 'eu-west-1', not 'us-east-1'");
    refused("400 Bad Request", "",
            "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-north-1</Region></Error>",
            ERR_USAGE, "in region 'eu-north-1'");
    refused("400 Bad Request", "", "<Error><Code>Odd</Code><Message>why\nnot</Message></Error>",
            ERR_FAILED, "Odd (400): why");
    refused("503 Slow Down", "", "", ERR_UNAVAILABLE, "overloaded");
}

struct got {
    char bytes[64];
    size_t n;
};

static bool take(void *ctx, uint64_t offset, const char *p, size_t n, struct err *e)
{
    struct got *g = ctx;
    (void)e;
    assert_true(offset + n <= sizeof g->bytes);
    memcpy(g->bytes + offset, p, n);
    g->n = (size_t)offset + n;
    return true;
}

static bool get(struct server *s, struct got *g, struct err *e)
{
    const struct s3_name n = {S("bucket"), S("key")};
    const struct s3_range range = {.from = 10, .n_bytes = 4, .etag = "v1", .of_bytes = 100};
    *e = (struct err){0};
    *g = (struct got){0};
    server_start(s);
    const struct s3_access to = access_to(s);
    const bool ok = s3_get(&to, &n, &range, take, g, NULL, e);
    server_stop(s);
    return ok;
}

#define RANGE(etag, range, length, body)                                                           \
    "HTTP/1.1 206 Partial Content\r\nETag: \"" etag "\"\r\nContent-Range: bytes " range            \
    "\r\nContent-Length: " length "\r\n\r\n" body

static void a_range(void **state)
{
    struct got g;
    struct err e;
    struct server good = {.answers = {RANGE("v1", "10-13/100", "4", "abcd")}};
    struct server again = {.answers = {"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n",
                                       RANGE("v1", "10-13/100", "4", "ax"),
                                       RANGE("v1", "10-13/100", "4", "abcd")}};
    (void)state;
    assert_true(get(&good, &g, &e));
    assert_memory_equal(g.bytes, "abcd", 4);
    assert_non_null(strstr(good.got[0], "Range: bytes=10-13\r\n"));
    assert_non_null(strstr(good.got[0], "If-Match: \"v1\"\r\n"));
    assert_true(get(&again, &g, &e)); /* overloaded, then cut short, then whole */
    assert_int_equal(again.n_asked, 3);
    assert_memory_equal(g.bytes, "abcd", 4);
}

static void not_that_range(void **state)
{
    static const struct {
        const char *answer;
        enum err_code code;
        unsigned n_asked;
    } cases[] = {
        {RANGE("v2", "10-13/100", "4", "abcd"), ERR_CONFLICT, 1},
        {"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n", ERR_CONFLICT, 1},
        {RANGE("v1", "11-14/100", "4", "abcd"), ERR_PARSE, 1},
        {RANGE("v1", "10-13/101", "4", "abcd"), ERR_PARSE, 1},
        {RANGE("v1", "10-13/100", "5", "abcde"), ERR_PARSE, 1},
        {"HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nContent-Length: 4\r\n\r\nabcd", ERR_PARSE, 1},
        {RANGE("v1", "10-13/100", "3", "abc"), ERR_UNREACHABLE, 3},
        {RANGE("v1", "10-13/100", "4", "ab"), ERR_UNREACHABLE, 3},
        {"HTTP/1.1 500 Internal\r\nContent-Length: 0\r\n\r\n", ERR_UNAVAILABLE, 3},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", ERR_NOT_FOUND, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct got g;
        struct err e;
        struct server s = {.answers = {cases[i].answer}};
        if (get(&s, &g, &e))
            fail_msg("taken: %s", cases[i].answer);
        assert_int_equal(e.code, cases[i].code);
        assert_int_equal(s.n_asked, cases[i].n_asked);
    }
}

static void nobody_there(void **state)
{
    struct server s = {0};
    const struct s3_name n = {S("bucket"), S("key")};
    struct s3_object o;
    struct err e = {0};
    (void)state;
    server_start(&s);
    server_stop(&s);
    const struct s3_access to = access_to(&s);
    assert_false(s3_head(&to, &n, &o, &e));
    assert_int_equal(e.code, ERR_UNREACHABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),          cmocka_unit_test(endpoints),
        cmocka_unit_test(head),           cmocka_unit_test(a_range),
        cmocka_unit_test(not_that_range), cmocka_unit_test(what_is_said),
        cmocka_unit_test(nobody_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
