/* Putting jobs back after a restart (STO-1), jobs of reservations (ALC-8), names, walks, and what
 * many different requests do to the tables. */
#include "sched/sched.h"
#include "support/ledger_kit.h"

#include <stdio.h>

struct told {
    enum acre_sched_action_kind kind;
    uint64_t job;
    uint32_t attempt;
};

struct play {
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    struct told told[256];
    uint32_t told_count, event_count;
    uint32_t user, project;
};

static void on_event(void *context, const struct acre_sched_event *event) {
    struct play *play = context;
    play->event_count++;
    CHECK(acre_sched_event_name(event->kind)[0] != 0);
}

static void on_action(void *context, const struct acre_sched_action *action) {
    struct play *play = context;
    REQUIRE(play->told_count < ACRE_COUNT(play->told));
    play->told[play->told_count++] = (struct told){action->kind, action->job, action->attempt};
}

static void init(struct play *play, const char *cluster, enum acre_policy_kind kind) {
    struct acre_policy policy = *acre_policy_default();
    policy.kind = kind;
    *play = (struct play){.ledger = kit_cluster(ACRE_STRATEGY_FIRST_FIT, cluster)};
    struct acre_sched_options options = {.ledger = play->ledger,
                                         .policy = &policy,
                                         .event = on_event,
                                         .action = on_action,
                                         .context = play};
    play->sched = acre_sched_create(&options);
    play->user = kit_name(play->ledger, "ada");
    play->project = kit_name(play->ledger, "red");
}

static void finish(struct play *play) {
    struct acre_error err = {0};
    acre_sched_check(play->sched, &err);
    CHECK_STR(err.text, "");
    acre_sched_destroy(play->sched);
    kit_destroy(play->ledger);
}

static struct acre_job_spec spec_of(const struct play *play, uint64_t id,
                                    struct acre_request request) {
    return (struct acre_job_spec){.id = id,
                                  .user = play->user,
                                  .project = play->project,
                                  .request = request,
                                  .priority = ACRE_PRIORITY_NORMAL};
}

static struct acre_job job_of(const struct play *play, uint64_t id, enum acre_job_state state) {
    struct acre_job job = {.spec = spec_of(play, id, kit_whole(1)),
                           .state = state,
                           .submitted_ms = 1,
                           .eligible_ms = 1};
    if (acre_job_state_holds(state)) {
        job.attempt = 3;
        job.scheduled_ms = 10;
        job.started_ms = state == ACRE_JOB_RUNNING ? 20 : 0;
        job.allocation = 100 + id;
    }
    return job;
}

static struct acre_part part_on(uint32_t device) {
    return (struct acre_part){
        .node = 0, .device = device, .milli = 1000, .mib = KIT_MEMORY_MIB, .by_share = true};
}

/* What was told before the crash is told again, after it. */
static void the_last_action_is_repeated(void) {
    struct play play;
    init(&play, "0 0 0 0 0", ACRE_POLICY_FCFS);
    static const enum acre_job_state states[] = {ACRE_JOB_SCHEDULED, ACRE_JOB_ALLOCATING,
                                                 ACRE_JOB_RUNNING, ACRE_JOB_RUNNING,
                                                 ACRE_JOB_PREEMPTED};
    for (uint32_t i = 0; i < ACRE_COUNT(states); i++) {
        struct acre_job job = job_of(&play, i + 1, states[i]);
        struct acre_part part = part_on(i);
        struct acre_error err = {0};
        job.canceling = i == 3;
        acre_sched_restore(play.sched, &job, &part, 1, 1000, &err);
        CHECK_STR(err.text, "");
    }
    CHECK_U64(play.event_count, 0);
    CHECK_U64(play.told_count, 0);
    CHECK_U64(acre_sched_next_ms(play.sched), 0);
    acre_sched_pass(play.sched, 1000, 0);
    static const struct told expect[] = {{ACRE_ACTION_START, 1, 3},
                                         {ACRE_ACTION_START, 2, 3}, /* may never have been asked */
                                         {ACRE_ACTION_TERMINATE, 4, 3},
                                         {ACRE_ACTION_TERMINATE, 5, 3}};
    REQUIRE_EQ(play.told_count, (int64_t)ACRE_COUNT(expect));
    for (uint32_t i = 0; i < ACRE_COUNT(expect); i++) {
        CHECK_EQ(play.told[i].kind, expect[i].kind);
        CHECK_U64(play.told[i].job, expect[i].job);
        CHECK_U64(play.told[i].attempt, expect[i].attempt);
    }
    acre_sched_pass(play.sched, 1001, 0);
    CHECK_U64(play.told_count, ACRE_COUNT(expect)); /* once */
    finish(&play);
}

