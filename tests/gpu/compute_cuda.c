/* compute_cuda.c - every entry of the CUDA back end's table on a real GPU, one TAP line per rule.
 *
 * Run it where there is a GPU; elsewhere every line is a skip with the back end's own reason. Lines
 * that start with '#' show what the GPU returned. compute_cuda_trouble.c has the rest:
 * faults, exhaustion, resident kernels. GPU-1, GPU-2, GPU-3, GPU-5. */
#include "support/gpu_kit.h"

#include "core/rand.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef TABLE /* compute_hip is this file, too: see meson.build */
#define TABLE (&backend_cuda)
#endif

enum { ITEMS = 100000, MIB = 1 << 20 };

static const char source[] =
    "extern \"C\" __global__ void add(const float *a, const float *b, float *out, unsigned n) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) out[i] = a[i] + b[i];\n"
    "}\n"
    "extern \"C\" __global__ void scale(float *data, unsigned n, float by) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) data[i] *= by;\n"
    "}\n"
    "extern \"C\" __global__ void where(unsigned *out, unsigned width, unsigned height) {\n"
    "    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;\n"
    "    unsigned z = blockIdx.z * blockDim.z + threadIdx.z;\n"
    "    out[(z * height + y) * width + x] = x + 1000 * y + 1000000 * z;\n"
    "}\n"
    "extern \"C\" __global__ void total(const unsigned *in, unsigned *out) {\n"
    "    __shared__ unsigned part[256];\n"
    "    unsigned i = threadIdx.x;\n"
    "    part[i] = in[blockIdx.x * 256 + i];\n"
    "    __syncthreads();\n"
    "    for (unsigned step = 128; step > 0; step /= 2) {\n"
    "        if (i < step) part[i] += part[i + step];\n"
    "        __syncthreads();\n"
    "    }\n"
    "    if (i == 0) atomicAdd(out, part[0]);\n"
    "}\n"
    "__global__ void nothing() {}\n";

static struct acre_grid grid_for(uint32_t items) {
    return (struct acre_grid){.groups = {(items + 255) / 256, 1, 1}, .group = {256, 1, 1}};
}

static void fill_random(void *to, size_t bytes, uint64_t seed) {
    struct acre_rand rand;
    acre_rand_seed(&rand, seed);
    for (size_t i = 0; i < bytes; i++) {
        ((uint8_t *)to)[i] = (uint8_t)acre_rand_next(&rand);
    }
}

/* --- devices, memory ------------------------------------------------------------------------ */

static void devices_are_described(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    struct acre_compute_device device;
    uint32_t count = TABLE->count(kit.self);
    CHECK(count >= 1);
    for (uint32_t i = 0; i < count; i++) {
        TABLE->describe(kit.self, i, &device);
        fprintf(stderr,
                "%s: %s, %s; %s; %" PRIu64 " MiB, %u units, groups of %u, %u bytes local, "
                "capabilities 0x%x\n",
                device.backend, device.name, device.uuid, device.identity,
                device.memory_bytes / MIB, device.units, device.group_max, device.local_bytes,
                device.capabilities);
        CHECK_STR(device.backend, TABLE->name);
        CHECK(device.name[0] != '\0');
        CHECK(device.memory_bytes > 64 * MIB);
        CHECK(device.units > 0);
        CHECK(device.group_max >= 256);
        CHECK(device.local_bytes >= 16384);
        size_t uuid_length = strlen(device.uuid); /* AMD's have 16 digits and no dashes */
        CHECK(strncmp(device.uuid, "GPU-", 4) == 0 && (uuid_length == 40 || uuid_length == 20));
        CHECK((device.capabilities & ~TABLE->capabilities) == 0);
        CHECK(((device.capabilities & ACRE_CAN_GRAPH) != 0) == (TABLE->graph_create != NULL));
    }
    uint64_t unused = 0;
    uint64_t total = 0;
    KIT_OK(&kit, TABLE->memory(kit.seat, &unused, &total, &kit.err));
    fprintf(stderr, "%" PRIu64 " of %" PRIu64 " MiB free\n", unused / MIB, total / MIB);
    CHECK(total > 0 && unused <= total);
    KIT_OK(&kit, TABLE->check(kit.seat, &kit.err));
    kit_close(&kit);
}

