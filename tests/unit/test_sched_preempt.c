/* Making room at the cost of others: preemption (POL-2) and idle reclaim (POL-8). */
#include "support/sched_script.h"

#include <stdio.h>

#define PRIORITY                                                                                   \
    "{\"policy\": \"priority\", \"preemption\": true, \"preempt_min_run\": \"60s\", "              \
    "\"preempt_grace\": \"30s\"}"

/* The whole story: signal, grace, SIGTERM, back with its age, in its place the one it was for. */
static void a_victim_is_warned_and_goes_back_with_its_age(void) {
    CHECK_SCRIPT("0", PRIORITY,
                 "job 1 ada 1 prio=1; "
                 "go; "
                 "log submitted 1, scheduled 1, start 1, launched 1, started 1; "
                 "at 100; "
                 "job 2 bob 1 prio=3; "
                 "go; "
                 "log submitted 2, preempted 1>2, checkpoint 1; "
                 "state 1 preempted; "
                 "run 1; "
                 "wait 2; "
                 "due 130; "
                 "at 129; "
                 "go; "
                 "log; "
                 "at 130; "
                 "go; "
                 "log terminate 1; "
                 "at 140; "
                 "die 1 signal; "
                 "state 1 queued; "
                 "tries 1 1 0; "
                 "log requeued 1>2, forget 1; "
                 "go; "
                 "run 2; "
                 "wait 1; "
                 "at 150; "
                 "job 3 cid 1 prio=1; "
                 "wait 1 3; "
                 "exit 2 0; "
                 "go; "
                 "run 1; "
                 "tries 1 2 0");
}

/* POL-2: victims of 5 for 5: one. Of two candidates only one must go. */
static void one_victim_when_one_is_enough(void) {
    CHECK_SCRIPT(
        "0 0 0 0 0|0 0 0 0 0", PRIORITY,
        "job 1 ada 5 prio=1; "
        "job 2 bob 5 prio=1; "
        "go; "
        "run 1 2; "
        "at 100; "
        "job 3 cid 5 prio=3; "
        "go; "
        "log submitted 1, submitted 2, scheduled 1, start 1, scheduled 2, start 2, launched 1, "
        "started 1, launched 2, started 2, submitted 3, preempted 2>3, checkpoint 2; "
        "exit 2 0; "
        "go; "
        "run 1 3");
}

/* POL-2: 5 + 5 for 6: both. */
static void two_victims_when_both_are_needed(void) {
    CHECK_SCRIPT("0 0 0 0 0 0 0 0 0 0", PRIORITY,
                 "job 1 ada 5 prio=1; "
                 "job 2 bob 5 prio=1; "
                 "go; "
                 "at 100; "
                 "job 3 cid 6 prio=3; "
                 "go; "
                 "state 1 preempted; "
                 "state 2 preempted; "
                 "exit 1 0; "
                 "go; "
                 "run 2; "
                 "wait 3 1; "
                 "exit 2 0; "
                 "go; "
                 "run 3; "
                 "wait 1 2");
}

/* POL-2: 3 for 10: nobody, for nothing would be won. */
static void nobody_when_it_would_not_be_enough(void) {
    CHECK_SCRIPT("0 0 0 0 0 0 0 0 0 0", PRIORITY,
                 "job 1 ada 3 prio=1; "
                 "job 2 bob 7 prio=3; "
                 "go; "
                 "at 100; "
                 "job 3 cid 10 prio=4; "
                 "hold 3; "
                 "job 4 cid 8 prio=3; "
                 "go; "
                 "run 1 2; "
                 "state 1 running; "
                 "state 2 running; "
                 "wait 4 3");
}

