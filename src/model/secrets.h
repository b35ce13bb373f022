/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps secrets out of what is recorded and shown: by the name that a value goes under, by the prefixes that
 * well-known services give their tokens (model/secrets.def), and by entropy for what is left. Hex digests, UUIDs,
 * paths and words are not secrets; a number or yes/no is not one, whatever its name (max_tokens=2048).
 * A masked value reads `***`. Nothing here fails: what cannot be masked for want of memory is `***` as a whole.
 * Thread: any. */
#ifndef TACHO_MODEL_SECRETS_H
#define TACHO_MODEL_SECRETS_H

#include "base/arena.h"

#define SECRET_MASK "***"

/* hf_token, AWS_SECRET_ACCESS_KEY, dbPassword …; not tokenizer, num_keys, key_dim. */
bool secret_key(str key);
/* ghp_…, sk-…, AKIA…, a JWT, a PEM block, or text too random to be a word. */
bool secret_value(str value);
/* The value as it may be recorded: itself, `***`, or a URL whose password reads `***`. key may be empty.
 * Borrows value or is allocated in a. */
str secret_mask(struct arena *a, str key, str value);
/* A command line in place: `--token=x`, `--token x`, `KEY=x` and bare values. */
void secret_mask_argv(struct arena *a, str *argv, size_t n);

enum secret_scope {
    SECRET_TOKENS, /* what is a secret by itself: names of operations hold `key = …` of other meaning */
    SECRET_ALL, /* also what stands behind a secret's name: an environment, a command line, headers, in JSON,
                      Python's notation or bare */
};
/* A text of any length with the secrets in it masked: itself when there are none, else allocated in a.
 * O(n). */
str secret_mask_text(struct arena *a, str text, enum secret_scope scope);
/* The same of a text that stands under a name: SECRET_ALL, and the name counts too. */
str secret_mask_named(struct arena *a, str key, str value);

/* For those who mask where the text stands: bytes [from, to) of it. */
struct secret_range {
    size_t from, to;
};
/* The first secret that begins at or behind `at`; false when there is none. */
bool secret_next(str text, size_t at, enum secret_scope scope, struct secret_range *r);
/* True when the whole value is a secret by its name. */
bool secret_is_named(str key, str value);

#endif
