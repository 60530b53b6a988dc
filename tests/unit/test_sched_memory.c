/* What the scheduler says it holds is what it holds, and it gives all of it back.
 *
 * Measured by the allocator's own count, with tables that are large beside its rounding. */
#include "core/base.h"
#include "sched/account.h"
#include "sched/timeline.h"
#include "sched/why.h"
#include "support/sched_kit.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static size_t in_use(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Sanitizers bring an allocator that counts nothing. */
static void need_counts(void) {
    size_t before = in_use();
    void *volatile block = malloc(1 << 16);
    bool counts = in_use() >= before + (1 << 16);
    free(block);
    if (!counts) {
        acre_test_skip("the allocator does not count what is in use");
    }
}

/* `said` bytes of `held` ones: names and other things of the test may be among the latter. */
static void check_bytes(size_t said, size_t held) {
    CHECK(held > 100000);
    CHECK_NEAR((double)said / (double)held, 1.0, 0.1);
}

static void accounts_say_what_they_hold(void) {
    need_counts();
    struct acre_names *names = acre_names_create();
    uint32_t users[4000], project = acre_names_intern(names, acre_str_from("p"));
    for (size_t i = 0; i < ACRE_COUNT(users); i++) {
        char text[16];
        snprintf(text, sizeof(text), "u%zu", i);
        users[i] = acre_names_intern(names, acre_str_from(text));
    }
    size_t before = in_use();
    struct accounts *accounts = accounts_create(names, acre_policy_default());
    for (size_t i = 0; i < ACRE_COUNT(users); i++) {
        accounts_intern(accounts, project, users[i]);
    }
    check_bytes(accounts_bytes(accounts), in_use() - before);
    accounts_destroy(accounts);
    acre_names_destroy(names);
}

static void timelines_say_what_they_hold(void) {
    need_counts();
    size_t before = in_use();
    struct timeline *timeline = timeline_create(1000);
    static const uint16_t free_milli[8] = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t node = timeline_add_node(timeline, 0, free_milli, 8, 64000, 256000);
        struct timeline_use hold = {.node = node, .slots = 1, .milli = 1000, .until_ms = 2000 + i};
        timeline_occupy(timeline, &hold);
    }
    check_bytes(timeline_bytes(timeline), in_use() - before);
    timeline_destroy(timeline);
}

enum { NODES = 4096 };

/* One GPU a node, all in use by one gang: whoever may stop it is promised a place. */
static void start_full(struct sched_kit *kit) {
    sched_kit_init_large(kit, NODES, 1,
                         "{\"policy\": \"priority\", \"preemption\": true, \"backfill\": false,"
                         " \"preempt_min_run\": 0}");
    struct acre_job_spec gang = sched_kit_spec(kit, "ada", kit_gang(NODES, 1, 1000));
    gang.priority = ACRE_PRIORITY_LOW;
    SCHED_KIT_SUBMIT(kit, &gang);
    sched_kit_settle(kit);
    kit->now_ms += SCHED_KIT_HOUR_MS;
}

static void promise_one(struct sched_kit *kit) {
    struct acre_job_spec head = sched_kit_spec(kit, "bob", kit_whole(1));
    head.priority = ACRE_PRIORITY_CRITICAL;
    SCHED_KIT_SUBMIT(kit, &head);
    acre_sched_pass(kit->sched, kit->now_ms, 0);
    CHECK_EQ(sched_kit_state(kit, 1), ACRE_JOB_PREEMPTED);
}

/* A promise keeps an outlook, which has a number for every node. */
static void a_promise_is_counted(void) {
    struct sched_kit kit;
    start_full(&kit);
    size_t before = acre_sched_bytes(kit.sched);
    promise_one(&kit);
    CHECK(acre_sched_bytes(kit.sched) >= before + NODES * sizeof(uint32_t));
    sched_kit_finish(&kit);
}

static void a_plan_is_counted(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0", "{\"policy\": \"fcfs\", \"preemption\": false}");
    uint64_t last = 0;
    for (int i = 0; i < 2000; i++) {
        struct acre_job_spec spec = sched_kit_spec(&kit, "ada", kit_whole(1));
        spec.estimate_ms = SCHED_KIT_MIN_MS;
        last = SCHED_KIT_SUBMIT(&kit, &spec);
    }
    need_counts();
    struct acre_when when;
    size_t said = acre_sched_bytes(kit.sched), held = in_use();
    REQUIRE_EQ(acre_sched_when(kit.sched, last, kit.now_ms, &when, NULL), 0);
    check_bytes(acre_sched_bytes(kit.sched) - said, in_use() - held);
    sched_kit_finish(&kit);
}

/* The allocator keeps some small blocks for itself; an outlook a life would be far more. */
static void a_scheduler_gives_all_back_promises_too(void) {
    enum { LIVES = 8, OUTLOOK = NODES * sizeof(uint32_t) };
    need_counts();
    size_t first = 0, last = 0;
    for (int life = 0; life <= LIVES; life++) {
        struct sched_kit kit;
        start_full(&kit);
        promise_one(&kit);
        sched_kit_finish(&kit);
        last = in_use();
        first = life == 0 ? last : first;
    }
    CHECK(last < first + LIVES / 2 * OUTLOOK);
}

static const struct acre_test tests[] = {
    {"accounts_say_what_they_hold", accounts_say_what_they_hold, 0},
    {"timelines_say_what_they_hold", timelines_say_what_they_hold, 0},
    {"a_promise_is_counted", a_promise_is_counted, 0},
    {"a_plan_is_counted", a_plan_is_counted, 0},
    {"a_scheduler_gives_all_back_promises_too", a_scheduler_gives_all_back_promises_too, 0},
};

ACRE_TEST_MAIN(tests)
