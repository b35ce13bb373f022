/* SPDX-License-Identifier: Apache-2.0 */
#include "format/chrome.h"

#include <stdlib.h>

#include "base/limits.h"
#include "format/chrome_internal.h"

#define META_BYTES 65536 /* of one fact about the whole trace */
#define META_MOST 256    /* facts */

uint64_t thread_key_hash(struct thread_key k)
{
    return str_hash(k.pid) * 31 + str_hash(k.tid);
}

bool thread_key_eq(struct thread_key a, struct thread_key b)
{
    return str_eq(a.tid, b.tid) && str_eq(a.pid, b.pid);
}

static bool argument_push(struct chrome *c, uint32_t n, struct argument a)
{
    if (n == c->args_capacity) {
        const uint32_t capacity = n == 0 ? 32 : n * 2;
        struct argument *grown = realloc(c->args, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        c->args = grown;
        c->args_capacity = capacity;
    }
    c->args[n] = a;
    return true;
}

/* The value at hand as text; what is nested is kept as JSON, up to `most` bytes: else the text is empty. */
static bool take_text(struct chrome *c, size_t most, enum json_scan_token *type, str *text)
{
    *type = c->scan.token;
    *text = c->scan.text;
    if (*type == JSON_SCAN_TRUE || *type == JSON_SCAN_FALSE)
        *text = *type == JSON_SCAN_TRUE ? S("true") : S("false");
    if (*type != JSON_SCAN_OBJECT && *type != JSON_SCAN_ARRAY)
        return *type != JSON_SCAN_FAILED;
    *type = JSON_SCAN_STRING;
    return json_scan_raw(&c->scan, most, text);
}

#define ARGS_MOST 65536 /* of one event */

static bool take_arguments(struct chrome *c, struct entry *n)
{
    if (c->scan.token != JSON_SCAN_OBJECT)
        return json_scan_skip(&c->scan);
    str name;
    while (json_scan_member(&c->scan, &name) != JSON_SCAN_OBJECT_END) {
        if (c->scan.token == JSON_SCAN_FAILED)
            return false;
        struct argument a = {.name = chrome_arg_name(c, name)};
        if (!take_text(c, LIMIT_JSON_STRING_BYTES, &a.type, &a.text))
            return false;
        const bool too_long = a.type == JSON_SCAN_STRING && a.text.p == NULL;
        if (a.name == NULL || too_long || n->n_args == ARGS_MOST || !argument_push(c, n->n_args, a))
            c->n_args_left_out++;
        else
            n->n_args++;
    }
    return true;
}

enum member {
    M_OTHER = 0,
    M_ARGS,
    M_TS,
    M_DUR,
    M_NAME,
    M_PH,
    M_CAT,
    M_PID,
    M_TID,
    M_ID,
    M_ID2,
    M_S
};

#define KEY(a, b, c, d)                                                                            \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

static enum member member_of(str key)
{
    uint8_t b[4] = {0};
    if (key.n > 4)
        return M_OTHER;
    memcpy(b, key.p, key.n);
    switch (KEY(b[0], b[1], b[2], b[3])) {
    case KEY('a', 'r', 'g', 's'):
        return M_ARGS;
    case KEY('t', 's', 0, 0):
        return M_TS;
    case KEY('d', 'u', 'r', 0):
        return M_DUR;
    case KEY('n', 'a', 'm', 'e'):
        return M_NAME;
    case KEY('p', 'h', 0, 0):
        return M_PH;
    case KEY('c', 'a', 't', 0):
        return M_CAT;
    case KEY('p', 'i', 'd', 0):
        return M_PID;
    case KEY('t', 'i', 'd', 0):
        return M_TID;
    case KEY('i', 'd', 0, 0):
        return M_ID;
    case KEY('i', 'd', '2', 0):
        return M_ID2;
    case KEY('s', 0, 0, 0):
        return M_S;
    default:
        return M_OTHER;
    }
}

/* {"global": …} or {"local": …}: a local id counts within its process. */
static bool take_id2(struct chrome *c, struct entry *n)
{
    if (c->scan.token != JSON_SCAN_OBJECT)
        return json_scan_skip(&c->scan);
    while (json_scan_next(&c->scan) == JSON_SCAN_KEY) {
        str *const to = str_eq(c->scan.text, S("local")) ? &n->id_local : &n->id;
        json_scan_next(&c->scan);
        *to = c->scan.text;
        if (!json_scan_skip(&c->scan))
            return false;
    }
    return c->scan.token == JSON_SCAN_OBJECT_END;
}

/* A member whose value is at hand. */
static bool take_member(struct chrome *c, struct entry *n, str name)
{
    const enum member m = member_of(name);
    const enum json_scan_token token = c->scan.token;
    const str text = c->scan.text;
    if (m == M_ARGS)
        return take_arguments(c, n);
    if (m == M_ID2)
        return take_id2(c, n);
    if (token != JSON_SCAN_STRING && token != JSON_SCAN_NUMBER)
        return json_scan_skip(&c->scan);
    str *const texts[] = {
        [M_NAME] = &n->name, [M_PH] = &n->phase, [M_CAT] = &n->category, [M_PID] = &n->pid,
        [M_TID] = &n->tid,   [M_ID] = &n->id,    [M_S] = &n->scope};
    if (m == M_TS)
        n->start = chrome_moment(text);
    else if (m == M_DUR)
        n->length = chrome_moment(text);
    else if (m != M_OTHER)
        *texts[m] = text;
    return true;
}

static bool take_entry(struct chrome *c)
{
    if (c->scan.token != JSON_SCAN_OBJECT)
        return json_scan_skip(&c->scan); /* null after a last comma, say */
    struct entry n = {0};
    json_scan_hold(&c->scan);
    c->last_arg = NULL;
    str name;
    bool ok = true;
    while (ok && json_scan_member(&c->scan, &name) != JSON_SCAN_OBJECT_END)
        ok = c->scan.token != JSON_SCAN_FAILED && take_member(c, &n, name);
    n.args = c->args;
    for (uint32_t i = 0; i < n.n_args; i++)
        n.by_role[n.args[i].name->role] = &n.args[i];
    if (ok)
        chrome_take(c, &n);
    json_scan_forget(&c->scan);
    return ok;
}

/* Behind the list's bracket. Programs that are stopped leave the list open. */
static bool take_list(struct chrome *c)
{
    while (json_scan_next(&c->scan) != JSON_SCAN_ARRAY_END)
        if (c->scan.token == JSON_SCAN_FAILED || !take_entry(c)) {
            c->cut = c->n_events > 0 && json_scan_at_end(&c->scan);
            return c->cut;
        }
    return true;
}

/* Keeps a fact about the whole trace. */
static bool take_fact(struct chrome *c, str key)
{
    enum json_scan_token type;
    str text;
    const bool ok = take_text(c, META_BYTES, &type, &text);
    struct arena *const a = &c->w.arena;
    const bool too_long = type == JSON_SCAN_STRING && text.p == NULL;
    if (ok && (too_long || text.n > META_BYTES || c->n_meta == META_MOST))
        c->n_meta_left_out++;
    else if (ok && type != JSON_SCAN_NULL &&
             ARENA_PUSH(a, c->meta_names, c->n_meta, c->meta_names_capacity)) {
        uint32_t n = c->n_meta - 1;
        if (ARENA_PUSH(a, c->meta_texts, n, c->meta_texts_capacity)) {
            c->meta_names[n - 1] = arena_str(a, key);
            c->meta_texts[n - 1] = arena_str(a, text);
        }
    }
    return ok;
}

/* Behind the brace of distributedInfo. */
static bool take_ranks(struct chrome *c)
{
    while (json_scan_next(&c->scan) == JSON_SCAN_KEY) {
        const bool is_rank = str_eq(c->scan.text, S("rank"));
        const bool is_size = str_eq(c->scan.text, S("world_size"));
        if (json_scan_next(&c->scan) == JSON_SCAN_FAILED)
            return false;
        c->has_rank |= is_rank && chrome_number(c->scan.text, &c->rank);
        c->has_world_size |= is_size && chrome_number(c->scan.text, &c->world_size);
        if (!json_scan_skip(&c->scan))
            return false;
    }
    return c->scan.token == JSON_SCAN_OBJECT_END;
}

static bool take_document_member(struct chrome *c, bool *seen)
{
    char name[64];
    const str key = {name, c->scan.text.n < sizeof name ? c->scan.text.n : sizeof name};
    memcpy(name, c->scan.text.p, key.n);
    if (json_scan_next(&c->scan) == JSON_SCAN_FAILED)
        return false;
    const enum json_scan_token token = c->scan.token;
    c->is_kineto |= str_eq(key, S("schemaVersion")) || str_eq(key, S("deviceProperties")) ||
                    str_eq(key, S("distributedInfo")) || str_eq(key, S("baseTimeNanoseconds"));
    if (str_eq(key, S("traceEvents"))) {
        *seen = true;
        return token == JSON_SCAN_ARRAY ? take_list(c) : json_scan_skip(&c->scan);
    }
    if (str_eq(key, S("baseTimeNanoseconds"))) {
        if (!chrome_number(c->scan.text, &c->base_ns))
            c->base_ns = 0;
        return json_scan_skip(&c->scan);
    }
    if (str_eq(key, S("distributedInfo")) && token == JSON_SCAN_OBJECT)
        return take_ranks(c);
    return take_fact(c, key);
}

static bool take_document(struct chrome *c)
{
    bool seen = false;
    if (json_scan_next(&c->scan) == JSON_SCAN_ARRAY)
        return take_list(c) && (c->cut || json_scan_next(&c->scan) == JSON_SCAN_END);
    if (c->scan.token != JSON_SCAN_OBJECT)
        return false;
    while (json_scan_next(&c->scan) == JSON_SCAN_KEY)
        if (!take_document_member(c, &seen) || c->cut)
            return c->cut;
    return seen && c->scan.token == JSON_SCAN_OBJECT_END &&
           json_scan_next(&c->scan) == JSON_SCAN_END;
}

static bool import_run(struct chrome *c, int to_fd, struct err *e)
{
    if (take_document(c) || c->cut)
        return c->w.planes != NULL ? chrome_finish(c, to_fd, e)
                                   : err_set(e, ERR_PARSE, "JSON without one trace event");
    if (!json_scan_ok(&c->scan, e))
        return false;
    if (c->w.arena.overflow)
        return arena_full(&c->w.arena, e);
    return err_at(e, ERR_PARSE, c->scan.pos, "JSON without a list of trace events");
}

bool chrome_import(int from_fd, int to_fd, struct err *e)
{
    struct chrome c = {0};
    c.last = &c.first;
    xspace_writer_init(&c.w);
    buf_init(&c.text, LIMIT_JSON_STRING_BYTES);
    const bool ok = json_scan_open(&c.scan, from_fd, e) && import_run(&c, to_fd, e);
    json_scan_release(&c.scan);
    free(c.args);
    buf_release(&c.text);
    process_map_release(&c.processes);
    thread_map_release(&c.threads);
    arg_map_release(&c.arg_names);
    async_map_release(&c.async);
    line_map_release(&c.async_lines);
    xspace_writer_release(&c.w);
    return ok;
}
