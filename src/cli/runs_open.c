/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runs_open.h"

#include <stdio.h>
#include <unistd.h>

#include "agent/run_find.h"
#include "base/json.h"
#include "base/limits.h"
#include "cli/browser.h"
#include "cli/run_arg.h"
#include "server/local_socket.h"

bool runs_open(struct cli *cli, const char *run, struct err *e)
{
    char data[RUN_ARG_PATH_MAX], address[1024];
    struct arena a;
    struct run_found found;
    struct local_server server;
    if (!run_arg_data_dir(cli, data, e))
        return false;
    arena_init(&a, "runs", LIMIT_ARENA_REQUEST_BYTES);
    const bool ok = run_find_id(&a, data, str_from(run == NULL ? "last" : run), &found, e) &&
                    local_server_find(data, &server, e);
    if (ok)
        snprintf(address, sizeof address, "%s/runs/%.*s#token=%s", server.url, STR_ARG(found.run),
                 server.token);
    arena_release(&a);
    if (!ok)
        return false;
    if (cli->output == CLI_OUTPUT_JSON) {
        struct json j;
        json_init_fd(&j, STDOUT_FILENO);
        json_object(&j);
        json_kcstr(&j, "url", address);
        json_end(&j);
        return json_done(&j, e);
    }
    printf("%s\n", address);
    if (isatty(STDOUT_FILENO) && browser_is_likely())
        browser_open(address);
    return true;
}
