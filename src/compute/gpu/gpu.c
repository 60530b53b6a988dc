/* gpu.c - devices and places of a GPU back end, and what its driver's codes mean.
 *
 * The driver's own context is used (CUDA's primary one): a place has a process of its own, so there
 * is nobody to share it with, and libraries that find "the current context" find this one. Which
 * context is current belongs to the calling thread, and other code of the process may change it:
 * each entry looks (some 10 ns) and sets it only when it is another.
 *
 * A fault of a kernel shows as a code of any later call, and then of all of them. The first is kept
 * with the place; check() makes a call that waits for nothing when none was seen. */
#include "compute/gpu/entries.h"
#include "compute/gpu/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_NON_BLOCKING = 1 }; /* the same in CUDA and HIP */

static const struct gpu_names cuda_names = {
#define X(required, field, cuda, hip, arguments) .field = (cuda),
    GPU_SYMBOLS(X)
#undef X
};

static const struct gpu_names hip_names = {
#define X(required, field, cuda, hip, arguments) .field = (hip),
    GPU_SYMBOLS(X)
#undef X
};

/* --- codes ---------------------------------------------------------------------------------- */

static const struct gpu_fault *find_fault(const struct gpu_vendor *vendor, int code) {
    for (size_t i = 0; i < vendor->fault_count; i++) {
        if (vendor->faults[i].code == code) {
            return &vendor->faults[i];
        }
    }
    return NULL;
}

int gpu_fail(const struct gpu *gpu, struct gpu_place *place, int code, const char *call,
             struct acre_error *err) {
    const struct gpu_fault *fault = find_fault(gpu->vendor, code);
    const char *colon = call != NULL ? ": " : "";
    call = call != NULL ? call : "";
    const char *version = strstr(call, "_v"); /* users know it as cuMemAlloc */
    int length = version != NULL ? (int)(version - call) : (int)strlen(call);
    if (fault == NULL) {
        return acre_fail(err, ACRE_EINTERNAL, "%.*s%s%s (%d)", length, call, colon,
                         gpu->vendor->code_name(gpu, code), code);
    }
    if (fault->is_lasting && place != NULL) {
        int none = 0;
        atomic_compare_exchange_strong(&place->lasting, &none, code);
    }
    if (fault->words == NULL) {
        return acre_fail(err, fault->error, "%.*s%s%s", length, call, colon, fault->name);
    }
    return acre_fail(err, fault->error, "%.*s%s%s (%s)", length, call, colon, fault->words,
                     fault->name);
}

int gpu_enter(struct gpu_place *place, struct acre_error *err) {
    int code = place->gpu->vendor->context_enter(place->gpu, place->context);
    return code == 0 ? 0 : gpu_fail(place->gpu, place, code, "context", err);
}

/* --- devices -------------------------------------------------------------------------------- */

static int describe_device(struct gpu *gpu, int ordinal, struct gpu_device *device,
                           struct acre_error *err) {
    struct acre_compute_device *to = &device->description;
    size_t bytes = 0;
    const char *call = gpu->names->device_get;
    int code = gpu->driver.device_get(&device->device, ordinal);
    if (code == 0) {
        call = gpu->names->device_name;
        code = gpu->driver.device_name(to->name, sizeof(to->name), device->device);
        to->name[sizeof(to->name) - 1] = '\0';
    }
    if (code == 0) {
        call = gpu->names->device_memory;
        code = gpu->driver.device_memory(&bytes, device->device);
        to->memory_bytes = bytes;
    }
    if (code == 0) {
        call = gpu->names->device_attribute;
        code = gpu->vendor->describe(gpu, device->device, to);
    }
    return code == 0 ? 0 : gpu_fail(gpu, NULL, code, call, err);
}

