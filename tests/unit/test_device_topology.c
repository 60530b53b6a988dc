/* Islands and foreign memory: pure functions over records (ALC-7's input, DEV-6). */
#include "device/column.h"
#include "device/foreign.h"
#include "device/topology.h"

#include "support/test.h"

#include <stdio.h>

enum { DEVICES = 8 };

static void name_devices(struct acre_device_info *infos, uint32_t count) {
    memset(infos, 0, count * sizeof(*infos));
    for (uint32_t i = 0; i < count; i++) {
        char id[16];
        snprintf(id, sizeof(id), "gpu%u", i);
        ACRE_PUT_TEXT(&infos[i], ACRE_INFO, id, acre_str_from(id));
    }
}

static void fast_links_make_islands(void) {
    struct acre_device_info infos[DEVICES];
    name_devices(infos, DEVICES);
    static const struct acre_device_link links[] = {
        {4, 5, ACRE_LINK_NVLINK, 4},      {5, 6, ACRE_LINK_NVLINK, 4}, {0, 1, ACRE_LINK_XGMI, 0},
        {2, 3, ACRE_LINK_PCIE_SWITCH, 0}, {0, 4, ACRE_LINK_SYSTEM, 0},
    };
    islands_assign(infos, DEVICES, links, ACRE_COUNT(links));
    static const int expect[DEVICES] = {0, 0, -1, -1, 1, 1, 1, -1};
    for (uint32_t i = 0; i < DEVICES; i++) {
        acre_test_context("device %u", i);
        CHECK_EQ(ACRE_HAS(&infos[i], ACRE_INFO, island) ? (int)infos[i].island : -1, expect[i]);
    }
    CHECK_STR(infos[0].island_kind, "xgmi");
    CHECK_STR(infos[6].island_kind, "nvlink");
}

static void numa_nodes_are_the_second_choice(void) {
    struct acre_device_info infos[DEVICES];
    name_devices(infos, DEVICES);
    for (uint32_t i = 0; i < 6; i++) {
        ACRE_PUT(&infos[i], ACRE_INFO, numa_node, i % 2);
    }
    static const struct acre_device_link links[] = {{0, 1, ACRE_LINK_NVSWITCH, 18}};
    islands_assign(infos, DEVICES, links, ACRE_COUNT(links));
    static const int expect[DEVICES] = {0, 0, 1, 2, 1, 2, -1, -1};
    for (uint32_t i = 0; i < DEVICES; i++) {
        acre_test_context("device %u", i);
        CHECK_EQ(ACRE_HAS(&infos[i], ACRE_INFO, island) ? (int)infos[i].island : -1, expect[i]);
    }
    CHECK_STR(infos[1].island_kind, "nvswitch");
    CHECK_STR(infos[2].island_kind, "numa");
}

static void slices_are_where_their_parent_is(void) {
    struct acre_device_info infos[4];
    name_devices(infos, 4);
    ACRE_PUT(&infos[0], ACRE_INFO, numa_node, 0);
    ACRE_PUT(&infos[3], ACRE_INFO, numa_node, 1);
    for (uint32_t i = 1; i < 3; i++) {
        ACRE_PUT_TEXT(&infos[i], ACRE_INFO, parent_id, ACRE_STR("gpu0"));
        ACRE_PUT(&infos[i], ACRE_INFO, numa_node, 0);
    }
    islands_assign(infos, 4, NULL, 0);
    CHECK_U64(infos[1].island, infos[0].island);
    CHECK_U64(infos[2].island, infos[0].island);
    CHECK(infos[3].island != infos[0].island);
    islands_assign(infos, 0, NULL, 0); /* no device at all is fine */
}

static void link_kinds_have_names(void) {
    for (uint32_t i = 0; i < ACRE_LINK_COUNT; i++) {
        CHECK(strlen(link_name((enum link_kind)i)) > 2);
    }
    CHECK_STR(link_name(ACRE_LINK_NVSWITCH), "nvswitch");
}

struct made_process {
    uint64_t pid;
    int64_t memory_mib; /* -1: unknown */
};

