/* annotations.c - annotations are collected as pairs of texts, judged by ledger/annotation.c, and
 * compared with the fields next to them.
 *
 * A field and an annotation may say the same, or each what the other leaves open: then both hold.
 * Where they differ neither wins, because the author of one would be surprised. */
#include "api/annotations.h"

#include "core/arena.h"
#include "core/units.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    GPUS_MAX = 64, /* of one node: what the ledger holds */
    DEPTH_MAX = 4, /* a CronJob's pods are three templates deep */
    TEXT_MAX_BYTES = 1 << 20,
};

#define KEYS                                                                                       \
    "kaiwo.ai/gpu-fraction, kaiwo.ai/gpu-memory, amd.com/gpu or nvidia.com/gpu, with "             \
    "kaiwo.ai/gpu-sharing and kaiwo.ai/gpu-isolation"

struct annotation_pairs {
    struct acre_arena *arena;
    struct acre_annotation_pair items[ACRE_ANNOTATION_PAIRS_MAX + 1]; /* the last is one too many */
    size_t count;
    struct acre_error *err;
};

static const char *text_of(struct acre_arena *arena, const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_STRING:
        return json_string_value(value);
    case JSON_INTEGER:
        return acre_arena_printf(arena, "%lld", (long long)json_integer_value(value));
    case JSON_REAL:
        return acre_arena_printf(arena, "%.15g", json_real_value(value));
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_OBJECT:
    case JSON_ARRAY:
    case JSON_NULL:
        break;
    }
    return NULL;
}

static int add_map(struct annotation_pairs *pairs, const char *where, const json_t *map) {
    const char *key;
    json_t *value;
    if (map != NULL && !json_is_object(map) && !json_is_null(map)) {
        return acre_fail(pairs->err, ACRE_EINVALID, "%s: accepted: an object", where);
    }
    json_object_foreach((json_t *)map, key, value) {
        const char *text = text_of(pairs->arena, value);
        if (text == NULL && !json_is_null(value)) {
            char shown[80];
            return acre_fail(pairs->err, ACRE_EINVALID,
                             "%s: '%s' is %s; accepted: text, a number, true or false", where,
                             acre_str_show(acre_str_from(key), shown, sizeof(shown)),
                             json_is_array(value) ? "a list" : "an object");
        }
        if (text != NULL && pairs->count < ACRE_COUNT(pairs->items)) {
            pairs->items[pairs->count++] = (struct acre_annotation_pair){key, text};
        }
    }
    return 0;
}

/* A manifest, or the template of one. */
static int add_manifest(struct annotation_pairs *pairs, const json_t *manifest, uint32_t depth) {
    static const char *const lists[] = {"containers", "initContainers"};
    static const char *const templates[] = {"template", "jobTemplate"};
    const json_t *spec = json_object_get(manifest, "spec");
    int r = add_map(pairs, "metadata.annotations",
                    json_object_get(json_object_get(manifest, "metadata"), "annotations"));
    for (size_t l = 0; l < ACRE_COUNT(lists); l++) {
        const json_t *list = json_object_get(spec, lists[l]);
        for (size_t i = 0; i < json_array_size(list) && r == 0; i++) {
            const json_t *resources = json_object_get(json_array_get(list, i), "resources");
            r = add_map(pairs, "resources.limits", json_object_get(resources, "limits"));
        }
    }
    for (size_t t = 0; t < ACRE_COUNT(templates) && r == 0 && depth < DEPTH_MAX; t++) {
        const json_t *inner = json_object_get(spec, templates[t]);
        r = inner != NULL ? add_manifest(pairs, inner, depth + 1) : 0;
    }
    return r;
}

static bool is_manifest(const json_t *object) {
    static const char *const keys[] = {"apiVersion", "kind", "metadata", "spec"};
    bool found = false;
    for (size_t i = 0; i < ACRE_COUNT(keys); i++) {
        found = found || json_object_get(object, keys[i]) != NULL;
    }
    return found;
}

int annotations_read(const json_t *object, struct acre_annotation *ret_annotation,
                     struct acre_error *err) {
    struct annotation_pairs *pairs = acre_calloc(1, sizeof(*pairs));
    struct acre_annotation annotation = {0};
    pairs->arena = acre_arena_create(TEXT_MAX_BYTES);
    pairs->err = err;
    int r =
        is_manifest(object) ? add_manifest(pairs, object, 0) : add_map(pairs, "top level", object);
    if (r == 0) {
        r = acre_annotation_parse(pairs->items, pairs->count, &annotation, err);
    }
    acre_arena_destroy(pairs->arena);
    free(pairs);
    if (r == 0 && annotation.present == 0) {
        r = acre_fail(err, ACRE_EINVALID, "nothing there asks for a GPU; accepted: " KEYS);
    }
    if (r < 0) {
        return acre_fail_in(err, r, "annotations");
    }
    *ret_annotation = annotation;
    return 0;
}

const char *annotations_vendor(const struct acre_annotation *annotation) {
    return annotation->vendor == ACRE_VENDOR_NVIDIA ? "NVIDIA"
           : annotation->vendor == ACRE_VENDOR_AMD  ? "AMD"
                                                    : NULL;
}

/* --- next to fields ------------------------------------------------------------------------- */

static bool is_given(const json_t *body, const char *key) {
    const json_t *value = json_object_get(body, key);
    return value != NULL && !json_is_null(value);
}

