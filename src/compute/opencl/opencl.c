/* opencl.c - OpenCL through the ICD loader: devices, seats, and what differs here.
 *
 * Any driver of version 1.2 will do; PoCL provides one on every machine. A seat is a context with
 * one device. Differences from what backend.h describes for GPUs of one vendor:
 *
 *   memory   Buffers are parts of regions. If the device has shared virtual memory, device regions
 *            use it and kernels take addresses. Otherwise regions are buffer objects and a part is
 *            a sub-buffer, which may start only at multiples of an alignment of the device (128 to
 *            512 bytes): other offsets are refused as ACRE_EUNSUPPORTED.
 *            ACRE_OPENCL_MEMORY=buffers in the environment selects buffer objects.
 *   host     PINNED memory is copied in seat; whether its pages are pinned is up to the driver.
 *            Kernels reach MAPPED memory on CPUs (a buffer object over it) and with fine-grained
 *            system SVM; elsewhere the launch is refused, and the region only serves for signal
 *            words, which the host writes.
 *   signals  A device writes no word for us: a marker's completion callback does, and wakes
 *            waiting threads (stream.c). Completions also end waits and notify.
 *   memory() OpenCL does not report free memory: it is the device's size minus what this seat has
 *            allocated.
 *   faults   A kernel that writes out of bounds on a CPU device ends the process: that is what
 *            runners are for. If the driver survives, the completion records the fault and check()
 *            reports it; the words of failed streams stay where they are.
 *   programs Bytes are the driver's, preceded by our checksum: drivers trust what they load. PoCL
 *            specializes a kernel when it is first launched with a group size, so the first launch
 *            takes longer there.
 *   absent   Graphs, rings, native kernels, file transfer, sharing of regions. */
#include "compute/opencl/seat.h"
#include "core/dl.h"
#include "opencl/pocl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOTES_MAX = 512, PATH_SHOWN = 120 };

struct opencl {
    struct opencl_api api;
    struct acre_opencl_found devices[ACRE_OPENCL_FOUND_MAX]; /* those that can compile */
    uint32_t count;
};

static const char *const sonames[] = {"libOpenCL.so.1", NULL};

