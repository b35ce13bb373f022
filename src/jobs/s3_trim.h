/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes entries of jobs/s3_place.h that nobody holds, those first that were not used for longest, until all that
 * nobody here holds has at most most_bytes on the disk, and there are not too many of them. Cannot fail. */
#ifndef TACHO_JOBS_S3_TRIM_H
#define TACHO_JOBS_S3_TRIM_H

#include <stdint.h>

#define S3_LOCK_NAME ".lock"

void s3_trim(const char *root, uint64_t most_bytes);

#endif