static const struct {
    const char *what, *script;
} spared[] = {
    {"the same priority", "job 1 ada 1 prio=2; "
                          "go; "
                          "at 100; "
                          "job 2 bob 1 prio=2; "
                          "go; "
                          "state 1 running"},
    {"a higher one", "job 1 ada 1 prio=3; "
                     "go; "
                     "at 100; "
                     "job 2 bob 1 prio=2; "
                     "go; "
                     "state 1 running"},
    {"fixed", "job 1 ada 1 prio=1 fixed; "
              "go; "
              "at 100; "
              "job 2 bob 1 prio=4; "
              "go; "
              "state 1 running"},
    {"too young", "job 1 ada 1 prio=1; "
                  "go; "
                  "at 59; "
                  "job 2 bob 1 prio=4; "
                  "go; "
                  "state 1 running; "
                  "due 60; "
                  "at 60; "
                  "go; "
                  "state 1 preempted"},
    {"not started", "job 1 ada 1 prio=1; "
                    "pass; "
                    "at 100; "
                    "job 2 bob 1 prio=4; "
                    "go; "
                    "at 101; "
                    "state 1 running"},
    {"being canceled", "job 1 ada 1 prio=1; "
                       "go; "
                       "at 100; "
                       "cancel 1; "
                       "job 2 bob 1 prio=4; "
                       "go; "
                       "state 1 running; "
                       "exit 1 0; "
                       "state 1 canceled; "
                       "go; "
                       "run 2"},
};

static void some_are_spared(void) {
    for (size_t i = 0; i < ACRE_COUNT(spared); i++) {
        acre_test_context("%s", spared[i].what);
        CHECK_SCRIPT("0", PRIORITY, spared[i].script);
    }
}

/* A gang goes as a whole, also when one of its members would be enough. */
static void a_gang_goes_as_a_whole(void) {
    CHECK_SCRIPT("0 0|0 0", PRIORITY,
                 "job 1 ada 2x2 prio=1; "
                 "go; "
                 "at 100; "
                 "job 2 bob 1 prio=3; "
                 "go; "
                 "state 1 preempted; "
                 "exit 1 0; "
                 "go; "
                 "where 2 a/0; "
                 "wait 1");
}

/* The youngest of the lowest priority goes first: least is lost. */
static void the_youngest_of_the_lowest_goes_first(void) {
    CHECK_SCRIPT("0 0 0", PRIORITY,
                 "job 1 ada 1 prio=2; "
                 "job 2 ada 1 prio=1; "
                 "go; "
                 "at 10; "
                 "job 3 ada 1 prio=1; "
                 "go; "
                 "at 100; "
                 "job 4 bob 1 prio=3; "
                 "go; "
                 "state 3 preempted; "
                 "state 2 running; "
                 "state 1 running; "
                 "at 101; "
                 "job 5 bob 1 prio=3; "
                 "go; "
                 "state 2 preempted; "
                 "at 102; "
                 "job 6 bob 1 prio=3; "
                 "go; "
                 "state 1 preempted");
}

/* What victims give back is kept for whom it is, one by one. */
static void the_place_is_kept_until_all_are_gone(void) {
    CHECK_SCRIPT("0 0", "{\"policy\": \"priority\", \"preemption\": true, \"backfill\": true}",
                 "job 1 ada 1 prio=1; "
                 "job 2 bob 1 prio=1; "
                 "go; "
                 "at 100; "
                 "job 3 cid 2 prio=3; "
                 "go; "
                 "state 1 preempted; "
                 "state 2 preempted; "
                 "exit 1 0; "
                 "job 4 dan 1 prio=2 limit=5; "
                 "job 5 dan 0.1 prio=2 limit=1; "
                 "go; "
                 "run 2; "
                 "exit 2 0; "
                 "go; "
                 "run 3; "
                 "wait 4 5 1 2");
}

static void a_canceled_preemptor_gives_its_place_up(void) {
    CHECK_SCRIPT("0 0", "{\"policy\": \"priority\", \"preemption\": true, \"backfill\": true}",
                 "job 1 ada 1 prio=1; "
                 "job 2 bob 1 prio=1; "
                 "go; "
                 "at 100; "
                 "job 3 cid 2 prio=3; "
                 "go; "
                 "exit 1 0; "
                 "job 4 dan 1 prio=2; "
                 "go; "
                 "run 2; "
                 "cancel 3; "
                 "go; "
                 "run 2 4; "
                 "exit 2 0; "
                 "go; "
                 "wait 2");
    CHECK_SCRIPT("0", "{\"policy\": \"priority\", \"preemption\": true}",
                 "job 1 ada 1 prio=1; "
                 "go; "
                 "at 100; "
                 "job 3 cid 1 prio=3; "
                 "go; "
                 "hold 3; "
                 "exit 1 0; "
                 "go; "
                 "run 1; "
                 "release 3; "
                 "prio 3 2; "
                 "policy {\"policy\": \"fcfs\"}; "
                 "go; "
                 "wait 3");
}

