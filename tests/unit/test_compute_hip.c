/* HIP: a device or the reason, HIPRTC for devices nobody here has, what differs from CUDA (GPU-1,
 * issue 4 "real HIPRTC compilation", "a truthful no device").
 *
 * Compilation is real: AMD's compiler makes code objects for three architectures. Where its
 * libraries are missing these tests are skipped with what dlopen said. */
#include "compute/gpu/hip.h"
#include "compute/gpu/image.h"
#include "compute/gpu/seat.h"
#include "compute/source/dialect.h"

#include "support/test.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BINARY_MAX = 16 << 20, LOG_MAX = 1 << 20 };

static const char add[] =
    "extern \"C\" __global__ void add(const float *a, const float *b, float *c, unsigned n) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) c[i] = sinf(a[i]) + b[i];\n"
    "}\n";

/* Local memory, barriers, atomics of both widths, doubles: what the suite's kernels are made of. */
static const char mixed[] =
    "extern \"C\" __global__ void mixed(double *sum, unsigned long long *count, const float *x) {\n"
    "    __shared__ float part[256];\n"
    "    part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0) {\n"
    "        double total = 0;\n"
    "        for (unsigned i = 0; i < blockDim.x; i++) total += pow((double)part[i], 2.0);\n"
    "        atomicAdd(sum, total);\n"
    "        atomicAdd(count, 1ull);\n"
    "        __threadfence_system();\n"
    "    }\n"
    "}\n";

static struct hip *must_load(void) {
    struct hip *hip = NULL;
    struct acre_error err = {0};
    int r = hip_load(&hip, &err);
    if (r == ACRE_EUNAVAILABLE) {
        acre_test_skip("%s", err.text);
    }
    acre_test_context("%s", err.text);
    REQUIRE(r == 0);
    if (!hip->has_rtc) {
        acre_test_skip("HIPRTC: %s", hip->rtc_absent);
    }
    acre_test_context("%s", "");
    return hip;
}

struct result {
    int r;
    struct acre_buf binary, log;
    struct acre_error err;
};

static void build_within(struct result *result, const char *arch, const char *text,
                         const char *options, size_t binary_max, size_t log_max) {
    struct hip *hip = must_load();
    *result = (struct result){0};
    acre_buf_init(&result->binary, binary_max);
    acre_buf_init(&result->log, log_max);
    struct native_source source = {.text = text, .length = strlen(text), .options = options};
    result->r =
        hiprtc_compile(&hip->rtc, arch, &source, &result->binary, &result->log, &result->err);
    gpu_close(hip);
}

static struct result build(const char *arch, const char *text, const char *options) {
    struct result result;
    build_within(&result, arch, text, options, BINARY_MAX, LOG_MAX);
    return result;
}

static void finish(struct result *result) {
    acre_buf_finish(&result->binary);
    acre_buf_finish(&result->log);
}

/* Whether `name` is a kernel of the code, and the only one. */
static bool has_kernel(const struct acre_buf *binary, const char *name) {
    struct acre_buf kernels;
    gpu_image_kernels(binary->data, binary->length, &kernels);
    const char *first = gpu_image_next(&kernels, NULL);
    bool has = first != NULL && strcmp(first, name) == 0 && gpu_image_next(&kernels, first) == NULL;
    acre_buf_finish(&kernels);
    return has;
}

/* --- devices --------------------------------------------------------------------------------- */

