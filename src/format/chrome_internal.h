/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the importer of Chrome's JSON: chrome.c (document and entries), chrome_phase.c (what
 * an entry becomes), chrome_args.c (arguments into stats), chrome_finish.c (what is known only at the end).
 * Not for others. */
#ifndef TACHO_FORMAT_CHROME_INTERNAL_H
#define TACHO_FORMAT_CHROME_INTERNAL_H

#include "format/json_scan.h"
#include "format/xspace_write.h"

enum role {
    PLAIN = 0,
    DEVICE,
    REGISTERS,
    SHARED_MEMORY,
    GRID,
    BLOCK,
    BYTES,
    MEMORY_BYTES,
    MEMORY_ADDRESS,
    MEMORY_DEVICE,
    MEMORY_DEVICE_TYPE,
    MEMORY_ALLOCATED,
    MEMORY_RESERVED,
    NAME,
    LABELS,
    SORT_INDEX,
    N_ROLES
};

enum own_stat {
#define X(name, stat) OWN_##name,
#include "format/chrome_own.def"
#undef X
    N_OWN
};

/* The name of an argument, once for the whole import. */
struct arg_name {
    str text; /* in the file */
    str stat;
    enum role role;
    uint32_t id;           /* 0, 1, 2 … */
    struct arg_name *then; /* that followed it the last time: mostly it does so again */
};

struct argument {
    struct arg_name *name;
    str text;
    enum json_scan_token type;
};

struct moment { /* of a microsecond number: exact to the picosecond */
    int64_t ns;
    uint32_t sub_ps;
    bool known;
};

struct entry { /* of the event list; all text stands in the scanner's windows */
    str name, phase, category, pid, tid, id, id_local, scope;
    struct moment start, length;
    struct argument *args; /* of import.args */
    uint32_t n_args;
    const struct argument *by_role[N_ROLES];
};

struct open_event {
    struct xspace_line_out *line;
    uint64_t event; /* of the line */
    struct moment start;
    struct open_event *outer;
};

/* Names of events that were written lately, by a few of their letters. */
#define NAMES_LATELY 256
struct name_lately {
    str name;
    uint32_t id;
};

struct process {
    str pid, name, label;
    struct xspace_plane_out *plane; /* NULL until something is on it */
    struct xspace_line_out *counters;
    uint32_t *stat_ids; /* of import.arg_names on the plane; 0 unknown yet */
    uint32_t n_stat_ids;
    uint32_t own_ids[N_OWN];
    struct name_lately *names_lately; /* NAMES_LATELY of them */
    int64_t device;                   /* of its kernels, or -1 */
    int64_t order;                    /* process_sort_index */
    bool runs_kernels, has_order;
    struct process *next;
};

/* Of one thread id. Kineto lays the user's annotations and waits over the kernels of a stream; and thread 0
 * of process 0 may be of the host while process 0 also stands for GPU 0. */
enum row { ROW_HOST = 0, ROW_KERNELS, ROW_OVER_KERNELS, N_ROWS };

struct thread {
    struct process *process;
    int64_t id, order;
    str tid, name;
    struct xspace_line_out *rows[N_ROWS]; /* NULL until there is something on them */
    struct open_event *open;
};

struct thread_key {
    str pid, tid;
};
uint64_t thread_key_hash(struct thread_key k);
bool thread_key_eq(struct thread_key a, struct thread_key b);

/* An end of an arrow. */
struct flow_point {
    uint64_t key; /* of category, name and id */
    struct moment at;
    struct thread *thread;
    char phase; /* s t f */
};

/* A record of PyTorch's allocator. */
struct memory_record {
    struct moment at;
    struct thread *thread;
    int64_t bytes, address, device, device_type, allocated, reserved;
    uint32_t made;
    bool has_totals;
};

MAP_DEFINE(process_map, str, struct process *, str_hash, str_eq);
MAP_DEFINE(thread_map, struct thread_key, struct thread *, thread_key_hash, thread_key_eq);
MAP_DEFINE(arg_map, str, struct arg_name *, str_hash, str_eq);
MAP_DEFINE(async_map, uint64_t, struct open_event *, map_hash_u64, map_eq_u64);
MAP_DEFINE(line_map, uint64_t, struct xspace_line_out *, map_hash_u64, map_eq_u64);

struct chrome {
    struct json_scan scan;
    struct xspace_writer w;
    struct argument *args; /* of the entry at hand; owned */
    uint32_t args_capacity;
    struct process_map processes;
    struct process *first, **last;
    struct thread_map threads;
    struct thread *last_thread; /* of the entry before */
    struct arg_map arg_names;
    struct arg_name *last_arg;
    struct async_map async; /* begun, by process, category and id */
    struct line_map async_lines;
    struct flow_point *flows;
    uint32_t n_flows, flows_capacity;
    struct memory_record *memory;
    uint32_t n_memory, memory_capacity;
    struct open_event *free_events;
    struct buf text;              /* scratch */
    str *meta_names, *meta_texts; /* of the document; one each */
    uint32_t n_meta, meta_names_capacity, meta_texts_capacity;
    uint64_t n_unended, n_unbegun, n_left_out, n_no_time, n_events, n_args_left_out,
        n_meta_left_out;
    uint64_t n_lone_flows;
    int64_t base_ns, rank, world_size;
    bool cut, has_rank, has_world_size, is_kineto;
};

/* -- chrome_args.c -- */

bool chrome_number(str text, int64_t *out);
/* "1234.5678" microseconds. */
struct moment chrome_moment(str text);
struct arg_name *chrome_arg_name(struct chrome *c, str text);
/* The id of an argument's stat on the process's plane, which is there. */
uint32_t chrome_stat_id(struct chrome *c, struct process *p, const struct arg_name *name);
/* The id of an event's name on the process's plane. */
uint32_t chrome_name_id(struct chrome *c, struct process *p, str name);
uint32_t chrome_stat_named(struct chrome *c, struct process *p, enum own_stat stat);
/* All arguments of the entry as stats of the event that follows on the line. */
void chrome_write_args(struct chrome *c, struct process *p, struct xspace_line_out *l,
                       const struct entry *n);

/* -- chrome_phase.c -- */

/* What the entry becomes. */
void chrome_take(struct chrome *c, const struct entry *n);

/* -- chrome_finish.c -- */

/* Binds flows, writes what was collected, names planes and rows. */
MUST_CHECK bool chrome_finish(struct chrome *c, int to_fd, struct err *e);

uint64_t chrome_span_ps(struct moment from, struct moment to);

#endif
