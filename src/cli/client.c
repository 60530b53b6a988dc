/* client.c - HTTP over libcurl, which is loaded with the first request.
 *
 * Debian's libcurl pulls in LDAP, Kerberos, SSH and thirty more libraries: loading it takes about
 * 5 ms, three times what the program itself needs to start. If it were linked, every `acre shim`
 * would pay for that; loaded here, only commands that talk to a server do. Calls share one handle,
 * and so one connection; streams live in a multi handle, so that both logs of a job, its events and
 * signals (signalfd) can be waited for on one thread. */
#include "cli/client.h"

#include "core/clock.h"
#include "core/dl.h"
#include "core/str.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ANSWER_MAX_BYTES = 256 << 20, /* 100,000 jobs as JSON are about 100 MB */
    PROBLEM_MAX_BYTES = 64 << 10,
    CONNECT_TIMEOUT_MS = 5000,
    CALL_TIMEOUT_MS = 120000,
    PATIENCE_MS = 1000, /* a call that takes longer says so on a terminal */
};

/* clang-format off */
#define CURL_FUNCTIONS(X)                     \
    X(global_init,   curl_global_init)        \
    X(easy_init,     curl_easy_init)          \
    X(easy_cleanup,  curl_easy_cleanup)       \
    X(easy_reset,    curl_easy_reset)         \
    X(easy_setopt,   curl_easy_setopt)        \
    X(easy_perform,  curl_easy_perform)       \
    X(easy_getinfo,  curl_easy_getinfo)       \
    X(easy_strerror, curl_easy_strerror)      \
    X(slist_append,  curl_slist_append)       \
    X(slist_free,    curl_slist_free_all)     \
    X(multi_init,    curl_multi_init)         \
    X(multi_cleanup, curl_multi_cleanup)      \
    X(multi_add,     curl_multi_add_handle)   \
    X(multi_remove,  curl_multi_remove_handle)\
    X(multi_perform, curl_multi_perform)      \
    X(multi_poll,    curl_multi_poll)         \
    X(multi_read,    curl_multi_info_read)
/* clang-format on */

struct curl_functions {
#define X(field, symbol) __typeof__(symbol) *field;
    CURL_FUNCTIONS(X)
#undef X
};

/* One exchange under way: a call, or a stream. */
struct client_transfer {
    CURL *easy;
    struct curl_slist *headers;
    struct acre_buf answer; /* all of a call; of a stream only what is no success */
    char error[CURL_ERROR_SIZE];
};

struct feed {
    struct curl_client *client;
    struct feed *next;
    struct client_transfer transfer;
    feed_bytes *bytes;
    void *context;
    bool ended;
    CURLcode ending;
};

struct curl_client {
    struct curl_functions curl;
    struct server_address server;
    char *authorities;
    CURL *easy; /* for calls, one after the other */
    CURLM *multi;
    struct feed *streams;
    struct acre_clock clock;
    uint64_t began_ns; /* of the call under way */
    bool told_to_wait;
};

static int open_curl(struct curl_functions *ret_curl, struct acre_error *err) {
    static const char *const sonames[] = {"libcurl.so.4", "libcurl-gnutls.so.4", NULL};
    static const struct acre_dl_symbol symbols[] = {
#define X(field, symbol) {#symbol, offsetof(struct curl_functions, field), true},
        CURL_FUNCTIONS(X)
#undef X
    };
    int r = acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), ret_curl, NULL, err);
    if (r < 0) {
        return acre_fail_in(err, r, "libcurl (install libcurl4)");
    }
    if (ret_curl->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return acre_fail(err, ACRE_EUNAVAILABLE, "libcurl failed to initialize");
    }
    return 0;
}

int client_create(const struct server_address *server, const char *authorities,
                  struct curl_client **ret_client, struct acre_error *err) {
    struct curl_client *client = acre_calloc(1, sizeof(*client));
    int r = open_curl(&client->curl, err);
    if (r < 0) {
        free(client);
        return r;
    }
    client->server = *server;
    client->authorities = authorities != NULL ? acre_strdup(authorities) : NULL;
    client->clock = acre_clock_real();
    client->easy = client->curl.easy_init();
    client->multi = client->curl.multi_init();
    ACRE_ASSERT(client->easy != NULL && client->multi != NULL);
    *ret_client = client;
    return 0;
}

