/* Shares, memory and whole devices: what fits, what it takes, and what never mixes. */
#include "support/ledger_kit.h"

#define NONE ACRE_ISOLATION_NONE
#define TIME ACRE_ISOLATION_TIME_SLICING
#define MPS  ACRE_ISOLATION_MPS
#define MIG  ACRE_ISOLATION_MIG

/* Sizes whose tenths are whole numbers, that are not, and the extremes (0: unknown). */
static const uint64_t memories_mib[] = {81559, 81920, 24564, 143771,    1000, 999,
                                        1001,  7,     1,     INT32_MAX, 0};

static void eleven_triples_of_tenths_fit_exactly(void) { /* ALC-1 */
    static const uint32_t triples[][3] = {
        {100, 800, 100}, {200, 400, 400}, {200, 600, 200}, {300, 500, 200},
        {400, 200, 400}, {400, 400, 200}, {400, 500, 100}, {500, 300, 200},
        {500, 400, 100}, {600, 200, 200}, {800, 100, 100},
    };
    for (size_t m = 0; m < ACRE_COUNT(memories_mib); m++) {
        for (size_t i = 0; i < ACRE_COUNT(triples); i++) {
            acre_test_context("%u+%u+%u of %llu MiB", triples[i][0], triples[i][1], triples[i][2],
                              (unsigned long long)memories_mib[m]);
            struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
            kit_add(ledger, "a", 1, memories_mib[m]);
            for (size_t part = 0; part < 3; part++) {
                KIT_TAKE(ledger, kit_share(triples[i][part]));
            }
            struct acre_ledger_device row = kit_row(ledger, "a/0");
            CHECK_EQ(row.milli_used, 1000);
            CHECK_EQ(row.allocations, 3);
            CHECK_EQ(row.largest_milli, 0);
            KIT_REFUSED(ledger, kit_share(100), ACRE_ENOFIT, "full");
            kit_destroy(ledger);
        }
    }
}

static void ten_tenths_fit_whatever_the_memory(void) { /* ALC-1 */
    for (size_t m = 0; m < ACRE_COUNT(memories_mib); m++) {
        acre_test_context("%llu MiB", (unsigned long long)memories_mib[m]);
        struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
        kit_add(ledger, "a", 1, memories_mib[m]);
        uint64_t sum_mib = 0;
        uint64_t ids[10];
        for (size_t i = 0; i < 10; i++) {
            ids[i] = KIT_TAKE(ledger, kit_share(100));
            struct acre_allocation allocation;
            REQUIRE(acre_ledger_find(ledger, ids[i], &allocation));
            CHECK_EQ(allocation.parts[0].milli, 100);
            CHECK_U64(allocation.parts[0].mib, memories_mib[m] / 10);
            CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 900 - 100 * (int)i);
            sum_mib += allocation.parts[0].mib;
        }
        CHECK(sum_mib <= memories_mib[m]);
        KIT_REFUSED(ledger, kit_share(100), ACRE_ENOFIT, "no room now");
        KIT_RELEASE(ledger, ids[4]);
        CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 100);
        KIT_TAKE(ledger, kit_share(100));
        kit_destroy(ledger);
    }
}

static void every_split_of_a_device_in_two_fits(void) { /* ALC-1 */
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    kit_add(ledger, "a", 1, KIT_MEMORY_MIB);
    for (uint32_t milli = 100; milli <= 900; milli++) {
        acre_test_context("%u + %u", milli, 1000 - milli);
        uint64_t first = KIT_TAKE(ledger, kit_share(milli));
        CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 1000 - milli);
        KIT_REFUSED(ledger, kit_share(1001 - milli), ACRE_ENOFIT, "no room now");
        uint64_t second = KIT_TAKE(ledger, kit_share(1000 - milli));
        KIT_RELEASE(ledger, first);
        KIT_RELEASE(ledger, second);
    }
    CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 1000);
    kit_destroy(ledger);
}

