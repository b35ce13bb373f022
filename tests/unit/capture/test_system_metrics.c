/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "capture/host_facts.h"
#include "capture/system_metrics.h"

static double find(const struct system_sample *s, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(s[i].name, name) == 0)
            return s[i].value;
    return NAN;
}

static void test_sample(void **state)
{
    (void)state;
    struct system_metrics m;
    struct system_sample s[SYSTEM_METRICS_MAX];
    system_metrics_open(&m, &host_roots_here);
    size_t n = system_metrics_sample(&m, getpid(), s, SYSTEM_METRICS_MAX);
    assert_true(isnan(find(s, n, "cpu_percent"))); /* a rate needs two samples */
    assert_true(find(s, n, "command_rss_bytes") > 65536);
    assert_true(find(s, n, "memory_available_bytes") > 0);
    usleep(50000);
    n = system_metrics_sample(&m, getpid(), s, SYSTEM_METRICS_MAX);
    const double cpu = find(s, n, "cpu_percent");
    assert_true(isnan(cpu) || (cpu >= 0 && cpu <= 100));
    assert_int_equal(system_metrics_sample(&m, getpid(), s, 2), 2);
    system_metrics_close(&m);
}

/* A sample every 10 s at 0.2 % of a core may cost 20 ms. */
static void test_cost(void **state)
{
    (void)state;
    struct system_metrics m;
    struct system_sample s[SYSTEM_METRICS_MAX];
    system_metrics_open(&m, &host_roots_here);
    const uint64_t before = clock_thread_cpu_ns();
    for (int i = 0; i < 20; i++)
        (void)system_metrics_sample(&m, getpid(), s, SYSTEM_METRICS_MAX);
    assert_true((clock_thread_cpu_ns() - before) / 20 < 20 * NS_PER_MS);
    system_metrics_close(&m);
}

static void test_facts(void **state)
{
    (void)state;
    struct buf b;
    struct err e = {0};
    buf_init(&b, 1 << 20);
    assert_true(host_facts_text(&host_roots_here, NULL, &b, &e));
    json_t *o = json_loadb(b.p, b.n, 0, NULL);
    assert_non_null(json_string_value(json_object_get(o, "kernel")));
    assert_true(json_integer_value(json_object_get(o, "cpu_count")) > 0);
    assert_true(json_is_array(json_object_get(o, "accelerators")));
    json_decref(o);
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sample), cmocka_unit_test(test_cost),
                                       cmocka_unit_test(test_facts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