static void copies_between_all_kinds_of_memory_keep_every_byte(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t bytes = 3 * MIB + 4096;
    void *in = NULL;
    void *out = NULL;
    void *pinned = NULL;
    void *mapped = NULL;
    struct native_region from = kit_host(&kit, ACRE_MEMORY_PINNED, bytes, &in);
    struct native_region to = kit_host(&kit, ACRE_MEMORY_PINNED, bytes, &out);
    struct native_region kinds[] = {kit_device(&kit, bytes), kit_device(&kit, bytes),
                                    kit_host(&kit, ACRE_MEMORY_PINNED, bytes, &pinned),
                                    kit_host(&kit, ACRE_MEMORY_MAPPED, bytes, &mapped)};
    for (uint32_t a = 0; a < ACRE_COUNT(kinds); a++) {
        for (uint32_t b = 0; b < ACRE_COUNT(kinds); b++) {
            acre_test_context("from kind %u to kind %u", a, b);
            fill_random(in, bytes, 100 + a * 10 + b);
            memset(out, 0, bytes);
            kit_copy(&kit, 0, kinds[a], from, bytes);
            if (a != b) {
                kit_copy(&kit, 0, kinds[b], kinds[a], bytes);
            }
            kit_copy(&kit, 0, to, kinds[b], bytes);
            REQUIRE(kit_sync(&kit, 0));
            CHECK(memcmp(in, out, bytes) == 0);
        }
    }
    acre_test_context("%s", "");
    struct native_copy part = {.to = kinds[0].handle,
                               .to_offset = 5,
                               .from = from.handle,
                               .from_offset = 77,
                               .bytes = 1001};
    KIT_OK(&kit, TABLE->copy(kit.seat, kit.streams[0], &part, &kit.err));
    kit_copy(&kit, 0, to, kinds[0], bytes);
    REQUIRE(kit_sync(&kit, 0));
    CHECK(memcmp((char *)in + 77, (char *)out + 5, 1001) == 0);
    kit_close(&kit);
}

static void fills_write_their_pattern_and_nothing_else(void) {
    static const struct {
        uint64_t pattern, offset, bytes;
        uint32_t pattern_bytes;
    } rows[] = {{0xab, 3, 1001, 1},
                {0xbeef, 2, 2002, 2},
                {0xdeadbeef, 4, 4004, 4},
                {0xdeadbeef, 6, 4004, 4},
                {0x1122334455667788, 8, 8, 8},
                {0x1122334455667788, 13, 80008, 8},
                {0x1122334455667788, 8, 800008, 8},
                {0x5555555555555555, 16, 1 << 20, 8},
                {0, 0, 2 << 20, 8}};
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t bytes = 2 * MIB;
    void *host = NULL;
    void *mapped = NULL;
    struct native_region out = kit_host(&kit, ACRE_MEMORY_PINNED, bytes, &host);
    struct native_region kinds[] = {kit_device(&kit, bytes),
                                    kit_host(&kit, ACRE_MEMORY_MAPPED, bytes, &mapped)};
    for (uint32_t i = 0; i < ACRE_COUNT(rows) * 2; i++) {
        const uint32_t row = i / 2;
        acre_test_context("row %u, %s memory", row, i % 2 == 0 ? "device" : "mapped");
        struct native_fill clear = {
            .to = kinds[i % 2].handle, .bytes = bytes, .pattern = 0x77, .pattern_bytes = 1};
        struct native_fill fill = {.to = kinds[i % 2].handle,
                                   .to_offset = rows[row].offset,
                                   .bytes = rows[row].bytes,
                                   .pattern = rows[row].pattern,
                                   .pattern_bytes = rows[row].pattern_bytes};
        KIT_OK(&kit, TABLE->fill(kit.seat, kit.streams[0], &clear, &kit.err));
        KIT_OK(&kit, TABLE->fill(kit.seat, kit.streams[0], &fill, &kit.err));
        kit_copy(&kit, 0, out, kinds[i % 2], bytes);
        REQUIRE(kit_sync(&kit, 0));
        uint64_t wrong = 0;
        for (uint64_t at = 0; at < bytes; at++) {
            bool inside = at >= fill.to_offset && at < fill.to_offset + fill.bytes;
            uint64_t byte = (at - fill.to_offset) % fill.pattern_bytes;
            uint8_t expected = (uint8_t)(inside ? fill.pattern >> (8 * byte) : 0x77);
            wrong += ((const uint8_t *)host)[at] != expected;
        }
        CHECK_U64(wrong, 0);
    }
    kit_close(&kit);
}

/* --- kernels -------------------------------------------------------------------------------- */

