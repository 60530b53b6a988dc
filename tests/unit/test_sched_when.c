/* When a job starts: the plan, its interval, and what it costs (POL-9). */
#include "core/rand.h"
#include "sched/inner.h"
#include "sched/plan.h"
#include "sched/why.h"
#include "support/sched_kit.h"

#include <stdio.h>
#include <stdlib.h>

#define MIN_MS  SCHED_KIT_MIN_MS
#define HOUR_MS SCHED_KIT_HOUR_MS

/* Starts do not move when nothing is preempted, so that a plan can be checked by hand. */
#define FCFS "{\"policy\":\"fcfs\",\"preemption\":false}"

static struct acre_when when(struct sched_kit *kit, uint64_t job) {
    struct acre_when answer = {0};
    struct acre_error err = {0};
    int r = acre_sched_when(kit->sched, job, kit->now_ms, &answer, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    return answer;
}

/* The planned start in minutes from now, before experience has its say; -1: not planned. */
static int64_t planned(struct sched_kit *kit, uint64_t job) {
    struct acre_when answer = when(kit, job);
    const struct plan_entry *entry = plan_find(forecast_plan(kit->sched->forecast), job);
    if (entry == NULL) {
        CHECK(!answer.known);
        return -1;
    }
    CHECK(answer.known);
    CHECK(answer.earliest_ms <= answer.start_ms && answer.start_ms <= answer.latest_ms);
    CHECK(answer.earliest_ms >= kit->now_ms);
    CHECK(answer.latest_ms >= entry->start_ms && answer.earliest_ms <= entry->start_ms);
    return ((int64_t)entry->start_ms - (int64_t)kit->now_ms) / (int64_t)MIN_MS;
}

static struct acre_job_spec spec(struct sched_kit *kit, struct acre_request request,
                                 uint64_t minutes) {
    struct acre_job_spec out = sched_kit_spec(kit, "ada", request);
    out.estimate_ms = minutes * MIN_MS;
    return out;
}

static uint64_t submit(struct sched_kit *kit, struct acre_request request, uint64_t minutes) {
    struct acre_job_spec out = spec(kit, request, minutes);
    uint64_t id = SCHED_KIT_SUBMIT(kit, &out);
    sched_kit_settle(kit);
    return id;
}

static void jobs_start_when_those_before_end(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0", FCFS);
    uint64_t first = submit(&kit, kit_whole(1), 30);
    uint64_t second = submit(&kit, kit_whole(1), 60);
    uint64_t pair = submit(&kit, kit_whole(2), 10);
    uint64_t last = submit(&kit, kit_whole(1), 120);
    CHECK_EQ(planned(&kit, pair), 60);
    CHECK_EQ(planned(&kit, last), 70); /* behind the pair: in between it would delay it */
    uint64_t quick = submit(&kit, kit_whole(1), 30);
    CHECK_EQ(planned(&kit, quick), 30); /* in the hole before the pair */
    CHECK_U64(when(&kit, first).start_ms, kit.now_ms);
    kit.now_ms += 10 * MIN_MS;
    CHECK_EQ(planned(&kit, pair), 50);
    sched_kit_end(&kit, second); /* after a sixth of its estimate: others may be early too */
    CHECK_EQ(planned(&kit, pair), 7);
    CHECK(when(&kit, first).known);
    CHECK_U64(when(&kit, first).start_ms, kit.now_ms - 10 * MIN_MS);
    sched_kit_finish(&kit);
}

static void nodes_are_not_summed(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0|0 0", FCFS);
    submit(&kit, kit_whole(1), 20);
    submit(&kit, kit_whole(2), 40);
    uint64_t pair = submit(&kit, kit_whole(2), 10);
    CHECK_EQ(planned(&kit, pair), 20);
    uint64_t share = submit(&kit, kit_share(500), 10); /* fits beside, and ends before the pair */
    CHECK_EQ(sched_kit_state(&kit, share), ACRE_JOB_RUNNING);
    uint64_t gang = submit(&kit, kit_gang(2, 2, 1000), 10);
    CHECK_EQ(planned(&kit, gang), 40);
    sched_kit_finish(&kit);
}

static void a_run_past_its_estimate_is_given_more(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0", FCFS);
    struct acre_job_spec first = spec(&kit, kit_whole(1), 10);
    first.limit_ms = 100 * MIN_MS;
    SCHED_KIT_SUBMIT(&kit, &first);
    sched_kit_settle(&kit);
    uint64_t next = submit(&kit, kit_whole(1), 10);
    CHECK_EQ(planned(&kit, next), 10);
    kit.now_ms += 40 * MIN_MS;
    CHECK_EQ(planned(&kit, next), 20); /* half of what it has run */
    kit.now_ms += 50 * MIN_MS;
    CHECK_EQ(planned(&kit, next), 10); /* its limit ends it */
    sched_kit_finish(&kit);
}

static void drained_nodes_and_foreign_memory_are_not_there(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0|0 0", FCFS);
    submit(&kit, kit_whole(2), 10);
    submit(&kit, kit_whole(2), 30);
    uint64_t pair = submit(&kit, kit_whole(2), 10);
    CHECK_EQ(planned(&kit, pair), 10);
    struct acre_job row;
    REQUIRE(acre_sched_find(kit.sched, 1, &row));
    struct acre_allocation allocation;
    REQUIRE(acre_ledger_find(kit.ledger, row.allocation, &allocation));
    uint32_t node = allocation.parts[0].node, device = allocation.parts[0].device;
    REQUIRE_EQ(acre_ledger_drain_node(kit.ledger, node, true, NULL), 0);
    acre_sched_ledger_changed(kit.sched);
    CHECK_EQ(planned(&kit, pair), 30);
    REQUIRE_EQ(acre_ledger_drain_node(kit.ledger, node, false, NULL), 0);
    REQUIRE_EQ(acre_ledger_set_foreign(kit.ledger, device, 1000, NULL), 0);
    acre_sched_ledger_changed(kit.sched);
    CHECK_EQ(planned(&kit, pair), 30);
    sched_kit_finish(&kit);
}

static void who_may_not_start_yet_is_planned_after_that(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0", FCFS);
    submit(&kit, kit_whole(1), 30);
    uint64_t next = submit(&kit, kit_whole(1), 20);

    struct acre_job_spec later = spec(&kit, kit_whole(1), 10);
    later.begin_ms = kit.now_ms + 120 * MIN_MS;
    SCHED_KIT_SUBMIT(&kit, &later);
    CHECK_EQ(planned(&kit, later.id), 120);
    CHECK(when(&kit, later.id).earliest_ms >= later.begin_ms);
    CHECK(when(&kit, later.id).latest_ms <= later.begin_ms + 10 * MIN_MS); /* of that: certain */

    struct acre_dependency need = {.job = next, .kind = ACRE_DEPENDENCY_AFTER_OK};
    struct acre_job_spec after = spec(&kit, kit_whole(1), 10);
    after.dependencies = &need;
    after.dependency_count = 1;
    SCHED_KIT_SUBMIT(&kit, &after);
    CHECK_EQ(planned(&kit, after.id), 50);

    struct acre_job_spec held = spec(&kit, kit_whole(1), 10);
    held.held = true;
    SCHED_KIT_SUBMIT(&kit, &held);
    CHECK(!when(&kit, held.id).known);

    need.job = held.id;
    struct acre_job_spec never = spec(&kit, kit_whole(1), 10);
    never.dependencies = &need;
    never.dependency_count = 1;
    SCHED_KIT_SUBMIT(&kit, &never);
    CHECK_EQ(planned(&kit, never.id), -1); /* a dependency without end */

    acre_sched_pause(kit.sched, true);
    CHECK(!when(&kit, next).known);
    acre_sched_pause(kit.sched, false);
    CHECK_EQ(planned(&kit, next), 30);
    struct acre_when answer;
    CHECK_EQ(acre_sched_when(kit.sched, 99, kit.now_ms, &answer, NULL), ACRE_ENOTFOUND);
    sched_kit_finish(&kit);
}

static void members_of_an_array_take_turns(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0 0 0", FCFS);
    uint64_t ids[6];
    for (uint32_t i = 0; i < 6; i++) {
        struct acre_job_spec member = spec(&kit, kit_whole(1), i == 0 ? 10 : 20);
        member.array = 1;
        member.array_index = i;
        member.array_limit = 2;
        ids[i] = SCHED_KIT_SUBMIT(&kit, &member);
    }
    sched_kit_settle(&kit);
    CHECK_EQ(planned(&kit, ids[2]), 10);
    CHECK_EQ(planned(&kit, ids[3]), 20);
    CHECK_EQ(planned(&kit, ids[4]), 30);
    CHECK_EQ(planned(&kit, ids[5]), 40);
    sched_kit_finish(&kit);
}

static void reservations_are_kept_free(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0", FCFS);
    uint32_t device = kit_device(kit.ledger, "a/0");
    struct acre_reservation_spec window = {.user = kit_name(kit.ledger, "ada"),
                                           .devices = &device,
                                           .device_count = 1,
                                           .milli = 1000,
                                           .start_ms = kit.now_ms + 60 * MIN_MS,
                                           .end_ms = kit.now_ms + 90 * MIN_MS};
    uint64_t reservation;
    REQUIRE_EQ(acre_ledger_reserve(kit.ledger, &window, kit.now_ms, &reservation, NULL), 0);
    acre_sched_ledger_changed(kit.sched);
    struct acre_job_spec first = spec(&kit, kit_whole(1), 30);
    first.limit_ms = 30 * MIN_MS;
    SCHED_KIT_SUBMIT(&kit, &first);
    sched_kit_settle(&kit);
    uint64_t longer = submit(&kit, kit_whole(1), 31);
    CHECK_EQ(planned(&kit, longer), 90);
    struct acre_request own = kit_whole(1);
    own.reservation = reservation;
    uint64_t inside = submit(&kit, own, 10);
    CHECK_EQ(planned(&kit, inside), 60);
    sched_kit_finish(&kit);
}

/* Silos and others hold devices too: until they expire, or for ever. */
static void what_is_not_a_job_is_planned_around(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0", FCFS);
    struct acre_request lease = kit_whole(1);
    lease.expires_ms = kit.now_ms + 40 * MIN_MS;
    uint64_t id;
    REQUIRE_EQ(acre_ledger_allocate(kit.ledger, &lease, kit.now_ms, &id, NULL), 0);
    acre_sched_ledger_changed(kit.sched);
    uint64_t pair = submit(&kit, kit_whole(2), 10);
    CHECK_EQ(planned(&kit, pair), 40);
    sched_kit_finish(&kit);

    sched_kit_init(&kit, "1000 0", FCFS);
    pair = submit(&kit, kit_whole(2), 10);
    CHECK_EQ(planned(&kit, pair), -1);
    uint64_t memory = submit(&kit, kit_both(100, KIT_MEMORY_MIB / 2 + 1), 10); /* a tenth, half */
    CHECK_EQ(sched_kit_state(&kit, memory), ACRE_JOB_RUNNING);
    uint64_t next = submit(&kit, kit_share(600), 10);
    CHECK_EQ(planned(&kit, next), 10);
    sched_kit_finish(&kit);
}

static void who_was_told_to_end_makes_room_soon(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0", FCFS);
    uint64_t first = submit(&kit, kit_whole(1), 60);
    uint64_t next = submit(&kit, kit_whole(1), 10);
    CHECK_EQ(planned(&kit, next), 60);
    REQUIRE_EQ(acre_sched_cancel(kit.sched, first, kit.now_ms, NULL), 0);
    CHECK_EQ(planned(&kit, next), 0);
    sched_kit_finish(&kit);
}

/* POL-7: a hard quota makes a user wait for the user's own jobs. */
static void a_hard_quota_is_waited_for(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0 0 0|0 0 0 0",
                   "{\"policy\":\"fcfs\",\"preemption\":false,\"quotas\":["
                   "{\"who\":\"user:ada\",\"gpus\":2},{\"who\":\"project:p-ada\",\"running\":3},"
                   "{\"who\":\"user:eve\",\"gpu_hours\":1}]}");
    submit(&kit, kit_whole(1), 30);
    submit(&kit, kit_share(500), 10);
    uint64_t pair = submit(&kit, kit_whole(2), 20);
    CHECK_EQ(planned(&kit, pair), 30);
    uint64_t half = submit(&kit, kit_share(500), 20);
    CHECK_EQ(sched_kit_state(&kit, half), ACRE_JOB_RUNNING); /* 2 GPUs and 3 jobs */
    uint64_t next = submit(&kit, kit_share(500), 60);
    CHECK_EQ(planned(&kit, next), 50); /* it lasts into the pair's turn */
    uint64_t brief = submit(&kit, kit_share(500), 5);
    CHECK_EQ(planned(&kit, brief), 10);

