/* learned.c - the costs of automatic calls, saved from one process to the next.
 *
 * One small text file for each kernel on each pair of contexts, named by a hash of everything its
 * costs depend on. The file contains the same hash, so that a file given by name is not used for
 * another kernel. It is written to a temporary file and renamed. Costs are only hints: no call
 * fails because they cannot be read or saved; a damaged file is ignored, and the note says why. */
#include "compute/auto/inner.h"

#include "compute/context.h"
#include "core/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { KEY_MAX_BYTES = SOURCE_MAX_BYTES + (64 << 10) };

static void add_side(struct acre_buf *key, const struct auto_side *side, char *name, size_t size) {
    if (side->kernel == NULL) {
        acre_buf_puts(key, "none\n");
        snprintf(name, size, "none");
        return;
    }
    const struct acre_compute_device *device = context_device(side->context);
    acre_buf_printf(key, "%s\n%s\n%s\n%d\n", device->backend, device->name, device->identity,
                    side->context->is_remote);
    snprintf(name, size, "%.15s %.95s", device->backend, device->name);
}

static int make_key(struct acre_auto *automatic, struct acre_error *err) {
    struct cost_owner *owner = &automatic->owner;
    struct acre_buf key;
    acre_buf_init(&key, KEY_MAX_BYTES);
    add_side(&key, &automatic->device, owner->device, sizeof(owner->device));
    add_side(&key, &automatic->cpu, owner->cpu, sizeof(owner->cpu));
    for (uint32_t i = 0; i < automatic->array_count; i++) {
        acre_buf_printf(&key, "%u %u\n", automatic->arrays[i].in_bytes,
                        automatic->arrays[i].out_bytes);
    }
    acre_buf_printf(&key, "%s\n%d\n%s\n", automatic->signature->name, automatic->has_native,
                    automatic->source.options != NULL ? automatic->source.options : "");
    acre_buf_puts(&key, automatic->source.text);
    bool has_failed = acre_buf_failed(&key);
    owner->key = acre_hash_bytes(key.data, key.length);
    snprintf(owner->kernel, sizeof(owner->kernel), "%s", automatic->signature->name);
    acre_buf_finish(&key);
    return has_failed ? acre_fail(err, ACRE_ELIMIT, "source.options: too long") : 0;
}

/* DIRECTORY/learned/KEY.costs, or "". */
static char *default_path(const struct acre_auto *automatic) {
    const struct acre_context *context =
        automatic->device.context != NULL ? automatic->device.context : automatic->cpu.context;
    const char *cache = context->compute->cache;
    char *path = NULL;
    if (cache[0] == '\0') {
        return strdup("");
    }
    int length = asprintf(&path, "%s/learned/%016" PRIx64 ".costs", cache, automatic->owner.key);
    return length < 0 ? NULL : path;
}

static void note(struct acre_auto *automatic, const char *what) {
    snprintf(automatic->note, sizeof(automatic->note), "%.95s", what);
}

static void read_file(struct acre_auto *automatic) {
    struct acre_error err = {0};
    struct acre_buf text;
    acre_buf_init(&text, COST_TEXT_MAX_BYTES);
    struct cost_owner owner;
    int r = acre_file_read(automatic->learned, COST_TEXT_MAX_BYTES, &text, &err);
    if (r == 0) {
        r = costs_read((struct acre_str){text.data, text.length}, &owner, &automatic->costs, &err);
        if (r == 0 && owner.key != automatic->owner.key) {
            costs_init(&automatic->costs);
            r = acre_fail(&err, ACRE_ECONFLICT,
                          "the costs are for '%s' on other devices or from another source",
                          owner.kernel);
        }
    }
    if (r < 0 && r != ACRE_ENOTFOUND) {
        note(automatic, err.text);
    }
    acre_buf_finish(&text);
}

int auto_learned_open(struct acre_auto *automatic, const char *learned, struct acre_error *err) {
    int r = make_key(automatic, err);
    if (r < 0) {
        return r;
    }
    automatic->learned = learned != NULL ? strdup(learned) : default_path(automatic);
    if (automatic->learned == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "learned: no memory for the path");
    }
    if (automatic->learned[0] != '\0') {
        read_file(automatic);
    }
    return 0;
}

/* The directory of the file, and the one above it. */
static void make_directories(const char *path) {
    char *copy = strdup(path);
    if (copy == NULL) {
        return;
    }
    char *slash = strrchr(copy, '/');
    if (slash != NULL && slash != copy) {
        *slash = '\0';
        if (mkdir(copy, 0700) < 0 && errno == ENOENT) {
            char *above = strrchr(copy, '/');
            if (above != NULL && above != copy) {
                *above = '\0';
                (void)mkdir(copy, 0700); /* writing says what is wrong */
                *above = '/';
                (void)mkdir(copy, 0700);
            }
        }
    }
    free(copy);
}

void auto_learned_keep(struct acre_auto *automatic) {
    if (automatic->learned == NULL || automatic->learned[0] == '\0' || !automatic->has_learned) {
        return;
    }
    struct acre_buf text;
    acre_buf_init(&text, COST_TEXT_MAX_BYTES);
    costs_write(&automatic->costs, &automatic->owner, &text);
    if (!acre_buf_failed(&text)) {
        make_directories(automatic->learned);
        /* A hint that cannot be kept is learned again. */
        (void)acre_file_write(automatic->learned, text.data, text.length, NULL);
    }
    acre_buf_finish(&text);
}