static void launches_of_one_dimension_compute(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t add = kit_kernel(&kit, source, "add");
    uint64_t bytes = ITEMS * sizeof(float);
    void *hosts[3];
    struct native_region pinned[3];
    struct native_region device[3];
    for (uint32_t i = 0; i < 3; i++) {
        pinned[i] = kit_host(&kit, ACRE_MEMORY_PINNED, bytes, &hosts[i]);
        device[i] = kit_device(&kit, bytes);
    }
    float *a = hosts[0];
    float *b = hosts[1];
    const float *sum = hosts[2];
    for (uint32_t i = 0; i < ITEMS; i++) {
        a[i] = (float)i * 0.5f;
        b[i] = (float)(ITEMS - i);
    }
    kit_copy(&kit, 0, device[0], pinned[0], bytes);
    kit_copy(&kit, 0, device[1], pinned[1], bytes);
    uint32_t n = ITEMS;
    KIT_OK(&kit, kit_launch(&kit, 0, add, grid_for(n), device, 3, &n, 1));
    kit_copy(&kit, 0, pinned[2], device[2], bytes);
    REQUIRE(kit_sync(&kit, 0));
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < ITEMS; i++) {
        wrong += sum[i] != a[i] + b[i];
    }
    CHECK_U64(wrong, 0);
    kit_close(&kit);
}

static void launches_of_three_dimensions_reach_every_item(void) {
    enum { WIDTH = 40, HEIGHT = 24, DEPTH = 6 };
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t where = kit_kernel(&kit, source, "where");
    void *host = NULL;
    uint64_t bytes = WIDTH * HEIGHT * DEPTH * sizeof(uint32_t);
    struct native_region out = kit_host(&kit, ACRE_MEMORY_MAPPED, bytes, &host);
    struct acre_grid grid = {.groups = {WIDTH / 8, HEIGHT / 4, DEPTH / 2}, .group = {8, 4, 2}};
    uint32_t values[] = {WIDTH, HEIGHT};
    KIT_OK(&kit, kit_launch(&kit, 0, where, grid, &out, 1, values, 2));
    REQUIRE(kit_sync(&kit, 0));
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < WIDTH * HEIGHT * DEPTH; i++) {
        uint32_t x = i % WIDTH;
        uint32_t y = i / WIDTH % HEIGHT;
        uint32_t z = i / WIDTH / HEIGHT;
        wrong += ((const uint32_t *)host)[i] != x + 1000 * y + 1000000 * z;
    }
    CHECK_U64(wrong, 0);
    kit_close(&kit);
}

static void local_memory_barriers_and_atomics_work(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t total = kit_kernel(&kit, source, "total");
    void *in = NULL;
    void *out = NULL;
    struct native_region regions[] = {
        kit_host(&kit, ACRE_MEMORY_MAPPED, 256 * 100 * sizeof(uint32_t), &in),
        kit_host(&kit, ACRE_MEMORY_MAPPED, sizeof(uint32_t), &out)};
    uint32_t expected = 0;
    for (uint32_t i = 0; i < 256 * 100; i++) {
        ((uint32_t *)in)[i] = i * 7;
        expected += i * 7;
    }
    struct native_region device = kit_device(&kit, 4096);
    struct native_fill clear = {.to = device.handle, .bytes = 4096, .pattern_bytes = 4};
    KIT_OK(&kit, TABLE->fill(kit.seat, kit.streams[0], &clear, &kit.err));
    struct native_region args[] = {regions[0], device};
    KIT_OK(&kit, kit_launch(&kit, 0, total, grid_for(25600), args, 2, NULL, 0));
    kit_copy(&kit, 0, regions[1], device, 4);
    REQUIRE(kit_sync(&kit, 0));
    CHECK_U64(*(uint32_t *)out, expected);
    kit_close(&kit);
}

static void programs_tell_their_kernels_and_facts(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    kit_kernel(&kit, source, "total");
    struct kernel_facts facts = {0};
    uint64_t kernel = 0;
    KIT_OK(&kit, TABLE->kernel(kit.seat, kit.kernel_module, "total", &kernel, &facts, &kit.err));
    fprintf(stderr, "total: groups of %u, %u bytes local, %u registers\n", facts.group_max,
            facts.local_bytes, facts.registers);
    CHECK(facts.group_max >= 256);
    CHECK(facts.local_bytes >= 1024);
    CHECK(facts.registers > 0);
    /* Not extern "C": C++ calls it _Z7nothingv, its user does not. */
    KIT_OK(&kit, TABLE->kernel(kit.seat, kit.kernel_module, "nothing", &kernel, &facts, &kit.err));
    KIT_OK(&kit, kit_launch(&kit, 0, kernel, grid_for(1), NULL, 0, NULL, 0));
    CHECK(kit_sync(&kit, 0));
    CHECK_EQ(TABLE->kernel(kit.seat, kit.kernel_module, "absent", &kernel, &facts, &kit.err),
             ACRE_ENOTFOUND);
    CHECK_HAS(kit.err.text, "absent");
    fprintf(stderr, "no kernel: %s\n", kit.err.text);
    TABLE->unload(kit.seat, kit.kernel_module);
    kit_close(&kit);
}