static void a_request_fits_per_device(void) { /* ALC-2: [600, 600] used refuses 800 */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "700|600 600|650 x");
    KIT_REFUSED(ledger, kit_share(800), ACRE_ENOFIT,
                "no room now: the largest free share of a GPU is 0.4 on b; it asks for 0.8; ask "
                "for less or wait");
    KIT_REFUSED(ledger, kit_share(401), ACRE_ENOFIT,
                "no room now: the largest free share of a GPU is 0.4 on b; it asks for 0.401; ask "
                "for less or wait");
    KIT_REFUSED(ledger, kit_memory(KIT_MEMORY_MIB * 8 / 10), ACRE_ENOFIT,
                "is 0.4 on b, and the most free memory of a GPU is 31.8 GiB; it asks for 63.7 GiB");
    KIT_PLACED(ledger, kit_share(400), "b/0");
    KIT_PLACED(ledger, kit_share(400), "b/1");
    KIT_REFUSED(ledger, kit_share(400), ACRE_ENOFIT,
                "no room now: the largest free share of a GPU is 0.35 on c; it asks for 0.4; ask "
                "for less or wait");
    kit_destroy(ledger);
}

static void what_a_request_takes_of_a_device(void) { /* ALC-2: by share, memory, both, whole */
    static const struct {
        const char *what;
        uint32_t milli;
        uint64_t mib;
        bool exclusive;
        enum acre_isolation isolation;
        uint32_t expect_milli, expect_mib;
        bool expect_by_share, expect_exclusive;
    } cases[] = {
        {"half", 500, 0, false, NONE, 500, 40779, true, false},
        {"a third", 333, 0, false, MPS, 333, 27159, true, false},
        {"whole", 1000, 0, false, NONE, 1000, 81559, true, true},
        {"whole, shared by name", 1000, 0, false, MPS, 1000, 81559, true, true},
        {"alone", 300, 0, true, NONE, 1000, 81559, true, true},
        {"alone by memory", 0, 4096, true, NONE, 1000, 81559, true, true},
        {"8 GiB", 0, 8192, false, NONE, 101, 8192, false, false},
        {"1 MiB", 0, 1, false, NONE, 1, 1, false, false},
        {"all but 1 MiB", 0, 81558, false, NONE, 1000, 81558, false, false},
        {"all memory", 0, 81559, false, TIME, 1000, 81559, false, false},
        {"little share, much memory", 100, 80000, false, NONE, 100, 80000, false, false},
        {"much share, little memory", 900, 1, false, NONE, 900, 1, false, false},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].what);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
        struct acre_request request = kit_both(cases[i].milli, cases[i].mib);
        request.exclusive = cases[i].exclusive;
        request.isolation = cases[i].isolation;
        request.cpu_milli = 4000;
        request.ram_mib = 16384;
        uint64_t id = KIT_TAKE(ledger, request);
        struct acre_allocation allocation;
        REQUIRE(acre_ledger_find(ledger, id, &allocation));
        REQUIRE_EQ(allocation.part_count, 1);
        CHECK_EQ(allocation.exclusive, cases[i].expect_exclusive);
        CHECK_EQ(allocation.isolation, cases[i].isolation);
        CHECK_EQ(allocation.parts[0].milli, cases[i].expect_milli);
        CHECK_EQ(allocation.parts[0].mib, cases[i].expect_mib);
        CHECK_EQ(allocation.parts[0].by_share, cases[i].expect_by_share);
        CHECK_EQ(allocation.parts[0].cpu_milli, 4000);
        CHECK_EQ(allocation.parts[0].ram_mib, 16384);
        CHECK_EQ(kit_row(ledger, "a/0").milli_used, cases[i].expect_milli);
        KIT_RELEASE(ledger, id);
        CHECK_EQ(kit_row(ledger, "a/0").milli_used, 0);
        kit_destroy(ledger);
    }
}

/* One step on a device of 1000 MiB: a share and/or memory, and whether it fits. */
struct step {
    uint32_t milli;
    uint64_t mib;
    bool fits;
};

