/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that this project does not use; force-included into every C file, so that one of them is
 * a compile error that names its replacement. System headers come first: they declare the real ones. */
#ifndef TACHO_BASE_BANNED_H
#define TACHO_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TACHO_BANNED(call, use) banned_##call##_use_##use
#undef strcpy
#define strcpy(d, s) TACHO_BANNED(strcpy, memcpy_or_buf)
#undef strcat
#define strcat(d, s) TACHO_BANNED(strcat, buf)
#undef strncpy
#define strncpy(d, s, n) TACHO_BANNED(strncpy, memcpy_or_buf)
#undef strncat
#define strncat(d, s, n) TACHO_BANNED(strncat, buf)
#undef strtok
#define strtok(s, d) TACHO_BANNED(strtok, str_cut)
#undef sprintf
#define sprintf(...) TACHO_BANNED(sprintf, snprintf)
#undef vsprintf
#define vsprintf(...) TACHO_BANNED(vsprintf, vsnprintf)
#undef gets
#define gets(s) TACHO_BANNED(gets, fgets)
#undef atoi
#define atoi(s) TACHO_BANNED(atoi, str_to_i64)
#undef atof
#define atof(s) TACHO_BANNED(atof, str_to_f64)
#undef localtime
#define localtime(t) TACHO_BANNED(localtime, localtime_r)
#undef gmtime
#define gmtime(t) TACHO_BANNED(gmtime, gmtime_r)
#undef ctime
#define ctime(t) TACHO_BANNED(ctime, clock_format_rfc3339)
#undef asctime
#define asctime(t) TACHO_BANNED(asctime, clock_format_rfc3339)

#endif
