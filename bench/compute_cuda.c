/* compute_cuda.c - what acre is measured against on NVIDIA's GPUs: plain calls of the driver, as a
 * careful program would make them.
 *
 * One primary context, non-blocking streams, everything loaded and warmed before it is timed. The
 * pool keeps what it has (the driver's default gives memory back at every wait: several times
 * slower). The mailbox is the barest there is: one thread polls a word in pinned memory and answers
 * into another; it leaves by itself after about ten seconds without a message. */
#include "compute_raw.h"

#include "compute/gpu/cuda_rtc.h"
#include "core/clock.h"
#include "core/dl.h"
#include "core/spin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
#define OWN_SYMBOLS(X)                                                                     \
    X(host_alloc,    "cuMemHostAlloc",            (void **, size_t, unsigned flags))       \
    X(host_free,     "cuMemFreeHost",             (void *))                                \
    X(alloc_async,   "cuMemAllocAsync",           (uintptr_t *, size_t, gpu_handle stream)) \
    X(free_async,    "cuMemFreeAsync",            (uintptr_t, gpu_handle stream))          \
    X(pool_get,      "cuDeviceGetDefaultMemPool", (gpu_handle *, int device))              \
    X(pool_set,      "cuMemPoolSetAttribute",     (gpu_handle, int attribute, void *))     \
    X(capture_begin, "cuStreamBeginCapture_v2",   (gpu_handle stream, int mode))           \
    X(capture_end,   "cuStreamEndCapture",        (gpu_handle stream, gpu_handle *ret_graph))
/* clang-format on */

enum {
    HOST_PORTABLE_MAPPED = 0x03,
    POOL_KEEP = 4,       /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */
    CAPTURE_RELAXED = 2, /* CU_STREAM_CAPTURE_MODE_RELAXED */
    STREAM_NON_BLOCKING = 1,
    CODE_MAX_BYTES = 16 << 20,
};
#define ONES         0x3f800000u /* 1.0f */
#define MAILBOX_STOP 0xffffffffu

struct own {
#define X(field, symbol, arguments) int(*field) arguments;
    OWN_SYMBOLS(X)
#undef X
};

struct cuda {
    struct gpu_driver gpu;
    struct cuda_driver driver;
    struct own own;
    struct cuda_rtc rtc;
    int device, arch;
    gpu_handle context, module, tick, add, multiply, batch, mailbox;
    gpu_handle streams[COMPUTE_STREAMS];
    gpu_handle graph, made;
    uintptr_t counter;
    uint32_t *word; /* the counter as the host sees it; then the mailbox: in, out, a line apart */
    uint32_t expected;
    uint32_t letters; /* of the mailbox */
    bool is_ringing;
    uintptr_t device_memory[3];
    void *host_memory[2];
};

enum { WORD_IN = 32, WORD_OUT = 64, WORDS = 96 };

static const struct acre_dl_symbol symbols[] = {
#define X(required, field, cuda_symbol, hip, arguments)                                            \
    {(cuda_symbol), offsetof(struct cuda, gpu.field), (required)},
    GPU_SYMBOLS(X)
#undef X
#define X(required, field, symbol, arguments)                                                      \
    {(symbol), offsetof(struct cuda, driver.field), (required)},
        CUDA_SYMBOLS(X)
#undef X
#define X(field, symbol, arguments) {(symbol), offsetof(struct cuda, own.field), true},
            OWN_SYMBOLS(X)
#undef X
};

static const char before[] =
    "typedef unsigned int uint;\n"
    "typedef unsigned long long ulong;\n"
    "#define kernel extern \"C\" __global__\n"
    "#define local __shared__\n"
    "#define barrier() __syncthreads()\n"
    "#define PICK(v, d) ((d) == 0 ? v.x : (d) == 1 ? v.y : v.z)\n"
    "#define local_id(d) PICK(threadIdx, d)\n"
    "#define global_id(d) ((ulong)PICK(blockIdx, d) * PICK(blockDim, d) + PICK(threadIdx, d))\n";