static void shares_and_memory_are_counted_together(void) { /* ALC-2, ALC-10 */
    static const struct {
        const char *what;
        struct step steps[6];
    } cases[] = {
        {"memory leaves room for shares", {{0, 600, true}, {401, 0, false}, {400, 0, true}}},
        {"shares leave room for memory", {{300, 0, true}, {0, 701, false}, {0, 700, true}}},
        {"much memory with little share",
         {{100, 700, true}, {400, 0, false}, {300, 0, true}, {100, 0, false}}},
        {"much share with little memory",
         {{900, 10, true}, {101, 0, false}, {0, 101, false}, {100, 0, true}}},
        {"both limits at once",
         {{500, 900, true}, {500, 101, false}, {501, 100, false}, {500, 100, true}}},
        {"all memory, some share left", {{100, 1000, true}, {100, 0, false}, {100, 1, false}}},
        {"all share, some memory left", {{999, 1, true}, {0, 1, true}, {0, 1, false}}},
        {"memory alone fills up exactly",
         {{0, 333, true}, {0, 333, true}, {0, 335, false}, {0, 334, true}}},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
        kit_add(ledger, "a", 1, 1000);
        for (size_t s = 0; s < ACRE_COUNT(cases[i].steps); s++) {
            const struct step *step = &cases[i].steps[s];
            if (step->milli == 0 && step->mib == 0) {
                break;
            }
            acre_test_context("%s, step %zu", cases[i].what, s);
            if (step->fits) {
                KIT_TAKE(ledger, kit_both(step->milli, step->mib));
            } else {
                KIT_REFUSED(ledger, kit_both(step->milli, step->mib), ACRE_ENOFIT, "no room now");
            }
        }
        kit_destroy(ledger);
    }
}

static void whole_devices_one_to_all(void) { /* ALC-2 */
    for (uint32_t gpus = 1; gpus <= 8; gpus++) {
        acre_test_context("%u of 8", gpus);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0 0 0 0 0 0 0");
        uint32_t times = 8 / gpus;
        for (uint32_t i = 0; i < times; i++) {
            struct acre_allocation allocation;
            REQUIRE(acre_ledger_find(ledger, KIT_TAKE(ledger, kit_whole(gpus)), &allocation));
            REQUIRE_EQ(allocation.part_count, gpus);
            for (uint32_t part = 0; part < gpus; part++) { /* equal devices are used in order */
                CHECK_EQ(allocation.parts[part].device, i * gpus + part);
                CHECK_EQ(allocation.parts[part].milli, 1000);
                CHECK_EQ(allocation.parts[part].mib, KIT_MEMORY_MIB);
            }
        }
        KIT_REFUSED(ledger, kit_whole(gpus), ACRE_ENOFIT, "no room now");
        KIT_REFUSED(ledger, kit_whole(9), ACRE_ENOFIT,
                    "never fits: it asks for 9 GPUs on one node; at most 8 on any one node fit; "
                    "ask for fewer, or for more nodes with fewer GPUs each");
        kit_destroy(ledger);
    }
}

static void models_vendors_and_labels_constrain(void) { /* ALC-2 */
    static const char *const labels[][2] = {{"zone=east", "disk=nvme"}, {"zone=west", "disk=nvme"}};
    static const struct {
        const char *what;
        const char *vendor, *models[2], *labels[2];
        const char *where; /* NULL: refused as said */
        const char *refusal;
    } cases[] = {
        {"nothing", NULL, {NULL}, {NULL}, "a/0", NULL},
        {"a model", NULL, {"A100"}, {NULL}, "b/0", NULL},
        {"any of two models", NULL, {"MI300X", "A100"}, {NULL}, "b/0", NULL},
        {"one of two is unknown", NULL, {"B200", "MI300X"}, {NULL}, "c/0", NULL},
        {"a vendor", "amd", {NULL}, {NULL}, "c/0", NULL},
        {"vendor and model", "nvidia", {"A100"}, {NULL}, "b/0", NULL},
        {"a label", NULL, {NULL}, {"zone=west"}, "b/0", NULL},
        {"all of two labels", NULL, {NULL}, {"disk=nvme", "zone=west"}, "b/0", NULL},
        {"a label twice", NULL, {NULL}, {"zone=west", "zone=west"}, "b/0", NULL},
        {"label and model", NULL, {"H100"}, {"zone=west"}, NULL, "vendor, model and kind"},
        {"vendor against model", "amd", {"A100"}, {NULL}, NULL, "vendor, model and kind"},
        {"two labels nobody has", NULL, {NULL}, {"zone=east", "zone=west"}, NULL, "labels"},
        {"a model nobody has", NULL, {"B200"}, {NULL}, NULL, "vendor, model and kind"},
        {"a vendor nobody is", "intel", {NULL}, {NULL}, NULL, "vendor, model and kind"},
        {"a label nobody has",
         NULL,
         {NULL},
         {"zone=north"},
         NULL,
         "never fits: no node has all the labels it asks for; ask for fewer"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].what);
        struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_FIRST_FIT);
        static const char *const models[][2] = {
            {"H100", "nvidia"}, {"A100", "nvidia"}, {"MI300X", "amd"}, {NULL, NULL}};
        for (uint32_t n = 0; n < 4; n++) {
            struct acre_device_spec device = {
                .id = (const char *[]){"a/0", "b/0", "c/0", "d/0"}[n],
                .model = models[n][0],
                .vendor = models[n][1],
                .memory_mib = 1000,
            };
            struct acre_node_spec node = {
                .name = (const char *[]){"a", "b", "c", "d"}[n],
                .labels = n < 2 ? labels[n] : NULL,
                .label_count = n < 2 ? 2 : 0,
                .devices = &device,
                .device_count = 1,
            };
            uint32_t index;
            REQUIRE_EQ(acre_ledger_add_node(ledger, &node, &index, NULL), 0);
            CHECK_EQ(index, n);
        }
        struct acre_request request = kit_share(500);
        request.vendor = kit_name(ledger, cases[i].vendor);
        for (size_t j = 0; j < 2; j++) {
            request.models[j] = kit_name(ledger, cases[i].models[j]);
            request.labels[j] = kit_name(ledger, cases[i].labels[j]);
        }
        if (cases[i].where != NULL) {
            KIT_PLACED(ledger, request, cases[i].where);
        } else {
            KIT_REFUSED(ledger, request, ACRE_ENOFIT, cases[i].refusal);
        }
        kit_destroy(ledger);
    }
}

