/* The desk: commit before act, answers and events only of what is durable, faults survived (STO-1,
 * JOB-2). The store is in memory and fails when it is told to; runs are pretended. */
#include "desk/commands.h"
#include "support/desk_kit.h"

#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_completed(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_COMPLETED, 0) >= 1;
}

static bool all_completed(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_COMPLETED, 0) >= 20;
}

static bool is_idle(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_COMPLETED, 0) ==
           desk_kit_told(kit, ACRE_SCHED_SUBMITTED, 0);
}

static bool is_running(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_STARTED, 0) >= 1;
}

static bool is_broken(struct desk_kit *kit) {
    return kit->troubles > 0;
}

static bool is_well(struct desk_kit *kit) {
    return kit->recoveries > 0;
}

static void a_job_goes_its_way_and_every_step_is_stored(void) {
    struct desk_kit kit = {0};
    uint64_t id = 0;
    desk_kit_start(&kit);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 1, &id, NULL), 0);
    CHECK_U64(id, 1);
    CHECK_U64(kit.event_count, 0); /* nothing is told before the commit */
    CHECK_STR(desk_kit_stored(&kit, id), "-");
    desk_kit_until(&kit, has_completed);
    static const enum acre_sched_event_kind expected[] = {
        ACRE_SCHED_SUBMITTED, ACRE_SCHED_SCHEDULED, ACRE_SCHED_DISPATCHED, ACRE_SCHED_STARTED,
        ACRE_SCHED_COMPLETED};
    REQUIRE(kit.event_count == ACRE_COUNT(expected));
    for (uint32_t i = 0; i < kit.event_count; i++) {
        CHECK_EQ(kit.events[i].event.kind, expected[i]);
    }
    CHECK_STR(desk_kit_stored(&kit, id), "completed");
    struct acre_job job;
    CHECK(!acre_sched_find(acre_desk_sched(kit.desk), id, &job)); /* dropped: the store has it */
    CHECK_U64(fake_world_began(kit.world), 1);
    desk_kit_finish(&kit);
}

static void many_jobs_run_once_each(void) {
    struct desk_kit kit = {.run_ms = 2};
    uint64_t id = 0;
    desk_kit_start(&kit);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 20, &id, NULL), 0);
    desk_kit_until(&kit, all_completed);
    CHECK_U64(fake_world_began(kit.world), 20);
    struct acre_error err = {0};
    CHECK_EQ(acre_ledger_check(acre_desk_ledger(kit.desk), &err), 0);
    CHECK_EQ(acre_sched_check(acre_desk_sched(kit.desk), &err), 0);
    desk_kit_finish(&kit);
}

static uint64_t turns_then;
static void note_turns(void *context, struct acre_run run, const struct acre_run_device *devices,
                       uint32_t count) {
    struct desk_kit *kit = context;
    struct acre_desk_timings timings;
    (void)run;
    (void)devices;
    (void)count;
    acre_desk_timings(kit->desk, &timings);
    turns_then = timings.turns;
}

static bool three_run(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_STARTED, 0) >= 3;
}

static bool four_run(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_STARTED, 0) >= 4;
}

/* A turn looks at all that waits, however many different requests find no room: one that does is
 * not left for later turns. */
static void one_turn_looks_at_the_whole_queue(void) {
    enum { HOUR_MS = 3600 * 1000, TOO_LARGE = 40 };
    struct desk_kit kit = {.run_ms = HOUR_MS, .begin = note_turns};
    struct acre_submission submission = {
        .user = "ada",
        .project = "lab",
        .spec = {.priority = ACRE_PRIORITY_NORMAL,
                 .limit_ms = 2 * HOUR_MS,
                 .request = {.replicas = 1, .gpus = 1, .milli = 1000}},
        .count = 1};
    struct acre_desk_timings before;
    struct acre_str text = ACRE_STR("{\"command\":\"true\"}");
    uint64_t id = 0;
    kit.watcher = &kit;
    desk_kit_start(&kit);
    for (uint32_t i = 0; i < 3; i++) {
        REQUIRE_EQ(acre_desk_submit(kit.desk, &submission, text, &id, NULL), 0);
    }
    desk_kit_until(&kit, three_run);
    desk_kit_turns(&kit, 20);
    acre_desk_timings(kit.desk, &before);
    submission.spec.request.gpus = 2;
    for (uint32_t i = 1; i <= TOO_LARGE; i++) {
        submission.spec.request.cpu_milli = i;
        REQUIRE_EQ(acre_desk_submit(kit.desk, &submission, text, &id, NULL), 0);
    }
    submission.spec.request.gpus = 1;
    submission.spec.limit_ms = 60000; /* over before the first of them could start */
    REQUIRE_EQ(acre_desk_submit(kit.desk, &submission, text, &id, NULL), 0);
    desk_kit_until(&kit, four_run);
    CHECK(turns_then - before.turns < TOO_LARGE);
    desk_kit_finish(&kit);
}

