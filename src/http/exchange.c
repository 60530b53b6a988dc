/* exchange.c - one request and its answer, even if the client has left.
 *
 * An exchange has memory of its own and one pointer to its connection, which is cleared when the
 * client goes: then the answer is thrown away, and nothing else differs for the handler. It is
 * freed in exactly one place for each way it can end: by the answer, or for a stream after
 * `closed`.
 *
 * `closed` is never called by the functions a handler calls, so a handler may send to a hundred
 * followers in a loop without one of them vanishing from its list on the way. */
#include "http/inner.h"
#include "http/problem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    BODY_COPIED_MAX = 16 * 1024, /* smaller bodies are sent in one piece with their head */
    ADDED_MAX = 16 * 1024,
    NO_CONTENT = 204,
    NOT_MODIFIED = 304,
};

struct acre_exchange *exchange_create(struct http_conn *conn) {
    struct acre_exchange *exchange = acre_calloc(1, sizeof(*exchange));
    exchange->message = http_reader_take(&conn->reader);
    exchange->peer = conn->peer;
    exchange->loop = conn->http->options.loop;
    exchange->conn = conn;
    struct acre_buf *body = &exchange->message.body;
    exchange->request = (struct acre_http_request){
        .method = exchange->message.head.method,
        .path = exchange->message.head.path,
        .body = {body->data != NULL ? body->data : "", body->length},
        .peer = &exchange->peer,
        .arena = exchange->message.arena,
    };
    return exchange;
}

static void exchange_free(struct acre_exchange *exchange) {
    http_message_finish(&exchange->message);
    acre_buf_finish(&exchange->added);
    free(exchange);
}

void exchange_orphan(struct acre_exchange *exchange) {
    exchange->conn = NULL;
    if (exchange->again) { /* no handler has it */
        exchange_free(exchange);
    } else if (exchange->streaming) {
        acre_loop_function *closed = exchange->closed;
        void *context = exchange->context;
        exchange_free(exchange);
        if (closed != NULL) {
            closed(context);
        }
    }
}

const char *acre_http_header(struct acre_exchange *exchange, const char *name) {
    const struct http_head *head = &exchange->message.head;
    for (uint32_t i = 0; i < head->header_count; i++) {
        if (strcasecmp(head->headers[i].name, name) == 0) {
            return head->headers[i].value;
        }
    }
    return NULL;
}

const char *acre_http_query(struct acre_exchange *exchange, const char *key) {
    const struct http_head *head = &exchange->message.head;
    for (uint32_t i = 0; i < head->query_count; i++) {
        if (strcmp(head->query[i].name, key) == 0) {
            return head->query[i].value;
        }
    }
    return NULL;
}

bool acre_http_query_at(struct acre_exchange *exchange, uint32_t index, const char **ret_key,
                        const char **ret_value) {
    const struct http_head *head = &exchange->message.head;
    if (index >= head->query_count) {
        return false;
    }
    *ret_key = head->query[index].name;
    *ret_value = head->query[index].value;
    return true;
}

void acre_http_add_header(struct acre_exchange *exchange, const char *name, const char *value) {
    struct acre_buf *added = &exchange->added;
    if (added->data == NULL) {
        acre_buf_init(added, ADDED_MAX);
    }
    acre_buf_puts(added, name);
    acre_buf_puts(added, ": ");
    for (const char *c = value; *c != '\0'; c++) { /* a line break here would be a second header */
        bool is_control = (unsigned char)*c < ' ' || *c == 0x7f;
        acre_buf_putc(added, is_control ? ' ' : *c);
    }
    acre_buf_puts(added, "\r\n");
    ACRE_ASSERT(!acre_buf_failed(added));
}

void acre_http_hang_up(struct acre_exchange *exchange) {
    exchange->message.head.keep_alive = false;
}

