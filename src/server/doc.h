/* SPDX-License-Identifier: Apache-2.0 */
/* Small JSON documents, parsed whole: bodies of requests and texts of records. A thin cover of
 * jansson, whose names clash with base/json.h. Getters answer NULL or empty for what is absent or
 * of another type; what they answer belongs to the document. Every function takes NULL. Thread: one
 * at a time. */
#ifndef TACHO_SERVER_DOC_H
#define TACHO_SERVER_DOC_H

#include "base/arena.h"

struct doc;

/* NULL and ERR_PARSE, with the byte, when text is not a JSON object. Freed by doc_free. */
struct doc *doc_parse(str text, struct err *e);
struct doc *doc_new(void); /* an empty object */
void doc_free(struct doc *d);

struct doc *doc_get(struct doc *d, const char *key);
struct doc *doc_object(struct doc *d, const char *key); /* only when it is an object */
size_t doc_count(struct doc *d);                        /* items of an array */
struct doc *doc_item(struct doc *d, size_t i);
str doc_text(struct doc *d, const char *key, struct arena *a); /* copied */
const char *doc_cstr(struct doc *d, const char *key);          /* or NULL */
int64_t doc_i64(struct doc *d, const char *key, int64_t otherwise);
bool doc_number(struct doc *d, double *out); /* false when it is none */
bool doc_is_text(struct doc *d);
bool doc_is_array(struct doc *d);
str doc_string(struct doc *d, struct arena *a); /* of a text itself, copied */
/* Walks an object: *at begins as NULL. */
bool doc_next(struct doc *d, void **at, const char **key, struct doc **value);
void doc_merge(struct doc *into, struct doc *from); /* members of from win */
str doc_dump(struct doc *d, struct arena *a);       /* compact JSON, in a; empty for NULL */

#endif
