/* The way of a request to its handler (API-2, SEC-1): paths, methods, who may, how often, what
 * with; each refusal with its status and header. */
#include "api/route.h"
#include "http/problem.h"
#include "support/dies.h"
#include "support/http_kit.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void answer_text(struct acre_call *call, const char *text) {
    struct acre_buf body;
    acre_buf_init(&body, 4096);
    acre_buf_puts(&body, text);
    acre_http_answer(call->exchange, 200, "text/plain", &body);
}

/* "METHOD path user project role p0 p1 keys" */
static void show(void *context, struct acre_call *call) {
    (void)context;
    answer_text(call, acre_arena_printf(call->arena, "%s %s %s %s %s %s %s %d", call->route->method,
                                        call->route->path, call->user.name, call->user.project,
                                        role_name(call->user.role),
                                        call->parameters[0] != NULL ? call->parameters[0] : "-",
                                        call->parameters[1] != NULL ? call->parameters[1] : "-",
                                        (int)json_object_size(call->body)));
}

static void show_logs(void *context, struct acre_call *call) {
    (void)context;
    struct acre_error err = {0};
    uint64_t id;
    if (call_id(call, "id", &id, &err) < 0) {
        acre_problem_answer(call->exchange, &err);
        return;
    }
    const char *stream = call_query(call, "stream");
    answer_text(call, acre_arena_printf(call->arena, "%" PRIu64 " %s %" PRId64 " %d", id,
                                        stream != NULL ? stream : "none",
                                        call_query_i64(call, "offset", -7),
                                        call_query_bool(call, "follow")));
}

static const char *const streams[] = {"stdout", "stderr", NULL};
static const struct field logs_query[] = {
    {.name = "stream", .kinds = ACRE_KIND_STRING, .words = streams},
    {.name = "offset", .kinds = ACRE_KIND_INTEGER, .min = -1000, .max = 1000},
    {.name = "follow", .kinds = ACRE_KIND_BOOL},
    {0},
};
static const struct field find_query[] = {
    {.name = "name", .kinds = ACRE_KIND_STRING, .required = true},
    {0},
};
static const struct field submit_body[] = {
    {.name = "command", .kinds = ACRE_KIND_STRING, .required = true},
    {.name = "gpus", .kinds = ACRE_KIND_NUMBER, .min = 0.1, .max = 64},
    {0},
};

static const struct acre_route routes[] = {
    {"GET", "/jobs", ACRE_ROLE_VIEWER, NULL, NULL, "list", show, 0, NULL},
    {"POST", "/jobs", ACRE_ROLE_USER, NULL, submit_body, "submit", show, 201, NULL},
    {"GET", "/jobs/{id}", ACRE_ROLE_VIEWER, NULL, NULL, "show", show, 0, NULL},
    {"DELETE", "/jobs/{id}", ACRE_ROLE_USER, NULL, NULL, "cancel", show, 202, NULL},
    {"GET", "/jobs/{id}/logs", ACRE_ROLE_VIEWER, logs_query, NULL, "logs", show_logs, 0, NULL},
    {"GET", "/queue/statistics", ACRE_ROLE_VIEWER, NULL, NULL, "statistics", show, 0, NULL},
    {"GET", "/queue/{id}", ACRE_ROLE_VIEWER, NULL, NULL, "one", show, 0, NULL},
    {"DELETE", "/queue/{id}", ACRE_ROLE_USER, NULL, NULL, "cancel", show, 0, NULL},
    {"PUT", "/a/{x}/b/{y}", ACRE_ROLE_OPERATOR, NULL, NULL, "two", show, 0, NULL},
    {"GET", "/find", ACRE_ROLE_VIEWER, find_query, NULL, "find", show, 0, NULL},
    {"GET", "/tokens", ACRE_ROLE_ADMIN, NULL, NULL, "tokens", show, 0, NULL},
    {"GET", "/health", ACRE_ROLE_NONE, NULL, NULL, "health", show, 0, NULL},
    {"GET", "/", ACRE_ROLE_NONE, NULL, NULL, "root", show, 0, NULL},
};

