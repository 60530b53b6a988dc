/* The scheduler against a slow and obvious second opinion (POL-2, POL-3, POL-6, POL-7, POL-9).
 *
 * Random workloads run on small clusters in virtual time; runs take exactly as long as they said.
 * After every moment, when the scheduler has nothing left to do, the model looks at what runs and
 * what waits through the public interface alone and asks the questions below of a ledger of its
 * own, built anew from the allocations each time. It knows no classes, no lines, no shadows kept.
 *
 * ACRE_SEED=n replays one seed, ACRE_SEEDS=n runs more of them. */
#include "core/rand.h"
#include "sched/why.h"
#include "support/ledger_kit.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    JOBS_MAX = 48,
    PARTS_MAX = 64,
    SETTLE_MAX = 40,
    MOMENTS_MAX = 4000,
    SEEDS = 400,
};
#define START_MS UINT64_C(1700000000000)

static const char *const clusters[] = {"0",
                                       "0 0",
                                       "0 0 0 0",
                                       "0 0|0 0",
                                       "0 0 0 0|0 0 0 0",
                                       "0|0 0|0 0 0",
                                       "0 0 0 0 0 0 0 0|0 0|0|0 0 0 0"};

#define SLOW_AGE "\"priority_age\": \"10m\", \"preempt_min_run\": \"30s\", \"idle\": \"never\""
static const char *const policies[] = {
    "{\"policy\": \"fcfs\", \"backfill\": false, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"fcfs\", \"backfill\": true, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"priority\", \"backfill\": false, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"priority\", \"backfill\": true, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"priority\", \"backfill\": true, \"preemption\": true, " SLOW_AGE "}",
    "{\"policy\": \"priority\", \"backfill\": false, \"preemption\": true, " SLOW_AGE "}",
    "{\"policy\": \"sjf\", \"backfill\": true, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"gang\", \"backfill\": true, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"gang\", \"backfill\": false, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"fair-share\", \"backfill\": true, \"preemption\": false, " SLOW_AGE "}",
    "{\"policy\": \"fair-share\", \"backfill\": true, \"preemption\": true, " SLOW_AGE "}",
    "{\"policy\": \"fcfs\", \"backfill\": true, \"preemption\": true, " SLOW_AGE
    ", \"quotas\": [{\"who\": \"user:u0\", \"gpus\": 2, \"running\": 2}, "
    "{\"who\": \"user:u1\", \"gpus\": 1, \"soft\": true}]}",
    "{\"policy\": \"fair-share\", \"backfill\": true, \"preemption\": false, " SLOW_AGE
    ", \"quotas\": [{\"who\": \"user:*\", \"gpus\": 2, \"memory\": \"100GiB\"}]}",
    "{\"policy\": \"priority\", \"backfill\": true, \"preemption\": true, " SLOW_AGE
    ", \"quotas\": [{\"who\": \"project:p0\", \"gpus\": 2, \"soft\": true}]}",
};

struct mjob {
    struct acre_job_spec spec;
    struct acre_dependency dependencies[2];
    uint64_t run_ms;          /* what it takes */
    uint64_t end_ms;          /* of the run there is; 0: none */
    uint32_t attempt;         /* of that run */
    bool fails;               /* its first run does */
    bool was_promised;        /* others yielded for it */
    bool submitted, refused;  /* refused: never part of it */
    uint64_t preempted_by[4]; /* the last ones it yielded to */
};

struct play {
    struct acre_rand rand;
    const char *cluster;
    struct acre_policy policy;
    struct acre_ledger *ledger;
    struct acre_sched *sched;
    uint64_t now_ms;
    bool plain;                     /* nobody interferes */
    bool is_cut;                    /* a run ended before its time in this moment */
    struct mjob jobs[JOBS_MAX + 1]; /* by id */
    uint32_t job_count;
    struct acre_sched_action actions[256];
    uint32_t action_count;
    uint64_t placed[JOBS_MAX * 2]; /* since the last look */
    uint32_t placed_count;
    uint64_t victims[JOBS_MAX]; /* told to yield in this pass */
    uint64_t victim_for[JOBS_MAX];
    uint32_t victim_count;
};

/* Everything as it stands, by the public interface. */
struct view {
    struct acre_job jobs[JOBS_MAX]; /* running first, then the queue in order, then the others */
    uint32_t count;
    bool eligible[JOBS_MAX];
    bool promised[JOBS_MAX];
    bool any_preempted;
};

static uint64_t below(struct play *play, uint64_t bound) {
    return acre_rand_below(&play->rand, bound);
}

static bool one_in(struct play *play, uint64_t n) {
    return below(play, n) == 0;
}

/* --- the world ------------------------------------------------------------------------------ */

static void on_event(void *context, const struct acre_sched_event *event) {
    struct play *play = context;
    if (getenv("ACRE_TRACE") != NULL) {
        fprintf(stderr, "# %.3f %s %llu %llu\n", (double)(event->now_ms - START_MS) / 1000,
                acre_sched_event_name(event->kind), (unsigned long long)event->job,
                (unsigned long long)event->other);
    }
    if (event->kind == ACRE_SCHED_SCHEDULED) {
        REQUIRE(play->placed_count < ACRE_COUNT(play->placed));
        play->placed[play->placed_count++] = event->job;
    }
    if (event->kind == ACRE_SCHED_PREEMPTED) {
        REQUIRE(play->victim_count < JOBS_MAX);
        play->victims[play->victim_count] = event->job;
        play->victim_for[play->victim_count++] = event->other;
    }
}

