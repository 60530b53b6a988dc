/* YAML files: whatever is in them, a JSON object of texts that can be written, or a refusal that
 * names the file. */
#include "cli/yaml.h"
#include "fuzz.h"

#include <stdlib.h>

enum { BYTES_MAX = 64 << 10 };

static void check(const json_t *node, uint32_t depth) {
    ACRE_ASSERT(depth <= ACRE_YAML_DEPTH_MAX + 1);
    ACRE_ASSERT(!json_is_number(node) && !json_is_boolean(node));
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)node, key, value) {
        ACRE_ASSERT(key != NULL);
        check(value, depth + 1);
    }
    for (size_t i = 0; i < json_array_size(node); i++) {
        check(json_array_get(node, i), depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct acre_str text = {size > 0 ? (const char *)data : "", ACRE_MIN(size, (size_t)BYTES_MAX)};
    struct acre_error err = {0};
    json_t *root = NULL;
    int r = yaml_parse("fuzz.yaml", text, &root, &err);
    if (r < 0) {
        acre_fuzz_check_error(&err, r);
        ACRE_ASSERT(root == NULL);
        return 0;
    }
    ACRE_ASSERT(json_is_object(root));
    check(root, 0);
    char *written = json_dumps(root, 0);
    ACRE_ASSERT(written != NULL);
    free(written);
    json_decref(root);
    return 0;
}
