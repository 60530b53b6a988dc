/* cpu_rig.c - see cpu_rig.h. */
#include "support/cpu_rig.h"
#include "compute/source/dialect.h"
#include "core/futex.h"
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const struct backend *const table = &backend_cpu;

void cpu_rig_require(int r, const struct acre_error *err) {
    if (r < 0) {
        acre_test_context("%s", err->text);
        REQUIRE_EQ(r, 0);
    }
}

void cpu_rig_init(struct cpu_rig *rig) {
    struct acre_error err;
    *rig = (struct cpu_rig){0};
    cpu_rig_require(table->open(&rig->self, &err), &err);
    cpu_rig_require(table->seat_open(rig->self, 0, &rig->seat, &err), &err);
    void *pages =
        mmap(NULL, CPU_RIG_WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    rig->words = pages;
    struct native_region region;
    cpu_rig_require(table->region_create(rig->seat, ACRE_MEMORY_MAPPED, CPU_RIG_WORDS * 8, pages,
                                         &region, &err),
                    &err);
    rig->words_region = region.handle;
}

void cpu_rig_finish(struct cpu_rig *rig) {
    table->seat_close(rig->seat);
    table->close(rig->self);
    munmap((void *)rig->words, CPU_RIG_WORDS * 8);
}

uint64_t cpu_rig_stream(struct cpu_rig *rig, uint32_t word) {
    struct acre_error err;
    uint64_t stream = 0;
    cpu_rig_require(table->stream_create(rig->seat, rig->words_region, word * 8, &stream, &err),
                    &err);
    return stream;
}

struct native_region cpu_rig_region(struct cpu_rig *rig, uint64_t bytes) {
    struct acre_error err;
    struct native_region region = {0};
    cpu_rig_require(table->region_create(rig->seat, ACRE_MEMORY_DEVICE, bytes, NULL, &region, &err),
                    &err);
    REQUIRE(region.address != 0);
    return region;
}

uint64_t cpu_rig_native(struct cpu_rig *rig, acre_native_function *function) {
    struct acre_error err;
    uint64_t kernel = 0;
    cpu_rig_require(table->native(rig->seat, function, &kernel, &err), &err);
    return kernel;
}

/* As the front waits: spin, then sleep on the low half. */
void cpu_rig_await(struct cpu_rig *rig, uint32_t word, uint64_t value) {
    uint64_t seen = atomic_load(&rig->words[word]);
    while (seen < value) {
        REQUIRE(acre_futex_wait(acre_futex_low_half(&rig->words[word]), (uint32_t)seen,
                                UINT64_C(10000000000), ACRE_FUTEX_SHARED));
        seen = atomic_load(&rig->words[word]);
    }
}

void cpu_rig_sync(struct cpu_rig *rig, uint64_t stream, uint32_t word, uint64_t value) {
    struct acre_error err;
    cpu_rig_require(table->signal(rig->seat, stream, value, &err), &err);
    cpu_rig_await(rig, word, value);
}

struct native_arg cpu_rig_buffer(const struct native_region *region, uint64_t offset) {
    return (struct native_arg){
        .kind = ACRE_NATIVE_BUFFER, .region = region->handle, .offset = offset};
}

void cpu_rig_fill(struct cpu_rig *rig, uint64_t stream, const struct native_region *to,
                  uint64_t offset, uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes) {
    struct native_fill work = {.to = to->handle,
                               .to_offset = offset,
                               .bytes = bytes,
                               .pattern = pattern,
                               .pattern_bytes = pattern_bytes};
    struct acre_error err;
    cpu_rig_require(table->fill(rig->seat, stream, &work, &err), &err);
}

void cpu_rig_copy(struct cpu_rig *rig, uint64_t stream, const struct native_region *to,
                  uint64_t to_offset, const struct native_region *from, uint64_t from_offset,
                  uint64_t bytes) {
    struct native_copy work = {.to = to->handle,
                               .to_offset = to_offset,
                               .from = from->handle,
                               .from_offset = from_offset,
                               .bytes = bytes};
    struct acre_error err;
    cpu_rig_require(table->copy(rig->seat, stream, &work, &err), &err);
}

int cpu_rig_build(struct cpu_rig *rig, const char *name, const char *text, const char *options,
                  struct cpu_rig_program *ret_program) {
    struct acre_error *err = &ret_program->err;
    struct signature *all = NULL;
    uint32_t count = 0;
    struct acre_buf c;
    struct acre_buf log;
    struct acre_buf binary;
    *ret_program = (struct cpu_rig_program){0};
    acre_buf_init(&c, 8 << 20);
    acre_buf_init(&log, 1 << 20);
    acre_buf_init(&binary, 64 << 20);
    struct acre_source source = {.text = text, .name = name, .options = options};
    int r = signatures_read(name, acre_str_from(text), ACRE_LANGUAGE_PORTABLE, &all, &count, err);
    if (r == 0) {
        r = dialect_write("cpu", &source, ACRE_LANGUAGE_PORTABLE, all, count, &c, err);
        signatures_free(all, count);
    }
    struct native_source native = {.text = c.data, .length = c.length, .options = options};
    r = r == 0 ? table->compile(rig->seat, &native, &binary, &log, err) : r;
    r = r == 0 ? table->load(rig->seat, binary.data, binary.length, &ret_program->module, err) : r;
    snprintf(ret_program->log, sizeof(ret_program->log), "%s", log.data);
    acre_buf_finish(&c);
    acre_buf_finish(&log);
    acre_buf_finish(&binary);
    return r;
}

uint64_t cpu_rig_kernel(struct cpu_rig *rig, uint64_t module, const char *name) {
    struct acre_error err;
    struct kernel_facts facts;
    uint64_t kernel = 0;
    cpu_rig_require(table->kernel(rig->seat, module, name, &kernel, &facts, &err), &err);
    return kernel;
}
