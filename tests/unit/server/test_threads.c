/* SPDX-License-Identifier: Apache-2.0 */
/* All of a server at once: writers, readers, streams, logins, the local socket. Counts say that nothing is
 * lost; under ThreadSanitizer (tools/run-checks) the same run says that nobody races. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "../store/journal_bytes.h"
#include "base/file.h"
#include "server/local_socket.h"
#include "server/server_inside.h"

#define N_WRITERS 3
#define N_BATCHES 12
#define N_READERS 3
#define N_ROUNDS 6
#define WAIT_S 20

static char data[64];
static struct server *server;

/* Sends and reads until the server closes (a stream: until some came); the status. */
static int ask(const char *method, const char *path, str body, bool is_stream)
{
    char head[512], block[65536];
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(http_port(server->http)),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct timeval wait = {.tv_sec = WAIT_S};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) == 0);
    must(connect(fd, (const struct sockaddr *)&to, sizeof to) == 0);
    const int n = snprintf(
        head, sizeof head,
        "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer %s\r\n"
        "Content-Type: application/vnd.tachograph.journal\r\nContent-Length: %zu\r\n\r\n",
        method, path, server_token(server), body.n);
    must(send(fd, head, (size_t)n, MSG_NOSIGNAL) == n);
    must(body.n == 0 || send(fd, body.p, body.n, MSG_NOSIGNAL) == (ssize_t)body.n);
    size_t got = 0;
    ssize_t more;
    char status[16] = {0};
    while ((more = recv(fd, block, sizeof block, 0)) > 0) {
        for (ssize_t i = 0; i < more && got + (size_t)i < sizeof status - 1; i++)
            status[got + (size_t)i] = block[i];
        got += (size_t)more;
        if (is_stream && got > 400)
            break;
    }
    close(fd);
    return strncmp(status, "HTTP/1.1 ", 9) == 0 ? (int)strtol(status + 9, NULL, 10) : 0;
}

static void *write_batches(void *arg)
{
    const uint8_t id = (uint8_t)(1 + (uintptr_t)arg);
    for (uint64_t i = 0; i < N_BATCHES; i++) {
        struct buf b;
        buf_init(&b, 65536);
        add_header(&b, id, S("busy"), id);
        for (uint64_t k = 0; k < 10; k++) {
            const uint64_t seq = 1 + i * 10 + k;
            add_metric(&b, seq, 1000 + seq * 1000000, (int64_t)seq, S("loss"), 1.0);
        }
        must(ask("POST", "/api/v1/journal", buf_str(&b), false) == 200);
        buf_release(&b);
    }
    return NULL;
}

static void *read_everything(void *arg)
{
    static const char *const paths[] = {"/api/v1/runs?filter=name:busy%20OR%20step%3E0",
                                        "/api/v1/runs/busy",
                                        "/api/v1/runs/busy/metrics",
                                        "/api/v1/runs/busy/metrics?name=loss&points=10",
                                        "/api/v1/runs/busy/hosts",
                                        "/api/v1/runs/busy/events",
                                        "/api/v1/runs/busy/output",
                                        "/api/v1/runs/busy/sessions",
                                        "/metrics",
                                        "/readyz",
                                        "/api/v1/tokens",
                                        "/api/v1/openapi.json"};
    (void)arg;
    for (int round = 0; round < N_ROUNDS; round++) {
        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
            must(ask("GET", paths[i], (str){0}, false) == 200);
        must(ask("GET", "/api/v1/runs/busy/stream", (str){0}, true) == 200);
        must(ask("POST", "/api/v1/tokens", S("{\"role\":\"viewer\",\"name\":\"x\"}"), false) /
                 100 ==
             2);
        struct local_server found;
        struct err e = {0};
        must(local_server_find(data, &found, &e) && strcmp(found.url, server_url(server)) == 0);
    }
    return NULL;
}

static void nothing_is_lost(void **state)
{
    (void)state;
    struct err e = {0};
    pthread_t threads[N_WRITERS + N_READERS];
    memcpy(data, "/tmp/tacho-threads-XXXXXX", sizeof "/tmp/tacho-threads-XXXXXX");
    assert_non_null(mkdtemp(data));
    const struct server_options o = {
        .data_dir = data, .listen = S("127.0.0.1:0"), .worker_threads = 2};
    server = server_open(&o, &e);
    assert_non_null(server);
    struct buf first;
    buf_init(&first, 65536);
    add_header(&first, 99, S("busy"), 99);
    add_metric(&first, 1, 2000, 1, S("loss"), 1.0);
    assert_int_equal(ask("POST", "/api/v1/journal", buf_str(&first), false), 200);
    buf_release(&first);
    for (uintptr_t i = 0; i < N_WRITERS + N_READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < N_WRITERS ? write_batches : read_everything, (void *)i),
                         0);
    for (int i = 0; i < N_WRITERS + N_READERS; i++)
        pthread_join(threads[i], NULL);
    struct arena a;
    struct store_journal *journals;
    uint32_t n;
    uint64_t n_records = 0;
    arena_init(&a, "journals", 0);
    assert_true(server->meta->ops->journals(server->meta, S("busy"), &a, &journals, &n, &e));
    assert_int_equal(n, N_WRITERS + 1);
    for (uint32_t i = 0; i < n; i++)
        n_records += journals[i].n_records;
    assert_int_equal(n_records,
                     N_WRITERS * (N_BATCHES * 10 + 1) + 2); /* each with its header, once */
    arena_release(&a);
    server_close(server);
    assert_true(dir_remove(data, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_lost)};
    return cmocka_run_group_tests_name("server/threads", tests, NULL, NULL);
}
