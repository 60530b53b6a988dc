/* test_engine.c - what every engine must do: the same suite over the fake one and the local one.
 * ENG-1, SEC-2. */
#include "support/engine_rig.h"
#include "support/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct acre_engine_driver *const drivers[] = {&acre_engine_fake, &acre_engine_local};

/* Each test runs over all drivers; one row is "with" its name. */
static void over_all(void (*test)(struct rig *rig)) {
    for (size_t i = 0; i < ACRE_COUNT(drivers); i++) {
        struct rig rig;
        acre_test_context("%s", drivers[i]->name);
        rig_init(&rig, drivers[i]);
        rig_open(&rig);
        test(&rig);
        rig_finish(&rig);
    }
}

static void endings(struct rig *rig) {
    static const struct {
        const char *script;
        enum run_ending ending;
        int code;
    } rows[] = {
        {"exit 0", ACRE_RUN_EXITED, 0},
        {"exit 3", ACRE_RUN_EXITED, 3},
        {"kill -9 $$", ACRE_RUN_SIGNALED, SIGKILL},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        rig_run(rig, i + 1, rows[i].script);
        rig_expect(rig, i + 1, rows[i].ending, rows[i].code);
        const struct rig_seen *seen = &rig->seen[i + 1];
        CHECK_EQ(seen->started, 1);
        CHECK(seen->pid > 0);
        CHECK(seen->result.started_ms > 0);
        CHECK(seen->result.ended_ms >= seen->result.started_ms);
    }
}

static void not_started(struct rig *rig) {
    struct acre_run_spec spec = rig_spec(rig, 1, "exit 0");
    const char *argv[] = {"/nonexistent/program", NULL};
    spec.argv = argv;
    rig_start(rig, &spec);
    rig_expect(rig, 1, ACRE_RUN_NOT_STARTED, 0);
    CHECK_HAS(rig->seen[1].result.text, "/nonexistent/program");
    CHECK_EQ(rig->seen[1].started, 0);
    CHECK_U64(rig->seen[1].result.started_ms, 0);
}

/* Idempotent by token: while it runs, and after its end. */
static void repeated(struct rig *rig) {
    rig->keep = true;
    rig_run(rig, 1, "sleep 0.3; exit 5");
    rig_run(rig, 1, "sleep 0.3; exit 5");
    int64_t pid = rig_wait_start(rig, 1)->pid;
    rig_run(rig, 1, "sleep 0.3; exit 5");
    rig_wait_exit(rig, 1);
    CHECK_EQ(rig->seen[1].pid, pid);
    rig->seen[1].exited = 0;
    rig_run(rig, 1, "sleep 0.3; exit 5");
    rig_expect(rig, 1, ACRE_RUN_EXITED, 5);
    CHECK_EQ(rig->seen[1].pid, pid); /* told again, not run again */
}