static void bad_programs_are_refused_with_reasons(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    struct acre_buf binary;
    struct acre_buf log;
    acre_buf_init(&binary, 16 << 20);
    acre_buf_init(&log, 1 << 20);
    const char wrong[] = "__global__ void f(float *a) {\n    a[0] = ;\n}\n";
    struct native_source from = {.text = wrong, .length = sizeof(wrong) - 1, .options = ""};
    int r = TABLE->compile(kit.seat, &from, &binary, &log, &kit.err);
    if (r == ACRE_EUNSUPPORTED) {
        acre_test_skip("no source: %s", kit.err.text);
    }
    CHECK_EQ(r, ACRE_EINVALID);
    CHECK_HAS(kit.err.text, "2"); /* its line */
    fprintf(stderr, "does not compile: %s\n", kit.err.text);
    from.text = source;
    from.length = sizeof(source) - 1;
    KIT_OK(&kit, TABLE->compile(kit.seat, &from, &binary, &log, &kit.err));
    uint64_t module = 0;
    CHECK_EQ(TABLE->load(kit.seat, "rubbish", 7, &module, &kit.err), ACRE_ECORRUPT);
    CHECK_EQ(TABLE->load(kit.seat, "rubbish", 8, &module, &kit.err), ACRE_ECORRUPT);
    fprintf(stderr, "rubbish: %s\n", kit.err.text);
    CHECK_EQ(TABLE->load(kit.seat, binary.data, binary.length / 2, &module, &kit.err),
             ACRE_ECORRUPT);
    fprintf(stderr, "half of it: %s\n", kit.err.text);
    KIT_OK(&kit, TABLE->load(kit.seat, binary.data, binary.length, &module, &kit.err));
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    kit_close(&kit);
}

static void bad_launches_are_refused_and_the_stream_goes_on(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t nothing = kit_kernel(&kit, source, "nothing");
    struct acre_grid huge = {.groups = {1, 1, 1}, .group = {4096, 1, 1}};
    CHECK_EQ(kit_launch(&kit, 0, nothing, huge, NULL, 0, NULL, 0), ACRE_EINVALID);
    fprintf(stderr, "a group of 4096: %s\n", kit.err.text);
    CHECK_HAS(kit.err.text, "nothing");
    struct native_arg local = {.kind = ACRE_NATIVE_LOCAL, .bytes = 64};
    struct native_launch launch = {
        .kernel = nothing, .grid = grid_for(1), .args = &local, .arg_count = 1};
    CHECK_EQ(TABLE->launch(kit.seat, kit.streams[0], &launch, &kit.err), ACRE_EUNSUPPORTED);
    fprintf(stderr, "local memory: %s\n", kit.err.text);
    KIT_OK(&kit, kit_launch(&kit, 0, nothing, grid_for(1), NULL, 0, NULL, 0));
    CHECK(kit_sync(&kit, 0));
    KIT_OK(&kit, TABLE->check(kit.seat, &kit.err));
    kit_close(&kit);
}

/* --- streams -------------------------------------------------------------------------------- */

