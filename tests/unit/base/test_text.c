/* SPDX-License-Identifier: Apache-2.0 */
/* Strings, buffers, arenas, maps, clocks, checksums, errors. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/map.h"
#include "base/sha256.h"

static void numbers(void **state)
{
    uint64_t u;
    int64_t i;
    double f;
    assert_true(str_to_u64(S("18446744073709551615"), &u));
    assert_true(u == UINT64_MAX);
    assert_false(str_to_u64(S("18446744073709551616"), &u));
    assert_false(str_to_u64(S(""), &u));
    assert_false(str_to_u64(S("1 "), &u));
    assert_true(str_to_i64(S("-9223372036854775808"), &i));
    assert_true(i == INT64_MIN);
    assert_false(str_to_i64(S("9223372036854775808"), &i));
    assert_false(str_to_i64(S("--1"), &i));
    assert_true(str_to_f64(S("1.5e3"), &f));
    assert_true(f == 1500);
    assert_false(str_to_f64(S(" 1"), &f));
    assert_true(str_to_duration_ns(S("1.5s"), 1, &i));
    assert_true(i == 1500000000);
    assert_true(str_to_duration_ns(S("2h"), 1, &i));
    assert_true(i == 7200000000000);
    assert_true(str_to_duration_ns(S("3"), NS_PER_MS, &i));
    assert_true(i == 3000000);
    assert_false(str_to_duration_ns(S("3 parsecs"), 1, &i));
    assert_false(str_to_duration_ns(S("999999999999d"), 1, &i));
    assert_true(str_to_bytes(S("16MiB"), &u));
    assert_true(u == 16777216);
    assert_true(str_to_bytes(S("2GB"), &u));
    assert_true(u == 2000000000);
    assert_false(str_to_bytes(S("-1"), &u));
    assert_false(str_to_bytes(S("MiB"), &u));
}

static void searching(void **state)
{
    str head, tail = S("a=b=c");
    assert_true(str_cut(tail, '=', &head, &tail));
    assert_true(str_eq(head, S("a")) && str_eq(tail, S("b=c")));
    assert_int_equal(str_find(S("abcabd"), S("abd")), 3);
    assert_int_equal(str_find(S("ab"), S("abc")), -1);
    assert_int_equal(str_find((str){0}, S("")), 0);
    assert_int_equal(str_find_nocase(S("xxHeLLo"), S("hello")), 2);
    assert_true(str_eq(str_trim(S(" \t a b \r\n")), S("a b")));
    assert_true(str_cmp(S("a"), S("ab")) < 0);
    assert_true(str_fnv1a(S("foobar")) == 0x85944171f73967e8u); /* the reference vector */
}

static void utf8(void **state)
{
    assert_true(str_is_utf8(S("aé€😀")));
    assert_false(str_is_utf8(S("\xc0\xaf")));         /* overlong */
    assert_false(str_is_utf8(S("\xed\xa0\x80")));     /* surrogate */
    assert_false(str_is_utf8(S("\xf4\x90\x80\x80"))); /* beyond U+10FFFF */
    assert_false(str_is_utf8(S("\xe2\x82")));         /* cut */
    assert_int_equal(str_clip_utf8(S("a€b"), 3).n, 1);
    assert_int_equal(str_clip_utf8(S("a€b"), 4).n, 4);
    assert_int_equal(str_clip_utf8(S("😀"), 3).n, 0);
}

static void arenas(void **state)
{
    struct arena a;
    struct err e = {0};
    arena_init(&a, "test", 1 << 20);
    uint8_t *p = arena_alloc(&a, 100, 64);
    assert_int_equal((uintptr_t)p % 64, 0);
    const struct arena_mark m = arena_mark(&a);
    memset(arena_alloc(&a, 1000, 1), 0xff, 1000);
    arena_reset(&a, m);
    const uint8_t *again = arena_alloc(&a, 1000, 1);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(again[i], 0);
    assert_null(arena_alloc(&a, 2 << 20, 1));
    assert_true(a.overflow);
    assert_null(arena_array(&a, SIZE_MAX / 2, 16, 8));
    assert_false(arena_full(&a, &e));
    assert_int_equal(e.code, ERR_LIMIT);
    uint32_t *numbers_held = NULL, n = 0, capacity = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(ARENA_PUSH(&a, numbers_held, n, capacity));
        numbers_held[n - 1] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(numbers_held[i], i);
    assert_true(a.used_bytes <= a.cap_bytes);
    arena_release(&a);
    arena_release(&a);
}

static void bufs(void **state)
{
    struct buf b;
    struct err e = {0};
    buf_init(&b, 10);
    assert_true(buf_addf(&b, "%d-%s", 12, "abc"));
    assert_true(buf_add(&b, "defg", 4));
    assert_string_equal(b.p, "12-abcdefg");
    assert_false(buf_add_char(&b, 'x'));
    assert_int_equal(b.n, 10);
    assert_false(buf_ok(&b, "the answer", &e));
    assert_int_equal(e.code, ERR_LIMIT);
    buf_clear(&b);
    assert_true(buf_add_str(&b, S("hello")));
    buf_consume(&b, 2);
    assert_string_equal(b.p, "llo");
    buf_release(&b);
    buf_release(&b);
}

