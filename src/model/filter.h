/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of listings, a subset of AIP-160:
 *
 *     state = FAILED AND config.lr > 0.001 AND started > -72h
 *     name:train* (group = sweep OR -health = ok)
 *
 * `key:value` is `key = value`, a space is AND (OR binds tighter than AND, as AIP-160 has it), `-`
 * and NOT negate, a bare word is looked for in every field that is searched, `*` at an end of a text
 * stands for anything, `key:*` asks whether it is known. Letter case is ignored in words. Values: a
 * number; text, quoted where it has spaces; a time as RFC 3339, a date, Unix seconds, or a duration
 * from now ("-72h"); a duration ("90s", bare: seconds).
 *
 * What is not known is neither equal nor unequal: neither a comparison with it nor its negation
 * matches. Source: SURFACE "Filter, everywhere", google.aip.dev/160. Thread: any. */
#ifndef TACHO_MODEL_FILTER_H
#define TACHO_MODEL_FILTER_H

#include "base/arena.h"

enum filter_type {
    FILTER_TEXT = 0,
    FILTER_NUMBER,
    FILTER_TIME,     /* wall ns */
    FILTER_DURATION, /* seconds */
    FILTER_ANY,      /* number against number, else text */
};

struct filter_field {
    const char *name; /* "config." stands for all names that begin so */
    enum filter_type type;
    bool is_searched; /* by a bare word */
};

struct filter_value {
    bool is_number;
    double number;
    str text;        /* when it is no number */
    int64_t wall_ns; /* of FILTER_TIME */
};

/* The index-th value of a field (`key`: what follows the dot of "config."); false beyond the last.
 * A field without a value is unknown; of several, one must fit. */
typedef bool (*filter_value_fn)(void *ctx, const struct filter_field *f, str key, uint32_t index,
                                struct filter_value *out);

struct filter;

/* NULL and ERR_USAGE, with the byte, when text is none; the filter and copies of its words are in
 * the arena. An empty text fits everything. */
struct filter *filter_parse(str text, const struct filter_field *fields, uint32_t n_fields,
                            int64_t now_ns, struct arena *a, struct err *e);
bool filter_fits(const struct filter *f, filter_value_fn value, void *ctx);

#endif
