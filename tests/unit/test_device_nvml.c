/* NVML: how every kind of answer is taken (DEV-1, Bad input), against a scripted double. */
#include "device/device.h"

#include "support/test.h"
#include "support/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const whole[] = {NVML_DOUBLE, NULL};
static const char *const old[] = {NVML_DOUBLE_OLD, NULL};
static const char *const broken[] = {NVML_DOUBLE_BROKEN, NULL};
static const char *const missing[] = {"libacre-no-such-library.so.1", NULL};

static const struct acre_device_driver *const nvml = &acre_driver_nvml;

static int open_with(const char *const *sonames, const char *script, void **ret_self,
                     struct acre_error *err) {
    struct acre_device_options options = {.sysfs_root = "/nonexistent", .nvml_sonames = sonames};
    setenv("ACRE_NVML_DOUBLE", script, 1);
    return nvml->open(&options, ret_self, err);
}

static void *must_open(const char *script) {
    void *self = NULL;
    struct acre_error err = {0};
    int r = open_with(whole, script, &self, &err);
    acre_test_context("%s", err.text);
    REQUIRE(r == 0);
    acre_test_context("%s", "");
    return self;
}

static struct acre_device_info info_of(void *self, uint32_t index) {
    struct acre_device_info info;
    REQUIRE(nvml->info(self, index, &info, NULL) == 0);
    return info;
}

static struct acre_device_sample sample_of(void *self, uint32_t index) {
    struct acre_device_sample sample;
    REQUIRE(nvml->sample(self, index, &sample, NULL) == 0);
    return sample;
}

static void a_missing_library_says_what_the_loader_said(void) { /* DEV-5 */
    void *self = (void *)&whole;
    struct acre_error err = {0};
    CHECK_EQ(open_with(missing, "", &self, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "libacre-no-such-library.so.1: cannot open shared object file");
    CHECK(self == (void *)&whole);
}

static void a_missing_symbol_is_named(void) {
    void *self = NULL;
    struct acre_error err = {0};
    CHECK_EQ(open_with(broken, "", &self, &err), ACRE_EUNSUPPORTED);
    CHECK_HAS(err.text, "nvmlDeviceGetUUID");
}

static void init_failures_are_explained(void) {
    static const struct {
        const char *script;
        int code;
        const char *text;
    } cases[] = {
        {"init 9", ACRE_EUNAVAILABLE, "nvmlInit_v2 returned 9: the NVIDIA kernel driver is not"},
        {"init 4", ACRE_EDENIED, "returned 4: no permission"},
        {"init 17", ACRE_EDENIED, "returned 17"},
        {"init 18", ACRE_EUNAVAILABLE, "returned 18: library and driver versions differ"},
        {"init 20", ACRE_ENOMEM, "returned 20"},
        {"init 999", ACRE_EUNAVAILABLE, "returned 999: internal driver error"},
        {"init 12345", ACRE_EUNAVAILABLE, "returned 12345: unknown code"},
        {"fail nvmlDeviceGetCount_v2 1", ACRE_EUNAVAILABLE, "nvmlDeviceGetCount_v2 returned 1"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        void *self = NULL;
        struct acre_error err = {0};
        acre_test_context("%s", cases[i].script);
        CHECK_EQ(open_with(whole, cases[i].script, &self, &err), cases[i].code);
        CHECK_HAS(err.text, cases[i].text);
        CHECK(self == NULL);
    }
}

static void a_healthy_gpu_fills_its_fields(void) { /* DEV-1 */
    void *self = must_open("gpus 1; process 0 4321 2000");
    REQUIRE(nvml->count(self) == 1);
    struct acre_device_info info = info_of(self, 0);
    CHECK_STR(info.id, "GPU-00000000-1111-2222-3333-444444444444");
    CHECK_STR(info.uuid, info.id);
    CHECK_STR(info.pci_id, "0000:10:00.0");
    CHECK_STR(info.model, "NVIDIA Double 80GB");
    CHECK_STR(info.architecture, "Hopper");
    CHECK_STR(info.compute_capability, "9.0");
    CHECK_STR(info.driver_version, "580.65.06");
    CHECK_STR(info.library_version, "13.580.65.06");
    CHECK_STR(info.api_version, "CUDA 13.0");
    CHECK_STR(info.compute_mode, "default");
    CHECK_STR(info.serial, "165000");
    CHECK_U64(info.memory_total_mib, 81920);
    CHECK_EQ(info.temperature_slowdown_c, 87);
    CHECK_EQ(info.temperature_shutdown_c, 92);
    CHECK_U64(info.power_limit_max_mw, 700000);
    CHECK_U64(info.clock_sm_max_mhz, 1980);
    CHECK_U64(info.clock_memory_max_mhz, 2619);
    CHECK_U64(info.pcie_gen_max, 5);
    CHECK_U64(info.pcie_width_max, 16);
    CHECK(info.ecc_enabled && info.persistence_enabled && !info.mig_enabled && !info.divided);
    CHECK(!ACRE_HAS(&info, ACRE_INFO, nvlinks)); /* not supported: unknown, not 0 */
    CHECK(!ACRE_HAS(&info, ACRE_INFO, numa_node));
    struct acre_device_sample sample = sample_of(self, 0);
    CHECK_STR(sample.state, "ok");
    CHECK_U64(sample.memory_used_mib, 2000);
    CHECK_U64(sample.memory_reserved_mib, 500);
    CHECK_U64(sample.memory_free_mib, 81920 - 2500);
    CHECK_U64(sample.utilization_gpu_pct, 37);
    CHECK_U64(sample.utilization_memory_pct, 12);
    CHECK_EQ(sample.temperature_c, 41);
    CHECK_EQ(sample.temperature_memory_c, 52);
    CHECK_U64(sample.power_mw, 345678);
    CHECK_U64(sample.power_limit_mw, 700000);
    CHECK_U64(sample.clock_sm_mhz, 1755);
    CHECK_U64(sample.clock_memory_mhz, 2619);
    CHECK_U64(sample.throttle_reasons,
              1U << ACRE_THROTTLE_software_power_cap | 1U << ACRE_THROTTLE_software_thermal);
    CHECK_U64(sample.pcie_gen, 5);
    CHECK_U64(sample.pcie_width, 16);
    CHECK_U64(sample.ecc_corrected, 0);
    CHECK_U64(sample.ecc_uncorrected, 1);
    CHECK_U64(sample.ecc_corrected_lifetime, 10);
    CHECK_U64(sample.ecc_uncorrected_lifetime, 11);
    CHECK_U64(sample.pages_retired_corrected, 2); /* counted through "too small" */
    CHECK_U64(sample.pages_retired_uncorrected, 0);
    CHECK(ACRE_HAS(&sample, ACRE_SAMPLE, pages_retired_uncorrected));
    CHECK_U64(sample.rows_remapped_corrected, 3);
    CHECK_U64(sample.rows_remapped_uncorrected, 1);
    CHECK(sample.rows_remap_pending && !sample.rows_remap_failed);
    CHECK_U64(sample.xid_events, 0);
    CHECK(ACRE_HAS(&sample, ACRE_SAMPLE, xid_events));
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, xid_last));
    CHECK_STR(nvml->notes(self), "");
    nvml->close(self);
}

