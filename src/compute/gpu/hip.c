/* hip.c - AMD GPUs through HIP: what differs from CUDA, for the back end they share (gpu.h).
 *
 * HIP has no real contexts: each thread has a current device, and setting it costs no more than
 * checking it. So a context is the device's number, and closing one frees nothing.
 *
 * How AMD's runtime signals and waits decides what is offered here. A write of 8 bytes is a small
 * kernel after a barrier that releases to the system: when the host sees the word, it sees
 * everything written before it. A wait is a kernel that polls. The streams of a process share four
 * hardware queues, and each does its work in order: a kernel that never ends stops the streams that
 * happen to share its queue. Waits are safe, because the front waits only for signals it queued
 * before. A ring is not, so ACRE_CAN_RING is missing here. The front replays graphs.
 *
 * When a kernel touches unmapped memory, AMD's runtime aborts the process: HIP contexts belong in
 * runners.
 *
 * Tested so far: loading, the errors without a device, and the compiler (hip_rtc.c), with Debian's
 * HIP 5.2. Everything here was compared with AMD's headers (hip_abi.h) and source, but no AMD GPU
 * has run it yet: tests/gpu/compute_hip.c is for people who have one. */
#include "compute/gpu/hip.h"

#include "compute/gpu/entries.h"
#include "compute/gpu/seat.h"
#include "core/dl.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct hip *hip_of(const struct gpu *gpu) {
    return (const struct hip *)gpu;
}

/* --- devices -------------------------------------------------------------------------------- */

static const char *code_name(const struct gpu *gpu, int code) {
    return hip_of(gpu)->error_name(code);
}

/* "gfx90a:sramecc+:xnack-" */
static int read_arch(const struct hip *hip, int device, char ret_arch[HIP_ARCH_BYTES]) {
    /* Larger than all versions of the struct, and aligned as a struct is. */
    union {
        char bytes[HIP_PROPERTIES_BYTES];
        max_align_t alignment;
    } properties = {{0}};
    bool is_new = hip->properties_6 != NULL;
    int code =
        is_new ? hip->properties_6(&properties, device) : hip->properties_5(&properties, device);
    if (code == 0) {
        const char *arch = properties.bytes + (is_new ? HIP_ARCH_AT_6 : HIP_ARCH_AT_5);
        snprintf(ret_arch, HIP_ARCH_BYTES, "%.*s", HIP_ARCH_BYTES - 1, arch);
    }
    return code;
}

/* The 16 bytes are text, the same as in /sys: "f1b0a8e2c45d7712". Old devices have none. */
static void read_uuid(const struct hip *hip, int device, struct acre_compute_device *to) {
    struct hip_uuid uuid = {{0}};
    if (hip->uuid != NULL && hip->uuid(&uuid, device) == 0 && uuid.bytes[0] != '\0') {
        snprintf(to->uuid, sizeof(to->uuid), "GPU-%.16s", uuid.bytes);
    }
}

static int describe(struct gpu *gpu, int device, struct acre_compute_device *to) {
    const struct hip *hip = hip_of(gpu);
    static const int attributes[] = {HIP_UNITS, HIP_GROUP_MAX, HIP_LOCAL_BYTES};
    uint32_t *const limits[] = {&to->units, &to->group_max, &to->local_bytes};
    for (size_t i = 0; i < ACRE_COUNT(attributes); i++) {
        int value = 0;
        int code = gpu->driver.device_attribute(&value, attributes[i], device);
        if (code != 0) {
            return code;
        }
        *limits[i] = (uint32_t)ACRE_MAX(value, 0);
    }
    char arch[HIP_ARCH_BYTES];
    int code = read_arch(hip, device, arch);
    if (code != 0) {
        return code;
    }
    int major = 0, minor = 0;
    if (hip->has_rtc) {
        hip->rtc.version(&major, &minor);
    }
    /* The architecture comes first, and ends at the first space: hip_compile reads it from here. */
    snprintf(to->identity, sizeof(to->identity), "%.96s HIP %d driver %d HIPRTC %d.%d", arch,
             hip->version, gpu->version, major, minor);
    read_uuid(hip, device, to);
    snprintf(to->backend, sizeof(to->backend), "%s", backend_hip.name);
    to->capabilities =
        ACRE_CAN_DOUBLE | ACRE_CAN_ATOMIC64 | (hip->has_rtc ? (uint32_t)ACRE_CAN_SOURCE : 0);
    return 0;
}

