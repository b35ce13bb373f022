/* SPDX-License-Identifier: Apache-2.0 */
/* Writer and reader against each other: round trip, damage at every byte, following a live file,
 * threads, forks, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "journal/reader.h"
#include "journal/run_identity.h"
#include "journal/writer.h"
#include "model/record.h"

static char data_dir[] = "/tmp/tacho-test-journal-XXXXXX";
static struct journal_writer writer;

static int open_writer(void **state)
{
    const struct journal_writer_opts o = {.data_dir = data_dir,
                                          .run = "r1",
                                          .host = "h1",
                                          .rank = 2,
                                          .world_size = 4,
                                          .restart_count = 1};
    (void)state;
    return journal_writer_open(&writer, &o);
}

static int close_writer(void **state)
{
    (void)state;
    journal_writer_close(&writer);
    unlink(writer.path);
    return 0;
}

/* Reads all records; how many. */
static unsigned read_all(const char *path, struct journal_damage *damage)
{
    struct journal_reader r;
    struct journal_record rec;
    struct err e = {0};
    unsigned n = 0;
    assert_true(journal_reader_open(&r, path, &e));
    while (journal_reader_next(&r, &rec, &e) == JOURNAL_GOT_RECORD)
        n++;
    assert_int_equal(e.code, ERR_NONE);
    *damage = r.damage;
    journal_reader_close(&r);
    return n;
}

static void write_sample(void)
{
    assert_true(journal_write(&writer, JOURNAL_CONFIG, (str){0}, S("{\"lr\":1}")));
    assert_true(journal_write_phase(&writer, JOURNAL_BEGIN, PHASE_STEP, 7, (str){0}));
    assert_true(journal_write_phase(&writer, JOURNAL_END, PHASE_STEP, 7, (str){0}));
    assert_true(journal_write_metric(&writer, JOURNAL_METRICS, 7, S("loss"), 0.25));
    assert_true(journal_write_checkpoint(&writer, JOURNAL_CHECKPOINT_SAVE, 7, 1000));
    assert_true(journal_write_end_of(&writer, JOURNAL_PROCESS_END, 3, 9, S("signal")));
}

static void test_round_trip(void **state)
{
    (void)state;
    struct err e = {0};
    struct record_set s;
    write_sample();
    record_set_init(&s, 0);
    assert_true(journal_decode_file(&s, writer.path, &e));
    assert_int_equal(s.n_processes, 1);
    assert_int_equal(s.processes[0].rank, 2);
    assert_int_equal(s.processes[0].attempt, 2);
    assert_true(s.processes[0].ended);
    assert_int_equal(s.n_records, 6);
    assert_true(str_eq(s.records[0].text, S("{\"lr\":1}")));
    assert_int_equal(s.records[1].kind, RECORD_BEGIN);
    assert_int_equal(s.records[1].phase, PHASE_STEP);
    assert_int_equal(s.records[2].step, 7);
    assert_true(str_eq(s.records[3].text, S("loss")));
    assert_true(s.records[3].value > 0.24 && s.records[3].value < 0.26);
    assert_int_equal(s.records[4].duration_ns, 1000);
    assert_int_equal(s.records[5].code, 3);
    assert_int_equal(s.records[5].signal, 9);
    record_set_release(&s);
}

static void test_damage_at_every_byte(void **state)
{
    (void)state;
    write_sample();
    const int fd = open(writer.path, O_RDWR);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    const off_t header_bytes =
        32 + 80 + 2 + 2 + 2 + 2 + 2 + (off_t)strlen("tacho-c/" TACHO_VERSION) + 8;
    for (off_t at = header_bytes; at < st.st_size; at++) {
        uint8_t byte, flipped;
        struct journal_damage damage;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        flipped = (uint8_t)(byte ^ 0x55);
        assert_int_equal(pwrite(fd, &flipped, 1, at), 1);
        assert_int_equal(read_all(writer.path, &damage), 6); /* header and five of the six */
        assert_true(damage.n_places == 1 || damage.tail_bytes > 0);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
}

static void test_cut_at_every_byte(void **state)
{
    (void)state;
    write_sample();
    struct stat st;
    assert_int_equal(stat(writer.path, &st), 0);
    for (off_t size = st.st_size - 1; size > 160; size--) {
        struct journal_damage damage;
        assert_int_equal(truncate(writer.path, size), 0);
        (void)read_all(writer.path, &damage);
        assert_int_equal(damage.n_places, 0);
        assert_int_equal(damage.lost_records, 0);
    }
}

static void test_live_follow(void **state)
{
    (void)state;
    struct err e = {0};
    struct journal_reader r;
    struct journal_record rec;
    assert_true(journal_reader_open(&r, writer.path, &e));
    assert_int_equal(journal_reader_next(&r, &rec, &e), JOURNAL_GOT_RECORD);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(journal_reader_next(&r, &rec, &e), JOURNAL_AT_END);
        assert_true(journal_write(&writer, JOURNAL_HEARTBEAT, (str){0}, (str){0}));
        assert_int_equal(journal_reader_next(&r, &rec, &e), JOURNAL_GOT_RECORD);
        assert_int_equal(rec.seq, i + 1);
    }
    journal_reader_close(&r);
}

