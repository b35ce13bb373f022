/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds each file of a folder to a fuzz target: replay_X FOLDER. */
#include "base/file.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    struct arena a;
    struct err e;
    str *names, content;
    size_t n;
    arena_init(&a, "corpus", 0);
    if (argc != 2 || !dir_list(&a, argv[1], &names, &n, &e)) {
        fprintf(stderr, "usage: replay_X FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < n; i++) {
        const char *path = path_join(&a, argv[1], names[i]);
        if (path == NULL || !file_read(&a, path, LIMIT_JOURNAL_SIDE_BYTES, &content, &e)) {
            fprintf(stderr, "replay: %s\n", e.msg);
            return 1;
        }
        /* An exact heap copy, so that the sanitizer sees a read past its end. */
        uint8_t *copy = malloc(content.n > 0 ? content.n : 1);
        if (copy == NULL)
            return 1;
        memcpy(copy, content.p, content.n);
        LLVMFuzzerTestOneInput(copy, content.n);
        free(copy);
    }
    printf("%zu inputs\n", n);
    arena_release(&a);
    return 0;
}
