/* faults.c - a table of steps with weights, from which the seed draws. When the faults stop, the
 * clock moves from event to event until every job has ended: a job that does not end then would
 * have waited forever. */
#include "sim/faults.h"

#include "sim/shell.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    MINUTE_MS = 60000,
    HOUR_MS = 3600000,
    PATIENCE_MS = 10000, /* at least, from one moment of the calm to the next */
    DRAIN_ROUNDS_MAX = 50000,
};

struct faults {
    struct acre_rand rand;
    struct shell shell;
    struct fault_world world;
    struct acre_faults_counts *counts;
    struct acre_buf *story;
    uint64_t now_ms;
    bool calm; /* no more faults */
};

typedef int step_function(struct faults *faults, struct acre_error *err);

static uint32_t below(struct faults *faults, uint32_t bound) {
    return (uint32_t)acre_rand_below(&faults->rand, bound);
}

static bool chance(struct faults *faults, uint32_t percent) {
    return below(faults, 100) < percent;
}

static uint64_t any_job(struct faults *faults) {
    return faults->shell.last_job == 0 ? 0 : 1 + below(faults, (uint32_t)faults->shell.last_job);
}

/* --- people --------------------------------------------------------------------------------- */

static struct acre_request draw_request(struct faults *faults) {
    static const uint32_t shares[] = {100, 250, 500, 700, 1000, 1000, 1000};
    struct acre_request request = {
        .replicas = chance(faults, 15) ? 1 + below(faults, 4) : 1,
        .milli = shares[below(faults, ACRE_COUNT(shares))],
        .cpu_milli = below(faults, 3) * 1000,
        .ram_mib = below(faults, 3) * 2048,
    };
    request.gpus = request.milli == 1000 ? 1 + below(faults, ACRE_SHELL_GPUS) : 1;
    if (chance(faults, 5)) {
        request.gpus = 0;
        request.milli = 0;
        request.cpu_milli = 1000;
    }
    if (chance(faults, 3)) {
        request.gpus = 60; /* never fits */
        request.milli = 1000;
    }
    return request;
}

static uint32_t draw_dependencies(struct faults *faults, struct acre_dependency *dependencies) {
    uint32_t count = chance(faults, 25) && faults->shell.last_job > 0 ? 1 + below(faults, 2) : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t job = any_job(faults);
        const struct shell_row *row = &faults->shell.rows[job];
        struct acre_job known;
        bool live = acre_sched_find(faults->shell.sched, job, &known);
        if (!live && !row->there) {
            return i; /* refused, or never committed: not a job one could name */
        }
        dependencies[i] = (struct acre_dependency){
            .job = job,
            .kind = (enum acre_dependency_kind)below(faults, 3),
            .state = live ? known.state : row->job.state,
        };
    }
    return count;
}

static int submit(struct faults *faults, struct acre_error *err) {
    (void)err;
    struct shell *shell = &faults->shell;
    if (shell->last_job == ACRE_SHELL_JOBS_MAX) {
        return 0;
    }
    struct acre_dependency dependencies[2];
    struct acre_job_spec spec = {
        .id = shell->last_job + 1,
        .user = 1 + below(faults, 3),
        .project = 4 + below(faults, 2),
        .request = draw_request(faults),
        .priority = (enum acre_job_priority)(1 + below(faults, 4)),
        .estimate_ms = chance(faults, 50) ? (uint64_t)(1 + below(faults, 120)) * MINUTE_MS : 0,
        .limit_ms = chance(faults, 30) ? (uint64_t)(1 + below(faults, 300)) * MINUTE_MS : 0,
        .begin_ms = chance(faults, 10) ? faults->now_ms + below(faults, HOUR_MS) : 0,
        .max_retries = below(faults, 4),
        .held = chance(faults, 5),
        .fixed = chance(faults, 10),
        .smaller_on_oom = chance(faults, 30),
        .dependencies = dependencies,
    };
    spec.dependency_count = draw_dependencies(faults, dependencies);
    if (acre_sched_submit(shell->sched, &spec, faults->now_ms, NULL) == 0) {
        shell->last_job++; /* an id that was refused is free again */
        faults->counts->submitted++;
    }
    return 0;
}

