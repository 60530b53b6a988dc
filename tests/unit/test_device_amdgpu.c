/* amdgpu: trees of MI300X and MI250X, and broken ones (DEV-2, Bad input). */
#include "device/device.h"
#include "device/kfd.h"

#include "support/test.h"
#include "support/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct acre_device_driver *const amdgpu = &acre_driver_amdgpu;

static void *must_open(const struct tree *tree) {
    struct acre_device_options options = {.sysfs_root = tree->root};
    struct acre_error err = {0};
    void *self = NULL;
    int r = amdgpu->open(&options, &self, &err);
    acre_test_context("%s", err.text);
    REQUIRE(r == 0);
    acre_test_context("%s", "");
    return self;
}

static struct acre_device_info info_of(void *self, uint32_t index) {
    struct acre_device_info info;
    REQUIRE(amdgpu->info(self, index, &info, NULL) == 0);
    return info;
}

static struct acre_device_sample sample_of(void *self, uint32_t index) {
    struct acre_device_sample sample;
    REQUIRE(amdgpu->sample(self, index, &sample, NULL) == 0);
    return sample;
}

static void a_whole_mi300x_is_one_device(void) {
    struct tree tree = tree_create("mi300x-spx.tree");
    void *self = must_open(&tree);
    REQUIRE(amdgpu->count(self) == 2);
    struct acre_device_info info = info_of(self, 1);
    CHECK_STR(info.id, "GPU-1122334455667702");
    CHECK_STR(info.uuid, info.id);
    CHECK_STR(info.pci_id, "0000:27:00.0");
    CHECK_STR(info.model, "AMD Instinct MI300X OAM");
    CHECK_STR(info.vendor, "AMD");
    CHECK_STR(info.architecture, "gfx942");
    CHECK_STR(info.driver_version, "6.10.5");
    CHECK_STR(info.compute_partition, "SPX");
    CHECK_STR(info.memory_partition, "NPS1");
    CHECK_STR(info.cpu_affinity, "48-95");
    CHECK_U64(info.numa_node, 1);
    CHECK_U64(info.memory_total_mib, 192 * 1024);
    CHECK_U64(info.compute_units, 304);
    CHECK_U64(info.xcds, 8);
    CHECK_U64(info.share_step_milli, 1000); /* SPX: whole only */
    CHECK_EQ(info.temperature_slowdown_c, 100);
    CHECK_EQ(info.temperature_shutdown_c, 110);
    CHECK_U64(info.power_limit_max_mw, 750000);
    CHECK_U64(info.clock_sm_max_mhz, 2100);
    CHECK_U64(info.clock_memory_max_mhz, 1300);
    CHECK_U64(info.pcie_gen_max, 5);
    CHECK_U64(info.pcie_width_max, 16);
    CHECK(!info.divided && !info.simulated);
    struct acre_device_sample sample = sample_of(self, 1);
    CHECK_STR(sample.state, "ok");
    CHECK_U64(sample.memory_used_mib, 20 * 1024);
    CHECK_U64(sample.memory_free_mib, 172 * 1024);
    CHECK_U64(sample.utilization_gpu_pct, 42);
    CHECK_U64(sample.utilization_memory_pct, 7);
    CHECK_EQ(sample.temperature_c, 47);
    CHECK_EQ(sample.temperature_memory_c, 41);
    CHECK_U64(sample.power_mw, 141000);
    CHECK_U64(sample.power_limit_mw, 750000);
    CHECK_U64(sample.clock_sm_mhz, 132);
    CHECK_U64(sample.clock_memory_mhz, 900);
    CHECK_U64(sample.pcie_gen, 5);
    CHECK_U64(sample.pcie_width, 16);
    CHECK_U64(sample.ecc_corrected, 15); /* summed over the blocks */
    CHECK_U64(sample.ecc_uncorrected, 1);
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, throttle_reasons));
    CHECK_STR(amdgpu->notes(self), "");
    amdgpu->close(self);
    tree_erase(&tree);
}