static const char mailbox_text[] =
    "extern \"C\" __global__ void mailbox(volatile unsigned *in, volatile unsigned *out,\n"
    "                                   unsigned last) {\n"
    "    for (unsigned idle = 0; idle < 20000000u; idle++) {\n"
    "        unsigned now = *in;\n"
    "        if (now != last) {\n"
    "            last = now;\n"
    "            if (now == 0xffffffffu) {\n"
    "                return;\n"
    "            }\n"
    "            *out = now + 1u;\n"
    "            idle = 0;\n"
    "        }\n"
    "    }\n"
    "}\n";

/* 0, or what the driver answered as an error of ours. */
static int check(struct cuda *cuda, int code, const char *call, struct acre_error *err) {
    const char *name = NULL;
    if (code == 0) {
        return 0;
    }
    cuda->driver.code_name(code, &name);
    return acre_fail(err, ACRE_EINTERNAL, "%s returned %d (%s)", call, code,
                     name != NULL ? name : "?");
}

/* --- compiling ------------------------------------------------------------------------------ */

/* CUDA's own words are made of "global", so it cannot be a macro: it is left out. */
static void put_text(struct acre_buf *out, const char *text) {
    static const char word[] = "global ";
    acre_buf_puts(out, before);
    for (const char *next; (next = strstr(text, word)) != NULL;) {
        acre_buf_append(out, text, (size_t)(next - text));
        text = next + sizeof(word) - 1;
    }
    acre_buf_puts(out, text);
}

static int build(struct cuda *cuda, const char *text, gpu_handle *ret_module,
                 struct acre_error *err) {
    const struct nvrtc_library *library = &cuda->rtc.library;
    gpu_handle program = 0;
    char arch[40];
    snprintf(arch, sizeof(arch), "--gpu-architecture=sm_%d", cuda->arch);
    const char *options[] = {arch};
    size_t length = 0;
    char *code = NULL;
    int result = library->create(&program, text, "raw", 0, NULL, NULL);
    result = result == 0 ? library->compile(program, 1, options) : result;
    result = result == 0 ? library->cubin_size(program, &length) : result;
    if (result == 0 && length <= CODE_MAX_BYTES) {
        code = acre_calloc(1, length + 1);
        result = library->cubin(program, code);
    }
    int r = result == 0 && code != NULL
                ? check(cuda, cuda->gpu.module_load(ret_module, code, 0, NULL, NULL),
                        "cuModuleLoadDataEx", err)
                : acre_fail(err, ACRE_EINTERNAL, "NVRTC: %s", library->text(result));
    library->destroy(&program);
    free(code);
    return r;
}

static int load_kernels(struct cuda *cuda, struct acre_error *err) {
    struct acre_buf text;
    acre_buf_init(&text, 1 << 16);
    put_text(&text, compute_text);
    acre_buf_puts(&text, mailbox_text);
    int r = build(cuda, text.data, &cuda->module, err);
    acre_buf_finish(&text);
    const struct {
        gpu_handle *to;
        const char *name;
    } kernels[] = {{&cuda->tick, "tick"},
                   {&cuda->add, "add"},
                   {&cuda->multiply, "multiply"},
                   {&cuda->batch, "batch"},
                   {&cuda->mailbox, "mailbox"}};
    for (size_t i = 0; i < ACRE_COUNT(kernels) && r == 0; i++) {
        r = check(cuda, cuda->gpu.module_function(kernels[i].to, cuda->module, kernels[i].name),
                  "cuModuleGetFunction", err);
    }
    return r;
}

static int raw_compile(void *self, const char *text, struct acre_error *err) {
    struct cuda *cuda = self;
    struct acre_buf whole;
    gpu_handle module = 0;
    acre_buf_init(&whole, 1 << 20);
    put_text(&whole, text);
    int r = build(cuda, whole.data, &module, err);
    acre_buf_finish(&whole);
    return r == 0 ? check(cuda, cuda->gpu.module_unload(module), "cuModuleUnload", err) : r;
}