/* --- contexts: the device's number + 1, so that 0 is none ------------------------------------ */

static int context_enter(const struct gpu *gpu, gpu_handle context) {
    return hip_of(gpu)->set_device((int)context - 1);
}

static int context_open(struct gpu *gpu, int device, gpu_handle *ret_context) {
    gpu_handle context = (gpu_handle)device + 1;
    int code = context_enter(gpu, context);
    if (code == 0) {
        *ret_context = context;
    }
    return code;
}

static void context_close(struct gpu *gpu, int device, gpu_handle context) {
    (void)gpu; /* hipDeviceReset would end other seats on the same device */
    (void)device;
    (void)context;
}

static int context_peer(struct gpu *gpu, gpu_handle peer) {
    int code = hip_of(gpu)->enable_peer((int)peer - 1, 0);
    return code == HIP_PEER_ALREADY ? 0 : code;
}

static bool works_so_far(int code) {
    return code == 0 || code == HIP_NOT_READY;
}

/* Each stream of the driver once, however many of the front share it. */
static int check(struct gpu_seat *seat) {
    const struct hip *hip = hip_of(seat->gpu);
    int code = hip->stream_query(seat->side);
    pthread_mutex_lock(&seat->lock);
    for (uint32_t i = 0; i < seat->lane_count && works_so_far(code); i++) {
        gpu_handle lane = seat->lanes[i].stream;
        code = lane != 0 ? hip->stream_query(lane) : code;
    }
    pthread_mutex_unlock(&seat->lock);
    return works_so_far(code) ? 0 : code;
}

/* --- work ----------------------------------------------------------------------------------- */

static int copy(const struct gpu *gpu, uintptr_t to, uintptr_t from, size_t bytes,
                gpu_handle stream) {
    return hip_of(gpu)->copy(to, from, bytes, HIP_COPY_ANY, stream);
}

static int wait64(const struct gpu *gpu, gpu_handle stream, uintptr_t address, uint64_t value) {
    return hip_of(gpu)->wait64(stream, address, value, HIP_WAIT_AT_LEAST, UINT64_MAX);
}

struct called {
    void (*function)(void *);
    void *user;
};

static void call(gpu_handle stream, int status, void *user) {
    (void)stream;
    (void)status; /* a failure shows elsewhere; who waits for the call must be woken in any case */
    struct called *called = user;
    called->function(called->user);
    free(called);
}

/* hipLaunchHostFunc came with HIP 5.3. */
static int host_function(const struct gpu *gpu, gpu_handle stream, void (*function)(void *),
                         void *user) {
    const struct hip *hip = hip_of(gpu);
    if (gpu->driver.host_function != NULL) {
        return gpu->driver.host_function(stream, function, user);
    }
    struct called *called = malloc(sizeof(*called));
    if (called == NULL) {
        return HIP_NO_MEMORY;
    }
    *called = (struct called){function, user};
    int code = hip->add_callback(stream, call, called, 0);
    if (code != 0) {
        free(called);
    }
    return code;
}

/* HIP trusts what it is given: a text, or code for another machine, would be read as its own. */
static int image_check(const void *bytes, size_t length, struct acre_error *err) {
    static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__";
    Elf64_Ehdr header = {0};
    memcpy(&header, bytes, ACRE_MIN(length, sizeof(header)));
    if ((memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_machine == EM_AMDGPU) ||
        memcmp(&header, bundle, sizeof(bundle) - 1) == 0) {
        return 0;
    }
    return acre_fail(err, ACRE_ECORRUPT, "these %zu bytes are not a code object for an AMD GPU",
                     length);
}

static const struct gpu_fault faults[] = {
#define X(name, code, error, lasting, words) {code, name, ACRE_E##error, lasting, words},
    HIP_FAULTS(X)
#undef X
};