/* The token is the role; "broken" is a store that does not answer. */
static int authenticate(void *context, struct acre_exchange *exchange,
                        const struct acre_http_request *request, struct api_user *ret_user,
                        struct acre_error *err) {
    (void)context;
    (void)request;
    const char *token = acre_http_header(exchange, "Authorization");
    if (token != NULL && strcmp(token, "broken") == 0) {
        return acre_fail(err, ACRE_EUNAVAILABLE, "the store does not answer");
    }
    enum role role;
    if (token == NULL || !role_parse(token, &role)) {
        return acre_fail(err, ACRE_EDENIED, "no valid token");
    }
    *ret_user = (struct api_user){.name = token, .project = "p", .role = role};
    return 0;
}

struct world {
    struct http_kit kit;
    struct acre_router *router;
    uint64_t now_ms;
    unsigned refusals;
    int last_status;
    char last_user[32];
};

static uint64_t now(void *context) {
    struct world *world = context;
    return world->now_ms;
}

static void note_refusal(void *context, const struct acre_http_request *request,
                         const struct api_user *user, int status, const struct acre_error *err) {
    struct world *world = context;
    CHECK(request->path[0] == '/' && err->text[0] != '\0');
    world->refusals++;
    world->last_status = status;
    snprintf(world->last_user, sizeof(world->last_user), "%s", user != NULL ? user->name : "-");
}

static void start(struct world *world, struct acre_limit *requests, struct acre_limit *strangers,
                  struct acre_limit *guesses) {
    struct router_options options = {.routes = routes,
                                     .count = ACRE_COUNT(routes),
                                     .authenticate = authenticate,
                                     .refused = note_refusal,
                                     .context = world,
                                     .requests = requests,
                                     .strangers = strangers,
                                     .guesses = guesses,
                                     .now_ms = now};
    world->router = router_create(&options);
    world->kit.options.handler = router_handle;
    world->kit.options.context = world->router;
    http_kit_start(&world->kit);
}

static void stop(struct world *world) {
    http_kit_stop(&world->kit);
    router_destroy(world->router);
}

/* Ask; what comes back is in `answer`, to be freed. */
static void ask(struct world *world, const char *line, const char *token, const char *body,
                struct http_answer *answer) {
    struct http_client client = http_client_open(&world->kit);
    char request[1024];
    snprintf(request, sizeof(request),
             "%s HTTP/1.1\r\nHost: a\r\n%s%s%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
             line, token != NULL ? "Authorization: " : "", token != NULL ? token : "",
             token != NULL ? "\r\n" : "", strlen(body), body);
    http_client_puts(&client, request);
    REQUIRE(http_client_read(&client, answer));
    http_client_close(&client);
}

