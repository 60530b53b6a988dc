/* Who gets a connection when there are many who want one (SEC-1): one origin cannot take the places
 * of the others, strangers make room, and whoever runs the daemon always gets in. */
#include "support/http_kit.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

enum { MANY = 16 };

struct place {
    struct http_kit kit;
    char path[64];
    uint32_t most;
};

static uint32_t peer_max(void *context) {
    const struct http_kit *kit = context;
    return ((const struct place *)(const void *)kit)->most;
}

static void start(struct place *place, uint32_t connections, uint32_t most) {
    snprintf(place->path, sizeof(place->path), "/tmp/acre-test-%d.sock", (int)getpid());
    place->most = most;
    place->kit.options.address = "127.0.0.1:0";
    place->kit.options.unix_path = place->path;
    place->kit.options.connections_max = connections;
    place->kit.options.peer_max = most > 0 ? peer_max : NULL;
    http_kit_start(&place->kit);
}

/* A client with an address of its own: 127.0.0.<last>. */
static struct http_client open_from(const struct place *place, unsigned last) {
    struct http_client client = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(place->kit.port)};
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + last - 1);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(client.fd >= 0);
    REQUIRE_EQ(bind(client.fd, (struct sockaddr *)&from, sizeof(from)), 0);
    REQUIRE_EQ(connect(client.fd, (struct sockaddr *)&to, sizeof(to)), 0);
    acre_buf_init(&client.in, 1 << 20);
    return client;
}

static int ask(struct http_client *client, const char *request) {
    http_client_puts(client, request);
    return http_client_status(client);
}

static void close_all(struct http_client *clients, size_t count) {
    for (size_t i = 0; i < count; i++) {
        http_client_close(&clients[i]);
    }
}

static void a_user_has_so_many_and_others_have_their_own(void) {
    struct place place = {0};
    struct http_client clients[5];
    start(&place, 100, 3);
    for (unsigned i = 0; i < 3; i++) {
        clients[i] = open_from(&place, i + 1);
        CHECK_EQ(ask(&clients[i], GET("/know?user=ann")), 200);
    }
    struct http_client refused = open_from(&place, 4);
    CHECK_EQ(ask(&refused, GET("/know?user=ann")), 429);
    CHECK_HAS(refused.in.data,
              "connections: user ann has 3 open, of at most 3 (max_connections in the policy); "
              "close some, or ask an administrator to raise the limit");
    CHECK(http_client_ends(&refused));
    http_client_close(&refused);
    clients[3] = open_from(&place, 1);
    CHECK_EQ(ask(&clients[3], GET("/know?user=bob")), 200);
    CHECK_EQ(ask(&clients[0], GET("/know?user=ann")), 200); /* it is one of the three */
    place.most = 4; /* the limit may change at any time (nobody is connecting now) */
    clients[4] = open_from(&place, 1);
    CHECK_EQ(ask(&clients[4], GET("/know?user=ann")), 200);
    close_all(clients, 5);
    http_kit_wait_gone(&place.kit, 0);
    place.most = 1;
    clients[0] = open_from(&place, 1); /* what has gone does not count */
    CHECK_EQ(ask(&clients[0], GET("/know?user=ann")), 200);
    http_client_close(&clients[0]);
    http_kit_stop(&place.kit);
}

/* As a proxy does it, which sends the requests of many users over one connection. */
static void a_connection_counts_for_its_last_user(void) {
    struct place place = {0};
    struct http_client clients[2];
    start(&place, 100, 1);
    clients[0] = open_from(&place, 1);
    CHECK_EQ(ask(&clients[0], GET("/know-admin")), 200);
    CHECK_EQ(ask(&clients[0], GET("/know?user=ann")), 200);
    CHECK_EQ(ask(&clients[0], GET("/know?user=bob")), 200);
    clients[1] = open_from(&place, 1);
    CHECK_EQ(ask(&clients[1], GET("/know?user=ann")), 200);
    CHECK_EQ(ask(&clients[0], GET("/know?user=ann")), 429);
    CHECK(http_client_ends(&clients[0]));
    close_all(clients, 2);
    http_kit_stop(&place.kit);
}

static bool has_answer(const struct http_client *client) {
    struct pollfd one = {.fd = client->fd, .events = POLLIN};
    return poll(&one, 1, 0) > 0;
}

