/* gpu.c - devices and seats of a GPU back end, and what its driver's codes mean.
 *
 * It uses the driver's own context (CUDA's primary one): a seat has its own process, so no one
 * else shares it, and libraries that look for "the current context" find this one. The current
 * context is a property of the calling thread, and other code of the process may change it: each
 * entry checks (about 10 ns) and sets it only if it differs.
 *
 * A kernel fault shows as the code of any later call, and then of all of them. The seat keeps the
 * first one; without one, check() makes a call that waits for nothing. */
#include "compute/gpu/entries.h"
#include "compute/gpu/seat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_NON_BLOCKING = 1 }; /* the same in CUDA and HIP */

static const struct gpu_names cuda_names = {
#define X(required, member, cuda, hip, arguments) .member = (cuda),
    GPU_SYMBOLS(X)
#undef X
};

static const struct gpu_names hip_names = {
#define X(required, member, cuda, hip, arguments) .member = (hip),
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

int gpu_fail(const struct gpu *gpu, struct gpu_seat *seat, int code, const char *call,
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
    if (fault->is_lasting && seat != NULL) {
        int none = 0;
        atomic_compare_exchange_strong(&seat->lasting, &none, code);
    }
    if (fault->words == NULL) {
        return acre_fail(err, fault->error, "%.*s%s%s", length, call, colon, fault->name);
    }
    return acre_fail(err, fault->error, "%.*s%s%s (%s)", length, call, colon, fault->words,
                     fault->name);
}

int gpu_enter(struct gpu_seat *seat, struct acre_error *err) {
    int code = seat->gpu->vendor->context_enter(seat->gpu, seat->context);
    return code == 0 ? 0 : gpu_fail(seat->gpu, seat, code, "context", err);
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
        return acre_fail(err, ACRE_EUNAVAILABLE, "the driver lists no devices");
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
    ACRE_ASSERT(gpu->seats == NULL);
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

/* --- seats --------------------------------------------------------------------------------- */

void gpu_link_in(struct gpu_seat *seat, struct gpu_link *head, struct gpu_link *link) {
    pthread_mutex_lock(&seat->lock);
    link->next = head->next;
    link->before = head;
    head->next->before = link;
    head->next = link;
    pthread_mutex_unlock(&seat->lock);
}

void gpu_link_out(struct gpu_seat *seat, struct gpu_link *link) {
    pthread_mutex_lock(&seat->lock);
    link->next->before = link->before;
    link->before->next = link->next;
    pthread_mutex_unlock(&seat->lock);
}

/* Both ways, where there is a path; where there is none the driver copies through the host. */
static void enable_peers(struct gpu *gpu, struct gpu_seat *seat) {
    const struct gpu_vendor *vendor = gpu->vendor;
    for (struct gpu_seat *other = gpu->seats; other != NULL; other = other->next) {
        int forth = 0;
        int back = 0;
        if (other->device == seat->device ||
            gpu->driver.can_peer(&forth, seat->device, other->device) != 0 ||
            gpu->driver.can_peer(&back, other->device, seat->device) != 0) {
            continue;
        }
        if (forth != 0 && vendor->context_enter(gpu, seat->context) == 0) {
            vendor->context_peer(gpu, other->context);
        }
        if (back != 0 && vendor->context_enter(gpu, other->context) == 0) {
            vendor->context_peer(gpu, seat->context);
        }
    }
    vendor->context_enter(gpu, seat->context);
}

static void init_lists(struct gpu_seat *seat) {
    struct gpu_link *heads[] = {&seat->regions, &seat->streams, &seat->modules, &seat->graphs};
    for (size_t i = 0; i < ACRE_COUNT(heads); i++) {
        heads[i]->next = heads[i];
        heads[i]->before = heads[i];
    }
}

/* All seats of a device are the driver's one context: what is loaded for one of them waits for a
 * kernel that another keeps, and which only that one's front can send away meanwhile. */
static int join(struct gpu *gpu, struct gpu_seat *seat, struct acre_error *err) {
    int r = 0;
    pthread_mutex_lock(&gpu->lock);
    for (const struct gpu_seat *other = gpu->seats; other != NULL; other = other->next) {
        if (other->index == seat->index && other->residents > 0) {
            r = acre_fail(err, ACRE_ECONFLICT,
                          "%s: another context of this process has a resident ring there; open "
                          "this context in a separate process (ACRE_CONTEXT_ISOLATION_PROCESS)",
                          gpu->devices[seat->index].description.name);
        }
    }
    if (r == 0) {
        enable_peers(gpu, seat);
        seat->next = gpu->seats;
        gpu->seats = seat;
    }
    pthread_mutex_unlock(&gpu->lock);
    return r;
}

static void share_queues(struct gpu_seat *seat) {
    uint32_t queues = seat->gpu->queues;
    if (queues == 0) {
        seat->lane_count = GPU_LANES;
        return;
    }
    uint32_t others = queues > 1 ? queues - 1 : 1; /* one is the side stream's */
    seat->residents_max = ACRE_MIN(others - 1, (uint32_t)GPU_RESIDENTS);
    seat->lane_count = ACRE_MIN(others - seat->residents_max, (uint32_t)GPU_LANES);
}

int gpu_seat_open(void *self, uint32_t device, void **ret_seat, struct acre_error *err) {
    struct gpu *gpu = self;
    ACRE_ASSERT(device < gpu->count);
    struct gpu_seat *seat = calloc(1, sizeof(*seat));
    if (seat == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "seat");
    }
    seat->gpu = gpu;
    seat->index = device;
    seat->device = gpu->devices[device].device;
    init_lists(seat);
    share_queues(seat);
    int code = gpu->vendor->context_open(gpu, seat->device, &seat->context);
    if (code != 0) {
        int r = gpu_fail(gpu, NULL, code, "context", err);
        free(seat);
        return r;
    }
    code = gpu->vendor->context_enter(gpu, seat->context);
    code = code == 0 ? gpu->driver.stream_create(&seat->side, STREAM_NON_BLOCKING) : code;
    int r = code == 0 ? join(gpu, seat, err)
                      : gpu_fail(gpu, NULL, code, gpu->names->stream_create, err);
    if (r < 0) {
        if (code == 0) {
            gpu->driver.stream_destroy(seat->side);
        }
        gpu->vendor->context_close(gpu, seat->device, seat->context);
        free(seat);
        return r;
    }
    pthread_mutex_init(&seat->lock, NULL);
    *ret_seat = seat;
    return 0;
}

static void free_all(struct gpu_seat *seat) {
    while (seat->graphs.next != &seat->graphs) {
        gpu_graph_destroy(seat, (uint64_t)(uintptr_t)seat->graphs.next);
    }
    while (seat->modules.next != &seat->modules) {
        gpu_unload(seat, (uint64_t)(uintptr_t)seat->modules.next);
    }
    while (seat->streams.next != &seat->streams) {
        gpu_stream_destroy(seat, (uint64_t)(uintptr_t)seat->streams.next);
    }
    for (size_t i = 0; i < seat->lane_count; i++) {
        if (seat->lanes[i].stream != 0) {
            seat->gpu->driver.stream_destroy(seat->lanes[i].stream);
        }
    }
    while (seat->regions.next != &seat->regions) {
        gpu_region_destroy(seat, (uint64_t)(uintptr_t)seat->regions.next);
    }
}

void gpu_seat_close(void *self) {
    struct gpu_seat *seat = self;
    if (seat == NULL) {
        return;
    }
    struct gpu *gpu = seat->gpu;
    pthread_mutex_lock(&gpu->lock);
    struct gpu_seat **link = &gpu->seats;
    while (*link != seat) {
        link = &(*link)->next;
    }
    *link = seat->next;
    pthread_mutex_unlock(&gpu->lock);
    gpu->vendor->context_enter(gpu, seat->context);
    free_all(seat);
    gpu->driver.stream_destroy(seat->side);
    gpu->vendor->context_close(gpu, seat->device, seat->context);
    pthread_mutex_destroy(&seat->lock);
    free(seat);
}

int gpu_check(void *self, struct acre_error *err) {
    struct gpu_seat *seat = self;
    int code = atomic_load(&seat->lasting);
    if (code == 0) {
        int r = gpu_enter(seat, err);
        if (r < 0) {
            return r;
        }
        code = seat->gpu->vendor->check(seat);
    }
    return code == 0 ? 0 : gpu_fail(seat->gpu, seat, code, NULL, err);
}

int gpu_memory(void *self, uint64_t *ret_free, uint64_t *ret_total, struct acre_error *err) {
    struct gpu_seat *seat = self;
    size_t unused = 0;
    size_t total = 0;
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    int code = seat->gpu->driver.memory_info(&unused, &total);
    if (code != 0) {
        return gpu_fail(seat->gpu, seat, code, seat->gpu->names->memory_info, err);
    }
    *ret_free = unused;
    *ret_total = total;
    return 0;
}
