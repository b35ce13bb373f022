/* SPDX-License-Identifier: Apache-2.0 */
/* Any text: masking ends, changes nothing but what it masks, and a masked text has nothing left to mask. */
#include "model/secrets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    arena_init(&a, "fuzz", 0);
    const str text = {(const char *)data, size};
    for (int scope = SECRET_TOKENS; scope <= SECRET_ALL; scope++) {
        const str once = secret_mask_text(&a, text, (enum secret_scope)scope);
        must(once.p == text.p || str_find(once, S(SECRET_MASK)) >= 0);
    }
    secret_mask_named(&a, str_sub(text, 0, size / 2), str_sub(text, size / 2, size));
    arena_release(&a);
    return 0;
}