static void a_stream_waits_for_the_word_of_another(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    kit_stream(&kit, 1);
    uint64_t scale = kit_kernel(&kit, source, "scale");
    void *host = NULL;
    struct native_region data = kit_host(&kit, ACRE_MEMORY_MAPPED, ITEMS * sizeof(float), &host);
    for (uint32_t i = 0; i < ITEMS; i++) {
        ((float *)host)[i] = 1;
    }
    /* Stream 1 waits for the word 15, which the host writes, then works; stream 0 waits for it. */
    float three = 3;
    uint32_t values[] = {ITEMS, 0};
    memcpy(&values[1], &three, sizeof(three));
    KIT_OK(&kit,
           TABLE->wait(kit.seat, kit.streams[1], kit.words_region.handle, 15 * 8, 9, &kit.err));
    KIT_OK(&kit, kit_launch(&kit, 1, scale, grid_for(ITEMS), &data, 1, values, 2));
    KIT_OK(&kit, TABLE->signal(kit.seat, kit.streams[1], 7, &kit.err));
    KIT_OK(&kit,
           TABLE->wait(kit.seat, kit.streams[0], kit.words_region.handle, 1 * 8, 7, &kit.err));
    KIT_OK(&kit, kit_launch(&kit, 0, scale, grid_for(ITEMS), &data, 1, values, 2));
    KIT_OK(&kit, TABLE->signal(kit.seat, kit.streams[0], 1, &kit.err));
    uint64_t begun_ns = kit_now_ns();
    while (kit_now_ns() - begun_ns < 20000000) { /* long enough to see that nothing goes on */
        CHECK_U64(atomic_load(&kit.words[0]) + atomic_load(&kit.words[1]), 0);
    }
    atomic_store(&kit.words[15], 10); /* more than 9 */
    REQUIRE(kit_wait(&kit, 0, 1));
    CHECK_U64(atomic_load(&kit.words[1]), 7);
    CHECK_NEAR((double)((float *)host)[ITEMS - 1], 9.0, 0);
    kit_close(&kit);
}

static void notify_adds_one_to_the_eventfd(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    int fd = eventfd(0, EFD_CLOEXEC);
    REQUIRE(fd >= 0);
    KIT_OK(&kit, TABLE->notify(kit.seat, kit.streams[0], fd, &kit.err));
    KIT_OK(&kit, TABLE->notify(kit.seat, kit.streams[0], fd, &kit.err));
    REQUIRE(kit_sync(&kit, 0));
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    REQUIRE_EQ(poll(&polled, 1, KIT_WAIT_MS), 1);
    uint64_t told = 0;
    CHECK_EQ(read(fd, &told, sizeof(told)), (ssize_t)sizeof(told));
    CHECK_U64(told, 2);
    close(fd);
    kit_close(&kit);
}

/* --- graphs --------------------------------------------------------------------------------- */

static void skip_unless(bool has, const char *what) {
    if (!has) {
        acre_test_skip("the back end has no %s", what);
    }
}

static void graphs_replay_fills_launches_and_copies_in_order(void) {
    skip_unless(TABLE->graph_create != NULL, "graphs");
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t add = kit_kernel(&kit, source, "add");
    uint64_t scale = kit_kernel(&kit, source, "scale");
    uint64_t bytes = ITEMS * sizeof(float);
    void *host = NULL;
    struct native_region out = kit_host(&kit, ACRE_MEMORY_PINNED, bytes, &host);
    struct native_region data[] = {kit_device(&kit, bytes), kit_device(&kit, bytes),
                                   kit_device(&kit, bytes)};
    float two = 2;
    float five = 5;
    uint32_t values[] = {ITEMS, 0};
    memcpy(&values[1], &two, sizeof(two));
    struct kit_launch_room rooms[3];
    uint32_t first[] = {0};
    uint32_t both[] = {1, 2};
    uint32_t third[] = {3};
    /* a = {1.0, 2.0, ...} by a pattern of 8 bytes; b = 3.0; a *= 2; out = a + b */
    const struct native_node nodes[] = {
        {.kind = ACRE_NODE_FILL,
         .fill = {data[0].handle, 0, bytes, UINT64_C(0x400000003f800000), 8}},
        {.kind = ACRE_NODE_LAUNCH,
         .launch = kit_launch_make(&rooms[0], scale, grid_for(ITEMS), &data[0], 1, values, 2),
         .after = first,
         .after_count = 1},
        {.kind = ACRE_NODE_FILL, .fill = {data[1].handle, 0, bytes, 0x40400000, 4}},
        {.kind = ACRE_NODE_LAUNCH,
         .launch = kit_launch_make(&rooms[1], add, grid_for(ITEMS), data, 3, values, 1),
         .after = both,
         .after_count = 2},
        {.kind = ACRE_NODE_COPY,
         .copy = {out.handle, 0, data[2].handle, 0, bytes},
         .after = third,
         .after_count = 1}};
    uint64_t graph = 0;
    KIT_OK(&kit, TABLE->graph_create(kit.seat, nodes, ACRE_COUNT(nodes), &graph, &kit.err));
    for (int round = 0; round < 3; round++) {
        memset(host, 0, bytes);
        KIT_OK(&kit, TABLE->graph_launch(kit.seat, kit.streams[0], graph, &kit.err));
        REQUIRE(kit_sync(&kit, 0));
        CHECK_NEAR((double)((float *)host)[0], 5.0, 0);
        CHECK_NEAR((double)((float *)host)[ITEMS - 1], 7.0, 0);
    }
    memcpy(&values[1], &five, sizeof(five));
    struct native_launch other =
        kit_launch_make(&rooms[2], scale, grid_for(ITEMS), &data[0], 1, values, 2);
    KIT_OK(&kit, TABLE->graph_update(kit.seat, graph, 1, &other, &kit.err));
    KIT_OK(&kit, TABLE->graph_launch(kit.seat, kit.streams[0], graph, &kit.err));
    REQUIRE(kit_sync(&kit, 0));
    CHECK_NEAR((double)((float *)host)[0], 8.0, 0);
    CHECK_NEAR((double)((float *)host)[ITEMS - 1], 13.0, 0);
    CHECK_EQ(TABLE->graph_update(kit.seat, graph, 0, &other, &kit.err), ACRE_EINVALID);
    CHECK_EQ(TABLE->graph_update(kit.seat, graph, 99, &other, &kit.err), ACRE_EINVALID);
    TABLE->graph_destroy(kit.seat, graph);
    kit_close(&kit);
}

