/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "model/filter.h"

#define NOW (1000000 * NS_PER_S)

static const struct filter_field fields[] = {
    {"name", FILTER_TEXT, true},        {"state", FILTER_TEXT, false},
    {"step", FILTER_NUMBER, false},     {"started", FILTER_TIME, false},
    {"wall_s", FILTER_DURATION, false}, {"config.", FILTER_ANY, false},
    {"framework", FILTER_TEXT, false},
};

/* A run: name train-7, FAILED by oom, step 500, begun an hour ago, 90 s long, config lr 0.01 and
 * opt adam and nan; its framework is unknown. */
static bool value(void *ctx, const struct filter_field *f, str key, uint32_t index,
                  struct filter_value *out)
{
    static const struct {
        const char *field, *key, *text;
        double number;
    } have[] = {{"name", "", "train-7", 0},
                {"state", "", "FAILED", 0},
                {"state", "", "oom", 0},
                {"step", "", NULL, 500},
                {"started", "", NULL, 0},
                {"wall_s", "", NULL, 90},
                {"config.", "lr", NULL, 0.01},
                {"config.", "opt", "adam", 0},
                {"config.", "bad", NULL, __builtin_nan("")}};
    (void)ctx;
    for (size_t i = 0; i < sizeof have / sizeof *have; i++) {
        if (strcmp(have[i].field, f->name) != 0 || !str_eq(str_from(have[i].key), key) ||
            index-- > 0)
            continue;
        *out = (struct filter_value){.is_number = have[i].text == NULL,
                                     .number = have[i].number,
                                     .text = str_from(have[i].text),
                                     .wall_ns = NOW - 3600 * NS_PER_S};
        return true;
    }
    return false;
}

static struct filter *parse(struct arena *a, const char *text, struct err *e)
{
    arena_init(a, "filter", 1 << 20);
    *e = (struct err){0};
    return filter_parse(str_from(text), fields, sizeof fields / sizeof *fields, NOW, a, e);
}

