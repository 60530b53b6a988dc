/* compute_devices.c - the runtime, its devices, contexts: listed, described, opened, closed. */
#include "conformance/compute_suite.h"

#include <stdio.h>
#include <stdlib.h>

static void devices_are_described(void) { /* GPU-1 */
    struct kit kit;
    kit_open(&kit);
    uint32_t count = acre_compute_count(kit.compute);
    for (uint32_t i = 0; i < count; i++) {
        const struct acre_compute_device *device = acre_compute_device(kit.compute, i);
        acre_test_context("device %u of %u", i, count);
        REQUIRE(device != NULL);
        CHECK_STR(device->backend, kit_choice.backend);
        CHECK(device->name[0] != '\0');
        CHECK(device->identity[0] != '\0');
        CHECK(device->memory_bytes >= (uint64_t)64 * KIT_MIB);
        CHECK(device->units > 0);
        CHECK(device->group_max >= 256); /* the suite's groups; every device has that */
        CHECK(device->local_bytes >= 16384);
        CHECK(device->capabilities & ACRE_CAN_SOURCE);
        CHECK((device->capabilities & ACRE_CAN_NATIVE) == 0 || kit_is("cpu"));
        printf("%s: %s, %llu MiB, %u units, groups of %u, local %u, can %#x, %s\n", device->backend,
               device->name, (unsigned long long)(device->memory_bytes / KIT_MIB), device->units,
               device->group_max, device->local_bytes, device->capabilities, device->identity);
    }
    CHECK(acre_compute_device(kit.compute, count) == NULL);
    CHECK(acre_compute_device(kit.compute, UINT32_MAX) == NULL);
    CHECK(acre_compute_absent(kit.compute, kit_choice.backend) == NULL);
    kit_close(&kit);
}

static void devices_of_all_backends_keep_the_order(void) { /* GPU-1 */
    static const char *const order[] = {"cuda", "hip", "opencl", "cpu"};
    struct acre_compute *compute = NULL;
    OK(acre_compute_open(NULL, &compute, ERR));
    size_t at = 0;
    for (uint32_t i = 0; i < acre_compute_count(compute); i++) {
        const char *backend = acre_compute_device(compute, i)->backend;
        while (at < ACRE_COUNT(order) && strcmp(order[at], backend) != 0) {
            at++;
        }
        REQUIRE(at < ACRE_COUNT(order));
    }
    CHECK_STR(order[ACRE_MIN(at, ACRE_COUNT(order) - 1)], "cpu"); /* last, and always there */
    for (size_t i = 0; i < ACRE_COUNT(order); i++) {
        const char *absent = acre_compute_absent(compute, order[i]);
        bool is_listed = false;
        for (uint32_t j = 0; j < acre_compute_count(compute); j++) {
            is_listed =
                is_listed || strcmp(acre_compute_device(compute, j)->backend, order[i]) == 0;
        }
        acre_test_context("%s: %s", order[i], absent != NULL ? absent : "present");
        CHECK_EQ(absent == NULL, is_listed);
        CHECK(absent == NULL || absent[0] != '\0');
    }
    acre_test_context("%s", "");
    CHECK(acre_compute_absent(compute, "abacus") == NULL); /* was not asked for */
    acre_compute_close(compute);
    acre_compute_close(NULL);
}

static void devices_unknown_backends_are_refused(void) {
    static const char *const names[] = {"abacus", "cpu,", ",cpu", "cpu,cpu", "CPU", " cpu"};
    struct acre_compute *compute = NULL;
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        acre_test_context("'%s'", names[i]);
        struct acre_compute_options options = {.backends = names[i], .cache = ""};
        FAILS(acre_compute_open(&options, &compute, ERR), ACRE_EINVALID, "backends");
        CHECK(compute == NULL);
    }
    CHECK_EQ(
        acre_compute_open(&(struct acre_compute_options){.backends = "abacus"}, &compute, NULL),
        ACRE_EINVALID); /* no error wanted */
}

