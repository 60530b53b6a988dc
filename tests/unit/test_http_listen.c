/* Where the server listens, and TLS: sockets that are live, stale or in the way, addresses,
 * certificates (SEC-1). */
#include "support/http_kit.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define HOST      "Host: a\r\n"

static const char *socket_path(char path[64]) {
    snprintf(path, 64, "/tmp/acre-test-%d.sock", (int)getpid());
    return path;
}

static void a_unix_socket_knows_its_peer(void) {
    char path[64], body[256], want[64];
    struct http_kit kit = {.options.unix_path = socket_path(path)};
    http_kit_start(&kit);
    CHECK_EQ(kit.port, 0);
    struct stat status;
    REQUIRE_EQ(stat(path, &status), 0);
    CHECK_EQ(status.st_mode & 0777, 0666);
    struct http_client client = http_client_open_unix(path);
    CHECK_EQ(http_client_ask(&client, GET("/peer"), body, sizeof(body)), 200);
    snprintf(want, sizeof(want), "1 %u unix:%u", getuid(), getuid());
    CHECK_STR(body, want);
    http_client_close(&client);
    http_kit_stop(&kit);
    CHECK_EQ(stat(path, &status), -1); /* it tidied up */
}

/* A socket file without a listener, as a crash leaves it. */
static void leave_stale_socket(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    acre_str_copy(address.sun_path, sizeof(address.sun_path), acre_str_from(path));
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE_EQ(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
}

static void a_live_socket_is_refused_and_a_stale_one_replaced(void) {
    char path[64];
    struct acre_error err = {0};
    struct http_kit kit = {.options.unix_path = socket_path(path)};
    http_kit_start(&kit);
    struct acre_http *second = NULL;
    CHECK_EQ(acre_http_start(&kit.options, &second, &err), ACRE_EEXISTS);
    CHECK_HAS(err.text, path);
    CHECK_HAS(err.text, "another program is listening on it");
    struct http_client client = http_client_open_unix(path); /* the first is unharmed */
    http_client_puts(&client, GET("/echo"));
    CHECK_EQ(http_client_status(&client), 200);
    http_client_close(&client);
    http_kit_stop(&kit);
    leave_stale_socket(path);
    struct http_kit again = {.options.unix_path = path};
    http_kit_start(&again);
    http_kit_stop(&again);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    CHECK_EQ(acre_http_start(&kit.options, &second, &err), ACRE_EEXISTS);
    CHECK_HAS(err.text, "not a socket");
    unlink(path);
}

static void a_socket_that_cannot_be_made_is_an_error(void) {
    static const struct {
        const char *path;
        int expect;
        const char *part;
    } rows[] = {
        {"/nowhere/acre.sock", ACRE_ENOTFOUND, "socket /nowhere/acre.sock: "},
        {"/dev/null/acre.sock", ACRE_ENOTFOUND, "socket /dev/null/acre.sock: "},
        {"/tmp/a-path-of-more-than-a-hundred-and-seven-bytes-which-is-all-that-fits-into-the-"
         "address-of-a-unix-socket-on-linux.sock",
         ACRE_EINVALID,
         "socket "
         "/tmp/"
         "a-path-of-more-than-a-hundred-and-seven-bytes-which-is-all-that-fits-into-the-address-of-"
         "a-unix-socket-on-linux.sock: the path is too long; accepted: at most 107 bytes"},
    };
    struct acre_loop *loop = NULL;
    REQUIRE_EQ(acre_loop_create(&loop, NULL), 0);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_http_options options = {
            .loop = loop, .unix_path = rows[i].path, .handler = http_kit_handle};
        struct acre_http *http = NULL;
        struct acre_error err = {0};
        CHECK_EQ(acre_http_start(&options, &http, &err), rows[i].expect);
        CHECK_HAS(err.text, rows[i].part);
    }
    acre_loop_destroy(loop);
}

/* Another program's socket in our place is not ours to remove. */
static void what_is_not_ours_is_left_at_the_end(void) {
    char path[64];
    struct http_kit kit = {.options.unix_path = socket_path(path)};
    http_kit_start(&kit);
    unlink(path);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    http_kit_stop(&kit);
    CHECK_EQ(unlink(path), 0);
}