static void unknown_memory_serves_shares_only(void) { /* nodes.h: 0 is unknown, not none */
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    kit_add(ledger, "a", 2, 0);
    KIT_REFUSED(
        ledger, kit_memory(1), ACRE_ENOFIT,
        "never fits: it asks for 1 MiB of GPU memory; the largest GPU has 0 MiB; ask for less");
    KIT_REFUSED(
        ledger, kit_both(500, 1), ACRE_ENOFIT,
        "never fits: it asks for 1 MiB of GPU memory; the largest GPU has 0 MiB; ask for less");
    KIT_TAKE(ledger, kit_share(700));
    KIT_TAKE(ledger, kit_whole(1));
    KIT_TAKE(ledger, kit_share(300));
    CHECK_EQ(kit_row(ledger, "a/0").milli_used + kit_row(ledger, "a/1").milli_used, 2000);
    kit_destroy(ledger);
}

static struct acre_request with(struct acre_request request, enum acre_isolation isolation,
                                bool exclusive) {
    request.isolation = isolation;
    request.exclusive = exclusive;
    return request;
}

static void exclusive_and_shared_never_mix(void) { /* ALC-4; isolations never mix either */
    static const struct {
        const char *what;
        struct {
            uint32_t milli;
            uint64_t mib;
            enum acre_isolation isolation;
            bool exclusive;
        } first, second;
        bool fits;
    } cases[] = {
        {"shares of one kind", {300, 0, NONE, false}, {300, 0, NONE, false}, true},
        {"time slices", {300, 0, TIME, false}, {0, 900, TIME, false}, true},
        {"two with MPS", {300, 0, MPS, false}, {700, 0, MPS, false}, true},
        {"none beside MPS", {300, 0, MPS, false}, {300, 0, NONE, false}, false},
        {"MPS beside none", {300, 0, NONE, false}, {300, 0, MPS, false}, false},
        {"time slices beside MPS", {0, 900, MPS, false}, {0, 900, TIME, false}, false},
        {"alone beside a share", {300, 0, NONE, false}, {300, 0, NONE, true}, false},
        {"a share beside one alone", {300, 0, NONE, true}, {300, 0, NONE, false}, false},
        {"two alone", {100, 0, NONE, true}, {100, 0, NONE, true}, false},
        {"whole beside a share", {100, 0, NONE, false}, {1000, 0, NONE, false}, false},
        {"a share beside a whole", {1000, 0, NONE, false}, {100, 0, NONE, false}, false},
        {"alone beside memory", {0, 1, NONE, false}, {0, 1, NONE, true}, false},
        {"memory beside one alone", {0, 1, NONE, true}, {0, 1, NONE, false}, false},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].what);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0");
        struct acre_request first = with(kit_both(cases[i].first.milli, cases[i].first.mib),
                                         cases[i].first.isolation, cases[i].first.exclusive);
        struct acre_request second = with(kit_both(cases[i].second.milli, cases[i].second.mib),
                                          cases[i].second.isolation, cases[i].second.exclusive);
        uint64_t id = KIT_TAKE(ledger, first);
        if (cases[i].fits) {
            KIT_TAKE(ledger, second);
        } else {
            KIT_REFUSED(ledger, second, ACRE_ENOFIT, "no room now");
            KIT_RELEASE(ledger, id); /* with the first one gone, the device is anybody's */
            KIT_TAKE(ledger, second);
        }
        kit_destroy(ledger);
    }
}