static void graphs_take_mapped_memory_too(void) {
    skip_unless(TABLE->graph_create != NULL, "graphs");
    struct kit kit;
    kit_open(&kit, TABLE);
    void *host = NULL;
    struct native_region mapped = kit_host(&kit, ACRE_MEMORY_MAPPED, 8192, &host);
    uint32_t first[] = {0};
    const struct native_node nodes[] = {
        {.kind = ACRE_NODE_FILL, .fill = {mapped.handle, 0, 4096, 0x1111111122222222, 8}},
        {.kind = ACRE_NODE_COPY,
         .copy = {mapped.handle, 4096, mapped.handle, 0, 4096},
         .after = first,
         .after_count = 1}};
    uint64_t graph = 0;
    KIT_OK(&kit, TABLE->graph_create(kit.seat, nodes, ACRE_COUNT(nodes), &graph, &kit.err));
    KIT_OK(&kit, TABLE->graph_launch(kit.seat, kit.streams[0], graph, &kit.err));
    REQUIRE(kit_sync(&kit, 0));
    CHECK_U64(((uint64_t *)host)[0], 0x1111111122222222);
    CHECK_U64(((uint64_t *)host)[1023], 0x1111111122222222);
    kit_close(&kit);
}

/* --- times ---------------------------------------------------------------------------------- */

static void profiled_streams_tell_names_and_times(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t scale = kit_kernel(&kit, source, "scale");
    void *host = NULL;
    uint64_t bytes = 16 * MIB;
    struct native_region pinned = kit_host(&kit, ACRE_MEMORY_PINNED, bytes, &host);
    struct native_region device = kit_device(&kit, bytes);
    uint32_t values[] = {ITEMS, 0x3f800000};
    struct acre_timing timings[8];
    uint32_t count = 99;
    KIT_OK(&kit, TABLE->timings(kit.seat, kit.streams[0], timings, 8, &count, &kit.err));
    CHECK_U64(count, 0);
    KIT_OK(&kit, TABLE->profile(kit.seat, kit.streams[0], true, &kit.err));
    kit_copy(&kit, 0, device, pinned, bytes);
    KIT_OK(&kit, kit_launch(&kit, 0, scale, grid_for(ITEMS), &device, 1, values, 2));
    struct native_fill fill = {.to = device.handle, .bytes = bytes, .pattern_bytes = 4};
    KIT_OK(&kit, TABLE->fill(kit.seat, kit.streams[0], &fill, &kit.err));
    kit_copy(&kit, 0, pinned, device, bytes);
    REQUIRE(kit_sync(&kit, 0));
    KIT_OK(&kit, TABLE->profile(kit.seat, kit.streams[0], false, &kit.err));
    kit_copy(&kit, 0, pinned, device, bytes); /* not measured */
    REQUIRE(kit_sync(&kit, 0));
    static const char *const names[] = {"copy in", "scale", "fill", "copy out"};
    KIT_OK(&kit, TABLE->timings(kit.seat, kit.streams[0], timings, 3, &count, &kit.err));
    REQUIRE_EQ(count, 3);
    KIT_OK(&kit, TABLE->timings(kit.seat, kit.streams[0], timings + 3, 5, &count, &kit.err));
    REQUIRE_EQ(count, 1);
    for (uint32_t i = 0; i < ACRE_COUNT(names); i++) {
        fprintf(stderr, "%-9s %9" PRIu64 " bytes, queued %8.1f us, running %8.1f us\n",
                timings[i].name, timings[i].bytes, timings[i].queued_us, timings[i].running_us);
        CHECK_STR(timings[i].name, names[i]);
        CHECK(timings[i].running_us > 0 && timings[i].running_us < 1e6);
        CHECK(timings[i].queued_us < 1e6);
    }
    CHECK_U64(timings[0].bytes, bytes);
    CHECK(timings[3].queued_us > timings[0].running_us / 2); /* it waited for the first copy */
    kit_close(&kit);
}

