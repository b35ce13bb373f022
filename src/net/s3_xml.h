/* SPDX-License-Identifier: Apache-2.0 */
/* The two XML answers of an S3 server that are read: a page of ListObjectsV2, and an error.
 * Only what those hold is taken: elements, text, the five named entities and numeric ones. A document type,
 * CDATA or deeper nesting than S3 has is refused, so that nothing is expanded or fetched.
 * Source: Amazon S3 API reference, ListObjectsV2 and "Error responses"; XML 1.0, 2.4 and 4.1. Thread: any. */
#ifndef TACHO_NET_S3_XML_H
#define TACHO_NET_S3_XML_H

#include "base/arena.h"

struct s3_listed {
    str key;
    str etag; /* without its quotes */
    uint64_t size_bytes;
    int64_t modified_ns; /* wall */
};

struct s3_page {
    struct s3_listed *items;
    uint32_t n, capacity;
    bool is_cut; /* there are more: ask on from `next` */
    str next;
};

struct s3_error {
    str code, message; /* "NoSuchKey", a sentence of the server's */
    str region;        /* where the bucket is, of some errors */
};

/* Everything lives in a. ERR_PARSE with the byte. */
MUST_CHECK bool s3_xml_list(str xml, struct arena *a, struct s3_page *out, struct err *e);
MUST_CHECK bool s3_xml_error(str xml, struct arena *a, struct s3_error *out, struct err *e);

#endif
