/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_DOMAIN "server"
#include "server/local_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "server/doc.h"
#include "server/server_inside.h"

#define ANSWER_BYTES 1024
#define ANSWER_WAIT_S 2 /* a server that was stopped must not hang a command */

struct local_socket {
    pthread_t thread;
    int folder, listener, stop; /* stop: an eventfd */
    char answer[ANSWER_BYTES];
    size_t n_answer;
};

/* A socket's name holds 107 bytes, a data folder's may be longer: the folder by its descriptor. */
static struct sockaddr_un address_in(int folder)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/socket", folder);
    return to;
}

static bool is_same_user(int fd)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == geteuid();
}

static int open_folder(const char *data_dir, struct err *e)
{
    char path[4096 + 16];
    snprintf(path, sizeof path, "%s/server", data_dir);
    return file_open(path, O_RDONLY | O_DIRECTORY, 0, e);
}

/* ---- the server's side ---- */

static void *answer_loop(void *arg)
{
    struct local_socket *l = arg;
    struct pollfd wait[] = {{.fd = l->listener, .events = POLLIN},
                            {.fd = l->stop, .events = POLLIN}};
    while (poll(wait, 2, -1) >= 0 || errno == EINTR) {
        if (wait[1].revents != 0)
            break;
        const int fd = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd == -1) {
            if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                poll(&wait[1], 1, 100); /* no descriptors left: not in circles */
            continue;
        }
        /* fits into the socket's buffer, so that no client can make us wait */
        if (!is_same_user(fd))
            log_warn("the local socket was asked by another user");
        else if (send(fd, l->answer, l->n_answer, MSG_NOSIGNAL) != (ssize_t)l->n_answer)
            log_debug("a client of the local socket was gone");
        close(fd);
    }
    return NULL;
}

static bool make_answer(struct local_socket *l, const struct server *s, struct err *e)
{
    struct buf b;
    struct json j;
    buf_init(&b, ANSWER_BYTES);
    json_init_buf(&j, &b);
    json_object(&j);
    json_kcstr(&j, "url", server_url(s));
    json_kcstr(&j, "token", server_token(s));
    json_ki64(&j, "pid", getpid());
    json_end(&j);
    const bool ok = json_done(&j, e) && buf_ok(&b, "the answer", e);
    if (ok) {
        memcpy(l->answer, b.p, b.n);
        l->n_answer = b.n;
    }
    buf_release(&b);
    return ok;
}

static bool listen_there(struct local_socket *l, const struct server *s, struct err *e)
{
    l->folder = open_folder(s->data_dir, e);
    if (l->folder == -1)
        return false;
    const struct sockaddr_un at = address_in(l->folder);
    if (unlinkat(l->folder, "socket", 0) == -1 && errno != ENOENT)
        return err_sys(e, "cannot remove '%s/server/socket'", s->data_dir);
    l->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    l->stop = eventfd(0, EFD_CLOEXEC);
    if (l->listener == -1 || l->stop == -1 ||
        bind(l->listener, (const struct sockaddr *)&at, sizeof at) == -1 ||
        fchmodat(l->folder, "socket", 0600, 0) == -1 || listen(l->listener, 16) == -1)
        return err_sys(e, "cannot listen on '%s/server/socket'", s->data_dir);
    return true;
}

struct local_socket *local_socket_open(const struct server *s, struct err *e)
{
    struct local_socket *l = map_alloc(1, sizeof *l);
    l->folder = l->listener = l->stop = -1;
    if (make_answer(l, s, e) && listen_there(l, s, e)) {
        must(pthread_create(&l->thread, NULL, answer_loop, l) == 0);
        return l;
    }
    for (int i = 0; i < 3; i++)
        if ((int[]){l->folder, l->listener, l->stop}[i] != -1)
            close((int[]){l->folder, l->listener, l->stop}[i]);
    free(l);
    return NULL;
}

void local_socket_close(struct local_socket *l)
{
    const uint64_t one = 1;
    if (l == NULL)
        return;
    must(write(l->stop, &one, sizeof one) == (ssize_t)sizeof one);
    pthread_join(l->thread, NULL);
    unlinkat(l->folder, "socket", 0);
    close(l->folder);
    close(l->listener);
    close(l->stop);
    free(l);
}

/* ---- a command's side ---- */

static bool take_answer(str text, struct local_server *out, struct err *e)
{
    struct doc *d = doc_parse(text, e);
    const char *url = doc_cstr(d, "url"), *token = doc_cstr(d, "token");
    const bool ok = url != NULL && token != NULL && strlen(url) < sizeof out->url &&
                    strlen(token) < sizeof out->token;
    if (ok) {
        snprintf(out->url, sizeof out->url, "%s", url);
        snprintf(out->token, sizeof out->token, "%s", token);
        out->pid = doc_i64(d, "pid", 0);
    }
    doc_free(d);
    return ok;
}

static bool ask(int fd, int folder, struct local_server *out, struct err *e)
{
    const struct sockaddr_un at = address_in(folder);
    const struct timeval wait = {.tv_sec = ANSWER_WAIT_S};
    char answer[ANSWER_BYTES];
    size_t n = 0;
    ssize_t got;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) == -1)
        return errno == ENOENT || errno == ECONNREFUSED
                   ? err_set(e, ERR_NOT_FOUND, "no server runs there")
                   : err_sys(e, "cannot connect");
    if (!is_same_user(fd))
        return err_set(e, ERR_DENIED, "the server is another user's");
    while (n < sizeof answer && (got = recv(fd, answer + n, sizeof answer - n, 0)) > 0)
        n += (size_t)got;
    return take_answer((str){answer, n}, out, e) ||
           err_set(e, ERR_UNREACHABLE, "the server does not answer within %d s", ANSWER_WAIT_S);
}

bool local_server_find(const char *data_dir, struct local_server *out, struct err *e)
{
    const int folder = open_folder(data_dir, e);
    const int fd = folder == -1 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = false;
    if (folder == -1 && e->code == ERR_NOT_FOUND)
        err_set(e, ERR_NOT_FOUND, "no server runs there");
    else if (fd == -1 && folder != -1)
        err_sys(e, "cannot make a socket");
    else if (fd != -1)
        ok = ask(fd, folder, out, e);
    if (fd != -1)
        close(fd);
    if (folder != -1)
        close(folder);
    if (ok)
        return true;
    err_wrap(e, "data folder '%s'", data_dir);
    return e->code == ERR_NOT_FOUND ? err_hint(e, "start it: tacho serve") : false;
}
