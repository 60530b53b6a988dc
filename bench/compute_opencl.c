/* compute_opencl.c - what acre is measured against on OpenCL: the calls a plain program makes.
 *
 * The first device of the kind acre takes first. Buffers, one in-order queue (four for the
 * pipeline), clFinish. There are no graphs and no resident kernels: those figures stand alone. */
#include "compute_raw.h"

#include "compute/opencl/abi.h"
#include "core/dl.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct opencl {
    struct opencl_api api;
    opencl_device device;
    opencl_context context;
    opencl_queue queues[COMPUTE_STREAMS];
    opencl_program program;
    opencl_kernel_object tick, add, multiply, batch;
    opencl_mem counter, out;
    opencl_mem device_memory[3];
    void *host_memory[2];
    uint32_t expected;
};

static const struct acre_dl_symbol symbols[] = {
#define X(required, result, field, symbol, arguments)                                              \
    {#symbol, offsetof(struct opencl, api.query.field), (required)},
    OPENCL_QUERY_SYMBOLS(X)
#undef X
#define X(required, result, field, symbol, arguments)                                              \
    {#symbol, offsetof(struct opencl, api.field), (required)},
        OPENCL_SYMBOLS(X)
#undef X
};

static const char before[] = "#define barrier() barrier(CLK_LOCAL_MEM_FENCE)\n"
                             "#define local_id(d) get_local_id(d)\n"
                             "#define global_id(d) get_global_id(d)\n";

static int check(int32_t code, const char *call, struct acre_error *err) {
    return code == OPENCL_SUCCESS ? 0
                                  : acre_fail(err, ACRE_EINTERNAL, "%s returned %d", call, code);
}

/* --- compiling ------------------------------------------------------------------------------ */

static int build(struct opencl *cl, const char *text, opencl_program *ret_program,
                 struct acre_error *err) {
    const char *texts[] = {before, text};
    int32_t code = 0;
    opencl_program program = cl->api.create_program(cl->context, 2, texts, NULL, &code);
    code = code == 0 ? cl->api.build(program, 1, &cl->device, "", NULL, NULL) : code;
    if (code != 0 && program != NULL) {
        cl->api.release_program(program);
    }
    if (code == 0) {
        *ret_program = program;
    }
    return check(code, "clBuildProgram", err);
}

static int load_kernels(struct opencl *cl, struct acre_error *err) {
    int r = build(cl, compute_text, &cl->program, err);
    const struct {
        opencl_kernel_object *to;
        const char *name;
    } kernels[] = {
        {&cl->tick, "tick"}, {&cl->add, "add"}, {&cl->multiply, "multiply"}, {&cl->batch, "batch"}};
    for (size_t i = 0; i < ACRE_COUNT(kernels) && r == 0; i++) {
        int32_t code = 0;
        *kernels[i].to = cl->api.create_kernel(cl->program, kernels[i].name, &code);
        r = check(code, "clCreateKernel", err);
    }
    return r;
}

static int raw_compile(void *self, const char *text, struct acre_error *err) {
    struct opencl *cl = self;
    opencl_program program = NULL;
    int r = build(cl, text, &program, err);
    return r == 0 ? check(cl->api.release_program(program), "clReleaseProgram", err) : r;
}

/* --- launches ------------------------------------------------------------------------------- */

struct value {
    const void *at;
    size_t bytes;
};

static int start(struct opencl *cl, opencl_queue queue, opencl_kernel_object kernel,
                 const struct value *values, uint32_t count, const size_t global[2],
                 const size_t group[2], struct acre_error *err) {
    int32_t code = 0;
    for (uint32_t i = 0; i < count && code == 0; i++) {
        code = cl->api.set_arg(kernel, i, values[i].bytes, values[i].at);
    }
    code = code == 0 ? cl->api.launch(queue, kernel, global[1] > 1 ? 2 : 1, NULL, global, group, 0,
                                      NULL, NULL)
                     : code;
    return check(code, "clEnqueueNDRangeKernel", err);
}

static int wait(struct opencl *cl, struct acre_error *err) {
    return check(cl->api.finish(cl->queues[0]), "clFinish", err);
}

static int raw_launch(void *self, uint32_t count, struct acre_error *err) {
    struct opencl *cl = self;
    int r = 0;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        uint32_t is_last = i + 1 == count;
        const struct value values[] = {{&cl->counter, sizeof(cl->counter)},
                                       {&cl->out, sizeof(cl->out)},
                                       {&is_last, sizeof(is_last)}};
        r = start(cl, cl->queues[0], cl->tick, values, 3, (const size_t[]){32, 1},
                  (const size_t[]){32, 1}, err);
    }
    uint32_t seen = 0;
    if (r == 0) { /* waits, and is where the host sees it */
        r = check(cl->api.read(cl->queues[0], cl->out, 1, 0, sizeof(seen), &seen, 0, NULL, NULL),
                  "clEnqueueReadBuffer", err);
    }
    cl->expected += count;
    if (r == 0 && seen != cl->expected) {
        r = acre_fail(err, ACRE_ECORRUPT, "raw counter: %u, not %u", seen, cl->expected);
    }
    return r;
}

static int run_on_arrays(struct opencl *cl, opencl_kernel_object kernel, uint32_t n,
                         const size_t global[2], const size_t group[2], struct acre_error *err) {
    const struct value values[] = {{&cl->device_memory[0], sizeof(opencl_mem)},
                                   {&cl->device_memory[1], sizeof(opencl_mem)},
                                   {&cl->device_memory[2], sizeof(opencl_mem)},
                                   {&n, sizeof(n)}};
    int r = start(cl, cl->queues[0], kernel, values, 4, global, group, err);
    return r == 0 ? wait(cl, err) : r;
}

static size_t round_up(size_t items, size_t group) {
    return (items + group - 1) / group * group;
}

static int raw_add(void *self, uint32_t items, struct acre_error *err) {
    struct opencl *cl = self;
    return run_on_arrays(cl, cl->add, items, (const size_t[]){round_up(items, COMPUTE_GROUP), 1},
                         (const size_t[]){COMPUTE_GROUP, 1}, err);
}

static int raw_multiply(void *self, uint32_t width, struct acre_error *err) {
    struct opencl *cl = self;
    return run_on_arrays(cl, cl->multiply, width, (const size_t[]){width, width},
                         (const size_t[]){COMPUTE_TILE, COMPUTE_TILE}, err);
}

/* --- memory --------------------------------------------------------------------------------- */

static void raw_release(void *self) {
    struct opencl *cl = self;
    for (size_t i = 0; i < ACRE_COUNT(cl->device_memory); i++) {
        if (cl->device_memory[i] != NULL) {
            cl->api.release_mem(cl->device_memory[i]);
            cl->device_memory[i] = NULL;
        }
    }
    for (size_t i = 0; i < ACRE_COUNT(cl->host_memory); i++) {
        free(cl->host_memory[i]);
        cl->host_memory[i] = NULL;
    }
}

static int raw_reserve(void *self, const struct compute_memory *memory, struct acre_error *err) {
    struct opencl *cl = self;
    const float one = 1.0f;
    int32_t code = 0;
    for (size_t i = 0; i < ACRE_COUNT(cl->device_memory) && code == 0; i++) {
        uint64_t bytes = memory->device_bytes[i];
        if (bytes > 0) {
            cl->device_memory[i] =
                cl->api.create_buffer(cl->context, OPENCL_MEM_READ_WRITE, bytes, NULL, &code);
            code = code == 0 ? cl->api.fill(cl->queues[0], cl->device_memory[i], &one, sizeof(one),
                                            0, bytes, 0, NULL, NULL)
                             : code;
        }
    }
    for (size_t i = 0; i < ACRE_COUNT(cl->host_memory); i++) {
        cl->host_memory[i] =
            memory->host_bytes[i] > 0 ? acre_calloc(1, memory->host_bytes[i]) : NULL;
    }
    int r = check(code, "clCreateBuffer", err);
    r = r == 0 ? wait(cl, err) : r;
    if (r < 0) {
        raw_release(cl);
    }
    return r;
}

static void *raw_host(void *self, uint32_t index) {
    return ((struct opencl *)self)->host_memory[index];
}

static int raw_alloc(void *self, bool is_pooled, uint64_t bytes, uintptr_t *ret_at,
                     struct acre_error *err) {
    struct opencl *cl = self;
    int32_t code = 0;
    (void)is_pooled;
    opencl_mem memory =
        cl->api.create_buffer(cl->context, OPENCL_MEM_READ_WRITE, bytes, NULL, &code);
    if (code == 0) {
        *ret_at = (uintptr_t)memory;
    }
    return check(code, "clCreateBuffer", err);
}

static int raw_free(void *self, bool is_pooled, uintptr_t at, struct acre_error *err) {
    struct opencl *cl = self;
    (void)is_pooled;
    return check(cl->api.release_mem((opencl_mem)at), "clReleaseMemObject", err);
}

static int move(struct opencl *cl, opencl_queue queue, bool is_in, bool is_waited, uint32_t memory,
                uint64_t at, void *host, uint64_t bytes, struct acre_error *err) {
    opencl_mem device = cl->device_memory[memory];
    int32_t code = is_in ? cl->api.write(queue, device, is_waited, at, bytes, host, 0, NULL, NULL)
                         : cl->api.read(queue, device, is_waited, at, bytes, host, 0, NULL, NULL);
    return check(code, is_in ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer", err);
}

static int raw_copy(void *self, bool is_in, uint64_t bytes, struct acre_error *err) {
    struct opencl *cl = self;
    return move(cl, cl->queues[0], is_in, true, 0, 0, cl->host_memory[0], bytes, err);
}

/* A slot of a buffer: buffers cannot be cut by pointer. */
static opencl_mem cut(struct opencl *cl, uint32_t memory, uint64_t slot, int32_t *ret_code) {
    const struct opencl_sub_range range = {.origin = slot * COMPUTE_PIECE_BYTES,
                                           .size = COMPUTE_PIECE_BYTES};
    return cl->api.create_sub_buffer(cl->device_memory[memory], OPENCL_MEM_READ_WRITE,
                                     OPENCL_BUFFER_CREATE_TYPE_REGION, &range, ret_code);
}

struct batch {
    const float *in;
    float *out;
    uint64_t items;
};

static int run_piece(struct opencl *cl, const struct batch *batch, uint64_t slot,
                     const opencl_mem sides[2], uint64_t first, struct acre_error *err) {
    opencl_queue queue = cl->queues[slot];
    uint64_t at = slot * COMPUTE_PIECE_BYTES;
    uint32_t n = (uint32_t)ACRE_MIN(COMPUTE_PIECE_BYTES / sizeof(float), batch->items - first);
    const struct value values[] = {{&sides[0], sizeof(opencl_mem)},
                                   {&sides[1], sizeof(opencl_mem)},
                                   {&n, sizeof(n)},
                                   {&first, sizeof(first)}};
    int r = move(cl, queue, true, false, 0, at, (void *)(uintptr_t)(batch->in + first),
                 n * sizeof(float), err); /* which only reads it */
    r = r == 0 ? start(cl, queue, cl->batch, values, 4,
                       (const size_t[]){round_up(n, COMPUTE_GROUP), 1},
                       (const size_t[]){COMPUTE_GROUP, 1}, err)
               : r;
    r = r == 0 ? move(cl, queue, false, false, 1, at, batch->out + first, n * sizeof(float), err)
               : r;
    return r == 0 ? check(cl->api.flush(queue), "clFlush", err) : r;
}

static int raw_batch(void *self, const float *in, float *out, uint64_t items,
                     struct acre_error *err) {
    struct opencl *cl = self;
    const struct batch batch = {in, out, items};
    const uint64_t piece = COMPUTE_PIECE_BYTES / sizeof(float);
    opencl_mem slots[COMPUTE_STREAMS][2] = {{NULL}};
    int32_t code = 0;
    for (uint32_t i = 0; i < COMPUTE_STREAMS * 2 && code == 0; i++) {
        slots[i / 2][i % 2] = cut(cl, i % 2, i / 2, &code);
    }
    int r = check(code, "clCreateSubBuffer", err);
    for (uint64_t first = 0, turn = 0; first < items && r == 0; first += piece, turn++) {
        uint64_t slot = turn % COMPUTE_STREAMS;
        r = run_piece(cl, &batch, slot, slots[slot], first, err);
    }
    for (size_t i = 0; i < COMPUTE_STREAMS; i++) {
        int waited = check(cl->api.finish(cl->queues[i]), "clFinish", r == 0 ? err : NULL);
        r = r == 0 ? waited : r;
    }
    for (uint32_t i = 0; i < COMPUTE_STREAMS * 2; i++) {
        if (slots[i / 2][i % 2] != NULL) {
            cl->api.release_mem(slots[i / 2][i % 2]);
        }
    }
    return r;
}

static int raw_load(void *self, int fd, uint64_t bytes, struct acre_error *err) {
    struct opencl *cl = self;
    int r = 0;
    for (uint64_t at = 0; at < bytes && r == 0;) {
        ssize_t got =
            pread(fd, cl->host_memory[0], ACRE_MIN(bytes - at, COMPUTE_PIECE_BYTES), (off_t)at);
        if (got <= 0) {
            return acre_fail_errno(err, got < 0 ? errno : EIO, "raw read");
        }
        r = move(cl, cl->queues[0], true, true, 0, at, cl->host_memory[0], (uint64_t)got, err);
        at += (uint64_t)got;
    }
    return r;
}

/* --- opening -------------------------------------------------------------------------------- */

static void raw_close(void *self) {
    struct opencl *cl = self;
    if (cl->context != NULL) {
        raw_release(cl);
        opencl_mem memory[] = {cl->counter, cl->out};
        for (size_t i = 0; i < ACRE_COUNT(memory); i++) {
            if (memory[i] != NULL) {
                cl->api.release_mem(memory[i]);
            }
        }
        opencl_kernel_object kernels[] = {cl->tick, cl->add, cl->multiply, cl->batch};
        for (size_t i = 0; i < ACRE_COUNT(kernels); i++) {
            if (kernels[i] != NULL) {
                cl->api.release_kernel(kernels[i]);
            }
        }
        if (cl->program != NULL) {
            cl->api.release_program(cl->program);
        }
        for (size_t i = 0; i < COMPUTE_STREAMS; i++) {
            if (cl->queues[i] != NULL) {
                cl->api.release_queue(cl->queues[i]);
            }
        }
        cl->api.release_context(cl->context);
    }
    free(cl);
}

static int open_device(struct opencl *cl, struct acre_error *err) {
    struct acre_opencl_found *found = acre_calloc(ACRE_OPENCL_FOUND_MAX, sizeof(*found));
    struct acre_buf notes;
    uint32_t count = 0;
    acre_buf_init(&notes, 4096);
    int r = acre_opencl_list(&cl->api.query, OPENCL_DEVICE_TYPE_ALL, found, &count, &notes, err);
    if (r == 0 && count == 0) {
        r = acre_fail(err, ACRE_EUNAVAILABLE, "no OpenCL device");
    }
    if (r == 0) {
        int32_t code = 0;
        const intptr_t properties[] = {OPENCL_CONTEXT_PLATFORM, (intptr_t)found[0].platform, 0};
        cl->device = found[0].device;
        cl->context = cl->api.create_context(properties, 1, &cl->device, NULL, NULL, &code);
        for (size_t i = 0; i < COMPUTE_STREAMS && code == 0; i++) {
            cl->queues[i] = cl->api.create_queue(cl->context, cl->device, 0, &code);
        }
        r = check(code, "clCreateContext", err);
    }
    acre_buf_finish(&notes);
    free(found);
    return r;
}

static int open_memory(struct opencl *cl, struct acre_error *err) {
    const uint32_t zero = 0;
    int32_t code = 0;
    cl->counter = cl->api.create_buffer(cl->context, OPENCL_MEM_READ_WRITE, 64, NULL, &code);
    if (code == 0) {
        cl->out = cl->api.create_buffer(cl->context, OPENCL_MEM_READ_WRITE, 64, NULL, &code);
    }
    code = code == 0
               ? cl->api.fill(cl->queues[0], cl->counter, &zero, sizeof(zero), 0, 64, 0, NULL, NULL)
               : code;
    int r = check(code, "clCreateBuffer", err);
    return r == 0 ? wait(cl, err) : r;
}

static int raw_open(void **ret_self, struct acre_error *err) {
    static const char *const sonames[] = {"libOpenCL.so.1", NULL};
    struct opencl *cl = acre_calloc(1, sizeof(*cl));
    int r = acre_dl_load(sonames, symbols, ACRE_COUNT(symbols), cl, NULL, err);
    r = r == 0 ? open_device(cl, err) : r;
    r = r == 0 ? load_kernels(cl, err) : r;
    r = r == 0 ? open_memory(cl, err) : r;
    if (r < 0) {
        raw_close(cl);
        return r;
    }
    *ret_self = cl;
    return 0;
}

const struct compute_raw compute_raw_opencl = {
    .name = "OpenCL",
    .open = raw_open,
    .close = raw_close,
    .reserve = raw_reserve,
    .release = raw_release,
    .host = raw_host,
    .launch = raw_launch,
    .alloc = raw_alloc,
    .free = raw_free,
    .add = raw_add,
    .multiply = raw_multiply,
    .copy = raw_copy,
    .batch = raw_batch,
    .compile = raw_compile,
    .load = raw_load,
};
