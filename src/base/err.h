/* SPDX-License-Identifier: Apache-2.0 */
/* A failure: its kind, where in the input it is, and one sentence for a person.
 *
 * A fallible function returns bool (true = done) or a pointer (NULL = failed), is marked
 * MUST_CHECK and takes `struct err *e` last; e may not be NULL. Only main and the request
 * boundary print an error or map it to a status. Messages: lower case, no full stop, subject in
 * 'quotes', what was being done and where:
 *
 *     return err_at(e, ERR_PARSE, pos, "varint longer than 10 bytes");
 *     ...
 *     err_wrap(e, "cannot open '%s'", path);   ->  cannot open 'x': varint ... at byte 812
 *
 * Thread: any (a struct err belongs to one thread). */
#ifndef TACHO_BASE_ERR_H
#define TACHO_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(text, args) __attribute__((format(printf, text, args)))

enum err_code {
    ERR_NONE = 0,
#define X(name, word, http, exit_status, meaning) ERR_##name,
#include "base/errors.def"
#undef X
    ERR_COUNT
};

#define ERR_NO_POS UINT64_MAX

struct err {
    enum err_code code; /* ERR_NONE when nothing failed */
    int sys_errno;      /* the errno behind it, or 0 */
    uint64_t pos;       /* byte in the input, or ERR_NO_POS; meaningful only when code is set */
    char msg[320];      /* the sentence, NUL-terminated, without "tacho: " */
    char hint[160];     /* what to do about it; empty when there is nothing to say */
};

/* Each returns false, so that a caller can `return err_set(...)`. Cannot fail; long text is cut. */
bool err_set(struct err *e, enum err_code code, const char *format, ...) PRINTF_LIKE(3, 4);
/* The same with " at byte <pos>" appended and pos kept. */
bool err_at(struct err *e, enum err_code code, uint64_t pos, const char *format, ...)
    PRINTF_LIKE(4, 5);
/* The same with ": <strerror(errno)>" appended; code becomes NOT_FOUND for ENOENT and DENIED for
 * EACCES, EPERM and EROFS, else ERR_IO. */
bool err_sys(struct err *e, const char *format, ...) PRINTF_LIKE(2, 3);
/* Puts "<text>: " before the message. */
bool err_wrap(struct err *e, const char *format, ...) PRINTF_LIKE(2, 3);
/* Says what to do about it. */
bool err_hint(struct err *e, const char *format, ...) PRINTF_LIKE(2, 3);
void err_clear(struct err *e);
#if defined(__clang_analyzer__) && !defined(TACHO_ERR_C)
/* The contract above in words that the analyzer of tools/run-tidy can follow. */
#define err_set(...) ((void)err_set(__VA_ARGS__), false)
#define err_at(...) ((void)err_at(__VA_ARGS__), false)
#define err_sys(...) ((void)err_sys(__VA_ARGS__), false)
#define err_wrap(...) ((void)err_wrap(__VA_ARGS__), false)
#define err_hint(...) ((void)err_hint(__VA_ARGS__), false)
#endif

const char *err_word(enum err_code code);    /* "bad_input"; "none" for ERR_NONE */
int err_http_status(enum err_code code);     /* 200 for ERR_NONE */
int err_exit_status(enum err_code code);     /* 0 for ERR_NONE */
const char *err_meaning(enum err_code code); /* from errors.def */

/* must(x): a programming error ends our own process, also in release builds (file, line).
 * slow_must(x): debug builds only.  odd(x): counts and logs once; true when x holds.
 * In guest code (TACHO_GUEST defined) must is a no-op: the recorder has its own way to go quiet. */
#ifdef TACHO_GUEST
#define must(x) ((void)0)
#define odd(x) (x)
#else
#define must(x) ((x) ? (void)0 : err_must_failed(#x, __FILE__, __LINE__))
#define odd(x) ((x) ? true : err_odd_seen(#x, __FILE__, __LINE__))
#endif
#ifdef NDEBUG
#define slow_must(x) ((void)0)
#else
#define slow_must(x) must(x)
#endif
_Noreturn void err_must_failed(const char *what, const char *file, int line);
bool err_odd_seen(const char *what, const char *file, int line);
uint64_t err_odd_count(void);

#endif
