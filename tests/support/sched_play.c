/* sched_play.c - actions are collected as they are told and done between passes: a scheduler must
 * not be called from its own events. ACRE_TRACE=1 prints the events. */
#include "support/sched_play.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const clusters[] = {"0",
                                       "0 0",
                                       "0 0 0 0",
                                       "0 0|0 0",
                                       "0 0 0 0|0 0 0 0",
                                       "0|0 0|0 0 0",
                                       "0 0 0 0 0 0 0 0|0 0|0|0 0 0 0"};

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
        fprintf(stderr, "# %.3f %s %llu %llu\n", (double)(event->now_ms - PLAY_START_MS) / 1000,
                acre_sched_event_name(event->kind), (unsigned long long)event->job,
                (unsigned long long)event->other);
    }
    if (event->kind == ACRE_SCHED_SCHEDULED) {
        REQUIRE(play->placed_count < ACRE_COUNT(play->placed));
        play->placed[play->placed_count++] = event->job;
    }
    if (event->kind == ACRE_SCHED_PREEMPTED) {
        REQUIRE(play->victim_count < PLAY_JOBS_MAX);
        play->victims[play->victim_count] = event->job;
        play->victim_for[play->victim_count++] = event->other;
    }
}

static void on_action(void *context, const struct acre_sched_action *action) {
    struct play *play = context;
    REQUIRE(play->action_count < ACRE_COUNT(play->actions));
    play->actions[play->action_count++] = *action;
}

struct acre_ledger *play_make_cluster(const char *text) {
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

void play_submit(struct play *play) {
    draw_job(play);
    struct mjob *job = &play->jobs[play->job_count];
    job->submitted = acre_sched_submit(play->sched, &job->spec, play->now_ms, NULL) == 0;
    job->refused = !job->submitted;
}

bool play_act(struct play *play) {
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
            acre_sched_dispatched(play->sched, action.job, action.attempt, play->now_ms);
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

void play_end_runs(struct play *play) {
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

void play_disturb(struct play *play) {
    uint64_t id = play->job_count == 0 ? 0 : 1 + below(play, play->job_count);
    switch (below(play, 12)) {
    case 0:
        acre_sched_hold(play->sched, id, play->now_ms, NULL);
        break;
    case 1:
    case 2:
        acre_sched_release(play->sched, id, play->now_ms, NULL);
        break;
    case 3:
        acre_sched_set_priority(play->sched, id, (enum acre_job_priority)(1 + below(play, 4)),
                                play->now_ms, NULL);
        break;
    case 4:
        acre_sched_cancel(play->sched, id, play->now_ms, NULL);
        break;
    default:
        break;
    }
}

struct play *play_create(uint64_t seed, const char *policy) {
    struct play *play = acre_calloc(1, sizeof(*play));
    struct acre_error err = {0};
    acre_rand_seed(&play->rand, seed);
    play->now_ms = PLAY_START_MS;
    play->cluster = clusters[below(play, ACRE_COUNT(clusters))];
    play->ledger = play_make_cluster(play->cluster);
    acre_policy_load("test", acre_str_from(policy), acre_policy_default(), &play->policy, &err);
    CHECK_STR(err.text, "");
    play->sched = acre_sched_create(&(struct acre_sched_options){.ledger = play->ledger,
                                                                 .policy = &play->policy,
                                                                 .event = on_event,
                                                                 .action = on_action,
                                                                 .context = play});
    play->plain = one_in(play, 2);
    return play;
}

void play_destroy(struct play *play) {
    acre_sched_destroy(play->sched);
    kit_destroy(play->ledger);
    free(play);
}

uint64_t play_below(struct play *play, uint64_t bound) {
    return below(play, bound);
}
