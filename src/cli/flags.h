/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of every command, from one table (flags.def): main's loop takes them out of argv before
 * a command starts, `--help`, completion, man pages and docs/reference/commands.md print them.
 *
 *     const char *name = flags_text(cli->flags, FLAG_run_name);      NULL when it was not given
 *     if (flags_on(cli->flags, FLAG_run_resume)) ...
 *     for (const struct flag_value *v = NULL; (v = flags_next(f, FLAG_run_label, v)) != NULL;) ...
 *
 * A value that is not of its flag's type, a missing or superfluous one fails with ERR_USAGE.
 * Thread: any one. */
#ifndef TACHO_CLI_FLAGS_H
#define TACHO_CLI_FLAGS_H

#include "base/arena.h"

enum flag_type { FLAG_BOOL = 0, FLAG_TEXT, FLAG_FILE, FLAG_COUNT, FLAG_DURATION, FLAG_TIME };
enum flag_repeat { FLAG_ONCE = 0, FLAG_REPEATED };

enum flag_id {
#define X(command, id, name, argument, type, repeat, fallback, help) FLAG_##command##_##id,
#include "cli/flags.def"
#undef X
    FLAG_N
};

struct flag { /* one row of the table */
    const char *command, *name, *argument;
    enum flag_type type;
    enum flag_repeat repeat;
    const char *fallback, *help;
};
extern const struct flag flag_table[FLAG_N];

struct flag_value {
    enum flag_id id;
    const char *text; /* as written; borrowed from argv */
    int64_t number;   /* COUNT; DURATION in ns; TIME in ns since 1970; BOOL 1 */
};

struct flags {
    struct arena arena;
    struct flag_value *values; /* in the order of the command line */
    uint32_t n_values, values_capacity;
};

void flags_init(struct flags *f);
void flags_release(struct flags *f);
/* The command's flag at argv[i], with `argc` as end: how many arguments it took (1 or 2), 0 when the
 * command has no such flag, -1 with e set. Borrows argv. */
int flags_take(struct flags *f, const char *command, int argc, char **argv, int i, struct err *e);

bool flags_on(const struct flags *f, enum flag_id id); /* was it given? */
const char *flags_text(const struct flags *f,
                       enum flag_id id); /* the last value, else the default, else NULL */
/* The last value's number, else the default's; false when there is neither. */
bool flags_number(const struct flags *f, enum flag_id id, int64_t *out);
/* The value after `after` (NULL: the first), or NULL. */
const struct flag_value *flags_next(const struct flags *f, enum flag_id id,
                                    const struct flag_value *after);

const char *flag_type_word(
    enum flag_type t); /* "text", "duration", ...: docs and `tacho help --json` */

#endif
