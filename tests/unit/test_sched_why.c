/* Why a job waits: one reason, its numbers, what would change it (POL-9); and usage (POL-1). */
#include "sched/why.h"
#include "support/sched_kit.h"

#include <stdio.h>
#include <stdlib.h>

#define MIN_MS  SCHED_KIT_MIN_MS
#define HOUR_MS SCHED_KIT_HOUR_MS

static struct acre_why why(struct sched_kit *kit, uint64_t job) {
    struct acre_why answer = {0};
    struct acre_error err = {0};
    int r = acre_sched_why(kit->sched, job, kit->now_ms, &answer, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    return answer;
}

static uint64_t submit(struct sched_kit *kit, const char *user, struct acre_request request,
                       uint64_t estimate_ms) {
    struct acre_job_spec spec = sched_kit_spec(kit, user, request);
    spec.estimate_ms = estimate_ms;
    uint64_t id = SCHED_KIT_SUBMIT(kit, &spec);
    sched_kit_settle(kit);
    return id;
}

#define CHECK_WHY(answer, expected, part, hint)                                                    \
    do {                                                                                           \
        CHECK_STR(acre_reason_name((answer).reason), (expected));                                  \
        CHECK_HAS((answer).text, (part));                                                          \
        CHECK_HAS((answer).advice, (hint));                                                        \
    } while (0)

static void busy_tells_from_fragmented_per_node(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0|0 0", "{}");
    uint64_t first = submit(&kit, "ada", kit_whole(1), 10 * MIN_MS);
    uint64_t second = submit(&kit, "ada", kit_whole(2), 30 * MIN_MS);
    CHECK_EQ(sched_kit_state(&kit, second), ACRE_JOB_RUNNING);
    uint64_t pair = submit(&kit, "bob", kit_whole(2), HOUR_MS);
    struct acre_why answer = why(&kit, pair);
    CHECK_WHY(answer, "busy",
              "it asks for 2 GPUs on one node; 1 of the 4 GPUs that fit is free, at most 1 on any "
              "one node (a)",
              "with --gpus 1");
    char part[64];
    snprintf(part, sizeof(part), "it fits when job %d ends, in 10 min by its estimate", (int)first);
    CHECK_HAS(answer.advice, part);
    CHECK_U64(answer.other, first);
    CHECK_U64(answer.asked, 2000);
    CHECK_U64(answer.available, 1000);
    CHECK_STR(answer.unit, "milli-GPU");
    CHECK_EQ(answer.position, 1);
    CHECK_EQ(answer.ahead, 0);
    sched_kit_finish(&kit);

    sched_kit_init(&kit, "0 1000|0 1000", "{}"); /* 1 + 1 are not 2 */
    pair = submit(&kit, "bob", kit_whole(2), HOUR_MS);
    answer = why(&kit, pair);
    CHECK_WHY(answer, "fragmented",
              "it asks for 2 GPUs on one node; 2 GPUs are free in total, but at most 1 on any one "
              "node (a)",
              "or now with --gpus 1");
    CHECK_U64(answer.asked, 2000);
    CHECK_U64(answer.available, 1000);
    sched_kit_finish(&kit);
}

/* CAP-3: two devices 60 % used never host 0.8. */
static void fragmented_is_told_per_device(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "600 600", "{}");
    uint64_t job = submit(&kit, "ada", kit_share(800), HOUR_MS);
    struct acre_why answer = why(&kit, job);
    CHECK_WHY(
        answer, "fragmented",
        "it asks for 0.8 of a GPU; 0.8 GPUs are free in total, but at most 0.4 on any one GPU (a)",
        "or now with --gpus 0.4");
    CHECK_U64(answer.asked, 800);
    CHECK_U64(answer.available, 400);
    sched_kit_finish(&kit);

    sched_kit_init(&kit, "700 800", "{}");
    job = submit(&kit, "ada", kit_share(800), HOUR_MS);
    CHECK_WHY(
        why(&kit, job), "busy",
        "it asks for 0.8 of a GPU; at most 0.3 is free on any of the GPUs that fit (a; 2 of them)",
        "");
    sched_kit_finish(&kit);

    sched_kit_init(&kit, "1000 1000", "{}");
    job = submit(&kit, "ada", kit_share(500), HOUR_MS);
    CHECK_WHY(why(&kit, job), "busy",
              "it asks for 0.5 of a GPU; all 2 GPUs that fit are in use or drained",
              "it fits when enough running jobs have ended");
    sched_kit_finish(&kit);
}

