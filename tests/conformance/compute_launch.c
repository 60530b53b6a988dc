/* compute_launch.c - launches: grids, ids, local memory, barriers, arguments, helpers. All exact,
 * but for where a tolerance is stated. */
#include "conformance/compute_suite.h"

#include <math.h>
#include <stdlib.h>

static void launches_add_vectors(void) {
    static const uint32_t counts[] = {1, 2, 255, 256, 257, 1000, 65537, 1000000};
    struct kit kit;
    kit_open(&kit);
    for (size_t i = 0; i < ACRE_COUNT(counts); i++) {
        uint32_t n = counts[i];
        size_t bytes = n * sizeof(float);
        acre_test_context("%u items", n);
        float *a = malloc(bytes);
        float *b = malloc(bytes);
        float *c = malloc(bytes);
        REQUIRE(a != NULL && b != NULL && c != NULL);
        kit_random_floats(&kit, a, n, -1e3, 1e3);
        kit_random_floats(&kit, b, n, -1e3, 1e3);
        struct acre_buffer da = kit_data(&kit, a, bytes);
        struct acre_buffer db = kit_data(&kit, b, bytes);
        struct acre_buffer dc = kit_buffer(&kit, ACRE_MEMORY_DEVICE, bytes);
        RUN(&kit, "add", acre_grid_for(n), ACRE_BUFFER(da), ACRE_BUFFER(db), ACRE_BUFFER(dc),
            ACRE_U32(n));
        kit_get(&kit, c, dc, bytes);
        for (uint32_t j = 0; j < n; j++) {
            a[j] += b[j]; /* one rounding: exact everywhere */
        }
        CHECK_SAME(c, a, bytes);
        kit_free(&kit, da);
        kit_free(&kit, db);
        kit_free(&kit, dc);
        free(a);
        free(b);
        free(c);
    }
    kit_close(&kit);
}

static void check_ids(const uint64_t *got, const uint32_t groups[3], const uint32_t group[3]) {
    uint64_t size[3];
    for (int d = 0; d < 3; d++) {
        size[d] = (uint64_t)groups[d] * group[d];
    }
    for (uint64_t i = 0; i < size[0] * size[1] * size[2]; i++) {
        uint64_t at[3] = {i % size[0], i / size[0] % size[1], i / size[0] / size[1]};
        for (int d = 0; d < 3; d++) {
            const uint64_t *item = got + i * 18;
            bool right = item[d] == at[d] && item[3 + d] == at[d] % group[d] &&
                         item[6 + d] == at[d] / group[d] && item[9 + d] == size[d] &&
                         item[12 + d] == group[d] && item[15 + d] == groups[d];
            if (!right) {
                acre_test_context("item %llu, dimension %d", (unsigned long long)i, d);
                CHECK(right);
                return;
            }
        }
    }
}

static void launches_of_all_dimensions_know_their_ids(void) {
    static const uint32_t grids[][6] = {
        {1, 1, 1, 1, 1, 1},  {7, 1, 1, 1, 1, 1},  {1, 1, 1, 256, 1, 1},
        {5, 1, 1, 33, 1, 1}, {3, 5, 1, 8, 4, 1},  {2, 3, 4, 4, 2, 3},
        {1, 1, 9, 1, 1, 7},  {1, 6, 1, 1, 13, 1}, {4, 0, 0, 16, 0, 0} /* zeros of y and z mean 1 */,
        {31, 2, 1, 1, 64, 2}};
    struct kit kit;
    kit_open(&kit);
    for (size_t i = 0; i < ACRE_COUNT(grids); i++) {
        struct acre_grid grid;
        memcpy(grid.groups, grids[i], sizeof(grid.groups));
        memcpy(grid.group, grids[i] + 3, sizeof(grid.group));
        uint32_t groups[3];
        uint32_t group[3];
        uint64_t items = 1;
        for (int d = 0; d < 3; d++) {
            groups[d] = ACRE_MAX(grid.groups[d], 1u);
            group[d] = ACRE_MAX(grid.group[d], 1u);
            items *= (uint64_t)groups[d] * group[d];
        }
        size_t bytes = items * 18 * sizeof(uint64_t);
        struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, bytes);
        uint64_t *got = malloc(bytes);
        REQUIRE(got != NULL);
        OK(acre_fill(kit.stream, out, 0, bytes, 0xff, 1, ERR));
        RUN(&kit, "ids", grid, ACRE_BUFFER(out));
        kit_get(&kit, got, out, bytes);
        acre_test_context("grid %zu", i);
        check_ids(got, groups, group);
        free(got);
        kit_free(&kit, out);
    }
    kit_close(&kit);
}

