/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/flags.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Up to two words, kept as argv is: for as long as the program runs. */
static int take(struct flags *f, const char *command, const char *first, const char *second,
                struct err *e)
{
    static char kept[64][32];
    static unsigned used;
    char *argv[3] = {0};
    int argc = 0;
    for (const char *word = first; word != NULL; word = argc == 1 ? second : NULL) {
        must(used < 64 && strlen(word) < sizeof kept[0]);
        memcpy(kept[used], word, strlen(word) + 1);
        argv[argc++] = kept[used++];
    }
    return flags_take(f, command, argc, argv, 0, e);
}

static void test_values_of_each_type(void **state)
{
    struct flags f;
    struct err e = {0};
    int64_t n;
    flags_init(&f);
    assert_int_equal(take(&f, "run", "--name", "a", &e), 2);
    assert_int_equal(take(&f, "run", "--name=b=c", "x", &e), 1);
    assert_string_equal(flags_text(&f, FLAG_run_name), "b=c");
    assert_null(flags_text(&f, FLAG_run_group));
    assert_int_equal(take(&f, "run", "--resume", NULL, &e), 1);
    assert_true(flags_on(&f, FLAG_run_resume));
    assert_false(flags_on(&f, FLAG_run_dry_run));
    assert_int_equal(take(&f, "goodput", "--from", "1969-12-31T23:59:59Z", &e), 2);
    assert_true(flags_number(&f, FLAG_goodput_from, &n));
    assert_int_equal(n, -NS_PER_S);
    assert_int_equal(take(&f, "goodput", "--to=1.5", NULL, &e), 1);
    assert_true(flags_number(&f, FLAG_goodput_to, &n));
    assert_int_equal(n, 1500 * NS_PER_MS);
    flags_release(&f);
}

static void test_repeated_values_keep_their_order(void **state)
{
    struct flags f;
    struct err e = {0};
    static const char *const words[] = {"500ms", "2", "1h"};
    static const int64_t wanted[] = {500 * NS_PER_MS, 2 * NS_PER_S, 3600 * NS_PER_S};
    flags_init(&f);
    for (int i = 0; i < 3; i++)
        assert_int_equal(take(&f, "goodput", "--window", words[i], &e), 2);
    int n = 0;
    for (const struct flag_value *v = NULL; (v = flags_next(&f, FLAG_goodput_window, v)) != NULL;
         n++)
        assert_int_equal(v->number, wanted[n]);
    assert_int_equal(n, 3);
    flags_release(&f);
}

static void test_wrong_values_are_usage_errors(void **state)
{
    static const struct {
        const char *command, *words[2], *message;
    } cases[] = {
        {"run", {"--name"}, "--name needs a value"},
        {"run", {"--resume=yes"}, "--resume takes no value"},
        {"goodput",
         {"--window", "-1s"},
         "--window needs a duration such as 500ms or 1h, not '-1s'"},
        {"goodput",
         {"--window", "soon"},
         "--window needs a duration such as 500ms or 1h, not 'soon'"},
        {"goodput",
         {"--from", "nan"},
         "--from needs a time such as 2026-11-29T20:00:00Z or Unix seconds, not 'nan'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct flags f;
        struct err e = {0};
        flags_init(&f);
        assert_int_equal(take(&f, cases[i].command, cases[i].words[0], cases[i].words[1], &e), -1);
        assert_int_equal(e.code, ERR_USAGE);
        assert_string_equal(e.msg, cases[i].message);
        flags_release(&f);
    }
}

static void test_a_flag_belongs_to_its_command(void **state)
{
    struct flags f;
    struct err e = {0};
    flags_init(&f);
    assert_int_equal(take(&f, "goodput", "--resume", NULL, &e), 0);
    assert_int_equal(take(&f, "run", "--resumed", NULL, &e), 0);
    assert_int_equal(f.n_values, 0);
    flags_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_each_type),
        cmocka_unit_test(test_repeated_values_keep_their_order),
        cmocka_unit_test(test_wrong_values_are_usage_errors),
        cmocka_unit_test(test_a_flag_belongs_to_its_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
