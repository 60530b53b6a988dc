/* The same checks over every device driver that is present (DEV-1 ... DEV-4): lists are stable,
 * names unique, units sane, validity bits honest, samples repeatable, strangers not found. */
#include "device/device.h"
#include "device/sim.h"
#include "device/value.h"

#include "core/units.h"
#include "support/test.h"
#include "support/tree.h"

#include <stdlib.h>

static const char *const nvml_double[] = {NVML_DOUBLE, NULL};
static const char *const nvml_double_old[] = {NVML_DOUBLE_OLD, NULL};
static const char *const opencl_double[] = {OPENCL_DOUBLE, NULL};

enum { DEVICES = 64 };

static bool is_one_of(const char *text, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A valid field holds a value, not a driver's way of saying "unknown". */
static void check_fields(const struct acre_record_type *type, const void *record) {
    for (uint32_t i = 0; i < type->count; i++) {
        const struct acre_column *field = &type->columns[i];
        const void *at = (const char *)record + field->offset;
        if (!column_known(type, record, i)) {
            continue;
        }
        acre_test_context("%s", field->name);
        if (field->kind == ACRE_COLUMN_text) {
            CHECK(((const char *)at)[0] != '\0');
            CHECK(strcmp(at, "N/A") != 0 && strcmp(at, "unknown") != 0);
        }
        if (field->kind == ACRE_COLUMN_number) {
            uint64_t value = *(const uint64_t *)at;
            CHECK(value != UINT64_MAX && value != UINT32_MAX);
            CHECK(field->unit != ACRE_UNIT_PCT || value <= 100);
            CHECK(field->unit != ACRE_UNIT_MIB || value < ACRE_MIB_MAX);
            CHECK(field->unit != ACRE_UNIT_MW || value < 10 * 1000 * 1000);
            CHECK(field->unit != ACRE_UNIT_MHZ || value < 20 * 1000);
        }
        if (field->kind == ACRE_COLUMN_whole) {
            int64_t value = *(const int64_t *)at;
            CHECK(field->unit != ACRE_UNIT_C || (value >= -60 && value <= 200));
        }
        if (field->kind == ACRE_COLUMN_reasons) {
            CHECK(*(const uint64_t *)at >> ACRE_THROTTLE_COUNT == 0);
        }
    }
    acre_test_context("%s", "");
}

static void check_info(const struct acre_device_driver *driver, void *self,
                       struct acre_device_info *infos, uint32_t index) {
    static const char *const kinds[] = {"gpu", "mig", "xcp", "cpu"};
    struct acre_device_info *info = &infos[index];
    REQUIRE(driver->info(self, index, info, NULL) == 0);
    check_fields(&info_type, info);
    REQUIRE(ACRE_HAS(info, ACRE_INFO, id));
    CHECK(ACRE_HAS(info, ACRE_INFO, simulated) && ACRE_HAS(info, ACRE_INFO, divided));
    CHECK_EQ(info->simulated, strcmp(driver->name, "sim") == 0);
    CHECK_STR(info->driver, driver->name);
    CHECK(is_one_of(info->kind, kinds, ACRE_COUNT(kinds)));
    CHECK(!ACRE_HAS(info, ACRE_INFO, memory_total_mib) || info->memory_total_mib > 0);
    char pci_id[ACRE_PCI_ID_MAX];
    CHECK(!ACRE_HAS(info, ACRE_INFO, pci_id) ||
          value_pci_id(acre_str_from(info->pci_id), pci_id, NULL) == 0);
    bool parent_found = !ACRE_HAS(info, ACRE_INFO, parent_id);
    for (uint32_t i = 0; i < index; i++) {
        CHECK(strcmp(infos[i].id, info->id) != 0);
        parent_found =
            parent_found || (strcmp(infos[i].id, info->parent_id) == 0 && infos[i].divided);
    }
    CHECK(parent_found);
}

static void check_sample(const struct acre_device_driver *driver, void *self,
                         const struct acre_device_info *info, uint32_t index) {
    static const char *const states[] = {"ok", "lost", "misconfigured", "unavailable"};
    struct acre_device_sample sample;
    REQUIRE(driver->sample(self, index, &sample, NULL) == 0);
    check_fields(&sample_type, &sample);
    REQUIRE(ACRE_HAS(&sample, ACRE_SAMPLE, state));
    CHECK(is_one_of(sample.state, states, ACRE_COUNT(states)));
    CHECK_EQ(ACRE_HAS(&sample, ACRE_SAMPLE, reason),
             strcmp(sample.state, "ok") != 0 && strcmp(sample.state, "unavailable") != 0);
    if (ACRE_HAS(info, ACRE_INFO, memory_total_mib) &&
        ACRE_HAS(&sample, ACRE_SAMPLE, memory_used_mib)) {
        CHECK(sample.memory_used_mib <= info->memory_total_mib);
    }
    if (ACRE_HAS(&sample, ACRE_SAMPLE, memory_free_mib)) {
        CHECK(ACRE_HAS(&sample, ACRE_SAMPLE, memory_used_mib));
        CHECK(sample.memory_free_mib <= info->memory_total_mib);
    }
}

static void check_strangers(const struct acre_device_driver *driver, void *self, uint32_t count) {
    struct acre_device_info info = {.valid = 42};
    struct acre_device_sample sample = {.valid = 42};
    struct acre_process_list list = {0};
    struct acre_error err = {0};
    CHECK_EQ(driver->info(self, count, &info, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "no device");
    CHECK_EQ(driver->sample(self, UINT32_MAX, &sample, &err), ACRE_ENOTFOUND);
    CHECK(driver->processes == NULL ||
          driver->processes(self, count, &list, &err) == ACRE_ENOTFOUND);
    CHECK_U64(info.valid, 42); /* a failed call changed nothing */
    CHECK_U64(sample.valid, 42);
}

static void check_links(const struct acre_device_driver *driver, void *self, uint32_t count) {
    struct acre_link_list links = {0};
    if (driver->links == NULL) {
        return;
    }
    CHECK_EQ(driver->links(self, &links, NULL), 0);
    for (uint32_t i = 0; i < links.count; i++) {
        CHECK(links.items[i].a < links.items[i].b && links.items[i].b < count);
        CHECK(links.items[i].kind < ACRE_LINK_COUNT);
    }
    link_list_finish(&links);
}

static void check_processes(const struct acre_device_driver *driver, void *self, uint32_t index) {
    struct acre_process_list list = {0};
    if (driver->processes != NULL && driver->processes(self, index, &list, NULL) == 0) {
        for (uint32_t i = 0; i < list.count; i++) {
            CHECK(ACRE_HAS(&list.items[i], ACRE_PROCESS, pid) && list.items[i].pid > 0);
            check_fields(&process_type, &list.items[i]);
        }
    }
    free(list.items);
}

/* Ends the test as skipped when the driver is not present on this machine. */
static void conform(const struct acre_device_driver *driver,
                    const struct acre_device_options *options, uint32_t at_least) {
    static struct acre_device_info first[DEVICES];
    static struct acre_device_info again[DEVICES];
    struct acre_error err = {0};
    for (uint32_t round = 0; round < 2; round++) { /* close and reopen */
        void *self = NULL;
        int r = driver->open(options, &self, &err);
        if (r == ACRE_EUNAVAILABLE) {
            acre_test_skip("%s", err.text);
        }
        acre_test_context("%s", err.text);
        REQUIRE(r == 0);
        acre_test_context("%s", "");
        uint32_t count = driver->count(self);
        REQUIRE(count >= at_least && count <= DEVICES);
        struct acre_device_info *infos = round == 0 ? first : again;
        for (uint32_t i = 0; i < count; i++) {
            check_info(driver, self, infos, i);
            check_sample(driver, self, &infos[i], i);
            check_processes(driver, self, i);
            if (driver->poll != NULL) {
                driver->poll(self);
            }
            check_sample(driver, self, &infos[i], i);
            CHECK_STR(infos[i].id, round == 0 ? infos[i].id : first[i].id);
        }
        check_strangers(driver, self, count);
        check_links(driver, self, count);
        CHECK(driver->notes == NULL || driver->notes(self) != NULL);
        driver->close(self);
    }
    driver->close(NULL);
}

static void nvml_on_this_machine(void) {
    struct acre_device_options options = {0};
    conform(&acre_driver_nvml, &options, 0);
}

static void nvml_against_the_double(void) {
    static const char *const scripts[] = {
        "gpus 1",
        "gpus 8; island 4; process 3 77 1000; xid 2 79",
        "gpus 8; switch",
        "gpus 2; mig 1 3",
        "gpus 4; lost 2",
        "gpus 2; fail nvmlDeviceGetUtilizationRates 15",
        "gpus 1; fail nvmlDeviceGetUUID 3; fail nvmlDeviceGetPowerUsage 999",
        "gpus 0",
    };
    for (size_t i = 0; i < ACRE_COUNT(scripts); i++) {
        struct acre_device_options options = {.sysfs_root = "/nonexistent",
                                              .nvml_sonames = nvml_double};
        setenv("ACRE_NVML_DOUBLE", scripts[i], 1);
        conform(&acre_driver_nvml, &options, 0);
        options.nvml_sonames = nvml_double_old;
        conform(&acre_driver_nvml, &options, 0);
    }
}

static void amdgpu_on_this_machine(void) {
    struct acre_device_options options = {0};
    conform(&acre_driver_amdgpu, &options, 0);
}

static void amdgpu_over_trees(void) {
    static const char *const trees[] = {"mi300x-spx.tree", "mi300x-cpx.tree", "mi250x.tree"};
    for (size_t i = 0; i < ACRE_COUNT(trees); i++) {
        struct tree tree = tree_create(trees[i]);
        struct acre_device_options options = {.sysfs_root = tree.root};
        conform(&acre_driver_amdgpu, &options, 2);
        tree_erase(&tree);
    }
}

static void opencl_on_this_machine(void) {
    struct acre_device_options options = {0};
    conform(&acre_driver_opencl, &options, 0);
}

static void opencl_against_the_double(void) {
    static const char *const scripts[] = {"", "khr", "nv", "away", "broken"};
    for (size_t i = 0; i < ACRE_COUNT(scripts); i++) {
        struct acre_device_options options = {.opencl_sonames = opencl_double};
        setenv("ACRE_OPENCL_DOUBLE", scripts[i], 1);
        conform(&acre_driver_opencl, &options, i < 4 ? 3 : 0);
    }
}

static void cpu_on_this_machine(void) {
    struct acre_device_options options = {0};
    conform(&acre_driver_cpu, &options, 1);
}

static void sim_from_the_example(void) {
    struct acre_sim_cluster *cluster = NULL;
    REQUIRE(acre_sim_load(ACRE_TEST_DATA "/../../examples/two-nodes.acre", &cluster, NULL) == 0);
    for (uint32_t i = 0; i < acre_sim_node_count(cluster); i++) {
        struct acre_device_options options = {.sim = cluster, .sim_node = i};
        conform(&acre_driver_sim, &options, 1);
    }
    acre_sim_destroy(cluster);
}

static void sim_only_on_request(void) { /* DEV-4 */
    struct acre_device_options options = {0};
    void *self = NULL;
    struct acre_error err = {0};
    CHECK_EQ(acre_driver_sim.open(&options, &self, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "need --sim FILE");
    CHECK(self == NULL);
}

#define TEST(name)                                                                                 \
    { #name, name, 120 }
static const struct acre_test tests[] = {
    TEST(nvml_on_this_machine), TEST(nvml_against_the_double), TEST(amdgpu_on_this_machine),
    TEST(amdgpu_over_trees),    TEST(opencl_on_this_machine),  TEST(opencl_against_the_double),
    TEST(cpu_on_this_machine),  TEST(sim_from_the_example),    TEST(sim_only_on_request),
};

ACRE_TEST_MAIN(tests)
