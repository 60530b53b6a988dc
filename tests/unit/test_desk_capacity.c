/* Nodes' reports as the desk makes them of the ledger and of readings (CAP-1 to CAP-9). */
#include "desk/capacity.h"
#include "desk/commands.h"
#include "support/desk_kit.h"
#include "support/test.h"

#include <string.h>

enum { LONG_MS = 3600 * 1000, MINUTE_MS = 60000, WHOLE_MIB = 81920 };

static uint32_t wanted_runs;
static bool all_run(struct desk_kit *kit) {
    struct acre_sched_counts counts;
    acre_sched_counts(acre_desk_sched(kit->desk), &counts);
    return counts.jobs[ACRE_JOB_RUNNING] == wanted_runs;
}

/* `count` jobs of `mib` GPU memory, or of a CPU alone when that is 0; until `total` run. */
static void run_jobs(struct desk_kit *kit, uint32_t count, uint64_t mib, uint32_t total) {
    for (uint32_t i = 0; i < count; i++) {
        struct acre_submission submission = {
            .user = "ada",
            .project = "vision",
            .spec = {.request = {.replicas = 1, .gpus = mib != 0, .mib = mib, .cpu_milli = 1000},
                     .priority = ACRE_PRIORITY_NORMAL},
            .count = 1};
        struct acre_error err = {0};
        uint64_t id = 0;
        int r =
            acre_desk_submit(kit->desk, &submission, ACRE_STR("{\"command\":\"true\"}"), &id, &err);
        CHECK_STR(err.text, "");
        REQUIRE_EQ(r, 0);
    }
    wanted_runs = total;
    desk_kit_until(kit, all_run);
}

static struct acre_capacity_view view_of(struct desk_kit *kit, uint32_t node) {
    struct acre_capacity_view view = {0};
    REQUIRE(acre_desk_capacity(kit->desk, node, &view));
    return view;
}

static void reports_follow_the_ledger_at_once(void) {
    struct desk_kit kit = {.run_ms = LONG_MS, .mib = 1024};
    desk_kit_start(&kit);
    struct acre_capacity_view view = view_of(&kit, 0);
    CHECK_U64(view.reported.device_count, KIT_DEVICES);
    CHECK_U64(view.reported.total_mib, 2 * WHOLE_MIB);
    CHECK_U64(view.reported.available_mib, 2 * WHOLE_MIB);
    CHECK_U64(view.reported.queue_depth, 0);
    CHECK_U64(view.reported.time_ms, KIT_WALL_MS);
    CHECK_STR(acre_desk_backend_name(view.reported.backend), "unknown");
    CHECK_NEAR(view.score, 100, 0);
    run_jobs(&kit, 1, 20480, 1); /* the fuller of equals is the first node */
    view = view_of(&kit, 0);
    CHECK_U64(view.reported.available_mib, 2 * WHOLE_MIB - 20480);
    CHECK_U64(view.reported.largest_device_available_mib, WHOLE_MIB);
    CHECK_U64(view.reported.queue_depth, 1);
    CHECK_NEAR(view.score, 85.5, 1e-9);
    acre_desk_drain_device(kit.desk, 1, "hot");
    view = view_of(&kit, 0); /* without a turn in between */
    CHECK_U64(view.reported.available_mib, WHOLE_MIB - 20480);
    acre_desk_set_foreign(kit.desk, 0, 1024);
    CHECK_U64(view_of(&kit, 0).reported.available_mib, WHOLE_MIB - 20480 - 1024);
    acre_desk_drain_node(kit.desk, 0, "fan");
    view = view_of(&kit, 0);
    CHECK_U64(view.reported.available_mib, 0);
    CHECK_NEAR(view.score, 0, 0);
    REQUIRE_EQ(acre_desk_cancel(kit.desk, 1, NULL), 0);
    wanted_runs = 0;
    desk_kit_until(&kit, all_run);
    CHECK_U64(view_of(&kit, 0).reported.queue_depth, 0);
    desk_kit_finish(&kit);
}

