/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/secrets_json.h"

void secret_mask_json(json_t *value, const char *key)
{
    const char *name;
    size_t i;
    json_t *child;
    void *next;
    if (json_is_object(value)) {
        json_object_foreach_safe(value, next, name, child) secret_mask_json(child, name);
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, child) secret_mask_json(child, key);
    } else if (json_is_string(value)) {
        struct arena a;
        arena_init(&a, "mask", 0);
        const str text = {json_string_value(value), json_string_length(value)};
        const str safe = secret_mask(&a, str_from(key), text);
        if (safe.p != text.p)
            json_string_setn(value, safe.p, safe.n);
        arena_release(&a);
    }
}
