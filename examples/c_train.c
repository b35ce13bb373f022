/* SPDX-License-Identifier: Apache-2.0 */
/* A training job's shape in C: prepares, loads batches (slowly for a stretch), computes, saves
 * checkpoints, crashes once after its checkpoint and goes on from there when it is started again.
 *
 *     cc c_train.c -ltachograph -lm && tacho run --name demo -- ./a.out STATE_FOLDER
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <tachograph/tachograph.h>

enum { STEPS = 60, CRASH_AT = 27, SAVE_EVERY = 10, SLOW_FROM = 12, SLOW_TO = 40 };

static void sleep_ms(long ms)
{
    const struct timespec t = {ms / 1000, (ms % 1000) * 1000000};
    nanosleep(&t, NULL);
}

/* Gradient descent on a line through noisy points, long enough to be seen. */
static double train_step(double *slope)
{
    double loss = 0, gradient = 0;
    for (int i = 1; i <= 2000000; i++) {
        const double x = (double)(i % 1000) / 1000.0, error = *slope * x - 3.0 * x;
        loss += error * error;
        gradient += 2 * error * x;
    }
    *slope -= 0.1 * gradient / 2000000;
    return loss / 2000000;
}

static int load(const char *path, double *slope)
{
    int step = 0;
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return 0;
    if (fscanf(f, "%d %lf", &step, slope) != 2)
        step = 0;
    fclose(f);
    return step;
}

static void save(const char *path, int step, double slope)
{
    char temporary[4200];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *f = fopen(temporary, "w");
    if (f == NULL)
        return;
    fprintf(f, "%d %.17g\n", step, slope);
    fclose(f);
    sleep_ms(20);
    if (rename(temporary, path) != 0)
        perror("cannot keep the checkpoint");
}

static void one_step(tacho_run *run, int step, double *slope)
{
    tacho_event_begin(run, TACHO_DATA_LOADING, step, NULL);
    sleep_ms(step >= SLOW_FROM && step < SLOW_TO ? 150 : 4); /* the planted slow phase */
    tacho_event_end(run, TACHO_DATA_LOADING, step, NULL);
    tacho_event_begin(run, TACHO_STEP, step, NULL);
    const double loss = train_step(slope);
    tacho_event_end(run, TACHO_STEP, step, NULL);
    tacho_metric(run, "loss", loss, step);
}

int main(int argc, char **argv)
{
    char checkpoint[4096], marker[4096];
    const char *dir = argc > 1 ? argv[1] : ".";
    struct tacho_opts opts = TACHO_OPTS_INIT;
    double slope = 0;
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint", dir);
    snprintf(marker, sizeof marker, "%s/crashed", dir);
    opts.config_json = "{\"steps\":60,\"lr\":0.1,\"framework\":\"c\"}";
    tacho_run *run = tacho_open(&opts);
    tacho_event_begin(run, TACHO_TRAINING_PREP, -1, NULL);
    sleep_ms(100);
    tacho_event_end(run, TACHO_TRAINING_PREP, -1, NULL);
    tacho_event_begin(run, TACHO_CHECKPOINT_RESTORE, -1, NULL);
    const int first = load(checkpoint, &slope);
    tacho_event_end(run, TACHO_CHECKPOINT_RESTORE, -1, NULL);
    for (int step = first; step < STEPS; step++) {
        if (step == CRASH_AT && access(marker, F_OK) != 0) {
            FILE *f = fopen(marker, "w");
            if (f != NULL)
                fclose(f);
            fprintf(stderr, "c_train: planted crash at step %d\n", step);
            _exit(1);
        }
        one_step(run, step, &slope);
        if ((step + 1) % SAVE_EVERY == 0) {
            tacho_event_begin(run, TACHO_CHECKPOINT_SAVE, step, NULL);
            save(checkpoint, step + 1, slope);
            tacho_event_end(run, TACHO_CHECKPOINT_SAVE, step, NULL);
        }
    }
    printf("c_train: done, slope %.4f\n", slope);
    tacho_close(run, 0);
    return 0;
}
