/* SPDX-License-Identifier: Apache-2.0 */
/* A page of a listing and an error of an S3 server: whatever is in it, only objects with a key and an ETag. */
#include "base/limits.h"
#include "net/s3_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const str xml = {(const char *)data, n};
    struct s3_page page;
    struct s3_error said;
    struct err e = {0};
    struct arena a;
    arena_init(&a, "fuzz", LIMIT_ARENA_REQUEST_BYTES);
    if (s3_xml_list(xml, &a, &page, &e)) {
        must(!page.is_cut || page.next.n > 0);
        for (uint32_t i = 0; i < page.n; i++)
            must(page.items[i].key.n > 0 && page.items[i].etag.n > 0);
    } else {
        must(e.code == ERR_PARSE || e.code == ERR_LIMIT);
    }
    err_clear(&e);
    if (s3_xml_error(xml, &a, &said, &e))
        must(said.code.n > 0);
    else
        must(e.code == ERR_PARSE || e.code == ERR_LIMIT);
    arena_release(&a);
    return 0;
}