static bool four_submitted(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_SUBMITTED, 0) >= 4;
}

/* What one turn submits may be more than the memory of specs holds: it is stored all the same. */
static void every_member_of_a_large_array_has_its_spec(void) {
    struct desk_kit kit = {0};
    struct acre_buf text;
    struct acre_error err = {0};
    uint64_t first = 0;
    desk_kit_start(&kit);
    acre_desk_pause(kit.desk, true);
    acre_buf_init(&text, ACRE_RECORD_SPEC_MAX);
    acre_buf_puts(&text, "{\"script\":\"");
    for (int i = 0; i < 1500000; i++) {
        acre_buf_putc(&text, 'x');
    }
    acre_buf_puts(&text, "\"}");
    struct acre_submission submission = {
        .user = "ada",
        .project = "lab",
        .spec = {.array = UINT64_MAX,
                 .priority = ACRE_PRIORITY_NORMAL,
                 .request = {.replicas = 1, .gpus = 1, .milli = 1000}},
        .count = 4};
    struct acre_str spec_text = {text.data, text.length};
    REQUIRE_EQ(acre_desk_submit(kit.desk, &submission, spec_text, &first, &err), 0);
    desk_kit_until(&kit, four_submitted);
    for (uint64_t id = first; id < first + 4; id++) {
        struct acre_str stored = {0};
        acre_test_context("job %u", (unsigned)id);
        CHECK_EQ(acre_desk_spec(kit.desk, id, &stored, &err), 0);
        CHECK(acre_str_equal(stored, spec_text));
    }
    acre_buf_finish(&text);
    desk_kit_finish(&kit);
}

/* An array is taken whole or not at all: a quota in its way leaves nothing behind. */
static void an_array_over_quota_changes_nothing(void) {
    struct desk_kit kit = {0};
    uint64_t id = 0;
    struct acre_error err = {0};
    desk_kit_start(&kit);
    struct acre_policy *policy = acre_calloc(1, sizeof(*policy));
    *policy = *acre_policy_default();
    policy->quota_count = 1;
    snprintf(policy->quotas[0].who, sizeof(policy->quotas[0].who), "user:ada");
    policy->quotas[0].queued = 5;
    acre_desk_set_policy(kit.desk, policy, "policy");
    free(policy);
    acre_desk_pause(kit.desk, true);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 1, &id, &err), 0); /* stands before them */
    CHECK_EQ(desk_kit_submit(&kit, 1, 20, &id, &err), ACRE_EDENIED);
    struct acre_sched_counts counts;
    acre_sched_counts(acre_desk_sched(kit.desk), &counts);
    CHECK_U64(counts.jobs[ACRE_JOB_QUEUED], 1);
    desk_kit_turns(&kit, 20);
    CHECK_U64(kit.event_count, 1);
    acre_desk_pause(kit.desk, false);
    desk_kit_until(&kit, has_completed);
    CHECK_STR(desk_kit_stored(&kit, id), "completed");
    CHECK_EQ(acre_sched_check(acre_desk_sched(kit.desk), &err), 0);
    desk_kit_finish(&kit);
}

static bool three_submitted(struct desk_kit *kit) {
    return kit->event_count >= 3;
}

