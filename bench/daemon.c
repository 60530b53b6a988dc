/* daemon.c - a child process and an epoll loop. The requests are written once and sent as they are;
 * of an answer only its status and its length are looked at, so that the clients cost as little as
 * possible of the machine that is being measured. */
#include "daemon.h"

#include "core/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_TRIES = 5000, TRY_MS = 1, ANSWER_MAX = 1 << 20, REQUEST_MAX = 1 << 16 };

/* --- the daemon ----------------------------------------------------------------------------- */

static void read_all(const char *folder, const char *name, struct acre_buf *text) {
    char path[320];
    struct acre_error err = {0};
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    acre_buf_init(text, ANSWER_MAX);
    if (acre_file_read(path, ANSWER_MAX, text, &err) < 0) {
        bench_fail("%s", err.text);
    }
}

/* Its port, as it says, and its first token, as it leaves it. */
static void read_access(struct bench_daemon *daemon) {
    struct acre_buf log, token;
    read_all(daemon->folder, "log", &log);
    read_all(daemon->state, "admin-token", &token);
    const char *tcp = strstr(log.data, "tcp=127.0.0.1:");
    if (tcp == NULL || sscanf(token.data, "%127s", daemon->token) != 1) {
        bench_fail("the daemon said: %s", log.data);
    }
    daemon->port = (uint16_t)strtoul(tcp + strlen("tcp=127.0.0.1:"), NULL, 10);
    acre_buf_finish(&log);
    acre_buf_finish(&token);
}