/* --- launches ------------------------------------------------------------------------------- */

static int wait(struct cuda *cuda, struct acre_error *err) {
    return check(cuda, cuda->gpu.stream_wait(cuda->streams[0]), "cuStreamSynchronize", err);
}

static int start_steps(struct cuda *cuda, uint32_t count, struct acre_error *err) {
    uint32_t *word = cuda->word;
    int code = 0;
    for (uint32_t i = 0; i < count && code == 0; i++) {
        uint32_t is_last = i + 1 == count;
        void *args[] = {&cuda->counter, &word, &is_last};
        code = cuda->gpu.launch(cuda->tick, 1, 1, 1, 32, 1, 1, 0, cuda->streams[0], args, NULL);
    }
    return check(cuda, code, "cuLaunchKernel", err);
}

static int see_steps(struct cuda *cuda, uint32_t count, struct acre_error *err) {
    cuda->expected += count;
    uint32_t seen = __atomic_load_n(cuda->word, __ATOMIC_ACQUIRE);
    return seen == cuda->expected
               ? 0
               : acre_fail(err, ACRE_ECORRUPT, "raw counter: %u, not %u", seen, cuda->expected);
}

static int raw_launch(void *self, uint32_t count, struct acre_error *err) {
    struct cuda *cuda = self;
    int r = start_steps(cuda, count, err);
    r = r == 0 ? wait(cuda, err) : r;
    return r == 0 ? see_steps(cuda, count, err) : r;
}

static int make_graph(struct cuda *cuda, struct acre_error *err) {
    gpu_handle stream = cuda->streams[0];
    int r =
        check(cuda, cuda->own.capture_begin(stream, CAPTURE_RELAXED), "cuStreamBeginCapture", err);
    r = r == 0 ? start_steps(cuda, COMPUTE_STEPS, err) : r;
    if (r == 0) {
        r = check(cuda, cuda->own.capture_end(stream, &cuda->graph), "cuStreamEndCapture", err);
    }
    if (r == 0) {
        r = check(cuda, cuda->gpu.graph_make(&cuda->made, cuda->graph, 0),
                  "cuGraphInstantiateWithFlags", err);
    }
    return r == 0 ? check(cuda, cuda->gpu.graph_upload(cuda->made, stream), "cuGraphUpload", err)
                  : r;
}

static int raw_graph(void *self, struct acre_error *err) {
    struct cuda *cuda = self;
    int r = check(cuda, cuda->gpu.graph_launch(cuda->made, cuda->streams[0]), "cuGraphLaunch", err);
    r = r == 0 ? wait(cuda, err) : r;
    return r == 0 ? see_steps(cuda, COMPUTE_STEPS, err) : r;
}

static int raw_add(void *self, uint32_t items, struct acre_error *err) {
    struct cuda *cuda = self;
    uint32_t n = items;
    void *args[] = {&cuda->device_memory[0], &cuda->device_memory[1], &cuda->device_memory[2], &n};
    uint32_t groups = (items - 1) / COMPUTE_GROUP + 1;
    int r = check(cuda,
                  cuda->gpu.launch(cuda->add, groups, 1, 1, COMPUTE_GROUP, 1, 1, 0,
                                   cuda->streams[0], args, NULL),
                  "cuLaunchKernel", err);
    return r == 0 ? wait(cuda, err) : r;
}

static int raw_multiply(void *self, uint32_t width, struct acre_error *err) {
    struct cuda *cuda = self;
    uint32_t n = width;
    void *args[] = {&cuda->device_memory[0], &cuda->device_memory[1], &cuda->device_memory[2], &n};
    uint32_t groups = width / COMPUTE_TILE;
    int r = check(cuda,
                  cuda->gpu.launch(cuda->multiply, groups, groups, 1, COMPUTE_TILE, COMPUTE_TILE, 1,
                                   0, cuda->streams[0], args, NULL),
                  "cuLaunchKernel", err);
    return r == 0 ? wait(cuda, err) : r;
}

/* --- the mailbox ---------------------------------------------------------------------------- */

