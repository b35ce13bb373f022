/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/s3_arg.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "cli/profile_limits.h"
#include "cli/progress.h"
#include "jobs/s3_place.h"

struct s3_opened {
    const char *address; /* of the command line */
    struct s3_place place;
};

/* The first of these variables that is set; "" without. */
static const char *environment(const char *const *names)
{
    for (; *names != NULL; names++) {
        const char *value = getenv(*names);
        if (value != NULL && value[0] != '\0')
            return value;
    }
    return "";
}

static const char *setting(struct cli *cli, struct arena *a, enum config_field f,
                           const char *const *others)
{
    const str set = config_text(cli->config, f);
    return set.n > 0 ? arena_cstr(a, set) : environment(others);
}

/* A key, its secret and its token are taken from one place: those of two do not fit together. */
static void keys_of(struct cli *cli, struct arena *a, struct s3_access *out)
{
    static const char *const none[] = {NULL};
    static const char *const key[] = {"AWS_ACCESS_KEY_ID", NULL};
    static const char *const secret[] = {"AWS_SECRET_ACCESS_KEY", NULL};
    static const char *const token[] = {"AWS_SESSION_TOKEN", NULL};
    if (config_text(cli->config, CONFIG_FIELD_s3_access_key).n > 0) {
        out->key = setting(cli, a, CONFIG_FIELD_s3_access_key, none);
        out->secret = setting(cli, a, CONFIG_FIELD_s3_secret_key, none);
        out->session_token = setting(cli, a, CONFIG_FIELD_s3_session_token, none);
    } else {
        out->key = environment(key);
        out->secret = environment(secret);
        out->session_token = environment(token);
    }
}

static void access_of(struct cli *cli, struct arena *a, struct s3_access *out)
{
    static const char *const regions[] = {"AWS_REGION", "AWS_DEFAULT_REGION", NULL};
    static const char *const endpoints[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL};
    static const char *const bundles[] = {"AWS_CA_BUNDLE", NULL};
    *out = (struct s3_access){
        .region = setting(cli, a, CONFIG_FIELD_s3_region, regions),
        .stall_ms = (uint64_t)config_number(cli->config, CONFIG_FIELD_s3_timeout) / 1000000u};
    if (out->region[0] == '\0')
        out->region = "us-east-1";
    const char *ca_file = setting(cli, a, CONFIG_FIELD_s3_ca_file, bundles);
    out->ca_file = ca_file[0] == '\0' ? NULL : ca_file;
    const str endpoint = str_from(setting(cli, a, CONFIG_FIELD_s3_endpoint, endpoints));
    out->endpoint =
        endpoint.n == 0
            ? arena_printf(a, "https://s3.%s.amazonaws.com", out->region).p
            : arena_cstr(a, str_sub(endpoint, 0, endpoint.n - str_ends(endpoint, S("/"))));
    keys_of(cli, a, out);
}

static void show(void *ctx, uint64_t n_bytes, uint64_t of_bytes)
{
    progress_show(ctx, n_bytes, of_bytes);
}

static bool bring(struct cli *cli, const char *word, struct s3_place *place, struct err *e)
{
    struct arena a;
    struct profile_limits limits;
    struct s3_access access;
    struct progress progress;
    arena_init(&a, "settings of S3", 0);
    profile_limits_of(cli, &limits);
    access_of(cli, &a, &access);
    progress_init(&progress, "fetching", "bytes");
    const struct s3_wish wish = {.access = &access,
                                 .places = &limits.places,
                                 .most_bytes =
                                     (uint64_t)config_number(cli->config, CONFIG_FIELD_s3_cache),
                                 .show = show,
                                 .ctx = &progress};
    const bool ok = s3_place_bring(place, word, &wish, e);
    progress_end(&progress);
    arena_release(&a);
    return ok;
}

bool s3_arg_path(struct cli *cli, const char *word, const char **path, struct err *e)
{
    *path = word;
    if (!s3_is_address(word))
        return true;
    if (cli->s3 == NULL || strcmp(cli->s3->address, word) != 0) {
        struct s3_opened *o = map_alloc(1, sizeof *o);
        o->address = word;
        if (!bring(cli, word, &o->place, e)) {
            map_free(o);
            return false;
        }
        s3_arg_release(cli);
        cli->s3 = o;
    }
    *path = cli->s3->place.path;
    return true;
}

void s3_arg_explain(const struct cli *cli, struct err *e)
{
    const char *path = cli->s3 == NULL ? NULL : cli->s3->place.path;
    char said[sizeof e->msg];
    const char *at = path == NULL ? NULL : strstr(e->msg, path);
    if (at == NULL)
        return;
    snprintf(said, sizeof said, "%.*s%s%s", (int)(at - e->msg), e->msg, cli->s3->address,
             at + strlen(path));
    memcpy(e->msg, said, sizeof said);
}

void s3_arg_release(struct cli *cli)
{
    if (cli->s3 != NULL)
        s3_place_release(&cli->s3->place);
    map_free(cli->s3);
    cli->s3 = NULL;
}