/* However many connections it has, and be they new; who leaves meanwhile is forgotten. */
static void a_user_with_costly_requests_holds_up_nobody(void) {
    struct place place = {0};
    struct http_client clients[2 * MANY];
    start(&place, 100, 100);
    struct http_client other = open_from(&place, 2);
    CHECK_EQ(ask(&other, GET("/know?user=bob")), 200);
    for (size_t i = 0; i < 2 * MANY; i++) {
        clients[i] = open_from(&place, 1);
    }
    for (size_t i = 0; i < 2 * MANY; i++) {
        http_client_puts(&clients[i], GET("/know?user=ann&ms=50"));
    }
    CHECK_EQ(http_client_status(&clients[0]), 200); /* they are being handled */
    for (size_t i = 0; i < 5; i++) {
        CHECK_EQ(ask(&other, GET("/know?user=bob")), 200);
    }
    size_t answered = 1;
    for (size_t i = 1; i < 2 * MANY; i++) {
        answered += has_answer(&clients[i]);
    }
    CHECK(answered < (size_t)(2 * MANY)); /* bob did not wait for all of them */
    close_all(clients + MANY, MANY);
    for (size_t i = 1; i < MANY; i++) {
        CHECK_EQ(http_client_status(&clients[i]), 200);
    }
    close_all(clients, MANY);
    http_kit_wait_gone(&place.kit, 1);
    http_client_close(&other);
    http_kit_stop(&place.kit);
}

/* It is there; that the server has not read it yet is the server's doing. */
static void a_request_that_waits_for_its_turn_has_no_deadline(void) {
    struct place place = {0};
    struct http_client clients[2 * MANY];
    place.kit.options.stranger_timeout_ms = 1000;
    start(&place, 100, 100);
    for (size_t i = 0; i < 2 * MANY; i++) {
        clients[i] = open_from(&place, 1);
        http_client_puts(&clients[i], GET("/echo?ms=100"));
    }
    for (size_t i = 0; i < 2 * MANY; i++) {
        acre_test_context("client %d", (int)i);
        CHECK_EQ(http_client_status(&clients[i]), 200);
    }
    close_all(clients, 2 * MANY);
    http_kit_stop(&place.kit);
}

/* Any process can have any of them, so they are one. */
static void loopback_is_one_address(void) {
    struct place place = {0};
    struct http_client clients[3];
    start(&place, 100, 2);
    for (unsigned i = 0; i < 3; i++) {
        clients[i] = open_from(&place, i + 1);
        CHECK_EQ(ask(&clients[i], GET("/echo")), 200);
    }
    CHECK_EQ(http_client_status(&clients[0]), 429);
    CHECK_EQ(ask(&clients[1], GET("/echo")), 200);
    close_all(clients, 3);
    http_kit_stop(&place.kit);
}

static void a_privilege_takes_a_connection_out_of_the_count(void) {
    struct place place = {0};
    struct http_client clients[MANY];
    start(&place, 100, 1);
    for (size_t i = 0; i < MANY; i++) {
        clients[i] = open_from(&place, 1);
        CHECK_EQ(ask(&clients[i], GET("/know-admin")), 200);
        CHECK_EQ(ask(&clients[i], GET("/know-admin")), 200); /* once is enough */
    }
    close_all(clients, MANY);
    http_kit_stop(&place.kit);
}

/* Whoever started it, and root: past the limit of one user, and when all others are taken. */
static void the_daemons_own_user_always_gets_in(void) {
    struct place place = {0};
    struct http_client clients[MANY];
    start(&place, MANY, 2);
    for (unsigned i = 0; i < 12; i++) {
        char request[64];
        snprintf(request, sizeof(request), GET("/know?user=%u"), i);
        clients[i] = open_from(&place, 1);
        CHECK_EQ(ask(&clients[i], request), 200);
    }
    struct http_client refused = open_from(&place, 1);
    CHECK_EQ(http_client_status(&refused), 503);
    CHECK_HAS(refused.in.data, "connections: all 12 TCP connections are in use");
    http_client_close(&refused);
    for (size_t i = 12; i < MANY; i++) {
        clients[i] = http_client_open_unix(place.path);
        CHECK_EQ(ask(&clients[i], GET("/echo")), 200);
    }
    close_all(clients, MANY);
    http_kit_stop(&place.kit);
}

