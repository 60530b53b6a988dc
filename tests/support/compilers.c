/* compilers.c - NVRTC, an OpenCL device's compiler, clang for HIP. */
#include "compilers.h"

#include "core/dl.h"
#include "core/file.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LOG_MAX_BYTES = 1 << 20 };

/* --- CUDA ----------------------------------------------------------------------------------- */

struct nvrtc {
    int (*create)(void **program, const char *text, const char *name, int headers,
                  const char *const *texts, const char *const *names);
    int (*compile)(void *program, int count, const char *const *options);
    int (*log_size)(void *program, size_t *size);
    int (*log)(void *program, char *log);
    int (*ptx_size)(void *program, size_t *size);
    int (*ptx)(void *program, char *ptx);
    int (*destroy)(void **program);
};

static void fetch(void *program, int (*size_of)(void *, size_t *), int (*get)(void *, char *),
                  struct acre_buf *to) {
    size_t size = 0;
    if (size_of(program, &size) == 0 && size > 1) {
        char *text = acre_calloc(size, 1);
        get(program, text);
        acre_buf_puts(to, text);
        free(text);
    }
}

int compile_cuda(const char *text, struct acre_buf *log, struct acre_buf *out) {
    static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                          "/usr/local/cuda/lib64/libnvrtc.so", NULL};
#define AT(field, symbol)                                                                          \
    { symbol, offsetof(struct nvrtc, field), true }
    static const struct acre_dl_symbol symbols[] = {
        AT(create, "nvrtcCreateProgram"),       AT(compile, "nvrtcCompileProgram"),
        AT(log_size, "nvrtcGetProgramLogSize"), AT(log, "nvrtcGetProgramLog"),
        AT(ptx_size, "nvrtcGetPTXSize"),        AT(ptx, "nvrtcGetPTX"),
        AT(destroy, "nvrtcDestroyProgram")};
    struct nvrtc nvrtc;
    struct acre_error err = {0};
    if (acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), &nvrtc, NULL, &err) < 0) {
        acre_buf_puts(log, err.text);
        return -1;
    }
    void *program = NULL;
    static const char *const options[] = {"--gpu-architecture=compute_90",
                                          "--device-as-default-execution-space"};
    if (nvrtc.create(&program, text, "prelude", 0, NULL, NULL) != 0) {
        return 1;
    }
    int r = nvrtc.compile(program, ACRE_COUNT(options), options);
    fetch(program, nvrtc.log_size, nvrtc.log, log);
    if (r == 0) {
        fetch(program, nvrtc.ptx_size, nvrtc.ptx, out);
    }
    nvrtc.destroy(&program);
    return r != 0;
}

/* --- OpenCL --------------------------------------------------------------------------------- */

enum { CL_BUILD_LOG = 0x1183 };

struct cl {
    int (*platforms)(unsigned max, void **platforms, unsigned *count);
    int (*devices)(void *platform, uint64_t kind, unsigned max, void **devices, unsigned *count);
    void *(*context)(const intptr_t *properties, unsigned count, void *const *devices,
                     void (*notify)(const char *, const void *, size_t, void *), void *user,
                     int *ret);
    void *(*program)(void *context, unsigned count, const char **texts, const size_t *lengths,
                     int *ret);
    int (*build)(void *program, unsigned count, void *const *devices, const char *options,
                 void (*notify)(void *, void *), void *user);
    int (*info)(void *program, void *device, unsigned what, size_t max, void *value, size_t *size);
    int (*release_program)(void *program);
    int (*release_context)(void *context);
};

