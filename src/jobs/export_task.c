/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/export_task.h"

#include <sys/mman.h>

#include "jobs/profile_task.h"

struct export_job {
    const struct exporter *exporter;
    const struct export_options *options;
    struct export_counts *counts; /* shared with the parser: its output is the export alone */
};

static bool export_job_run(struct profile *p, void *ctx, int fd, struct err *e)
{
    const struct export_job *job = ctx;
    return export_write(job->exporter, p, job->options, fd, job->counts, e);
}

bool export_task_run(const char *path, const struct parser_limits *limits, const struct exporter *x,
                     const struct export_options *options, const struct parser_sink *sink,
                     struct export_counts *counts, struct err *e)
{
    struct export_counts *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return err_sys(e, "cannot share memory with the parser");
    struct export_job job = {.exporter = x, .options = options, .counts = shared};
    const bool ok = profile_task_stream(path, limits, export_job_run, &job, sink, e);
    *counts = *shared;
    munmap(shared, sizeof *shared);
    return ok;
}
