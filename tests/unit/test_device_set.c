/* The set of all devices: each one once, by the driver that knows most; OpenCL behind it (DEV-3).
 */
#include "device/device.h"

#include "support/test.h"

#include <stdlib.h>

static const char *const nvml[] = {NVML_DOUBLE, NULL};
static const char *const opencl[] = {OPENCL_DOUBLE, NULL};
static const char *const none[] = {"libacre-no-such-library.so.1", NULL};

static struct acre_device_options options_of(const char *const *nvml_names,
                                             const char *const *opencl_names) {
    return (struct acre_device_options){
        .sysfs_root = "/nonexistent", .nvml_sonames = nvml_names, .opencl_sonames = opencl_names};
}

static const struct acre_device_attempt *attempt_of(const struct acre_devices *devices,
                                                    const char *name) {
    uint32_t count = 0;
    const struct acre_device_attempt *attempts = acre_devices_attempts(devices, &count);
    uint32_t i = 0;
    while (i < count && strcmp(attempts[i].driver->name, name) != 0) {
        i++;
    }
    REQUIRE(i < count);
    return &attempts[i];
}

static void a_gpu_both_see_is_listed_by_the_vendor(void) {
    static const char *const scripts[] = {"khr", "nv"};
    for (size_t i = 0; i < ACRE_COUNT(scripts); i++) {
        struct acre_device_options options = options_of(nvml, opencl);
        setenv("ACRE_NVML_DOUBLE", "gpus 2", 1); /* at 10:00.0 and 11:00.0 */
        setenv("ACRE_OPENCL_DOUBLE", scripts[i], 1);
        struct acre_devices *devices = acre_devices_open(&options);
        acre_test_context("%s", scripts[i]);
        static const char *const ids[] = {"GPU-00000000-1111-2222-3333-444444444444",
                                          "GPU-00000001-1111-2222-3333-444444444444",
                                          "0000:77:00.0", "opencl:Double:Double CPU:0"};
        REQUIRE(acre_devices_count(devices) == ACRE_COUNT(ids));
        for (uint32_t d = 0; d < ACRE_COUNT(ids); d++) {
            CHECK_STR(acre_devices_info(devices, d)->id, ids[d]);
        }
        CHECK_U64(attempt_of(devices, "opencl")->found, 3);
        CHECK_U64(attempt_of(devices, "opencl")->listed, 2);
        CHECK(attempt_of(devices, "cpu")->skipped);
        acre_devices_close(devices);
    }
}

static void without_addresses_names_count_equals(void) {
    struct acre_device_options options = options_of(none, opencl);
    setenv("ACRE_OPENCL_DOUBLE", "", 1);
    struct acre_devices *devices = acre_devices_open(&options);
    REQUIRE(acre_devices_count(devices) == 3);
    const struct acre_device_info *info = acre_devices_info(devices, 1);
    CHECK_STR(acre_devices_info(devices, 0)->id, "opencl:Double:Double GPU:0");
    CHECK_STR(info->id, "opencl:Double:Double GPU:1");
    CHECK_STR(info->kind, "gpu");
    CHECK_STR(acre_devices_info(devices, 2)->kind, "cpu");
    CHECK_STR(info->vendor, "Double Inc.");
    CHECK_STR(info->driver_version, "1.2.3");
    CHECK_STR(info->api_version, "OpenCL 3.0");
    CHECK_U64(info->compute_units, 96);
    CHECK_U64(info->memory_total_mib, 16384);
    CHECK(!ACRE_HAS(info, ACRE_INFO, clock_sm_max_mhz)); /* it answered 0: unknown */
    acre_devices_close(devices);
}

static void the_cpu_is_listed_when_there_is_no_gpu(void) { /* DEV-3 */
    struct acre_device_options options = options_of(none, none);
    options.sysfs_root = NULL;
    struct acre_devices *devices = acre_devices_open(&options);
    REQUIRE(acre_devices_count(devices) >= 1);
    uint32_t index = 0;
    while (index < acre_devices_count(devices) - 1 &&
           strcmp(acre_devices_info(devices, index)->id, "cpu") != 0) {
        index++;
    }
    CHECK_STR(acre_devices_info(devices, index)->kind, "cpu");
    const struct acre_device_attempt *attempt = attempt_of(devices, "nvml");
    CHECK_EQ(attempt->code, ACRE_EUNAVAILABLE);
    CHECK_HAS(attempt->err.text, "libacre-no-such-library.so.1");
    acre_devices_close(devices);
    acre_devices_close(NULL);
}

