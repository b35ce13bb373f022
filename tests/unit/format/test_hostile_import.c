/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of other formats (tests/fuzz/corpus) cut at every byte and with flipped bits: a reason, or an XSpace that our own
 * reader takes. TACHO_LONG: more trials. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/limits.h"
#include "format/chrome.h"
#include "format/perfetto.h"
#include "format/pprof.h"
#include "format/xspace.h"

enum { FLIPS = 500, FLIPS_LONG = 20000, CUTS = 3000 };

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

typedef bool (*import_fn)(int from_fd, int to_fd, struct err *e);

static bool judge(import_fn import, str bytes)
{
    struct err e = {0};
    const int from = memfd_create("from", MFD_CLOEXEC), to = memfd_create("to", MFD_CLOEXEC);
    assert_true(from >= 0 && to >= 0 && file_write_all(from, bytes.p, bytes.n, &e));
    const bool ok = import(from, to, &e);
    close(from);
    if (!ok) {
        assert_true(e.code == ERR_PARSE || e.code == ERR_LIMIT);
        assert_true(e.msg[0] != '\0' && strchr(e.msg, '\n') == NULL);
        close(to);
        return false;
    }
    assert_int_equal(e.code, ERR_NONE);
    const struct xspace_options o = {.file = S("t"), .spill_fd = -1, .index_fd = -1};
    struct trace *t = xspace_load(to, &o, &e);
    assert_non_null(t);
    trace_free(t);
    return true;
}

static void cut(import_fn import, str whole)
{
    const size_t step = whole.n / CUTS + 1;
    for (size_t n = 0; n < whole.n; n += step)
        (void)judge(import, str_sub(whole, 0, n));
}

static size_t flip(import_fn import, str whole, size_t n_trials)
{
    size_t n_taken = 0;
    for (size_t i = 0; i < n_trials; i++) {
        uint64_t random = i;
        char *copy = malloc(whole.n);
        memcpy(copy, whole.p, whole.n);
        for (uint64_t k = next_random(&random) % 8 + 1; k > 0; k--) {
            const size_t at = (size_t)(next_random(&random) % whole.n);
            copy[at] = (char)(copy[at] ^ (1 << next_random(&random) % 8));
        }
        n_taken += judge(import, (str){copy, whole.n});
        free(copy);
    }
    return n_taken;
}

static void try_folder(import_fn import, const char *folder)
{
    struct arena a;
    struct err e = {0};
    str *names, whole;
    size_t n, n_taken = 0, n_trials = 0;
    const char *tests = getenv("TACHO_TESTS");
    if (tests == NULL)
        skip();
    arena_init(&a, "corpus", 0);
    const char *path = path_join(&a, tests, str_from(folder));
    assert_true(path != NULL && dir_list(&a, path, &names, &n, &e) && n > 0);
    for (size_t i = 0; i < n; i++) {
        const char *file = path_join(&a, path, names[i]);
        assert_true(file != NULL && file_read(&a, file, 1 << 20, &whole, &e));
        if (whole.n == 0)
            continue;
        const size_t trials = getenv("TACHO_LONG") != NULL ? FLIPS_LONG : FLIPS;
        cut(import, whole);
        n_taken += flip(import, whole, trials);
        n_trials += trials;
    }
    assert_true(n_taken > 0 && n_taken < n_trials);
    arena_release(&a);
}

static void test_json(void **state)
{
    (void)state;
    try_folder(chrome_import, "fuzz/corpus/chrome");
}

static void test_perfetto(void **state)
{
    (void)state;
    try_folder(perfetto_import, "fuzz/corpus/perfetto");
}

static void test_pprof(void **state)
{
    (void)state;
    try_folder(pprof_import, "fuzz/corpus/pprof");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_perfetto),
        cmocka_unit_test(test_pprof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
