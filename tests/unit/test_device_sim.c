/* Simulated clusters: the file format, its limits, its errors (DEV-4, Bad input). */
#include "device/device.h"
#include "device/node.h"
#include "device/sim.h"

#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

static struct acre_sim_cluster *parse(const char *text) {
    struct acre_sim_cluster *cluster = NULL;
    struct acre_error err = {0};
    int r = acre_sim_parse("t.acre", acre_str_from(text), &cluster, &err);
    acre_test_context("%s", err.text);
    REQUIRE(r == 0);
    acre_test_context("%s", "");
    return cluster;
}

static void the_example_is_read_as_written(void) {
    struct acre_sim_cluster *cluster = NULL;
    struct acre_error err = {0};
    REQUIRE(acre_sim_load(ACRE_TEST_DATA "/../../examples/two-nodes.acre", &cluster, &err) == 0);
    REQUIRE(acre_sim_node_count(cluster) == 2);
    const struct acre_sim_node *a = acre_sim_node(cluster, 0);
    const struct acre_sim_node *b = acre_sim_node(cluster, 1);
    CHECK_STR(a->name, "gpu-a");
    CHECK_U64(a->cpu_milli, 128000);
    CHECK_U64(a->ram_mib, 1 << 20);
    CHECK_U64(a->device_count, 8);
    REQUIRE(a->label_count == 2);
    CHECK_STR(acre_sim_labels(cluster, a)[1].key, "zone");
    CHECK_STR(acre_sim_labels(cluster, b)[0].value, "r2");
    const struct acre_sim_group *group = acre_sim_groups(cluster, a);
    CHECK_STR(group->model, "H100");
    CHECK_STR(group->vendor, "NVIDIA");
    CHECK_U64(group->memory_mib, 80 * 1024);
    CHECK_U64(group->island, 4);
    CHECK_EQ(group->temperature_c, 45);
    CHECK_U64(b->device_count, 4);
    uint32_t in_group = 9;
    CHECK(acre_sim_device(cluster, b, 3, &in_group)->lost);
    CHECK_U64(in_group, 0);
    CHECK(!acre_sim_device(cluster, b, 2, &in_group)->lost);
    CHECK_U64(in_group, 2);
    acre_sim_destroy(cluster);
}

