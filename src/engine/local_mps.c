/* local_mps.c - runs that have a share of a GPU by MPS hold the GPU's control daemon.
 *
 * A run waits until all daemons it needs answer. Which ones it holds is also in a small file
 * next to its record (its user, then one device a line), so that after a restart the shares of runs
 * that still live are taken again, and then the daemons of those that ended meanwhile are asked to
 * quit. Only those on our own lists: another acre may use the same directory. */
#include "engine/local_shares.h"

#include "core/str.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICE_MAX = 128 };
#define LIST_SUFFIX ".mps"

/* The devices behind the first line, which is the user. */
static const char *devices_of(const char *text) {
    const char *end = strchr(text, '\n');
    return end != NULL ? end + 1 : "";
}

static bool next_device(struct acre_split *lines, char device[DEVICE_MAX]) {
    for (struct acre_str line; acre_split_next(lines, &line);) {
        if (line.length > 0 && acre_str_copy(device, DEVICE_MAX, line)) {
            return true;
        }
    }
    return false;
}

static uint64_t holder_of(struct acre_run run) {
    return run.job ^ ((uint64_t)run.attempt << 48);
}

static int create(struct local *self, struct acre_error *err) {
    struct mps_options options = {
        .directory = self->mps_directory, .program = self->mps_program, .multiuser = self->is_root};
    return self->mps != NULL ? 0 : mps_create(&options, self->loop, &self->mps, err);
}

int local_need_mps(struct local *self, struct local_run *run, const struct acre_run_spec *spec,
                   struct acre_error *err) {
    struct acre_buf list;
    acre_buf_init(&list, ACRE_LOCAL_LIST_MAX);
    int r = 0;
    for (uint32_t i = 0; i < spec->members && spec->device_count > 0 && r == 0; i++) {
        const struct acre_run_device *device = NULL;
        r = visible_mps(spec->devices, spec->device_count, i, &device, err);
        if (r == 0 && device != NULL && strstr(list.data, device->id) == NULL) {
            acre_buf_printf(&list, "%s\n", device->id);
        }
    }
    r = r == 0 && list.length > 0 ? create(self, err) : r;
    if (r == 0 && list.length > 0) {
        run->mps_devices = acre_strdup(list.data);
    }
    acre_buf_finish(&list);
    return r;
}

static void on_ready(void *context, int result, const struct acre_error *err) {
    struct local_run *run = context;
    ACRE_ASSERT(run->mps_waiting > 0);
    run->mps_waiting--;
    if (run->stage != ACRE_LOCAL_WAITING) {
        return; /* another daemon refused */
    }
    if (result < 0) {
        local_not_started(run->owner, run, err->text);
    } else if (run->mps_waiting == 0) {
        local_enqueue(run->owner, run);
    }
}

static int take_all(struct local *self, struct local_run *run, uid_t user, mps_ready *ready,
                    struct acre_error *err) {
    struct acre_split lines = acre_split_begin(acre_str_from(run->mps_devices), '\n');
    for (char device[DEVICE_MAX]; next_device(&lines, device);) {
        int r = mps_take(self->mps, device, holder_of(run->run), user, ready, run, err);
        if (r < 0) {
            return r;
        }
        run->mps_waiting += ready != NULL;
    }
    return 0;
}

int local_take_mps(struct local *self, struct local_run *run, uid_t user, struct acre_error *err) {
    if (run->mps_devices == NULL) {
        return 0;
    }
    struct acre_buf list;
    acre_buf_init(&list, ACRE_LOCAL_LIST_MAX);
    acre_buf_printf(&list, "%u\n%s", (unsigned)user, run->mps_devices);
    int r = local_write_list(self, run->run, LIST_SUFFIX, list.data, err);
    acre_buf_finish(&list);
    return r == 0 ? take_all(self, run, user, on_ready, err) : r;
}

void local_retake_mps(struct local *self, struct local_run *run) {
    char *text = run->mps_devices == NULL ? local_read_list(self, run->run, LIST_SUFFIX) : NULL;
    if (text == NULL) {
        return; /* most have none */
    }
    run->mps_devices = acre_strdup(devices_of(text));
    if (create(self, NULL) == 0) { /* its clients run: there is nothing to tell */
        take_all(self, run, (uid_t)strtoul(text, NULL, 10), NULL, NULL);
    }
    free(text);
}

void local_give_mps(struct local *self, struct local_run *run) {
    if (run->mps_devices == NULL) {
        return;
    }
    struct acre_split lines = acre_split_begin(acre_str_from(run->mps_devices), '\n');
    for (char device[DEVICE_MAX]; self->mps != NULL && next_device(&lines, device);) {
        mps_give(self->mps, device, holder_of(run->run));
    }
    local_remove_list(self, run->run, LIST_SUFFIX);
    free(run->mps_devices);
    run->mps_devices = NULL;
    run->mps_waiting = 0; /* answers still to come are not called any more */
}

/* What this run held goes, unless it holds it still. */
static void reap(struct local *self, struct acre_run token) {
    const struct local_run *run = local_find(self, token);
    char *text =
        run == NULL || run->mps_devices == NULL ? local_read_list(self, token, LIST_SUFFIX) : NULL;
    if (text != NULL && create(self, NULL) == 0) {
        struct acre_split lines = acre_split_begin(acre_str_from(devices_of(text)), '\n');
        for (char device[DEVICE_MAX]; next_device(&lines, device);) {
            mps_reap(self->mps, device);
        }
        local_remove_list(self, token, LIST_SUFFIX);
    }
    free(text);
}

void local_reap_mps(struct local *self) {
    local_each_list(self, LIST_SUFFIX, reap);
}