void client_destroy(struct curl_client *client) {
    if (client == NULL) {
        return;
    }
    while (client->streams != NULL) {
        feed_close(client->streams);
    }
    client->curl.easy_cleanup(client->easy);
    client->curl.multi_cleanup(client->multi);
    free(client->authorities);
    free(client);
}

void client_escape(struct acre_buf *out, const char *text) {
    for (const char *p = text; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     strchr("-_.~", c) != NULL;
        acre_buf_printf(out, plain ? "%c" : "%%%02X", c);
    }
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *context) {
    struct client_transfer *transfer = context;
    return acre_buf_append(&transfer->answer, bytes, size * count) == 0 ? size * count : 0;
}

/* What every exchange has in common. Nothing of the environment is used: a proxy has no business
 * between us and our daemon. Redirects are not followed, so that a token reaches nobody but the
 * server it is for, and certificates are checked; both are libcurl's defaults, but not ours to
 * leave to it. */
static void prepare(struct curl_client *client, struct client_transfer *transfer,
                    const char *path) {
    const struct curl_functions *curl = &client->curl;
    char url[ACRE_SERVER_URL_MAX * 4];
    char header[ACRE_SERVER_TOKEN_MAX + 32];
    int length = snprintf(url, sizeof(url), "%s%s", client->server.url, path);
    ACRE_ASSERT(length > 0 && (size_t)length < sizeof(url)); /* commands limit their arguments */
    CURL *easy = transfer->easy;
    curl->easy_setopt(easy, CURLOPT_URL, url);
    curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, CURLOPT_PROXY, "");
    curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    curl->easy_setopt(easy, CURLOPT_USERAGENT, "acre/" ACRE_VERSION);
    curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    if (client->server.socket[0] != '\0') {
        curl->easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->server.socket);
    }
    if (client->authorities != NULL) {
        curl->easy_setopt(easy, CURLOPT_CAINFO, client->authorities);
    }
    if (client->server.token[0] != '\0') {
        snprintf(header, sizeof(header), "Authorization: Bearer %s", client->server.token);
        transfer->headers = curl->slist_append(transfer->headers, header);
    }
}

static int fail_connection(const struct curl_client *client, CURLcode code, const char *text,
                           struct acre_error *err) {
    const char *name = server_name(&client->server);
    const char *said = text[0] != '\0' ? text : client->curl.easy_strerror(code);
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST) {
        return acre_fail(
            err, ACRE_EUNAVAILABLE,
            "no daemon is listening at %s; start one with 'acre serve', or name another with "
            "--server or ACRE_SERVER",
            name);
    }
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
        return acre_fail(err, ACRE_EDENIED, "%s: %s; --cacert FILE names the certificate to trust",
                         name, said);
    }
    return acre_fail(err, code == CURLE_OPERATION_TIMEDOUT ? ACRE_ETIMEOUT : ACRE_EIO, "%s: %s",
                     name, said);
}

/* The code a problem object names, else the one its HTTP status means. */
static int code_of(const char *name, long status) {
    static const struct {
        const char *name;
        int http, code;
    } codes[] = {
#define X(name, code, http, exit, message) {#name, http, code},
        ACRE_ERRORS(X)
#undef X
    };
    for (size_t i = 0; name != NULL && i < ACRE_COUNT(codes); i++) {
        if (strcmp(codes[i].name, name) == 0) {
            return codes[i].code;
        }
    }
    for (size_t i = 0; i < ACRE_COUNT(codes); i++) {
        if (codes[i].http == status) {
            return codes[i].code;
        }
    }
    return status == 401   ? ACRE_EDENIED
           : status == 429 ? ACRE_ELIMIT
           : status < 500  ? ACRE_EINVALID
                           : ACRE_EINTERNAL;
}

/* Turn an answer that is no success into an error: the server's words, and what to do. */
static int fail_problem(const struct curl_client *client, long status,
                        const struct acre_buf *answer, struct acre_error *err) {
    json_t *root = json_loadb(answer->data != NULL ? answer->data : "", answer->length, 0, NULL);
    const char *detail = json_string_value(json_object_get(root, "detail"));
    const char *title = json_string_value(json_object_get(root, "title"));
    int code = code_of(json_string_value(json_object_get(root, "code")), status);
    char fallback[128], shown[ACRE_ERROR_TEXT_MAX];
    snprintf(fallback, sizeof(fallback), "%.60s answered with HTTP status %ld%s",
             server_name(&client->server), status,
             status >= 300 && status < 400 ? " (redirects are not followed)" : "");
    const char *text = detail != NULL ? detail : title != NULL ? title : fallback;
    acre_str_show_text(acre_str_from(text), shown, sizeof(shown));
    if (status == 401) {
        acre_fail(err, code,
                  "%.200s; give a token with --token-file, ACRE_TOKEN or ~/.config/acre/tokens "
                  "('acre token create' on the daemon's machine creates one)",
                  shown);
    } else {
        acre_fail(err, code, "%s", shown);
    }
    json_decref(root);
    return code;
}

