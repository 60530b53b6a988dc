/* listen.c - the listening sockets, and who is at the other end of an accepted one.
 *
 * If the socket file exists, a connect shows whether a daemon listens on it: if so the caller is
 * refused (two daemons on one socket), if not the file is left from a crash and is replaced. At
 * the end the file is removed only if it still is ours, by device and inode. */
#include "core/units.h"
#include "http/inner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, SHOWN_BYTES = 128, UNIX_MODE = 0666 };

static int add_listener(struct acre_http *http, int fd, bool is_unix) {
    ACRE_ASSERT(http->listener_count < ACRE_HTTP_LISTENERS_MAX);
    http->listeners[http->listener_count++] =
        (struct http_listener){.fd = fd, .is_unix = is_unix, .tls = http->tls && !is_unix};
    return 0;
}

/* Whether the path can be taken: nothing is there, or a socket nobody listens on (then removed). */
static int clear_path(const char *path, const struct sockaddr_un *address, struct acre_error *err) {
    struct stat status;
    if (lstat(path, &status) != 0) {
        return errno == ENOENT ? 0 : acre_fail_errno(err, errno, "socket %s", path);
    }
    if (!S_ISSOCK(status.st_mode)) {
        return acre_fail(
            err, ACRE_EEXISTS,
            "socket %s: the file exists and is not a socket; remove it or choose another path",
            path);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return acre_fail_errno(err, errno, "socket %s", path);
    }
    int r = connect(fd, (const struct sockaddr *)address, sizeof(*address));
    int why = r == 0 ? 0 : errno;
    close(fd);
    if (why != ECONNREFUSED) { /* EAGAIN: so busy that its backlog is full */
        return acre_fail(err, ACRE_EEXISTS, "socket %s: another program is listening on it", path);
    }
    if (unlink(path) != 0 && errno != ENOENT) {
        return acre_fail_errno(err, errno, "socket %s", path);
    }
    return 0;
}

static int listen_unix(struct acre_http *http, const char *path, struct acre_error *err) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!acre_str_copy(address.sun_path, sizeof(address.sun_path), acre_str_from(path))) {
        return acre_fail(err, ACRE_EINVALID,
                         "socket %s: the path is too long; accepted: at most %zu bytes", path,
                         sizeof(address.sun_path) - 1);
    }
    int r = clear_path(path, &address, err);
    if (r < 0) {
        return r;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat status;
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        goto fail;
    }
    if (chmod(path, UNIX_MODE) != 0 || lstat(path, &status) != 0 || listen(fd, BACKLOG) != 0) {
        int saved = errno;
        unlink(path);
        errno = saved;
        goto fail;
    }
    http->unix_path = acre_strdup(path);
    http->unix_device = status.st_dev;
    http->unix_inode = status.st_ino;
    return add_listener(http, fd, true);
fail:
    r = acre_fail_errno(err, errno, "socket %s", path);
    if (fd >= 0) {
        close(fd);
    }
    return r;
}

/* "127.0.0.1:10000", "[::1]:0", "localhost:80": numbers only, so that no name server is asked. */
static int parse_address(const char *text, struct addrinfo **ret_address, struct acre_error *err) {
    char host[64], shown[SHOWN_BYTES];
    const char *accepted = "127.0.0.1:10000, [::1]:10000 or localhost:10000";
    acre_str_show(acre_str_from(text), shown, sizeof(shown));
    const char *colon = strrchr(text, ':');
    struct acre_str name = {text, colon != NULL ? (size_t)(colon - text) : 0};
    if (name.length >= 2 && name.data[0] == '[' && name.data[name.length - 1] == ']') {
        name = (struct acre_str){name.data + 1, name.length - 2};
    } else if (name.length > 0 && memchr(name.data, ':', name.length) != NULL) {
        name.length = 0; /* ::1:80 may mean two things */
    }
    uint64_t port = 0;
    if (name.length == 0 || !acre_str_copy(host, sizeof(host), name) ||
        acre_parse_count("port", colon + 1, 0, UINT16_MAX, &port, NULL) < 0) {
        return acre_fail(err, ACRE_EINVALID, "address: '%s' is not an address; accepted: %s", shown,
                         accepted);
    }
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                             .ai_socktype = SOCK_STREAM};
    int r = getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, colon + 1, &hints,
                        ret_address);
    if (r != 0) {
        return acre_fail(err, ACRE_EINVALID, "address: '%s': %s; accepted: %s", shown,
                         gai_strerror(r), accepted);
    }
    return 0;
}

