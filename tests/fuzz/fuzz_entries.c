/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as flat entries: refused with a position, or a ledger that sums. */
#include "format/entries.h"
#include "goodput/ledger_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct record_set s;
    struct ledger l;
    struct err e = {0};
    record_set_init(&s, 64 << 20);
    if (!entries_parse(&s, (str){(const char *)data, size}, "input", &e)) {
        must(e.code != ERR_NONE && e.msg[0] != '\0');
    } else {
        record_set_sort(&s);
        if (ledger_build(&s, &l, &e))
            must(ledger_check(&l));
        else
            must(e.code != ERR_NONE);
    }
    record_set_release(&s);
    return 0;
}
