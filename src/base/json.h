/* SPDX-License-Identifier: Apache-2.0 */
/* Streaming JSON writer: no tree, no allocation but the sink's. Doubles print the shortest text
 * that reads back the same; NaN and infinities print null and are counted in `n_not_finite`.
 * Integers beyond 2^53 print as they are (exact for readers with 64-bit integers).
 *
 *     struct json j;
 *     json_init_buf(&j, &buf);
 *     json_object(&j);
 *       json_key(&j, "run"); json_str(&j, id);
 *       json_key(&j, "steps"); json_array(&j); json_u64(&j, 7); json_end(&j);
 *     json_end(&j);
 *     if (!json_done(&j, e)) return false;
 *
 * Nesting errors are must(). A failing sink makes all later calls no-ops; json_done reports it.
 * Strings that are not UTF-8 are repaired with U+FFFD. */
#ifndef TACHO_BASE_JSON_H
#define TACHO_BASE_JSON_H

#include "base/buf.h"
#include "base/json_f64.h"

#define JSON_DEPTH_MAX 64

typedef bool (*json_sink)(void *ctx, const char *p, size_t n);

struct json {
    json_sink sink;
    void *ctx;
    bool failed;           /* the sink refused */
    bool pretty;           /* two-space indentation and a final newline */
    uint32_t depth;        /* open objects and arrays */
    uint64_t n_not_finite; /* numbers written as null */
    uint8_t state[JSON_DEPTH_MAX];
    size_t n_out;   /* bytes in out */
    char out[4096]; /* gathered before the sink is called */
};

void json_init(struct json *j, json_sink sink, void *ctx);
void json_init_buf(struct json *j, struct buf *b);
void json_init_fd(struct json *j, int fd);

void json_object(struct json *j);
void json_array(struct json *j);
void json_end(struct json *j); /* closes the innermost object or array */
void json_key(struct json *j, const char *key);
void json_key_str(struct json *j, str key);
void json_str(struct json *j, str s);
void json_cstr(struct json *j, const char *s); /* NULL prints null */
void json_strf(struct json *j, const char *format, ...) PRINTF_LIKE(2, 3);
void json_i64(struct json *j, int64_t v);
void json_u64(struct json *j, uint64_t v);
void json_f64(struct json *j, double v);
void json_bool(struct json *j, bool v);
void json_null(struct json *j);
/* Text that is already JSON, unchecked. */
void json_raw(struct json *j, str text);
/* A decimal number of `digits_after` places from an integer: json_fixed(j, 1500, 3) prints 1.5. */
void json_fixed(struct json *j, int64_t v, unsigned digits_after);

/* key and value in one call */
void json_kstr(struct json *j, const char *key, str v);
void json_kstrs(struct json *j, const char *key, const str *items, size_t n); /* an array */
void json_kcstr(struct json *j, const char *key, const char *v);
void json_ki64(struct json *j, const char *key, int64_t v);
void json_ku64(struct json *j, const char *key, uint64_t v);
void json_kf64(struct json *j, const char *key, double v);
void json_kbool(struct json *j, const char *key, bool v);
void json_knull(struct json *j, const char *key);

/* Flushes; false when the sink failed. must() that everything is closed. */
MUST_CHECK bool json_done(struct json *j, struct err *e);

#endif
