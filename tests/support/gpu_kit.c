/* gpu_kit.c - see gpu_kit.h. */
#include "gpu_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

uint64_t kit_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void kit_ok(struct kit *kit, int result, const char *call, const char *file, int line) {
    if (result != 0) {
        fprintf(stderr, "%s answered %s: %s\n", call, acre_error_name(result), kit->err.text);
        acre_check(false, true, call, file, line);
    }
}

static void *map_pages(uint64_t bytes) {
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(host != MAP_FAILED);
    return host;
}

void kit_open(struct kit *kit, const struct backend *table) {
    *kit = (struct kit){.table = table};
    int r = table->open(&kit->self, &kit->err);
    if (r == ACRE_EUNAVAILABLE) {
        acre_test_skip("no %s: %s", table->name, kit->err.text);
    }
    KIT_OK(kit, r);
    KIT_OK(kit, table->seat_open(kit->self, 0, &kit->seat, &kit->err));
    void *words = NULL;
    kit->words_region = kit_host(kit, ACRE_MEMORY_MAPPED, 4096, &words);
    kit->words = words;
    kit_stream(kit, 0);
}

void kit_close(struct kit *kit) {
    kit->table->seat_close(kit->seat);
    kit->table->close(kit->self);
    munmap((void *)kit->words, 4096);
}

void kit_stream(struct kit *kit, uint32_t stream) {
    KIT_OK(kit,
           kit->table->stream_create(kit->seat, kit->words_region.handle, stream * sizeof(uint64_t),
                                     &kit->streams[stream], &kit->err));
}

bool kit_wait(struct kit *kit, uint32_t stream, uint64_t value) {
    uint64_t begun_ns = kit_now_ns();
    while (atomic_load_explicit(&kit->words[stream], memory_order_acquire) < value) {
        if (kit_now_ns() - begun_ns > (uint64_t)KIT_WAIT_MS * 1000000) {
            struct acre_error why = {0};
            kit->table->check(kit->seat, &why);
            fprintf(stderr, "stream %u: its word is %llu, not %llu, after %d ms; check: %s\n",
                    stream, (unsigned long long)atomic_load(&kit->words[stream]),
                    (unsigned long long)value, KIT_WAIT_MS,
                    why.code != 0 ? why.text : "all is well");
            return false;
        }
    }
    return true;
}

bool kit_sync(struct kit *kit, uint32_t stream) {
    uint64_t value = ++kit->sequence[stream];
    KIT_OK(kit, kit->table->signal(kit->seat, kit->streams[stream], value, &kit->err));
    return kit_wait(kit, stream, value);
}

struct native_region kit_device(struct kit *kit, uint64_t bytes) {
    struct native_region region;
    KIT_OK(kit, kit->table->region_create(kit->seat, ACRE_MEMORY_DEVICE, bytes, NULL, &region,
                                          &kit->err));
    return region;
}

struct native_region kit_host(struct kit *kit, enum acre_memory kind, uint64_t bytes,
                              void **ret_host) {
    struct native_region region;
    void *host = map_pages((bytes + 4095) / 4096 * 4096);
    KIT_OK(kit, kit->table->region_create(kit->seat, kind, (bytes + 4095) / 4096 * 4096, host,
                                          &region, &kit->err));
    *ret_host = host;
    return region;
}

void kit_copy(struct kit *kit, uint32_t stream, struct native_region to, struct native_region from,
              uint64_t bytes) {
    struct native_copy copy = {.to = to.handle, .from = from.handle, .bytes = bytes};
    KIT_OK(kit, kit->table->copy(kit->seat, kit->streams[stream], &copy, &kit->err));
}

uint64_t kit_kernel(struct kit *kit, const char *source, const char *name) {
    struct acre_buf binary;
    struct acre_buf log;
    acre_buf_init(&binary, 16 << 20);
    acre_buf_init(&log, 1 << 20);
    struct native_source from = {.text = source,
                                 .length = strlen(source),
                                 .options = "",
                                 .kernels = &name,
                                 .kernel_count = 1};
    int r = kit->table->compile(kit->seat, &from, &binary, &log, &kit->err);
    if (r == ACRE_EUNSUPPORTED) {
        acre_test_skip("no source: %s", kit->err.text);
    }
    if (r < 0) {
        fprintf(stderr, "log: %s\n", log.data);
    }
    KIT_OK(kit, r);
    uint64_t kernel = 0;
    struct kernel_facts facts;
    KIT_OK(kit,
           kit->table->load(kit->seat, binary.data, binary.length, &kit->kernel_module, &kit->err));
    KIT_OK(kit,
           kit->table->kernel(kit->seat, kit->kernel_module, name, &kernel, &facts, &kit->err));
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    return kernel;
}

struct native_launch kit_launch_make(struct kit_launch_room *room, uint64_t kernel,
                                     struct acre_grid grid, const struct native_region *buffers,
                                     uint32_t buffer_count, const uint32_t *values,
                                     uint32_t value_count) {
    REQUIRE(buffer_count + value_count <= ACRE_COUNT(room->args));
    for (uint32_t i = 0; i < buffer_count; i++) {
        room->args[i] =
            (struct native_arg){.kind = ACRE_NATIVE_BUFFER, .region = buffers[i].handle};
    }
    for (uint32_t i = 0; i < value_count; i++) {
        room->args[buffer_count + i] = (struct native_arg){
            .kind = ACRE_NATIVE_VALUE, .bytes = sizeof(uint32_t), .region = i * UINT64_C(16)};
        memcpy(room->extra + i * 16, &values[i], sizeof(values[i]));
    }
    return (struct native_launch){.kernel = kernel,
                                  .grid = grid,
                                  .args = room->args,
                                  .arg_count = buffer_count + value_count,
                                  .extra_bytes = value_count * 16,
                                  .extra = room->extra};
}

int kit_launch(struct kit *kit, uint32_t stream, uint64_t kernel, struct acre_grid grid,
               const struct native_region *buffers, uint32_t buffer_count, const uint32_t *values,
               uint32_t value_count) {
    struct kit_launch_room room;
    struct native_launch launch =
        kit_launch_make(&room, kernel, grid, buffers, buffer_count, values, value_count);
    return kit->table->launch(kit->seat, kit->streams[stream], &launch, &kit->err);
}
