/* SPDX-License-Identifier: Apache-2.0 */
/* How far a long command is: a line on stderr that is written over, only on a terminal and only for
 * what takes more than a second (SURFACE "Rules for every command").
 *
 *     struct progress p;
 *     progress_init(&p, "exporting", "events");
 *     progress_show(&p, n_done, n_total);          as often as one likes; also in a forked child
 *     progress_end(&p);
 *
 * Thread: one at a time. */
#ifndef TACHO_CLI_PROGRESS_H
#define TACHO_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool on;
    const char *verb, *things;
    uint64_t begun_ns, shown_ns;
};

void progress_init(struct progress *p, const char *verb, const char *things);
void progress_show(struct progress *p, uint64_t n_done, uint64_t n_total);
void progress_end(struct progress *p);

#endif
