/* Random commands and facts, right and wrong, in any order; every invariant after every step; a
 * restart in between; and in the end everybody has run (JOB-2, JOB-3, STO-1).
 *
 * ACRE_SEED=n replays one seed. */
#include "core/rand.h"
#include "support/ledger_kit.h"

#include "sched/sched.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    STEPS = 600,
    SEEDS = 100,
    LIVE_MAX = 60,
    PARTS_MAX = 64,
    ROUNDS_MAX = 20000,
};
#define START_MS UINT64_C(1700000000000)

static const char *const policies[] = {
    "{\"policy\": \"fair-share\"}",
    "{\"policy\": \"priority\", \"preempt_min_run\": \"1s\", \"priority_age\": \"1h\"}",
    "{\"policy\": \"fcfs\", \"backfill\": false, \"preemption\": false}",
    "{\"policy\": \"fcfs\", \"backfill\": true, \"preemption\": false}",
    "{\"policy\": \"sjf\", \"idle\": \"always\", \"idle_after\": \"20s\", \"idle_warn\": \"5s\"}",
    "{\"policy\": \"gang\", \"idle_after\": \"20s\", \"idle_warn\": \"5s\"}",
    ("{\"policy\": \"fair-share\", \"preempt_min_run\": \"1s\", \"quotas\": [{\"who\": \"user:*\", "
     "\"gpus\": 4, \"running\": 5}, {\"who\": \"project:p0\", \"gpus\": 3, \"soft\": true}]}"),
};

struct play {
    struct acre_rand rand;
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    struct acre_policy policy;
    uint64_t now_ms, last_id;
    bool paused;
    uint64_t live[LIVE_MAX];
    uint32_t live_count;
};

static uint64_t below(struct play *play, uint64_t bound) {
    return acre_rand_below(&play->rand, bound);
}

static bool one_in(struct play *play, uint64_t n) {
    return below(play, n) == 0;
}

/* Names have the same numbers in every such cluster. */
static struct acre_ledger *make_cluster(void) {
    static const char *const names[] = {"u0", "u1", "u2", "u3", "u4", "p0", "p1"};
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, "0 0 0 0|0 0/0 0|0 0|0");
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        kit_name(ledger, names[i]);
    }
    return ledger;
}

static void read_policy(const char *text, struct acre_policy *ret_policy) {
    struct acre_error err = {0};
    if (acre_policy_load("test", acre_str_from(text), acre_policy_default(), ret_policy, &err) <
        0) {
        CHECK_STR(err.text, "");
        REQUIRE(false);
    }
}

static void create(struct play *play) {
    struct acre_sched_options options = {.ledger = play->ledger, .policy = &play->policy};
    play->sched = acre_sched_create(&options);
}

static void check_all(const struct play *play) {
    struct acre_error err = {0};
    if (acre_sched_check(play->sched, &err) < 0 || acre_ledger_check(play->ledger, &err) < 0) {
        CHECK_STR(err.text, "");
        REQUIRE(false);
    }
}

static struct acre_request random_request(struct play *play) {
    switch (below(play, 6)) {
    case 0:
        return kit_whole(1 + (uint32_t)below(play, 4));
    case 1:
        return kit_gang(1 + (uint32_t)below(play, 3), 1 + (uint32_t)below(play, 2), 1000);
    case 2:
        return kit_memory(1024 * (1 + below(play, 60)));
    case 3:
        return kit_cpu(1000 * (1 + below(play, 64)), 0);
    default:
        return kit_share(100 * (1 + (uint32_t)below(play, 10)));
    }
}

static uint64_t random_job(struct play *play) {
    return play->live_count > 0 ? play->live[below(play, play->live_count)] : 1;
}

