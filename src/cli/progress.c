/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define SILENT_NS NS_PER_S
#define EVERY_NS (200 * NS_PER_MS)

void progress_init(struct progress *p, const char *verb, const char *things)
{
    *p = (struct progress){.on = isatty(STDERR_FILENO) == 1,
                           .verb = verb,
                           .things = things,
                           .begun_ns = clock_monotonic_ns()};
}

void progress_show(struct progress *p, uint64_t n_done, uint64_t n_total)
{
    char text[160];
    const uint64_t now = p->on ? clock_monotonic_ns() : 0;
    const uint64_t since_ns = now - p->begun_ns;
    if (!p->on || n_total == 0 || n_done == 0 || since_ns < SILENT_NS ||
        now - p->shown_ns < EVERY_NS)
        return;
    p->shown_ns = now;
    const double s = (double)since_ns / 1e9, rate = (double)n_done / s;
    const uint64_t left = n_total > n_done ? n_total - n_done : 0;
    const int n =
        snprintf(text, sizeof text, "\r%s: %3.0f %%, %.3g million %s/s, %.0f s left\033[K", p->verb,
                 100.0 * (double)(n_total - left) / (double)n_total, rate / 1e6, p->things,
                 (double)left / rate);
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
        p->on = false;
}

void progress_end(struct progress *p)
{
    static const char clear[] = "\r\033[K";
    if (p->on && clock_monotonic_ns() - p->begun_ns >= SILENT_NS &&
        write(STDERR_FILENO, clear, sizeof clear - 1) < 0)
        p->on = false;
}
