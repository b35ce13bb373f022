/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_limits.h"

#include <stdio.h>

#include "base/limits.h"

void profile_limits_of(struct cli *cli, struct profile_limits *out)
{
    struct err ignored = {0};
    const str cache = config_text(cli->config, CONFIG_FIELD_cache);
    snprintf(out->cache, sizeof out->cache, "%.*s", STR_ARG(cache));
    if (!run_arg_data_dir(cli, out->data, &ignored))
        out->data[0] = '\0'; /* no file lies in it */
    out->places = (struct index_places){
        .cache = out->cache, .data = out->data, .least_bytes = LIMIT_INDEX_LEAST_BYTES};
    out->parser = (struct parser_limits){
        .memory_bytes = (uint64_t)config_number(cli->config, CONFIG_FIELD_parser_memory),
        .cpu_s = (uint64_t)config_number(cli->config, CONFIG_FIELD_parser_cpu) / 1000000000u,
        .indexes = &out->places};
}