static void fragmented_is_told_for_gangs(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0 0|0 1000 1000", "{}");
    uint64_t job = submit(&kit, "ada", kit_gang(2, 2, 1000), HOUR_MS);
    struct acre_why answer = why(&kit, job);
    CHECK_WHY(answer, "fragmented",
              "it asks for 2 members, each with 2 GPUs on one node; 4 GPUs are free in total, but "
              "there is room for only 1 of its 2 members",
              "or now with --nodes 1");
    CHECK_STR(answer.unit, "members");
    sched_kit_finish(&kit);
}

static void nothing_is_said_of_an_end_nobody_estimated(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0", "{}");
    submit(&kit, "ada", kit_whole(1), 0);
    uint64_t job = submit(&kit, "bob", kit_whole(1), HOUR_MS);
    CHECK_WHY(why(&kit, job), "busy", "it asks for 1 GPU",
              "it fits when job 1 ends, which has no estimate");
    sched_kit_finish(&kit);
}

static void an_end_is_told_by_the_limit(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0", "{}");
    struct acre_job_spec spec = sched_kit_spec(&kit, "ada", kit_whole(1));
    spec.estimate_ms = MIN_MS;
    spec.limit_ms = 5 * MIN_MS;
    SCHED_KIT_SUBMIT(&kit, &spec);
    sched_kit_settle(&kit);
    uint64_t job = submit(&kit, "bob", kit_whole(1), HOUR_MS);
    CHECK_WHY(why(&kit, job), "busy", "it asks for 1 GPU",
              "it fits when job 1 ends, in 5 min by its time limit");
    sched_kit_finish(&kit);
}

static void cpu_beside_a_free_gpu_is_named(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0@4000", "{}");
    struct acre_request request = kit_whole(1);
    request.cpu_milli = 3000;
    submit(&kit, "ada", request, 5 * MIN_MS);
    uint64_t job = submit(&kit, "ada", request, HOUR_MS);
    CHECK_WHY(
        why(&kit, job), "busy",
        "no room now: GPUs are free, but a has only 1 CPU and 256 GiB free; it asks for 3 CPUs",
        "it fits when job 1 ends, in 5 min by its estimate");
    sched_kit_finish(&kit);
}

static void requests_are_described(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "1000 1000|1000 1000", "{}");
    struct acre_request request = kit_memory(20480);
    uint64_t job = submit(&kit, "ada", request, 0);
    CHECK_HAS(why(&kit, job).text,
              "it asks for 20 GiB of GPU memory; all 4 GPUs that fit are in use or drained");
    request = kit_gang(2, 2, 500);
    job = submit(&kit, "ada", request, 0);
    CHECK_HAS(why(&kit, job).text, "it asks for 2 members, each with 0.5 of each of 2 GPUs on one "
                                   "node; all 4 GPUs that fit are in use or drained");
    sched_kit_finish(&kit);

    struct acre_device_spec devices[] = {{.model = "X9", .memory_mib = KIT_MEMORY_MIB}};
    sched_kit_init_large(&kit, 1, 1, "{}");
    kit_add_devices(kit.ledger, "h", devices, 1);
    acre_sched_ledger_changed(kit.sched);
    request = kit_whole(1);
    request.models[0] = kit_name(kit.ledger, "X9");
    submit(&kit, "ada", request, 0);
    job = submit(&kit, "ada", request, 0);
    CHECK_HAS(why(&kit, job).text,
              "it asks for 1 GPU of model X9; the only GPU that fits is in use");
    sched_kit_finish(&kit);
}

