/* http.c - how many requests a second one core serves, each answered later from a posted function.
 *
 *   build/bench/http --json [--connections 64] [--seconds 3] [--unix]
 *
 * The server runs on a thread of its own; this thread keeps `connections` keep-alive connections
 * busy with one POST of 80 bytes each at a time. "server_us" is the processor time of the server's
 * thread a request, so it does not depend on how fast the client is. */
#include "http/http.h"
#include "bench.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct options {
    bool json; /* bench_main's */
    uint64_t connections, seconds;
    bool unix_socket;
};

enum { SAMPLES_MAX = 4 * 1000 * 1000, EVENTS = 256, MESSAGE_BYTES = 4096 };

#define NS_A_SECOND 1e9
#define US_NS       1000.0
#define BODY                                                                                       \
    "{\"command\":\"python train.py --epochs 10\",\"name\":\"train\",\"gpus\":0.5,\"user\":1}"

struct server {
    struct acre_loop *loop;
    struct acre_http *http;
    pthread_t thread;
};

static void answer(void *context) {
    struct acre_buf body;
    acre_buf_init(&body, MESSAGE_BYTES);
    acre_buf_puts(&body, "{\"job\":{\"id\":42,\"state\":\"queued\"}}");
    acre_http_answer(context, 201, "application/json", &body);
}

static void handle(void *context, struct acre_exchange *exchange,
                   const struct acre_http_request *request) {
    struct server *server = context;
    ACRE_ASSERT(request->body.length == strlen(BODY));
    acre_loop_post(server->loop, answer, exchange);
}

static void *serve(void *context) {
    struct server *server = context;
    acre_loop_run(server->loop);
    return NULL;
}

static void stop(void *context) {
    struct server *server = context;
    acre_http_stop(server->http);
    acre_loop_stop(server->loop);
}

static void start(struct server *server, const char *path) {
    struct acre_error err = {0};
    struct acre_http_options options = {.unix_path = path,
                                        .address = path == NULL ? "127.0.0.1:0" : NULL,
                                        .handler = handle,
                                        .context = server};
    int r = acre_loop_create(&server->loop, &err);
    options.loop = server->loop;
    if (r < 0 || acre_http_start(&options, &server->http, &err) < 0) {
        bench_fail("%s", err.text);
    }
    r = pthread_create(&server->thread, NULL, serve, server);
    ACRE_ASSERT(r == 0);
}

static int connect_to(const struct server *server, const char *path) {
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in inet = {.sin_family = AF_INET,
                               .sin_port = htons(acre_http_port(server->http))};
    inet_pton(AF_INET, "127.0.0.1", &inet.sin_addr);
    int fd = socket(path != NULL ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r;
    if (path != NULL) {
        acre_str_copy(local.sun_path, sizeof(local.sun_path), acre_str_from(path));
        r = connect(fd, (const struct sockaddr *)&local, sizeof(local));
    } else {
        r = connect(fd, (const struct sockaddr *)&inet, sizeof(inet));
    }
    ACRE_ASSERT(fd >= 0 && r == 0);
    return fd;
}

static double thread_cpu_ns(pthread_t thread) {
    clockid_t clock;
    struct timespec time = {0};
    if (pthread_getcpuclockid(thread, &clock) == 0) {
        clock_gettime(clock, &time);
    }
    return (double)time.tv_sec * NS_A_SECOND + (double)time.tv_nsec;
}

struct client {
    int fd;
    double sent_ns;
};

static void ask(struct client *client, struct acre_str request) {
    client->sent_ns = bench_now_ns();
    ssize_t sent = send(client->fd, request.data, request.length, MSG_NOSIGNAL);
    ACRE_ASSERT(sent == (ssize_t)request.length);
}

/* Keep all clients busy until the time is over; latencies go into `times`. */
static void load(struct client *clients, uint64_t count, struct acre_str request, double seconds,
                 struct bench_times *times) {
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (uint64_t i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[i]};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, clients[i].fd, &event);
        ask(&clients[i], request);
    }
    double end_ns = bench_now_ns() + seconds * NS_A_SECOND;
    while (bench_now_ns() < end_ns && times->count < SAMPLES_MAX - EVENTS) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll_fd, events, EVENTS, 100);
        for (int i = 0; i < ready; i++) {
            struct client *client = events[i].data.ptr;
            char answered[MESSAGE_BYTES];
            ssize_t got = recv(client->fd, answered, sizeof(answered), 0);
            ACRE_ASSERT(got > 12 && memcmp(answered, "HTTP/1.1 201", 12) == 0);
            times->ns[times->count++] = bench_now_ns() - client->sent_ns;
            ask(client, request);
        }
    }
    close(epoll_fd);
}

static void run(const void *context, struct acre_json *json) {
    const struct options *options = context;
    char path[64], request[MESSAGE_BYTES];
    snprintf(path, sizeof(path), "/tmp/acre-bench-%d.sock", (int)getpid());
    int length = snprintf(request, sizeof(request),
                          "POST /jobs HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n"
                          "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                          strlen(BODY), BODY);
    struct server server = {0};
    const char *unix_path = options->unix_socket ? path : NULL;
    start(&server, unix_path);
    struct client *clients = acre_calloc(options->connections, sizeof(*clients));
    for (uint64_t i = 0; i < options->connections; i++) {
        clients[i].fd = connect_to(&server, unix_path);
    }
    struct bench_times times = {.ns = acre_calloc(SAMPLES_MAX, sizeof(double))};
    double start_ns = bench_now_ns();
    double cpu_ns = thread_cpu_ns(server.thread);
    load(clients, options->connections, (struct acre_str){request, (size_t)length},
         (double)options->seconds, &times);
    double elapsed_ns = bench_now_ns() - start_ns;
    cpu_ns = thread_cpu_ns(server.thread) - cpu_ns;
    double requests = (double)times.count;
    acre_json_put_u64(json, "connections", options->connections);
    acre_json_put_double(json, "requests_per_s", requests * NS_A_SECOND / elapsed_ns, 0);
    acre_json_put_double(json, "server_us", cpu_ns / requests / US_NS, 2);
    bench_put_times(json, "latency_us", &times, US_NS);
    acre_loop_post(server.loop, stop, &server);
    pthread_join(server.thread, NULL);
    acre_loop_destroy(server.loop);
    for (uint64_t i = 0; i < options->connections; i++) {
        close(clients[i].fd);
    }
    free(clients);
    free(times.ns);
}

static const struct acre_opt rows[] = {
    {.name = "connections",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, connections),
     .value = "N",
     .help = "number of concurrent clients (64)",
     .min = 1,
     .max = 900},
    {.name = "seconds",
     .kind = ACRE_OPT_COUNT,
     .offset = offsetof(struct options, seconds),
     .value = "N",
     .help = "duration (3)",
     .min = 1,
     .max = 60},
    {.name = "unix",
     .kind = ACRE_OPT_FLAG,
     .offset = offsetof(struct options, unix_socket),
     .help = "over a unix socket instead of TCP"},
};

static const struct options defaults = {.connections = 64, .seconds = 3};

static const struct acre_command command = {
    .name = "http",
    .summary =
        "measure requests per second of the HTTP server, each answered from a posted function",
    .usage = "http [options]",
    .options = rows,
    .option_count = ACRE_COUNT(rows),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
};

int main(int argc, char **argv) {
    return bench_main(&command, argc, argv, run);
}
