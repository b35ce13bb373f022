/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/datatable.h"

void datatable_begin(struct json *j, const struct datatable_column *columns, uint32_t n)
{
    json_object(j);
    json_key(j, "cols");
    json_array(j);
    for (uint32_t i = 0; i < n; i++) {
        json_object(j);
        json_kcstr(j, "id", columns[i].id);
        json_kcstr(j, "label", columns[i].label);
        json_kcstr(j, "type", columns[i].type);
        if (columns[i].role != NULL) {
            json_key(j, "p");
            json_object(j);
            json_kcstr(j, "role", columns[i].role);
            json_end(j);
        }
        json_end(j);
    }
    json_end(j);
    json_key(j, "rows");
    json_array(j);
}

static void cell(struct json *j)
{
    json_object(j);
    json_key(j, "v");
}

void datatable_number(struct json *j, double v)
{
    cell(j);
    json_f64(j, v);
    json_end(j);
}

void datatable_text(struct json *j, str v)
{
    cell(j);
    json_str(j, v);
    json_end(j);
}

void datatable_bool(struct json *j, bool v)
{
    cell(j);
    json_bool(j, v);
    json_end(j);
}

void datatable_properties(struct json *j)
{
    json_end(j);
    json_key(j, "p");
    json_object(j);
}

void datatable_end(struct json *j)
{
    json_end(j);
    json_end(j);
}