static void on_action(void *context, const struct acre_sched_action *action) {
    struct play *play = context;
    REQUIRE(play->action_count < ACRE_COUNT(play->actions));
    play->actions[play->action_count++] = *action;
}

static struct acre_ledger *make_cluster(const char *text) {
    static const char *const names[] = {"u0", "u1", "u2", "u3", "p0", "p1"};
    struct acre_ledger *ledger = kit_cluster(ACRE_STRATEGY_DEFAULT, text);
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        kit_name(ledger, names[i]);
    }
    return ledger;
}

static struct acre_request draw_request(struct play *play) {
    switch (below(play, 8)) {
    case 0:
    case 1:
        return kit_whole(1);
    case 2:
        return kit_whole(1 + (uint32_t)below(play, 4));
    case 3:
        return kit_gang(1 + (uint32_t)below(play, 3), 1 + (uint32_t)below(play, 2), 1000);
    case 4:
        return kit_memory(1024 * (1 + below(play, 60)));
    default:
        return kit_share(100 * (1 + (uint32_t)below(play, 10)));
    }
}

static void draw_job(struct play *play) {
    char user[8], project[8];
    uint64_t id = ++play->job_count;
    struct mjob *job = &play->jobs[id];
    uint32_t who = (uint32_t)below(play, 4);
    snprintf(user, sizeof(user), "u%u", who);
    snprintf(project, sizeof(project), "p%u", who % 2);
    *job = (struct mjob){.run_ms = 1000 * (1 + below(play, one_in(play, 3) ? 600 : 60))};
    job->spec = (struct acre_job_spec){
        .id = id,
        .user = kit_name(play->ledger, user),
        .project = kit_name(play->ledger, project),
        .request = draw_request(play),
        .priority = (enum acre_job_priority)(1 + below(play, 4)),
        .estimate_ms = job->run_ms,
        .dependencies = job->dependencies,
    };
    if (play->plain) {
        return;
    }
    job->spec.held = one_in(play, 20);
    job->spec.fixed = one_in(play, 8);
    job->spec.begin_ms = one_in(play, 8) ? play->now_ms + below(play, 300000) : 0;
    job->fails = one_in(play, 8);
    job->spec.max_retries = (uint32_t)below(play, 3);
    if (one_in(play, 5) && id > 1) {
        uint64_t target = 1 + below(play, id - 1);
        struct acre_job there;
        if (acre_sched_find(play->sched, target, &there)) {
            job->dependencies[0] = (struct acre_dependency){
                .job = target, .kind = (enum acre_dependency_kind)below(play, 3)};
            job->spec.dependency_count = 1;
        }
    }
    if (one_in(play, 6)) {
        job->spec.array = id > 4 ? id - id % 4 : id;
        job->spec.array_limit = 2;
    }
}

static void submit(struct play *play) {
    draw_job(play);
    struct mjob *job = &play->jobs[play->job_count];
    job->submitted = acre_sched_submit(play->sched, &job->spec, play->now_ms, NULL) == 0;
    job->refused = !job->submitted;
}

static bool act(struct play *play) {
    bool any = play->action_count > 0;
    for (uint32_t i = 0; i < play->action_count; i++) {
        struct acre_sched_action action = play->actions[i];
        struct mjob *job = &play->jobs[action.job];
        struct acre_job_exit exit = {.kind = ACRE_EXIT_SIGNAL, .code = 15};
        switch (action.kind) {
        case ACRE_ACTION_START:
            CHECK(job->end_ms == 0);
            job->end_ms = play->now_ms + job->run_ms;
            job->attempt = action.attempt;
            acre_sched_launched(play->sched, action.job, action.attempt, play->now_ms);
            acre_sched_started(play->sched, action.job, action.attempt, play->now_ms);
            break;
        case ACRE_ACTION_TERMINATE:
        case ACRE_ACTION_KILL:
            job->end_ms = 0;
            play->is_cut = true;
            acre_sched_exited(play->sched, action.job, action.attempt, &exit, play->now_ms);
            break;
        case ACRE_ACTION_CHECKPOINT:
        case ACRE_ACTION_FORGET:
            break;
        }
    }
    play->action_count = 0;
    return any;
}

static void end_runs(struct play *play) {
    for (uint32_t id = 1; id <= play->job_count; id++) {
        struct mjob *job = &play->jobs[id];
        if (job->end_ms != 0 && job->end_ms <= play->now_ms) {
            struct acre_job_exit exit = {.kind = ACRE_EXIT_CODE,
                                         .code = job->fails && job->attempt == 1};
            job->end_ms = 0;
            acre_sched_exited(play->sched, id, job->attempt, &exit, play->now_ms);
        }
    }
}

#include "test_sched_oracle_model.inc"
