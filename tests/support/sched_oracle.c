/* sched_oracle.c - the second opinion: slow and obvious. Where the rules leave a choice (which of
 * several places the head gets), it asks only for what every choice must keep. */
#include "support/sched_play.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void oracle_blame(const struct play *play, const char *what, uint64_t a, uint64_t b) {
    fprintf(stderr, "# at %.3f s: %s (%llu, %llu)\n", (double)(play->now_ms - PLAY_START_MS) / 1000,
            what, (unsigned long long)a, (unsigned long long)b);
    uint64_t cursor = 0;
    struct acre_job job;
    while (acre_sched_walk(play->sched, &cursor, &job)) {
        char where[KIT_TEXT_MAX];
        const struct acre_request *request = &job.spec.request;
        struct acre_why why = {.text = ""};
        acre_sched_why(play->sched, job.spec.id, play->now_ms, &why, NULL);
        fprintf(stderr,
                "#   %llu %s u%u prio %u, %ux%u x %u milli %llu MiB, run %llu s, ends %.0f, %s %s "
                "[%s] eligible %.0f\n",
                (unsigned long long)job.spec.id, acre_job_state_name(job.state), job.spec.user,
                job.spec.priority, request->replicas, request->gpus, request->milli,
                (unsigned long long)request->mib,
                (unsigned long long)play->jobs[job.spec.id].run_ms / 1000,
                play->jobs[job.spec.id].end_ms == 0
                    ? 0
                    : (double)(play->jobs[job.spec.id].end_ms - PLAY_START_MS) / 1000,
                kit_where(play->ledger, job.allocation, where, sizeof(where)),
                acre_reason_name(why.reason), why.text,
                job.eligible_ms == 0 ? 0 : (double)(job.eligible_ms - PLAY_START_MS) / 1000);
    }
    REQUIRE(false);
    abort(); /* not reached */
}