static void devices_that_are_not_shared(void) { /* ALC-4: per device; MIG slices are whole */
    static const struct acre_device_spec exclusive = {.memory_mib = 80000, .exclusive_only = true};
    static const struct acre_device_spec slice = {.memory_mib = 10000, .is_mig = true};
    static const struct acre_device_spec plain = {.memory_mib = 80000};
    static const struct {
        const char *what;
        const struct acre_device_spec *device;
        uint32_t milli;
        uint64_t mib;
        enum acre_isolation isolation;
        bool exclusive;
        bool fits;
    } cases[] = {
        {"a share of an exclusive device", &exclusive, 500, 0, NONE, false, false},
        {"memory of an exclusive device", &exclusive, 0, 10, NONE, false, false},
        {"an exclusive device alone", &exclusive, 500, 0, NONE, true, true},
        {"a whole exclusive device", &exclusive, 1000, 0, NONE, false, true},
        {"a share of a slice", &slice, 500, 0, NONE, false, false},
        {"a share of a slice by MPS", &slice, 500, 0, MPS, false, false},
        {"a whole slice", &slice, 1000, 0, NONE, false, true},
        {"a slice by isolation mig", &slice, 100, 0, MIG, false, true},
        {"a slice by mig and memory", &slice, 0, 9000, MIG, false, true},
        {"a slice that is too small", &slice, 0, 10001, MIG, false, false},
        {"isolation mig of a whole GPU", &plain, 1000, 0, MIG, false, false},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].what);
        struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
        kit_add_devices(ledger, "a", cases[i].device, 1);
        struct acre_request request =
            with(kit_both(cases[i].milli, cases[i].mib), cases[i].isolation, cases[i].exclusive);
        if (cases[i].fits) {
            KIT_TAKE(ledger, request);
            CHECK_EQ(kit_row(ledger, "a/0").milli_used, 1000);
            CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 0);
        } else {
            KIT_REFUSED(ledger, request, ACRE_ENOFIT, "never fits");
        }
        kit_destroy(ledger);
    }
}

static void shares_come_in_steps(void) { /* DEV-2: CPX k/8, SPX whole only */
    static const struct {
        uint32_t step, milli;
        uint64_t mib;
        bool fits;
    } cases[] = {
        {125, 125, 0, true},   {125, 250, 0, true},   {125, 375, 0, true},   {125, 500, 0, true},
        {125, 625, 0, true},   {125, 750, 0, true},   {125, 875, 0, true},   {125, 1000, 0, true},
        {125, 126, 0, false},  {125, 300, 0, false},  {125, 100, 0, false},  {125, 999, 0, false},
        {125, 0, 1000, true},  {125, 0, 8000, true},  {125, 0, 1001, false}, {125, 0, 992, false},
        {125, 250, 100, true}, {1000, 500, 0, false}, {1000, 999, 0, false}, {1000, 1000, 0, true},
        {1000, 0, 7993, true}, {1000, 0, 7, false},   {300, 600, 0, true},   {300, 1000, 0, true},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("step %u, share %u, memory %llu", cases[i].step, cases[i].milli,
                          (unsigned long long)cases[i].mib);
        struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
        struct acre_device_spec device = {.memory_mib = 8000, .step_milli = cases[i].step};
        kit_add_devices(ledger, "a", &device, 1);
        struct acre_request request = kit_both(cases[i].milli, cases[i].mib);
        if (cases[i].fits) {
            KIT_TAKE(ledger, request);
        } else {
            KIT_REFUSED(ledger, request, ACRE_ENOFIT, "never fits");
        }
        request.exclusive = true; /* alone is whole, whatever the step */
        struct acre_ledger *other = kit_create(ACRE_STRATEGY_DEFAULT);
        kit_add_devices(other, "a", &device, 1);
        KIT_TAKE(other, request);
        kit_destroy(other);
        kit_destroy(ledger);
    }
}