static void held_begin_and_dependency_come_first(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "1000", "{}"); /* busy too: not the dominant reason */
    struct acre_job_spec spec = sched_kit_spec(&kit, "ada", kit_whole(1));
    spec.held = true;
    uint64_t held = SCHED_KIT_SUBMIT(&kit, &spec);
    CHECK_WHY(why(&kit, held), "held", "it is held", "acre release 1");
    CHECK_EQ(why(&kit, held).position, 0);

    spec = sched_kit_spec(&kit, "ada", kit_whole(1));
    spec.begin_ms = kit.now_ms + 150 * MIN_MS;
    uint64_t later = SCHED_KIT_SUBMIT(&kit, &spec);
    CHECK_WHY(why(&kit, later), "begins-later", "its begin time is in 2 h 30 min", "--begin");
    CHECK_U64(why(&kit, later).asked, 150 * MIN_MS);

    struct acre_dependency needs[] = {{.job = held, .kind = ACRE_DEPENDENCY_AFTER_OK},
                                      {.job = later, .kind = ACRE_DEPENDENCY_AFTER_ANY}};
    spec = sched_kit_spec(&kit, "ada", kit_whole(1));
    spec.begin_ms = kit.now_ms + HOUR_MS;
    spec.dependencies = needs;
    spec.dependency_count = 2;
    uint64_t dependent = SCHED_KIT_SUBMIT(&kit, &spec);
    struct acre_why answer = why(&kit, dependent);
    CHECK_STR(acre_reason_name(answer.reason), "dependency");
    CHECK_HAS(answer.text, "it waits for job 1 to complete (now queued) and for 1 other");
    CHECK(answer.other == held || answer.other == later);
    CHECK_U64(answer.asked, 2);
    REQUIRE_EQ(acre_sched_hold(kit.sched, dependent, kit.now_ms, NULL), 0);
    CHECK_STR(acre_reason_name(why(&kit, dependent).reason), "held");
    sched_kit_finish(&kit);
}

static void a_back_off_says_why_and_when_the_next_run_is(void) {
    static const struct {
        struct acre_job_exit exit;
        uint32_t retries;
        bool reclaimed; /* idle before it ended */
        const char *says;
    } rows[] = {
        {{.kind = ACRE_EXIT_CODE, .code = 1},
         2,
         false,
         "try 1 of 3 failed; the next try is in 40 s"},
        {{.kind = ACRE_EXIT_LOST}, 0, false, "its last run was lost; the next try is in 40 s"},
        {{.kind = ACRE_EXIT_CODE},
         0,
         true,
         "its last run was stopped because its GPUs were idle; the next try is in 40 s"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct sched_kit kit;
        sched_kit_init(&kit, "0",
                       "{\"retry_base\":\"40s\",\"idle\":\"always\",\"idle_after\":\"1s\","
                       "\"idle_warn\":\"1s\"}");
        struct acre_job_spec spec = sched_kit_spec(&kit, "ada", kit_whole(1));
        spec.max_retries = rows[i].retries;
        uint64_t job = SCHED_KIT_SUBMIT(&kit, &spec);
        sched_kit_settle(&kit);
        if (rows[i].reclaimed) {
            acre_sched_sampled(kit.sched, job, 1, 0, kit.now_ms);
            kit.now_ms += 1000;
            sched_kit_settle(&kit);
        }
        acre_sched_exited(kit.sched, job, 1, &rows[i].exit, kit.now_ms);
        CHECK_WHY(why(&kit, job), "begins-later", rows[i].says, "acre logs 1");
        kit.now_ms += 39063; /* 937 ms left */
        CHECK_HAS(why(&kit, job).text, "; the next try is in 1 s");
        sched_kit_finish(&kit);
    }
}

/* POL-7 */
static void quotas_are_told_with_their_numbers(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0 0 0",
                   "{\"quotas\":[{\"who\":\"user:ada\",\"gpus\":2},"
                   "{\"who\":\"user:bob\",\"gpus\":1,\"soft\":true}]}");
    submit(&kit, "ada", kit_whole(2), HOUR_MS);
    uint64_t job = submit(&kit, "ada", kit_whole(1), HOUR_MS);
    struct acre_why answer = why(&kit, job);
    CHECK_WHY(answer, "over-quota",
              "user:ada holds 2 GPUs, the limit is 2 GPUs, and this asks for 1 GPU",
              "it can start when other jobs of user:ada end");
    CHECK_U64(answer.asked, 1000);
    CHECK_U64(answer.available, 0);

    /* The quota was lowered while it waited. */
    struct acre_policy *policy = acre_calloc(1, sizeof(*policy));
    REQUIRE_EQ(acre_policy_load("new",
                                ACRE_STR("{\"quotas\":[{\"who\":\"user:ada\",\"gpus\":0.5}]}"),
                                acre_policy_default(), policy, NULL),
               0);
    acre_sched_set_policy(kit.sched, policy, kit.now_ms);
    free(policy);
    CHECK_WHY(why(&kit, job), "hard-quota",
              "user:ada may hold 0.5 GPUs at once; this asks for 1 GPU",
              "raise the quota of user:ada");
    sched_kit_finish(&kit);
}