static void cpx_makes_every_xcd_a_device(void) { /* DEV-2 */
    struct tree tree = tree_create("mi300x-cpx.tree");
    void *self = must_open(&tree);
    REQUIRE(amdgpu->count(self) == 18);
    struct acre_device_info whole = info_of(self, 9);
    CHECK_STR(whole.id, "GPU-1122334455667702");
    CHECK(whole.divided);
    CHECK_U64(whole.xcds, 8);
    CHECK_U64(whole.compute_units, 304);
    CHECK_U64(whole.share_step_milli, 125); /* CPX: k/8 */
    for (uint32_t i = 0; i < 8; i++) {
        struct acre_device_info info = info_of(self, 10 + i);
        struct acre_device_sample sample = sample_of(self, 10 + i);
        char id[64];
        snprintf(id, sizeof(id), "GPU-1122334455667702/xcp%u", i);
        CHECK_STR(info.id, id);
        CHECK_STR(info.kind, "xcp");
        CHECK_STR(info.parent_id, whole.id);
        CHECK_U64(info.memory_total_mib, 24 * 1024);
        CHECK_U64(info.compute_units, 38);
        CHECK_U64(info.xcds, 1);
        CHECK(!ACRE_HAS(&info, ACRE_INFO, uuid)); /* its GPU's, not its own */
        CHECK_U64(sample.memory_used_mib, (i + 9) * 100);
        CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, power_mw));
        CHECK_STR(sample.state, "ok");
    }
    CHECK_STR(amdgpu->notes(self), "");
    amdgpu->close(self);
    tree_erase(&tree);
}

static void an_mi250x_module_is_two_devices(void) {
    struct tree tree = tree_create("mi250x.tree");
    void *self = must_open(&tree);
    REQUIRE(amdgpu->count(self) == 2);
    struct acre_device_info info = info_of(self, 0);
    CHECK_STR(info.model, "AMD Instinct MI250X"); /* no product_name: by PCI number */
    CHECK_STR(info.architecture, "gfx90a");
    CHECK_U64(info.compute_units, 110);
    CHECK_U64(info.memory_total_mib, 64 * 1024 - 16);
    CHECK(!ACRE_HAS(&info, ACRE_INFO, compute_partition));
    CHECK(!ACRE_HAS(&info, ACRE_INFO, share_step_milli));
    CHECK(!ACRE_HAS(&info, ACRE_INFO, driver_version));
    struct acre_device_sample sample = sample_of(self, 0);
    CHECK_EQ(sample.temperature_c, 43); /* junction, not edge */
    CHECK_U64(sample.power_mw, 93000);
    CHECK_U64(sample.clock_sm_mhz, 800);
    struct acre_process_list list = {0};
    CHECK_EQ(amdgpu->processes(self, 0, &list, NULL), 0);
    CHECK_U64(list.count, 0);
    amdgpu->close(self);
    tree_erase(&tree);
}

static void processes_hold_memory_per_device(void) { /* DEV-6 */
    struct tree tree = tree_create("mi300x-cpx.tree");
    void *self = must_open(&tree);
    static const struct {
        uint32_t index;
        uint64_t memory_mib; /* 0: not on this device */
    } cases[] = {{0, 1536}, {1, 1024}, {2, 512}, {3, 0}, {9, 0}};
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_process_list list = {0};
        acre_test_context("device %u", cases[i].index);
        REQUIRE(amdgpu->processes(self, cases[i].index, &list, NULL) == 0);
        CHECK_U64(list.count, cases[i].memory_mib > 0);
        if (list.count == 1) {
            CHECK_U64(list.items[0].pid, 4242);
            CHECK_U64(list.items[0].memory_mib, cases[i].memory_mib);
        }
        free(list.items);
    }
    struct acre_process_list list = {0};
    CHECK_EQ(amdgpu->processes(self, 18, &list, NULL), ACRE_ENOTFOUND);
    amdgpu->close(self);
    tree_delete(&tree, "class/kfd");
    self = must_open(&tree);
    struct acre_error err = {0};
    CHECK_U64(amdgpu->count(self), 2); /* without KFD partitions cannot be told apart */
    CHECK_EQ(amdgpu->processes(self, 0, &list, &err), ACRE_EUNSUPPORTED);
    CHECK_HAS(err.text, "class/kfd");
    amdgpu->close(self);
    tree_erase(&tree);
}

static void xgmi_joins_whole_gpus(void) {
    static const char *const trees[] = {"mi300x-spx.tree", "mi300x-cpx.tree", "mi250x.tree"};
    for (size_t i = 0; i < ACRE_COUNT(trees); i++) {
        struct tree tree = tree_create(trees[i]);
        void *self = must_open(&tree);
        struct acre_link_list list = {0};
        acre_test_context("%s", trees[i]);
        REQUIRE(amdgpu->links(self, &list, NULL) == 0);
        REQUIRE(list.count == 1);
        CHECK_EQ(list.items[0].kind, ACRE_LINK_XGMI);
        CHECK_U64(list.items[0].a, 0);
        CHECK_U64(list.items[0].b, i == 1 ? 9 : 1);
        link_list_finish(&list);
        amdgpu->close(self);
        tree_erase(&tree);
    }
}

