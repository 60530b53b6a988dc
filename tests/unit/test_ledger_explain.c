/* Why nothing served a request: one dominant reason, its numbers, and what would change it. */
#include "support/ledger_kit.h"

struct row {
    const char *cluster;
    struct acre_request request;
    const char *says;
};

static void run_rows(const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        acre_test_context("[%s], row %zu", rows[i].cluster, i);
        struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, rows[i].cluster);
        KIT_REFUSED(ledger, rows[i].request, ACRE_ENOFIT, rows[i].says);
        kit_destroy(ledger);
    }
}

static void what_time_cannot_cure(void) { /* POL-9: never fits is said at once */
    static const struct row rows[] = {
        {"0 0|0",
         {.replicas = 1, .gpus = 3, .milli = 1000},
         "never fits: it asks for 3 GPUs on one node; at most 2 on any one node fit; ask for "
         "fewer, or for more nodes with fewer GPUs each"},
        {"0",
         {.replicas = 1, .gpus = 1, .mib = 81560},
         "never fits: it asks for 81560 MiB of GPU memory; the largest GPU has 81559 MiB; ask for "
         "less"},
        {"0@4000|0@8000",
         {.replicas = 1, .gpus = 1, .milli = 100, .cpu_milli = 9000, .ram_mib = 1},
         "never fits: it asks for 1 GPU with 9 CPUs and 1 MiB of RAM on one node; the largest "
         "nodes have 8 CPUs and 256 GiB; ask for less"},
        {"0",
         {.replicas = 1, .ram_mib = 262145},
         "never fits: it asks for 262145 MiB of RAM on one node; the largest nodes have 64 CPUs "
         "and 262144 MiB; ask for less"},
        {"0", {.replicas = 1, .gpus = 1, .milli = 1000, .isolation = ACRE_ISOLATION_MIG}, "kind"},
        {"500", /* also when something is in the way now */
         {.replicas = 1, .gpus = 2, .milli = 600},
         "never fits: it asks for 2 GPUs on one node; at most 1 on any one node fit; ask for "
         "fewer, or for more nodes with fewer GPUs each"},
    };
    run_rows(rows, ACRE_COUNT(rows));
    struct acre_ledger *ledger = kit_create(ACRE_STRATEGY_DEFAULT);
    KIT_REFUSED(ledger, kit_share(500), ACRE_ENOFIT, "never fits: there are no nodes; add one");
    KIT_REFUSED(ledger, kit_cpu(500, 0), ACRE_ENOFIT, "never fits: there are no nodes; add one");
    kit_destroy(ledger);
}

static void what_a_release_would_cure(void) { /* POL-9 */
    static const struct row rows[] = {
        {"700|600 600|650",
         {.replicas = 1, .gpus = 1, .milli = 800},
         "no room now: the largest free share of a GPU is 0.4 on b; it asks for 0.8; ask for less "
         "or wait"},
        {"600|200",
         {.replicas = 1, .gpus = 1, .milli = 1000},
         "no room now: the largest free share of a GPU is 0.8 on b; it asks for 1.0; ask for less "
         "or wait"},
        {"600|200",
         {.replicas = 1, .gpus = 1, .mib = 70000},
         "no room now: the largest free share of a GPU is 0.8 on b, and the most free memory of a "
         "GPU is "
         "63.7 GiB; it asks for 68.3 GiB; ask for less or wait"},
        {"1000|x",
         {.replicas = 1, .gpus = 1, .milli = 100},
         "no room now: every GPU that fits is full or drained; wait until one is free"},
        {"0 500|0 0 700|500 0 500",
         {.replicas = 1, .gpus = 3, .milli = 600},
         "no room now: no node has more than 2 GPUs with 0.6 free (b); it asks for 3; ask for "
         "fewer or wait"},
        {"0 0|0",
         {.replicas = 4, .gpus = 1, .milli = 1000},
         "no room now: room for 3 of 4 members; ask for fewer or wait"},
    };
    run_rows(rows, ACRE_COUNT(rows));
}

static void cpu_beside_free_devices(void) { /* POL-9: the scarce thing is named */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, "0 0@8000|1000 0@4000");
    KIT_TAKE(ledger, kit_cpu(7000, 0));
    struct acre_request request = kit_whole(1);
    request.cpu_milli = 4500;
    request.ram_mib = 1024;
    KIT_REFUSED(ledger, request, ACRE_ENOFIT,
                "no room now: GPUs are free, but a has only 1 CPU and 256 GiB free; it asks for "
                "4.5 CPUs and 1 GiB of RAM; ask for less or wait");
    KIT_REFUSED(ledger, kit_cpu(4500, 0), ACRE_ENOFIT,
                "no room now: a has only 1 CPU and 256 GiB free; it asks for 4.5 CPUs; ask for "
                "less or wait");
    kit_destroy(ledger);
}

static void another_kind_in_the_way(void) { /* ALC-4: the number asked is there, its kind is not */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "500p");
    struct acre_error err = {0};
    uint64_t id;
    struct acre_request request = kit_share(300);
    CHECK_EQ(acre_ledger_allocate(ledger, &request, KIT_NOW_MS, &id, &err), ACRE_ENOFIT);
    CHECK(strstr(err.text, "largest free share is 0.5 on a; 0.3 of one device asked") == NULL);
    CHECK_HAS(err.text, "isolation");
    kit_destroy(ledger);
}

static void nodes_out_of_use(void) { /* drained nodes are not "room" */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0|0");
    REQUIRE_EQ(acre_ledger_drain_node(ledger, 0, true, NULL), 0);
    REQUIRE_EQ(acre_ledger_drain_node(ledger, 1, true, NULL), 0);
    KIT_REFUSED(ledger, kit_share(500), ACRE_ENOFIT, "full or drained");
    KIT_REFUSED(ledger, kit_cpu(500, 0), ACRE_ENOFIT, "drained");
    kit_destroy(ledger);
}

static void a_reservation_without_room(void) { /* ALC-8 */
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0");
    uint32_t device = 1;
    struct acre_reservation_spec spec = {.user = kit_name(ledger, "ann"),
                                         .devices = &device,
                                         .device_count = 1,
                                         .milli = 500,
                                         .start_ms = KIT_NOW_MS,
                                         .end_ms = 5000};
    uint64_t id;
    REQUIRE_EQ(acre_ledger_reserve(ledger, &spec, KIT_NOW_MS, &id, NULL), 0);
    struct acre_request request = kit_gang(3, 1, 200);
    request.reservation = id;
    KIT_REFUSED(ledger, request, ACRE_ENOFIT, "reservation 1 has room for only 2 of 3 members");
    kit_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"what_time_cannot_cure", what_time_cannot_cure, 0},
    {"what_a_release_would_cure", what_a_release_would_cure, 0},
    {"cpu_beside_free_devices", cpu_beside_free_devices, 0},
    {"another_kind_in_the_way", another_kind_in_the_way, 0},
    {"nodes_out_of_use", nodes_out_of_use, 0},
    {"a_reservation_without_room", a_reservation_without_room, 0},
};
ACRE_TEST_MAIN(tests)