int gpu_start(struct gpu *gpu, struct acre_error *err) {
    gpu->names = gpu->vendor->is_hip ? &hip_names : &cuda_names;
    int count = 0;
    const char *call = gpu->names->init;
    int code = gpu->driver.init(0);
    if (code == 0) {
        call = gpu->names->driver_version;
        code = gpu->driver.driver_version(&gpu->version);
    }
    if (code == 0) {
        call = gpu->names->device_count;
        code = gpu->driver.device_count(&count);
    }
    if (code != 0) { /* whatever the driver says: there is no device to be had from it */
        gpu_fail(gpu, NULL, code, call, err);
        if (err != NULL) {
            err->code = ACRE_EUNAVAILABLE;
        }
        return ACRE_EUNAVAILABLE;
    }
    if (count <= 0) {
        return acre_fail(err, ACRE_EUNAVAILABLE, "the driver has no device");
    }
    gpu->devices = calloc((size_t)count, sizeof(*gpu->devices));
    if (gpu->devices == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "%d devices", count);
    }
    if (gpu->vendor->prepare != NULL) {
        gpu->vendor->prepare(gpu);
    }
    for (int i = 0; i < count; i++) {
        int r = describe_device(gpu, i, &gpu->devices[i], err);
        if (r < 0) {
            free(gpu->devices);
            gpu->devices = NULL;
            return acre_fail_in(err, r, "device %d", i);
        }
    }
    gpu->count = (uint32_t)count;
    pthread_mutex_init(&gpu->lock, NULL);
    return 0;
}

void gpu_close(void *self) {
    struct gpu *gpu = self;
    if (gpu == NULL) {
        return;
    }
    ACRE_ASSERT(gpu->places == NULL);
    if (gpu->count > 0) {
        pthread_mutex_destroy(&gpu->lock);
    }
    free(gpu->devices);
    free(gpu);
}

uint32_t gpu_count(void *self) {
    return ((struct gpu *)self)->count;
}

void gpu_describe(void *self, uint32_t device, struct acre_compute_device *ret_device) {
    const struct gpu *gpu = self;
    ACRE_ASSERT(device < gpu->count);
    *ret_device = gpu->devices[device].description;
}

/* --- places --------------------------------------------------------------------------------- */

void gpu_link_in(struct gpu_place *place, struct gpu_link *head, struct gpu_link *link) {
    pthread_mutex_lock(&place->lock);
    link->next = head->next;
    link->before = head;
    head->next->before = link;
    head->next = link;
    pthread_mutex_unlock(&place->lock);
}

void gpu_link_out(struct gpu_place *place, struct gpu_link *link) {
    pthread_mutex_lock(&place->lock);
    link->next->before = link->before;
    link->before->next = link->next;
    pthread_mutex_unlock(&place->lock);
}

/* Both ways, where there is a path; where there is none the driver copies through the host. */
static void enable_peers(struct gpu *gpu, struct gpu_place *place) {
    const struct gpu_vendor *vendor = gpu->vendor;
    for (struct gpu_place *other = gpu->places; other != NULL; other = other->next) {
        int forth = 0;
        int back = 0;
        if (other->device == place->device ||
            gpu->driver.can_peer(&forth, place->device, other->device) != 0 ||
            gpu->driver.can_peer(&back, other->device, place->device) != 0) {
            continue;
        }
        if (forth != 0 && vendor->context_enter(gpu, place->context) == 0) {
            vendor->context_peer(gpu, other->context);
        }
        if (back != 0 && vendor->context_enter(gpu, other->context) == 0) {
            vendor->context_peer(gpu, place->context);
        }
    }
    vendor->context_enter(gpu, place->context);
}

static void init_lists(struct gpu_place *place) {
    struct gpu_link *heads[] = {&place->regions, &place->streams, &place->modules, &place->graphs};
    for (size_t i = 0; i < ACRE_COUNT(heads); i++) {
        heads[i]->next = heads[i];
        heads[i]->before = heads[i];
    }
}

/* All places of a device are the driver's one context: what is loaded for one of them waits for a
 * kernel that another keeps, and which only that one's front can send away meanwhile. */
static int join(struct gpu *gpu, struct gpu_place *place, struct acre_error *err) {
    int r = 0;
    pthread_mutex_lock(&gpu->lock);
    for (const struct gpu_place *other = gpu->places; other != NULL; other = other->next) {
        if (other->index == place->index && other->residents > 0) {
            r = acre_fail(err, ACRE_ECONFLICT,
                          "%s: a ring of another context of this process is resident there; "
                          "accepted: a context with a process of its own",
                          gpu->devices[place->index].description.name);
        }
    }
    if (r == 0) {
        enable_peers(gpu, place);
        place->next = gpu->places;
        gpu->places = place;
    }
    pthread_mutex_unlock(&gpu->lock);
    return r;
}

