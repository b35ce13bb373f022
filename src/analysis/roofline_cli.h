/* SPDX-License-Identifier: Apache-2.0 */
/* The device's limits as XProf's command line prints them: the members of an object, bandwidths in GiB/s. */
#ifndef TACHO_ANALYSIS_ROOFLINE_CLI_H
#define TACHO_ANALYSIS_ROOFLINE_CLI_H

#include "analysis/roofline.h"
#include "base/json.h"

/* Limits that are not known are null. */
void roofline_device_members(struct json *j, const struct roofline *f);
/* The same as rows of a table. NULL beyond the arena's cap. */
struct table *roofline_device_table(const struct roofline *f, struct arena *a);

#endif
