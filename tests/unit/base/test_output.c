/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, files and configuration. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/config.h"
#include "base/file.h"
#include "base/json.h"

static void json_text(void **state)
{
    struct buf b;
    struct json j;
    struct err e;
    buf_init(&b, 4096);
    json_init_buf(&j, &b);
    json_object(&j);
    json_kstr(&j, "text", S("a\"\\\n\x01é\xff"));
    json_key(&j, "list");
    json_array(&j);
    json_u64(&j, UINT64_MAX);
    json_i64(&j, INT64_MIN);
    json_f64(&j, 0.1);
    json_f64(&j, 84.1);
    json_f64(&j, NAN);
    json_f64(&j, 1e300);
    json_fixed(&j, -1500, 3);
    json_fixed(&j, 7, 0);
    json_bool(&j, true);
    json_end(&j);
    json_key(&j, "empty");
    json_object(&j);
    json_end(&j);
    json_end(&j);
    assert_true(json_done(&j, &e));
    assert_int_equal(j.n_not_finite, 1);
    assert_string_equal(b.p, "{\"text\":\"a\\\"\\\\\\n\\u0001é\xef\xbf\xbd\","
                             "\"list\":[18446744073709551615,-9223372036854775808,0.1,84.1,null,"
                             "1e+300,-1.5,7,true],\"empty\":{}}");
    buf_release(&b);
}

static void json_limit(void **state)
{
    struct buf b;
    struct json j;
    struct err e;
    buf_init(&b, 8);
    json_init_buf(&j, &b);
    json_str(&j, S("longer than the buffer"));
    assert_false(json_done(&j, &e));
    assert_int_equal(e.code, ERR_LIMIT);
    buf_release(&b);
}

static void doubles_read_back(void **state)
{
    uint64_t bits = 88172645463325252u; /* xorshift64 */
    for (int i = 0; i < 20000; i++) {
        double v;
        char text[JSON_F64_MAX];
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        assert_true(json_format_f64(v, text) < JSON_F64_MAX);
        assert_true(strtod(text, NULL) == v);
    }
}

static void files(void **state)
{
    char folder[] = "/tmp/tacho-test-XXXXXX";
    struct arena a;
    struct err e = {0};
    str text, *names;
    size_t n;
    assert_non_null(mkdtemp(folder));
    arena_init(&a, "test", 0);
    const char *deep = path_join(&a, folder, S("a/b/c"));
    assert_true(dir_make(deep, 0755, &e));
    assert_true(dir_make(deep, 0755, &e));
    const char *file = path_join(&a, deep, S("f"));
    assert_true(file_replace(file, S("one"), 0600, &e));
    assert_true(file_replace(file, S("three"), 0600, &e));
    assert_true(file_read(&a, file, 5, &text, &e));
    assert_true(str_eq(text, S("three")));
    assert_false(file_read(&a, file, 4, &text, &e));
    assert_int_equal(e.code, ERR_LIMIT);
    assert_true(dir_list(&a, deep, &names, &n, &e));
    assert_int_equal(n, 1);
    assert_false(file_read(&a, path_join(&a, deep, S("none")), 5, &text, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_false(dir_make(path_join(&a, deep, S("f/g")), 0755, &e));
    /* A link below is removed, what it points at stays. */
    assert_int_equal(symlink("/tmp", path_join(&a, deep, S("link"))), 0);
    assert_true(dir_remove(folder, &e));
    assert_false(file_exists(folder));
    assert_true(file_is_dir("/tmp"));
    arena_release(&a);
}

static void names(void **state)
{
    assert_true(path_is_safe_name(S("host-1.rank_0@x")));
    assert_false(path_is_safe_name(S("..")));
    assert_false(path_is_safe_name(S("")));
    assert_false(path_is_safe_name(S("a/b")));
    assert_false(path_is_safe_name(S("a\0b")));
    assert_true(str_eq(path_base(S("/a/b")), S("b")));
    assert_true(str_eq(path_dir(S("/a/b")), S("/a")));
    assert_true(str_eq(path_dir(S("b")), S(".")));
    assert_true(str_eq(path_dir(S("/b")), S("/")));
}

static void config_order(void **state)
{
    char file[] = "/tmp/tacho-config-XXXXXX";
    const int fd = mkstemp(file);
    struct config c;
    struct err e = {0};
    assert_true(fd >= 0);
    assert_true(file_write_all(fd, "# x\nserver = http://a\nsample_interval = 2s\n", 42, &e));
    close(fd);
    setenv("TACHO_SAMPLE_INTERVAL", "500ms", 1);
    assert_true(config_load(&c, file, &e));
    assert_int_equal(config_number(&c, CONFIG_FIELD_sample_interval), 500000000);
    assert_string_equal(config_source_word(c.values[CONFIG_FIELD_sample_interval].source),
                        "environment");
    assert_true(str_eq(config_text(&c, CONFIG_FIELD_server), S("http://a")));
    assert_int_equal(c.values[CONFIG_FIELD_server].line, 2);
    assert_int_equal(config_number(&c, CONFIG_FIELD_record_output), 1);
    assert_true(config_set_flag(&c, config_find_flag(S("--no-output")), S("false"), &e));
    assert_int_equal(config_number(&c, CONFIG_FIELD_record_output), 0);
    assert_false(config_set_flag(&c, CONFIG_FIELD_parser_memory, S("much"), &e));
    assert_int_equal(e.code, ERR_USAGE);
    config_release(&c);
    unsetenv("TACHO_SAMPLE_INTERVAL");
    unlink(file);
}

static void config_wrong(void **state)
{
    struct config c = {0};
    struct err e = {0};
    assert_false(config_parse(&c, S("\nworker_threads = many\n"), "the file", &e));
    assert_string_equal(e.msg,
                        "the file: line 2: worker_threads must be a whole number, not 'many'");
    assert_false(config_parse(&c, S("colour = red"), "f", &e));
    assert_string_equal(e.msg, "f: line 1: unknown key 'colour'");
    config_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_text),    cmocka_unit_test(json_limit),
        cmocka_unit_test(files),        cmocka_unit_test(doubles_read_back),
        cmocka_unit_test(names),        cmocka_unit_test(config_order),
        cmocka_unit_test(config_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
