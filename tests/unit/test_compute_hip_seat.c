/* HIP's table from open to close, over a library that answers as HIP 6 does (hip_double.c): what is
 * given to HIP is right, device by device and thread by thread. What AMD's own library answers
 * without a device is in test_compute_hip.c, real devices in tests/gpu. */
#include "compute/gpu/seat.h"

#include "support/gpu_kit.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define TABLE (&backend_hip)

/* Loaded by its path, it is found by its soname when hip.c asks for libamdhip64.so.6. */
static void begin(const char *script) {
    setenv("ACRE_HIP_DOUBLE", script, 1);
    REQUIRE(dlopen(HIP_DOUBLE, RTLD_NOW | RTLD_LOCAL) != NULL);
}

static void open_kit(struct kit *kit, const char *script) {
    begin(script);
    kit_open(kit, TABLE);
}

/* An empty code object of an AMD GPU: headers only. */
struct image {
    Elf64_Ehdr header;
    Elf64_Shdr section;
};

static const struct image image = {
    .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
               .e_machine = EM_AMDGPU,
               .e_shoff = offsetof(struct image, section),
               .e_shentsize = sizeof(Elf64_Shdr),
               .e_shnum = 1},
};

static uint64_t find_add(struct kit *kit, uint64_t *ret_module) {
    struct kernel_facts facts = {0};
    uint64_t kernel = 0;
    KIT_OK(kit, TABLE->load(kit->seat, &image, sizeof(image), ret_module, &kit->err));
    KIT_OK(kit, TABLE->kernel(kit->seat, *ret_module, "add", &kernel, &facts, &kit->err));
    CHECK_U64(facts.group_max, 1024);
    CHECK_U64(facts.registers, 12);
    return kernel;
}

static void devices_are_those_of_hip_6(void) {
    begin("");
    void *self = NULL;
    struct acre_error err = {0};
    REQUIRE_EQ(TABLE->open(&self, &err), 0);
    REQUIRE_EQ(TABLE->count(self), 2);
    struct acre_compute_device device = {0};
    TABLE->describe(self, 1, &device);
    CHECK_STR(device.backend, "hip");
    CHECK_STR(device.name, "Double 1");
    CHECK_STR(device.uuid, "GPU-1122334455667702");
    CHECK_STR(device.identity, "gfx942:sramecc+:xnack- HIP 60342131 driver 60342131 HIPRTC 0.0");
    CHECK_U64(device.memory_bytes, (uint64_t)2 << 30);
    CHECK_U64(device.units, 304);
    CHECK_U64(device.capabilities, ACRE_CAN_DOUBLE | ACRE_CAN_ATOMIC64); /* no compiler there */
    TABLE->close(self);
}

static void no_device_is_told(void) {
    begin("none");
    void *self = NULL;
    struct acre_error err = {0};
    CHECK_EQ(TABLE->open(&self, &err), ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "hipInit: HIP finds no usable AMD GPU (hipErrorNoDevice)");
    CHECK(self == NULL);
}

static void no_compiler_is_told(void) {
    struct kit kit;
    open_kit(&kit, "");
    struct native_source source = {.text = "", .options = ""};
    struct acre_buf binary, log;
    acre_buf_init(&binary, 1);
    acre_buf_init(&log, 1);
    CHECK_EQ(TABLE->compile(kit.seat, &source, &binary, &log, &kit.err), ACRE_EUNSUPPORTED);
    CHECK_HAS(kit.err.text, "HIPRTC: libamdhip64.so.6 lacks the symbol 'hiprtc");
    acre_buf_finish(&binary);
    acre_buf_finish(&log);
    kit_close(&kit);
}

static void work_goes_through_in_order(void) {
    enum { ITEMS = 1000 };
    struct kit kit;
    open_kit(&kit, "");
    uint64_t module = 0;
    uint64_t add = find_add(&kit, &module);
    void *hosts[3];
    struct native_region pinned[3], device[3];
    for (size_t i = 0; i < 3; i++) {
        pinned[i] = kit_host(&kit, ACRE_MEMORY_PINNED, ITEMS * sizeof(float), &hosts[i]);
        device[i] = kit_device(&kit, ITEMS * sizeof(float));
    }
    for (size_t i = 0; i < ITEMS; i++) {
        ((float *)hosts[0])[i] = (float)i;
        ((float *)hosts[1])[i] = (float)(2 * i);
    }
    KIT_OK(&kit, TABLE->profile(kit.seat, kit.streams[0], true, &kit.err));
    kit_copy(&kit, 0, device[0], pinned[0], ITEMS * sizeof(float));
    kit_copy(&kit, 0, device[1], pinned[1], ITEMS * sizeof(float));
    uint32_t n = ITEMS;
    struct acre_grid grid = {.groups = {4, 1, 1}, .group = {256, 1, 1}};
    KIT_OK(&kit, kit_launch(&kit, 0, add, grid, device, 3, &n, 1));
    kit_copy(&kit, 0, pinned[2], device[2], ITEMS * sizeof(float));
    REQUIRE(kit_sync(&kit, 0));
    CHECK_NEAR((double)((float *)hosts[2])[ITEMS - 1], 3.0 * (ITEMS - 1), 0.0);
    struct acre_timing timings[8];
    uint32_t count = 0;
    KIT_OK(&kit, TABLE->timings(kit.seat, kit.streams[0], timings, 8, &count, &kit.err));
    REQUIRE_EQ(count, 4);
    CHECK_STR(timings[2].name, "add");
    CHECK_NEAR(timings[2].running_us, 1000, 0.5);
    TABLE->unload(kit.seat, module);
    kit_close(&kit);
}

