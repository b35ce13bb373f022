/* SPDX-License-Identifier: Apache-2.0 */
#include "format/import.h"

#include "base/file.h"
#include "format/chrome.h"
#include "format/input.h"
#include "format/json_scan.h"
#include "format/perfetto.h"
#include "format/pprof.h"
#include "format/xspace.h"

#define HEAD_BYTES 4096

enum foreign { FOREIGN_NONE = 0, FOREIGN_JSON, FOREIGN_PPROF, FOREIGN_PERFETTO };

static enum foreign foreign_of(str head)
{
    if (json_scan_looks_like(head))
        return FOREIGN_JSON;
    if (pprof_looks_like(head))
        return FOREIGN_PPROF;
    return perfetto_looks_like(head) ? FOREIGN_PERFETTO : FOREIGN_NONE;
}

static bool is_gzip(str head)
{
    return head.n >= 2 && (uint8_t)head.p[0] == 0x1f && (uint8_t)head.p[1] == 0x8b;
}

bool import_looks_like(str head)
{
    return is_gzip(head) || foreign_of(head) != FOREIGN_NONE;
}

/* The first bytes of the content. */
static bool read_head(int fd, char *bytes, size_t room, str *head, struct err *e)
{
    struct input in;
    size_t n = 1, have = 0;
    bool ok = input_open(&in, fd, e);
    while (ok && n > 0 && have < room) {
        ok = input_read(&in, bytes + have, room - have, &n, e);
        have += ok ? n : 0;
    }
    input_release(&in);
    *head = (str){bytes, have};
    return ok || have > 0; /* damage further on is the parser's to tell */
}

static bool gunzip(int from_fd, int to_fd, struct err *e)
{
    struct input in;
    char bytes[65536];
    size_t n = 1;
    bool ok = input_open(&in, from_fd, e);
    while (ok && n > 0)
        ok = input_read(&in, bytes, sizeof bytes, &n, e) && file_write_all(to_fd, bytes, n, e);
    input_release(&in);
    return ok;
}

bool import_run(int from_fd, int to_fd, struct err *e)
{
    char bytes[HEAD_BYTES];
    str head;
    if (!read_head(from_fd, bytes, sizeof bytes, &head, e))
        return false;
    err_clear(e);
    switch (foreign_of(head)) {
    case FOREIGN_JSON:
        return chrome_import(from_fd, to_fd, e);
    case FOREIGN_PPROF:
        return pprof_import(from_fd, to_fd, e);
    case FOREIGN_PERFETTO:
        return perfetto_import(from_fd, to_fd, e);
    case FOREIGN_NONE:
        break;
    }
    if (xspace_looks_like(head))
        return gunzip(from_fd, to_fd, e);
    return err_at(e, ERR_PARSE, 0,
                  "the gzip holds no profile: neither JSON, pprof, Perfetto nor an "
                  "XSpace");
}