static int cancel(struct faults *faults, struct acre_error *err) {
    (void)err;
    acre_sched_cancel(faults->shell.sched, any_job(faults), faults->now_ms, NULL);
    return 0;
}

static int hold_or_release(struct faults *faults, struct acre_error *err) {
    (void)err;
    uint64_t job = any_job(faults);
    if (chance(faults, 50)) {
        acre_sched_hold(faults->shell.sched, job, faults->now_ms, NULL);
    } else {
        acre_sched_release(faults->shell.sched, job, faults->now_ms, NULL);
    }
    return 0;
}

static int set_priority(struct faults *faults, struct acre_error *err) {
    (void)err;
    acre_sched_set_priority(faults->shell.sched, any_job(faults),
                            (enum acre_job_priority)(1 + below(faults, 4)), faults->now_ms, NULL);
    return 0;
}

static int change_policy(struct faults *faults, struct acre_error *err) {
    (void)err;
    struct acre_policy *policy = &faults->shell.policy; /* on disk before it counts */
    policy->kind = (enum acre_policy_kind)below(faults, ACRE_POLICY_COUNT);
    policy->backfill = chance(faults, 80);
    policy->preemption = chance(faults, 60);
    policy->idle = (enum acre_idle_mode)below(faults, 3);
    acre_sched_set_policy(faults->shell.sched, policy, faults->now_ms);
    return 0;
}

/* --- the process ---------------------------------------------------------------------------- */

static int pass(struct faults *faults, struct acre_error *err) {
    (void)err;
    acre_sched_pass(faults->shell.sched, faults->now_ms, chance(faults, 50) ? 0 : 3);
    return 0;
}

static int restart(struct faults *faults, struct acre_error *err) {
    int r = shell_restart(&faults->shell, &faults->world, faults->now_ms, err);
    uint64_t last = 0;
    for (uint64_t id = 1; id <= ACRE_SHELL_JOBS_MAX; id++) {
        last = faults->shell.rows[id].there ? id : last;
    }
    faults->shell.last_job = last; /* ids that were never acknowledged are given again */
    return r;
}

static int commit(struct faults *faults, struct acre_error *err) {
    if (!faults->calm && chance(faults, 3)) {
        faults->counts->failed_commits++;
        return restart(faults, err); /* what it believed is void */
    }
    shell_commit(&faults->shell);
    return 0;
}

static int crash(struct faults *faults, struct acre_error *err) {
    faults->counts->crashes++;
    return restart(faults, err);
}

static int start_run(struct faults *faults, const struct acre_sched_action *action,
                     struct acre_error *err) {
    const struct shell_row *row = &faults->shell.rows[action->job];
    struct acre_job job;
    if (!acre_sched_find(faults->shell.sched, action->job, &job) || job.canceling ||
        job.attempt != action->attempt || !acre_job_state_holds(job.state)) {
        return 0; /* canceled since it was decided: not asked for any more */
    }
    if (!row->there || row->job.attempt != action->attempt) {
        return acre_fail(err, ACRE_EINTERNAL,
                         "the start of job %lu, attempt %u was never committed",
                         (unsigned long)action->job, action->attempt);
    }
    struct world_run run = {
        .job = action->job,
        .attempt = action->attempt,
        .end_ms = faults->now_ms + below(faults, 2 * HOUR_MS),
        .exit = {.peak_gpu_mib = ACRE_UNKNOWN, .gpu_use_milli = UINT32_MAX},
        .part_count = row->part_count,
    };
    uint32_t draw = below(faults, 100);
    run.exit.kind = draw < 85   ? ACRE_EXIT_CODE
                    : draw < 90 ? ACRE_EXIT_OUT_OF_MEMORY
                    : draw < 93 ? ACRE_EXIT_DEVICE_BUSY
                    : draw < 96 ? ACRE_EXIT_TIME_LIMIT
                                : ACRE_EXIT_NOT_STARTED;
    run.exit.code = run.exit.kind == ACRE_EXIT_CODE && draw < 65 ? 0 : 1;
    for (uint32_t p = 0; p < row->part_count; p++) {
        run.parts[p] = row->parts[p];
    }
    faults->counts->runs += world_find(&faults->world, run.job, run.attempt) == NULL;
    world_start(&faults->world, &run);
    acre_sched_dispatched(faults->shell.sched, action->job, action->attempt, faults->now_ms);
    return 0;
}

