/* The node, its CPU and its processes, out of proc and sysfs trees (CAP-1's input, DEV-3, DEV-6).
 */
#include "device/device.h"
#include "device/node.h"
#include "device/process_name.h"

#include "support/test.h"
#include "support/tree.h"

#include <stdlib.h>

static struct tree make_tree(void) {
    struct tree tree = tree_create(NULL);
    tree_put(&tree, "sys/devices/system/cpu/online", "0-3,8-11\n");
    tree_put(&tree, "proc/meminfo",
             "MemTotal:       16777216 kB\nMemFree:  100 kB\nMemAvailable:    8388608 kB\n");
    tree_put(&tree, "proc/cpuinfo",
             "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Test CPU 3000\n");
    tree_put(&tree, "proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 1 1 1\n");
    return tree;
}

static struct acre_device_options options_of(const struct tree *tree) {
    struct acre_device_options options = {0};
    options.sysfs_root = acre_strdup(tree_path(tree, "sys")); /* lives as long as the test */
    options.proc_root = acre_strdup(tree_path(tree, "proc"));
    return options;
}

static void end(const struct tree *tree, const struct acre_device_options *options) {
    free((void *)options->sysfs_root);
    free((void *)options->proc_root);
    tree_erase(tree);
}

static void a_node_knows_cpus_and_memory(void) {
    struct tree tree = make_tree();
    struct acre_device_options options = options_of(&tree);
    struct acre_node_info node;
    acre_node_read(&options, 1234, &node);
    CHECK_U64(node.cpu_milli, 8000);
    CHECK_U64(node.ram_total_mib, 16384);
    CHECK_U64(node.ram_available_mib, 8192);
    CHECK_U64(node.time_ms, 1234);
    CHECK(ACRE_HAS(&node, ACRE_NODE, name) && ACRE_HAS(&node, ACRE_NODE, kernel));
    CHECK(ACRE_HAS(&node, ACRE_NODE, simulated) && !node.simulated);
    end(&tree, &options);
}

static void what_cannot_be_read_is_unknown(void) {
    static const struct {
        const char *path, *value;
    } cases[] = {
        {"proc/meminfo", "MemTotal: many kB\nMemAvailable: 1 kB\n"},
        {"proc/meminfo", "MemTotal: 100 kB\n"},
        {"proc/meminfo", "MemTotal: 18446744073709551615 kB\nMemAvailable: 1 kB\n"},
        {"sys/devices/system/cpu/online", "all\n"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct tree tree = make_tree();
        struct acre_device_options options = options_of(&tree);
        struct acre_node_info node;
        tree_put(&tree, cases[i].path, cases[i].value);
        acre_node_read(&options, 1, &node);
        acre_test_context("%s '%s'", cases[i].path, cases[i].value);
        bool memory = cases[i].path[0] == 'p';
        CHECK_EQ(ACRE_HAS(&node, ACRE_NODE, ram_total_mib), !memory);
        CHECK_EQ(ACRE_HAS(&node, ACRE_NODE, ram_available_mib), !memory);
        CHECK_EQ(ACRE_HAS(&node, ACRE_NODE, cpu_milli), memory);
        end(&tree, &options);
    }
}

static void an_empty_tree_gives_unknowns(void) {
    struct tree tree = tree_create(NULL);
    struct acre_device_options options = options_of(&tree);
    struct acre_node_info node;
    acre_node_read(&options, 1, &node);
    CHECK(!ACRE_HAS(&node, ACRE_NODE, cpu_milli) && !ACRE_HAS(&node, ACRE_NODE, ram_total_mib));
    void *self = NULL;
    struct acre_device_info info;
    struct acre_device_sample sample;
    REQUIRE(acre_driver_cpu.open(&options, &self, NULL) == 0);
    REQUIRE(acre_driver_cpu.info(self, 0, &info, NULL) == 0);
    REQUIRE(acre_driver_cpu.sample(self, 0, &sample, NULL) == 0);
    CHECK_STR(info.id, "cpu");
    CHECK(!ACRE_HAS(&info, ACRE_INFO, model) && !ACRE_HAS(&info, ACRE_INFO, compute_units));
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, memory_used_mib));
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, utilization_gpu_pct));
    acre_driver_cpu.close(self);
    acre_driver_cpu.close(NULL);
    end(&tree, &options);
}

