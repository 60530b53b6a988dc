/* http_kit.c - the server's thread runs the loop; the test's thread blocks on sockets. What the
 * test wants from the server is posted to the loop, so the two share no memory unguarded. */
#include "support/http_kit.h"

#include "core/clock.h"
#include "http/problem.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, IN_MAX = 64 * 1024 * 1024 };

/* --- the server --- */

/* "ms=20": it takes so long. */
static void work(struct acre_exchange *exchange) {
    const char *ms = acre_http_query(exchange, "ms");
    uint64_t work_ns = ms != NULL ? strtoull(ms, NULL, 10) * 1000000 : 0;
    for (uint64_t began_ns = acre_monotonic_ns(); acre_monotonic_ns() - began_ns < work_ns;) {
    }
}

static void answer_echo(struct acre_exchange *exchange, const struct acre_http_request *request) {
    struct acre_buf body;
    work(exchange);
    acre_buf_init(&body, IN_MAX);
    acre_buf_printf(&body, "%s %s", request->method, request->path);
    const char *key, *value;
    for (uint32_t i = 0; acre_http_query_at(exchange, i, &key, &value); i++) {
        acre_buf_printf(&body, "%s%s=%s", i == 0 ? "?" : "&", key, value);
    }
    acre_buf_putc(&body, ' ');
    acre_buf_append(&body, request->body.data, request->body.length);
    const char *test = acre_http_header(exchange, "x-test");
    if (test != NULL) {
        acre_http_add_header(exchange, "X-Back", test);
    }
    acre_http_answer(exchange, 200, "text/plain", &body);
}

struct later {
    struct acre_exchange *exchange;
    const struct acre_http_request *request;
};

static void answer_later(void *context) {
    struct later *later = context;
    struct later copy = *later;
    free(later);
    answer_echo(copy.exchange, copy.request);
}

static void on_closed(void *context) {
    struct http_kit *kit = context;
    kit->closed++;
    kit->stream = NULL;
}

/* "/know-admin": with a privilege; "/know?user=ann": of this name. */
static void answer_known(struct acre_exchange *exchange, const struct acre_http_request *request) {
    const char *user = acre_http_query(exchange, "user");
    struct acre_error err = {0};
    int status = acre_http_know(exchange, user != NULL ? user : "somebody",
                                strcmp(request->path, "/know-admin") == 0, &err);
    if (status == 0) {
        answer_echo(exchange, request);
    } else if (status != ACRE_HTTP_LATER) {
        acre_http_hang_up(exchange);
        acre_problem_answer_as(exchange, status, &err);
    }
}

void http_kit_handle(void *context, struct acre_exchange *exchange,
                     const struct acre_http_request *request) {
    struct http_kit *kit = context;
    if (strcmp(request->path, "/later") == 0) {
        struct later *later = acre_calloc(1, sizeof(*later));
        *later = (struct later){exchange, request};
        acre_loop_post(kit->loop, answer_later, later);
    } else if (strcmp(request->path, "/park") == 0) { /* one at a time */
        kit->parked = exchange;
    } else if (strcmp(request->path, "/stream") == 0) {
        kit->stream = exchange;
        acre_http_stream(exchange, 200, "text/event-stream", on_closed, kit);
    } else if (strcmp(request->path, "/peer") == 0) {
        struct acre_buf body;
        acre_buf_init(&body, 256);
        acre_buf_printf(&body, "%d %u %s", request->peer->is_unix, request->peer->uid,
                        request->peer->address);
        acre_http_answer(exchange, 200, "text/plain", &body);
    } else if (strncmp(request->path, "/know", 5) == 0) {
        answer_known(exchange, request);
    } else if (strcmp(request->path, "/big") == 0) {
        struct acre_buf body = {.data = acre_calloc(1, HTTP_KIT_BIG_BYTES + 1),
                                .length = HTTP_KIT_BIG_BYTES,
                                .capacity = HTTP_KIT_BIG_BYTES + 1,
                                .max = HTTP_KIT_BIG_BYTES};
        memset(body.data, 'x', HTTP_KIT_BIG_BYTES);
        acre_http_answer(exchange, 200, "text/plain", &body);
        CHECK(body.data == NULL);
    } else {
        answer_echo(exchange, request);
    }
}