static const char *date_line(struct acre_http *http) {
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    uint64_t now_s = acre_clock_wall_ms(&http->clock) / 1000;
    if (now_s != http->date_s) {
        time_t seconds = (time_t)now_s;
        struct tm tm;
        gmtime_r(&seconds, &tm);
        snprintf(http->date, sizeof(http->date),
                 "Date: %.3s, %02d %.3s %04d %02d:%02d:%02d GMT\r\n",
                 days + (ptrdiff_t)tm.tm_wday * 3, tm.tm_mday, months + (ptrdiff_t)tm.tm_mon * 3,
                 tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
        http->date_s = now_s;
    }
    return http->date;
}

static void put_number(struct acre_buf *out, uint64_t number) {
    char digits[24];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    acre_buf_append(out, digits + at, sizeof(digits) - at);
}

void http_write_head(struct http_conn *conn, int status, const char *content_type,
                     bool length_known, uint64_t length, const struct acre_buf *added) {
    struct acre_buf *out = http_conn_out(conn);
    acre_buf_puts(out, "HTTP/1.1 ");
    put_number(out, (uint64_t)status);
    acre_buf_putc(out, ' ');
    acre_buf_puts(out, acre_http_reason(status));
    acre_buf_puts(out, "\r\n");
    acre_buf_puts(out, date_line(conn->http));
    if (content_type != NULL) {
        acre_buf_puts(out, "Content-Type: ");
        acre_buf_puts(out, content_type);
        acre_buf_puts(out, "\r\n");
    }
    if (added != NULL && added->data != NULL) {
        acre_buf_append(out, added->data, added->length);
    }
    if (length_known && status != NO_CONTENT && status != NOT_MODIFIED) {
        acre_buf_puts(out, "Content-Length: ");
        put_number(out, length);
        acre_buf_puts(out, "\r\n");
    } else if (!length_known && !conn->closing) {
        acre_buf_puts(out, "Transfer-Encoding: chunked\r\n");
    }
    acre_buf_puts(out, conn->closing ? "Connection: close\r\n\r\n" : "\r\n");
}

static bool is_head(const struct acre_exchange *exchange) {
    return strcmp(exchange->request.method, "HEAD") == 0;
}

/* What was put into out goes out: now, or by the work that is being done on it. */
static void send_now(struct http_conn *conn) {
    if (conn->working) {
        return;
    }
    http_conn_flush(conn);
    bool is_quiet = !conn->dead && !conn->closing && conn->in.data == NULL && !conn->can_read &&
                    (conn->tls == NULL || !tls_has_input(conn->tls)) &&
                    http_conn_backlog(conn) == 0;
    if (is_quiet) {
        http_set_wait(conn, http_conn_idle(conn));
    } else {
        http_make_ready(conn);
    }
}

void acre_http_answer(struct acre_exchange *exchange, int status, const char *content_type,
                      struct acre_buf *body) {
    ACRE_ASSERT(!exchange->streaming && status >= 200 && status <= 599);
    struct acre_buf empty = {0};
    struct acre_buf *given = body != NULL ? body : &empty;
    struct http_conn *conn = exchange->conn;
    if (conn != NULL && !conn->dead) {
        conn->closing = conn->closing || conn->http->draining || !exchange->message.head.keep_alive;
        http_write_head(conn, status, content_type, true, given->length, &exchange->added);
        bool has_body = given->length > 0 && !is_head(exchange) && status != NO_CONTENT &&
                        status != NOT_MODIFIED;
        if (has_body && given->length <= BODY_COPIED_MAX) {
            acre_buf_append(&conn->out, given->data, given->length);
        } else if (has_body) {
            ACRE_ASSERT(conn->body.data == NULL);
            conn->body = *given;
            *given = (struct acre_buf){0};
        }
    }
    acre_buf_finish(given);
    if (conn != NULL) {
        conn->exchange = NULL;
        send_now(conn);
    }
    exchange_free(exchange);
}

static void close_later(void *context) {
    exchange_orphan(context);
}

void acre_http_stream(struct acre_exchange *exchange, int status, const char *content_type,
                      acre_loop_function *closed, void *context) {
    ACRE_ASSERT(!exchange->streaming && status >= 200 && status <= 599 && status != NO_CONTENT);
    exchange->streaming = true;
    exchange->closed = closed;
    exchange->context = context;
    struct http_conn *conn = exchange->conn;
    if (conn == NULL) { /* nobody else will come by to close it */
        acre_loop_post(exchange->loop, close_later, exchange);
        return;
    }
    const struct http_head *head = &exchange->message.head;
    conn->closing = conn->closing || conn->http->draining || !head->keep_alive;
    exchange->chunked = !conn->closing;
    http_write_head(conn, status, content_type, false, 0, &exchange->added);
    conn->http->counts.streams++;
    if (is_head(exchange)) {
        exchange->ended = true;
    } else if (conn->http->draining) {
        acre_http_end(exchange);
    }
    http_make_ready(conn);
}

void acre_http_send(struct acre_exchange *exchange, struct acre_str bytes) {
    ACRE_ASSERT(exchange->streaming);
    struct http_conn *conn = exchange->conn;
    if (conn == NULL || conn->dead || exchange->ended || bytes.length == 0) {
        return;
    }
    struct acre_buf *out = http_conn_out(conn);
    if (http_conn_backlog(conn) + bytes.length > ACRE_HTTP_STREAM_MAX) {
        conn->dead = true;
    } else if (exchange->chunked) {
        acre_buf_printf(out, "%zx\r\n", bytes.length);
        acre_buf_append(out, bytes.data, bytes.length);
        acre_buf_puts(out, "\r\n");
    } else { /* no next request: the end of the connection ends it */
        acre_buf_append(out, bytes.data, bytes.length);
    }
    http_make_ready(conn); /* what is sent in one turn leaves together */
}

void acre_http_end(struct acre_exchange *exchange) {
    ACRE_ASSERT(exchange->streaming);
    struct http_conn *conn = exchange->conn;
    if (conn == NULL || exchange->ended) {
        return;
    }
    exchange->ended = true;
    if (exchange->chunked) {
        acre_buf_puts(http_conn_out(conn), "0\r\n\r\n");
    }
    http_make_ready(conn);
}

size_t acre_http_waiting(const struct acre_exchange *exchange) {
    return exchange->conn != NULL ? http_conn_backlog(exchange->conn) : 0;
}