static void an_array_waits_for_its_own_members(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0 0 0", "{}");
    uint64_t ids[3];
    for (int i = 0; i < 3; i++) {
        struct acre_job_spec spec = sched_kit_spec(&kit, "ada", kit_whole(1));
        spec.array = 1;
        spec.array_index = (uint32_t)i;
        spec.array_limit = 2;
        ids[i] = SCHED_KIT_SUBMIT(&kit, &spec);
    }
    sched_kit_settle(&kit);
    CHECK_WHY(why(&kit, ids[2]), "over-quota",
              "array 1 may run 2 at once, and 2 of its jobs are running or next",
              "it starts when one of them ends");
    sched_kit_finish(&kit);
}

/* Submission refuses it; a job that comes back to a smaller cluster may be there. */
static void what_could_never_run_is_told(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0|0 0", "{}");
    struct acre_job row = {.spec = sched_kit_spec(&kit, "ada", kit_whole(3)),
                           .submitted_ms = kit.now_ms,
                           .eligible_ms = kit.now_ms};
    REQUIRE_EQ(acre_sched_restore(kit.sched, &row, NULL, 0, kit.now_ms, NULL), 0);
    CHECK_WHY(why(&kit, row.spec.id), "never-fits",
              "never fits: it asks for 3 GPUs on one node; at most 2 on any one node fit",
              "ask for fewer");
    sched_kit_finish(&kit);
}

static void reservations_are_named(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0", "{}");
    uint32_t devices[] = {kit_device(kit.ledger, "a/0"), kit_device(kit.ledger, "a/1")};
    struct acre_reservation_spec window = {.user = kit_name(kit.ledger, "bob"),
                                           .devices = devices,
                                           .device_count = 2,
                                           .milli = 1000,
                                           .start_ms = kit.now_ms,
                                           .end_ms = kit.now_ms + 2 * HOUR_MS};
    uint64_t reservation;
    REQUIRE_EQ(acre_ledger_reserve(kit.ledger, &window, kit.now_ms, &reservation, NULL), 0);
    acre_ledger_tick(kit.ledger, kit.now_ms);
    acre_sched_ledger_changed(kit.sched);
    uint64_t job = submit(&kit, "ada", kit_whole(1), HOUR_MS);
    struct acre_why answer = why(&kit, job);
    CHECK_WHY(answer, "reserved",
              "it asks for 1 GPU; that would fit, but reservation 1 holds 2 GPUs",
              "the reservation ends in 2 h");
    CHECK_U64(answer.other, reservation);
    CHECK_HAS(answer.text, "it asks for 1 GPU; that would fit, but reservation 1 holds 2 GPUs");

    window.start_ms = kit.now_ms + 3 * HOUR_MS;
    window.end_ms = kit.now_ms + 4 * HOUR_MS;
    REQUIRE_EQ(acre_ledger_reserve(kit.ledger, &window, kit.now_ms, &reservation, NULL), 0);
    struct acre_request own = kit_whole(1);
    own.reservation = reservation;
    job = submit(&kit, "bob", own, HOUR_MS);
    CHECK_WHY(why(&kit, job), "reserved", "its reservation 2 starts in 3 h",
              "without the reservation");
    REQUIRE_EQ(acre_ledger_cancel_reservation(kit.ledger, reservation, kit.now_ms, NULL), 0);
    CHECK_WHY(why(&kit, job), "reserved", "its reservation 2 has ended", "submit it again");
    sched_kit_finish(&kit);

    /* One that begins soon keeps off what would not end before. */
    sched_kit_init(&kit, "0 0", "{}");
    window.user = kit_name(kit.ledger, "bob");
    window.start_ms = kit.now_ms + 3 * HOUR_MS;
    REQUIRE_EQ(acre_ledger_reserve(kit.ledger, &window, kit.now_ms, &reservation, NULL), 0);
    acre_sched_ledger_changed(kit.sched);
    job = submit(&kit, "ada", kit_whole(2), HOUR_MS); /* no limit: it might stay */
    CHECK_WHY(
        why(&kit, job), "reserved",
        "it asks for 2 GPUs on one node; that would fit, but reservation 1 needs 2 GPUs in 3 h",
        "a shorter time limit");
    sched_kit_finish(&kit);
}