static void bad_programs_and_launches_are_refused(void) {
    struct kit kit;
    open_kit(&kit, "");
    uint64_t module = 0, other = 0;
    uint64_t add = find_add(&kit, &module);
    CHECK_EQ(TABLE->load(kit.seat, "a text", 7, &other, &kit.err), ACRE_ECORRUPT);
    CHECK_HAS(kit.err.text, "not a code object for an AMD GPU");
    CHECK_EQ(TABLE->load(kit.seat, &image, sizeof(image) / 2, &other, &kit.err), ACRE_ECORRUPT);
    struct kernel_facts facts;
    CHECK_EQ(TABLE->kernel(kit.seat, module, "sub", &add, &facts, &kit.err), ACRE_ENOTFOUND);
    CHECK_STR(kit.err.text, "kernel 'sub': hipModuleGetFunction: hipErrorNotFound");
    struct acre_grid grid = {.groups = {1, 1, 1}, .group = {4096, 1, 1}};
    uint32_t n = 0;
    struct native_region regions[3] = {kit_device(&kit, 64), kit_device(&kit, 64),
                                       kit_device(&kit, 64)};
    CHECK_EQ(kit_launch(&kit, 0, add, grid, regions, 3, &n, 1), ACRE_EINVALID);
    CHECK_HAS(kit.err.text, "hipErrorInvalidConfiguration");
    kit_close(&kit);
}

static void patterns_of_every_width_are_filled(void) {
    static const struct {
        uint64_t pattern;
        uint32_t bytes;
    } rows[] = {{0xab, 1}, {0xbeef, 2}, {0xdeadbeef, 4}, {0x1122334455667788, 8}};
    struct kit kit;
    open_kit(&kit, "");
    void *host = NULL;
    struct native_region mapped = kit_host(&kit, ACRE_MEMORY_MAPPED, 4096, &host);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct native_fill fill = {.to = mapped.handle,
                                   .to_offset = 8,
                                   .bytes = 1016,
                                   .pattern = rows[i].pattern,
                                   .pattern_bytes = rows[i].bytes};
        memset(host, 0x77, 4096);
        KIT_OK(&kit, TABLE->fill(kit.seat, kit.streams[0], &fill, &kit.err));
        REQUIRE(kit_sync(&kit, 0));
        acre_test_context("%u bytes", rows[i].bytes);
        CHECK(memcmp((char *)host + 8, &rows[i].pattern, rows[i].bytes) == 0);
        CHECK(memcmp((char *)host + 1024 - rows[i].bytes, &rows[i].pattern, rows[i].bytes) == 0);
        CHECK_U64(((uint64_t *)host)[0], 0x7777777777777777);
        CHECK_U64(((uint64_t *)host)[128], 0x7777777777777777);
    }
    kit_close(&kit);
}

static void signals_waits_and_notices_come(void) {
    struct kit kit;
    open_kit(&kit, "");
    kit_stream(&kit, 1);
    REQUIRE(kit_sync(&kit, 0));
    KIT_OK(&kit, TABLE->wait(kit.seat, kit.streams[1], kit.words_region.handle, 0, 1, &kit.err));
    REQUIRE(kit_sync(&kit, 1));
    int fd = eventfd(0, EFD_NONBLOCK);
    KIT_OK(&kit, TABLE->notify(kit.seat, kit.streams[1], fd, &kit.err));
    uint64_t count = 0;
    CHECK_EQ(read(fd, &count, sizeof(count)), 8);
    CHECK_U64(count, 1);
    close(fd);
    KIT_OK(&kit, TABLE->check(kit.seat, &kit.err));
    uint64_t unused = 0, total = 0;
    KIT_OK(&kit, TABLE->memory(kit.seat, &unused, &total, &kit.err));
    CHECK(unused == 1 << 29 && total == 1 << 30);
    kit_close(&kit);
}