static const struct acre_dl_symbol symbols[] = {
#define X(is_required, result, member, symbol, arguments)                                          \
    {.name = #symbol, .offset = offsetof(struct opencl, api.query.member), .required = is_required},
    OPENCL_QUERY_SYMBOLS(X)
#undef X
#define X(is_required, result, member, symbol, arguments)                                          \
    {.name = #symbol, .offset = offsetof(struct opencl, api.member), .required = is_required},
        OPENCL_SYMBOLS(X)
#undef X
};

static const struct {
    int32_t code;
    int ours;
    const char *name;
} errors[] = {
#define X(name, value, ours) {value, ACRE_E##ours, "CL_" #name},
    OPENCL_ERRORS(X)
#undef X
};

const char *opencl_error_name(int32_t code, char text[32]) {
    for (size_t i = 0; i < ACRE_COUNT(errors); i++) {
        if (errors[i].code == code) {
            return errors[i].name;
        }
    }
    snprintf(text, 32, "code %" PRId32, code);
    return text;
}

int opencl_fail(struct acre_error *err, int32_t code, const char *call) {
    int ours = ACRE_EINTERNAL;
    for (size_t i = 0; i < ACRE_COUNT(errors); i++) {
        ours = errors[i].code == code ? errors[i].ours : ours;
    }
    char text[32];
    return acre_fail(err, ours, "%s: %s", call, opencl_error_name(code, text));
}

void opencl_link_add(struct opencl_link *list, struct opencl_link *link) {
    link->next = list;
    link->previous = list->previous;
    list->previous->next = link;
    list->previous = link;
}

void opencl_link_remove(struct opencl_link *link) {
    link->previous->next = link->next;
    link->next->previous = link->previous;
}

/* --- devices -------------------------------------------------------------------------------- */

static uint64_t number_of(const struct opencl_api *api, opencl_device device, uint32_t what) {
    uint64_t value = 0;
    acre_opencl_number(&api->query, device, what, &value);
    return value;
}

static void close_runtime(void *self) {
    free(self);
}

/* PoCL says nothing when that is why it has no device. */
static void note_trouble(struct acre_buf *notes) {
    char path[PATH_MAX];
    int trouble = acre_pocl_directory(path) ? acre_pocl_trouble(path) : 0;
    if (trouble != 0) {
        char shown[PATH_SHOWN];
        struct acre_error why = {0};
        acre_str_show(acre_str_from(path), shown, sizeof(shown));
        acre_fail_errno(&why, trouble, "PoCL needs a writable directory: %s", shown);
        acre_buf_printf(notes, "%s; set POCL_CACHE_DIR to one", why.text);
    }
}

/* Devices that answer and compile, of what the platforms list. */
static int list(struct opencl *cl, struct acre_error *err) {
    struct acre_buf notes;
    acre_buf_init(&notes, NOTES_MAX);
    uint32_t listed = 0;
    int r = acre_opencl_list(&cl->api.query,
                             OPENCL_DEVICE_TYPE_GPU | OPENCL_DEVICE_TYPE_ACCELERATOR |
                                 OPENCL_DEVICE_TYPE_CPU,
                             cl->devices, &listed, &notes, err);
    for (uint32_t i = 0; i < listed; i++) {
        opencl_device device = cl->devices[i].device;
        if (number_of(&cl->api, device, OPENCL_DEVICE_AVAILABLE) != 0 &&
            number_of(&cl->api, device, OPENCL_DEVICE_COMPILER_AVAILABLE) != 0) {
            cl->devices[cl->count++] = cl->devices[i];
        }
    }
    if (r == 0 && cl->count == 0) {
        note_trouble(&notes);
        r = acre_fail(err, ACRE_EUNAVAILABLE,
                      "OpenCL lists %u devices, none that is available and compiles%s%s", listed,
                      notes.length > 0 ? "; " : "", notes.length > 0 ? notes.data : "");
    }
    acre_buf_finish(&notes);
    return r;
}

static int open_runtime(void **ret_self, struct acre_error *err) {
    struct opencl *cl = calloc(1, sizeof(*cl));
    if (cl == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "opencl");
    }
    const char *soname;
    int r = acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), cl, &soname, err);
    if (r == 0) {
        acre_pocl_settle_alone(); /* drivers are loaded by the first call */
    }
    r = r == 0 ? list(cl, err) : r;
    if (r < 0) {
        close_runtime(cl);
        return r;
    }
    *ret_self = cl;
    return 0;
}

static uint32_t count_devices(void *self) {
    return ((const struct opencl *)self)->count;
}

/* Device, driver and platform; a hash stands for the end of what has no room. */
static void identify(const struct opencl_api *api, const struct acre_opencl_found *found,
                     char *identity, size_t size) {
    char device[ACRE_OPENCL_TEXT_MAX];
    char driver[ACRE_OPENCL_TEXT_MAX];
    char platform[ACRE_OPENCL_TEXT_MAX];
    char all[3 * ACRE_OPENCL_TEXT_MAX + 8];
    struct acre_str parts[] = {
        acre_opencl_text(&api->query, found->device, OPENCL_DEVICE_VERSION, device, sizeof(device)),
        acre_opencl_text(&api->query, found->device, OPENCL_DRIVER_VERSION, driver, sizeof(driver)),
        acre_opencl_platform_text(&api->query, found->platform, OPENCL_PLATFORM_VERSION, platform,
                                  sizeof(platform))};
    int length = snprintf(all, sizeof(all), "%.*s; %.*s; %.*s", (int)parts[0].length, parts[0].data,
                          (int)parts[1].length, parts[1].data, (int)parts[2].length, parts[2].data);
    snprintf(identity, size, "%s", all);
    if ((size_t)length >= size) {
        char hash[20];
        int hashed = snprintf(hash, sizeof(hash), "~%016" PRIx64,
                              acre_hash_bytes(all, ACRE_MIN((size_t)length, sizeof(all) - 1)));
        memcpy(identity + size - 1 - hashed, hash, (size_t)hashed);
    }
}