static int raw_ring_start(void *self, struct acre_error *err) {
    struct cuda *cuda = self;
    uint32_t *in = cuda->word + WORD_IN;
    uint32_t *out = cuda->word + WORD_OUT;
    *in = cuda->letters;
    void *args[] = {&in, &out, &cuda->letters};
    int code = cuda->gpu.launch(cuda->mailbox, 1, 1, 1, 1, 1, 1, 0, cuda->streams[1], args, NULL);
    cuda->is_ringing = code == 0;
    return check(cuda, code, "cuLaunchKernel", err);
}

/* Letters are numbers: the mailbox knows a new one by its difference from the last. */
static int raw_ring_call(void *self, struct acre_error *err) {
    struct cuda *cuda = self;
    uint32_t letter = ++cuda->letters;
    __atomic_store_n(cuda->word + WORD_IN, letter, __ATOMIC_RELEASE);
    for (uint64_t spins = 0; __atomic_load_n(cuda->word + WORD_OUT, __ATOMIC_ACQUIRE) != letter + 1;
         spins++) {
        if (spins == UINT64_C(1) << 30) {
            return acre_fail(err, ACRE_ETIMEOUT, "the mailbox does not answer");
        }
        acre_cpu_relax();
    }
    return 0;
}

static void raw_ring_stop(void *self) {
    struct cuda *cuda = self;
    if (cuda->is_ringing) {
        __atomic_store_n(cuda->word + WORD_IN, MAILBOX_STOP, __ATOMIC_RELEASE);
        cuda->gpu.stream_wait(cuda->streams[1]);
        cuda->is_ringing = false;
    }
}

/* --- memory --------------------------------------------------------------------------------- */

static void raw_release(void *self) {
    struct cuda *cuda = self;
    for (size_t i = 0; i < ACRE_COUNT(cuda->device_memory); i++) {
        if (cuda->device_memory[i] != 0) {
            cuda->gpu.free(cuda->device_memory[i]);
            cuda->device_memory[i] = 0;
        }
    }
    for (size_t i = 0; i < ACRE_COUNT(cuda->host_memory); i++) {
        if (cuda->host_memory[i] != NULL) {
            cuda->own.host_free(cuda->host_memory[i]);
            cuda->host_memory[i] = NULL;
        }
    }
}

static int raw_reserve(void *self, const struct compute_memory *memory, struct acre_error *err) {
    struct cuda *cuda = self;
    int r = 0;
    for (size_t i = 0; i < ACRE_COUNT(cuda->device_memory) && r == 0; i++) {
        uint64_t bytes = memory->device_bytes[i];
        if (bytes > 0) {
            int code = cuda->gpu.alloc(&cuda->device_memory[i], bytes);
            code = code == 0
                       ? cuda->gpu.set32(cuda->device_memory[i], ONES, bytes / 4, cuda->streams[0])
                       : code;
            r = check(cuda, code, "cuMemAlloc", err);
        }
    }
    for (size_t i = 0; i < ACRE_COUNT(cuda->host_memory) && r == 0; i++) {
        if (memory->host_bytes[i] > 0) {
            r = check(cuda,
                      cuda->own.host_alloc(&cuda->host_memory[i], memory->host_bytes[i],
                                           HOST_PORTABLE_MAPPED),
                      "cuMemHostAlloc", err);
        }
    }
    r = r == 0 ? wait(cuda, err) : r;
    if (r < 0) {
        raw_release(cuda);
    }
    return r;
}

static void *raw_host(void *self, uint32_t index) {
    return ((struct cuda *)self)->host_memory[index];
}

static int raw_alloc(void *self, bool is_pooled, uint64_t bytes, uintptr_t *ret_at,
                     struct acre_error *err) {
    struct cuda *cuda = self;
    return is_pooled ? check(cuda, cuda->own.alloc_async(ret_at, bytes, cuda->streams[0]),
                             "cuMemAllocAsync", err)
                     : check(cuda, cuda->gpu.alloc(ret_at, bytes), "cuMemAlloc", err);
}

