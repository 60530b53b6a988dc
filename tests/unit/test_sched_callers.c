/* A caller that would spoil the queue is stopped before it does: asserts between the parts of the
 * scheduler. Bad jobs and late facts are no such thing: they are refused or ignored. */
#include "sched/inner.h"
#include "support/dies.h"
#include "support/sched_kit.h"

static struct sched_kit kit; /* job 1 runs, job 2 waits, job 3 was canceled */

static uint32_t index_of(uint64_t id) {
    return job_index(kit.sched, job_find(kit.sched, id));
}

static void queue_one_that_runs(void) {
    queue_enter(kit.sched, index_of(1), kit.now_ms);
}
static void place_one_that_runs(void) {
    struct acre_part part = {.node = 0, .device = 0, .milli = 1000};
    parts_take(kit.sched, index_of(1), 7, &part, 1, kit.now_ms, kit.now_ms);
}
static void free_one_that_waits(void) {
    parts_give(kit.sched, index_of(2), false, kit.now_ms);
}
static void expect_one_that_waits(void) {
    job_expect(kit.sched, index_of(2), kit.now_ms);
}
static void end_one_twice(void) {
    job_end(kit.sched, index_of(3), MOVE_CANCEL, 0, kit.now_ms);
}
static void end_by_placing(void) {
    job_end(kit.sched, index_of(2), MOVE_PLACE, 0, kit.now_ms);
}
static void act_without_a_run(void) {
    act(kit.sched, ACRE_ACTION_START, job_find(kit.sched, 2));
}
static void tell_of_no_job(void) {
    tell(kit.sched, ACRE_SCHED_CHANGED, kit.now_ms, 0, 0);
}
static void remove_one_that_waits(void) {
    job_remove(kit.sched, index_of(2));
}
static void add_one_twice(void) {
    job_add(kit.sched, 2);
}
static void promise_without_a_place(void) {
    promise_make(kit.sched, index_of(2), NULL, 0);
}

static void a_wrong_caller_is_stopped(void) {
    static const struct {
        const char *what;
        void (*call)(void);
    } rows[] = {
        {"queue one that runs", queue_one_that_runs},
        {"place one that runs", place_one_that_runs},
        {"free one that waits", free_one_that_waits},
        {"expect one that waits", expect_one_that_waits},
        {"end one twice", end_one_twice},
        {"end by placing", end_by_placing},
        {"act without a run", act_without_a_run},
        {"tell of no job", tell_of_no_job},
        {"remove one that waits", remove_one_that_waits},
        {"add one twice", add_one_twice},
        {"promise without a place", promise_without_a_place},
    };
    sched_kit_init(&kit, "0", "{\"policy\": \"fcfs\"}");
    for (int i = 0; i < 3; i++) {
        struct acre_job_spec spec = sched_kit_spec(&kit, "ada", kit_whole(1));
        SCHED_KIT_SUBMIT(&kit, &spec);
    }
    sched_kit_settle(&kit);
    REQUIRE_EQ(acre_sched_cancel(kit.sched, 3, kit.now_ms, NULL), 0);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].what);
        CHECK(acre_dies(rows[i].call));
    }
    sched_kit_finish(&kit);
}

static const struct acre_test tests[] = {
    {"a_wrong_caller_is_stopped", a_wrong_caller_is_stopped, 0},
};

ACRE_TEST_MAIN(tests)
