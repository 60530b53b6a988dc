/* test_engine_watch.c - ENG-1, JOB: GPU memory limits are policed over all processes of a run, and
 * a device whose memory does not come back is found. */
#include "engine/watch.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>

#define U ACRE_UNKNOWN

enum { LIMIT = 1000, MORE = 8 };

static const struct acre_run job1 = {1, 1}, job2 = {2, 1}, server = {0, 0};

/* The bench keeps what the next reading says. */
struct bench {
    struct acre_watchdog *watchdog;
    struct acre_watchdog_level levels[MORE];
    struct acre_watchdog_process processes[MORE];
    struct acre_watchdog_pid pids[MORE];
    uint32_t level_count, process_count, pid_count;
    char told[512];
    char text[200];
};

static void setup(struct bench *bench) {
    struct acre_watchdog_options options = {
        .tolerance_mib = 64, .warn_ms = 10000, .grace_ms = 30000, .return_ms = 20000};
    *bench = (struct bench){.watchdog = acre_watchdog_create(&options)};
}

static void level(struct bench *bench, const char *device, uint64_t used, uint64_t use) {
    bench->levels[bench->level_count++] = (struct acre_watchdog_level){device, used, use};
}

static void process(struct bench *bench, int64_t pid, const char *device, uint64_t mib) {
    bench->processes[bench->process_count++] = (struct acre_watchdog_process){pid, device, mib};
}

static void owner(struct bench *bench, int64_t pid, struct acre_run run) {
    bench->pids[bench->pid_count++] = (struct acre_watchdog_pid){pid, run};
}

static void on_event(void *context, const struct acre_watchdog_event *event) {
    static const char *const names[] = {"warn", "fine",       "terminate",
                                        "kill", "quarantine", "restored"};
    struct bench *bench = context;
    size_t length = strlen(bench->told);
    snprintf(bench->told + length, sizeof(bench->told) - length, "%s%s %" PRIu64 " %s",
             length > 0 ? ", " : "", names[event->kind], event->run.job, event->device);
    snprintf(bench->text, sizeof(bench->text), "%s", event->text);
}

/* Read, forget the reading, and say what was told. */
static const char *step(struct bench *bench, uint64_t now_ms) {
    struct acre_watchdog_reading reading = {
        .now_ms = now_ms,
        .levels = bench->levels,
        .level_count = bench->level_count,
        .processes = bench->processes,
        .process_count = bench->process_count,
        .pids = bench->pids,
        .pid_count = bench->pid_count,
    };
    bench->told[0] = '\0';
    acre_watchdog_step(bench->watchdog, &reading, on_event, bench);
    bench->level_count = bench->process_count = bench->pid_count = 0;
    return bench->told;
}

static void begin(struct bench *bench, struct acre_run run, const char *device, uint64_t limit) {
    struct acre_run_device given = {.id = device, .milli = 500, .mib = limit};
    acre_watchdog_begin(bench->watchdog, run, &given, 1);
}

/* An idle device with 600 MiB in use. */
static void setup_idle(struct bench *bench) {
    setup(bench);
    level(bench, "g", 600, 0);
    step(bench, 1000);
}

/* Job 1 on it has one process, 11, with 900 MiB. */
static void run_job1(struct bench *bench) {
    begin(bench, job1, "g", LIMIT);
    level(bench, "g", 1500, 0);
    process(bench, 11, "g", 900);
    owner(bench, 11, job1);
    step(bench, 2000);
}

