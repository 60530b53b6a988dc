/* What a user's jobs take of the daemon is counted exactly, from submission to the end and over a
 * restart, and held to the policy's limits (SEC-5). */
#include "sched/burden.h"

#include "support/sched_kit.h"
#include "support/test.h"

#include <stdio.h>

static struct acre_job_spec spec_of(struct sched_kit *kit, const char *user, const char *name,
                                    uint32_t bytes) {
    struct acre_job_spec spec =
        sched_kit_spec(kit, user, (struct acre_request){.replicas = 1, .gpus = 1, .milli = 1000});
    spec.name = acre_names_take(acre_ledger_names(kit->ledger), acre_str_from(name));
    spec.bytes = bytes;
    return spec;
}

/* Submit and, as whoever submits does, give the name back. */
static uint64_t submit(struct sched_kit *kit, struct acre_job_spec spec) {
    uint64_t id = SCHED_KIT_SUBMIT(kit, &spec);
    acre_names_give(acre_ledger_names(kit->ledger), spec.name);
    return id;
}

#define CHECK_BURDEN(kit, user, queued, bytes, names)                                              \
    check_burden((kit), (user), (struct acre_burden){(queued), (bytes), (names)}, __LINE__)

static void check_burden(struct sched_kit *kit, const char *user, struct acre_burden expected,
                         int line) {
    struct acre_burden now;
    struct acre_error err = {0};
    acre_test_context("line %d, %s", line, user);
    acre_sched_burden(kit->sched, kit_name(kit->ledger, user), &now);
    CHECK_U64(now.queued, expected.queued);
    CHECK_U64(now.bytes, expected.bytes);
    CHECK_U64(now.names, expected.names);
    CHECK_EQ(acre_sched_check(kit->sched, &err), 0);
    CHECK_STR(err.text, "");
}

static void drop(struct sched_kit *kit, uint64_t job) {
    acre_sched_drop(kit->sched, job);
}

static void a_burden_goes_with_its_jobs(void) {
    struct sched_kit kit;
    sched_kit_init(&kit, "0", "{}");
    const struct acre_names *names = acre_ledger_names(kit.ledger);
    CHECK_BURDEN(&kit, "ada", 0, 0, 0);
    uint64_t first = submit(&kit, spec_of(&kit, "ada", "train", 100));
    uint64_t second = submit(&kit, spec_of(&kit, "ada", "train", 20));
    uint64_t third = submit(&kit, spec_of(&kit, "ada", "eval", 3));
    submit(&kit, spec_of(&kit, "bob", "train", 7));
    CHECK_BURDEN(&kit, "ada", 3, 123, 2);
    CHECK_BURDEN(&kit, "bob", 1, 7, 1);
    sched_kit_settle(&kit); /* the first one runs: it is no longer waiting */
    CHECK_BURDEN(&kit, "ada", 2, 123, 2);
    acre_sched_cancel(kit.sched, third, kit.now_ms, NULL);
    CHECK_BURDEN(&kit, "ada", 1, 123, 2); /* until it is recorded */
    drop(&kit, third);
    CHECK_BURDEN(&kit, "ada", 1, 120, 1);
    CHECK_EQ(acre_names_find(names, ACRE_STR("eval")), 0);
    acre_sched_exited(kit.sched, first, 1, &(struct acre_job_exit){.kind = ACRE_EXIT_LOST},
                      kit.now_ms); /* it waits again */
    CHECK_BURDEN(&kit, "ada", 2, 120, 1);
    acre_sched_cancel(kit.sched, first, kit.now_ms, NULL);
    acre_sched_cancel(kit.sched, second, kit.now_ms, NULL);
    drop(&kit, first);
    CHECK_BURDEN(&kit, "ada", 0, 20, 1);
    drop(&kit, second);
    CHECK_BURDEN(&kit, "ada", 0, 0, 0);
    CHECK_BURDEN(&kit, "bob", 1, 7, 1);
    CHECK(acre_names_find(names, ACRE_STR("train")) != 0); /* it is bob's, too */
    sched_kit_finish(&kit);
}

static void an_array_counts_its_text_once(void) {
    struct sched_kit kit;
    uint64_t ids[4];
    sched_kit_init(&kit, "0", "{}");
    for (uint32_t i = 0; i < ACRE_COUNT(ids); i++) {
        struct acre_job_spec spec = spec_of(&kit, "ada", "sweep", 900);
        spec.array = i == 0 ? spec.id : ids[0];
        spec.array_index = i;
        ids[i] = submit(&kit, spec);
    }
    CHECK_BURDEN(&kit, "ada", 4, 900, 1);
    for (uint32_t i = 0; i < ACRE_COUNT(ids); i++) { /* the first one first */
        acre_sched_cancel(kit.sched, ids[i], kit.now_ms, NULL);
        drop(&kit, ids[i]);
        CHECK_BURDEN(&kit, "ada", 3 - i, i < 3 ? 900 : 0, i < 3);
    }
    sched_kit_finish(&kit);
}

