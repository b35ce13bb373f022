/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps secrets out of what is recorded: by the name that a value goes under, by the prefixes that
 * well-known services give their tokens, and by entropy for what is left. Hex digests, UUIDs, paths and words
 * are not secrets; a number or yes/no is not one, whatever its name (max_tokens=2048).
 * A masked value reads `***`. Nothing here fails. Thread: any. */
#ifndef TACHO_CAPTURE_SECRETS_H
#define TACHO_CAPTURE_SECRETS_H

#include <jansson.h>

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
/* A JSON value in place, to any depth; key is the name that it stands under, or NULL. */
void secret_mask_json(json_t *value, const char *key);

#endif
