/* The OpenAPI document (API-2): well formed, and every route, parameter and field of the table is
 * in it. */
#include "api/openapi.h"
#include "core/json.h"
#include "support/test.h"

#include <stdio.h>

static void handle(void *context, struct acre_call *call) {
    (void)context;
    (void)call;
}

static const char *const words[] = {"low", "high", NULL};
static const struct field query[] = {
    {.name = "limit", .kinds = ACRE_KIND_INTEGER, .min = 1, .max = 1000, .help = "how many"},
    {.name = "since", .kinds = ACRE_KIND_DURATION | ACRE_KIND_TIME, .required = true},
    {.name = "all", .kinds = ACRE_KIND_BOOL},
    {0},
};
static const struct field body[] = {
    {.name = "command", .kinds = ACRE_KIND_STRING | ACRE_KIND_STRINGS, .required = true},
    {.name = "gpus", .kinds = ACRE_KIND_NUMBER, .min = 0.1, .max = 64},
    {.name = "environment", .kinds = ACRE_KIND_MAP},
    {.name = "memory", .kinds = ACRE_KIND_MEMORY},
    {.name = "priority", .kinds = ACRE_KIND_STRING, .words = words},
    {.name = "policy", .kinds = ACRE_KIND_OBJECT},
    {.name = "rows", .kinds = ACRE_KIND_ARRAY},
    {0},
};
static const struct acre_route routes[] = {
    {"GET", "/jobs", ACRE_ROLE_VIEWER, query, NULL, "List jobs.", handle, 0, NULL},
    {"GET", "/health/live", ACRE_ROLE_NONE, NULL, NULL, "Alive?", handle, 204, NULL},
    {"POST", "/jobs", ACRE_ROLE_USER, NULL, body, "Submit.", handle, 201, NULL},
    {"GET", "/jobs/{id}/logs/{name}", ACRE_ROLE_VIEWER, NULL, NULL, "Logs.", handle, 0,
     "text/plain"},
    {"PATCH", "/jobs/{id}", ACRE_ROLE_USER, NULL, query, "Change.", handle, 0, NULL},
};

static json_t *write_document(void) {
    struct acre_buf buf;
    struct acre_error err = {0};
    json_t *root = NULL;
    acre_buf_init(&buf, 1 << 20);
    REQUIRE_EQ(openapi_write(routes, ACRE_COUNT(routes), "1.2.3", &buf), 0);
    acre_json_parse("openapi", (struct acre_str){buf.data, buf.length}, 1 << 20, &root, &err);
    CHECK_STR(err.text, "");
    REQUIRE(root != NULL);
    acre_buf_finish(&buf);
    return root;
}

/* "paths./jobs.get" would not do: paths have dots; so a list of keys. */
static json_t *dig(json_t *value, const char *const *keys) {
    for (; *keys != NULL && value != NULL; keys++) {
        value = json_is_array(value) ? json_array_get(value, (size_t)(**keys - '0'))
                                     : json_object_get(value, *keys);
    }
    return value;
}
#define DIG(root, ...) dig(root, (const char *const[]){__VA_ARGS__, NULL})

static const char *text_at(json_t *value) {
    return json_is_string(value) ? json_string_value(value) : "(no string)";
}

static void every_route_is_in_the_document(void) {
    static const char *const methods[] = {"get", "get", "post", "get", "patch"};
    json_t *root = write_document();
    CHECK_STR(text_at(DIG(root, "openapi")), "3.1.0");
    CHECK_STR(text_at(DIG(root, "info", "version")), "1.2.3");
    size_t count = 0;
    const char *path;
    json_t *item;
    json_object_foreach(json_object_get(root, "paths"), path, item) {
        count += json_object_size(item);
    }
    CHECK_U64(count, ACRE_COUNT(routes)); /* and nothing else */
    for (size_t i = 0; i < ACRE_COUNT(routes); i++) {
        acre_test_context("%s %s", methods[i], routes[i].path);
        json_t *operation = DIG(root, "paths", routes[i].path, methods[i]);
        CHECK_STR(text_at(DIG(operation, "summary")), routes[i].summary);
        CHECK_STR(text_at(DIG(operation, "x-acre-role")), role_name(routes[i].role));
        CHECK_EQ(json_array_size(DIG(operation, "security")),
                 routes[i].role == ACRE_ROLE_NONE ? 0 : 2);
        CHECK((DIG(operation, "requestBody") != NULL) == (routes[i].body != NULL));
        CHECK_STR(text_at(DIG(operation, "responses", "default", "$ref")),
                  "#/components/responses/Problem");
    }
    json_decref(root);
}

