/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/browser.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>

extern char **environ;

bool browser_is_likely(void)
{
    return getenv("DISPLAY") != NULL || getenv("WAYLAND_DISPLAY") != NULL;
}

void browser_open(const char *address)
{
    char program[] = "xdg-open", text[1024];
    char *argv[] = {program, text, NULL};
    pid_t pid;
    snprintf(text, sizeof text, "%s", address);
    if (posix_spawnp(&pid, "xdg-open", NULL, NULL, argv, environ) != 0)
        fprintf(stderr, "tacho: no browser could be opened: open the address yourself\n");
}
