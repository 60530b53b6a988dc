/* OpenCL back end: what is refused, what fails, and what is left when it does (GPU-6, Bad input).
 * Failures that no driver gives on request are put into the seat's table of functions. */
#include "compute/opencl/seat.h"

#include "support/opencl_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct backend *const cl = &backend_opencl;

static const char plain[] = "kernel void put(global int *out, int value) { out[0] = value; }\n"
                            "kernel void keep(global int *out) { local int part[64];\n"
                            "    part[get_local_id(0)] = out[0]; barrier(CLK_LOCAL_MEM_FENCE);\n"
                            "    out[0] = part[0]; }\n";

/* --- sources and bytes ---------------------------------------------------------------------- */

static void compile_errors_bring_the_compilers_lines(void) {
    static const struct {
        const char *text, *options;
        int code;
        const char *log, *error;
    } cases[] = {
        {"kernel void f(global int *a) {\n\n a[0] = missing;\n}\n", "", ACRE_EINVALID,
         ":3:", "clBuildProgram: CL_BUILD_PROGRAM_FAILURE"},
        {"kernel void f(global int *a) { a[0] = 1 }", "", ACRE_EINVALID, "expected ';'",
         "clBuildProgram: CL_BUILD_PROGRAM_FAILURE"},
        {"kernel void f(global int *a) {}", "-no-such-option", ACRE_EINVALID, "",
         "clBuildProgram: CL_"},
        {"kernel void f(global int *a) { a[0] = N; }", "-DN=7", 0, "", ""},
    };
    struct rig rig = rig_open("svm", 0);
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].text);
        struct acre_buf binary, log;
        struct acre_error err = {0};
        acre_buf_init(&binary, 64 << 20);
        acre_buf_init(&log, 1 << 20);
        acre_buf_puts(&log, "before:");
        struct native_source source = {
            .text = cases[i].text, .length = strlen(cases[i].text), .options = cases[i].options};
        CHECK_EQ(cl->compile(rig.seat, &source, &binary, &log, &err), cases[i].code);
        CHECK(strncmp(log.data, "before:", 7) == 0);
        CHECK_HAS(log.data, cases[i].log);
        CHECK_HAS(err.text, cases[i].error);
        CHECK_EQ(binary.length > 0, cases[i].code == 0);
        acre_buf_finish(&binary);
        acre_buf_finish(&log);
    }
    rig_close(&rig);
}

static void compile_plain(struct rig *rig, struct acre_buf *binary) {
    struct acre_buf log;
    acre_buf_init(&log, 1 << 20);
    struct native_source source = {.text = plain, .length = sizeof(plain) - 1, .options = ""};
    REQUIRE(cl->compile(rig->seat, &source, binary, &log, NULL) == 0);
    acre_buf_finish(&log);
}

static void damaged_bytes_are_told(void) {
    struct rig rig = rig_open("svm", 0);
    struct acre_buf binary;
    acre_buf_init(&binary, 64 << 20);
    compile_plain(&rig, &binary);
    static const struct {
        const char *what;
        size_t cut_bytes; /* left of the whole; 0: all */
        int flip_at;      /* -1: none; in 16ths of the length */
    } cases[] = {{"empty", 1, -1},     {"only a header", 16, -1}, {"cut", 1000, -1},
                 {"first byte", 0, 0}, {"in the middle", 0, 8},   {"near the end", 0, 15}};
    uint64_t module = 7;
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].what);
        size_t length = cases[i].cut_bytes != 0 ? cases[i].cut_bytes : binary.length;
        char *copy = malloc(length);
        memcpy(copy, binary.data, length);
        if (cases[i].flip_at >= 0) {
            copy[length / 16 * (size_t)cases[i].flip_at] ^= 1;
        }
        struct acre_error err = {0};
        CHECK_EQ(cl->load(rig.seat, copy, length, &module, &err), ACRE_ECORRUPT);
        CHECK_HAS(err.text, "compiled program: ");
        free(copy);
    }
    CHECK_U64(module, 7);
    CHECK_EQ(cl->load(rig.seat, binary.data, binary.length, &module, NULL), 0);
    acre_buf_finish(&binary);
    rig_close(&rig);
}

