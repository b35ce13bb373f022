/* SPDX-License-Identifier: Apache-2.0 */
/* A pull scanner of JSON from a descriptor, gzip or not, in one pass over windows of the text.
 *
 *     struct json_scan s;
 *     if (!json_scan_open(&s, fd, e)) return false;          borrows fd
 *     while (json_scan_next(&s) > JSON_SCAN_END)
 *         if (s.token == JSON_SCAN_KEY && str_eq(s.text, S("traceEvents"))) ...
 *     if (!json_scan_ok(&s, e)) return false;                 "... at byte N"
 *     json_scan_release(&s);
 *
 * Nothing is copied: text stands in the window, with escapes undone in place (as UTF-8, lone surrogates as
 * U+FFFD), numbers as they are written. It is valid until the next token, or while json_scan_hold() is in
 * force until json_scan_forget().
 *
 * Habits of real programs are forgiven and counted: a backslash that escapes nothing stands for itself
 * (Windows paths), and numbers may be bare inf, -inf or nan (any case). Everything else that is not
 * JSON is ERR_PARSE with the byte of the (decompressed) text. Inside of values that are passed over or taken
 * whole only strings and brackets are looked at.
 *
 * Strings are found 16 bytes at a time where the processor has SSE2. Source: RFC 8259. Thread: one at a
 * time. */
#ifndef TACHO_FORMAT_JSON_SCAN_H
#define TACHO_FORMAT_JSON_SCAN_H

#include "format/input.h"

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

struct json_window;

struct json_scan {
    enum json_scan_token token; /* the current one */
    str text;                   /* of it */
    uint64_t pos;               /* where it begins */
    uint64_t n_bad_escapes, n_not_finite;
    uint32_t depth; /* open objects and arrays, this one counted */
    /* private: */
    uint8_t *at, *end;          /* the next byte; behind the last one (zeros follow) */
    uint64_t end_pos;           /* of end in the text */
    struct json_window *window; /* that at points into; owned, as are the others */
    struct json_window *held, *spare;
    size_t held_bytes;
    bool holds, at_end;
    uint8_t open[JSON_SCAN_DEPTH]; /* '{' or '[' */
    enum {
        JSON_SCAN_VALUE = 0,
        JSON_SCAN_VALUE_OR_END,
        JSON_SCAN_NAME,
        JSON_SCAN_NAME_OR_END,
        JSON_SCAN_COMMA
    } want;
    struct input input;
    struct err failure;
};

/* Fails when the descriptor cannot be read, or is gzip that cannot be begun. */
MUST_CHECK bool json_scan_open(struct json_scan *s, int fd, struct err *e);
enum json_scan_token json_scan_next(struct json_scan *s);
/* In an object: passes over the next name, which it leaves in *name, and is at its value; or at the object's
 * end, or has failed. The same as json_scan_next() two times, faster. */
enum json_scan_token json_scan_member(struct json_scan *s, str *name);
/* From here on all text stays valid. More than LIMIT_JSON_ENTRY_BYTES of it fail with ERR_LIMIT. */
void json_scan_hold(struct json_scan *s);
void json_scan_forget(struct json_scan *s);
/* Passes over the value whose first token is current. False on failure. */
bool json_scan_skip(struct json_scan *s);
/* The object or array whose bracket is current, whole, as it is written; empty when it is longer than `most`
 * bytes. False on failure. */
bool json_scan_raw(struct json_scan *s, size_t most, str *out);
/* True when the scanner failed because the text was over. */
bool json_scan_at_end(const struct json_scan *s);
MUST_CHECK bool json_scan_ok(const struct json_scan *s, struct err *e);
void json_scan_release(struct json_scan *s);

/* True when the first bytes can begin a JSON object or array. */
bool json_scan_looks_like(str head);

#endif