/* The name under which the body has it; NULL: it has not. */
static const char *given(const json_t *body, const char *key, const char *alias) {
    return is_given(body, key) ? key : is_given(body, alias) ? alias : NULL;
}

static bool said(const struct acre_annotation *annotation, uint32_t bits) {
    return (annotation->present & bits) != 0;
}

static int contradict(struct acre_error *err, const char *field, const char *value,
                      const char *annotation) {
    return acre_fail(err, ACRE_EINVALID,
                     "%s: %s contradicts %s of the annotations; accepted: the same, or one of them",
                     field, value, annotation);
}

/* "kaiwo.ai/gpu-fraction 0.5": which annotation says how much. */
static void show_amount(const struct acre_annotation *annotation, char text[64]) {
    char milli[32];
    const char *vendor = said(annotation, ACRE_ANNOTATION_AMD) ? "amd.com/gpu" : "nvidia.com/gpu";
    if (annotation->whole_gpus > 0 &&
        said(annotation, ACRE_ANNOTATION_AMD | ACRE_ANNOTATION_NVIDIA)) {
        snprintf(text, 64, "%s %u", vendor, annotation->whole_gpus);
    } else if (annotation->milli > 0) {
        snprintf(text, 64, "%s %s",
                 said(annotation, ACRE_ANNOTATION_FRACTION) ? "kaiwo.ai/gpu-fraction" : vendor,
                 acre_format_milli(annotation->milli, milli, sizeof(milli)));
    } else {
        snprintf(text, 64, "kaiwo.ai/gpu-memory %llu", (unsigned long long)annotation->mib);
    }
}

static int put_gpus(const struct acre_annotation *annotation, const json_t *body,
                    struct acre_request *request, struct acre_error *err) {
    const char *field = given(body, "gpus", "gpu_count");
    bool is_whole = annotation->whole_gpus > 0;
    uint32_t gpus = is_whole ? annotation->whole_gpus : 1;
    uint32_t milli = is_whole ? 1000 : annotation->milli; /* 0: by memory alone */
    char amount[64], value[32];
    show_amount(annotation, amount);
    if (gpus > GPUS_MAX) {
        return acre_fail(err, ACRE_EINVALID,
                         "annotations: %s; accepted: at most %d on a node (nodes: more of them)",
                         amount, GPUS_MAX);
    }
    if (field != NULL && (request->gpus != gpus || request->milli != milli)) {
        snprintf(value, sizeof(value), "%.15g", json_number_value(json_object_get(body, field)));
        return contradict(err, field, value, amount);
    }
    request->gpus = gpus;
    request->milli = milli;
    return 0;
}

static int put_memory(const struct acre_annotation *annotation, const json_t *body,
                      struct acre_request *request, struct acre_error *err) {
    const char *field = given(body, "gpu_memory", "memory_gb");
    char amount[64], value[32];
    if (!said(annotation, ACRE_ANNOTATION_MEMORY)) {
        return 0;
    }
    snprintf(amount, sizeof(amount), "kaiwo.ai/gpu-memory %llu",
             (unsigned long long)annotation->mib);
    if (annotation->mib > UINT32_MAX) {
        return acre_fail(err, ACRE_EINVALID, "annotations: %s; accepted: 1 to %u MiB", amount,
                         UINT32_MAX);
    }
    if (field != NULL && request->mib != annotation->mib) {
        snprintf(value, sizeof(value), "%llu MiB", (unsigned long long)request->mib);
        return contradict(err, field, value, amount);
    }
    request->mib = annotation->mib;
    return 0;
}

static int put_sharing(const struct acre_annotation *annotation, const json_t *body,
                       struct acre_request *request, struct acre_error *err) {
    char text[64];
    bool wanted = said(annotation, ACRE_ANNOTATION_ISOLATION);
    if (wanted && is_given(body, "isolation") && request->isolation != annotation->isolation) {
        snprintf(text, sizeof(text), "kaiwo.ai/gpu-isolation %s",
                 isolation_name(annotation->isolation));
        return contradict(err, "isolation", isolation_name(request->isolation), text);
    }
    if (wanted) {
        request->isolation = annotation->isolation;
    }
    if (!is_given(body, "exclusive")) {
        return 0;
    }
    bool shared = annotation->sharing;
    bool is_said = said(annotation, ACRE_ANNOTATION_SHARING);
    if (request->exclusive && shared) {
        show_amount(annotation, text);
        return contradict(err, "exclusive", "true", is_said ? "kaiwo.ai/gpu-sharing true" : text);
    }
    if (!request->exclusive && is_said && !shared) {
        return contradict(err, "exclusive", "false", "kaiwo.ai/gpu-sharing false");
    }
    return 0;
}

int annotations_put(const struct acre_annotation *annotation, const json_t *body,
                    struct acre_request *request, struct acre_error *err) {
    const char *vendor = annotations_vendor(annotation);
    const char *other = json_string_value(json_object_get(body, "vendor"));
    int r = put_gpus(annotation, body, request, err);
    if (r == 0) {
        r = put_memory(annotation, body, request, err);
    }
    if (r == 0) {
        r = put_sharing(annotation, body, request, err);
    }
    if (r == 0 && vendor != NULL && other != NULL && strcasecmp(vendor, other) != 0) {
        char shown[80];
        r = contradict(err, "vendor", acre_str_show(acre_str_from(other), shown, sizeof(shown)),
                       annotation->vendor == ACRE_VENDOR_AMD ? "amd.com/gpu" : "nvidia.com/gpu");
    }
    return r;
}
