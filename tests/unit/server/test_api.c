/* SPDX-License-Identifier: Apache-2.0 */
/* A whole server on a real socket, asked with bytes that no HTTP library would send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "server/server_inside.h"

static char data[64];
static struct server *server;
static char *answer; /* of the newest request, with its head */
static char request[200000];

static int setup(void **state)
{
    (void)state;
    struct err e = {0};
    memcpy(data, "/tmp/tacho-server-XXXXXX", sizeof "/tmp/tacho-server-XXXXXX");
    assert_non_null(mkdtemp(data));
    const struct server_options o = {
        .data_dir = data, .listen = S("127.0.0.1:0"), .worker_threads = 1};
    server = server_open(&o, &e);
    if (server == NULL)
        fail_msg("%s", e.msg);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    struct err e = {0};
    server_close(server);
    free(answer);
    answer = NULL;
    return dir_remove(data, &e) ? 0 : -1;
}

static int dial(void)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(http_port(server->http)),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Sends the bytes, reads until the server closes; answers the status. */
static int ask_raw(const char *bytes, size_t n)
{
    struct buf in;
    char block[4096];
    ssize_t got;
    const int fd = dial();
    buf_init(&in, 1 << 24);
    (void)!send(fd, bytes, n, MSG_NOSIGNAL);
    while ((got = recv(fd, block, sizeof block, 0)) > 0)
        buf_add(&in, block, (size_t)got);
    close(fd);
    free(answer);
    answer = strndup(in.n == 0 ? "" : in.p, in.n);
    buf_release(&in);
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

/* headers: each with its line end. With the token. */
static int ask(const char *method, const char *path, const char *headers, const char *body)
{
    const int n = snprintf(request, sizeof request,
                           "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                           "Authorization: Bearer %s\r\nContent-Length: %zu\r\n%s\r\n%s",
                           method, path, server_token(server), strlen(body), headers, body);
    assert_in_range(n, 1, sizeof request - 1);
    return ask_raw(request, (size_t)n);
}

static void says(const char *text)
{
    if (strstr(answer, text) == NULL)
        fail_msg("no '%s' in: %.2000s", text, answer);
}

static void finds_routes(void **state)
{
    (void)state;
    str params[HTTP_PARAMS_MAX];
    bool other;
    for (uint32_t i = 0; i < route_count; i++) { /* each route is found by its own pattern */
        const struct route *r = router_find(str_from(route_table[i].method),
                                            str_from(route_table[i].path), params, &other);
        assert_ptr_equal(r, &route_table[i]);
    }
    const struct route *r =
        router_find(S("GET"), S("/api/v1/sessions/a~b/tools/x.y"), params, &other);
    assert_non_null(r);
    assert_true(str_eq(params[0], S("a~b")) && str_eq(params[1], S("x.y")));
    static const char *const absent[] = {"",
                                         "//",
                                         "/api/v1/runs/",
                                         "/api/v1//runs",
                                         "/api/v1/runs//ledger",
                                         "x",
                                         "/api/v1/runs/a/ledger/b",
                                         "/api/v1/RUNS"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        assert_null(router_find(S("GET"), str_from(absent[i]), params, &other));
        assert_false(other);
    }
    assert_null(router_find(S("PUT"), S("/api/v1/tokens"), params, &other));
    assert_true(other);
}

static void says_which_methods_a_path_takes(void **state)
{
    (void)state;
    assert_int_equal(ask("PUT", "/api/v1/tokens", "", "{}"), 405);
    says("Allow: GET, HEAD, POST\r\n");
    says("\"code\":\"method\"");
    assert_int_equal(ask("HEAD", "/api/v1/journal", "", ""), 405);
    says("Allow: POST\r\n");
    assert_int_equal(ask("BREW", "/api/v1/runs", "", ""), 405);
    assert_int_equal(ask("GET", "/api/v1/nothing", "", ""), 404);
    assert_int_equal(ask("POST", "/nothing", "", "{}"), 404);
}

static void head_is_get_without_the_body(void **state)
{
    (void)state;
    assert_int_equal(ask("GET", "/api/v1/runs", "", ""), 200);
    const char *body = strstr(answer, "\r\n\r\n") + 4;
    char length[64];
    snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
    says(length);
    assert_int_equal(ask("HEAD", "/api/v1/runs", "", ""), 200);
    says(length);
    assert_int_equal(strlen(strstr(answer, "\r\n\r\n")), 4);
}

static void takes_paths_as_they_are_meant(void **state)
{
    (void)state;
    assert_int_equal(ask("GET", "/api/v1/%72uns", "", ""), 200); /* %72 is r */
    static const char *const absent[] = {"/api/v1/runs/a%2Fledger", "/api/v1/runs/a%2fledger",
                                         "/api/v1/runs/%00",        "/api/v1/runs/%zz",
                                         "/api/v1/runs/%",          "/api/v1/runs/..%2f..%2fetc"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_int_equal(ask("GET", absent[i], "", ""), 404);
    assert_int_equal(ask("GET", "/api/v1/runs%00x", "", ""), 404); /* is not /api/v1/runs */
    char path[70000];
    memset(path, 'a', sizeof path);
    memcpy(path, "/api/v1/runs/", 13);
    path[8000] = '\0';
    assert_int_equal(ask("GET", path, "", ""), 404);
    path[8000] = 'a';
    path[sizeof path - 1] = '\0';
    assert_int_equal(ask("GET", path, "", ""), 414);
}

static void limits_heads_and_bodies(void **state)
{
    (void)state;
    char header[70000];
    memset(header, 'h', sizeof header);
    memcpy(header, "X-Long: ", 8);
    memcpy(header + sizeof header - 3, "\r\n", 3);
    assert_int_equal(ask("GET", "/api/v1/runs", header, ""), 431);
    static char body[70000]; /* LIMIT_JOURNAL_PAYLOAD_BYTES is what a small route takes */
    memset(body, ' ', sizeof body - 1);
    assert_int_equal(ask("POST", "/api/v1/tokens", "", body), 413);
    says("\"code\":\"limit\"");
    assert_int_equal(ask("GET", "/api/v1/runs", "", "x"), 413);
    assert_int_equal(ask("GET", "/healthz", "", ""), 200);
}

static void speaks_its_protocol_only(void **state)
{
    (void)state;
    assert_int_equal(ask("GET", "/api/v1/runs", "Tachograph-Protocol: 1\r\n", ""), 200);
    says("Tachograph-Protocol: 1\r\n");
    assert_int_equal(ask("GET", "/api/v1/runs", "Tachograph-Protocol: 2\r\n", ""), 409);
    says("\"code\":\"too_new\"");
    assert_int_equal(ask("GET", "/api/v1/runs", "Tachograph-Protocol: 0\r\n", ""), 400);
    assert_int_equal(ask("GET", "/api/v1/runs", "Tachograph-Protocol: x\r\n", ""), 400);
}

static void answers_problem_documents(void **state)
{
    (void)state;
    assert_int_equal(ask("GET", "/api/v1/runs/none", "", ""), 404);
    says("Content-Type: application/problem+json\r\n");
    static const char *const members[] = {"\"type\":\"about:blank\"", "\"title\":\"",
                                          "\"status\":404",           "\"detail\":\"",
                                          "\"code\":\"not_found\"",   "\"request\":"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        says(members[i]);
}

static void refuses_damaged_page_tokens(void **state)
{
    (void)state;
    static const char *const damaged[] = {"z",      "zz", "0",     "2e", "2e61",
                                          "612e61", "ZZ", "312e6", "31"};
    char path[128];
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        snprintf(path, sizeof path, "/api/v1/runs?page_token=%s", damaged[i]);
        if (ask("GET", path, "", "") != 400)
            fail_msg("page_token %s: %.100s", damaged[i], answer);
        snprintf(path, sizeof path, "/api/v1/sessions?page_token=%s", damaged[i]);
        assert_int_equal(ask("GET", path, "", ""), 400);
    }
    assert_int_equal(ask("GET", "/api/v1/runs?page_size=0", "", ""), 400);
    assert_int_equal(ask("GET", "/api/v1/runs?page_size=-1", "", ""), 400);
}

static void a_role_does_what_its_column_says(void **state)
{
    (void)state;
    struct err e = {0};
    assert_true(auth_check_role(ROLE_INGEST, ROLE_INGEST, &e));
    assert_false(auth_check_role(ROLE_INGEST, ROLE_VIEWER, &e));
    assert_false(auth_check_role(ROLE_VIEWER, ROLE_INGEST, &e));
    assert_false(auth_check_role(ROLE_AGENT, ROLE_VIEWER, &e));
    assert_true(auth_check_role(ROLE_OPERATOR, ROLE_INGEST, &e));
    for (enum store_role have = ROLE_VIEWER; have <= ROLE_ADMIN; have++)
        for (enum store_role want = ROLE_VIEWER; want <= ROLE_ADMIN; want++)
            assert_int_equal(auth_check_role(have, want, &e), have >= want);
}

/* Every route that takes a parameter, with names that no thing has. */
static void shows_no_path_of_its_own(void **state)
{
    (void)state;
    static const char *const bad[] = {"none", "a~b", "..", "%2e%2e", "~", "0", "'"};
    char path[512];
    for (uint32_t i = 0; i < route_count; i++) {
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            size_t n = 0;
            for (const char *p = route_table[i].path; *p != '\0' && n < sizeof path - 32; p++) {
                if (*p != '{') {
                    path[n++] = *p;
                    continue;
                }
                n += (size_t)snprintf(path + n, sizeof path - n, "%s", bad[k]);
                p = strchr(p, '}');
            }
            snprintf(path + n, sizeof path - n, "?name=x&part=0&host=/etc/passwd");
            const int status = ask(route_table[i].method, path, "", "{\"parts\":1}");
            if (status == 0 || strstr(answer, data) != NULL)
                fail_msg("%s %s: %.1000s", route_table[i].method, path, answer);
        }
    }
    struct err e = {0};
    err_set(&e, ERR_IO, "cannot join '%s/a' to '%s/b'", data, data);
    server_hide_paths(server, &e);
    assert_string_equal(e.msg, "cannot join '<data>/a' to '<data>/b'");
}

static void *hammer(void *arg)
{
    atomic_int *stop = arg;
    char get[256];
    const int n = snprintf(get, sizeof get,
                           "GET /api/v1/server HTTP/1.1\r\nHost: localhost\r\n"
                           "Authorization: Bearer %s\r\n\r\n",
                           server_token(server));
    const int fd = dial();
    char block[4096];
    while (!*stop && send(fd, get, (size_t)n, MSG_NOSIGNAL) == n &&
           recv(fd, block, sizeof block, 0) > 0) {
    }
    close(fd);
    return NULL;
}

/* Requests that come on open connections while the server closes meet no freed pool. */
static void closes_under_load(void **state)
{
    (void)state;
    atomic_int stop = 0;
    pthread_t clients[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&clients[i], NULL, hammer, &stop), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(ask("GET", "/api/v1/server", "", ""), 200);
    server_close(server);
    server = NULL;
    stop = 1;
    for (int i = 0; i < 4; i++)
        pthread_join(clients[i], NULL);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_routes),
        cmocka_unit_test(a_role_does_what_its_column_says),
        T(says_which_methods_a_path_takes),
        T(head_is_get_without_the_body),
        T(takes_paths_as_they_are_meant),
        T(limits_heads_and_bodies),
        T(speaks_its_protocol_only),
        T(answers_problem_documents),
        T(refuses_damaged_page_tokens),
        T(shows_no_path_of_its_own),
        T(closes_under_load),
    };
    return cmocka_run_group_tests_name("server/api", tests, NULL, NULL);
}
