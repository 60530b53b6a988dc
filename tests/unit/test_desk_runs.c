/* What engines are asked to start and what becomes of it: ends and their reasons, logs, jobs that
 * run elsewhere. */
#include "desk/commands.h"
#include "support/desk_kit.h"

#include "support/test.h"
#include "support/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_MS = 3600 * 1000 };

static struct acre_submission one_gpu(void) {
    return (struct acre_submission){.user = "ada",
                                    .project = "lab",
                                    .spec = {.priority = ACRE_PRIORITY_NORMAL,
                                             .request = {.replicas = 1, .gpus = 1, .milli = 1000}},
                                    .count = 1};
}

static uint64_t submit(struct desk_kit *kit, struct acre_submission *submission, const char *text) {
    uint64_t id = 0;
    struct acre_error err = {0};
    int r = acre_desk_submit(kit->desk, submission, acre_str_from(text), &id, &err);
    CHECK_STR(err.text, "");
    REQUIRE_EQ(r, 0);
    return id;
}

static bool has_ended(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_COMPLETED, 0) + desk_kit_told(kit, ACRE_SCHED_FAILED, 0) +
               desk_kit_told(kit, ACRE_SCHED_CANCELED, 0) >=
           1;
}

static bool has_started(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_STARTED, 0) >= 1;
}

static bool three_started(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_STARTED, 0) >= 3;
}

static bool keep_detail(void *context, const struct acre_store_job *row) {
    snprintf(context, 1000, "%.*s", (int)row->detail.length, row->detail.data);
    return false;
}

/* The detail of the job's row. */
static const char *detail_of(struct desk_kit *kit, uint64_t job) {
    static char detail[1000];
    REQUIRE_EQ(acre_store_job(acre_desk_store(kit->desk), job, keep_detail, detail, NULL), 0);
    return detail;
}

/* --- ends ----------------------------------------------------------------------------------- */

static void what_the_engine_says_about_an_end_is_stored(void) {
    struct desk_kit kit = {.plan = {.ending = ACRE_RUN_NOT_STARTED, .text = "no such directory"}};
    struct acre_submission submission = one_gpu();
    desk_kit_start(&kit);
    uint64_t id = submit(&kit, &submission, "{\"command\":\"true\"}");
    desk_kit_until(&kit, has_ended);
    CHECK_STR(desk_kit_stored(&kit, id), "failed");
    CHECK_HAS(detail_of(&kit, id), "\"text\":\"no such directory\"");
    CHECK_STR(acre_desk_exit_text(kit.desk, id), ""); /* the store has it */
    desk_kit_finish(&kit);
}

static void where_a_job_ran_is_in_its_row(void) {
    struct desk_kit kit = {0};
    struct acre_submission submission = one_gpu();
    desk_kit_start(&kit);
    uint64_t id = submit(&kit, &submission, "{\"command\":\"true\"}");
    desk_kit_until(&kit, has_ended);
    CHECK_HAS(detail_of(&kit, id), "\"parts\":[{\"node\":\"gpu-a\",\"device\":\"sim:gpu-a/0\"");
    desk_kit_finish(&kit);
}

static bool second_canceled(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_CANCELED, 2) == 1;
}

static void a_job_whose_dependency_fails_says_which(void) {
    struct desk_kit kit = {0};
    struct acre_submission first = one_gpu(), second = one_gpu();
    desk_kit_start(&kit);
    acre_desk_pause(kit.desk, true);
    uint64_t before = submit(&kit, &first, "{\"command\":\"true\"}");
    second.dependencies[0] =
        (struct acre_dependency){.job = before, .kind = ACRE_DEPENDENCY_AFTER_OK};
    second.spec.dependencies = second.dependencies;
    second.spec.dependency_count = 1;
    uint64_t after = submit(&kit, &second, "{\"command\":\"true\"}");
    REQUIRE_EQ(acre_desk_cancel(kit.desk, before, NULL), 0);
    desk_kit_until(&kit, second_canceled);
    CHECK_STR(desk_kit_stored(&kit, after), "canceled");
    CHECK_HAS(detail_of(&kit, after), "job 1, which it was waiting for, did not complete");
    CHECK(strstr(detail_of(&kit, before), "waited for") == NULL);
    desk_kit_finish(&kit);
}