static void the_set_puts_slices_on_their_gpus_island(void) {
    struct tree tree = tree_create("mi300x-cpx.tree");
    const char *const none[] = {"libacre-no-such-library.so.1", NULL};
    struct acre_device_options options = {
        .sysfs_root = tree.root, .nvml_sonames = none, .opencl_sonames = none};
    struct acre_devices *devices = acre_devices_open(&options);
    CHECK_U64(acre_devices_count(devices), 18);
    for (uint32_t i = 0; i < acre_devices_count(devices); i++) {
        CHECK_STR(acre_devices_info(devices, i)->island_kind, "xgmi");
        CHECK_U64(acre_devices_info(devices, i)->island, 0);
    }
    acre_devices_close(devices);
    tree_erase(&tree);
}

static void nothing_here_says_where_it_looked(void) { /* DEV-5 */
    struct tree tree = tree_create(NULL);
    struct acre_device_options options = {.sysfs_root = tree.root};
    struct acre_error err = {0};
    void *self = NULL;
    CHECK_EQ(amdgpu->open(&options, &self, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "class/drm: 0 cards");
    tree_put(&tree, "class/drm/card0/device/vendor", "0x10de\n");
    tree_put(&tree, "class/drm/card1/device/vendor", "nonsense\n");
    CHECK_EQ(amdgpu->open(&options, &self, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "2 cards, no AMD GPU");
    CHECK_HAS(err.text, "card1/device/vendor: value 'nonsense'");
    tree_erase(&tree);
}

static void damaged_files_leave_one_field_unknown(void) { /* Bad input */
    static const struct {
        const char *path;
        const char *value; /* NULL: a directory instead */
        bool live;
        int bit;
        const char *note;
    } cases[] = {
        {"mem_info_vram_total", "lots\n", false, ACRE_INFO_memory_total_mib, "value 'lots'"},
        {"mem_info_vram_total", "-1\n", false, ACRE_INFO_memory_total_mib, "value '-1'"},
        {"mem_info_vram_total", "99999999999999999999\n", false, ACRE_INFO_memory_total_mib,
         "value '99999999999999999999'"},
        {"mem_info_vram_used", "", true, ACRE_SAMPLE_memory_used_mib, "value ''"},
        {"mem_info_vram_used", NULL, true, ACRE_SAMPLE_memory_used_mib, "is a directory"},
        {"gpu_busy_percent", "101\n", true, ACRE_SAMPLE_utilization_gpu_pct, "from 0 to 100"},
        {"product_name", "two\nlines\n", false, ACRE_INFO_COUNT, "one line of text"},
        {"max_link_speed", "fast\n", false, ACRE_INFO_pcie_gen_max, "value 'fast'"},
        {"current_link_speed", "\n", true, ACRE_SAMPLE_pcie_gen, "PCIe speed"},
        {"pp_dpm_sclk", "0: x\n", false, ACRE_INFO_clock_sm_max_mhz, "a level like"},
        {"numa_node", "-2\n", false, ACRE_INFO_numa_node, "value '-2'"},
        {"hwmon/hwmon3/temp2_input", "hot\n", true, ACRE_SAMPLE_COUNT, "value 'hot'"},
        {"hwmon/hwmon3/temp3_input", "9999999999\n", true, ACRE_SAMPLE_temperature_memory_c,
         "9999999999"},
        {"hwmon/hwmon3/power1_input", "1e6\n", true, ACRE_SAMPLE_power_mw, "value '1e6'"},
        {"ras/umc_err_count", "ue: 0\nce: -3\n", true, ACRE_SAMPLE_COUNT, "ce: value '-3'"},
        {"unique_id", NULL, false, ACRE_INFO_uuid, "is a directory"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct tree tree = tree_create("mi300x-spx.tree");
        char path[256];
        snprintf(path, sizeof(path), "class/drm/card0/device/%s", cases[i].path);
        tree_delete(&tree, path);
        if (cases[i].value != NULL) {
            tree_put(&tree, path, cases[i].value);
        } else {
            tree_make_directory(&tree, path);
        }
        void *self = must_open(&tree);
        acre_test_context("%s '%s'", cases[i].path, cases[i].value);
        struct acre_device_info info = info_of(self, 0);
        struct acre_device_sample sample = sample_of(self, 0);
        uint64_t valid = cases[i].live ? sample.valid : info.valid;
        CHECK((valid >> cases[i].bit & 1) == 0);
        CHECK_U64(amdgpu->count(self), 2);
        CHECK_HAS(amdgpu->notes(self), cases[i].path);
        CHECK_HAS(amdgpu->notes(self), cases[i].note);
        sample_of(self, 0); /* the second time adds no second note */
        const char *first = strstr(amdgpu->notes(self), cases[i].path);
        CHECK(first != NULL && strstr(first + 1, cases[i].path) == NULL);
        amdgpu->close(self);
        tree_erase(&tree);
    }
}

static void second_choices_are_taken(void) {
    struct tree tree = tree_create("mi250x.tree");
    tree_delete(&tree, "class/drm/card0/device/hwmon/hwmon3/temp2_input");
    tree_delete(&tree, "class/drm/card0/device/hwmon/hwmon3/freq1_input");
    tree_delete(&tree, "class/drm/card0/device/hwmon/hwmon3/freq2_input");
    tree_put(&tree, "class/drm/card1/device/device", "0x1234\n");
    tree_delete(&tree, "class/drm/card1/device/unique_id");
    tree_delete(&tree, "class/drm/card1/device/hwmon");
    void *self = must_open(&tree);
    struct acre_device_sample sample = sample_of(self, 0);
    CHECK_EQ(sample.temperature_c, 38);  /* edge */
    CHECK_U64(sample.clock_sm_mhz, 800); /* the starred level */
    CHECK_U64(sample.clock_memory_mhz, 1600);
    struct acre_device_info info = info_of(self, 1);
    CHECK_STR(info.model, "AMD GPU 0x1234");
    CHECK_STR(info.id, "0000:c6:00.0");
    sample = sample_of(self, 1);
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, temperature_c));
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, power_mw));
    CHECK_STR(amdgpu->notes(self), "");
    amdgpu->close(self);
    tree_erase(&tree);
}

