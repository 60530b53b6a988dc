/* hip_double.c - a library with the binary interface of libamdhip64.so.6 whose devices are memory
 * of the process: test equipment for hip.c and the back end it shares with CUDA.
 *
 * Work is done when it is queued, by the caller, which is one of the orders a stream may have. The
 * one kernel there is adds floats. There are two devices; no compiler. The environment variable
 * ACRE_HIP_DOUBLE holds words: `none` (no device), `fault` (streams answer 719 from the second
 * query on), `full` (no memory). What a call was given and must be right is checked here: a wrong
 * value answers 1, as HIP does. */
#include "compute/gpu/hip_abi.h"

#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { DEVICES = 2, INVALID = 1, TICKET_LAZY_PEER = 1, PORTABLE_MAPPED = 3 };

static _Thread_local int current = -1; /* device of this thread */

static bool scripted(const char *word) {
    const char *script = getenv("ACRE_HIP_DOUBLE");
    return script != NULL && strstr(script, word) != NULL;
}

/* Handles are blocks with a kind, so that one is not taken for another. */
struct object {
    char kind;
    int device;
    uint64_t records;
};

static int make(char kind, uintptr_t *ret_handle) {
    struct object *object = calloc(1, sizeof(*object));
    object->kind = kind;
    object->device = current;
    *ret_handle = (uintptr_t)object;
    return current < 0 ? INVALID : 0;
}

static bool is(uintptr_t handle, char kind) {
    return handle != 0 && ((const struct object *)handle)->kind == kind;
}

static int end(uintptr_t handle, char kind) {
    if (!is(handle, kind)) {
        return INVALID;
    }
    free((void *)handle);
    return 0;
}

/* --- devices --------------------------------------------------------------------------------- */

int hipInit(unsigned flags) {
    return flags != 0 ? INVALID : scripted("none") ? 100 : 0;
}

int hipDriverGetVersion(int *ret_version) {
    *ret_version = 60342131;
    return 0;
}

int hipRuntimeGetVersion(int *ret_version) {
    return hipDriverGetVersion(ret_version);
}

int hipGetDeviceCount(int *ret_count) {
    *ret_count = DEVICES;
    return 0;
}

int hipDeviceGet(int *ret_device, int ordinal) {
    *ret_device = ordinal;
    return ordinal < DEVICES ? 0 : 101;
}

int hipDeviceGetName(char *ret_name, int length, int device) {
    strncpy(ret_name, device == 0 ? "Double 0" : "Double 1", (size_t)length);
    return 0;
}

int hipDeviceTotalMem(size_t *ret_bytes, int device) {
    *ret_bytes = (size_t)(device + 1) << 30;
    return 0;
}

int hipDeviceGetAttribute(int *ret_value, int attribute, int device) {
    *ret_value = attribute == HIP_UNITS ? 304 : attribute == HIP_GROUP_MAX ? 1024 : 65536;
    return device < DEVICES ? 0 : 101;
}

int hipDeviceGetUuid(struct hip_uuid *ret_uuid, int device) {
    memcpy(ret_uuid->bytes, device == 0 ? "1122334455667701" : "1122334455667702", 16);
    return 0;
}

int hipGetDeviceProperties(void *ret_properties, int device) {
    (void)ret_properties; /* HIP 6 keeps it for programs of HIP 5: not for us */
    (void)device;
    return INVALID;
}

int hipGetDevicePropertiesR0600(void *ret_properties, int device) {
    memset(ret_properties, 0xee, 1472);
    memcpy((char *)ret_properties + HIP_ARCH_AT_6, "gfx942:sramecc+:xnack-", 23);
    return device < DEVICES ? 0 : 101;
}

const char *hipGetErrorName(int code) {
    return code == 0 ? "hipSuccess" : "hipErrorUnknown";
}

int hipSetDevice(int device) {
    current = device;
    return device >= 0 && device < DEVICES ? 0 : 101;
}

