/* What failed jobs say, and what that means for the retry (JOB-4). */
#include "desk/symptom.h"

#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
    const char *text;
    enum acre_exit_kind kind;
} rows[] = {
    {"", ACRE_EXIT_CODE},
    {"Segmentation fault", ACRE_EXIT_CODE},
    {"MemoryError: host", ACRE_EXIT_CODE},
    {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB",
     ACRE_EXIT_OUT_OF_MEMORY},
    {"RuntimeError: HIP out of memory.", ACRE_EXIT_OUT_OF_MEMORY},
    {"cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)", ACRE_EXIT_OUT_OF_MEMORY},
    {"jaxlib: RESOURCE_EXHAUSTED: Out of memory while trying to allocate", ACRE_EXIT_OUT_OF_MEMORY},
    {"CUDA error: all CUDA-capable devices are busy or unavailable", ACRE_EXIT_DEVICE_BUSY},
    {"cuCtxCreate: CUDA_ERROR_DEVICE_UNAVAILABLE", ACRE_EXIT_DEVICE_BUSY},
};

static void words_are_recognised(void) {
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        const char *words = NULL;
        acre_test_context("%s", rows[i].text);
        CHECK_EQ(symptom_of(acre_str_from(rows[i].text), &words), rows[i].kind);
        CHECK_EQ(words[0] == '\0', rows[i].kind == ACRE_EXIT_CODE);
    }
}

static void only_the_end_of_a_file_counts(void) {
    char path[] = "/tmp/acre-symptom-XXXXXX";
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    const char *words = NULL;
    CHECK_EQ(symptom_of_file(path, &words), ACRE_EXIT_CODE); /* empty */
    REQUIRE_EQ(dprintf(fd, "CUDA out of memory, and went on\n"), 32);
    CHECK_EQ(symptom_of_file(path, &words), ACRE_EXIT_OUT_OF_MEMORY);
    CHECK_STR(words, "CUDA out of memory");
    for (int i = 0; i < ACRE_SYMPTOM_TAIL_BYTES / 16; i++) {
        REQUIRE_EQ(dprintf(fd, "step %10d\n", i), 16);
    }
    CHECK_EQ(symptom_of_file(path, &words), ACRE_EXIT_CODE);
    close(fd);
    unlink(path);
    CHECK_EQ(symptom_of_file(path, &words), ACRE_EXIT_CODE); /* not there */
    CHECK_STR(words, "");
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(words_are_recognised),
    TEST(only_the_end_of_a_file_counts),
};

ACRE_TEST_MAIN(tests)
