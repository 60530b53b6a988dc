/* openapi.c - the table walked once per path; every field row becomes a JSON schema.
 *
 * A field that accepts several kinds becomes anyOf. Answers are described by their status and
 * content type only; failures are one shared response, the problem object. */
#include "api/openapi.h"

#include "core/json.h"
#include "http/problem.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 128, METHOD_BYTES = 16 };

static void write_type(struct acre_json *json, const char *type) {
    acre_json_object(json);
    acre_json_put_string(json, "type", type);
}

static void write_number(struct acre_json *json, const char *type, const struct field *field) {
    bool is_default = field->min == 0 && field->max == 0;
    double max = is_default ? ACRE_FIELD_NUMBER_MAX : field->max;
    int decimals = field->min == (double)(int64_t)field->min && max == (double)(int64_t)max ? 0 : 3;
    write_type(json, type);
    acre_json_put_double(json, "minimum", field->min, decimals);
    acre_json_put_double(json, "maximum", max, decimals);
    acre_json_object_end(json);
}

static void write_string(struct acre_json *json, const struct field *field) {
    write_type(json, "string");
    if (field->words != NULL) {
        acre_json_key(json, "enum");
        acre_json_array(json);
        for (size_t i = 0; field->words[i] != NULL; i++) {
            acre_json_string(json, field->words[i]);
        }
        acre_json_array_end(json);
    } else {
        acre_json_put_u64(json, "maxLength",
                          field->max_length != 0 ? field->max_length : ACRE_FIELD_LENGTH_MAX);
    }
    acre_json_object_end(json);
}

/* A list or an object of strings. */
static void write_strings(struct acre_json *json, const struct field *field, bool is_list) {
    write_type(json, is_list ? "array" : "object");
    acre_json_key(json, is_list ? "items" : "additionalProperties");
    write_type(json, "string");
    acre_json_object_end(json);
    acre_json_put_u64(json, is_list ? "maxItems" : "maxProperties",
                      field->max_length != 0 ? field->max_length : ACRE_FIELD_ITEMS_MAX);
    acre_json_object_end(json);
}

/* A text with a unit; bodies may have a bare number instead. */
static void write_unit(struct acre_json *json, const char *example, const char *number,
                       bool in_query) {
    write_type(json, "string");
    acre_json_key(json, "examples");
    acre_json_array(json);
    acre_json_string(json, example);
    acre_json_array_end(json);
    acre_json_object_end(json);
    if (!in_query) {
        write_type(json, number);
        acre_json_put_u64(json, "minimum", 0);
        acre_json_object_end(json);
    }
}

static void write_kind(struct acre_json *json, const struct field *field, enum field_kind kind,
                       bool in_query) {
    switch (kind) {
    case ACRE_KIND_STRING:
        write_string(json, field);
        break;
    case ACRE_KIND_INTEGER:
        write_number(json, "integer", field);
        break;
    case ACRE_KIND_NUMBER:
        write_number(json, "number", field);
        break;
    case ACRE_KIND_STRINGS:
    case ACRE_KIND_MAP:
        write_strings(json, field, kind == ACRE_KIND_STRINGS);
        break;
    case ACRE_KIND_DURATION:
        write_unit(json, "2h30m", "number", in_query);
        break;
    case ACRE_KIND_MEMORY:
        write_unit(json, "20GiB", "integer", in_query);
        break;
    case ACRE_KIND_TIME:
        write_type(json, "string");
        acre_json_put_string(json, "format", "date-time");
        acre_json_object_end(json);
        break;
    case ACRE_KIND_BOOL:
    case ACRE_KIND_OBJECT:
    case ACRE_KIND_ARRAY:
        write_type(json, kind == ACRE_KIND_BOOL     ? "boolean"
                         : kind == ACRE_KIND_OBJECT ? "object"
                                                    : "array");
        acre_json_object_end(json);
        break;
    }
}

static void write_schema(struct acre_json *json, const struct field *field, bool in_query) {
    acre_json_object(json);
    acre_json_key(json, "anyOf");
    acre_json_array(json);
    for (uint32_t bit = 1; bit <= ACRE_KIND_ARRAY; bit <<= 1) {
        if ((field->kinds & bit) != 0) {
            write_kind(json, field, (enum field_kind)bit, in_query);
        }
    }
    acre_json_array_end(json);
    if (field->help != NULL) {
        acre_json_put_string(json, "description", field->help);
    }
    acre_json_object_end(json);
}

