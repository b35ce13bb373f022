/* SPDX-License-Identifier: Apache-2.0 */
/* Facts as they come from the parser's process, which may be in a stranger's hands: what is taken
 * packs to the same bytes again, and a report of it can be made. */
#include "analysis/facts.h"
#include "base/limits.h"
#include "report/build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const struct profile_facts *f, str bytes)
{
    struct err e = {0};
    struct buf again;
    struct report r;
    buf_init(&again, LIMIT_ARENA_REQUEST_BYTES);
    must(profile_facts_pack(f, &again, &e));
    must(str_eq(buf_str(&again), bytes));
    buf_release(&again);
    const struct report_input in = {.subject = S("fuzz"), .facts = f, .profile = S("p")};
    if (!report_build(&r, &in, &e))
        must(e.code != ERR_NONE);
    report_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct arena a;
    struct err e = {0};
    struct profile_facts f;
    const str bytes = {(const char *)data, n};
    arena_init(&a, "fuzz", LIMIT_ARENA_REQUEST_BYTES);
    if (profile_facts_unpack(bytes, &a, &f, &e))
        check(&f, bytes);
    else
        must(e.code != ERR_NONE && e.msg[0] != '\0');
    arena_release(&a);
    return 0;
}