static int raw_free(void *self, bool is_pooled, uintptr_t at, struct acre_error *err) {
    struct cuda *cuda = self;
    return is_pooled
               ? check(cuda, cuda->own.free_async(at, cuda->streams[0]), "cuMemFreeAsync", err)
               : check(cuda, cuda->gpu.free(at), "cuMemFree", err);
}

static int raw_copy(void *self, bool is_in, uint64_t bytes, struct acre_error *err) {
    struct cuda *cuda = self;
    uintptr_t host = (uintptr_t)cuda->host_memory[0];
    uintptr_t device = cuda->device_memory[0];
    int r = check(
        cuda,
        cuda->driver.copy(is_in ? device : host, is_in ? host : device, bytes, cuda->streams[0]),
        "cuMemcpyAsync", err);
    return r == 0 ? wait(cuda, err) : r;
}

/* Piece after piece, the streams in turn: copies both ways and kernels overlap between streams, and
 * a stream's order keeps its place on the device from being overwritten too early. */
static int raw_batch(void *self, const float *from, float *to, uint64_t items,
                     struct acre_error *err) {
    struct cuda *cuda = self;
    const uint64_t piece = COMPUTE_PIECE_BYTES / sizeof(float);
    int code = 0;
    for (uint64_t first = 0, turn = 0; first < items && code == 0; first += piece, turn++) {
        uint64_t slot = turn % COMPUTE_STREAMS;
        gpu_handle stream = cuda->streams[slot];
        uint32_t n = (uint32_t)ACRE_MIN(piece, items - first);
        uintptr_t in = cuda->device_memory[0] + slot * COMPUTE_PIECE_BYTES;
        uintptr_t out = cuda->device_memory[1] + slot * COMPUTE_PIECE_BYTES;
        void *args[] = {&in, &out, &n, &first};
        code = cuda->driver.copy(in, (uintptr_t)(from + first), n * sizeof(float), stream);
        code = code == 0 ? cuda->gpu.launch(cuda->batch, (n - 1) / COMPUTE_GROUP + 1, 1, 1,
                                            COMPUTE_GROUP, 1, 1, 0, stream, args, NULL)
                         : code;
        code = code == 0
                   ? cuda->driver.copy((uintptr_t)(to + first), out, n * sizeof(float), stream)
                   : code;
    }
    for (size_t i = 0; i < COMPUTE_STREAMS; i++) {
        int waited = cuda->gpu.stream_wait(cuda->streams[i]);
        code = code == 0 ? waited : code;
    }
    return check(cuda, code, "the pipeline", err);
}

static int raw_load(void *self, int fd, uint64_t bytes, struct acre_error *err) {
    struct cuda *cuda = self;
    int r = 0;
    for (uint64_t at = 0; at < bytes && r == 0;) {
        ssize_t got =
            pread(fd, cuda->host_memory[0], ACRE_MIN(bytes - at, COMPUTE_PIECE_BYTES), (off_t)at);
        if (got <= 0) {
            return acre_fail_errno(err, got < 0 ? errno : EIO, "raw read");
        }
        r = check(cuda,
                  cuda->driver.copy(cuda->device_memory[0] + at, (uintptr_t)cuda->host_memory[0],
                                    (size_t)got, cuda->streams[0]),
                  "cuMemcpyAsync", err);
        r = r == 0 ? wait(cuda, err) : r;
        at += (uint64_t)got;
    }
    return r;
}

/* --- opening -------------------------------------------------------------------------------- */

static void raw_close(void *self) {
    struct cuda *cuda = self;
    if (cuda->context != 0) {
        raw_ring_stop(cuda);
        raw_release(cuda);
        if (cuda->made != 0) {
            cuda->gpu.graph_unmake(cuda->made);
        }
        if (cuda->graph != 0) {
            cuda->gpu.graph_destroy(cuda->graph);
        }
        if (cuda->counter != 0) {
            cuda->gpu.free(cuda->counter);
        }
        if (cuda->word != NULL) {
            cuda->own.host_free(cuda->word);
        }
        for (size_t i = 0; i < COMPUTE_STREAMS; i++) {
            if (cuda->streams[i] != 0) {
                cuda->gpu.stream_destroy(cuda->streams[i]);
            }
        }
        if (cuda->module != 0) {
            cuda->gpu.module_unload(cuda->module);
        }
        cuda->driver.context_release(cuda->device);
    }
    free(cuda);
}