/* A user's limits refuse an array whole, hold after a restart, and are not for operators. */
static void limits_of_a_user_hold_over_a_restart(void) {
    struct desk_kit kit = {.on_disk = true, .limited = true};
    uint64_t id = 0;
    struct acre_error err = {0};
    desk_kit_start(&kit);
    struct acre_policy *policy = acre_calloc(1, sizeof(*policy));
    *policy = *acre_policy_default();
    policy->limits.queued_jobs = 4;
    acre_desk_set_policy(kit.desk, policy, "policy");
    free(policy);
    acre_desk_pause(kit.desk, true);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 3, &id, &err), 0);
    for (int restarted = 0; restarted < 2; restarted++) {
        acre_test_context("restarted %d times", restarted);
        CHECK_EQ(desk_kit_submit(&kit, 1, 2, &id, &err), ACRE_ELIMIT);
        CHECK_HAS(err.text,
                  "max_queued_jobs: you have 3 jobs waiting, and this submission adds 2; a user "
                  "may have 4. Wait until some of them have started, or cancel some");
        struct acre_sched_counts counts;
        acre_sched_counts(acre_desk_sched(kit.desk), &counts);
        CHECK_U64(counts.jobs[ACRE_JOB_QUEUED], 3);
        CHECK_EQ(acre_sched_check(acre_desk_sched(kit.desk), &err), 0);
        if (restarted == 0) {
            desk_kit_until(&kit, three_submitted);
            desk_kit_stop(&kit);
            desk_kit_start(&kit);
        }
    }
    kit.limited = false;
    CHECK_EQ(desk_kit_submit(&kit, 1, 2, &id, &err), 0);
    desk_kit_finish(&kit);
}

/* A failed commit takes back what was not durable, keeps what was, and the desk goes on when the
 * store does: the run that was started before is adopted, not started again. */
static void a_failed_commit_takes_back_and_goes_on(void) {
    struct desk_kit kit = {.url = "memory:fail=6", .run_ms = 60};
    uint64_t first = 0, second = 0;
    struct acre_error err = {0};
    desk_kit_start(&kit);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 1, &first, NULL), 0);
    desk_kit_until(&kit, is_running);
    while (kit.troubles == 0 && second < 10) { /* until one of them meets the sixth batch */
        REQUIRE_EQ(desk_kit_submit(&kit, 2, 1, &second, &err), 0);
        desk_kit_turns(&kit, 3);
    }
    desk_kit_until(&kit, is_broken);
    CHECK_STR(desk_kit_stored(&kit, second), "-");
    CHECK_EQ(desk_kit_told(&kit, ACRE_SCHED_SUBMITTED, second), 0);
    if (kit.recoveries == 0) {
        CHECK_EQ(acre_desk_writable(kit.desk, &err), ACRE_EUNAVAILABLE);
        CHECK_HAS(err.text, "cannot record changes now, so none are made (jobs keep running): "
                            "store: failure asked for by memory:fail=");
        CHECK_EQ(acre_desk_readable(kit.desk, &err), 0);
    }
    desk_kit_until(&kit, is_well);
    CHECK_EQ(acre_desk_writable(kit.desk, &err), 0);
    struct acre_job job;
    CHECK(!acre_sched_find(acre_desk_sched(kit.desk), second, &job));
    desk_kit_until(&kit, is_idle);
    CHECK_STR(desk_kit_stored(&kit, first), "completed");
    CHECK_U64(fake_world_began(kit.world), /* each job once */
              desk_kit_told(&kit, ACRE_SCHED_SUBMITTED, 0) + 0U);
    uint64_t third = 0;
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 1, &third, &err), 0);
    CHECK(third >= second); /* an id that was never told may come again, a told one never */
    CHECK_EQ(acre_ledger_check(acre_desk_ledger(kit.desk), &err), 0);
    desk_kit_finish(&kit);
}

/* Restart: queue, running jobs, policy, pause, drains and reservations come back; a run is adopted
 * and its end arrives. */
