/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <time.h>

#include "model/secrets.h"

/* Tokens are written in two parts: scanners of repositories look for them too. */
#define GITHUB                                                                                     \
    "ghp_"                                                                                         \
    "0123456789abcdefABCDEF0123456789abcd"
#define FACE                                                                                       \
    "hf_"                                                                                          \
    "abcdefghijklmnopqrstuvwxyzABCD0123"
#define AWS                                                                                        \
    "AKIA"                                                                                         \
    "IOSFODNN7EXAMPLE"
#define OPENAI                                                                                     \
    "sk-"                                                                                          \
    "proj-0123456789abcdefghij"
#define JWT                                                                                        \
    "eyJ"                                                                                          \
    "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl"
#define PEM                                                                                        \
    "-----BEGIN "                                                                                  \
    "RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----"

static void assert_text(const char *text, const char *want, enum secret_scope scope)
{
    struct arena a;
    arena_init(&a, "test", 0);
    const str got = secret_mask_text(&a, str_from(text), scope);
    if (!str_eq(got, str_from(want)))
        fail_msg("'%s' became '%.*s', not '%s'", text, STR_ARG(got), want);
    const str again = secret_mask_text(&a, got, scope);
    assert_true(str_eq(again, got));
    arena_release(&a);
}

static void test_tokens_anywhere(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"clone https://" GITHUB "@github.com", "clone https://***@github.com"},
        {"a " FACE ", b", "a ***, b"},
        {"(" AWS ")", "(***)"},
        {"load('" OPENAI "')", "load('***')"},
        {"x=" JWT ";", "x=***;"},
        {"Authorization header Bearer abc123def456ghi", "Authorization header Bearer ***"},
        {"postgresql://me:hunter2@db:5432/x and more", "postgresql://me:***@db:5432/x and more"},
        {"key " PEM " end", "key *** end"},
        {GITHUB " " GITHUB, "*** ***"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_text(cases[i][0], cases[i][1], SECRET_TOKENS);
        assert_text(cases[i][0], cases[i][1], SECRET_ALL);
    }
}

static void test_environments_and_command_lines(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"PATH\": \"/bin\", \"DB_PASSWORD\": \"x y z\", \"N\": \"1\"}",
         "{\"PATH\": \"/bin\", \"DB_PASSWORD\": \"***\", \"N\": \"1\"}"},
        {"{'WANDB_API_KEY': 'short', 'HOME': '/root'}",
         "{'WANDB_API_KEY': '***', 'HOME': '/root'}"},
        {"\"{\\\"AWS_SECRET_ACCESS_KEY\\\": \\\"a/b+c\\\", \\\"LANG\\\": \\\"C\\\"}\"",
         "\"{\\\"AWS_SECRET_ACCESS_KEY\\\": \\\"***\\\", \\\"LANG\\\": \\\"C\\\"}\""},
        {"A=1\nCI_JOB_TOKEN=abcd1234\nB=2", "A=1\nCI_JOB_TOKEN=***\nB=2"},
        {"train --api-key hunter2 --lr 0.1", "train --api-key *** --lr 0.1"},
        {"train --password=hunter2 --lr=0.1", "train --password=*** --lr=0.1"},
        {"Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic ***"},
        {"GET /x?token=abcd1234&y=2", "GET /x?token=***&y=2"},
        {"UNKNOWN=q7Rk2ZpX9vLm4TsB8nWc3YdF6hJg1KeA", "UNKNOWN=***"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_text(cases[i][0], cases[i][1], SECRET_ALL);
}

static void test_what_is_no_secret_stays(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "fusion.123",
        "%rng_key = u32[2]{0} parameter(1), sharding={replicated}",
        "jit(train_step)/transformer/attention/key/dot_general",
        "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl>",
        "max_tokens=2048 num_keys: 12",
        "sk-learn-pipeline-with-a-long-name",
        "hf_model_forward_pass_of_attention",
        "http://host:6006/path?a=b",
        "regs:32 static_shared:0 dynamic_shared:16384 grid:2,1,1 block:32,1,1 occ_pct:25.0",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "pad_token=0 cache_key=conv2d",
        "[[4, 3, 224, 224], [768, 3, 16, 16]]",
        "/usr/lib/python3.11/site-packages/torch/nn/modules/linear.py(116): forward",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_text(cases[i], cases[i], SECRET_ALL);
}

/* Each piece of the rules, over and over: the cost grows with the length alone. */
static void test_hostile_texts_take_linear_time(void **state)
{
    (void)state;
    static const char *const pieces[] = {"a:",   "eyJ.x.", "sk-",     "-",      "--a",  "://",
                                         "\\\"", "key:'",  "Bearer ", "token=", "ghp_", "x@y:"};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        const size_t n = strlen(pieces[i]), most = 1000000;
        struct arena a;
        arena_init(&a, "test", SIZE_MAX / 2);
        char *text = arena_alloc(&a, most + n, 1);
        for (size_t at = 0; at < most; at += n)
            memcpy(text + at, pieces[i], n);
        const clock_t from = clock();
        secret_mask_text(&a, (str){text, most}, SECRET_ALL);
        assert_true(clock() - from < 10 * CLOCKS_PER_SEC);
        arena_release(&a);
    }
}

static void test_named(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, "test", 0);
    assert_true(str_eq(secret_mask_named(&a, S("password"), S("x")), S("***")));
    assert_true(str_eq(secret_mask_named(&a, S("cache_key"), S("conv2d")), S("conv2d")));
    assert_true(str_eq(secret_mask_named(&a, S("env"), S("API_KEY=x")), S("API_KEY=***")));
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tokens_anywhere),
                                       cmocka_unit_test(test_environments_and_command_lines),
                                       cmocka_unit_test(test_what_is_no_secret_stays),
                                       cmocka_unit_test(test_hostile_texts_take_linear_time),
                                       cmocka_unit_test(test_named)};
    return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