    struct acre_job_spec used = sched_kit_spec(&kit, "eve", kit_whole(4));
    SCHED_KIT_SUBMIT(&kit, &used);
    sched_kit_settle(&kit);
    kit.now_ms += HOUR_MS;
    sched_kit_end(&kit, used.id);
    struct acre_job_spec over = sched_kit_spec(&kit, "eve", kit_whole(1));
    SCHED_KIT_SUBMIT(&kit, &over);
    sched_kit_settle(&kit);
    CHECK_EQ(sched_kit_state(&kit, over.id), ACRE_JOB_QUEUED);
    CHECK_NEAR((double)planned(&kit, over.id), 14 * 24 * 60, 60); /* 4 hours are 1 in two weeks */
    sched_kit_finish(&kit);
}

/* Many jobs of one user under a quota cost no more than others. */
static void a_quota_costs_little(void) {
    struct sched_kit kit;
    sched_kit_init_large(&kit, 8, 8,
                         "{\"policy\":\"fcfs\",\"quotas\":[{\"who\":\"user:*\",\"running\":4}]}");
    for (int i = 0; i < 4000; i++) {
        struct acre_job_spec job = spec(&kit, kit_whole(1), 60);
        SCHED_KIT_SUBMIT(&kit, &job);
    }
    sched_kit_settle(&kit);
    CHECK_EQ(planned(&kit, 4000), 60 * 999);
    sched_kit_finish(&kit);
}

