/* SPDX-License-Identifier: Apache-2.0 */
/* What copies and fills of memory the devices did, by direction and kind of memory.
 *
 * Direction and memory are said by the event's name ("Memcpy HtoD (Pageable -> Device)", "MemcpyH2D",
 * "CopyDeviceToDevice") and by its memcpy_details ("kind_src:pageable kind_dst:device … num_bytes:N" of
 * NVIDIA's recorder, "kind:HostToDevice size:N dest:2 async:1" of AMD's). What neither says is unknown. A TPU
 * core's own transfers are those of its line "Async XLA Ops"; with the host, its infeed, outfeed, send and
 * recv, whose time holds the waiting for the host: no rate is made of it.
 *
 * Exposed is what of the copies' time (several at once counted once) the device neither computed nor
 * communicated in; rows may share it.
 *
 * Everything lives in the arena. Thread: one at a time. */
#ifndef TACHO_ANALYSIS_COPIES_H
#define TACHO_ANALYSIS_COPIES_H

#include "analysis/device_work.h"

enum copy_direction {
    COPY_UNKNOWN = 0,
    COPY_H2D,
    COPY_D2H,
    COPY_D2D,
    COPY_P2P, /* between devices */
    COPY_H2H,
    COPY_FILL,
    COPY_DIRECTIONS
};

struct copy_of { /* what one event says */
    enum copy_direction direction;
    str from, to; /* "pageable", "pinned", "device", "host" …; empty: unknown */
    uint64_t bytes;
    bool has_bytes;
};

/* name and details as the event has them, either may be empty; the texts of the result are static. */
struct copy_of copy_parse(str name, str details);
/* "H2D" … "fill"; NULL: unknown. */
const char *copy_direction_word(enum copy_direction d);

struct copy_row {
    uint32_t device; /* of the work_devices */
    enum copy_direction direction;
    str from, to;
    uint64_t count, time_ps;
    uint64_t sized, bytes;          /* of those whose bytes are known */
    uint64_t timed_ps, timed_bytes; /* of those that lasted, for the rate */
    uint64_t exposed_ps;
    bool waits; /* its time holds waiting for the host */
    struct spans spans;
};

struct copies {
    struct work_devices devices;
    struct copy_row *rows; /* by device, direction, memory */
    uint32_t n, capacity;
};

MUST_CHECK bool copies_of(const struct profile *p, struct arena *a, struct copies *out,
                          struct err *e);

#endif