/* CAP-6, made of jobs and of memory that others use on one GPU of 8 GiB. */
static void scores_follow_the_vectors(void) {
    static const struct {
        uint32_t gpu_jobs, cpu_jobs;
        uint64_t foreign_mib; /* the rest of what is not free */
        uint64_t available_mib;
        double score;
    } rows[] = {
        {0, 0, 0, 8192, 100},    {0, 10, 0, 8192, 80},       {0, 11, 0, 8192, 80},
        {1, 0, 0, 8000, 95.656}, {5, 0, 3232, 4000, 38.828}, {5, 0, 3136, 4096, 40},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct desk_kit kit = {.run_ms = LONG_MS};
        desk_kit_prepare(&kit);
        kit.node_count = 1;
        kit.nodes[0].device_count = 1;
        kit.devices[0][0].memory_mib = 8192;
        desk_kit_start(&kit);
        run_jobs(&kit, rows[i].gpu_jobs, 192, rows[i].gpu_jobs);
        run_jobs(&kit, rows[i].cpu_jobs, 0, rows[i].gpu_jobs + rows[i].cpu_jobs);
        acre_desk_set_foreign(kit.desk, 0, rows[i].foreign_mib);
        struct acre_capacity_view view = view_of(&kit, 0);
        CHECK_U64(view.reported.available_mib, rows[i].available_mib);
        CHECK_U64(view.reported.queue_depth, rows[i].gpu_jobs + rows[i].cpu_jobs);
        CHECK_NEAR(view.score, rows[i].score, 0.001);
        desk_kit_finish(&kit);
    }
}

static void read(struct desk_kit *kit, uint32_t device, uint64_t utilization_pct) {
    struct acre_device_live live = {.sampled_ms = KIT_WALL_MS, .utilization_pct = utilization_pct};
    acre_desk_set_live(kit->desk, device, &live);
}

/* CAP-2 */
static void a_node_whose_readings_stop_grows_stale_and_is_dropped(void) {
    struct desk_kit kit = {.run_ms = LONG_MS};
    struct acre_capacity_view view;
    desk_kit_start(&kit);
    read(&kit, 0, 10);
    acre_clock_advance(&kit.clock, 2 * MINUTE_MS);
    view = view_of(&kit, 0);
    CHECK(!view.stale); /* strictly older */
    CHECK_U64(view.reported.time_ms, KIT_WALL_MS);
    acre_clock_advance(&kit.clock, 1);
    view = view_of(&kit, 0);
    CHECK(view.stale);
    CHECK_NEAR(view.score, 0, 0);
    view = view_of(&kit, 1); /* nobody reads this one: it is what the ledger says */
    CHECK(!view.stale);
    struct acre_capacity_stats stats = acre_desk_capacity_stats(kit.desk);
    CHECK_U64(stats.nodes, 2);
    CHECK_U64(stats.devices, KIT_DEVICES);
    acre_clock_advance(&kit.clock, 3 * MINUTE_MS);
    CHECK(!acre_desk_capacity(kit.desk, 0, &view));
    CHECK(acre_desk_capacity(kit.desk, 1, &view));
    read(&kit, 1, 10);
    CHECK(!view_of(&kit, 0).stale);
    desk_kit_finish(&kit);
}

static void a_lost_node_has_no_report(void) {
    struct desk_kit kit = {.run_ms = LONG_MS};
    struct acre_capacity_view view;
    desk_kit_start(&kit);
    CHECK(acre_desk_capacity(kit.desk, 1, &view));
    fake_lose(kit.world, "gpu-b", "the network is down");
    CHECK(!acre_desk_capacity(kit.desk, 1, &view));
    CHECK_U64(acre_desk_capacity_stats(kit.desk).nodes, 1);
    fake_join(kit.world, &kit.nodes[1]);
    CHECK(acre_desk_capacity(kit.desk, 1, &view));
    desk_kit_finish(&kit);
}

static int best(struct desk_kit *kit, struct acre_best_request request,
                struct acre_director_answer *ret_answer, struct acre_error *err) {
    *err = (struct acre_error){0};
    return acre_desk_best_node(kit->desk, &request, ret_answer, err);
}

