/* The HTTP server, over real sockets: bodies, deadlines, streams, limits and the end. What a client
 * gets does not depend on who goes first (SEC-1). */
#include "support/http_kit.h"
#include "support/test.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BODY_MAX = 4096 };

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define HOST      "Host: a\r\n"

/* A client that sends its whole large body before it looks gets the answer, not a reset. */
static void a_body_too_large_is_refused_before_it_is_read(void) {
    enum { SENT = 4 * 1024 * 1024 };
    struct http_kit kit = {.options.body_max = BODY_MAX};
    http_kit_start(&kit);
    char *bytes = acre_calloc(1, SENT);
    struct http_client client = http_client_open(&kit);
    http_client_puts(&client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4194304\r\n\r\n");
    http_client_write(&client, (struct acre_str){bytes, SENT});
    CHECK_EQ(http_client_status(&client), 413);
    http_client_close(&client);
    free(bytes);
    CHECK_U64(http_kit_counts(&kit)->requests, 0);
    http_kit_stop(&kit);
}

static void bodies_arrive_whole_however_they_come(void) {
    struct http_kit kit = {.options.body_max = BODY_MAX};
    http_kit_start(&kit);
    char body[8192];
    struct http_client client = http_client_open(&kit);
    CHECK_EQ(http_client_ask(&client,
                             "POST /later?a=%2B1&b=x+y HTTP/1.1\r\n" HOST
                             "Content-Length: 5\r\n\r\nhello",
                             body, sizeof(body)),
             200);
    CHECK_STR(body, "POST /later?a=+1&b=x y hello");
    CHECK_EQ(http_client_ask(&client,
                             "PUT /e%20f HTTP/1.1\r\n" HOST
                             "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;q=\"x\"\r\n"
                             " world\r\n0\r\nX: y\r\n\r\n",
                             body, sizeof(body)),
             200);
    CHECK_STR(body, "PUT /e f hello world");
    /* exactly the limit, in two pieces */
    http_client_puts(&client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4096\r\n\r\n");
    memset(body, 'b', sizeof(body));
    http_client_write(&client, (struct acre_str){body, 1000});
    http_kit_counts(&kit); /* the server has seen the first */
    http_client_write(&client, (struct acre_str){body, 3096});
    struct http_answer answer;
    REQUIRE(http_client_read(&client, &answer));
    CHECK_EQ(answer.status, 200);
    CHECK_U64(answer.body.length, strlen("POST /echo ") + 4096);
    http_answer_free(&answer);
    http_client_close(&client);
    http_kit_stop(&kit);
}

static void a_client_that_waits_for_100_continue_gets_it(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    static const char *const framings[] = {"Content-Length: 2", "Transfer-Encoding: chunked"};
    static const char *const bodies[] = {"ab", "2\r\nab\r\n0\r\n\r\n"};
    for (size_t i = 0; i < ACRE_COUNT(framings); i++) {
        struct http_client client = http_client_open(&kit);
        http_client_puts(&client, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\n");
        http_client_puts(&client, framings[i]);
        http_client_puts(&client, "\r\n\r\n");
        CHECK_EQ(http_client_status(&client), 100);
        http_client_puts(&client, bodies[i]);
        CHECK_EQ(http_client_status(&client), 200);
        http_client_close(&client);
    }
    http_kit_stop(&kit);
}

static void headers_are_found_in_any_case_and_answers_cannot_be_split(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    struct http_answer answer;
    http_client_puts(&client, "GET /echo HTTP/1.1\r\n" HOST "X-TEST:  one\ttwo \r\n\r\n");
    REQUIRE(http_client_read(&client, &answer));
    CHECK_HAS(answer.head, "\r\nX-Back: one two\r\n"); /* no control character goes out */
    CHECK_HAS(answer.head, "\r\nDate: ");
    CHECK_HAS(answer.head, " GMT\r\n");
    http_answer_free(&answer);
    http_client_close(&client);
    http_kit_stop(&kit);
}

static void head_has_the_length_but_no_body(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_client_puts(&client, "HEAD /echo HTTP/1.1\r\n" HOST "\r\n" GET("/echo"));
    REQUIRE(http_client_more(&client));
    while (memmem(client.in.data, client.in.length, "GET /echo ", 10) == NULL) {
        REQUIRE(http_client_more(&client));
    }
    char *second = memmem(client.in.data + 1, client.in.length - 1, "HTTP/1.1 200", 12);
    REQUIRE(second != NULL);
    CHECK(memcmp(second - 4, "\r\n\r\n", 4) == 0); /* nothing after the first head */
    CHECK_HAS(client.in.data, "Content-Length: 11\r\n");
    http_client_close(&client);
    http_kit_stop(&kit);
}

static void an_answer_may_come_late_or_find_nobody(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_client_puts(&client, GET("/park"));
    http_kit_wait_parked(&kit);
    http_kit_answer_parked(&kit);
    CHECK_EQ(http_client_status(&client), 200);
    http_client_puts(&client, GET("/park"));
    http_kit_wait_parked(&kit);
    struct linger at_once = {.l_onoff = 1};
    setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    http_client_close(&client); /* a reset: the server knows at once */
    http_kit_wait_gone(&kit, 0);
    http_kit_answer_parked(&kit); /* dropped; freed exactly once, says ASan */
    http_kit_stop(&kit);
}

/* Half a close is not a goodbye: the answer still goes out. */
static void a_client_that_sends_no_more_still_gets_its_answer(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_client_puts(&client, GET("/park"));
    shutdown(client.fd, SHUT_WR);
    http_kit_wait_parked(&kit);
    http_kit_answer_parked(&kit);
    CHECK_EQ(http_client_status(&client), 200);
    CHECK(http_client_ends(&client));
    http_client_close(&client);
    client = http_client_open(&kit);
    http_client_puts(&client, "GET /ec");
    shutdown(client.fd, SHUT_WR);
    CHECK(http_client_ends(&client)); /* half a request is none */
    CHECK_U64(client.in.length, 0);
    http_client_close(&client);
    http_kit_stop(&kit);
}

static void an_exchange_outlives_the_server(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_client_puts(&client, GET("/park"));
    http_kit_wait_parked(&kit);
    struct acre_exchange *parked = kit.parked;
    http_kit_stop(&kit);
    CHECK(http_client_ends(&client));
    acre_http_answer(parked, 200, "text/plain", NULL);
    http_client_close(&client);
}

static uint64_t now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* The time-outs here are as long as a busy machine may keep a thread of the test from running; a
 * client whose first bytes came later would be cut before it asked. */
enum { TIMEOUT_MS = 1500 };

/* One byte every 20 ms would take forever; the deadline is for the whole request. */
static void a_dripping_request_is_cut(void) {
    static const char *const starts[] = {
        "GET /echo HTTP/1.1\r\n",
        "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n",
        "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n",
    };
    enum { DRIPPING = ACRE_COUNT(starts) };
    static const char *const drips[DRIPPING] = {"a", "a", "1\r\na\r\n"};
    struct http_kit kit = {.options.request_timeout_ms = TIMEOUT_MS};
    struct http_client clients[DRIPPING];
    http_kit_start(&kit);
    uint64_t begin_ms = now_ms();
    for (size_t i = 0; i < DRIPPING; i++) {
        clients[i] = http_client_open(&kit);
        http_client_puts(&clients[i], starts[i]);
    }
    for (size_t open = DRIPPING; open > 0;) {
        struct pollfd pollers[DRIPPING];
        open = 0;
        poll(NULL, 0, 20);
        for (size_t i = 0; i < DRIPPING; i++) {
            pollers[i] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
            if (poll(&pollers[i], 1, 0) == 0) {
                http_client_puts(&clients[i], drips[i]);
                open++;
            } else {
                CHECK(now_ms() - begin_ms >= TIMEOUT_MS);
            }
        }
    } /* were it not cut, the test's own time would end */
    for (size_t i = 0; i < DRIPPING; i++) {
        acre_test_context("%s", starts[i]);
        CHECK_EQ(http_client_status(&clients[i]), 408);
        CHECK(http_client_ends(&clients[i]));
        http_client_close(&clients[i]);
    }
    CHECK_U64(http_kit_counts(&kit)->timed_out, DRIPPING);
    http_kit_stop(&kit);
}

static void silent_connections_are_closed(void) {
    struct http_kit kit = {.options.request_timeout_ms = TIMEOUT_MS,
                           .options.idle_timeout_ms = TIMEOUT_MS};
    http_kit_start(&kit);
    struct http_client fresh = http_client_open(&kit);
    struct http_client used = http_client_open(&kit);
    http_client_puts(&used, GET("/echo"));
    CHECK_EQ(http_client_status(&used), 200);
    CHECK(http_client_ends(&fresh));
    CHECK_U64(fresh.in.length, 0); /* without a word: it asked nothing */
    CHECK(http_client_ends(&used));
    CHECK_U64(used.in.length, used.used);
    http_client_close(&fresh);
    http_client_close(&used);
    http_kit_wait_gone(&kit, 0);
    http_kit_stop(&kit);
}

static void an_exchange_under_way_has_no_deadline(void) {
    struct http_kit kit = {.options.request_timeout_ms = TIMEOUT_MS,
                           .options.idle_timeout_ms = 50,
                           .options.answer_timeout_ms = 50};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_client_puts(&client, GET("/park"));
    http_kit_wait_parked(&kit);
    struct pollfd poller = {.fd = client.fd, .events = POLLIN};
    CHECK_EQ(poll(&poller, 1, 2 * TIMEOUT_MS), 0);
    http_kit_answer_parked(&kit);
    CHECK_EQ(http_client_status(&client), 200);
    http_client_close(&client);
    http_kit_stop(&kit);
}

static void shrink_receive_buffer(const struct http_client *client) {
    int bytes = 4096;
    setsockopt(client->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

static void an_answer_that_is_not_taken_is_cut(void) {
    struct http_kit kit = {.options.answer_timeout_ms = 200};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    shrink_receive_buffer(&client);
    http_client_puts(&client, GET("/big"));
    http_kit_wait_gone(&kit, 0); /* we read nothing */
    CHECK_U64(http_kit_counts(&kit)->timed_out, 1);
    http_client_close(&client);
    http_kit_stop(&kit);
}

/* Slow, but faster than 16 KiB/s: goes on past the time-out. */
static void an_answer_that_is_taken_steadily_is_not_cut(void) {
    struct http_kit kit = {.options.answer_timeout_ms = TIMEOUT_MS};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_client_puts(&client, GET("/big"));
    uint64_t begin_ms = now_ms();
    size_t got = 0;
    static char bytes[16 * 1024];
    while (got < HTTP_KIT_BIG_BYTES) {
        ssize_t r = recv(client.fd, bytes, sizeof(bytes), 0);
        REQUIRE(r > 0);
        got += (size_t)r;
        poll(NULL, 0, now_ms() - begin_ms < 2 * TIMEOUT_MS ? 10 : 0);
    }
    CHECK(now_ms() - begin_ms >= 2 * TIMEOUT_MS);
    http_client_close(&client);
    http_kit_stop(&kit);
}

static void large_answers_arrive_whole(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_client_puts(&client, GET("/big") GET("/echo") GET("/big"));
    static const size_t sizes[] = {HTTP_KIT_BIG_BYTES, sizeof("GET /echo ") - 1,
                                   HTTP_KIT_BIG_BYTES};
    for (size_t i = 0; i < ACRE_COUNT(sizes); i++) {
        struct http_answer answer;
        REQUIRE(http_client_read(&client, &answer));
        CHECK_U64(answer.body.length, sizes[i]);
        http_answer_free(&answer);
    }
    http_client_close(&client);
    http_kit_stop(&kit);
}

/* Thousands of requests sent ahead: all are answered, in order, and the server holds few. */
static void a_flood_of_requests_is_answered_in_order(void) {
    enum { REQUESTS = 3000 };
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct acre_buf requests;
    acre_buf_init(&requests, 1 << 20);
    for (int i = 0; i < REQUESTS; i++) {
        acre_buf_printf(&requests, "GET /%s/%d HTTP/1.1\r\n" HOST "\r\n",
                        i % 7 == 0 ? "later" : "e", i);
    }
    struct http_client client = http_client_open(&kit);
    http_client_write(&client, (struct acre_str){requests.data, requests.length});
    for (int i = 0; i < REQUESTS; i++) {
        char want[64];
        struct http_answer answer;
        snprintf(want, sizeof(want), "GET /%s/%d ", i % 7 == 0 ? "later" : "e", i);
        REQUIRE(http_client_read(&client, &answer));
        CHECK_STR(answer.body.data, want);
        http_answer_free(&answer);
    }
    http_client_close(&client);
    acre_buf_finish(&requests);
    http_kit_stop(&kit);
}

static void a_stream_ends_and_the_connection_goes_on(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_kit_start_stream(&kit, &client, GET("/stream"));
    http_kit_send(&kit, ACRE_STR("one "));
    http_kit_send(&kit, ACRE_STR(""));
    http_kit_send(&kit, ACRE_STR("two"));
    CHECK_EQ(http_kit_closed(&kit), 0);
    http_kit_end(&kit);
    struct http_answer answer;
    REQUIRE(http_client_read(&client, &answer));
    CHECK_STR(answer.body.data, "one two");
    CHECK_HAS(answer.head, "Transfer-Encoding: chunked");
    http_answer_free(&answer);
    http_client_puts(&client, GET("/echo"));
    CHECK_EQ(http_client_status(&client), 200);
    CHECK_EQ(http_kit_closed(&kit), 1);
    CHECK_U64(http_kit_counts(&kit)->streams, 0);
    http_client_close(&client);
    http_kit_stop(&kit);
}

static void a_stream_to_http_1_0_ends_with_the_connection(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_kit_start_stream(&kit, &client, "GET /stream HTTP/1.0\r\n\r\n");
    http_kit_send(&kit, ACRE_STR("raw"));
    http_kit_end(&kit);
    struct http_answer answer;
    REQUIRE(http_client_read(&client, &answer));
    CHECK_STR(answer.body.data, "raw");
    CHECK(strstr(answer.head, "chunked") == NULL);
    http_answer_free(&answer);
    http_client_close(&client);
    http_kit_stop(&kit);
}

static void closed_is_called_once_when_the_client_goes(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_kit_start_stream(&kit, &client, GET("/stream"));
    http_client_close(&client);
    http_kit_wait_gone(&kit, 0);
    CHECK_EQ(http_kit_closed(&kit), 1);
    http_kit_send(&kit, ACRE_STR("nobody"));
    client = http_client_open(&kit);
    http_client_puts(&client, "HEAD /stream HTTP/1.0\r\n\r\n"); /* ends by itself */
    CHECK(http_client_ends(&client));
    http_client_close(&client);
    http_kit_wait_gone(&kit, 0);
    CHECK_EQ(http_kit_closed(&kit), 2);
    client = http_client_open(&kit);
    http_kit_start_stream(&kit, &client, GET("/stream"));
    http_kit_stop(&kit); /* and when the server goes */
    CHECK_EQ(kit.closed, 3);
    http_client_close(&client);
}

static void a_follower_that_does_not_read_is_cut(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    shrink_receive_buffer(&client);
    http_kit_start_stream(&kit, &client, GET("/stream"));
    static char bytes[64 * 1024];
    memset(bytes, 'x', sizeof(bytes));
    size_t sent = 0;
    while (http_kit_closed(&kit) == 0) { /* 1 MiB of ours, and what the kernel takes */
        http_kit_send(&kit, (struct acre_str){bytes, sizeof(bytes)});
        sent += sizeof(bytes);
        REQUIRE(sent < (size_t)64 * 1024 * 1024);
    }
    CHECK(sent > (size_t)1024 * 1024);
    CHECK_EQ(http_kit_closed(&kit), 1);
    http_client_close(&client);
    http_kit_stop(&kit);
}

/* A stalled stream whose backlog stays below the limit is cut by the clock. (The kernel's buffer of
 * a unix socket is small enough to leave one.) */
static void a_stream_that_is_not_taken_is_cut_in_time(void) {
    char path[64];
    snprintf(path, sizeof(path), "/tmp/acre-test-%d.sock", (int)getpid());
    struct http_kit kit = {.options.answer_timeout_ms = TIMEOUT_MS, .options.unix_path = path};
    http_kit_start(&kit);
    struct http_client client = http_client_open_unix(path);
    http_kit_start_stream(&kit, &client, GET("/stream"));
    static char bytes[900 * 1024];
    http_kit_send(&kit, (struct acre_str){bytes, sizeof(bytes)});
    CHECK_EQ(http_kit_closed(&kit), 0);
    http_kit_wait_gone(&kit, 0);
    CHECK_EQ(http_kit_closed(&kit), 1);
    CHECK_U64(http_kit_counts(&kit)->timed_out, 1);
    http_client_close(&client);
    http_kit_stop(&kit);
}

static void a_stream_for_nobody_is_closed_by_the_loop(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_client_puts(&client, GET("/park"));
    http_kit_wait_parked(&kit);
    struct linger at_once = {.l_onoff = 1};
    setsockopt(client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    http_client_close(&client);
    http_kit_wait_gone(&kit, 0);
    unsigned closed = http_kit_closed(&kit);
    http_kit_stream_parked(&kit);
    CHECK_EQ(http_kit_closed(&kit), closed + 1);
    http_kit_stop(&kit);
}

static void more_connections_than_allowed_are_closed(void) {
    struct http_kit kit = {.options.connections_max = 5}; /* one is kept back for the socket */
    http_kit_start(&kit);
    struct http_client clients[6];
    for (size_t i = 0; i < 4; i++) {
        clients[i] = http_client_open(&kit);
        http_client_puts(&clients[i], GET("/know"));
        CHECK_EQ(http_client_status(&clients[i]), 200);
    }
    clients[4] = http_client_open(&kit);
    CHECK_EQ(http_client_status(&clients[4]), 503);
    CHECK_HAS(clients[4].in.data, "connections: all 4 TCP connections are in use");
    CHECK(http_client_ends(&clients[4]));
    http_client_close(&clients[0]);
    http_kit_wait_gone(&kit, 3);
    clients[5] = http_client_open(&kit);
    http_client_puts(&clients[5], GET("/echo"));
    CHECK_EQ(http_client_status(&clients[5]), 200);
    for (size_t i = 1; i < 6; i++) {
        http_client_close(&clients[i]);
    }
    http_kit_stop(&kit);
}

static void on_drained(void *context) {
    sem_post(context);
}

struct drain {
    struct http_kit *kit;
    uint64_t timeout_ms;
    sem_t done;
};

static void drain(void *context) {
    struct drain *d = context;
    acre_http_drain(d->kit->http, d->timeout_ms, on_drained, &d->done);
}

static void draining_lets_answers_out_and_nobody_in(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client parked = http_client_open(&kit);
    struct http_client idle = http_client_open(&kit);
    struct http_client stream = http_client_open(&kit);
    struct http_client half = http_client_open(&kit);
    http_kit_start_stream(&kit, &stream, GET("/stream"));
    http_client_puts(&idle, GET("/echo"));
    CHECK_EQ(http_client_status(&idle), 200);
    http_client_puts(&half, "GET /echo HT");
    http_client_puts(&parked, GET("/park"));
    http_kit_wait_parked(&kit);
    struct drain d = {.kit = &kit, .timeout_ms = 8000};
    sem_init(&d.done, 0, 0);
    http_kit_do(&kit, drain, &d);
    CHECK(http_client_ends(&idle));
    struct http_answer answer;
    REQUIRE(http_client_read(&stream, &answer)); /* with its last chunk */
    http_answer_free(&answer);
    http_client_close(&stream);
    http_client_puts(&half, "TP/1.1\r\n" HOST "\r\n");
    REQUIRE(http_client_read(&half, &answer));
    CHECK_HAS(answer.head, "\r\nConnection: close\r\n");
    http_answer_free(&answer);
    http_client_close(&half);
    CHECK_EQ(sem_trywait(&d.done), -1);
    http_kit_answer_parked(&kit);
    REQUIRE(http_client_read(&parked, &answer));
    CHECK_HAS(answer.head, "\r\nConnection: close\r\n");
    http_answer_free(&answer);
    http_client_close(&parked);
    REQUIRE_EQ(sem_wait(&d.done), 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = __builtin_bswap16(kit.port)};
    address.sin_addr.s_addr = __builtin_bswap32(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof(address)), -1);
    close(fd);
    http_client_close(&idle);
    http_kit_stop(&kit);
}

static void draining_ends_in_time(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    http_client_puts(&client, GET("/park"));
    http_kit_wait_parked(&kit);
    struct drain d = {.kit = &kit, .timeout_ms = 50};
    sem_init(&d.done, 0, 0);
    http_kit_do(&kit, drain, &d);
    REQUIRE_EQ(sem_wait(&d.done), 0);
    CHECK(http_client_ends(&client));
    http_kit_answer_parked(&kit);
    http_client_close(&client);
    http_kit_stop(&kit);
    struct http_kit empty = {0}; /* and with nobody there, at once */
    http_kit_start(&empty);
    d.kit = &empty;
    d.timeout_ms = 3600 * 1000;
    http_kit_do(&empty, drain, &d);
    REQUIRE_EQ(sem_wait(&d.done), 0);
    http_kit_stop(&empty);
}

static const struct acre_test tests[] = {
    {"a_body_too_large_is_refused_before_it_is_read", a_body_too_large_is_refused_before_it_is_read,
     0},
    {"bodies_arrive_whole_however_they_come", bodies_arrive_whole_however_they_come, 0},
    {"a_client_that_waits_for_100_continue_gets_it", a_client_that_waits_for_100_continue_gets_it,
     0},
    {"headers_are_found_in_any_case_and_answers_cannot_be_split",
     headers_are_found_in_any_case_and_answers_cannot_be_split, 0},
    {"head_has_the_length_but_no_body", head_has_the_length_but_no_body, 0},
    {"an_answer_may_come_late_or_find_nobody", an_answer_may_come_late_or_find_nobody, 0},
    {"a_client_that_sends_no_more_still_gets_its_answer",
     a_client_that_sends_no_more_still_gets_its_answer, 0},
    {"an_exchange_outlives_the_server", an_exchange_outlives_the_server, 0},
    {"a_dripping_request_is_cut", a_dripping_request_is_cut, 0},
    {"silent_connections_are_closed", silent_connections_are_closed, 0},
    {"an_exchange_under_way_has_no_deadline", an_exchange_under_way_has_no_deadline, 0},
    {"an_answer_that_is_not_taken_is_cut", an_answer_that_is_not_taken_is_cut, 0},
    {"an_answer_that_is_taken_steadily_is_not_cut", an_answer_that_is_taken_steadily_is_not_cut, 0},
    {"large_answers_arrive_whole", large_answers_arrive_whole, 0},
    {"a_flood_of_requests_is_answered_in_order", a_flood_of_requests_is_answered_in_order, 0},
    {"a_stream_ends_and_the_connection_goes_on", a_stream_ends_and_the_connection_goes_on, 0},
    {"a_stream_to_http_1_0_ends_with_the_connection", a_stream_to_http_1_0_ends_with_the_connection,
     0},
    {"closed_is_called_once_when_the_client_goes", closed_is_called_once_when_the_client_goes, 0},
    {"a_follower_that_does_not_read_is_cut", a_follower_that_does_not_read_is_cut, 0},
    {"a_stream_that_is_not_taken_is_cut_in_time", a_stream_that_is_not_taken_is_cut_in_time, 0},
    {"a_stream_for_nobody_is_closed_by_the_loop", a_stream_for_nobody_is_closed_by_the_loop, 0},
    {"more_connections_than_allowed_are_closed", more_connections_than_allowed_are_closed, 0},
    {"draining_lets_answers_out_and_nobody_in", draining_lets_answers_out_and_nobody_in, 0},
    {"draining_ends_in_time", draining_ends_in_time, 0},
};

ACRE_TEST_MAIN(tests)