/* Carry out one action: a crash may come before the next. */
static int act(struct faults *faults, struct acre_error *err) {
    struct acre_sched_action action;
    if (!shell_next_action(&faults->shell, &action)) {
        return 0;
    }
    struct world_run *run = world_find(&faults->world, action.job, action.attempt);
    switch (action.kind) {
    case ACRE_ACTION_START:
        return start_run(faults, &action, err);
    case ACRE_ACTION_TERMINATE:
    case ACRE_ACTION_KILL:
        if (run != NULL) {
            world_kill(&faults->world, run, action.kind == ACRE_ACTION_KILL ? 9 : 15);
        } else { /* the engine does not know it: it never ran */
            world_ask(&faults->world, action.job, action.attempt);
        }
        break;
    case ACRE_ACTION_CHECKPOINT:
    case ACRE_ACTION_FORGET:
        break;
    }
    return 0;
}

/* --- the world ------------------------------------------------------------------------------ */

static int hear(struct faults *faults, struct acre_error *err) {
    (void)err;
    struct world_message message;
    if (!world_take(&faults->world, &faults->rand, &message)) {
        return 0;
    }
    if (!faults->calm && chance(faults, 5)) {
        faults->counts->lost_messages++;
        return 0;
    }
    if (!faults->calm && chance(faults, 10)) {
        faults->counts->repeated_messages++;
        world_tell(&faults->world, &message);
    }
    if (message.exited) {
        acre_sched_exited(faults->shell.sched, message.job, message.attempt, &message.exit,
                          faults->now_ms);
    } else {
        acre_sched_started(faults->shell.sched, message.job, message.attempt, faults->now_ms);
    }
    return 0;
}

/* What has been silent is asked, as the daemon does from time to time. */
static int ask_all(struct faults *faults, struct acre_error *err) {
    (void)err;
    uint64_t cursor = 0;
    struct acre_job job;
    while (acre_sched_walk(faults->shell.sched, &cursor, &job)) {
        const struct world_run *run = world_find(&faults->world, job.spec.id, job.attempt);
        if (acre_job_state_holds(job.state) && run != NULL) {
            world_ask(&faults->world, job.spec.id, job.attempt);
        }
    }
    return 0;
}

static int sample(struct faults *faults, struct acre_error *err) {
    (void)err;
    uint64_t job = any_job(faults);
    struct acre_job known;
    if (acre_sched_find(faults->shell.sched, job, &known)) {
        acre_sched_sampled(faults->shell.sched, job, known.attempt,
                           chance(faults, 60) ? 0 : below(faults, 1000), faults->now_ms);
    }
    return 0;
}

static int move_clock(struct faults *faults, struct acre_error *err) {
    (void)err;
    faults->now_ms += below(faults, 20 * MINUTE_MS);
    world_move(&faults->world, faults->now_ms);
    return 0;
}

static int jump_clock(struct faults *faults, struct acre_error *err) {
    (void)err;
    faults->counts->clock_jumps++;
    if (chance(faults, 50)) {
        faults->now_ms += below(faults, 48) * (uint64_t)HOUR_MS;
    } else {
        faults->now_ms -= below(faults, 2 * HOUR_MS);
    }
    return 0;
}

