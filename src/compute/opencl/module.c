/* module.c - sources to bytes, bytes to kernels, kernels to queues.
 *
 * Compiled bytes are the driver's own, preceded by a header with their checksum: a driver may trust
 * what it loads, and crash on a damaged file.
 *
 * A kernel object holds its arguments, so two threads cannot set them at once. Each kernel has a
 * few objects (clones), chosen by stream number and created when first used: streams that launch
 * the same kernel at the same time rarely collide. */
#include "compute/opencl/seat.h"
#include "compute/source/dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_MAX_BYTES = 1 << 20 };

struct opencl_header {
    char magic[8];
    uint64_t hash; /* of the bytes that follow */
};
static const char magic[8] = {'a', 'c', 'r', 'e', '-', 'c', 'l', '1'};

struct clone {
    pthread_mutex_t lock;
    opencl_kernel_object object; /* NULL: not made yet */
};

struct kernel {
    struct kernel *next; /* of the module */
    opencl_program program;
    char name[128];
    struct clone clones[OPENCL_CLONES];
};

struct module {
    struct opencl_link link;
    opencl_program program;
    struct kernel *kernels; /* under seat->lock */
};

/* --- compiling ------------------------------------------------------------------------------ */

static void append_log(struct opencl_seat *seat, opencl_program program, struct acre_buf *log) {
    const struct opencl_api *api = seat->api;
    size_t length = 0;
    int32_t code =
        api->build_info(program, seat->device, OPENCL_PROGRAM_BUILD_LOG, 0, NULL, &length);
    length = code == OPENCL_SUCCESS ? ACRE_MIN(length, (size_t)LOG_MAX_BYTES) : 0;
    char *text = length > 0 ? calloc(1, length + 1) : NULL;
    if (text != NULL && api->build_info(program, seat->device, OPENCL_PROGRAM_BUILD_LOG, length,
                                        text, NULL) == OPENCL_SUCCESS) {
        acre_buf_puts(log, text);
    }
    free(text);
}

static int append_binary(struct opencl_seat *seat, opencl_program program, struct acre_buf *binary,
                         struct acre_error *err) {
    const struct opencl_api *api = seat->api;
    size_t length = 0;
    int32_t code =
        api->program_info(program, OPENCL_PROGRAM_BINARY_SIZES, sizeof(length), &length, NULL);
    if (code != OPENCL_SUCCESS || length == 0) {
        return opencl_fail(err, code, "clGetProgramInfo");
    }
    unsigned char *bytes = malloc(length);
    if (bytes == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "compiled program");
    }
    int r = 0;
    code = api->program_info(program, OPENCL_PROGRAM_BINARIES, sizeof(bytes), &bytes, NULL);
    if (code != OPENCL_SUCCESS) {
        r = opencl_fail(err, code, "clGetProgramInfo");
    } else {
        struct opencl_header header = {.hash = acre_hash_bytes(bytes, length)};
        memcpy(header.magic, magic, sizeof(magic));
        acre_buf_append(binary, &header, sizeof(header));
        acre_buf_append(binary, bytes, length);
        r = acre_buf_failed(binary)
                ? acre_fail(err, ACRE_ELIMIT, "compiled program: too large (%zu bytes)", length)
                : 0;
    }
    free(bytes);
    return r;
}

static int compile(struct opencl_seat *seat, const struct native_source *source,
                   struct acre_buf *binary, struct acre_buf *log, struct acre_error *err) {
    const char *text = source->text;
    int32_t code = OPENCL_SUCCESS;
    opencl_program program =
        seat->api->create_program(seat->context, 1, &text, &source->length, &code);
    if (code != OPENCL_SUCCESS) {
        return opencl_fail(err, code, "clCreateProgramWithSource");
    }
    code = seat->api->build(program, 1, &seat->device, source->options, NULL, NULL);
    append_log(seat, program, log);
    int r = code == OPENCL_SUCCESS ? append_binary(seat, program, binary, err)
                                   : opencl_fail(err, code, "clBuildProgram");
    seat->api->release_program(program);
    return r;
}

int opencl_compile(void *in, const struct native_source *source, struct acre_buf *binary,
                   struct acre_buf *log, struct acre_error *err) {
    int entered = pocl_cache_enter(in, true);
    int r = compile(in, source, binary, log, err);
    pocl_cache_leave(entered);
    return r;
}