/* --- files, other processes, other devices -------------------------------------------------- */

static void files_go_straight_to_the_device_and_back(void) {
    skip_unless(TABLE->transfer != NULL, "files");
    struct kit kit;
    kit_open(&kit, TABLE);
    uint64_t bytes = 8 * MIB;
    void *in = NULL;
    void *out = NULL;
    struct native_region pinned = kit_host(&kit, ACRE_MEMORY_PINNED, bytes, &out);
    struct native_region device = kit_device(&kit, bytes);
    in = malloc(bytes);
    REQUIRE(in != NULL);
    fill_random(in, bytes, 5);
    char path[] = "/tmp/acre-cufile-XXXXXX";
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    REQUIRE_EQ(write(fd, in, bytes), (ssize_t)bytes);
    fsync(fd);
    close(fd);
    char how[96] = "";
    int r = TABLE->transfer(kit.seat, path, 0, device.handle, 0, bytes, false, how, &kit.err);
    if (r == ACRE_EUNSUPPORTED) {
        unlink(path);
        acre_test_skip("not here: %s", kit.err.text);
    }
    KIT_OK(&kit, r);
    fprintf(stderr, "path taken: %s\n", how);
    kit_copy(&kit, 0, pinned, device, bytes);
    REQUIRE(kit_sync(&kit, 0));
    CHECK(memcmp(in, out, bytes) == 0);
    /* Odd offsets and sizes; then out to the file again. */
    KIT_OK(&kit,
           TABLE->transfer(kit.seat, path, 4097, device.handle, 3, 100001, false, how, &kit.err));
    kit_copy(&kit, 0, pinned, device, bytes);
    REQUIRE(kit_sync(&kit, 0));
    CHECK(memcmp((char *)in + 4097, (char *)out + 3, 100001) == 0);
    KIT_OK(&kit, TABLE->transfer(kit.seat, path, MIB, device.handle, 0, MIB, true, how, &kit.err));
    KIT_OK(&kit,
           TABLE->transfer(kit.seat, path, MIB, device.handle, 4 * MIB, MIB, false, how, &kit.err));
    kit_copy(&kit, 0, pinned, device, bytes);
    REQUIRE(kit_sync(&kit, 0));
    CHECK(memcmp((char *)out + 4 * MIB, out, MIB) == 0);
    CHECK_EQ(
        TABLE->transfer(kit.seat, path, bytes - 1, device.handle, 0, 4096, false, how, &kit.err),
        ACRE_EIO);
    fprintf(stderr, "too short: %s\n", kit.err.text);
    CHECK_EQ(TABLE->transfer(kit.seat, "/tmp/acre/absent", 0, device.handle, 0, 4096, false, how,
                             &kit.err),
             ACRE_ENOTFOUND);
    unlink(path);
    free(in);
    kit_close(&kit);
}

/* The other process: it opens the ticket it reads, and adds 1 to each byte of the memory. */
static int other_process(int from, int to) {
    struct kit kit;
    uint8_t ticket[64];
    if (read(from, ticket, sizeof(ticket)) != (ssize_t)sizeof(ticket)) {
        return 0; /* the first one skipped */
    }
    kit_open(&kit, TABLE);
    struct native_region theirs;
    KIT_OK(&kit, TABLE->region_import(kit.seat, ticket, &theirs, &kit.err));
    void *host = NULL;
    struct native_region pinned = kit_host(&kit, ACRE_MEMORY_PINNED, MIB, &host);
    kit_copy(&kit, 0, pinned, theirs, MIB);
    REQUIRE(kit_sync(&kit, 0));
    for (uint32_t i = 0; i < MIB; i++) {
        ((uint8_t *)host)[i]++;
    }
    kit_copy(&kit, 0, theirs, pinned, MIB);
    REQUIRE(kit_sync(&kit, 0));
    TABLE->region_destroy(kit.seat, theirs.handle);
    kit_close(&kit);
    return write(to, "x", 1) == 1 ? 0 : 1;
}

