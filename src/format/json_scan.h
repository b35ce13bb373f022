/* SPDX-License-Identifier: Apache-2.0 */
/* A pull scanner of JSON from a descriptor, gzip or not (also of several members), in one pass.
 *
 *     struct json_scan s;
 *     if (!json_scan_open(&s, fd, e)) return false;          borrows fd
 *     while (json_scan_next(&s) > JSON_SCAN_END)
 *         if (s.token == JSON_SCAN_KEY && str_eq(s.text, S("traceEvents"))) ...
 *     if (!json_scan_ok(&s, e)) return false;                 "... at byte N"
 *     json_scan_release(&s);
 *
 * Strings come unescaped as UTF-8 (lone surrogates as U+FFFD), numbers as they stand. Two habits of real
 * writers are let pass and counted: a backslash that escapes nothing (a Windows path) stays a backslash,
 * and inf and nan in any spelling are numbers. Only one
 * value is read; what follows it but white space is an error. Memory is one window and the longest
 * string. Positions are bytes of the file, in gzip of what it holds.
 * Source: RFC 8259, RFC 1952. Thread: one at a time. */
#ifndef TACHO_FORMAT_JSON_SCAN_H
#define TACHO_FORMAT_JSON_SCAN_H

#include "base/buf.h"

#define JSON_SCAN_DEPTH 64

enum json_scan_token {
    JSON_SCAN_FAILED = 0,
    JSON_SCAN_END,
    JSON_SCAN_OBJECT,
    JSON_SCAN_OBJECT_END,
    JSON_SCAN_ARRAY,
    JSON_SCAN_ARRAY_END,
    JSON_SCAN_KEY,    /* text */
    JSON_SCAN_STRING, /* text */
    JSON_SCAN_NUMBER, /* text */
    JSON_SCAN_TRUE,
    JSON_SCAN_FALSE,
    JSON_SCAN_NULL,
};

struct json_scan {
    enum json_scan_token token; /* the current one */
    str text;                   /* of it; valid until the next token */
    uint64_t pos;               /* where it begins */
    uint64_t n_bad_escapes, n_not_finite;
    uint32_t depth; /* open objects and arrays, this one counted */
    /* private: */
    struct json_input *input;      /* owned */
    uint8_t open[JSON_SCAN_DEPTH]; /* '{' or '[' */
    enum {
        JSON_SCAN_VALUE = 0,
        JSON_SCAN_VALUE_OR_END,
        JSON_SCAN_NAME,
        JSON_SCAN_NAME_OR_END,
        JSON_SCAN_COMMA
    } want;
    struct buf scratch;
    struct err failure;
    bool at_end;
};

/* Fails when the descriptor cannot be read, or is gzip that cannot be begun. */
MUST_CHECK bool json_scan_open(struct json_scan *s, int fd, struct err *e);
enum json_scan_token json_scan_next(struct json_scan *s);
/* Passes over the value whose first token is current. False on failure. */
bool json_scan_skip(struct json_scan *s);
/* Adds the value whose first token is current to out, as compact JSON. False on failure. */
bool json_scan_copy(struct json_scan *s, struct buf *out);
/* True when the scanner failed because the text was over. */
bool json_scan_at_end(const struct json_scan *s);
MUST_CHECK bool json_scan_ok(const struct json_scan *s, struct err *e);
void json_scan_release(struct json_scan *s);

/* True when the first bytes can begin a JSON object or array, or gzip. */
bool json_scan_looks_like(str head);

#endif
