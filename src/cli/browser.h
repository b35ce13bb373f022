/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TACHO_CLI_BROWSER_H
#define TACHO_CLI_BROWSER_H

#include <stdbool.h>

/* Is there a desktop that a browser could appear on? */
bool browser_is_likely(void);
/* Asks the desktop to show the address and does not wait; what hinders it is said on stderr. */
void browser_open(const char *address);

#endif