/* A preempted job may be canceled by its owner. */
static void a_victim_may_be_canceled(void) {
    CHECK_SCRIPT("0", PRIORITY,
                 "job 1 ada 1 prio=1; "
                 "go; "
                 "at 100; "
                 "job 2 bob 1 prio=3; "
                 "go; "
                 "cancel 1; "
                 "exit 1 0; "
                 "state 1 canceled; "
                 "go; "
                 "run 2");
}

/* POL-7: whoever holds more than a soft quota is first to yield, even to the same priority. */
static void over_a_soft_quota_yields_first(void) {
    CHECK_SCRIPT(
        "0 0",
        "{\"policy\": \"priority\", \"preemption\": true, \"quotas\": [{\"who\": \"user:ada\", "
        "\"gpus\": 1, \"soft\": true}]}",
        "job 1 ada 1; "
        "job 2 ada 1; "
        "go; "
        "run 1 2; "
        "at 100; "
        "job 3 bob 1; "
        "go; "
        "state 2 preempted; "
        "state 1 running; "
        "exit 2 0; "
        "go; "
        "run 1 3");
}

/* With many candidates the set is looked for where the job fits first. */
static void many_candidates_are_narrowed_to_one_place(void) {
    char script[16384];
    int length = 0;
    for (int i = 1; i <= 160; i++) {
        length += snprintf(script + length, sizeof(script) - (size_t)length,
                           "job %d u%d 0.1 prio=1;", i, i % 7);
    }
    snprintf(script + length, sizeof(script) - (size_t)length,
             "go; "
             "at 100; "
             "job 200 bob 1 prio=3; "
             "go; "
             "wait 200; "
             "state 160 preempted; "
             "state 151 preempted; "
             "state 150 running; "
             "state 1 running");
    CHECK_SCRIPT("0 0 0 0|0 0 0 0|0 0 0 0|0 0 0 0", PRIORITY, script);
}

#define IDLE(mode)                                                                                 \
    "{\"idle\": \"" mode "\", \"idle_after\": \"10m\", \"idle_warn\": \"2m\", "                    \
    "\"preempt_grace\": \"30s\"}"

/* POL-8 */
static void an_idle_run_yields_when_somebody_waits(void) {
    CHECK_SCRIPT("0 0", IDLE("on-pressure"),
                 "job 1 ada 1; "
                 "job 2 ada 1; "
                 "go; "
                 "at 60; "
                 "use 1 10; "
                 "use 2 500; "
                 "at 530; "
                 "use 1 49; "
                 "at 541; "
                 "use 1 0; "
                 "log submitted 1, submitted 2, scheduled 1, start 1, scheduled 2, start 2, "
                 "launched 1, started 1, launched 2, started 2, idle 1; "
                 "at 700; "
                 "go; "
                 "state 1 running; "
                 "job 3 bob 1; "
                 "go; "
                 "log submitted 3, reclaimed 1>3, checkpoint 1; "
                 "exit 1 0; "
                 "go; "
                 "run 2 3; "
                 "wait 1");
}

static void a_run_that_wakes_up_is_spared(void) {
    CHECK_SCRIPT("0", IDLE("on-pressure"),
                 "job 1 ada 1; "
                 "job 2 bob 1; "
                 "go; "
                 "use 1 0; "
                 "at 480; "
                 "use 1 0; "
                 "at 590; "
                 "use 1 50; "
                 "at 700; "
                 "go; "
                 "run 1; "
                 "state 1 running; "
                 "use 1 0; "
                 "at 1000; "
                 "use 1 0; "
                 "go; "
                 "state 1 running");
}

/* POL-8: fit check first, all or nothing, longest idle first. */
static void idle_runs_yield_only_if_that_is_enough(void) {
    CHECK_SCRIPT("0 0 0", IDLE("on-pressure"),
                 "job 1 ada 1; "
                 "job 2 ada 1; "
                 "job 3 ada 1; "
                 "go; "
                 "at 1; "
                 "use 2 0; "
                 "at 2; "
                 "use 1 0; "
                 "at 500; "
                 "use 1 0; "
                 "use 2 0; "
                 "at 700; "
                 "job 4 bob 3; "
                 "go; "
                 "run 1 2 3; "
                 "state 1 running; "
                 "job 5 bob 1; "
                 "at 702; "
                 "go; "
                 "state 2 preempted; "
                 "state 1 running");
}

