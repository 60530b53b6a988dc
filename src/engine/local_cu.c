/* local_cu.c - runs that have a share of an AMD GPU hold compute units of it.
 *
 * The ledger counts shares; which units they are is decided here, when a run is started. What a run
 * holds is also in a small file next to its record (a device and its ranges a line), so that after
 * a restart no run is given what a live run still uses. Only shares that ask to be kept apart
 * (isolation "mps") are masked, and only where the number of units is known. */
#include "engine/local_shares.h"

#include "core/arena.h"
#include "core/str.h"
#include "engine/cu.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    HELD_MAX = ACRE_CU_MAX / 2, /* a share has a pair at least */
    ARENA_MAX_BYTES = 16 << 20,
};
#define LIST_SUFFIX ".cu"

static bool needs_units(const struct acre_run_device *device) {
    return strcasecmp(device->vendor, "amd") == 0 && device->milli < 1000 && device->units > 1 &&
           !device->simulated && device->isolation != NULL && strcmp(device->isolation, "mps") == 0;
}

/* Which units of a device are taken. */
struct held {
    struct acre_arena *arena;
    const char *ranges[HELD_MAX];
    uint32_t count;
};

static void add_held(struct held *held, const char *list, const char *device) {
    size_t length = strlen(device);
    struct acre_split lines = acre_split_begin(acre_str_from(list), '\n');
    for (struct acre_str line; acre_split_next(&lines, &line) && held->count < HELD_MAX;) {
        if (line.length > length && memcmp(line.data, device, length) == 0 &&
            line.data[length] == ' ') {
            held->ranges[held->count++] =
                acre_arena_strndup(held->arena, line.data + length + 1, line.length - length - 1);
        }
    }
}

/* Units of one device that nobody holds: no run that lives, no other member of this one. */
static int take_units(struct local *self, const char *mine, struct acre_arena *arena,
                      struct acre_run_device *device, struct acre_error *err) {
    struct held held = {.arena = arena};
    add_held(&held, mine, device->id);
    for (uint32_t i = 0; i < self->known.count; i++) {
        const char *cu_list = acre_local_at(self, i)->cu_list;
        if (cu_list != NULL) {
            add_held(&held, cu_list, device->id);
        }
    }
    char *ranges = acre_arena_alloc(arena, ACRE_CU_RANGES_TEXT);
    int r = cu_take(held.ranges, held.count, device->units, device->milli, ranges, err);
    device->cu_ranges = ranges;
    return r < 0 ? acre_fail_in(err, r, "%s", device->id) : 0;
}

/* Units for all devices of the run that need them, in a copy of the spec. */
static int take(struct local *self, struct local_run *run, struct acre_arena *arena,
                struct acre_run_spec *spec, struct acre_error *err) {
    struct acre_run_device *devices =
        acre_arena_alloc(arena, spec->device_count * sizeof(*devices));
    memcpy(devices, spec->devices, spec->device_count * sizeof(*devices));
    spec->devices = devices;
    struct acre_buf list;
    acre_buf_init(&list, ACRE_LOCAL_LIST_MAX);
    int r = 0;
    for (uint32_t i = 0; i < spec->device_count && r == 0; i++) {
        if (needs_units(&devices[i])) {
            r = take_units(self, list.data, arena, &devices[i], err);
            acre_buf_printf(&list, "%s %s\n", devices[i].id, devices[i].cu_ranges);
        }
    }
    if (r == 0 && acre_buf_failed(&list)) {
        r = acre_fail(err, ACRE_ELIMIT, "compute units: the list is longer than %d bytes",
                      ACRE_LOCAL_LIST_MAX);
    }
    r = r == 0 ? local_write_list(self, run->run, LIST_SUFFIX, list.data, err) : r;
    if (r == 0) {
        run->cu_list = acre_strdup(list.data);
    }
    acre_buf_finish(&list);
    return r;
}

int local_prepare_cu(struct local *self, struct local_run *run, const struct acre_run_spec *spec,
                     uid_t *ret_user, struct acre_error *err) {
    bool any = false;
    for (uint32_t i = 0; i < spec->device_count && !any; i++) {
        any = needs_units(&spec->devices[i]);
    }
    if (!any) {
        return local_prepare(self, spec, &run->message, ret_user, err);
    }
    struct acre_run_spec masked = *spec;
    struct acre_arena *arena = acre_arena_create(ARENA_MAX_BYTES);
    int r = take(self, run, arena, &masked, err);
    r = r == 0 ? local_prepare(self, &masked, &run->message, ret_user, err) : r;
    acre_arena_destroy(arena);
    return r;
}

void local_retake_cu(struct local *self, struct local_run *run) {
    if (run->cu_list == NULL) {
        run->cu_list = local_read_list(self, run->run, LIST_SUFFIX); /* most have none */
    }
}

void local_give_cu(struct local *self, struct local_run *run) {
    if (run->cu_list != NULL) {
        local_remove_list(self, run->run, LIST_SUFFIX);
        free(run->cu_list);
        run->cu_list = NULL;
    }
}

static void reap(struct local *self, struct acre_run token) {
    const struct local_run *run = local_find(self, token);
    if (run == NULL || run->cu_list == NULL) {
        local_remove_list(self, token, LIST_SUFFIX);
    }
}

void local_reap_cu(struct local *self) {
    local_each_list(self, LIST_SUFFIX, reap);
}
