/* test_compute_gpu.c - what CUDA and HIP share and needs no GPU: fills in steps, images, codes. */
#include "compute/gpu/cuda.h"
#include "compute/gpu/image.h"
#include "compute/gpu/seat.h"
#include "core/rand.h"
#include "support/test.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

/* --- fills ---------------------------------------------------------------------------------- */

/* What the driver would do, done to host memory. */
static void take(const struct gpu_step *step) {
    uint8_t *to = (uint8_t *)step->to;
    if (step->element_bytes == 0) {
        const uint8_t *from = (const uint8_t *)step->from;
        CHECK(from + step->count <= to || to + step->count <= from); /* copies may not overlap */
        memcpy(to, from, step->count);
        return;
    }
    for (size_t i = 0; i < step->count * step->element_bytes; i++) {
        to[i] = (uint8_t)(step->value >> (8 * (i % step->element_bytes)));
    }
}

static void fills_of_every_pattern_cover_exactly_their_bytes(void) { /* GPU-2 */
    static const struct {
        uint64_t pattern, bytes;
        uint32_t pattern_bytes, offset, steps;
    } rows[] = {
        {0xab, 0, 1, 0, 0},
        {0xab, 1, 1, 0, 1},
        {0xab, 1001, 1, 3, 1},
        {0xabcd, 2002, 2, 0, 1},
        {0xabcd, 2002, 2, 1, 2 + 10}, /* bytes, where drivers want multiples of 2 */
        {0xabab, 2002, 2, 1, 1},
        {0x12345678, 4000, 4, 0, 1},
        {0x12345678, 4000, 4, 2, 2 + 10},
        {0x12345678, 4000, 4, 3, 4 + 10},
        {0x1122334455667788, 8, 8, 0, 2},
        {0x1122334455667788, 16, 8, 4, 2 + 1},
        {0x1122334455667788, 24, 8, 0, 2 + 2},
        {0x1122334455667788, 4072, 8, 0, 2 + 9},
        {0x1122334455667788, 4072, 8, 7, 8 + 9},
        {0x1234567812345678, 4072, 8, 4, 1},
        {0, 4072, 8, 5, 1},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        uint64_t words[514];
        memset(words, 0x5a, sizeof(words));
        uint8_t *memory = (uint8_t *)&words[1] + rows[i].offset;
        struct native_fill fill = {.bytes = rows[i].bytes,
                                   .pattern = rows[i].pattern,
                                   .pattern_bytes = rows[i].pattern_bytes};
        struct gpu_step steps[GPU_STEPS_MAX];
        uint32_t count = gpu_fill_steps((uintptr_t)memory, &fill, steps);
        CHECK_U64(count, rows[i].steps);
        for (uint32_t s = 0; s < count; s++) {
            take(&steps[s]);
        }
        for (uint64_t at = 0; at < rows[i].bytes; at++) {
            uint64_t expected = rows[i].pattern >> (8 * (at % rows[i].pattern_bytes)) & 0xff;
            REQUIRE_EQ(memory[at], (int64_t)expected);
        }
        CHECK_EQ(memory[rows[i].bytes], 0x5a);
        CHECK_EQ(memory[-1], 0x5a);
    }
}

static void the_largest_fill_has_room_for_its_steps(void) { /* GPU-2 */
    struct gpu_step steps[GPU_STEPS_MAX];
    struct native_fill fill = {
        .bytes = UINT64_C(1) << 47, .pattern = UINT64_C(0x100000000), .pattern_bytes = 8};
    CHECK_U64(gpu_fill_steps(1, &fill, steps), 8 + 44);
}

/* --- images --------------------------------------------------------------------------------- */

struct image {
    Elf64_Ehdr header;
    Elf64_Shdr sections[4]; /* none, symbols, texts, notes */
    Elf64_Sym symbols[4];
    char texts[64];
    uint8_t notes[32];
};

