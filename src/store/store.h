/* SPDX-License-Identifier: Apache-2.0 */
/* What a server keeps, behind two tables of functions: metadata (SQLite) and blobs (a folder).
 *
 *     struct store_meta *m = sqlite_open(path, e);
 *     if (!m->ops->ingest(m, &in, &out, e)) ...      returns after the commit
 *     m->ops->close(m);
 *
 * Batches of journal records are immutable rows, kept as they came. A change returns true only when
 * it is durable; changes of several threads share one commit (docs/why/020-group-commit.md). Times
 * are wall nanoseconds. Text that is handed out lives in the given arena. Fails with ERR_IO,
 * ERR_NOT_FOUND, ERR_CONFLICT, ERR_TOO_NEW. Thread: any. */
#ifndef TACHO_STORE_STORE_H
#define TACHO_STORE_STORE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "journal/reader.h"

/* ---- journals and their batches ---- */

struct store_ingest {
    const struct journal_info *info; /* of the journal's header */
    str header;                      /* the header record as it stands in the file */
    str run;                         /* run id, a safe name; the header's unless a token binds it */
    str records;                     /* whole records, one after the other; unseen ones are kept */
    int64_t received_ns;
    str file;                 /* local journal: its path below the data folder; else empty */
    uint64_t file_size_bytes; /* how much of the file has been followed with this batch */
};

struct store_range {
    uint64_t from, to; /* [from, to) */
};
#define STORE_MISSING_MAX 256

struct store_ingested {
    uint64_t next_seq; /* one more than the highest record number kept */
    uint64_t n_new;    /* records that were not there before */
    int64_t batch;     /* id of the new row, 0 = none */
    struct store_range missing[STORE_MISSING_MAX]; /* numbers below next_seq that never came */
    uint32_t n_missing;
};

struct store_journal {
    str id, run, host, header;
    uint64_t next_seq, n_records;
    int64_t first_received_ns, last_received_ns;
};

struct store_batch {
    int64_t id;
    str journal, records;
    int64_t received_ns;
};

/* ---- runs ---- */

struct store_run { /* what a listing needs; `summary` is the run's JSON object of the API */
    str run, name, group, phase, reason, health;
    int64_t started_ns, ended_ns, last_ns; /* ended 0 = not yet */
    str summary;
    str details;   /* JSON object with its configs and labels, for filters */
    int64_t batch; /* newest batch that the summary knows */
};

struct store_run_query {
    str text;                  /* part of id, name or group, ASCII case ignored */
    str state;                 /* a phase, reason or health word */
    int64_t before_started_ns; /* cursor: runs older than (started, run) */
    str before_run;            /* empty = from the newest */
    uint32_t limit;
};

/* ---- sessions, their targets, uploads ---- */

struct store_session {
    str session; /* run~name */
    str run, name, kind, status, report_status, first_finding;
    int64_t from_ns, to_ns; /* 0 = not known */
    int64_t created_ns;
    uint64_t size_bytes;
    uint32_t n_targets;
    int64_t n_findings; /* -1 = no report yet */
};

struct store_target {
    str session, target, host;
    uint64_t size_bytes;
    int64_t planes, lines, events; /* -1 = not read yet */
};

/* ---- jobs ---- */

struct store_job {
    int64_t id;
    str kind, subject, state,
        error; /* kind: report; subject: session id; queued running done failed */
    int64_t created_ns, started_ns, ended_ns;
    uint32_t tries;
};

/* ---- tokens and logins ---- */

enum store_role { ROLE_NONE = 0, ROLE_INGEST, ROLE_AGENT, ROLE_VIEWER, ROLE_OPERATOR, ROLE_ADMIN };
const char *store_role_word(enum store_role r);
bool store_role_find(str word, enum store_role *out);

struct store_token { /* the token itself is never kept, only its SHA-256 */
    int64_t id;
    str hash; /* 64 hex digits */
    str name;
    enum store_role role;
    str run_group;                  /* ingest tokens: the group it may write; empty = any */
    int64_t created_ns, expires_ns; /* expires 0 = never */
};

/* A request to make a token that its client may repeat, HTTP's Idempotency-Key. */
struct store_token_request {
    str key;               /* SHA-256, as hex, of who asks and of the key */
    char salt[SHA256_HEX]; /* of the request that made the token */
    char hash[SHA256_HEX]; /* of that token */
    bool is_repeated;
};
#define STORE_TOKEN_REQUEST_NS (24 * 3600 * NS_PER_S) /* so long a repetition is known */

/* ---- metric blocks: compacted series ---- */

struct store_block {
    int64_t id;
    str run, journal, name, kind; /* kind: metric or system */
    int64_t from_ns, to_ns;       /* first and last point */
    uint64_t n_points;
    str points, levels; /* store/block.h */
};

struct store_meta;
struct store_meta_ops {
    void (*close)(struct store_meta *m);
    /* Commits a page as it is: for /readyz. */
    bool (*ping)(struct store_meta *m, struct err *e);

