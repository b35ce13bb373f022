/* SPDX-License-Identifier: Apache-2.0 */
/* The client against a server of one thread that answers what the test gave it. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/http_client.h"

struct server {
    int fd;
    const char *answer;
    char url[64];
    char got[4096]; /* the request, NUL-terminated */
    pthread_t thread;
};

static void *serve_one(void *arg)
{
    struct server *s = arg;
    const int fd = accept(s->fd, NULL, NULL);
    size_t n = 0;
    while (n + 1 < sizeof s->got) {
        const ssize_t done = recv(fd, s->got + n, sizeof s->got - 1 - n, 0);
        if (done <= 0)
            break;
        n += (size_t)done;
        s->got[n] = '\0';
        const char *end = strstr(s->got, "\r\n\r\n");
        if (end != NULL && (strncmp(s->got, "GET", 3) == 0 || strstr(end, "the body") != NULL))
            break;
    }
    send(fd, s->answer, strlen(s->answer), MSG_NOSIGNAL);
    close(fd);
    return NULL;
}

static void server_start(struct server *s, const char *answer)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    *s = (struct server){.answer = answer, .fd = socket(AF_INET, SOCK_STREAM, 0)};
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(s->fd, 1), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &n), 0);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u/x", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, serve_one, s), 0);
}

static void server_stop(struct server *s)
{
    pthread_join(s->thread, NULL);
    close(s->fd);
}

static void post(void **state)
{
    struct server s;
    struct http_answer r;
    struct err e = {0};
    server_start(&s, "HTTP/1.1 201 Created\r\nETag: \"7\"\r\nContent-Type: text/plain\r\n"
                     "Content-Length: 2\r\n\r\nok");
    const struct http_request q = {.method = "POST",
                                   .url = s.url,
                                   .token = "secret",
                                   .content_type = "text/plain",
                                   .body = S("the body")};
    assert_true(http_do(&q, &r, &e));
    server_stop(&s);
    assert_int_equal(r.status, 201);
    assert_string_equal(r.body.p, "ok");
    assert_string_equal(r.etag, "\"7\"");
    assert_non_null(strstr(s.got, "POST /x HTTP/1.1\r\n"));
    assert_non_null(strstr(s.got, "Authorization: Bearer secret\r\n"));
    assert_non_null(strstr(s.got, "Tachograph-Protocol: 1\r\n"));
    http_answer_release(&r);
}

static void get_fails(const char *answer, enum err_code code, const char *words)
{
    struct server s;
    struct http_answer r;
    struct err e = {0};
    server_start(&s, answer);
    const struct http_request q = {.url = s.url, .max_answer_bytes = 64};
    assert_false(http_do(&q, &r, &e));
    server_stop(&s);
    assert_int_equal(e.code, code);
    assert_non_null(strstr(e.msg, words));
    http_answer_release(&r);
}

static void refusals(void **state)
{
    get_fails("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", ERR_UNAUTHORIZED, "status 401");
    get_fails("HTTP/1.1 404 No\r\nContent-Length: 24\r\n\r\n{\"detail\":\"no such run\"}",
              ERR_NOT_FOUND, "no such run");
    get_fails("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", ERR_UNAVAILABLE, "503");
    get_fails("HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\n"
              "0123456789012345678901234567890123456789012345678901234567890123456789",
              ERR_LIMIT, "longer than 64 bytes");
    get_fails("", ERR_UNREACHABLE, "cannot reach");
}

static void not_reached(void **state)
{
    struct http_answer r;
    struct err e = {0};
    const struct http_request closed = {.url = "http://127.0.0.1:1/"};
    assert_false(http_do(&closed, &r, &e));
    assert_int_equal(e.code, ERR_UNREACHABLE);
    http_answer_release(&r);
    const struct http_request file = {.url = "file:///etc/passwd"};
    assert_false(http_do(&file, &r, &e));
    assert_int_equal(e.code, ERR_USAGE);
    http_answer_release(&r);
    const struct http_request split = {.url = "http://127.0.0.1:1/", .token = "a\r\nHost: b"};
    assert_false(http_do(&split, &r, &e));
    assert_int_equal(e.code, ERR_USAGE);
    http_answer_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(post),
        cmocka_unit_test(refusals),
        cmocka_unit_test(not_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
