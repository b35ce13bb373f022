/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/libtpu_find.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* False when it does not fit: half a path is another path. */
static bool put_path(char *out, size_t out_size, str dir, const char *below)
{
    const int n = snprintf(out, out_size, "%.*s%s", STR_ARG(dir), below);
    return n > 0 && (size_t)n < out_size;
}

/* The file that execvp would start. */
static bool find_program(const char *name, char *out, size_t out_size)
{
    str dir, rest = str_from(getenv("PATH"));
    char below[512];
    if (strchr(name, '/') != NULL)
        return put_path(out, out_size, str_from(name), "");
    if ((size_t)snprintf(below, sizeof below, "/%s", name) >= sizeof below)
        return false;
    while (str_cut(rest, ':', &dir, &rest))
        if (put_path(out, out_size, dir.n == 0 ? S(".") : dir, below) && access(out, X_OK) == 0)
            return true;
    return false;
}

static str without_last(str path)
{
    while (path.n > 0 && path.p[path.n - 1] != '/')
        path.n--;
    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    return path;
}

/* "…/libtpu-0.0.17.dist-info" -> "0.0.17" */
static void take_version(const char *site, char *out, size_t out_size)
{
    glob_t found = {0};
    char pattern[1024];
    out[0] = '\0';
    if (put_path(pattern, sizeof pattern, str_from(site), "/libtpu-*.dist-info") &&
        glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        const str name = str_from(strrchr(found.gl_pathv[0], '/') + strlen("/libtpu-"));
        const size_t n = name.n - strlen(".dist-info");
        if (n < out_size)
            snprintf(out, out_size, "%.*s", (int)n, name.p);
    }
    globfree(&found);
}

static bool in_site(const char *site, struct libtpu_found *out)
{
    if (!put_path(out->path, sizeof out->path, str_from(site), "/libtpu/libtpu.so") ||
        access(out->path, R_OK) != 0)
        return false;
    take_version(site, out->version, sizeof out->version);
    return true;
}

static bool in_prefix(str prefix, struct libtpu_found *out)
{
    glob_t found = {0};
    char pattern[1024];
    bool here = false;
    if (prefix.n > 0 &&
        put_path(pattern, sizeof pattern, prefix, "/{lib,lib64}/python3*/{site,dist}-packages") &&
        glob(pattern, GLOB_BRACE | GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && !here; i++)
            here = in_site(found.gl_pathv[i], out);
    globfree(&found);
    return here;
}

static bool in_prefix_of(const char *program, struct libtpu_found *out)
{
    char path[1024];
    return program != NULL && find_program(program, path, sizeof path) &&
           in_prefix(without_last(without_last(str_from(path))), out);
}

static bool is_file(const char *path, struct libtpu_found *out)
{
    return path != NULL && put_path(out->path, sizeof out->path, str_from(path), "") &&
           access(path, R_OK) == 0;
}

bool libtpu_find(const char *command, struct libtpu_found *out)
{
    char user[1024];
    *out = (struct libtpu_found){0};
    if (is_file(getenv("TPU_LIBRARY_PATH"), out) || in_prefix_of(command, out) ||
        in_prefix(str_from(getenv("VIRTUAL_ENV")), out) ||
        in_prefix(str_from(getenv("CONDA_PREFIX")), out) || in_prefix_of("python3", out) ||
        (put_path(user, sizeof user, str_from(getenv("HOME")), "/.local") &&
         in_prefix(str_from(user), out)) ||
        in_prefix(S("/usr/local"), out) || in_prefix(S("/usr"), out) ||
        is_file("/lib/libtpu.so", out) || is_file("/usr/lib/libtpu.so", out))
        return true;
    *out = (struct libtpu_found){0};
    return false;
}