/* A submission is put behind the others without making the plan anew. */
static void a_submission_is_added_to_the_plan(void) {
    struct sched_kit kit;
    sched_kit_init_large(&kit, 4, 8, FCFS);
    struct plan *plan = forecast_plan(kit.sched->forecast);
    for (int i = 0; i < 60; i++) {
        struct acre_job_spec job = spec(&kit, kit_whole(4), 60);
        SCHED_KIT_SUBMIT(&kit, &job);
    }
    sched_kit_settle(&kit);
    CHECK_EQ(planned(&kit, kit.last_id), 60 * (59 / 8));
    const struct timeline *timeline = plan->timeline;
    uint64_t searches = timeline_searches(timeline);
    struct acre_job_spec job = spec(&kit, kit_whole(8), 60);
    SCHED_KIT_SUBMIT(&kit, &job);
    CHECK_EQ(planned(&kit, job.id), 60 * 7);
    CHECK(plan->timeline == timeline);
    CHECK(timeline_searches(timeline) < searches + 20);
    CHECK_EQ(planned(&kit, job.id), 60 * 7); /* the answer is kept */
    sched_kit_finish(&kit);
}

/* More than are planned one by one: by the pace of the queue, with a wider interval. */
static void the_far_end_of_the_queue_is_told_by_its_pace(void) {
    struct sched_kit kit;
    sched_kit_init_large(&kit, 8, 8, FCFS);
    enum { JOBS = 12000 };
    for (int i = 0; i < JOBS; i++) {
        struct acre_job_spec job = spec(&kit, kit_whole(1), 60);
        SCHED_KIT_SUBMIT(&kit, &job);
    }
    sched_kit_settle(&kit);
    uint64_t exact = 64 + 9999, beyond = JOBS;
    CHECK_EQ(planned(&kit, exact), 60 * (int64_t)((exact - 1) / 64));
    struct acre_when far = when(&kit, beyond), near = when(&kit, exact);
    REQUIRE(far.known);
    CHECK(plan_find(forecast_plan(kit.sched->forecast), beyond) == NULL);
    CHECK(far.start_ms > near.start_ms);
    double hours = (double)(far.start_ms - kit.now_ms) / (double)HOUR_MS;
    CHECK_NEAR(hours, (JOBS - 64) / 64.0, 10);
    CHECK(far.latest_ms - far.earliest_ms > near.latest_ms - near.earliest_ms);
    CHECK(forecast_bytes(kit.sched->forecast) < 16 * 1024 * 1024);
    sched_kit_finish(&kit);
}

