/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the web UI, written by tools/embed-ui at build. */
#ifndef TACHO_SERVER_UI_FILES_H
#define TACHO_SERVER_UI_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ui_file {
    const char *path, *content_type; /* "/assets/index-3f2a.js" */
    const unsigned char *bytes;      /* gzip'ed */
    size_t n;
    bool is_hashed; /* the name changes with the content: may be cached for ever */
};
extern const struct ui_file ui_files[];
extern const uint32_t ui_file_count;

#endif