static void an_ipv6_peer_has_its_address(void) {
    struct http_kit kit = {.options.address = "[::1]:0"};
    int probe = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    if (probe < 0 || bind(probe, (struct sockaddr *)&address, sizeof(address)) != 0) {
        acre_test_skip("no IPv6 here");
    }
    close(probe);
    http_kit_start(&kit);
    address.sin6_port = htons(kit.port);
    char body[128];
    struct http_client client = {.fd = socket(AF_INET6, SOCK_STREAM, 0)};
    acre_buf_init(&client.in, 1 << 16);
    REQUIRE_EQ(connect(client.fd, (struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_EQ(http_client_ask(&client, GET("/peer"), body, sizeof(body)), 200);
    CHECK_STR(body, "0 4294967295 ::1");
    http_client_close(&client);
    http_kit_stop(&kit);
}

static void addresses_are_checked(void) {
    static const struct {
        const char *address;
        int expect;
    } rows[] = {
        {"127.0.0.1:0", 0},
        {"localhost:0", 0},
        {"[::1]:0", 0},
        {"", ACRE_EINVALID},
        {"127.0.0.1", ACRE_EINVALID},
        {":80", ACRE_EINVALID},
        {"127.0.0.1:", ACRE_EINVALID},
        {"127.0.0.1:65536", ACRE_EINVALID},
        {"127.0.0.1:http", ACRE_EINVALID},
        {"127.0.0.1:-1", ACRE_EINVALID},
        {"::1:80", ACRE_EINVALID},
        {"[::1:80", ACRE_EINVALID},
        {"example.org:80", ACRE_EINVALID},
        {"300.0.0.1:80", ACRE_EINVALID},
        {"192.0.2.1:0", ACRE_EIO}, /* nobody's address (RFC 5737) */
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_error err = {0};
        struct acre_loop *loop = NULL;
        struct acre_http *http = NULL;
        acre_test_context("%s", rows[i].address);
        REQUIRE_EQ(acre_loop_create(&loop, NULL), 0);
        struct http_kit kit = {.options = {.loop = loop, .address = rows[i].address}};
        kit.options.handler = http_kit_handle;
        int r = acre_http_start(&kit.options, &http, &err);
        if (r < 0 && strchr(rows[i].address, '[') != NULL && rows[i].expect == 0) {
            acre_test_skip("no IPv6 here: %s", err.text);
        }
        CHECK_EQ(r, rows[i].expect);
        if (r < 0) {
            CHECK_HAS(err.text, "address");
        } else {
            CHECK(acre_http_port(http) != 0);
        }
        acre_http_stop(http);
        acre_loop_destroy(loop);
    }
}

static void a_port_in_use_is_an_error(void) {
    struct http_kit kit = {0};
    http_kit_start(&kit);
    char address[64];
    snprintf(address, sizeof(address), "127.0.0.1:%u", kit.port);
    struct acre_http_options options = kit.options;
    struct acre_http *http = NULL;
    struct acre_error err = {0};
    options.address = address;
    REQUIRE_EQ(acre_loop_create(&options.loop, NULL), 0);
    CHECK_EQ(acre_http_start(&options, &http, &err), ACRE_EEXISTS);
    CHECK_HAS(err.text, address);
    CHECK_HAS(err.text, "another program is listening on it");
    acre_loop_destroy(options.loop);
    http_kit_stop(&kit);
}

/* A client that sees the socket may connect: it must not appear before the daemon can stay. */
static void a_port_in_use_leaves_the_socket_path_alone(void) {
    char path[64], address[64];
    struct http_kit kit = {0};
    http_kit_start(&kit);
    leave_stale_socket(socket_path(path));
    struct stat before, after;
    REQUIRE_EQ(lstat(path, &before), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%u", kit.port);
    struct acre_http_options options = {
        .address = address, .unix_path = path, .handler = http_kit_handle};
    struct acre_http *http = NULL;
    REQUIRE_EQ(acre_loop_create(&options.loop, NULL), 0);
    CHECK_EQ(acre_http_start(&options, &http, NULL), ACRE_EEXISTS);
    REQUIRE_EQ(lstat(path, &after), 0);
    CHECK_U64(after.st_ino, before.st_ino);
    unlink(path);
    acre_loop_destroy(options.loop);
    http_kit_stop(&kit);
}

static void tls_serves_everything_that_plain_does(void) {
    signal(SIGPIPE, SIG_IGN); /* OpenSSL's client writes with write(2) */
    struct acre_buf certificate, key;
    acre_buf_init(&certificate, 1 << 16);
    acre_buf_init(&key, 1 << 16);
    http_kit_certificate(&certificate, &key);
    struct http_kit kit = {.options.certificate_pem = certificate.data,
                           .options.key_pem = key.data,
                           .options.body_max = 65536};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    REQUIRE(http_client_start_tls(&client));
    http_client_puts(&client, GET("/echo") GET("/later") GET("/later"));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(http_client_status(&client), 200);
    }
    struct http_answer answer;
    http_client_puts(&client, GET("/big"));
    REQUIRE(http_client_read(&client, &answer));
    CHECK_U64(answer.body.length, HTTP_KIT_BIG_BYTES);
    http_answer_free(&answer);
    static char body[50000];
    memset(body, 'b', sizeof(body));
    http_client_puts(&client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 50000\r\n\r\n");
    http_client_write(&client, (struct acre_str){body, sizeof(body)});
    REQUIRE(http_client_read(&client, &answer));
    CHECK_U64(answer.body.length, strlen("POST /echo ") + sizeof(body));
    http_answer_free(&answer);
    http_kit_start_stream(&kit, &client, GET("/stream"));
    http_kit_send(&kit, ACRE_STR("secret"));
    http_kit_end(&kit);
    REQUIRE(http_client_read(&client, &answer));
    CHECK_STR(answer.body.data, "secret");
    http_answer_free(&answer);
    http_client_puts(&client, "GET /a%00 HTTP/1.1\r\n" HOST "\r\n");
    CHECK_EQ(http_client_status(&client), 400);
    CHECK(http_client_ends(&client));
    http_client_close(&client);
    http_kit_wait_gone(&kit, 0);
    http_kit_stop(&kit);
    acre_buf_finish(&certificate);
    acre_buf_finish(&key);
}

static void what_is_not_tls_is_hung_up_on(void) {
    struct acre_buf certificate, key;
    acre_buf_init(&certificate, 1 << 16);
    acre_buf_init(&key, 1 << 16);
    http_kit_certificate(&certificate, &key);
    struct http_kit kit = {.options.certificate_pem = certificate.data,
                           .options.key_pem = key.data,
                           .options.request_timeout_ms = 200};
    http_kit_start(&kit);
    struct http_client plain = http_client_open(&kit);
    http_client_puts(&plain, GET("/echo"));
    CHECK(http_client_ends(&plain));
    CHECK(memmem(plain.in.data, plain.in.length, "HTTP/", 5) == NULL);
    http_client_close(&plain);
    struct http_client slow = http_client_open(&kit); /* a handshake that never goes on */
    http_client_write(&slow, ACRE_STR("\x16\x03\x01\x02\x00\x01"));
    CHECK(http_client_ends(&slow));
    http_client_close(&slow);
    CHECK_U64(http_kit_counts(&kit)->requests, 0);
    http_kit_stop(&kit);
    acre_buf_finish(&certificate);
    acre_buf_finish(&key);
}

static void bad_certificates_are_refused_by_name(void) {
    struct acre_buf certificate, key, other, other_key;
    struct acre_buf *all[] = {&certificate, &key, &other, &other_key};
    for (size_t i = 0; i < ACRE_COUNT(all); i++) {
        acre_buf_init(all[i], 1 << 16);
    }
    http_kit_certificate(&certificate, &key);
    http_kit_certificate(&other, &other_key);
    const struct {
        const char *certificate, *key, *part;
    } rows[] = {
        {certificate.data, NULL, "key: required; TLS needs both a certificate and its key"},
        {NULL, key.data, "certificate: required; TLS needs both a certificate and its key"},
        {"nonsense", key.data, "certificate: "},
        {certificate.data, "nonsense", "key: "},
        {certificate.data, other_key.data, "key: "},
    };
    struct acre_loop *loop = NULL;
    REQUIRE_EQ(acre_loop_create(&loop, NULL), 0);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_error err = {0};
        struct acre_http *http = NULL;
        struct acre_http_options options = {.loop = loop,
                                            .address = "127.0.0.1:0",
                                            .certificate_pem = rows[i].certificate,
                                            .key_pem = rows[i].key,
                                            .handler = http_kit_handle};
        CHECK_EQ(acre_http_start(&options, &http, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, rows[i].part);
    }
    acre_loop_destroy(loop);
    for (size_t i = 0; i < ACRE_COUNT(all); i++) {
        acre_buf_finish(all[i]);
    }
}

static const struct acre_test tests[] = {
    {"a_unix_socket_knows_its_peer", a_unix_socket_knows_its_peer, 0},
    {"a_live_socket_is_refused_and_a_stale_one_replaced",
     a_live_socket_is_refused_and_a_stale_one_replaced, 0},
    {"a_socket_that_cannot_be_made_is_an_error", a_socket_that_cannot_be_made_is_an_error, 0},
    {"what_is_not_ours_is_left_at_the_end", what_is_not_ours_is_left_at_the_end, 0},
    {"an_ipv6_peer_has_its_address", an_ipv6_peer_has_its_address, 0},
    {"addresses_are_checked", addresses_are_checked, 0},
    {"a_port_in_use_is_an_error", a_port_in_use_is_an_error, 0},
    {"a_port_in_use_leaves_the_socket_path_alone", a_port_in_use_leaves_the_socket_path_alone, 0},
    {"tls_serves_everything_that_plain_does", tls_serves_everything_that_plain_does, 0},
    {"what_is_not_tls_is_hung_up_on", what_is_not_tls_is_hung_up_on, 0},
    {"bad_certificates_are_refused_by_name", bad_certificates_are_refused_by_name, 0},
};

ACRE_TEST_MAIN(tests)