/* Our header around bytes that no driver made. */
static void bytes_of_another_driver_are_refused(void) {
    struct rig rig = rig_open("svm", 0);
    char bytes[200] = "acre-cl1";
    memset(bytes + 16, 'x', sizeof(bytes) - 16);
    uint64_t hash = acre_hash_bytes(bytes + 16, sizeof(bytes) - 16);
    memcpy(bytes + 8, &hash, sizeof(hash));
    uint64_t module = 7;
    struct acre_error err = {0};
    CHECK_EQ(cl->load(rig.seat, bytes, sizeof(bytes), &module, &err), ACRE_ECORRUPT);
    CHECK_HAS(err.text, "clCreateProgramWithBinary: CL_INVALID_");
    rig_close(&rig);
}

static void bytes_load_in_another_seat(void) {
    struct rig made = rig_open("svm", 0);
    struct acre_buf binary;
    acre_buf_init(&binary, 64 << 20);
    compile_plain(&made, &binary);
    rig_close(&made);
    struct rig rig = rig_open("svm", 1);
    uint64_t module = 0;
    REQUIRE(cl->load(rig.seat, binary.data, binary.length, &module, NULL) == 0);
    acre_buf_finish(&binary);
    uint64_t out = rig_region(&rig, ACRE_MEMORY_DEVICE, RIG_PAGE, NULL);
    int value = 42;
    int got = 0;
    struct rig_launch put;
    rig_launch_begin(&put, rig_kernel(&rig, module, "put"), (struct acre_grid){0});
    rig_launch_buffer(&put, out, 0, RIG_PAGE);
    rig_launch_value(&put, &value, sizeof(value));
    REQUIRE(cl->launch(rig.seat, rig.streams[0], &put.native, NULL) == 0);
    rig_sync(&rig, 0);
    rig_read(&rig, out, 0, &got, sizeof(got));
    CHECK_EQ(got, 42);
    rig_close(&rig);
}

static void kernels_tell_their_facts(void) {
    struct rig rig = rig_open("svm", 0);
    uint64_t module = rig_load(&rig, plain);
    uint64_t kernel = 7;
    struct kernel_facts facts = {0};
    struct acre_error err = {0};
    CHECK_EQ(cl->kernel(rig.seat, module, "missing", &kernel, &facts, &err), ACRE_ENOTFOUND);
    CHECK_STR(err.text, "kernel 'missing': clCreateKernel: CL_INVALID_KERNEL_NAME");
    CHECK_U64(kernel, 7);
    CHECK_EQ(cl->kernel(rig.seat, module, "keep", &kernel, &facts, &err), 0);
    struct acre_compute_device device;
    cl->describe(rig.self, 0, &device);
    CHECK(facts.group_max > 0 && facts.group_max <= device.group_max);
    CHECK(facts.local_bytes >= 64 * sizeof(int));
    rig_close(&rig);
}

/* --- launches ------------------------------------------------------------------------------- */

