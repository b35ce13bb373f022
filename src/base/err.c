/* SPDX-License-Identifier: Apache-2.0 */
#define TACHO_ERR_C
#include "base/err.h"

#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

static const struct {
    const char *word, *meaning;
    int http, exit_status;
} codes[ERR_COUNT] = {
    [ERR_NONE] = {"none", "nothing failed", 200, 0},
#define X(name, word, http, exit_status, meaning) [ERR_##name] = {word, meaning, http, exit_status},
#include "base/errors.def"
#undef X
};

/* Starts e anew with the formatted sentence. */
static void set(struct err *e, enum err_code code, const char *format, va_list args)
    PRINTF_LIKE(3, 0);
static void set(struct err *e, enum err_code code, const char *format, va_list args)
{
    *e = (struct err){.code = code, .pos = ERR_NO_POS};
    vsnprintf(e->msg, sizeof e->msg, format, args);
}

/* Adds text at the end of the message; cuts what does not fit. */
static void append(struct err *e, const char *format, ...) PRINTF_LIKE(2, 3);
static void append(struct err *e, const char *format, ...)
{
    const size_t n = strlen(e->msg);
    va_list args;
    va_start(args, format);
    vsnprintf(e->msg + n, sizeof e->msg - n, format, args);
    va_end(args);
}

bool err_set(struct err *e, enum err_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set(e, code, format, args);
    va_end(args);
    return false;
}

bool err_at(struct err *e, enum err_code code, uint64_t pos, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set(e, code, format, args);
    va_end(args);
    e->pos = pos;
    if (pos != ERR_NO_POS)
        append(e, " at byte %" PRIu64, pos);
    return false;
}

static enum err_code code_of_errno(int number)
{
    switch (number) {
    case ENOENT:
        return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_DENIED;
    default:
        return ERR_IO;
    }
}

bool err_sys(struct err *e, const char *format, ...)
{
    const int number = errno;
    char reason[96];
    va_list args;
    va_start(args, format);
    set(e, code_of_errno(number), format, args);
    va_end(args);
    e->sys_errno = number;
    append(e, ": %s", strerror_r(number, reason, sizeof reason));
    return false;
}

bool err_wrap(struct err *e, const char *format, ...)
{
    char inner[sizeof e->msg];
    memcpy(inner, e->msg, sizeof inner);
    va_list args;
    va_start(args, format);
    vsnprintf(e->msg, sizeof e->msg, format, args);
    va_end(args);
    append(e, ": %s", inner);
    return false;
}

bool err_hint(struct err *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->hint, sizeof e->hint, format, args);
    va_end(args);
    return false;
}

void err_clear(struct err *e)
{
    *e = (struct err){.pos = ERR_NO_POS};
}

static enum err_code known(enum err_code code)
{
    return (unsigned)code < ERR_COUNT ? code : ERR_INTERNAL;
}

const char *err_word(enum err_code code)
{
    return codes[known(code)].word;
}

int err_http_status(enum err_code code)
{
    return codes[known(code)].http;
}

int err_exit_status(enum err_code code)
{
    return codes[known(code)].exit_status;
}

const char *err_meaning(enum err_code code)
{
    return codes[known(code)].meaning;
}

_Noreturn void err_must_failed(const char *what, const char *file, int line)
{
    void *frames[32];
    fprintf(stderr, "tacho: internal error: %s (%s:%d)\n", what, file, line);
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
    abort();
}

/* Places that were odd already, so that each is told once; a full table tells no more. */
static _Atomic uint64_t n_odd;
static _Atomic(const char *) odd_places[64];

bool err_odd_seen(const char *what, const char *file, int line)
{
    atomic_fetch_add(&n_odd, 1);
    for (size_t i = 0; i < sizeof odd_places / sizeof *odd_places; i++) {
        const char *place = NULL;
        if (atomic_compare_exchange_strong(&odd_places[i], &place, what)) {
            fprintf(stderr, "tacho: odd: %s is false (%s:%d)\n", what, file, line);
            return false;
        }
        if (place == what)
            return false;
    }
    return false;
}

uint64_t err_odd_count(void)
{
    return atomic_load(&n_odd);
}