static void fields_become_schemas(void) {
    json_t *root = write_document();
    json_t *list = DIG(root, "paths", "/jobs", "get", "parameters");
    CHECK_U64(json_array_size(list), 3);
    CHECK_STR(text_at(DIG(list, "0", "name")), "limit");
    CHECK_STR(text_at(DIG(list, "0", "schema", "description")), "how many");
    CHECK_EQ(json_integer_value(DIG(list, "0", "schema", "anyOf", "0", "maximum")), 1000);
    CHECK(json_is_true(DIG(list, "1", "required")));
    CHECK_U64(json_array_size(DIG(list, "1", "schema", "anyOf")), 2);
    json_t *schema =
        DIG(root, "paths", "/jobs", "post", "requestBody", "content", "application/json", "schema");
    CHECK(json_is_false(DIG(schema, "additionalProperties")));
    CHECK_U64(json_object_size(DIG(schema, "properties")), ACRE_COUNT(body) - 1);
    CHECK_STR(text_at(DIG(schema, "required", "0")), "command");
    CHECK_U64(json_array_size(DIG(schema, "required")), 1);
    CHECK_STR(text_at(DIG(schema, "properties", "command", "anyOf", "1", "items", "type")),
              "string");
    CHECK_NEAR(json_number_value(DIG(schema, "properties", "gpus", "anyOf", "0", "minimum")), 0.1,
               1e-9);
    CHECK_STR(text_at(DIG(schema, "properties", "priority", "anyOf", "0", "enum", "1")), "high");
    CHECK_U64(json_array_size(DIG(schema, "properties", "memory", "anyOf")), 2);
    CHECK_STR(text_at(DIG(schema, "properties", "environment", "anyOf", "0", "additionalProperties",
                          "type")),
              "string");
    json_decref(root);
}

static void answers_and_schemes_are_described(void) {
    json_t *root = write_document();
    json_t *logs = DIG(root, "paths", "/jobs/{id}/logs/{name}", "get");
    CHECK_STR(text_at(DIG(logs, "operationId")), "get_jobs_id_logs_name");
    CHECK_STR(text_at(DIG(logs, "parameters", "0", "in")), "path");
    CHECK_STR(text_at(DIG(logs, "parameters", "1", "name")), "name");
    CHECK_STR(text_at(DIG(logs, "responses", "200", "content", "text/plain", "schema", "type")),
              "string");
    CHECK(DIG(root, "paths", "/jobs", "post", "responses", "201") != NULL);
    CHECK(DIG(root, "paths", "/health/live", "get", "responses", "204", "content") == NULL);
    CHECK(DIG(root, "paths", "/health/live", "get", "responses", "401") == NULL);
    CHECK_STR(text_at(DIG(root, "components", "securitySchemes", "bearer", "scheme")), "bearer");
    CHECK_STR(text_at(DIG(root, "components", "securitySchemes", "token", "name")), "X-Auth-Token");
    CHECK(DIG(root, "components", "schemas", "Problem", "properties", "field") != NULL);
    CHECK_STR(text_at(DIG(root, "components", "responses", "Problem", "content",
                          "application/problem+json", "schema", "$ref")),
              "#/components/schemas/Problem");
    json_decref(root);
}

static void a_buffer_too_small_is_an_error(void) {
    struct acre_buf buf;
    acre_buf_init(&buf, 1000);
    CHECK_EQ(openapi_write(routes, ACRE_COUNT(routes), "1", &buf), ACRE_ELIMIT);
    acre_buf_finish(&buf);
}

static const struct acre_test tests[] = {
    {"every_route_is_in_the_document", every_route_is_in_the_document, 0},
    {"fields_become_schemas", fields_become_schemas, 0},
    {"answers_and_schemes_are_described", answers_and_schemes_are_described, 0},
    {"a_buffer_too_small_is_an_error", a_buffer_too_small_is_an_error, 0},
};

ACRE_TEST_MAIN(tests)
