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

/* What the environment says of the job: its identity, or why it has none. */
struct launched {
    const char *launcher; /* "" = none was found */
    const char *alone;    /* as run_identity.alone, said whatever the size of the job */
    char text[TEXT_MAX];  /* "" = nothing here names one job */
};

static void name_job(struct launched *l, const char *launcher, const char *kind, const char *id)
{
    l->launcher = launcher;
    snprintf(l->text, sizeof l->text, "%s %s", kind, id);
}

/* torchrun without --rdzv-id calls every job "none". Its agent makes a folder of its own for each job,
 * <logs>/none_<random>, which all processes of this host find in the path of their error file. */
static void name_static_torchrun(struct launched *l)
{
    const char *folder = env_or_null("TORCHELASTIC_ERROR_FILE");
    const char *name = folder == NULL ? NULL : strstr(folder, "/none_");
    const char *end = name == NULL ? NULL : strstr(name, "/attempt_");
    const int32_t world = ENV_NUMBER("WORLD_SIZE"), here = ENV_NUMBER("LOCAL_WORLD_SIZE");
    l->launcher = "torchrun";
    if (end == NULL) {
        l->alone =
            "TORCHELASTIC_RUN_ID=none names no job, so each process records a run of its own";
        return;
    }
    snprintf(l->text, sizeof l->text, "torchrun %.*s", (int)(end - folder), folder);
    if (world < 0 || world != here)
        l->alone =
            "torchrun without --rdzv-id: its hosts have no id in common, so each host records "
            "a run of its own";
}

static bool name_kubernetes(struct launched *l)
{
    static const char *const uids[] = {"JOBSET_UID", "JOB_UID", "LWS_UID", "RAYJOB_UID", NULL};
    for (int i = 0; uids[i] != NULL; i++) {
        if (env_or_null(uids[i]) != NULL) {
            name_job(l, "kubernetes", uids[i], env_or_null(uids[i]));
            return true;
        }
    }
    return false;
}

/* Open MPI's names hold a host and a pid, which come again; its transport key is drawn for each job. */
static bool name_mpi(struct launched *l)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID",
                                        NULL};
    const char *key = env_or_null("OMPI_MCA_orte_precondition_transports");
    for (int i = 0; names[i] != NULL; i++) {
        const char *id = env_or_null(names[i]);
        if (id != NULL) {
            l->launcher = "openmpi";
            snprintf(l->text, sizeof l->text, "mpi %s%s%s", id, key ? " " : "", key ? key : "");
            return true;
        }
    }
    return false;
}

/* Only what names one job, the same in all its processes, becomes an identity: a number that starts
 * anew or an address that the next job has too would make one run of two (docs/why/022). */
static void find_launcher(struct launched *l)
{
    const char *torch = env_or_null("TORCHELASTIC_RUN_ID");
    const char *slurm = env_or_null("SLURM_JOB_ID");
    *l = (struct launched){.launcher = ""};
    if (torch != NULL && strcmp(torch, "none") != 0) {
        name_job(l, "torchrun", "torchrun", torch);
    } else if (slurm != NULL) {
        const char *cluster = env_or_null("SLURM_CLUSTER_NAME"),
                   *step = env_or_null("SLURM_STEP_ID");
        l->launcher = "slurm";
        snprintf(l->text, sizeof l->text, "slurm %s %s %s", cluster ? cluster : "", slurm,
                 step ? step : "");
    } else if (name_kubernetes(l)) {
        return;
    } else if (torch != NULL) {
        name_static_torchrun(l);
    } else if (name_mpi(l)) {
        return;
    } else if (env_or_null("RAY_JOB_ID") != NULL) {
        l->launcher = "ray";
        l->alone = "RAY_JOB_ID counts from 1 in every cluster and names no job, so each process "
                   "records a run of its own";
    } else if (env_or_null("JAX_COORDINATOR_ADDRESS") != NULL) {
        l->launcher = "jax";
        l->alone =
            "the address of a JAX coordinator names no job (the next one may have it too), so "
            "each process records a run of its own";
    }
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

    struct launched l;
    find_launcher(&l);
    snprintf(id->launcher, sizeof id->launcher, "%s", l.launcher);
    const char *given = env_or_null("TACHO_RUN_ID");
    if (given != NULL && run_id_is_valid(given)) {
        snprintf(id->run, sizeof id->run, "%s", given);
        id->source = RUN_ID_GIVEN;
        return;
    }
    id->alone = id->world_size == 1 ? NULL : l.alone;
    if (l.text[0] != '\0') {
        run_id_derive(l.text, strlen(l.text), id->run);
        id->source = RUN_ID_LAUNCHER;
    } else {
        run_id_random(id->run);
        id->source = RUN_ID_RANDOM;
    }
}

uint64_t run_pid_namespace(void)
{
    char text[64];
    const ssize_t n = readlink("/proc/self/ns/pid", text, sizeof text);
    uint64_t number = 0;
    for (ssize_t i = 0; i < n; i++)
        if (text[i] >= '0' && text[i] <= '9' && number < UINT64_MAX / 100)
            number = number * 10 + (uint64_t)(text[i] - '0');
    return number;
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