/* A large plan is not made anew at every change, and is after a while. */
static void a_large_plan_is_kept_a_while(void) {
    struct sched_kit kit;
    sched_kit_init_large(&kit, 2, 8, FCFS);
    for (int i = 0; i < 2000; i++) {
        struct acre_job_spec job = spec(&kit, kit_whole(1), 60);
        SCHED_KIT_SUBMIT(&kit, &job);
    }
    sched_kit_settle(&kit);
    const struct plan *plan = forecast_plan(kit.sched->forecast);
    when(&kit, 1000);
    uint64_t built_ms = plan->built_ms;
    kit.now_ms += 500;
    sched_kit_end(&kit, 1);
    when(&kit, 1000);
    CHECK_U64(plan->built_ms, built_ms);
    kit.now_ms += 2000;
    when(&kit, 1000);
    CHECK_U64(plan->built_ms, kit.now_ms);
    sched_kit_finish(&kit);
}

/* Runs end otherwise than estimated; nine in ten starts are within what was said first. */
static void intervals_hold_in_a_living_queue(void) {
    struct sched_kit kit;
    sched_kit_init_large(&kit, 2, 4, FCFS);
    enum { JOBS = 3000, RUNS = 64 };
    static struct acre_when said[JOBS + 1];
    static uint64_t run_ms[JOBS + 1], asked_ms[JOBS + 1];
    struct acre_rand rand;
    acre_rand_seed(&rand, 4);
    uint64_t ends_ms[JOBS + 1];
    memset(ends_ms, 0xff, sizeof(ends_ms));
    uint64_t next_submit_ms = kit.now_ms;
    uint32_t inside = 0, seen = 0, last_started = 0;
    while (kit.last_id < JOBS) {
        uint64_t end_ms = UINT64_MAX, ending = 0;
        for (uint64_t id = kit.last_id > 400 ? kit.last_id - 400 : 1; id <= kit.last_id; id++) {
            if (ends_ms[id] < end_ms) {
                end_ms = ends_ms[id];
                ending = id;
            }
        }
        if (end_ms <= next_submit_ms) {
            kit.now_ms = end_ms;
            ends_ms[ending] = UINT64_MAX;
            sched_kit_end(&kit, ending);
        } else {
            kit.now_ms = next_submit_ms;
            uint64_t minutes = 5 + acre_rand_below(&rand, 115);
            struct acre_job_spec job =
                spec(&kit, kit_whole(1 + (uint32_t)acre_rand_below(&rand, 2)), minutes);
            SCHED_KIT_SUBMIT(&kit, &job);
            asked_ms[job.id] = kit.now_ms;
            run_ms[job.id] =
                (uint64_t)((double)(minutes * MIN_MS) * (0.1 + 1.1 * acre_rand_unit(&rand)));
            said[job.id] = when(&kit, job.id);
            sched_kit_settle(&kit);
            next_submit_ms += acre_rand_below(&rand, 15 * MIN_MS);
        }
        for (uint64_t id = last_started + 1; id <= kit.last_id; id++) {
            struct acre_job row;
            if (run_ms[id] == 0 || !acre_sched_find(kit.sched, id, &row) ||
                row.state != ACRE_JOB_RUNNING || ends_ms[id] != UINT64_MAX) {
                continue;
            }
            ends_ms[id] = row.started_ms + run_ms[id];
            run_ms[id] = 0;
            if (id > JOBS / 3 && row.started_ms > asked_ms[id] + MIN_MS) { /* it did wait */
                seen++;
                inside +=
                    said[id].earliest_ms <= row.started_ms && row.started_ms <= said[id].latest_ms;
            }
        }
        while (last_started < kit.last_id && run_ms[last_started + 1] == 0) {
            last_started++;
        }
    }
    REQUIRE(seen > 300);
    double part = (double)inside / seen;
    acre_test_context("%u of %u starts inside", inside, seen);
    CHECK(part > 0.82 && part <= 0.98);
    sched_kit_finish(&kit);
}