static void regions_are_shared_between_processes(void) {
    int there[2];
    int back[2];
    REQUIRE(pipe(there) == 0 && pipe(back) == 0);
    pid_t child = fork(); /* before the driver is loaded: it does not survive a fork */
    REQUIRE(child >= 0);
    if (child == 0) {
        close(there[1]);
        _exit(other_process(there[0], back[1]));
    }
    close(there[0]);
    close(back[1]);
    struct kit kit;
    kit_open(&kit, TABLE);
    void *host = NULL;
    struct native_region pinned = kit_host(&kit, ACRE_MEMORY_PINNED, MIB, &host);
    kit_device(&kit, MIB); /* so that it is not the first of the driver's block */
    struct native_region device = kit_device(&kit, MIB);
    memset(host, 41, MIB);
    kit_copy(&kit, 0, device, pinned, MIB);
    REQUIRE(kit_sync(&kit, 0));
    uint8_t ticket[64];
    CHECK_EQ(TABLE->region_export(kit.seat, pinned.handle, ticket, &kit.err), ACRE_EUNSUPPORTED);
    KIT_OK(&kit, TABLE->region_export(kit.seat, device.handle, ticket, &kit.err));
    REQUIRE_EQ(write(there[1], ticket, sizeof(ticket)), (ssize_t)sizeof(ticket));
    char done = 0;
    CHECK_EQ(read(back[0], &done, 1), 1);
    kit_copy(&kit, 0, pinned, device, MIB);
    REQUIRE(kit_sync(&kit, 0));
    CHECK_EQ(((uint8_t *)host)[0], 42);
    CHECK_EQ(((uint8_t *)host)[MIB - 1], 42);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
    kit_close(&kit);
}

static void regions_of_two_devices_are_copied(void) {
    struct kit kit;
    kit_open(&kit, TABLE);
    if (TABLE->count(kit.self) < 2) {
        kit_close(&kit);
        acre_test_skip("there is only one device");
    }
    void *other = NULL;
    KIT_OK(&kit, TABLE->seat_open(kit.self, 1, &other, &kit.err));
    struct native_region there;
    KIT_OK(&kit, TABLE->region_create(other, ACRE_MEMORY_DEVICE, MIB, NULL, &there, &kit.err));
    void *host = NULL;
    struct native_region pinned = kit_host(&kit, ACRE_MEMORY_PINNED, MIB, &host);
    struct native_region here = kit_device(&kit, MIB);
    memset(host, 17, MIB);
    kit_copy(&kit, 0, here, pinned, MIB);
    kit_copy(&kit, 0, there, here, MIB);
    memset(host, 0, 1);
    kit_copy(&kit, 0, pinned, there, MIB);
    REQUIRE(kit_sync(&kit, 0));
    CHECK_EQ(((uint8_t *)host)[MIB - 1], 17);
    TABLE->seat_close(other);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    {"devices_are_described", devices_are_described, 0},
    {"copies_between_all_kinds_of_memory_keep_every_byte",
     copies_between_all_kinds_of_memory_keep_every_byte, 0},
    {"fills_write_their_pattern_and_nothing_else", fills_write_their_pattern_and_nothing_else, 0},
    {"launches_of_one_dimension_compute", launches_of_one_dimension_compute, 0},
    {"launches_of_three_dimensions_reach_every_item", launches_of_three_dimensions_reach_every_item,
     0},
    {"local_memory_barriers_and_atomics_work", local_memory_barriers_and_atomics_work, 0},
    {"programs_tell_their_kernels_and_facts", programs_tell_their_kernels_and_facts, 0},
    {"bad_programs_are_refused_with_reasons", bad_programs_are_refused_with_reasons, 0},
    {"bad_launches_are_refused_and_the_stream_goes_on",
     bad_launches_are_refused_and_the_stream_goes_on, 0},
    {"a_stream_waits_for_the_word_of_another", a_stream_waits_for_the_word_of_another, 0},
    {"notify_adds_one_to_the_eventfd", notify_adds_one_to_the_eventfd, 0},
    {"graphs_replay_fills_launches_and_copies_in_order",
     graphs_replay_fills_launches_and_copies_in_order, 0},
    {"graphs_take_mapped_memory_too", graphs_take_mapped_memory_too, 0},
    {"profiled_streams_tell_names_and_times", profiled_streams_tell_names_and_times, 0},
    {"files_go_straight_to_the_device_and_back", files_go_straight_to_the_device_and_back, 0},
    {"regions_are_shared_between_processes", regions_are_shared_between_processes, 0},
    {"regions_of_two_devices_are_copied", regions_of_two_devices_are_copied, 0},
};
ACRE_TEST_MAIN(tests)
