/* SPDX-License-Identifier: Apache-2.0 */
/* Which session of a listing is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "jobs/s3_session.h"

#define OBJECT(name, at)                                                                           \
    {                                                                                              \
        .key = STR_INIT(name), .etag = STR_INIT("e"), .modified_ns = at                            \
    }
#define CHOOSE(items, prefix, out, e)                                                              \
    s3_session_choose(items, sizeof items / sizeof *items, S(prefix), out, e)

static void the_prefix_itself_comes_first(void **state)
{
    struct s3_listed all[] = {OBJECT("p/new/h.xplane.pb", 99), OBJECT("p/b.xplane.pb", 1),
                              OBJECT("p/a.xplane.pb", 2), OBJECT("p/a.trace.json.gz", 2)};
    struct s3_session s;
    struct err e = {0};
    (void)state;
    assert_true(CHOOSE(all, "p/", &s, &e));
    assert_true(str_eq(s.folder, S("p/")));
    assert_int_equal(s.n_files, 2);
    assert_true(str_eq(s.files[0].key, S("p/a.xplane.pb")));
    assert_true(str_eq(s.files[1].key, S("p/b.xplane.pb")));
}

static void stamps_count_before_times(void **state)
{
    struct s3_listed all[] = {OBJECT("r/2026_02_01_00_00_00/h.xplane.pb", 1),
                              OBJECT("r/2026_01_31_23_59_59/h.xplane.pb", 99)};
    struct s3_listed named[] = {OBJECT("r/b/h.xplane.pb", 1), OBJECT("r/a/h.xplane.pb", 99),
                                OBJECT("r/a/old.xplane.pb", 0)};
    struct s3_session s;
    struct err e = {0};
    (void)state;
    assert_true(CHOOSE(all, "r/", &s, &e) && s.n_files == 1);
    assert_true(str_eq(s.folder, S("r/2026_02_01_00_00_00/")));
    assert_true(CHOOSE(named, "r/", &s, &e) && s.n_files == 2);
    assert_true(str_eq(s.folder, S("r/a/")));
}

/* A folder's own files and those of folders below it stand mixed in a listing. */
static void folders_are_told_apart(void **state)
{
    struct s3_listed all[] = {OBJECT("r/a/1.xplane.pb", 5), OBJECT("r/a/5/x.xplane.pb", 1),
                              OBJECT("r/a/9.xplane.pb", 2), OBJECT("r/b.json", 50)};
    struct s3_session s;
    struct err e = {0};
    (void)state;
    assert_true(CHOOSE(all, "", &s, &e));
    assert_true(str_eq(s.folder, S("r/a/")));
    assert_int_equal(s.n_files, 2);
}

static void other_formats_only_without_xspaces(void **state)
{
    struct s3_listed all[] = {OBJECT("r/new/t.pftrace", 99), OBJECT("r/old/h.xplane.pb", 1)};
    struct s3_listed traces[] = {OBJECT("t/0.json.gz", 1), OBJECT("t/1.pt.trace.json", 1),
                                 OBJECT("t/report.json", 1), OBJECT("t/checkpoint", 1)};
    struct s3_listed none[] = {OBJECT("t/report.json", 1), OBJECT("t/", 1), OBJECT("t/x.pb", 1)};
    struct s3_session s;
    struct err e = {0};
    (void)state;
    assert_true(CHOOSE(all, "r/", &s, &e) && str_eq(s.folder, S("r/old/")));
    assert_true(CHOOSE(traces, "t/", &s, &e));
    assert_int_equal(s.n_files, 2);
    assert_false(CHOOSE(none, "t/", &s, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_prefix_itself_comes_first),
        cmocka_unit_test(stamps_count_before_times),
        cmocka_unit_test(folders_are_told_apart),
        cmocka_unit_test(other_formats_only_without_xspaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