static void the_oldest_stranger_makes_room(void) {
    struct place place = {0};
    struct http_client clients[13];
    start(&place, MANY, 0);
    for (unsigned i = 0; i < 12; i++) {
        clients[i] = open_from(&place, i + 1);
        CHECK_EQ(ask(&clients[i], i == 0 ? GET("/know") : GET("/echo")), 200);
    }
    clients[12] = open_from(&place, 20);
    CHECK_EQ(ask(&clients[12], GET("/know")), 200);
    CHECK(http_client_ends(&clients[1]));
    CHECK_EQ(ask(&clients[0], GET("/echo")), 200); /* older, but known */
    CHECK_EQ(ask(&clients[2], GET("/echo")), 200);
    CHECK_U64(http_kit_counts(&place.kit)->connections, 12);
    close_all(clients, 13);
    http_kit_stop(&place.kit);
}

/* Even when its address has all it may have: the next client may be one with a token. */
static void the_oldest_stranger_of_an_address_makes_room(void) {
    struct place place = {0};
    struct http_client clients[4];
    start(&place, 100, 3);
    for (size_t i = 0; i < 3; i++) {
        clients[i] = open_from(&place, 1);
        CHECK_EQ(ask(&clients[i], GET("/echo")), 200);
    }
    clients[3] = open_from(&place, 1);
    CHECK_EQ(ask(&clients[3], GET("/know")), 200);
    CHECK_EQ(http_client_status(&clients[0]), 429);
    CHECK_HAS(clients[0].in.data,
              "connections: 127.0.0.1 has 3 open, of at most 3 (max_connections in the policy); "
              "send a token, close some, or ask an administrator to raise the limit");
    CHECK(http_client_ends(&clients[0]));
    CHECK_EQ(ask(&clients[1], GET("/echo")), 200);
    CHECK_EQ(ask(&clients[2], GET("/echo")), 200);
    CHECK_U64(http_kit_counts(&place.kit)->connections, 3);
    close_all(clients, 4);
    http_kit_stop(&place.kit);
}

/* A flood of newcomers costs the strangers their places, and nobody else anything. */
static void strangers_push_out_each_other(void) {
    struct place place = {0};
    struct http_client known[8];
    start(&place, MANY, 0);
    for (size_t i = 0; i < 8; i++) {
        known[i] = open_from(&place, 1);
        CHECK_EQ(ask(&known[i], GET("/know")), 200);
    }
    struct http_client strangers[300];
    for (size_t i = 0; i < ACRE_COUNT(strangers); i++) {
        strangers[i] = open_from(&place, 2);
        http_client_puts(&strangers[i], "GET /ec"); /* half a request does not help */
    }
    for (size_t i = 0; i < 8; i++) {
        CHECK_EQ(ask(&known[i], GET("/echo")), 200);
    }
    CHECK(http_kit_counts(&place.kit)->connections <= 12);
    close_all(strangers, ACRE_COUNT(strangers));
    close_all(known, 8);
    http_kit_stop(&place.kit);
}

static void strangers_have_less_time(void) {
    struct place place = {.kit.options.stranger_timeout_ms = 1000};
    start(&place, MANY, 0);
    struct http_client known = open_from(&place, 1);
    CHECK_EQ(ask(&known, GET("/know")), 200);
    struct http_client silent = open_from(&place, 1);
    struct http_client idle = open_from(&place, 1);
    struct http_client half = open_from(&place, 1);
    http_client_puts(&half, "GET /ec");
    struct http_client local = http_client_open_unix(place.path);
    CHECK_EQ(ask(&idle, GET("/echo")), 200);
    CHECK(http_client_ends(&silent));
    CHECK(http_client_ends(&idle));
    CHECK_EQ(http_client_status(&half), 408);
    CHECK_HAS(half.in.data, "within 1 s");
    CHECK_EQ(ask(&known, GET("/echo")), 200);
    CHECK_EQ(ask(&local, GET("/echo")), 200);
    http_client_close(&silent);
    http_client_close(&idle);
    http_client_close(&half);
    http_client_close(&known);
    http_client_close(&local);
    http_kit_stop(&place.kit);
}

