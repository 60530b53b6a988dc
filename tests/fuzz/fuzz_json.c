/* JSON: what is accepted obeys the limits, and our writer gives it back so that it reads as the
 * same document; the getters return values in range or name the field. */
#include "core/json.h"
#include "fuzz.h"

enum { INPUT_MAX_BYTES = 4096, OUTPUT_MAX_BYTES = 1 << 20 };

static const char *const keys[] = {"a", "n", "gpus"};

/* Write `value`, which is inside `depth` others, with our writer; false when it holds a real
 * number, which is rounded. */
static bool write_value(struct acre_json *json, json_t *value, unsigned depth) {
    ACRE_ASSERT(depth <= ACRE_JSON_DEPTH_MAX);
    bool exact = true;
    switch (json_typeof(value)) {
    case JSON_OBJECT: {
        acre_json_object(json);
        const char *key;
        json_t *member;
        json_object_foreach(value, key, member) {
            acre_json_key(json, key);
            exact = write_value(json, member, depth + 1) && exact;
        }
        acre_json_object_end(json);
        break;
    }
    case JSON_ARRAY:
        acre_json_array(json);
        for (size_t i = 0; i < json_array_size(value); i++) {
            exact = write_value(json, json_array_get(value, i), depth + 1) && exact;
        }
        acre_json_array_end(json);
        break;
    case JSON_STRING:
        acre_json_str(json, (struct acre_str){json_string_value(value), json_string_length(value)});
        break;
    case JSON_INTEGER:
        acre_json_i64(json, json_integer_value(value));
        break;
    case JSON_REAL:
        acre_json_double(json, json_real_value(value), 6);
        exact = false;
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        acre_json_bool(json, json_is_true(value));
        break;
    case JSON_NULL:
        acre_json_null(json);
        break;
    }
    return exact;
}

static void check_getters(const json_t *root) {
    for (size_t i = 0; i < ACRE_COUNT(keys); i++) {
        struct acre_error err = {0};
        uint64_t number = 4;
        bool flag = false;
        const char *string = "";
        int r = acre_json_get_u64(root, keys[i], i == 0, 3, 1000, &number, &err);
        ACRE_ASSERT(number >= 3 && number <= 1000);
        if (r < 0) {
            acre_fuzz_check_error(&err, r);
        }
        r = acre_json_get_bool(root, keys[i], i == 0, &flag, &err);
        if (r < 0) {
            acre_fuzz_check_error(&err, r);
        }
        r = acre_json_get_string(root, keys[i], i == 0, 5, &string, &err);
        ACRE_ASSERT(strlen(string) <= 5);
        if (r < 0) {
            acre_fuzz_check_error(&err, r);
        }
    }
    struct acre_error err = {0};
    int r = acre_json_only_keys(root, keys, ACRE_COUNT(keys), &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
    }
}

static void check_round_trip(json_t *root, bool pretty) {
    struct acre_buf out;
    struct acre_json json;
    acre_buf_init(&out, OUTPUT_MAX_BYTES);
    acre_json_begin(&json, &out, pretty);
    bool exact = write_value(&json, root, 0);
    if (acre_json_end(&json) == 0) {
        json_t *again = NULL;
        struct acre_str text = {out.data, out.length};
        int r = acre_json_parse("again", text, OUTPUT_MAX_BYTES, &again, NULL);
        ACRE_ASSERT(r == 0);
        ACRE_ASSERT(!exact || json_equal(root, again));
        json_decref(again);
    }
    acre_buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_error err = {0};
    json_t *root = NULL;
    struct acre_str text = {(const char *)data, size};
    int r = acre_json_parse("file", text, INPUT_MAX_BYTES, &root, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(root == NULL && strncmp(err.text, "file:", 5) == 0);
        return 0;
    }
    ACRE_ASSERT(size <= INPUT_MAX_BYTES);
    check_getters(root);
    check_round_trip(root, false);
    check_round_trip(root, true);
    json_decref(root);
    return 0;
}