static void submit(struct play *play) {
    char user[8];
    char project[8];
    struct acre_dependency dependencies[2];
    snprintf(user, sizeof(user), "u%u", (unsigned)below(play, 5));
    snprintf(project, sizeof(project), "p%u", (unsigned)below(play, 2));
    struct acre_job_spec spec = {
        .id = play->last_id + 1 + below(play, 2),
        .user = kit_name(play->ledger, user),
        .project = kit_name(play->ledger, project),
        .name = kit_name(play->ledger, user),
        .bytes = (uint32_t)(play->last_id % 7) * 1000,
        .request = random_request(play),
        .priority = (enum acre_job_priority)(1 + below(play, 4)),
        .limit_ms = one_in(play, 2) ? 1000 * (1 + below(play, 600)) : 0,
        .estimate_ms = one_in(play, 2) ? 1000 * (1 + below(play, 600)) : 0,
        .begin_ms = one_in(play, 10) ? play->now_ms + below(play, 60000) : 0,
        .max_retries = (uint32_t)below(play, 4),
        .held = one_in(play, 12),
        .fixed = one_in(play, 8),
        .smaller_on_oom = one_in(play, 4),
        .dependencies = dependencies,
    };
    for (uint64_t i = one_in(play, 4) ? 1 + below(play, 2) : 0; i > 0; i--) {
        dependencies[spec.dependency_count++] = (struct acre_dependency){
            .job = random_job(play), .kind = (enum acre_dependency_kind)below(play, 3)};
    }
    if (one_in(play, 3)) {
        spec.array = play->last_id > 8 && one_in(play, 2) ? play->last_id / 8 * 8 : spec.id;
        spec.array_limit = 2;
        spec.array_index = (uint32_t)below(play, 100);
    }
    if (play->live_count < LIVE_MAX &&
        acre_sched_submit(play->sched, &spec, play->now_ms, NULL) == 0) {
        play->last_id = spec.id;
        play->live[play->live_count++] = spec.id;
    }
}

/* A fact about a job, mostly of its present run. */
static void fact(struct play *play, uint64_t id, uint64_t kind) {
    struct acre_job job = {0};
    acre_sched_find(play->sched, id, &job);
    uint32_t attempt = one_in(play, 12) ? job.attempt - 1 + (uint32_t)below(play, 3) : job.attempt;
    struct acre_job_exit exit = {.kind = one_in(play, 2)
                                             ? ACRE_EXIT_CODE
                                             : (enum acre_exit_kind)below(play, ACRE_EXIT_LOST + 1),
                                 .code = (int)below(play, 3)};
    switch (kind) {
    case 0:
        acre_sched_dispatched(play->sched, id, attempt, play->now_ms);
        break;
    case 1:
    case 2:
        acre_sched_started(play->sched, id, attempt, play->now_ms);
        break;
    case 3:
        acre_sched_sampled(play->sched, id, attempt, (uint32_t)below(play, 100), play->now_ms);
        break;
    default:
        acre_sched_exited(play->sched, id, attempt, &exit, play->now_ms);
        break;
    }
}

static void command(struct play *play, uint64_t id) {
    switch (below(play, 6)) {
    case 0:
        acre_sched_cancel(play->sched, id, play->now_ms, NULL);
        break;
    case 1:
        acre_sched_hold(play->sched, id, play->now_ms, NULL);
        break;
    case 2:
    case 3:
        acre_sched_release(play->sched, id, play->now_ms, NULL);
        break;
    default:
        acre_sched_set_priority(play->sched, id, (enum acre_job_priority)below(play, 6),
                                play->now_ms, NULL);
        break;
    }
}

static void drop_ended(struct play *play) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < play->live_count; i++) {
        struct acre_job job = {0};
        bool known = acre_sched_find(play->sched, play->live[i], &job);
        REQUIRE(known);
        if (acre_job_state_is_live(job.state)) {
            play->live[kept++] = play->live[i];
        } else {
            acre_sched_drop(play->sched, play->live[i]);
        }
    }
    play->live_count = kept;
}

/* A job that was recorded: everything that must survive, and its parts. */
struct record {
    struct acre_job job;
    struct acre_dependency dependencies[ACRE_JOB_DEPENDENCIES_MAX];
    struct acre_part parts[PARTS_MAX];
    uint32_t part_count;
};

static int by_id(const void *a, const void *b) {
    uint64_t x = ((const struct record *)a)->job.spec.id;
    uint64_t y = ((const struct record *)b)->job.spec.id;
    return (x > y) - (x < y);
}

