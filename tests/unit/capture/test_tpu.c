/* SPDX-License-Identifier: Apache-2.0 */
/* libtpu's runtime from a made server, TPUs in a made /sys and /dev. Messages are spelled out byte by
 * byte from tpu_metric_service.proto. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>

#include "../grpc_fake.h"
#include "base/clock.h"
#include "base/file.h"
#include "capture/system_metrics.h"

/* Metric {attribute {key "device-id", value {int 0 | 1}}, gauge {double | int}} */
#define ATTRIBUTE(value)                                                                           \
    "\x0a\x0f\x0a\x09"                                                                             \
    "device-id"                                                                                    \
    "\x12\x02" value
#define DUTY_0                                                                                     \
    "\x1a\x1c" ATTRIBUTE("\x18\x00") "\x1a\x09\x09"                                                \
                                     "\0\0\0\0\0\0\x59\x40" /* 100.0 */
#define DUTY_1                                                                                     \
    "\x1a\x1c" ATTRIBUTE("\x18\x01") "\x1a\x09\x09"                                                \
                                     "\0\0\0\0\0\x40\x49\x40" /* 50.5 */
#define USED_0                                                                                     \
    "\x1a\x19" ATTRIBUTE("\x18\x00") "\x1a\x06\x10"                                                \
                                     "\x80\x80\x80\x80\x40"        /* 16 GiB */
#define USED_1 "\x1a\x15" ATTRIBUTE("\x18\x01") "\x1a\x02\x10\x00" /* a measured 0 */
#define TOTAL_0                                                                                    \
    "\x1a\x1a" ATTRIBUTE("\x18\x00") "\x1a\x07\x10"                                                \
                                     "\x80\x80\x80\x80\x80\x01" /* 32 GiB */

static const char duty[] = "\0\0\0\0\x3e\x0a\x3c" DUTY_0 DUTY_1;
static const char used[] = "\0\0\0\0\x34\x0a\x32" USED_0 USED_1;
static const char total[] = "\0\0\0\0\x1e\x0a\x1c" TOTAL_0;
#define ANSWER(text)                                                                               \
    {                                                                                              \
        .data = text, .n = sizeof text - 1, .status = "0"                                          \
    }

static struct grpc_fake_answer runtime(const void *ctx, str request)
{
    const char *const mode = ctx;
    if (strcmp(mode, "silent") == 0)
        return (struct grpc_fake_answer){.silent = true};
    if (strcmp(mode, "stranger") == 0)
        return (struct grpc_fake_answer){.status = "12"};
    if (strcmp(mode, "garbage") == 0)
        return (struct grpc_fake_answer){.data = "\0\0\0\0\2\x0a\x7f", .n = 7, .status = "0"};
    if (str_eq(request, S("\x0a\x28tpu.runtime.tensorcore.dutycycle.percent")))
        return (struct grpc_fake_answer)ANSWER(duty);
    if (str_eq(request, S("\x0a\x22tpu.runtime.hbm.memory.usage.bytes")))
        return (struct grpc_fake_answer)ANSWER(used);
    if (str_eq(request, S("\x0a\x22tpu.runtime.hbm.memory.total.bytes")))
        return (struct grpc_fake_answer)ANSWER(total);
    return (struct grpc_fake_answer){.status = "3"};
}

static const struct host_roots nowhere = {"/nonexistent", "/nonexistent"};

static void start(struct grpc_fake *f, const char *mode, struct tpu *t)
{
    char port[16];
    assert_true(grpc_fake_start(f, runtime, mode));
    snprintf(port, sizeof port, "%u", f->port);
    tpu_open(t, &nowhere, port);
    assert_int_equal(t->n_ports, 1);
    if (strcmp(mode, "silent") != 0)
        t->wait_ms = 10000;
}

static void stop(struct grpc_fake *f, struct tpu *t)
{
    tpu_close(t);
    grpc_fake_stop(f);
}

static void answers(void **state)
{
    (void)state;
    struct grpc_fake f;
    struct tpu t;
    struct tpu_sample s;
    start(&f, "answer", &t);
    tpu_sample(&t, 0, &s);
    assert_int_equal(f.n_calls, 3);
    assert_int_equal(s.duty_cycle_percent.n, 2);
    assert_true(s.duty_cycle_percent.of[0].device == 0 && s.duty_cycle_percent.of[0].value == 100);
    assert_true(s.duty_cycle_percent.of[1].device == 1 && s.duty_cycle_percent.of[1].value == 50.5);
    assert_int_equal(s.memory_used_bytes.n, 2);
    assert_true(s.memory_used_bytes.of[0].value == 17179869184.0);
    assert_true(s.memory_used_bytes.of[1].value == 0);
    assert_int_equal(s.memory_total_bytes.n, 1);
    assert_true(s.memory_total_bytes.of[0].value == 34359738368.0);
    tpu_sample(&t, 1, &s); /* the total is known by now */
    assert_int_equal(f.n_calls, 5);
    assert_int_equal(s.memory_total_bytes.n, 0);
    assert_int_equal(s.memory_used_bytes.n, 2);
    stop(&f, &t);
}

