/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

#define WINDOW_NS (10 * NS_PER_S)
#define PRINTED_MAX 10
#define LINE_CAP_BYTES 16384

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the two settings and all sites */
static enum log_level least_level = LOG_LEVEL_INFO;
static enum log_format line_format = LOG_FORMAT_TEXT;

static const char *const level_words[] = {"debug", "info", "warn", "error"};

void log_setup(enum log_level least, enum log_format format)
{
    pthread_mutex_lock(&lock);
    least_level = least;
    line_format = format;
    pthread_mutex_unlock(&lock);
}

/* True when the site may print now; *left_out gets what it swallowed in the window before. */
static bool may_print(struct log_site *site, uint32_t *left_out)
{
    const uint64_t now_ns = clock_monotonic_ns();
    *left_out = 0;
    if (site->window_start_ns == 0 || now_ns - site->window_start_ns > (uint64_t)WINDOW_NS) {
        *left_out = site->dropped;
        *site = (struct log_site){.window_start_ns = now_ns};
    }
    if (site->printed < PRINTED_MAX) {
        site->printed++;
        return true;
    }
    site->dropped++;
    return false;
}

static void add_text(struct buf *line, const char *time, const char *level, const char *domain,
                     str message, uint32_t left_out)
{
    buf_addf(line, "%s %s %s: ", time, level, domain);
    for (size_t i = 0; i < message.n; i++) {
        const uint8_t c = (uint8_t)message.p[i];
        if (c < 0x20 || c == 0x7f)
            buf_addf(line, "\\x%02x", c);
        else
            buf_add_char(line, (char)c);
    }
    if (left_out > 0)
        buf_addf(line, " (%u more like this left out)", left_out);
    buf_add_char(line, '\n');
}

static void add_json(struct buf *line, const char *time, const char *level, const char *domain,
                     str message, uint32_t left_out)
{
    struct json j;
    struct err ignored;
    json_init_buf(&j, line);
    json_object(&j);
    json_kcstr(&j, "time", time);
    json_kcstr(&j, "level", level);
    json_kcstr(&j, "domain", domain);
    json_kstr(&j, "message", message);
    if (left_out > 0)
        json_ku64(&j, "left_out", left_out);
    json_end(&j);
    if (json_done(&j, &ignored))
        buf_add_char(line, '\n');
}

void log_write(struct log_site *site, enum log_level level, const char *domain, const char *format,
               ...)
{
    uint32_t left_out;
    pthread_mutex_lock(&lock);
    const bool wanted = level >= least_level && may_print(site, &left_out);
    const enum log_format form = line_format;
    pthread_mutex_unlock(&lock);
    if (!wanted)
        return;

    struct buf message, line;
    buf_init(&message, LINE_CAP_BYTES / 4);
    buf_init(&line, LINE_CAP_BYTES * 2);
    va_list args;
    va_start(args, format);
    if (!buf_addv(&message, format, args))
        buf_add_str(&message, S("(message too long)"));
    va_end(args);
    if (message.overflow) {
        buf_clear(&message);
        buf_add_str(&message, S("(message too long)"));
    }
    char time[CLOCK_RFC3339_MAX];
    clock_format_rfc3339(clock_wall_ns(), time);
    (form == LOG_FORMAT_JSON ? add_json : add_text)(&line, time, level_words[level], domain,
                                                    buf_str(&message), left_out);
    /* One write a line, so that lines of several threads never mix; nowhere to report failure. */
    if (line.n > 0 && write(STDERR_FILENO, line.p, line.n) < 0)
        err_odd_seen("log line written", __FILE__, __LINE__);
    buf_release(&message);
    buf_release(&line);
}
