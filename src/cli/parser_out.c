/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/parser_out.h"

#include <stdio.h>

enum tool_format parser_out_format(const struct cli *cli)
{
    switch (cli->output) {
    case CLI_OUTPUT_TEXT:
        return TOOL_TEXT;
    case CLI_OUTPUT_JSON:
        return TOOL_JSON;
    case CLI_OUTPUT_CSV:
        return TOOL_CSV;
    case CLI_OUTPUT_XPROF:
        return TOOL_XPROF;
    }
    return TOOL_TEXT;
}

bool parser_out_print(const struct buf *answer, struct err *e)
{
    return (fwrite(answer->p, 1, answer->n, stdout) == answer->n && fflush(stdout) == 0) ||
           err_sys(e, "cannot print");
}