struct looks {
    struct kit *kit;
    atomic_bool ends;
    int result;
};

static void *look_at_all(void *user) {
    struct looks *looks = user;
    while (!atomic_load(&looks->ends) && looks->result == 0) {
        looks->result = TABLE->check(looks->kit->seat, NULL);
    }
    return NULL;
}

/* The seventeenth stream shares one of the driver's, unless it owns one; check() asks meanwhile. */
static void a_resident_stream_shares_none_of_the_drivers(void) {
    struct kit kit;
    open_kit(&kit, "");
    for (uint32_t i = 1; i < GPU_LANES; i++) {
        kit_stream(&kit, i);
    }
    uint64_t more = 0;
    KIT_OK(&kit, TABLE->stream_create(kit.seat, kit.words_region.handle,
                                      GPU_LANES * sizeof(uint64_t), &more, &kit.err));
    const struct gpu_stream *shared = gpu_stream_of(more);
    CHECK_U64(shared->stream, gpu_stream_of(kit.streams[shared->lane])->stream);
    struct looks looks = {.kit = &kit};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, look_at_all, &looks) == 0);
    KIT_OK(&kit, TABLE->stream_own(kit.seat, more, &kit.err));
    gpu_handle own = shared->stream;
    KIT_OK(&kit, TABLE->stream_own(kit.seat, more, &kit.err)); /* it has one */
    CHECK_U64(shared->stream, own);
    for (uint32_t i = 0; i < GPU_LANES; i++) {
        CHECK(gpu_stream_of(kit.streams[i])->stream != own);
    }
    KIT_OK(&kit, TABLE->signal(kit.seat, more, 1, &kit.err));
    CHECK_U64(atomic_load(&kit.words[GPU_LANES]), 1);
    atomic_store(&looks.ends, true);
    pthread_join(thread, NULL);
    CHECK_EQ(looks.result, 0);
    TABLE->stream_destroy(kit.seat, more);
    kit_close(&kit);
}
_Static_assert((int)GPU_LANES <= (int)KIT_STREAMS, "a stream of the kit on each");

/* The seat again, of a driver with so many. */
static void with_queues(struct kit *kit, uint32_t queues) {
    void *words = NULL;
    TABLE->seat_close(kit->seat);
    munmap((void *)kit->words, 4096);
    ((struct gpu *)kit->self)->queues = queues;
    KIT_OK(kit, TABLE->seat_open(kit->self, 0, &kit->seat, &kit->err));
    kit->words_region = kit_host(kit, ACRE_MEMORY_MAPPED, 4096, &words);
    kit->words = words;
}

/* Lanes, residents and the side stream are no more than the driver's queues. */
static void resident_streams_are_as_many_as_queues_allow(void) {
    static const struct {
        uint32_t queues, lanes, residents;
    } rows[] = {{1, 1, 0}, {2, 1, 0}, {3, 1, 1}, {5, 1, 3}, {8, 4, 3}, {10, 6, 3}, {32, 16, 3}};
    struct kit kit;
    open_kit(&kit, "");
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%u queues", rows[i].queues);
        with_queues(&kit, rows[i].queues);
        const struct gpu_seat *seat = kit.seat;
        CHECK_EQ(seat->lane_count, rows[i].lanes);
        for (uint32_t j = 0; j <= rows[i].residents; j++) {
            kit_stream(&kit, j);
            int r = TABLE->stream_own(kit.seat, kit.streams[j], &kit.err);
            CHECK_EQ(r, j < rows[i].residents ? 0 : ACRE_ELIMIT);
        }
        char said[100];
        snprintf(said, sizeof(said),
                 "no queue is left for another resident kernel (at most %u of %u)",
                 rows[i].residents, rows[i].queues);
        CHECK_STR(kit.err.text, said);
    }
    TABLE->stream_destroy(kit.seat, kit.streams[0]);
    KIT_OK(&kit, TABLE->stream_own(kit.seat, kit.streams[3], &kit.err)); /* what that one had */
    kit_close(&kit);
}

static void resident_streams_want_a_device_without_other_seats(void) {
    struct kit kit;
    void *other = NULL;
    open_kit(&kit, "");
    with_queues(&kit, 10);
    kit_stream(&kit, 0);
    KIT_OK(&kit, TABLE->stream_own(kit.seat, kit.streams[0], &kit.err));
    CHECK_EQ(TABLE->seat_open(kit.self, 0, &other, &kit.err), ACRE_ECONFLICT);
    CHECK_HAS(kit.err.text, "another context of this process has a resident ring there");
    TABLE->stream_destroy(kit.seat, kit.streams[0]);
    KIT_OK(&kit, TABLE->seat_open(kit.self, 0, &other, &kit.err));
    kit_stream(&kit, 0);
    CHECK_EQ(TABLE->stream_own(kit.seat, kit.streams[0], &kit.err), ACRE_ELIMIT);
    CHECK_HAS(kit.err.text, "another context of this process uses the device");
    TABLE->seat_close(other);
    KIT_OK(&kit, TABLE->stream_own(kit.seat, kit.streams[0], &kit.err));
    kit_close(&kit);
}

