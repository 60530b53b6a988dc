/* Nodes come, go and come back as engines report them, and runs go to the engine of their node. */
#include "desk/commands.h"
#include "support/desk_kit.h"
#include "support/test.h"
#include "support/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_MS = 3600 * 1000 };

static uint32_t running(struct desk_kit *kit) {
    struct acre_sched_counts counts;
    acre_sched_counts(acre_desk_sched(kit->desk), &counts);
    return counts.jobs[ACRE_JOB_RUNNING];
}
static bool two_run(struct desk_kit *kit) {
    return running(kit) == 2;
}
static bool three_run(struct desk_kit *kit) {
    return running(kit) == 3;
}

static void submit(struct desk_kit *kit, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint64_t id;
        struct acre_error err = {0};
        int r = desk_kit_submit(kit, 1, 1, &id, &err);
        CHECK_STR(err.text, "");
        REQUIRE_EQ(r, 0);
    }
}

static bool is_drained(struct desk_kit *kit, uint32_t node) {
    struct acre_ledger_node info;
    acre_ledger_node_info(acre_desk_ledger(kit->desk), node, &info);
    return info.drained;
}

/* One that joins while the daemon runs serves those who wait. */
static void a_node_that_joins_serves_those_who_wait(void) {
    struct desk_kit kit = {.run_ms = LONG_MS};
    desk_kit_prepare(&kit);
    kit.node_count = 1;
    desk_kit_start(&kit);
    submit(&kit, 3);
    desk_kit_until(&kit, two_run);
    CHECK_U64(acre_ledger_node_count(acre_desk_ledger(kit.desk)), 1);
    fake_join(kit.world, &kit.nodes[1]);
    desk_kit_until(&kit, three_run);
    CHECK_U64(acre_ledger_node_count(acre_desk_ledger(kit.desk)), 2);
    CHECK_EQ(acre_ledger_check(acre_desk_ledger(kit.desk), NULL), 0);
    desk_kit_finish(&kit);
}

/* A lost node takes nothing, says why, and takes again when it is back. */
static void a_lost_node_takes_nothing_until_it_is_back(void) {
    struct desk_kit kit = {.run_ms = LONG_MS};
    desk_kit_start(&kit);
    fake_lose(kit.world, "gpu-b", "no heartbeat for 30 s");
    CHECK(is_drained(&kit, 1));
    CHECK(!is_drained(&kit, 0));
    CHECK_STR(acre_desk_node_reason(kit.desk, 1), "no heartbeat for 30 s");
    submit(&kit, 3);
    desk_kit_until(&kit, two_run);
    desk_kit_turns(&kit, 20);
    CHECK_U64(running(&kit), 2);
    fake_join(kit.world, &kit.nodes[1]);
    CHECK(!is_drained(&kit, 1));
    CHECK_STR(acre_desk_node_reason(kit.desk, 1), "");
    desk_kit_until(&kit, three_run);
    desk_kit_finish(&kit);
}

/* What an operator drained is theirs to return, whatever its engine reports meanwhile; and the
 * other way round, a lost node stays lost when an operator returns it. */
static void an_operators_drain_and_a_loss_are_two_things(void) {
    struct desk_kit kit = {0};
    desk_kit_start(&kit);
    acre_desk_drain_node(kit.desk, 1, "new fan");
    fake_lose(kit.world, "gpu-b", "rebooting");
    CHECK_STR(acre_desk_node_reason(kit.desk, 1), "new fan");
    fake_join(kit.world, &kit.nodes[1]);
    CHECK(is_drained(&kit, 1));
    CHECK_STR(acre_desk_node_reason(kit.desk, 1), "new fan");
    fake_lose(kit.world, "gpu-b", "rebooting");
    acre_desk_drain_node(kit.desk, 1, NULL);
    CHECK(is_drained(&kit, 1));
    CHECK_STR(acre_desk_node_reason(kit.desk, 1), "rebooting");
    fake_join(kit.world, &kit.nodes[1]);
    CHECK(!is_drained(&kit, 1));
    fake_lose(kit.world, "gpu-c", "never seen"); /* nothing happens */
    desk_kit_finish(&kit);
}

static uint64_t only_job;
static bool only_completed(struct desk_kit *kit) {
    return strcmp(desk_kit_stored(kit, only_job), "completed") == 0;
}
static bool only_runs(struct desk_kit *kit) {
    return strcmp(desk_kit_stored(kit, only_job), "running") == 0;
}

