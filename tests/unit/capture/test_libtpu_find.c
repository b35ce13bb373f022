/* SPDX-License-Identifier: Apache-2.0 */
/* Which of several libtpu a command would load: made Python folders under one root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "base/file.h"
#include "capture/libtpu_find.h"

static char root[] = "/tmp/tacho-libtpu-XXXXXX";

/* root/NAME, static until the next call. */
static const char *at(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void file(const char *name, mode_t mode)
{
    char path[512];
    struct err e = {0};
    snprintf(path, sizeof path, "%s", at(name));
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void)mkdir(path, 0755);
        *p = '/';
    }
    if (!file_replace(path, S(""), mode, &e))
        fail_msg("%s", e.msg);
}

static void finds(const char *command, const char *path, const char *version)
{
    struct libtpu_found f;
    assert_true(libtpu_find(command, &f));
    assert_string_equal(f.path, at(path));
    assert_string_equal(f.version, version);
}

static void order(void **state)
{
    (void)state;
    struct err e = {0};
    assert_non_null(mkdtemp(root));
    file("venv/bin/python", 0755);
    file("venv/lib/python3.12/site-packages/libtpu/libtpu.so", 0755);
    file("venv/lib/python3.12/site-packages/libtpu-0.0.17.dist-info/METADATA", 0644);
    file("other/bin/torchrun", 0755);
    file("other/bin/python3", 0755);
    file("other/lib64/python3.10/dist-packages/libtpu/libtpu.so", 0755);
    file("home/.local/lib/python3.11/site-packages/libtpu/libtpu.so", 0755);
    file("plain/libtpu.so", 0644);
    file("empty/bin/sh", 0755);
    unsetenv("TPU_LIBRARY_PATH");
    unsetenv("VIRTUAL_ENV");
    unsetenv("CONDA_PREFIX");
    setenv("PATH", "/nonexistent", 1);
    setenv("HOME", at("home"), 1);
    char command[512];
    snprintf(command, sizeof command, "%s", at("empty/bin/sh"));
    finds(command, "home/.local/lib/python3.11/site-packages/libtpu/libtpu.so", "");
    setenv("PATH", at("other/bin"), 1);
    finds("sh", "other/lib64/python3.10/dist-packages/libtpu/libtpu.so", "");
    setenv("VIRTUAL_ENV", at("venv"), 1);
    finds(NULL, "venv/lib/python3.12/site-packages/libtpu/libtpu.so", "0.0.17");
    finds("torchrun", "other/lib64/python3.10/dist-packages/libtpu/libtpu.so", "");
    setenv("TPU_LIBRARY_PATH", at("gone"), 1); /* says a file that is not there */
    snprintf(command, sizeof command, "%s", at("venv/bin/python"));
    finds(command, "venv/lib/python3.12/site-packages/libtpu/libtpu.so", "0.0.17");
    setenv("TPU_LIBRARY_PATH", at("plain/libtpu.so"), 1);
    finds(command, "plain/libtpu.so", "");
    assert_true(dir_remove(root, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
