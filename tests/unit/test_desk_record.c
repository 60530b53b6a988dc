/* A job's row: what is written is read back (STO-1), and what somebody changed is refused. */
#include "api/view.h"
#include "desk/record.h"

#include "core/arena.h"
#include "ledger/nodes.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

static struct acre_ledger *make_ledger(void) {
    struct acre_ledger_options options = {0};
    struct acre_ledger *ledger = acre_ledger_create(&options);
    static const char *const names[] = {"gpu-a", "gpu-b"};
    for (uint32_t n = 0; n < 2; n++) {
        char ids[2][32];
        struct acre_device_spec devices[2];
        for (uint32_t d = 0; d < 2; d++) {
            snprintf(ids[d], sizeof(ids[d]), "%s/%u", names[n], d);
            devices[d] = (struct acre_device_spec){
                .id = ids[d], .model = "H100", .vendor = "NVIDIA", .memory_mib = 81920};
        }
        struct acre_node_spec node = {.name = names[n],
                                      .cpu_milli = 64000,
                                      .ram_mib = 524288,
                                      .devices = devices,
                                      .device_count = 2};
        uint32_t index = 0;
        REQUIRE_EQ(acre_ledger_add_node(ledger, &node, &index, NULL), 0);
    }
    return ledger;
}

static uint32_t name(struct acre_ledger *ledger, const char *text) {
    return acre_names_intern(acre_ledger_names(ledger), acre_str_from(text));
}

static json_t *parse(const char *text) {
    json_t *root = NULL;
    REQUIRE_EQ(acre_json_parse("test", acre_str_from(text), 1 << 20, &root, NULL), 0);
    return root;
}

/* Every field different from its default. */
static struct acre_job full_job(struct acre_ledger *ledger, struct acre_dependency *after) {
    after[0] = (struct acre_dependency){.job = 12, .kind = ACRE_DEPENDENCY_AFTER_OK};
    after[1] = (struct acre_dependency){.job = 13, .kind = ACRE_DEPENDENCY_AFTER_ANY};
    return (struct acre_job){
        .spec = {.id = 42,
                 .user = name(ledger, "ada"),
                 .project = name(ledger, "vision"),
                 .name = name(ledger, "train"),
                 .request = {.replicas = 2,
                             .gpus = 2,
                             .milli = 500,
                             .mib = 20480,
                             .cpu_milli = 1500,
                             .ram_mib = 4096,
                             .exclusive = true,
                             .isolation = ACRE_ISOLATION_MPS,
                             .vendor = name(ledger, "NVIDIA"),
                             .models = {name(ledger, "H100"), name(ledger, "H200")},
                             .labels = {name(ledger, "zone=a")},
                             .reservation = 7},
                 .priority = ACRE_PRIORITY_HIGH,
                 .estimate_ms = 1800000,
                 .limit_ms = 7200000,
                 .begin_ms = 1700000000000,
                 .max_retries = 3,
                 .held = true,
                 .fixed = true,
                 .smaller_on_oom = true,
                 .array = 40,
                 .array_index = 2,
                 .array_limit = 5,
                 .dependencies = after,
                 .dependency_count = 2},
        .state = ACRE_JOB_QUEUED,
        .attempt = 2,
        .retries = 1,
        .preemptions = 4,
        .canceling = true,
        .submitted_ms = 1700000000001,
        .eligible_ms = 1700000000002,
        .not_before_ms = 1700000000003,
        .scheduled_ms = 1700000000004,
        .started_ms = 1700000000005,
        .ended_ms = 1700000000006,
        .run_ms = 777,
        .preempted_for = 99,
        .exit = {.kind = ACRE_EXIT_OUT_OF_MEMORY,
                 .code = 9,
                 .peak_ram_mib = 100,
                 .peak_gpu_mib = 2000,
                 .cpu_ms = 55,
                 .gpu_use_milli = 321},
    };
}

static struct acre_store_job row_of(const struct acre_job *job, const struct acre_buf *spec,
                                    const struct acre_buf *detail) {
    return (struct acre_store_job){.id = job->spec.id,
                                   .user = "ada",
                                   .project = "vision",
                                   .name = "train",
                                   .state = acre_job_state_name(job->state),
                                   .live = true,
                                   .priority = (uint32_t)job->spec.priority,
                                   .array = job->spec.array,
                                   .attempt = job->attempt,
                                   .submitted_ms = job->submitted_ms,
                                   .started_ms = job->started_ms,
                                   .ended_ms = job->ended_ms,
                                   .spec = {spec->data, spec->length},
                                   .detail = {detail->data, detail->length}};
}