static void devices_that_are_absent_say_why(void) { /* GPU-1 */
    static const char *const names[] = {"hip", "cuda", "opencl"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        struct acre_compute *compute = NULL;
        struct acre_context *context = NULL;
        struct acre_compute_options options = {.backends = names[i], .cache = ""};
        OK(acre_compute_open(&options, &compute, ERR));
        const char *absent = acre_compute_absent(compute, names[i]);
        if (absent != NULL) {
            FAILS(acre_context_open(compute, 0, NULL, &context, ERR), ACRE_EUNAVAILABLE,
                  "no device", names[i], absent);
            acre_compute_close(compute);
            return;
        }
        acre_compute_close(compute);
    }
    acre_test_skip("all back ends have devices here");
}

static void contexts_bad_options_are_refused(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_context *context = NULL;
    uint32_t count = acre_compute_count(kit.compute);
    FAILS(acre_context_open(kit.compute, count, NULL, &context, ERR), ACRE_EINVALID, "device");
    FAILS(acre_context_open(kit.compute, UINT32_MAX, NULL, &context, ERR), ACRE_EINVALID, "device");
    struct acre_context_options options = {.isolation = (enum acre_context_isolation)7};
    FAILS(acre_context_open(kit.compute, kit.device, &options, &context, ERR), ACRE_EINVALID,
          "isolation", "7");
    CHECK(context == NULL);
    kit_close(&kit);
    acre_context_close(NULL);
}

static void contexts_report_what_they_are(void) {
    struct kit kit;
    kit_open_with(&kit, (struct acre_context_options){.tenant = "anna"});
    struct acre_context_report report;
    memset(&report, 0xff, sizeof(report));
    acre_context_report(kit.context, &report);
    CHECK_EQ(report.is_isolated, kit_is_isolated());
    CHECK_EQ(report.rebuilt, 0);
    CHECK_EQ(report.buffers, 0);
    CHECK_EQ(report.lost, 0);
    CHECK_STR(report.failure, "");
    struct acre_buffer a = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 4096);
    struct acre_buffer b = kit_buffer(&kit, ACRE_MEMORY_PINNED, 4096);
    acre_context_report(kit.context, &report);
    CHECK_EQ(report.buffers, 2);
    kit_free(&kit, a);
    kit_free(&kit, b);
    kit_close(&kit);
}

static void contexts_come_and_go(void) {
    struct kit kit;
    kit_open(&kit);
    struct kit_held before = kit_held(kit.context);
    for (int i = 0; i < 5; i++) {
        struct acre_context *contexts[3];
        for (int j = 0; j < 3; j++) {
            contexts[j] = kit_context(&kit, (struct acre_context_options){.tenant = "other"});
        }
        for (int j = 0; j < 3; j++) {
            struct acre_stream *stream = NULL;
            struct acre_buffer buffer;
            OK(acre_stream_create(contexts[j], &stream, ERR));
            OK(acre_buffer_alloc(stream, ACRE_MEMORY_DEVICE, 1000, &buffer, ERR));
            OK(acre_fill(stream, buffer, 0, 1000, 7, 1, ERR));
            acre_context_close(contexts[j]); /* with all it holds */
        }
    }
    CHECK_HELD(kit.context, &before);
    kit_close(&kit);
}

static void contexts_are_closed_with_the_runtime(void) {
    struct kit kit;
    kit_open(&kit);
    struct acre_buffer buffer = kit_buffer(&kit, ACRE_MEMORY_DEVICE, 1 << 20);
    OK(acre_fill(kit.stream, buffer, 0, 1 << 20, 0, 8, ERR));
    (void)kit_context(&kit, (struct acre_context_options){0});
    (void)kit_kernel(&kit, "add");
    acre_compute_close(kit.compute); /* leak checkers tell the rest */
}

static const struct acre_test tests[] = {
    TEST(devices_are_described),
    TEST(devices_of_all_backends_keep_the_order),
    TEST(devices_unknown_backends_are_refused),
    TEST(devices_that_are_absent_say_why),
    TEST(contexts_bad_options_are_refused),
    TEST(contexts_report_what_they_are),
    TEST(contexts_come_and_go),
    TEST(contexts_are_closed_with_the_runtime),
};
SUITE(compute_devices_suite, tests);
