/* acre doctor's findings: what was tried, what it answered, what to do (DEV-5). */
#include "device/doctor.h"
#include "device/report.h"

#include "device/node.h"
#include "support/test.h"
#include "support/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const whole[] = {NVML_DOUBLE, NULL};
static const char *const broken[] = {NVML_DOUBLE_BROKEN, NULL};
static const char *const none[] = {"libacre-no-such-library.so.1", NULL};

struct clinic {
    struct tree tree;
    struct acre_doctor_options options;
    struct acre_doctor doctor;
    char sys[128], proc[128], dev[128], mps[128];
};

static struct clinic *clinic_create(const char *const *nvml_sonames) {
    struct clinic *clinic = acre_calloc(1, sizeof(*clinic));
    clinic->tree = tree_create(NULL);
    snprintf(clinic->sys, sizeof(clinic->sys), "%s/sys", clinic->tree.root);
    snprintf(clinic->proc, sizeof(clinic->proc), "%s/proc", clinic->tree.root);
    snprintf(clinic->dev, sizeof(clinic->dev), "%s/dev", clinic->tree.root);
    snprintf(clinic->mps, sizeof(clinic->mps), "%s/mps", clinic->tree.root);
    clinic->options = (struct acre_doctor_options){
        .devices = {.sysfs_root = clinic->sys,
                    .proc_root = clinic->proc,
                    .nvml_sonames = nvml_sonames,
                    .opencl_sonames = none},
        .dev_root = clinic->dev,
        .mps_directory = clinic->mps,
    };
    return clinic;
}

static void examine(struct clinic *clinic) {
    struct acre_devices *devices = acre_devices_open(&clinic->options.devices);
    struct acre_device_reading readings[32] = {{{0}, {0}}};
    REQUIRE(acre_devices_count(devices) <= ACRE_COUNT(readings));
    acre_devices_read(devices, 1, NULL, 0, readings);
    acre_doctor_examine(&clinic->options, devices, readings, &clinic->doctor);
    for (uint32_t i = 0; i < ACRE_COUNT(readings); i++) {
        acre_device_reading_finish(&readings[i]);
    }
    acre_devices_close(devices);
}

static void clinic_destroy(struct clinic *clinic) {
    tree_erase(&clinic->tree);
    free(clinic);
}

/* The first finding of the area whose path or answer has `part`; NULL: none. */
static const struct acre_finding *find(const struct clinic *clinic, const char *area,
                                       const char *part) {
    for (uint32_t i = 0; i < clinic->doctor.count; i++) {
        const struct acre_finding *finding = &clinic->doctor.findings[i];
        if (strcmp(finding->area, area) == 0 &&
            (strstr(finding->tried, part) != NULL || strstr(finding->answer, part) != NULL)) {
            return finding;
        }
    }
    return NULL;
}

static void expect(const struct clinic *clinic, const char *area, const char *part,
                   enum acre_finding_status status, const char *advice) {
    const struct acre_finding *finding = find(clinic, area, part);
    acre_test_context("%s with '%s'", area, part);
    REQUIRE(finding != NULL);
    CHECK_STR(acre_finding_status_name(finding->status), acre_finding_status_name(status));
    CHECK_HAS(finding->advice, advice);
}

static void put_pci(const struct clinic *clinic, const char *id, const char *vendor,
                    const char *class) {
    char path[128];
    snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/vendor", id);
    tree_put(&clinic->tree, path, vendor);
    snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/class", id);
    tree_put(&clinic->tree, path, class);
}

static void a_machine_without_gpus_is_well(void) { /* Must show 2 */
    struct clinic *clinic = clinic_create(none);
    put_pci(clinic, "0000:00:1f.0", "0x8086\n", "0x060100\n");
    examine(clinic);
    CHECK_U64(clinic->doctor.problems, 0);
    CHECK_U64(clinic->doctor.gpus, 0);
    CHECK_HAS(clinic->doctor.verdict, "no GPU on this machine");
    expect(clinic, "pci bus", "1 PCI function: 0 NVIDIA GPUs, 0 AMD GPUs", ACRE_FINDING_ABSENT, "");
    expect(clinic, "nvml", "cannot open shared object file", ACRE_FINDING_ABSENT, "--gpus all");
    expect(clinic, "amdgpu", "0 cards", ACRE_FINDING_ABSENT, "should have an AMD GPU");
    expect(clinic, "opencl", "libacre-no", ACRE_FINDING_ABSENT, "ocl-icd-libopencl1");
    expect(clinic, "cpu", "1 device", ACRE_FINDING_OK, "");
    expect(clinic, "mps", "No such file", ACRE_FINDING_ABSENT, "for NVIDIA GPUs");
    expect(clinic, "cgroups", "not mounted", ACRE_FINDING_NOTE, "mount cgroup version 2");
    clinic_destroy(clinic);
}