static void check_request(const struct acre_request *a, const struct acre_request *b) {
    CHECK_U64(a->replicas, b->replicas);
    CHECK_U64(a->gpus, b->gpus);
    CHECK_U64(a->milli, b->milli);
    CHECK_U64(a->mib, b->mib);
    CHECK_U64(a->cpu_milli, b->cpu_milli);
    CHECK_U64(a->ram_mib, b->ram_mib);
    CHECK_EQ(a->exclusive, b->exclusive);
    CHECK_EQ(a->isolation, b->isolation);
    CHECK_U64(a->vendor, b->vendor);
    CHECK_U64(a->reservation, b->reservation);
    CHECK(memcmp(a->models, b->models, sizeof(a->models)) == 0);
    CHECK(memcmp(a->labels, b->labels, sizeof(a->labels)) == 0);
}

static void check_job(const struct acre_job *a, const struct acre_job *b) {
    check_request(&a->spec.request, &b->spec.request);
    CHECK_U64(a->spec.id, b->spec.id);
    CHECK_U64(a->spec.user, b->spec.user);
    CHECK_U64(a->spec.project, b->spec.project);
    CHECK_U64(a->spec.name, b->spec.name);
    CHECK_EQ(a->spec.priority, b->spec.priority);
    CHECK_U64(a->spec.estimate_ms, b->spec.estimate_ms);
    CHECK_U64(a->spec.limit_ms, b->spec.limit_ms);
    CHECK_U64(a->spec.begin_ms, b->spec.begin_ms);
    CHECK_U64(a->spec.max_retries, b->spec.max_retries);
    CHECK_EQ(a->spec.held, b->spec.held);
    CHECK_EQ(a->spec.fixed, b->spec.fixed);
    CHECK_EQ(a->spec.smaller_on_oom, b->spec.smaller_on_oom);
    CHECK_U64(a->spec.array, b->spec.array);
    CHECK_U64(a->spec.array_index, b->spec.array_index);
    CHECK_U64(a->spec.array_limit, b->spec.array_limit);
    REQUIRE(a->spec.dependency_count == b->spec.dependency_count);
    for (uint32_t i = 0; i < a->spec.dependency_count; i++) {
        CHECK_U64(a->spec.dependencies[i].job, b->spec.dependencies[i].job);
        CHECK_EQ(a->spec.dependencies[i].kind, b->spec.dependencies[i].kind);
    }
    CHECK_EQ(a->state, b->state);
    CHECK_U64(a->attempt, b->attempt);
    CHECK_U64(a->retries, b->retries);
    CHECK_U64(a->preemptions, b->preemptions);
    CHECK_EQ(a->canceling, b->canceling);
    CHECK_U64(a->submitted_ms, b->submitted_ms);
    CHECK_U64(a->eligible_ms, b->eligible_ms);
    CHECK_U64(a->not_before_ms, b->not_before_ms);
    CHECK_U64(a->scheduled_ms, b->scheduled_ms);
    CHECK_U64(a->started_ms, b->started_ms);
    CHECK_U64(a->ended_ms, b->ended_ms);
    CHECK_U64(a->run_ms, b->run_ms);
    CHECK_U64(a->preempted_for, b->preempted_for);
    CHECK_EQ(a->exit.kind, b->exit.kind);
    CHECK_EQ(a->exit.code, b->exit.code);
    CHECK_U64(a->exit.peak_ram_mib, b->exit.peak_ram_mib);
    CHECK_U64(a->exit.peak_gpu_mib, b->exit.peak_gpu_mib);
    CHECK_U64(a->exit.cpu_ms, b->exit.cpu_ms);
    CHECK_U64(a->exit.gpu_use_milli, b->exit.gpu_use_milli);
}

