/* What the server makes of bytes, over real sockets: every way to confuse it is a row (SEC-1). */
#include "support/http_kit.h"
#include "support/test.h"

#include <stdio.h>

enum { BODY_MAX = 4096 };

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define HOST      "Host: a\r\n"

#define BYTES(text)                                                                                \
    { text, sizeof(text) - 1 }

/* Bytes in; the statuses that come back; whether the connection can be used afterwards. */
/* clang-format off */
static const struct probe {
    const char *name;
    struct acre_str bytes;
    const char *statuses;
    bool stays_open;
} probes[] = {
    {"plain", BYTES(GET("/echo")), "200", true},
    {"three at once", BYTES(GET("/echo") GET("/echo") GET("/echo")), "200 200 200", true},
    {"three at once, answered later", BYTES(GET("/later") GET("/later") GET("/later")),
     "200 200 200", true},
    {"asked to close", BYTES("GET /echo HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"), "200",
     false},
    {"close in a list", BYTES("GET /echo HTTP/1.1\r\n" HOST "Connection: x, Close\r\n\r\n"),
     "200", false},
    {"close, then another Connection",
     BYTES("GET /echo HTTP/1.1\r\n" HOST "Connection: close\r\nConnection: keep-alive\r\n\r\n"),
     "200", false},
    {"HTTP/1.0", BYTES("GET /echo HTTP/1.0\r\n\r\n"), "200", false},
    {"HTTP/1.0 later", BYTES("GET /later HTTP/1.0\r\n\r\n"), "200", false},
    {"one empty line before", BYTES("\r\n" GET("/echo")), "200", true},
    {"two empty lines before", BYTES("\r\n\r\n" GET("/echo")), "400", false},
    {"absolute target", BYTES("GET http://a:80/echo HTTP/1.1\r\n" HOST "\r\n"), "200", true},
    {"absolute target without path", BYTES("GET http://a HTTP/1.1\r\n" HOST "\r\n"), "400",
     false},
    {"absolute target without host", BYTES("GET http:///echo HTTP/1.1\r\n" HOST "\r\n"), "400",
     false},

    /* where a request ends must never be in doubt */
    {"CL and TE",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: "
              "chunked\r\n\r\n0\r\n\r\n" GET("/echo")),
     "400", false},
    {"TE and CL",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: "
              "5\r\n\r\n0\r\n\r\n" GET("/echo")),
     "400", false},
    {"two different CL",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc"),
     "400", false},
    {"two equal CL",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\ncontent-length: 2\r\n\r\nab"),
     "400", false},
    {"a list of CL", BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2, 2\r\n\r\nab"),
     "400", false},
    {"CL with a sign", BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length: +2\r\n\r\nab"),
     "400", false},
    {"CL below zero", BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length: -2\r\n\r\nab"),
     "400", false},
    {"CL in hexadecimal", BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0x2\r\n\r\nab"),
     "400", false},
    {"CL empty", BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"), "400", false},
    {"CL over 2^64",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551618\r\n\r\nab"),
     "413", false},
    {"CL zero", BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n" GET("/echo")),
     "200 200", true},
    {"CL with zeros in front",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 002\r\n\r\nab"), "200", true},
    {"CL over the limit, body not sent",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4097\r\n\r\n"), "413", false},
    {"TE xchunked",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), "400",
     false},
    {"TE gzip, chunked",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
     "400", false},
    {"TE identity", BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"),
     "400", false},
    {"TE twice",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: "
              "chunked\r\n\r\n0\r\n\r\n"),
     "400", false},
    {"TE in HTTP/1.0",
     BYTES("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "400", false},
    {"TE in capitals",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n"), "200",
     true},

    /* chunks */
    {"chunks",
     BYTES("POST /echo HTTP/1.1\r\n" HOST
              "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n"
              "Trailer: 1\r\n\r\n" GET("/echo")),
     "200 200", true},
    {"chunk over 2^64",
     BYTES("POST /echo HTTP/1.1\r\n" HOST
              "Transfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n"),
     "400", false},
    {"chunk over the limit",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1001\r\n"), "413",
     false},
    {"chunk of 2^64 - 1",
     BYTES("POST /echo HTTP/1.1\r\n" HOST
              "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
     "413", false},
    {"chunk size missing",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n\r\n"), "400",
     false},
    {"chunk size with 0x",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n"),
     "400", false},
    {"chunk size with a blank in front",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n 3\r\nabc\r\n"),
     "400", false},
    {"chunk size with a blank behind",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n"),
     "400", false},
    {"chunk longer than told",
     BYTES("POST /echo HTTP/1.1\r\n" HOST
              "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n"),
     "400", false},
    {"chunk line with bare LF",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n"), "400",
     false},
    {"chunk data with bare LF",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n"),
     "400", false},
    {"trailer with a control character",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nA: \x01\r\n"),
     "400", false},
    {"trailer with bare CR",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\rc\r\n"),
     "400", false},
    {"trailer that is no field",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\nno field\r\n"),
     "400", false},

    /* lines and fields */
    {"blank before the colon", BYTES("GET /echo HTTP/1.1\r\nHost : a\r\n\r\n"), "400", false},
    {"tab before the colon", BYTES("GET /echo HTTP/1.1\r\n" HOST "Content-Length\t: 0\r\n\r\n"),
     "400", false},
    {"no name", BYTES("GET /echo HTTP/1.1\r\n" HOST ": x\r\n\r\n"), "400", false},
    {"no colon", BYTES("GET /echo HTTP/1.1\r\n" HOST "nonsense\r\n\r\n"), "400", false},
    {"folded line", BYTES("GET /echo HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n"), "400", false},
    {"fold first", BYTES("GET /echo HTTP/1.1\r\n Host: a\r\n\r\n"), "400", false},
    {"NUL in a value", BYTES("GET /echo HTTP/1.1\r\n" HOST "A: b\0c\r\n\r\n"), "400", false},
    {"NUL in a name", BYTES("GET /echo HTTP/1.1\r\n" HOST "A\0: b\r\n\r\n"), "400", false},
    {"ESC in a value", BYTES("GET /echo HTTP/1.1\r\n" HOST "A: \x1b[0m\r\n\r\n"), "400", false},
    {"DEL in a value", BYTES("GET /echo HTTP/1.1\r\n" HOST "A: \x7f\r\n\r\n"), "400", false},
    {"bare CR in a value", BYTES("GET /echo HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n"), "400", false},
    {"bare LF line ends", BYTES("GET /echo HTTP/1.1\nHost: a\n\n"), "400", false},
    {"one bare LF", BYTES("GET /echo HTTP/1.1\r\n" HOST "A: b\nC: d\r\n\r\n"), "400", false},
    {"high bytes in a value", BYTES("GET /echo HTTP/1.1\r\n" HOST "A: \xc3\xa9\r\n\r\n"), "200",
     true},
    {"tab in a value", BYTES("GET /echo HTTP/1.1\r\n" HOST "A:\tb\tc\t\r\n\r\n"), "200", true},
    {"no Host", BYTES("GET /echo HTTP/1.1\r\n\r\n"), "400", false},
    {"two Hosts", BYTES("GET /echo HTTP/1.1\r\n" HOST HOST "\r\n"), "400", false},
    {"odd Host", BYTES("GET /echo HTTP/1.1\r\nHost: a b\r\n\r\n"), "400", false},
    {"empty Host", BYTES("GET /echo HTTP/1.1\r\nHost:\r\n\r\n"), "200", true},

    /* request lines */
    {"two blanks", BYTES("GET  /echo HTTP/1.1\r\n" HOST "\r\n"), "400", false},
    {"four words", BYTES("GET /echo x HTTP/1.1\r\n" HOST "\r\n"), "400", false},
    {"two words", BYTES("GET /echo\r\n" HOST "\r\n"), "400", false},
    {"tab between", BYTES("GET\t/echo\tHTTP/1.1\r\n" HOST "\r\n"), "400", false},
    {"method with a colon", BYTES("GE:T /echo HTTP/1.1\r\n" HOST "\r\n"), "400", false},
    {"method too long", BYTES("GETGETGETGETGETGE /echo HTTP/1.1\r\n" HOST "\r\n"), "400", false},
    {"HTTP/2.0", BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "505", false},
    {"HTTP/1.2", BYTES("GET /echo HTTP/1.2\r\n" HOST "\r\n"), "505", false},
    {"http/1.1", BYTES("GET /echo http/1.1\r\n" HOST "\r\n"), "400", false},
    {"HTTP/1.10", BYTES("GET /echo HTTP/1.10\r\n" HOST "\r\n"), "400", false},
    {"TLS to a plain port", BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), "400", false},

    /* targets */
    {"target without slash", BYTES("GET echo HTTP/1.1\r\n" HOST "\r\n"), "400", false},
    {"target star", BYTES("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), "400", false},
    {"target authority", BYTES("CONNECT a:80 HTTP/1.1\r\n" HOST "\r\n"), "400", false},
    {"fragment", BYTES(GET("/echo#x")), "400", false},
    {"raw high bytes", BYTES(GET("/\xc3\xa9")), "400", false},
    {"encoded UTF-8", BYTES(GET("/%C3%A9")), "200", true},
    {"encoded bad UTF-8", BYTES(GET("/%C3x")), "400", false},
    {"encoded NUL", BYTES(GET("/a%00b")), "400", false},
    {"encoded LF", BYTES(GET("/a%0ab")), "400", false},
    {"encoded slash", BYTES(GET("/a%2Fb")), "200", true},
    {"dots", BYTES(GET("/a/../b")), "400", false},
    {"encoded dots", BYTES(GET("/a/%2e%2E/b")), "400", false},
    {"dots at the end", BYTES(GET("/a/..")), "400", false},
    {"one dot", BYTES(GET("/./a")), "400", false},
    {"three dots", BYTES(GET("/a/.../b")), "200", true},
    {"decoded once", BYTES(GET("/a%252e%252e")), "200", true},
    {"broken percent", BYTES(GET("/a%2")), "400", false},
    {"broken percent 2", BYTES(GET("/a%zz")), "400", false},
    {"percent at the end", BYTES(GET("/a%")), "400", false},
    {"encoded NUL in the query", BYTES(GET("/a?b=%00")), "400", false},
    {"query without key", BYTES(GET("/a?=b")), "400", false},
    {"query with empty parts", BYTES(GET("/a?&&b&")), "200", true},

    /* Expect */
    {"Expect: 100-continue, body there",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nab"),
     "200", true},
    {"Expect: something else",
     BYTES("POST /echo HTTP/1.1\r\n" HOST "Expect: tea\r\nContent-Length: 2\r\n\r\nab"), "417",
     false},
    {"Expect: 100-continue, too large",
     BYTES("POST /echo HTTP/1.1\r\n" HOST
              "Expect: 100-continue\r\nContent-Length: 5000\r\n\r\n"),
     "413", false},
};
/* clang-format on */

/* An interim answer may come first: when the head was seen before its body. */
static int final_status(struct http_client *client) {
    int status = http_client_status(client);
    return status == 100 ? http_client_status(client) : status;
}

static void check_probe(struct http_kit *kit, const struct probe *probe, size_t piece) {
    struct http_client client = http_client_open(kit);
    for (size_t at = 0; at < probe->bytes.length; at += piece) {
        struct acre_str bytes = {probe->bytes.data + at, ACRE_MIN(piece, probe->bytes.length - at)};
        http_client_write(&client, bytes);
    }
    char statuses[64] = "";
    for (const char *want = probe->statuses; *want != '\0'; want += want[3] == ' ' ? 4 : 3) {
        size_t used = strlen(statuses);
        snprintf(statuses + used, sizeof(statuses) - used, "%s%d", used > 0 ? " " : "",
                 final_status(&client));
    }
    CHECK_STR(statuses, probe->statuses);
    if (probe->stays_open) {
        http_client_puts(&client, GET("/echo"));
        CHECK_EQ(http_client_status(&client), 200);
    } else {
        CHECK(http_client_ends(&client));
        CHECK_EQ(client.in.length, client.used); /* and no answer to anything hidden */
    }
    http_client_close(&client);
}

static void every_probe_gets_its_status_and_nothing_else(void) {
    struct http_kit kit = {.options.body_max = BODY_MAX};
    http_kit_start(&kit);
    for (size_t i = 0; i < ACRE_COUNT(probes); i++) {
        acre_test_context("%s", probes[i].name);
        check_probe(&kit, &probes[i], SIZE_MAX / 2);
    }
    acre_test_context("%s", "");
    http_kit_wait_gone(&kit, 0);
    http_kit_stop(&kit);
}

static void probes_in_single_bytes_get_the_same(void) {
    struct http_kit kit = {.options.body_max = BODY_MAX};
    http_kit_start(&kit);
    for (size_t i = 0; i < ACRE_COUNT(probes); i++) {
        acre_test_context("%s, byte by byte", probes[i].name);
        check_probe(&kit, &probes[i], 1);
    }
    http_kit_stop(&kit);
}

/* Past these lengths nothing is waited for. */
static void lines_between_chunks_are_short(void) {
    static const struct {
        const char *start;
        size_t bytes;
    } rows[] = {{"1;", 256}, {"0\r\nA: ", 4096}, {"0\r\nA: b\r\nC: ", 4096}};
    struct http_kit kit = {.options.body_max = BODY_MAX};
    http_kit_start(&kit);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct http_client client = http_client_open(&kit);
        char filler[4096];
        memset(filler, 'x', sizeof(filler));
        http_client_puts(&client,
                         "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
        http_client_puts(&client, rows[i].start);
        http_client_write(&client, (struct acre_str){filler, rows[i].bytes});
        CHECK_EQ(http_client_status(&client), 400);
        http_client_close(&client);
    }
    http_kit_stop(&kit);
}

static void refusals_are_problems_that_name_what_is_accepted(void) {
    static const struct {
        const char *request, *part;
    } rows[] = {
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: +2\r\n\r\nab",
         "\"detail\":\"Content-Length: '+2'; accepted: one number, digits "
         "only\",\"code\":\"INVALID\","
         "\"field\":\"Content-Length\""},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5000\r\n\r\n",
         "the body is too long (5000 bytes); accepted: at most 4096 bytes"},
        {"GET /echo HTTP/1.1\r\nHost : a\r\n\r\n", "header field: 'Host : a'; accepted:"},
        {GET("/%00"), "path: '/%00'"},
    };
    struct http_kit kit = {.options.body_max = BODY_MAX};
    http_kit_start(&kit);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct http_client client = http_client_open(&kit);
        struct http_answer answer;
        http_client_puts(&client, rows[i].request);
        REQUIRE(http_client_read(&client, &answer));
        CHECK_HAS(answer.head, "\r\nContent-Type: application/problem+json\r\n");
        CHECK_HAS(answer.head, "\r\nConnection: close\r\n");
        CHECK_HAS(answer.body.data, rows[i].part);
        http_answer_free(&answer);
        http_client_close(&client);
    }
    CHECK_U64(http_kit_counts(&kit)->refused, ACRE_COUNT(rows));
    http_kit_stop(&kit);
}

/* A head of `total` bytes, the last two lines empty. */
static void write_head_of(struct http_client *client, size_t total, bool in_target) {
    struct acre_buf head;
    acre_buf_init(&head, total + 1);
    acre_buf_puts(&head, in_target ? "GET /" : "GET /echo HTTP/1.1\r\n" HOST "A: ");
    const char *tail = in_target ? " HTTP/1.1\r\n" HOST "\r\n" : "\r\n\r\n";
    while (head.length + strlen(tail) < total) {
        acre_buf_putc(&head, 'a');
    }
    acre_buf_puts(&head, tail);
    http_client_write(client, (struct acre_str){head.data, head.length});
    acre_buf_finish(&head);
}

static void heads_up_to_16_kib_are_read_and_longer_ones_refused(void) {
    static const struct {
        size_t bytes;
        bool in_target;
        int status;
    } rows[] = {{16384, false, 200}, {16385, false, 431}, {65536, false, 431},
                {16384, true, 200},  {17000, true, 414},  {65536, true, 414}};
    struct http_kit kit = {0};
    http_kit_start(&kit);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%zu bytes", rows[i].bytes);
        struct http_client client = http_client_open(&kit);
        write_head_of(&client, rows[i].bytes, rows[i].in_target);
        CHECK_EQ(http_client_status(&client), rows[i].status);
        http_client_close(&client);
    }
    struct http_client client = http_client_open(&kit);
    http_client_puts(&client, "GET /echo HTTP/1.1\r\n");
    for (int i = 0; i < 65; i++) {
        http_client_puts(&client, i == 0 ? HOST : "A: b\r\n");
    }
    http_client_puts(&client, "\r\n");
    CHECK_EQ(http_client_status(&client), 431);
    http_client_close(&client);
    http_kit_stop(&kit);
}

static const struct acre_test tests[] = {
    {"every_probe_gets_its_status_and_nothing_else", every_probe_gets_its_status_and_nothing_else,
     0},
    {"probes_in_single_bytes_get_the_same", probes_in_single_bytes_get_the_same, 0},
    {"lines_between_chunks_are_short", lines_between_chunks_are_short, 0},
    {"refusals_are_problems_that_name_what_is_accepted",
     refusals_are_problems_that_name_what_is_accepted, 0},
    {"heads_up_to_16_kib_are_read_and_longer_ones_refused",
     heads_up_to_16_kib_are_read_and_longer_ones_refused, 0},
};

ACRE_TEST_MAIN(tests)