static void check_same(const struct acre_job *a, const struct acre_job *b) {
    /* a scheduled one comes back as allocating: it may have been asked for */
    enum acre_job_state back = b->state == ACRE_JOB_SCHEDULED ? ACRE_JOB_ALLOCATING : b->state;
    CHECK_U64((uint64_t)a->state, (uint64_t)back);
    CHECK_U64((uint64_t)a->attempt, (uint64_t)b->attempt);
    CHECK_U64((uint64_t)a->retries, (uint64_t)b->retries);
    CHECK_U64((uint64_t)a->preemptions, (uint64_t)b->preemptions);
    CHECK_U64((uint64_t)a->canceling, (uint64_t)b->canceling);
    CHECK_U64((uint64_t)a->submitted_ms, (uint64_t)b->submitted_ms);
    if (b->eligible_ms != 0) { /* else its begin may have come in between */
        CHECK_U64(a->eligible_ms, b->eligible_ms);
    }
    CHECK_U64((uint64_t)a->not_before_ms, (uint64_t)b->not_before_ms);
    CHECK_U64((uint64_t)a->scheduled_ms, (uint64_t)b->scheduled_ms);
    CHECK_U64((uint64_t)a->started_ms, (uint64_t)b->started_ms);
    CHECK_U64((uint64_t)a->run_ms, (uint64_t)b->run_ms);
    CHECK_U64((uint64_t)a->allocation, (uint64_t)b->allocation);
    CHECK_U64((uint64_t)a->preempted_for, (uint64_t)b->preempted_for);
    CHECK_U64((uint64_t)a->exit.code, (uint64_t)b->exit.code);
    CHECK_U64((uint64_t)a->spec.held, (uint64_t)b->spec.held);
    CHECK_U64((uint64_t)a->spec.fixed, (uint64_t)b->spec.fixed);
    CHECK_U64((uint64_t)a->spec.priority, (uint64_t)b->spec.priority);
    CHECK_U64((uint64_t)a->spec.array, (uint64_t)b->spec.array);
    CHECK_U64((uint64_t)a->spec.array_index, (uint64_t)b->spec.array_index);
    CHECK_U64((uint64_t)a->spec.array_limit, (uint64_t)b->spec.array_limit);
    CHECK_U64((uint64_t)a->spec.limit_ms, (uint64_t)b->spec.limit_ms);
    CHECK_U64((uint64_t)a->spec.estimate_ms, (uint64_t)b->spec.estimate_ms);
    CHECK_U64((uint64_t)a->spec.begin_ms, (uint64_t)b->spec.begin_ms);
    CHECK_U64((uint64_t)a->spec.max_retries, (uint64_t)b->spec.max_retries);
    CHECK_U64((uint64_t)a->spec.dependency_count, (uint64_t)b->spec.dependency_count);
    CHECK_U64((uint64_t)a->spec.request.milli, (uint64_t)b->spec.request.milli);
}

/* The daemon dies and comes back: the same jobs, where they were (STO-1). */
static void restart(struct play *play) {
    struct record *records = acre_calloc(LIVE_MAX, sizeof(*records));
    uint32_t count = 0;
    uint64_t cursor = 0;
    struct acre_job job;
    while (acre_sched_walk(play->sched, &cursor, &job)) {
        REQUIRE(count < LIVE_MAX);
        struct record *record = &records[count++];
        struct acre_allocation held;
        record->job = job;
        for (uint32_t i = 0; i < job.spec.dependency_count; i++) {
            record->dependencies[i] = job.spec.dependencies[i];
        }
        if (acre_ledger_find(play->ledger, job.allocation, &held)) {
            REQUIRE(held.part_count <= PARTS_MAX);
            memcpy(record->parts, held.parts, held.part_count * sizeof(*held.parts));
            record->part_count = held.part_count;
        }
    }
    qsort(records, count, sizeof(*records), by_id);
    drop_ended(play);
    CHECK_U64(count, play->live_count); /* everybody is in the walk once */
    acre_sched_destroy(play->sched);
    kit_destroy(play->ledger);
    play->ledger = make_cluster();
    create(play);
    play->paused = false;
    for (uint32_t i = 0; i < count; i++) {
        struct acre_error err = {0};
        records[i].job.spec.dependencies = records[i].dependencies;
        int r = acre_sched_restore(play->sched, &records[i].job, records[i].parts,
                                   records[i].part_count, play->now_ms, &err);
        CHECK_STR(err.text, "");
        REQUIRE_EQ(r, 0);
        REQUIRE(acre_sched_find(play->sched, records[i].job.spec.id, &job));
        check_same(&job, &records[i].job);
    }
    check_all(play);
    free(records);
}

/* Passes as the scheduler itself asks for them, and no more. */
static void settle(struct play *play) {
    acre_sched_pass(play->sched, play->now_ms, (uint32_t)below(play, 3));
    for (uint32_t i = 0; acre_sched_next_ms(play->sched) <= play->now_ms; i++) {
        REQUIRE(i < ROUNDS_MAX);
        acre_sched_pass(play->sched, play->now_ms, 0);
        check_all(play);
    }
}