static void write_path_parameters(struct acre_json *json, const char *path) {
    struct acre_split split = acre_split_begin(acre_str_from(path), '/');
    struct acre_str part;
    while (acre_split_next(&split, &part)) {
        if (part.length < 3 || part.data[0] != '{') {
            continue;
        }
        acre_json_object(json);
        acre_json_key(json, "name");
        acre_json_str(json, (struct acre_str){part.data + 1, part.length - 2});
        acre_json_put_string(json, "in", "path");
        acre_json_put_bool(json, "required", true);
        acre_json_key(json, "schema");
        write_type(json, "string");
        acre_json_object_end(json);
        acre_json_object_end(json);
    }
}

static void write_parameters(struct acre_json *json, const struct acre_route *route) {
    acre_json_key(json, "parameters");
    acre_json_array(json);
    write_path_parameters(json, route->path);
    for (const struct field *f = route->query; f != NULL && f->name != NULL; f++) {
        acre_json_object(json);
        acre_json_put_string(json, "name", f->name);
        acre_json_put_string(json, "in", "query");
        acre_json_put_bool(json, "required", f->required);
        acre_json_key(json, "schema");
        write_schema(json, f, true);
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
}

static void write_body_schema(struct acre_json *json, const struct field *fields) {
    bool has_required = false;
    write_type(json, "object");
    acre_json_put_bool(json, "additionalProperties", false);
    acre_json_key(json, "properties");
    acre_json_object(json);
    for (const struct field *f = fields; f->name != NULL; f++) {
        acre_json_key(json, f->name);
        write_schema(json, f, false);
        has_required = has_required || f->required;
    }
    acre_json_object_end(json);
    if (has_required) {
        acre_json_key(json, "required");
        acre_json_array(json);
        for (const struct field *f = fields; f->name != NULL; f++) {
            if (f->required) {
                acre_json_string(json, f->name);
            }
        }
        acre_json_array_end(json);
    }
    acre_json_object_end(json);
}

/* "content": {type: {"schema": ...}} */
static void begin_content(struct acre_json *json, const char *type) {
    acre_json_key(json, "content");
    acre_json_object(json);
    acre_json_key(json, type);
    acre_json_object(json);
    acre_json_key(json, "schema");
}

static void end_content(struct acre_json *json) {
    acre_json_object_end(json);
    acre_json_object_end(json);
}

static void write_request_body(struct acre_json *json, const struct acre_route *route) {
    bool is_required = false;
    for (const struct field *f = route->body; f->name != NULL; f++) {
        is_required = is_required || f->required;
    }
    acre_json_key(json, "requestBody");
    acre_json_object(json);
    acre_json_put_bool(json, "required", is_required);
    begin_content(json, "application/json");
    write_body_schema(json, route->body);
    end_content(json);
    acre_json_object_end(json);
}

static void write_reference(struct acre_json *json, const char *key, const char *reference) {
    acre_json_key(json, key);
    acre_json_object(json);
    acre_json_put_string(json, "$ref", reference);
    acre_json_object_end(json);
}

static void write_responses(struct acre_json *json, const struct acre_route *route) {
    int status = route->status != 0 ? route->status : 200;
    char text[16];
    snprintf(text, sizeof(text), "%d", status);
    acre_json_key(json, "responses");
    acre_json_object(json);
    acre_json_key(json, text);
    acre_json_object(json);
    acre_json_put_string(json, "description", acre_http_reason(status));
    if (status != 204) {
        const char *type = route->content_type != NULL ? route->content_type : "application/json";
        bool is_json = strcmp(type, "application/json") == 0;
        begin_content(json, type);
        write_type(json, is_json ? "object" : "string");
        acre_json_object_end(json);
        end_content(json);
    }
    acre_json_object_end(json);
    if (route->role != ACRE_ROLE_NONE) {
        write_reference(json, "401", "#/components/responses/Problem");
        write_reference(json, "403", "#/components/responses/Problem");
    }
    write_reference(json, "default", "#/components/responses/Problem");
    acre_json_object_end(json);
}

static void write_security(struct acre_json *json, const struct acre_route *route) {
    static const char *const schemes[] = {"bearer", "token"};
    acre_json_key(json, "security");
    acre_json_array(json);
    for (size_t i = 0; route->role != ACRE_ROLE_NONE && i < ACRE_COUNT(schemes); i++) {
        acre_json_object(json);
        acre_json_key(json, schemes[i]);
        acre_json_array(json);
        acre_json_array_end(json);
        acre_json_object_end(json);
    }
    acre_json_array_end(json);
}

/* "get_jobs_id_logs" */
static void write_operation_id(struct acre_json *json, const struct acre_route *route) {
    char name[NAME_BYTES];
    size_t used = 0;
    for (const char *c = route->method; *c != '\0' && used + 1 < sizeof(name); c++) {
        name[used++] = (char)tolower((unsigned char)*c);
    }
    for (const char *c = route->path; *c != '\0' && used + 1 < sizeof(name); c++) {
        if (isalnum((unsigned char)*c)) {
            name[used++] = *c;
        } else if (name[used - 1] != '_' && c[1] != '\0') {
            name[used++] = '_';
        }
    }
    name[used] = '\0';
    acre_json_put_string(json, "operationId", name);
}

static void write_operation(struct acre_json *json, const struct acre_route *route) {
    char method[METHOD_BYTES];
    snprintf(method, sizeof(method), "%s", route->method);
    for (char *c = method; *c != '\0'; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    acre_json_key(json, method);
    acre_json_object(json);
    write_operation_id(json, route);
    acre_json_put_string(json, "summary", route->summary);
    acre_json_put_string(json, "x-acre-role", role_name(route->role));
    write_security(json, route);
    write_parameters(json, route);
    if (route->body != NULL) {
        write_request_body(json, route);
    }
    write_responses(json, route);
    acre_json_object_end(json);
}

static bool is_first_of_path(const struct acre_route *routes, size_t index) {
    for (size_t i = 0; i < index; i++) {
        if (strcmp(routes[i].path, routes[index].path) == 0) {
            return false;
        }
    }
    return true;
}

static void write_paths(struct acre_json *json, const struct acre_route *routes, size_t count) {
    acre_json_key(json, "paths");
    acre_json_object(json);
    for (size_t i = 0; i < count; i++) {
        if (!is_first_of_path(routes, i)) {
            continue;
        }
        acre_json_key(json, routes[i].path);
        acre_json_object(json);
        for (size_t j = i; j < count; j++) {
            if (strcmp(routes[j].path, routes[i].path) == 0) {
                write_operation(json, &routes[j]);
            }
        }
        acre_json_object_end(json);
    }
    acre_json_object_end(json);
}

static void write_problem_schema(struct acre_json *json) {
    static const struct {
        const char *name, *type;
    } members[] = {
        {"type", "string"},   {"title", "string"}, {"status", "integer"},
        {"detail", "string"}, {"code", "string"},  {"field", "string"},
    };
    acre_json_key(json, "schemas");
    acre_json_object(json);
    acre_json_key(json, "Problem");
    write_type(json, "object");
    acre_json_put_string(json, "description", "RFC 9457; `code` names the kind of failure.");
    acre_json_key(json, "properties");
    acre_json_object(json);
    for (size_t i = 0; i < ACRE_COUNT(members); i++) {
        acre_json_key(json, members[i].name);
        write_type(json, members[i].type);
        acre_json_object_end(json);
    }
    acre_json_object_end(json);
    acre_json_object_end(json);
    acre_json_object_end(json);
}

static void write_components(struct acre_json *json) {
    acre_json_key(json, "components");
    acre_json_object(json);
    acre_json_key(json, "securitySchemes");
    acre_json_object(json);
    acre_json_key(json, "bearer");
    write_type(json, "http");
    acre_json_put_string(json, "scheme", "bearer");
    acre_json_object_end(json);
    acre_json_key(json, "token");
    write_type(json, "apiKey");
    acre_json_put_string(json, "in", "header");
    acre_json_put_string(json, "name", "X-Auth-Token");
    acre_json_object_end(json);
    acre_json_object_end(json);
    write_problem_schema(json);
    acre_json_key(json, "responses");
    acre_json_object(json);
    acre_json_key(json, "Problem");
    acre_json_object(json);
    acre_json_put_string(json, "description", "What went wrong, and which values are accepted.");
    begin_content(json, ACRE_PROBLEM_TYPE);
    acre_json_object(json);
    acre_json_put_string(json, "$ref", "#/components/schemas/Problem");
    acre_json_object_end(json);
    end_content(json);
    acre_json_object_end(json);
    acre_json_object_end(json);
    acre_json_object_end(json);
}

int openapi_write(const struct acre_route *routes, size_t count, const char *version,
                  struct acre_buf *buf) {
    struct acre_json json;
    acre_json_begin(&json, buf, false);
    acre_json_object(&json);
    acre_json_put_string(&json, "openapi", "3.1.0");
    acre_json_key(&json, "info");
    acre_json_object(&json);
    acre_json_put_string(&json, "title", "Acre");
    acre_json_put_string(&json, "version", version);
    acre_json_put_string(&json, "description", "Shares a GPU cluster: jobs, devices, policies.");
    acre_json_object_end(&json);
    write_paths(&json, routes, count);
    write_components(&json);
    acre_json_object_end(&json);
    return acre_json_end(&json);
}