static int connect_unix(const struct bench_daemon *daemon) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int connect_tcp(const struct bench_daemon *daemon) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(daemon->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        bench_fail("connect: %s", strerror(errno));
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

void bench_wait_ms(int ms) {
    struct epoll_event event;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    epoll_wait(fd, &event, 1, ms);
    close(fd);
}

/* Start it on its folder, and wait until it takes connections. */
static void spawn(struct bench_daemon *daemon, const char *sim) {
    char log[320];
    snprintf(log, sizeof(log), "%s/log", daemon->folder);
    daemon->pid = fork();
    if (daemon->pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        execl(ACRE_PROGRAM, "acre", "serve", "--state", daemon->state, "--socket", daemon->socket,
              "--listen", "127.0.0.1:0", "--sim", sim, "--rate", "1000000", "--allow-root", NULL);
        _exit(127);
    }
    int fd = -1;
    for (int i = 0; i < START_TRIES && fd < 0; i++) {
        fd = connect_unix(daemon);
        if (fd < 0) {
            bench_wait_ms(TRY_MS);
        }
    }
    if (fd < 0) {
        bench_fail("the daemon does not answer: %s", strerror(errno));
    }
    close(fd);
}

void bench_daemon_start(struct bench_daemon *daemon, const char *parent, const char *sim) {
    snprintf(daemon->folder, sizeof(daemon->folder), "%s/acre-bench-XXXXXX", parent);
    if (mkdtemp(daemon->folder) == NULL) {
        bench_fail("%s: %s", daemon->folder, strerror(errno));
    }
    snprintf(daemon->socket, sizeof(daemon->socket), "%s/sock", daemon->folder);
    snprintf(daemon->state, sizeof(daemon->state), "%s/state", daemon->folder);
    spawn(daemon, sim);
    bench_wait_ms(200); /* its first token is being committed */
    read_access(daemon);
}

static void end(const struct bench_daemon *daemon) {
    int status = 0;
    kill(daemon->pid, SIGTERM);
    waitpid(daemon->pid, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        bench_fail("the daemon ended with status %d", status);
    }
}

double bench_daemon_restart(struct bench_daemon *daemon, const char *sim) {
    int status = 0;
    end(daemon);
    double began_ns = bench_now_ns();
    spawn(daemon, sim);
    free(bench_ask(daemon, "GET", "/health/ready", "", &status));
    if (status != 200) {
        bench_fail("after a restart the daemon returned %d", status);
    }
    return (bench_now_ns() - began_ns) / 1e6;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

void bench_daemon_stop(struct bench_daemon *daemon) {
    end(daemon);
    nftw(daemon->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

double bench_daemon_cpu_s(const struct bench_daemon *daemon) {
    char path[64];
    char text[1024] = "";
    unsigned long user = 0;
    unsigned long system = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)daemon->pid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        size_t length = fread(text, 1, sizeof(text) - 1, file);
        text[length] = '\0';
        fclose(file);
        const char *after = strrchr(text, ')');
        if (after != NULL) {
            sscanf(after + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                   &system);
        }
    }
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

uint64_t bench_daemon_resident_kib(const struct bench_daemon *daemon) {
    char path[64];
    char line[256];
    unsigned long long kib = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)daemon->pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "VmRSS: %llu kB", &kib) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

/* --- clients -------------------------------------------------------------------------------- */

struct client {
    int fd;
    double sent_ns;
    size_t length; /* of what came */
    char *answer;
};

static size_t make_request(const struct bench_daemon *daemon, bool tcp, const char *method,
                           const char *path, const char *body, char *text) {
    char credential[160] = "";
    if (tcp) {
        snprintf(credential, sizeof(credential), "Authorization: Bearer %s\r\n", daemon->token);
    }
    int length = snprintf(text, REQUEST_MAX,
                          "%s %s HTTP/1.1\r\nHost: bench\r\n%sContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\n\r\n%s",
                          method, path, credential, strlen(body), body);
    return (size_t)length;
}

/* 0: not complete yet; else the status. */
static int parse_answer(const struct client *client, size_t *ret_body, size_t *ret_total) {
    client->answer[client->length] = '\0';
    const char *end = strstr(client->answer, "\r\n\r\n");
    const char *length = end != NULL ? strcasestr(client->answer, "content-length:") : NULL;
    if (length == NULL) {
        return 0;
    }
    size_t head = (size_t)(end - client->answer) + 4;
    size_t body = strtoul(length + strlen("content-length:"), NULL, 10);
    if (client->length < head + body) {
        return 0;
    }
    *ret_body = head;
    *ret_total = head + body;
    return (int)strtol(client->answer + strlen("HTTP/1.1 "), NULL, 10);
}

static void send_all(int fd, const char *text, size_t length) {
    while (length > 0) {
        ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            bench_fail("send: %s", strerror(errno));
        }
        text += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
    }
}

static void read_some(struct client *client) {
    ssize_t got =
        recv(client->fd, client->answer + client->length, ANSWER_MAX - 1 - client->length, 0);
    if (got <= 0) {
        bench_fail("the daemon closed a connection");
    }
    client->length += (size_t)got;
}

char *bench_ask(const struct bench_daemon *daemon, const char *method, const char *path,
                const char *body, int *ret_status) {
    char *request = acre_calloc(REQUEST_MAX, 1);
    struct client client = {.fd = connect_unix(daemon), .answer = acre_calloc(ANSWER_MAX, 1)};
    size_t at = 0;
    size_t total = 0;
    size_t length = make_request(daemon, false, method, path, body, request);
    send_all(client.fd, request, length);
    while ((*ret_status = parse_answer(&client, &at, &total)) == 0) {
        read_some(&client);
    }
    close(client.fd);
    free(request);
    memmove(client.answer, client.answer + at, client.length - at + 1);
    return client.answer;
}

uint64_t bench_load_run(const struct bench_load *load, struct bench_times *times,
                        size_t times_max) {
    char *request = acre_calloc(REQUEST_MAX, 1);
    struct client *clients = acre_calloc(load->connections, sizeof(*clients));
    size_t length =
        make_request(load->daemon, load->over_tcp, load->method, load->path, load->body, request);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    uint64_t sent = 0;
    uint64_t answered = 0;
    double until_ns = bench_now_ns() + load->seconds * 1e9;
    for (uint32_t i = 0; i < load->connections; i++) {
        struct client *client = &clients[i];
        client->fd = load->over_tcp ? connect_tcp(load->daemon) : connect_unix(load->daemon);
        client->answer = acre_calloc(ANSWER_MAX, 1);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
        if (client->fd < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, client->fd, &event) != 0) {
            bench_fail("client: %s", strerror(errno));
        }
        if (load->most == 0 || sent < load->most) {
            client->sent_ns = bench_now_ns();
            send_all(client->fd, request, length);
            sent++;
        }
    }
    while (answered < sent) {
        struct epoll_event events[64];
        int count = epoll_wait(poll, events, (int)ACRE_COUNT(events), 30000);
        if (count <= 0) {
            bench_fail("no answer for 30 s");
        }
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;
            size_t at = 0;
            size_t total = 0;
            read_some(client);
            int status = parse_answer(client, &at, &total);
            if (status == 0) {
                continue;
            }
            if (status != load->status) {
                bench_fail("returned %d: %s", status, client->answer);
            }
            double now_ns = bench_now_ns();
            if (times->count < times_max) {
                times->ns[times->count++] = now_ns - client->sent_ns;
            }
            answered++;
            client->length = 0;
            if (now_ns < until_ns && (load->most == 0 || sent < load->most)) {
                client->sent_ns = now_ns;
                send_all(client->fd, request, length);
                sent++;
            }
        }
    }
    for (uint32_t i = 0; i < load->connections; i++) {
        close(clients[i].fd);
        free(clients[i].answer);
    }
    close(poll);
    free(clients);
    free(request);
    return answered;
}
