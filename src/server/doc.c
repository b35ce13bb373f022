/* SPDX-License-Identifier: Apache-2.0 */
#include "server/doc.h"

#include <jansson.h>

#include "base/buf.h"
#include "base/json_f64.h"
#include "base/limits.h"

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

static void dump_leaf(const json_t *v, struct buf *out)
{
    char number[JSON_F64_MAX];
    if (json_is_real(v)) { /* jansson writes 0.1 as 0.10000000000000001 */
        buf_add(out, number, json_format_f64(json_real_value(v), number));
        return;
    }
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    buf_add_str(out, text == NULL ? S("null") : str_from(text));
    free(text);
}

/* As deep as the parser let it be (jansson: 2048). */
static void dump(json_t *v, struct buf *out)
{
    const char *key;
    json_t *item;
    size_t i, n = 0;
    if (json_is_object(v)) {
        buf_add_char(out, '{');
        json_object_foreach(v, key, item)
        {
            json_t *name = json_string(key);
            buf_add_str(out, n++ > 0 ? S(",") : S(""));
            dump_leaf(name, out);
            buf_add_char(out, ':');
            dump(item, out);
            json_decref(name);
        }
        buf_add_char(out, '}');
    } else if (json_is_array(v)) {
        buf_add_char(out, '[');
        json_array_foreach(v, i, item)
        {
            buf_add_str(out, i > 0 ? S(",") : S(""));
            dump(item, out);
        }
        buf_add_char(out, ']');
    } else {
        dump_leaf(v, out);
    }
}

str doc_dump(struct doc *d, struct arena *a)
{
    struct buf out;
    if (d == NULL)
        return (str){0};
    buf_init(&out, LIMIT_ARENA_REQUEST_BYTES);
    dump(of(d), &out);
    const str text = out.overflow ? (str){0} : arena_str(a, buf_str(&out));
    buf_release(&out);
    return text;
}