static struct image make_image(uint16_t machine) {
    struct image image = {.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
                                     .e_machine = machine,
                                     .e_shoff = offsetof(struct image, sections),
                                     .e_shentsize = sizeof(Elf64_Shdr),
                                     .e_shnum = 4}};
    image.sections[1] = (Elf64_Shdr){.sh_type = machine == 190 ? SHT_SYMTAB : SHT_DYNSYM,
                                     .sh_offset = offsetof(struct image, symbols),
                                     .sh_size = sizeof(image.symbols),
                                     .sh_link = 2};
    image.sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
                                     .sh_offset = offsetof(struct image, texts),
                                     .sh_size = sizeof(image.texts)};
    image.sections[3] = (Elf64_Shdr){.sh_type = machine == 190 ? SHT_LOPROC : SHT_PROGBITS,
                                     .sh_offset = offsetof(struct image, notes),
                                     .sh_size = sizeof(image.notes),
                                     .sh_info = 7}; /* of the section with the code of add */
    static const uint8_t notes[sizeof(image.notes)] = {3, 0x19, 12, 0,    4, 0x17, 5, 0, 4, 0x17, 0,
                                                       0, 9,    1,  0x17, 0, 0,    4, 9, 9, 0};
    memcpy(image.notes, notes, sizeof(notes));
    static const char texts[] = "\0_Z3addPfi\0plain\0_Z3subi.kd\0helper";
    memcpy(image.texts, texts, sizeof(texts));
    image.symbols[0] =
        (Elf64_Sym){.st_name = 1, .st_info = STT_FUNC, .st_other = 0x10, .st_shndx = 7};
    image.symbols[1] =
        (Elf64_Sym){.st_name = 11, .st_info = STT_FUNC, .st_other = 0x10, .st_shndx = 8};
    image.symbols[2] = (Elf64_Sym){.st_name = 17, .st_info = STT_OBJECT};
    image.symbols[3] = (Elf64_Sym){.st_name = 28, .st_info = STT_FUNC};
    return image;
}

static void expect_names(const void *image, size_t length, const char *expected) {
    struct acre_buf kernels, names;
    REQUIRE_EQ(gpu_image_check(image, length, NULL), 0);
    gpu_image_kernels(image, length, &kernels);
    acre_buf_init(&names, 1 << 10);
    const char *kernel = gpu_image_next(&kernels, NULL);
    for (; kernel != NULL; kernel = gpu_image_next(&kernels, kernel)) {
        acre_buf_printf(&names, "%s %u,", kernel, gpu_image_parameters(kernel));
    }
    CHECK_STR(names.data, expected);
    acre_buf_finish(&kernels);
    acre_buf_finish(&names);
}

static void kernels_are_listed_from_every_kind_of_image(void) { /* GPU-1 */
    struct image cuda = make_image(190);
    struct image amd = make_image(224);
    expect_names(&cuda, sizeof(cuda), "_Z3addPfi 2,plain 255,");
    expect_names(&amd, sizeof(amd), "_Z3subi 255,");
    static const char ptx[] = ".version 8.0\n.visible .entry _Z1fv(\n)\n.entry  g (\n"
                              "\t.param .u64 .ptr .align 1 g_param_0,\n\t.param .u32 g_param_1\n)"
                              "\n{ .param .b32 own; }\n.entry h\n{ }\n.entry";
    expect_names(ptx, sizeof(ptx), "_Z1fv 0,g 2,h 0,");
    struct {
        char magic[24];
        uint64_t count, offset, bytes, name_bytes;
        char name[8];
        struct image image;
    } bundle = {.count = 1, .bytes = sizeof(amd), .name_bytes = 8, .image = amd};
    memcpy(bundle.magic, "__CLANG_OFFLOAD_BUNDLE__", sizeof(bundle.magic));
    bundle.offset = (uint64_t)((char *)&bundle.image - (char *)&bundle);
    expect_names(&bundle, sizeof(bundle), "_Z3subi 255,");
    bundle.bytes++;
    CHECK_EQ(gpu_image_check(&bundle, sizeof(bundle), NULL), ACRE_ECORRUPT);
    bundle.bytes--;
    bundle.name_bytes = UINT64_MAX;
    CHECK_EQ(gpu_image_check(&bundle, sizeof(bundle), NULL), ACRE_ECORRUPT);
    bundle.count = 0;
    CHECK_EQ(gpu_image_check(&bundle, sizeof(bundle), NULL), ACRE_ECORRUPT);
}

