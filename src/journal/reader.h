/* SPDX-License-Identifier: Apache-2.0 */
/* Reads journals: whole, damaged, or still being written.
 *
 *     struct journal_reader r;
 *     if (!journal_reader_open(&r, path, e)) return false;
 *     struct journal_record rec;
 *     while ((got = journal_reader_next(&r, &rec, e)) == JOURNAL_GOT_RECORD) use(&rec);
 *     journal_reader_close(&r);
 *
 * At the end of a live file next() answers JOURNAL_AT_END; a later call goes on where it was.
 * Damage never stops it: lost bytes and records are counted and described in `damage`.
 * Source: docs/formats/journal.md. Thread: one at a time. */
#ifndef TACHO_JOURNAL_READER_H
#define TACHO_JOURNAL_READER_H

#include "base/arena.h"
#include "base/clock.h"
#include "journal/journal_format.h"

struct journal_info { /* from the header record */
    uint8_t id[16];
    char id_hex[33];
    uint8_t boot_id[16];
    enum journal_role role;
    struct clock_anchor anchor; /* of the header */
    int32_t rank;               /* -1 = unknown */
    uint32_t world_size, pid, restart_count;
    uint64_t pid_namespace;               /* 0 = unknown */
    char run[128], host[256], writer[64]; /* NUL-terminated, clipped */
};

struct journal_record {
    enum journal_type type;
    uint16_t flags;
    uint64_t boottime_ns, seq;
    int64_t wall_ns;        /* by the newest anchor before it */
    uint64_t offset;        /* of the record in the file */
    const uint8_t *payload; /* borrowed until the next call; side files are already read in: then
                               flag SIDE is cleared, and it stays set, with no payload, when the
                               file is missing or not what its digest says */
    size_t n;
    const uint8_t *raw; /* the whole record as it stands in the file; borrowed likewise */
    size_t n_raw;
};

struct journal_damage {
    uint64_t n_places;                 /* stretches of bytes that are no record */
    uint64_t lost_bytes, lost_records; /* records: numbers not seen so far below the highest seen
                                           (threads write a little out of order; a number that
                                           shows up later is no longer lost) */
    uint64_t first_offset;             /* of the first stretch */
    uint64_t tail_bytes;               /* incomplete record at the end, perhaps being written */
};

enum journal_got { JOURNAL_GOT_RECORD, JOURNAL_AT_END, JOURNAL_FAILED };

#define JOURNAL_GAPS_MAX 64

struct journal_reader {
    int fd;
    char *path; /* owned */
    struct journal_info info;
    struct journal_damage damage;
    struct clock_anchor anchor; /* newest */
    uint64_t next_seq;
    /* private: */
    uint8_t *window;
    size_t window_bytes, have, at;
    uint64_t window_offset;
    uint8_t *side;
    size_t side_bytes;
    struct journal_gap {
        uint64_t from, to; /* numbers in [from, to) have not been seen */
    } gaps[JOURNAL_GAPS_MAX];
    uint32_t n_gaps;
    bool in_damage; /* the place at `at` belongs to a stretch that was counted already */
};

/* Fails with ERR_PARSE at a byte when the file does not begin with a journal header (a damaged
 * header too: without it nobody knows whose records these are). */
MUST_CHECK bool journal_reader_open(struct journal_reader *r, const char *path, struct err *e);
enum journal_got journal_reader_next(struct journal_reader *r, struct journal_record *rec,
                                     struct err *e);
void journal_reader_close(struct journal_reader *r);

/* One record in memory, for ingest and fuzzing: bytes consumed (> 0), 0 = need more, -1 = not a
 * record here. */
int64_t journal_parse(const uint8_t *p, size_t n, struct journal_record *rec);
MUST_CHECK bool journal_parse_header(const struct journal_record *rec, struct journal_info *info,
                                     struct err *e);

struct record_set;
/* Adds every record of one journal, or of all journals in a run folder, to the set, decoded and
 * sorted. Wall times are boot time plus the header's offset, so a clock that is set while the journal is
 * written neither reorders records nor changes durations (note `clock_set`). A journal of the folder
 * that cannot be read is left out with the note `journal_unreadable`; a folder without any journal is
 * ERR_NOT_FOUND. */
MUST_CHECK bool journal_decode_file(struct record_set *s, const char *path, struct err *e);
MUST_CHECK bool journal_decode_run(struct record_set *s, const char *run_dir, struct err *e);
/* Adds the process that wrote a journal; its index, or UINT32_MAX beyond the arena's cap. */
uint32_t journal_decode_process(struct record_set *s, const struct journal_info *info);
/* Adds what one raw record says (several records for METRICS); for the server's stored batches. */
MUST_CHECK bool journal_decode_record(struct record_set *s, uint32_t process,
                                      const struct journal_record *rec, struct err *e);

#endif