static int lose_node(struct faults *faults, struct acre_error *err) {
    (void)err;
    uint32_t node = below(faults, ACRE_SHELL_NODES);
    faults->counts->vanished_nodes++;
    shell_set_node(&faults->shell, node, true);
    world_lose_node(&faults->world, node);
    return 0;
}

static int return_node(struct faults *faults, struct acre_error *err) {
    (void)err;
    shell_set_node(&faults->shell, below(faults, ACRE_SHELL_NODES), false);
    return 0;
}

static const struct step {
    const char *name;
    uint32_t weight;
    step_function *run;
} steps[] = {
    {"submit", 22, submit},
    {"cancel", 3, cancel},
    {"hold or release", 2, hold_or_release},
    {"priority", 2, set_priority},
    {"policy", 1, change_policy},
    {"pass", 16, pass},
    {"commit", 16, commit},
    {"act", 20, act},
    {"hear", 20, hear},
    {"ask all", 2, ask_all},
    {"sample", 4, sample},
    {"clock", 14, move_clock},
    {"clock jump", 1, jump_clock},
    {"crash", 3, crash},
    {"lose node", 1, lose_node},
    {"return node", 3, return_node},
};

static const struct step *draw_step(struct faults *faults) {
    uint32_t sum = 0;
    for (size_t i = 0; i < ACRE_COUNT(steps); i++) {
        sum += steps[i].weight;
    }
    uint32_t draw = below(faults, sum);
    const struct step *step = steps;
    while (draw >= step->weight) {
        draw -= step->weight;
        step++;
    }
    return step;
}

static int check(struct faults *faults, struct acre_error *err) {
    int r = shell_check(&faults->shell, err);
    return r == 0 ? world_check(&faults->world, ACRE_SHELL_NODES * ACRE_SHELL_GPUS, err) : r;
}

static int run_step(struct faults *faults, const struct step *step, struct acre_error *err) {
    uint64_t number = faults->counts->steps++;
    if (faults->story != NULL) {
        acre_buf_printf(faults->story, "%lu %s\n", (unsigned long)number, step->name);
    }
    int r = step->run(faults, err);
    r = r == 0 ? check(faults, err) : r;
    return r < 0 ? acre_fail_in(err, r, "%s", step->name) : 0;
}

/* --- the calm after ------------------------------------------------------------------------- */

static bool is_over(const struct faults *faults) {
    struct acre_sched_counts counts;
    acre_sched_counts(faults->shell.sched, &counts);
    uint32_t live = 0;
    for (uint32_t state = 0; state < ACRE_JOB_STATE_COUNT; state++) {
        live += acre_job_state_is_live((enum acre_job_state)state) ? counts.jobs[state] : 0;
    }
    return live == 0 && !shell_is_dirty(&faults->shell) && faults->shell.due_count == 0;
}

static void release_everything(struct faults *faults) {
    for (uint32_t n = 0; n < ACRE_SHELL_NODES; n++) {
        shell_set_node(&faults->shell, n, false);
    }
    for (uint64_t id = 1; id <= faults->shell.last_job; id++) {
        acre_sched_release(faults->shell.sched, id, faults->now_ms, NULL);
    }
}

/* To the next moment at which anything happens by itself. */
static void move_on(struct faults *faults) {
    uint64_t at_ms = acre_sched_next_ms(faults->shell.sched);
    for (uint32_t i = 0; i < faults->world.run_count; i++) {
        if (faults->world.runs[i].alive) {
            at_ms = ACRE_MIN(at_ms, faults->world.runs[i].end_ms);
        }
    }
    at_ms = at_ms == UINT64_MAX ? faults->now_ms + MINUTE_MS : at_ms;
    faults->now_ms = ACRE_MAX(at_ms, faults->now_ms + PATIENCE_MS);
    world_move(&faults->world, faults->now_ms);
}