static void do_nothing(void *context) {
    (void)context;
}

static void *run(void *context) {
    struct http_kit *kit = context;
    acre_loop_run(kit->loop);
    return NULL;
}

void http_kit_start(struct http_kit *kit) {
    struct acre_error err = {0};
    REQUIRE_EQ(acre_loop_create(&kit->loop, &err), 0);
    kit->options.loop = kit->loop;
    if (kit->options.address == NULL && kit->options.unix_path == NULL) {
        kit->options.address = "127.0.0.1:0";
    }
    if (kit->options.handler == NULL) {
        kit->options.handler = http_kit_handle;
        kit->options.context = kit;
    }
    int r = acre_http_start(&kit->options, &kit->http, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    kit->port = acre_http_port(kit->http);
    sem_init(&kit->done, 0, 0);
    /* The loop lives on posts after the server has gone. */
    kit->alive = acre_loop_timer(kit->loop, 3600 * 1000, 3600 * 1000, do_nothing, NULL);
    REQUIRE_EQ(pthread_create(&kit->thread, NULL, run, kit), 0);
}

struct job {
    struct http_kit *kit;
    acre_loop_function *function;
    void *context;
};

static void do_job(void *context) {
    struct job *job = context;
    job->function(job->context);
    sem_post(&job->kit->done);
}

void http_kit_do(struct http_kit *kit, acre_loop_function *function, void *context) {
    struct job job = {kit, function, context};
    acre_loop_post(kit->loop, do_job, &job);
    while (sem_wait(&kit->done) != 0 && errno == EINTR) {
    }
}

static void stop(void *context) {
    struct http_kit *kit = context;
    acre_http_stop(kit->http);
    kit->http = NULL;
    acre_loop_stop(kit->loop);
}

void http_kit_stop(struct http_kit *kit) {
    http_kit_do(kit, stop, kit);
    pthread_join(kit->thread, NULL);
    acre_loop_destroy(kit->loop);
    sem_destroy(&kit->done);
}

static void answer_parked(void *context) {
    struct http_kit *kit = context;
    REQUIRE(kit->parked != NULL);
    struct acre_buf body;
    acre_buf_init(&body, 64);
    acre_buf_puts(&body, "at last");
    acre_http_answer(kit->parked, 200, "text/plain", &body);
    kit->parked = NULL;
}

void http_kit_answer_parked(struct http_kit *kit) {
    http_kit_do(kit, answer_parked, kit);
}

static void stream_parked(void *context) {
    struct http_kit *kit = context;
    kit->stream = kit->parked;
    kit->parked = NULL;
    acre_http_stream(kit->stream, 200, "text/plain", on_closed, kit);
    acre_http_send(kit->stream, ACRE_STR("x"));
}

void http_kit_stream_parked(struct http_kit *kit) {
    http_kit_do(kit, stream_parked, kit);
}

struct sending {
    struct http_kit *kit;
    struct acre_str bytes;
};

static void send_bytes(void *context) {
    struct sending *sending = context;
    if (sending->kit->stream != NULL) {
        acre_http_send(sending->kit->stream, sending->bytes);
    }
}

void http_kit_send(struct http_kit *kit, struct acre_str bytes) {
    struct sending sending = {kit, bytes};
    http_kit_do(kit, send_bytes, &sending);
}

static void end_stream(void *context) {
    struct http_kit *kit = context;
    if (kit->stream != NULL) {
        acre_http_end(kit->stream);
        kit->stream = NULL;
    }
}

void http_kit_end(struct http_kit *kit) {
    http_kit_do(kit, end_stream, kit);
}

static void get_counts(void *context) {
    struct http_kit *kit = context;
    acre_http_counts(kit->http, &kit->counts);
}

const struct acre_http_counts *http_kit_counts(struct http_kit *kit) {
    http_kit_do(kit, get_counts, kit);
    return &kit->counts;
}

static void look(void *context) {
    struct http_kit *kit = context;
    kit->seen_parked = kit->parked != NULL;
    kit->seen_closed = kit->closed;
}

bool http_kit_is_parked(struct http_kit *kit) {
    http_kit_do(kit, look, kit);
    return kit->seen_parked;
}

unsigned http_kit_closed(struct http_kit *kit) {
    http_kit_do(kit, look, kit);
    return kit->seen_closed;
}

void http_kit_wait_gone(struct http_kit *kit, uint32_t connections) {
    for (int i = 0; http_kit_counts(kit)->connections > connections; i++) {
        REQUIRE(i < PATIENCE_MS);
        poll(NULL, 0, 1);
    }
}

void http_kit_wait_parked(struct http_kit *kit) {
    for (int i = 0; !http_kit_is_parked(kit); i++) {
        REQUIRE(i < PATIENCE_MS);
        poll(NULL, 0, 1);
    }
}

/* --- the clients --- */

static struct http_client connect_to(int family, const void *address, socklen_t size) {
    struct http_client client = {.fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    REQUIRE(client.fd >= 0);
    REQUIRE_EQ(connect(client.fd, address, size), 0);
    acre_buf_init(&client.in, IN_MAX);
    return client;
}

struct http_client http_client_open(const struct http_kit *kit) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(kit->port)};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    return connect_to(AF_INET, &address, sizeof(address));
}

