/* acre_sched_check finds what it is for: every other test of the scheduler leans on it.
 *
 * Two running jobs, and four that wait in three classes; then one record is damaged from behind,
 * through the private headers. */
#include "sched/inner.h"
#include "support/sched_kit.h"

static struct job *waiting(struct acre_sched *sched, uint64_t id) {
    struct job *job = job_find(sched, id);
    REQUIRE(job != NULL && job->stand == STAND_LINE);
    return job;
}

/* The class of job 6: not the first of the table. */
static struct job_class *last_class(struct acre_sched *sched) {
    uint32_t class = waiting(sched, 6)->class;
    REQUIRE(class > 0);
    return &sched->classes[class];
}

static void a_class_counts_one_more(struct acre_sched *sched) {
    last_class(sched)->waiting++;
}
static void a_class_lost_its_lines(struct acre_sched *sched) {
    last_class(sched)->lines = sched->classes[0].lines; /* of those that run: it has none */
}
static void a_key_was_changed(struct acre_sched *sched) {
    waiting(sched, 6)->key -= 1000000000;
}
static void a_line_says_another_first(struct acre_sched *sched) {
    sched->lines[waiting(sched, 6)->line].first_id++;
}
static void a_line_of_another_class(struct acre_sched *sched) {
    waiting(sched, 6)->class = waiting(sched, 3)->class;
}
static void a_run_without_a_state(struct acre_sched *sched) {
    job_find(sched, 1)->state = ACRE_JOB_QUEUED;
}
static void a_run_of_another_priority(struct acre_sched *sched) {
    job_find(sched, 1)->priority = ACRE_PRIORITY_HIGH;
}
static void a_run_without_its_allocation(struct acre_sched *sched) {
    sched->runs[job_find(sched, 1)->run].allocation = 0;
}
static void a_held_job_in_line(struct acre_sched *sched) {
    waiting(sched, 6)->held = true;
}
static void one_eligible_more(struct acre_sched *sched) {
    sched->counts.eligible++;
}
static void an_owner_that_holds_more(struct acre_sched *sched) {
    sched->owners[job_find(sched, 1)->account].held_milli++;
}
static void a_heavier_job(struct acre_sched *sched) {
    waiting(sched, 6)->bytes++;
}

static const struct {
    const char *what;
    void (*damage)(struct acre_sched *sched);
    const char *says;
} damages[] = {
    {"nothing", NULL, ""},
    {"a class counts one more", a_class_counts_one_more, "a class that counts its jobs wrongly"},
    {"a class lost its lines", a_class_lost_its_lines, "a class whose lines are not in order"},
    {"a key was changed", a_key_was_changed, "out of order"},
    {"a line says another first", a_line_says_another_first, "a line that is not as its jobs are"},
    {"a line of another class", a_line_of_another_class, "a line that is not its own"},
    {"a run without a state", a_run_without_a_state, "a state that is not where it stands"},
    {"a run of another priority", a_run_of_another_priority, "wrong in the list of its priority"},
    {"a run without its allocation", a_run_without_its_allocation,
     "not in the ledger as its state says"},
    {"a held job in line", a_held_job_in_line, "held and not aside"},
    {"one eligible more", one_eligible_more, "counts that differ from the jobs"},
    {"an owner that holds more", an_owner_that_holds_more,
     "an account that counts its jobs wrongly"},
    {"a heavier job", a_heavier_job, "a user whose burden is not that of the jobs"},
};

/* A damaged scheduler cannot be taken down: it is kept, so that it is no leak. */
static struct sched_kit kits[ACRE_COUNT(damages)];

static void every_damage_is_found(void) {
    for (size_t i = 0; i < ACRE_COUNT(damages); i++) {
        acre_test_context("%s", damages[i].what);
        struct sched_kit *kit = &kits[i];
        sched_kit_init(kit, "0 0", "{\"policy\": \"fcfs\", \"backfill\": false}");
        const struct acre_request requests[] = {kit_whole(1), kit_whole(1),   kit_whole(2),
                                                kit_whole(2), kit_share(500), kit_share(300)};
        for (size_t j = 0; j < ACRE_COUNT(requests); j++) {
            struct acre_job_spec spec = sched_kit_spec(kit, "ada", requests[j]);
            REQUIRE_EQ(SCHED_KIT_SUBMIT(kit, &spec), (int64_t)j + 1);
            sched_kit_settle(kit);
        }
        struct acre_error err = {0};
        REQUIRE_EQ(acre_sched_check(kit->sched, NULL), 0);
        if (damages[i].damage != NULL) {
            damages[i].damage(kit->sched);
        }
        CHECK_EQ(acre_sched_check(kit->sched, &err),
                 damages[i].damage != NULL ? ACRE_EINTERNAL : 0);
        CHECK_HAS(err.text, damages[i].says);
        if (damages[i].damage == NULL) {
            sched_kit_finish(kit);
        }
    }
}

static const struct acre_test tests[] = {
    {"every_damage_is_found", every_damage_is_found, 0},
};

ACRE_TEST_MAIN(tests)
