/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the importer of Perfetto's traces: perfetto.c (file, packets), perfetto_clock.c (times),
 * perfetto_track.c (tracks into lines), perfetto_event.c (track events), perfetto_sched.c (ftrace). Not for others. */
#ifndef TACHO_FORMAT_PERFETTO_INTERNAL_H
#define TACHO_FORMAT_PERFETTO_INTERNAL_H

#include "format/wire.h"
#include "format/xspace_write.h"

enum interned {
    INTERNED_CATEGORY = 0,
    INTERNED_EVENT,
    INTERNED_ANNOTATION,
    INTERNED_STRING,
    N_INTERNED
};

#define DEFAULT_COUNTERS 8

/* State of one writer of packets. */
struct sequence {
    bool valid;                              /* nothing that it stands on was lost */
    struct map_u64_u32 interned[N_INTERNED]; /* iid to id of perfetto.texts */
    uint64_t track;                          /* default ones */
    uint64_t counters[DEFAULT_COUNTERS], double_counters[DEFAULT_COUNTERS];
    uint32_t n_counters, n_double_counters;
    uint32_t clock;
    int64_t reference_us; /* of timestamp_delta_us, in old traces */
};

struct clock {
    int64_t ahead_ns; /* the primary clock minus this one */
    int64_t last_ns;  /* of an incremental one */
    int64_t unit_ns;
    bool incremental, known;
};

struct pf_process {
    int64_t pid; /* -1: of no process */
    str name;
    struct xspace_plane_out *plane;
    struct xspace_line_out *counters;
    struct pf_process *next;
};

struct track {
    uint64_t uuid, parent;
    int64_t pid, tid;
    str name, thread_name, unit;
    bool has_parent, has_process, has_thread, is_counter, is_incremental;
    int64_t multiplier;
    double sum;                 /* of an incremental counter */
    struct pf_process *process; /* once asked for */
    struct xspace_line_out *line;
    struct buf types; /* of the line's events: enum track_event_type */
    struct track *next;
};

enum track_event_type {
    EVENT_UNSPECIFIED = 0,
    EVENT_BEGIN,
    EVENT_END,
    EVENT_INSTANT,
    EVENT_COUNTER,
    EVENT_WHOLE = 100, /* ours: begin and length in one */
};

struct pf_flow {
    uint64_t id;
    int64_t at_ns;
    uint64_t order; /* of the file */
    struct track *track;
    uint64_t event; /* of the track's line */
    bool ends;
};

struct cpu {
    struct xspace_line_out *line;
    int64_t since_ns, pid;
    uint32_t comm; /* of perfetto.texts */
    bool runs;
};

MAP_DEFINE(sequence_map, uint64_t, struct sequence *, map_hash_u64, map_eq_u64);
MAP_DEFINE(clock_map, uint64_t, struct clock, map_hash_u64, map_eq_u64);
MAP_DEFINE(track_map, uint64_t, struct track *, map_hash_u64, map_eq_u64);
MAP_DEFINE(pf_process_map, uint64_t, struct pf_process *, map_hash_u64, map_eq_u64);
MAP_DEFINE(cpu_map, uint64_t, struct cpu, map_hash_u64, map_eq_u64);

struct perfetto {
    struct xspace_writer w;
    struct interner texts;
    struct sequence_map sequences;
    struct clock_map clocks; /* by id; those of a sequence with its id above */
    struct track_map tracks;
    struct track *first_track, **last_track;
    struct pf_process_map processes;
    struct pf_process *first_process, **last_process;
    struct map_u64_u32 thread_names; /* tid to id of texts: of the process tree */
    struct cpu_map cpus;
    struct xspace_plane_out *sched;
    struct pf_flow *flows;
    uint32_t n_flows, flows_capacity;
    uint32_t primary_clock;
    int64_t wall_ahead_ns; /* wall time minus the primary clock */
    bool has_wall;
    struct buf text, name; /* scratch */
    uint64_t n_events, n_damaged, n_lost_state, n_unknown_clock, n_unknown_name, n_unbegun,
        n_unended, n_left_out, n_lone_flows, n_dropped;
};

/* The packet at hand, its fields that stand outside of the messages in it. */
struct packet {
    str bytes;
    uint64_t pos, timestamp, sequence_id;
    uint32_t clock, flags;
    bool has_timestamp, has_clock, cleared, dropped;
    struct sequence *sequence;
};

/* -- perfetto_clock.c -- */
void perfetto_clock_snapshot(struct perfetto *p, const struct packet *k, str message);
/* A time of that clock on the primary one. False when nobody knows the clock. */
bool perfetto_time(struct perfetto *p, const struct packet *k, uint32_t clock, uint64_t value,
                   int64_t *out_ns);

/* -- perfetto_track.c -- */
void perfetto_track_descriptor(struct perfetto *p, str message);
/* Old traces tell the thread of a sequence: its uuid. */
uint64_t perfetto_thread_track(struct perfetto *p, str message, int64_t *reference_us);
void perfetto_process_tree(struct perfetto *p, str message);
struct track *perfetto_track(struct perfetto *p, uint64_t uuid);
/* The track's line, made when it is first asked for. NULL beyond the limit. */
struct xspace_line_out *perfetto_line(struct perfetto *p, struct track *t);
struct pf_process *perfetto_process(struct perfetto *p, struct track *t);
/* Pairs begins and ends, links flows, names planes. */
void perfetto_finish_tracks(struct perfetto *p);

/* -- perfetto_event.c -- */
void perfetto_interned(struct perfetto *p, struct sequence *s, str message);
void perfetto_defaults(struct sequence *s, str message);
void perfetto_track_event(struct perfetto *p, const struct packet *k, str message);
/* The time of a packet, or with counting of what is unknown. */
bool perfetto_packet_time(struct perfetto *p, const struct packet *k, int64_t *out_ns);

/* -- perfetto_sched.c -- */
void perfetto_ftrace(struct perfetto *p, str message);

#endif