struct http_client http_client_open_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    REQUIRE(acre_str_copy(address.sun_path, sizeof(address.sun_path), acre_str_from(path)));
    return connect_to(AF_UNIX, &address, sizeof(address));
}

void http_client_close(struct http_client *client) {
    SSL_free(client->tls);
    close(client->fd);
    acre_buf_finish(&client->in);
}

void http_client_write(struct http_client *client, struct acre_str bytes) {
    while (bytes.length > 0) {
        ssize_t sent = client->tls != NULL
                           ? SSL_write(client->tls, bytes.data, (int)bytes.length)
                           : send(client->fd, bytes.data, bytes.length, MSG_NOSIGNAL);
        if (sent <= 0) {
            return; /* the server has hung up: the reader will see why */
        }
        bytes.data += sent;
        bytes.length -= (size_t)sent;
    }
}

void http_client_puts(struct http_client *client, const char *text) {
    http_client_write(client, acre_str_from(text));
}

bool http_client_more(struct http_client *client) {
    char bytes[65536];
    struct pollfd poller = {.fd = client->fd, .events = POLLIN};
    if (client->tls == NULL || SSL_pending(client->tls) == 0) {
        int ready = poll(&poller, 1, PATIENCE_MS);
        REQUIRE(ready == 1); /* neither bytes nor an end */
    }
    ssize_t got = client->tls != NULL ? SSL_read(client->tls, bytes, sizeof(bytes))
                                      : recv(client->fd, bytes, sizeof(bytes), 0);
    if (got <= 0) {
        return false;
    }
    acre_buf_append(&client->in, bytes, (size_t)got);
    return true;
}

static const char *unread(const struct http_client *client) {
    return client->in.data + client->used;
}

static size_t unread_bytes(const struct http_client *client) {
    return client->in.length - client->used;
}

/* Wait until `length` bytes are here. */
static bool need(struct http_client *client, size_t length) {
    while (unread_bytes(client) < length) {
        if (!http_client_more(client)) {
            return false;
        }
    }
    return true;
}

/* The length up to and with the text; 0: ended before. */
static size_t need_text(struct http_client *client, const char *text) {
    size_t length = strlen(text);
    for (;;) {
        char *found = memmem(unread(client), unread_bytes(client), text, length);
        if (found != NULL) {
            return (size_t)(found - unread(client)) + length;
        }
        if (!http_client_more(client)) {
            return 0;
        }
    }
}

static bool read_chunks(struct http_client *client, struct acre_buf *body) {
    for (;;) {
        size_t line = need_text(client, "\r\n");
        if (line == 0) {
            return false;
        }
        size_t size = strtoul(unread(client), NULL, 16);
        client->used += line;
        if (!need(client, size + 2)) {
            return false;
        }
        acre_buf_append(body, unread(client), size);
        REQUIRE(memcmp(unread(client) + size, "\r\n", 2) == 0);
        client->used += size + 2;
        if (size == 0) {
            return true;
        }
    }
}