static void wrong_launches_name_call_and_argument(void) {
    struct rig rig = rig_open("buffers", 1);
    struct opencl_seat *seat = rig.seat;
    uint64_t put = rig_kernel(&rig, rig_load(&rig, plain), "put");
    uint64_t out = rig_region(&rig, ACRE_MEMORY_DEVICE, RIG_PAGE, NULL);
    static const struct {
        uint64_t offset;
        uint32_t value_bytes;
        uint32_t group;
        int code;
        const char *text;
    } cases[] = {
        {0, 4, 1, 0, ""},
        {4, 4, 1, ACRE_EUNSUPPORTED,
         "argument 1: it starts at byte 4 of its block; accepted: multiples of "},
        {0, 8, 1, ACRE_EINVALID, "argument 2: clSetKernelArg: CL_INVALID_ARG_SIZE"},
        {0, 0, 1, ACRE_EINVALID, "clEnqueueNDRangeKernel: CL_INVALID_KERNEL_ARGS"},
        {0, 4, 1 << 20, ACRE_EINVALID, "clEnqueueNDRangeKernel: CL_INVALID_WORK_GROUP_SIZE"},
    };
    CHECK(seat->part_align_bytes > 4);
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("case %zu", i);
        /* Arguments stay in a kernel's objects: a fresh one shows those that are missing. */
        uint64_t fresh =
            cases[i].value_bytes == 0 ? rig_kernel(&rig, rig_load(&rig, plain), "put") : put;
        struct rig_launch launch;
        rig_launch_begin(&launch, fresh, (struct acre_grid){.group = {cases[i].group}});
        rig_launch_buffer(&launch, out, cases[i].offset, 64);
        if (cases[i].value_bytes > 0) {
            rig_launch_value(&launch, "12345678", cases[i].value_bytes);
        }
        struct acre_error err = {0};
        CHECK_EQ(cl->launch(rig.seat, rig.streams[0], &launch.native, &err), cases[i].code);
        CHECK_HAS(err.text, cases[i].text);
    }
    rig_close(&rig);
}

static void host_memory_out_of_reach_is_refused(void) {
    struct rig rig = rig_open("svm", 1);
    ((struct opencl_seat *)rig.seat)->is_cpu = false; /* as on a discrete GPU */
    ((struct opencl_seat *)rig.seat)->has_system_svm = false;
    void *pages = rig_pages(RIG_PAGE);
    uint64_t mapped = rig_region(&rig, ACRE_MEMORY_MAPPED, RIG_PAGE, pages);
    int value = 1;
    struct rig_launch launch;
    rig_launch_begin(&launch, rig_kernel(&rig, rig_load(&rig, plain), "put"),
                     (struct acre_grid){0});
    rig_launch_buffer(&launch, mapped, 0, RIG_PAGE);
    rig_launch_value(&launch, &value, sizeof(value));
    struct acre_error err = {0};
    CHECK_EQ(cl->launch(rig.seat, rig.streams[0], &launch.native, &err), ACRE_EUNSUPPORTED);
    CHECK_STR(err.text, "argument 1: kernels on this device cannot use host memory; accepted: "
                        "device memory");
    cl->region_destroy(rig.seat, mapped);
    munmap(pages, RIG_PAGE);
    rig_close(&rig);
}

/* --- a driver that fails -------------------------------------------------------------------- */

static int32_t refuses(void) {
    return OPENCL_OUT_OF_RESOURCES;
}

static opencl_queue no_queue(opencl_context c, opencl_device d, uint64_t p, int32_t *ret_code) {
    (void)c, (void)d, (void)p;
    *ret_code = OPENCL_OUT_OF_HOST_MEMORY;
    return NULL;
}

static opencl_mem no_buffer(opencl_context c, uint64_t f, size_t s, void *h, int32_t *ret_code) {
    (void)c, (void)f, (void)s, (void)h;
    *ret_code = OPENCL_DEVICE_NOT_AVAILABLE;
    return NULL;
}

static opencl_mem no_part(opencl_mem m, uint64_t f, uint32_t t, const void *r, int32_t *ret_code) {
    (void)m, (void)f, (void)t, (void)r;
    *ret_code = OPENCL_MISALIGNED_SUB_BUFFER_OFFSET;
    return NULL;
}

static opencl_event no_event(opencl_context c, int32_t *ret_code) {
    (void)c;
    *ret_code = -12345;
    return NULL;
}

struct faulty {
    struct rig rig;
    struct opencl_api api; /* the driver's, but for one function */
    uint64_t device, host;
    uint64_t kernel, module;
    void *pages;
};