static int parse_answer(const struct acre_buf *answer, json_t **ret_answer,
                        struct acre_error *err) {
    if (answer->length == 0) {
        *ret_answer = NULL;
        return 0;
    }
    return acre_json_parse("the server's answer", (struct acre_str){answer->data, answer->length},
                           ANSWER_MAX_BYTES, ret_answer, err);
}

/* Called by libcurl now and then: a person who waits is told for whom. */
static int tell_waiting(void *context, curl_off_t total, curl_off_t now, curl_off_t upload_total,
                        curl_off_t upload_now) {
    struct curl_client *client = context;
    (void)total;
    (void)now;
    (void)upload_total;
    (void)upload_now;
    uint64_t passed_ns = acre_clock_monotonic_ns(&client->clock) - client->began_ns;
    if (!client->told_to_wait && passed_ns > PATIENCE_MS * UINT64_C(1000000) &&
        isatty(STDERR_FILENO)) {
        client->told_to_wait = true;
        fprintf(stderr, "waiting for %s ...", server_name(&client->server));
    }
    return 0;
}

static CURLcode perform(struct curl_client *client, struct client_transfer *transfer) {
    const struct curl_functions *curl = &client->curl;
    client->began_ns = acre_clock_monotonic_ns(&client->clock);
    client->told_to_wait = false;
    curl->easy_setopt(transfer->easy, CURLOPT_TIMEOUT_MS, (long)CALL_TIMEOUT_MS);
    curl->easy_setopt(transfer->easy, CURLOPT_NOPROGRESS, 0L);
    curl->easy_setopt(transfer->easy, CURLOPT_XFERINFOFUNCTION, tell_waiting);
    curl->easy_setopt(transfer->easy, CURLOPT_XFERINFODATA, client);
    curl->easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
    CURLcode code = curl->easy_perform(transfer->easy);
    if (client->told_to_wait) {
        fprintf(stderr, "\r\033[K");
    }
    return code;
}

int client_call(struct curl_client *client, const char *method, const char *path,
                const json_t *body, json_t **ret_answer, struct acre_error *err) {
    const struct curl_functions *curl = &client->curl;
    struct client_transfer transfer = {.easy = client->easy};
    acre_buf_init(&transfer.answer, ANSWER_MAX_BYTES);
    curl->easy_reset(client->easy); /* keeps the connection */
    prepare(client, &transfer, path);
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    if (text != NULL) {
        transfer.headers = curl->slist_append(transfer.headers, "Content-Type: application/json");
        transfer.headers = curl->slist_append(transfer.headers, "Expect:");
    }
    if (text != NULL || strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0) {
        curl->easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE,
                          (long)(text != NULL ? strlen(text) : 0));
        curl->easy_setopt(client->easy, CURLOPT_POSTFIELDS, text != NULL ? text : "");
    }
    curl->easy_setopt(client->easy, CURLOPT_CUSTOMREQUEST, method);
    curl->easy_setopt(client->easy, CURLOPT_WRITEFUNCTION, take_answer);
    curl->easy_setopt(client->easy, CURLOPT_WRITEDATA, &transfer);
    CURLcode code = perform(client, &transfer);
    long status = 0;
    int r = 0;
    if (code != CURLE_OK) {
        r = fail_connection(client, code, transfer.error, err);
    } else {
        curl->easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
        if (status < 200 || status > 299) {
            r = fail_problem(client, status, &transfer.answer, err);
        } else if (ret_answer != NULL) {
            r = parse_answer(&transfer.answer, ret_answer, err);
        }
    }
    curl->slist_free(transfer.headers);
    acre_buf_finish(&transfer.answer);
    free(text);
    return r;
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *context) {
    struct feed *stream = context;
    long status = 0;
    stream->client->curl.easy_getinfo(stream->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || status > 299) {
        return take_answer(bytes, size, count, &stream->transfer);
    }
    stream->bytes(stream->context, (struct acre_str){bytes, size * count});
    return size * count;
}

