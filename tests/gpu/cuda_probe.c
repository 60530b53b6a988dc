/* cuda_probe.c - a CUDA program that reports what it sees and gets: devices, multiprocessors,
 * memory.
 *
 *   cuda_probe [--allocate MIB] [--chunk MIB] [--hold SECONDS]
 *
 * It needs no toolkit and no header of the vendor: libcuda.so.1 is opened at run time, the kernel
 * is text. It allocates (in chunks) until the target or a refusal, writes to all of it, and then
 * computes until the time is over: every block notes the multiprocessor it ran on, so the count of
 * different ones is what the share really got, whatever the driver says. One JSON object a line:
 * when it holds its memory, and at the end. Exit: 0, 3 the target was refused, 4 no CUDA (the
 * reason is in the JSON), 2 bad arguments. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
    CUDA_MULTIPROCESSORS = 16, /* device attribute */
    MIB = 1 << 20,
    THREADS = 1024, /* a block: two fill a multiprocessor, so blocks spread */
    BLOCKS = 4096,
    SPINS = 20000,
    CHUNKS_MAX = 65536,
    SMS_MAX = 1024,
};

struct cuda_uuid {
    unsigned char bytes[16];
};

/* clang-format off */
#define CUDA_SYMBOLS(X)                                                                          \
    X(init,           "cuInit",                     (unsigned))                                  \
    X(version,        "cuDriverGetVersion",         (int *))                                     \
    X(count,          "cuDeviceGetCount",           (int *))                                     \
    X(device,         "cuDeviceGet",                (int *, int))                                \
    X(name,           "cuDeviceGetName",            (char *, int, int))                          \
    X(uuid,           "cuDeviceGetUuid_v2",         (struct cuda_uuid *, int))                   \
    X(attribute,      "cuDeviceGetAttribute",       (int *, int, int))                           \
    X(retain,         "cuDevicePrimaryCtxRetain",   (void **, int))                              \
    X(release,        "cuDevicePrimaryCtxRelease_v2", (int))                                     \
    X(set_current,    "cuCtxSetCurrent",            (void *))                                    \
    X(synchronize,    "cuCtxSynchronize",           (void))                                      \
    X(memory,         "cuMemGetInfo_v2",            (size_t *, size_t *))                        \
    X(allocate,       "cuMemAlloc_v2",              (uint64_t *, size_t))                        \
    X(fill,           "cuMemsetD8_v2",              (uint64_t, unsigned char, size_t))           \
    X(copy_back,      "cuMemcpyDtoH_v2",            (void *, uint64_t, size_t))                  \
    X(load,           "cuModuleLoadData",           (void **, const void *))                     \
    X(function,       "cuModuleGetFunction",        (void **, void *, const char *))             \
    X(launch,         "cuLaunchKernel",             (void *, unsigned, unsigned, unsigned,       \
                      unsigned, unsigned, unsigned, unsigned, void *, void **, void **))         \
    X(error_name,     "cuGetErrorName",             (int, const char **))
/* clang-format on */

struct cuda {
#define X(field, symbol, arguments) int(*field) arguments;
    CUDA_SYMBOLS(X)
#undef X
};

static const char kernel_text[] = ".version 6.0\n"
                                  ".target sm_60\n"
                                  ".address_size 64\n"
                                  ".visible .entry probe(.param .u64 out, .param .u32 spins) {\n"
                                  "  .reg .b32 %r<8>;\n"
                                  "  .reg .b64 %rd<4>;\n"
                                  "  .reg .pred %p<2>;\n"
                                  "  ld.param.u64 %rd1, [out];\n"
                                  "  ld.param.u32 %r1, [spins];\n"
                                  "  cvta.to.global.u64 %rd1, %rd1;\n"
                                  "  mov.u32 %r2, %ctaid.x;\n"
                                  "  mul.wide.u32 %rd2, %r2, 8;\n"
                                  "  add.s64 %rd1, %rd1, %rd2;\n"
                                  "  mov.u32 %r3, %smid;\n"
                                  "  mov.u32 %r4, 1;\n"
                                  "again:\n"
                                  "  mad.lo.u32 %r4, %r4, 1664525, 1013904223;\n"
                                  "  sub.u32 %r1, %r1, 1;\n"
                                  "  setp.ne.u32 %p1, %r1, 0;\n"
                                  "  @%p1 bra again;\n"
                                  "  st.global.u32 [%rd1], %r3;\n"
                                  "  st.global.u32 [%rd1+4], %r4;\n"
                                  "  ret;\n"
                                  "}\n";

struct probe {
    struct cuda cuda;
    uint64_t target_mib, chunk_mib, hold_ms;
    int driver_version, devices;
    char name[96], uuid[48];
    int sms_before, sms; /* what the driver says, without and with a context */
    uint64_t total_mib, free_mib, free_after_mib;
    uint64_t allocated_mib;
    uint64_t launches;
    uint32_t sms_seen;
    bool correct; /* the kernel computed what it should */
    uint64_t began_ms, holding_ms, ended_ms;
    char refused[64]; /* what the allocation was answered */
    char problem[160];
};

