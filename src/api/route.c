/* route.c - paths by segment, and the fixed order in which a request is judged.
 *
 * Matching walks the table and compares segment by segment; a literal segment beats a parameter,
 * from the left, so "/queue/statistics" is not the job "statistics". Some fifty rows differ in
 * their first letters, so a walk costs less than a hash would.
 *
 * The order: who is it, too many requests of this user or of strangers from this address (429),
 * does the path exist (404, 405), did this address guess too many tokens (429), is the client known
 * (401), may that role (403), query, body (400). Nothing of the body is looked at before the client
 * is known. The connection of a stranger over its limit is closed with the answer, so that every
 * further try costs a new one. */
#include "api/route.h"

#include "http/problem.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_BYTES = 128, ALLOW_BYTES = 64, KEY_BYTES = 160, BODY_MAX = 64 * 1024 * 1024 };
enum { BODY_LARGE_KIB = 64 };

const char *const role_names[] = {"none", "viewer", "user", "operator", "admin", NULL};

struct acre_router {
    struct router_options options;
};

const char *role_name(enum role role) {
    ACRE_ASSERT(role <= ACRE_ROLE_ADMIN);
    return role_names[role];
}

bool role_parse(const char *text, enum role *ret_role) {
    for (size_t i = ACRE_ROLE_VIEWER; i <= ACRE_ROLE_ADMIN; i++) {
        if (strcmp(role_names[i], text) == 0) {
            *ret_role = (enum role)i;
            return true;
        }
    }
    return false;
}

static bool is_parameter(struct acre_str segment) {
    return segment.length > 2 && segment.data[0] == '{';
}

static void check_path(const char *path) {
    ACRE_ASSERT(path[0] == '/');
    unsigned parameters = 0;
    struct acre_split split = acre_split_begin(acre_str_from(path), '/');
    struct acre_str part;
    while (acre_split_next(&split, &part)) {
        bool has_brace = memchr(part.data, '{', part.length) != NULL;
        ACRE_ASSERT(!has_brace || (is_parameter(part) && part.data[part.length - 1] == '}'));
        parameters += has_brace;
    }
    ACRE_ASSERT(parameters <= ACRE_ROUTE_PARAMETERS_MAX);
}

struct acre_router *router_create(const struct router_options *options) {
    for (size_t i = 0; i < options->count; i++) {
        const struct acre_route *route = &options->routes[i];
        ACRE_ASSERT(route->method != NULL && route->summary != NULL && route->handler != NULL);
        check_path(route->path);
        for (size_t j = 0; j < i; j++) {
            ACRE_ASSERT(strcmp(route->path, options->routes[j].path) != 0 ||
                        strcmp(route->method, options->routes[j].method) != 0);
        }
    }
    ACRE_ASSERT(options->authenticate != NULL);
    ACRE_ASSERT(options->now_ms != NULL || (options->requests == NULL && options->guesses == NULL &&
                                            options->strangers == NULL && options->bodies == NULL));
    struct acre_router *router = acre_calloc(1, sizeof(*router));
    router->options = *options;
    return router;
}

void router_destroy(struct acre_router *router) {
    free(router);
}

/* Whether the path fits the pattern; then `ret_rank` has a bit for each literal segment, the first
 * in the highest place. */
static bool fits(const char *pattern, const char *path, uint32_t *ret_rank) {
    struct acre_split patterns = acre_split_begin(acre_str_from(pattern), '/');
    struct acre_split paths = acre_split_begin(acre_str_from(path), '/');
    struct acre_str want, have;
    uint32_t rank = 0;
    uint32_t bit = UINT32_C(1) << 31;
    for (;;) {
        bool more = acre_split_next(&patterns, &want);
        if (more != acre_split_next(&paths, &have)) {
            return false;
        }
        if (!more) {
            *ret_rank = rank;
            return true;
        }
        if (is_parameter(want) ? have.length == 0 : !acre_str_equal(want, have)) {
            return false;
        }
        rank |= is_parameter(want) ? 0 : bit;
        bit >>= 1;
    }
}