int compile_opencl(const char *text, struct acre_buf *log, struct acre_buf *out) {
    (void)out;
    static const char *const sonames[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};
#undef AT
#define AT(field, symbol)                                                                          \
    { symbol, offsetof(struct cl, field), true }
    static const struct acre_dl_symbol symbols[] = {AT(platforms, "clGetPlatformIDs"),
                                                    AT(devices, "clGetDeviceIDs"),
                                                    AT(context, "clCreateContext"),
                                                    AT(program, "clCreateProgramWithSource"),
                                                    AT(build, "clBuildProgram"),
                                                    AT(info, "clGetProgramBuildInfo"),
                                                    AT(release_program, "clReleaseProgram"),
                                                    AT(release_context, "clReleaseContext")};
    struct cl cl;
    struct acre_error err = {0};
    void *platform, *device;
    unsigned count = 0;
    if (acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), &cl, NULL, &err) < 0) {
        acre_buf_puts(log, err.text);
        return -1;
    }
    int r = cl.platforms(1, &platform, &count);
    r = r == 0 && count > 0 ? cl.devices(platform, UINT32_MAX, 1, &device, &count) : -1;
    void *context = r == 0 ? cl.context(NULL, 1, &device, NULL, NULL, &r) : NULL;
    if (context == NULL) {
        acre_buf_printf(log, "no OpenCL device (%d)", r);
        return -1;
    }
    void *program = cl.program(context, 1, &text, NULL, &r);
    r = r == 0 ? cl.build(program, 1, &device, "", NULL, NULL) : r;
    size_t size = 0;
    if (cl.info(program, device, CL_BUILD_LOG, 0, NULL, &size) == 0 && size > 1) {
        char *said = acre_calloc(size + 1, 1);
        cl.info(program, device, CL_BUILD_LOG, size, said, NULL);
        acre_buf_puts(log, said);
        free(said);
    }
    cl.release_program(program);
    cl.release_context(context);
    return r != 0;
}

/* --- HIP ------------------------------------------------------------------------------------ */

static const char hip_declarations[] =
    "#define __global__ __attribute__((global))\n"
    "#define __device__ __attribute__((device))\n"
    "#define __shared__ __attribute__((shared))\n"
    "#define __constant__ __attribute__((constant))\n"
    "#define __forceinline__ inline __attribute__((always_inline))\n"
    "struct dim3 { unsigned x, y, z; };\n"
    "struct float2 { float x, y; };\n"
    "struct float4 { float x, y, z, w; };\n"
    "extern const __device__ __attribute__((weak)) dim3 threadIdx, blockIdx, blockDim, gridDim;\n"
    "__device__ void __syncthreads();\n"
    "#define F(name, type) __device__ type name(type *, type);\n"
    "#define I(name) F(name, int) F(name, unsigned)\n"
    "I(atomicAdd) I(atomicSub) I(atomicMin) I(atomicMax) I(atomicAnd) I(atomicOr) I(atomicXor)\n"
    "I(atomicExch) F(atomicAdd, float)\n"
    "__device__ int atomicCAS(int *, int, int);\n"
    "__device__ unsigned atomicCAS(unsigned *, unsigned, unsigned);\n"
    "__device__ unsigned __float_as_uint(float);\n"
    "__device__ float __uint_as_float(unsigned), __int_as_float(int);\n"
    "__device__ int __popc(unsigned), __popcll(unsigned long long), __clz(int);\n"
    "__device__ int __clzll(long long);\n"
    "__device__ float sqrt(float), fma(float, float, float), min(float, float);\n"
    "__device__ float max(float, float), sin(float);\n"
    "#undef F\n#undef I\n";

int compile_hip(const char *text, struct acre_buf *log, struct acre_buf *out) {
    (void)out;
    char path[] = "/tmp/acre-hip-XXXXXX", messages[] = "/tmp/acre-hip-log-XXXXXX";
    int fd = mkstemp(path), log_fd = mkstemp(messages);
    if (fd < 0 || log_fd < 0) {
        acre_buf_puts(log, "no temporary file");
        return -1;
    }
    dprintf(fd, "%s%s", hip_declarations, text);
    close(fd);
    const char *const arguments[] = {"clang",
                                     "-x",
                                     "hip",
                                     "--cuda-device-only",
                                     "-nogpulib",
                                     "-nogpuinc",
                                     "-Wall",
                                     "-Wno-unused-function",
                                     "--offload-arch=gfx906",
                                     "-fsyntax-only",
                                     path,
                                     NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, log_fd, STDERR_FILENO);
    pid_t pid;
    int status = -1;
    int r = posix_spawnp(&pid, "clang", &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (r == 0) {
        waitpid(pid, &status, 0);
        acre_file_read(messages, LOG_MAX_BYTES, log, NULL);
    } else {
        acre_buf_printf(log, "clang: %s", strerror(r));
    }
    close(log_fd);
    unlink(path);
    unlink(messages);
    return r != 0 || WEXITSTATUS(status) == 127 ? -1 : status != 0;
}