/* --- loading -------------------------------------------------------------------------------- */

/* A driver's refusal of bytes means the bytes, unless it has run out of something. */
static int refuse_bytes(struct acre_error *err, int32_t code, const char *call) {
    int r = opencl_fail(err, code, call);
    if (r == ACRE_ENOMEM || r == ACRE_EUNAVAILABLE) {
        return r;
    }
    char name[32];
    return acre_fail(err, ACRE_ECORRUPT, "%s: %s: not a program for this device and driver", call,
                     opencl_error_name(code, name));
}

static int make_program(struct opencl_seat *seat, const unsigned char *bytes, size_t length,
                        opencl_program *ret_program, struct acre_error *err) {
    int32_t code = OPENCL_SUCCESS;
    int32_t status = OPENCL_SUCCESS;
    opencl_program program = seat->api->create_program_of_binary(seat->context, 1, &seat->device,
                                                                 &length, &bytes, &status, &code);
    if (code != OPENCL_SUCCESS) {
        return refuse_bytes(err, code, "clCreateProgramWithBinary");
    }
    code = seat->api->build(program, 1, &seat->device, "", NULL, NULL);
    if (code != OPENCL_SUCCESS) {
        seat->api->release_program(program);
        return refuse_bytes(err, code, "clBuildProgram");
    }
    *ret_program = program;
    return 0;
}

int opencl_load(void *in, const void *binary, size_t length, uint64_t *ret_module,
                struct acre_error *err) {
    struct opencl_seat *seat = in;
    struct opencl_header header;
    if (length <= sizeof(header)) {
        return acre_fail(err, ACRE_ECORRUPT, "compiled program: %zu bytes are too short", length);
    }
    memcpy(&header, binary, sizeof(header));
    const unsigned char *bytes = (const unsigned char *)binary + sizeof(header);
    length -= sizeof(header);
    if (memcmp(header.magic, magic, sizeof(magic)) != 0 ||
        header.hash != acre_hash_bytes(bytes, length)) {
        return acre_fail(err, ACRE_ECORRUPT,
                         "compiled program: damaged (the checksum does not match)");
    }
    struct module *module = calloc(1, sizeof(*module));
    if (module == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "module");
    }
    int entered = pocl_cache_enter(seat, false);
    int r = make_program(seat, bytes, length, &module->program, err);
    pocl_cache_leave(entered);
    if (r < 0) {
        free(module);
        return r;
    }
    pthread_mutex_lock(&seat->lock);
    opencl_link_add(&seat->modules, &module->link);
    pthread_mutex_unlock(&seat->lock);
    *ret_module = (uintptr_t)module;
    return 0;
}

static void free_kernel(struct opencl_seat *seat, struct kernel *kernel) {
    for (size_t i = 0; i < OPENCL_CLONES; i++) {
        if (kernel->clones[i].object != NULL) {
            seat->api->release_kernel(kernel->clones[i].object);
        }
        pthread_mutex_destroy(&kernel->clones[i].lock);
    }
    free(kernel);
}

void opencl_unload(void *in, uint64_t handle) {
    struct opencl_seat *seat = in;
    struct module *module = (struct module *)(uintptr_t)handle;
    pthread_mutex_lock(&seat->lock);
    opencl_link_remove(&module->link);
    pthread_mutex_unlock(&seat->lock);
    for (struct kernel *kernel = module->kernels, *next; kernel != NULL; kernel = next) {
        next = kernel->next;
        free_kernel(seat, kernel);
    }
    seat->api->release_program(module->program);
    free(module);
}

static int make_object(struct opencl_seat *seat, const struct kernel *kernel,
                       opencl_kernel_object *ret_object, struct acre_error *err) {
    int32_t code = OPENCL_SUCCESS;
    opencl_kernel_object object = seat->api->create_kernel(kernel->program, kernel->name, &code);
    if (code != OPENCL_SUCCESS) {
        int r = opencl_fail(err, code, "clCreateKernel");
        return acre_fail_in(err, r, "kernel '%s'", kernel->name);
    }
    *ret_object = object;
    return 0;
}