static void unreadable_files_are_noted(void) {
    struct tree tree = tree_create("mi300x-spx.tree");
    REQUIRE(chmod(tree.root, 0755) == 0);
    REQUIRE(chmod(tree_path(&tree, "class/drm/card0/device/gpu_busy_percent"), 0) == 0);
    bool root = geteuid() == 0; /* root may read everything: look as nobody does */
    REQUIRE(!root || seteuid(65534) == 0);
    void *self = must_open(&tree);
    struct acre_device_sample sample = sample_of(self, 0);
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, utilization_gpu_pct));
    CHECK(ACRE_HAS(&sample, ACRE_SAMPLE, utilization_memory_pct));
    CHECK_HAS(amdgpu->notes(self), "gpu_busy_percent: Permission denied");
    amdgpu->close(self);
    REQUIRE(!root || seteuid(0) == 0);
    tree_erase(&tree);
}

static void a_card_without_an_address_has_no_name(void) {
    struct tree tree = tree_create("mi300x-spx.tree");
    tree_put(&tree, "class/drm/card0/device/uevent", "DRIVER=amdgpu\n");
    tree_put(&tree, "class/drm/card2/device/vendor", "0x1002\n");
    tree_put(&tree, "class/drm/card2/device/uevent", "PCI_SLOT_NAME=here\n");
    tree_put(&tree, "class/drm/card3/device/vendor", "0x1002\n"); /* no uevent at all */
    void *self = must_open(&tree);
    CHECK_U64(amdgpu->count(self), 1);
    CHECK_HAS(amdgpu->notes(self),
              "card0/device/uevent: no line that starts with 'PCI_SLOT_NAME='");
    CHECK_HAS(amdgpu->notes(self), "value 'here'");
    amdgpu->close(self);
    tree_erase(&tree);
}