/* POL-6: it would fit, but not before the head's turn. */
static void behind_names_the_head(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0", "{\"policy\":\"fcfs\",\"preemption\":false}");
    submit(&kit, "ada", kit_whole(1), HOUR_MS);
    uint64_t head = submit(&kit, "ada", kit_whole(2), HOUR_MS);
    uint64_t job = submit(&kit, "ada", kit_whole(1), 2 * HOUR_MS);
    CHECK_EQ(sched_kit_state(&kit, job), ACRE_JOB_QUEUED);
    struct acre_why answer = why(&kit, job);
    CHECK_WHY(
        answer, "behind",
        "it would fit now, but 1 job is ahead of it, and it would delay job 2, the first in line",
        "shorter estimate");
    CHECK_U64(answer.other, head);
    CHECK_EQ(answer.position, 2);
    CHECK_EQ(answer.ahead, 1);
    CHECK_STR(acre_reason_name(why(&kit, head).reason), "busy");
    sched_kit_finish(&kit);

    sched_kit_init(&kit, "0 0", "{\"policy\":\"fcfs\",\"backfill\":false,\"preemption\":false}");
    submit(&kit, "ada", kit_whole(1), HOUR_MS);
    submit(&kit, "ada", kit_whole(2), HOUR_MS);
    job = submit(&kit, "ada", kit_whole(1), MIN_MS);
    CHECK_WHY(
        why(&kit, job), "behind",
        "it would fit now, but 1 job is ahead of it, and it would delay job 2, the first in line",
        "the policy has backfill off: jobs start in order");
    sched_kit_finish(&kit);
}

static void preempting_paused_and_evaluating(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0", "{\"policy\":\"priority\",\"preempt_min_run\":0}");
    struct acre_job_spec spec = sched_kit_spec(&kit, "ada", kit_whole(1));
    spec.priority = ACRE_PRIORITY_LOW;
    uint64_t low = SCHED_KIT_SUBMIT(&kit, &spec);
    CHECK_WHY(why(&kit, low), "evaluating", "it can start; the next scheduling pass decides", "");
    acre_sched_pause(kit.sched, true);
    CHECK_WHY(why(&kit, low), "paused", "paused", "operator");
    acre_sched_pause(kit.sched, false);
    sched_kit_settle(&kit);
    kit.now_ms += HOUR_MS;
    spec = sched_kit_spec(&kit, "bob", kit_whole(1));
    spec.priority = ACRE_PRIORITY_CRITICAL;
    uint64_t urgent = SCHED_KIT_SUBMIT(&kit, &spec);
    sched_kit_settle(&kit);
    CHECK_EQ(sched_kit_state(&kit, low), ACRE_JOB_PREEMPTED);
    CHECK_WHY(why(&kit, urgent), "preempting",
              "1 lower-priority job is stopping to make room for it",
              "it starts when that job has stopped");
    sched_kit_finish(&kit);
}

