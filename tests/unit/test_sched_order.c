/* Who goes before whom, and who may pass (POL-1, POL-3 to POL-6). */
#include "support/sched_script.h"

/* POL-3 */
static void fcfs_goes_by_time_then_id(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1; "
                 "job 2 bob 1 prio=4; "
                 "at 5; "
                 "job 3 cid 1; "
                 "wait 1 2 3; "
                 "go; "
                 "run 1; "
                 "exit 1 0; "
                 "go; "
                 "run 2; "
                 "exit 2 0; "
                 "go; "
                 "run 3");
}

static void strict_order_blocks_behind_the_head(void) {
    CHECK_SCRIPT("0 0", "{}",
                 "job 1 ada 1; "
                 "job 2 bob 2; "
                 "job 3 cid 1; "
                 "go; "
                 "run 1; "
                 "wait 2 3; "
                 "exit 1 0; "
                 "go; "
                 "run 2");
}

/* POL-2 */
static void priority_goes_first_and_waiting_raises(void) {
    CHECK_SCRIPT("0", "{\"policy\": \"priority\", \"priority_age\": \"1h\"}",
                 "job 1 ada 1 prio=1; "
                 "job 2 ada 1 prio=3; "
                 "job 3 ada 1 prio=2; "
                 "wait 2 3 1; "
                 "at 3500; "
                 "job 4 bob 1 prio=2; "
                 "wait 2 3 4 1; "
                 "at 3601; "
                 "job 5 bob 1 prio=2; "
                 "wait 2 3 4 1 5");
}

static void priority_changes_while_queued(void) {
    CHECK_SCRIPT("0", "{\"policy\": \"priority\"}",
                 "job 1 ada 1; "
                 "job 2 ada 1; "
                 "prio 2 4; "
                 "wait 2 1; "
                 "log submitted 1, submitted 2, priority 2; "
                 "prio 2 1; "
                 "wait 1 2");
}

/* POL-4 */
static void sjf_goes_by_estimate_and_waiting_raises(void) {
    CHECK_SCRIPT("0", "{\"policy\": \"sjf\", \"priority_age\": \"1h\"}",
                 "job 1 ada 1 est=3600; "
                 "job 2 bob 1 est=60; "
                 "job 3 cid 1 est=600; "
                 "job 4 dan 1 est=100000; "
                 "wait 2 3 1 4; "
                 "at 100000; "
                 "job 5 eve 1 est=60; "
                 "wait 2 3 1 4 5");
}

/* POL-5 */
static void gang_goes_by_size_and_waiting_raises(void) {
    CHECK_SCRIPT("0 0 0 0|0 0 0 0", "{\"policy\": \"gang\", \"priority_age\": \"1h\"}",
                 "job 1 ada 1; "
                 "job 2 ada 2x4; "
                 "job 3 ada 4; "
                 "wait 2 3 1; "
                 "at 20000; "
                 "job 4 bob 4; "
                 "wait 2 3 1 4");
}

static void gangs_are_placed_whole_or_not(void) {
    CHECK_SCRIPT("0 0|0 0", "{}",
                 "job 1 ada 1; "
                 "go; "
                 "job 2 bob 2x2; "
                 "go; "
                 "run 1; "
                 "exit 1 0; "
                 "go; "
                 "where 2 a/0 a/1 b/0 b/1");
}

/* POL-1: who has used less for its share goes first. */
static void fair_share_serves_who_used_less(void) {
    CHECK_SCRIPT("0", "{\"policy\": \"fair-share\"}",
                 "job 1 ada 1; "
                 "go; "
                 "job 2 ada 1; "
                 "job 3 bob 1; "
                 "at 100; "
                 "wait 3 2; "
                 "exit 1 0; "
                 "go; "
                 "run 3; "
                 "wait 2; "
                 "at 200; "
                 "exit 3 0; "
                 "job 4 ada 1; "
                 "job 5 bob 1; "
                 "go; "
                 "run 2");
}