/* One that ended without a run has no start, and none is made up for it. */
static void what_never_ran_never_started(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0", FCFS);
    uint64_t runs = submit(&kit, kit_whole(1), 60), waits = submit(&kit, kit_whole(1), 60);
    REQUIRE_EQ(acre_sched_cancel(kit.sched, waits, kit.now_ms, NULL), 0);
    struct acre_when answer = when(&kit, waits);
    CHECK(!answer.known);
    CHECK_U64(answer.start_ms, 0);
    answer = when(&kit, runs);
    CHECK(answer.known);
    CHECK_U64(answer.start_ms, kit.now_ms);
    sched_kit_finish(&kit);
}

static const struct acre_test tests[] = {
    {"jobs_start_when_those_before_end", jobs_start_when_those_before_end, 0},
    {"nodes_are_not_summed", nodes_are_not_summed, 0},
    {"a_run_past_its_estimate_is_given_more", a_run_past_its_estimate_is_given_more, 0},
    {"drained_nodes_and_foreign_memory_are_not_there",
     drained_nodes_and_foreign_memory_are_not_there, 0},
    {"who_may_not_start_yet_is_planned_after_that", who_may_not_start_yet_is_planned_after_that, 0},
    {"members_of_an_array_take_turns", members_of_an_array_take_turns, 0},
    {"reservations_are_kept_free", reservations_are_kept_free, 0},
    {"what_is_not_a_job_is_planned_around", what_is_not_a_job_is_planned_around, 0},
    {"who_was_told_to_end_makes_room_soon", who_was_told_to_end_makes_room_soon, 0},
    {"a_hard_quota_is_waited_for", a_hard_quota_is_waited_for, 0},
    {"a_quota_costs_little", a_quota_costs_little, 0},
    {"a_submission_is_added_to_the_plan", a_submission_is_added_to_the_plan, 0},
    {"the_far_end_of_the_queue_is_told_by_its_pace", the_far_end_of_the_queue_is_told_by_its_pace,
     0},
    {"a_large_plan_is_kept_a_while", a_large_plan_is_kept_a_while, 0},
    {"intervals_hold_in_a_living_queue", intervals_hold_in_a_living_queue, 0},
    {"what_never_ran_never_started", what_never_ran_never_started, 0},
};

ACRE_TEST_MAIN(tests)
