/* SPDX-License-Identifier: Apache-2.0 */
/* The one printer of tables. Text is aligned, with units scaled for people (UI.md §6 "Numbers");
 * control characters of hostile names are shown escaped. JSON keeps raw values:
 * {"table":NAME,"title",…,"columns":[{"name","title","unit","type"}],"values":{…},
 *  "rows":[[…]],"notes":[{"code","message","count"}]}; several tables are an array under "tables". */
#ifndef TACHO_MODEL_TABLE_PRINT_H
#define TACHO_MODEL_TABLE_PRINT_H

#include "base/json.h"
#include "model/table.h"

struct table_style {
    bool colour;       /* ANSI colours */
    uint32_t width;    /* of the terminal; 0 = unlimited */
    uint32_t max_rows; /* 0 = all */
};

void table_print_text(const struct table *t, const struct table_style *style, struct buf *out);
void table_print_json(const struct table *t, struct json *j);
void table_print_csv(const struct table *t, struct buf *out); /* RFC 4180, header line first */
/* One value as JSON; null when it is not known. */
void cell_print_json(struct json *j, const struct cell *c);

/* Text that cannot steer a terminal: control characters (C1 too) and what is not UTF-8 escaped as \xNN.
 * cell_format leaves text as it is: pass what others wrote through this first. */
str text_printable(struct arena *a, str s);
/* One value as a person reads it: "1.412 s", "475.6 µs", "64.0 MiB", "84.1 %", "–". */
str cell_format(struct arena *a, const struct cell *c, str unit);
/* Two units at most: "2 d 06 h", "3 m 12 s", "1.412 s". */
str format_duration_ns(struct arena *a, int64_t ns);

#endif
