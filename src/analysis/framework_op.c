/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/framework_op.h"

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}
static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_letter_or_digit(char c)
{
    return is_lower(c) || is_upper(c) || is_digit(c);
}

/* [A-Z_][A-Za-z0-9_]* */
static bool is_tensorflow_type(str s)
{
    if (s.n == 0 || !(is_upper(s.p[0]) || s.p[0] == '_'))
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (!is_letter_or_digit(s.p[i]) && s.p[i] != '_')
            return false;
    return true;
}

/* [A-Za-z0-9.][A-Za-z0-9_.\/>-]* */
static bool is_tensorflow_name(str s)
{
    if (s.n == 0 || !(is_letter_or_digit(s.p[0]) || s.p[0] == '.'))
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (!is_letter_or_digit(s.p[i]) && str_find_char(S("_.\\/>-"), s.p[i]) < 0)
            return false;
    return true;
}

/* [a-z_][a-z0-9_]*, then perhaps [anything]; *bare is what stands before the bracket. */
static bool is_jax_type(str s, str *bare)
{
    const ptrdiff_t bracket = str_find_char(s, '[');
    *bare = bracket < 0 ? s : str_sub(s, 0, (size_t)bracket);
    if (bracket >= 0 && s.p[s.n - 1] != ']')
        return false;
    if (bare->n == 0 || !(is_lower(bare->p[0]) || bare->p[0] == '_'))
        return false;
    for (size_t i = 1; i < bare->n; i++)
        if (!is_lower(bare->p[i]) && !is_digit(bare->p[i]) && bare->p[i] != '_')
            return false;
    return true;
}

static str after_last_slash(str s)
{
    size_t from = 0;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '/')
            from = i + 1;
    return str_sub(s, from, s.n);
}

static bool starts_nocase(str s, str prefix)
{
    return s.n >= prefix.n && str_eq_nocase(str_sub(s, 0, prefix.n), prefix);
}

enum framework_kind copy_kind(str s)
{
    static const struct {
        str prefix;
        enum framework_kind kind;
    } known[] = {
        {STR_INIT("memcpyhtod"), FRAMEWORK_COPY_H2D},
        {STR_INIT("memcpyh2d"), FRAMEWORK_COPY_H2D},
        {STR_INIT("memcpydtoh"), FRAMEWORK_COPY_D2H},
        {STR_INIT("memcpyd2h"), FRAMEWORK_COPY_D2H},
        {STR_INIT("memcpydtod"), FRAMEWORK_COPY_D2D},
        {STR_INIT("memcpyd2d"), FRAMEWORK_COPY_D2D},
        {STR_INIT("memcpyp2p"), FRAMEWORK_COPY_D2D},
        {STR_INIT("memcpyhtoh"), FRAMEWORK_COPY_H2H},
        {STR_INIT("memcpy htod"), FRAMEWORK_COPY_H2D}, /* Kineto's */
        {STR_INIT("memcpy dtoh"), FRAMEWORK_COPY_D2H},
        {STR_INIT("memcpy dtod"), FRAMEWORK_COPY_D2D},
        {STR_INIT("memcpy ptop"), FRAMEWORK_COPY_D2D},
        {STR_INIT("memcpy htoh"), FRAMEWORK_COPY_H2H},
        {STR_INIT("copyhosttodevice"), FRAMEWORK_COPY_H2D},
        {STR_INIT("copydevicetohost"), FRAMEWORK_COPY_D2H},
        {STR_INIT("copydevicetodevice"), FRAMEWORK_COPY_D2D},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (starts_nocase(s, known[i].prefix))
            return known[i].kind;
    return FRAMEWORK_UNKNOWN;
}

struct framework_op framework_op_parse(str full_name)
{
    struct framework_op op = {FRAMEWORK_UNKNOWN, full_name, S("Unknown")};
    const ptrdiff_t colon = str_find_char(full_name, ':');
    if (colon < 0) {
        op.kind = copy_kind(full_name);
        return op;
    }
    const str name = str_sub(full_name, 0, (size_t)colon);
    const str type = str_sub(full_name, (size_t)colon + 1, full_name.n);
    if (str_eq(name, S("Iterator")))
        return (struct framework_op){FRAMEWORK_DATASET, full_name, S("Dataset")};
    if (str_eq(name, S("aten")) && str_starts(type, S(":")))
        return (struct framework_op){FRAMEWORK_TORCH, full_name, str_sub(type, 1, type.n)};
    if (is_tensorflow_type(type) && is_tensorflow_name(name))
        return (struct framework_op){FRAMEWORK_TENSORFLOW, name, type};
    const str derived = type.n == 0 ? after_last_slash(name) : type;
    str bare;
    if (is_jax_type(derived, &bare))
        return (struct framework_op){FRAMEWORK_JAX, name, bare};
    if (type.n == 0)
        return (struct framework_op){FRAMEWORK_TENSORFLOW, name, derived};
    return op;
}
