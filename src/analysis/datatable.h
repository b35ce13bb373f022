/* SPDX-License-Identifier: Apache-2.0 */
/* Google DataTable JSON, the form of XProf's table tools:
 * {"cols":[{id,label,type}],"rows":[{"c":[{"v":x}]}],"p":{properties, all strings}}.
 *
 *     static const struct datatable_column columns[] = {{"rank", "Rank", "number"}, …};
 *     datatable_begin(&j, columns, COUNT);
 *       datatable_row(&j); datatable_number(&j, 1); … datatable_row_end(&j);
 *     datatable_properties(&j); json_kcstr(&j, "host_count", "1"); datatable_end(&j); */
#ifndef TACHO_ANALYSIS_DATATABLE_H
#define TACHO_ANALYSIS_DATATABLE_H

#include "base/json.h"

struct datatable_column {
    const char *id, *label, *type;
    const char *role; /* "tooltip", "interval"; NULL = a value */
};

void datatable_begin(struct json *j, const struct datatable_column *columns, uint32_t n);
static inline void datatable_row(struct json *j)
{
    json_object(j);
    json_key(j, "c");
    json_array(j);
}
static inline void datatable_row_end(struct json *j)
{
    json_end(j);
    json_end(j);
}
void datatable_number(struct json *j, double v);
void datatable_text(struct json *j, str v);
void datatable_bool(struct json *j, bool v);
/* Ends the rows, begins the properties. */
void datatable_properties(struct json *j);
/* Ends the properties and the table. */
void datatable_end(struct json *j);

#endif