static void not_supported_leaves_one_field_unknown(void) {
    void *self = must_open("fail nvmlDeviceGetPowerUsage 3; fail nvmlDeviceGetRemappedRows 3;"
                           "fail nvmlDeviceGetArchitecture 3; fail nvmlDeviceRegisterEvents 3;"
                           "fail nvmlDeviceGetRetiredPages 3; fail nvmlDeviceGetFieldValues 3");
    struct acre_device_sample sample = sample_of(self, 0);
    struct acre_device_info info = info_of(self, 0);
    CHECK_STR(sample.state, "ok");
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, power_mw));
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, rows_remapped_corrected));
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, rows_remap_pending));
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, pages_retired_corrected));
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, temperature_memory_c));
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, xid_events));
    CHECK(!ACRE_HAS(&info, ACRE_INFO, architecture));
    CHECK(ACRE_HAS(&sample, ACRE_SAMPLE, power_limit_mw));
    CHECK(ACRE_HAS(&sample, ACRE_SAMPLE, temperature_c));
    CHECK_STR(nvml->notes(self), "");
    nvml->close(self);
}

static void odd_answers_are_noted_once(void) {
    void *self = must_open("gpus 2; fail nvmlDeviceGetPowerUsage 4");
    sample_of(self, 0);
    sample_of(self, 1);
    sample_of(self, 0);
    const char *notes = nvml->notes(self);
    CHECK_HAS(notes, "nvmlDeviceGetPowerUsage on GPU-00000000");
    CHECK_HAS(notes, "returned 4: no permission");
    CHECK(strchr(notes, '\n') == strrchr(notes, '\n'));
    nvml->close(self);
}