static int try_stream(struct faulty *f, struct acre_error *err) {
    uint64_t stream;
    return cl->stream_create(f->rig.seat, f->rig.words_region, 64, &stream, err);
}
static int try_region(struct faulty *f, struct acre_error *err) {
    struct native_region region;
    return cl->region_create(f->rig.seat, ACRE_MEMORY_DEVICE, RIG_PAGE, NULL, &region, err);
}
static int copy(struct faulty *f, uint64_t to, uint64_t from, struct acre_error *err) {
    struct native_copy native = {to, 0, from, 256, 256};
    return cl->copy(f->rig.seat, f->rig.streams[0], &native, err);
}
static int try_copy(struct faulty *f, struct acre_error *err) {
    return copy(f, f->device, f->device, err);
}
static int try_copy_in(struct faulty *f, struct acre_error *err) {
    return copy(f, f->device, f->host, err);
}
static int try_copy_out(struct faulty *f, struct acre_error *err) {
    return copy(f, f->host, f->device, err);
}
static int try_copy_host(struct faulty *f, struct acre_error *err) {
    return copy(f, f->host, f->host, err);
}
static int try_fill(struct faulty *f, struct acre_error *err) {
    struct native_fill native = {f->device, 0, 64, 1, 4};
    return cl->fill(f->rig.seat, f->rig.streams[0], &native, err);
}
static int try_fill_host(struct faulty *f, struct acre_error *err) {
    struct native_fill native = {f->host, 0, 64, 1, 4};
    return cl->fill(f->rig.seat, f->rig.streams[0], &native, err);
}
static int try_launch(struct faulty *f, struct acre_error *err) {
    int value = 1;
    struct rig_launch launch;
    rig_launch_begin(&launch, f->kernel, (struct acre_grid){0});
    rig_launch_buffer(&launch, f->device, 1024, 64);
    rig_launch_value(&launch, &value, sizeof(value));
    return cl->launch(f->rig.seat, f->rig.streams[0], &launch.native, err);
}
static int try_signal(struct faulty *f, struct acre_error *err) {
    return cl->signal(f->rig.seat, f->rig.streams[0], 1, err);
}
static int try_wait(struct faulty *f, struct acre_error *err) { /* nobody will signal it */
    return cl->wait(f->rig.seat, f->rig.streams[1], f->rig.words_region, 8, 1000, err);
}
static int try_profile(struct faulty *f, struct acre_error *err) {
    return cl->profile(f->rig.seat, f->rig.streams[0], true, err);
}
static int try_kernel(struct faulty *f, struct acre_error *err) {
    struct kernel_facts facts;
    uint64_t kernel;
    return cl->kernel(f->rig.seat, f->module, "keep", &kernel, &facts, err);
}
static int try_compile(struct faulty *f, struct acre_error *err) {
    struct acre_buf binary, log;
    acre_buf_init(&binary, 64 << 20);
    acre_buf_init(&log, 1 << 20);
    struct native_source source = {.text = plain, .length = sizeof(plain) - 1, .options = ""};
    int r = cl->compile(f->rig.seat, &source, &binary, &log, err);
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    return r;
}

#define FAULT(memory, field, stub, try, code, call)                                                \
    { memory, offsetof(struct opencl_api, field), (void (*)(void))stub, try, code, call }

