/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../grpc_fake.h"
#include "net/grpc_call.h"

#define FRAMED(bytes)                                                                              \
    .data = "\0\0\0\0" bytes, .n = sizeof("\0\0\0\0" bytes) - 1 /* the length's last byte in it */

struct talk {
    struct grpc_fake_answer give;
    struct buf *got; /* the request */
};

static struct grpc_fake_answer answer(const void *ctx, str request)
{
    const struct talk *t = ctx;
    buf_clear(t->got);
    buf_add_str(t->got, request);
    return t->give;
}

static void calls(void **state)
{
    (void)state;
    struct buf asked;
    struct talk t = {.give = {FRAMED("\5hello"), .status = "0"}, .got = &asked};
    buf_init(&asked, 1024);
    struct grpc_fake f;
    struct buf got;
    struct err e = {0};
    char url[64];
    assert_true(grpc_fake_start(&f, answer, &t));
    snprintf(url, sizeof url, "http://localhost:%u/a.B/C", f.port);
    buf_init(&got, 1024);
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* a host's proxy has no part in this */
    for (int i = 0; i < 5; i++)
        if (!grpc_call(url, S("ab\0c"), 5000, &got, &e))
            fail_msg("%s", e.msg);
    unsetenv("http_proxy");
    assert_true(str_eq(buf_str(&got), S("hello")));
    assert_true(str_eq(buf_str(&asked), S("ab\0c")));
    t.give = (struct grpc_fake_answer){FRAMED("\0"), .status = "0"}; /* a message of no bytes */
    assert_true(grpc_call(url, (str){0}, 5000, &got, &e));
    assert_int_equal(got.n, 0);
    assert_int_equal(asked.n, 0);
    assert_int_equal(f.n_calls, 6);
    assert_int_equal(f.n_connections, 6);
    grpc_fake_stop(&f);
    buf_release(&asked);
    buf_release(&got);
}

static void refused(struct grpc_fake_answer give, enum err_code code, const char *words)
{
    struct buf asked;
    struct talk t = {.give = give, .got = &asked};
    buf_init(&asked, 1024);
    struct grpc_fake f;
    struct buf got;
    struct err e = {0};
    char url[64];
    assert_true(grpc_fake_start(&f, answer, &t));
    snprintf(url, sizeof url, "http://127.0.0.1:%u/a.B/C", f.port);
    buf_init(&got, 16);
    assert_false(grpc_call(url, S("x"), give.silent ? 50 : 5000, &got, &e));
    assert_int_equal(e.code, code);
    if (strstr(e.msg, words) == NULL)
        fail_msg("'%s' is not in: %s", words, e.msg);
    assert_int_equal(got.n, 0);
    grpc_fake_stop(&f);
    buf_release(&asked);
    buf_release(&got);
}

static void refusals(void **state)
{
    (void)state;
    refused((struct grpc_fake_answer){.status = "12"}, ERR_UNAVAILABLE, "grpc-status 12");
    refused((struct grpc_fake_answer){FRAMED("\2ok"), .status = "13"}, ERR_UNAVAILABLE,
            "grpc-status 13");
    refused((struct grpc_fake_answer){FRAMED("\2ok")}, ERR_PARSE, "without grpc-status");
    refused((struct grpc_fake_answer){.status = "0"}, ERR_PARSE, "without a message");
    refused((struct grpc_fake_answer){.data = "\0\0", .n = 2, .status = "0"}, ERR_PARSE,
            "without a message");
    refused((struct grpc_fake_answer){.data = "\1\0\0\0\2ok", .n = 7, .status = "0"}, ERR_PARSE,
            "compressed");
    refused((struct grpc_fake_answer){.data = "\0\377\377\377\377ok", .n = 7, .status = "0"},
            ERR_PARSE, "says a message of 4294967295 bytes and sends 2");
    refused((struct grpc_fake_answer){FRAMED("\1ok"), .status = "0"}, ERR_PARSE,
            "says a message of 1 bytes and sends 2");
    refused((struct grpc_fake_answer){FRAMED("\14hello, world"), .status = "0"}, ERR_LIMIT,
            "longer than 16 bytes");
    refused((struct grpc_fake_answer){.silent = true}, ERR_UNREACHABLE, "cannot reach");
}

static void nobody(void **state)
{
    (void)state;
    struct buf got;
    struct err e = {0};
    char long_request[8192] = {0};
    buf_init(&got, 16);
    assert_false(grpc_call("http://127.0.0.1:1/a.B/C", S("x"), 5000, &got, &e));
    assert_int_equal(e.code, ERR_UNREACHABLE);
    assert_false(grpc_call("http://127.0.0.1:1/a.B/C", (str){long_request, sizeof long_request},
                           5000, &got, &e));
    assert_int_equal(e.code, ERR_USAGE);
    buf_release(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls), cmocka_unit_test(refusals),
                                       cmocka_unit_test(nobody)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