static void idle_modes_differ(void) {
    CHECK_SCRIPT("0 0", IDLE("always"),
                 "job 1 ada 1; "
                 "go; "
                 "at 1; "
                 "use 1 0; "
                 "at 500; "
                 "use 1 0; "
                 "at 619; "
                 "go; "
                 "state 1 running; "
                 "at 621; "
                 "go; "
                 "state 1 preempted; "
                 "exit 1 0; "
                 "go; "
                 "run -; "
                 "at 631; "
                 "go; "
                 "run 1");
    CHECK_SCRIPT("0", IDLE("never"),
                 "job 1 ada 1; "
                 "job 2 bob 1; "
                 "go; "
                 "at 1; "
                 "use 1 0; "
                 "at 500; "
                 "use 1 0; "
                 "at 700; "
                 "use 1 0; "
                 "go; "
                 "state 1 running");
    CHECK_SCRIPT("0", IDLE("always"),
                 "job 1 ada 1 fixed; "
                 "go; "
                 "at 1; "
                 "use 1 0; "
                 "at 900; "
                 "use 1 0; "
                 "at 1200; "
                 "use 1 0; "
                 "go; "
                 "state 1 running");
}

/* Warned, at work, and warned again before anybody looked: it yields once. */
static void a_run_that_was_warned_twice_yields_once(void) {
    static const char script[] =
        "job 1 ada 1; "
        "go; "
        "pause; "
        "use 1 0; "
        "at 480; "
        "use 1 0; "
        "at 490; "
        "use 1 900; "
        "at 500; "
        "use 1 0; "
        "at 980; "
        "use 1 0; "
        "log submitted 1, scheduled 1, start 1, launched 1, started 1, idle 1, idle 1; "
        "resume; "
        "at 1200; "
        "job 2 bob 1; "
        "go; "
        "state 1 preempted; "
        "run 1; "
        "wait 2; "
        "exit 1 0; "
        "go";
    CHECK_SCRIPT("0", IDLE("always"), script);
    CHECK_SCRIPT("0", IDLE("on-pressure"), script);
}

static const struct acre_test tests[] = {
    {"a_victim_is_warned_and_goes_back_with_its_age", a_victim_is_warned_and_goes_back_with_its_age,
     0},
    {"one_victim_when_one_is_enough", one_victim_when_one_is_enough, 0},
    {"two_victims_when_both_are_needed", two_victims_when_both_are_needed, 0},
    {"nobody_when_it_would_not_be_enough", nobody_when_it_would_not_be_enough, 0},
    {"some_are_spared", some_are_spared, 0},
    {"a_gang_goes_as_a_whole", a_gang_goes_as_a_whole, 0},
    {"the_youngest_of_the_lowest_goes_first", the_youngest_of_the_lowest_goes_first, 0},
    {"the_place_is_kept_until_all_are_gone", the_place_is_kept_until_all_are_gone, 0},
    {"a_canceled_preemptor_gives_its_place_up", a_canceled_preemptor_gives_its_place_up, 0},
    {"a_victim_may_be_canceled", a_victim_may_be_canceled, 0},
    {"over_a_soft_quota_yields_first", over_a_soft_quota_yields_first, 0},
    {"many_candidates_are_narrowed_to_one_place", many_candidates_are_narrowed_to_one_place, 0},
    {"an_idle_run_yields_when_somebody_waits", an_idle_run_yields_when_somebody_waits, 0},
    {"a_run_that_wakes_up_is_spared", a_run_that_wakes_up_is_spared, 0},
    {"idle_runs_yield_only_if_that_is_enough", idle_runs_yield_only_if_that_is_enough, 0},
    {"idle_modes_differ", idle_modes_differ, 0},
    {"a_run_that_was_warned_twice_yields_once", a_run_that_was_warned_twice_yields_once, 0},
};

ACRE_TEST_MAIN(tests)