static const struct {
    const char *memory;
    size_t offset;
    void (*stub)(void);
    int (*attempt)(struct faulty *f, struct acre_error *err);
    int code;
    const char *text;
} faults[] = {
    FAULT("svm", create_queue, no_queue, try_stream, ACRE_ENOMEM,
          "clCreateCommandQueue: CL_OUT_OF_HOST_MEMORY"),
    FAULT("svm", create_queue, no_queue, try_profile, ACRE_ENOMEM,
          "clCreateCommandQueue: CL_OUT_OF_HOST_MEMORY"),
    FAULT("buffers", create_buffer, no_buffer, try_region, ACRE_EUNAVAILABLE,
          "clCreateBuffer: CL_DEVICE_NOT_AVAILABLE"),
    FAULT("buffers", create_buffer, no_buffer, try_copy_host, ACRE_EUNAVAILABLE,
          "clCreateBuffer: CL_DEVICE_NOT_AVAILABLE"),
    FAULT("buffers", create_buffer, no_buffer, try_fill_host, ACRE_EUNAVAILABLE,
          "clCreateBuffer: CL_DEVICE_NOT_AVAILABLE"),
    FAULT("buffers", create_sub_buffer, no_part, try_launch, ACRE_EINVALID,
          "argument 1: clCreateSubBuffer: CL_MISALIGNED_SUB_BUFFER_OFFSET"),
    FAULT("buffers", read, refuses, try_copy_out, ACRE_ENOMEM,
          "clEnqueueReadBuffer: CL_OUT_OF_RESOURCES"),
    FAULT("buffers", write, refuses, try_copy_in, ACRE_ENOMEM,
          "clEnqueueWriteBuffer: CL_OUT_OF_RESOURCES"),
    FAULT("buffers", copy, refuses, try_copy, ACRE_ENOMEM,
          "clEnqueueCopyBuffer: CL_OUT_OF_RESOURCES"),
    FAULT("buffers", fill, refuses, try_fill, ACRE_ENOMEM,
          "clEnqueueFillBuffer: CL_OUT_OF_RESOURCES"),
    FAULT("svm", svm_copy, refuses, try_copy, ACRE_ENOMEM,
          "clEnqueueSVMMemcpy: CL_OUT_OF_RESOURCES"),
    FAULT("svm", svm_fill, refuses, try_fill, ACRE_ENOMEM,
          "clEnqueueSVMMemFill: CL_OUT_OF_RESOURCES"),
    FAULT("svm", set_arg_svm, refuses, try_launch, ACRE_ENOMEM,
          "argument 1: clSetKernelArgSVMPointer: CL_OUT_OF_RESOURCES"),
    FAULT("svm", launch, refuses, try_launch, ACRE_ENOMEM,
          "clEnqueueNDRangeKernel: CL_OUT_OF_RESOURCES"),
    FAULT("svm", marker, refuses, try_signal, ACRE_ENOMEM,
          "clEnqueueMarkerWithWaitList: CL_OUT_OF_RESOURCES"),
    FAULT("svm", marker, refuses, try_profile, ACRE_ENOMEM,
          "clEnqueueMarkerWithWaitList: CL_OUT_OF_RESOURCES"),
    FAULT("svm", on_event, refuses, try_signal, ACRE_ENOMEM,
          "clSetEventCallback: CL_OUT_OF_RESOURCES"),
    FAULT("svm", create_user_event, no_event, try_wait, ACRE_EINTERNAL,
          "clCreateUserEvent: code -12345"),
    FAULT("svm", barrier, refuses, try_wait, ACRE_ENOMEM,
          "clEnqueueBarrierWithWaitList: CL_OUT_OF_RESOURCES"),
    FAULT("svm", barrier, refuses, try_profile, ACRE_ENOMEM,
          "clEnqueueBarrierWithWaitList: CL_OUT_OF_RESOURCES"),
    FAULT("svm", kernel_info, refuses, try_kernel, ACRE_ENOMEM,
          "clGetKernelWorkGroupInfo: CL_OUT_OF_RESOURCES"),
    FAULT("svm", program_info, refuses, try_compile, ACRE_ENOMEM,
          "clGetProgramInfo: CL_OUT_OF_RESOURCES"),
};

