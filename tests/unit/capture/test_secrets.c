/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "capture/secrets_json.h"

static void test_keys(void **state)
{
    (void)state;
    const char *const secret[] = {"token",         "HF_TOKEN",        "AWS_SECRET_ACCESS_KEY",
                                  "dbPassword",    "api-key",         "wandb.api_key",
                                  "authorization", "private_key_path"};
    const char *const open[] = {"tokenizer", "num_keys", "key_dim",      "max_tokens", "PWD",
                                "author",    "keyboard", "TACHO_RUN_ID", "PATH"};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        assert_true(secret_key(str_from(secret[i])));
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        assert_false(secret_key(str_from(open[i])));
}

static void test_values(void **state)
{
    (void)state;
    const char *const secret[] = {"ghp_"
                                  "0123456789abcdefABCDEF0123456789abcd",
                                  "hf_"
                                  "abcdefghijklmnopqrstuvwxyzABCD",
                                  "sk-"
                                  "proj-0123456789abcdefghij",
                                  "AKIA"
                                  "IOSFODNN7EXAMPLE",
                                  "xoxb-"
                                  "123456789012-abcdef",
                                  "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
                                  "q7Rk2ZpX9vLm4TsB8nWc3YdF6hJg1KeA"};
    const char *const open[] = {"/usr/local/cuda-12.4/lib64/libcudart.so.12",
                                "da39a3ee5e6b4b0d3255bfef95601890afd80709",
                                "550e8400-e29b-41d4-a716-446655440000",
                                "TransformerEncoderLayerNormalization2",
                                "resnet50_imagenet_bs256_lr0.1_run3",
                                "sk-learn",
                                "2026-11-29T22:44:07.123456Z",
                                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"};
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        assert_true(secret_value(str_from(secret[i])));
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        assert_false(secret_value(str_from(open[i])));
}

static void assert_masks(struct arena *a, const char *key, const char *value, const char *want)
{
    const str got = secret_mask(a, str_from(key), str_from(value));
    assert_int_equal(got.n, strlen(want));
    assert_memory_equal(got.p, want, got.n);
}

static void test_mask(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, "test", 1 << 20);
    assert_masks(&a, "token", "hunter2!", "***");
    assert_masks(&a, "pad_token", "0", "0");
    assert_masks(&a, "url", "https://me:pw@host/x", "https://me:***@host/x");
    assert_masks(&a, "lr", "0.001", "0.001");
    str argv[] = {S("train"), S("--token"), S("hunter2!"), S("--password=x1y2z3"), S("--lr=0.1")};
    secret_mask_argv(&a, argv, 5);
    assert_true(str_eq(argv[2], S("***")));
    assert_true(str_eq(argv[3], S("--password=***")));
    assert_true(str_eq(argv[4], S("--lr=0.1")));
    arena_release(&a);
}

static void test_json(void **state)
{
    (void)state;
    json_t *o =
        json_loads("{\"lr\":1e-3,\"hub\":{\"token\":\"hunter2!\",\"name\":\"a\"}}", 0, NULL);
    secret_mask_json(o, NULL);
    const json_t *hub = json_object_get(o, "hub");
    assert_string_equal(json_string_value(json_object_get(hub, "token")), "***");
    assert_string_equal(json_string_value(json_object_get(hub, "name")), "a");
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys), cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_mask), cmocka_unit_test(test_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