static const struct {
    const char *line, *token, *body;
    int status;
    const char *part; /* of the body, or of the head for 405 */
} asked[] = {
    {"GET /jobs", "viewer", "", 200, "GET /jobs viewer p viewer - - 0"},
    {"POST /jobs", "user", "{\"command\":\"x\",\"gpus\":2}", 200, "POST /jobs user p user - - 2"},
    {"GET /jobs/42", "admin", "", 200, "GET /jobs/{id} admin p admin 42 - 0"},
    {"GET /jobs/a%20b", "admin", "", 200, "admin a b - 0"},
    {"GET /queue/statistics", "viewer", "", 200, "GET /queue/statistics viewer"},
    {"GET /queue/7", "viewer", "", 200, "GET /queue/{id} viewer p viewer 7"},
    {"DELETE /queue/statistics", "user", "", 200, "DELETE /queue/{id} user p user statistics"},
    {"PUT /a/1/b/2", "operator", "{}", 200, "operator 1 2 0"},
    {"GET /health", NULL, "", 200, "GET /health   none - - 0"},
    {"GET /health", "nonsense", "", 200, "GET /health   none - - 0"},
    {"GET /", NULL, "", 200, "GET /   none"},
    {"GET /jobs/9/logs?stream=stderr&offset=-5&follow=1", "viewer", "", 200, "9 stderr -5 1"},
    {"GET /jobs/9/logs", "viewer", "", 200, "9 none -7 0"},
    {"GET /jobs/18446744073709551615/logs", "viewer", "", 200, "18446744073709551615 none"},
    {"GET /jobs/18446744073709551616/logs", "viewer", "", 404,
     "id: '18446744073709551616' is not an id"},
    {"GET /jobs/x/logs", "viewer", "", 404, "id: 'x' is not an id; accepted: a number"},
    {"GET /find?name=a", "viewer", "", 200, "GET /find"},

    {"GET /nothing", "admin", "", 404, "there is no route '/nothing'; see /openapi.json"},
    {"GET /jobs/", "admin", "", 404, "there is no route '/jobs/'"},
    {"GET /jobs/1/2", "admin", "", 404, "there is no"},
    {"GET //jobs", "admin", "", 404, "there is no"},
    {"GET /Jobs", "admin", "", 404, "there is no"},
    {"GET /a/1/b/", "admin", "", 404, "there is no"},
    {"PATCH /jobs", "admin", "", 405, "\r\nAllow: GET, HEAD, POST\r\n"},
    {"POST /queue/statistics", "admin", "", 405, "\r\nAllow: GET, HEAD, DELETE\r\n"},
    {"OPTIONS /a/1/b/2", NULL, "", 405, "\r\nAllow: PUT\r\n"},
    {"get /jobs", "admin", "", 405, "\r\nAllow: GET, HEAD, POST\r\n"},

    {"GET /jobs", NULL, "", 401, "\r\nWWW-Authenticate: Bearer realm=\"acre\"\r\n"},
    {"GET /jobs", "nonsense", "", 401, "\r\nWWW-Authenticate: Bearer"},
    {"GET /jobs", "none", "", 401, "\r\nWWW-Authenticate: Bearer"},
    {"GET /jobs", "broken", "", 503, "the store does not answer"},
    {"POST /jobs", NULL, "{nonsense", 401, "\r\nWWW-Authenticate: Bearer"},
    {"POST /jobs", "viewer", "{nonsense", 403,
     "requires the user role; viewer has the viewer role"},
    {"PUT /a/1/b/2", "user", "", 403, "requires the operator role; user has the user role"},
    {"GET /tokens", "operator", "", 403, "requires the admin role; operator has the operator role"},

    {"POST /jobs", "user", "{\"command\":\"x\",\"gpus\":null}", 200,
     "POST /jobs user p user - - 1"}, /* null is absent */
    {"POST /jobs", "user", "{nonsense", 400, "body:1:"},
    {"POST /jobs", "user", "", 400, "\"field\":\"command\""},
    {"POST /jobs", "user", "[]", 400, "body: not an object"},
    {"POST /jobs", "user", "{\"command\":\"x\",\"gpus\":0.05}", 400,
     "gpus: '0.05' is not valid; accepted: a number from 0.1 to 64"},
    {"POST /jobs", "user", "{\"command\":\"x\",\"command\":\"y\"}", 400, "duplicate"},
    {"POST /jobs", "user", "{\"command\":\"x\",\"gpu\":1}", 400,
     "gpu: unknown field; accepted: command, gpus"},
    {"POST /jobs", "user",
     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", 413,
     "nested too deep"},
    {"DELETE /jobs/1", "user", "{\"x\":1}", 400, "x: unknown field; accepted: none"},
    {"GET /jobs?x=1", "viewer", "", 400, "x: unknown query parameter; accepted: none"},
    {"GET /jobs/9/logs?stream=out", "viewer", "", 400,
     "stream: 'out' is not valid; accepted: stdout, stderr"},
    {"GET /jobs/9/logs?offset=-1001", "viewer", "", 400, "offset: '-1001' is not valid"},
    {"GET /find", "viewer", "", 400, "name: required"},
};

static void requests_find_their_route_or_are_told_why_not(void) {
    struct world world = {0};
    start(&world, NULL, NULL, NULL);
    for (size_t i = 0; i < ACRE_COUNT(asked); i++) {
        struct http_answer answer;
        acre_test_context("%s as %s: %s", asked[i].line, asked[i].token, asked[i].body);
        ask(&world, asked[i].line, asked[i].token, asked[i].body, &answer);
        CHECK_EQ(answer.status, asked[i].status);
        CHECK_HAS(asked[i].part[0] == '\r' ? answer.head : answer.body.data, asked[i].part);
        http_answer_free(&answer);
    }
    CHECK_EQ(world.last_status, 400);
    CHECK_STR(world.last_user, "viewer");
    stop(&world);
}