static void a_lost_gpu_is_marked_and_the_others_go_on(void) {
    void *self = must_open("gpus 3");
    CHECK_STR(sample_of(self, 1).state, "ok");
    nvml->close(self);
    self = must_open("gpus 3; lost 1");
    CHECK_U64(nvml->count(self), 2); /* lost before it had a name: noted, not listed */
    CHECK_HAS(nvml->notes(self), "(skipped)");
    CHECK_STR(info_of(self, 1).pci_id, "0000:12:00.0");
    nvml->close(self);
    /* lost in the middle of a sample: memory answered, utilisation did not */
    self = must_open("gpus 1; fail nvmlDeviceGetUtilizationRates 15");
    struct acre_device_sample sample = sample_of(self, 0);
    CHECK_STR(sample.state, "lost");
    CHECK_HAS(sample.reason, "the GPU is lost");
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, memory_used_mib)); /* no longer true */
    struct acre_process_list list = {0};
    CHECK_EQ(nvml->processes(self, 0, &list, NULL), ACRE_EUNSUPPORTED);
    nvml->close(self);
    self = must_open("gpus 1; fail nvmlDeviceGetUtilizationRates 16");
    CHECK_HAS(sample_of(self, 0).reason, "must be reset");
    nvml->close(self);
}

static void a_gpu_that_cannot_be_opened_is_left_out_with_a_note(void) {
    void *self = must_open("gpus 4; noopen 2 4; noopen 3 15");
    CHECK_U64(nvml->count(self), 2);
    CHECK_HAS(nvml->notes(self), "GPU 3 of 4 (skipped) returned 4: no permission");
    CHECK_HAS(nvml->notes(self), "GPU 4 of 4 (skipped) returned 15");
    nvml->close(self);
}

static void without_a_uuid_the_pci_id_is_the_name(void) {
    void *self = must_open("gpus 1; fail nvmlDeviceGetUUID 3");
    CHECK_STR(info_of(self, 0).id, "0000:10:00.0");
    nvml->close(self);
    self = must_open("gpus 1; fail nvmlDeviceGetUUID 3; fail nvmlDeviceGetPciInfo_v3 999");
    CHECK_U64(nvml->count(self), 0);
    CHECK_HAS(nvml->notes(self), "a GPU without a UUID (skipped)");
    nvml->close(self);
}

static void older_libraries_answer_through_older_symbols(void) {
    void *self = NULL;
    struct acre_error err = {0};
    REQUIRE(open_with(old, "gpus 1; process 0 77 100", &self, &err) == 0);
    struct acre_device_sample sample = sample_of(self, 0);
    CHECK_U64(sample.memory_used_mib, 600); /* v1 counts the reserve as used */
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, memory_reserved_mib));
    CHECK_EQ(sample.temperature_c, 41);
    CHECK_U64(sample.throttle_reasons, 1U << ACRE_THROTTLE_idle);
    struct acre_process_list list = {0};
    REQUIRE(nvml->processes(self, 0, &list, &err) == 0);
    REQUIRE(list.count == 1);
    CHECK_U64(list.items[0].pid, 77);
    free(list.items);
    nvml->close(self);
}

static void processes_of_all_kinds_are_listed(void) {
    void *self = must_open("gpus 2; process 0 11 100; graphics 0 12 20; mps 0 13 30; mps 0 11 100;"
                           "process 1 14 5; process 0 15 -1");
    struct acre_process_list list = {0};
    struct acre_error err = {0};
    REQUIRE(nvml->processes(self, 0, &list, &err) == 0);
    static const struct {
        uint64_t pid;
        const char *kind;
        int64_t mib;
    } expect[] = {{11, "mps", 100}, /* in two lists, and one process */
                  {15, "compute", -1},
                  {12, "graphics", 20},
                  {13, "mps", 30}};
    REQUIRE(list.count == ACRE_COUNT(expect));
    for (uint32_t i = 0; i < list.count; i++) {
        const struct acre_device_process *process = &list.items[i];
        CHECK_U64(process->pid, expect[i].pid);
        CHECK_STR(process->kind, expect[i].kind);
        CHECK_EQ(ACRE_HAS(process, ACRE_PROCESS, memory_mib) ? (int64_t)process->memory_mib : -1,
                 expect[i].mib);
    }
    list.count = 0;
    CHECK_EQ(nvml->processes(self, 2, &list, &err), ACRE_ENOTFOUND);
    free(list.items);
    nvml->close(self);
}