static uint32_t make_processes(const struct made_process *from, uint32_t count,
                               struct acre_device_process *to) {
    memset(to, 0, count * sizeof(*to));
    for (uint32_t i = 0; i < count; i++) {
        ACRE_PUT(&to[i], ACRE_PROCESS, pid, from[i].pid);
        if (from[i].memory_mib >= 0) {
            ACRE_PUT(&to[i], ACRE_PROCESS, memory_mib, (uint64_t)from[i].memory_mib);
        }
    }
    return count;
}

static void foreign_is_used_less_what_is_ours(void) { /* DEV-6 */
    static const struct {
        const char *what;
        int64_t used_mib; /* -1: unknown */
        struct made_process processes[3];
        uint32_t count;
        uint64_t known[2];
        uint32_t known_count;
        bool known_use, exact;
        uint64_t foreign_mib, unattributed_mib;
        uint32_t foreign_processes;
    } cases[] = {
        {"nobody", 0, {{0}}, 0, {0}, 0, true, true, 0, 0, 0},
        {"all foreign", 1000, {{7, 600}, {8, 300}}, 2, {0}, 0, true, true, 1000, 100, 2},
        {"one is ours", 1000, {{7, 600}, {8, 300}}, 2, {7}, 1, true, true, 400, 100, 1},
        {"both are ours", 1000, {{7, 600}, {8, 300}}, 2, {8, 7}, 2, true, true, 100, 100, 0},
        {"hidden process", 5000, {{0}}, 0, {7}, 1, true, true, 5000, 5000, 0},
        {"skewed reading", 500, {{7, 600}}, 1, {7}, 1, true, true, 0, 0, 0},
        {"ours, use unknown", 1000, {{7, -1}}, 1, {7}, 1, true, false, 1000, 1000, 0},
        {"theirs, use unknown", 1000, {{7, -1}}, 1, {0}, 0, true, true, 1000, 1000, 1},
        {"use unknown", -1, {{7, 600}}, 1, {0}, 0, false, true, 0, 0, 1},
        {"two contexts count once", 1000, {{7, 600}, {7, 200}}, 2, {7}, 1, true, true, 400, 400, 0},
        {"huge", INT64_MAX, {{7, INT64_MAX}, {8, INT64_MAX}}, 2, {7}, 1, true, true, 0, 0, 1},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_device_sample sample = {0};
        struct acre_device_process processes[3];
        if (cases[i].used_mib >= 0) {
            ACRE_PUT(&sample, ACRE_SAMPLE, memory_used_mib, (uint64_t)cases[i].used_mib);
        }
        uint32_t count = make_processes(cases[i].processes, cases[i].count, processes);
        acre_test_context("%s", cases[i].what);
        struct foreign foreign =
            device_foreign(&sample, processes, count, cases[i].known, cases[i].known_count);
        CHECK_EQ(foreign.known, cases[i].known_use);
        CHECK_EQ(foreign.exact, cases[i].exact);
        CHECK_U64(foreign.memory_mib, cases[i].foreign_mib);
        CHECK_U64(foreign.unattributed_mib, cases[i].unattributed_mib);
        CHECK_U64(foreign.processes, cases[i].foreign_processes);
    }
}

static void each_process_is_marked(void) { /* DEV-6 */
    static const struct made_process from[] = {{7, 600}, {8, 300}};
    struct acre_device_process processes[2];
    struct acre_device_sample sample = {0};
    uint64_t known = 8;
    make_processes(from, 2, processes);
    device_foreign(&sample, processes, 2, &known, 1);
    CHECK(ACRE_HAS(&processes[0], ACRE_PROCESS, foreign) && processes[0].foreign);
    CHECK(ACRE_HAS(&processes[1], ACRE_PROCESS, foreign) && !processes[1].foreign);
}

static const struct acre_test tests[] = {
    {"fast_links_make_islands", fast_links_make_islands, 0},
    {"numa_nodes_are_the_second_choice", numa_nodes_are_the_second_choice, 0},
    {"slices_are_where_their_parent_is", slices_are_where_their_parent_is, 0},
    {"link_kinds_have_names", link_kinds_have_names, 0},
    {"foreign_is_used_less_what_is_ours", foreign_is_used_less_what_is_ours, 0},
    {"each_process_is_marked", each_process_is_marked, 0},
};

ACRE_TEST_MAIN(tests)