static void signals(struct rig *rig) {
    rig_run(rig, 1, "sleep 1000");
    rig_run(rig, 2, "sleep 1000");
    rig_run(rig, 3, "trap '' TERM; echo ready; while :; do sleep 1; done");
    for (uint64_t job = 1; job <= 3; job++) {
        rig_wait_start(rig, job);
    }
    if (rig->driver->log_path != NULL) {
        rig_wait_output(rig, 3, "ready");
    }
    rig_signal(rig, 1, ACRE_RUN_TERMINATE);
    rig_signal(rig, 2, ACRE_RUN_KILL);
    rig_signal(rig, 3, ACRE_RUN_TERMINATE);
    rig_expect(rig, 1, ACRE_RUN_SIGNALED, SIGTERM);
    rig_expect(rig, 2, ACRE_RUN_SIGNALED, SIGKILL);
    rig_expect(rig, 3, ACRE_RUN_SIGNALED, SIGKILL); /* after its grace */
    struct acre_error err = {0};
    struct acre_run unknown = {63, 7};
    CHECK_EQ(rig->driver->signal(rig->engine, unknown, ACRE_RUN_KILL, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "63.7");
}

/* A signal may come before the run has begun. */
static void early_kill(struct rig *rig) {
    rig_run(rig, 1, "sleep 1000");
    rig_signal(rig, 1, ACRE_RUN_KILL);
    rig_expect(rig, 1, ACRE_RUN_SIGNALED, SIGKILL);
}

static void time_limit(struct rig *rig) {
    struct acre_run_spec spec = rig_spec(rig, 1, "sleep 1000");
    spec.limit_ms = 200;
    rig_start(rig, &spec);
    rig_expect(rig, 1, ACRE_RUN_TIME_LIMIT, SIGTERM);
    uint64_t took_ms = rig->seen[1].result.ended_ms - rig->seen[1].result.started_ms;
    CHECK(took_ms >= 199 && took_ms < 10000);
}

/* A restart: those that run are found, those that ended meanwhile are told, others are lost. */
static void restart(struct rig *rig) {
    rig->keep = true;
    rig_run(rig, 1, "sleep 0.3; exit 5");
    rig_run(rig, 2, "sleep 1000");
    rig_run(rig, 4, "exit 3");
    rig_wait_exit(rig, 4);
    int64_t pids[3] = {0, rig_wait_start(rig, 1)->pid, rig_wait_start(rig, 2)->pid};
    rig_close(rig);
    memset(rig->seen, 0, sizeof(rig->seen));
    rig_open(rig);
    for (uint64_t job = 1; job <= 4; job++) {
        rig->driver->adopt(rig->engine, (struct acre_run){job, 1});
    }
    CHECK_EQ(rig->driver->reap(rig->engine), 0);
    rig_expect(rig, 1, ACRE_RUN_EXITED, 5);
    CHECK_EQ(rig->seen[1].pid, pids[1]);
    rig_expect(rig, 3, ACRE_RUN_LOST, 0);
    rig_expect(rig, 4, ACRE_RUN_EXITED, 3);
    CHECK_EQ(rig_wait_start(rig, 2)->pid, pids[2]);
    rig_signal(rig, 2, ACRE_RUN_KILL);
    rig_expect(rig, 2, ACRE_RUN_SIGNALED, SIGKILL);
}

static void unwanted(struct rig *rig) {
    rig_run(rig, 1, "sleep 1000");
    rig_run(rig, 2, "sleep 1000");
    rig_wait_start(rig, 1);
    rig_wait_start(rig, 2);
    rig_close(rig);
    rig_open(rig);
    rig->driver->adopt(rig->engine, (struct acre_run){2, 1});
    CHECK_EQ(rig->driver->reap(rig->engine), 1);
    rig_signal(rig, 2, ACRE_RUN_KILL);
    rig_expect(rig, 2, ACRE_RUN_SIGNALED, SIGKILL);
    CHECK_EQ(rig->seen[1].exited, 0); /* nobody asked */
    rig_turn(rig, 200);
    CHECK_EQ(rig->driver->signal(rig->engine, (struct acre_run){1, 1}, ACRE_RUN_KILL, NULL),
             ACRE_ENOTFOUND);
}

static void describes(struct rig *rig) {
    struct acre_buf text;
    acre_buf_init(&text, 4096);
    rig->driver->describe(rig->engine, &text);
    CHECK(text.length > 20 && text.data[text.length - 1] == '\n');
    acre_buf_finish(&text);
}

#define OVER_ALL(name, test)                                                                       \
    static void name(void) {                                                                       \
        over_all(test);                                                                            \
    }
OVER_ALL(a_run_ends_as_its_command_does, endings)
OVER_ALL(a_command_that_cannot_run_is_told_with_its_reason, not_started)
OVER_ALL(a_run_is_never_started_twice, repeated)
OVER_ALL(a_run_is_terminated_then_killed, signals)
OVER_ALL(a_signal_may_come_before_the_start, early_kill)
OVER_ALL(a_run_ends_at_its_time_limit, time_limit)
OVER_ALL(after_a_restart_runs_are_adopted_told_or_lost, restart)
OVER_ALL(what_nobody_adopts_is_ended, unwanted)
OVER_ALL(an_engine_says_what_it_contains, describes)

static const struct acre_test tests[] = {
    {"a_run_ends_as_its_command_does", a_run_ends_as_its_command_does, 0},
    {"a_command_that_cannot_run_is_told_with_its_reason",
     a_command_that_cannot_run_is_told_with_its_reason, 0},
    {"a_run_is_never_started_twice", a_run_is_never_started_twice, 0},
    {"a_run_is_terminated_then_killed", a_run_is_terminated_then_killed, 0},
    {"a_signal_may_come_before_the_start", a_signal_may_come_before_the_start, 0},
    {"a_run_ends_at_its_time_limit", a_run_ends_at_its_time_limit, 0},
    {"after_a_restart_runs_are_adopted_told_or_lost", after_a_restart_runs_are_adopted_told_or_lost,
     0},
    {"what_nobody_adopts_is_ended", what_nobody_adopts_is_ended, 0},
    {"an_engine_says_what_it_contains", an_engine_says_what_it_contains, 0},
};

ACRE_TEST_MAIN(tests)
