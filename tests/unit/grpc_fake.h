/* SPDX-License-Identifier: Apache-2.0 */
/* A gRPC server of one thread and one connection at a time, in HTTP/2 frames written by hand (RFC
 * 9113, RFC 7541 without Huffman): independent of the library that the client uses.
 *
 *     struct grpc_fake f;
 *     grpc_fake_start(&f, answer, ctx);     answer(ctx, request message) says what comes back
 *     ... f.port, f.n_connections, f.n_calls ...
 *     grpc_fake_stop(&f);
 */
#ifndef TACHO_TESTS_GRPC_FAKE_H
#define TACHO_TESTS_GRPC_FAKE_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"

struct grpc_fake_answer {
    const char *data;   /* of the DATA frame, the five bytes included; NULL = no such frame */
    size_t n;           /* at most 16384: the largest frame of HTTP/2 */
    const char *status; /* grpc-status; NULL = not said */
    bool silent;        /* nothing at all comes back */
};
typedef struct grpc_fake_answer grpc_fake_fn(const void *ctx, str request);

struct grpc_fake {
    int fd, stop[2];
    uint16_t port;
    grpc_fake_fn *answer;
    const void *ctx;
    atomic_int n_connections, n_calls;
    pthread_t thread;
};

static bool fake_read(const struct grpc_fake *f, int fd, void *to, size_t n)
{
    for (size_t done = 0; done < n;) {
        struct pollfd wait[2] = {{.fd = fd, .events = POLLIN},
                                 {.fd = f->stop[0], .events = POLLIN}};
        if (poll(wait, 2, -1) < 0 || wait[1].revents != 0)
            return false;
        const ssize_t got = recv(fd, (char *)to + done, n - done, 0);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static void fake_frame(int fd, uint8_t type, uint8_t flags, uint32_t stream, const void *p,
                       size_t n)
{
    const uint8_t head[9] = {(uint8_t)(n >> 16),
                             (uint8_t)(n >> 8),
                             (uint8_t)n,
                             type,
                             flags,
                             (uint8_t)(stream >> 24),
                             (uint8_t)(stream >> 16),
                             (uint8_t)(stream >> 8),
                             (uint8_t)stream};
    (void)send(fd, head, sizeof head, MSG_NOSIGNAL);
    if (n > 0)
        (void)send(fd, p, n, MSG_NOSIGNAL);
}

/* A header field as a literal without indexing. */
static void fake_field(struct buf *b, const char *name, const char *value)
{
    buf_add_char(b, 0);
    buf_add_char(b, (char)strlen(name));
    buf_addf(b, "%s", name);
    buf_add_char(b, (char)strlen(value));
    buf_addf(b, "%s", value);
}

static void fake_reply(struct grpc_fake *f, int fd, uint32_t stream, str body)
{
    enum { DATA = 0, HEADERS = 1, END_STREAM = 1, END_HEADERS = 4 };
    const struct grpc_fake_answer a = f->answer(f->ctx, str_sub(body, 5, body.n));
    struct buf b;
    atomic_fetch_add(&f->n_calls, 1);
    if (a.silent)
        return;
    buf_init(&b, 1024);
    buf_add_char(&b, (char)0x88); /* :status 200 */
    fake_field(&b, "content-type", "application/grpc");
    if (a.data != NULL) {
        fake_frame(fd, HEADERS, END_HEADERS, stream, b.p, b.n);
        fake_frame(fd, DATA, a.status == NULL ? END_STREAM : 0, stream, a.data, a.n);
        buf_clear(&b);
    }
    if (a.status != NULL)
        fake_field(&b, "grpc-status", a.status);
    if (a.data == NULL || a.status != NULL)
        fake_frame(fd, HEADERS, END_HEADERS | END_STREAM, stream, b.p, b.n);
    buf_release(&b);
}

/* Acknowledges settings and answers each request when its stream ends, until the client goes. */
static void fake_serve(struct grpc_fake *f, int fd)
{
    enum { DATA = 0, SETTINGS = 4, ACK = 1, END_STREAM = 1 };
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    char text[sizeof preface - 1];
    uint8_t head[9], payload[16384];
    struct buf body;
    buf_init(&body, 65536);
    bool ok = fake_read(f, fd, text, sizeof text) && memcmp(text, preface, sizeof text) == 0;
    fake_frame(fd, SETTINGS, 0, 0, NULL, 0);
    while (ok && fake_read(f, fd, head, sizeof head)) {
        const size_t n = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        const uint32_t stream = (uint32_t)head[7] << 8 | head[8];
        ok = n <= sizeof payload && fake_read(f, fd, payload, n);
        if (head[3] == SETTINGS && (head[4] & ACK) == 0)
            fake_frame(fd, SETTINGS, ACK, 0, NULL, 0);
        if (head[3] == DATA)
            buf_add(&body, payload, n);
        if (ok && head[3] == DATA && (head[4] & END_STREAM) != 0) {
            fake_reply(f, fd, stream, buf_str(&body));
            buf_clear(&body);
        }
    }
    buf_release(&body);
}

static void *fake_main(void *arg)
{
    struct grpc_fake *f = arg;
    for (;;) {
        struct pollfd wait[2] = {{.fd = f->fd, .events = POLLIN},
                                 {.fd = f->stop[0], .events = POLLIN}};
        if (poll(wait, 2, -1) < 0 || wait[1].revents != 0)
            return NULL;
        const int fd = accept(f->fd, NULL, NULL);
        atomic_fetch_add(&f->n_connections, 1);
        fake_serve(f, fd);
        close(fd);
    }
}

/* False when the host has no loopback. */
static bool grpc_fake_start(struct grpc_fake *f, grpc_fake_fn *answer, const void *ctx)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    *f = (struct grpc_fake){.answer = answer, .ctx = ctx, .fd = socket(AF_INET, SOCK_STREAM, 0)};
    if (pipe(f->stop) != 0 || bind(f->fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(f->fd, 8) != 0 || getsockname(f->fd, (struct sockaddr *)&at, &n) != 0)
        return false;
    f->port = ntohs(at.sin_port);
    return pthread_create(&f->thread, NULL, fake_main, f) == 0;
}

static void grpc_fake_stop(struct grpc_fake *f)
{
    (void)!write(f->stop[1], "", 1);
    pthread_join(f->thread, NULL);
    close(f->fd);
    close(f->stop[0]);
    close(f->stop[1]);
}

#endif