static void take_parameters(const char *pattern, const char *path, struct acre_arena *arena,
                            const char *ret_parameters[ACRE_ROUTE_PARAMETERS_MAX]) {
    struct acre_split patterns = acre_split_begin(acre_str_from(pattern), '/');
    struct acre_split paths = acre_split_begin(acre_str_from(path), '/');
    struct acre_str want, have;
    size_t count = 0;
    while (acre_split_next(&patterns, &want) && acre_split_next(&paths, &have)) {
        if (is_parameter(want)) {
            char *value = acre_arena_strndup(arena, have.data, have.length);
            for (char *slash = value; (slash = strchr(slash, ACRE_HTTP_SLASH)) != NULL;) {
                *slash = '/';
            }
            ret_parameters[count++] = value;
        }
    }
}

/* HEAD is GET without the body, which http.h leaves out. */
static bool serves(const struct acre_route *route, const char *method) {
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

static const char *list_methods(const struct acre_router *router, const char *path,
                                struct acre_arena *arena) {
    char list[ALLOW_BYTES] = "";
    for (size_t i = 0; i < router->options.count; i++) {
        const struct acre_route *route = &router->options.routes[i];
        uint32_t rank;
        if (!fits(route->path, path, &rank) || strstr(list, route->method) != NULL) {
            continue;
        }
        size_t used = strlen(list);
        bool is_get = strcmp(route->method, "GET") == 0;
        snprintf(list + used, sizeof(list) - used, "%s%s%s", used > 0 ? ", " : "", route->method,
                 is_get ? ", HEAD" : "");
    }
    return acre_arena_strndup(arena, list, strlen(list));
}

int router_match(const struct acre_router *router, const char *method, const char *path,
                 struct acre_arena *arena, const struct acre_route **ret_route,
                 const char *ret_parameters[ACRE_ROUTE_PARAMETERS_MAX], const char **ret_allow,
                 struct acre_error *err) {
    const struct acre_route *best = NULL;
    uint32_t best_rank = 0;
    bool exists = false;
    for (size_t i = 0; i < router->options.count; i++) {
        const struct acre_route *route = &router->options.routes[i];
        uint32_t rank;
        if (!fits(route->path, path, &rank)) {
            continue;
        }
        exists = true;
        if (serves(route, method) && (best == NULL || rank > best_rank)) {
            best = route;
            best_rank = rank;
        }
    }
    if (best != NULL) {
        take_parameters(best->path, path, arena, ret_parameters);
        *ret_route = best;
        return 0;
    }
    char shown[SHOWN_BYTES];
    acre_str_show(acre_str_from(path), shown, sizeof(shown));
    if (!exists) {
        return acre_fail(err, ACRE_ENOTFOUND, "there is no route '%s'; see /openapi.json", shown);
    }
    *ret_allow = list_methods(router, path, arena);
    char shown_method[SHOWN_BYTES];
    return acre_fail(err, ACRE_EUNSUPPORTED, "'%s' does not support %s; accepted: %s", shown,
                     acre_str_show(acre_str_from(method), shown_method, sizeof(shown_method)),
                     *ret_allow);
}

static void refuse(struct acre_router *router, struct acre_call *call, bool is_known, int status,
                   const struct acre_error *err) {
    const struct router_options *options = &router->options;
    if (options->refused != NULL) {
        options->refused(options->context, call->request, is_known ? &call->user : NULL, status,
                         err);
    }
    acre_problem_answer_as(call->exchange, status, err);
}

/* One customer has one IPv4 address, or 2^64 of IPv6; and any process here has 127.0.0.0/8. */
static struct acre_str address_key(const struct acre_http_peer *peer, char key[KEY_BYTES]) {
    struct in6_addr v6;
    struct in_addr v4;
    if (!peer->is_unix && inet_pton(AF_INET6, peer->address, &v6) == 1) {
        memset(v6.s6_addr + 8, 0, 8);
        char text[INET6_ADDRSTRLEN];
        snprintf(key, KEY_BYTES, "address:%s/64", inet_ntop(AF_INET6, &v6, text, sizeof(text)));
    } else if (!peer->is_unix && inet_pton(AF_INET, peer->address, &v4) == 1 &&
               ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET) {
        snprintf(key, KEY_BYTES, "address:127.0.0.0/8");
    } else {
        snprintf(key, KEY_BYTES, "address:%s", peer->address);
    }
    return acre_str_from(key);
}

static struct acre_str key_of(const struct acre_call *call, bool is_known, char key[KEY_BYTES]) {
    if (!is_known) {
        return address_key(call->request->peer, key);
    }
    snprintf(key, KEY_BYTES, "user:%.*s", KEY_BYTES - 8, call->user.name);
    return acre_str_from(key);
}

/* 429, with how long to wait; whole seconds. */
static void put_off(struct acre_router *router, struct acre_call *call, bool is_known,
                    uint64_t wait_s, const struct acre_error *err) {
    char seconds[24];
    snprintf(seconds, sizeof(seconds), "%" PRIu64, wait_s);
    acre_http_add_header(call->exchange, "Retry-After", seconds);
    if (!is_known) {
        acre_http_hang_up(call->exchange);
    }
    refuse(router, call, is_known, 429, err);
}

/* Take from the bucket of the caller. False: it is empty, and that is answered. */
static bool take(struct acre_router *router, struct acre_call *call, bool is_known,
                 struct acre_limit *limit) {
    const struct router_options *options = &router->options;
    char key[KEY_BYTES];
    if (limit == NULL) {
        return true;
    }
    uint64_t wait_ms =
        limit_take(limit, key_of(call, is_known, key), options->now_ms(options->context));
    if (wait_ms == 0) {
        return true;
    }
    struct acre_error err;
    uint64_t wait_s = (wait_ms + 999) / 1000;
    acre_fail(&err, ACRE_ELIMIT,
              "too many requests %s%s; the limit is %u a minute; try again in %" PRIu64 " s%s",
              is_known ? "by user " : "without a valid token from ",
              is_known ? call->user.name : call->request->peer->address, limit_per_minute(limit),
              wait_s, is_known ? "" : ", or send a token");
    put_off(router, call, is_known, wait_s, &err);
    return false;
}

/* Others wait while a large body is parsed, whether it is refused afterwards or not. */
static bool take_body(struct acre_router *router, struct acre_call *call) {
    const struct router_options *options = &router->options;
    uint32_t kib = (uint32_t)(call->request->body.length >> 10);
    bool is_known = call->user.role != ACRE_ROLE_NONE; /* some routes are open to strangers */
    char key[KEY_BYTES];
    if (options->bodies == NULL || kib < BODY_LARGE_KIB || call->user.role >= ACRE_ROLE_OPERATOR) {
        return true;
    }
    uint64_t now_ms = options->now_ms(options->context);
    struct acre_str who = key_of(call, is_known, key);
    uint64_t wait_ms = limit_ask(options->bodies, who, kib, now_ms);
    if (wait_ms == 0) {
        limit_charge(options->bodies, who, kib, now_ms);
        return true;
    }
    struct acre_error err;
    uint64_t wait_s = (wait_ms + 999) / 1000;
    acre_fail(&err, ACRE_ELIMIT,
              "too many large requests from %s: this one has %u KiB; the limit is %u MiB a minute "
              "in bodies above %d KiB; try again in %" PRIu64 " s",
              is_known ? call->user.name : call->request->peer->address, kib,
              limit_per_minute(options->bodies) >> 10, BODY_LARGE_KIB, wait_s);
    put_off(router, call, is_known, wait_s, &err);
    return false;
}

/* Only a failed log-in waits: a right token is no lucky guess (its secret has 256 bits), and a
 * flood of wrong ones must not lock out other users of the same address. */
static void refuse_stranger(struct acre_router *router, struct acre_call *call,
                            const struct acre_error *err) {
    if (!take(router, call, false, router->options.guesses)) {
        return;
    }
    int status = err->code == ACRE_EDENIED ? 401 : acre_error_http(err->code);
    if (status == 401) {
        acre_http_add_header(call->exchange, "WWW-Authenticate", "Bearer realm=\"acre\"");
    }
    refuse(router, call, false, status, err);
}

/* Who it is, within the limits, and where to. False: answered, or put off. */
static bool admit(struct acre_router *router, struct acre_call *call) {
    const struct router_options *options = &router->options;
    const struct acre_http_request *request = call->request;
    struct acre_error unknown = {0};
    struct acre_error err = {0};
    const char *allow = NULL;
    bool is_known = options->authenticate(options->context, call->exchange, request, &call->user,
                                          &unknown) == 0;
    int status = is_known ? acre_http_know(call->exchange, call->user.name,
                                           call->user.role >= ACRE_ROLE_OPERATOR, &err)
                          : 0;
    if (status == ACRE_HTTP_LATER) {
        return false;
    }
    if (status != 0) {
        acre_http_hang_up(call->exchange);
        refuse(router, call, true, status, &err);
        return false;
    }
    if (!take(router, call, is_known, is_known ? options->requests : options->strangers)) {
        return false;
    }
    int r = router_match(router, request->method, request->path, request->arena, &call->route,
                         call->parameters, &allow, &err);
    if (r < 0) {
        if (r == ACRE_EUNSUPPORTED) {
            acre_http_add_header(call->exchange, "Allow", allow);
        }
        refuse(router, call, is_known, r == ACRE_EUNSUPPORTED ? 405 : 404, &err);
        return false;
    }
    if (!is_known && call->route->role != ACRE_ROLE_NONE) {
        refuse_stranger(router, call, &unknown);
        return false;
    }
    return true;
}

/* Null counts as absent (field.h), and no handler has to think of it. */
static void drop_nulls(json_t *body) {
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(body, next, key, value) {
        if (json_is_null(value)) {
            json_object_del(body, key);
        }
    }
}

/* Role, query and body. */
static int check(struct acre_call *call, struct acre_error *err) {
    const struct acre_route *route = call->route;
    if (call->user.role < route->role) {
        return acre_fail(err, ACRE_EDENIED, "requires the %s role; %s has the %s role",
                         role_name(route->role), call->user.name, role_name(call->user.role));
    }
    int r = fields_check_query(route->query, call->exchange, err);
    if (r == 0 && call->request->body.length > 0) {
        r = acre_json_parse("body", call->request->body, BODY_MAX, &call->body, err);
    }
    if (r == 0) {
        r = fields_check_body(route->body, call->body, err);
    }
    if (r == 0) {
        drop_nulls(call->body);
    }
    return r;
}

void router_handle(void *context, struct acre_exchange *exchange,
                   const struct acre_http_request *request) {
    struct acre_router *router = context;
    struct acre_call *call = acre_arena_alloc(request->arena, sizeof(*call));
    struct acre_error err = {0};
    call->exchange = exchange;
    call->request = request;
    call->arena = request->arena;
    call->user = (struct api_user){.name = "", .project = ""};
    if (!admit(router, call) || !take_body(router, call)) {
        return;
    }
    int r = check(call, &err);
    json_t *body = call->body; /* the call may be gone after the handler */
    if (r < 0) {
        refuse(router, call, true, acre_error_http(r), &err);
    } else {
        call->route->handler(router->options.context, call);
    }
    json_decref(body);
}

const char *call_parameter(const struct acre_call *call, const char *name) {
    struct acre_split split = acre_split_begin(acre_str_from(call->route->path), '/');
    struct acre_str part;
    size_t index = 0;
    while (acre_split_next(&split, &part)) {
        if (!is_parameter(part)) {
            continue;
        }
        if (acre_str_is((struct acre_str){part.data + 1, part.length - 2}, name)) {
            return call->parameters[index];
        }
        index++;
    }
    acre_assert_failed(name, __FILE__, __LINE__, __func__);
}

int call_id(const struct acre_call *call, const char *name, uint64_t *ret_id,
            struct acre_error *err) {
    const char *text = call_parameter(call, name);
    uint64_t id = 0;
    bool ok = true;
    for (const char *c = text; *c != '\0' && ok; c++) {
        ok = *c >= '0' && *c <= '9' && !__builtin_mul_overflow(id, UINT64_C(10), &id) &&
             !__builtin_add_overflow(id, (uint64_t)(*c - '0'), &id);
    }
    if (!ok) {
        char shown[SHOWN_BYTES];
        return acre_fail(err, ACRE_ENOTFOUND, "%s: '%s' is not an id; accepted: a number", name,
                         acre_str_show(acre_str_from(text), shown, sizeof(shown)));
    }
    *ret_id = id;
    return 0;
}

const char *call_query(const struct acre_call *call, const char *key) {
    return acre_http_query(call->exchange, key);
}

bool call_query_bool(const struct acre_call *call, const char *key) {
    const char *text = acre_http_query(call->exchange, key);
    return text != NULL && (strcmp(text, "1") == 0 || strcmp(text, "true") == 0);
}

int64_t call_query_i64(const struct acre_call *call, const char *key, int64_t absent) {
    const char *text = acre_http_query(call->exchange, key);
    return text != NULL ? strtoll(text, NULL, 10) : absent;
}
