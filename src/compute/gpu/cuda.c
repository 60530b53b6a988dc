/* cuda.c - the CUDA back end: NVIDIA's driver by dlopen, and what differs from HIP.
 *
 * It uses only the driver API (libcuda.so.1), which every machine with a driver has: no runtime
 * library, no toolkit. NVRTC and cuFile are optional. Without one, the devices lack a capability,
 * and calls that need it report the reason. */
#include "compute/gpu/cuda.h"

#include "compute/gpu/cuda_faults.h"
#include "compute/gpu/entries.h"
#include "compute/gpu/seat.h"
#include "core/dl.h"
#include "core/units.h"

#include <stdio.h>
#include <stdlib.h>

static const struct acre_dl_symbol symbols[] = {
#define X(required, member, in_cuda, in_hip, arguments)                                            \
    {(in_cuda), offsetof(struct cuda, gpu.driver.member), (required)},
    GPU_SYMBOLS(X)
#undef X
#define X(required, member, symbol, arguments)                                                     \
    {(symbol), offsetof(struct cuda, own.member), (required)},
        CUDA_SYMBOLS(X)
#undef X
};

static const struct cuda *cuda_of(const struct gpu *gpu) {
    return (const struct cuda *)gpu;
}

static const char *code_name(const struct gpu *gpu, int code) {
    const char *name = NULL;
    return cuda_of(gpu)->own.code_name(code, &name) == 0 && name != NULL ? name : "unknown code";
}

/* --- devices -------------------------------------------------------------------------------- */

void cuda_uuid_write(const struct cuda_uuid *uuid, char *out, size_t size) {
    const uint8_t *b = uuid->bytes;
    snprintf(out, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

static int read_arch(const struct gpu *gpu, int device, int *ret_arch) {
    int major = 0;
    int minor = 0;
    int code = gpu->driver.device_attribute(&major, CUDA_CAPABILITY_MAJOR, device);
    code = code == 0 ? gpu->driver.device_attribute(&minor, CUDA_CAPABILITY_MINOR, device) : code;
    *ret_arch = major * 10 + minor;
    return code;
}

static uint32_t capabilities_of(const struct cuda *cuda) {
    bool has_graphs = cuda->gpu.driver.graph_make != NULL && cuda->own.node_launch != NULL;
    return ACRE_CAN_RING | ACRE_CAN_DOUBLE | ACRE_CAN_ATOMIC64 |
           (has_graphs ? (uint32_t)ACRE_CAN_GRAPH : 0) |
           (cuda->has_rtc ? (uint32_t)ACRE_CAN_SOURCE : 0) |
           (cuda->file.is_loaded ? (uint32_t)ACRE_CAN_STORAGE : 0);
}

static int describe(struct gpu *gpu, int device, struct acre_compute_device *to) {
    const struct cuda *cuda = cuda_of(gpu);
    const struct {
        int attribute;
        uint32_t *to;
    } wanted[] = {{CUDA_MULTIPROCESSORS, &to->units},
                  {CUDA_MAX_THREADS_PER_BLOCK, &to->group_max},
                  {CUDA_MAX_SHARED_PER_BLOCK, &to->local_bytes}};
    for (size_t i = 0; i < ACRE_COUNT(wanted); i++) {
        int value = 0;
        int code = gpu->driver.device_attribute(&value, wanted[i].attribute, device);
        if (code != 0) {
            return code;
        }
        *wanted[i].to = (uint32_t)value;
    }
    struct cuda_uuid uuid;
    int arch = 0;
    int code = cuda->own.device_uuid(&uuid, device);
    code = code == 0 ? read_arch(gpu, device, &arch) : code;
    if (code != 0) {
        return code;
    }
    cuda_uuid_write(&uuid, to->uuid, sizeof(to->uuid));
    char compiler[48] = "";
    if (cuda->has_rtc) {
        snprintf(compiler, sizeof(compiler), " NVRTC %d.%d", cuda->rtc.major, cuda->rtc.minor);
    }
    snprintf(to->backend, sizeof(to->backend), "%s", backend_cuda.name);
    snprintf(to->identity, sizeof(to->identity), "sm_%d%s driver %d.%d", arch, compiler,
             gpu->version / 1000, gpu->version % 1000 / 10);
    to->capabilities = capabilities_of(cuda);
    return 0;
}

/* --- contexts and work ---------------------------------------------------------------------- */

static int context_open(struct gpu *gpu, int device, gpu_handle *ret_context) {
    return cuda_of(gpu)->own.context_retain(ret_context, device);
}

static void context_close(struct gpu *gpu, int device, gpu_handle context) {
    (void)context;
    cuda_of(gpu)->own.context_release(device);
}

static int context_enter(const struct gpu *gpu, gpu_handle context) {
    const struct cuda_driver *own = &cuda_of(gpu)->own;
    gpu_handle current = 0;
    int code = own->context_get(&current);
    return code == 0 && current == context ? 0 : own->context_set(context);
}

static int context_peer(struct gpu *gpu, gpu_handle peer) {
    int code = cuda_of(gpu)->own.peer_enable(peer, 0);
    return code == CUDA_PEER_ALREADY_ENABLED ? 0 : code;
}

/* The driver answers any question with what failed before, in whichever stream. This one, and not
 * whether a stream is done: under compute-sanitizer that one did not return while a resident kernel
 * ran (docs/benchmarks/compute.md). */
static int check(struct gpu_seat *seat) {
    gpu_handle context;
    return cuda_of(seat->gpu)->own.stream_context(seat->side, &context);
}

static int copy(const struct gpu *gpu, uintptr_t to, uintptr_t from, size_t bytes,
                gpu_handle stream) {
    return cuda_of(gpu)->own.copy(to, from, bytes, stream);
}

static int wait64(const struct gpu *gpu, gpu_handle stream, uintptr_t address, uint64_t value) {
    return cuda_of(gpu)->own.wait64(stream, address, value, CUDA_WAIT_GEQ);
}

/* --- the table ------------------------------------------------------------------------------ */

static int cuda_compile(void *self, const struct native_source *source, struct acre_buf *binary,
                        struct acre_buf *log, struct acre_error *err) {
    const struct gpu_seat *seat = self;
    const struct cuda *cuda = cuda_of(seat->gpu);
    if (!cuda->has_rtc) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "%s", cuda->rtc_absent);
    }
    int arch = 0;
    int code = read_arch(seat->gpu, seat->device, &arch);
    if (code != 0) {
        return gpu_fail(seat->gpu, NULL, code, seat->gpu->names->device_attribute, err);
    }
    return cuda_rtc_compile(&cuda->rtc, arch, source, binary, log, err);
}