/* CAP-4, CAP-7 */
static void the_best_node_has_the_score_and_one_device_that_fits(void) {
    struct desk_kit kit = {.run_ms = LONG_MS};
    static const char *const labels[] = {"zone=b"};
    static const char *const models[] = {"a100"};
    struct acre_director_answer answer;
    struct acre_error err;
    desk_kit_prepare(&kit);
    kit.nodes[1].labels = labels;
    kit.nodes[1].label_count = 1;
    kit.devices[1][0].model = "NVIDIA A100";
    kit.devices[1][0].vendor = "NVIDIA";
    kit.devices[1][0].memory_mib = 40960;
    desk_kit_start(&kit);
    struct acre_best_request any = {.min_mib = 20480, .near = ACRE_CAPACITY_NO_NODE};
    REQUIRE_EQ(best(&kit, any, &answer, &err), 0);
    CHECK_U64(answer.node, 0); /* equal scores: the first */
    acre_desk_set_foreign(kit.desk, 0, 1024);
    REQUIRE_EQ(best(&kit, any, &answer, &err), 0);
    CHECK_U64(answer.node, 1);
    struct acre_best_request near = any;
    near.near = 0;
    REQUIRE_EQ(best(&kit, near, &answer, &err), 0);
    CHECK_U64(answer.node, 0);
    CHECK(answer.is_local);
    struct acre_best_request model = any;
    model.models = models;
    model.model_count = 1;
    model.vendor = "nvidia";
    REQUIRE_EQ(best(&kit, model, &answer, &err), 0);
    CHECK_U64(answer.node, 1);
    model.min_mib = 40961; /* the other GPU of that node has it, but is no A100 */
    CHECK_EQ(best(&kit, model, &answer, &err), ACRE_ENOFIT);
    CHECK_HAS(err.text, "lack such a GPU");
    struct acre_best_request vendor = any;
    vendor.vendor = "amd";
    CHECK_EQ(best(&kit, vendor, &answer, &err), ACRE_ENOFIT);
    vendor.vendor = "nvidia";
    CHECK_EQ(best(&kit, vendor, &answer, &err), 0);
    struct acre_best_request label = any;
    label.labels = labels;
    label.label_count = 1;
    label.near = 0;
    REQUIRE_EQ(best(&kit, label, &answer, &err), 0);
    CHECK_U64(answer.node, 1);
    for (int i = 0; i < 100; i++) { /* asking takes nothing */
        REQUIRE_EQ(best(&kit, any, &answer, &err), 0);
        CHECK_U64(answer.node, 1);
    }
    CHECK_U64(view_of(&kit, 1).reservations, 0);
    desk_kit_finish(&kit);
}

static void a_cpu_node_serves_where_it_is_allowed(void) {
    struct desk_kit kit = {.run_ms = LONG_MS};
    struct acre_director_answer answer;
    struct acre_error err;
    desk_kit_prepare(&kit);
    kit.nodes[1].device_count = 0;
    desk_kit_start(&kit);
    struct acre_best_request request = {.min_mib = WHOLE_MIB + 1, .near = ACRE_CAPACITY_NO_NODE};
    CHECK_EQ(best(&kit, request, &answer, &err), ACRE_ENOFIT);
    CHECK_HAS(err.text, "the largest free device has 80 GiB; nodes without GPUs are not allowed");
    request.cpu_allowed = true;
    REQUIRE_EQ(best(&kit, request, &answer, &err), 0);
    CHECK_U64(answer.node, 1);
    CHECK(answer.is_cpu);
    CHECK_STR(acre_desk_backend_name(view_of(&kit, 1).reported.backend), "cpu");
    desk_kit_finish(&kit);
}

/* Unknown is not 0. */
static void loads_say_what_is_not_known(void) {
    struct desk_kit kit = {.run_ms = LONG_MS};
    struct acre_device_load load;
    desk_kit_start(&kit);
    acre_desk_device_load(kit.desk, 0, &load);
    CHECK(!load.has_utilisation);
    CHECK(load.has_memory);
    read(&kit, 0, 35);
    acre_desk_device_load(kit.desk, 0, &load);
    CHECK(load.has_utilisation);
    CHECK_NEAR(load.load.utilisation, 0.35, 1e-9);
    CHECK_NEAR(load.load.queue, 0, 0);
    read(&kit, 0, ACRE_UNKNOWN);
    acre_desk_device_load(kit.desk, 0, &load);
    CHECK(!load.has_utilisation);
    acre_desk_drain_device(kit.desk, 0, "hot");
    acre_desk_device_load(kit.desk, 0, &load);
    CHECK(load.drained);
    desk_kit_finish(&kit);
}

static const struct acre_test tests[] = {
    {"reports_follow_the_ledger_at_once", reports_follow_the_ledger_at_once, 0},
    {"scores_follow_the_vectors", scores_follow_the_vectors, 0},
    {"a_node_whose_readings_stop_grows_stale_and_is_dropped",
     a_node_whose_readings_stop_grows_stale_and_is_dropped, 0},
    {"a_lost_node_has_no_report", a_lost_node_has_no_report, 0},
    {"the_best_node_has_the_score_and_one_device_that_fits",
     the_best_node_has_the_score_and_one_device_that_fits, 0},
    {"a_cpu_node_serves_where_it_is_allowed", a_cpu_node_serves_where_it_is_allowed, 0},
    {"loads_say_what_is_not_known", loads_say_what_is_not_known, 0},
};
ACRE_TEST_MAIN(tests)