static void images_that_are_cut_off_are_refused(void) { /* GPU-1: damaged entries are detected */
    struct image image = make_image(190);
    struct acre_error err = {0};
    for (size_t length = 0; length < sizeof(image); length++) {
        char *copy = malloc(length + 1); /* so that a look past the end is seen */
        memcpy(copy, &image, length);
        acre_test_context("%zu bytes", length);
        char *exact = realloc(copy, length > 0 ? length : 1);
        CHECK_EQ(gpu_image_check(exact, length, &err), ACRE_ECORRUPT);
        free(exact);
    }
    acre_test_context("%s", "");
    CHECK_HAS(err.text, "not a complete compiled program");
    CHECK_EQ(gpu_image_check("text", 4, NULL), ACRE_ECORRUPT);
    CHECK_EQ(gpu_image_check("te\0t", 5, NULL), ACRE_ECORRUPT);
    CHECK_EQ(gpu_image_check("", 1, NULL), ACRE_ECORRUPT);
}

/* Damaged at random: whatever is let through is listed without a look outside. */
static void damaged_images_are_read_safely(void) { /* GPU-1 */
    enum { ROUNDS = 20000, SEED = 11 };
    struct acre_rand rand;
    acre_rand_seed(&rand, SEED);
    uint32_t refused = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct image *image = malloc(sizeof(*image));
        *image = make_image(i % 2 == 0 ? 190 : 224);
        for (uint64_t n = acre_rand_below(&rand, 8); n > 0; n--) {
            ((uint8_t *)image)[acre_rand_below(&rand, sizeof(*image))] =
                (uint8_t)acre_rand_next(&rand);
        }
        if (gpu_image_check(image, sizeof(*image), NULL) == 0) {
            struct acre_buf kernels;
            gpu_image_kernels(image, sizeof(*image), &kernels);
            gpu_image_find(&kernels, "add");
            acre_buf_finish(&kernels);
        } else {
            refused++;
        }
        free(image);
    }
    CHECK(refused > ROUNDS / 10 && refused < ROUNDS);
}