static void *write_many(void *arg)
{
    for (int i = 0; i < 2000; i++)
        assert_true(journal_write_phase(&writer, JOURNAL_BEGIN, PHASE_STEP, i, (str){0}));
    return arg;
}

static void test_threads_lose_nothing(void **state)
{
    (void)state;
    pthread_t threads[4];
    struct journal_damage damage;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(read_all(writer.path, &damage), 8001);
    assert_int_equal(damage.lost_records, 0);
    assert_int_equal(damage.lost_bytes, 0);
}

static void *write_two(void *arg)
{
    assert_true(journal_write_phase(&writer, JOURNAL_BEGIN, PHASE_DATA_LOADING, 1, (str){0}));
    assert_true(journal_write_phase(&writer, JOURNAL_END, PHASE_DATA_LOADING, 1, (str){0}));
    return arg;
}

/* A thread has one number in all its records, and no other thread ever has it. */
static void test_records_name_their_thread(void **state)
{
    (void)state;
    struct err e = {0};
    struct record_set s;
    write_two(NULL);
    for (int i = 0; i < 3; i++) { /* one after the other: the kernel may give an id again */
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, write_two, NULL), 0);
        pthread_join(thread, NULL);
    }
    write_two(NULL);
    record_set_init(&s, 0);
    assert_true(journal_decode_file(&s, writer.path, &e));
    assert_int_equal(s.n_records, 10);
    for (uint32_t i = 0; i < 10; i += 2) {
        assert_true(s.records[i].thread > 0);
        assert_int_equal(s.records[i].thread, s.records[i + 1].thread);
        assert_int_equal(s.records[i].step, 1); /* beside it, and whole */
        if (i >= 2 && i < 8) {
            assert_int_not_equal(s.records[i].thread, s.records[0].thread);
            assert_true(i == 2 || s.records[i].thread > s.records[i - 2].thread);
        }
    }
    assert_int_equal(s.records[8].thread, s.records[0].thread);
    record_set_release(&s);
}

static void test_child_is_quiet(void **state)
{
    (void)state;
    struct journal_damage damage;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(journal_write(&writer, JOURNAL_HEARTBEAT, (str){0}, (str){0}) ? 1 : 0);
    int status = -1;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(read_all(writer.path, &damage), 1);
}