static const struct {
    const char *what;
    uint64_t id;
    enum acre_job_state state;
    uint32_t parts, attempt, priority, device;
    int code;
    const char *says;
} refused[] = {
    {"ended", 5, ACRE_JOB_COMPLETED, 0, 0, 2, 0, ACRE_EINVALID, "state: job 5"},
    {"not larger than the last id", 1, ACRE_JOB_QUEUED, 0, 0, 2, 0, ACRE_EINVALID, "id: 1 is out"},
    {"a priority out of range", 5, ACRE_JOB_QUEUED, 0, 0, 9, 0, ACRE_EINVALID,
     "job 5: priority: 9 is out of range; accepted: 1 to 4"},
    {"running without parts", 5, ACRE_JOB_RUNNING, 0, 3, 2, 0, ACRE_EINVALID,
     "job 5 is running but has 0 parts and 3 attempts"},
    {"queued with parts", 5, ACRE_JOB_QUEUED, 1, 0, 2, 0, ACRE_EINVALID,
     "job 5 is queued but has 1 parts and 0 attempts"},
    {"running without an attempt", 5, ACRE_JOB_RUNNING, 1, 0, 2, 0, ACRE_EINVALID, "0 attempts"},
    {"on a device that is taken", 5, ACRE_JOB_RUNNING, 1, 3, 2, 0, ACRE_ECONFLICT, "job 5"},
    {"on a device that is not there", 5, ACRE_JOB_RUNNING, 1, 3, 2, 9, ACRE_ENOTFOUND, "job 5"},
};

static void what_cannot_be_put_back_is_refused(void) {
    struct play play;
    init(&play, "0 0", ACRE_POLICY_FCFS);
    struct acre_job first = job_of(&play, 1, ACRE_JOB_RUNNING);
    struct acre_part part = part_on(0);
    REQUIRE_EQ(acre_sched_restore(play.sched, &first, &part, 1, 1000, NULL), 0);
    for (size_t i = 0; i < ACRE_COUNT(refused); i++) {
        acre_test_context("%s", refused[i].what);
        struct acre_job job = job_of(&play, refused[i].id, refused[i].state);
        struct acre_error err = {0};
        job.attempt = refused[i].attempt;
        job.spec.priority = (enum acre_job_priority)refused[i].priority;
        part = part_on(refused[i].device);
        CHECK_EQ(acre_sched_restore(play.sched, &job, &part, refused[i].parts, 1000, &err),
                 refused[i].code);
        CHECK_HAS(err.text, refused[i].says);
    }
    struct acre_job bad = job_of(&play, 6, ACRE_JOB_QUEUED);
    bad.spec.request.replicas = 0;
    CHECK_EQ(acre_sched_restore(play.sched, &bad, NULL, 0, 1000, NULL), ACRE_EINVALID);
    /* What does not fit any more waits. */
    struct acre_job large = job_of(&play, 7, ACRE_JOB_QUEUED);
    large.spec.request = kit_whole(5);
    CHECK_EQ(acre_sched_restore(play.sched, &large, NULL, 0, 1000, NULL), 0);
    finish(&play);
}