/* A port that is no help is asked after 1, 2, 4 … 64 s, and nothing is measured. */
static void pauses(const char *mode, int n_calls_a_try)
{
    struct grpc_fake f;
    struct tpu t;
    struct tpu_sample s;
    int n_tries = 0;
    start(&f, mode, &t);
    const uint64_t before = clock_process_cpu_ns();
    for (uint64_t second = 0; second <= 200; second++) {
        tpu_sample(&t, second * NS_PER_S, &s);
        assert_int_equal(s.duty_cycle_percent.n + s.memory_used_bytes.n + s.memory_total_bytes.n,
                         0);
        n_tries += second == 0 || second == 1 || second == 3 || second == 7 || second == 15 ||
                   second == 31 || second == 63 || second == 127 || second == 191;
        assert_int_equal(f.n_calls, n_tries * n_calls_a_try);
    }
    /* 0.2 % of a core in 200 s, libcurl's start and the server's part included. */
    assert_true(clock_process_cpu_ns() - before < 400 * NS_PER_MS);
    assert_int_equal(n_tries, 9);
    stop(&f, &t);
}

static void no_help(void **state)
{
    (void)state;
    pauses("silent", 1);
    pauses("garbage", 1);
    pauses("stranger", 3);
}

/* One that hangs leaves time for the one behind it; then it is not asked. */
static void two_ports(void **state)
{
    (void)state;
    struct grpc_fake silent, good;
    struct tpu t;
    struct tpu_sample s;
    char ports[64];
    assert_true(grpc_fake_start(&silent, runtime, "silent"));
    assert_true(grpc_fake_start(&good, runtime, "answer"));
    snprintf(ports, sizeof ports, "%u, 0,70000,x,%u", silent.port, good.port);
    tpu_open(&t, &nowhere, ports);
    assert_int_equal(t.n_ports, 2);
    t.wait_ms = 3000;
    tpu_sample(&t, 0, &s);
    tpu_sample(&t, 1, &s);
    assert_int_equal(silent.n_calls, 1);
    assert_int_equal(good.n_calls, 5);
    assert_int_equal(s.duty_cycle_percent.n, 2);
    tpu_close(&t);
    grpc_fake_stop(&silent);
    grpc_fake_stop(&good);
}

static double find(const struct system_sample *s, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(s[i].name, name) == 0)
            return s[i].value;
    return NAN;
}

static void metrics(void **state)
{
    (void)state;
    struct grpc_fake f;
    struct system_metrics m;
    struct system_sample s[SYSTEM_METRICS_MAX];
    char port[16];
    assert_true(grpc_fake_start(&f, runtime, "answer"));
    snprintf(port, sizeof port, "%u", f.port);
    setenv("TPU_RUNTIME_METRICS_PORTS", port, 1);
    system_metrics_open(&m, &nowhere);
    m.tpu.wait_ms = 10000;
    const size_t n = system_metrics_sample(&m, 0, s, SYSTEM_METRICS_MAX);
    system_metrics_close(&m);
    unsetenv("TPU_RUNTIME_METRICS_PORTS");
    grpc_fake_stop(&f);
    assert_true(find(s, n, "tpu_duty_cycle_percent{device=\"1\"}") == 50.5);
    assert_true(find(s, n, "tpu_memory_used_bytes{device=\"1\"}") == 0);
    assert_true(find(s, n, "tpu_memory_total_bytes{device=\"0\"}") == 34359738368.0);
    assert_true(isnan(find(s, n, "tpu_memory_total_bytes{device=\"1\"}")));
}

static char root[] = "/tmp/tacho-tpu-XXXXXX";

static void file(const char *folder, const char *name, const char *text)
{
    char path[512];
    struct err e = {0};
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void)mkdir(path, 0755);
        *p = '/';
    }
    if (!file_replace(path, str_from(text), 0644, &e))
        fail_msg("%s", e.msg);
}

static void pci(const char *address, const char *vendor, const char *device, const char *class)
{
    char folder[128];
    snprintf(folder, sizeof folder, "bus/pci/devices/%s", address);
    file(folder, "vendor", vendor);
    file(folder, "device", device);
    file(folder, "class", class);
}

static uint32_t n_ports_here(void)
{
    const struct host_roots at = {root, root};
    struct tpu t;
    tpu_open(&t, &at, "");
    const uint32_t n = t.n_ports;
    assert_true(n == 0 || t.port[0].number == 8431);
    tpu_close(&t);
    return n;
}

