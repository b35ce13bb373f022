/* SPDX-License-Identifier: Apache-2.0 */
/* CPU seconds of an import alone, scan and XSpace writing: import_bench FILE. The XSpace goes to an unlinked
 * temporary file. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "format/chrome.h"

int main(int argc, char **argv)
{
    struct err e = {0};
    struct stat from, made;
    struct rusage used;
    const int in = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    const int out = open("/var/tmp", O_TMPFILE | O_RDWR, 0600);
    if (in < 0 || out < 0 || !chrome_import(in, out, &e) || fstat(in, &from) != 0 ||
        fstat(out, &made) != 0) {
        fprintf(stderr, "import_bench: %s\n", e.msg);
        return 1;
    }
    getrusage(RUSAGE_SELF, &used);
    const double user = (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec / 1e6;
    const double kernel = (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec / 1e6;
    printf("%.3f s user, %.3f s system, %.0f MB/s, %" PRIi64 " bytes of XSpace, peak %.0f MB\n",
           user, kernel, (double)from.st_size / 1e6 / (user + kernel), (int64_t)made.st_size,
           (double)used.ru_maxrss / 1024);
    return 0;
}
