/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands that ask a parser share: the form of its answer, and printing that. */
#ifndef TACHO_CLI_PARSER_OUT_H
#define TACHO_CLI_PARSER_OUT_H

#include "analysis/tool.h"
#include "cli/cli.h"

enum tool_format parser_out_format(const struct cli *cli);
/* The answer to stdout. */
MUST_CHECK bool parser_out_print(const struct buf *answer, struct err *e);

#endif