/* A dependency that failed while nobody looked cancels as soon as somebody does. */
static void a_restored_dependency_that_failed_cancels(void) {
    struct play play;
    init(&play, "0", ACRE_POLICY_FCFS);
    struct acre_dependency failed = {
        .job = 1, .kind = ACRE_DEPENDENCY_AFTER_OK, .state = ACRE_JOB_FAILED};
    struct acre_job job = job_of(&play, 2, ACRE_JOB_QUEUED);
    job.spec.dependencies = &failed;
    job.spec.dependency_count = 1;
    REQUIRE_EQ(acre_sched_restore(play.sched, &job, NULL, 0, 1000, NULL), 0);
    acre_sched_pass(play.sched, 1000, 0);
    REQUIRE(acre_sched_find(play.sched, 2, &job));
    CHECK_STR(acre_job_state_name(job.state), "canceled");
    finish(&play);
}

static void jobs_of_a_reservation_wait_for_it(void) {
    struct play play;
    init(&play, "0 0", ACRE_POLICY_FCFS);
    uint32_t device = 1;
    uint64_t id = 0;
    struct acre_reservation_spec window = {.user = play.user,
                                           .devices = &device,
                                           .device_count = 1,
                                           .milli = 1000,
                                           .start_ms = 5000,
                                           .end_ms = 9000};
    REQUIRE_EQ(acre_ledger_reserve(play.ledger, &window, 1000, &id, NULL), 0);
    struct acre_job_spec spec = spec_of(&play, 1, kit_whole(1));
    spec.request.reservation = 77;
    CHECK_EQ(acre_sched_submit(play.sched, &spec, 1000, NULL), ACRE_EINVALID);
    spec.request.reservation = id;
    spec.user = kit_name(play.ledger, "eve");
    CHECK_EQ(acre_sched_submit(play.sched, &spec, 1000, NULL), ACRE_EDENIED);
    spec.user = play.user;
    REQUIRE_EQ(acre_sched_submit(play.sched, &spec, 1000, NULL), 0);
    spec.id = 2; /* behind it in order, but not in its way */
    spec.request.reservation = 0;
    REQUIRE_EQ(acre_sched_submit(play.sched, &spec, 1000, NULL), 0);
    CHECK_U64(acre_sched_pass(play.sched, 1000, 0), 1);
    acre_ledger_tick(play.ledger, 5000);
    acre_sched_ledger_changed(play.sched);
    CHECK_U64(acre_sched_pass(play.sched, 5000, 0), 1);
    struct acre_job job;
    char text[KIT_TEXT_MAX];
    REQUIRE(acre_sched_find(play.sched, 1, &job));
    CHECK_STR(kit_where(play.ledger, job.allocation, text, sizeof(text)), "a/1");
    REQUIRE_EQ(acre_ledger_cancel_reservation(play.ledger, id, 6000, NULL), 0);
    play.told_count = 0;
    acre_sched_ledger_changed(play.sched);
    acre_sched_pass(play.sched, 6000, 0);
    acre_sched_pass(play.sched, 6000, 0);
    REQUIRE_EQ(play.told_count, 1); /* its place is gone: it must end */
    CHECK_EQ(play.told[0].kind, ACRE_ACTION_TERMINATE);
    CHECK_U64(play.told[0].job, 1);
    struct acre_job_exit exit = {.kind = ACRE_EXIT_CODE};
    acre_sched_exited(play.sched, 1, job.attempt, &exit, 6000);
    spec.id = 3;
    spec.request.reservation = id;
    CHECK_EQ(acre_sched_submit(play.sched, &spec, 6000, NULL), ACRE_EINVALID);
    finish(&play);
}