static void everything_comes_back_after_a_restart(void) {
    struct desk_kit kit = {.on_disk = true};
    struct acre_error err = {0};
    uint64_t running = 0, waiting = 0, reservation = 0;
    kit.run_ms = 1500;
    desk_kit_start(&kit);
    REQUIRE_EQ(desk_kit_submit(&kit, 2, 1, &running, NULL), 0);
    desk_kit_until(&kit, is_running);
    acre_desk_pause(kit.desk, true);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 1, &waiting, NULL), 0);
    struct acre_policy *policy = acre_calloc(1, sizeof(*policy));
    *policy = *acre_policy_default();
    policy->kind = ACRE_POLICY_SJF;
    acre_desk_set_policy(kit.desk, policy, "policy");
    free(policy);
    const uint32_t devices[] = {3, 2};
    struct acre_reservation_spec spec = {.devices = devices,
                                         .device_count = 2,
                                         .milli = 1000,
                                         .start_ms = acre_desk_now(kit.desk) + 60000,
                                         .end_ms = acre_desk_now(kit.desk) + 120000};
    uint64_t now_ms = acre_desk_now(kit.desk);
    REQUIRE_EQ(acre_desk_reserve(kit.desk, "ada", &spec, now_ms, &reservation, &err), 0);
    acre_desk_drain_node(kit.desk, 1, "fan");
    desk_kit_turns(&kit, 10);
    desk_kit_stop(&kit);

    kit.event_count = 0;
    desk_kit_start(&kit);
    struct acre_job job;
    REQUIRE(acre_sched_find(acre_desk_sched(kit.desk), running, &job));
    CHECK_EQ(job.state, ACRE_JOB_RUNNING);
    REQUIRE(acre_sched_find(acre_desk_sched(kit.desk), waiting, &job));
    CHECK_EQ(job.state, ACRE_JOB_QUEUED);
    CHECK(acre_desk_is_paused(kit.desk));
    CHECK_EQ(acre_desk_policy(kit.desk)->kind, ACRE_POLICY_SJF);
    struct acre_ledger_node node;
    acre_ledger_node_info(acre_desk_ledger(kit.desk), 1, &node);
    CHECK(node.drained);
    CHECK_STR(acre_desk_node_reason(kit.desk, 1), "fan");
    struct acre_reservation back;
    REQUIRE(acre_ledger_find_reservation(acre_desk_ledger(kit.desk), reservation, &back));
    CHECK_EQ(back.state, ACRE_RESERVATION_PENDING);
    REQUIRE(back.device_count == 2);
    CHECK_U64(back.devices[0] + back.devices[1], devices[0] + devices[1]);
    desk_kit_until(&kit, has_completed);
    CHECK_U64(desk_kit_told(&kit, ACRE_SCHED_COMPLETED, running), 1);
    CHECK_U64(fake_world_began(kit.world), 1);
    acre_desk_pause(kit.desk, false);
    kit.event_count = 0;
    desk_kit_until(&kit, has_completed);
    CHECK_STR(desk_kit_stored(&kit, waiting), "completed");
    desk_kit_finish(&kit);
}

static bool all_submitted(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_SUBMITTED, 0) >= 2001;
}

/* Rows are read in pages. */
static void a_long_queue_comes_back_whole(void) {
    struct desk_kit kit = {.on_disk = true};
    struct acre_sched_counts counts;
    uint64_t id = 0;
    desk_kit_start(&kit);
    acre_desk_pause(kit.desk, true);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 2001, &id, NULL), 0);
    desk_kit_until(&kit, all_submitted);
    desk_kit_stop(&kit);
    desk_kit_start(&kit);
    acre_sched_counts(acre_desk_sched(kit.desk), &counts);
    CHECK_U64(counts.jobs[ACRE_JOB_QUEUED], 2001);
    desk_kit_finish(&kit);
}

/* Without another wish, a second between tries: a full disk is not made busier. */
static void a_broken_store_is_tried_again_after_a_second(void) {
    struct desk_kit kit = {.url = "memory:fail=1", .slow_probe = true};
    struct acre_clock clock = acre_clock_real();
    uint64_t id = 0;
    desk_kit_start(&kit);
    uint64_t before_ns = acre_clock_monotonic_ns(&clock);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 1, &id, NULL), 0);
    desk_kit_until(&kit, is_broken);
    CHECK_HAS(kit.trouble, "cannot record changes: ");
    desk_kit_until(&kit, is_well);
    CHECK((acre_clock_monotonic_ns(&clock) - before_ns) / 1000000 >= 990); /* timers round */
    CHECK_STR(kit.trouble, "recording works again: ");
    desk_kit_finish(&kit);
}

/* The daemon was away when the run ended: its exit code arrives all the same. */
static void an_end_nobody_saw_is_told_after_the_restart(void) {
    struct desk_kit kit = {.on_disk = true};
    uint64_t id = 0;
    kit.run_ms = 1000; /* long enough for the daemon to be away by then */
    desk_kit_start(&kit);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 1, &id, NULL), 0);
    desk_kit_until(&kit, is_running);
    desk_kit_stop(&kit);
    desk_kit_turns(&kit, 1100);
    kit.event_count = 0;
    desk_kit_start(&kit);
    desk_kit_until(&kit, has_completed);
    CHECK_STR(desk_kit_stored(&kit, id), "completed");
    CHECK_U64(fake_world_began(kit.world), 1);
    desk_kit_finish(&kit);
}

