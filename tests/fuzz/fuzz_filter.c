/* SPDX-License-Identifier: Apache-2.0 */
/* A filter of a listing, over values of every kind: first byte chooses them, the rest is the filter. */
#include "base/limits.h"
#include "model/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct filter_field fields[] = {
    {"state", FILTER_TEXT, true},    {"step", FILTER_NUMBER, false},
    {"started", FILTER_TIME, false}, {"wall_s", FILTER_DURATION, false},
    {"config.", FILTER_ANY, false},
};

static bool value(void *ctx, const struct filter_field *f, str key, uint32_t index,
                  struct filter_value *out)
{
    const uint8_t *seed = ctx;
    if (index >= *seed % 3u)
        return false;
    *out =
        (struct filter_value){.is_number = f->type == FILTER_NUMBER || f->type == FILTER_DURATION ||
                                           (f->type == FILTER_ANY && *seed & 4),
                              .number = *seed,
                              .text = key.n > 0 ? key : S("failed"),
                              .wall_ns = *seed};
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct err e = {0};
    uint8_t seed = n > 0 ? data[0] : 0;
    const str text = {(const char *)data + (n > 0), n > 0 ? n - 1 : 0};
    arena_init(&a, "fuzz", LIMIT_ARENA_REQUEST_BYTES);
    const struct filter *f =
        filter_parse(text, fields, sizeof fields / sizeof *fields, 1000, &a, &e);
    if (f == NULL)
        must(e.code != ERR_NONE && e.msg[0] != '\0');
    else
        (void)filter_fits(f, value, &seed);
    arena_release(&a);
    return 0;
}
