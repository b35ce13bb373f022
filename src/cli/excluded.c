/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/excluded.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"

static bool take_time(json_t *interval, const char *key, const char *path, size_t number,
                      int64_t *out, struct err *e)
{
    const char *text = json_string_value(json_object_get(interval, key));
    if (text == NULL)
        return err_set(e, ERR_PARSE, "exclusions '%s': interval %zu has no text '%s'", path, number,
                       key);
    if (!clock_parse_rfc3339(str_from(text), out))
        return err_set(
            e, ERR_PARSE,
            "exclusions '%s': interval %zu: %s '%.64s' is not RFC 3339 with a time zone, "
            "such as 2026-11-30T01:00:00Z",
            path, number, key, text);
    return true;
}

static bool take_interval(json_t *interval, const char *path, size_t number,
                          struct ledger_part *out, struct err *e)
{
    if (!take_time(interval, "start_time_utc", path, number, &out->from_ns, e) ||
        !take_time(interval, "end_time_utc", path, number, &out->to_ns, e))
        return false;
    return out->from_ns < out->to_ns ||
           err_set(e, ERR_PARSE, "exclusions '%s': interval %zu does not end after it starts", path,
                   number);
}

static int by_start(const void *left, const void *right)
{
    const struct ledger_part *a = left, *b = right;
    return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

static uint32_t merge(struct ledger_part *parts, uint32_t n)
{
    uint32_t kept = 0;
    if (n > 1)
        qsort(parts, n, sizeof *parts, by_start);
    for (uint32_t i = 0; i < n; i++) {
        if (kept > 0 && parts[i].from_ns <= parts[kept - 1].to_ns) {
            if (parts[i].to_ns > parts[kept - 1].to_ns)
                parts[kept - 1].to_ns = parts[i].to_ns;
        } else {
            parts[kept++] = parts[i];
        }
    }
    return kept;
}

static bool take_all(json_t *list, const char *path, struct arena *a, struct ledger_part **out,
                     uint32_t *n, struct err *e)
{
    const size_t count = json_array_size(list);
    if (!json_is_array(list))
        return err_set(e, ERR_PARSE,
                       "exclusions '%s': not a JSON array of {start_time_utc, end_time_utc}", path);
    *out = ARENA_ARRAY(a, struct ledger_part, count + 1);
    if (*out == NULL)
        return arena_full(a, e);
    for (size_t i = 0; i < count; i++)
        if (!take_interval(json_array_get(list, i), path, i + 1, &(*out)[i], e))
            return false;
    *n = merge(*out, (uint32_t)count);
    return true;
}

bool excluded_read(const char *path, struct arena *a, struct ledger_part **out, uint32_t *n,
                   struct err *e)
{
    str text;
    json_error_t why;
    *n = 0;
    if (!file_read(a, path, LIMIT_CONFIG_FILE_BYTES, &text, e))
        return false;
    json_t *list = json_loadb(text.p, text.n, 0, &why);
    const bool ok = list == NULL ? err_at(e, ERR_PARSE, (uint64_t)why.position,
                                          "exclusions '%s': %s", path, why.text)
                                 : take_all(list, path, a, out, n, e);
    json_decref(list);
    return ok;
}