/* Hundreds of requests of one account, in every policy: all are found again and all run. */
static void many_requests_are_all_served(void) {
    for (int kind = 0; kind < ACRE_POLICY_COUNT; kind++) {
        struct play play;
        init(&play, "0 0 0 0|0 0 0 0", (enum acre_policy_kind)kind);
        enum { COUNT = 300 };
        for (uint64_t id = 1; id <= COUNT; id++) {
            struct acre_job_spec spec = spec_of(&play, id, kit_both(100, 1000 + id % 299));
            spec.request.cpu_milli = id;
            spec.limit_ms = 1000 * id;
            REQUIRE_EQ(acre_sched_submit(play.sched, &spec, 1000 + id, NULL), 0);
        }
        uint64_t now_ms = 10000;
        uint32_t done = 0;
        for (uint32_t round = 0; done < COUNT && round < COUNT; round++) {
            acre_sched_pass(play.sched, now_ms, 0);
            play.told_count = 0;
            uint64_t cursor = 0;
            uint64_t running[128];
            uint32_t count = 0;
            struct acre_job job;
            while (acre_sched_walk(play.sched, &cursor, &job) && acre_job_state_holds(job.state)) {
                running[count++] = job.spec.id;
            }
            for (uint32_t i = 0; i < count; i += 2) {
                struct acre_job_exit exit = {.kind = ACRE_EXIT_CODE};
                acre_sched_exited(play.sched, running[i], 1, &exit, now_ms);
                acre_sched_drop(play.sched, running[i]);
                play.told_count = 0;
                done++;
            }
            now_ms += 1000;
        }
        CHECK_U64(done, COUNT);
        finish(&play);
    }
}

static void names_are_those_of_the_tables(void) {
    enum acre_job_state state;
    CHECK(acre_job_state_parse(acre_str_from("preempted"), &state));
    CHECK_EQ(state, ACRE_JOB_PREEMPTED);
    CHECK(!acre_job_state_parse(acre_str_from("asleep"), &state));
    CHECK_STR(acre_dependency_name(ACRE_DEPENDENCY_AFTER_OK), "after-ok");
    CHECK_STR(acre_exit_kind_name(ACRE_EXIT_OUT_OF_MEMORY), "out of memory");
    CHECK_STR(acre_sched_event_name(ACRE_SCHED_RECLAIMED), "job reclaimed");
    CHECK(acre_job_state_is_live(ACRE_JOB_PREEMPTED) && !acre_job_state_is_live(ACRE_JOB_FAILED));
    acre_sched_destroy(NULL);
}

/* A run that was told to start and has not is expected to take its time from when it was placed:
 * the head begins then, and who ends before may pass (POL-6). */
static void a_run_put_back_before_its_start_has_its_time_ahead(void) {
    static const struct {
        enum acre_job_state state;
        uint64_t limit_ms; /* of the one that may pass */
        bool passes;
    } rows[] = {{ACRE_JOB_ALLOCATING, 90000, true},
                {ACRE_JOB_ALLOCATING, 110000, false},
                {ACRE_JOB_RUNNING, 90000, true},
                {ACRE_JOB_RUNNING, 110000, false}};
    enum { PLACED_MS = 10000000 };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct play play;
        init(&play, "0 0", ACRE_POLICY_FCFS);
        struct acre_job job = job_of(&play, 1, rows[i].state);
        struct acre_part part = part_on(0);
        job.spec.limit_ms = 100000;
        job.scheduled_ms = PLACED_MS;
        job.started_ms = rows[i].state == ACRE_JOB_RUNNING ? PLACED_MS : 0;
        REQUIRE_EQ(acre_sched_restore(play.sched, &job, &part, 1, PLACED_MS, NULL), 0);
        struct acre_job_spec head = spec_of(&play, 2, kit_whole(2));
        struct acre_job_spec passing = spec_of(&play, 3, kit_whole(1));
        passing.limit_ms = rows[i].limit_ms;
        REQUIRE_EQ(acre_sched_submit(play.sched, &head, PLACED_MS, NULL), 0);
        REQUIRE_EQ(acre_sched_submit(play.sched, &passing, PLACED_MS, NULL), 0);
        CHECK_U64(acre_sched_pass(play.sched, PLACED_MS, 0), rows[i].passes);
        finish(&play);
    }
}

