/* test_compute_cuda_abi.c - our declarations of CUDA, NVRTC and cuFile against NVIDIA's headers.
 *
 * The vendor's headers are not part of the build. Where they are installed a small C++ text is
 * written and given to the system's compiler: it compares the types of all functions (number of
 * parameters, size and kind of each, what pointers point to), sizes and offsets of structs and
 * values of constants, by static assertions. Elsewhere the test is skipped, with the reason. */
#include "compute/gpu/cuda_abi.h"
#include "compute/gpu/cuda_faults.h"
#include "compute/gpu/cufile_abi.h"
#include "core/buf.h"
#include "core/file.h"
#include "support/test.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char include_directory[] = "/usr/local/cuda/include";

struct row {
    const char *symbol, *result, *arguments;
};

static const struct row driver_rows[] = {
#define X(required, field, cuda, hip, arguments) {cuda, "int", #arguments},
    GPU_SYMBOLS(X)
#undef X
#define X(required, field, symbol, arguments) {symbol, "int", #arguments},
        CUDA_SYMBOLS(X)
#undef X
};

static const struct row nvrtc_rows[] = {
#define X(required, field, symbol, arguments) {symbol, "int", #arguments},
    NVRTC_SYMBOLS(X)
#undef X
        {"nvrtcGetErrorString", "const char *", "(int result)"},
};

static const struct row cufile_rows[] = {
#define X(required, result, field, symbol, arguments) {symbol, #result, #arguments},
    CUFILE_SYMBOLS(X)
#undef X
};

/* Sizes and offsets: ours as numbers, theirs as text. */
struct layout {
    size_t ours;
    const char *theirs;
};
#define SIZE(ours, theirs)                                                                         \
    { sizeof(ours), "sizeof(" theirs ")" }
#define AT(ours, member, theirs, their_member)                                                     \
    { offsetof(ours, member), "offsetof(" theirs ", " their_member ")" }