static void bad_lines_are_refused_with_file_line_and_word(void) {
    static const struct {
        const char *text;
        int code;
        const char *parts[2];
    } cases[] = {
        {"", ACRE_EINVALID, {"t.acre: no node line", "two-nodes.acre"}},
        {"# only a comment\n", ACRE_EINVALID, {"no node line", ""}},
        {"nodes a\n", ACRE_EINVALID, {"t.acre:1: 'nodes'", "node, gpu or #"}},
        {"node\n", ACRE_EINVALID, {"t.acre:1: ''", "1 to 63"}},
        {"node a\"b\n", ACRE_EINVALID, {"t.acre:1:", "1 to 63"}},
        {"node a\n\nnode a\n", ACRE_EEXISTS, {"t.acre:3: 'a'", "already"}},
        {"node a speed 3\n",
         ACRE_EINVALID,
         {"'speed'", "unknown attribute; accepted: cpus, ram, labels"}},
        {"node a cpus\n", ACRE_EINVALID, {"'cpus'", "missing value"}},
        {"node a cpus 0\n", ACRE_EINVALID, {"t.acre:1", "cpus"}},
        {"node a cpus -1\n", ACRE_EINVALID, {"t.acre:1", "-1"}},
        {"node a cpus 99999999999999999999\n", ACRE_EINVALID, {"t.acre:1", "cpus"}},
        {"node a cpus 2 cpus 3\n", ACRE_EEXISTS, {"'cpus'", "twice"}},
        {"node a ram half\n", ACRE_EINVALID, {"t.acre:1", "half"}},
        {"node a ram 9223372036854775808\n", ACRE_EINVALID, {"t.acre:1", "9223372036854775808"}},
        {"node a labels x\n", ACRE_EINVALID, {"'x'", "KEY=VALUE"}},
        {"node a labels =x\n", ACRE_EINVALID, {"'=x'", "KEY=VALUE"}},
        {"node a labels x=\n", ACRE_EINVALID, {"'x='", "KEY=VALUE"}},
        {"node a labels x=1,,y=2\n", ACRE_EINVALID, {"''", "KEY=VALUE"}},
        {"node a labels x=1,x=2\n", ACRE_EEXISTS, {"'x'", "duplicate label"}},
        {"gpu 1 x A memory 1GiB\n",
         ACRE_EINVALID,
         {"t.acre:1: 'gpu'", "node line must come first"}},
        {"node a\ngpu\n", ACRE_EINVALID, {"t.acre:2", "gpu COUNT x MODEL"}},
        {"node a\ngpu 8\n", ACRE_EINVALID, {"t.acre:2", "gpu COUNT x MODEL"}},
        {"node a\ngpu 8 of A memory 1GiB\n", ACRE_EINVALID, {"'of'", "gpu COUNT x MODEL"}},
        {"node a\ngpu 8 x\n", ACRE_EINVALID, {"'x'", "missing model"}},
        {"node a\ngpu 0 x A memory 1GiB\n", ACRE_EINVALID, {"t.acre:2", "gpu"}},
        {"node a\ngpu 65 x A memory 1GiB\n", ACRE_EINVALID, {"t.acre:2", "65"}},
        {"node a\ngpu 1 x A\n", ACRE_EINVALID, {"'memory'", "required"}},
        {"node a\ngpu 1 x A memory 0\n", ACRE_EINVALID, {"t.acre:2", "memory"}},
        {"node a\ngpu 1 x A memory -1\n", ACRE_EINVALID, {"t.acre:2", "-1"}},
        {"node a\ngpu 1 x A memory 1GiB used 2GiB\n",
         ACRE_EINVALID,
         {"'used'", "larger than memory"}},
        {"node a\ngpu 1 x A memory 1GiB island 0\n", ACRE_EINVALID, {"t.acre:2", "island"}},
        {"node a\ngpu 1 x A memory 1GiB utilization 101\n", ACRE_EINVALID, {"t.acre:2", "101"}},
        {"node a\ngpu 1 x A memory 1GiB temperature 151\n", ACRE_EINVALID, {"'151'", "-50 to 150"}},
        {"node a\ngpu 1 x A memory 1GiB temperature -51\n", ACRE_EINVALID, {"'-51'", "-50 to 150"}},
        {"node a\ngpu 1 x A memory 1GiB temperature -\n", ACRE_EINVALID, {"'-'", "-50 to 150"}},
        {"node a\ngpu 1 x A memory 1GiB state bad\n", ACRE_EINVALID, {"'bad'", "ok, lost"}},
        {"node a\ngpu 1 x A memory 1GiB colour red\n",
         ACRE_EINVALID,
         {"'colour'", "unknown attribute; accepted: memory"}},
        {"node a\ngpu 1 x \x01 memory 1GiB\n", ACRE_EINVALID, {"'\\x01'", "1 to 63"}},
        {"node a\ngpu 40 x A memory 1GiB\ngpu 25 x A memory 1GiB\n",
         ACRE_ELIMIT,
         {"t.acre:3: 'a'", "64"}},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_sim_cluster *cluster = (struct acre_sim_cluster *)&cases; /* must stay */
        struct acre_error err = {0};
        acre_test_context("'%s'", cases[i].text);
        CHECK_EQ(acre_sim_parse("t.acre", acre_str_from(cases[i].text), &cluster, &err),
                 cases[i].code);
        CHECK(cluster == (struct acre_sim_cluster *)&cases);
        CHECK_HAS(err.text, cases[i].parts[0]);
        CHECK_HAS(err.text, cases[i].parts[1]);
    }
}

static void comments_blanks_and_crlf_are_passed_over(void) {
    struct acre_sim_cluster *cluster =
        parse("\r\n# c\n\tnode a # c\r\n  gpu\t2  x B memory 512 used 0 temperature -50\r\n");
    const struct acre_sim_node *node = acre_sim_node(cluster, 0);
    CHECK_U64(node->cpu_milli, 0);
    CHECK_U64(node->device_count, 2);
    CHECK_U64(acre_sim_groups(cluster, node)->memory_mib, 512);
    CHECK_EQ(acre_sim_groups(cluster, node)->temperature_c, -50);
    acre_sim_destroy(cluster);
    acre_sim_destroy(NULL);
}