static void fits(void **state)
{
    static const struct {
        const char *text;
        bool fits;
    } cases[] = {
        {"", true},
        {"  ", true},
        {"state = FAILED", true},
        {"state:failed", true},
        {"state = OOM", true},
        {"STATE=active", false},
        {"state != FAILED", false},
        {"state != ok", true},
        {"-state = oom", false},
        {"NOT state:ok", true},
        {"step = 500", true},
        {"step=500.0", true},
        {"step > 500", false},
        {"step >= 500 step<=5e2", true},
        {"step != 500", false},
        {"step < 501", true},
        {"started > -72h", true},
        {"started > -30m", false},
        {"started < 1970-01-12T12:46:41Z", true},
        {"started < 1970-01-12T12:46:40Z", false},
        {"started = 996400", true},
        {"started > 1970-01-12", true},
        {"started > 1970-01-13", false},
        {"started < +1s", true},
        {"wall_s > 1m", true},
        {"wall_s >= 90", true},
        {"wall_s < 1.5m", false},
        {"wall_s = 90000ms", true},
        {"config.lr > 0.001", true},
        {"config.lr = 1e-2", true},
        {"config.opt = ADAM", true},
        {"config.opt = adam*", true},
        {"config.opt:*da*", true},
        {"config.opt:*am", true},
        {"config.opt:*ad", false},
        {"config.opt > 3", false},
        {"NOT config.opt > 3", false}, /* no order: unknown, and so is its negation */
        {"config.lr = adam", false},
        {"name = train*", true},
        {"name:TRAIN-7", true},
        {"name = \"train-7\"", true},
        {"name = 'train 7'", false},
        {"name = tra", false},
        {"TRAIN", true},
        {"\"in-7\"", true},
        {"-other", true},
        {"other", false},
        /* what is not known is neither equal nor unequal */
        {"framework = jax", false},
        {"framework != jax", false},
        {"NOT framework = jax", false},
        {"framework:*", false},
        {"NOT framework:*", true},
        {"framework != *", true},
        {"config.none > 1", false},
        {"config.none != 1", false},
        {"config.none:*", false},
        {"config.lr:*", true},
        {"config.bad > 0", false},
        {"config.bad != 0", false},
        {"config.bad = 0", false},
        {"framework = jax OR step = 500", true},
        {"NOT (framework = jax AND step = 1)", true},
        {"NOT (framework = jax OR step = 500)", false},
        {"NOT (framework = jax AND step = 500)", false},
        /* OR binds tighter than AND */
        {"step = 1 AND step = 500 OR step = 500", false},
        {"step = 500 OR step = 1 step = 500", true},
        {"(step = 1 step = 500) OR step = 500", true},
        {"step=500 and(step=1 or step=500)", true},
        {"step:500 name:train-7 state:oom", true},
        {"--step = 500", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena a;
        struct err e;
        struct filter *f = parse(&a, cases[i].text, &e);
        if (f == NULL)
            fail_msg("'%s': %s", cases[i].text, e.msg);
        if (filter_fits(f, value, NULL) != cases[i].fits)
            fail_msg("'%s' %s", cases[i].text, cases[i].fits ? "does not fit" : "fits");
        arena_release(&a);
    }
}

static void says_what_is_wrong_and_where(void **state)
{
    static const struct {
        const char *text, *says;
        uint64_t at;
    } cases[] = {
        {"speed > 3",
         "no field 'speed' (there are name, state, step, started, wall_s, config.KEY, framework)",
         0},
        {"step = 1 AND  loss < 2", "no field 'loss'", 14},
        {"config. = 1", "no field 'config.'", 0},
        {"step > fast", "'fast' is not a number", 7},
        {"step > nan", "'nan' is not a number", 7},
        {"started > yesterday", "'yesterday' is not a time", 10},
        {"started > -9999999999999w", "is not a time", 10},
        {"wall_s > 3 hours", "never", 0}, /* fits nothing: 'hours' is a word to look for */
        {"wall_s > 3parsecs", "'3parsecs' is not a duration", 9},
        {"step >", "a value is missing", 6},
        {"step = (1)", "a value is missing", 7},
        {"= 1", "a condition is missing before '= 1'", 0},
        {"step = 1 AND", "a condition is missing", 12},
        {"step = 1 OR OR step = 2", "a condition is missing before 'OR step", 12},
        {"AND step = 1", "a condition is missing before 'AND", 0},
        {"()", "a condition is missing before ')'", 1},
        {"(step = 1", "never closed", 0},
        {"step = 1)", "a ')' without its '('", 8},
        {"name = \"x", "never closed", 7},
        {"name < b", "'name' is text, which has no order", 7},
        {"step > *", "'*' goes with", 7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena a;
        struct err e;
        struct filter *f = parse(&a, cases[i].text, &e);
        if (strcmp(cases[i].says, "never") == 0) {
            assert_non_null(f);
            assert_false(filter_fits(f, value, NULL));
        } else if (f != NULL || e.code != ERR_USAGE || strstr(e.msg, cases[i].says) == NULL ||
                   e.pos != cases[i].at) {
            fail_msg("'%s': byte %llu: %s", cases[i].text, (unsigned long long)e.pos,
                     f == NULL ? e.msg : "taken");
        }
        arena_release(&a);
    }
}

static void is_limited(void **state)
{
    static char text[8192];
    struct arena a;
    struct err e;
    (void)state;
    memset(text, '(', 40);
    assert_null(parse(&a, text, &e));
    assert_int_equal(e.code, ERR_LIMIT);
    arena_release(&a);
    for (size_t i = 0; i < 4000; i += 2) /* 2000 conditions side by side are no depth */
        memcpy(text + i, "t ", 2);
    assert_non_null(parse(&a, text, &e));
    arena_release(&a);
    memset(text, 'a', 5000);
    assert_null(parse(&a, text, &e));
    assert_int_equal(e.code, ERR_LIMIT);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits),
        cmocka_unit_test(says_what_is_wrong_and_where),
        cmocka_unit_test(is_limited),
    };
    return cmocka_run_group_tests_name("model/filter", tests, NULL, NULL);
}
