/* A head behind more runs than are looked at (backfill.c, STEPS_MAX): only who ends before the last
 * run seen may pass, until a place for the head is known, or it is known that there is none. */
#include "support/sched_kit.h"

#define HOUR_MS SCHED_KIT_HOUR_MS

enum { NODES = 1101, RUNS = 1030 }; /* STEPS_MAX is 1024 */

static uint64_t submit(struct sched_kit *kit, struct acre_request request, uint64_t hours) {
    struct acre_job_spec spec = sched_kit_spec(kit, "ada", request);
    spec.estimate_ms = hours * HOUR_MS;
    return SCHED_KIT_SUBMIT(kit, &spec);
}

/* Also what the scheduler says it would look at again at once. */
static void settle(struct sched_kit *kit) {
    bool is_settled = false;
    for (int i = 0; i < 10 && !is_settled; i++) {
        sched_kit_settle(kit);
        is_settled = acre_sched_next_ms(kit->sched) > kit->now_ms;
    }
    CHECK(is_settled);
}

static struct acre_request with_memory(struct acre_request request) {
    request.mib = KIT_MEMORY_MIB / 2;
    return request;
}

/* Nodes of one GPU, `runs` runs of an hour on them. */
static void start(struct sched_kit *kit, uint32_t runs) {
    sched_kit_init_large(kit, NODES, 1,
                         "{\"policy\": \"fcfs\", \"backfill\": true, \"preemption\": false}");
    for (uint32_t i = 0; i < runs; i++) {
        submit(kit, kit_whole(1), 1);
    }
    settle(kit);
    CHECK_EQ(sched_kit_state(kit, runs), ACRE_JOB_RUNNING);
}

/* One node is too small for the head, and idle: anybody's as soon as the head has its place. */
static void when_the_head_has_a_place_the_rest_is_anybodys(void) {
    struct sched_kit kit;
    start(&kit, RUNS);
    kit_add(kit.ledger, "small", 1, 1000);
    acre_sched_ledger_changed(kit.sched);
    uint64_t head = submit(&kit, with_memory(kit_gang(NODES - 4, 1, 1000)), 1);
    uint64_t behind = submit(&kit, kit_whole(1), 10);
    settle(&kit);
    CHECK_EQ(sched_kit_state(&kit, behind), ACRE_JOB_QUEUED);
    for (uint64_t run = 1; run <= 10; run++) {
        sched_kit_end(&kit, run);
    }
    settle(&kit);
    CHECK_EQ(sched_kit_state(&kit, head), ACRE_JOB_QUEUED);
    CHECK_EQ(sched_kit_state(&kit, behind), ACRE_JOB_RUNNING);
    sched_kit_finish(&kit);
}

/* The head waits for two GPUs of a node that is drained. With a few runs less all of them are
 * looked at, and it is known that none helps: it holds nobody up, wherever those runs were. */
static void a_head_that_none_of_many_helps_blocks_nobody(void) {
    enum { FEW = 10, SMALL_MIB = 1000 };
    struct sched_kit kit;
    start(&kit, RUNS - FEW);
    uint32_t node = kit_add(kit.ledger, "pair", 2, KIT_MEMORY_MIB);
    REQUIRE_EQ(acre_ledger_drain_node(kit.ledger, node, true, NULL), 0);
    const struct acre_device_spec small = {.model = "L4", .memory_mib = SMALL_MIB};
    const struct acre_device_spec few[FEW] = {small, small, small, small, small,
                                              small, small, small, small, small};
    kit_add_devices(kit.ledger, "few", few, FEW);
    acre_sched_ledger_changed(kit.sched);
    uint64_t on_few[FEW];
    for (uint32_t i = 0; i < FEW; i++) {
        struct acre_request request = kit_whole(1);
        request.models[0] = kit_name(kit.ledger, "L4");
        on_few[i] = submit(&kit, request, 1);
    }
    settle(&kit);
    uint64_t head = submit(&kit, with_memory(kit_whole(2)), 1);
    uint64_t behind = submit(&kit, with_memory(kit_whole(1)), 10);
    settle(&kit);
    CHECK_EQ(sched_kit_state(&kit, behind), ACRE_JOB_QUEUED);
    for (uint32_t i = 0; i < FEW; i++) {
        sched_kit_end(&kit, on_few[i]);
    }
    settle(&kit);
    CHECK_EQ(sched_kit_state(&kit, head), ACRE_JOB_QUEUED);
    CHECK_EQ(sched_kit_state(&kit, behind), ACRE_JOB_RUNNING);
    sched_kit_finish(&kit);
}

static const struct acre_test tests[] = {
    {"when_the_head_has_a_place_the_rest_is_anybodys",
     when_the_head_has_a_place_the_rest_is_anybodys, 0},
    {"a_head_that_none_of_many_helps_blocks_nobody", a_head_that_none_of_many_helps_blocks_nobody,
     0},
};

ACRE_TEST_MAIN(tests)
