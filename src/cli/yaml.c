/* yaml.c - libyaml's events, put together on a stack of open objects and lists.
 *
 * Events instead of libyaml's documents, because an alias is then seen before it is followed: a few
 * lines of them would otherwise become gigabytes. */
#include "cli/yaml.h"

#include "core/dl.h"

#include <string.h>
#include <yaml.h>

/* clang-format off */
#define YAML_FUNCTIONS(X)                        \
    X(initialize,   yaml_parser_initialize)      \
    X(finish,       yaml_parser_delete)          \
    X(set_input,    yaml_parser_set_input_string)\
    X(parse,        yaml_parser_parse)           \
    X(drop_event,   yaml_event_delete)
/* clang-format on */

struct yaml_functions {
#define X(field, symbol) __typeof__(symbol) *field;
    YAML_FUNCTIONS(X)
#undef X
};

static int open_yaml(struct yaml_functions *ret_yaml, struct acre_error *err) {
    static const char *const sonames[] = {"libyaml-0.so.2", NULL};
    static const struct acre_dl_symbol symbols[] = {
#define X(field, symbol) {#symbol, offsetof(struct yaml_functions, field), true},
        YAML_FUNCTIONS(X)
#undef X
    };
    int r = acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), ret_yaml, NULL, err);
    return r < 0 ? acre_fail_in(err, r, "libyaml (install libyaml-0-2, or write JSON)") : 0;
}

/* An object or list that is still open. */
struct level {
    json_t *node; /* borrowed: the root owns it */
    json_t *key;  /* of an object, waiting for its value; NULL: none */
};

struct yaml_build {
    const char *name;
    json_t *root;
    struct level levels[ACRE_YAML_DEPTH_MAX];
    uint32_t depth;
    uint32_t documents;
    struct acre_error *err;
};

static int refuse(struct yaml_build *build, const yaml_event_t *event, const char *what) {
    return acre_fail(build->err, ACRE_EINVALID, "%s:%zu: %s", build->name,
                     event->start_mark.line + 1, what);
}

static bool is_null(const yaml_event_t *event) {
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    bool found = false;
    for (size_t i = 0; i < ACRE_COUNT(words); i++) {
        found = found || strcmp((const char *)event->data.scalar.value, words[i]) == 0;
    }
    return found && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* Put a value where the document stands. Takes the reference. */
static int put(struct yaml_build *build, const yaml_event_t *event, json_t *value) {
    if (build->depth == 0) {
        if (!json_is_object(value)) {
            json_decref(value);
            return refuse(build, event, "accepted: a mapping (KEY: VALUE)");
        }
        build->root = value;
        return 0;
    }
    struct level *level = &build->levels[build->depth - 1];
    if (json_is_array(level->node)) {
        json_array_append_new(level->node, value);
        return 0;
    }
    if (level->key == NULL) { /* a scalar key is kept by put_scalar */
        json_decref(value);
        return refuse(build, event, "a key that is no text; accepted: KEY: VALUE");
    }
    bool is_new = json_object_get(level->node, json_string_value(level->key)) == NULL;
    json_object_set_new(level->node, json_string_value(level->key), value);
    json_decref(level->key);
    level->key = NULL;
    return is_new ? 0 : refuse(build, event, "a key that was given before");
}

static int put_scalar(struct yaml_build *build, const yaml_event_t *event) {
    struct level *level = build->depth > 0 ? &build->levels[build->depth - 1] : NULL;
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(text, '\0', length) != NULL) {
        return refuse(build, event, "text with a zero byte");
    }
    bool is_key = level != NULL && json_is_object(level->node) && level->key == NULL;
    json_t *value = !is_key && is_null(event) ? json_null() : json_stringn(text, length);
    if (value == NULL) {
        return refuse(build, event, "text that is not UTF-8");
    }
    if (is_key) {
        level->key = value;
        return 0;
    }
    return put(build, event, value);
}

static int open_level(struct yaml_build *build, const yaml_event_t *event, json_t *node) {
    if (build->depth == ACRE_YAML_DEPTH_MAX) {
        json_decref(node);
        return refuse(build, event, "too deep");
    }
    int r = put(build, event, node);
    if (r == 0) {
        build->levels[build->depth++] = (struct level){.node = node};
    }
    return r;
}

static int take(struct yaml_build *build, const yaml_event_t *event) {
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return put_scalar(build, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(build, event, json_array());
    case YAML_MAPPING_START_EVENT:
        return open_level(build, event, json_object());
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        build->depth--;
        return 0;
    case YAML_ALIAS_EVENT:
        return refuse(build, event, "an alias (*NAME); write the value itself");
    case YAML_DOCUMENT_START_EVENT:
        build->documents++;
        return build->documents == 1
                   ? 0
                   : refuse(build, event, "a second document; accepted: one in a file");
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return 0;
    }
    return 0;
}

static int parse(const struct yaml_functions *yaml, yaml_parser_t *parser,
                 struct yaml_build *build) {
    bool ended = false;
    int r = 0;
    while (r == 0 && !ended) {
        yaml_event_t event;
        if (!yaml->parse(parser, &event)) {
            return acre_fail(build->err, ACRE_EINVALID, "%s:%zu: invalid YAML: %s", build->name,
                             parser->problem_mark.line + 1,
                             parser->problem != NULL ? parser->problem : "it cannot be read");
        }
        r = take(build, &event);
        ended = event.type == YAML_STREAM_END_EVENT;
        yaml->drop_event(&event);
    }
    if (r == 0 && build->root == NULL) {
        r = acre_fail(build->err, ACRE_EINVALID, "%s: empty; accepted: a mapping (KEY: VALUE)",
                      build->name);
    }
    return r;
}

int yaml_parse(const char *name, struct acre_str text, json_t **ret_root, struct acre_error *err) {
    struct yaml_functions yaml;
    yaml_parser_t parser;
    struct yaml_build build = {.name = name, .err = err};
    int r = open_yaml(&yaml, err);
    if (r < 0) {
        return r;
    }
    if (!yaml.initialize(&parser)) {
        return acre_fail(err, ACRE_ENOMEM, "%s", name);
    }
    yaml.set_input(&parser, (const unsigned char *)text.data, text.length);
    r = parse(&yaml, &parser, &build);
    yaml.finish(&parser);
    for (uint32_t i = 0; i < build.depth; i++) {
        json_decref(build.levels[i].key);
    }
    if (r < 0) {
        json_decref(build.root);
        return r;
    }
    *ret_root = build.root;
    return 0;
}
