/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace_json.h"

void trace_stat_json(struct json *j, const struct trace_stat *s)
{
    json_key_str(j, s->name);
    switch (s->type) {
    case TRACE_STAT_F64:
        json_f64(j, s->f64);
        break;
    case TRACE_STAT_U64:
        json_u64(j, s->u64);
        break;
    case TRACE_STAT_I64:
        json_i64(j, s->i64);
        break;
    case TRACE_STAT_STR:
        json_str(j, s->text);
        break;
    case TRACE_STAT_BYTES:
        json_strf(j, "<%zu bytes>", s->text.n);
        break;
    case TRACE_STAT_NONE:
        json_null(j);
        break;
    }
}