static void open_finds_a_device_or_says_why_not(void) {
    for (int i = 0; i < 3; i++) { /* an answer is not used up */
        void *self = NULL;
        struct acre_error err = {0};
        int r = backend_hip.open(&self, &err);
        if (r == 0) {
            REQUIRE(backend_hip.count(self) > 0);
            struct acre_compute_device device = {0};
            backend_hip.describe(self, 0, &device);
            CHECK(strncmp(device.identity, "gfx", 3) == 0);
            CHECK(device.units > 0 && device.group_max > 0 && device.memory_bytes > 0);
            backend_hip.close(self);
            continue;
        }
        CHECK_EQ(r, ACRE_EUNAVAILABLE);
        CHECK_EQ(err.code, ACRE_EUNAVAILABLE);
        CHECK(self == NULL);
        if (dlopen("libamdhip64.so.6", RTLD_LAZY) == NULL &&
            dlopen("libamdhip64.so.5", RTLD_LAZY) == NULL) {
            CHECK_HAS(err.text, "libamdhip64.so.6");
            CHECK_HAS(err.text, "libamdhip64.so.5");
        } else {
            CHECK_HAS(err.text, "hip");      /* the call that failed */
            CHECK_HAS(err.text, "hipError"); /* and its answer */
            if (access("/dev/kfd", F_OK) != 0) {
                CHECK_HAS(err.text, "/dev/kfd: No such file or directory");
            }
        }
    }
}

static void no_error_wanted_is_fine(void) {
    void *self = NULL;
    int r = backend_hip.open(&self, NULL);
    CHECK(r == 0 || r == ACRE_EUNAVAILABLE);
    if (r == 0) {
        backend_hip.close(self);
    }
}

/* The front replays graphs, asks no files of it, and waits on the host for nothing else. */
static void the_table_has_what_hip_can_do(void) {
    const struct backend *hip = &backend_hip;
    CHECK_STR(hip->name, "hip");
    CHECK_EQ(hip->language, ACRE_LANGUAGE_HIP);
    CHECK(hip->open && hip->close && hip->count && hip->describe && hip->seat_open &&
          hip->seat_close && hip->check && hip->memory && hip->region_create &&
          hip->region_destroy && hip->stream_create && hip->stream_destroy && hip->copy &&
          hip->fill && hip->launch && hip->signal && hip->wait && hip->notify && hip->compile &&
          hip->load && hip->unload && hip->kernel && hip->profile && hip->timings);
    CHECK(!hip->graph_create && !hip->graph_update && !hip->graph_launch && !hip->graph_destroy);
    CHECK(!hip->native && !hip->transfer);
    CHECK((hip->capabilities & (ACRE_CAN_GRAPH | ACRE_CAN_RING | ACRE_CAN_STORAGE)) == 0);
}

/* --- compiling ------------------------------------------------------------------------------- */

/* Numbers of architectures in e_flags, as LLVM's documentation of AMDGPU has them. */
static void kernels_compile_for_every_architecture(void) {
    static const struct {
        const char *arch;
        uint32_t mach;
    } rows[] = {{"gfx90a", 0x3f},
                {"gfx1030", 0x36},
                {"gfx906", 0x2f},
                {"gfx90a:sramecc+:xnack-", 0x3f}}; /* as a device calls itself */
    static const struct { const char *name, *text; } kernels[] = {{"add", add}, {"mixed", mixed}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        for (size_t k = 0; k < ACRE_COUNT(kernels); k++) {
            struct result result = build(rows[i].arch, kernels[k].text, "");
            acre_test_context("%s for %s: %s", kernels[k].name, rows[i].arch, result.err.text);
            REQUIRE_EQ(result.r, 0);
            CHECK_STR(result.log.data, "");
            REQUIRE(result.binary.length > sizeof(Elf64_Ehdr));
            Elf64_Ehdr header;
            memcpy(&header, result.binary.data, sizeof(header));
            CHECK_EQ(header.e_machine, EM_AMDGPU);
            CHECK_U64(header.e_flags & 0xff, rows[i].mach);
            CHECK(has_kernel(&result.binary, kernels[k].name));
            CHECK_EQ(gpu_image_check(result.binary.data, result.binary.length, NULL), 0);
            finish(&result);
        }
    }
}