static void every_field_comes_back(void) {
    struct acre_ledger *ledger = make_ledger();
    struct acre_dependency after[2];
    struct acre_job job = full_job(ledger, after);
    json_t *command = parse("[\"python3\", \"train.py\", \"a \\\"b\\\"\"]");
    json_t *environment = parse("{\"A\": \"1\", \"PATH\": \"/bin\"}");
    struct acre_recipe recipe = {.command = command,
                                 .environment = environment,
                                 .directory = "/data",
                                 .warn_ms = 60000,
                                 .grace_ms = 5000,
                                 .warn_signal = 12,
                                 .no_network = true};
    struct acre_buf spec, detail;
    acre_buf_init(&spec, 1 << 16);
    acre_buf_init(&detail, 1 << 16);
    REQUIRE_EQ(acre_record_write_spec(acre_ledger_names(ledger), &job.spec, &recipe, &spec), 0);
    REQUIRE_EQ(acre_record_write_detail(ledger, &job, "GPU memory", (struct acre_str){0}, &detail),
               0);

    struct acre_arena *arena = acre_arena_create(1 << 20);
    struct acre_store_job row = row_of(&job, &spec, &detail);
    struct acre_recorded_job back;
    struct acre_error err = {0};
    REQUIRE_EQ(acre_record_read_job(&row, NULL, acre_ledger_names(ledger), arena, &back, &err), 0);
    check_job(&back.job, &job);
    CHECK_STR(back.exit_text, "GPU memory");
    CHECK(back.exited);
    CHECK(json_equal(back.recipe.command, command));
    CHECK(json_equal(back.recipe.environment, environment));
    CHECK_STR(back.recipe.directory, "/data");
    CHECK_U64(back.recipe.warn_ms, 60000);
    CHECK_U64(back.recipe.grace_ms, 5000);
    CHECK_EQ(back.recipe.warn_signal, 12);
    CHECK(back.recipe.no_network && !back.recipe.external);
    json_decref(back.spec);
    json_decref(command);
    json_decref(environment);
    acre_buf_finish(&spec);
    acre_buf_finish(&detail);
    acre_arena_destroy(arena);
    acre_ledger_destroy(ledger);
}

static void a_plain_job_is_short(void) {
    struct acre_ledger *ledger = make_ledger();
    struct acre_job job = {.spec = {.id = 1, .request = {.replicas = 1, .gpus = 1, .milli = 1000}},
                           .eligible_ms = 5};
    struct acre_recipe recipe = {.command = NULL, .directory = "", .script = "#!/bin/sh\n"};
    struct acre_buf text;
    acre_buf_init(&text, 1 << 16);
    REQUIRE_EQ(acre_record_write_detail(ledger, &job, "", (struct acre_str){0}, &text), 0);
    CHECK_STR(text.data, "{\"eligible_ms\":5}");
    acre_buf_clear(&text);
    REQUIRE_EQ(acre_record_write_spec(acre_ledger_names(ledger), &job.spec, &recipe, &text), 0);
    CHECK_STR(text.data, "{\"script\":\"#!/bin/sh\\n\",\"share_milli\":1000}");
    acre_buf_finish(&text);
    acre_ledger_destroy(ledger);
}

/* Before and after it is stored, a job says the same of its end. */
static void an_end_without_a_run_is_told_from_memory_too(void) {
    static const struct {
        uint64_t ended_ms;
        uint32_t attempt;
        const char *text;
        bool exited;
    } rows[] = {{0, 1, "", false}, {5, 1, "", true}, {5, 0, "why", true}, {5, 0, "", false}};
    struct acre_ledger *ledger = make_ledger();
    struct acre_arena *arena = acre_arena_create(1 << 20);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_job job = {.ended_ms = rows[i].ended_ms, .attempt = rows[i].attempt};
        struct acre_recipe recipe = {.directory = ""};
        struct job_view view = {.exit_text = rows[i].text};
        view_live(&view, ledger, &job, &recipe, arena);
        CHECK_EQ(view.exited, rows[i].exited);
    }
    acre_arena_destroy(arena);
    acre_ledger_destroy(ledger);
}

static void check_exit(const struct job_view *view, const char *expect) {
    struct acre_buf text;
    struct acre_json json;
    acre_buf_init(&text, 1 << 16);
    acre_json_begin(&json, &text, false);
    view_write(view, &json);
    acre_json_end(&json);
    json_t *all = parse(text.data);
    char *ending = json_dumps(json_object_get(all, "exit"), JSON_COMPACT);
    CHECK_STR(ending, expect);
    free(ending);
    json_decref(all);
    acre_buf_finish(&text);
}