static bool is_in(const uint64_t *ids, uint32_t count, uint64_t id) {
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

static void look(struct play *play, struct view *view) {
    uint64_t cursor = 0;
    memset(view, 0, sizeof(*view));
    while (acre_sched_walk(play->sched, &cursor, &view->jobs[view->count])) {
        struct acre_job *job = &view->jobs[view->count];
        struct acre_why why;
        view->any_preempted |= job->state == ACRE_JOB_PREEMPTED;
        if (job->state == ACRE_JOB_QUEUED) {
            REQUIRE(acre_sched_why(play->sched, job->spec.id, play->now_ms, &why, NULL) == 0);
            view->eligible[view->count] = why.position > 0;
            view->promised[view->count] = why.reason == ACRE_REASON_PREEMPTING;
        }
        view->count++;
    }
}

/* A second ledger with what is held, but for these jobs. */
static struct acre_ledger *copy_without(const struct play *play, const uint64_t *gone,
                                        uint32_t count) {
    struct acre_ledger *copy = play_make_cluster(play->cluster);
    struct acre_allocation held;
    uint32_t cursor = 0;
    while (acre_ledger_walk(play->ledger, &cursor, &held)) {
        if (is_in(gone, count, held.owner)) {
            continue;
        }
        struct acre_request request = play->jobs[held.owner].spec.request;
        struct acre_job job;
        REQUIRE(acre_sched_find(play->sched, held.owner, &job));
        request = job.spec.request;
        request.owner = held.owner;
        REQUIRE_EQ(acre_ledger_place(copy, &request, held.parts, held.part_count, held.id,
                                     KIT_NOW_MS, &held.id, NULL),
                   0);
    }
    return copy;
}

static bool fits(struct acre_ledger *ledger, const struct acre_request *request) {
    struct acre_part parts[PLAY_PARTS_MAX];
    uint32_t count;
    return acre_ledger_plan(ledger, request, KIT_NOW_MS, parts, PLAY_PARTS_MAX, &count, NULL) == 0;
}

static bool fits_without(const struct play *play, const struct acre_request *request,
                         const uint64_t *gone, uint32_t count) {
    struct acre_ledger *copy = copy_without(play, gone, count);
    bool does = fits(copy, request);
    kit_destroy(copy);
    return does;
}

/* When the request fits at the earliest, as runs end, with these jobs gone already. */
static uint64_t earliest_ms(const struct play *play, const struct acre_request *request,
                            const uint64_t *gone, uint32_t gone_count) {
    uint64_t out[PLAY_JOBS_MAX];
    uint32_t count = gone_count;
    if (gone_count > 0) {
        memcpy(out, gone, gone_count * sizeof(*out));
    }
    uint64_t at_ms = play->now_ms;
    while (!fits_without(play, request, out, count)) {
        uint64_t next = 0;
        for (uint32_t id = 1; id <= play->job_count; id++) {
            if (play->jobs[id].end_ms != 0 && !is_in(out, count, id) &&
                (next == 0 || play->jobs[id].end_ms < play->jobs[next].end_ms)) {
                next = id;
            }
        }
        if (next == 0) {
            return UINT64_MAX;
        }
        out[count++] = next;
        at_ms = play->jobs[next].end_ms;
    }
    return at_ms;
}

/* --- quotas --------------------------------------------------------------------------------- */

enum answer { WITHIN, OVER_SOFT, OVER_HARD };

static bool is_whose(const struct play *play, const char *who, const struct acre_job_spec *spec,
                     uint32_t *ret_name, bool *ret_user) {
    const struct acre_names *names = acre_ledger_names(play->ledger);
    *ret_user = strncmp(who, "user:", 5) == 0;
    *ret_name = *ret_user ? spec->user : spec->project;
    const char *name = strchr(who, ':') + 1;
    return strcmp(name, "*") == 0 || strcmp(name, acre_names_text(names, *ret_name)) == 0;
}

/* What this user or project holds, but for one job. */
static void held_by(const struct play *play, uint32_t name, bool user, uint64_t but,
                    uint64_t *ret_milli, uint64_t *ret_mib, uint32_t *ret_running) {
    struct acre_allocation held;
    uint32_t cursor = 0;
    *ret_milli = *ret_mib = *ret_running = 0;
    while (acre_ledger_walk(play->ledger, &cursor, &held)) {
        const struct acre_job_spec *spec = &play->jobs[held.owner].spec;
        if (held.owner == but || (user ? spec->user : spec->project) != name) {
            continue;
        }
        ++*ret_running;
        for (uint32_t i = 0; i < held.part_count; i++) {
            *ret_milli += held.parts[i].milli;
            *ret_mib += held.parts[i].mib;
        }
    }
}

static enum answer may_add(const struct play *play, const struct acre_job_spec *spec,
                           const struct acre_part *parts, uint32_t count) {
    enum answer answer = WITHIN;
    uint64_t milli = 0, mib = 0;
    for (uint32_t i = 0; i < count; i++) {
        milli += parts[i].milli;
        mib += parts[i].mib;
    }
    for (uint32_t i = 0; i < play->policy.quota_count; i++) {
        const struct acre_quota *quota = &play->policy.quotas[i];
        uint32_t name, running;
        bool user;
        uint64_t held_milli, held_mib;
        if (!is_whose(play, quota->who, spec, &name, &user)) {
            continue;
        }
        held_by(play, name, user, spec->id, &held_milli, &held_mib, &running);
        bool over = (quota->gpu_milli != 0 && held_milli + milli > quota->gpu_milli) ||
                    (quota->gpu_mib != 0 && held_mib + mib > quota->gpu_mib) ||
                    (quota->running != 0 && running + 1 > quota->running);
        if (over) {
            answer = quota->soft ? ACRE_MAX(answer, OVER_SOFT) : OVER_HARD;
        }
    }
    return answer;
}

/* With the least it can hold, when there is no place to tell by. */
static enum answer may_run(const struct play *play, const struct acre_job_spec *spec) {
    struct acre_part parts[PLAY_PARTS_MAX];
    uint32_t count;
    if (acre_ledger_plan(play->ledger, &spec->request, KIT_NOW_MS, parts, PLAY_PARTS_MAX, &count,
                         NULL) < 0) {
        const struct acre_request *request = &spec->request; /* all devices are equal here */
        uint32_t devices = request->replicas * request->gpus;
        uint64_t milli = request->milli > 0
                             ? request->milli
                             : (request->mib * 1000 + KIT_MEMORY_MIB - 1) / KIT_MEMORY_MIB;
        uint64_t mib = request->mib > 0 ? request->mib : KIT_MEMORY_MIB * milli / 1000;
        parts[0] = (struct acre_part){.milli = (uint32_t)(devices * milli),
                                      .mib = (uint32_t)(devices * mib)};
        count = 1;
    }
    return may_add(play, spec, parts, count);
}

/* --- order ---------------------------------------------------------------------------------- */

static uint64_t milli_of(const struct acre_request *request) { /* all devices are equal here */
    return request->milli > 0 ? request->milli
                              : (request->mib * 1000 + KIT_MEMORY_MIB - 1) / KIT_MEMORY_MIB;
}

static double key_of(const struct play *play, const struct acre_job *job) {
    double age = (double)play->policy.priority_age_ms;
    double eligible = (double)job->eligible_ms;
    const struct acre_request *request = &job->spec.request;
    switch (play->policy.kind) {
    case ACRE_POLICY_FCFS:
        return eligible;
    case ACRE_POLICY_SJF:
        return eligible + age * log2((double)job->spec.estimate_ms);
    case ACRE_POLICY_GANG:
        return eligible - age * log2(1.0 + (double)request->replicas * request->gpus *
                                               (double)milli_of(request));
    case ACRE_POLICY_FAIR_SHARE:
    case ACRE_POLICY_PRIORITY:
    case ACRE_POLICY_COUNT:
        break;
    }
    return eligible - age * (double)(int)job->spec.priority;
}

/* Certainly before: not within what rounding may do. */
static bool goes_before(const struct play *play, const struct acre_job *a,
                        const struct acre_job *b) {
    bool exact = play->policy.kind == ACRE_POLICY_FCFS || play->policy.kind == ACRE_POLICY_PRIORITY;
    double x = key_of(play, a), y = key_of(play, b);
    double slack = exact ? 0 : 0.1 * (double)play->policy.priority_age_ms;
    return x + slack < y || (exact && x == y && a->spec.id < b->spec.id);
}

static void check_walk(struct play *play, const struct view *view) {
    const struct acre_job *last = NULL;
    for (uint32_t i = 0; i < view->count; i++) {
        if (!view->eligible[i] || view->promised[i]) {
            continue;
        }
        if (last != NULL && play->policy.kind != ACRE_POLICY_FAIR_SHARE &&
            goes_before(play, &view->jobs[i], last)) {
            oracle_blame(play, "order", last->spec.id, view->jobs[i].spec.id);
        }
        last = &view->jobs[i];
    }
}

/* Nobody was placed before one who waits and comes earlier (POL-3); nobody at all while one within
 * his quota who comes first would fit. */
static void check_strict(struct play *play, const struct view *view) {
    if (play->policy.backfill || play->policy.kind == ACRE_POLICY_FAIR_SHARE) {
        return;
    }
    for (uint32_t i = 0; i < view->count; i++) {
        const struct acre_job *job = &view->jobs[i];
        if (!view->eligible[i] || view->promised[i] || may_run(play, &job->spec) != WITHIN) {
            continue;
        }
        for (uint32_t k = 0; k < play->placed_count; k++) {
            struct acre_job placed;
            REQUIRE(acre_sched_find(play->sched, play->placed[k], &placed));
            if (goes_before(play, job, &placed) && job->eligible_ms < play->now_ms &&
                placed.preemptions == 0 && play->policy.preemption == false) {
                oracle_blame(play, "placed before its turn", placed.spec.id, job->spec.id);
            }
        }
    }
}

/* --- backfill ------------------------------------------------------------------------------- */

static const struct acre_job *find_head(struct play *play, const struct view *view) {
    for (uint32_t i = 0; i < view->count; i++) {
        const struct acre_job *job = &view->jobs[i];
        if (view->eligible[i] && !view->promised[i] && may_run(play, &job->spec) == WITHIN) {
            if (fits(play->ledger, &job->spec.request)) {
                oracle_blame(play, "the first within its quota fits and waits", job->spec.id, 0);
            }
            return job;
        }
    }
    return NULL;
}

/* POL-6: who fits and ends before the head begins does not wait. */
static void check_conserves(struct play *play, const struct view *view) {
    const struct acre_job *head = find_head(play, view);
    if (head == NULL || !play->policy.backfill) {
        return;
    }
    uint64_t start_ms = earliest_ms(play, &head->spec.request, NULL, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        const struct acre_job *job = &view->jobs[i];
        if (!view->eligible[i] || job == head || may_run(play, &job->spec) != WITHIN ||
            !fits(play->ledger, &job->spec.request)) {
            continue;
        }
        if (start_ms == UINT64_MAX || play->now_ms + play->jobs[job->spec.id].run_ms <= start_ms) {
            oracle_blame(play, "would fit and end before the head begins", job->spec.id,
                         head->spec.id);
        }
    }
}

/* POL-6: who was placed now and comes after the head does not delay it. */
static void check_no_delay(struct play *play, const struct view *view) {
    const struct acre_job *head = find_head(play, view);
    if (head == NULL || play->policy.kind == ACRE_POLICY_FAIR_SHARE || !play->policy.backfill ||
        play->is_cut || play->policy.quota_count > 0) {
        return;
    }
    uint64_t passed[PLAY_JOBS_MAX];
    uint32_t count = 0;
    for (uint32_t k = 0; k < play->placed_count; k++) {
        struct acre_job placed;
        REQUIRE(acre_sched_find(play->sched, play->placed[k], &placed));
        if (acre_job_state_holds(placed.state) && goes_before(play, head, &placed) &&
            head->eligible_ms < play->now_ms && head->ended_ms < play->now_ms &&
            !play->jobs[placed.spec.id].was_promised) {
            passed[count++] = placed.spec.id;
        }
    }
    if (count == 0) {
        return;
    }
    uint64_t without_ms = earliest_ms(play, &head->spec.request, passed, count);
    uint64_t with_ms = earliest_ms(play, &head->spec.request, NULL, 0);
    if (with_ms > without_ms) {
        oracle_blame(play, "placed and delays the head", passed[0], head->spec.id);
    }
}

/* --- quotas, arrays, times ------------------------------------------------------------------ */

static void check_limits(struct play *play, const struct view *view) {
    for (uint32_t i = 0; i < view->count; i++) {
        const struct acre_job *job = &view->jobs[i];
        struct acre_allocation held;
        if (acre_ledger_find(play->ledger, job->allocation, &held) &&
            may_add(play, &job->spec, held.parts, held.part_count) == OVER_HARD) {
            oracle_blame(play, "over a hard quota", job->spec.id, 0);
        }
        uint32_t open = 0;
        for (uint32_t k = 0; k < view->count && job->spec.array != 0; k++) {
            open += view->jobs[k].spec.array == job->spec.array &&
                    acre_job_state_holds(view->jobs[k].state);
        }
        if (job->spec.array_limit != 0 && open > job->spec.array_limit) {
            oracle_blame(play, "over the limit of its array", job->spec.id, job->spec.array);
        }
        bool waits = job->spec.begin_ms > play->now_ms || job->not_before_ms > play->now_ms ||
                     job->spec.held || job->spec.dependency_count > 0;
        if (waits && (acre_job_state_holds(job->state) || view->eligible[i])) {
            oracle_blame(play, "begins too early", job->spec.id, 0);
        }
        if (!waits && job->state == ACRE_JOB_QUEUED && !view->eligible[i] && job->spec.array == 0) {
            oracle_blame(play, "may begin and is not in order", job->spec.id, 0);
        }
    }
}

/* POL-7: over a soft quota only with what no one within his, who is first, could use. */
static void check_soft(struct play *play, const struct view *view) {
    const struct acre_job *head = find_head(play, view);
    for (uint32_t k = 0; k < play->placed_count && head != NULL; k++) {
        struct acre_job placed;
        REQUIRE(acre_sched_find(play->sched, play->placed[k], &placed));
        struct acre_allocation held;
        if (!acre_ledger_find(play->ledger, placed.allocation, &held) ||
            may_add(play, &placed.spec, held.parts, held.part_count) != OVER_SOFT) {
            continue;
        }
        bool is_last = true; /* of its project: what came before was within */
        for (uint32_t later = k + 1; later < play->placed_count; later++) {
            is_last &= play->jobs[play->placed[later]].spec.project != placed.spec.project;
        }
        bool is_older = head->eligible_ms < play->now_ms; /* it waited when that was decided */
        if (is_older && is_last && fits_without(play, &head->spec.request, &play->placed[k], 1) &&
            may_run(play, &head->spec) == WITHIN) {
            oracle_blame(play, "over its soft quota in the place of one within", placed.spec.id,
                         head->spec.id);
        }
    }
}

static void check_answers(struct play *play, const struct view *view) {
    uint64_t next_ms = acre_sched_next_ms(play->sched);
    CHECK(next_ms > play->now_ms);
    for (uint32_t i = 0; i < view->count; i++) {
        const struct acre_job *job = &view->jobs[i];
        if (job->state != ACRE_JOB_QUEUED) {
            continue;
        }
        struct acre_why why;
        struct acre_when when;
        REQUIRE(acre_sched_why(play->sched, job->spec.id, play->now_ms, &why, NULL) == 0);
        REQUIRE(acre_sched_when(play->sched, job->spec.id, play->now_ms, &when, NULL) == 0);
        bool room = fits(play->ledger, &job->spec.request);
        bool timed = job->spec.begin_ms > play->now_ms || job->not_before_ms > play->now_ms;
        if (why.reason == ACRE_REASON_EVALUATING || why.reason == ACRE_REASON_PAUSED ||
            why.reason == ACRE_REASON_NEVER_FITS) {
            oracle_blame(play, "no reason", job->spec.id, 0);
        }
        if (why.reason == ACRE_REASON_HARD_QUOTA && may_run(play, &job->spec) == OVER_HARD) {
            continue; /* comes before all that follows */
        }
        bool is_room = why.reason == ACRE_REASON_BUSY || why.reason == ACRE_REASON_FRAGMENTED;
        if ((job->spec.held && why.reason != ACRE_REASON_HELD) ||
            (!job->spec.held && job->spec.dependency_count > 0 &&
             why.reason != ACRE_REASON_DEPENDENCY) ||
            (!job->spec.held && job->spec.dependency_count == 0 && timed &&
             why.reason != ACRE_REASON_BEGINS_LATER) ||
            (is_room && room) || (why.reason == ACRE_REASON_BEHIND && !room)) {
            oracle_blame(play, "wrong reason", job->spec.id, (uint64_t)why.reason);
        }
        if (view->eligible[i] && !view->promised[i] && may_run(play, &job->spec) == OVER_HARD &&
            why.reason != ACRE_REASON_OVER_QUOTA && !(is_room && !room)) {
            oracle_blame(play, "not the quota", job->spec.id, (uint64_t)why.reason);
        }
        if (when.known && (when.earliest_ms > when.start_ms || when.start_ms > when.latest_ms ||
                           when.earliest_ms < play->now_ms)) {
            oracle_blame(play, "when", job->spec.id, when.start_ms);
        }
        if (timed && !job->spec.held && job->spec.dependency_count == 0 &&
            next_ms >
                (job->spec.begin_ms > play->now_ms ? job->spec.begin_ms : job->not_before_ms)) {
            oracle_blame(play, "nobody wakes", job->spec.id, next_ms);
        }
    }
}

/* --- preemption ----------------------------------------------------------------------------- */

static bool may_yield(const struct play *play, const struct acre_job *job,
                      const struct acre_job *head) {
    double age = (double)play->policy.priority_age_ms;
    double earned =
        age * (double)(int)job->spec.priority + (double)(job->scheduled_ms - job->eligible_ms);
    double asked =
        age * (double)(int)head->spec.priority + (double)(play->now_ms - head->eligible_ms);
    return job->spec.priority < head->spec.priority && !job->spec.fixed && earned <= asked &&
           play->now_ms - job->started_ms >= play->policy.preempt_min_run_ms;
}

static bool has_soft(const struct play *play) {
    for (uint32_t i = 0; i < play->policy.quota_count; i++) {
        if (play->policy.quotas[i].soft) {
            return true;
        }
    }
    return false;
}

/* No set of fewer would do. */
static void check_smallest(struct play *play, const struct view *view, const struct acre_job *head,
                           const uint64_t *victims, uint32_t count) {
    uint64_t candidates[PLAY_JOBS_MAX];
    uint32_t candidate_count = 0;
    for (uint32_t i = 0; i < view->count; i++) {
        const struct acre_job *job = &view->jobs[i];
        if (is_in(victims, count, job->spec.id) ||
            (job->state == ACRE_JOB_RUNNING && may_yield(play, job, head))) {
            candidates[candidate_count++] = job->spec.id;
        }
    }
    for (uint32_t set = 0; candidate_count <= 6 && set < 1U << candidate_count; set++) {
        uint64_t some[8];
        uint32_t some_count = 0;
        for (uint32_t k = 0; k < candidate_count; k++) {
            if ((set >> k & 1) != 0) {
                some[some_count++] = candidates[k];
            }
        }
        if (some_count < count && fits_without(play, &head->spec.request, some, some_count)) {
            oracle_blame(play, "fewer would do", head->spec.id, count);
        }
    }
}

void oracle_check_victims(struct play *play) {
    struct view view;
    look(play, &view);
    for (uint32_t i = 0; i < play->victim_count; i++) {
        uint64_t for_id = play->victim_for[i];
        uint64_t set[PLAY_JOBS_MAX];
        uint32_t count = 0, promised = 0;
        struct acre_job head, victim;
        REQUIRE(acre_sched_find(play->sched, for_id, &head));
        REQUIRE(acre_sched_find(play->sched, play->victims[i], &victim));
        for (uint32_t k = 0; k < play->victim_count; k++) {
            if (play->victim_for[k] == for_id) {
                set[count++] = play->victims[k];
            }
        }
        for (uint32_t k = 0; k < view.count; k++) {
            promised += view.promised[k];
        }
        if (!may_yield(play, &victim, &head) && !has_soft(play)) {
            oracle_blame(play, "may not be preempted", victim.spec.id, for_id);
        }
        struct mjob *mine = &play->jobs[victim.spec.id];
        play->jobs[for_id].was_promised = true;
        if (!has_soft(play) && play->plain &&
            is_in(play->jobs[for_id].preempted_by, 4, victim.spec.id)) {
            oracle_blame(play, "preempts back", victim.spec.id, for_id);
        }
        mine->preempted_by[victim.preemptions % 4] = for_id;
        if (promised > 1) {
            continue;
        }
        if (!fits_without(play, &head.spec.request, set, count)) {
            oracle_blame(play, "preempted in vain", victim.spec.id, for_id);
        }
        for (uint32_t k = 0; k < count; k++) {
            uint64_t less[PLAY_JOBS_MAX];
            uint32_t n = 0;
            for (uint32_t m = 0; m < count; m++) {
                if (m != k) {
                    less[n++] = set[m];
                }
            }
            if (fits_without(play, &head.spec.request, less, n)) {
                oracle_blame(play, "could be spared", set[k], for_id);
            }
        }
        if (!has_soft(play)) {
            check_smallest(play, &view, &head, set, count);
        }
    }
    play->victim_count = 0;
}

void oracle_check(struct play *play) {
    struct view *view = acre_calloc(1, sizeof(*view));
    look(play, view);
    check_walk(play, view);
    check_limits(play, view);
    check_answers(play, view);
    if (!view->any_preempted) {
        check_strict(play, view);
        check_conserves(play, view);
        check_no_delay(play, view);
        check_soft(play, view);
    }
    play->placed_count = 0;
    play->is_cut = false;
    free(view);
}

bool oracle_is_over_hard(const struct play *play, const struct acre_job_spec *spec) {
    return may_run(play, spec) == OVER_HARD;
}