static void eighths_come_back(void) { /* DEV-2: seed vector B4, in eighths of one MI300X */
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    struct acre_device_spec device = {
        .model = "MI300X", .vendor = "amd", .memory_mib = 196592, .step_milli = 125};
    kit_add_devices(ledger, "a", &device, 1);
    uint64_t quarter = KIT_TAKE(ledger, kit_share(250));
    CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 750);
    KIT_TAKE(ledger, kit_share(375));
    CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 375);
    KIT_REFUSED(ledger, kit_share(500), ACRE_ENOFIT,
                "no room now: the largest free share of a GPU is 0.375 on a; it asks for 0.5; ask "
                "for less or wait");
    KIT_RELEASE(ledger, quarter);
    CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 625);
    KIT_TAKE(ledger, kit_share(500));
    CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 125);
    kit_destroy(ledger);
}

static void cpu_and_ram_are_counted(void) { /* JOB-1, ALC-10 */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0 0@8000|@4000");
    struct acre_request request = kit_share(100);
    request.cpu_milli = 5000;
    uint64_t id = KIT_PLACED(ledger, request, "a/0");
    KIT_REFUSED(ledger, request, ACRE_ENOFIT,
                "no room now: GPUs are free, but a has only 3 CPUs and 256 GiB free; it asks for 5 "
                "CPUs; ask for less or wait");
    request.cpu_milli = 8001;
    KIT_REFUSED(ledger, request, ACRE_ENOFIT,
                "never fits: it asks for 1 GPU with 8.001 CPUs on one node; the largest nodes have "
                "8 CPUs and 256 GiB; ask for less");
    KIT_PLACED(ledger, kit_cpu(3000, KIT_RAM_MIB), "a");
    KIT_PLACED(ledger, kit_cpu(3000, 1), "b");
    KIT_REFUSED(ledger, kit_cpu(1001, 0), ACRE_ENOFIT, "no room now");
    KIT_REFUSED(ledger, kit_cpu(0, KIT_RAM_MIB), ACRE_ENOFIT, "no room now");
    KIT_REFUSED(ledger, kit_cpu(0, KIT_RAM_MIB + 1), ACRE_ENOFIT, "never fits");
    KIT_RELEASE(ledger, id);
    KIT_PLACED(ledger, kit_cpu(5000, 0), "a");
    struct acre_ledger_node node;
    acre_ledger_node_info(ledger, 0, &node);
    CHECK_EQ(node.cpu_free_milli, 0);
    CHECK_EQ(node.ram_free_mib, 0);
    acre_ledger_node_info(ledger, 1, &node);
    CHECK_EQ(node.cpu_free_milli, 1000);
    CHECK_EQ(node.ram_free_mib, KIT_RAM_MIB - 1);
    kit_destroy(ledger);
}

static void a_device_takes_so_many_shares(void) { /* ALC-9: max allocations a device */
    uint32_t max = rules_default()->max_allocations_per_device;
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0 0");
    for (uint32_t i = 0; i < 2 * max; i++) {
        KIT_PLACED(ledger, kit_memory(10), i < max ? "a/0" : "a/1");
    }
    CHECK_EQ(kit_row(ledger, "a/0").allocations, max);
    CHECK_EQ(kit_row(ledger, "a/0").largest_milli, 0);
    KIT_REFUSED(ledger, kit_memory(10), ACRE_ENOFIT, "full");
    KIT_REFUSED(ledger, kit_share(100), ACRE_ENOFIT, "full");
    kit_destroy(ledger);
}

