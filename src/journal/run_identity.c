/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/run_identity.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sha256.h"

#define TEXT_MAX 1024

static const char *env_or_null(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The first of the names (NULL-terminated list) that holds a number below 2^31, or -1. */
static int32_t env_number(const char *const names[])
{
    for (; *names != NULL; names++) {
        const char *value = env_or_null(*names);
        if (value == NULL)
            continue;
        uint64_t number = 0;
        const char *p = value;
        while (*p >= '0' && *p <= '9' && number <= INT32_MAX)
            number = number * 10 + (uint64_t)(*p++ - '0');
        if (p != value && *p == '\0' && number <= INT32_MAX)
            return (int32_t)number;
    }
    return -1;
}
#define ENV_NUMBER(...) env_number((const char *const[]){__VA_ARGS__, NULL})

static void letters_of(const uint8_t *bytes, char out[static RUN_ID_LETTERS + 1])
{
    static const char alphabet[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    for (int i = 0; i < RUN_ID_LETTERS; i++)
        out[i] = alphabet[(bytes[2 * i] << 8 | bytes[2 * i + 1]) % 36];
    out[RUN_ID_LETTERS] = '\0';
}

void run_id_derive(const char *text, size_t n, char out[static RUN_ID_LETTERS + 1])
{
    uint8_t digest[SHA256_BYTES];
    struct sha256 sha;
    sha256_init(&sha);
    sha256_add(&sha, text, n);
    sha256_end(&sha, digest);
    letters_of(digest, out);
}

void run_id_random(char out[static RUN_ID_LETTERS + 1])
{
    uint8_t bytes[SHA256_BYTES] = {0};
#ifdef SYS_getrandom
    if (syscall(SYS_getrandom, bytes, sizeof bytes, 1 /* GRND_NONBLOCK */) == sizeof bytes) {
        letters_of(bytes, out);
        return;
    }
#endif
    const uint64_t seed[3] = {clock_boottime_ns(), (uint64_t)clock_wall_ns(), (uint64_t)getpid()};
    run_id_derive((const char *)seed, sizeof seed, out);
}

bool run_id_is_valid(const char *s)
{
    const size_t n = strlen(s);
    if (n == 0 || n >= RUN_ID_MAX || s[0] == '.')
        return false;
    return strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

/* What the launcher calls this run, the same in all its processes; false when there is none. */
static bool launcher_text(const char **launcher, char text[static TEXT_MAX])
{
    const char *torch = env_or_null("TORCHELASTIC_RUN_ID");
    const char *slurm = env_or_null("SLURM_JOB_ID");
    const char *coordinator = env_or_null("JAX_COORDINATOR_ADDRESS");
    static const char *const uid_names[] = {"JOBSET_UID", "JOB_UID",    "LWS_UID",
                                            "RAY_JOB_ID", "RAYJOB_UID", NULL};
    static const char *const mpi_names[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
                                            "PMI_JOBID", NULL};
    if (torch != NULL && strcmp(torch, "none") != 0) {
        *launcher = "torchrun";
        snprintf(text, TEXT_MAX, "torchrun %s", torch);
        return true;
    }
    if (slurm != NULL) {
        const char *cluster = env_or_null("SLURM_CLUSTER_NAME"),
                   *step = env_or_null("SLURM_STEP_ID");
        *launcher = "slurm";
        snprintf(text, TEXT_MAX, "slurm %s %s %s", cluster ? cluster : "", slurm, step ? step : "");
        return true;
    }
    for (int i = 0; uid_names[i] != NULL; i++) {
        if (env_or_null(uid_names[i]) != NULL) {
            *launcher = "kubernetes";
            snprintf(text, TEXT_MAX, "%s %s", uid_names[i], env_or_null(uid_names[i]));
            return true;
        }
    }
    if (torch != NULL) { /* a static rendezvous has no id but its address and its agent's pid */
        const char *address = env_or_null("MASTER_ADDR"), *port = env_or_null("MASTER_PORT");
        const bool one_host = ENV_NUMBER("WORLD_SIZE") == ENV_NUMBER("LOCAL_WORLD_SIZE");
        *launcher = "torchrun";
        snprintf(text, TEXT_MAX, "torchrun %s:%s %ld", address ? address : "", port ? port : "",
                 one_host ? (long)getppid() : 0L);
        return true;
    }
    for (int i = 0; mpi_names[i] != NULL; i++) {
        if (env_or_null(mpi_names[i]) != NULL) {
            *launcher = "openmpi";
            snprintf(text, TEXT_MAX, "mpi %s", env_or_null(mpi_names[i]));
            return true;
        }
    }
    if (coordinator != NULL) {
        *launcher = "jax";
        snprintf(text, TEXT_MAX, "jax %s", coordinator);
        return true;
    }
    return false;
}

static void find_host(char host[static 256])
{
    if (gethostname(host, 255) != 0 || host[0] == '\0' || host[0] == '.')
        memcpy(host, "unknown", sizeof "unknown");
    host[255] = '\0';
    for (char *p = host; *p != '\0'; p++)
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
              *p == '.' || *p == '_' || *p == '-'))
            *p = '_';
}

void run_identity_find(struct run_identity *id)
{
    memset(id, 0, sizeof *id);
    find_host(id->host);
    id->rank = ENV_NUMBER("RANK", "SLURM_PROCID", "JAX_PROCESS_ID", "OMPI_COMM_WORLD_RANK",
                          "PMI_RANK", "PMIX_RANK", "JOB_COMPLETION_INDEX");
    id->local_rank =
        ENV_NUMBER("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID");
    const int32_t world = ENV_NUMBER("WORLD_SIZE", "SLURM_NTASKS", "JAX_NUM_PROCESSES",
                                     "OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
    id->world_size = world < 0 ? 0 : (uint32_t)world;
    id->restart_count = (uint32_t)ENV_NUMBER("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT",
                                             "JOBSET_RESTART_ATTEMPT");

    char text[TEXT_MAX];
    const char *launcher = "";
    const bool has_launcher = launcher_text(&launcher, text);
    snprintf(id->launcher, sizeof id->launcher, "%s", launcher);
    const char *given = env_or_null("TACHO_RUN_ID");
    if (given != NULL && run_id_is_valid(given)) {
        snprintf(id->run, sizeof id->run, "%s", given);
        id->source = RUN_ID_GIVEN;
    } else if (has_launcher) {
        run_id_derive(text, strlen(text), id->run);
        id->source = RUN_ID_LAUNCHER;
    } else {
        run_id_random(id->run);
        id->source = RUN_ID_RANDOM;
    }
}

bool run_data_dir(char *out, size_t out_size)
{
    const char *data = env_or_null("TACHO_DATA");
    const char *xdg = env_or_null("XDG_DATA_HOME"), *home = env_or_null("HOME");
    int n = -1;
    if (data != NULL)
        n = snprintf(out, out_size, "%s", data);
    else if (xdg != NULL)
        n = snprintf(out, out_size, "%s/tachograph", xdg);
    else if (home != NULL)
        n = snprintf(out, out_size, "%s/.local/share/tachograph", home);
    return n > 0 && (size_t)n < out_size;
}