/* JOB-4: what a failed run wrote last decides, whatever its exit code; success needs no excuse. */
static void a_failed_run_is_judged_by_what_it_wrote(void) {
    static const struct {
        int code, stream;
        const char *kind, *state;
    } rows[] = {
        {1, 2, "\"kind\":\"out of memory\"", "failed"},
        {2, 2, "\"kind\":\"out of memory\"", "failed"},
        {1, 1, "\"kind\":\"out of memory\"", "failed"},
        {0, 2, "\"kind\":\"exited\"", "completed"},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct tree tree = tree_create(NULL);
        struct desk_kit kit = {
            .run_ms = 20, .plan = {.code = rows[i].code}, .logs_directory = tree.root};
        struct acre_submission submission = one_gpu();
        acre_test_context("code %d, stream %d", rows[i].code, rows[i].stream);
        desk_kit_start(&kit);
        uint64_t id = submit(&kit, &submission, "{\"command\":\"true\"}");
        fake_write(kit.world, (struct acre_run){id, 1}, rows[i].stream, 0, "CUDA out of memory\n");
        desk_kit_until(&kit, has_ended);
        CHECK_STR(desk_kit_stored(&kit, id), rows[i].state);
        CHECK_HAS(detail_of(&kit, id), rows[i].kind);
        CHECK_EQ(strstr(detail_of(&kit, id), "\"text\":\"CUDA out of memory\"") != NULL,
                 rows[i].code != 0);
        desk_kit_finish(&kit);
        tree_erase(&tree);
    }
}

/* A job that ends with its reservation says so: its engine knows only the signal. */
static void a_run_that_ends_with_its_reservation_says_so(void) {
    struct desk_kit kit = {.run_ms = LONG_MS};
    struct acre_submission submission = one_gpu();
    const uint32_t device = 2;
    desk_kit_start(&kit);
    uint64_t now_ms = acre_desk_now(kit.desk);
    struct acre_reservation_spec spec = {.devices = &device,
                                         .device_count = 1,
                                         .milli = 1000,
                                         .start_ms = now_ms,
                                         .end_ms = now_ms + 60000};
    REQUIRE_EQ(acre_desk_reserve(kit.desk, "ada", &spec, now_ms,
                                 &submission.spec.request.reservation, NULL),
               0);
    uint64_t id = submit(&kit, &submission, "{\"command\":\"true\"}");
    desk_kit_until(&kit, has_started);
    acre_clock_advance(&kit.clock, 60000);
    acre_desk_set_foreign(kit.desk, 0, 0); /* wakes the scheduler */
    desk_kit_until(&kit, has_ended);
    CHECK_HAS(detail_of(&kit, id), "\"kind\":\"killed\"");
    CHECK_HAS(detail_of(&kit, id), "\"text\":\"its reservation 1 has ended\"");
    desk_kit_finish(&kit);
}

/* --- every engine is asked ------------------------------------------------------------------ */

static uint32_t limited;
static void note_limits(void *self, const struct acre_engine_limits *limits) {
    (void)self;
    limited += limits->logs_mib == 7;
}
static void with_limits(struct acre_engine_driver *driver) {
    driver->limit = note_limits;
}

static void every_engine_gets_the_limits_of_the_policy(void) {
    struct desk_kit kit = {.two_engines = true, .alter = with_limits};
    struct acre_policy *policy = acre_calloc(1, sizeof(*policy));
    limited = 0;
    desk_kit_start(&kit);
    CHECK_U64(limited, 0);
    *policy = *acre_policy_default();
    policy->limits.logs_mib = 7;
    acre_desk_set_policy(kit.desk, policy, "policy");
    free(policy);
    CHECK_U64(limited, 2);
    desk_kit_finish(&kit);
}

static uint32_t forgotten;
static void note_forget(void *self, struct acre_run run) {
    forgotten += run.job == 1;
    acre_engine_fake.forget(self, run);
}
static void describe(void *self, struct acre_buf *out) {
    (void)self;
    acre_buf_puts(out, "nothing is contained\n");
}
static void with_records(struct acre_engine_driver *driver) {
    driver->forget = note_forget;
    driver->describe = describe;
}

static bool first_forgotten(struct desk_kit *kit) {
    (void)kit;
    return forgotten >= 2;
}

static void every_engine_forgets_and_is_described(void) {
    struct desk_kit kit = {.two_engines = true, .alter = with_records};
    struct acre_submission submission = one_gpu();
    struct acre_buf text;
    forgotten = 0;
    acre_buf_init(&text, 1000);
    desk_kit_start(&kit);
    acre_desk_describe_engines(kit.desk, &text);
    CHECK_STR(text.data, "nothing is contained\nnothing is contained\n");
    submit(&kit, &submission, "{\"command\":\"true\"}");
    desk_kit_until(&kit, first_forgotten);
    acre_buf_finish(&text);
    desk_kit_finish(&kit);
}