static void the_rules_of_the_ledger_hold(void) { /* ALC-9: its own copy, for every request */
    struct acre_rules rules = {
        .min_milli = 200,
        .max_milli = 600,
        .isolation_mask = 1U << MPS,
        .max_allocations_per_device = 2,
        .sharing_allowed = true,
    };
    struct acre_ledger_options options = {.rules = &rules};
    struct acre_ledger *ledger = acre_ledger_create(&options);
    rules = *rules_default();
    kit_add(ledger, "a", 2, KIT_MEMORY_MIB);
    static const struct {
        uint32_t milli;
        enum acre_isolation isolation;
        int expect;
        const char *says;
    } cases[] = {
        {199, MPS, ACRE_EDENIED, "the policy does not allow a share of 0.199; allowed: 0.2 to 0.6"},
        {601, MPS, ACRE_EDENIED, "the policy does not allow a share of 0.601; allowed: 0.2 to 0.6"},
        {1000, MPS, ACRE_EDENIED, "allowed: 0.2 to 0.6"},
        {300, NONE, ACRE_EDENIED, "the policy does not allow isolation 'none'; allowed: mps"},
        {300, MIG, ACRE_EDENIED, "the policy does not allow isolation 'mig'; allowed: mps"},
        {200, MPS, 0, NULL},
        {200, MPS, 0, NULL},
        {200, MPS, 0, NULL}, /* on the other device: two are enough for one */
        {600, MPS, 0, NULL},
        {200, MPS, ACRE_ENOFIT, "full"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("request %zu", i);
        struct acre_request request = with(kit_share(cases[i].milli), cases[i].isolation, false);
        if (cases[i].expect < 0) {
            KIT_REFUSED(ledger, request, cases[i].expect, cases[i].says);
        } else {
            KIT_TAKE(ledger, request);
        }
    }
    CHECK_EQ(kit_row(ledger, "a/0").allocations, 2);
    CHECK_EQ(kit_row(ledger, "a/1").allocations, 2);
    KIT_TAKE(ledger, with(kit_cpu(1000, 0), NONE, false)); /* no GPU, no rule of theirs */
    kit_destroy(ledger);
}

static void no_sharing_where_it_is_not_allowed(void) { /* ALC-4, ALC-9 */
    struct acre_rules rules = *rules_default();
    rules.sharing_allowed = false;
    struct acre_ledger_options options = {.rules = &rules};
    struct acre_ledger *ledger = acre_ledger_create(&options);
    kit_add(ledger, "a", 2, KIT_MEMORY_MIB);
    KIT_REFUSED(ledger, kit_share(500), ACRE_EDENIED,
                "the policy does not allow sharing; ask for whole GPUs");
    KIT_REFUSED(ledger, kit_memory(500), ACRE_EDENIED,
                "the policy does not allow sharing; ask for whole GPUs");
    KIT_TAKE(ledger, with(kit_share(500), NONE, true));
    KIT_TAKE(ledger, kit_whole(1));
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"eleven_triples_of_tenths_fit_exactly", eleven_triples_of_tenths_fit_exactly, 0},
    {"ten_tenths_fit_whatever_the_memory", ten_tenths_fit_whatever_the_memory, 0},
    {"every_split_of_a_device_in_two_fits", every_split_of_a_device_in_two_fits, 0},
    {"a_request_fits_per_device", a_request_fits_per_device, 0},
    {"what_a_request_takes_of_a_device", what_a_request_takes_of_a_device, 0},
    {"shares_and_memory_are_counted_together", shares_and_memory_are_counted_together, 0},
    {"whole_devices_one_to_all", whole_devices_one_to_all, 0},
    {"models_vendors_and_labels_constrain", models_vendors_and_labels_constrain, 0},
    {"unknown_memory_serves_shares_only", unknown_memory_serves_shares_only, 0},
    {"exclusive_and_shared_never_mix", exclusive_and_shared_never_mix, 0},
    {"devices_that_are_not_shared", devices_that_are_not_shared, 0},
    {"shares_come_in_steps", shares_come_in_steps, 0},
    {"eighths_come_back", eighths_come_back, 0},
    {"cpu_and_ram_are_counted", cpu_and_ram_are_counted, 0},
    {"a_device_takes_so_many_shares", a_device_takes_so_many_shares, 0},
    {"the_rules_of_the_ledger_hold", the_rules_of_the_ledger_hold, 0},
    {"no_sharing_where_it_is_not_allowed", no_sharing_where_it_is_not_allowed, 0},
};
ACRE_TEST_MAIN(tests)
