/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the libtpu that a command would load, without starting Python. Thread: any (reads the
 * environment). */
#ifndef TACHO_CAPTURE_LIBTPU_FIND_H
#define TACHO_CAPTURE_LIBTPU_FIND_H

#include "base/str.h"

struct libtpu_found {
    char path[1024];
    char version[64]; /* of the installed package; empty = not known */
};

/* Looks where JAX does and in its order: TPU_LIBRARY_PATH; the package libtpu in the Python of the
 * command (its prefix: argv[0] of /x/bin/python or /x/bin/torchrun means /x), of VIRTUAL_ENV,
 * CONDA_PREFIX, the first python3 of PATH, ~/.local, /usr/local and /usr; /lib and /usr/lib. False when
 * it is in none of them. A command that picks its Python in another way has another libtpu.
 * command: argv[0], NULL = none. */
bool libtpu_find(const char *command, struct libtpu_found *out);

#endif
