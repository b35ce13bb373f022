/* SPDX-License-Identifier: Apache-2.0 */
/* Tachograph's C API: says what a workload does, so that `tacho` can tell where its time went.
 *
 *     struct tacho_opts opts = TACHO_OPTS_INIT;
 *     opts.name = "my-training";
 *     tacho_run *run = tacho_open(&opts);
 *     for (long long step = 0; step < n; step++) {
 *         tacho_event_begin(run, TACHO_DATA_LOADING, -1, NULL);
 *         ...
 *         tacho_event_end(run, TACHO_DATA_LOADING, -1, NULL);
 *         tacho_event_begin(run, TACHO_STEP, step, NULL);
 *         ...
 *         tacho_event_end(run, TACHO_STEP, step, NULL);
 *         tacho_metric(run, "loss", loss, step);
 *     }
 *     tacho_close(run, 0);
 *
 * Each call is one write(2) to this process's journal; once it has returned, the record survives
 * SIGKILL. No call fails the caller, starts a thread, takes a lock or touches the network. `run` may be
 * NULL (when nothing could be opened): every call then does nothing. All functions may be called
 * from any thread; open and close once a process. A forked child has to open a run of its own.
 * Which run, rank and host this is comes from the environment (docs/formats/journal.md). */
#ifndef TACHOGRAPH_TACHOGRAPH_H
#define TACHOGRAPH_TACHOGRAPH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TACHO_API __attribute__((visibility("default")))

typedef struct tacho_run tacho_run;

/* What a begin/end pair is about. The numbers are those of phases.def and of the file format. */
enum tacho_event {
    TACHO_JOB = 1,
    TACHO_ACCELERATOR_INIT = 2,
    TACHO_TRAINING_PREP = 3,
    TACHO_DATA_LOADING = 4,
    TACHO_STEP = 5,
    TACHO_CHECKPOINT_SAVE = 6,
    TACHO_CHECKPOINT_RESTORE = 7,
    TACHO_COMPILE = 8,
    TACHO_EVAL = 9,
    TACHO_CUSTOM = 10, /* named by custom_type */
    TACHO_ELASTIC_WAIT = 11,
    TACHO_ELASTIC_REINIT = 12,
    TACHO_IDLE = 13
};

struct tacho_opts {
    size_t sz;               /* sizeof(struct tacho_opts) of the caller: TACHO_OPTS_INIT sets it */
    const char *name;        /* of the run: a label; NULL = TACHO_RUN_NAME or none */
    const char *group;       /* run group; NULL = TACHO_RUN_GROUP or none */
    const char *run_id;      /* NULL = from the environment, else random */
    const char *data_dir;    /* NULL = TACHO_DATA, else $XDG_DATA_HOME/tachograph */
    const char *config_json; /* JSON object of the run's configuration; NULL = none */
};
#define TACHO_OPTS_INIT                                                                            \
    {                                                                                              \
        sizeof(struct tacho_opts), NULL, NULL, NULL, NULL, NULL                                    \
    }

/* opts may be NULL. NULL when the journal could not be made; `errno` then says why. */
TACHO_API tacho_run *tacho_open(const struct tacho_opts *opts);
/* The id of the run and the path of this process's journal; "" for NULL. Owned by run. */
TACHO_API const char *tacho_run_id(const tacho_run *run);
TACHO_API const char *tacho_journal_path(const tacho_run *run);

/* step -1 = none. custom_type: NULL, or the name of a TACHO_CUSTOM or TACHO_ELASTIC_WAIT event.
 * An end closes the newest open begin of the same event, type and thread. TACHO_DATA_LOADING holds the
 * loop up where the thread that records the steps records it; on another thread it is prefetching. */
TACHO_API void tacho_event_begin(tacho_run *run, enum tacho_event event, int64_t step,
                                 const char *custom_type);
TACHO_API void tacho_event_end(tacho_run *run, enum tacho_event event, int64_t step,
                               const char *custom_type);
/* Between two steps, for a loop that has one place only: ends the step that is open and begins this
 * one. step -1 ends the open step alone. From one thread. */
TACHO_API void tacho_step(tacho_run *run, int64_t step);
TACHO_API void tacho_metric(tacho_run *run, const char *name, double value, int64_t step);
/* A JSON object; later ones add to or replace keys of earlier ones. */
TACHO_API void tacho_config(tacho_run *run, const char *json);
enum tacho_checkpoint { TACHO_SAVED = 1, TACHO_RESTORED = 2 };
/* A checkpoint that held up the loop for duration_ns until now, told afterwards. */
TACHO_API void tacho_checkpoint(tacho_run *run, enum tacho_checkpoint kind, int64_t step,
                                int64_t duration_ns);
/* "I am alive", for long stretches without other records. */
TACHO_API void tacho_heartbeat(tacho_run *run);
/* Records that could not be written since tacho_open. */
TACHO_API uint64_t tacho_dropped(const tacho_run *run);
/* The process ends with this exit code as far as the run is concerned. Frees run. */
TACHO_API void tacho_close(tacho_run *run, int exit_code);

#ifdef __cplusplus
}
#endif

#endif
