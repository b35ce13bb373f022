/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec t = {0};
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

uint64_t clock_boottime_ns(void)
{
    return (uint64_t)read_ns(CLOCK_BOOTTIME);
}

uint64_t clock_monotonic_ns(void)
{
    return (uint64_t)read_ns(CLOCK_MONOTONIC);
}

int64_t clock_wall_ns(void)
{
    return read_ns(CLOCK_REALTIME);
}

uint64_t clock_thread_cpu_ns(void)
{
    return (uint64_t)read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_process_cpu_ns(void)
{
    return (uint64_t)read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

struct clock_anchor clock_anchor_take(void)
{
    struct clock_anchor best = {0};
    uint64_t best_spread = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        const uint64_t before = clock_boottime_ns();
        const int64_t wall = clock_wall_ns();
        const uint64_t monotonic = clock_monotonic_ns();
        const uint64_t after = clock_boottime_ns();
        if (after - before >= best_spread)
            continue;
        best_spread = after - before;
        best = (struct clock_anchor){before + best_spread / 2, monotonic, wall};
    }
    return best;
}

/* Days since 1970-01-01 of a date of the proleptic Gregorian calendar; years count from March. */
static int64_t days_from_date(int64_t year, int month, int day)
{
    year -= month <= 2;
    const int64_t era = (year >= 0 ? year : year - 399) / 400;
    const int64_t year_of_era = year - era * 400;
    const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
           719468;
}

static void date_from_days(int64_t days, int *year, int *month, int *day)
{
    days += 719468;
    const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    const int64_t d = days - era * 146097;
    const int64_t y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
    const int64_t day_of_year = d - (365 * y + y / 4 - y / 100);
    const int64_t m = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = (int)(y + era * 400 + (*month <= 2));
}

size_t clock_format_rfc3339(int64_t wall_ns, char out[static CLOCK_RFC3339_MAX])
{
    int64_t seconds = wall_ns / NS_PER_S, fraction = wall_ns % NS_PER_S;
    if (fraction < 0) {
        fraction += NS_PER_S;
        seconds--;
    }
    int64_t days = seconds / 86400, of_day = seconds % 86400;
    if (of_day < 0) {
        of_day += 86400;
        days--;
    }
    int year, month, day;
    date_from_days(days, &year, &month, &day);
    size_t n =
        (size_t)snprintf(out, CLOCK_RFC3339_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day,
                         (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60));
    if (fraction > 0) {
        n += (size_t)snprintf(out + n, CLOCK_RFC3339_MAX - n, ".%09d", (int)fraction);
        while (out[n - 1] == '0')
            n--;
    }
    out[n++] = 'Z';
    out[n] = '\0';
    return n;
}

/* Takes exactly n digits off the front of *s, with a value in [least, most]. */
static bool take_digits(str *s, size_t n, int least, int most, int *out)
{
    int value = 0;
    if (s->n < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (s->p[i] < '0' || s->p[i] > '9')
            return false;
        value = value * 10 + (s->p[i] - '0');
    }
    *s = str_sub(*s, n, s->n);
    *out = value;
    return value >= least && value <= most;
}

static bool take_char(str *s, const char *any_of)
{
    if (s->n == 0 || s->p[0] == '\0' || strchr(any_of, s->p[0]) == NULL)
        return false;
    *s = str_sub(*s, 1, s->n);
    return true;
}

/* ".5" -> 500,000,000 ns; nothing at all is 0. More than nine digits are refused. */
static bool take_fraction(str *s, int64_t *ns)
{
    int64_t unit = NS_PER_S;
    *ns = 0;
    if (!take_char(s, "."))
        return true;
    int digit;
    while (unit > 1 && take_digits(s, 1, 0, 9, &digit)) {
        unit /= 10;
        *ns += digit * unit;
    }
    return unit < NS_PER_S && (s->n == 0 || s->p[0] < '0' || s->p[0] > '9');
}

/* "Z", "+02:00" or "-0530": seconds east of UTC. */
static bool take_offset(str *s, int64_t *offset_s)
{
    int hours, minutes;
    *offset_s = 0;
    if (take_char(s, "Zz"))
        return true;
    const bool west = s->n > 0 && s->p[0] == '-';
    if (!take_char(s, "+-") || !take_digits(s, 2, 0, 23, &hours))
        return false;
    take_char(s, ":");
    if (!take_digits(s, 2, 0, 59, &minutes))
        return false;
    *offset_s = (west ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

bool clock_parse_rfc3339(str s, int64_t *wall_ns)
{
    int year, month, day, hour, minute, second;
    int64_t fraction_ns, offset_s;
    if (!take_digits(&s, 4, 0, 9999, &year) || !take_char(&s, "-") ||
        !take_digits(&s, 2, 1, 12, &month) || !take_char(&s, "-") ||
        !take_digits(&s, 2, 1, days_in_month(year, month), &day) || !take_char(&s, "Tt ") ||
        !take_digits(&s, 2, 0, 23, &hour) || !take_char(&s, ":") ||
        !take_digits(&s, 2, 0, 59, &minute) || !take_char(&s, ":") ||
        !take_digits(&s, 2, 0, 60, &second) || !take_fraction(&s, &fraction_ns) ||
        !take_offset(&s, &offset_s) || s.n != 0)
        return false;
    const int64_t seconds =
        days_from_date(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset_s;
    int64_t ns;
    if (__builtin_mul_overflow(seconds, NS_PER_S, &ns) ||
        __builtin_add_overflow(ns, fraction_ns, wall_ns))
        return false;
    return true;
}

void clock_boot_id(uint8_t out[16])
{
    char text[40] = "";
    memset(out, 0, 16);
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd == -1)
        return;
    const ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    unsigned n_digits = 0;
    for (ssize_t i = 0; i < n && n_digits < 32; i++) {
        const char c = text[i];
        const bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && !(c >= 'a' && c <= 'f'))
            continue;
        const unsigned digit = (unsigned)(is_digit ? c - '0' : c - 'a' + 10);
        out[n_digits / 2] = (uint8_t)(out[n_digits / 2] << 4 | digit);
        n_digits++;
    }
}