static int read_facts(struct opencl_seat *seat, opencl_kernel_object object,
                      struct kernel_facts *ret_facts, struct acre_error *err) {
    size_t group_max = 0;
    size_t group[3] = {0};
    uint64_t local_bytes = 0;
    const struct {
        uint32_t name;
        size_t size;
        void *value;
    } wanted[] = {{OPENCL_KERNEL_WORK_GROUP_SIZE, sizeof(group_max), &group_max},
                  {OPENCL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof(group), group},
                  {OPENCL_KERNEL_LOCAL_MEM_SIZE, sizeof(local_bytes), &local_bytes}};
    for (size_t i = 0; i < ACRE_COUNT(wanted); i++) {
        int32_t code = seat->api->kernel_info(object, seat->device, wanted[i].name, wanted[i].size,
                                              wanted[i].value, NULL);
        if (code != OPENCL_SUCCESS) {
            return opencl_fail(err, code, "clGetKernelWorkGroupInfo");
        }
    }
    *ret_facts = (struct kernel_facts){
        .group_max = (uint32_t)ACRE_MIN(group_max, (size_t)UINT32_MAX),
        .local_bytes = (uint32_t)ACRE_MIN(local_bytes, (uint64_t)UINT32_MAX),
        .group = {(uint32_t)group[0], (uint32_t)group[1], (uint32_t)group[2]}};
    return 0;
}

/* One part of the size of a parameter; false: the program says nothing of it. */
static bool read_size_part(struct opencl_seat *seat, const struct kernel *kernel, uint32_t index,
                           uint32_t part, uint32_t *ret_part) {
    char name[SIGNATURE_NAME_MAX + 32];
    size_t group[3] = {0};
    int32_t code = OPENCL_SUCCESS;
    snprintf(name, sizeof(name), DIALECT_SIZE_NAME, index, part, kernel->name);
    opencl_kernel_object object = seat->api->create_kernel(kernel->program, name, &code);
    if (code != OPENCL_SUCCESS) {
        return false;
    }
    code = seat->api->kernel_info(object, seat->device, OPENCL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                  sizeof(group), group, NULL);
    seat->api->release_kernel(object);
    bool is_told = code == OPENCL_SUCCESS;
    *ret_part = 0;
    for (uint32_t i = 3; i > 0; i--) {
        is_told = is_told && group[i - 1] >= 1 && group[i - 1] <= DIALECT_SIZE_BASE;
        *ret_part = *ret_part * DIALECT_SIZE_BASE + (uint32_t)(group[i - 1] - 1);
    }
    return is_told;
}

/* What dialect_mark.c left in the program. */
static void read_sizes(struct opencl_seat *seat, const struct kernel *kernel,
                       struct kernel_facts *facts) {
    _Static_assert((int)DIALECT_SIZES > (int)ACRE_EXTRA_MAX && DIALECT_SIZES < UINT16_MAX &&
                       DIALECT_SIZE_PARTS == 2,
                   "more than can be given");
    for (uint32_t i = 0; i < ACRE_ARGS_MAX; i++) {
        uint32_t low, high;
        if (read_size_part(seat, kernel, i, 0, &low) && read_size_part(seat, kernel, i, 1, &high)) {
            uint32_t unit = DIALECT_SIZE_BASE * DIALECT_SIZE_BASE * DIALECT_SIZE_BASE;
            facts->value_bytes[i] = (uint16_t)(low + high * unit);
        }
    }
}

int opencl_kernel(void *in, uint64_t handle, const char *name, uint64_t *ret_kernel,
                  struct kernel_facts *ret_facts, struct acre_error *err) {
    struct opencl_seat *seat = in;
    struct module *module = (struct module *)(uintptr_t)handle;
    struct kernel *kernel = calloc(1, sizeof(*kernel));
    if (kernel == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "kernel '%s'", name);
    }
    kernel->program = module->program;
    snprintf(kernel->name, sizeof(kernel->name), "%s", name);
    for (size_t i = 0; i < OPENCL_CLONES; i++) {
        pthread_mutex_init(&kernel->clones[i].lock, NULL);
    }
    opencl_kernel_object *first = &kernel->clones[0].object;
    int r = make_object(seat, kernel, first, err);
    r = r == 0 ? read_facts(seat, *first, ret_facts, err) : r;
    if (r < 0) {
        free_kernel(seat, kernel);
        return r;
    }
    read_sizes(seat, kernel, ret_facts);
    pthread_mutex_lock(&seat->lock);
    kernel->next = module->kernels;
    module->kernels = kernel;
    pthread_mutex_unlock(&seat->lock);
    *ret_kernel = (uintptr_t)kernel;
    return 0;
}