/* One device, one run with two processes; what is told as its sum moves. */
static void over_the_limit_means_warn_terminate_kill(void) {
    static const struct {
        uint64_t at_s, first, second;
        const char *told;
    } rows[] = {
        {1, 500, 500, ""},          /* at the limit */
        {2, 1000, 64, ""},          /* within the tolerance */
        {3, 565, 500, "warn 1 g"},  /* the sum counts */
        {4, 2000, 0, ""},           /* once */
        {12, 1064, 0, ""},          /* between: nothing changes ... */
        {14, 1001, 0, ""},          /* ... and nobody is ended there */
        {15, 1000, 0, "fine 1 g"},  /* at the limit: over */
        {16, 900, 200, "warn 1 g"}, /* a new story */
        {25, 1100, 0, ""},          /* 9 s */
        {26, 1100, 0, "terminate 1 g"},
        {30, 500, 0, ""}, /* too late to be fine, and no reason to kill */
        {55, 2000, 0, ""},
        {56, 2000, 0, "kill 1 g"},
        {90, 2000, 0, ""},
    };
    struct bench bench;
    setup(&bench);
    begin(&bench, job1, "g", LIMIT);
    begin(&bench, job1, "g", 5); /* repeated: nothing */
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("second %" PRIu64, rows[i].at_s);
        level(&bench, "g", 9000, U);
        process(&bench, 11, "g", rows[i].first);
        process(&bench, 12, "g", rows[i].second);
        owner(&bench, 12, job1);
        owner(&bench, 11, job1);
        CHECK_STR(step(&bench, rows[i].at_s * 1000), rows[i].told);
    }
    CHECK_STR(bench.text, "still over its GPU memory limit, killed: 1.9 GiB of 1000 MiB on g");
    acre_watchdog_destroy(bench.watchdog);
}

static void each_device_and_each_run_has_its_own_limit(void) {
    struct bench bench;
    setup(&bench);
    struct acre_run_device two[] = {
        {.id = "g", .mib = LIMIT}, {.id = "h", .mib = 0}, {.id = "s", .mib = 1, .simulated = true}};
    acre_watchdog_begin(bench.watchdog, job1, two, 3);
    begin(&bench, job2, "g", 500);
    process(&bench, 11, "g", 900);
    process(&bench, 11, "h", 90000); /* no limit there */
    process(&bench, 11, "s", 50);
    process(&bench, 21, "g", 600);
    process(&bench, 31, "g", 70000); /* foreign */
    owner(&bench, 11, job1);
    owner(&bench, 21, job2);
    CHECK_STR(step(&bench, 1000), "warn 2 g");
    CHECK_U64(acre_watchdog_foreign_mib(bench.watchdog, "g"), 70000);
    CHECK_U64(acre_watchdog_foreign_mib(bench.watchdog, "h"), 0);
    CHECK_U64(acre_watchdog_foreign_mib(bench.watchdog, "nowhere"), 0);
    acre_watchdog_destroy(bench.watchdog);
}

static void members_on_one_device_share_their_limits(void) {
    struct bench bench;
    setup(&bench);
    struct acre_run_device same[] = {{.id = "g", .mib = LIMIT, .member = 0},
                                     {.id = "g", .mib = LIMIT, .member = 1}};
    acre_watchdog_begin(bench.watchdog, job1, same, 2);
    process(&bench, 11, "g", 2000);
    owner(&bench, 11, job1);
    CHECK_STR(step(&bench, 1000), "");
    process(&bench, 11, "g", 2065);
    owner(&bench, 11, job1);
    CHECK_STR(step(&bench, 2000), "warn 1 g");
    acre_watchdog_destroy(bench.watchdog);
    setup(&bench);
    same[1].mib = 0; /* one without a limit: none at all */
    acre_watchdog_begin(bench.watchdog, job1, same, 2);
    process(&bench, 11, "g", 99999);
    owner(&bench, 11, job1);
    CHECK_STR(step(&bench, 1000), "");
    acre_watchdog_destroy(bench.watchdog);
}

