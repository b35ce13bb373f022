/* SPDX-License-Identifier: Apache-2.0 */
#include "server/doc.h"

#include <jansson.h>

#include "base/err.h"

static json_t *of(struct doc *d)
{
    return (json_t *)d;
}

struct doc *doc_parse(str text, struct err *e)
{
    json_error_t why = {0};
    json_t *root = json_loadb(text.p == NULL ? "" : text.p, text.n, JSON_REJECT_DUPLICATES, &why);
    if (json_is_object(root))
        return (struct doc *)root;
    json_decref(root);
    err_at(e, ERR_PARSE, (uint64_t)(why.position < 0 ? 0 : why.position), "not a JSON object%s%s",
           why.text[0] == '\0' ? "" : ": ", why.text);
    return NULL;
}

struct doc *doc_new(void)
{
    return (struct doc *)json_pack("{}"); /* base/json.h has jansson's other name */
}

void doc_free(struct doc *d)
{
    json_decref(of(d));
}

struct doc *doc_get(struct doc *d, const char *key)
{
    return (struct doc *)json_object_get(of(d), key);
}

struct doc *doc_object(struct doc *d, const char *key)
{
    json_t *v = json_object_get(of(d), key);
    return json_is_object(v) ? (struct doc *)v : NULL;
}

size_t doc_count(struct doc *d)
{
    return json_array_size(of(d));
}

struct doc *doc_item(struct doc *d, size_t i)
{
    return (struct doc *)json_array_get(of(d), i);
}

str doc_string(struct doc *d, struct arena *a)
{
    return json_is_string(of(d))
               ? arena_str(a, (str){json_string_value(of(d)), json_string_length(of(d))})
               : (str){0};
}

str doc_text(struct doc *d, const char *key, struct arena *a)
{
    return doc_string(doc_get(d, key), a);
}

const char *doc_cstr(struct doc *d, const char *key)
{
    return json_string_value(json_object_get(of(d), key));
}

int64_t doc_i64(struct doc *d, const char *key, int64_t otherwise)
{
    const json_t *v = json_object_get(of(d), key);
    return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

bool doc_number(struct doc *d, double *out)
{
    if (!json_is_number(of(d)))
        return false;
    *out = json_number_value(of(d));
    return true;
}

bool doc_is_text(struct doc *d)
{
    return json_is_string(of(d));
}

bool doc_is_array(struct doc *d)
{
    return json_is_array(of(d));
}

bool doc_next(struct doc *d, void **at, const char **key, struct doc **value)
{
    *at = *at == NULL ? json_object_iter(of(d)) : json_object_iter_next(of(d), *at);
    if (*at == NULL)
        return false;
    *key = json_object_iter_key(*at);
    *value = (struct doc *)json_object_iter_value(*at);
    return true;
}

void doc_merge(struct doc *into, struct doc *from)
{
    if (into != NULL && from != NULL)
        json_object_update(of(into), of(from));
}

str doc_dump(struct doc *d, struct arena *a)
{
    char *text = d == NULL ? NULL : json_dumps(of(d), JSON_COMPACT | JSON_ENCODE_ANY);
    const str out = text == NULL ? (str){0} : arena_str(a, str_from(text));
    free(text);
    return out;
}
