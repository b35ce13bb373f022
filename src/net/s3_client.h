/* SPDX-License-Identifier: Apache-2.0 */
/* Reading from an S3-compatible store: what an object is, a range of its bytes, what lies below a prefix.
 *
 *     if (!s3_name_parse("s3://bucket/a/b.xplane.pb", &name, e)) ...
 *     if (!s3_head(&access, &name, &object, e)) ...
 *     const struct s3_range range = {.from = 0, .n_bytes = 4096, .etag = object.etag, .of_bytes = object.size_bytes};
 *     if (!s3_get(&access, &name, &range, take, ctx, e)) ...
 *
 * Requests are in path style and signed (AWS signature 4); without a key they go unsigned. What may pass
 * (5xx, 429, a connection that breaks or stalls) is tried again with growing pauses; then the error is
 * one line, which holds neither key nor signature. Nothing is followed to another address.
 * Errors: NOT_FOUND (no bucket, no key), UNAUTHORIZED (key, signature, clock), DENIED, CONFLICT (the object is
 * not the one of that ETag), USAGE (region, address), UNAVAILABLE, UNREACHABLE, PARSE (not S3), LIMIT.
 * Thread: any. */
#ifndef TACHO_NET_S3_CLIENT_H
#define TACHO_NET_S3_CLIENT_H

#include "net/s3_xml.h"

#define S3_ETAG_MAX 128

struct s3_access {        /* borrowed text */
    const char *endpoint; /* http[s]://host[:port], without a slash at its end */
    const char *region;
    const char *key, *secret, *session_token; /* key "": unsigned; session_token "": none */
    const char *ca_file; /* certificates that https is believed by; NULL: the system's */
    uint64_t stall_ms;   /* without a byte: tried again; 1 s at least, 0 = 30 s */
    unsigned n_tries;    /* of one request; 0 = 6 */
};

struct s3_name {
    str bucket, key; /* the key as it is, nothing encoded; may be empty */
};

struct s3_object {
    uint64_t size_bytes;
    int64_t modified_ns;    /* wall; 0 when it is not said */
    char etag[S3_ETAG_MAX]; /* without its quotes */
};

struct s3_range {
    uint64_t from, n_bytes; /* n_bytes > 0 */
    const char *etag;       /* of the object that it is a range of */
    uint64_t of_bytes;      /* and its size */
};

/* Takes the next bytes of a range, which begin at `offset` of it: 0 again when it is tried again. */
typedef bool (*s3_take_fn)(void *ctx, uint64_t offset, const char *p, size_t n, struct err *e);

bool s3_is_address(const char *word); /* begins with s3:// */
/* Into the word. USAGE: it is no address of a bucket or an object. */
MUST_CHECK bool s3_name_parse(const char *word, struct s3_name *out, struct err *e);
/* USAGE: the endpoint is no address, or has a user, a path or a query; or the region is none. */
MUST_CHECK bool s3_access_check(const struct s3_access *s, struct err *e);

MUST_CHECK bool s3_head(const struct s3_access *s, const struct s3_name *name,
                        struct s3_object *out, struct err *e);
/* All of the range, exactly, or false. may_go_on (NULL: always) is asked about once a second. */
MUST_CHECK bool s3_get(const struct s3_access *s, const struct s3_name *name,
                       const struct s3_range *range, s3_take_fn take, void *ctx,
                       bool (*may_go_on)(void *ctx), struct err *e);
/* One page of what lies below name->key, in a; `after` is the `next` of the page before, empty at first. */
MUST_CHECK bool s3_list(const struct s3_access *s, const struct s3_name *name, str after,
                        struct arena *a, struct s3_page *out, struct err *e);

#endif
