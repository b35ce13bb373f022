/* SPDX-License-Identifier: Apache-2.0 */
#include "base/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config c = {0};
    struct err e;
    if (!config_parse(&c, (str){(const char *)data, size}, "input", &e))
        must(e.code != ERR_NONE && e.msg[0] != '\0');
    config_release(&c);
    return 0;
}