static void impossible_partitions_mark_the_device(void) { /* DEV-2, B3 */
    static const struct {
        const char *compute, *memory, *properties, *reason;
    } cases[] = {
        {"SPX\n", "NPS4\n", NULL, "SPX with NPS4"},
        {"TPX\n", "NPS1\n", NULL, "cannot be divided evenly"},
        {"HALF\n", "NPS1\n", NULL, "'HALF'; accepted: SPX"},
        {"SPX\n", "NPS3\n", NULL, "'NPS3'; accepted: NPS1"},
        {"SPX\n", "NPS1\n",
         "simd_count 1216\nsimd_per_cu 4\nlocation_id 1280\ndomain 0\nnum_xcc 7\n", "7 XCDs"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct tree tree = tree_create("mi300x-spx.tree");
        tree_put(&tree, "class/drm/card0/device/current_compute_partition", cases[i].compute);
        tree_put(&tree, "class/drm/card0/device/current_memory_partition", cases[i].memory);
        if (cases[i].properties != NULL) {
            tree_put(&tree, "class/kfd/kfd/topology/nodes/1/properties", cases[i].properties);
        }
        void *self = must_open(&tree);
        acre_test_context("%s", cases[i].reason);
        struct acre_device_sample sample = sample_of(self, 0);
        struct acre_device_info info = info_of(self, 0);
        CHECK_STR(sample.state, "misconfigured");
        CHECK_HAS(sample.reason, cases[i].reason);
        CHECK(!ACRE_HAS(&info, ACRE_INFO, share_step_milli));
        CHECK_HAS(amdgpu->notes(self), cases[i].reason);
        CHECK_STR(sample_of(self, 1).state, "ok"); /* the others go on */
        amdgpu->close(self);
        tree_erase(&tree);
    }
}

static void damaged_compute_nodes_are_left_out(void) {
    struct tree tree = tree_create("mi300x-spx.tree");
    tree_put(&tree, "class/kfd/kfd/topology/nodes/1/properties", "location_id far\ndomain 0\n");
    tree_put(&tree, "class/kfd/kfd/topology/nodes/7/gpu_id", "77\n"); /* no properties */
    tree_put(&tree, "class/kfd/kfd/topology/nodes/8/gpu_id", "x\n");
    tree_put(&tree, "class/kfd/kfd/topology/nodes/x/gpu_id", "9\n");
    void *self = must_open(&tree);
    struct acre_device_info first = info_of(self, 0);
    struct acre_device_info second = info_of(self, 1);
    CHECK(!ACRE_HAS(&first, ACRE_INFO, compute_units));
    CHECK_U64(second.compute_units, 304);
    CHECK_HAS(amdgpu->notes(self), "GPU node 1 has no valid location_id");
    amdgpu->close(self);
    tree_erase(&tree);
}

static void a_device_that_went_away_is_lost(void) {
    struct tree tree = tree_create("mi300x-spx.tree");
    void *self = must_open(&tree);
    tree_delete(&tree, "class/drm/card0");
    struct acre_device_sample sample = sample_of(self, 0);
    CHECK_STR(sample.state, "lost");
    CHECK_HAS(sample.reason, "disappeared");
    CHECK_STR(sample_of(self, 1).state, "ok");
    struct acre_device_info info;
    CHECK_EQ(amdgpu->info(self, 2, &info, NULL), ACRE_ENOTFOUND);
    CHECK_EQ(amdgpu->sample(self, 2, &sample, NULL), ACRE_ENOTFOUND);
    amdgpu->close(self);
    amdgpu->close(NULL);
    tree_erase(&tree);
}

static void gfx_versions_have_names(void) {
    char text[32];
    CHECK_STR(kfd_gfx_name(90402, text, sizeof(text)), "gfx942");
    CHECK_STR(kfd_gfx_name(90010, text, sizeof(text)), "gfx90a");
    CHECK_STR(kfd_gfx_name(110001, text, sizeof(text)), "gfx1101");
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(a_whole_mi300x_is_one_device),
    TEST(cpx_makes_every_xcd_a_device),
    TEST(an_mi250x_module_is_two_devices),
    TEST(processes_hold_memory_per_device),
    TEST(xgmi_joins_whole_gpus),
    TEST(the_set_puts_slices_on_their_gpus_island),
    TEST(nothing_here_says_where_it_looked),
    TEST(damaged_files_leave_one_field_unknown),
    TEST(second_choices_are_taken),
    TEST(unreadable_files_are_noted),
    TEST(a_card_without_an_address_has_no_name),
    TEST(impossible_partitions_mark_the_device),
    TEST(damaged_compute_nodes_are_left_out),
    TEST(a_device_that_went_away_is_lost),
    TEST(gfx_versions_have_names),
};

ACRE_TEST_MAIN(tests)