    bool (*ingest)(struct store_meta *m, const struct store_ingest *in, struct store_ingested *out,
                   struct err *e);
    bool (*journal_get)(struct store_meta *m, str id, struct arena *a, struct store_journal *out,
                        struct err *e);
    bool (*journals)(struct store_meta *m, str run, struct arena *a, struct store_journal **out,
                     uint32_t *n, struct err *e);
    /* Batches of a run with id > after, oldest first, at least one and then up to max_bytes. */
    bool (*batches)(struct store_meta *m, str run, int64_t after, uint64_t max_bytes,
                    struct arena *a, struct store_batch **out, uint32_t *n, struct err *e);
    /* Id of the run's newest batch, 0 = none. */
    bool (*last_batch)(struct store_meta *m, str run, int64_t *out, struct err *e);
    /* How much of a local journal file has been followed; 0 = never seen. */
    bool (*file_followed)(struct store_meta *m, str file, uint64_t *size_bytes, struct err *e);

    bool (*run_put)(struct store_meta *m, const struct store_run *r, struct err *e);
    bool (*run_get)(struct store_meta *m, str run, struct arena *a, struct store_run *out,
                    struct err *e);
    bool (*runs)(struct store_meta *m, const struct store_run_query *q, struct arena *a,
                 struct store_run **out, uint32_t *n, struct err *e);
    /* Ids of runs with batches that their summary does not know, and of runs that are going. */
    bool (*runs_stale)(struct store_meta *m, struct arena *a, str **out, uint32_t *n,
                       struct err *e);

    bool (*session_put)(struct store_meta *m, const struct store_session *s,
                        const struct store_target *targets, uint32_t n, struct err *e);
    bool (*session_get)(struct store_meta *m, str session, struct arena *a,
                        struct store_session *out, struct err *e);
    /* All, or those of one run (run not empty); newest first, older than `before` (created_ns,
     * session) when it is not 0. */
    bool (*sessions)(struct store_meta *m, str run, int64_t before_ns, str before, uint32_t limit,
                     struct arena *a, struct store_session **out, uint32_t *n, struct err *e);
    bool (*targets)(struct store_meta *m, str session, struct arena *a, struct store_target **out,
                    uint32_t *n, struct err *e);

    /* A job for the subject unless one of that kind is queued already; *id either way. */
    bool (*job_add)(struct store_meta *m, str kind, str subject, int64_t now_ns, int64_t *id,
                    struct err *e);
    /* Takes the oldest queued job; false with ERR_NOT_FOUND when there is none. */
    bool (*job_claim)(struct store_meta *m, int64_t now_ns, struct arena *a, struct store_job *out,
                      struct err *e);
    bool (*job_end)(struct store_meta *m, int64_t id, str state, str error, int64_t now_ns,
                    struct err *e);
    bool (*job_get)(struct store_meta *m, int64_t id, struct arena *a, struct store_job *out,
                    struct err *e);
    /* Jobs that a server which died had running are queued again; after 3 tries they failed. */
    bool (*jobs_recover)(struct store_meta *m, struct err *e);

    bool (*token_put)(struct store_meta *m, const struct store_token *t, struct err *e);
    /* The same, unless a request of that key did it before: then salt and hash are that one's. */
    bool (*token_put_once)(struct store_meta *m, const struct store_token *t,
                           struct store_token_request *r, struct err *e);
    bool (*token_find)(struct store_meta *m, str hash, struct arena *a, struct store_token *out,
                       struct err *e);
    bool (*tokens)(struct store_meta *m, struct arena *a, struct store_token **out, uint32_t *n,
                   struct err *e);
    bool (*token_delete)(struct store_meta *m, int64_t id, struct err *e);

    /* Puts the blocks and remembers that batches up to `batch` are in them, in one commit. */
    bool (*blocks_put)(struct store_meta *m, str run, int64_t batch,
                       const struct store_block *blocks, uint32_t n, struct err *e);
    bool (*blocks)(struct store_meta *m, str run, str name, struct arena *a,
                   struct store_block **out, uint32_t *n, struct err *e);
    /* Newest batch that is in blocks, 0 = none; how many batches came after it. */
    bool (*compacted)(struct store_meta *m, str run, int64_t *batch, uint64_t *n_after,
                      struct err *e);
};
struct store_meta {
    const struct store_meta_ops *ops;
};

/* Opens or makes the database at `path` on a local file system; migrates it forward. Owned.
 * A newer database: ERR_TOO_NEW; a file that is none of ours: ERR_PARSE. */
struct store_meta *sqlite_open(const char *path, struct err *e);

/* ---- blobs ---- */

struct store_blob;
struct store_blob_ops {
    void (*close)(struct store_blob *b);
    /* Keys are safe names joined by slashes: "runs/<run>/plugins/profile/<session>/report.json".
     * Whole or not at all, durable when true. */
    bool (*put)(struct store_blob *b, str key, str content, struct err *e);
    /* A descriptor to read from, -1 on failure. Owned by the caller. */
    int (*open)(struct store_blob *b, str key, uint64_t *size_bytes, struct err *e);
    bool (*get)(struct store_blob *b, str key, uint64_t max_bytes, struct arena *a, str *out,
                struct err *e);
    /* Joins n parts (keys part_key + "0", "1", …) into key, checks size and SHA-256 (64 hex
     * digits), removes the parts. */
    bool (*join)(struct store_blob *b, str key, str part_key, uint32_t n, str sha256,
                 uint64_t *size_bytes, struct err *e);
    /* Names below a folder key, sorted; none when it does not exist. */
    bool (*list)(struct store_blob *b, str key, struct arena *a, str **names, size_t *n,
                 struct err *e);
    bool (*remove)(struct store_blob *b, str key, struct err *e);
};
struct store_blob {
    const struct store_blob_ops *ops;
};

/* Blobs below a data folder. Owned. */
struct store_blob *folder_open(const char *data_dir, struct err *e);

#endif
