/* module.c - compiled programs on the device, and their kernels.
 *
 * Everything is on the device when load() returns: bringing a kernel there at its first launch
 * would make the driver wait for all work of the context, which never ends while a resident kernel
 * runs. */
#include "compute/gpu/entries.h"
#include "compute/gpu/image.h"
#include "compute/gpu/seat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same in CUDA and HIP. */
enum { JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6, LOG_BYTES = 2048 };
enum { FACT_GROUP_MAX = 0, FACT_LOCAL_BYTES = 1, FACT_STACK_BYTES = 3, FACT_REGISTERS = 4 };

/* The linker's own first line says more than the code. */
static int refuse_image(struct gpu_seat *seat, int code, const char *call, const char *log,
                        struct acre_error *err) {
    struct acre_error said = {0};
    int r = gpu_fail(seat->gpu, seat, code, call, &said);
    size_t line = strcspn(log, "\n");
    return line == 0 ? acre_fail(err, r, "%s", said.text)
                     : acre_fail(err, r, "%s: %.*s", said.text, (int)line, log);
}

int gpu_load(void *self, const void *binary, size_t length, uint64_t *ret_module,
             struct acre_error *err) {
    struct gpu_seat *seat = self;
    const struct gpu *gpu = seat->gpu;
    int r = gpu_image_check(binary, length, err);
    if (r == 0 && gpu->vendor->image_check != NULL) {
        r = gpu->vendor->image_check(binary, length, err);
    }
    r = r == 0 ? gpu_enter(seat, err) : r;
    if (r < 0) {
        return r;
    }
    struct gpu_module *module = calloc(1, sizeof(*module));
    if (module == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "module");
    }
    char log[LOG_BYTES] = "";
    int options[] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof(log) - 1)};
    const char *call = gpu->names->module_load;
    int code =
        gpu->driver.module_load(&module->module, binary, ACRE_COUNT(options), options, values);
    if (code == 0 && gpu->vendor->module_ready != NULL) {
        call = "loading of kernels";
        code = gpu->vendor->module_ready(gpu, module->module);
        if (code != 0) {
            gpu->driver.module_unload(module->module);
        }
    }
    if (code != 0) {
        free(module);
        return refuse_image(seat, code, call, log, err);
    }
    gpu_image_kernels(binary, length, &module->listed);
    gpu_link_in(seat, &seat->modules, &module->link);
    *ret_module = (uint64_t)(uintptr_t)module;
    return 0;
}

void gpu_unload(void *self, uint64_t handle) {
    struct gpu_seat *seat = self;
    struct gpu_module *module = (struct gpu_module *)(uintptr_t)handle;
    if (gpu_enter(seat, NULL) == 0) {
        seat->gpu->driver.module_unload(module->module);
    }
    gpu_link_out(seat, &module->link);
    while (module->kernels != NULL) {
        struct gpu_kernel *kernel = module->kernels;
        module->kernels = kernel->next;
        free(kernel);
    }
    acre_buf_finish(&module->listed);
    free(module);
}

/* Parameters are asked for until the driver knows no more, where the image does not tell. */
static int read_facts(const struct gpu *gpu, gpu_handle function, uint32_t parameters,
                      struct kernel_facts *facts) {
    const struct {
        int attribute;
        uint32_t *to;
    } wanted[] = {{FACT_GROUP_MAX, &facts->group_max},
                  {FACT_LOCAL_BYTES, &facts->local_bytes},
                  {FACT_REGISTERS, &facts->registers},
                  {FACT_STACK_BYTES, &facts->stack_bytes}};
    for (size_t i = 0; i < ACRE_COUNT(wanted); i++) {
        int value = 0;
        int code = gpu->driver.function_fact(&value, wanted[i].attribute, function);
        if (code != 0) {
            return code;
        }
        *wanted[i].to = (uint32_t)value;
    }
    size_t bytes = 0;
    uint32_t count = 0;
    while (gpu->vendor->parameter != NULL &&
           count < ACRE_MIN(parameters, (uint32_t)ACRE_ARGS_MAX) &&
           gpu->vendor->parameter(gpu, function, count, &bytes) == 0) {
        facts->value_bytes[count++] = (uint16_t)ACRE_MIN(bytes, (size_t)UINT16_MAX);
    }
    facts->parameters = parameters == GPU_IMAGE_UNCOUNTED ? count : parameters;
    return 0;
}

int gpu_kernel_find(void *self, uint64_t handle, const char *name, uint64_t *ret_kernel,
                    struct kernel_facts *ret_facts, struct acre_error *err) {
    struct gpu_seat *seat = self;
    const struct gpu *gpu = seat->gpu;
    struct gpu_module *module = (struct gpu_module *)(uintptr_t)handle;
    int r = gpu_enter(seat, err);
    if (r < 0) {
        return r;
    }
    gpu_handle function = 0;
    struct kernel_facts facts = {0};
    const char *call = gpu->names->module_function;
    const char *listed = gpu_image_find(&module->listed, name);
    int code =
        gpu->driver.module_function(&function, module->module, listed != NULL ? listed : name);
    if (code == 0) {
        call = gpu->names->function_fact;
        uint32_t parameters = listed != NULL ? gpu_image_parameters(listed) : GPU_IMAGE_UNCOUNTED;
        code = read_facts(gpu, function, parameters, &facts);
    }
    if (code != 0) {
        r = gpu_fail(gpu, seat, code, call, err);
        return acre_fail_in(err, r, "kernel '%s'", name);
    }
    struct gpu_kernel *kernel = calloc(1, sizeof(*kernel));
    if (kernel == NULL) {
        return acre_fail(err, ACRE_ENOMEM, "kernel '%s'", name);
    }
    kernel->function = function;
    snprintf(kernel->name, sizeof(kernel->name), "%s", name);
    pthread_mutex_lock(&seat->lock);
    kernel->next = module->kernels;
    module->kernels = kernel;
    pthread_mutex_unlock(&seat->lock);
    *ret_kernel = (uint64_t)(uintptr_t)kernel;
    *ret_facts = facts;
    return 0;
}
