/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "base/limits.h"
#include "format/chrome_internal.h"

/* Powers of ten that a double holds exactly: a number of at most 15 digits divided by one is the nearest
 * double to what was written. */
static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

bool chrome_number(str text, int64_t *out)
{
    const bool negative = text.n > 0 && text.p[0] == '-';
    if (text.n == 0 || text.n - negative > 18)
        return str_to_i64(text, out);
    int64_t v = 0;
    for (size_t i = negative; i < text.n; i++) {
        const unsigned digit = (unsigned)text.p[i] - '0';
        if (digit > 9)
            return false;
        v = v * 10 + digit;
    }
    *out = negative ? -v : v;
    return text.n > negative;
}

static bool real_of(str text, double *out)
{
    uint64_t v = 0;
    size_t n_digits = 0, n_behind = 0;
    bool point = false;
    const bool negative = text.n > 0 && text.p[0] == '-';
    for (size_t i = negative; i < text.n; i++) {
        const unsigned digit = (unsigned)text.p[i] - '0';
        if (digit <= 9) {
            v = v * 10 + digit;
            n_digits++;
            n_behind += point;
        } else if (text.p[i] == '.' && !point) {
            point = true;
        } else {
            n_digits = SIZE_MAX;
        }
        if (n_digits > 15)
            return str_to_f64(text, out) && isfinite(*out);
    }
    *out = (double)v / powers[n_behind];
    *out = negative ? -*out : *out;
    return n_digits > 0;
}

/* Powers of ten go through a double. */
static struct moment moment_of_real(str text)
{
    double v;
    if (!str_to_f64(text, &v) || !isfinite(v) || fabs(v) > 9e15)
        return (struct moment){0};
    const double ns = floor(v * 1e3);
    return (struct moment){(int64_t)ns, (uint32_t)((v * 1e3 - ns) * 1e3), true};
}

struct moment chrome_moment(str text)
{
    const bool negative = text.n > 0 && text.p[0] == '-';
    size_t i = negative;
    int64_t us = 0, ps = 0;
    for (; i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++) {
        if (us > INT64_MAX / 20000)
            return (struct moment){0};
        us = us * 10 + (text.p[i] - '0');
    }
    if (i == (size_t)negative)
        return (struct moment){0};
    if (i < text.n && text.p[i] == '.') {
        int32_t unit = 100000;
        for (i++; i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++, unit /= 10)
            ps += (text.p[i] - '0') * unit;
    }
    if (i < text.n)
        return moment_of_real(text);
    us = negative ? -us : us;
    ps = negative ? -ps : ps;
    const int64_t ns = us * 1000 + (ps >= 0 ? ps / 1000 : -((999 - ps) / 1000));
    return (struct moment){ns, (uint32_t)(ps - (ns - us * 1000) * 1000), true};
}

uint64_t chrome_span_ps(struct moment from, struct moment to)
{
    const __int128 ps = ((__int128)to.ns - from.ns) * 1000 + to.sub_ps - from.sub_ps;
    return ps < 0 || ps > INT64_MAX ? 0 : (uint64_t)ps;
}

/* -- names -- */

static const struct {
    str argument;
    enum role role;
    str stat;
} known_args[] = {
#define X(argument, role, stat) {STR_INIT(argument), role, STR_INIT(stat)},
#include "format/chrome_args.def"
#undef X
};

static struct arg_name *arg_name_new(struct chrome *c, str text)
{
    struct arg_name *name = ARENA_NEW(&c->w.arena, struct arg_name);
    const str kept = arena_str(&c->w.arena, text);
    if (name == NULL || kept.p == NULL)
        return NULL;
    *name = (struct arg_name){.text = kept, .stat = kept, .id = (uint32_t)c->arg_names.n};
    for (size_t i = 0; i < sizeof known_args / sizeof *known_args; i++)
        if (str_eq(known_args[i].argument, text)) {
            name->role = known_args[i].role;
            name->stat = known_args[i].stat;
        }
    *arg_map_put(&c->arg_names, kept) = name;
    return name;
}