static bool read_body(struct http_client *client, struct http_answer *answer) {
    const char *length = strcasestr(answer->head, "\r\ncontent-length: ");
    if (strcasestr(answer->head, "\r\ntransfer-encoding: chunked") != NULL) {
        return read_chunks(client, &answer->body);
    }
    if (length == NULL && answer->status != 204) {
        while (http_client_more(client)) { /* until the end of the connection */
        }
        acre_buf_append(&answer->body, unread(client), unread_bytes(client));
        client->used = client->in.length;
        return true;
    }
    size_t size = length != NULL ? strtoul(length + strlen("\r\ncontent-length: "), NULL, 10) : 0;
    if (!need(client, size)) {
        return false;
    }
    acre_buf_append(&answer->body, unread(client), size);
    client->used += size;
    return true;
}

bool http_client_read(struct http_client *client, struct http_answer *ret_answer) {
    *ret_answer = (struct http_answer){0};
    acre_buf_init(&ret_answer->body, IN_MAX);
    size_t head = need_text(client, "\r\n\r\n");
    if (head == 0) {
        http_answer_free(ret_answer);
        return false;
    }
    struct acre_str view = {unread(client), head};
    REQUIRE(acre_str_copy(ret_answer->head, sizeof(ret_answer->head), view));
    REQUIRE(strncmp(ret_answer->head, "HTTP/1.1 ", 9) == 0);
    ret_answer->status = (int)strtol(ret_answer->head + 9, NULL, 10);
    client->used += head;
    bool has_body = ret_answer->status >= 200;
    if (has_body && !read_body(client, ret_answer)) {
        http_answer_free(ret_answer);
        return false;
    }
    return true;
}

void http_answer_free(struct http_answer *answer) {
    acre_buf_finish(&answer->body);
}

int http_client_status(struct http_client *client) {
    struct http_answer answer;
    if (!http_client_read(client, &answer)) {
        return 0;
    }
    int status = answer.status;
    http_answer_free(&answer);
    return status;
}

int http_client_ask(struct http_client *client, const char *request, char *body, size_t size) {
    struct http_answer answer;
    body[0] = '\0';
    http_client_puts(client, request);
    if (!http_client_read(client, &answer)) {
        return 0;
    }
    acre_str_copy(body, size, (struct acre_str){answer.body.data, answer.body.length});
    http_answer_free(&answer);
    return answer.status;
}

bool http_client_ends(struct http_client *client) {
    while (http_client_more(client)) {
    }
    return true;
}

void http_kit_start_stream(struct http_kit *kit, struct http_client *client, const char *request) {
    http_client_puts(client, request);
    for (int i = 0; http_kit_counts(kit)->streams == 0; i++) {
        REQUIRE(i < PATIENCE_MS);
        poll(NULL, 0, 1);
    }
}

/* --- TLS --- */

static void write_pem(BIO *bio, struct acre_buf *to) {
    char *text = NULL;
    long length = BIO_get_mem_data(bio, &text);
    acre_buf_append(to, text, (size_t)length);
    BIO_free(bio);
}

void http_kit_certificate(struct acre_buf *certificate, struct acre_buf *key) {
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    X509 *x509 = X509_new();
    REQUIRE(pair != NULL && x509 != NULL);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -60);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, pair);
    X509_NAME *name = X509_get_subject_name(x509);
    const unsigned char host[] = "localhost";
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, host, -1, -1, 0);
    X509_set_issuer_name(x509, name);
    REQUIRE(X509_sign(x509, pair, EVP_sha256()) > 0);
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, x509);
    write_pem(bio, certificate);
    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, pair, NULL, NULL, 0, NULL, NULL);
    write_pem(bio, key);
    X509_free(x509);
    EVP_PKEY_free(pair);
}

bool http_client_start_tls(struct http_client *client) {
    SSL_CTX *setup = SSL_CTX_new(TLS_client_method());
    client->tls = SSL_new(setup);
    SSL_CTX_free(setup);
    SSL_set_fd(client->tls, client->fd);
    return SSL_connect(client->tls) == 1;
}