/* One pass does not give everything to whoever comes first. */
static void fair_share_divides_an_empty_cluster(void) {
    CHECK_SCRIPT("0 0 0 0", "{\"policy\": \"fair-share\"}",
                 "job 1 ada 1; "
                 "job 2 ada 1; "
                 "job 3 ada 1; "
                 "job 4 ada 1; "
                 "job 5 bob 1; "
                 "job 6 bob 1; "
                 "go; "
                 "run 1 2 5 6; "
                 "wait 3 4");
    CHECK_SCRIPT(
        "0 0 0 0",
        "{\"policy\": \"fair-share\", \"shares\": [{\"who\": \"project:p-ada\", \"weight\": 3}]}",
        "job 1 bob 1; "
        "job 2 bob 1; "
        "job 3 ada 1; "
        "job 4 ada 1; "
        "job 5 ada 1; "
        "job 6 ada 1; "
        "go; "
        "run 1 3 4 5");
}

static void fair_share_orders_one_account_by_priority(void) {
    CHECK_SCRIPT("0", "{\"policy\": \"fair-share\"}",
                 "job 1 ada 1 prio=1; "
                 "job 2 ada 0.5 prio=3; "
                 "job 3 ada 1 prio=2; "
                 "go; "
                 "run 2; "
                 "wait 3 1");
}

/* A new policy takes effect at once (POL-10). */
static void a_new_policy_orders_everything_anew(void) {
    CHECK_SCRIPT("0", "{}",
                 "job 1 ada 1 prio=1 est=60; "
                 "job 2 bob 1 prio=4 est=600; "
                 "job 3 ada 1 held; "
                 "wait 1 2 3; "
                 "policy {\"policy\": \"priority\"}; "
                 "wait 2 1 3; "
                 "policy {\"policy\": \"fair-share\"}; "
                 "wait 1 2 3; "
                 "policy {\"policy\": \"sjf\"}; "
                 "wait 1 2 3; "
                 "policy {\"policy\": \"priority\"}; "
                 "go; "
                 "run 2");
}

/* A pass of few tries goes on where it stopped. */
static void tries_bound_a_pass(void) {
    CHECK_SCRIPT("0 0", "{\"backfill\": true}",
                 "job 1 ada 1 limit=100; "
                 "job 2 ada 2 limit=100; "
                 "job 3 ada 0.5 limit=100; "
                 "job 4 ada 0.4 limit=100; "
                 "pass 1; "
                 "run 1; "
                 "due now; "
                 "pass 1; "
                 "pass 1; "
                 "pass 1; "
                 "pass 1; "
                 "run 1 3 4");
}

/* POL-6 */
static void backfill_passes_if_it_ends_before_the_head_begins(void) {
    CHECK_SCRIPT("0 0", "{\"backfill\": true}",
                 "job 1 ada 1 limit=100; "
                 "job 2 bob 2 limit=50; "
                 "job 3 cid 1 limit=101; "
                 "job 4 dan 1 limit=100; "
                 "go; "
                 "run 1 4; "
                 "wait 2 3; "
                 "at 50; "
                 "exit 1 0; "
                 "go; "
                 "run 4; "
                 "at 100; "
                 "exit 4 0; "
                 "go; "
                 "run 2; "
                 "wait 3");
}

static void backfill_passes_if_it_stays_out_of_the_heads_place(void) {
    /* The head needs both devices of b when 2 ends; a is nobody's. */
    CHECK_SCRIPT("0|0 0", "{\"backfill\": true}",
                 "job 1 ada 1 limit=1000; "
                 "job 2 bob 1 limit=100; "
                 "go; "
                 "where 1 a/0; "
                 "where 2 b/0; "
                 "job 3 cid 2 limit=50; "
                 "job 4 dan 1 limit=500; "
                 "go; "
                 "run 1 2; "
                 "wait 3 4; "
                 "exit 1 0; "
                 "go; "
                 "run 2 4; "
                 "where 4 a/0; "
                 "at 60; "
                 "exit 2 0; "
                 "go; "
                 "run 3 4");
}

/* A fraction on a device that the head needs whole delays it as much as a whole one. */
static void a_fraction_may_not_delay_the_head_either(void) {
    CHECK_SCRIPT("0 0", "{\"backfill\": true}",
                 "job 1 ada 1 limit=100; "
                 "go; "
                 "job 2 bob 2 limit=50; "
                 "job 3 cid 0.1 limit=200; "
                 "job 4 cid 0.1 limit=90; "
                 "go; "
                 "run 1 4; "
                 "wait 2 3");
}