static uint64_t wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void print(const struct probe *probe, const char *phase) {
    const char *variables[] = {"CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY",
                               "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                               "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "ACRE_GPU_SHARE"};
    printf("{\"phase\":\"%s\",\"pid\":%d,\"uid\":%d,\"driver\":%d,\"devices\":%d,"
           "\"name\":\"%s\",\"uuid\":\"%s\",\"multiprocessors_before_context\":%d,"
           "\"multiprocessors\":%d,\"multiprocessors_used\":%u,\"total_mib\":%" PRIu64
           ",\"free_mib\":%" PRIu64 ",\"free_after_mib\":%" PRIu64 ",\"target_mib\":%" PRIu64
           ",\"allocated_mib\":%" PRIu64 ",\"refused\":\"%s\",\"launches\":%" PRIu64
           ",\"correct\":%s,\"began_ms\":%" PRIu64 ",\"holding_ms\":%" PRIu64
           ",\"ended_ms\":%" PRIu64 ",\"problem\":\"%s\"",
           phase, (int)getpid(), (int)getuid(), probe->driver_version, probe->devices, probe->name,
           probe->uuid, probe->sms_before, probe->sms, probe->sms_seen, probe->total_mib,
           probe->free_mib, probe->free_after_mib, probe->target_mib, probe->allocated_mib,
           probe->refused, probe->launches, probe->correct ? "true" : "false", probe->began_ms,
           probe->holding_ms, probe->ended_ms, probe->problem);
    for (size_t i = 0; i < COUNT(variables); i++) {
        const char *value = getenv(variables[i]);
        printf(",\"%s\":%s%s%s", variables[i], value != NULL ? "\"" : "",
               value != NULL ? value : "null", value != NULL ? "\"" : "");
    }
    printf("}\n");
    fflush(stdout);
}

/* False with the problem noted when `code` is an error. */
static bool ok(struct probe *probe, int code, const char *what) {
    const char *name = NULL;
    if (code == 0) {
        return true;
    }
    if (probe->cuda.error_name == NULL || probe->cuda.error_name(code, &name) != 0) {
        name = "?";
    }
    snprintf(probe->problem, sizeof(probe->problem), "%s: %s (%d)", what, name, code);
    return false;
}

static bool load_library(struct probe *probe) {
    static const char *const names[] = {
#define X(field, symbol, arguments) symbol,
        CUDA_SYMBOLS(X)
#undef X
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) {
        snprintf(probe->problem, sizeof(probe->problem), "no libcuda.so.1");
        return false;
    }
    void *found[COUNT(names)];
    for (size_t i = 0; i < COUNT(names); i++) {
        found[i] = dlsym(library, names[i]);
        if (found[i] == NULL) {
            snprintf(probe->problem, sizeof(probe->problem), "libcuda.so.1 has no %s", names[i]);
            return false;
        }
    }
    _Static_assert(sizeof(found) == sizeof(probe->cuda), "one pointer a symbol");
    memcpy(&probe->cuda, found, sizeof(found));
    return true;
}

static bool look(struct probe *probe, int *ret_device) {
    struct cuda_uuid uuid;
    int device;
    if (!ok(probe, probe->cuda.init(0), "cuInit") ||
        !ok(probe, probe->cuda.version(&probe->driver_version), "cuDriverGetVersion") ||
        !ok(probe, probe->cuda.count(&probe->devices), "cuDeviceGetCount")) {
        return false;
    }
    if (probe->devices == 0) {
        snprintf(probe->problem, sizeof(probe->problem), "no visible device");
        return false;
    }
    if (!ok(probe, probe->cuda.device(&device, 0), "cuDeviceGet") ||
        !ok(probe, probe->cuda.name(probe->name, sizeof(probe->name), device), "cuDeviceGetName") ||
        !ok(probe, probe->cuda.uuid(&uuid, device), "cuDeviceGetUuid") ||
        !ok(probe, probe->cuda.attribute(&probe->sms_before, CUDA_MULTIPROCESSORS, device),
            "cuDeviceGetAttribute")) {
        return false;
    }
    char *at = probe->uuid + snprintf(probe->uuid, sizeof(probe->uuid), "GPU-");
    for (size_t i = 0; i < sizeof(uuid.bytes); i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        at += snprintf(at, 4, "%s%02x", dash ? "-" : "", uuid.bytes[i]);
    }
    *ret_device = device;
    return true;
}

static bool open_context(struct probe *probe, int device) {
    void *context;
    size_t total, unused;
    if (!ok(probe, probe->cuda.retain(&context, device), "cuDevicePrimaryCtxRetain") ||
        !ok(probe, probe->cuda.set_current(context), "cuCtxSetCurrent") ||
        !ok(probe, probe->cuda.attribute(&probe->sms, CUDA_MULTIPROCESSORS, device),
            "cuDeviceGetAttribute") ||
        !ok(probe, probe->cuda.memory(&unused, &total), "cuMemGetInfo")) {
        return false;
    }
    probe->total_mib = total / MIB;
    probe->free_mib = unused / MIB;
    return true;
}