/* A job that never ran has an exit of zeros in memory: they are not what happened. */
static void an_end_is_the_same_before_and_after_it_is_stored(void) {
    static const struct {
        uint32_t attempt;
        struct acre_job_exit exit;
        const char *expect;
    } rows[] = {
        {0,
         {0},
         "{\"kind\":\"not started\",\"code\":null,\"text\":\"why\",\"peak_ram_mib\":null,"
         "\"peak_gpu_mib\":null,\"cpu_ms\":null,\"gpu_use_milli\":null}"},
        {1,
         {ACRE_EXIT_OUT_OF_MEMORY, 9, 100, 2000, 55, 77, 321},
         "{\"kind\":\"out of memory\",\"code\":9,\"text\":\"why\",\"peak_ram_mib\":100,"
         "\"peak_gpu_mib\":2000,\"cpu_ms\":55,\"gpu_use_milli\":321}"},
    };
    struct acre_ledger *ledger = make_ledger();
    struct acre_arena *arena = acre_arena_create(1 << 20);
    struct acre_buf spec = {.data = (char[]){"{}"}, .length = 2};
    struct acre_recipe recipe = {.directory = ""};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_job job = {.ended_ms = 5, .attempt = rows[i].attempt, .exit = rows[i].exit};
        struct job_view live = {.exit_text = "why"}, stored = {0};
        acre_test_context("row %zu, live", i);
        view_live(&live, ledger, &job, &recipe, arena);
        check_exit(&live, rows[i].expect);
        struct acre_buf detail;
        struct acre_recorded_job back;
        acre_buf_init(&detail, 1 << 16);
        acre_test_context("row %zu, stored", i);
        REQUIRE_EQ(acre_record_write_detail(ledger, &job, "why", (struct acre_str){0}, &detail), 0);
        struct acre_store_job row = row_of(&job, &spec, &detail);
        REQUIRE_EQ(acre_record_read_job(&row, NULL, NULL, arena, &back, NULL), 0);
        view_recorded(&stored, &row, &back, arena);
        check_exit(&stored, rows[i].expect);
        CHECK_U64(back.job.exit.log_bytes, rows[i].exit.log_bytes);
        json_decref(back.spec);
        acre_buf_finish(&detail);
    }
    acre_arena_destroy(arena);
    acre_ledger_destroy(ledger);
}

