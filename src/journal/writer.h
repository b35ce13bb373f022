/* SPDX-License-Identifier: Apache-2.0 */
/* Writes one process's journal (docs/formats/journal.md).
 *
 *     struct journal_writer w;
 *     const struct journal_writer_opts o = {.data_dir = dir, .run = id, .host = host, .rank = 0};
 *     if (journal_writer_open(&w, &o) != 0) ...            errno value; the workload goes on
 *     journal_write_phase(&w, JOURNAL_BEGIN, PHASE_STEP, step, (str){0});
 *     journal_writer_close(&w);
 *
 * Guest code: each record is one write(2) from the stack, without a lock, a thread or an allocation.
 * Nothing fails the caller: a record that cannot be written is counted, and the count goes to the
 * file as a DROPPED record as soon as the file takes records again. After
 * JOURNAL_WRITER_PATIENCE failures in a row the writer is quiet and tries once every
 * JOURNAL_WRITER_RETRY_NS. A record beyond RLIMIT_FSIZE is dropped without the call, because
 * SIGXFSZ would end the workload; a limit that the workload itself lowers is known within
 * JOURNAL_LIMIT_EVERY_NS. In a forked child the writer is quiet for good.
 * A zeroed writer is a closed one. Thread: any for the write functions; open and close alone. */
#ifndef TACHO_JOURNAL_WRITER_H
#define TACHO_JOURNAL_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "journal/journal_format.h"

#define JOURNAL_WRITER_PATIENCE 64
#define JOURNAL_WRITER_RETRY_NS 1000000000ull
#define JOURNAL_LIMIT_EVERY_NS 1000000ull /* RLIMIT_FSIZE is read at most this often */
#define JOURNAL_ANCHOR_EVERY_NS 60000000000ull

struct journal_writer_opts {
    const char *data_dir; /* <data> */
    const char *run;      /* run id; a safe file name */
    const char *host;
    const char *writer;     /* NULL: "tacho-c/<version>" */
    enum journal_role role; /* RUNNER: the file's rank is the word `run` */
    int32_t rank;           /* -1 = unknown */
    uint32_t world_size;    /* 0 = unknown */
    uint32_t restart_count; /* UINT32_MAX = unknown */
};

struct journal_writer {
    _Atomic int fd_plus_1; /* 0 = closed */
    uint32_t pid;
    const volatile uint32_t *not_forked; /* page that the kernel wipes in a child, or NULL */
    _Atomic uint64_t seq;                /* of the next record */
    _Atomic uint64_t n_bytes;            /* of the file, for RLIMIT_FSIZE */
    _Atomic uint64_t limit_bytes, limit_read_ns; /* RLIMIT_FSIZE, and when it was read */
    _Atomic uint64_t anchor_boottime_ns;         /* of the newest anchor */
    _Atomic uint64_t n_dropped;                  /* since the last DROPPED record */
    _Atomic uint64_t n_dropped_total;
    _Atomic uint64_t retry_boottime_ns; /* quiet until then */
    _Atomic uint32_t n_failures;        /* in a row */
    _Atomic int last_errno;
    uint8_t journal_id[16];
    char path[4096];
};

/* Makes the folders and the file and writes the header. 0, or an errno value (w is then closed). */
int journal_writer_open(struct journal_writer *w, const struct journal_writer_opts *o);
/* Writes nothing itself: PROCESS_END is the caller's to write. Closing twice is harmless. */
void journal_writer_close(struct journal_writer *w);
bool journal_writer_is_open(const struct journal_writer *w);

/* One record with the payload head + tail. True when it is in the file: it then survives SIGKILL.
 * A payload beyond JOURNAL_PAYLOAD_MAX goes to a side file. */
bool journal_write(struct journal_writer *w, enum journal_type type, str head, str tail);
/* JOURNAL_BEGIN or JOURNAL_END; step -1 = none; custom_type may be empty. The record names the calling
 * thread by its number: 1, 2 … in the order in which the process's threads first came here. */
bool journal_write_phase(struct journal_writer *w, enum journal_type type, uint8_t phase,
                         int64_t step, str custom_type);
/* One metric; JOURNAL_METRICS or JOURNAL_SYSTEM. Names are clipped to 1,024 bytes. */
bool journal_write_metric(struct journal_writer *w, enum journal_type type, int64_t step, str name,
                          double value);
enum journal_checkpoint_kind { JOURNAL_CHECKPOINT_SAVE = 1, JOURNAL_CHECKPOINT_RESTORE = 2 };
bool journal_write_checkpoint(struct journal_writer *w, enum journal_checkpoint_kind kind,
                              int64_t step, int64_t duration_ns);
bool journal_write_output(struct journal_writer *w, uint8_t stream, str text);
/* JOURNAL_PROCESS_END or JOURNAL_RUNNER_END. */
bool journal_write_end_of(struct journal_writer *w, enum journal_type type, int32_t exit_code,
                          int32_t signal, str reason);

#endif