static void a_gpu_on_the_bus_without_a_driver_is_a_problem(void) {
    struct clinic *clinic = clinic_create(none);
    put_pci(clinic, "0000:3b:00.0", "0x10de\n", "0x030200\n");
    put_pci(clinic, "0000:3b:00.1", "0x10de\n", "0x040300\n"); /* its sound: not a GPU */
    put_pci(clinic, "0000:c1:00.0", "0x1002\n", "0x120000\n");
    examine(clinic);
    CHECK_HAS(clinic->doctor.verdict, "2 problems, 0 usable GPUs");
    expect(clinic, "pci bus", "3 PCI functions: 1 NVIDIA GPU, 1 AMD GPU", ACRE_FINDING_OK, "");
    expect(clinic, "nvml", "libnvidia-ml", ACRE_FINDING_PROBLEM, "nvidia-driver");
    expect(clinic, "amdgpu", "class/drm", ACRE_FINDING_PROBLEM, "modprobe amdgpu");
    expect(clinic, "permissions", "nvidiactl", ACRE_FINDING_NOTE, "container");
    expect(clinic, "permissions", "kfd", ACRE_FINDING_NOTE, "container");
    expect(clinic, "mps", "control", ACRE_FINDING_ABSENT, "nvidia-cuda-mps-control -d");
    clinic_destroy(clinic);
}

static void refusals_of_the_library_are_problems(void) {
    static const struct {
        const char *const *sonames;
        const char *script, *part, *advice;
        enum acre_finding_status status;
    } cases[] = {
        {whole, "init 18", "versions differ: reload the driver or reboot", "see the message",
         ACRE_FINDING_PROBLEM},
        {whole, "init 9", "is not loaded: modprobe nvidia", "see the message",
         ACRE_FINDING_PROBLEM},
        {whole, "init 4", "no permission", "/dev/nvidiactl", ACRE_FINDING_PROBLEM},
        {broken, "", "lacks the symbol", "R450", ACRE_FINDING_ABSENT},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct clinic *clinic = clinic_create(cases[i].sonames);
        setenv("ACRE_NVML_DOUBLE", cases[i].script, 1);
        examine(clinic);
        expect(clinic, "nvml", cases[i].part, cases[i].status, cases[i].advice);
        clinic_destroy(clinic);
    }
}

static void a_working_gpu_is_ready(void) {
    struct clinic *clinic = clinic_create(whole);
    setenv("ACRE_NVML_DOUBLE", "gpus 2; fail nvmlDeviceGetPowerUsage 4", 1);
    put_pci(clinic, "0000:10:00.0", "0x10de\n", "0x030200\n");
    tree_put(&clinic->tree, "proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 2025\n");
    tree_put(&clinic->tree, "dev/nvidiactl", "");
    tree_put(&clinic->tree, "dev/nvidia0", "");
    tree_put(&clinic->tree, "dev/nvidia-uvm", "");
    tree_put(&clinic->tree, "dev/dri/renderD128", "");
    tree_put(&clinic->tree, "mps/control", "");
    tree_put(&clinic->tree, "sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n");
    examine(clinic);
    CHECK_STR(clinic->doctor.verdict, "ready: 2 GPUs");
    expect(clinic, "nvml", "2 devices found, 2 listed", ACRE_FINDING_OK, "");
    expect(clinic, "nvml", "nvmlDeviceGetPowerUsage", ACRE_FINDING_NOTE, "");
    expect(clinic, "cpu", "not needed: a GPU was found", ACRE_FINDING_OK, "");
    expect(clinic, "versions", "kernel driver 580.65.06, library 580.65.06", ACRE_FINDING_OK, "");
    expect(clinic, "permissions", "nvidia0", ACRE_FINDING_OK, "");
    expect(clinic, "permissions", "renderD128", ACRE_FINDING_OK, "");
    expect(clinic, "mps", "pipe exists", ACRE_FINDING_OK, "");
    expect(clinic, "cgroups", "version 2 (unified), controllers: cpu memory", ACRE_FINDING_OK, "");
    clinic_destroy(clinic);
}

static void a_version_mismatch_is_a_problem(void) {
    struct clinic *clinic = clinic_create(whole);
    setenv("ACRE_NVML_DOUBLE", "gpus 1", 1);
    tree_put(&clinic->tree, "proc/driver/nvidia/version",
             "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.12.01  Sun\n");
    examine(clinic);
    expect(clinic, "versions", "kernel driver 570.12.01", ACRE_FINDING_PROBLEM, "reboot");
    tree_put(&clinic->tree, "proc/driver/nvidia/version", "no number here\n");
    examine(clinic);
    expect(clinic, "versions", "kernel driver unknown", ACRE_FINDING_OK, "");
    clinic_destroy(clinic);
}

static void lost_devices_and_missing_ones_are_problems(void) {
    struct clinic *clinic = clinic_create(whole);
    setenv("ACRE_NVML_DOUBLE", "gpus 1; fail nvmlDeviceGetMemoryInfo_v2 15", 1);
    examine(clinic);
    expect(clinic, "nvml", "lost: the GPU is lost", ACRE_FINDING_PROBLEM, "drain");
    CHECK_U64(clinic->doctor.gpus, 0);
    put_pci(clinic, "0000:10:00.0", "0x10de\n", "0x030200\n");
    setenv("ACRE_NVML_DOUBLE", "gpus 0", 1);
    examine(clinic);
    expect(clinic, "nvml", "0 devices", ACRE_FINDING_PROBLEM, "dmesg");
    clinic_destroy(clinic);
}