static int listen_tcp(struct acre_http *http, const char *text, struct acre_error *err) {
    struct addrinfo *address = NULL;
    int r = parse_address(text, &address, err);
    if (r < 0) {
        return r;
    }
    int on = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_storage bound;
    socklen_t size = sizeof(bound);
    /* The last two are inherited by what is accepted. */
    bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
              setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) == 0 &&
              setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
              bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0 &&
              getsockname(fd, (struct sockaddr *)&bound, &size) == 0;
    int why = errno;
    freeaddrinfo(address);
    if (!ok) {
        if (fd >= 0) {
            close(fd);
        }
        return why == EADDRINUSE ? acre_fail(err, ACRE_EEXISTS,
                                             "address %s: another program is listening on it", text)
                                 : acre_fail_errno(err, why, "address %s", text);
    }
    const struct sockaddr_in *v4 = (const void *)&bound;
    const struct sockaddr_in6 *v6 = (const void *)&bound;
    http->port = ntohs(bound.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
    return add_listener(http, fd, false);
}

/* The socket file comes last: it appears only when everything listens, and a taken port leaves what
 * is at its path alone. */
int http_listen(struct acre_http *http, struct acre_error *err) {
    int r = 0;
    if (http->options.address != NULL) {
        r = listen_tcp(http, http->options.address, err);
    }
    if (r == 0 && http->options.unix_path != NULL) {
        r = listen_unix(http, http->options.unix_path, err);
    }
    return r;
}

void http_unlisten(struct acre_http *http) {
    for (uint32_t i = 0; i < http->listener_count; i++) {
        close(http->listeners[i].fd); /* leaves the epoll set, too */
        http->listeners[i].fd = -1;   /* an event of this turn may still point here */
    }
    http->listener_count = 0;
    struct stat status;
    if (http->unix_path != NULL && lstat(http->unix_path, &status) == 0 &&
        status.st_dev == http->unix_device && status.st_ino == http->unix_inode) {
        unlink(http->unix_path);
    }
    free(http->unix_path);
    http->unix_path = NULL;
}

struct http_key http_peer_of(int fd, bool is_unix, struct acre_http_peer *ret_peer) {
    *ret_peer = (struct acre_http_peer){.is_unix = is_unix, .uid = UINT32_MAX, .gid = UINT32_MAX};
    if (is_unix) {
        struct ucred credentials;
        socklen_t size = sizeof(credentials);
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
            ret_peer->uid = credentials.uid;
            ret_peer->gid = credentials.gid;
            ret_peer->pid = credentials.pid;
        }
        snprintf(ret_peer->address, sizeof(ret_peer->address), "unix:%u", ret_peer->uid);
        return (struct http_key){ACRE_HTTP_KEY_UID, ret_peer->uid};
    }
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof(address);
    getpeername(fd, (struct sockaddr *)&address, &size);
    const struct sockaddr_in *v4 = (const void *)&address;
    const struct sockaddr_in6 *v6 = (const void *)&address;
    struct in_addr numbers = v4->sin_addr;
    if (address.ss_family != AF_INET && !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        struct http_key key = {.kind = ACRE_HTTP_KEY_IPV6};
        memcpy(&key.value, v6->sin6_addr.s6_addr, sizeof(key.value));
        inet_ntop(AF_INET6, &v6->sin6_addr, ret_peer->address, sizeof(ret_peer->address));
        return key;
    }
    if (address.ss_family != AF_INET) {
        memcpy(&numbers, v6->sin6_addr.s6_addr + 12, sizeof(numbers));
    }
    inet_ntop(AF_INET, &numbers, ret_peer->address, sizeof(ret_peer->address));
    /* Any process of this machine can connect from all of 127.0.0.0/8. */
    bool is_loopback = ntohl(numbers.s_addr) >> 24 == IN_LOOPBACKNET;
    return (struct http_key){ACRE_HTTP_KEY_IPV4,
                             is_loopback ? htonl(INADDR_LOOPBACK) : numbers.s_addr};
}
