/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines on stderr for the daemons: level, domain, message; text for people, one JSON object a
 * line with TACHO_LOG_FORMAT=json. The same call site prints at most 10 lines in 10 s and then
 * says how many it left out. Command-line errors are not log lines (cli prints them).
 *
 *     #define LOG_DOMAIN "server"     before the include
 *     log_warn("client %s went away after %" PRIu64 " bytes", peer, n);
 *
 * Thread: any. */
#ifndef TACHO_BASE_LOG_H
#define TACHO_BASE_LOG_H

#include "base/err.h"

enum log_level { LOG_LEVEL_DEBUG = 0, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };
enum log_format { LOG_FORMAT_TEXT = 0, LOG_FORMAT_JSON };

/* One per call site; zero-initialised static. */
struct log_site {
    uint64_t window_start_ns; /* monotonic */
    uint32_t printed, dropped;
};

#ifndef LOG_DOMAIN
#define LOG_DOMAIN "tacho"
#endif

void log_setup(enum log_level least, enum log_format format);
void log_write(struct log_site *site, enum log_level level, const char *domain, const char *format,
               ...) PRINTF_LIKE(4, 5);

#define LOG_AT(level, ...)                                                                         \
    do {                                                                                           \
        static struct log_site log_site_here;                                                      \
        log_write(&log_site_here, (level), LOG_DOMAIN, __VA_ARGS__);                               \
    } while (0)
#define log_debug(...) LOG_AT(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...) LOG_AT(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) LOG_AT(LOG_LEVEL_ERROR, __VA_ARGS__)

#endif