static int open_context(struct cuda *cuda, struct acre_error *err) {
    int version = 0;
    int major = 0;
    int minor = 0;
    int code = cuda->gpu.init(0);
    code = code == 0 ? cuda->gpu.driver_version(&version) : code;
    code = code == 0 ? cuda->gpu.device_get(&cuda->device, 0) : code;
    code =
        code == 0 ? cuda->gpu.device_attribute(&major, CUDA_CAPABILITY_MAJOR, cuda->device) : code;
    code =
        code == 0 ? cuda->gpu.device_attribute(&minor, CUDA_CAPABILITY_MINOR, cuda->device) : code;
    code = code == 0 ? cuda->driver.context_retain(&cuda->context, cuda->device) : code;
    code = code == 0 ? cuda->driver.context_set(cuda->context) : code;
    cuda->arch = major * 10 + minor;
    int r = check(cuda, code, "opening the device", err);
    return r == 0 ? cuda_rtc_load(&cuda->rtc, version, err) : r;
}

static int open_memory(struct cuda *cuda, struct acre_error *err) {
    uint64_t keep = UINT64_MAX;
    gpu_handle pool = 0;
    void *word = NULL;
    int code = 0;
    for (size_t i = 0; i < COMPUTE_STREAMS && code == 0; i++) {
        code = cuda->gpu.stream_create(&cuda->streams[i], STREAM_NON_BLOCKING);
    }
    code = code == 0 ? cuda->own.pool_get(&pool, cuda->device) : code;
    code = code == 0 ? cuda->own.pool_set(pool, POOL_KEEP, &keep) : code;
    code = code == 0 ? cuda->gpu.alloc(&cuda->counter, 256) : code;
    code = code == 0 ? cuda->gpu.set32(cuda->counter, 0, 64, cuda->streams[0]) : code;
    code = code == 0 ? cuda->own.host_alloc(&word, WORDS * sizeof(uint32_t), HOST_PORTABLE_MAPPED)
                     : code;
    cuda->word = word;
    int r = check(cuda, code, "streams and memory", err);
    if (r == 0) {
        for (size_t i = 0; i < WORDS; i++) {
            cuda->word[i] = 0;
        }
        r = wait(cuda, err);
    }
    return r;
}

static int raw_open(void **ret_self, struct acre_error *err) {
    static const char *const sonames[] = {"libcuda.so.1", NULL};
    struct cuda *cuda = acre_calloc(1, sizeof(*cuda));
    int r = acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), cuda, NULL, err);
    r = r == 0 ? open_context(cuda, err) : r;
    r = r == 0 ? load_kernels(cuda, err) : r;
    r = r == 0 ? open_memory(cuda, err) : r;
    r = r == 0 ? raw_launch(cuda, 1, err) : r;
    r = r == 0 ? make_graph(cuda, err) : r;
    if (r < 0) {
        raw_close(cuda);
        return r;
    }
    *ret_self = cuda;
    return 0;
}

const struct compute_raw compute_raw_cuda = {
    .name = "CUDA driver",
    .open = raw_open,
    .close = raw_close,
    .reserve = raw_reserve,
    .release = raw_release,
    .host = raw_host,
    .launch = raw_launch,
    .graph = raw_graph,
    .ring_start = raw_ring_start,
    .ring_call = raw_ring_call,
    .ring_stop = raw_ring_stop,
    .alloc = raw_alloc,
    .free = raw_free,
    .add = raw_add,
    .multiply = raw_multiply,
    .copy = raw_copy,
    .batch = raw_batch,
    .compile = raw_compile,
    .load = raw_load,
};
