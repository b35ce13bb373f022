/* SPDX-License-Identifier: Apache-2.0 */
/* What the clients over libcurl share. Only for this folder. */
#ifndef TACHO_NET_CURL_INSIDE_H
#define TACHO_NET_CURL_INSIDE_H

#include <curl/curl.h>

#include "base/buf.h"

/* Starts libcurl once per process. Thread: any. */
void net_curl_start(void);
/* Adds name and value as one header line. Error: USAGE (a line break in it, too long). */
MUST_CHECK bool net_curl_header(struct curl_slist **list, const char *name, const char *value,
                                struct err *e);
/* Keeps the value when the line "Name: value" is of that name, cut to the space of it. */
void net_curl_keep(str line, str name, char *to, size_t to_size);

#endif
