/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them: three or four digits, thin space in thousands, scaled units. */
#include <inttypes.h>
#include <math.h>

#include "base/clock.h"
#include "model/table_print.h"

#define THIN_SPACE "\xe2\x80\x89"

struct scale {
    double factor;
    const char *word;
};

/* v in 1 .. 10^6 or so with four significant digits, thousands apart. */
static str four_digits(struct arena *a, double v)
{
    const double size = fabs(v);
    const int after = size >= 999.95 ? 0 : size >= 99.995 ? 1 : size >= 9.9995 ? 2 : 3;
    char text[48], out[80];
    const int n = snprintf(text, sizeof text, "%.*f", after, v);
    const int first = text[0] == '-';
    const int whole = after > 0 ? n - after - 1 : n;
    size_t to = 0;
    for (int i = 0; i < n && to + 4 < sizeof out; i++) {
        if (i > first && i < whole && (whole - i) % 3 == 0 && whole - first > 3) {
            memcpy(out + to, THIN_SPACE, 3);
            to += 3;
        }
        out[to++] = text[i];
    }
    return arena_str(a, (str){out, to});
}

static str thousands(struct arena *a, uint64_t v, bool minus)
{
    char digits[24], out[64];
    const int n = snprintf(digits, sizeof digits, "%" PRIu64, v);
    size_t to = 0;
    if (minus)
        out[to++] = '-';
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) {
            memcpy(out + to, THIN_SPACE, 3);
            to += 3;
        }
        out[to++] = digits[i];
    }
    return arena_str(a, (str){out, to});
}

static str plain(struct arena *a, double v)
{
    const double size = fabs(v);
    if (!isfinite(v))
        return isnan(v) ? S("NaN") : v < 0 ? S("-∞") : S("∞");
    if (size >= 1e15 || (size > 0 && size < 1e-3))
        return arena_printf(a, "%.4g", v);
    if (size >= 1000)
        return four_digits(a, v);
    return arena_printf(a, "%.4g", v);
}

/* The largest unit that leaves at least 1; scales go from large to small. */
static str scaled(struct arena *a, double v, const struct scale *scales, size_t n, int digits)
{
    size_t i = 0;
    while (i + 1 < n && fabs(v) < scales[i].factor * 0.99995)
        i++;
    const double x = v / scales[i].factor;
    if (digits == 3) {
        const int after = fabs(x) >= 99.95 ? 0 : fabs(x) >= 9.995 ? 1 : 2;
        return arena_printf(a, "%.*f %s", i + 1 == n ? 0 : after, x, scales[i].word);
    }
    const str number = four_digits(a, x);
    return arena_printf(a, "%.*s %s", STR_ARG(number), scales[i].word);
}

static str format_bytes(struct arena *a, double v)
{
    static const struct scale iec[] = {
        {0x1p50, "PiB"}, {0x1p40, "TiB"}, {0x1p30, "GiB"},
        {0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"},
    };
    return scaled(a, v, iec, sizeof iec / sizeof *iec, 3);
}

/* SI prefixes before a unit: "12.3 MB/s", "312.4 TFLOP/s". */
static str format_si(struct arena *a, double v, str unit)
{
    static const struct scale si[] = {
        {1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""},
    };
    size_t i = 0;
    while (i + 1 < sizeof si / sizeof *si && fabs(v) < si[i].factor * 0.99995)
        i++;
    const str number = fabs(v) < 1 ? plain(a, v) : four_digits(a, v / si[i].factor);
    return arena_printf(a, "%.*s %s%.*s", STR_ARG(number), si[i].word, STR_ARG(unit));
}

/* One decimal; 100.0 % and 0.0 % are kept for the exact values. */
static str format_percent(struct arena *a, double v)
{
    if (v > 0 && v < 0.05)
        return S("<0.1 %");
    if (v < 100 && v >= 99.95)
        return S("99.9 %");
    if (v > 100 && v < 100.05)
        return S("100.1 %");
    return arena_printf(a, "%.1f %%", v);
}

static str format_seconds(struct arena *a, double s)
{
    static const struct scale small[] = {
        {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}, {1e-12, "ps"}};
    if (s == 0)
        return S("0 s");
    if (fabs(s) < 59.9995)
        return scaled(a, s, small, sizeof small / sizeof *small, 4);
    if (fabs(s) > 9e9)
        return arena_printf(a, "%.4g s", s);
    const char *minus = s < 0 ? "-" : "";
    const uint64_t whole = (uint64_t)llround(fabs(s));
    if (whole < 3600)
        return arena_printf(a, "%s%" PRIu64 " m %02" PRIu64 " s", minus, whole / 60, whole % 60);
    const uint64_t minutes = (whole + 30) / 60;
    if (minutes < 24 * 60)
        return arena_printf(a, "%s%" PRIu64 " h %02" PRIu64 " m", minus, minutes / 60,
                            minutes % 60);
    const uint64_t hours = (whole + 1800) / 3600;
    return arena_printf(a, "%s%" PRIu64 " d %02" PRIu64 " h", minus, hours / 24, hours % 24);
}

str format_duration_ns(struct arena *a, int64_t ns)
{
    return format_seconds(a, (double)ns / (double)NS_PER_S);
}

/* Seconds in one unit of time, or 0 when `unit` is none. */
static double seconds_in(str unit)
{
    static const struct {
        str word;
        double seconds;
    } units[] = {
        {STR_INIT("ps"), 1e-12}, {STR_INIT("ns"), 1e-9}, {STR_INIT("us"), 1e-6},
        {STR_INIT("µs"), 1e-6},  {STR_INIT("ms"), 1e-3}, {STR_INIT("s"), 1},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (str_eq(unit, units[i].word))
            return units[i].seconds;
    return 0;
}

static str format_integer(struct arena *a, uint64_t size, bool minus, str unit)
{
    const str number = thousands(a, size, minus);
    return unit.n == 0 ? number : arena_printf(a, "%.*s %.*s", STR_ARG(number), STR_ARG(unit));
}

str cell_format(struct arena *a, const struct cell *c, str unit)
{
    if (!c->known)
        return S("–");
    if (c->type == CELL_TEXT)
        return c->text;
    if (c->type == CELL_BOOL)
        return c->yes ? S("yes") : S("no");
    const double v = c->type == CELL_I64   ? (double)c->i64
                     : c->type == CELL_U64 ? (double)c->u64
                                           : c->f64;
    if (!isfinite(v))
        return plain(a, v);
    const double seconds = seconds_in(unit);
    if (seconds > 0)
        return format_seconds(a, v * seconds);
    if (str_eq(unit, S("bytes")))
        return format_bytes(a, v);
    if (str_eq(unit, S("bytes/s")))
        return format_si(a, v, S("B/s"));
    if (str_eq(unit, S("%")))
        return format_percent(a, v);
    if (str_starts(unit, S("FLOP")) || str_starts(unit, S("B/")))
        return format_si(a, v, unit);
    if (c->type == CELL_U64)
        return format_integer(a, c->u64, false, unit);
    if (c->type == CELL_I64)
        return format_integer(a, c->i64 < 0 ? 0 - (uint64_t)c->i64 : (uint64_t)c->i64, c->i64 < 0,
                              unit);
    const str number = plain(a, v);
    return unit.n == 0 ? number : arena_printf(a, "%.*s %.*s", STR_ARG(number), STR_ARG(unit));
}