static void long_process_lists_are_read_whole(void) {
    void *self = must_open("gpus 1; many 0 1000; process 0 5 1");
    struct acre_process_list list = {0};
    REQUIRE(nvml->processes(self, 0, &list, NULL) == 0);
    CHECK_U64(list.count, 1001);
    CHECK_U64(list.items[1000].pid, 100000 + 1000);
    free(list.items);
    nvml->close(self);
    self = must_open("gpus 1; many 0 20000"); /* over the limit: noted, no list */
    list = (struct acre_process_list){0};
    CHECK_EQ(nvml->processes(self, 0, &list, NULL), 0);
    CHECK_U64(list.count, 0);
    CHECK_HAS(nvml->notes(self), "buffer too small");
    free(list.items);
    nvml->close(self);
}

static void drivers_with_wide_entries_are_read_through_v2(void) { /* nvml_abi.h */
    void *self = must_open("gpus 1; driver 535.54.03; process 0 11 100; process 0 12 200");
    struct acre_process_list list = {0};
    REQUIRE(nvml->processes(self, 0, &list, NULL) == 0);
    REQUIRE(list.count == 2);
    CHECK_U64(list.items[1].pid, 12);
    CHECK_U64(list.items[1].memory_mib, 200);
    free(list.items);
    nvml->close(self);
}

static void xid_events_are_counted_without_waiting(void) {
    void *self = must_open("gpus 2; xid 1 79; xid 1 31; xid 0 13");
    nvml->poll(self);
    struct acre_device_sample sample = sample_of(self, 1);
    CHECK_U64(sample.xid_events, 2);
    CHECK_U64(sample.xid_last, 31);
    CHECK_U64(sample_of(self, 0).xid_last, 13);
    nvml->poll(self);
    CHECK_U64(sample_of(self, 1).xid_events, 2);
    nvml->close(self);
    self = must_open("gpus 1; xid 0 79; fail nvmlEventSetCreate 3");
    nvml->poll(self);
    sample = sample_of(self, 0);
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, xid_events));
    nvml->close(self);
}

static void an_event_storm_does_not_hold_up_a_sample(void) {
    char script[4096] = "gpus 1";
    for (uint32_t i = 0; i < 200; i++) {
        strncat(script, ";xid 0 48", sizeof(script) - strlen(script) - 1);
    }
    void *self = must_open(script);
    nvml->poll(self);
    CHECK_U64(sample_of(self, 0).xid_events, 64);
    nvml->poll(self);
    nvml->poll(self);
    nvml->poll(self);
    CHECK_U64(sample_of(self, 0).xid_events, 200);
    nvml->close(self);
}

static void mig_instances_are_devices_with_a_parent(void) {
    void *self = must_open("gpus 2; mig 0 3; process 0 9 700");
    REQUIRE(nvml->count(self) == 5); /* GPU, its three instances, GPU */
    struct acre_device_info parent = info_of(self, 0);
    CHECK(parent.mig_enabled && parent.divided);
    for (uint32_t i = 1; i <= 3; i++) {
        struct acre_device_info info = info_of(self, i);
        struct acre_device_sample sample = sample_of(self, i);
        acre_test_context("%s", info.id);
        CHECK_STR(info.kind, "mig");
        CHECK_HAS(info.id, "MIG-");
        CHECK_STR(info.parent_id, parent.id);
        CHECK_U64(info.memory_total_mib, 9984);
        CHECK_U64(info.compute_units, 16);
        CHECK_U64(info.gpu_instance, i - 1 + 7);
        CHECK_U64(info.compute_instance, 0);
        CHECK(!info.divided);
        CHECK_U64(sample.memory_used_mib, 700);
        CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, utilization_gpu_pct));
        CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, power_mw));
    }
    CHECK_STR(info_of(self, 4).kind, "gpu");
    CHECK(!info_of(self, 4).mig_enabled);
    nvml->close(self);
}

static void check_links(const char *script, uint32_t gpus, const char *same, const char *other,
                        uint32_t island) {
    void *self = must_open(script);
    struct acre_link_list list = {0};
    REQUIRE(nvml->links(self, &list, NULL) == 0);
    acre_test_context("%s", script);
    CHECK_U64(list.count, gpus * (gpus - 1) / 2);
    for (uint32_t i = 0; i < list.count; i++) {
        bool together = list.items[i].a / island == list.items[i].b / island;
        CHECK_STR(link_name(list.items[i].kind), together ? same : other);
    }
    link_list_finish(&list);
    nvml->close(self);
}

static void pairs_are_joined_by_the_closest_connection(void) {
    check_links("gpus 8; island 4", 8, "nvlink", "system", 4);
    check_links("gpus 4; switch", 4, "nvswitch", "nvswitch", 4);
    check_links("gpus 8", 8, "numa", "system", 4);
    void *self = must_open("gpus 8; island 4");
    CHECK_U64(info_of(self, 0).nvlinks, 12);
    CHECK_U64(info_of(self, 0).nvlink_version, 4);
    nvml->close(self);
    self = must_open("gpus 2; fail nvmlDeviceGetTopologyCommonAncestor 3");
    struct acre_link_list list = {0};
    CHECK_EQ(nvml->links(self, &list, NULL), 0);
    CHECK_U64(list.count, 0);
    nvml->close(self);
}