int hipDeviceCanAccessPeer(int *ret_can, int device, int peer) {
    *ret_can = device != peer;
    return 0;
}

int hipDeviceEnablePeerAccess(int peer, unsigned flags) {
    static bool enabled[DEVICES][DEVICES];
    if (flags != 0 || current < 0 || peer < 0 || peer >= DEVICES || peer == current) {
        return INVALID;
    }
    bool was = enabled[current][peer];
    enabled[current][peer] = true;
    return was ? HIP_PEER_ALREADY : 0;
}

/* --- memory ---------------------------------------------------------------------------------- */

int hipMemGetInfo(size_t *ret_free, size_t *ret_total) {
    *ret_free = 1 << 29;
    *ret_total = 1 << 30;
    return current < 0 ? INVALID : 0;
}

int hipMalloc(uintptr_t *ret_address, size_t bytes) {
    if (scripted("full")) {
        return HIP_NO_MEMORY;
    }
    *ret_address = (uintptr_t)calloc(1, bytes);
    return current < 0 ? INVALID : 0;
}

int hipFree(uintptr_t address) {
    free((void *)address);
    return 0;
}

int hipHostRegister(void *host, size_t bytes, unsigned flags) {
    return flags == PORTABLE_MAPPED && (uintptr_t)host % 4096 == 0 && bytes > 0 ? 0 : INVALID;
}

int hipHostUnregister(void *host) {
    return host != NULL ? 0 : INVALID;
}

int hipHostGetDevicePointer(uintptr_t *ret_address, void *host, unsigned flags) {
    *ret_address = (uintptr_t)host;
    return flags == 0 ? 0 : INVALID;
}

int hipIpcGetMemHandle(struct gpu_ticket *ret_ticket, uintptr_t address) {
    memset(ret_ticket, 0, sizeof(*ret_ticket));
    memcpy(ret_ticket->bytes, &address, sizeof(address));
    return 0;
}

int hipIpcOpenMemHandle(uintptr_t *ret_address, struct gpu_ticket ticket, unsigned flags) {
    memcpy(ret_address, ticket.bytes, sizeof(*ret_address));
    return flags == TICKET_LAZY_PEER ? 0 : INVALID;
}

int hipIpcCloseMemHandle(uintptr_t address) {
    return address != 0 ? 0 : INVALID;
}

/* --- streams --------------------------------------------------------------------------------- */

int hipStreamCreateWithFlags(uintptr_t *ret_stream, unsigned flags) {
    return flags == 1 ? make('s', ret_stream) : INVALID;
}

int hipStreamDestroy(uintptr_t stream) {
    return end(stream, 's');
}

int hipStreamQuery(uintptr_t stream) {
    static int asked;
    return !is(stream, 's') ? INVALID : scripted("fault") && ++asked > 1 ? 719 : 0;
}

int hipStreamSynchronize(uintptr_t stream) {
    return hipStreamQuery(stream);
}

/* A stream is used with its own device current. */
static bool is_here(uintptr_t stream) {
    return is(stream, 's') && ((const struct object *)stream)->device == current;
}

int hipMemcpyAsync(uintptr_t to, uintptr_t from, size_t bytes, int kind, uintptr_t stream) {
    if (!is_here(stream) || kind != HIP_COPY_ANY) {
        return INVALID;
    }
    memcpy((void *)to, (const void *)from, bytes);
    return 0;
}

int hipMemsetD8Async(uintptr_t to, unsigned char value, size_t count, uintptr_t stream) {
    memset((void *)to, value, count);
    return is_here(stream) ? 0 : INVALID;
}

int hipMemsetD16Async(uintptr_t to, unsigned short value, size_t count, uintptr_t stream) {
    for (size_t i = 0; i < count; i++) {
        ((uint16_t *)to)[i] = value;
    }
    return is_here(stream) ? 0 : INVALID;
}