/* Nobody who is next and would fit waits, unless places are promised or quotas are in the way. */
static void check_first_has_no_room(struct play *play) {
    uint64_t cursor = 0;
    struct acre_job job;
    struct acre_sched_counts counts;
    acre_sched_counts(play->sched, &counts);
    if (counts.jobs[ACRE_JOB_PREEMPTED] > 0 || play->policy.quota_count > 0 ||
        counts.eligible == 0 || play->paused) {
        return;
    }
    while (acre_sched_walk(play->sched, &cursor, &job) && job.state != ACRE_JOB_QUEUED) {
    }
    struct acre_request request = job.spec.request;
    struct acre_part parts[PARTS_MAX];
    uint32_t count;
    CHECK_EQ(acre_ledger_plan(play->ledger, &request, play->now_ms, parts, PARTS_MAX, &count, NULL),
             ACRE_ENOFIT);
}

static void step(struct play *play) {
    switch (below(play, 10)) {
    case 0:
    case 1:
    case 2:
        submit(play);
        break;
    case 3:
        command(play, random_job(play));
        break;
    case 4:
        play->now_ms += below(play, 30000);
        break;
    default:
        fact(play, random_job(play), below(play, 6));
        break;
    }
    check_all(play);
    if (one_in(play, 2)) {
        settle(play);
        check_first_has_no_room(play);
    }
    if (one_in(play, 60)) {
        drop_ended(play);
    }
    if (one_in(play, 150)) {
        restart(play);
    }
    if (one_in(play, 200)) {
        read_policy(policies[below(play, ACRE_COUNT(policies))], &play->policy);
        acre_sched_set_policy(play->sched, &play->policy, play->now_ms);
        check_all(play);
    }
    if (one_in(play, 50)) {
        play->paused = one_in(play, 2);
        acre_sched_pause(play->sched, play->paused);
    }
}

/* Everybody is released, every run ends well: nobody is left. */
static void finish_all(struct play *play) {
    acre_sched_pause(play->sched, false);
    if (play->policy.quota_count > 0) { /* a new quota may be below what was asked before */
        read_policy(policies[0], &play->policy);
        acre_sched_set_policy(play->sched, &play->policy, play->now_ms);
    }
    for (uint32_t round = 0; play->live_count > 0; round++) {
        if (round == ROUNDS_MAX) {
            struct acre_job job = {0};
            acre_sched_find(play->sched, play->live[0], &job);
            acre_test_context("job %llu is %s for ever", (unsigned long long)job.spec.id,
                              acre_job_state_name(job.state));
            REQUIRE(false);
        }
        for (uint32_t i = 0; i < play->live_count; i++) {
            struct acre_job job = {0};
            acre_sched_find(play->sched, play->live[i], &job);
            acre_sched_release(play->sched, play->live[i], play->now_ms, NULL);
            if (acre_job_state_holds(job.state)) {
                struct acre_job_exit exit = {.kind = ACRE_EXIT_CODE};
                acre_sched_exited(play->sched, play->live[i], job.attempt, &exit, play->now_ms);
            }
        }
        settle(play);
        drop_ended(play);
        uint64_t next_ms = acre_sched_next_ms(play->sched);
        play->now_ms = next_ms != UINT64_MAX && next_ms > play->now_ms ? next_ms : play->now_ms;
    }
    check_all(play);
}

static void run_seed(uint64_t seed) {
    acre_test_context("ACRE_SEED=%llu", (unsigned long long)seed);
    struct play play = {.now_ms = START_MS, .ledger = make_cluster()};
    acre_rand_seed(&play.rand, seed);
    read_policy(policies[seed % ACRE_COUNT(policies)], &play.policy);
    create(&play);
    for (uint32_t i = 0; i < STEPS; i++) {
        acre_test_context("ACRE_SEED=%llu at step %u", (unsigned long long)seed, i);
        step(&play);
    }
    acre_test_context("ACRE_SEED=%llu at the end", (unsigned long long)seed);
    finish_all(&play);
    acre_sched_destroy(play.sched);
    kit_destroy(play.ledger);
}

static void every_step_leaves_everything_sound(void) {
    const char *seed = getenv("ACRE_SEED");
    if (seed != NULL) {
        run_seed(strtoull(seed, NULL, 10));
        return;
    }
    for (uint64_t i = 0; i < SEEDS; i++) {
        run_seed(i);
    }
}

static const struct acre_test tests[] = {
    {"every_step_leaves_everything_sound", every_step_leaves_everything_sound, 110},
};

ACRE_TEST_MAIN(tests)