static void unusable_device_files_are_problems(void) {
    struct clinic *clinic = clinic_create(none);
    tree_put(&clinic->tree, "dev/kfd", "");
    REQUIRE(chmod(clinic->tree.root, 0755) == 0);
    REQUIRE(chmod(tree_path(&clinic->tree, "dev/kfd"), 0) == 0);
    /* access(2) asks for the real user: give it up for good, in this test's own process */
    bool root = getuid() == 0;
    REQUIRE(!root || setresuid(65534, 65534, 0) == 0);
    examine(clinic);
    expect(clinic, "permissions", "kfd", ACRE_FINDING_PROBLEM, "group");
    REQUIRE(!root || setresuid(0, 0, 0) == 0);
    clinic_destroy(clinic);
}

static void cgroup_layouts_are_told_apart(void) {
    struct clinic *clinic = clinic_create(none);
    tree_put(&clinic->tree, "sys/fs/cgroup/memory/cgroup.procs", "");
    examine(clinic);
    expect(clinic, "cgroups", "version 1 only", ACRE_FINDING_NOTE, "version 2");
    tree_put(&clinic->tree, "sys/fs/cgroup/unified/cgroup.controllers", "\n");
    examine(clinic);
    expect(clinic, "cgroups", "hybrid", ACRE_FINDING_NOTE, "unified_cgroup_hierarchy");
    clinic_destroy(clinic);
}

static void findings_have_a_limit(void) {
    struct clinic *clinic = clinic_create(none);
    char path[64];
    for (uint32_t i = 0; i < ACRE_FINDINGS_MAX + 10; i++) {
        snprintf(path, sizeof(path), "dev/%s%u", i % 2 == 0 ? "nvidia" : "dri/renderD", i);
        tree_put(&clinic->tree, path, "");
    }
    examine(clinic);
    CHECK_U64(clinic->doctor.count, ACRE_FINDINGS_MAX);
    CHECK_HAS(clinic->doctor.verdict, "no GPU");
    clinic_destroy(clinic);
}

static void the_report_is_whole_and_honest(void) { /* DEV, Must show 3 */
    struct acre_device_options options = {
        .sysfs_root = "/nonexistent", .nvml_sonames = whole, .opencl_sonames = none};
    setenv("ACRE_NVML_DOUBLE", "gpus 2; island 2; process 0 999999 10", 1);
    struct acre_devices *devices = acre_devices_open(&options);
    struct acre_device_reading readings[2] = {{{0}, {0}}};
    struct acre_node_info node;
    acre_node_read(&options, 7, &node);
    acre_devices_read(devices, 7, NULL, 0, readings);
    struct acre_buf out;
    struct acre_json json;
    acre_buf_init(&out, 1 << 20);
    acre_json_begin(&json, &out, true);
    acre_report_node(&json, &options, &node, devices, readings);
    REQUIRE(acre_json_end(&json) == 0);
    json_t *root = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
    REQUIRE(root != NULL);
    json_t *device = json_array_get(json_object_get(root, "devices"), 0);
    json_t *live = json_object_get(device, "live");
    json_t *link = json_array_get(json_object_get(device, "links"), 0);
    json_t *process = json_array_get(json_object_get(device, "process_list"), 0);
    CHECK(json_is_false(json_object_get(device, "simulated")));
    CHECK(json_is_null(json_object_get(device, "numa_node")));
    CHECK_EQ(json_integer_value(json_object_get(live, "memory_foreign_mib")), 10);
    CHECK_EQ(json_integer_value(json_object_get(process, "pid")), 999999);
    CHECK(json_is_true(json_object_get(process, "foreign")));
    CHECK(json_is_null(json_object_get(process, "command")));
    CHECK_STR(json_string_value(json_object_get(link, "kind")), "nvlink");
    CHECK_STR(json_string_value(json_object_get(link, "peer")), acre_devices_info(devices, 1)->id);
    CHECK_EQ(json_integer_value(json_object_get(link, "count")), 4);
    CHECK_U64(json_array_size(json_object_get(root, "drivers")), 4);
    json_decref(root);
    acre_buf_finish(&out);
    acre_device_reading_finish(&readings[0]);
    acre_device_reading_finish(&readings[1]);
    acre_devices_close(devices);
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(a_machine_without_gpus_is_well),
    TEST(a_gpu_on_the_bus_without_a_driver_is_a_problem),
    TEST(refusals_of_the_library_are_problems),
    TEST(a_working_gpu_is_ready),
    TEST(a_version_mismatch_is_a_problem),
    TEST(lost_devices_and_missing_ones_are_problems),
    TEST(unusable_device_files_are_problems),
    TEST(cgroup_layouts_are_told_apart),
    TEST(findings_have_a_limit),
    TEST(the_report_is_whole_and_honest),
};

ACRE_TEST_MAIN(tests)