static void head_is_get(void) {
    struct world world = {0};
    start(&world, NULL, NULL, NULL);
    struct http_client client = http_client_open(&world.kit);
    http_client_puts(&client, "HEAD /health HTTP/1.0\r\n\r\n");
    CHECK(http_client_ends(&client));
    CHECK_HAS(client.in.data, "HTTP/1.1 200 OK\r\n");
    CHECK_HAS(client.in.data, "Content-Length: 24\r\n");
    http_client_close(&client);
    stop(&world);
}

static void too_many_requests_of_a_user_wait(void) {
    struct acre_limit_options options = {.keys = 64, .burst = 2, .per_minute = 30};
    struct acre_limit *requests = limit_create(&options);
    struct world world = {0};
    struct acre_limit *strangers = limit_create(&options);
    start(&world, requests, strangers, NULL);
    static const struct {
        uint64_t now_ms;
        const char *path, *token;
        int status;
    } rows[] = {
        {0, "GET /jobs", "user", 200},     {0, "GET /nowhere", "user", 404},
        {0, "GET /jobs", "user", 429},     {0, "GET /nowhere", "user", 429},
        {0, "GET /jobs", "viewer", 200},   {0, "GET /health", "viewer", 200},
        {0, "GET /health", "viewer", 429}, {0, "GET /health", NULL, 200},
        {0, "GET /nowhere", NULL, 404},    {0, "GET /health", NULL, 429},
        {0, "GET /nowhere", NULL, 429},    {0, "PATCH /jobs", NULL, 429},
        {0, "GET /jobs", NULL, 429},       {0, "GET /jobs", "guess", 429},
        {0, "GET /jobs", "operator", 200}, {1000, "GET /jobs", "user", 429},
        {2000, "GET /jobs", "user", 200},  {2000, "GET /health", NULL, 200},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct http_answer answer;
        acre_test_context("row %zu", i);
        world.now_ms = rows[i].now_ms; /* the server waits for us, so this is no race */
        ask(&world, rows[i].path, rows[i].token, "", &answer);
        CHECK_EQ(answer.status, rows[i].status);
        if (rows[i].status == 429) {
            CHECK_HAS(answer.head,
                      rows[i].now_ms == 0 ? "\r\nRetry-After: 2\r\n" : "\r\nRetry-After: 1\r\n");
            CHECK_HAS(answer.body.data, "\"code\":\"RATE\"");
            CHECK_HAS(answer.body.data, "the limit is 30 a minute; try again in ");
        }
        http_answer_free(&answer);
    }
    stop(&world);
    limit_destroy(requests);
    limit_destroy(strangers);
}

/* After three wrong tokens the next wrong one waits; the right one does not. */
static void guessing_tokens_is_slow(void) {
    struct acre_limit_options options = {.keys = 64, .burst = 3, .per_minute = 60};
    struct acre_limit *guesses = limit_create(&options);
    struct world world = {0};
    start(&world, NULL, NULL, guesses);
    static const struct {
        uint64_t now_ms;
        const char *path, *token;
        int status;
    } rows[] = {
        {0, "GET /jobs", "user", 200},     {0, "GET /jobs", "guess", 401},
        {0, "GET /jobs", "guess", 401},    {0, "GET /jobs", "guess", 401},
        {0, "GET /jobs", "guess", 429},    {0, "GET /jobs", "user", 200},
        {0, "GET /health", NULL, 200},     {1000, "GET /jobs", "user", 200},
        {1000, "GET /jobs", "guess", 401}, {1000, "GET /jobs", "guess", 429},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct http_answer answer;
        acre_test_context("row %zu", i);
        world.now_ms = rows[i].now_ms;
        ask(&world, rows[i].path, rows[i].token, "", &answer);
        CHECK_EQ(answer.status, rows[i].status);
        http_answer_free(&answer);
    }
    stop(&world);
    limit_destroy(guesses);
}

