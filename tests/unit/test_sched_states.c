/* The life of a job: states, facts, cancel, hold, retries (JOB-2, JOB-3, JOB-4). */
#include "support/sched_script.h"

#include <stdio.h>

/* JOB-2 */
static void a_job_goes_from_queued_to_completed(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1; "
                 "state 1 queued; "
                 "log submitted 1; "
                 "pass; "
                 "state 1 scheduled; "
                 "where 1 a/0; "
                 "log scheduled 1, start 1; "
                 "launched 1; "
                 "state 1 allocating; "
                 "log launched 1; "
                 "started 1; "
                 "state 1 running; "
                 "log started 1; "
                 "exit 1 0; "
                 "state 1 completed; "
                 "log completed 1, forget 1; "
                 "where 1 -; "
                 "drop 1; "
                 "bad NOTFOUND cancel 1; "
                 "due now; "
                 "pass; "
                 "due never");
}

/* A start may be all that is heard. */
static void facts_may_skip_states(void) {
    CHECK_SCRIPT("0 0", "{}",
                 "job 1 ada 1; "
                 "job 2 ada 1; "
                 "pass; "
                 "log submitted 1, submitted 2, scheduled 1, start 1, scheduled 2, start 2; "
                 "started 1; "
                 "state 1 running; "
                 "exit 2 0; "
                 "state 2 completed");
}

/* Facts come late and twice. */
static void facts_that_do_not_fit_are_ignored(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1 retries=1; "
                 "started 1; "
                 "exit 1 0; "
                 "state 1 queued; "
                 "go; "
                 "exit 1 1; "
                 "state 1 queued; "
                 "exit 1 0; "
                 "state 1 queued; "
                 "at 11; "
                 "go; "
                 "state 1 running; "
                 "late 1 0; "
                 "state 1 running; "
                 "tries 1 2 1; "
                 "started 1; "
                 "launched 1; "
                 "state 1 running; "
                 "exit 1 0; "
                 "exit 1 1; "
                 "state 1 completed");
}

/* JOB-3 */
static void cancel_works_in_every_live_state(void) {
    CHECK_SCRIPT(
        "0", "{}",
        "job 1 ada 1; "
        "cancel 1; "
        "state 1 canceled; "
        "log submitted 1, canceled 1; "
        "job 2 ada 1; "
        "pass; "
        "cancel 2; "
        "state 2 canceled; "
        "where 2 -; "
        "log submitted 2, scheduled 2, start 2, canceled 2, forget 2; "
        "job 3 ada 1; "
        "pass; "
        "launched 3; "
        "cancel 3; "
        "state 3 allocating; "
        "exit 3 0; "
        "state 3 canceled; "
        "job 4 ada 1; "
        "job 5 bob 1; "
        "go; "
        "log submitted 3, scheduled 3, start 3, launched 3, canceling 3, terminate 3, canceled 3, "
        "forget 3, submitted 4, submitted 5, scheduled 4, start 4, launched 4, started 4; "
        "cancel 4; "
        "state 4 running; "
        "run 4; "
        "cancel 4; "
        "log canceling 4, terminate 4, kill 4; "
        "die 4 signal; "
        "state 4 canceled; "
        "go; "
        "run 5; "
        "bad NOTFOUND cancel 4; "
        "bad NOTFOUND cancel 9");
}

/* JOB-5 */
static void a_held_job_waits_until_it_is_released(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1 held; "
                 "job 2 ada 1 held; "
                 "go; "
                 "run -; "
                 "wait 1 2; "
                 "bad CONFLICT hold 1; "
                 "release 2; "
                 "bad CONFLICT release 2; "
                 "go; "
                 "run 2; "
                 "wait 1");
}

static void a_hold_applies_to_queued_jobs_only(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1; "
                 "job 2 ada 1; "
                 "go; "
                 "bad CONFLICT hold 1; "
                 "bad CONFLICT release 1; "
                 "bad CONFLICT prio 1 3; "
                 "bad INVALID prio 2 5; "
                 "bad INVALID prio 2 0; "
                 "hold 2; "
                 "exit 1 0; "
                 "go; "
                 "run -; "
                 "release 2; "
                 "go; "
                 "run 2; "
                 "bad NOTFOUND hold 1; "
                 "bad NOTFOUND prio 7 1");
}

/* JOB-5 */
static void begin_at_keeps_a_job_aside(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1 begin=60; "
                 "go; "
                 "run -; "
                 "due 60; "
                 "at 59; "
                 "go; "
                 "run -; "
                 "at 60; "
                 "go; "
                 "run 1; "
                 "log submitted 1, changed 1, scheduled 1, start 1, launched 1, started 1");
}