static int cuda_transfer(void *self, const char *file, uint64_t file_offset, uint64_t handle,
                         uint64_t region_offset, uint64_t bytes, bool is_write, char *how,
                         struct acre_error *err) {
    struct gpu_seat *seat = self;
    struct cuda *cuda = (struct cuda *)seat->gpu;
    if (gpu_region_of(handle)->host != NULL) {
        return acre_fail(err, ACRE_EUNSUPPORTED, "cuFile works with device memory only");
    }
    uintptr_t address = gpu_region_at(handle, region_offset, bytes);
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    pthread_mutex_lock(&cuda->gpu.lock);
    r = cuda_file_open(&cuda->file, err);
    pthread_mutex_unlock(&cuda->gpu.lock);
    return r == 0
               ? cuda_file_move(&cuda->file, file, file_offset, address, bytes, is_write, how, err)
               : r;
}

static const struct gpu_fault faults[] = {
#define X(code, name, error, lasting, words)                                                       \
    {(code), "CUDA_ERROR_" #name, ACRE_E##error, (lasting), (words)},
    CUDA_FAULTS(X)
#undef X
};

/* There is a device: look for the rest. */
static void prepare(struct gpu *gpu) {
    struct cuda *cuda = (struct cuda *)gpu;
    struct acre_error said = {0};
    cuda->has_rtc = cuda_rtc_load(&cuda->rtc, gpu->version, &said) == 0;
    snprintf(cuda->rtc_absent, sizeof(cuda->rtc_absent), "%s", said.text);
    cuda_file_load(&cuda->file);
}

static int parameter(const struct gpu *gpu, gpu_handle function, uint32_t index,
                     size_t *ret_bytes) {
    size_t offset;
    const struct cuda_driver *own = &cuda_of(gpu)->own;
    return own->parameter == NULL ? -1 : own->parameter(function, index, &offset, ret_bytes);
}

static const struct gpu_vendor vendor = {
    .faults = faults,
    .fault_count = ACRE_COUNT(faults),
    .prepare = prepare,
    .code_name = code_name,
    .describe = describe,
    .context_open = context_open,
    .context_close = context_close,
    .context_enter = context_enter,
    .context_peer = context_peer,
    .check = check,
    .copy = copy,
    .wait64 = wait64,
    .parameter = parameter,
    .module_ready = cuda_module_ready,
    .node_launch = cuda_node_launch,
    .node_copy = cuda_node_copy,
    .node_set = cuda_node_set,
    .node_update = cuda_node_update,
};

/* Drivers before CUDA 12: the older version of the same, or no graphs at all. */
static void settle_graphs(struct cuda *cuda) {
    struct cuda_driver *own = &cuda->own;
    if (own->node_launch == NULL || own->node_update == NULL) {
        own->node_launch = own->node_launch_v1;
        own->node_update = own->node_update_v1;
    }
    if (own->node_launch == NULL || own->node_update == NULL || own->node_copy == NULL ||
        own->node_set == NULL) {
        cuda->gpu.driver.graph_make = NULL;
    }
}

/* As many as the driver makes: eight, unless the environment tells it otherwise. */
static uint32_t count_queues(void) {
    uint64_t queues = 8;
    const char *told = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (told != NULL) {
        acre_parse_count("CUDA_DEVICE_MAX_CONNECTIONS", told, 1, 32, &queues, NULL);
    }
    return (uint32_t)queues;
}

static int cuda_open(void **ret_self, struct acre_error *err) {
    static const char *const sonames[] = {"libcuda.so.1", NULL};
    struct cuda *cuda = calloc(1, sizeof(*cuda));
    if (cuda == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "cuda");
    }
    cuda->gpu.vendor = &vendor;
    cuda->gpu.queues = count_queues();
    struct acre_error said = {0};
    int r = acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), cuda, NULL, &said);
    if (r < 0) {
        const char *what = r == ACRE_EUNAVAILABLE ? "is not installed" : "is too old";
        r = acre_fail(err, ACRE_EUNAVAILABLE, "the NVIDIA driver %s: %s", what, said.text);
    }
    if (r == 0) {
        settle_graphs(cuda);
        r = gpu_start(&cuda->gpu, err);
    }
    if (r < 0) {
        gpu_close(cuda);
        return r;
    }
    *ret_self = cuda;
    return 0;
}

const struct backend backend_cuda = {
    .name = "cuda",
    .what = "NVIDIA GPUs by the CUDA driver",
    .language = ACRE_LANGUAGE_CUDA,
    .capabilities = ACRE_CAN_GRAPH | ACRE_CAN_RING | ACRE_CAN_SOURCE | ACRE_CAN_DOUBLE |
                    ACRE_CAN_ATOMIC64 | ACRE_CAN_STORAGE,
    .open = cuda_open,
    .compile = cuda_compile,
    .transfer = cuda_transfer,
    GPU_ENTRIES,
};
