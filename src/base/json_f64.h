/* SPDX-License-Identifier: Apache-2.0 */
/* One number of base/json.h, alone: for a file that has jansson, whose names are those of that header. */
#ifndef TACHO_BASE_JSON_F64_H
#define TACHO_BASE_JSON_F64_H

#include <stddef.h>

/* Shortest decimal that reads back as v (finite), as JSON wants it. Returns the length. */
#define JSON_F64_MAX 32
size_t json_format_f64(double v, char out[static JSON_F64_MAX]);

#endif
