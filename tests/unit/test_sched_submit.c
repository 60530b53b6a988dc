/* What may enter the queue: bad fields, what never fits, quotas, dependencies, arrays (JOB-1,
 * JOB-5, POL-7). */
#include "support/sched_script.h"

/* Refused now, with the reason, not queued for ever. */
static void what_never_fits_is_refused_at_once(void) {
    CHECK_SCRIPT(
        "0 0|0 0", "{}",
        "refuse NOFIT never job 1 ada 3; refuse NOFIT never job 1 ada 3x2; refuse NOFIT never "
        "job 1 ada 99999m; refuse NOFIT never job 1 ada 100c; job 1 ada 2x2; job 2 ada 4x1; job "
        "3 ada 81559m; wait 1 2 3; log submitted 1, submitted 2, submitted 3");
}

static void a_drained_cluster_still_could(void) {
    CHECK_SCRIPT("x", "{}",
                 "job 1 ada 1; "
                 "go; "
                 "run -; "
                 "wait 1");
}

static void bad_fields_are_named(void) {
    CHECK_SCRIPT(
        "0", "{}",
        "refuse INVALID priority job 1 ada 1 prio=5; refuse INVALID priority job 1 ada 1 "
        "prio=0;refuse INVALID max_retries job 1 ada 1 retries=101; refuse INVALID id job 0 ada "
        "1; job 5 ada 1; refuse INVALID id job 5 ada 1; refuse INVALID id job 4 ada 1; refuse "
        "INVALID limit job 6 ada 1 limit=99999999999999; refuse INVALID begin job 6 ada 1 "
        "begin=99999999999999;refuse INVALID array job 6 ada 1 array=7; refuse INVALID "
        "array_limit job 6 ada 1 max=2;refuse INVALID replicas job 6 ada 0x1; refuse INVALID "
        "gpus job 6 ada 1000000000;refuse INVALID share job 6 ada 0.0; wait 5");
}

static void dependencies_must_exist_and_be_earlier(void) {
    CHECK_SCRIPT(
        "0", "{}",
        "refuse INVALID after job 1 ada 1 after=1; refuse INVALID after job 1 ada 1 after=7; "
        "refuse INVALID after job 2 ada 1 after=1; job 3 ada 1; refuse INVALID after job 4 ada "
        "1 after=2;cancel 3; refuse CONFLICT never job 4 ada 1 after=ok:3; job 4 ada 1 after=3; "
        "go; run 4");
}

/* POL-7 */
static void a_hard_quota_refuses_what_could_never_run(void) {
    CHECK_SCRIPT(
        "0 0 0 0", "{\"quotas\": [{\"who\": \"user:ada\", \"gpus\": 2}]}",
        "refuse DENIED ada job 1 ada 3; job 1 ada 2; job 2 ada 1; job 3 bob 1; go; run 1 3; "
        "wait 2;exit 1 0; go; run 2 3");
    CHECK_SCRIPT("0 0 0 0", "{\"quotas\": [{\"who\": \"project:red\", \"gpus\": 2}]}",
                 "job 1 ada 1 project=red; "
                 "job 2 bob 1 project=red; "
                 "job 3 cid 1 project=red; "
                 "job 4 ada 1 project=blue; "
                 "go; "
                 "run 1 2 4; "
                 "wait 3; "
                 "exit 4 0; "
                 "go; "
                 "run 1 2; "
                 "exit 2 0; "
                 "go; "
                 "run 1 3");
    CHECK_SCRIPT("0 0 0 0", "{\"quotas\": [{\"who\": \"user:*\", \"running\": 1}]}",
                 "job 1 ada 1; "
                 "job 2 ada 1; "
                 "job 3 bob 1; "
                 "go; "
                 "run 1 3; "
                 "cancel 1; "
                 "exit 1 0; "
                 "go; "
                 "run 2 3");
}

static void queued_jobs_are_limited(void) {
    CHECK_SCRIPT("0", "{\"quotas\": [{\"who\": \"user:ada\", \"queued\": 2}]}",
                 "job 1 ada 1; "
                 "job 2 ada 1; "
                 "refuse DENIED ada job 3 ada 1; "
                 "job 3 bob 1; "
                 "cancel 2; "
                 "job 4 ada 1; "
                 "refuse DENIED waiting job 5 ada 1; "
                 "go; "
                 "run 1; "
                 "job 5 ada 1; "
                 "refuse DENIED ada job 6 ada 1");
}

/* POL-7: while nobody else wants it. */
static void a_soft_quota_may_be_passed_after_everybody_else(void) {
    CHECK_SCRIPT("0 0 0", "{\"quotas\": [{\"who\": \"user:ada\", \"gpus\": 1, \"soft\": true}]}",
                 "job 1 ada 1; "
                 "job 2 ada 1; "
                 "job 3 ada 1; "
                 "job 4 bob 1; "
                 "go; "
                 "run 1 2 4; "
                 "wait 3; "
                 "exit 4 0; "
                 "job 5 bob 1; "
                 "go; "
                 "run 1 2 5; "
                 "wait 3");
}