/* Parts are recorded by name: another order of nodes changes nothing, a lost device is named. */
static void parts_are_found_by_name(void) {
    struct acre_ledger *ledger = make_ledger();
    struct acre_request request = {.replicas = 2, .gpus = 1, .milli = 1000, .cpu_milli = 1000};
    struct acre_job job = {.spec = {.id = 1, .request = request}, .state = ACRE_JOB_RUNNING};
    REQUIRE_EQ(acre_ledger_allocate(ledger, &request, 1, &job.allocation, NULL), 0);
    struct acre_buf detail;
    acre_buf_init(&detail, 1 << 16);
    REQUIRE_EQ(acre_record_write_detail(ledger, &job, "", (struct acre_str){0}, &detail), 0);
    struct acre_buf spec = {.data = (char[]){"{}"}, .length = 2};
    struct acre_store_job row = row_of(&job, &spec, &detail);
    struct acre_arena *arena = acre_arena_create(1 << 20);
    struct acre_recorded_job back;
    REQUIRE_EQ(acre_record_read_job(&row, NULL, NULL, arena, &back, NULL), 0);
    REQUIRE(back.part_count == 2);
    struct acre_part parts[2];
    struct acre_allocation held;
    REQUIRE(acre_ledger_find(ledger, job.allocation, &held));
    REQUIRE_EQ(acre_record_find_parts(ledger, &back, parts, NULL), 0);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_U64(parts[i].node, held.parts[i].node);
        CHECK_U64(parts[i].device, held.parts[i].device);
        CHECK_U64(parts[i].milli, held.parts[i].milli);
        CHECK_U64(parts[i].mib, held.parts[i].mib);
        CHECK_U64(parts[i].cpu_milli, held.parts[i].cpu_milli);
        CHECK_EQ(parts[i].by_share, held.parts[i].by_share);
    }
    struct acre_error err = {0};
    back.parts[1].device = "gpu-x/9";
    CHECK_EQ(acre_record_find_parts(ledger, &back, parts, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "gpu-x/9");
    back.parts[0].node = "gpu-x";
    CHECK_EQ(acre_record_find_parts(ledger, &back, parts, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "node 'gpu-x'");
    json_decref(back.spec);
    acre_buf_finish(&detail);
    acre_arena_destroy(arena);
    acre_ledger_destroy(ledger);
}

static struct acre_store_job plain_row(const char *spec, const char *detail) {
    return (struct acre_store_job){.id = 77,
                                   .user = "ada",
                                   .project = "p",
                                   .name = "",
                                   .state = "queued",
                                   .spec = acre_str_from(spec),
                                   .detail = acre_str_from(detail)};
}

/* What is in the row besides does not keep a part of it from being read. */
static void place_and_end_come_back_together(void) {
    struct acre_arena *arena = acre_arena_create(1 << 20);
    struct acre_store_job row =
        plain_row("{}", "{\"parts\":[{\"node\":\"gpu-a\",\"ram_mib\":512}],"
                        "\"exit\":{\"kind\":\"killed\",\"code\":9,\"text\":\"x\"}}");
    struct acre_recorded_job back;
    REQUIRE_EQ(acre_record_read_job(&row, NULL, NULL, arena, &back, NULL), 0);
    CHECK_U64(back.part_count, 1);
    CHECK_STR(back.parts[0].node, "gpu-a");
    CHECK(back.parts[0].device == NULL);
    CHECK_U64(back.parts[0].ram_mib, 512);
    CHECK(back.exited);
    CHECK_EQ(back.job.exit.kind, ACRE_EXIT_SIGNAL);
    CHECK_STR(back.exit_text, "x");
    json_decref(back.spec);
    acre_arena_destroy(arena);
}

/* What no one measured is left out, and so is what a job that never ran cannot have. */
static void only_what_was_measured_is_stored(void) {
    static const struct {
        uint32_t attempt;
        struct acre_job_exit exit;
        const char *expect;
    } rows[] = {
        {0, {0}, "{\"exit\":{\"kind\":\"not started\",\"code\":0,\"text\":\"why\"}}"},
        {1,
         {ACRE_EXIT_CODE, 3, ACRE_UNKNOWN, ACRE_UNKNOWN, ACRE_UNKNOWN, 0, UINT32_MAX},
         "{\"exit\":{\"kind\":\"exited\",\"code\":3,\"text\":\"why\"}}"},
    };
    struct acre_ledger *ledger = make_ledger();
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_job job = {.spec.request = {.replicas = 1, .gpus = 1},
                               .ended_ms = 5,
                               .attempt = rows[i].attempt,
                               .exit = rows[i].exit};
        struct acre_buf detail;
        acre_buf_init(&detail, 1 << 16);
        acre_test_context("row %zu", i);
        REQUIRE_EQ(acre_record_write_detail(ledger, &job, "why", (struct acre_str){0}, &detail), 0);
        CHECK_STR(detail.data, rows[i].expect);
        acre_buf_finish(&detail);
    }
    acre_ledger_destroy(ledger);
}

/* JOB-4: a retry after an out-of-memory asks for less than the spec says. */
static void a_request_that_became_smaller_stays_smaller(void) {
    struct acre_ledger *ledger = make_ledger();
    struct acre_arena *arena = acre_arena_create(1 << 20);
    struct acre_job job = {
        .spec = {.request = {.milli = 250, .mib = 10240}, .smaller_on_oom = true},
        .ended_ms = 5,
        .attempt = 1};
    struct acre_buf detail;
    acre_buf_init(&detail, 1 << 16);
    REQUIRE_EQ(acre_record_write_detail(ledger, &job, "x", (struct acre_str){0}, &detail), 0);
    CHECK_HAS(detail.data, "\"text\":\"x\""); /* however short */
    struct acre_store_job row = plain_row(
        "{\"share_milli\":500,\"gpu_memory_mib\":20480,\"smaller_on_oom\":true}", detail.data);
    struct acre_recorded_job back;
    REQUIRE_EQ(acre_record_read_job(&row, NULL, NULL, arena, &back, NULL), 0);
    CHECK_U64(back.job.spec.request.milli, 250);
    CHECK_U64(back.job.spec.request.mib, 10240);
    json_decref(back.spec);
    acre_buf_finish(&detail);
    acre_arena_destroy(arena);
    acre_ledger_destroy(ledger);
}