/* A cluster that is away when the daemon starts: its jobs keep their places and are not run again,
 * nothing new goes there, and all goes on when it reports. */
static void jobs_keep_their_places_while_their_engine_is_away(void) {
    struct desk_kit kit = {.run_ms = 50, .on_disk = true, .remembers_nodes = true};
    desk_kit_start(&kit);
    REQUIRE_EQ(desk_kit_submit(&kit, 1, 1, &only_job, NULL), 0);
    desk_kit_until(&kit, only_runs);
    desk_kit_stop(&kit);
    kit.node_count = 0;
    kit.event_count = 0;
    desk_kit_start(&kit);
    CHECK_U64(acre_ledger_node_count(acre_desk_ledger(kit.desk)), 2);
    CHECK_U64(acre_ledger_device_count(acre_desk_ledger(kit.desk)), 4);
    CHECK(is_drained(&kit, 0) && is_drained(&kit, 1));
    CHECK_STR(acre_desk_node_reason(kit.desk, 0),
              "not reported by the engine fake since the start");
    desk_kit_until(&kit, only_completed);
    CHECK_U64(desk_kit_told(&kit, ACRE_SCHED_REQUEUED, 0), 0);
    CHECK_U64(fake_world_began(kit.world), 1);
    submit(&kit, 1);
    desk_kit_turns(&kit, 20);
    CHECK_U64(running(&kit), 0);
    fake_join(kit.world, &kit.nodes[1]);
    CHECK(is_drained(&kit, 0) && !is_drained(&kit, 1));
    only_job++;
    desk_kit_until(&kit, only_completed);
    desk_kit_finish(&kit);
}

/* Each run is started by the engine that has its node, and by no other. */
static void runs_go_to_the_engine_of_their_node(void) {
    struct desk_kit kit = {.run_ms = LONG_MS, .two_engines = true};
    desk_kit_start(&kit);
    submit(&kit, 3);
    desk_kit_until(&kit, three_run);
    CHECK_U64(fake_world_began(kit.world) + fake_world_began(kit.second_world), 3);
    CHECK(fake_world_began(kit.world) >= 1 && fake_world_began(kit.second_world) >= 1);
    for (uint64_t job = 1; job <= 3; job++) {
        REQUIRE_EQ(acre_desk_cancel(kit.desk, job, NULL), 0);
    }
    only_job = 3;
    desk_kit_turns(&kit, 20);
    CHECK_U64(fake_world_running(kit.world) + fake_world_running(kit.second_world), 0);
    desk_kit_finish(&kit);
}

/* Output that an engine delivers is kept here, once, whatever is repeated. */
static void delivered_output_is_kept(void) {
    struct desk_kit kit = {.run_ms = LONG_MS};
    struct acre_run run = {1, 1};
    char path[256], text[64] = "";
    struct tree tree = tree_create(NULL);
    kit.logs_directory = tree.root;
    desk_kit_start(&kit);
    CHECK_EQ(acre_desk_log_path(kit.desk, run, 1, path, sizeof(path), NULL), 0);
    CHECK_STR(path, "");
    fake_write(kit.world, run, 1, 0, "one two ");
    fake_write(kit.world, run, 1, 8, "three\n");
    fake_write(kit.world, run, 1, 4, "two three\n"); /* again */
    fake_write(kit.world, run, 2, 0, "oops\n");
    REQUIRE_EQ(acre_desk_log_path(kit.desk, run, 1, path, sizeof(path), NULL), 0);
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    CHECK_STR(text, "one two three\n");
    REQUIRE_EQ(acre_desk_log_path(kit.desk, run, 2, path, sizeof(path), NULL), 0);
    CHECK(strstr(path, "1.1.err") != NULL);
    desk_kit_finish(&kit);
    tree_erase(&tree);
}

/* A name is one engine's, and a node keeps its devices: what cannot be used is refused whole. */
static void a_node_that_changed_is_refused(void) {
    struct acre_engine_device devices[] = {{.id = "g0"}, {.id = "g1"}, {.id = "g2"}};
    struct acre_engine_node node = {.name = "n", .devices = devices, .device_count = 2};
    static const struct {
        uint32_t engine, first, count;
        int expect;
    } cases[] = {
        {0, 0, 2, 0},
        {1, 0, 2, ACRE_ECONFLICT},
        {0, 0, 3, ACRE_ECONFLICT},
        {0, 0, 1, ACRE_ECONFLICT},
        {0, 1, 2, ACRE_ECONFLICT},
        {0, 0, 2, 0},
    };
    struct acre_inventory *inventory = inventory_create();
    uint32_t index;
    REQUIRE_EQ(inventory_put(inventory, 0, &node, &index, NULL), 0);
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_error err = {0};
        acre_test_context("case %u", (unsigned)i);
        node.devices = devices + cases[i].first;
        node.device_count = cases[i].count;
        CHECK_EQ(inventory_put(inventory, cases[i].engine, &node, &index, &err), cases[i].expect);
        CHECK_U64(inventory_devices(inventory), 2);
    }
    inventory_destroy(inventory);
}

