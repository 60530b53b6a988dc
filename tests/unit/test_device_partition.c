/* Partitions of the MI300X (DEV-2; seed vectors B3 and B4). */
#include "device/partition.h"

#include "support/test.h"

static struct partition make(enum compute_partition compute, enum memory_partition memory,
                             uint32_t xcds) {
    return (struct partition){compute, memory, xcds};
}

static void cpx_takes_eighths_and_spx_only_the_whole(void) { /* B3 */
    static const struct {
        enum compute_partition compute;
        uint32_t share_milli;
        uint32_t xcds; /* 0: refused */
    } cases[] = {
        {ACRE_COMPUTE_CPX, 125, 1},  {ACRE_COMPUTE_CPX, 250, 2},  {ACRE_COMPUTE_CPX, 375, 3},
        {ACRE_COMPUTE_CPX, 500, 4},  {ACRE_COMPUTE_CPX, 625, 5},  {ACRE_COMPUTE_CPX, 750, 6},
        {ACRE_COMPUTE_CPX, 875, 7},  {ACRE_COMPUTE_CPX, 1000, 8}, {ACRE_COMPUTE_CPX, 300, 0},
        {ACRE_COMPUTE_CPX, 126, 0}, /* B7: no tolerance */
        {ACRE_COMPUTE_CPX, 0, 0},    {ACRE_COMPUTE_CPX, 1125, 0}, {ACRE_COMPUTE_SPX, 500, 0},
        {ACRE_COMPUTE_SPX, 1000, 8}, {ACRE_COMPUTE_DPX, 500, 4},  {ACRE_COMPUTE_DPX, 250, 0},
        {ACRE_COMPUTE_QPX, 250, 2},  {ACRE_COMPUTE_QPX, 125, 0},  {ACRE_COMPUTE_CPX, UINT32_MAX, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct partition partition = make(cases[i].compute, ACRE_MEMORY_NPS1, 8);
        uint32_t xcds = 0;
        struct acre_error err = {0};
        acre_test_context("%s %u", compute_partition_name(cases[i].compute), cases[i].share_milli);
        int r = partition_xcds(&partition, cases[i].share_milli, &xcds, &err);
        CHECK_EQ(r, cases[i].xcds > 0 ? 0 : ACRE_EINVALID);
        CHECK_U64(xcds, cases[i].xcds);
        if (r < 0) {
            CHECK_HAS(err.text, "accepted: ");
        }
    }
}

static void impossible_combinations_are_refused(void) { /* B3, DEV-2 */
    static const struct {
        struct partition partition;
        const char *error; /* NULL: valid */
    } cases[] = {
        {{ACRE_COMPUTE_SPX, ACRE_MEMORY_NPS1, 8}, NULL},
        {{ACRE_COMPUTE_SPX, ACRE_MEMORY_NPS4, 8}, "SPX with NPS4"},
        {{ACRE_COMPUTE_SPX, ACRE_MEMORY_NPS2, 8}, "SPX with NPS2"},
        {{ACRE_COMPUTE_DPX, ACRE_MEMORY_NPS2, 8}, NULL},
        {{ACRE_COMPUTE_DPX, ACRE_MEMORY_NPS4, 8}, "DPX with NPS4"},
        {{ACRE_COMPUTE_QPX, ACRE_MEMORY_NPS4, 8}, NULL},
        {{ACRE_COMPUTE_CPX, ACRE_MEMORY_NPS1, 8}, NULL},
        {{ACRE_COMPUTE_CPX, ACRE_MEMORY_NPS4, 8}, NULL},
        {{ACRE_COMPUTE_CPX, ACRE_MEMORY_NPS8, 8}, NULL},
        {{ACRE_COMPUTE_TPX, ACRE_MEMORY_NPS1, 8}, "cannot be divided evenly"},
        {{ACRE_COMPUTE_CPX, ACRE_MEMORY_NPS1, 7}, "7 XCDs"},
        {{ACRE_COMPUTE_CPX, ACRE_MEMORY_NPS1, 0}, "0 XCDs"},
        {{(enum compute_partition)9, ACRE_MEMORY_NPS1, 8}, "unknown partition mode"},
        {{ACRE_COMPUTE_SPX, (enum memory_partition)9, 8}, "unknown partition mode"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_error err = {0};
        acre_test_context("row %zu", i);
        int r = partition_check(&cases[i].partition, &err);
        CHECK_EQ(r, cases[i].error == NULL ? 0 : ACRE_EINVALID);
        if (cases[i].error != NULL) {
            CHECK_HAS(err.text, cases[i].error);
            uint32_t xcds = 99;
            CHECK_EQ(partition_xcds(&cases[i].partition, 1000, &xcds, NULL), ACRE_EINVALID);
            CHECK_U64(xcds, 99);
        }
    }
}

static void the_default_is_spx_nps1_with_eight(void) { /* B3 */
    struct partition partition = partition_default();
    CHECK_EQ(partition.compute, ACRE_COMPUTE_SPX);
    CHECK_EQ(partition.memory, ACRE_MEMORY_NPS1);
    CHECK_U64(partition.xcds, 8);
    CHECK_EQ(partition_check(&partition, NULL), 0);
    CHECK_U64(partition_count(&partition), 1);
    CHECK_U64(partition_step_milli(&partition), 1000);
}

static void shares_add_up_to_the_xcds_there_are(void) { /* B4, the arithmetic */
    struct partition partition = make(ACRE_COMPUTE_CPX, ACRE_MEMORY_NPS1, 8);
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t c = 0;
    REQUIRE(partition_xcds(&partition, 250, &a, NULL) == 0);
    REQUIRE(partition_xcds(&partition, 375, &b, NULL) == 0);
    REQUIRE(partition_xcds(&partition, 500, &c, NULL) == 0);
    CHECK_U64(8 - a, 6);
    CHECK_U64(8 - a - b, 3);
    CHECK(c > 8 - a - b);
    CHECK(c <= 8 - b);
    CHECK_U64(partition_count(&partition), 8);
    CHECK_U64(partition_step_milli(&partition), 125);
}

static void modes_are_read_by_name(void) {
    static const char *const computes[] = {"SPX", "DPX", "TPX", "QPX", "CPX"};
    static const char *const memories[] = {"NPS1", "NPS2", "NPS4", "NPS8"};
    for (size_t i = 0; i < ACRE_COUNT(computes); i++) {
        enum compute_partition compute;
        REQUIRE(partition_compute_parse(acre_str_from(computes[i]), &compute, NULL) == 0);
        CHECK_STR(compute_partition_name(compute), computes[i]);
    }
    for (size_t i = 0; i < ACRE_COUNT(memories); i++) {
        enum memory_partition memory;
        REQUIRE(partition_memory_parse(acre_str_from(memories[i]), &memory, NULL) == 0);
        CHECK_STR(memory_partition_name(memory), memories[i]);
    }
    struct acre_error err = {0};
    enum compute_partition compute = ACRE_COMPUTE_DPX;
    enum memory_partition memory = ACRE_MEMORY_NPS2;
    CHECK_EQ(partition_compute_parse(ACRE_STR("cpx"), &compute, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "'cpx'; accepted: SPX, DPX");
    CHECK_EQ(partition_memory_parse(ACRE_STR("NPS3"), &memory, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "'NPS3'; accepted: NPS1");
    CHECK_EQ(compute, ACRE_COMPUTE_DPX);
    CHECK_EQ(memory, ACRE_MEMORY_NPS2);
}

static const struct acre_test tests[] = {
    {"cpx_takes_eighths_and_spx_only_the_whole", cpx_takes_eighths_and_spx_only_the_whole, 0},
    {"impossible_combinations_are_refused", impossible_combinations_are_refused, 0},
    {"the_default_is_spx_nps1_with_eight", the_default_is_spx_nps1_with_eight, 0},
    {"shares_add_up_to_the_xcds_there_are", shares_add_up_to_the_xcds_there_are, 0},
    {"modes_are_read_by_name", modes_are_read_by_name, 0},
};

ACRE_TEST_MAIN(tests)