/* To show a job its names are not needed, and none is taken. */
static void a_row_is_read_without_names(void) {
    struct acre_arena *arena = acre_arena_create(1 << 20);
    struct acre_store_job row =
        plain_row("{\"vendor\":\"NVIDIA\",\"models\":[\"H100\"],\"labels\":[\"zone=a\"]}", "{}");
    struct acre_recorded_job back;
    REQUIRE_EQ(acre_record_read_job(&row, NULL, NULL, arena, &back, NULL), 0);
    CHECK_U64(back.job.spec.request.vendor, 0);
    CHECK_U64(back.job.spec.request.models[0], 0);
    CHECK_U64(back.job.spec.user, 0);
    json_decref(back.spec);
    acre_arena_destroy(arena);
}

static void a_changed_row_is_refused(void) {
    static const struct {
        const char *spec, *detail, *state;
    } rows[] = {
        {"{", "{}", "queued"},
        {"{}", "[1", "queued"},
        {"{\"nodes\": 5000}", "{}", "queued"},
        {"{\"gpus\": \"two\"}", "{}", "queued"},
        {"{\"isolation\": \"walls\"}", "{}", "queued"},
        {"{\"command\": 7}", "{}", "queued"},
        {"{\"environment\": []}", "{}", "queued"},
        {"{\"models\": [1,2,3,4,5,6,7,8,9]}", "{}", "queued"},
        {"{}", "{\"after\": 7}", "queued"},
        {"{}", "{\"after\": [{\"job\": 0, \"kind\": \"after\"}]}", "queued"},
        {"{}", "{\"after\": [{\"job\": 1, \"kind\": \"before\"}]}", "queued"},
        {"{}", "{\"parts\": {}}", "queued"},
        {"{}", "{\"parts\": [{\"milli\": 1}]}", "queued"},
        {"{}", "{\"exit\": {\"kind\": \"bored\"}}", "queued"},
        {"{}", "{\"retries\": 1000}", "queued"},
        {"{}", "{}", "sleeping"},
    };
    struct acre_ledger *ledger = make_ledger();
    struct acre_arena *arena = acre_arena_create(1 << 20);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_store_job row = plain_row(rows[i].spec, rows[i].detail);
        row.state = rows[i].state;
        struct acre_recorded_job back;
        struct acre_error err = {0};
        acre_test_context("%s %s", rows[i].spec, rows[i].detail);
        CHECK_EQ(acre_record_read_job(&row, NULL, acre_ledger_names(ledger), arena, &back, &err),
                 ACRE_ECORRUPT);
        CHECK_EQ(err.code, ACRE_ECORRUPT);
        CHECK_HAS(err.text, "job 77 in the store");
    }
    struct acre_recipe recipe;
    json_t *json = json_pack("{s:i}", "script", 1);
    CHECK_EQ(acre_record_read_recipe(json, &recipe, NULL), ACRE_ECORRUPT);
    json_decref(json);
    acre_arena_destroy(arena);
    acre_ledger_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"every_field_comes_back", every_field_comes_back, 0},
    {"a_plain_job_is_short", a_plain_job_is_short, 0},
    {"an_end_without_a_run_is_told_from_memory_too", an_end_without_a_run_is_told_from_memory_too,
     0},
    {"an_end_is_the_same_before_and_after_it_is_stored",
     an_end_is_the_same_before_and_after_it_is_stored, 0},
    {"parts_are_found_by_name", parts_are_found_by_name, 0},
    {"place_and_end_come_back_together", place_and_end_come_back_together, 0},
    {"only_what_was_measured_is_stored", only_what_was_measured_is_stored, 0},
    {"a_request_that_became_smaller_stays_smaller", a_request_that_became_smaller_stays_smaller, 0},
    {"a_row_is_read_without_names", a_row_is_read_without_names, 0},
    {"a_changed_row_is_refused", a_changed_row_is_refused, 0},
};
ACRE_TEST_MAIN(tests)