int hipMemsetD32Async(uintptr_t to, int value, size_t count, uintptr_t stream) {
    for (size_t i = 0; i < count; i++) {
        ((uint32_t *)to)[i] = (uint32_t)value;
    }
    return is_here(stream) ? 0 : INVALID;
}

int hipStreamWriteValue64(uintptr_t stream, uintptr_t at, uint64_t value, unsigned flags) {
    __atomic_store_n((uint64_t *)at, value, __ATOMIC_RELEASE);
    return is_here(stream) && flags == 0 ? 0 : INVALID;
}

int hipStreamWaitValue64(uintptr_t stream, uintptr_t at, uint64_t value, unsigned flags,
                         uint64_t mask) {
    /* Work is done at once: what is waited for has been. */
    bool has_come = (__atomic_load_n((uint64_t *)at, __ATOMIC_ACQUIRE) & mask) >= value;
    return is_here(stream) && flags == HIP_WAIT_AT_LEAST && has_come ? 0 : INVALID;
}

int hipStreamAddCallback(uintptr_t stream, hip_callback *callback, void *user, unsigned flags) {
    if (!is_here(stream) || flags != 0) {
        return INVALID;
    }
    callback(stream, 0, user);
    return 0;
}

int hipLaunchHostFunc(uintptr_t stream, void (*function)(void *), void *user) {
    function(user);
    return is_here(stream) ? 0 : INVALID;
}

int hipEventCreateWithFlags(uintptr_t *ret_event, unsigned flags) {
    return flags == 0 ? make('e', ret_event) : INVALID;
}

int hipEventDestroy(uintptr_t event) {
    return end(event, 'e');
}

int hipEventRecord(uintptr_t event, uintptr_t stream) {
    static uint64_t records;
    if (!is(event, 'e') || !is_here(stream)) {
        return INVALID;
    }
    ((struct object *)event)->records = ++records;
    return 0;
}

int hipEventSynchronize(uintptr_t event) {
    return is(event, 'e') ? 0 : INVALID;
}

/* A millisecond from each record to the next. */
int hipEventElapsedTime(float *ret_ms, uintptr_t start, uintptr_t stop) {
    if (!is(start, 'e') || !is(stop, 'e')) {
        return INVALID;
    }
    *ret_ms = (float)((const struct object *)stop)->records -
              (float)((const struct object *)start)->records;
    return 0;
}

/* --- programs -------------------------------------------------------------------------------- */

int hipModuleLoadDataEx(uintptr_t *ret_module, const void *image, unsigned count, int *options,
                        void **values) {
    (void)options;
    (void)values;
    (void)count; /* HIP looks at none of them either */
    return memcmp(image, "\177ELF", 4) == 0 ? make('m', ret_module) : 200;
}

int hipModuleUnload(uintptr_t module) {
    return end(module, 'm');
}

int hipModuleGetFunction(uintptr_t *ret_function, uintptr_t module, const char *name) {
    *ret_function = 1;
    return !is(module, 'm') ? INVALID : strcmp(name, "add") == 0 ? 0 : 500;
}

int hipFuncGetAttribute(int *ret_value, int attribute, uintptr_t function) {
    *ret_value = attribute == 0 ? 1024 : attribute == 1 ? 0 : 12;
    return function == 1 ? 0 : INVALID;
}

int hipModuleLaunchKernel(uintptr_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned local, uintptr_t stream, void **args,
                          void **extra) {
    if (function != 1 || !is_here(stream) || local != 0 || extra != NULL) {
        return INVALID;
    }
    if (gx == 0 || gy != 1 || gz != 1 || bx == 0 || bx > 1024 || by != 1 || bz != 1) {
        return 9; /* hipErrorInvalidConfiguration */
    }
    const float *a = *(const float **)args[0], *b = *(const float **)args[1];
    float *sum = *(float **)args[2];
    unsigned n = *(const unsigned *)args[3];
    for (uint64_t i = 0; i < (uint64_t)gx * bx && i < n; i++) {
        sum[i] = a[i] + b[i];
    }
    return 0;
}