/* Until the target or the first refusal; everything is written to. */
static bool allocate(struct probe *probe) {
    size_t unused, total;
    for (uint32_t i = 0; i < CHUNKS_MAX && probe->allocated_mib < probe->target_mib; i++) {
        uint64_t left = probe->target_mib - probe->allocated_mib;
        uint64_t mib = left < probe->chunk_mib ? left : probe->chunk_mib;
        uint64_t address;
        int code = probe->cuda.allocate(&address, mib * MIB);
        if (code != 0) {
            const char *name = "?";
            probe->cuda.error_name(code, &name);
            snprintf(probe->refused, sizeof(probe->refused), "%s", name);
            break;
        }
        if (!ok(probe, probe->cuda.fill(address, 0x5a, mib * MIB), "cuMemsetD8")) {
            return false;
        }
        probe->allocated_mib += mib;
    }
    if (!ok(probe, probe->cuda.synchronize(), "cuCtxSynchronize") ||
        !ok(probe, probe->cuda.memory(&unused, &total), "cuMemGetInfo")) {
        return false;
    }
    probe->free_after_mib = unused / MIB;
    return true;
}

static uint32_t expected(void) {
    uint32_t value = 1;
    for (uint32_t i = 0; i < SPINS; i++) {
        value = value * 1664525u + 1013904223u;
    }
    return value;
}

static bool compute_once(struct probe *probe, void *function, uint64_t output, uint32_t value,
                         bool seen[SMS_MAX]) {
    static uint32_t result[BLOCKS][2];
    uint32_t spins = SPINS;
    void *arguments[] = {&output, &spins};
    if (!ok(probe,
            probe->cuda.launch(function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL),
            "cuLaunchKernel") ||
        !ok(probe, probe->cuda.synchronize(), "kernel") ||
        !ok(probe, probe->cuda.copy_back(result, output, sizeof(result)), "cuMemcpyDtoH")) {
        return false;
    }
    for (uint32_t i = 0; i < BLOCKS; i++) {
        probe->correct = probe->correct && result[i][1] == value;
        if (result[i][0] < SMS_MAX && !seen[result[i][0]]) {
            seen[result[i][0]] = true;
            probe->sms_seen++;
        }
    }
    probe->launches++;
    return true;
}

/* At least once, and until the time is over. */
static bool compute(struct probe *probe, uint64_t output) {
    void *module, *function;
    bool seen[SMS_MAX] = {false};
    if (!ok(probe, probe->cuda.load(&module, kernel_text), "cuModuleLoadData") ||
        !ok(probe, probe->cuda.function(&function, module, "probe"), "cuModuleGetFunction")) {
        return false;
    }
    uint32_t value = expected();
    probe->correct = true;
    do {
        if (!compute_once(probe, function, output, value, seen)) {
            return false;
        }
    } while (wall_ms() < probe->holding_ms + probe->hold_ms);
    return true;
}

static bool run(struct probe *probe) {
    int device;
    uint64_t output;
    if (!load_library(probe) || !look(probe, &device) || !open_context(probe, device) ||
        !ok(probe, probe->cuda.allocate(&output, BLOCKS * 8), "cuMemAlloc") || !allocate(probe)) {
        return false;
    }
    probe->holding_ms = wall_ms();
    print(probe, "holding");
    bool done = compute(probe, output);
    probe->cuda.release(device);
    return done;
}

static bool parse(int argc, char **argv, struct probe *probe) {
    const struct {
        const char *name;
        uint64_t *value;
        uint64_t factor;
    } options[] = {{"--allocate", &probe->target_mib, 1},
                   {"--chunk", &probe->chunk_mib, 1},
                   {"--hold", &probe->hold_ms, 1000}};
    for (int i = 1; i < argc; i += 2) {
        bool known = false;
        for (size_t k = 0; k < COUNT(options) && i + 1 < argc; k++) {
            char *end;
            if (strcmp(argv[i], options[k].name) == 0) {
                *options[k].value = strtoull(argv[i + 1], &end, 10) * options[k].factor;
                known = *end == '\0' && end != argv[i + 1];
            }
        }
        if (!known) {
            return false;
        }
    }
    return probe->chunk_mib > 0;
}

int main(int argc, char **argv) {
    struct probe probe = {.chunk_mib = 256, .began_ms = wall_ms()};
    if (!parse(argc, argv, &probe)) {
        fprintf(stderr, "usage: cuda_probe [--allocate MIB] [--chunk MIB] [--hold SECONDS]\n");
        return 2;
    }
    bool done = run(&probe);
    probe.ended_ms = wall_ms();
    print(&probe, done ? "done" : "failed");
    if (!done) {
        return 4;
    }
    return probe.allocated_mib < probe.target_mib ? 3 : 0;
}