/* Bad input: the compiler's own lines, with the user's numbered right. */
static void errors_have_the_lines_of_the_source(void) {
    static const struct {
        const char *text, *first, *also;
    } rows[] = {
        {"\n\nextern \"C\" __global__ void k(float *a) {\n    a[0] = missing;\n}\n",
         "kernel:4:12: error: use of undeclared identifier 'missing'", "a[0] = missing;"},
        {"#define PRELUDE 1\n#line 1 \"mine.cu\"\nextern \"C\" __global__ void k() { return 1; }\n",
         "mine.cu:1:", "error: void function 'k' should not return a value"},
        {"#error no such thing\n", "kernel:1:2: error: no such thing", "1 error generated"},
        {"extern \"C\" __device__ int far(int);\n"
         "extern \"C\" __global__ void k(int *a) { a[0] = far(1); }\n",
         "error: undefined hidden symbol: far", "referenced by"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct result result = build("gfx90a", rows[i].text, "");
        acre_test_context("row %zu", i);
        CHECK_EQ(result.r, ACRE_EINVALID);
        CHECK_EQ(result.err.code, ACRE_EINVALID);
        CHECK_HAS(result.err.text, rows[i].first);
        CHECK(strchr(result.err.text, '\n') == NULL);
        CHECK_HAS(result.log.data, rows[i].first);
        CHECK_HAS(result.log.data, rows[i].also);
        CHECK(strstr(result.log.data, "CompileSource") == NULL); /* its temporary file */
        CHECK_U64(result.binary.length, 0);
        finish(&result);
    }
}

static void warnings_are_in_the_log_and_do_no_harm(void) {
    struct result result = build("gfx1030",
                                 "extern \"C\" __global__ void k(int *a) {\n"
                                 "#warning look here\n"
                                 "    a[0] = 1;\n}\n",
                                 "");
    acre_test_context("%s", result.err.text);
    REQUIRE_EQ(result.r, 0);
    CHECK_HAS(result.log.data, "kernel:2:2: warning: look here");
    CHECK(has_kernel(&result.binary, "k"));
    finish(&result);
}

/* Most sources of HIP begin with it. */
static void the_usual_include_is_taken(void) {
    struct result result = build("gfx90a",
                                 "#include <hip/hip_runtime.h>\n"
                                 "extern \"C\" __global__ void k(int *a) { a[0] = 1; }\n",
                                 "");
    acre_test_context("%s", result.err.text);
    CHECK_EQ(result.r, 0);
    finish(&result);
}

static void options_reach_the_compiler(void) {
    static const char text[] = "extern \"C\" __global__ void k(int *a) {\n"
                               "    static_assert(N == 4, \"N\");\n"
                               "    if constexpr (N > M) a[0] = N;\n}\n";
    struct result result = build("gfx90a", text, "  -DN=4\t-DM=1 \n-std=c++17 ");
    acre_test_context("%s", result.err.text);
    CHECK_EQ(result.r, 0);
    finish(&result);
    result = build("gfx90a", text, "-DN=5 -DM=1 -std=c++17");
    CHECK_EQ(result.r, ACRE_EINVALID);
    CHECK_HAS(result.err.text, "kernel:2:");
    finish(&result);
}

/* An architecture unknown to HIPRTC 5.2 ends the process: none can be given. */
static void bad_options_are_refused(void) {
    char many[1024] = "", huge[8192];
    for (int i = 0; i < 64; i++) {
        snprintf(many + strlen(many), sizeof(many) - strlen(many), "-DA%d ", i);
    }
    memset(huge, 'x', sizeof(huge) - 1);
    huge[sizeof(huge) - 1] = '\0';
    const struct {
        const char *options;
        int error;
        const char *text;
    } rows[] = {
        {"--offload-arch=gfx9999", ACRE_EINVALID, "option '--offload-arch=gfx9999'"},
        {"-O2 --gpu-architecture=gfx906", ACRE_EINVALID, "option '--gpu-architecture=gfx906'"},
        {"-mcpu=gfx906", ACRE_EINVALID, "the architecture is always that of the device"},
        {"--target x", ACRE_EINVALID, "option '--target'"},
        {"-fnonsense", ACRE_EINVALID, "unknown argument: '-fnonsense'"},
        {many, ACRE_ELIMIT, "more than 63 options"},
        {huge, ACRE_ELIMIT, "options: 8191 bytes; accepted: at most 4096"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct result result = build("gfx90a", add, rows[i].options);
        acre_test_context("row %zu", i);
        CHECK_EQ(result.r, rows[i].error);
        CHECK_HAS(result.err.text, rows[i].text);
        CHECK_U64(result.binary.length, 0);
        finish(&result);
    }
}

/* Limits of the caller's buffers: code must fit, a log may be cut. */
static void buffers_keep_their_limits(void) {
    struct result result;
    build_within(&result, "gfx90a", add, "", 100, LOG_MAX);
    CHECK_EQ(result.r, ACRE_ELIMIT);
    CHECK_HAS(result.err.text, "hiprtcGetCode: ");
    CHECK_HAS(result.err.text, "at most 100");
    finish(&result);
    build_within(&result, "gfx90a", "\nint x = missing;\n", "", BINARY_MAX, 10);
    CHECK_EQ(result.r, ACRE_EINVALID);
    CHECK_STR(result.log.data, "kernel:2:9");
    CHECK_HAS(result.err.text, "undeclared identifier 'missing'"); /* whole all the same */
    finish(&result);
}

static void *build_one(void *user) {
    struct result *result = user;
    *result = build("gfx90a", add, "");
    return NULL;
}

static void many_threads_may_compile(void) {
    enum { THREADS = 4 };
    gpu_close(must_load()); /* skips here, not in a thread */
    pthread_t threads[THREADS];
    struct result results[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, build_one, &results[i]) == 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        acre_test_context("%s", results[i].err.text);
        CHECK_EQ(results[i].r, 0);
        CHECK_U64(results[i].binary.length, results[0].binary.length);
    }
    for (size_t i = 0; i < THREADS; i++) {
        finish(&results[i]);
    }
}

/* PoCL brings a clang of its own; with AMD's beside it LLVM would end the process. */
static void another_clang_is_an_error_and_not_the_end(void) {
    if (dlopen("libclang-cpp.so.15", RTLD_NOW) == NULL) {
        acre_test_skip("%s", dlerror());
    }
    struct result result = build("gfx90a", add, "");
    CHECK_EQ(result.r, ACRE_EUNAVAILABLE);
    CHECK_HAS(result.err.text, "this process already has PoCL's");
    finish(&result);
}

/* --- the dialect ----------------------------------------------------------------------------- */

/* Every word of dialect.h. */
static const char every_word[] =
    "constant float table[4] = {1, 2, 3, 4};\n"
    "uint helper(uint x) { return popcount(x) + clz(x); }\n"
    "float twice(local float *p, constant float *t) { return p[0] * 2 + t[1]; }\n"
    "kernel void words(global const float *a, global float *b, global uint *u, global int *s,\n"
    "                  global double *d, uint n, uchar c, ushort h) {\n"
    "    local float part[64];\n"
    "    ulong i = global_id(0) + global_id(1) * global_size(0) + global_id(2);\n"
    "    ulong g = group_id(0) + group_count(0) + local_size(0) + local_id(0) + c + h;\n"
    "    part[local_id(0) % 64] = a[i];\n"
    "    barrier();\n"
    "    if (i >= n) { return; }\n"
    "    b[i] = sqrt(a[i]) + sin(a[i]) + fma(a[i], 2.0f, 1.0f) + twice(part, table) + exp(a[i]);\n"
    "    b[i] += min(a[i], 2.0f) + max(a[i], 1.0f) + clamp(a[i], 0.0f, 1.0f) + pow(a[i], 2.0f);\n"
    "    d[i] = sqrt(d[i]) + cos(d[i]) + fma(d[i], 2.0, 1.0) + clamp(d[i], 0.0, 1.0);\n"
    "    atomic_add(&u[0], 1u); atomic_sub(&u[1], 1u); atomic_min(&u[2], (uint)g);\n"
    "    atomic_max(&u[3], n); atomic_and(&u[4], n); atomic_or(&u[5], n); atomic_xor(&u[6], n);\n"
    "    atomic_exchange(&u[7], n); atomic_compare(&u[8], 0u, 1u);\n"
    "    atomic_add(&s[0], 1); atomic_sub(&s[1], 1); atomic_min(&s[2], -1); atomic_max(&s[3], 4);\n"
    "    atomic_and(&s[4], 1); atomic_or(&s[5], 2); atomic_xor(&s[6], 3);\n"
    "    atomic_exchange(&s[7], 4); atomic_compare(&s[8], 0, 1);\n"
    "    atomic_add_float(&b[0], 1.5f); atomic_add_float(&part[1], 1.5f);\n"
    "    u[9] = as_uint(a[0]) + helper(n) + min(u[9], 4u); b[1] = as_float(u[0]);\n"
    "}\n";

static struct result build_dialect(const char *arch, const char *text,
                                   enum acre_language language) {
    struct signature *all = NULL;
    uint32_t count = 0;
    struct acre_error err = {0};
    REQUIRE_EQ(signatures_read("mine", acre_str_from(text), language, &all, &count, &err), 0);
    struct acre_source source = {.text = text, .name = "mine", .language = language};
    struct acre_buf out;
    acre_buf_init(&out, LOG_MAX);
    REQUIRE_EQ(dialect_write("hip", &source, language, all, count, &out, &err), 0);
    struct result result = build(arch, out.data, "");
    acre_buf_finish(&out);
    signatures_free(all, count);
    return result;
}

/* GPU-1: one source compiles on all. That the kernel is there is the point: a prelude may make of
 * it a function that is compiled and dropped. */
static void the_dialect_compiles_for_every_architecture(void) {
    static const char *const arches[] = {"gfx90a", "gfx1030", "gfx906"};
    for (size_t i = 0; i < ACRE_COUNT(arches); i++) {
        struct result result = build_dialect(arches[i], every_word, ACRE_LANGUAGE_PORTABLE);
        acre_test_context("%s: %s", arches[i], result.err.text);
        REQUIRE_EQ(result.r, 0);
        CHECK_STR(result.log.data, "");
        CHECK(has_kernel(&result.binary, "words"));
        finish(&result);
    }
}

static void lines_of_the_dialect_are_the_users(void) {
    struct result result = build_dialect(
        "gfx90a", "kernel void k(global float *a) {\n    a[0] = b;\n}\n", ACRE_LANGUAGE_PORTABLE);
    CHECK_EQ(result.r, ACRE_EINVALID);
    CHECK_HAS(result.err.text, "mine:2:12: error: use of undeclared identifier 'b'");
    finish(&result);
}

static void plain_kernels_keep_their_names(void) {
    struct result result =
        build_dialect("gfx90a",
                      "#include <hip/hip_runtime.h>\n"
                      "template <typename T> __device__ T twice(T x) { return x + x; }\n"
                      "__global__ void plain(float *a) { a[0] = twice(a[1]); }\n",
                      ACRE_LANGUAGE_HIP);
    acre_test_context("%s", result.err.text);
    REQUIRE_EQ(result.r, 0);
    CHECK(has_kernel(&result.binary, "plain"));
    finish(&result);
}

/* --- what differs from CUDA ------------------------------------------------------------------ */

static struct {
    int device, peer, calls, code;
    unsigned flags;
    uint64_t numbers[5];
} seen;

static int set_device(int device) {
    seen.device = device;
    return seen.code;
}

static int enable_peer(int peer, unsigned flags) {
    seen.peer = peer;
    seen.flags = flags;
    return seen.code;
}

static int copy(uintptr_t to, uintptr_t from, size_t bytes, int kind, gpu_handle stream) {
    memcpy(seen.numbers, (uint64_t[]){to, from, bytes, (uint64_t)kind, stream}, 40);
    return seen.code;
}

static int wait64(gpu_handle stream, uintptr_t at, uint64_t value, unsigned flags, uint64_t mask) {
    memcpy(seen.numbers, (uint64_t[]){stream, at, value, flags, mask}, 40);
    return seen.code;
}

static int add_callback(gpu_handle stream, hip_callback *callback, void *user, unsigned flags) {
    seen.flags = flags;
    if (seen.code == 0) {
        callback(stream, 0, user);
    }
    return seen.code;
}

static int launch_host(gpu_handle stream, void (*function)(void *), void *user) {
    seen.numbers[0] = stream;
    function(user);
    return 0;
}

static void count_call(void *user) {
    *(int *)user += 1;
}

static void contexts_are_devices(void) {
    struct hip *hip = must_load();
    const struct gpu_vendor *vendor = hip->gpu.vendor;
    hip->set_device = set_device;
    hip->enable_peer = enable_peer;
    gpu_handle context = 0;
    CHECK_EQ(vendor->context_open(&hip->gpu, 3, &context), 0);
    CHECK_EQ(seen.device, 3);
    CHECK(context != 0);
    CHECK_EQ(vendor->context_open(&hip->gpu, 0, &context), 0);
    CHECK(context != 0); /* 0 is none */
    seen.device = -1;
    CHECK_EQ(vendor->context_enter(&hip->gpu, context), 0);
    CHECK_EQ(seen.device, 0);
    CHECK_EQ(vendor->context_peer(&hip->gpu, context), 0);
    CHECK_EQ(seen.peer, 0);
    seen.code = HIP_PEER_ALREADY;
    CHECK_EQ(vendor->context_peer(&hip->gpu, context), 0);
    seen.code = 101;
    CHECK_EQ(vendor->context_peer(&hip->gpu, context), 101);
    gpu_handle none = 0;
    CHECK_EQ(vendor->context_open(&hip->gpu, 9, &none), 101);
    CHECK(none == 0);
    vendor->context_close(&hip->gpu, 0, context);
    gpu_close(hip);
}

static void work_has_hips_arguments(void) {
    struct hip *hip = must_load();
    const struct gpu_vendor *vendor = hip->gpu.vendor;
    hip->copy = copy;
    hip->wait64 = wait64;
    CHECK_EQ(vendor->copy(&hip->gpu, 0x1000, 0x2000, 48, 7), 0);
    CHECK(memcmp(seen.numbers, (uint64_t[]){0x1000, 0x2000, 48, HIP_COPY_ANY, 7}, 40) == 0);
    CHECK_EQ(vendor->wait64(&hip->gpu, 7, 0x3000, 12), 0);
    CHECK(memcmp(seen.numbers, (uint64_t[]){7, 0x3000, 12, HIP_WAIT_AT_LEAST, UINT64_MAX}, 40) ==
          0);
    gpu_close(hip);
}

/* With HIP before 5.3 and after; what was not accepted is not called and not leaked. */
static void host_functions_are_called_by_either_way(void) {
    struct hip *hip = must_load();
    const struct gpu_vendor *vendor = hip->gpu.vendor;
    int calls = 0;
    hip->gpu.driver.host_function = NULL;
    hip->add_callback = add_callback;
    CHECK_EQ(vendor->host_function(&hip->gpu, 5, count_call, &calls), 0);
    CHECK_EQ(calls, 1);
    seen.code = 1;
    CHECK_EQ(vendor->host_function(&hip->gpu, 5, count_call, &calls), 1);
    CHECK_EQ(calls, 1);
    hip->gpu.driver.host_function = launch_host;
    CHECK_EQ(vendor->host_function(&hip->gpu, 6, count_call, &calls), 0);
    CHECK_EQ(calls, 2);
    CHECK_U64(seen.numbers[0], 6);
    gpu_close(hip);
}

static int attribute(int *ret_value, int which, int device) {
    *ret_value = which == HIP_UNITS ? 104 : which == HIP_GROUP_MAX ? 1024 : 65536;
    return device == 1 ? 0 : 101;
}

static int properties_5(void *to, int device) {
    (void)device;
    memcpy((char *)to + HIP_ARCH_AT_5, "gfx906:sramecc+", 16);
    return 0;
}

static int properties_6(void *to, int device) {
    (void)device;
    memcpy((char *)to + HIP_ARCH_AT_6, "gfx942:sramecc+:xnack-", 23);
    return 0;
}

static int uuid(struct hip_uuid *ret_uuid, int device) {
    (void)device;
    memcpy(ret_uuid->bytes, "1122334455667702", 16);
    return 0;
}

/* Identity: architecture, runtime, driver and compiler; the uuid is the one of /sys (DEV-2). */
static void devices_are_described_by_both_versions(void) {
    struct hip *hip = must_load();
    const struct gpu_vendor *vendor = hip->gpu.vendor;
    hip->gpu.driver.device_attribute = attribute;
    hip->properties_5 = properties_5;
    hip->properties_6 = NULL;
    hip->uuid = uuid;
    hip->version = 50221153;
    hip->gpu.version = 50221153;
    struct acre_compute_device device = {0};
    CHECK_EQ(vendor->describe(&hip->gpu, 1, &device), 0);
    CHECK_U64(device.units, 104);
    CHECK_U64(device.group_max, 1024);
    CHECK_U64(device.local_bytes, 65536);
    CHECK_STR(device.backend, "hip");
    CHECK_STR(device.uuid, "GPU-1122334455667702");
    CHECK_HAS(device.identity, "gfx906:sramecc+ HIP 50221153 driver 50221153 HIPRTC ");
    CHECK_U64(device.capabilities, ACRE_CAN_SOURCE | ACRE_CAN_DOUBLE | ACRE_CAN_ATOMIC64);
    hip->properties_6 = properties_6;
    hip->uuid = NULL;
    hip->has_rtc = false;
    device = (struct acre_compute_device){0};
    CHECK_EQ(vendor->describe(&hip->gpu, 1, &device), 0);
    CHECK_HAS(device.identity, "gfx942:sramecc+:xnack- HIP");
    CHECK_STR(device.uuid, "");
    CHECK_U64(device.capabilities, ACRE_CAN_DOUBLE | ACRE_CAN_ATOMIC64);
    CHECK_EQ(vendor->describe(&hip->gpu, 2, &device), 101);
    gpu_close(hip);
}

/* A seat compiles for its own device, and says so when there is no compiler. */
static void a_seat_compiles_for_its_device(void) {
    struct hip *hip = must_load();
    struct gpu_device device = {.description.identity = "gfx1030 HIP 1 driver 1 HIPRTC 9.0"};
    hip->gpu.devices = &device;
    struct gpu_seat seat = {.gpu = &hip->gpu};
    struct acre_buf binary, log;
    acre_buf_init(&binary, BINARY_MAX);
    acre_buf_init(&log, LOG_MAX);
    struct native_source source = {.text = add, .length = sizeof(add) - 1, .options = ""};
    struct acre_error err = {0};
    REQUIRE_EQ(backend_hip.compile(&seat, &source, &binary, &log, &err), 0);
    CHECK_EQ(((const Elf64_Ehdr *)(const void *)binary.data)->e_flags & 0xff, 0x36);
    hip->has_rtc = false;
    snprintf(hip->rtc_absent, sizeof(hip->rtc_absent), "libhiprtc.so.6: not here");
    CHECK_EQ(backend_hip.compile(&seat, &source, &binary, &log, &err), ACRE_EUNSUPPORTED);
    CHECK_STR(err.text, "HIPRTC: libhiprtc.so.6: not here");
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    hip->gpu.devices = NULL;
    gpu_close(hip);
}

/* Bad input: a damaged cache must not reach a driver that trusts what it reads. */
static void only_code_of_amd_is_loaded(void) {
    struct result result = build("gfx90a", add, "");
    REQUIRE_EQ(result.r, 0);
    struct hip *hip = must_load();
    const struct gpu_vendor *vendor = hip->gpu.vendor;
    CHECK_EQ(vendor->image_check(result.binary.data, result.binary.length, NULL), 0);
    static const char bundle[] = "__CLANG_OFFLOAD_BUNDLE__\0\0\0\0\0\0\0\0code";
    CHECK_EQ(vendor->image_check(bundle, sizeof(bundle) - 1, NULL), 0);
    struct acre_error err = {0};
    static const char ptx[] = "// a text of another driver";
    CHECK_EQ(vendor->image_check(ptx, sizeof(ptx), &err), ACRE_ECORRUPT);
    CHECK_HAS(err.text, "not a code object for an AMD GPU");
    result.binary.data[offsetof(Elf64_Ehdr, e_machine)] = EM_X86_64;
    CHECK_EQ(vendor->image_check(result.binary.data, result.binary.length, &err), ACRE_ECORRUPT);
    CHECK_EQ(vendor->image_check("x", 1, &err), ACRE_ECORRUPT);
    gpu_close(hip);
    finish(&result);
}

static void codes_have_words(void) {
    struct hip *hip = must_load();
    struct acre_error err = {0};
    CHECK_EQ(gpu_fail(&hip->gpu, NULL, 2, "hipMalloc", &err), ACRE_ENOMEM);
    CHECK_STR(err.text, "hipMalloc: the device is out of memory (hipErrorOutOfMemory)");
    CHECK_EQ(gpu_fail(&hip->gpu, NULL, 33, "hipEventRecord", &err), ACRE_EINTERNAL);
    CHECK_HAS(err.text, "hipEventRecord: ");
    struct gpu_seat seat = {.gpu = &hip->gpu};
    CHECK_EQ(gpu_fail(&hip->gpu, &seat, 719, "hipStreamQuery", &err), ACRE_EUNAVAILABLE);
    CHECK_EQ(seat.lasting, 719);
    gpu_close(hip);
}

static const struct acre_test tests[] = {
    {"open_finds_a_device_or_says_why_not", open_finds_a_device_or_says_why_not, 0},
    {"no_error_wanted_is_fine", no_error_wanted_is_fine, 0},
    {"the_table_has_what_hip_can_do", the_table_has_what_hip_can_do, 0},
    {"kernels_compile_for_every_architecture", kernels_compile_for_every_architecture, 0},
    {"errors_have_the_lines_of_the_source", errors_have_the_lines_of_the_source, 0},
    {"warnings_are_in_the_log_and_do_no_harm", warnings_are_in_the_log_and_do_no_harm, 0},
    {"the_usual_include_is_taken", the_usual_include_is_taken, 0},
    {"options_reach_the_compiler", options_reach_the_compiler, 0},
    {"bad_options_are_refused", bad_options_are_refused, 0},
    {"buffers_keep_their_limits", buffers_keep_their_limits, 0},
    {"many_threads_may_compile", many_threads_may_compile, 0},
    {"another_clang_is_an_error_and_not_the_end", another_clang_is_an_error_and_not_the_end, 0},
    {"the_dialect_compiles_for_every_architecture", the_dialect_compiles_for_every_architecture, 0},
    {"lines_of_the_dialect_are_the_users", lines_of_the_dialect_are_the_users, 0},
    {"plain_kernels_keep_their_names", plain_kernels_keep_their_names, 0},
    {"contexts_are_devices", contexts_are_devices, 0},
    {"work_has_hips_arguments", work_has_hips_arguments, 0},
    {"host_functions_are_called_by_either_way", host_functions_are_called_by_either_way, 0},
    {"devices_are_described_by_both_versions", devices_are_described_by_both_versions, 0},
    {"a_seat_compiles_for_its_device", a_seat_compiles_for_its_device, 0},
    {"only_code_of_amd_is_loaded", only_code_of_amd_is_loaded, 0},
    {"codes_have_words", codes_have_words, 0},
};
ACRE_TEST_MAIN(tests)