static void a_name_is_found_whole_or_not_at_all(void) { /* GPU-1 */
    struct acre_buf kernels;
    struct image image = make_image(190);
    gpu_image_kernels(&image, sizeof(image), &kernels);
    CHECK_STR(gpu_image_find(&kernels, "add"), "_Z3addPfi");
    CHECK_STR(gpu_image_find(&kernels, "plain"), "plain");
    CHECK_STR(gpu_image_find(&kernels, "_Z3addPfi"), "_Z3addPfi");
    static const char *const absent[] = {"ad", "addP", "dd", "", "plai", "lain"};
    for (size_t i = 0; i < ACRE_COUNT(absent); i++) {
        CHECK(gpu_image_find(&kernels, absent[i]) == NULL);
    }
    char long_name[300];
    memset(long_name, 'a', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    CHECK(gpu_image_find(&kernels, long_name) == NULL);
    acre_buf_finish(&kernels);
}

/* --- codes ---------------------------------------------------------------------------------- */

static const char *name_of(const struct gpu *gpu, int code) {
    (void)gpu;
    return code == 7 ? "SEVEN" : "unknown";
}

static void codes_are_told_in_words_and_lasting_ones_are_kept(void) { /* GPU-6 */
    static const struct gpu_fault faults[] = {
        {2, "E_MEMORY", ACRE_ENOMEM, false, "no more memory"},
        {5, "E_BARE", ACRE_EINVALID, false, NULL},
        {9, "E_FAULT", ACRE_EUNAVAILABLE, true, "a kernel faulted"},
        {10, "E_OTHER", ACRE_EUNAVAILABLE, true, "another"},
    };
    static const struct gpu_vendor vendor = {
        .faults = faults, .fault_count = ACRE_COUNT(faults), .code_name = name_of};
    struct gpu gpu = {.vendor = &vendor};
    struct gpu_seat seat = {.gpu = &gpu};
    struct acre_error err = {0};
    CHECK_EQ(gpu_fail(&gpu, &seat, 2, "cuMemAlloc_v2", &err), ACRE_ENOMEM);
    CHECK_STR(err.text, "cuMemAlloc: no more memory (E_MEMORY)");
    CHECK_EQ(gpu_fail(&gpu, &seat, 5, "cuInit", &err), ACRE_EINVALID);
    CHECK_STR(err.text, "cuInit: E_BARE");
    CHECK_EQ(gpu_fail(&gpu, &seat, 7, "cuInit", &err), ACRE_EINTERNAL);
    CHECK_STR(err.text, "cuInit: SEVEN (7)");
    CHECK_EQ(atomic_load(&seat.lasting), 0);
    CHECK_EQ(gpu_fail(&gpu, NULL, 9, NULL, &err), ACRE_EUNAVAILABLE);
    CHECK_STR(err.text, "a kernel faulted (E_FAULT)");
    CHECK_EQ(gpu_fail(&gpu, NULL, 9, "cuInit", NULL), ACRE_EUNAVAILABLE);
    CHECK_EQ(gpu_fail(&gpu, &seat, 9, "cuInit", &err), ACRE_EUNAVAILABLE);
    CHECK_EQ(gpu_fail(&gpu, &seat, 10, "cuInit", &err), ACRE_EUNAVAILABLE);
    CHECK_EQ(atomic_load(&seat.lasting), 9); /* the first one is the cause */
}

static void uuids_are_written_as_nvidia_writes_them(void) { /* GPU-1 */
    struct cuda_uuid uuid;
    for (uint8_t i = 0; i < 16; i++) {
        uuid.bytes[i] = (uint8_t)(i * 17);
    }
    char text[64];
    cuda_uuid_write(&uuid, text, sizeof(text));
    CHECK_STR(text, "GPU-00112233-4455-6677-8899-aabbccddeeff");
}

static void an_absent_driver_is_told_by_name(void) { /* GPU-1: the reason when it is absent */
    void *self = NULL;
    struct acre_error err = {0};
    int r = backend_cuda.open(&self, &err);
    if (r == 0) {
        backend_cuda.close(self);
        acre_test_skip("there is a GPU here");
    }
    CHECK_EQ(r, ACRE_EUNAVAILABLE);
    CHECK_EQ(err.code, ACRE_EUNAVAILABLE);
    CHECK(strlen(err.text) > 10);
    CHECK(self == NULL);
    backend_cuda.close(NULL);
}

static void an_absent_cufile_is_a_reason_not_a_crash(void) { /* GPU-5 */
    struct cuda_file file = {0};
    struct acre_error err = {0};
    cuda_file_load(&file);
    if (file.is_loaded) {
        acre_test_skip("cuFile is here");
    }
    CHECK_EQ(cuda_file_open(&file, &err), ACRE_EUNSUPPORTED);
    CHECK_HAS(err.text, "libcufile.so.0");
}

static const struct acre_test tests[] = {
    {"fills_of_every_pattern_cover_exactly_their_bytes",
     fills_of_every_pattern_cover_exactly_their_bytes, 0},
    {"the_largest_fill_has_room_for_its_steps", the_largest_fill_has_room_for_its_steps, 0},
    {"kernels_are_listed_from_every_kind_of_image", kernels_are_listed_from_every_kind_of_image, 0},
    {"images_that_are_cut_off_are_refused", images_that_are_cut_off_are_refused, 0},
    {"damaged_images_are_read_safely", damaged_images_are_read_safely, 0},
    {"a_name_is_found_whole_or_not_at_all", a_name_is_found_whole_or_not_at_all, 0},
    {"codes_are_told_in_words_and_lasting_ones_are_kept",
     codes_are_told_in_words_and_lasting_ones_are_kept, 0},
    {"uuids_are_written_as_nvidia_writes_them", uuids_are_written_as_nvidia_writes_them, 0},
    {"an_absent_driver_is_told_by_name", an_absent_driver_is_told_by_name, 0},
    {"an_absent_cufile_is_a_reason_not_a_crash", an_absent_cufile_is_a_reason_not_a_crash, 0},
};
ACRE_TEST_MAIN(tests)