static void enormous_readings_do_not_wrap(void) {
    struct bench bench;
    setup(&bench);
    begin(&bench, job1, "g", UINT64_MAX - 2);
    begin(&bench, job2, "g", LIMIT);
    for (int64_t pid = 21; pid < 24; pid++) {
        process(&bench, pid, "g", UINT64_MAX - 1);
        owner(&bench, pid, job2);
    }
    level(&bench, "g", 5, UINT64_MAX - 1);
    CHECK_STR(step(&bench, UINT64_MAX - 1), "warn 2 g");
    CHECK_STR(step(&bench, 1), "fine 2 g"); /* the clock went back: no harm */
    struct acre_watchdog_use use;
    acre_watchdog_end(bench.watchdog, job2, 2, &use);
    CHECK_U64(use.peak_mib, UINT64_MAX - 1);
    acre_watchdog_destroy(bench.watchdog);
}

/* After the end: rest of the device against its baseline of 600 MiB. */
static void memory_must_come_back(void) {
    static const struct {
        const char *what;
        struct {
            uint64_t at_s, used, foreign, left; /* MiB; left: by the run's own process */
            const char *told;
        } steps[4];
    } rows[] = {
        {"back at once", {{11, 600, 0, 0, ""}, {40, 9000, 0, 0, ""}}},
        {"back in time", {{12, 9000, 0, 0, ""}, {29, 660, 0, 0, ""}, {60, 9000, 0, 0, ""}}},
        {"within the tolerance", {{31, 664, 0, 0, ""}}},
        {"not back",
         {{29, 665, 0, 0, ""},
          {30, 665, 0, 0, "quarantine 1 g"},
          {31, 9000, 0, 0, ""},
          {99, 664, 0, 0, "restored 1 g"}}},
        {"foreign memory is not ours", {{40, 5600, 5000, 0, ""}}},
        {"its own process stayed",
         {{29, 1100, 0, 500, ""},
          {30, 1100, 0, 500, "quarantine 1 g"},
          {31, 600, 0, 0, "restored 1 g"}}},
        {"a small process stayed", {{30, 610, 0, 10, "quarantine 1 g"}}},
        {"used is unknown", {{29, U, 0, 0, ""}, {31, U, 0, 0, ""}, {50, 9000, 0, 0, ""}}},
        {"foreign use is unknown", {{29, 9000, U, 0, ""}, {31, 9000, U, 0, ""}}},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct bench bench;
        setup_idle(&bench);
        run_job1(&bench);
        CHECK(!acre_watchdog_waits(bench.watchdog));
        acre_watchdog_end(bench.watchdog, job1, 10000, NULL);
        CHECK(acre_watchdog_waits(bench.watchdog));
        for (size_t k = 0; k < 4 && rows[i].steps[k].told != NULL; k++) {
            acre_test_context("%s, second %" PRIu64, rows[i].what, rows[i].steps[k].at_s);
            level(&bench, "g", rows[i].steps[k].used, 0);
            if (rows[i].steps[k].foreign > 0) {
                process(&bench, 31, "g", rows[i].steps[k].foreign);
            }
            if (rows[i].steps[k].left > 0) {
                process(&bench, 11, "g", rows[i].steps[k].left);
            }
            CHECK_STR(step(&bench, rows[i].steps[k].at_s * 1000), rows[i].steps[k].told);
        }
        acre_watchdog_destroy(bench.watchdog);
    }
}

static void the_reason_has_the_numbers(void) {
    struct bench bench;
    setup_idle(&bench);
    run_job1(&bench);
    acre_watchdog_end(bench.watchdog, job1, 3000, NULL);
    level(&bench, "g", 1400, 0);
    process(&bench, 11, "g", 200);
    CHECK_STR(step(&bench, 30000), "quarantine 1 g");
    CHECK_STR(bench.text, "GPU memory was not freed on g after job 1: 1.3 GiB in use, 600 MiB "
                          "before (200 MiB held by its processes)");
    acre_watchdog_destroy(bench.watchdog);
}