static void launches_on_mapped_memory(void) {
    struct kit kit;
    kit_open(&kit);
    enum { N = 5000 };
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_MAPPED, N * sizeof(uint32_t));
    uint32_t *host = acre_buffer_host(kit.context, buffer);
    REQUIRE(host != NULL);
    static uint32_t expected[N];
    for (uint32_t i = 0; i < N; i++) {
        host[i] = (uint32_t)acre_rand_next(&kit.rand);
        expected[i] = host[i] * 7 + 3;
    }
    RUN(&kit, "affine", acre_grid_for(N), ACRE_BUFFER(buffer), ACRE_U32(7), ACRE_U32(3),
        ACRE_U32(N));
    OK(acre_stream_sync(kit.stream, ACRE_FOREVER, ERR));
    CHECK_SAME(host, expected, sizeof(expected));
    kit_free(&kit, buffer);
    kit_close(&kit);
}

static void launches_on_parts_of_buffers(void) {
    struct kit kit;
    kit_open(&kit);
    enum { N = 4096 };
    static uint32_t data[N], back[N];
    kit_random(&kit, data, sizeof(data));
    struct acre_buffer buffer = kit_data(&kit, data, sizeof(data));
    RUN(&kit, "affine", acre_grid_for(100), ACRE_BUFFER_AT(buffer, 1000 * 4), ACRE_U32(3),
        ACRE_U32(1), ACRE_U32(100));
    for (uint32_t i = 1000; i < 1100; i++) {
        data[i] = data[i] * 3 + 1;
    }
    kit_get(&kit, back, buffer, sizeof(back));
    CHECK_SAME(back, data, sizeof(data));
    kit_free(&kit, buffer);
    kit_close(&kit);
}

/* Where a device takes parts at some addresses only, that is told: at once or by who waits. */
static void launches_on_odd_parts_work_or_are_told(void) {
    struct kit kit;
    kit_open(&kit);
    enum { N = 64 };
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_MAPPED, N * 4);
    uint32_t *host = acre_buffer_host(kit.context, buffer);
    struct acre_kernel *kernel = kit_kernel(&kit, "affine");
    for (uint32_t at = 0; at < 33; at++) {
        for (uint32_t i = 0; i < N; i++) {
            host[i] = i;
        }
        struct acre_error *err = ERR;
        int r = acre_launch(
            kit.stream, kernel, kit_grid(1, 4),
            ARGS(ACRE_BUFFER_AT(buffer, at * 4), ACRE_U32(2), ACRE_U32(1), ACRE_U32(4)), err);
        r = r == 0 ? acre_stream_sync(kit.stream, ACRE_FOREVER, err) : r;
        acre_test_context("at word %u: %s", at, err->text);
        CHECK(r == 0 || (r == ACRE_EUNSUPPORTED && strstr(err->text, "accepted") != NULL));
        CHECK(r == 0 || at != 0);
        for (uint32_t i = 0; i < N; i++) {
            bool is_changed = r == 0 && i >= at && i < at + 4;
            CHECK_U64(host[i], is_changed ? i * 2 + 1 : i);
        }
    }
    acre_test_context("%s", "");
    kit_free(&kit, buffer);
    kit_close(&kit);
}

static void local_memory_reduces(void) {
    struct kit kit;
    kit_open(&kit);
    enum { N = 100000, GROUPS = (N + 255) / 256 };
    static uint32_t data[N], parts[GROUPS];
    kit_random(&kit, data, sizeof(data));
    struct acre_buffer in = kit_data(&kit, data, sizeof(data));
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(parts));
    RUN(&kit, "reduce", acre_grid_for(N), ACRE_BUFFER(in), ACRE_BUFFER(out), ACRE_U32(N));
    kit_get(&kit, parts, out, sizeof(parts));
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t sum = 0;
        for (uint32_t i = g * 256; i < ACRE_MIN((g + 1) * 256, (uint32_t)N); i++) {
            sum += data[i];
        }
        acre_test_context("group %u", g);
        CHECK_U64(parts[g], sum);
    }
    kit_free(&kit, in);
    kit_free(&kit, out);
    kit_close(&kit);
}