/* What the driver refuses is told by call and code; all of it works again when the driver does. */
static void refusals_of_the_driver_are_named(void) {
    for (size_t i = 0; i < ACRE_COUNT(faults); i++) {
        struct faulty f = {.rig = rig_open(faults[i].memory, 2), .pages = rig_pages(RIG_PAGE)};
        struct opencl_seat *seat = f.rig.seat;
        const struct opencl_api *driver = seat->api;
        f.device = rig_region(&f.rig, ACRE_MEMORY_DEVICE, RIG_PAGE, NULL);
        f.host = rig_region(&f.rig, ACRE_MEMORY_PINNED, RIG_PAGE, f.pages);
        f.module = rig_load(&f.rig, plain);
        f.kernel = rig_kernel(&f.rig, f.module, "put");
        acre_test_context("%s", faults[i].text);
        f.api = *driver;
        memcpy((char *)&f.api + faults[i].offset, &faults[i].stub, sizeof(faults[i].stub));
        seat->api = &f.api;
        struct acre_error err = {0};
        CHECK_EQ(faults[i].attempt(&f, &err), faults[i].code);
        CHECK_STR(err.text, faults[i].text);
        seat->api = driver;
        f.rig.signaled[0] = 10;
        CHECK_EQ(try_launch(&f, NULL), 0);
        rig_sync(&f.rig, 0);
        CHECK_EQ(cl->check(f.rig.seat, NULL), 0);
        cl->region_destroy(f.rig.seat, f.host);
        munmap(f.pages, RIG_PAGE);
        rig_close(&f.rig);
    }
}

/* --- completions ---------------------------------------------------------------------------- */

typedef void callback(opencl_event event, int32_t status, void *user);

static int32_t end_badly(opencl_event event, int32_t type, callback *function, void *user) {
    (void)type;
    function(event, OPENCL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, user);
    return OPENCL_SUCCESS;
}