static void processes_are_those_of_every_engine(void) {
    struct desk_kit kit = {.two_engines = true, .pid_job = 5, .pids = {4711}};
    int64_t pids[3] = {0};
    desk_kit_start(&kit);
    CHECK_U64(acre_desk_pids(kit.desk, (struct acre_run){5, 1}, pids, 3), 2);
    CHECK(pids[0] == 4711 && pids[1] == 4711 && pids[2] == 0);
    pids[1] = 0;
    CHECK_U64(acre_desk_pids(kit.desk, (struct acre_run){5, 1}, pids, 1), 1);
    CHECK_EQ(pids[1], 0);
    CHECK_U64(acre_desk_pids(kit.desk, (struct acre_run){6, 1}, pids, 3), 0);
    desk_kit_finish(&kit);
}

static uint32_t asked;
static int second_has_it(void *self, struct acre_run run, int stream, char *path, size_t size,
                         struct acre_error *err) {
    (void)self;
    (void)err;
    path[0] = '\0';
    if (asked++ > 0) {
        snprintf(path, size, "/logs/%u.%d", (unsigned)run.job, stream);
    }
    return 0;
}
static void with_logs(struct acre_engine_driver *driver) {
    driver->log_path = second_has_it;
}

static void a_log_may_be_any_engines(void) {
    struct desk_kit kit = {.two_engines = true, .alter = with_logs};
    char path[64] = "?";
    asked = 0;
    desk_kit_start(&kit);
    CHECK_EQ(acre_desk_log_path(kit.desk, (struct acre_run){3, 1}, 1, path, sizeof(path), NULL), 0);
    CHECK_STR(path, "/logs/3.1");
    CHECK_U64(asked, 2);
    desk_kit_finish(&kit);
}

static void a_log_path_that_does_not_fit_is_none(void) {
    struct tree tree = tree_create(NULL);
    struct desk_kit kit = {.logs_directory = tree.root};
    char path[8];
    desk_kit_start(&kit);
    CHECK_EQ(acre_desk_log_path(kit.desk, (struct acre_run){1, 1}, 1, path, sizeof(path), NULL),
             ACRE_EUNSUPPORTED);
    desk_kit_finish(&kit);
    tree_erase(&tree);
}

/* --- what is started ------------------------------------------------------------------------ */

static struct acre_run_device given;
static void note_device(struct desk_kit *kit, const struct acre_run_spec *spec) {
    (void)kit;
    given = spec->devices[0];
}

/* A whole device needs no limit of its memory; a part of one has its own. */
static void a_run_is_held_to_the_memory_of_its_share(void) {
    static const struct {
        uint32_t milli;
        uint64_t mib, expect_mib;
    } rows[] = {{1000, 0, 0}, {500, 0, 40960}, {500, 20480, 20480}, {1000, 20480, 0}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct desk_kit kit = {.started = note_device};
        struct acre_submission submission = one_gpu();
        submission.spec.request.milli = rows[i].milli;
        submission.spec.request.mib = rows[i].mib;
        acre_test_context("%u milli, %u MiB", rows[i].milli, (unsigned)rows[i].mib);
        desk_kit_start(&kit);
        submit(&kit, &submission, "{\"command\":\"true\"}");
        desk_kit_until(&kit, has_ended);
        CHECK_U64(given.milli, rows[i].milli);
        CHECK_U64(given.mib, rows[i].expect_mib);
        desk_kit_finish(&kit);
    }
}

static char argv_text[100];
static void note_argv(struct desk_kit *kit, const struct acre_run_spec *spec) {
    (void)kit;
    argv_text[0] = '\0';
    for (size_t i = 0; spec->argv[i] != NULL; i++) {
        size_t length = strlen(argv_text);
        snprintf(argv_text + length, sizeof(argv_text) - length, "[%s]", spec->argv[i]);
    }
}