/* JOB-5 */
static void dependants_wait_for_start_or_end(void) {
    CHECK_SCRIPT("0 0 0 0", "{}",
                 "job 1 ada 1; "
                 "job 2 ada 1 after=1; "
                 "job 3 ada 1 after=ok:1; "
                 "job 4 ada 1 after=any:1; "
                 "pass; "
                 "run 1; "
                 "started 1; "
                 "go; "
                 "run 1 2; "
                 "exit 1 0; "
                 "go; "
                 "run 2 3 4; "
                 "log submitted 1, submitted 2, submitted 3, submitted 4, scheduled 1, start 1, "
                 "started 1, changed 2>1, scheduled 2, start 2, launched 2, started 2, completed "
                 "1, forget 1, changed 4>1, changed 3>1, scheduled 3, start 3, scheduled 4, start "
                 "4, launched 3, started 3, launched 4, started 4");
}

/* JOB-5: transitively. */
static void a_failed_dependency_cancels_its_chain(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1; "
                 "job 2 ada 1 after=ok:1; "
                 "job 3 ada 1 after=ok:2; "
                 "job 4 ada 1 after=any:3; "
                 "job 5 ada 1 after=ok:1+any:4; "
                 "go; "
                 "exit 1 1; "
                 "state 2 canceled; "
                 "state 3 canceled; "
                 "state 5 canceled; "
                 "state 4 queued; "
                 "go; "
                 "run 4");
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1; "
                 "job 2 ada 1 after=ok:1; "
                 "cancel 1; "
                 "state 2 canceled");
}

static void a_retry_is_no_end_for_dependants(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1 retries=1; "
                 "job 2 bob 1 after=ok:1; "
                 "go; "
                 "exit 1 1; "
                 "state 2 queued; "
                 "at 10; "
                 "go; "
                 "exit 1 0; "
                 "go; "
                 "run 2");
}

static void several_dependencies_must_all_be_met(void) {
    CHECK_SCRIPT("0 0 0", "{}",
                 "job 1 ada 1; "
                 "job 2 ada 1; "
                 "job 3 ada 1 after=ok:1+ok:2; "
                 "go; "
                 "exit 2 0; "
                 "go; "
                 "run 1; "
                 "exit 1 0; "
                 "go; "
                 "run 3");
}

/* JOB-5 */
static void an_array_runs_at_most_its_limit(void) {
    CHECK_SCRIPT("0 0 0 0", "{}",
                 "job 1 ada 1 array=1 max=2; "
                 "job 2 ada 1 array=1 index=1 max=2; "
                 "job 3 ada 1 array=1 index=2 max=2; "
                 "job 4 ada 1 array=1 index=3 max=2; "
                 "go; "
                 "run 1 2; "
                 "wait 3 4; "
                 "exit 1 0; "
                 "go; "
                 "run 2 3; "
                 "cancel 4; "
                 "exit 2 0; "
                 "exit 3 0; "
                 "go; "
                 "run -; "
                 "wait -");
    CHECK_SCRIPT("0 0 0 0", "{}",
                 "job 1 ada 1 array=1 max=1; "
                 "job 2 ada 1 array=1 index=1 max=1; "
                 "job 3 ada 1 array=1 index=2 max=1; "
                 "hold 1; "
                 "go; "
                 "run 2; "
                 "release 1; "
                 "exit 2 0; "
                 "go; "
                 "run 1; "
                 "cancel 1; "
                 "exit 1 0; "
                 "go; "
                 "run 3");
}

static void an_array_without_limit_runs_as_it_fits(void) {
    CHECK_SCRIPT("0 0", "{}",
                 "job 1 ada 1 array=1; "
                 "job 2 ada 1 array=1 index=1; "
                 "job 3 ada 1 array=1 index=2; "
                 "go; "
                 "run 1 2");
}

static const struct acre_test tests[] = {
    {"what_never_fits_is_refused_at_once", what_never_fits_is_refused_at_once, 0},
    {"a_drained_cluster_still_could", a_drained_cluster_still_could, 0},
    {"bad_fields_are_named", bad_fields_are_named, 0},
    {"dependencies_must_exist_and_be_earlier", dependencies_must_exist_and_be_earlier, 0},
    {"a_hard_quota_refuses_what_could_never_run", a_hard_quota_refuses_what_could_never_run, 0},
    {"queued_jobs_are_limited", queued_jobs_are_limited, 0},
    {"a_soft_quota_may_be_passed_after_everybody_else",
     a_soft_quota_may_be_passed_after_everybody_else, 0},
    {"dependants_wait_for_start_or_end", dependants_wait_for_start_or_end, 0},
    {"a_failed_dependency_cancels_its_chain", a_failed_dependency_cancels_its_chain, 0},
    {"a_retry_is_no_end_for_dependants", a_retry_is_no_end_for_dependants, 0},
    {"several_dependencies_must_all_be_met", several_dependencies_must_all_be_met, 0},
    {"an_array_runs_at_most_its_limit", an_array_runs_at_most_its_limit, 0},
    {"an_array_without_limit_runs_as_it_fits", an_array_without_limit_runs_as_it_fits, 0},
};

ACRE_TEST_MAIN(tests)