static void share_queues(struct gpu_place *place) {
    uint32_t queues = place->gpu->queues;
    if (queues == 0) {
        place->lane_count = GPU_LANES;
        return;
    }
    uint32_t others = queues > 1 ? queues - 1 : 1; /* one is the side stream's */
    place->residents_max = ACRE_MIN(others - 1, (uint32_t)GPU_RESIDENTS);
    place->lane_count = ACRE_MIN(others - place->residents_max, (uint32_t)GPU_LANES);
}

int gpu_place_open(void *self, uint32_t device, void **ret_place, struct acre_error *err) {
    struct gpu *gpu = self;
    ACRE_ASSERT(device < gpu->count);
    struct gpu_place *place = calloc(1, sizeof(*place));
    if (place == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "place");
    }
    place->gpu = gpu;
    place->index = device;
    place->device = gpu->devices[device].device;
    init_lists(place);
    share_queues(place);
    int code = gpu->vendor->context_open(gpu, place->device, &place->context);
    if (code != 0) {
        int r = gpu_fail(gpu, NULL, code, "context", err);
        free(place);
        return r;
    }
    code = gpu->vendor->context_enter(gpu, place->context);
    code = code == 0 ? gpu->driver.stream_create(&place->side, STREAM_NON_BLOCKING) : code;
    int r = code == 0 ? join(gpu, place, err)
                      : gpu_fail(gpu, NULL, code, gpu->names->stream_create, err);
    if (r < 0) {
        if (code == 0) {
            gpu->driver.stream_destroy(place->side);
        }
        gpu->vendor->context_close(gpu, place->device, place->context);
        free(place);
        return r;
    }
    pthread_mutex_init(&place->lock, NULL);
    *ret_place = place;
    return 0;
}

static void free_all(struct gpu_place *place) {
    while (place->graphs.next != &place->graphs) {
        gpu_graph_destroy(place, (uint64_t)(uintptr_t)place->graphs.next);
    }
    while (place->modules.next != &place->modules) {
        gpu_unload(place, (uint64_t)(uintptr_t)place->modules.next);
    }
    while (place->streams.next != &place->streams) {
        gpu_stream_destroy(place, (uint64_t)(uintptr_t)place->streams.next);
    }
    for (size_t i = 0; i < place->lane_count; i++) {
        if (place->lanes[i].stream != 0) {
            place->gpu->driver.stream_destroy(place->lanes[i].stream);
        }
    }
    while (place->regions.next != &place->regions) {
        gpu_region_destroy(place, (uint64_t)(uintptr_t)place->regions.next);
    }
}

void gpu_place_close(void *self) {
    struct gpu_place *place = self;
    if (place == NULL) {
        return;
    }
    struct gpu *gpu = place->gpu;
    pthread_mutex_lock(&gpu->lock);
    struct gpu_place **link = &gpu->places;
    while (*link != place) {
        link = &(*link)->next;
    }
    *link = place->next;
    pthread_mutex_unlock(&gpu->lock);
    gpu->vendor->context_enter(gpu, place->context);
    free_all(place);
    gpu->driver.stream_destroy(place->side);
    gpu->vendor->context_close(gpu, place->device, place->context);
    pthread_mutex_destroy(&place->lock);
    free(place);
}

int gpu_check(void *self, struct acre_error *err) {
    struct gpu_place *place = self;
    int code = atomic_load(&place->lasting);
    if (code == 0) {
        int r = gpu_enter(place, err);
        if (r < 0) {
            return r;
        }
        code = place->gpu->vendor->check(place);
    }
    return code == 0 ? 0 : gpu_fail(place->gpu, place, code, NULL, err);
}

int gpu_memory(void *self, uint64_t *ret_free, uint64_t *ret_total, struct acre_error *err) {
    struct gpu_place *place = self;
    size_t unused = 0;
    size_t total = 0;
    int r = gpu_enter(place, err);
    if (r < 0) {
        return r;
    }
    int code = place->gpu->driver.memory_info(&unused, &total);
    if (code != 0) {
        return gpu_fail(place->gpu, place, code, place->gpu->names->memory_info, err);
    }
    *ret_free = unused;
    *ret_total = total;
    return 0;
}
