/* opencl_rig.c - see the header. Words are waited for as the front does: a look, then the futex. */
#include "support/opencl_rig.h"

#include "core/futex.h"
#include "support/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

const char *const rig_memories[2] = {"svm", "buffers"};

static const struct backend *const cl = &backend_opencl;

int rig_main(const struct acre_test *tests, size_t count, int argc, char **argv) {
    struct tree cache = tree_create(NULL);
    setenv("POCL_CACHE_DIR", cache.root, 0); /* meson's, or one for this program */
    int r = acre_test_main(tests, count, argc, argv);
    tree_erase(&cache);
    return r;
}

static void require(int r, const struct acre_error *err, const char *what) {
    if (r < 0) {
        acre_test_context("%s: %s", what, err->text);
    }
    REQUIRE(r == 0);
}

void *rig_pages(uint64_t bytes) {
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    return pages;
}

struct rig rig_open(const char *memory, uint32_t streams) {
    struct rig rig = {0};
    struct acre_error err = {0};
    setenv("ACRE_OPENCL_MEMORY", memory, 1);
    int r = cl->open(&rig.self, &err);
    if (r == ACRE_EUNAVAILABLE) {
        acre_test_skip("%s", err.text);
    }
    require(r, &err, "open");
    require(cl->seat_open(rig.self, 0, &rig.seat, &err), &err, "seat_open");
    rig.words = rig_pages(RIG_PAGE);
    rig.words_region = rig_region(&rig, ACRE_MEMORY_MAPPED, RIG_PAGE, (void *)rig.words);
    ACRE_ASSERT(streams <= RIG_STREAMS);
    for (uint32_t i = 0; i < streams; i++) {
        r = cl->stream_create(rig.seat, rig.words_region, i * sizeof(uint64_t), &rig.streams[i],
                              &err);
        require(r, &err, "stream_create");
    }
    return rig;
}

/* As the front: streams, the words, the seat. */
void rig_close(struct rig *rig) {
    for (uint32_t i = 0; i < RIG_STREAMS; i++) {
        if (rig->streams[i] != 0) {
            rig_sync(rig, i);
            cl->stream_destroy(rig->seat, rig->streams[i]);
        }
    }
    cl->region_destroy(rig->seat, rig->words_region);
    munmap((void *)rig->words, RIG_PAGE);
    cl->seat_close(rig->seat);
    cl->close(rig->self);
}

void rig_signal(struct rig *rig, uint32_t stream) {
    struct acre_error err = {0};
    int r = cl->signal(rig->seat, rig->streams[stream], ++rig->signaled[stream], &err);
    require(r, &err, "signal");
}

void rig_reach(struct rig *rig, uint32_t stream, uint64_t value) {
    uint64_t seen;
    while ((seen = atomic_load_explicit(&rig->words[stream], memory_order_acquire)) < value) {
        acre_futex_wait(acre_futex_low_half(&rig->words[stream]), (uint32_t)seen,
                        ACRE_FUTEX_NO_LIMIT, ACRE_FUTEX_SHARED);
    }
}

void rig_sync(struct rig *rig, uint32_t stream) {
    rig_signal(rig, stream);
    rig_reach(rig, stream, rig->signaled[stream]);
}

uint64_t rig_region(struct rig *rig, enum acre_memory kind, uint64_t bytes, void *host) {
    struct native_region region = {0};
    struct acre_error err = {0};
    int r = cl->region_create(rig->seat, kind, bytes, host, &region, &err);
    require(r, &err, "region_create");
    REQUIRE(region.handle != 0);
    return region.handle;
}

static void move(struct rig *rig, uint64_t to, uint64_t to_offset, uint64_t from,
                 uint64_t from_offset, uint64_t bytes) {
    struct acre_error err = {0};
    struct native_copy copy = {to, to_offset, from, from_offset, bytes};
    int r = cl->copy(rig->seat, rig->streams[0], &copy, &err);
    require(r, &err, "copy");
    rig_sync(rig, 0);
}

void rig_write(struct rig *rig, uint64_t region, uint64_t offset, const void *from,
               uint64_t bytes) {
    void *pages = rig_pages(bytes);
    uint64_t host = rig_region(rig, ACRE_MEMORY_PINNED, bytes, pages);
    memcpy(pages, from, bytes);
    move(rig, region, offset, host, 0, bytes);
    cl->region_destroy(rig->seat, host);
    munmap(pages, bytes);
}

void rig_read(struct rig *rig, uint64_t region, uint64_t offset, void *to, uint64_t bytes) {
    void *pages = rig_pages(bytes);
    uint64_t host = rig_region(rig, ACRE_MEMORY_PINNED, bytes, pages);
    move(rig, host, 0, region, offset, bytes);
    memcpy(to, pages, bytes);
    cl->region_destroy(rig->seat, host);
    munmap(pages, bytes);
}

uint64_t rig_load(struct rig *rig, const char *source) {
    struct acre_error err = {0};
    struct acre_buf binary;
    struct acre_buf log;
    acre_buf_init(&binary, 64 << 20);
    acre_buf_init(&log, 1 << 20);
    struct native_source native = {.text = source, .length = strlen(source), .options = ""};
    int r = cl->compile(rig->seat, &native, &binary, &log, &err);
    if (r < 0) {
        fprintf(stderr, "%s\n", log.data);
    }
    require(r, &err, "compile");
    uint64_t module = 0;
    r = cl->load(rig->seat, binary.data, binary.length, &module, &err);
    require(r, &err, "load");
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    return module;
}

uint64_t rig_kernel(struct rig *rig, uint64_t module, const char *name) {
    struct acre_error err = {0};
    struct kernel_facts facts;
    uint64_t kernel = 0;
    int r = cl->kernel(rig->seat, module, name, &kernel, &facts, &err);
    require(r, &err, "kernel");
    return kernel;
}

void rig_launch_begin(struct rig_launch *launch, uint64_t kernel, struct acre_grid grid) {
    launch->native = (struct native_launch){
        .kernel = kernel, .grid = grid, .args = launch->args, .extra = launch->extra};
    for (uint32_t i = 0; i < 3; i++) { /* as the front: no zeros */
        launch->native.grid.groups[i] = ACRE_MAX(grid.groups[i], 1U);
        launch->native.grid.group[i] = ACRE_MAX(grid.group[i], 1U);
    }
}

static void add(struct rig_launch *launch, struct native_arg arg) {
    REQUIRE(launch->native.arg_count < ACRE_ARGS_MAX);
    launch->args[launch->native.arg_count++] = arg;
}

void rig_launch_buffer(struct rig_launch *launch, uint64_t region, uint64_t offset,
                       uint64_t length) {
    add(launch,
        (struct native_arg){
            .kind = ACRE_NATIVE_BUFFER, .region = region, .offset = offset, .length = length});
}

void rig_launch_value(struct rig_launch *launch, const void *value, uint32_t bytes) {
    uint32_t at = launch->native.extra_bytes;
    memcpy(launch->extra + at, value, bytes);
    launch->native.extra_bytes += (bytes + 15) / 16 * 16;
    add(launch, (struct native_arg){.kind = ACRE_NATIVE_VALUE, .bytes = bytes, .region = at});
}

void rig_launch_local(struct rig_launch *launch, uint32_t bytes) {
    add(launch, (struct native_arg){.kind = ACRE_NATIVE_LOCAL, .bytes = bytes});
}