static void beside_a_fraction_the_rest_may_be_used(void) {
    /* The head needs 0.6 of the one device at 100; 0.4 of it are free for as long as one likes. */
    CHECK_SCRIPT("0", "{\"backfill\": true}",
                 "job 1 ada 0.5 limit=100; "
                 "go; "
                 "job 2 bob 0.6 limit=50; "
                 "job 3 cid 0.5 limit=500; "
                 "job 4 dan 0.4 limit=500; "
                 "go; "
                 "run 1 4; "
                 "wait 2 3; "
                 "exit 1 0; "
                 "at 100; "
                 "go; "
                 "run 2 4");
}

static void the_head_moves_up_when_runs_end_early(void) {
    CHECK_SCRIPT("0 0", "{\"backfill\": true}",
                 "job 1 ada 1 limit=1000; "
                 "job 2 ada 1 limit=500; "
                 "go; "
                 "job 3 bob 2 limit=10; "
                 "job 4 cid 1 limit=600; "
                 "go; "
                 "wait 3 4; "
                 "at 10; "
                 "exit 2 0; "
                 "go; "
                 "run 1 4; "
                 "wait 3");
}

/* Runs that overstay do not let the head starve: it is planned anew. */
static void overstaying_runs_move_the_head(void) {
    CHECK_SCRIPT("0 0", "{\"backfill\": true}",
                 "job 1 ada 1 est=100; "
                 "go; "
                 "job 2 bob 2 limit=50; "
                 "job 3 cid 1 limit=200; "
                 "go; "
                 "run 1; "
                 "at 101; "
                 "go; "
                 "run 1; "
                 "at 2000; "
                 "go; "
                 "wait 2 3; "
                 "exit 1 0; "
                 "go; "
                 "run 2");
}

/* Nothing that runs makes room for the head: then it holds nobody up. */
static void a_head_nobody_can_help_blocks_nobody(void) {
    CHECK_SCRIPT("0|x x", "{\"backfill\": true}",
                 "job 1 ada 2; "
                 "job 2 bob 1; "
                 "go; "
                 "run 2; "
                 "wait 1");
}

static const struct acre_test tests[] = {
    {"fcfs_goes_by_time_then_id", fcfs_goes_by_time_then_id, 0},
    {"strict_order_blocks_behind_the_head", strict_order_blocks_behind_the_head, 0},
    {"priority_goes_first_and_waiting_raises", priority_goes_first_and_waiting_raises, 0},
    {"priority_changes_while_queued", priority_changes_while_queued, 0},
    {"sjf_goes_by_estimate_and_waiting_raises", sjf_goes_by_estimate_and_waiting_raises, 0},
    {"gang_goes_by_size_and_waiting_raises", gang_goes_by_size_and_waiting_raises, 0},
    {"gangs_are_placed_whole_or_not", gangs_are_placed_whole_or_not, 0},
    {"fair_share_serves_who_used_less", fair_share_serves_who_used_less, 0},
    {"fair_share_divides_an_empty_cluster", fair_share_divides_an_empty_cluster, 0},
    {"fair_share_orders_one_account_by_priority", fair_share_orders_one_account_by_priority, 0},
    {"a_new_policy_orders_everything_anew", a_new_policy_orders_everything_anew, 0},
    {"tries_bound_a_pass", tries_bound_a_pass, 0},
    {"backfill_passes_if_it_ends_before_the_head_begins",
     backfill_passes_if_it_ends_before_the_head_begins, 0},
    {"backfill_passes_if_it_stays_out_of_the_heads_place",
     backfill_passes_if_it_stays_out_of_the_heads_place, 0},
    {"a_fraction_may_not_delay_the_head_either", a_fraction_may_not_delay_the_head_either, 0},
    {"beside_a_fraction_the_rest_may_be_used", beside_a_fraction_the_rest_may_be_used, 0},
    {"the_head_moves_up_when_runs_end_early", the_head_moves_up_when_runs_end_early, 0},
    {"overstaying_runs_move_the_head", overstaying_runs_move_the_head, 0},
    {"a_head_nobody_can_help_blocks_nobody", a_head_nobody_can_help_blocks_nobody, 0},
};

ACRE_TEST_MAIN(tests)
