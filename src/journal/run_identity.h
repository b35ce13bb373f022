/* SPDX-License-Identifier: Apache-2.0 */
/* Which run this process belongs to and which part of it it is, from the environment alone, so that
 * every process of a run on every host finds the same answer without talking to the others.
 *
 * Run id: TACHO_RUN_ID, else the first 12 letters [0-9a-z] of a SHA-256 over the launcher's identity
 * (Slurm cluster, job and step; torchrun; Kubernetes job uid; Open MPI) where that names one job, else
 * random (docs/why/022-run-id-from-the-launcher.md).
 * Rank, world size and restart count come from the same launchers. Unknown stays unknown: rank -1,
 * world size 0, restart count UINT32_MAX. Source: SURFACE "Run id". Guest-safe (libc only, no
 * allocation, no failure). Thread: any, as long as nobody calls setenv meanwhile. */
#ifndef TACHO_JOURNAL_RUN_IDENTITY_H
#define TACHO_JOURNAL_RUN_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_ID_MAX 65 /* with the NUL; a given TACHO_RUN_ID may be longer than our own 12 letters */
#define RUN_ID_LETTERS 12

enum run_id_source { RUN_ID_GIVEN = 0, RUN_ID_LAUNCHER, RUN_ID_RANDOM };

struct run_identity {
    char run[RUN_ID_MAX];
    char host[256];    /* of gethostname, made safe as a file name */
    char launcher[32]; /* "torchrun", "slurm", "kubernetes", "openmpi", "ray", "jax" or empty */
    enum run_id_source source;
    const char *alone;      /* why other processes of this job find other ids; NULL = they don't */
    int32_t rank;           /* global, -1 = unknown */
    int32_t local_rank;     /* on its host, -1 = unknown */
    uint32_t world_size;    /* 0 = unknown */
    uint32_t restart_count; /* of the launcher, UINT32_MAX = unknown */
};

void run_identity_find(struct run_identity *id);

/* Twelve random letters [0-9a-z]. */
void run_id_random(char out[static RUN_ID_LETTERS + 1]);
/* Twelve letters from the SHA-256 of the text; the same text, the same letters. */
void run_id_derive(const char *text, size_t n, char out[static RUN_ID_LETTERS + 1]);
/* True when s can be a run id: 1..64 bytes of [A-Za-z0-9._-], not starting with a dot. */
bool run_id_is_valid(const char *s);

/* Number of this process's pid namespace, 0 = unknown: pids of two namespaces do not compare. */
uint64_t run_pid_namespace(void);

/* TACHO_DATA, else $XDG_DATA_HOME/tachograph, else $HOME/.local/share/tachograph. False when none
 * is set or out is too small. */
bool run_data_dir(char *out, size_t out_size);

#endif