int client_stream(struct curl_client *client, const char *path, const char *last_id,
                  feed_bytes *bytes, void *context, struct feed **ret_stream,
                  struct acre_error *err) {
    const struct curl_functions *curl = &client->curl;
    struct feed *stream = acre_calloc(1, sizeof(*stream));
    *stream = (struct feed){.client = client, .bytes = bytes, .context = context};
    stream->transfer.easy = curl->easy_init();
    ACRE_ASSERT(stream->transfer.easy != NULL);
    acre_buf_init(&stream->transfer.answer, PROBLEM_MAX_BYTES);
    prepare(client, &stream->transfer, path);
    if (last_id != NULL && last_id[0] != '\0') {
        char header[64];
        snprintf(header, sizeof(header), "Last-Event-ID: %.40s", last_id);
        stream->transfer.headers = curl->slist_append(stream->transfer.headers, header);
    }
    curl->easy_setopt(stream->transfer.easy, CURLOPT_HTTPHEADER, stream->transfer.headers);
    curl->easy_setopt(stream->transfer.easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl->easy_setopt(stream->transfer.easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl->easy_setopt(stream->transfer.easy, CURLOPT_WRITEDATA, stream);
    stream->next = client->streams;
    client->streams = stream;
    if (curl->multi_add(client->multi, stream->transfer.easy) != CURLM_OK) {
        feed_close(stream);
        return acre_fail(err, ACRE_EINTERNAL, "libcurl cannot open another stream");
    }
    *ret_stream = stream;
    return 0;
}

void feed_close(struct feed *stream) {
    if (stream == NULL) {
        return;
    }
    struct curl_client *client = stream->client;
    struct feed **at = &client->streams;
    while (*at != stream) {
        at = &(*at)->next;
    }
    *at = stream->next;
    client->curl.multi_remove(client->multi, stream->transfer.easy);
    client->curl.easy_cleanup(stream->transfer.easy);
    client->curl.slist_free(stream->transfer.headers);
    acre_buf_finish(&stream->transfer.answer);
    free(stream);
}

bool feed_ended(const struct feed *stream, int *ret_result, struct acre_error *err) {
    if (!stream->ended) {
        return false;
    }
    const struct curl_client *client = stream->client;
    long status = 0;
    client->curl.easy_getinfo(stream->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    if (stream->ending != CURLE_OK) {
        *ret_result = fail_connection(client, stream->ending, stream->transfer.error, err);
    } else if (status < 200 || status > 299) {
        *ret_result = fail_problem(client, status, &stream->transfer.answer, err);
    } else {
        *ret_result = 0;
    }
    return true;
}

static void note_endings(struct curl_client *client) {
    CURLMsg *message;
    int left;
    while ((message = client->curl.multi_read(client->multi, &left)) != NULL) {
        for (struct feed *stream = client->streams; stream != NULL; stream = stream->next) {
            if (message->msg == CURLMSG_DONE && stream->transfer.easy == message->easy_handle) {
                stream->ended = true;
                stream->ending = message->data.result;
            }
        }
    }
}

int client_wait(struct curl_client *client, int fd, uint32_t timeout_ms, bool *ret_fd_is_ready,
                struct acre_error *err) {
    struct curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN};
    int running = 0;
    CURLMcode code = client->curl.multi_perform(client->multi, &running);
    note_endings(client);
    bool ended = false;
    for (struct feed *stream = client->streams; stream != NULL; stream = stream->next) {
        ended = ended || stream->ended;
    }
    if (code == CURLM_OK) { /* an ending is news: do not sleep on it */
        code = client->curl.multi_poll(client->multi, &extra, fd >= 0 ? 1 : 0,
                                       ended ? 0 : (int)timeout_ms, NULL);
    }
    if (code == CURLM_OK) {
        code = client->curl.multi_perform(client->multi, &running);
        note_endings(client);
    }
    if (code != CURLM_OK) {
        return acre_fail(err, ACRE_EINTERNAL, "libcurl: multi handle failed (%d)", (int)code);
    }
    *ret_fd_is_ready = fd >= 0 && (extra.revents & CURL_WAIT_POLLIN) != 0;
    return 0;
}