/* Each is found by its own name. */
static void nodes_are_told_apart_by_name(void) {
    static const char *const labels[] = {"zone=a", "disk=fast"};
    struct acre_engine_node nodes[] = {
        {.name = "a"}, {.name = "b", .labels = labels, .label_count = 2}, {.name = "c"}};
    struct acre_inventory *inventory = inventory_create();
    uint32_t index;
    for (int again = 0; again < 2; again++) {
        for (uint32_t i = 0; i < ACRE_COUNT(nodes); i++) {
            acre_test_context("%s, again %d", nodes[i].name, again);
            REQUIRE_EQ(inventory_put(inventory, 0, &nodes[i], &index, NULL), 0);
            CHECK_U64(index, i);
        }
    }
    CHECK_U64(inventory_nodes(inventory), ACRE_COUNT(nodes));
    CHECK(!inventory_find_node(inventory, "d", &index));
    const struct inventory_node *labeled = inventory_node(inventory, 1);
    REQUIRE(labeled->label_count == 2);
    CHECK_STR(labeled->labels[0], "zone=a");
    CHECK_STR(labeled->labels[1], "disk=fast");
    inventory_destroy(inventory);
}

static void people_hear_of_a_node_that_is_refused(void) {
    struct desk_kit kit = {0};
    desk_kit_start(&kit);
    kit.nodes[1].device_count = 1;
    fake_join(kit.world, &kit.nodes[1]);
    CHECK_U64(kit.troubles, 1);
    CHECK_HAS(kit.trouble,
              "a node cannot be used: the GPUs of node 'gpu-b' have changed (2 before, 1 now)");
    desk_kit_finish(&kit);
}

/* The store's file was edited: the start is refused, not half of the cluster forgotten. */
static void remembered_nodes_that_are_not_json_are_refused(void) {
    static const char *const texts[] = {"[", "[{]"};
    for (size_t i = 0; i < ACRE_COUNT(texts); i++) {
        struct desk_kit kit = {.on_disk = true};
        struct acre_error err = {0};
        acre_test_context("%s", texts[i]);
        desk_kit_start(&kit);
        acre_batch_put_setting(acre_desk_batch(kit.desk), "nodes", acre_str_from(texts[i]));
        desk_kit_stop(&kit);
        struct acre_desk_options options = {
            .loop = kit.loop, .clock = &kit.clock, .store_url = kit.url};
        REQUIRE_EQ(acre_desk_create(&options, &kit.desk, &err), 0);
        CHECK(acre_desk_load(kit.desk, &err) < 0);
        CHECK_HAS(err.text, "nodes in the store");
        desk_kit_finish(&kit);
    }
}

static const struct acre_test tests[] = {
    {"a_node_that_joins_serves_those_who_wait", a_node_that_joins_serves_those_who_wait, 0},
    {"a_lost_node_takes_nothing_until_it_is_back", a_lost_node_takes_nothing_until_it_is_back, 0},
    {"an_operators_drain_and_a_loss_are_two_things", an_operators_drain_and_a_loss_are_two_things,
     0},
    {"jobs_keep_their_places_while_their_engine_is_away",
     jobs_keep_their_places_while_their_engine_is_away, 0},
    {"runs_go_to_the_engine_of_their_node", runs_go_to_the_engine_of_their_node, 0},
    {"delivered_output_is_kept", delivered_output_is_kept, 0},
    {"a_node_that_changed_is_refused", a_node_that_changed_is_refused, 0},
    {"nodes_are_told_apart_by_name", nodes_are_told_apart_by_name, 0},
    {"people_hear_of_a_node_that_is_refused", people_hear_of_a_node_that_is_refused, 0},
    {"remembered_nodes_that_are_not_json_are_refused",
     remembered_nodes_that_are_not_json_are_refused, 0},
};
ACRE_TEST_MAIN(tests)