static const struct layout driver_layouts[] = {
    SIZE(struct gpu_ticket, "CUipcMemHandle"),
    SIZE(struct cuda_uuid, "CUuuid"),
    SIZE(uintptr_t, "CUdeviceptr"),
    SIZE(struct cuda_launch_node, "CUDA_KERNEL_NODE_PARAMS_v2"),
    AT(struct cuda_launch_node, function, "CUDA_KERNEL_NODE_PARAMS_v2", "func"),
    AT(struct cuda_launch_node, groups, "CUDA_KERNEL_NODE_PARAMS_v2", "gridDimX"),
    AT(struct cuda_launch_node, group, "CUDA_KERNEL_NODE_PARAMS_v2", "blockDimX"),
    AT(struct cuda_launch_node, local_bytes, "CUDA_KERNEL_NODE_PARAMS_v2", "sharedMemBytes"),
    AT(struct cuda_launch_node, args, "CUDA_KERNEL_NODE_PARAMS_v2", "kernelParams"),
    AT(struct cuda_launch_node, extra, "CUDA_KERNEL_NODE_PARAMS_v2", "extra"),
    AT(struct cuda_launch_node, kernel, "CUDA_KERNEL_NODE_PARAMS_v2", "kern"),
    AT(struct cuda_launch_node, context, "CUDA_KERNEL_NODE_PARAMS_v2", "ctx"),
    /* Version 1 is its beginning: drivers before 12 are given the same bytes. */
    AT(struct cuda_launch_node, function, "CUDA_KERNEL_NODE_PARAMS_v1", "func"),
    AT(struct cuda_launch_node, group, "CUDA_KERNEL_NODE_PARAMS_v1", "blockDimX"),
    AT(struct cuda_launch_node, args, "CUDA_KERNEL_NODE_PARAMS_v1", "kernelParams"),
    AT(struct cuda_launch_node, kernel, "CUDA_KERNEL_NODE_PARAMS_v1", "extra) + sizeof(void *"),
    SIZE(struct cuda_copy_node, "CUDA_MEMCPY3D_v2"),
    AT(struct cuda_copy_node, from.x_bytes, "CUDA_MEMCPY3D_v2", "srcXInBytes"),
    AT(struct cuda_copy_node, from.type, "CUDA_MEMCPY3D_v2", "srcMemoryType"),
    AT(struct cuda_copy_node, from.host, "CUDA_MEMCPY3D_v2", "srcHost"),
    AT(struct cuda_copy_node, from.device, "CUDA_MEMCPY3D_v2", "srcDevice"),
    AT(struct cuda_copy_node, from.pitch, "CUDA_MEMCPY3D_v2", "srcPitch"),
    AT(struct cuda_copy_node, from.height, "CUDA_MEMCPY3D_v2", "srcHeight"),
    AT(struct cuda_copy_node, to.x_bytes, "CUDA_MEMCPY3D_v2", "dstXInBytes"),
    AT(struct cuda_copy_node, to.type, "CUDA_MEMCPY3D_v2", "dstMemoryType"),
    AT(struct cuda_copy_node, to.device, "CUDA_MEMCPY3D_v2", "dstDevice"),
    AT(struct cuda_copy_node, to.pitch, "CUDA_MEMCPY3D_v2", "dstPitch"),
    AT(struct cuda_copy_node, to.height, "CUDA_MEMCPY3D_v2", "dstHeight"),
    AT(struct cuda_copy_node, width_bytes, "CUDA_MEMCPY3D_v2", "WidthInBytes"),
    AT(struct cuda_copy_node, depth, "CUDA_MEMCPY3D_v2", "Depth"),
    SIZE(struct cuda_set_node, "CUDA_MEMSET_NODE_PARAMS_v1"),
    AT(struct cuda_set_node, to, "CUDA_MEMSET_NODE_PARAMS_v1", "dst"),
    AT(struct cuda_set_node, pitch, "CUDA_MEMSET_NODE_PARAMS_v1", "pitch"),
    AT(struct cuda_set_node, value, "CUDA_MEMSET_NODE_PARAMS_v1", "value"),
    AT(struct cuda_set_node, element_bytes, "CUDA_MEMSET_NODE_PARAMS_v1", "elementSize"),
    AT(struct cuda_set_node, width, "CUDA_MEMSET_NODE_PARAMS_v1", "width"),
    AT(struct cuda_set_node, height, "CUDA_MEMSET_NODE_PARAMS_v1", "height"),
    {CUDA_MAX_THREADS_PER_BLOCK, "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK"},
    {CUDA_MAX_SHARED_PER_BLOCK, "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK"},
    {CUDA_MULTIPROCESSORS, "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT"},
    {CUDA_CAPABILITY_MAJOR, "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR"},
    {CUDA_CAPABILITY_MINOR, "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR"},
    {CUDA_WAIT_GEQ, "CU_STREAM_WAIT_VALUE_GEQ"},
    {CUDA_MEMORY_UNIFIED, "CU_MEMORYTYPE_UNIFIED"},
    {CUDA_PEER_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    /* Numbers that compute/gpu shares with HIP. */
    {600, "CUDA_ERROR_NOT_READY"},
    {1, "CU_STREAM_NON_BLOCKING"},
    {0, "CU_STREAM_WRITE_VALUE_DEFAULT"},
    {0, "CU_EVENT_DEFAULT"},
    {1, "CU_MEMHOSTREGISTER_PORTABLE"},
    {2, "CU_MEMHOSTREGISTER_DEVICEMAP"},
    {1, "CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS"},
    {5, "CU_JIT_ERROR_LOG_BUFFER"},
    {6, "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES"},
    {0, "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK"},
    {1, "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES"},
    {3, "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES"},
    {4, "CU_FUNC_ATTRIBUTE_NUM_REGS"},
#define X(code, name, error, lasting, words) {(code), "CUDA_ERROR_" #name},
    CUDA_FAULTS(X)
#undef X
};

static const struct layout nvrtc_layouts[] = {
    SIZE(gpu_handle, "nvrtcProgram"),
    {NVRTC_COMPILATION, "NVRTC_ERROR_COMPILATION"},
    {NVRTC_INVALID_OPTION, "NVRTC_ERROR_INVALID_OPTION"},
    {NVRTC_OUT_OF_MEMORY, "NVRTC_ERROR_OUT_OF_MEMORY"},
};

static const struct layout cufile_layouts[] = {
    SIZE(struct cufile_error, "CUfileError_t"),
    AT(struct cufile_error, cuda, "CUfileError_t", "cu_err"),
    SIZE(struct cufile_file, "CUfileDescr_t"),
    AT(struct cufile_file, fd, "CUfileDescr_t", "handle"),
    AT(struct cufile_file, operations, "CUfileDescr_t", "fs_ops"),
    {CUFILE_HANDLE_FD, "CU_FILE_HANDLE_TYPE_OPAQUE_FD"},
};

/* How the compiler compares: integers, enums and pointers by size, structs by size and being such,
 * pointers by the size of what they point to (where that has one). */
static const char prelude[] =
    "#include <cstddef>\n#include <cstdint>\n#include <type_traits>\n#include <sys/types.h>\n"
    "template <class T, bool = std::is_void<T>::value || std::is_function<T>::value> struct "
    "size_of\n"
    "{ static const size_t value = 0; };\n"
    "template <class T, class = void> struct whole { static const size_t value = 0; };\n"
    "template <class T> struct whole<T, decltype(void(sizeof(T)))>\n"
    "{ static const size_t value = sizeof(T); };\n"
    "template <class T> struct size_of<T, false> { static const size_t value = whole<T>::value; "
    "};\n"
    "template <class A, class B> struct same_value { static const bool value =\n"
    "    whole<A>::value == whole<B>::value && std::is_class<A>::value == std::is_class<B>::value\n"
    "    && std::is_pointer<A>::value <= (std::is_pointer<B>::value || sizeof(B) == 8); };\n"
    "template <class A, class B> struct same { static const bool value = same_value<A, B>::value; "
    "};\n"
    "template <class A, class B> struct same<A *, B *> { static const bool value =\n"
    "    size_of<A>::value == 0 || size_of<B>::value == 0\n"
    "    || size_of<A>::value == size_of<B>::value; };\n"
    "template <> struct same<void, void> { static const bool value = true; };\n"
    "template <class A, class B> struct agree { static const bool value = false; };\n"
    "template <class A, class B> struct agree<A (*)(), B (*)()>\n"
    "{ static const bool value = same<A, B>::value; };\n"
    "template <class A, class B, class P, class Q, class... R, class... S>\n"
    "struct agree<A (*)(P, R...), B (*)(Q, S...)> { static const bool value =\n"
    "    same<P, Q>::value && agree<A (*)(R...), B (*)(S...)>::value; };\n"
    "typedef uintptr_t gpu_handle;\n";

/* Our structs as the compiler needs them there: their sizes. */
static const struct {
    const char *name;
    size_t bytes;
} structs[] = {{"gpu_ticket", sizeof(struct gpu_ticket)},
               {"cuda_uuid", sizeof(struct cuda_uuid)},
               {"cuda_copy_node", sizeof(struct cuda_copy_node)},
               {"cuda_set_node", sizeof(struct cuda_set_node)},
               {"cuda_launch_node", sizeof(struct cuda_launch_node)},
               {"cufile_error", sizeof(struct cufile_error)},
               {"cufile_file", sizeof(struct cufile_file)}};

static void write_text(const char *header, const struct row *rows, size_t row_count,
                       const struct layout *layouts, size_t layout_count, struct acre_buf *out) {
    acre_buf_printf(out, "#include <%s>\n%s", header, prelude);
    for (size_t i = 0; i < ACRE_COUNT(structs); i++) {
        acre_buf_printf(out, "struct %s { char bytes[%zu]; };\n", structs[i].name,
                        structs[i].bytes);
    }
    for (size_t i = 0; i < row_count; i++) {
        acre_buf_printf(out, "static_assert(agree<%s (*)%s, decltype(&%s)>::value, \"%s\");\n",
                        rows[i].result, rows[i].arguments, rows[i].symbol, rows[i].symbol);
    }
    for (size_t i = 0; i < layout_count; i++) {
        acre_buf_printf(out, "static_assert(%zu == (size_t)(%s), \"%s\");\n", layouts[i].ours,
                        layouts[i].theirs, layouts[i].theirs);
    }
}

static int run_compiler(const char *path) {
    char includes[sizeof(include_directory) + 2];
    snprintf(includes, sizeof(includes), "-I%s", include_directory);
    char *argv[] = {(char *)(uintptr_t) "c++",
                    (char *)(uintptr_t) "-std=c++17",
                    (char *)(uintptr_t) "-fsyntax-only",
                    (char *)(uintptr_t) "-Winvalid-offsetof",
                    includes,
                    (char *)(uintptr_t)path,
                    NULL};
    pid_t child;
    if (posix_spawnp(&child, "c++", NULL, NULL, argv, environ) != 0) {
        acre_test_skip("no c++ compiler here");
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void compare(const char *header, const struct row *rows, size_t row_count,
                    const struct layout *layouts, size_t layout_count) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", include_directory, header);
    if (access(path, R_OK) != 0) {
        acre_test_skip("%s is not installed", path);
    }
    struct acre_buf text;
    acre_buf_init(&text, 1 << 20);
    write_text(header, rows, row_count, layouts, layout_count, &text);
    char directory[] = "/tmp/acre-abi-XXXXXX";
    REQUIRE(mkdtemp(directory) != NULL);
    char file[64];
    snprintf(file, sizeof(file), "%s/abi.cc", directory);
    CHECK_EQ(acre_file_write(file, text.data, text.length, NULL), 0);
    CHECK_EQ(run_compiler(file), 0);
    /* The comparison is one that can fail: a parameter too many, an offset off by one. */
    acre_buf_puts(&text, "static_assert(agree<int (*)(int, int), int (*)(int)>::value, \"\");\n");
    CHECK_EQ(acre_file_write(file, text.data, text.length, NULL), 0);
    fprintf(stderr, "the next message of the compiler is expected:\n");
    CHECK(run_compiler(file) != 0);
    unlink(file);
    rmdir(directory);
    acre_buf_finish(&text);
}

static void the_driver_is_declared_as_in_its_header(void) { /* GPU-1 */
    compare("cuda.h", driver_rows, ACRE_COUNT(driver_rows), driver_layouts,
            ACRE_COUNT(driver_layouts));
}

static bool is_lasting(int code) {
    switch (code) {
#define X(code, name, error, lasting, words)                                                       \
    case (code):                                                                                   \
        return (lasting);
        CUDA_FAULTS(X)
#undef X
    default:
        return false;
    }
}

/* The header says of which codes: the process is "in an inconsistent state". */
static void what_ends_the_process_lasts(void) { /* GPU-6 */
    char path[256];
    snprintf(path, sizeof(path), "%s/cuda.h", include_directory);
    struct acre_buf text;
    acre_buf_init(&text, 16 << 20);
    if (acre_file_read(path, 16 << 20, &text, NULL) < 0) {
        acre_test_skip("%s is not installed", path);
    }
    static const char words[] = "inconsistent";
    uint32_t count = 0;
    for (const char *at = strstr(text.data, words); at != NULL; at = strstr(at + 1, words)) {
        const char *name = strstr(at, " CUDA_ERROR_");
        const char *equals = name != NULL ? strchr(name, '=') : NULL;
        const char *again = strstr(at + 1, words);
        int code = 0;
        if (equals == NULL || (again != NULL && again < equals) ||
            sscanf(equals, "= %d,", &code) != 1) {
            continue;
        }
        acre_test_context("%.*s", (int)(equals - name), name);
        CHECK(is_lasting(code));
        count++;
    }
    acre_test_context("%s", "");
    CHECK(count >= 8); /* those of CUDA 11 */
    acre_buf_finish(&text);
}

static void nvrtc_is_declared_as_in_its_header(void) { /* GPU-1 */
    compare("nvrtc.h", nvrtc_rows, ACRE_COUNT(nvrtc_rows), nvrtc_layouts,
            ACRE_COUNT(nvrtc_layouts));
}

static void cufile_is_declared_as_in_its_header(void) { /* GPU-5 */
    compare("cufile.h", cufile_rows, ACRE_COUNT(cufile_rows), cufile_layouts,
            ACRE_COUNT(cufile_layouts));
}

static const struct acre_test tests[] = {
    {"the_driver_is_declared_as_in_its_header", the_driver_is_declared_as_in_its_header, 0},
    {"what_ends_the_process_lasts", what_ends_the_process_lasts, 0},
    {"nvrtc_is_declared_as_in_its_header", nvrtc_is_declared_as_in_its_header, 0},
    {"cufile_is_declared_as_in_its_header", cufile_is_declared_as_in_its_header, 0},
};
ACRE_TEST_MAIN(tests)