/* Every further request over the limit costs a stranger a connection, and a user nothing. */
static void strangers_over_their_limit_are_hung_up_on(void) {
    struct acre_limit_options options = {.keys = 64, .burst = 1, .per_minute = 1};
    struct acre_limit *limits[] = {limit_create(&options), limit_create(&options)};
    struct world world = {0};
    start(&world, limits[0], limits[1], NULL);
    struct http_client client = http_client_open(&world.kit);
    for (int i = 0; i < 20; i++) {
        http_client_puts(&client, "GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    CHECK_EQ(http_client_status(&client), 404);
    CHECK_EQ(http_client_status(&client), 429);
    CHECK(http_client_ends(&client));
    CHECK_EQ(world.refusals, 2);
    http_client_close(&client);
    client = http_client_open(&world.kit);
    static const int statuses[] = {200, 429, 429};
    for (size_t i = 0; i < ACRE_COUNT(statuses); i++) {
        http_client_puts(&client, "GET /jobs HTTP/1.1\r\nHost: a\r\nAuthorization: user\r\n\r\n");
        CHECK_EQ(http_client_status(&client), statuses[i]);
    }
    http_client_close(&client);
    stop(&world);
    limit_destroy(limits[0]);
    limit_destroy(limits[1]);
}

static void a_refusal_names_the_user_also_where_there_is_nothing(void) {
    struct world world = {0};
    start(&world, NULL, NULL, NULL);
    static const struct {
        const char *line, *token, *user;
    } rows[] = {{"POST /nowhere", "user", "user"},
                {"PATCH /jobs", "user", "user"},
                {"POST /nowhere", "guess", "-"},
                {"PATCH /jobs", NULL, "-"},
                {"POST /jobs", NULL, "-"}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct http_answer answer;
        ask(&world, rows[i].line, rows[i].token, "", &answer);
        http_answer_free(&answer);
        acre_test_context("%s as %s", rows[i].line, rows[i].token);
        CHECK_STR(world.last_user, rows[i].user);
    }
    stop(&world);
}

static void roles_have_an_order_and_names(void) {
    enum role role = ACRE_ROLE_NONE;
    CHECK(ACRE_ROLE_VIEWER < ACRE_ROLE_USER && ACRE_ROLE_USER < ACRE_ROLE_OPERATOR &&
          ACRE_ROLE_OPERATOR < ACRE_ROLE_ADMIN);
    CHECK(role_parse("operator", &role) && role == ACRE_ROLE_OPERATOR);
    CHECK(!role_parse("none", &role)); /* nobody can be given it */
    CHECK(!role_parse("root", &role));
    CHECK_STR(role_name(ACRE_ROLE_ADMIN), "admin");
    CHECK(role == ACRE_ROLE_OPERATOR);
}

static void create_with(const struct acre_route *rows, size_t count) {
    struct router_options options = {.routes = rows, .count = count, .authenticate = authenticate};
    router_destroy(router_create(&options));
}

static void create_twins(void) {
    static const struct acre_route twins[] = {
        {"GET", "/a", ACRE_ROLE_NONE, NULL, NULL, "a", show, 0, NULL},
        {"GET", "/a", ACRE_ROLE_NONE, NULL, NULL, "b", show, 0, NULL}};
    create_with(twins, 2);
}

static void create_broken_path(void) {
    static const struct acre_route broken[] = {
        {"GET", "/a/{id", ACRE_ROLE_NONE, NULL, NULL, "a", show, 0, NULL}};
    create_with(broken, 1);
}

static void create_relative_path(void) {
    static const struct acre_route relative[] = {
        {"GET", "a", ACRE_ROLE_NONE, NULL, NULL, "a", show, 0, NULL}};
    create_with(relative, 1);
}

static void a_broken_table_is_a_programmers_error(void) {
    create_with(routes, ACRE_COUNT(routes));
    CHECK(acre_dies(create_twins));
    CHECK(acre_dies(create_broken_path));
    CHECK(acre_dies(create_relative_path));
    router_destroy(NULL);
}

static const struct acre_test tests[] = {
    {"requests_find_their_route_or_are_told_why_not", requests_find_their_route_or_are_told_why_not,
     0},
    {"head_is_get", head_is_get, 0},
    {"too_many_requests_of_a_user_wait", too_many_requests_of_a_user_wait, 0},
    {"guessing_tokens_is_slow", guessing_tokens_is_slow, 0},
    {"strangers_over_their_limit_are_hung_up_on", strangers_over_their_limit_are_hung_up_on, 0},
    {"a_refusal_names_the_user_also_where_there_is_nothing",
     a_refusal_names_the_user_also_where_there_is_nothing, 0},
    {"roles_have_an_order_and_names", roles_have_an_order_and_names, 0},
    {"a_broken_table_is_a_programmers_error", a_broken_table_is_a_programmers_error, 0},
};

ACRE_TEST_MAIN(tests)
