/* Values of kernels and drivers: strict, bounded, with errors that show the value (Bad input). */
#include "device/value.h"

#include "support/test.h"

#include <stdio.h>

static void whole_numbers_are_strict_and_bounded(void) {
    static const struct {
        const char *text;
        uint64_t max;
        int expect;
        uint64_t value;
    } cases[] = {
        {"0\n", 10, 0, 0},
        {"10", 10, 0, 10},
        {"0x1002\n", 0xffff, 0, 0x1002},
        {"18446744073709551615", UINT64_MAX, 0, UINT64_MAX},
        {"18446744073709551616", UINT64_MAX, ACRE_EINVALID, 0}, /* 2^64 does not wrap */
        {"0x10000000000000000", UINT64_MAX, ACRE_EINVALID, 0},
        {"11", 10, ACRE_EINVALID, 0},
        {"", 10, ACRE_EINVALID, 0},
        {"\n", 10, ACRE_EINVALID, 0},
        {"-1", 10, ACRE_EINVALID, 0},
        {"+1", 10, ACRE_EINVALID, 0},
        {"1.5", 10, ACRE_EINVALID, 0},
        {"0x", 10, ACRE_EINVALID, 0},
        {"1 2", 10, ACRE_EINVALID, 0},
        {"1\n2\n", 100, ACRE_EINVALID, 0},
        {"N/A", 10, ACRE_EINVALID, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        uint64_t value = 77;
        struct acre_error err = {0};
        acre_test_context("'%s'", cases[i].text);
        int r = value_u64(acre_str_from(cases[i].text), cases[i].max, &value, &err);
        CHECK_EQ(r, cases[i].expect);
        CHECK_U64(value, r == 0 ? cases[i].value : 77);
        if (r < 0) {
            CHECK_HAS(err.text, "accepted: a whole number from 0 to");
        }
    }
}

static void signed_numbers_may_be_below_zero(void) {
    static const struct {
        const char *text;
        int expect;
        int64_t value;
    } cases[] = {
        {"-1\n", 0, -1},
        {"0", 0, 0},
        {"100", 0, 100},
        {"-101", ACRE_EINVALID, 0},
        {"101", ACRE_EINVALID, 0},
        {"-", ACRE_EINVALID, 0},
        {"--1", ACRE_EINVALID, 0},
        {"9223372036854775808", ACRE_EINVALID, 0},
        {"-9223372036854775809", ACRE_EINVALID, 0},
        {"", ACRE_EINVALID, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        int64_t value = 77;
        struct acre_error err = {0};
        acre_test_context("'%s'", cases[i].text);
        CHECK_EQ(value_i64(acre_str_from(cases[i].text), -100, 100, &value, &err), cases[i].expect);
        CHECK_EQ(value, cases[i].expect == 0 ? cases[i].value : 77);
    }
}

static void a_line_is_one_line(void) {
    struct acre_str line;
    struct acre_error err = {0};
    REQUIRE(value_line(ACRE_STR(" AMD Instinct \n"), &line, &err) == 0);
    CHECK(acre_str_is(line, "AMD Instinct"));
    CHECK_EQ(value_line(ACRE_STR("a\nb\n"), &line, &err), ACRE_EINVALID);
    CHECK_EQ(value_line(ACRE_STR("\n"), &line, &err), ACRE_EINVALID);
    CHECK_EQ(value_line((struct acre_str){NULL, 0}, &line, &err), ACRE_EINVALID);
}

static void keys_are_found_whole(void) {
    struct acre_str uevent = ACRE_STR("DRIVER=amdgpu\nPCI_SLOT_NAME=0000:05:00.0\nX=\n");
    struct acre_str properties = ACRE_STR("simd_count 1216\nsimd_per_cu 4\n");
    struct acre_str value;
    struct acre_error err = {0};
    uint64_t number = 0;
    REQUIRE(value_find(uevent, "PCI_SLOT_NAME", '=', &value, &err) == 0);
    CHECK(acre_str_is(value, "0000:05:00.0"));
    REQUIRE(value_find(uevent, "X", '=', &value, &err) == 0);
    CHECK_U64(value.length, 0);
    CHECK_EQ(value_find(uevent, "SLOT_NAME", '=', &value, &err), ACRE_ENOTFOUND);
    CHECK_EQ(value_find(uevent, "DRIVE", '=', &value, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "DRIVE=");
    REQUIRE(value_find_u64(properties, "simd_count", ' ', 9999, &number, &err) == 0);
    CHECK_U64(number, 1216);
    CHECK_EQ(value_find_u64(properties, "simd_count", ' ', 100, &number, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "simd_count: value '1216'");
    CHECK_EQ(value_find_u64(properties, "num_xcc", ' ', 100, &number, &err), ACRE_ENOTFOUND);
    REQUIRE(value_find_u64(ACRE_STR("ue: 1\nce: 12\n"), "ce", ':', 99, &number, &err) == 0);
    CHECK_U64(number, 12);
}

static void clock_levels_need_a_star(void) {
    static const struct {
        const char *text;
        int expect;
        uint64_t current, max;
    } cases[] = {
        {"S: 19Mhz *\n0: 132Mhz\n1: 2100Mhz\n", 0, 19, 2100},
        {"0: 500Mhz\n1: 800Mhz *\n2: 1700Mhz", 0, 800, 1700},
        {"0: 96Mhz *", 0, 96, 96},
        {"0: 500Mhz\n1: 800Mhz\n", ACRE_ENOTFOUND, 0, 0},
        {"0: 500MHz *\n", 0, 500, 500},
        {"0: Mhz *\n", ACRE_EINVALID, 0, 0},
        {"0: 500 *\n", ACRE_EINVALID, 0, 0},
        {"0 500Mhz *\n", ACRE_EINVALID, 0, 0},
        {"0: 99999999999999999999Mhz *\n", ACRE_EINVALID, 0, 0},
        {"0: 2000000Mhz *\n", ACRE_EINVALID, 0, 0},
        {"", ACRE_EINVALID, 0, 0},
        {"*", ACRE_EINVALID, 0, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        uint64_t current = 0;
        uint64_t max = 0;
        acre_test_context("'%s'", cases[i].text);
        CHECK_EQ(value_dpm(acre_str_from(cases[i].text), &current, &max, NULL), cases[i].expect);
        CHECK_U64(current, cases[i].current);
        CHECK_U64(max, cases[i].max);
    }
}

static void pcie_speeds_become_generations(void) {
    static const struct {
        const char *text;
        int expect;
        uint64_t gen;
    } cases[] = {
        {"2.5 GT/s PCIe\n", 0, 1},
        {"5.0 GT/s PCIe", 0, 2},
        {"8 GT/s\n", 0, 3},
        {"16.0 GT/s PCIe\n", 0, 4},
        {"32.0 GT/s PCIe\n", 0, 5},
        {"64.0 GT/s PCIe\n", 0, 6},
        {"Unknown", ACRE_EINVALID, 0},
        {"32.0 GT/sec", ACRE_EINVALID, 0},
        {"", ACRE_EINVALID, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        uint64_t gen = 0;
        acre_test_context("'%s'", cases[i].text);
        CHECK_EQ(value_pcie_gen(acre_str_from(cases[i].text), &gen, NULL), cases[i].expect);
        CHECK_U64(gen, cases[i].gen);
    }
}

static void pci_ids_are_spelled_as_the_kernel_does(void) {
    static const struct {
        const char *text;
        int expect;
        const char *id;
    } cases[] = {
        {"0000:3b:00.0\n", 0, "0000:3b:00.0"},
        {"00000000:3B:00.0", 0, "0000:3b:00.0"}, /* NVML's spelling */
        {"00010001:0A:1F.7", 0, "10001:0a:1f.7"},
        {"3b:00.0", ACRE_EINVALID, ""},
        {"0000:3b:20.0", ACRE_EINVALID, ""},
        {"0000:3b:00.8", ACRE_EINVALID, ""},
        {"0000:3b:00,0", ACRE_EINVALID, ""},
        {"0000:3g:00.0", ACRE_EINVALID, ""},
        {"000000000:3b:00.0", ACRE_EINVALID, ""},
        {"0000:3b:00.0:1", ACRE_EINVALID, ""},
        {"", ACRE_EINVALID, ""},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        char id[ACRE_PCI_ID_MAX] = "";
        struct acre_error err = {0};
        acre_test_context("'%s'", cases[i].text);
        CHECK_EQ(value_pci_id(acre_str_from(cases[i].text), id, &err), cases[i].expect);
        CHECK_STR(id, cases[i].id);
        if (cases[i].expect < 0) {
            CHECK_HAS(err.text, "0000:3b:00.0");
        }
    }
}

static void cpu_lists_are_ascending(void) {
    static const struct {
        const char *text;
        int expect;
        uint64_t count;
    } cases[] = {
        {"0\n", 0, 1},
        {"0-1\n", 0, 2},
        {"0-31,64-95\n", 0, 64},
        {"0,2,4-5", 0, 4},
        {"5-3", ACRE_EINVALID, 0},
        {"0-3,3", ACRE_EINVALID, 0},
        {"4,1", ACRE_EINVALID, 0},
        {"0-", ACRE_EINVALID, 0},
        {"-1", ACRE_EINVALID, 0},
        {"0,,1", ACRE_EINVALID, 0},
        {"0-18446744073709551615", ACRE_EINVALID, 0},
        {"99999999", ACRE_EINVALID, 0},
        {"", ACRE_EINVALID, 0},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        uint64_t count = 0;
        acre_test_context("'%s'", cases[i].text);
        CHECK_EQ(value_cpu_list(acre_str_from(cases[i].text), &count, NULL), cases[i].expect);
        CHECK_U64(count, cases[i].count);
    }
}

static const struct acre_test tests[] = {
    {"whole_numbers_are_strict_and_bounded", whole_numbers_are_strict_and_bounded, 0},
    {"signed_numbers_may_be_below_zero", signed_numbers_may_be_below_zero, 0},
    {"a_line_is_one_line", a_line_is_one_line, 0},
    {"keys_are_found_whole", keys_are_found_whole, 0},
    {"clock_levels_need_a_star", clock_levels_need_a_star, 0},
    {"pcie_speeds_become_generations", pcie_speeds_become_generations, 0},
    {"pci_ids_are_spelled_as_the_kernel_does", pci_ids_are_spelled_as_the_kernel_does, 0},
    {"cpu_lists_are_ascending", cpu_lists_are_ascending, 0},
};

ACRE_TEST_MAIN(tests)
