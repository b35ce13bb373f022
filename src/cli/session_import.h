/* SPDX-License-Identifier: Apache-2.0 */
/* tacho sessions import: a profile from anywhere becomes a session of the data folder. */
#ifndef TACHO_CLI_SESSION_IMPORT_H
#define TACHO_CLI_SESSION_IMPORT_H

#include "cli/cli.h"

/* Copies the profile at `from` into <data>/runs/<run>/plugins/profile/<name>: XSpaces as they are, of
 * other formats the XSpace that is made of them, with the original beside it. The folder appears whole
 * or not at all; a profile that cannot be decoded is refused. run NULL: "imported"; name NULL: that of the
 * profile. *id gets "run~name", in a. ERR_CONFLICT when there is a session of that name. */
MUST_CHECK bool session_import(struct cli *cli, const char *from, const char *run, const char *name,
                               struct arena *a, str *id, struct err *e);

#endif