/* HIP 6 wants the flag that HIP 5 refuses. */
static void tickets_are_opened_with_the_flag_of_hip_6(void) {
    struct kit kit;
    open_kit(&kit, "");
    struct native_region device = kit_device(&kit, 64), theirs = {0};
    uint8_t ticket[64];
    KIT_OK(&kit, TABLE->region_export(kit.seat, device.handle, ticket, &kit.err));
    KIT_OK(&kit, TABLE->region_import(kit.seat, ticket, &theirs, &kit.err));
    CHECK_U64(theirs.address, device.address);
    TABLE->region_destroy(kit.seat, theirs.handle);
    kit_close(&kit);
}

struct elsewhere {
    struct kit *kit;
    void *other;
};

/* A new thread has no device, and each call here is for another one than the call before. */
static void *work_elsewhere(void *user) {
    struct elsewhere *elsewhere = user;
    struct kit *kit = elsewhere->kit;
    struct native_region here = kit_device(kit, 64), there = {0};
    KIT_OK(kit,
           TABLE->region_create(elsewhere->other, ACRE_MEMORY_DEVICE, 64, NULL, &there, &kit->err));
    kit_copy(kit, 0, there, here, 64);
    REQUIRE(kit_sync(kit, 0));
    return NULL;
}

static void each_call_is_for_its_own_device(void) {
    struct kit kit;
    open_kit(&kit, "");
    struct elsewhere elsewhere = {.kit = &kit};
    KIT_OK(&kit, TABLE->seat_open(kit.self, 1, &elsewhere.other, &kit.err));
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, work_elsewhere, &elsewhere) == 0);
    pthread_join(thread, NULL);
    TABLE->seat_close(elsewhere.other);
    kit_copy(&kit, 0, kit_device(&kit, 64), kit_device(&kit, 64), 64);
    REQUIRE(kit_sync(&kit, 0));
    kit_close(&kit);
}

static void no_memory_is_told_with_its_size(void) {
    struct kit kit;
    open_kit(&kit, "full");
    struct native_region region = {0};
    CHECK_EQ(TABLE->region_create(kit.seat, ACRE_MEMORY_DEVICE, 12345, NULL, &region, &kit.err),
             ACRE_ENOMEM);
    CHECK_HAS(kit.err.text, "12345 bytes of device memory: hipMalloc: ");
    kit_close(&kit);
}

/* Issue 4, 9: a fault is kept, and told from then on. */
static void a_fault_lasts(void) {
    struct kit kit;
    open_kit(&kit, "fault");
    CHECK_EQ(TABLE->check(kit.seat, &kit.err), ACRE_EUNAVAILABLE);
    CHECK_HAS(kit.err.text, "a kernel failed (hipErrorLaunchFailure)");
    setenv("ACRE_HIP_DOUBLE", "", 1);
    CHECK_EQ(TABLE->check(kit.seat, &kit.err), ACRE_EUNAVAILABLE);
    kit_close(&kit);
}

static const struct acre_test tests[] = {
    {"devices_are_those_of_hip_6", devices_are_those_of_hip_6, 0},
    {"no_device_is_told", no_device_is_told, 0},
    {"no_compiler_is_told", no_compiler_is_told, 0},
    {"work_goes_through_in_order", work_goes_through_in_order, 0},
    {"bad_programs_and_launches_are_refused", bad_programs_and_launches_are_refused, 0},
    {"patterns_of_every_width_are_filled", patterns_of_every_width_are_filled, 0},
    {"signals_waits_and_notices_come", signals_waits_and_notices_come, 0},
    {"resident_streams_are_as_many_as_queues_allow", resident_streams_are_as_many_as_queues_allow,
     0},
    {"resident_streams_want_a_device_without_other_seats",
     resident_streams_want_a_device_without_other_seats, 0},
    {"a_resident_stream_shares_none_of_the_drivers", a_resident_stream_shares_none_of_the_drivers,
     0},
    {"tickets_are_opened_with_the_flag_of_hip_6", tickets_are_opened_with_the_flag_of_hip_6, 0},
    {"each_call_is_for_its_own_device", each_call_is_for_its_own_device, 0},
    {"no_memory_is_told_with_its_size", no_memory_is_told_with_its_size, 0},
    {"a_fault_lasts", a_fault_lasts, 0},
};
ACRE_TEST_MAIN(tests)
