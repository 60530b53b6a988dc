/* compute.c - the runtime: back ends in order, their devices in one list.
 *
 * A back end that is not available only leaves its reason. Devices are listed in the order of the
 * back ends; the CPU is last and always available. */
#include "compute/process.h"

#include "core/str.h"

#include <acre/cache.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Which back ends, in which order. */
static int choose_backends(struct acre_compute *compute, const char *names,
                           struct acre_error *err) {
    if (names == NULL) {
        for (size_t i = 0; i < ACRE_BACKEND_COUNT; i++) {
            compute->backends[compute->backend_count++].table = all_backends[i];
        }
        return 0;
    }
    struct acre_split words = acre_split_begin(acre_str_from(names), ',');
    struct acre_str word;
    while (acre_split_next(&words, &word)) {
        char shown[64], all[128];
        const struct backend *table = backend_find(word);
        if (table == NULL) {
            return acre_fail(err, ACRE_EINVALID, "backends: unknown back end '%s'; accepted: %s",
                             acre_str_show(word, shown, sizeof(shown)),
                             backend_name_list(all, sizeof(all)));
        }
        for (uint32_t i = 0; i < compute->backend_count; i++) {
            if (compute->backends[i].table == table) {
                return acre_fail(err, ACRE_EINVALID, "backends: %s is named twice", table->name);
            }
        }
        compute->backends[compute->backend_count++].table = table;
    }
    return 0;
}

static int list_devices(struct acre_compute *compute, struct acre_error *err) {
    for (uint32_t i = 0; i < compute->backend_count; i++) {
        struct backend_slot *slot = &compute->backends[i];
        struct acre_error absent = {0};
        if (slot->table->open(&slot->self, &absent) < 0) {
            snprintf(slot->absent, sizeof(slot->absent), "%s", absent.text);
            slot->self = NULL;
            continue;
        }
        slot->first = compute->device_count;
        slot->count = slot->table->count(slot->self);
        struct acre_compute_device *devices =
            realloc(compute->devices, (compute->device_count + slot->count + 1) * sizeof(*devices));
        if (devices == NULL) {
            return acre_fail(err, ACRE_ENOMEM, "list of devices");
        }
        compute->devices = devices;
        for (uint32_t j = 0; j < slot->count; j++) {
            struct acre_compute_device *device = &devices[compute->device_count++];
            memset(device, 0, sizeof(*device));
            slot->table->describe(slot->self, j, device);
            snprintf(device->backend, sizeof(device->backend), "%s", slot->table->name);
        }
    }
    return 0;
}

int acre_cache_directory(char *ret_path, size_t size, struct acre_error *err) {
    const char *base = getenv("XDG_CACHE_HOME"), *below = "acre";
    if (base == NULL || base[0] != '/') {
        base = getenv("HOME");
        below = ".cache/acre";
    }
    if (base == NULL || base[0] != '/') {
        const struct passwd *user = getpwuid(geteuid());
        base = user != NULL ? user->pw_dir : NULL;
    }
    if (base == NULL) {
        return acre_fail(err, ACRE_ENOTFOUND, "cache: neither XDG_CACHE_HOME nor HOME is set");
    }
    if (strlen(base) + strlen(below) + 2 > size) {
        return acre_fail(err, ACRE_ELIMIT, "cache: the path of the home directory is too long");
    }
    snprintf(ret_path, size, "%s/%s", base, below);
    return 0;
}

/* "" when there is none. */
static char *default_cache(void) {
    char path[PATH_MAX] = "";
    (void)acre_cache_directory(path, sizeof(path), NULL);
    return strdup(path);
}

int acre_compute_open(const struct acre_compute_options *options, struct acre_compute **ret_compute,
                      struct acre_error *err) {
    static const struct acre_compute_options defaults = {0};
    options = options != NULL ? options : &defaults;
    struct acre_compute *compute = calloc(1, sizeof(*compute));
    if (compute == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "runtime");
    }
    process_init();
    compute->process = atomic_load(&process_number);
    pthread_mutex_init(&compute->lock, NULL);
    atomic_store(&compute->users, 1);
    int r = choose_backends(compute, options->backends, err);
    if (r == 0) {
        compute->cache = options->cache != NULL ? strdup(options->cache) : default_cache();
        r = compute->cache != NULL ? 0 : acre_fail(err, ACRE_ENOMEM, "runtime");
    }
    if (r == 0) {
        r = list_devices(compute, err);
    }
    if (r < 0) {
        acre_compute_close(compute);
        return r;
    }
    *ret_compute = compute;
    return 0;
}

void acre_compute_close(struct acre_compute *compute) {
    if (compute == NULL) {
        return;
    }
    for (uint32_t i = 0; i < CONTEXTS_MAX; i++) {
        acre_context_close(compute->contexts[i]);
    }
    compute_unref(compute);
}

void compute_unref(struct acre_compute *compute) {
    if (atomic_fetch_sub(&compute->users, 1) > 1) {
        return;
    }
    bool is_ours = process_is_ours(compute->process); /* else drivers are left as they are */
    for (uint32_t i = 0; i < compute->backend_count && is_ours; i++) {
        if (compute->backends[i].self != NULL) {
            compute->backends[i].table->close(compute->backends[i].self);
        }
    }
    pthread_mutex_destroy(&compute->lock);
    free(compute->devices);
    free(compute->cache);
    free(compute);
}

uint32_t acre_compute_count(const struct acre_compute *compute) {
    return compute != NULL ? compute->device_count : 0;
}

const struct acre_compute_device *acre_compute_device(const struct acre_compute *compute,
                                                      uint32_t device) {
    return compute != NULL && device < compute->device_count ? &compute->devices[device] : NULL;
}

const char *acre_compute_absent(const struct acre_compute *compute, const char *backend) {
    for (uint32_t i = 0; compute != NULL && backend != NULL && i < compute->backend_count; i++) {
        const struct backend_slot *slot = &compute->backends[i];
        if (strcmp(slot->table->name, backend) == 0) {
            return slot->self == NULL ? slot->absent : NULL;
        }
    }
    return NULL;
}

const char *acre_version(void) {
    return ACRE_VERSION;
}
