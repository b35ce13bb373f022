/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"

static struct process_mark mark_of(pid_t pid)
{
    struct process_mark m = {.pid = pid, .boottime_ns = clock_boottime_ns()};
    clock_boot_id(m.boot_id);
    return m;
}

static void test_lives_until_it_ends(void **state)
{
    const pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    usleep(20000); /* starts are counted in ticks of 10 ms */
    const struct process_mark m = mark_of(pid);
    assert_int_equal(process_look(&m), PROCESS_LIVES);
    kill(pid, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(process_look(&m), PROCESS_GONE); /* a zombie writes nothing more */
    waitpid(pid, NULL, 0);
    assert_int_equal(process_look(&m), PROCESS_GONE);
}

static void *outlive_first_thread(void *first)
{
    pthread_join(*(pthread_t *)first, NULL);
    pause();
    return NULL;
}

static void test_lives_while_another_thread_does(void **state)
{
    static pthread_t first, second;
    const pid_t pid = fork();
    if (pid == 0) {
        first = pthread_self();
        if (pthread_create(&second, NULL, outlive_first_thread, &first) != 0)
            _exit(1);
        pthread_exit(NULL);
    }
    siginfo_t info;
    usleep(20000); /* as above; a first thread that goes on a little longer passes, too */
    const struct process_mark m = mark_of(pid);
    assert_int_equal(process_look(&m), PROCESS_LIVES);
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(process_look(&m), PROCESS_GONE);
    waitpid(pid, NULL, 0);
}

static void test_number_taken_by_another(void **state)
{
    struct process_mark m = mark_of(getpid());
    assert_int_equal(process_look(&m), PROCESS_LIVES);
    m.boottime_ns = 1000000; /* said before this process had started */
    assert_int_equal(process_look(&m), PROCESS_GONE);
}

static void test_unknown(void **state)
{
    struct process_mark m = mark_of(getpid());
    m.boot_id[3] ^= 1;
    assert_int_equal(process_look(&m), PROCESS_UNKNOWN);
    m = mark_of(0);
    assert_int_equal(process_look(&m), PROCESS_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lives_until_it_ends),
        cmocka_unit_test(test_lives_while_another_thread_does),
        cmocka_unit_test(test_number_taken_by_another),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