static const struct gpu_vendor vendor = {
    .is_hip = true,
    .faults = faults,
    .fault_count = ACRE_COUNT(faults),
    .code_name = code_name,
    .describe = describe,
    .context_open = context_open,
    .context_close = context_close,
    .context_enter = context_enter,
    .context_peer = context_peer,
    .check = check,
    .copy = copy,
    .wait64 = wait64,
    .host_function = host_function,
    .image_check = image_check,
};

/* --- loading -------------------------------------------------------------------------------- */

static const struct acre_dl_symbol symbols[] = {
#define X(need, member, cuda, ours, arguments)                                                     \
    {ours, offsetof(struct hip, gpu.driver.member), need},
    GPU_SYMBOLS(X)
#undef X
#define X(need, member, symbol, result, arguments) {symbol, offsetof(struct hip, member), need},
        HIP_SYMBOLS(X)
#undef X
};

int hip_load(struct hip **ret_hip, struct acre_error *err) {
    static const char *const sonames[] = {"libamdhip64.so.6", "libamdhip64.so.5", NULL};
    struct hip *hip = calloc(1, sizeof(*hip));
    if (hip == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "HIP");
    }
    const char *soname = NULL;
    int r = acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), hip, &soname, err);
    if (r < 0) {
        free(hip);
        return r;
    }
    int major = soname == sonames[0] ? 6 : 5;
    hip->gpu.vendor = &vendor;
    hip->gpu.has_plain_tickets = major < 6; /* hipIpcMemLazyEnablePeerAccess was 0 */
    struct acre_error reason = {0};
    hip->has_rtc = hiprtc_load(major, &hip->rtc, &reason) == 0;
    snprintf(hip->rtc_absent, sizeof(hip->rtc_absent), "%s", reason.text);
    *ret_hip = hip;
    return 0;
}

/* What people can do about it: the driver's own file tells more than the library does. */
static void tell_why(int r, struct acre_error *err) {
    if (access("/dev/kfd", R_OK | W_OK) != 0 && err != NULL) {
        char said[ACRE_ERROR_TEXT_MAX];
        snprintf(said, sizeof(said), "%s", err->text);
        acre_fail(err, r, "%.300s; /dev/kfd: %s%s", said, strerror(errno),
                  errno == EACCES ? " (add this user to its group, render or video)"
                                  : " (the amdgpu driver is not loaded)");
    }
}

static int hip_open(void **ret_self, struct acre_error *err) {
    struct hip *hip = NULL;
    int r = hip_load(&hip, err);
    if (r < 0) {
        return r;
    }
    int code = hip->runtime_version(&hip->version);
    r = code == 0
            ? gpu_start(&hip->gpu, err)
            : acre_fail(err, ACRE_EUNAVAILABLE, "hipRuntimeGetVersion: %s", hip->error_name(code));
    if (r < 0) {
        tell_why(r, err);
        gpu_close(hip);
        return r;
    }
    *ret_self = hip;
    return 0;
}

static int hip_compile(void *self, const struct native_source *source, struct acre_buf *binary,
                       struct acre_buf *log, struct acre_error *err) {
    const struct gpu_seat *seat = self;
    const struct hip *hip = hip_of(seat->gpu);
    if (!hip->has_rtc) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "HIPRTC: %s", hip->rtc_absent);
    }
    const char *identity = seat->gpu->devices[seat->index].description.identity;
    char arch[HIP_ARCH_BYTES];
    snprintf(arch, sizeof(arch), "%.*s", (int)strcspn(identity, " "), identity);
    return hiprtc_compile(&hip->rtc, arch, source, binary, log, err);
}

const struct backend backend_hip = {
    .name = "hip",
    .what = "AMD GPUs (HIP)",
    .language = ACRE_LANGUAGE_HIP,
    .also = ACRE_LANGUAGE_CUDA,
    .capabilities = ACRE_CAN_SOURCE | ACRE_CAN_DOUBLE | ACRE_CAN_ATOMIC64,
    .open = hip_open,
    .compile = hip_compile,
    GPU_PLAIN_ENTRIES,
};