static void local_memory_transposes(void) {
    static const uint32_t shapes[][2] = {{16, 16}, {1, 1}, {100, 37}, {257, 500}};
    struct kit kit;
    kit_open(&kit);
    for (size_t s = 0; s < ACRE_COUNT(shapes); s++) {
        uint32_t width = shapes[s][0];
        uint32_t height = shapes[s][1];
        size_t bytes = (size_t)width * height * sizeof(float);
        float *data = malloc(bytes);
        float *back = malloc(bytes);
        float *expected = malloc(bytes);
        REQUIRE(data != NULL && back != NULL && expected != NULL);
        kit_random(&kit, data, bytes);
        for (uint32_t y = 0; y < height; y++) {
            for (uint32_t x = 0; x < width; x++) {
                memcpy(&expected[x * height + y], &data[y * width + x], sizeof(float));
            }
        }
        struct acre_buffer in = kit_data(&kit, data, bytes);
        struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, bytes);
        struct acre_grid grid = {.groups = {(width + 15) / 16, (height + 15) / 16, 1},
                                 .group = {16, 16, 1}};
        RUN(&kit, "transpose", grid, ACRE_BUFFER(in), ACRE_BUFFER(out), ACRE_U32(width),
            ACRE_U32(height));
        kit_get(&kit, back, out, bytes);
        acre_test_context("%u x %u", width, height);
        CHECK_SAME(back, expected, bytes);
        kit_free(&kit, in);
        kit_free(&kit, out);
        free(data);
        free(back);
        free(expected);
    }
    kit_close(&kit);
}

static void local_memory_scans(void) {
    struct kit kit;
    kit_open(&kit);
    enum { GROUPS = 40, N = GROUPS * 256 };
    static uint32_t data[N], back[N], expected[N];
    kit_random(&kit, data, sizeof(data));
    for (uint32_t i = 0; i < N; i++) {
        expected[i] = data[i] + (i % 256 != 0 ? expected[i - 1] : 0);
    }
    struct acre_buffer in = kit_data(&kit, data, sizeof(data));
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(data));
    RUN(&kit, "scan", kit_grid(GROUPS, 256), ACRE_BUFFER(in), ACRE_BUFFER(out));
    kit_get(&kit, back, out, sizeof(back));
    CHECK_SAME(back, expected, sizeof(expected));
    kit_free(&kit, in);
    kit_free(&kit, out);
    kit_close(&kit);
}

static void barriers_hold_in_groups_of_every_size(void) {
    static const uint32_t group_sizes[] = {1, 2, 3, 31, 32, 33, 64, 100, 255, 256};
    struct kit kit;
    kit_open(&kit);
    for (size_t i = 0; i < ACRE_COUNT(group_sizes); i++) {
        uint32_t size = group_sizes[i];
        uint32_t n = size * 13;
        static uint32_t data[256 * 13], back[256 * 13], expected[256 * 13];
        kit_random(&kit, data, n * sizeof(uint32_t));
        for (uint32_t j = 0; j < n; j++) {
            uint32_t base = j / size * size;
            expected[j] = data[base + (j - base + 3) % size] ^ data[j];
        }
        struct acre_buffer in = kit_data(&kit, data, n * sizeof(uint32_t));
        struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, n * sizeof(uint32_t));
        RUN(&kit, "turn", kit_grid(13, size), ACRE_BUFFER(in), ACRE_BUFFER(out));
        kit_get(&kit, back, out, n * sizeof(uint32_t));
        acre_test_context("groups of %u", size);
        CHECK_SAME(back, expected, n * sizeof(uint32_t));
        kit_free(&kit, in);
        kit_free(&kit, out);
    }
    kit_close(&kit);
}

static void arguments_of_every_kind(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 9 * sizeof(int64_t));
    for (int round = 0; round < 20; round++) {
        uint64_t word[9];
        kit_random(&kit, word, sizeof(word));
        float real = (float)acre_rand_unit(&kit.rand);
        uint32_t bits;
        memcpy(&bits, &real, sizeof(bits));
        int64_t expected[9] = {(int8_t)word[0],   (uint8_t)word[1], (int16_t)word[2],
                               (uint16_t)word[3], (int32_t)word[4], (uint32_t)word[5],
                               (int64_t)word[6],  (int64_t)word[7], bits};
        int64_t got[9];
        RUN(&kit, "scalars", kit_grid(1, 1), ACRE_BUFFER(out),
            ACRE_ARG_OF(INTEGER, 1, .u64 = word[0]), ACRE_ARG_OF(INTEGER, 1, .u64 = word[1]),
            ACRE_ARG_OF(INTEGER, 2, .u64 = word[2]), ACRE_ARG_OF(INTEGER, 2, .u64 = word[3]),
            ACRE_I32((int32_t)word[4]), ACRE_U32((uint32_t)word[5]), ACRE_I64((int64_t)word[6]),
            ACRE_U64(word[7]), ACRE_F32(real));
        kit_get(&kit, got, out, sizeof(got));
        CHECK_SAME(got, expected, sizeof(expected));
    }
    kit_free(&kit, out);
    kit_close(&kit);
}