static void failed_work_is_told_by_check(void) {
    struct rig rig = rig_open("svm", 1);
    struct opencl_seat *seat = rig.seat;
    const struct opencl_api *driver = seat->api;
    struct opencl_api api = *driver;
    api.on_event = end_badly;
    seat->api = &api;
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct acre_error err = {0};
    CHECK_EQ(cl->check(rig.seat, &err), 0);
    CHECK_EQ(cl->signal(rig.seat, rig.streams[0], 1, NULL), 0);
    CHECK_EQ(cl->notify(rig.seat, rig.streams[0], fd, NULL), 0);
    CHECK_EQ(cl->check(rig.seat, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "work on a stream failed: CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST");
    CHECK_U64(atomic_load(&rig.words[0]), 0); /* it was not done */
    uint64_t count = 0;
    CHECK(read(fd, &count, sizeof(count)) == sizeof(count)); /* whoever polls has to look */
    close(fd);
    seat->api = driver;
    rig_close(&rig);
}

static struct {
    callback *function;
    opencl_event event;
    void *user;
} held[3];
static uint32_t held_count;

static int32_t hold(opencl_event event, int32_t type, callback *function, void *user) {
    (void)type;
    held[held_count].function = function;
    held[held_count].event = event;
    held[held_count++].user = user;
    return OPENCL_SUCCESS;
}

/* Drivers call completions in any order; words only grow, and a late one does not touch a word
 * that its owner has taken away. */
static void late_completions_do_not_touch_the_word(void) {
    struct rig rig = rig_open("svm", 1);
    struct opencl_seat *seat = rig.seat;
    struct opencl_api api = *seat->api;
    api.on_event = hold;
    seat->api = &api;
    held_count = 0;
    for (uint64_t value = 1; value <= ACRE_COUNT(held); value++) {
        REQUIRE(cl->signal(rig.seat, rig.streams[0], value, NULL) == 0);
    }
    CHECK_U64(atomic_load(&rig.words[0]), 0);
    held[2].function(held[2].event, OPENCL_COMPLETE, held[2].user);
    CHECK_U64(atomic_load(&rig.words[0]), 3);
    cl->stream_destroy(rig.seat, rig.streams[0]);
    cl->region_destroy(rig.seat, rig.words_region);
    munmap((void *)rig.words, RIG_PAGE);
    held[0].function(held[0].event, OPENCL_COMPLETE, held[0].user);
    held[1].function(held[1].event, OPENCL_COMPLETE, held[1].user);
    cl->seat_close(rig.seat);
    cl->close(rig.self);
}

/* Who has seen the word may close the eventfd of a notice before it, and open another file as it.
 */
static void notices_come_before_the_signal_behind_them(void) {
    struct rig rig = rig_open("svm", 1);
    struct opencl_seat *seat = rig.seat;
    const struct opencl_api *driver = seat->api;
    struct opencl_api api = *driver;
    api.on_event = hold;
    seat->api = &api;
    held_count = 0;
    uint64_t count = 0;
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int late = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    REQUIRE(cl->notify(rig.seat, rig.streams[0], fd, NULL) == 0);
    REQUIRE(cl->signal(rig.seat, rig.streams[0], 1, NULL) == 0);
    REQUIRE(cl->notify(rig.seat, rig.streams[0], late, NULL) == 0);
    held[1].function(held[1].event, OPENCL_COMPLETE, held[1].user);
    CHECK_U64(atomic_load(&rig.words[0]), 1);
    CHECK_EQ(read(fd, &count, sizeof(count)), 8);
    CHECK_U64(count, 1);
    CHECK_EQ(read(late, &count, sizeof(count)), -1); /* it is behind */
    held[0].function(held[0].event, OPENCL_COMPLETE, held[0].user);
    CHECK_EQ(read(fd, &count, sizeof(count)), -1); /* once */
    held[2].function(held[2].event, OPENCL_COMPLETE, held[2].user);
    CHECK_EQ(read(late, &count, sizeof(count)), 8);
    CHECK_U64(count, 1);
    close(fd);
    close(late);
    seat->api = driver;
    rig_close(&rig);
}

static void closing_ends_what_is_under_way(void) {
    for (size_t i = 0; i < ACRE_COUNT(rig_memories); i++) {
        struct rig rig = rig_open(rig_memories[i], 2);
        uint64_t kernel = rig_kernel(&rig, rig_load(&rig, plain), "put");
        struct faulty f = {.rig = rig, .kernel = kernel, .pages = NULL};
        f.device = rig_region(&rig, ACRE_MEMORY_DEVICE, RIG_PAGE, NULL);
        REQUIRE(try_profile(&f, NULL) == 0);
        REQUIRE(try_launch(&f, NULL) == 0);
        REQUIRE(try_signal(&f, NULL) == 0);
        REQUIRE(try_wait(&f, NULL) == 0); /* for a signal that never comes */
        REQUIRE(cl->signal(rig.seat, rig.streams[1], 5, NULL) == 0);
        CHECK_U64(atomic_load(&rig.words[1]), 0);
        cl->seat_close(rig.seat); /* streams, regions, modules are still there */
        CHECK_U64(atomic_load(&rig.words[0]), 1);
        CHECK_U64(atomic_load(&rig.words[1]), 5);
        cl->close(rig.self);
        munmap((void *)rig.words, RIG_PAGE);
    }
}

static const struct acre_test tests[] = {
    {"compile_errors_bring_the_compilers_lines", compile_errors_bring_the_compilers_lines, 0},
    {"damaged_bytes_are_told", damaged_bytes_are_told, 0},
    {"bytes_of_another_driver_are_refused", bytes_of_another_driver_are_refused, 0},
    {"bytes_load_in_another_seat", bytes_load_in_another_seat, 0},
    {"kernels_tell_their_facts", kernels_tell_their_facts, 0},
    {"wrong_launches_name_call_and_argument", wrong_launches_name_call_and_argument, 0},
    {"host_memory_out_of_reach_is_refused", host_memory_out_of_reach_is_refused, 0},
    {"refusals_of_the_driver_are_named", refusals_of_the_driver_are_named, 0},
    {"failed_work_is_told_by_check", failed_work_is_told_by_check, 0},
    {"late_completions_do_not_touch_the_word", late_completions_do_not_touch_the_word, 0},
    {"notices_come_before_the_signal_behind_them", notices_come_before_the_signal_behind_them, 0},
    {"closing_ends_what_is_under_way", closing_ends_what_is_under_way, 0},
};

int main(int argc, char **argv) {
    return rig_main(tests, ACRE_COUNT(tests), argc, argv);
}