/* JOB-4: 10 s, doubling, 30 min at most. */
static void retries_back_off_exponentially(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1 retries=2; "
                 "go; "
                 "exit 1 1; "
                 "state 1 queued; "
                 "tries 1 1 1; "
                 "go; "
                 "due 10; "
                 "at 9; "
                 "go; "
                 "run -; "
                 "at 10; "
                 "go; "
                 "run 1; "
                 "exit 1 1; "
                 "tries 1 2 2; "
                 "go; "
                 "due 30; "
                 "at 30; "
                 "go; "
                 "run 1; "
                 "tries 1 3 2; "
                 "exit 1 1; "
                 "state 1 failed");
    CHECK_SCRIPT("0", "{\"retry_base\": \"10m\", \"retry_max\": \"15m\"}",
                 "job 1 ada 1 retries=3; "
                 "go; "
                 "exit 1 1; "
                 "go; "
                 "due 600; "
                 "at 600; "
                 "go; "
                 "exit 1 1; "
                 "go; "
                 "due 1500; "
                 "at 1500; "
                 "go; "
                 "exit 1 1; "
                 "go; "
                 "due 2400");
}

static const struct {
    const char *kind, *after;
    unsigned retries;
} exits[] = {
    {"signal", "queued", 1},  {"oom", "queued", 1},  {"busy", "queued", 1},
    {"nostart", "queued", 1}, {"lost", "queued", 0}, {"time", "failed", 0},
};

/* JOB-4: what is retried, and what a retry costs. */
static void every_kind_of_exit_has_its_consequence(void) {
    for (size_t i = 0; i < ACRE_COUNT(exits); i++) {
        char script[256];
        snprintf(script, sizeof(script),
                 "job 1 ada 1 retries=1; "
                 "go; "
                 "die 1 %s; "
                 "state 1 %s; "
                 "tries 1 1 %u",
                 exits[i].kind, exits[i].after, exits[i].retries);
        CHECK_SCRIPT("0", "{}", script);
    }
}

static void a_failure_without_retries_is_final(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1; "
                 "go; "
                 "exit 1 3; "
                 "state 1 failed; "
                 "job 2 ada 1; "
                 "go; "
                 "run 2; "
                 "die 2 lost; "
                 "state 2 queued; "
                 "at 10; "
                 "go; "
                 "run 2; "
                 "tries 2 2 0");
}

/* JOB-4 */
static void a_retry_after_out_of_memory_may_be_smaller(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 0.8 retries=3 oom; "
                 "go; "
                 "die 1 oom; "
                 "log submitted 1, scheduled 1, start 1, launched 1, started 1, changed 1, "
                 "requeued 1, forget 1; "
                 "job 2 bob 0.6; "
                 "at 10; "
                 "go; "
                 "run 1 2; "
                 "die 1 oom; "
                 "at 30; "
                 "go; "
                 "run 1 2; "
                 "die 1 oom; "
                 "at 100; "
                 "go; "
                 "run 1 2; "
                 "tries 1 4 3; "
                 "die 1 oom; "
                 "state 1 failed");
}

static void a_whole_exclusive_device_does_not_shrink(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1 retries=1 oom exclusive; "
                 "go; "
                 "die 1 oom; "
                 "at 10; "
                 "go; "
                 "job 2 bob 0.5; "
                 "go; "
                 "run 1; "
                 "wait 2");
}

/* The orchestrator is stopped. */
static void paused_places_nothing_and_stops_nothing(void) {
    CHECK_SCRIPT("0 0", "{}",
                 "job 1 ada 1; "
                 "go; "
                 "pause; "
                 "job 2 ada 1; "
                 "go; "
                 "run 1; "
                 "exit 1 0; "
                 "state 1 completed; "
                 "go; "
                 "run -; "
                 "resume; "
                 "go; "
                 "run 2");
}

static const struct acre_test tests[] = {
    {"a_job_goes_from_queued_to_completed", a_job_goes_from_queued_to_completed, 0},
    {"facts_may_skip_states", facts_may_skip_states, 0},
    {"facts_that_do_not_fit_are_ignored", facts_that_do_not_fit_are_ignored, 0},
    {"cancel_works_in_every_live_state", cancel_works_in_every_live_state, 0},
    {"a_held_job_waits_until_it_is_released", a_held_job_waits_until_it_is_released, 0},
    {"a_hold_applies_to_queued_jobs_only", a_hold_applies_to_queued_jobs_only, 0},
    {"begin_at_keeps_a_job_aside", begin_at_keeps_a_job_aside, 0},
    {"retries_back_off_exponentially", retries_back_off_exponentially, 0},
    {"every_kind_of_exit_has_its_consequence", every_kind_of_exit_has_its_consequence, 0},
    {"a_failure_without_retries_is_final", a_failure_without_retries_is_final, 0},
    {"a_retry_after_out_of_memory_may_be_smaller", a_retry_after_out_of_memory_may_be_smaller, 0},
    {"a_whole_exclusive_device_does_not_shrink", a_whole_exclusive_device_does_not_shrink, 0},
    {"paused_places_nothing_and_stops_nothing", paused_places_nothing_and_stops_nothing, 0},
};

ACRE_TEST_MAIN(tests)