static int drain(struct faults *faults, struct acre_error *err) {
    faults->calm = true;
    release_everything(faults);
    for (uint32_t round = 0; !is_over(faults); round++) {
        if (round == DRAIN_ROUNDS_MAX) {
            uint64_t cursor = 0;
            struct acre_job job = {0};
            acre_sched_walk(faults->shell.sched, &cursor, &job);
            const struct world_run *run = world_find(&faults->world, job.spec.id, job.attempt);
            return acre_fail(
                err, ACRE_EINTERNAL,
                "the faults have stopped, but job %lu is still %s (attempt %u, its run %s)",
                (unsigned long)job.spec.id, acre_job_state_name(job.state), job.attempt,
                run == NULL  ? "never started"
                : run->alive ? "lives"
                             : "has ended");
        }
        ask_all(faults, err);
        while (faults->world.message_count > 0) {
            hear(faults, err);
        }
        int r = pass(faults, err);
        r = r == 0 ? commit(faults, err) : r;
        while (r == 0 && faults->shell.due_count > 0) {
            r = act(faults, err);
        }
        r = r == 0 ? check(faults, err) : r;
        if (r < 0) {
            return acre_fail_in(err, r, "draining");
        }
        if (faults->world.message_count == 0) {
            move_on(faults);
        }
    }
    return 0;
}

/* Every job has an end, and it is the one its last run had. */
static int check_ends(struct faults *faults, struct acre_error *err) {
    for (uint64_t id = 1; id <= faults->shell.last_job; id++) {
        const struct shell_row *row = &faults->shell.rows[id];
        const struct world_run *run = world_find(&faults->world, id, row->job.attempt);
        bool good = run != NULL && run->exit.kind == ACRE_EXIT_CODE && run->exit.code == 0;
        if (!row->there || acre_job_state_is_live(row->job.state) ||
            (row->job.state == ACRE_JOB_COMPLETED) !=
                (good && row->job.state != ACRE_JOB_CANCELED)) {
            return acre_fail(err, ACRE_EINTERNAL, "job %lu ended as %s, but its last run %s",
                             (unsigned long)id, acre_job_state_name(row->job.state),
                             run == NULL ? "never started"
                             : good      ? "well"
                                         : "badly");
        }
        faults->counts->completed += row->job.state == ACRE_JOB_COMPLETED;
        faults->counts->failed += row->job.state == ACRE_JOB_FAILED;
        faults->counts->canceled += row->job.state == ACRE_JOB_CANCELED;
    }
    for (uint32_t i = 0; i < faults->world.run_count; i++) {
        if (faults->world.runs[i].alive) {
            return acre_fail(err, ACRE_EINTERNAL, "job %lu, attempt %u is still running",
                             (unsigned long)faults->world.runs[i].job,
                             faults->world.runs[i].attempt);
        }
    }
    return 0;
}

int acre_faults_run(const struct acre_faults_options *options, struct acre_faults_counts *counts,
                    struct acre_error *err) {
    struct faults *faults = acre_calloc(1, sizeof(*faults));
    faults->counts = counts;
    faults->story = options->story;
    faults->now_ms = UINT64_C(1800000000000);
    acre_rand_seed(&faults->rand, options->seed);
    shell_init(&faults->shell);
    change_policy(faults, err);
    int r = 0;
    uint32_t done = 0;
    for (; r == 0 && done < options->steps; done++) {
        r = run_step(faults, draw_step(faults), err);
    }
    r = r == 0 ? drain(faults, err) : r;
    r = r == 0 ? check_ends(faults, err) : r;
    counts->preemptions += faults->shell.preemptions;
    counts->fingerprint = faults->shell.fingerprint;
    world_finish(&faults->world);
    shell_finish(&faults->shell);
    free(faults);
    return r < 0 ? acre_fail_in(err, r, "seed %lu, step %u", (unsigned long)options->seed, done)
                 : 0;
}
