/* Replay on clusters so small that every start can be worked out by hand. */
#include "sim/replay.h"

#include "support/test.h"

#include <stdio.h>

#define HEADER "timestamp,duration,num_gpus,cluster\n"

static struct acre_replay_result replay(const char *text, const char *policy, uint32_t nodes,
                                        uint32_t gpus) {
    struct acre_job_trace *trace = NULL;
    struct acre_error err = {0};
    REQUIRE_EQ(job_trace_parse("t.csv", acre_str_from(text), &trace, &err), 0);
    size_t at = 0;
    while (strcmp(acre_replay_policy(at)->name, policy) != 0) {
        at++;
    }
    struct acre_replay_options options = {
        .policy = acre_replay_policy(at), .nodes = nodes, .gpus_per_node = gpus};
    struct acre_replay_result result;
    REQUIRE_EQ(acre_replay_run(trace, &options, &result, &err), 0);
    job_trace_destroy(trace);
    return result;
}

/* Two GPUs. A takes one for 100 s; B wants both; C wants one for 50 s, D one for 200 s. */
static const char head_waits[] = HEADER "2026-01-01 00:00:00,100,1,a\n"
                                        "2026-01-01 00:00:01,100,2,a\n"
                                        "2026-01-01 00:00:02,50,1,a\n"
                                        "2026-01-01 00:00:03,200,1,b\n";

/* POL-3: C waits behind B although there is room. */
static void fcfs_lets_nobody_pass(void) {
    struct acre_replay_result result = replay(head_waits, "fcfs", 1, 2);
    CHECK_U64(result.jobs, 4);
    CHECK_NEAR(result.wait.max_s, 198, 0.001); /* C at 200; D, too, at 200 */
    CHECK_NEAR(result.wait.mean_s, (0 + 99 + 198 + 197) / 4.0, 0.001);
}

/* POL-6: C ends before A and passes; D would delay B and does not. */
static void easy_lets_those_pass_that_delay_nobody(void) {
    struct acre_replay_result result = replay(head_waits, "easy", 1, 2);
    CHECK_NEAR(result.wait.mean_s, (0 + 99 + 0 + 197) / 4.0, 0.001);
    CHECK_NEAR(result.makespan_days * 86400, 400, 0.001);
}

/* POL-4: of those that wait when the GPU gets free, the shortest goes first. */
static void sjf_takes_the_shortest(void) {
    struct acre_replay_result result = replay(HEADER "2026-01-01 00:00:00,100,1,a\n"
                                                     "2026-01-01 00:00:01,90,1,a\n"
                                                     "2026-01-01 00:00:02,10,1,a\n",
                                              "sjf", 1, 1);
    CHECK_NEAR(result.wait.mean_s, (0 + 109 + 98) / 3.0, 0.001);
}

/* POL-1: b has used nothing; its job goes before the two of a. */
static void fair_share_serves_the_one_that_used_less(void) {
    static const char text[] = HEADER "2026-01-01 00:00:00,100,1,a\n"
                                      "2026-01-01 00:00:01,100,1,a\n"
                                      "2026-01-01 00:00:02,100,1,a\n"
                                      "2026-01-01 00:00:03,100,1,b\n";
    struct acre_replay_result fair = replay(text, "fair-share", 1, 1);
    struct acre_replay_result fcfs = replay(text, "fcfs", 1, 1);
    CHECK_NEAR(fair.wait.max_s, 298, 0.001); /* the third of a */
    CHECK_NEAR(fcfs.wait.max_s, 297, 0.001); /* b */
    CHECK_STR(fair.longest_wait, "a");
    CHECK_STR(fcfs.longest_wait, "b");
    CHECK(fair.jain > fcfs.jain);
}

/* POL-5, ALC-7: 12 GPUs on nodes of 8 are two members of 6, at once or not at all. */
static void a_gang_starts_as_a_whole(void) {
    struct acre_replay_result result = replay(HEADER "2026-01-01 00:00:00,100,3,a\n"
                                                     "2026-01-01 00:00:01,100,12,a\n"
                                                     "2026-01-01 00:00:02,10,32,a\n",
                                              "easy", 2, 8);
    CHECK_U64(result.never, 1);
    CHECK_U64(result.jobs, 2);
    CHECK_NEAR(result.wait.max_s, 99, 0.001); /* 8 - 3 < 6: the second node alone is not enough */
}

/* POL-9: with one GPU, true durations and no surprises, the estimates are exact. */
static void estimates_are_exact_when_nothing_surprises(void) {
    char text[8192] = HEADER;
    for (size_t i = 0; i < 130; i++) { /* the first starts at once; every 64th is asked */
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "2026-01-01 00:%02zu:%02zu,%zu,1,a\n", i / 60,
                 i % 60, 50 + i);
    }
    struct acre_replay_result result = replay(text, "fcfs", 1, 1);
    CHECK_U64(result.estimates, 2);
    CHECK_NEAR(result.eta_p90_abs_s, 0, 1.0);
    CHECK_NEAR(result.eta_inside, 1, 1e-9);
}

static void load_and_use_are_parts_of_capacity(void) {
    /* 100 s between first and last submission, 2 GPUs: 200 GPU-s; asked 100 + 20 */
    struct acre_replay_result result = replay(HEADER "2026-01-01 00:00:00,100,1,a\n"
                                                     "2026-01-01 00:01:40,20,1,a\n",
                                              "fcfs", 1, 2);
    CHECK_NEAR(result.load, 0.6, 1e-9);
    CHECK_NEAR(result.use, 0.5, 1e-9);
}

static void nodes_out_of_range_are_refused(void) {
    struct acre_job_trace *trace = NULL;
    REQUIRE_EQ(job_trace_parse("t.csv", acre_str_from(head_waits), &trace, NULL), 0);
    static const uint32_t bad[][2] = {{0, 8}, {8, 0}, {8, 65}, {100001, 1}};
    for (size_t i = 0; i < ACRE_COUNT(bad); i++) {
        struct acre_replay_options options = {
            .policy = acre_replay_policy(0), .nodes = bad[i][0], .gpus_per_node = bad[i][1]};
        struct acre_replay_result result;
        struct acre_error err = {0};
        CHECK_EQ(acre_replay_run(trace, &options, &result, &err), ACRE_EINVALID);
        CHECK_HAS(err.text, "accepted: 1 to 100000 nodes");
    }
    job_trace_destroy(trace);
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(fcfs_lets_nobody_pass),
    TEST(easy_lets_those_pass_that_delay_nobody),
    TEST(sjf_takes_the_shortest),
    TEST(fair_share_serves_the_one_that_used_less),
    TEST(a_gang_starts_as_a_whole),
    TEST(estimates_are_exact_when_nothing_surprises),
    TEST(load_and_use_are_parts_of_capacity),
    TEST(nodes_out_of_range_are_refused),
};

ACRE_TEST_MAIN(tests)