/* Two halves of a GPU with an MPS server: what one leaves is found while the other runs. */
static void a_leak_is_found_while_others_run(void) {
    for (uint64_t leak = 0; leak <= 200; leak += 200) {
        struct bench bench;
        setup_idle(&bench);
        acre_test_context("leak %" PRIu64, leak);
        begin(&bench, job1, "g", LIMIT);
        begin(&bench, job2, "g", LIMIT);
        level(&bench, "g", 600 + 900 + 800 + 300, 0);
        process(&bench, 11, "g", 900);
        process(&bench, 21, "g", 800);
        process(&bench, 99, "g", 300);
        owner(&bench, 11, job1);
        owner(&bench, 21, job2);
        owner(&bench, 99, server);
        CHECK_STR(step(&bench, 2000), "");
        CHECK_U64(acre_watchdog_foreign_mib(bench.watchdog, "g"), 0);
        acre_watchdog_end(bench.watchdog, job1, 3000, NULL);
        level(&bench, "g", 600 + 800 + 300 + leak, 0);
        process(&bench, 21, "g", 800);
        process(&bench, 99, "g", 300);
        owner(&bench, 21, job2);
        owner(&bench, 99, server);
        CHECK_STR(step(&bench, 23000), leak > 0 ? "quarantine 1 g" : "");
        acre_watchdog_destroy(bench.watchdog);
    }
}

/* Where the driver names no processes, a device is judged when nobody is on it. */
static void without_process_lists_only_idle_devices_are_judged(void) {
    struct bench bench;
    setup_idle(&bench);
    begin(&bench, job1, "g", LIMIT);
    begin(&bench, job2, "g", LIMIT);
    acre_watchdog_end(bench.watchdog, job1, 2000, NULL);
    level(&bench, "g", 5000, 0); /* may all be job 2's */
    CHECK_STR(step(&bench, 500000), "");
    acre_watchdog_end(bench.watchdog, job2, 501000, NULL);
    level(&bench, "g", 5000, 0);
    CHECK_STR(step(&bench, 502000), ""); /* has its time */
    level(&bench, "g", 5000, 0);
    CHECK_STR(step(&bench, 521000), "quarantine 2 g");
    acre_watchdog_destroy(bench.watchdog);
}

/* Short runs that follow each other must not hide a leak for ever. */
static void churn_does_not_hide_a_leak(void) {
    struct bench bench;
    setup_idle(&bench);
    uint64_t found_ms = 0;
    for (uint64_t i = 1; i < 30 && found_ms == 0; i++) {
        struct acre_run run = {i, 1};
        begin(&bench, run, "g", LIMIT);
        level(&bench, "g", 600 + 900 + 300, 0);
        process(&bench, (int64_t)i + 100, "g", 900);
        owner(&bench, (int64_t)i + 100, run);
        if (step(&bench, i * 10000)[0] != '\0') {
            found_ms = i * 10000;
        }
        acre_watchdog_end(bench.watchdog, run, i * 10000 + 1000, NULL);
    }
    CHECK_U64(found_ms, 100000); /* the first ended at 11 s; 4 x 20 s later, at the next reading */
    acre_watchdog_destroy(bench.watchdog);
}

static void without_a_baseline_only_processes_are_judged(void) {
    for (uint64_t left = 0; left <= 10; left += 10) {
        struct bench bench;
        setup(&bench);
        acre_test_context("left %" PRIu64, left);
        run_job1(&bench); /* adopted: it ran before we looked */
        acre_watchdog_end(bench.watchdog, job1, 3000, NULL);
        level(&bench, "g", 1500, 0);
        if (left > 0) {
            process(&bench, 11, "g", left);
        }
        CHECK_STR(step(&bench, 23000), left > 0 ? "quarantine 1 g" : "");
        CHECK_EQ(acre_watchdog_waits(bench.watchdog), left > 0);
        acre_watchdog_destroy(bench.watchdog);
    }
}

