/* SPDX-License-Identifier: Apache-2.0 */
/* What S3 servers answer, and what none of them should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/limits.h"
#include "net/s3_xml.h"

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define NAMESPACE " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

static struct arena a;

static int arena_up(void **state)
{
    (void)state;
    arena_init(&a, "s3 test", LIMIT_ARENA_REQUEST_BYTES);
    return 0;
}

static int arena_down(void **state)
{
    (void)state;
    arena_release(&a);
    return 0;
}

static void listing(void **state)
{
    struct s3_page page;
    struct err e = {0};
    (void)state;
    assert_true(s3_xml_list(
        S(HEAD
          "<ListBucketResult" NAMESPACE "><Name>b</Name><Prefix/><KeyCount>2</KeyCount>"
          "<!-- a comment --><IsTruncated>true</IsTruncated>"
          "<NextContinuationToken>a&amp;b/=</NextContinuationToken>"
          "<Contents><Key>runs/1/h.xplane.pb</Key><LastModified>2026-01-31T23:59:59.500Z</"
          "LastModified>"
          "<ETag>&quot;0f-3&quot;</ETag><Size>12345678901</Size><Owner><ID>x</ID></Owner></"
          "Contents>"
          "<Contents><Key>&lt;&#x1F600;&#38;></Key><ETag>\"ab\"</ETag><Size>0</Size></Contents>"
          "<CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes></ListBucketResult>\n"),
        &a, &page, &e));
    assert_int_equal(page.n, 2);
    assert_true(str_eq(page.items[0].key, S("runs/1/h.xplane.pb")));
    assert_true(str_eq(page.items[0].etag, S("0f-3")));
    assert_int_equal(page.items[0].size_bytes, 12345678901);
    assert_true(page.items[0].modified_ns == 1769903999500000000);
    assert_true(str_eq(page.items[1].key, S("<\xf0\x9f\x98\x80&>")));
    assert_true(page.is_cut && str_eq(page.next, S("a&b/=")));
}

static void keys_encoded_as_in_an_address(void **state)
{
    struct s3_page page;
    struct err e = {0};
    (void)state;
    assert_true(s3_xml_list(
        S("<ListBucketResult><Contents><Key>a+b%2Bc%C3%A9</Key><ETag>x</ETag></Contents>"
          "<EncodingType>url</EncodingType></ListBucketResult>"),
        &a, &page, &e));
    assert_true(str_eq(page.items[0].key, S("a b+c\xc3\xa9")));
    assert_false(page.is_cut);
}

static void an_empty_listing(void **state)
{
    struct s3_page page;
    struct err e = {0};
    (void)state;
    assert_true(s3_xml_list(S("<s3:ListBucketResult/>"), &a, &page, &e));
    assert_int_equal(page.n, 0);
}

static void no_listing(void **state)
{
    static const str bad[] = {
        STR_INIT(""),
        STR_INIT("not found"),
        STR_INIT("<html><body>x</body></html>"),
        STR_INIT("<Error><Code>AccessDenied</Code></Error>"),
        STR_INIT("<ListBucketResult><Contents>"),
        STR_INIT("<ListBucketResult></Contents>"),
        STR_INIT("<ListBucketResult></ListBucketResult><More/>"),
        STR_INIT("<ListBucketResult></ListBucketResult>more"),
        STR_INIT("<!DOCTYPE x [<!ENTITY a \"b\">]><ListBucketResult/>"),
        STR_INIT("<ListBucketResult><a><a><a><a><a><a><a><a/></a></a></a></a></a></a></a></"
                 "ListBucketResult>"),
        STR_INIT("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"),
        STR_INIT("<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult>"),
        STR_INIT("<ListBucketResult><Contents><Key>&x;</Key><ETag>e</ETag></Contents></"
                 "ListBucketResult>"),
        STR_INIT("<ListBucketResult><Contents><Key>&#xd800;</Key><ETag>e</ETag></Contents></"
                 "ListBucketResult>"),
        STR_INIT("<ListBucketResult><Contents><Size>-1</Size></Contents></ListBucketResult>"),
        STR_INIT("<ListBucketResult><Contents><Size>18446744073709551616</Size></Contents></"
                 "ListBucketResult>"),
        STR_INIT("<ListBucketResult><Contents><Key>%4</Key><ETag>e</ETag></Contents>"
                 "<EncodingType>url</EncodingType></ListBucketResult>"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct s3_page page;
        struct err e = {0};
        if (s3_xml_list(bad[i], &a, &page, &e))
            fail_msg("taken: %.*s", STR_ARG(bad[i]));
        assert_int_equal(e.code, ERR_PARSE);
    }
}

static void errors(void **state)
{
    struct s3_error said;
    struct err e = {0};
    (void)state;
    assert_true(s3_xml_error(
        S(HEAD "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'a' is "
               "wrong; expecting 'b'</Message><Region>eu-west-1</Region></Error>"),
        &a, &said, &e));
    assert_true(str_eq(said.code, S("AuthorizationHeaderMalformed")));
    assert_true(str_eq(said.region, S("eu-west-1")));
    assert_false(s3_xml_error(S("<Error><Message>no code</Message></Error>"), &a, &said, &e));
    assert_false(s3_xml_error(S("<html></html>"), &a, &said, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(listing, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(keys_encoded_as_in_an_address, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(an_empty_listing, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(no_listing, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(errors, arena_up, arena_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
