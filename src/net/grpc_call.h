/* SPDX-License-Identifier: Apache-2.0 */
/* One unary gRPC call over plain HTTP/2, on a connection of its own: libcurl before 8.0 (Debian 12 has
 * 7.88) breaks off the second request of a connection without TLS (curl/curl#10634).
 *
 *     if (!grpc_call("http://localhost:8431/package.Service/Method", request, 100, &answer, e)) ...
 *     ... buf_str(&answer) is the message ...
 *
 * Made for servers on this host: no TLS, no proxy (whatever the environment says), no redirect.
 * Source: gRPC over HTTP/2 (PROTOCOL-HTTP2.md of grpc/grpc): prior knowledge, one frame of a 0 byte and
 * a big-endian length, grpc-status among the trailers (or the headers, when there is no message).
 * Errors: UNREACHABLE (no connection, time over, not HTTP/2), UNAVAILABLE (a grpc-status that is not 0),
 * LIMIT (an answer beyond the cap of its buf), PARSE (no or more than one frame, a compressed one, no
 * grpc-status), USAGE. Thread: any. */
#ifndef TACHO_NET_GRPC_CALL_H
#define TACHO_NET_GRPC_CALL_H

#include "base/buf.h"

/* Waits for at most timeout_ms (> 0) in all. answer was initialised with its cap; what it held is
 * gone, and it holds the message only when this returns true. */
MUST_CHECK bool grpc_call(const char *url, str request, uint64_t timeout_ms, struct buf *answer,
                          struct err *e);

#endif