/* The machine's accelerators of a kind "tpu", as facts; the caller frees. */
static json_t *tpu_facts(void)
{
    const struct host_roots at = {root, root};
    struct buf b;
    struct err e = {0};
    buf_init(&b, 1 << 20);
    assert_true(host_facts_text(&at, NULL, &b, &e));
    json_t *o = json_loadb(b.p, b.n, 0, NULL), *list = json_pack("[]"), *row;
    size_t i;
    json_array_foreach(json_object_get(o, "accelerators"), i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "kind")), "tpu") == 0)
            json_array_append(list, row);
    }
    json_decref(o);
    buf_release(&b);
    return list;
}

static void presence(void **state)
{
    (void)state;
    struct err e = {0};
    assert_non_null(mkdtemp(root));
    assert_int_equal(n_ports_here(), 0);
    file("vfio", "0", ""); /* a card handed on, and Google's network card and disk: no TPU */
    pci("0000:00:01.0", "0x1ae0\n", "0x0042\n", "0x020000\n");
    pci("0000:00:02.0", "0x1ae0\n", "0x001f\n", "0x010802\n");
    pci("0000:00:03.0", "0x10de\n", "0x2330\n", "0x030200\n");
    assert_int_equal(n_ports_here(), 0);
    pci("0000:00:05.0", "0x1ae0\n", "0x0063\n", "0xff0000\n");
    pci("0000:00:04.0", "0x1ae0\n", "0xabcd\n", "0x120000\n");
    assert_int_equal(n_ports_here(), 1);
    json_t *list = tpu_facts();
    assert_int_equal(json_array_size(list), 2);
    const json_t *row = json_array_get(list, 0);
    assert_string_equal(json_string_value(json_object_get(row, "pci_address")), "0000:00:04.0");
    assert_null(json_object_get(row, "name")); /* a chip that we do not know has no name */
    row = json_array_get(list, 1);
    assert_string_equal(json_string_value(json_object_get(row, "name")), "TPU v5e");
    json_decref(list);
    assert_true(dir_remove(root, &e));
    assert_int_equal(mkdir(root, 0700), 0);
    file("accel", "accel0", ""); /* the kernel's folder for accelerators of any maker */
    assert_int_equal(n_ports_here(), 0);
    file(".", "accel0", "");
    assert_int_equal(n_ports_here(), 1);
    list = tpu_facts();
    assert_int_equal(json_array_size(list), 1);
    assert_non_null(json_object_get(json_array_get(list, 0), "path"));
    json_decref(list);
    assert_true(dir_remove(root, &e));
}

static void reads(const char *bytes, size_t size, uint32_t n)
{
    struct tpu_values v = {0};
    struct err e = {0};
    if (!tpu_metric_read((str){bytes, size}, &v, &e))
        fail_msg("%s", e.msg);
    assert_int_equal(v.n, n);
}
#define READS(bytes, n) reads(bytes, sizeof(bytes) - 1, n)

static void messages(void **state)
{
    (void)state;
    struct tpu_values v = {0};
    struct err e = {0};
    READS("", 0);
    READS("\x0a\x1e" DUTY_0, 1);
    READS("\x0a\x3c" DUTY_0 DUTY_0, 1); /* a device twice */
    READS("\x0a\x1b\x1a\x19\x0a\x0c\x0a\x06"
          "device"
          "\x12\x02\x18\x00\x1a\x09\x09"
          "\0\0\0\0\0\0\xf8\x7f",
          0);                                                              /* NaN */
    READS("\x0a\x17\x1a\x15" ATTRIBUTE("\x18\x00") "\x1a\x02\x18\x01", 0); /* a gauge of text */
    READS("\x0a\x0d\x1a\x0b\x1a\x09\x09"
          "\0\0\0\0\0\0\x59\x40",
          0);                                           /* no device */
    READS("\x0a\x13\x1a\x11" ATTRIBUTE("\x18\x00"), 0); /* no value */
    READS("\x0a\x18\x1a\x16\x0a\x10\x0a\x09"
          "device-id"
          "\x12\x03\x0a\x01"
          "7"
          "\x1a\x02\x10\x05",
          1);
    READS("\x0a\x18\x1a\x16\x0a\x10\x0a\x09"
          "device-id"
          "\x12\x03\x0a\x01"
          "x"
          "\x1a\x02\x10\x05",
          0);
    READS("\x0a\x20\x1a\x1e" ATTRIBUTE("\x18\x00") "\x1a\x0b\x10"
                                                   "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
          0); /* -1 byte in use */
    assert_true(tpu_metric_read((str){duty + 5, sizeof duty - 6}, &v, &e));
    assert_false(tpu_metric_read(S("\x0a\x1e" DUTY_0 "\x0a\x7f"), &v, &e));
    assert_int_equal(e.code, ERR_PARSE);
    assert_non_null(strstr(e.msg, "byte 33"));
    assert_int_equal(v.n, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers), cmocka_unit_test(no_help),  cmocka_unit_test(two_ports),
        cmocka_unit_test(metrics), cmocka_unit_test(messages), cmocka_unit_test(presence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