static void maps(void **state)
{
    struct map_u64_u32 m = {0};
    for (uint32_t i = 0; i < 5000; i++)
        *map_u64_u32_put(&m, (uint64_t)i * 4096) = i;
    assert_int_equal(m.n, 5000);
    for (uint32_t i = 0; i < 5000; i++)
        assert_int_equal(*map_u64_u32_get(&m, (uint64_t)i * 4096), i);
    assert_null(map_u64_u32_get(&m, 1));
    size_t visited = 0;
    for (size_t i = 0; map_u64_u32_next(&m, &i);)
        visited++;
    assert_int_equal(visited, 5000);
    map_u64_u32_release(&m);

    struct arena a;
    struct interner in;
    arena_init(&a, "test", 0);
    interner_init(&in, &a);
    assert_int_equal(interner_id(&in, S("")), 0);
    assert_int_equal(interner_id(&in, S("one")), 1);
    assert_int_equal(interner_id(&in, S("two")), 2);
    assert_int_equal(interner_id(&in, S("one")), 1);
    assert_int_equal(interner_find(&in, S("three")), UINT32_MAX);
    assert_true(str_eq(interner_str(&in, 2), S("two")));
    interner_release(&in);
    arena_release(&a);
}

static void rfc3339(void **state)
{
    static const struct {
        str text;
        int64_t ns;
        const char *printed;
    } cases[] = {
        {STR_INIT("1970-01-01T00:00:00Z"), 0, "1970-01-01T00:00:00Z"},
        {STR_INIT("2000-02-29T12:00:00.5+01:00"), 951822000500000000, "2000-02-29T11:00:00.5Z"},
        {STR_INIT("1969-12-31T23:59:59.999999999Z"), -1, "1969-12-31T23:59:59.999999999Z"},
        {STR_INIT("2026-11-29T20:27:28.12-0730"), 1796011048120000000, "2026-11-30T03:57:28.12Z"},
    };
    char text[CLOCK_RFC3339_MAX];
    int64_t ns;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(clock_parse_rfc3339(cases[i].text, &ns));
        assert_int_equal(ns, cases[i].ns);
        assert_int_equal(clock_format_rfc3339(ns, text), strlen(cases[i].printed));
        assert_string_equal(text, cases[i].printed);
    }
    assert_false(clock_parse_rfc3339(S("2026-02-29T00:00:00Z"), &ns));
    assert_false(clock_parse_rfc3339(S("2026-01-01T00:00:00"), &ns));
    assert_false(clock_parse_rfc3339(S("2026-01-01T00:00:00.Z"), &ns));
    assert_false(clock_parse_rfc3339(S("9999-01-01T00:00:00Z"), &ns));
    clock_format_rfc3339(INT64_MIN, text);
    clock_format_rfc3339(INT64_MAX, text);
    const struct clock_anchor anchor = clock_anchor_take();
    assert_true(anchor.boottime_ns >= anchor.monotonic_ns - 1000000 && anchor.wall_ns > 0);
}

static void checksums(void **state)
{
    uint8_t zeros[32] = {0}, digest[SHA256_BYTES];
    char hex[SHA256_HEX];
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, zeros, 32), 0x8a9136aa); /* RFC 3720 B.4 */
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
    struct sha256 s;
    sha256_init(&s);
    for (int i = 0; i < 100000; i++)
        sha256_add(&s, "aaaaaaaaaa", 10);
    sha256_end(&s, digest);
    sha256_hex(digest, hex); /* a million times "a": NIST's long vector */
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    sha256_init(&s);
    sha256_add(&s, "a", 1);
    sha256_add(&s, "bc", 2);
    sha256_end(&s, digest);
    sha256_hex(digest, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

static void errors(void **state)
{
    struct err e = {0};
    assert_false(err_at(&e, ERR_PARSE, 812, "varint longer than %d bytes", 10));
    err_wrap(&e, "cannot open '%s'", "x");
    assert_string_equal(e.msg, "cannot open 'x': varint longer than 10 bytes at byte 812");
    assert_int_equal(e.pos, 812);
    assert_int_equal(err_exit_status(e.code), 4);
    errno = ENOENT;
    err_sys(&e, "cannot open '%s'", "y");
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_string_equal(e.msg, "cannot open 'y': No such file or directory");
    assert_string_equal(err_word(ERR_TOO_NEW), "too_new");
    const uint64_t before = err_odd_count();
    assert_false(err_odd_seen("planted", __FILE__, __LINE__));
    assert_int_equal(err_odd_count(), before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers), cmocka_unit_test(searching), cmocka_unit_test(utf8),
        cmocka_unit_test(arenas),  cmocka_unit_test(bufs),      cmocka_unit_test(maps),
        cmocka_unit_test(rfc3339), cmocka_unit_test(checksums), cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