static void opencl_failures_are_explained(void) {
    struct acre_error err = {0};
    void *self = NULL;
    struct acre_device_options options = options_of(none, opencl);
    setenv("ACRE_OPENCL_DOUBLE", "none", 1);
    CHECK_EQ(acre_driver_opencl.open(&options, &self, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "clGetPlatformIDs returned -1001: no OpenCL driver is installed");
    setenv("ACRE_OPENCL_DOUBLE", "broken", 1);
    REQUIRE(acre_driver_opencl.open(&options, &self, &err) == 0);
    CHECK_U64(acre_driver_opencl.count(self), 0);
    CHECK_HAS(acre_driver_opencl.notes(self), "clGetDeviceIDs on platform '' returned -6");
    acre_driver_opencl.close(self);
    options.opencl_sonames = nvml; /* a library that is not OpenCL */
    CHECK_EQ(acre_driver_opencl.open(&options, &self, &err), ACRE_EUNSUPPORTED);
    CHECK_HAS(err.text, "clGetPlatformIDs");
    options.opencl_sonames = none;
    CHECK_EQ(acre_driver_opencl.open(&options, &self, &err), ACRE_EUNAVAILABLE);
    acre_driver_opencl.close(NULL);
}

static void an_opencl_device_may_be_away(void) {
    struct acre_device_options options = options_of(none, opencl);
    struct acre_device_sample sample;
    struct acre_device_info info;
    void *self = NULL;
    setenv("ACRE_OPENCL_DOUBLE", "", 1);
    REQUIRE(acre_driver_opencl.open(&options, &self, NULL) == 0);
    REQUIRE(acre_driver_opencl.sample(self, 0, &sample, NULL) == 0);
    CHECK_STR(sample.state, "ok");
    setenv("ACRE_OPENCL_DOUBLE", "away", 1);
    REQUIRE(acre_driver_opencl.sample(self, 0, &sample, NULL) == 0);
    CHECK_STR(sample.state, "unavailable");
    CHECK_EQ(acre_driver_opencl.sample(self, 3, &sample, NULL), ACRE_ENOTFOUND);
    CHECK_EQ(acre_driver_opencl.info(self, 3, &info, NULL), ACRE_ENOTFOUND);
    acre_driver_opencl.close(self);
}

static void process_lists_have_a_limit(void) {
    struct acre_process_list list = {0};
    struct acre_device_process *process = NULL;
    for (uint32_t i = 0; i < ACRE_PROCESSES_MAX; i++) {
        REQUIRE(acre_process_list_add(&list, &process, NULL) == 0);
    }
    struct acre_error err = {0};
    CHECK_EQ(acre_process_list_add(&list, &process, &err), ACRE_ELIMIT);
    CHECK_U64(list.count, ACRE_PROCESSES_MAX);
    CHECK_HAS(err.text, "16384");
    free(list.items);
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static void telemetry_alone_opens_no_compute_library(void) {
    struct acre_device_options options = options_of(nvml, opencl);
    options.telemetry_only = true;
    setenv("ACRE_NVML_DOUBLE", "gpus 2", 1);
    struct acre_devices *devices = acre_devices_open(&options);
    CHECK_U64(acre_devices_count(devices), 2);
    CHECK(attempt_of(devices, "opencl")->skipped);
    CHECK(attempt_of(devices, "cpu")->skipped);
    CHECK(!attempt_of(devices, "nvml")->skipped);
    acre_devices_close(devices);
}

static const struct acre_test tests[] = {
    TEST(a_gpu_both_see_is_listed_by_the_vendor),
    TEST(without_addresses_names_count_equals),
    TEST(the_cpu_is_listed_when_there_is_no_gpu),
    TEST(opencl_failures_are_explained),
    TEST(an_opencl_device_may_be_away),
    TEST(process_lists_have_a_limit),
    {"telemetry_alone_opens_no_compute_library", telemetry_alone_opens_no_compute_library, 0},
};

ACRE_TEST_MAIN(tests)