static void a_burden_is_the_same_after_a_restart(void) {
    struct sched_kit before, after;
    sched_kit_init(&before, "0", "{}");
    sched_kit_init(&after, "0", "{}");
    uint64_t array = 0;
    for (uint32_t i = 0; i < 3; i++) {
        struct acre_job_spec spec = spec_of(&before, "ada", i == 2 ? "b" : "a", 50);
        array = i == 0 ? spec.id : array;
        spec.array = i < 2 ? array : 0;
        spec.array_index = i < 2 ? i : 0;
        submit(&before, spec);
    }
    CHECK_BURDEN(&before, "ada", 3, 100, 2);
    for (uint64_t id = array; id < array + 3; id++) {
        struct acre_job job;
        REQUIRE(acre_sched_find(before.sched, id, &job));
        CHECK_U64(job.spec.bytes, 50);
        job.spec.user = kit_name(after.ledger, "ada");
        job.spec.project = kit_name(after.ledger, "p-ada");
        job.spec.name = kit_name(after.ledger, id == array + 2 ? "b" : "a");
        REQUIRE_EQ(acre_sched_restore(after.sched, &job, NULL, 0, after.now_ms, NULL), 0);
    }
    CHECK_BURDEN(&after, "ada", 3, 100, 2);
    sched_kit_finish(&before);
    sched_kit_finish(&after);
}

static void a_limit_in_the_way_is_named(void) {
    static const struct {
        const char *policy;
        uint32_t count, bytes;
        const char *name;
        int code;
        const char *says;
    } cases[] = {
        {"{\"max_queued_jobs\": 5}", 3, 0, "", 0, ""},
        {"{\"max_queued_jobs\": 5}", 4, 0, "", ACRE_ELIMIT,
         "max_queued_jobs: you have 2 jobs waiting, and this submission adds 4; a user may have 5. "
         "Wait until some of them have started, or cancel some"},
        {"{\"max_queued_size\": \"2MiB\"}", 9, 1 << 20, "", 0, ""}, /* of an array: once */
        {"{\"max_queued_size\": \"2MiB\"}", 1, (1 << 20) + 1, "", ACRE_ELIMIT,
         "max_queued_size: your jobs have 1.0 MiB of scripts, commands and environments, and this "
         "submission adds 1.0 MiB; a user may have 2 MiB. Wait until some of them have ended, "
         "submit similar jobs as an array, or read large input from files"},
        {"{\"max_names\": 2}", 1, 0, "first", 0, ""},
        {"{\"max_names\": 2}", 1, 0, "", 0, ""},
        {"{\"max_names\": 3}", 1, 0, "third", 0, ""},
        {"{\"max_names\": 2}", 1, 0, "third", ACRE_ELIMIT,
         "max_names: your jobs have 2 different names, and 'third' is a new one; a user may have "
         "2. Reuse a name, submit similar jobs as an array, or wait until some of them have ended"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct sched_kit kit;
        struct acre_error err = {0};
        sched_kit_init(&kit, "0", cases[i].policy);
        submit(&kit, spec_of(&kit, "ada", "first", 1 << 19));
        submit(&kit, spec_of(&kit, "ada", "second", 1 << 19));
        submit(&kit, spec_of(&kit, "bob", "third", 1 << 20)); /* his count for him */
        struct acre_job_spec spec = spec_of(&kit, "ada", cases[i].name, cases[i].bytes);
        acre_test_context("%s, %u of '%s'", cases[i].policy, cases[i].count, cases[i].name);
        CHECK_EQ(acre_sched_within_limits(kit.sched, &spec, cases[i].count, &err), cases[i].code);
        CHECK_HAS(err.text, cases[i].says);
        sched_kit_finish(&kit);
    }
}

static const struct acre_test tests[] = {
    {"a_burden_goes_with_its_jobs", a_burden_goes_with_its_jobs, 0},
    {"an_array_counts_its_text_once", an_array_counts_its_text_once, 0},
    {"a_burden_is_the_same_after_a_restart", a_burden_is_the_same_after_a_restart, 0},
    {"a_limit_in_the_way_is_named", a_limit_in_the_way_is_named, 0},
};

ACRE_TEST_MAIN(tests)
