/* SPDX-License-Identifier: Apache-2.0 */
/* What happened in a run, as plain records: decoded from our journals (journal/reader.h) or from
 * flat ml-goodput-measurement entries (format/entries.h), and the only input of goodput/.
 * Times are wall-clock nanoseconds; for journals, boot time tied to the wall by anchors, so a clock
 * that is set back does not reorder them. */
#ifndef TACHO_MODEL_RECORD_H
#define TACHO_MODEL_RECORD_H

#include "base/arena.h"
#include "model/note.h"

enum record_kind {
    RECORD_NONE = 0,
    RECORD_PROCESS_START, /* text = JSON (docs/formats/journal.md) */
    RECORD_PROCESS_END,   /* code, signal; text = reason word */
    RECORD_BEGIN,         /* phase, step, text = custom type */
    RECORD_END,           /* phase, step, text = custom type */
    RECORD_METRIC,        /* text = name, value, step or -1 */
    RECORD_SYSTEM,        /* text = name with labels, value */
    RECORD_CONFIG,        /* text = JSON object */
    RECORD_HOST,          /* text = JSON object of host facts */
    RECORD_OUTPUT,        /* text = bytes; code = 1 stdout, 2 stderr */
    RECORD_SESSION,       /* text = JSON: a profile was captured */
    RECORD_EVENT,         /* text = JSON: something happened */
    RECORD_HEARTBEAT,
    RECORD_DROPPED,      /* value = records that could not be written; code = errno */
    RECORD_CHECKPOINT,   /* duration_ns of blocking save or restore logged afterwards (Orbax) */
    RECORD_ELASTIC,      /* active, total, available slices */
    RECORD_RUNNER_START, /* `tacho run` began to watch CMD: one attempt of the launcher */
    RECORD_RUNNER_END,   /* CMD ended: code, signal */
};

/* What a begin/end pair is about; the words are in phases.def. */
enum record_phase {
#define X(name, value, word, category, meaning) PHASE_##name = value,
#include "model/phases.def"
#undef X
};

struct record {
    enum record_kind kind;
    enum record_phase phase;
    int64_t wall_ns;
    int64_t step; /* -1 = none */
    double value;
    int64_t duration_ns; /* RECORD_CHECKPOINT */
    int32_t code, signal;
    uint32_t process; /* index into the set's processes */
    uint32_t thread;  /* of the process, of BEGIN and END: 1, 2 …; 0 = unknown */
    uint64_t seq;     /* in its journal */
    str text;
};

/* Of the process that wrote a journal, asked of this host's kernel (journal/presence.h). */
enum record_presence {
    PRESENCE_UNKNOWN = 0, /* of another host, boot or namespace, or the kernel does not tell */
    PRESENCE_THERE,
    PRESENCE_GONE,
};

/* One process's life, from one journal. */
struct record_process {
    str journal_id; /* 32 hex digits */
    str host;
    int32_t rank;        /* of a `tacho run` too, that each rank has; -1 = unknown, or above all */
    uint32_t world_size; /* ranks of its job; 0 = unknown */
    uint32_t pid;
    uint32_t attempt; /* 1, 2 …: the launcher's count, then the ledger's; 0 = unknown or several */
    int64_t start_ns, last_ns; /* wall: header and newest record */
    bool runner;               /* written by `tacho run` */
    uint8_t boot_id[16];       /* of the kernel it ran on; zeros = unknown */
    uint64_t boottime_ns;      /* of the header, on that kernel's clock */
    uint64_t pid_namespace;    /* that pid is of; 0 = unknown */
    bool ended;                /* has RECORD_PROCESS_END */
    /* Before its newest records were read: GONE = no more will come. */
    enum record_presence presence;
    uint64_t gone_seen_ns; /* monotonic: first seen gone by who reads its records late; 0 = never */
    uint64_t n_records, n_lost, lost_bytes;
};

struct record_set {
    struct arena arena;
    str run; /* run id, or the job name of flat entries */
    struct record_process *processes;
    uint32_t n_processes, processes_capacity;
    struct record *records; /* by wall_ns, then process, then seq, after record_set_sort */
    uint32_t n_records, records_capacity;
    bool entries_only; /* from flat entries: step ends and crashes are not logged */
    int64_t query_ns;  /* "now" for a run that is still going; 0 = last record */
    struct note *notes;
    uint32_t n_notes, notes_capacity;
};

void record_set_init(struct record_set *s, size_t cap_bytes);
void record_set_release(struct record_set *s);
/* NULL beyond the arena's cap. */
struct record *record_set_add(struct record_set *s);
struct record_process *record_set_add_process(struct record_set *s);
void record_set_sort(struct record_set *s);
/* How many of the world's ranks have no journal in the set; *world is the largest world size that
 * a process tells, 0 when none does: then nothing is known to be missing. */
uint32_t record_set_missing_ranks(const struct record_set *s, uint32_t *world);
void record_set_note(struct record_set *s, str code, uint64_t count, const char *format, ...)
    PRINTF_LIKE(4, 5);

#endif