/* Time never goes back for the scheduler, whatever the clock does. */
static void a_clock_that_goes_back_changes_nothing(void) {
    struct desk_kit kit = {.run_ms = 30};
    uint64_t id = 0;
    struct acre_error err = {0};
    desk_kit_start(&kit);
    uint64_t before_ms = acre_desk_now(kit.desk);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 1, &id, NULL), 0);
    desk_kit_until(&kit, is_running);
    kit.clock.virtual_ms -= 3600000;
    CHECK_U64(acre_desk_now(kit.desk), before_ms);
    acre_clock_advance(&kit.clock, 5000);
    CHECK_U64(acre_desk_now(kit.desk), before_ms + 5000); /* it goes on from where it was */
    desk_kit_until(&kit, has_completed);
    CHECK_EQ(acre_sched_check(acre_desk_sched(kit.desk), &err), 0);
    acre_clock_advance(&kit.clock, 7200000);
    CHECK_U64(acre_desk_now(kit.desk), kit.clock.virtual_ms); /* it has caught up */
    desk_kit_finish(&kit);
}

static uint64_t counted;

/* Rows of the first job by that actor, with that action and that detail. */
static bool count_audit(void *context, const struct acre_store_audit *row) {
    const char *const *wanted = context;
    counted += strcmp(row->actor, wanted[0]) == 0 && strcmp(row->action, wanted[1]) == 0 &&
               strcmp(row->detail, wanted[2]) == 0 && strcmp(row->target, "job:1") == 0;
    return true;
}

/* SEC-3: who submitted, and what the scheduler decided. */
static void every_step_is_in_the_audit_trail(void) {
    static const char *const rows[][3] = {{"user:ada", "job submitted", ""},
                                          {"acre", "job scheduled", "gpu-a sim:gpu-a/0"},
                                          {"acre", "job started", ""},
                                          {"acre", "job completed", "attempt 1: exited 0"}};
    struct desk_kit kit = {0};
    uint64_t id = 0;
    desk_kit_start(&kit);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 1, &id, NULL), 0);
    desk_kit_until(&kit, has_completed);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_audit_filter filter = {.limit = 100};
        counted = 0;
        REQUIRE_EQ(acre_store_audit(acre_desk_store(kit.desk), &filter, count_audit,
                                    (void *)rows[i], NULL),
                   0);
        acre_test_context("%s", rows[i][1]);
        CHECK_U64(counted, 1);
    }
    desk_kit_finish(&kit);
}

static bool has_state(void *context, const struct acre_store_reservation *row) {
    const char **state = context;
    *state = strcmp(row->state, *state) == 0 ? NULL : *state;
    return *state != NULL;
}

static bool is_reserved_as(struct desk_kit *kit, const char *state) {
    REQUIRE_EQ(acre_store_reservations(acre_desk_store(kit->desk), has_state, &state, NULL), 0);
    return state == NULL;
}
static bool is_pending(struct desk_kit *kit) {
    return is_reserved_as(kit, "pending");
}
static bool is_active(struct desk_kit *kit) {
    return is_reserved_as(kit, "active");
}
static bool is_over(struct desk_kit *kit) {
    return is_reserved_as(kit, "completed");
}

/* ALC-8: a reservation begins and ends by itself, and each change is recorded. */
static void reservations_begin_and_end_by_the_clock(void) {
    struct desk_kit kit = {0};
    uint64_t id = 0;
    const uint32_t device = 2;
    desk_kit_start(&kit);
    uint64_t now_ms = acre_desk_now(kit.desk);
    struct acre_reservation_spec spec = {.devices = &device,
                                         .device_count = 1,
                                         .milli = 1000,
                                         .start_ms = now_ms + 60000,
                                         .end_ms = now_ms + 120000};
    REQUIRE_EQ(acre_desk_reserve(kit.desk, "ada", &spec, now_ms, &id, NULL), 0);
    static bool (*const states[])(struct desk_kit *) = {is_pending, is_active, is_over};
    for (size_t i = 0; i < ACRE_COUNT(states); i++) {
        acre_test_context("state %u", (unsigned)i);
        acre_desk_set_foreign(kit.desk, 0, 0); /* wakes the scheduler */
        desk_kit_until(&kit, states[i]);
        acre_clock_advance(&kit.clock, 60000);
    }
    desk_kit_finish(&kit);
}