/* --- launching ------------------------------------------------------------------------------ */

/* `ret_part` receives the sub-buffer made for it, if one was. */
static int set_buffer(struct opencl_seat *seat, opencl_kernel_object object, uint32_t index,
                      const struct native_arg *arg, opencl_mem *ret_part, struct acre_error *err) {
    struct opencl_region *region = (struct opencl_region *)(uintptr_t)arg->region;
    int32_t code;
    if (region != NULL && region->is_svm) {
        code = seat->api->set_arg_svm(object, index, region->base + arg->offset);
        return code == OPENCL_SUCCESS ? 0 : opencl_fail(err, code, "clSetKernelArgSVMPointer");
    }
    if (region != NULL) {
        int r = opencl_region_part(seat, region, arg->offset, arg->length, ret_part, err);
        if (r < 0) {
            return r;
        }
    }
    code = seat->api->set_arg(object, index, sizeof(*ret_part), ret_part);
    return code == OPENCL_SUCCESS ? 0 : opencl_fail(err, code, "clSetKernelArg");
}

static int set_args(struct opencl_seat *seat, opencl_kernel_object object,
                    const struct native_launch *launch, opencl_mem *parts, struct acre_error *err) {
    for (uint32_t i = 0; i < launch->arg_count; i++) {
        const struct native_arg *arg = &launch->args[i];
        int r = 0;
        if (arg->kind == ACRE_NATIVE_BUFFER) {
            r = set_buffer(seat, object, i, arg, &parts[i], err);
        } else {
            const void *value = arg->kind == ACRE_NATIVE_VALUE ? launch->extra + arg->region : NULL;
            int32_t code = seat->api->set_arg(object, i, arg->bytes, value);
            r = code == OPENCL_SUCCESS ? 0 : opencl_fail(err, code, "clSetKernelArg");
        }
        if (r < 0) {
            return acre_fail_in(err, r, "argument %u", i + 1);
        }
    }
    return 0;
}

static int enqueue(struct opencl_seat *seat, struct opencl_stream *stream,
                   const struct kernel *kernel, opencl_kernel_object object,
                   const struct acre_grid *grid, struct acre_error *err) {
    size_t global[3];
    size_t local[3];
    uint32_t dimensions = 1;
    for (uint32_t i = 0; i < 3; i++) {
        local[i] = grid->group[i];
        global[i] = (size_t)grid->groups[i] * grid->group[i];
        dimensions = global[i] > 1 ? i + 1 : dimensions;
    }
    opencl_event event = NULL;
    int32_t code = seat->api->launch(opencl_stream_queue(stream), object, dimensions, NULL, global,
                                     local, 0, NULL, opencl_measure(stream, &event));
    if (code != OPENCL_SUCCESS) {
        return opencl_fail(err, code, "clEnqueueNDRangeKernel");
    }
    opencl_measured_keep(seat, stream, event, kernel->name, 0);
    return 0;
}

int opencl_launch(void *in, uint64_t on, const struct native_launch *launch,
                  struct acre_error *err) {
    ACRE_ASSERT(launch->arg_count <= ACRE_ARGS_MAX);
    struct opencl_seat *seat = in;
    struct opencl_stream *stream = (struct opencl_stream *)(uintptr_t)on;
    struct kernel *kernel = (struct kernel *)(uintptr_t)launch->kernel;
    struct clone *clone = &kernel->clones[stream->number % OPENCL_CLONES];
    opencl_mem parts[ACRE_ARGS_MAX] = {0};
    pthread_mutex_lock(&clone->lock);
    int r = clone->object == NULL ? make_object(seat, kernel, &clone->object, err) : 0;
    r = r == 0 ? set_args(seat, clone->object, launch, parts, err) : r;
    r = r == 0 ? enqueue(seat, stream, kernel, clone->object, &launch->grid, err) : r;
    pthread_mutex_unlock(&clone->lock);
    for (uint32_t i = 0; i < launch->arg_count; i++) {
        if (parts[i] != NULL) {
            seat->api->release_mem(parts[i]);
        }
    }
    return r;
}