static void test_file_size_limit_does_not_kill(void **state)
{
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) { /* SIGXFSZ would end it with a signal */
        const struct rlimit limit = {2048, 2048};
        if (open_writer(NULL) != 0 || setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        usleep(2000); /* the limit is known a millisecond later */
        for (int i = 0; i < 500; i++)
            (void)journal_write_metric(&writer, JOURNAL_METRICS, i, S("loss"), 1.0);
        _exit(atomic_load(&writer.n_dropped_total) > 0 ? 0 : 3);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void test_large_payload_goes_aside(void **state)
{
    (void)state;
    struct err e = {0};
    struct record_set s;
    char *large = malloc(200000);
    memset(large, 'x', 200000);
    assert_true(journal_write(&writer, JOURNAL_CONFIG, (str){0}, (str){large, 200000}));
    record_set_init(&s, 0);
    assert_true(journal_decode_file(&s, writer.path, &e));
    assert_int_equal(s.n_records, 1);
    assert_int_equal(s.records[0].text.n, 200000);
    record_set_release(&s);
    free(large);
}

static void test_not_a_journal(void **state)
{
    (void)state;
    struct err e = {0};
    struct journal_reader r;
    assert_int_equal(truncate(writer.path, 40), 0);
    assert_false(journal_reader_open(&r, writer.path, &e));
    assert_int_equal(e.code, ERR_PARSE);
}

static void test_identity_is_derived(void **state)
{
    (void)state;
    struct run_identity a, b;
    setenv("SLURM_JOB_ID", "42", 1);
    setenv("SLURM_PROCID", "3", 1);
    unsetenv("TACHO_RUN_ID");
    unsetenv("RANK");
    unsetenv("TORCHELASTIC_RUN_ID");
    run_identity_find(&a);
    run_identity_find(&b);
    assert_string_equal(a.run, b.run);
    assert_int_equal(strlen(a.run), RUN_ID_LETTERS);
    assert_int_equal(a.rank, 3);
    setenv("TACHO_RUN_ID", "../x", 1); /* no path: not taken */
    run_identity_find(&b);
    assert_string_equal(a.run, b.run);
    setenv("TACHO_RUN_ID", "mine", 1);
    run_identity_find(&b);
    assert_string_equal(b.run, "mine");
    unsetenv("TACHO_RUN_ID");
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_PROCID");
}

static void assert_found(bool same, const char *launcher, bool alone)
{
    struct run_identity a, b;
    run_identity_find(&a);
    run_identity_find(&b);
    assert_int_equal(strcmp(a.run, b.run) == 0, same);
    assert_string_equal(a.launcher, launcher);
    assert_int_equal(a.alone != NULL, alone);
}

static void test_what_names_no_job_is_no_identity(void **state)
{
    (void)state;
    setenv("JAX_COORDINATOR_ADDRESS", "10.0.0.1:1234", 1);
    assert_found(false, "jax", true);
    setenv("JAX_NUM_PROCESSES", "1", 1); /* nobody to be parted from */
    assert_found(false, "jax", false);
    unsetenv("JAX_NUM_PROCESSES");
    setenv("RAY_JOB_ID", "01000000", 1);
    assert_found(false, "ray", true);
    setenv("PMIX_NAMESPACE", "prterun-h-7@1", 1);
    assert_found(true, "openmpi", false);
    setenv("TORCHELASTIC_RUN_ID", "none", 1);
    setenv("MASTER_ADDR", "h", 1);
    setenv("MASTER_PORT", "29500", 1);
    setenv("WORLD_SIZE", "8", 1);
    assert_found(false, "torchrun", true);
    setenv("TORCHELASTIC_ERROR_FILE", "/t/torchelastic_a/none_b/attempt_0/3/error.json", 1);
    setenv("LOCAL_WORLD_SIZE", "4", 1);
    assert_found(true, "torchrun", true); /* this host's ranks share it, the other host's do not */
    setenv("LOCAL_WORLD_SIZE", "8", 1);
    assert_found(true, "torchrun", false);
    struct run_identity first, second;
    run_identity_find(&first);
    setenv("TORCHELASTIC_ERROR_FILE", "/t/torchelastic_a/none_b/attempt_1/0/error.json", 1);
    run_identity_find(&second); /* another rank after a restart */
    assert_string_equal(first.run, second.run);
    setenv("TORCHELASTIC_ERROR_FILE", "/t/torchelastic_c/none_d/attempt_0/3/error.json", 1);
    run_identity_find(&second); /* the next job at the same address */
    assert_string_not_equal(first.run, second.run);
}

#define WITH_WRITER(f) cmocka_unit_test_setup_teardown(f, open_writer, close_writer)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WRITER(test_round_trip),
        WITH_WRITER(test_damage_at_every_byte),
        WITH_WRITER(test_cut_at_every_byte),
        WITH_WRITER(test_live_follow),
        WITH_WRITER(test_threads_lose_nothing),
        WITH_WRITER(test_records_name_their_thread),
        WITH_WRITER(test_child_is_quiet),
        WITH_WRITER(test_file_size_limit_does_not_kill),
        WITH_WRITER(test_large_payload_goes_aside),
        WITH_WRITER(test_not_a_journal),
        cmocka_unit_test(test_identity_is_derived),
        cmocka_unit_test(test_what_names_no_job_is_no_identity),
    };
    if (mkdtemp(data_dir) == NULL)
        return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    struct err e = {0};
    return dir_remove(data_dir, &e) ? failed : failed + 1;
}