static uint32_t narrow(uint64_t value) {
    return (uint32_t)ACRE_MIN(value, (uint64_t)UINT32_MAX);
}

static void describe(void *self, uint32_t index, struct acre_compute_device *ret_device) {
    const struct opencl *cl = self;
    ACRE_ASSERT(index < cl->count);
    const struct opencl_api *api = &cl->api;
    opencl_device device = cl->devices[index].device;
    struct acre_compute_device described = {.capabilities = ACRE_CAN_SOURCE};
    char text[ACRE_OPENCL_TEXT_MAX];
    struct acre_str name = acre_str_trim(
        acre_opencl_text(&api->query, device, OPENCL_DEVICE_NAME, text, sizeof(text)));
    snprintf(described.name, sizeof(described.name), "%.*s", (int)name.length, name.data);
    identify(api, &cl->devices[index], described.identity, sizeof(described.identity));
    described.memory_bytes = number_of(api, device, OPENCL_DEVICE_GLOBAL_MEM_SIZE);
    described.units = narrow(number_of(api, device, OPENCL_DEVICE_MAX_COMPUTE_UNITS));
    described.group_max = narrow(number_of(api, device, OPENCL_DEVICE_MAX_WORK_GROUP_SIZE));
    described.local_bytes = narrow(number_of(api, device, OPENCL_DEVICE_LOCAL_MEM_SIZE));
    if (number_of(api, device, OPENCL_DEVICE_DOUBLE_FP_CONFIG) != 0) {
        described.capabilities |= ACRE_CAN_DOUBLE;
    }
    if (acre_opencl_has_extension(&api->query, device, "cl_khr_int64_base_atomics") &&
        acre_opencl_has_extension(&api->query, device, "cl_khr_int64_extended_atomics")) {
        described.capabilities |= ACRE_CAN_ATOMIC64;
    }
    *ret_device = described;
}

/* --- seats --------------------------------------------------------------------------------- */

static bool has_svm_functions(const struct opencl_api *api) {
    return api->svm_alloc != NULL && api->svm_free != NULL && api->svm_copy != NULL &&
           api->svm_fill != NULL && api->set_arg_svm != NULL;
}

static void ask_device(struct opencl_seat *seat) {
    const struct opencl_api *api = seat->api;
    opencl_device device = seat->device;
    const char *memory = getenv("ACRE_OPENCL_MEMORY");
    uint64_t svm = has_svm_functions(api) && (memory == NULL || strcmp(memory, "buffers") != 0)
                       ? number_of(api, device, OPENCL_DEVICE_SVM_CAPABILITIES)
                       : 0;
    seat->has_svm = (svm & OPENCL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
    seat->has_system_svm = seat->has_svm && (svm & OPENCL_DEVICE_SVM_FINE_GRAIN_SYSTEM) != 0;
    seat->is_cpu = (number_of(api, device, OPENCL_DEVICE_TYPE) & OPENCL_DEVICE_TYPE_CPU) != 0;
    seat->total_bytes = number_of(api, device, OPENCL_DEVICE_GLOBAL_MEM_SIZE);
    seat->alloc_max_bytes = number_of(api, device, OPENCL_DEVICE_MAX_MEM_ALLOC_SIZE);
    uint64_t align_bits = number_of(api, device, OPENCL_DEVICE_MEM_BASE_ADDR_ALIGN);
    seat->part_align_bytes = ACRE_MAX(narrow(align_bits / 8), 1U);
}

static int seat_open(void *self, uint32_t device, void **ret_seat, struct acre_error *err) {
    struct opencl *cl = self;
    ACRE_ASSERT(device < cl->count);
    struct opencl_seat *seat = calloc(1, sizeof(*seat));
    if (seat == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "seat");
    }
    seat->api = &cl->api;
    seat->device = cl->devices[device].device;
    intptr_t properties[] = {OPENCL_CONTEXT_PLATFORM, (intptr_t)cl->devices[device].platform, 0};
    int32_t code = OPENCL_SUCCESS;
    seat->context = cl->api.create_context(properties, 1, &seat->device, NULL, NULL, &code);
    if (code != OPENCL_SUCCESS) {
        free(seat);
        return opencl_fail(err, code, "clCreateContext");
    }
    ask_device(seat);
    seat->cache_fd = pocl_cache_open(&cl->api.query, cl->devices[device].platform);
    pthread_mutex_init(&seat->lock, NULL);
    pthread_cond_init(&seat->quiet, NULL);
    struct opencl_link *lists[] = {&seat->due, &seat->wanted, &seat->streams, &seat->regions,
                                   &seat->modules};
    for (size_t i = 0; i < ACRE_COUNT(lists); i++) {
        lists[i]->next = lists[i]->previous = lists[i];
    }
    *ret_seat = seat;
    return 0;
}