static void the_cpu_is_a_device(void) { /* DEV-3 */
    struct tree tree = make_tree();
    struct acre_device_options options = options_of(&tree);
    const struct acre_device_driver *cpu = &acre_driver_cpu;
    void *self = NULL;
    struct acre_device_info info;
    struct acre_device_sample sample;
    REQUIRE(cpu->open(&options, &self, NULL) == 0);
    REQUIRE(cpu->count(self) == 1);
    REQUIRE(cpu->info(self, 0, &info, NULL) == 0);
    CHECK_STR(info.model, "Test CPU 3000");
    CHECK_STR(info.vendor, "GenuineIntel");
    CHECK_U64(info.compute_units, 8);
    CHECK_U64(info.memory_total_mib, 16384);
    REQUIRE(cpu->sample(self, 0, &sample, NULL) == 0);
    CHECK_U64(sample.memory_used_mib, 8192);
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, utilization_gpu_pct)); /* one reading is not a rate */
    tree_put(&tree, "proc/stat", "cpu  150 0 125 825 0 0 0 0 0 0\n");
    REQUIRE(cpu->sample(self, 0, &sample, NULL) == 0);
    CHECK_U64(sample.utilization_gpu_pct, 75);
    tree_put(&tree, "proc/stat", "cpu  1 0 1 1 0 0 0 0 0 0\n"); /* counters went back */
    REQUIRE(cpu->sample(self, 0, &sample, NULL) == 0);
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, utilization_gpu_pct));
    tree_put(&tree, "proc/stat", "cpu  x 0 1 1\n");
    REQUIRE(cpu->sample(self, 0, &sample, NULL) == 0);
    CHECK(!ACRE_HAS(&sample, ACRE_SAMPLE, utilization_gpu_pct));
    CHECK_EQ(cpu->info(self, 1, &info, NULL), ACRE_ENOTFOUND);
    CHECK_EQ(cpu->sample(self, 1, &sample, NULL), ACRE_ENOTFOUND);
    tree_put(&tree, "proc/meminfo", "nothing\n");
    REQUIRE(cpu->sample(self, 0, &sample, NULL) == 0);
    CHECK_HAS(cpu->notes(self), "meminfo: no line that starts with 'MemTotal:'");
    cpu->close(self);
    end(&tree, &options);
}

static void processes_are_described(void) { /* DEV-6 */
    struct tree tree = tree_create(NULL);
    struct acre_sysfs proc;
    tree_put(&tree, "7/status", "Name:\tpython\nUid:\t1\t0\t0\t0\n");
    tree_put(&tree, "7/cmdline", "python train.py"); /* zero bytes are tested below */
    tree_put(&tree, "8/status", "Uid:\t1\t4000000001\t0\t0\n");
    tree_put(&tree, "8/cmdline", "");
    tree_put(&tree, "8/comm", "kworker/0:1\n");
    tree_put(&tree, "9/status", "Uid:\t1\n");
    sysfs_init(&proc, tree.root);
    static const struct {
        uint64_t pid;
        const char *user, *command; /* NULL: unknown */
    } cases[] = {{7, "root", "python train.py"},
                 {8, "4000000001", "[kworker/0:1]"},
                 {9, NULL, NULL},
                 {10, NULL, NULL}};
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_device_process process = {0};
        ACRE_PUT(&process, ACRE_PROCESS, pid, cases[i].pid);
        process_describe(&proc, &process);
        acre_test_context("pid %u", (unsigned)cases[i].pid);
        CHECK_EQ(ACRE_HAS(&process, ACRE_PROCESS, user), cases[i].user != NULL);
        CHECK_EQ(ACRE_HAS(&process, ACRE_PROCESS, command), cases[i].command != NULL);
        if (cases[i].user != NULL) {
            CHECK_STR(process.user, cases[i].user);
            CHECK_STR(process.command, cases[i].command);
        }
    }
    sysfs_finish(&proc);
    tree_erase(&tree);
}

static void command_lines_are_joined_and_harmless(void) {
    struct acre_device_process process = {0};
    static const char words[] = "python\0-c\0print('\x1b[2J')\0";
    process_command((struct acre_str){words, sizeof(words) - 1}, &process);
    CHECK_STR(process.command, "python -c print('?[2J')");
    char big[500];
    memset(big, 'x', sizeof(big));
    process_command((struct acre_str){big, sizeof(big)}, &process);
    CHECK_U64(strlen(process.command), ACRE_COLUMN_TEXT_MAX - 1);
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(a_node_knows_cpus_and_memory), TEST(what_cannot_be_read_is_unknown),
    TEST(an_empty_tree_gives_unknowns), TEST(the_cpu_is_a_device),
    TEST(processes_are_described),      TEST(command_lines_are_joined_and_harmless),
};

ACRE_TEST_MAIN(tests)