/* A job whose device is gone after the restart waits again; nothing is lost. */
static void a_job_whose_device_is_gone_waits_again(void) {
    struct desk_kit kit = {.on_disk = true};
    uint64_t id = 0;
    kit.run_ms = 100000;
    desk_kit_start(&kit);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 1, &id, NULL), 0);
    desk_kit_until(&kit, is_running);
    desk_kit_stop(&kit);
    kit.devices[0][0] =
        (struct acre_engine_device){.id = "new", .model = "H100", .memory_mib = 81920};
    kit.nodes[0] = (struct acre_engine_node){.name = "other",
                                             .cpu_milli = 1000,
                                             .ram_mib = 1024,
                                             .devices = kit.devices[0],
                                             .device_count = 1};
    kit.node_count = 1;
    kit.event_count = 0;
    desk_kit_start(&kit);
    desk_kit_until(&kit, is_running);
    CHECK_U64(desk_kit_told(&kit, ACRE_SCHED_REQUEUED, id), 1);
    CHECK_U64(kit.troubles, 1);
    CHECK_STR(kit.trouble, "a job lost its devices: node 'gpu-a' no longer exists");
    struct acre_job job;
    REQUIRE(acre_sched_find(acre_desk_sched(kit.desk), id, &job));
    CHECK_U64(job.attempt, 2);
    CHECK_U64(fake_world_running(kit.world), 1); /* the first run was reaped */
    desk_kit_finish(&kit);
}

/* Refused changes make no record, so nothing is committed, for as long as they go on. */
static void callers_of_refused_changes_are_forgotten(void) {
    struct desk_kit kit = {0};
    char origin[65];
    memset(origin, 'x', sizeof(origin) - 1);
    origin[sizeof(origin) - 1] = '\0';
    desk_kit_start(&kit);
    for (int turn = 0; turn < 40; turn++) { /* 100 MB in all: more than the memory of a turn */
        for (int i = 0; i < 20000; i++) {
            acre_desk_set_actor(kit.desk, origin, origin);
        }
        desk_kit_turns(&kit, 2);
    }
    desk_kit_finish(&kit);
}

static const struct acre_test tests[] = {
    {"callers_of_refused_changes_are_forgotten", callers_of_refused_changes_are_forgotten, 0},
    {"a_job_goes_its_way_and_every_step_is_stored", a_job_goes_its_way_and_every_step_is_stored, 0},
    {"many_jobs_run_once_each", many_jobs_run_once_each, 0},
    {"one_turn_looks_at_the_whole_queue", one_turn_looks_at_the_whole_queue, 0},
    {"every_member_of_a_large_array_has_its_spec", every_member_of_a_large_array_has_its_spec, 0},
    {"an_array_over_quota_changes_nothing", an_array_over_quota_changes_nothing, 0},
    {"limits_of_a_user_hold_over_a_restart", limits_of_a_user_hold_over_a_restart, 0},
    {"a_failed_commit_takes_back_and_goes_on", a_failed_commit_takes_back_and_goes_on, 0},
    {"everything_comes_back_after_a_restart", everything_comes_back_after_a_restart, 0},
    {"a_long_queue_comes_back_whole", a_long_queue_comes_back_whole, 0},
    {"a_broken_store_is_tried_again_after_a_second", a_broken_store_is_tried_again_after_a_second,
     0},
    {"an_end_nobody_saw_is_told_after_the_restart", an_end_nobody_saw_is_told_after_the_restart, 0},
    {"a_clock_that_goes_back_changes_nothing", a_clock_that_goes_back_changes_nothing, 0},
    {"every_step_is_in_the_audit_trail", every_step_is_in_the_audit_trail, 0},
    {"reservations_begin_and_end_by_the_clock", reservations_begin_and_end_by_the_clock, 0},
    {"a_job_whose_device_is_gone_waits_again", a_job_whose_device_is_gone_waits_again, 0},
};
ACRE_TEST_MAIN(tests)