struct arg_name *chrome_arg_name(struct chrome *c, str text)
{
    struct arg_name *const before = c->last_arg;
    if (before != NULL && before->then != NULL && str_eq(before->then->text, text))
        return c->last_arg = before->then;
    struct arg_name **known = arg_map_get(&c->arg_names, text);
    struct arg_name *name = known != NULL ? *known : arg_name_new(c, text);
    if (before != NULL)
        before->then = name;
    return c->last_arg = name;
}

uint32_t chrome_stat_id(struct chrome *c, struct process *p, const struct arg_name *name)
{
    if (name->id >= p->n_stat_ids) {
        const uint32_t n = name->id < 64 ? 128 : name->id * 2;
        uint32_t *grown = arena_grow(&c->w.arena, p->stat_ids, p->n_stat_ids, n, sizeof *grown,
                                     _Alignof(uint32_t));
        if (grown == NULL)
            return 0;
        p->stat_ids = grown;
        p->n_stat_ids = n;
    }
    uint32_t *id = &p->stat_ids[name->id];
    if (*id == 0)
        *id = xspace_writer_stat_id(&c->w, p->plane, name->stat);
    return *id;
}

uint32_t chrome_stat_named(struct chrome *c, struct process *p, enum own_stat stat)
{
    static const str names[N_OWN] = {
#define X(name, stat) [OWN_##name] = STR_INIT(stat),
#include "format/chrome_own.def"
#undef X
    };
    uint32_t *const id = &p->own_ids[stat];
    if (*id == 0)
        *id = xspace_writer_stat_id(&c->w, p->plane, names[stat]);
    return *id;
}

