/* Routes: any path gets a route or a refusal that can be shown; any JSON body is accepted only if
 * every field of it is one of the table's and of a kind that the row names.
 *
 * The input is a path, a LF, a query value, a LF, a body. */
#include "api/route.h"
#include "fuzz.h"

enum { INPUT_MAX = 8192, ARENA_MAX = 1 << 20 };

static void handle(void *context, struct acre_call *call) {
    (void)context;
    (void)call;
}

static int authenticate(void *context, struct acre_exchange *exchange,
                        const struct acre_http_request *request, struct api_user *ret_user,
                        struct acre_error *err) {
    (void)context;
    (void)exchange;
    (void)request;
    (void)ret_user;
    return acre_fail(err, ACRE_EDENIED, "nobody");
}

static const struct acre_route routes[] = {
    {"GET", "/jobs", ACRE_ROLE_VIEWER, NULL, NULL, "list", handle, 0, NULL},
    {"GET", "/jobs/{id}", ACRE_ROLE_VIEWER, NULL, NULL, "show", handle, 0, NULL},
    {"DELETE", "/jobs/{id}", ACRE_ROLE_USER, NULL, NULL, "cancel", handle, 0, NULL},
    {"GET", "/jobs/statistics", ACRE_ROLE_VIEWER, NULL, NULL, "statistics", handle, 0, NULL},
    {"GET", "/jobs/{id}/logs/{name}", ACRE_ROLE_VIEWER, NULL, NULL, "logs", handle, 0, NULL},
    {"GET", "/", ACRE_ROLE_NONE, NULL, NULL, "root", handle, 0, NULL},
};

static const char *const words[] = {"low", "normal", "high", NULL};
static const struct field fields[] = {
    {.name = "command", .kinds = ACRE_KIND_STRING | ACRE_KIND_STRINGS, .max_length = 20},
    {.name = "gpus", .kinds = ACRE_KIND_NUMBER, .min = 0.1, .max = 64},
    {.name = "count", .kinds = ACRE_KIND_INTEGER, .min = -5, .max = 5},
    {.name = "priority", .kinds = ACRE_KIND_STRING, .words = words},
    {.name = "hold", .kinds = ACRE_KIND_BOOL},
    {.name = "environment", .kinds = ACRE_KIND_MAP, .max_length = 2},
    {.name = "limit", .kinds = ACRE_KIND_DURATION},
    {.name = "memory", .kinds = ACRE_KIND_MEMORY},
    {.name = "begin", .kinds = ACRE_KIND_TIME},
    {0},
};

static void try_path(const char *method, struct acre_str path) {
    static const struct router_options options = {
        .routes = routes, .count = ACRE_COUNT(routes), .authenticate = authenticate};
    struct acre_router *router = router_create(&options);
    struct acre_arena *arena = acre_arena_create(ARENA_MAX);
    const struct acre_route *route = NULL;
    const char *parameters[ACRE_ROUTE_PARAMETERS_MAX] = {0};
    const char *allow = NULL;
    struct acre_error err = {0};
    const char *text = acre_arena_strndup(arena, path.data, path.length);
    int r = router_match(router, method, text, arena, &route, parameters, &allow, &err);
    if (r == 0) {
        struct acre_call call = {.route = route};
        memcpy(call.parameters, parameters, sizeof(parameters));
        uint64_t id = 0;
        if (strstr(route->path, "{id}") != NULL) {
            ACRE_ASSERT(call_parameter(&call, "id")[0] != '\0');
            int parsed = call_id(&call, "id", &id, &err);
            ACRE_ASSERT(parsed == 0 || parsed == ACRE_ENOTFOUND);
        }
    } else {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT((r == ACRE_EUNSUPPORTED) == (allow != NULL));
    }
    acre_arena_destroy(arena);
    router_destroy(router);
}

/* What was accepted, asked again in other words. */
static void check_accepted(const json_t *body) {
    const json_t *gpus = json_object_get(body, "gpus");
    const json_t *count = json_object_get(body, "count");
    const json_t *command = json_object_get(body, "command");
    const json_t *limit = json_object_get(body, "limit");
    const json_t *begin = json_object_get(body, "begin");
    uint64_t value = 0;
    ACRE_ASSERT(json_object_size(body) <= ACRE_COUNT(fields) - 1);
    ACRE_ASSERT(gpus == NULL || json_is_null(gpus) ||
                (json_number_value(gpus) >= 0.1 && json_number_value(gpus) <= 64));
    ACRE_ASSERT(count == NULL || json_is_null(count) ||
                (json_integer_value(count) >= -5 && json_integer_value(count) <= 5));
    ACRE_ASSERT(!json_is_string(command) || json_string_length(command) <= 20);
    ACRE_ASSERT(!json_is_array(command) || json_array_size(command) <= 20);
    ACRE_ASSERT(limit == NULL || json_is_null(limit) || field_duration(limit, &value));
    ACRE_ASSERT(begin == NULL || json_is_null(begin) || field_time(begin, &value));
}

static void try_body(struct acre_str text) {
    struct acre_error err = {0};
    json_t *body = NULL;
    if (acre_json_parse("body", text, INPUT_MAX, &body, &err) < 0) {
        return;
    }
    int r = fields_check_body(fields, body, &err);
    if (r == 0) {
        check_accepted(body);
    } else {
        acre_fuzz_check_error(&err, r);
    }
    json_decref(body);
}

static void try_texts(struct acre_str text) {
    char copy[256];
    if (!acre_str_copy(copy, sizeof(copy), text)) {
        return;
    }
    for (const struct field *field = fields; field->name != NULL; field++) {
        struct acre_error err = {0};
        int r = field_check_text(field, copy, &err);
        if (r < 0) {
            acre_fuzz_check_error(&err, r);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > INPUT_MAX || (size > 0 && memchr(data, 0, size) != NULL)) {
        return 0; /* http.h lets no NUL through */
    }
    struct acre_split split = acre_split_begin((struct acre_str){(const char *)data, size}, '\n');
    struct acre_str path, text;
    if (acre_split_next(&split, &path) && path.length > 0) {
        try_path(path.data[path.length - 1] == '!' ? "DELETE" : "GET", path);
    }
    if (acre_split_next(&split, &text)) {
        try_texts(text);
        try_body(split.rest);
    }
    return 0;
}