static void arguments_many_and_structs(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 64);
    struct acre_arg args[17] = {ACRE_BUFFER(out)};
    uint32_t expected = 0;
    for (uint32_t i = 1; i < 17; i++) {
        uint32_t value = (uint32_t)acre_rand_next(&kit.rand);
        args[i] = ACRE_U32(value);
        expected += i * value;
    }
    uint32_t got = 0;
    OK(acre_launch(kit.stream, kit_kernel(&kit, "many"), kit_grid(1, 1), args, 17, ERR));
    kit_get(&kit, &got, out, sizeof(got));
    CHECK_U64(got, expected);
    struct {
        float x;
        uint32_t n;
    } pair = {1.5f, 10};
    float power = 0;
    RUN(&kit, "pairs", kit_grid(1, 1), ACRE_BUFFER(out), ACRE_BYTES(&pair, sizeof(pair)));
    pair.x = 0; /* was read when the call returned */
    kit_get(&kit, &power, out, sizeof(power));
    CHECK_NEAR((double)power, pow(1.5, 10), 0); /* 3^10 / 2^10: exact in a float */
    kit_free(&kit, out);
    kit_close(&kit);
}

static void helpers_macros_and_tables_work(void) {
    static const uint32_t table[] = {3, 5, 7, 11};
    struct kit kit;
    kit_open(&kit);
    enum { N = 3000 };
    static uint32_t data[N], back[N], expected[N];
    kit_random(&kit, data, sizeof(data));
    for (uint32_t i = 0; i + 4 <= N; i++) {
        uint32_t sum = data[i] + data[i + 1] + data[i + 2] + data[i + 3];
        expected[i] = 2 * ((sum ^ 0x5a5a) + table[i % 4]);
    }
    struct acre_buffer in = kit_data(&kit, data, sizeof(data));
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(data));
    OK(acre_fill(kit.stream, out, 0, sizeof(data), 0, 4, ERR));
    RUN(&kit, "window", acre_grid_for(N), ACRE_BUFFER(in), ACRE_BUFFER(out), ACRE_U32(N));
    kit_get(&kit, back, out, sizeof(back));
    CHECK_SAME(back, expected, sizeof(expected));
    kit_free(&kit, in);
    kit_free(&kit, out);
    kit_close(&kit);
}

static void native_fill(const struct acre_groups *groups, const void *const *arguments) {
    uint32_t *out = (uint32_t *)(uintptr_t)arguments[0]; /* a buffer's memory */
    uint32_t value = *(const uint32_t *)arguments[1];
    for (uint64_t g = groups->first; g < groups->end; g++) {
        for (uint32_t i = 0; i < groups->group[0]; i++) {
            out[g * groups->group[0] + i] = value + (uint32_t)g;
        }
    }
}

static void native_functions_are_kernels(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_program *program = NULL;
    const char *signature = "void native_fill(global uint *out, uint value)";
    if ((kit.facts->capabilities & ACRE_CAN_NATIVE) == 0 || kit_is_isolated()) {
        CHECK_EQ(acre_program_native(kit.context, signature, native_fill, &program, ERR),
                 ACRE_EUNSUPPORTED);
        CHECK(program == NULL);
        kit_close(&kit);
        return;
    }
    OK(acre_program_native(kit.context, signature, native_fill, &program, ERR));
    struct acre_kernel *kernel = NULL;
    OK(acre_kernel_find(program, "native_fill", &kernel, ERR));
    enum { GROUPS = 1000, GROUP = 7 };
    static uint32_t back[GROUPS * GROUP];
    struct acre_buffer out = kit_buffer(&kit, ACRE_MEMORY_DEVICE, sizeof(back));
    struct acre_arg args[] = {ACRE_BUFFER(out), ACRE_U32(5)};
    OK(acre_launch(kit.stream, kernel, kit_grid(GROUPS, GROUP), args, 2, ERR));
    kit_get(&kit, back, out, sizeof(back));
    for (uint32_t i = 0; i < GROUPS * GROUP; i++) {
        REQUIRE_EQ(back[i], 5 + i / GROUP);
    }
    FAILS(acre_launch(kit.stream, kernel, kit_grid(1, 1), args, 1, ERR), ACRE_EINVALID,
          "native_fill");
    kit_free(&kit, out);
    acre_program_destroy(program);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    TEST(launches_add_vectors),
    TEST(launches_of_all_dimensions_know_their_ids),
    TEST(launches_on_mapped_memory),
    TEST(launches_on_parts_of_buffers),
    TEST(launches_on_odd_parts_work_or_are_told),
    TEST(local_memory_reduces),
    TEST(local_memory_transposes),
    TEST(local_memory_scans),
    TEST(barriers_hold_in_groups_of_every_size),
    TEST(arguments_of_every_kind),
    TEST(arguments_many_and_structs),
    TEST(helpers_macros_and_tables_work),
    TEST(native_functions_are_kernels),
};
SUITE(compute_launch_suite, tests);