static uint64_t letters_of(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Long names come again and again: one look at 16 of their letters and one comparison cost less than a hash. */
uint32_t chrome_name_id(struct chrome *c, struct process *p, str name)
{
    if (name.n < 8)
        return xspace_writer_name(&c->w, p->plane, name);
    if (p->names_lately == NULL &&
        (p->names_lately = ARENA_ARRAY(&c->w.arena, struct name_lately, NAMES_LATELY)) == NULL)
        return 0;
    const uint64_t mixed =
        (letters_of(name.p) ^ letters_of(name.p + name.n - 8) * 31 ^ name.n) * 0x9fb21c651e98df25u;
    struct name_lately *const lately = &p->names_lately[mixed >> 56];
    if (str_eq(lately->name, name))
        return lately->id;
    const uint32_t id = xspace_writer_name(&c->w, p->plane, name);
    if (id != 0)
        *lately = (struct name_lately){p->plane->names[id - 1].name, id};
    return id;
}

/* -- values -- */

static void write_value(struct xspace_line_out *l, uint32_t stat_id, const struct argument *a)
{
    int64_t number;
    uint64_t wide;
    double real;
    if (a->type == JSON_SCAN_NUMBER) {
        if (chrome_number(a->text, &number))
            xspace_writer_stat_i64(l, stat_id, number);
        else if (str_to_u64(a->text, &wide))
            xspace_writer_stat_u64(l, stat_id, wide);
        else if (real_of(a->text, &real))
            xspace_writer_stat_f64(l, stat_id, real);
    } else if (a->type != JSON_SCAN_NULL) {
        xspace_writer_stat_str(l, stat_id, a->text);
    }
}

#define DETAILS_BYTES 256 /* of kernel_details */

struct details {
    char text[DETAILS_BYTES];
    size_t n;
    bool full;
};

static void add_text(struct details *d, str text)
{
    d->full = d->full || text.n > sizeof d->text - d->n;
    if (d->full)
        return;
    memcpy(d->text + d->n, text.p, text.n);
    d->n += text.n;
}

/* key "grid:" and "[1568, 1, 4]" as " grid:1568,1,4". */
static void add_extent(struct details *d, str key, str extent)
{
    add_text(d, d->n > 0 ? key : str_sub(key, 1, key.n));
    d->full = d->full || extent.n < 2 || extent.p[0] != '[' || extent.n > sizeof d->text - d->n;
    for (size_t i = 1; !d->full && i + 1 < extent.n; i++)
        if (extent.p[i] != ' ' && extent.p[i] != '\n')
            d->text[d->n++] = extent.p[i];
}

/* XProf's kernel_details. Kineto tells static and dynamic shared memory in one number: static here. */
static bool write_kernel_details(struct chrome *c, struct process *p, struct xspace_line_out *l,
                                 const struct entry *n)
{
    const struct argument *regs = n->by_role[REGISTERS], *shared = n->by_role[SHARED_MEMORY];
    struct details d;
    d.n = 0;
    d.full = false;
    if (regs != NULL) {
        add_text(&d, S("regs:"));
        add_text(&d, regs->text);
    }
    if (shared != NULL) {
        add_text(&d, d.n > 0 ? S(" static_shared:") : S("static_shared:"));
        add_text(&d, shared->text);
        add_text(&d, S(" dynamic_shared:0"));
    }
    add_extent(&d, S(" grid:"), n->by_role[GRID]->text);
    add_extent(&d, S(" block:"), n->by_role[BLOCK]->text);
    if (!d.full)
        xspace_writer_stat_str(l, chrome_stat_named(c, p, OWN_KERNEL_DETAILS), (str){d.text, d.n});
    return !d.full;
}

/* XProf's memcpy_details of "Memcpy HtoD (Pageable -> Device)" and its bytes. */
static void write_copy_details(struct chrome *c, struct process *p, struct xspace_line_out *l,
                               const struct entry *n)
{
    static const struct {
        str sign;
        const char *from, *to;
    } kinds[] = {{STR_INIT("HtoD"), "host", "device"},   {STR_INIT("H2D"), "host", "device"},
                 {STR_INIT("DtoH"), "device", "host"},   {STR_INIT("D2H"), "device", "host"},
                 {STR_INIT("DtoD"), "device", "device"}, {STR_INIT("D2D"), "device", "device"},
                 {STR_INIT("PtoP"), "device", "device"}, {STR_INIT("HtoH"), "host", "host"}};
    int64_t bytes;
    if (!chrome_number(n->by_role[BYTES]->text, &bytes))
        return;
    struct buf *const b = &c->text;
    buf_clear(b);
    const bool copy = str_eq(n->category, S("gpu_memcpy"));
    for (size_t i = 0; copy && b->n == 0 && i < sizeof kinds / sizeof *kinds; i++)
        if (str_find(n->name, kinds[i].sign) >= 0)
            buf_addf(b, "kind_src:%s kind_dst:%s ", kinds[i].from, kinds[i].to);
    buf_addf(b, "num_bytes:%" PRIi64, bytes);
    xspace_writer_stat_str(l, chrome_stat_named(c, p, copy ? OWN_COPY_DETAILS : OWN_SET_DETAILS),
                           buf_str(b));
}

void chrome_write_args(struct chrome *c, struct process *p, struct xspace_line_out *l,
                       const struct entry *n)
{
    const bool detailed =
        n->by_role[GRID] != NULL && n->by_role[BLOCK] != NULL && write_kernel_details(c, p, l, n);
    if (n->by_role[BYTES] != NULL &&
        (str_eq(n->category, S("gpu_memcpy")) || str_eq(n->category, S("gpu_memset"))))
        write_copy_details(c, p, l, n);
    for (uint32_t i = 0; i < n->n_args; i++) {
        const struct argument *a = &n->args[i];
        const bool folded = a->name->role >= REGISTERS && a->name->role <= BLOCK;
        if (folded && detailed)
            continue;
        const uint32_t id =
            folded ? chrome_stat_named(c, p, OWN_REGISTERS + (a->name->role - REGISTERS))
                   : chrome_stat_id(c, p, a->name);
        write_value(l, id, a);
    }
}