static void limits_hold(void) {
    char *text = acre_calloc(1, 4 << 20);
    struct acre_sim_cluster *cluster = NULL;
    struct acre_error err = {0};
    size_t used = 0;
    for (uint32_t i = 0; i < ACRE_SIM_NODES_MAX; i++) {
        used += (size_t)snprintf(text + used, 64, "node n%u\n", i);
    }
    REQUIRE(acre_sim_parse("t", (struct acre_str){text, used}, &cluster, &err) == 0);
    CHECK_U64(acre_sim_node_count(cluster), ACRE_SIM_NODES_MAX);
    acre_sim_destroy(cluster);
    used += (size_t)snprintf(text + used, 64, "node more\n");
    CHECK_EQ(acre_sim_parse("t", (struct acre_str){text, used}, &cluster, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "t:100001: 'more': a file has at most 100000 nodes");
    CHECK_EQ(
        acre_sim_parse("t", (struct acre_str){text, (size_t)ACRE_SIM_FILE_MAX + 1}, &cluster, &err),
        ACRE_ELIMIT);
    used = (size_t)snprintf(text, 64, "node a labels k0=v");
    for (uint32_t i = 1; i <= ACRE_SIM_LABELS_MAX; i++) {
        used += (size_t)snprintf(text + used, 64, ",k%u=v", i);
    }
    CHECK_EQ(acre_sim_parse("t", (struct acre_str){text, used}, &cluster, &err), ACRE_ELIMIT);
    memset(text, 'x', 1000);
    memcpy(text, "node a labels ", 14);
    CHECK_EQ(acre_sim_parse("t", (struct acre_str){text, 1000}, &cluster, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "at most 511 bytes");
    free(text);
}

static void files_that_cannot_be_read_are_named(void) {
    struct acre_sim_cluster *cluster = NULL;
    struct acre_error err = {0};
    CHECK_EQ(acre_sim_load("/nonexistent.acre", &cluster, &err), ACRE_ENOTFOUND);
    CHECK_HAS(err.text, "/nonexistent.acre");
    CHECK_EQ(acre_sim_load("/tmp", &cluster, &err), ACRE_EINVALID); /* a directory */
    CHECK_HAS(err.text, "directory");
}

static void every_simulated_device_says_so(void) { /* DEV-4 */
    struct acre_sim_cluster *cluster =
        parse("node a ram 2GiB\ngpu 4 x A memory 4GiB island 2 used 1GiB utilization 0 power 5 "
              "power-limit 9\ngpu 1 x B memory 1GiB state lost\nnode empty\n");
    struct acre_device_options options = {.sim = cluster};
    struct acre_devices *devices = acre_devices_open(&options);
    struct acre_device_reading readings[5] = {{{0}, {0}}};
    REQUIRE(acre_devices_count(devices) == 5);
    acre_devices_read(devices, 1000, NULL, 0, readings);
    static const int islands[] = {0, 0, 1, 1, -1};
    for (uint32_t i = 0; i < 5; i++) {
        const struct acre_device_info *info = acre_devices_info(devices, i);
        acre_test_context("%s", info->id);
        CHECK(ACRE_HAS(info, ACRE_INFO, simulated) && info->simulated);
        CHECK_EQ(ACRE_HAS(info, ACRE_INFO, island) ? (int)info->island : -1, islands[i]);
        acre_device_reading_finish(&readings[i]);
    }
    CHECK_STR(acre_devices_info(devices, 2)->id, "sim:a/2");
    acre_devices_read(devices, 1000, NULL, 0, readings);
    CHECK_U64(readings[0].sample.memory_used_mib, 1024);
    CHECK_U64(readings[0].sample.memory_foreign_mib, 1024);
    CHECK_U64(readings[0].sample.power_mw, 5000);
    CHECK(!ACRE_HAS(&readings[0].sample, ACRE_SAMPLE, temperature_c));
    CHECK_STR(readings[4].sample.state, "lost");
    CHECK(!ACRE_HAS(&readings[4].sample, ACRE_SAMPLE, memory_used_mib));
    CHECK(!ACRE_HAS(&readings[4].sample, ACRE_SAMPLE, processes));
    acre_devices_close(devices);
    struct acre_node_info node;
    acre_node_read(&options, 1000, &node);
    CHECK(ACRE_HAS(&node, ACRE_NODE, simulated) && node.simulated);
    CHECK_U64(node.ram_total_mib, 2048);
    CHECK(!ACRE_HAS(&node, ACRE_NODE, cpu_milli));
    options.sim_node = 1;
    devices = acre_devices_open(&options);
    CHECK_U64(acre_devices_count(devices), 0);
    acre_devices_close(devices);
    options.sim_node = 2; /* past the end: an answer, not a crash */
    devices = acre_devices_open(&options);
    uint32_t count = 0;
    const struct acre_device_attempt *attempts = acre_devices_attempts(devices, &count);
    REQUIRE(count == 1);
    CHECK_EQ(attempts[0].code, ACRE_ENOTFOUND);
    acre_devices_close(devices);
    acre_sim_destroy(cluster);
}

static const struct acre_test tests[] = {
    {"the_example_is_read_as_written", the_example_is_read_as_written, 0},
    {"bad_lines_are_refused_with_file_line_and_word", bad_lines_are_refused_with_file_line_and_word,
     0},
    {"comments_blanks_and_crlf_are_passed_over", comments_blanks_and_crlf_are_passed_over, 0},
    {"limits_hold", limits_hold, 0},
    {"files_that_cannot_be_read_are_named", files_that_cannot_be_read_are_named, 0},
    {"every_simulated_device_says_so", every_simulated_device_says_so, 0},
};

ACRE_TEST_MAIN(tests)