static void seat_close(void *closed) {
    struct opencl_seat *seat = closed;
    opencl_completions_end(seat);
    while (seat->streams.next != &seat->streams) {
        opencl_stream_destroy(seat, (uintptr_t)seat->streams.next);
    }
    while (seat->modules.next != &seat->modules) {
        opencl_unload(seat, (uintptr_t)seat->modules.next);
    }
    while (seat->regions.next != &seat->regions) {
        opencl_region_destroy(seat, (uintptr_t)seat->regions.next);
    }
    seat->api->release_context(seat->context);
    if (seat->cache_fd >= 0) {
        close(seat->cache_fd);
    }
    pthread_cond_destroy(&seat->quiet);
    pthread_mutex_destroy(&seat->lock);
    free(seat);
}

static void seat_let_go(void *left) {
    const struct opencl_seat *seat = left;
    if (seat->cache_fd >= 0) {
        close(seat->cache_fd);
    }
}

static int check(void *checked, struct acre_error *err) {
    struct opencl_seat *seat = checked;
    pthread_mutex_lock(&seat->lock);
    int r = seat->failed != 0 ? acre_fail(err, seat->failed, "%s", seat->failure) : 0;
    pthread_mutex_unlock(&seat->lock);
    return r;
}

static int memory(void *asked, uint64_t *ret_free, uint64_t *ret_total, struct acre_error *err) {
    (void)err;
    struct opencl_seat *seat = asked;
    pthread_mutex_lock(&seat->lock);
    *ret_free = seat->total_bytes - seat->used_bytes;
    pthread_mutex_unlock(&seat->lock);
    *ret_total = seat->total_bytes;
    return 0;
}

const struct backend backend_opencl = {
    .name = "opencl",
    .what = "OpenCL devices through libOpenCL",
    .language = ACRE_LANGUAGE_OPENCL,
    .capabilities = ACRE_CAN_SOURCE | ACRE_CAN_DOUBLE | ACRE_CAN_ATOMIC64,
    .wakes = true,
    .open = open_runtime,
    .close = close_runtime,
    .count = count_devices,
    .describe = describe,
    .seat_open = seat_open,
    .seat_close = seat_close,
    .seat_let_go = seat_let_go,
    .check = check,
    .memory = memory,
    .region_create = opencl_region_create,
    .region_destroy = opencl_region_destroy,
    .stream_create = opencl_stream_create,
    .stream_destroy = opencl_stream_destroy,
    .copy = opencl_copy,
    .fill = opencl_fill,
    .launch = opencl_launch,
    .signal = opencl_signal,
    .wait = opencl_wait,
    .notify = opencl_notify,
    .compile = opencl_compile,
    .load = opencl_load,
    .unload = opencl_unload,
    .kernel = opencl_kernel,
    .profile = opencl_profile,
    .timings = opencl_timings,
};