/* No new descriptor from now on, in this process of client and server. */
static void use_up_descriptors(int spare) {
    int last = dup(0);
    REQUIRE(last >= 0);
    struct rlimit limit = {.rlim_cur = (rlim_t)(last + spare), .rlim_max = 4096};
    close(last);
    REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* What is kept back is for those who run the daemon; the others are told, and nobody is cut. */
static void without_descriptors_the_daemons_own_user_gets_in(void) {
    struct place place = {0};
    start(&place, MANY, 0);
    struct http_client known = open_from(&place, 1);
    CHECK_EQ(ask(&known, GET("/know")), 200);
    use_up_descriptors(1); /* the client's own end of the next connection */
    struct http_client refused = open_from(&place, 1);
    CHECK_EQ(http_client_status(&refused), 503);
    CHECK_HAS(refused.in.data, "out of file descriptors");
    http_client_close(&refused);
    struct http_client own = http_client_open_unix(place.path);
    CHECK_EQ(ask(&own, GET("/echo")), 200);
    CHECK_EQ(ask(&known, GET("/echo")), 200);
    http_client_close(&own);
    http_client_close(&known);
    http_kit_stop(&place.kit);
}

static uint64_t cpu_ms(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Not even the kept ones are left: clients wait in the kernel, the loop sleeps, and once there are
 * descriptors again they are served. */
static void without_any_descriptor_the_server_sleeps_and_comes_back(void) {
    struct place place = {0};
    enum { CLIENTS = 12 };
    struct http_client clients[CLIENTS];
    clockid_t clock;
    start(&place, 100, 0);
    REQUIRE_EQ(pthread_getcpuclockid(place.kit.thread, &clock), 0);
    for (size_t i = 0; i < CLIENTS;
         i++) { /* made before, connected after the descriptors are gone */
        clients[i] = (struct http_client){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
        acre_buf_init(&clients[i].in, 1 << 16);
    }
    use_up_descriptors(0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", place.path);
    for (size_t i = 0; i < CLIENTS; i++) {
        REQUIRE_EQ(connect(clients[i].fd, (struct sockaddr *)&address, sizeof(address)), 0);
        http_client_puts(&clients[i], GET("/echo"));
    }
    CHECK_EQ(http_client_status(&clients[0]), 200); /* on what was kept back */
    uint64_t before_ms = cpu_ms(clock);
    struct pollfd last = {.fd = clients[CLIENTS - 1].fd, .events = POLLIN};
    CHECK_EQ(poll(&last, 1, 400), 0);
    CHECK(cpu_ms(clock) - before_ms < 200);
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
    REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (size_t i = 1; i < CLIENTS; i++) {
        CHECK_EQ(http_client_status(&clients[i]), 200);
    }
    close_all(clients, CLIENTS);
    http_kit_stop(&place.kit);
}

static const struct acre_test tests[] = {
    {"a_user_has_so_many_and_others_have_their_own", a_user_has_so_many_and_others_have_their_own,
     0},
    {"a_connection_counts_for_its_last_user", a_connection_counts_for_its_last_user, 0},
    {"a_user_with_costly_requests_holds_up_nobody", a_user_with_costly_requests_holds_up_nobody, 0},
    {"a_request_that_waits_for_its_turn_has_no_deadline",
     a_request_that_waits_for_its_turn_has_no_deadline, 0},
    {"loopback_is_one_address", loopback_is_one_address, 0},
    {"a_privilege_takes_a_connection_out_of_the_count",
     a_privilege_takes_a_connection_out_of_the_count, 0},
    {"the_daemons_own_user_always_gets_in", the_daemons_own_user_always_gets_in, 0},
    {"the_oldest_stranger_makes_room", the_oldest_stranger_makes_room, 0},
    {"the_oldest_stranger_of_an_address_makes_room", the_oldest_stranger_of_an_address_makes_room,
     0},
    {"strangers_push_out_each_other", strangers_push_out_each_other, 0},
    {"strangers_have_less_time", strangers_have_less_time, 0},
    {"without_descriptors_the_daemons_own_user_gets_in",
     without_descriptors_the_daemons_own_user_gets_in, 0},
    {"without_any_descriptor_the_server_sleeps_and_comes_back",
     without_any_descriptor_the_server_sleeps_and_comes_back, 0},
};

ACRE_TEST_MAIN(tests)