static void locality_comes_from_sysfs(void) {
    struct tree tree = tree_create(NULL);
    tree_put(&tree, "bus/pci/devices/0000:10:00.0/numa_node", "1\n");
    tree_put(&tree, "bus/pci/devices/0000:10:00.0/local_cpulist", "16-31\n");
    tree_put(&tree, "bus/pci/devices/0000:11:00.0/numa_node", "-1\n");
    tree_put(&tree, "bus/pci/devices/0000:12:00.0/numa_node", "many\n");
    struct acre_device_options options = {.sysfs_root = tree.root, .nvml_sonames = whole};
    void *self = NULL;
    setenv("ACRE_NVML_DOUBLE", "gpus 3", 1);
    REQUIRE(nvml->open(&options, &self, NULL) == 0);
    CHECK_U64(info_of(self, 0).numa_node, 1);
    CHECK_STR(info_of(self, 0).cpu_affinity, "16-31");
    struct acre_device_info second = info_of(self, 1);
    CHECK(!ACRE_HAS(&second, ACRE_INFO, numa_node)); /* -1 is the kernel's "unknown" */
    CHECK_HAS(nvml->notes(self), "numa_node: value 'many'");
    nvml->close(self);
    tree_erase(&tree);
}

static void the_whole_set_attributes_foreign_memory(void) { /* DEV-6, Must show 3 */
    char script[128];
    uint64_t me = (uint64_t)getpid();
    struct acre_device_options options = {
        .sysfs_root = "/nonexistent", .nvml_sonames = whole, .opencl_sonames = missing};
    snprintf(script, sizeof(script), "gpus 8; island 4; process 2 %u 900; process 2 999999 50",
             (unsigned)me);
    setenv("ACRE_NVML_DOUBLE", script, 1);
    struct acre_devices *devices = acre_devices_open(&options);
    REQUIRE(acre_devices_count(devices) == 8); /* the CPU is not needed */
    struct acre_device_reading readings[8] = {{{0}, {0}}};
    acre_devices_read(devices, 5, NULL, 0, readings);
    CHECK_U64(readings[2].sample.memory_foreign_mib, 950);
    CHECK_U64(readings[2].sample.memory_unattributed_mib, 0);
    CHECK_U64(readings[2].sample.processes, 2);
    CHECK_U64(readings[2].sample.sampled_ms, 5);
    CHECK_HAS(readings[2].processes.items[0].command, "test_device_nvml");
    CHECK(ACRE_HAS(&readings[2].processes.items[0], ACRE_PROCESS, user));
    CHECK(!ACRE_HAS(&readings[2].processes.items[1], ACRE_PROCESS, command));
    acre_devices_read(devices, 6, &me, 1, readings);
    CHECK_U64(readings[2].sample.memory_foreign_mib, 50);
    CHECK(!readings[2].processes.items[0].foreign);
    for (uint32_t i = 0; i < 8; i++) {
        CHECK_U64(acre_devices_info(devices, i)->island, i / 4);
        acre_device_reading_finish(&readings[i]);
    }
    acre_devices_close(devices);
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(a_missing_library_says_what_the_loader_said),
    TEST(a_missing_symbol_is_named),
    TEST(init_failures_are_explained),
    TEST(a_healthy_gpu_fills_its_fields),
    TEST(not_supported_leaves_one_field_unknown),
    TEST(odd_answers_are_noted_once),
    TEST(a_lost_gpu_is_marked_and_the_others_go_on),
    TEST(a_gpu_that_cannot_be_opened_is_left_out_with_a_note),
    TEST(without_a_uuid_the_pci_id_is_the_name),
    TEST(older_libraries_answer_through_older_symbols),
    TEST(processes_of_all_kinds_are_listed),
    TEST(long_process_lists_are_read_whole),
    TEST(drivers_with_wide_entries_are_read_through_v2),
    TEST(xid_events_are_counted_without_waiting),
    TEST(an_event_storm_does_not_hold_up_a_sample),
    TEST(mig_instances_are_devices_with_a_parent),
    TEST(pairs_are_joined_by_the_closest_connection),
    TEST(locality_comes_from_sysfs),
    TEST(the_whole_set_attributes_foreign_memory),
};

ACRE_TEST_MAIN(tests)
