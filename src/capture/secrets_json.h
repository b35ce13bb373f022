/* SPDX-License-Identifier: Apache-2.0 */
/* model/secrets.h for a JSON value. */
#ifndef TACHO_CAPTURE_SECRETS_JSON_H
#define TACHO_CAPTURE_SECRETS_JSON_H

#include <jansson.h>

#include "model/secrets.h"

/* In place, to any depth; key is the name that it stands under, or NULL. Thread: any. */
void secret_mask_json(json_t *value, const char *key);

#endif