/* JOB-4: an array counts its members, and takes no more than there may be. */
static void an_array_takes_as_many_as_there_may_be(void) {
    struct play play;
    init(&play, "0", ACRE_POLICY_FCFS);
    CHECK_EQ(acre_sched_members(play.sched, 1), 0);
    for (uint32_t i = 0; i <= ACRE_JOB_ARRAY_MAX; i++) {
        struct acre_job_spec spec = spec_of(&play, i + 1, kit_whole(1));
        struct acre_error err = {0};
        spec.array = 1;
        spec.array_index = i;
        int r = acre_sched_submit(play.sched, &spec, 1000, &err);
        if (i < ACRE_JOB_ARRAY_MAX) {
            REQUIRE_EQ(r, 0);
        } else {
            CHECK_EQ(r, ACRE_EINVALID);
            CHECK_HAS(err.text, "array: array 1 has 100000 members; accepted: at most 100000");
        }
    }
    CHECK_EQ(acre_sched_members(play.sched, 1), ACRE_JOB_ARRAY_MAX);
    CHECK_EQ(acre_sched_members(play.sched, 2), 0);
    finish(&play);
}

/* POL-7: a quota counts the least that a request takes anywhere. Half the memory of a
 * device is half of it; once there is one of twice the memory it is a quarter. */
static void new_hardware_makes_a_request_smaller(void) {
    struct acre_policy policy = *acre_policy_default();
    static const char text[] = "{\"quotas\": [{\"who\": \"user:eve\", \"gpus\": 0.3}]}";
    REQUIRE_EQ(acre_policy_load("test", acre_str_from(text), acre_policy_default(), &policy, NULL),
               0);
    struct play play;
    init(&play, "0", ACRE_POLICY_FCFS);
    acre_sched_set_policy(play.sched, &policy, 1000);
    struct acre_job_spec known = spec_of(&play, 1, kit_memory(KIT_MEMORY_MIB / 2));
    struct acre_job_spec limited = spec_of(&play, 2, kit_memory(KIT_MEMORY_MIB / 2));
    limited.user = kit_name(play.ledger, "eve");
    REQUIRE_EQ(acre_sched_submit(play.sched, &known, 1000, NULL), 0);
    CHECK_EQ(acre_sched_submit(play.sched, &limited, 1000, NULL), ACRE_EDENIED);
    kit_add(play.ledger, "large", 1, UINT64_C(2) * KIT_MEMORY_MIB);
    acre_sched_ledger_changed(play.sched);
    CHECK_EQ(acre_sched_submit(play.sched, &limited, 2000, NULL), 0);
    finish(&play);
}

static const struct acre_test tests[] = {
    {"the_last_action_is_repeated", the_last_action_is_repeated, 0},
    {"what_cannot_be_put_back_is_refused", what_cannot_be_put_back_is_refused, 0},
    {"a_restored_dependency_that_failed_cancels", a_restored_dependency_that_failed_cancels, 0},
    {"jobs_of_a_reservation_wait_for_it", jobs_of_a_reservation_wait_for_it, 0},
    {"many_requests_are_all_served", many_requests_are_all_served, 0},
    {"names_are_those_of_the_tables", names_are_those_of_the_tables, 0},
    {"a_run_put_back_before_its_start_has_its_time_ahead",
     a_run_put_back_before_its_start_has_its_time_ahead, 0},
    {"an_array_takes_as_many_as_there_may_be", an_array_takes_as_many_as_there_may_be, 0},
    {"new_hardware_makes_a_request_smaller", new_hardware_makes_a_request_smaller, 0},
};

ACRE_TEST_MAIN(tests)
