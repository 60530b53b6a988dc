/* Problem objects (API-2, RFC 9457): the status, the words and the field of every failure. */
#include "core/json.h"
#include "http/problem.h"
#include "support/http_kit.h"
#include "support/test.h"

static void check_problem(int status, const struct acre_error *err, const char *title,
                          const char *code, const char *field) {
    struct acre_buf buf;
    json_t *root = NULL;
    acre_buf_init(&buf, 8192);
    acre_problem_write(&buf, status, err);
    REQUIRE_EQ(
        acre_json_parse("problem", (struct acre_str){buf.data, buf.length}, 8192, &root, NULL), 0);
    CHECK_STR(json_string_value(json_object_get(root, "type")), "about:blank");
    CHECK_STR(json_string_value(json_object_get(root, "title")), title);
    CHECK_EQ(json_integer_value(json_object_get(root, "status")), status);
    CHECK_STR(json_string_value(json_object_get(root, "detail")), err->text);
    CHECK_STR(json_string_value(json_object_get(root, "code")), code);
    const char *got = json_string_value(json_object_get(root, "field"));
    CHECK_STR(got != NULL ? got : "", field);
    json_decref(root);
    acre_buf_finish(&buf);
}

static void every_error_code_has_its_problem(void) {
    struct acre_error err = {0};
#define X(name, number, http, exit, message)                                                       \
    acre_fail(&err, ACRE_E##name, "it broke");                                                     \
    check_problem(acre_error_http(err.code), &err, message, #name, "");
    ACRE_ERRORS(X)
#undef X
}

static void statuses_without_a_code_have_words_of_their_own(void) {
    static const struct {
        int status;
        const char *title, *code;
    } rows[] = {
        {401, "not authenticated", "UNAUTHENTICATED"},
        {405, "method not allowed", "METHOD"},
        {408, "request timed out", "TIMEOUT"},
        {429, "too many requests", "RATE"},
        {431, "limit exceeded", "LIMIT"},
        {505, "HTTP version not supported", "UNSUPPORTED"},
    };
    struct acre_error err = {0};
    acre_fail(&err, ACRE_EDENIED, "who are you?");
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        check_problem(rows[i].status, &err, rows[i].title, rows[i].code, "");
    }
}

static void the_field_is_what_the_text_begins_with(void) {
    static const struct {
        const char *text, *field;
    } rows[] = {
        {"gpus: '0.05' is not accepted", "gpus"},
        {"quotas[3].user: is missing", "quotas[3].user"},
        {"Content-Length: '+2'", "Content-Length"},
        {"body:1:7: '}' expected", ""},
        {"no job 7: it ended", ""},
        {": nothing", ""},
        {"gpus:", ""},
        {"", ""},
        {"a_name_that_is_longer_than_sixty_three_bytes_is_no_field_of_our_tables_: x", ""},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_error err = {0};
        acre_fail(&err, ACRE_EINVALID, "%s", rows[i].text);
        check_problem(400, &err, "invalid request", "INVALID", rows[i].field);
    }
}

static void fail(void *context, struct acre_exchange *exchange,
                 const struct acre_http_request *request) {
    (void)context;
    struct acre_error err = {0};
    acre_fail(&err, ACRE_ENOTFOUND, "id: no job %s", request->path + 1);
    if (request->path[1] == '1') {
        acre_problem_answer(exchange, &err);
    } else {
        acre_problem_fail(exchange, ACRE_ECONFLICT, "job %s has \"ended\"", request->path + 1);
    }
}

static void answers_carry_the_problem_type(void) {
    struct http_kit kit = {.options.handler = fail};
    http_kit_start(&kit);
    struct http_client client = http_client_open(&kit);
    struct http_answer answer;
    http_client_puts(&client, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    REQUIRE(http_client_read(&client, &answer));
    CHECK_EQ(answer.status, 404);
    CHECK_HAS(answer.head, "HTTP/1.1 404 Not Found\r\n");
    CHECK_HAS(answer.head, "\r\nContent-Type: application/problem+json\r\n");
    CHECK_HAS(answer.body.data, "\"field\":\"id\"");
    http_answer_free(&answer);
    http_client_puts(&client, "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    REQUIRE(http_client_read(&client, &answer));
    CHECK_EQ(answer.status, 409);
    CHECK_HAS(answer.body.data, "\"detail\":\"job 2 has \\\"ended\\\"\"");
    http_answer_free(&answer);
    http_client_close(&client);
    http_kit_stop(&kit);
}

static void every_status_we_use_has_its_reason(void) {
    CHECK_STR(acre_http_reason(200), "OK");
    CHECK_STR(acre_http_reason(429), "Too Many Requests");
    CHECK_STR(acre_http_reason(299), "Unknown");
#define X(name, number, http, exit, message)                                                       \
    CHECK(acre_http_reason(http)[0] != 'U' || (http) == 422);
    ACRE_ERRORS(X)
#undef X
}

static const struct acre_test tests[] = {
    {"every_error_code_has_its_problem", every_error_code_has_its_problem, 0},
    {"statuses_without_a_code_have_words_of_their_own",
     statuses_without_a_code_have_words_of_their_own, 0},
    {"the_field_is_what_the_text_begins_with", the_field_is_what_the_text_begins_with, 0},
    {"answers_carry_the_problem_type", answers_carry_the_problem_type, 0},
    {"every_status_we_use_has_its_reason", every_status_we_use_has_its_reason, 0},
};

ACRE_TEST_MAIN(tests)