static void who_does_not_wait_is_an_error(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0", "{}");
    uint64_t job = submit(&kit, "ada", kit_whole(1), HOUR_MS);
    struct acre_why answer;
    struct acre_error err;
    CHECK_EQ(acre_sched_why(kit.sched, job, kit.now_ms, &answer, &err), ACRE_ECONFLICT);
    CHECK_HAS(err.text, "job 1 is running");
    CHECK_EQ(acre_sched_why(kit.sched, 77, kit.now_ms, &answer, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "job 77");
    sched_kit_finish(&kit);
}

/* POL-1: what `acre usage` shows and the store keeps. */
static void usage_is_charged_and_restored(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0 0", "{\"quotas\": [{\"who\": \"user:bob\", \"gpus\": 1}]}");
    uint64_t job = submit(&kit, "ada", kit_whole(2), HOUR_MS);
    uint32_t ada = kit_name(kit.ledger, "ada"), project = kit_name(kit.ledger, "p-ada");
    struct acre_usage usage;
    kit.now_ms += HOUR_MS;
    REQUIRE(acre_sched_find_usage(kit.sched, project, ada, kit.now_ms, &usage));
    CHECK_NEAR(usage.gpu_hours, 2, 0.01);
    CHECK_EQ(usage.held_milli, 2000);
    CHECK_EQ(usage.running, 1);
    CHECK_U64(usage.charged_ms, 0);
    sched_kit_end(&kit, job);
    REQUIRE(acre_sched_find_usage(kit.sched, project, ada, kit.now_ms, &usage));
    CHECK_NEAR(usage.gpu_hours, 2, 0.01);
    CHECK_U64(usage.charged_ms, 2000 * HOUR_MS);
    CHECK_NEAR(usage.used, 1, 1e-9);
    CHECK_NEAR(usage.share, 1, 1e-9);
    CHECK_NEAR(usage.factor, 0.5, 1e-9);
    CHECK(!acre_sched_find_usage(kit.sched, ada, project, kit.now_ms, &usage));
    struct acre_job_spec refused = sched_kit_spec(&kit, "bob", kit_whole(2));
    refused.id = 1000;
    CHECK_EQ(acre_sched_submit(kit.sched, &refused, kit.now_ms, NULL), ACRE_EDENIED);
    uint32_t cursor = 0, rows = 0;
    struct acre_usage row;
    while (acre_sched_usage(kit.sched, kit.now_ms, &cursor, &row)) {
        rows++;
    }
    CHECK_EQ(rows, 1);
    sched_kit_finish(&kit);

    struct sched_kit again;
    sched_kit_init(&again, "0 0", "{}");
    row.project = kit_name(again.ledger, "p-ada");
    row.user = kit_name(again.ledger, "ada");
    acre_sched_restore_usage(again.sched, &row);
    REQUIRE(acre_sched_find_usage(again.sched, row.project, row.user, row.stored_at_ms, &usage));
    CHECK_NEAR(usage.gpu_hours, row.gpu_hours, 1e-9);
    CHECK_U64(usage.charged_ms, row.charged_ms);
    sched_kit_finish(&again);
}

/* A smaller share is offered from the smallest on that the default rules allow, a tenth. */
static void a_smaller_share_is_offered_from_a_tenth_on(void) {
    static const struct {
        const char *cluster;
        const char *offer; /* NULL: none */
    } rows[] = {{"500", "or now with --gpus 0.5"},
                {"899", "or now with --gpus 0.101"},
                {"900", "or now with --gpus 0.1"},
                {"901", NULL},
                {"1000", NULL}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].cluster);
        struct sched_kit kit;
        sched_kit_init(&kit, rows[i].cluster, "{}");
        struct acre_why answer = why(&kit, submit(&kit, "ada", kit_whole(1), HOUR_MS));
        CHECK_EQ(strstr(answer.advice, "or now with") != NULL, rows[i].offer != NULL);
        CHECK_HAS(answer.advice, rows[i].offer != NULL ? rows[i].offer : "");
        sched_kit_finish(&kit);
    }
}

static const struct acre_test tests[] = {
    {"busy_tells_from_fragmented_per_node", busy_tells_from_fragmented_per_node, 0},
    {"fragmented_is_told_per_device", fragmented_is_told_per_device, 0},
    {"fragmented_is_told_for_gangs", fragmented_is_told_for_gangs, 0},
    {"nothing_is_said_of_an_end_nobody_estimated", nothing_is_said_of_an_end_nobody_estimated, 0},
    {"an_end_is_told_by_the_limit", an_end_is_told_by_the_limit, 0},
    {"cpu_beside_a_free_gpu_is_named", cpu_beside_a_free_gpu_is_named, 0},
    {"requests_are_described", requests_are_described, 0},
    {"held_begin_and_dependency_come_first", held_begin_and_dependency_come_first, 0},
    {"a_back_off_says_why_and_when_the_next_run_is", a_back_off_says_why_and_when_the_next_run_is,
     0},
    {"quotas_are_told_with_their_numbers", quotas_are_told_with_their_numbers, 0},
    {"an_array_waits_for_its_own_members", an_array_waits_for_its_own_members, 0},
    {"what_could_never_run_is_told", what_could_never_run_is_told, 0},
    {"reservations_are_named", reservations_are_named, 0},
    {"behind_names_the_head", behind_names_the_head, 0},
    {"preempting_paused_and_evaluating", preempting_paused_and_evaluating, 0},
    {"who_does_not_wait_is_an_error", who_does_not_wait_is_an_error, 0},
    {"usage_is_charged_and_restored", usage_is_charged_and_restored, 0},
    {"a_smaller_share_is_offered_from_a_tenth_on", a_smaller_share_is_offered_from_a_tenth_on, 0},
};

ACRE_TEST_MAIN(tests)