/* As the kernel reads the first line of a script, or a shell's when it names nothing. */
static void a_script_names_its_program(void) {
    static const struct {
        const char *spec, *expect;
    } rows[] = {
        {"{\"script\":\"#!/bin/bash\\ntrue\"}", "[/bin/bash]"},
        {"{\"script\":\"#!/usr/bin/env python3\\n\"}", "[/usr/bin/env][python3]"},
        {"{\"script\":\"#! /bin/sh  -e -u \\n\"}", "[/bin/sh][-e -u]"},
        {"{\"script\":\"#!/usr/bin/env\\tpython3\\n\"}", "[/usr/bin/env][python3]"},
        {"{\"script\":\"#!\\ntrue\"}", "[/bin/sh]"},
        {"{\"script\":\"#!  \\ntrue\"}", "[/bin/sh]"},
        {"{\"script\":\"#!a\"}", "[a]"},
        {"{\"script\":\"true\\n\"}", "[/bin/sh]"},
        {"{\"script\":\"# !\\n\"}", "[/bin/sh]"},
        {"{\"script\":\"!!/bin/no\\n\"}", "[/bin/sh]"},
        {"{\"script\":\"\"}", "[/bin/sh]"},
        {"{\"command\":\"a b\"}", "[/bin/sh][-c][a b]"},
        {"{\"command\":[\"a\",\"b c\"]}", "[a][b c]"},
    };
    struct desk_kit kit = {.started = note_argv};
    desk_kit_start(&kit);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_submission submission = one_gpu();
        acre_test_context("%s", rows[i].spec);
        submit(&kit, &submission, rows[i].spec);
        kit.event_count = 0;
        desk_kit_until(&kit, has_ended);
        CHECK_STR(argv_text, rows[i].expect);
    }
    desk_kit_finish(&kit);
}

/* --- elsewhere ------------------------------------------------------------------------------ */

static bool second_completed(struct desk_kit *kit) {
    return desk_kit_told(kit, ACRE_SCHED_COMPLETED, 2) == 1;
}

/* No engine starts it, and none is asked about it after a restart. */
static void external_jobs_are_known_until_they_end(void) {
    static const char *const names[] = {"one", "two", "three"};
    struct desk_kit kit = {.on_disk = true};
    uint64_t found = 0;
    desk_kit_start(&kit);
    for (uint64_t i = 0; i < ACRE_COUNT(names); i++) {
        struct acre_submission submission = one_gpu();
        submission.name = names[i];
        submission.recipe.external = true;
        CHECK_U64(submit(&kit, &submission, "{\"share_milli\":1000,\"external\":true}"), i + 1);
    }
    desk_kit_until(&kit, three_started);
    acre_desk_end_external(kit.desk, 2, 0);
    desk_kit_until(&kit, second_completed);
    for (int restarted = 0; restarted < 2; restarted++) {
        acre_test_context("restarted %d times", restarted);
        CHECK(acre_desk_is_external(kit.desk, 1));
        CHECK(!acre_desk_is_external(kit.desk, 2));
        CHECK(acre_desk_is_external(kit.desk, 3));
        CHECK(!acre_desk_is_external(kit.desk, 4));
        REQUIRE(acre_desk_find_external(kit.desk, "ada", "three", &found));
        CHECK_U64(found, 3);
        CHECK(!acre_desk_find_external(kit.desk, "ada", "two", &found));
        CHECK(!acre_desk_find_external(kit.desk, "eve", "three", &found));
        desk_kit_stop(&kit);
        desk_kit_start(&kit);
        desk_kit_turns(&kit, 5);
    }
    CHECK_U64(desk_kit_told(&kit, ACRE_SCHED_REQUEUED, 0), 0);
    CHECK_U64(fake_world_began(kit.world), 0);
    desk_kit_finish(&kit);
}

static const struct acre_test tests[] = {
    {"what_the_engine_says_about_an_end_is_stored", what_the_engine_says_about_an_end_is_stored, 0},
    {"where_a_job_ran_is_in_its_row", where_a_job_ran_is_in_its_row, 0},
    {"a_job_whose_dependency_fails_says_which", a_job_whose_dependency_fails_says_which, 0},
    {"a_failed_run_is_judged_by_what_it_wrote", a_failed_run_is_judged_by_what_it_wrote, 0},
    {"a_run_that_ends_with_its_reservation_says_so", a_run_that_ends_with_its_reservation_says_so,
     0},
    {"every_engine_gets_the_limits_of_the_policy", every_engine_gets_the_limits_of_the_policy, 0},
    {"every_engine_forgets_and_is_described", every_engine_forgets_and_is_described, 0},
    {"processes_are_those_of_every_engine", processes_are_those_of_every_engine, 0},
    {"a_log_may_be_any_engines", a_log_may_be_any_engines, 0},
    {"a_log_path_that_does_not_fit_is_none", a_log_path_that_does_not_fit_is_none, 0},
    {"a_run_is_held_to_the_memory_of_its_share", a_run_is_held_to_the_memory_of_its_share, 0},
    {"a_script_names_its_program", a_script_names_its_program, 0},
    {"external_jobs_are_known_until_they_end", external_jobs_are_known_until_they_end, 0},
};
ACRE_TEST_MAIN(tests)