static void peak_and_mean_use_are_recorded(void) {
    struct bench bench;
    struct acre_watchdog_use use;
    setup(&bench);
    struct acre_run_device two[] = {{.id = "g"}, {.id = "h"}};
    acre_watchdog_begin(bench.watchdog, job1, two, 2);
    static const struct {
        uint64_t at_s, first, second, use_g, use_h;
    } rows[] = {{1, 100, 0, 900, 900}, {3, 700, 400, 1000, 500}, {7, 900, 100, 0, 250}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        level(&bench, "g", 5000, rows[i].use_g);
        level(&bench, "h", 5000, rows[i].use_h);
        process(&bench, 11, "g", rows[i].first);
        process(&bench, 12, "h", rows[i].second);
        owner(&bench, 11, job1);
        owner(&bench, 12, job1);
        step(&bench, rows[i].at_s * 1000);
    }
    acre_watchdog_end(bench.watchdog, job1, 8000, &use);
    CHECK_U64(use.peak_mib, 1100);
    CHECK_U64(use.mean_milli, (900 + 900 + (1000 + 500) * 2000 + 250 * 4000) / (2 + 2 * 6000));
    acre_watchdog_end(bench.watchdog, job1, 8000, &use); /* no longer known */
    CHECK_U64(use.peak_mib, U);
    CHECK_U64(use.mean_milli, U);
    acre_watchdog_destroy(bench.watchdog);
}

static void what_was_not_read_is_unknown(void) {
    struct bench bench;
    struct acre_watchdog_use use;
    setup(&bench);
    begin(&bench, job1, "g", LIMIT);
    begin(&bench, job2, "g", LIMIT);
    level(&bench, "g", 5000, 700); /* whose use is it? */
    process(&bench, 11, "g", U);
    owner(&bench, 11, job1);
    CHECK_STR(step(&bench, 1000), "");
    acre_watchdog_end(bench.watchdog, job1, 2000, &use);
    CHECK_U64(use.peak_mib, U);
    CHECK_U64(use.mean_milli, U);
    level(&bench, "g", 5000, 700); /* alone now, and the only reading */
    step(&bench, 3000);
    acre_watchdog_end(bench.watchdog, job2, 3000, &use);
    CHECK_U64(use.mean_milli, 700);
    struct acre_run_device simulated = {.id = "s", .simulated = true};
    acre_watchdog_begin(bench.watchdog, job1, &simulated, 1);
    acre_watchdog_end(bench.watchdog, job1, 3000, &use);
    CHECK_U64(use.peak_mib, U);
    acre_watchdog_destroy(bench.watchdog);
    acre_watchdog_destroy(NULL);
    CHECK_U64(acre_watchdog_defaults().tolerance_mib, 64);
}

static const struct acre_test tests[] = {
    {"over_the_limit_means_warn_terminate_kill", over_the_limit_means_warn_terminate_kill, 0},
    {"each_device_and_each_run_has_its_own_limit", each_device_and_each_run_has_its_own_limit, 0},
    {"members_on_one_device_share_their_limits", members_on_one_device_share_their_limits, 0},
    {"enormous_readings_do_not_wrap", enormous_readings_do_not_wrap, 0},
    {"memory_must_come_back", memory_must_come_back, 0},
    {"the_reason_has_the_numbers", the_reason_has_the_numbers, 0},
    {"a_leak_is_found_while_others_run", a_leak_is_found_while_others_run, 0},
    {"without_process_lists_only_idle_devices_are_judged",
     without_process_lists_only_idle_devices_are_judged, 0},
    {"churn_does_not_hide_a_leak", churn_does_not_hide_a_leak, 0},
    {"without_a_baseline_only_processes_are_judged", without_a_baseline_only_processes_are_judged,
     0},
    {"peak_and_mean_use_are_recorded", peak_and_mean_use_are_recorded, 0},
    {"what_was_not_read_is_unknown", what_was_not_read_is_unknown, 0},
};
ACRE_TEST_MAIN(tests)
