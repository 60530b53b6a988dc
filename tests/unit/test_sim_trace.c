/* Recorded clusters and task lists: what is read, and every way to refuse (Bad input). */
#include "sim/trace.h"

#include "core/buf.h"

#include "support/test.h"
#include "support/tree.h"

#define NODES  "sn,cpu_milli,memory_mib,gpu,model\n"
#define TASKS  "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
#define NODE_A NODES "a,64000,262144,4,H100\n"
#define TASK_A TASKS "t,4000,16384,1,500,\n"

static int parse(const char *nodes, const char *tasks, struct acre_trace **ret_trace,
                 struct acre_error *err) {
    return trace_parse("n.csv", acre_str_from(nodes), "t.csv", acre_str_from(tasks), ret_trace,
                       err);
}

static struct acre_trace *parse_good(const char *nodes, const char *tasks) {
    struct acre_trace *trace = NULL;
    struct acre_error err = {0};
    int r = parse(nodes, tasks, &trace, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    acre_test_context("%s", "");
    return trace;
}

static void nodes_and_tasks_are_read_as_written(void) {
    struct acre_trace *trace = parse_good(NODES "a,64000,262144,4,H100\n"
                                                "cpu-1,96000,524288,0,\n"
                                                "b,2147483647,2147483647,64,A 100\n",
                                          TASKS "t,4000,16384,1,500,\n"
                                                "t,0,1,0,0,\n"
                                                "u,8000,0,64,1000,H100|A 100|L4\n"
                                                "v,0,0,1,1,1|2|3|4|5|6|7|8\n");
    REQUIRE_EQ(trace->node_count, 3);
    REQUIRE_EQ(trace->task_count, 4);
    CHECK_U64(trace->gpu_milli, 68000);
    const struct trace_node *node = trace->nodes;
    CHECK_STR(acre_names_text(trace->names, node[0].name), "a");
    CHECK_STR(acre_names_text(trace->names, node[0].model), "H100");
    CHECK_U64(node[0].cpu_milli, 64000);
    CHECK_U64(node[0].ram_mib, 262144);
    CHECK_U64(node[0].gpus, 4);
    CHECK_U64(node[1].model, 0);
    CHECK_U64(node[1].gpus, 0);
    CHECK_U64(node[2].cpu_milli, INT32_MAX);
    CHECK_U64(node[2].ram_mib, INT32_MAX);
    const struct trace_task *task = trace->tasks;
    CHECK_U64(task[0].cpu_milli, 4000);
    CHECK_U64(task[0].ram_mib, 16384);
    CHECK_U64(task[0].gpus, 1);
    CHECK_U64(task[0].milli, 500);
    CHECK_U64(task[0].models[0], 0);
    CHECK_U64(task[1].ram_mib, 1);
    CHECK_U64(task[1].gpus, 0);
    CHECK_U64(task[1].milli, 0);
    CHECK_U64(task[2].gpus, 64);
    CHECK_U64(task[2].models[0], node[0].model);
    CHECK_U64(task[2].models[1], node[2].model);
    CHECK_STR(acre_names_text(trace->names, task[2].models[2]), "L4");
    CHECK_U64(task[2].models[3], 0);
    CHECK_STR(acre_names_text(trace->names, task[3].models[7]), "8");
    trace_destroy(trace);
}

/* Good twins of what is refused below: each must give the one node a and task t of the top. */
static void forms_of_the_same_files_are_accepted(void) {
    static const struct {
        const char *what, *nodes, *tasks;
    } cases[] = {
        {"as documented", NODE_A, TASK_A},
        {"line ends of Windows", "sn,cpu_milli,memory_mib,gpu,model\r\na,64000,262144,4,H100\r\n",
         "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\r\nt,4000,16384,1,500,\r\n"},
        {"other order", "model,gpu,memory_mib,cpu_milli,sn\nH100,4,262144,64000,a\n",
         "gpu_spec,gpu_milli,num_gpu,memory_mib,cpu_milli,name\n,500,1,16384,4000,t\n"},
        {"further columns",
         "zone,sn,cpu_milli,memory_mib,gpu,model,rack\nz,a,64000,262144,4,H100,\n",
         "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase\n"
         "t,4000,16384,1,500,,LS,Running\n"},
        {"no column for models", NODE_A,
         "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nt,4000,16384,1,500\n"},
        {"no column for names", NODE_A,
         "cpu_milli,memory_mib,num_gpu,gpu_milli\n4000,16384,1,500\n"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].what);
        struct acre_trace *trace = parse_good(cases[i].nodes, cases[i].tasks);
        acre_test_context("%s", cases[i].what);
        REQUIRE_EQ(trace->node_count, 1);
        CHECK_STR(acre_names_text(trace->names, trace->nodes[0].name), "a");
        CHECK_STR(acre_names_text(trace->names, trace->nodes[0].model), "H100");
        CHECK_U64(trace->nodes[0].cpu_milli, 64000);
        CHECK_U64(trace->nodes[0].ram_mib, 262144);
        CHECK_U64(trace->nodes[0].gpus, 4);
        REQUIRE_EQ(trace->task_count, 1);
        CHECK_U64(trace->tasks[0].cpu_milli, 4000);
        CHECK_U64(trace->tasks[0].ram_mib, 16384);
        CHECK_U64(trace->tasks[0].gpus, 1);
        CHECK_U64(trace->tasks[0].milli, 500);
        CHECK_U64(trace->tasks[0].models[0], 0);
        trace_destroy(trace);
    }
}

struct refusal {
    const char *text;     /* of the file at fault */
    const char *parts[3]; /* where, which column and value, what is accepted */
};

static void check_refusals(const struct refusal *cases, size_t count, bool nodes) {
    for (size_t i = 0; i < count; i++) {
        struct acre_trace *untouched = (struct acre_trace *)&cases[i];
        struct acre_trace *trace = untouched;
        struct acre_error err = {0};
        acre_test_context("case %zu", i);
        int r = nodes ? parse(cases[i].text, TASK_A, &trace, &err)
                      : parse(NODE_A, cases[i].text, &trace, &err);
        CHECK_EQ(r, ACRE_EINVALID);
        CHECK_EQ(err.code, ACRE_EINVALID);
        CHECK(trace == untouched);
        for (size_t p = 0; p < ACRE_COUNT(cases[i].parts) && cases[i].parts[p] != NULL; p++) {
            CHECK_HAS(err.text, cases[i].parts[p]);
        }
        if (r == 0) {
            trace_destroy(trace);
        }
    }
}

#define LONG_64  "mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm"
#define LONG_128 LONG_64 LONG_64

static void bad_nodes_are_refused_with_line_column_value_and_range(void) {
    static const struct refusal cases[] = {
        {"", {"n.csv:1: ", "empty", "accepted: a header line"}},
        {"sn,cpu_milli,memory_mib,gpu,model", {"n.csv:1: ", "truncated"}},
        {NODES "a,64000,262144,4,H100", {"n.csv:2: ", "truncated"}},
        {NODES "a,64000,262144,4,H1", {"n.csv:2: ", "truncated"}},
        {"sn,cpu_milli,memory_mib,model\n", {"n.csv:1: ", "column 'gpu' is missing"}},
        {"sn,cpu_milli,memory_mib,gpu,model,gpu\n", {"n.csv:1: ", "column 'gpu' appears twice"}},
        {NODES "a,64000,262144,4\n", {"n.csv:2: ", "4 fields", "accepted: 5"}},
        {NODES "a,64000,262144,4,H100,\n", {"n.csv:2: ", "6 fields", "accepted: 5"}},
        {NODES "\n", {"n.csv:2: ", "1 fields", "accepted: 5"}},
        {NODES "a,64000,262144,4,\"H100\"\n", {"n.csv:2: ", "'\"' at byte 18", "accepted: plain"}},
        {NODES "a,-1,262144,4,H100\n", {"n.csv:2: column 'cpu_milli'", "-1", "2147483647"}},
        {NODES "a,2147483648,1,4,H100\n",
         {"n.csv:2: column 'cpu_milli'", "2147483648", "0 to 2147483647"}},
        {NODES "a,1,18446744073709551616,4,H100\n",
         {"n.csv:2: column 'memory_mib'", "18446744073709551616", "0 to 2147483647"}},
        {NODES "a,1,1e3,4,H100\n", {"n.csv:2: column 'memory_mib'", "1e3", "0 to 2147483647"}},
        {NODES "a,1,0x10,4,H100\n", {"n.csv:2: column 'memory_mib'", "0x10", "0 to 2147483647"}},
        {NODES "a,1, 1,4,H100\n", {"n.csv:2: column 'memory_mib'", "' 1'", "0 to 2147483647"}},
        {NODES "a,1,,4,H100\n", {"n.csv:2: column 'memory_mib'", "''", "0 to 2147483647"}},
        {NODES "a,1,1,four,H100\n", {"n.csv:2: column 'gpu'", "four", "0 to 64"}},
        {NODES "a,1,1,65,H100\n", {"n.csv:2: column 'gpu'", "65", "0 to 64"}},
        {NODES "a,1,1,0.5,H100\n", {"n.csv:2: column 'gpu'", "0.5", "0 to 64"}},
        {NODES ",1,1,4,H100\n", {"n.csv:2: column 'sn'", "''", "accepted: 1 to 128"}},
        {NODES LONG_128 "x,1,1,4,H100\n", {"n.csv:2: column 'sn'", "mmm...", "1 to 128"}},
        {NODES "a!,1,1,4,H100\n", {"n.csv:2: column 'sn'", "'a!'", "accepted: 1 to 128"}},
        {NODES "a,1,1,4," LONG_64 "x\n", {"n.csv:2: column 'model'", "mmm...", "1 to 64"}},
        {NODES "a,1,1,4,H100|A100\n", {"n.csv:2: column 'model'", "H100|A100", "1 to 64"}},
        {NODES "a,1,1,4,X\nb,1,1,4,X\na,1,1,4,Y\n",
         {"n.csv:4: column 'sn'", "node 'a' appears twice"}},
        {NODES "H,1,1,4,X\nb,1,1,4,H\nH,1,1,4,Y\n",
         {"n.csv:4: column 'sn'", "node 'H' appears twice"}},
        {NODES, {"n.csv: column 'gpu'", "is 0 in every row", "at least one node needs a GPU"}},
        {NODES "a,64000,262144,0,\n", {"n.csv: column 'gpu'", "0 in every row"}},
    };
    check_refusals(cases, ACRE_COUNT(cases), true);
}

static void bad_tasks_are_refused_with_line_column_value_and_range(void) {
    static const struct refusal cases[] = {
        {"", {"t.csv:1: ", "empty", "accepted: a header line"}},
        {TASKS "t,4000,16384,1,500,", {"t.csv:2: ", "truncated"}},
        {"name,cpu_milli,memory_mib,num_gpu\n", {"t.csv:1: ", "column 'gpu_milli' is missing"}},
        {"cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,gpu_spec\n1,1,1,1,,\n",
         {"t.csv:1: ", "column 'gpu_spec' appears twice"}},
        {"cpu_milli,memory_mib,num_gpu,gpu_milli,num_gpu\n1,1,1,1,1\n",
         {"t.csv:1: ", "column 'num_gpu' appears twice"}},
        {TASKS "t,4000,16384,1,500\n", {"t.csv:2: ", "5 fields", "accepted: 6"}},
        {TASKS "t,4000,16384,1,500,,\n", {"t.csv:2: ", "7 fields", "accepted: 6"}},
        {TASKS "t,4.5,16384,1,500,\n", {"t.csv:2: column 'cpu_milli'", "4.5", "0 to 2147483647"}},
        {TASKS "t,4000,-16384,1,500,\n", {"t.csv:2: column 'memory_mib'", "-16384", "0 to"}},
        {TASKS "t,1,1,1,1,\nt,4000,9999999999,1,500,\n",
         {"t.csv:3: column 'memory_mib'", "9999999999", "0 to 2147483647"}},
        {TASKS "t,1,1,65,1000,\n", {"t.csv:2: column 'num_gpu'", "65", "0 to 64"}},
        {TASKS "t,1,1,one,1000,\n", {"t.csv:2: column 'num_gpu'", "one", "0 to 64"}},
        {TASKS "t,1,1,1,1001,\n", {"t.csv:2: column 'gpu_milli'", "1001", "0 to 1000"}},
        {TASKS "t,1,1,1,half,\n", {"t.csv:2: column 'gpu_milli'", "half", "0 to 1000"}},
        {TASKS "t,1,1,2,500,\n",
         {"t.csv:2: column 'gpu_milli'", "500 with num_gpu 2", "accepted: 1000"}},
        {TASKS "t,1,1,0,500,\n",
         {"t.csv:2: column 'gpu_milli'", "500 with num_gpu 0", "accepted: 0 without GPUs"}},
        {TASKS "t,1,1,1,0,\n",
         {"t.csv:2: column 'gpu_milli'", "0 with num_gpu 1", "1 to 1000 with them"}},
        {TASKS "t,0,0,0,0,\n",
         {"t.csv:2: column 'cpu_milli'", "0 with memory_mib 0 and num_gpu 0", "above 0"}},
        {TASKS "t,1,1,1,1000,1|2|3|4|5|6|7|8|9\n",
         {"t.csv:2: column 'gpu_spec'", "'1|2|3|4|5|6|7|8|9'", "accepted: at most 8"}},
        {TASKS "t,1,1,1,1000,H100|\n", {"t.csv:2: column 'gpu_spec'", "''", "1 to 64"}},
        {TASKS "t,1,1,1,1000,H100;A100\n", {"t.csv:2: column 'gpu_spec'", "H100;A100", "1 to 64"}},
        {TASKS, {"t.csv: column 'num_gpu'", "is 0 in every row", "at least one task needs a GPU"}},
        {TASKS "t,1,1,0,0,\n", {"t.csv: column 'num_gpu'", "0 in every row"}},
    };
    check_refusals(cases, ACRE_COUNT(cases), false);
}

static void bytes_that_are_not_text_are_refused(void) {
    static const char nul[] = NODES "a\0b,1,1,4,H100\n";
    struct acre_trace *trace = NULL;
    struct acre_error err = {0};
    struct acre_str nodes = {nul, sizeof(nul) - 1};
    CHECK_EQ(trace_parse("n.csv", nodes, "t.csv", acre_str_from(TASK_A), &trace, &err),
             ACRE_EINVALID);
    CHECK_HAS(err.text, "n.csv:2: invalid character '\\x00' at byte 2");
    CHECK_EQ(parse(NODE_A, TASKS "t,1,1,1,1000,H\x1b[2J\n", &trace, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "t.csv:2: invalid character '\\x1b' at byte 15");
    CHECK(trace == NULL);
}

/* The arrays grow; a repeated node is found however far apart the two are. */
static void thousands_of_rows_are_read(void) {
    enum { NODE_COUNT = 3000, TASK_COUNT = 5000 };
    struct acre_buf nodes;
    struct acre_buf tasks;
    acre_buf_init(&nodes, 1 << 20);
    acre_buf_init(&tasks, 1 << 20);
    acre_buf_puts(&nodes, NODES);
    acre_buf_puts(&tasks, TASKS);
    for (unsigned i = 0; i < NODE_COUNT; i++) {
        acre_buf_printf(&nodes, "node-%u,%u,1024,%u,M%u\n", i, i, i % 9, i % 7);
    }
    for (unsigned i = 0; i < TASK_COUNT; i++) {
        acre_buf_printf(&tasks, "t,%u,1,1,%u,M%u\n", i, 1 + i % 1000, i % 7);
    }
    struct acre_trace *trace = parse_good(nodes.data, tasks.data);
    REQUIRE_EQ(trace->node_count, NODE_COUNT);
    REQUIRE_EQ(trace->task_count, TASK_COUNT);
    uint64_t gpus = 0;
    for (uint32_t i = 0; i < NODE_COUNT; i++) {
        gpus += i % 9;
        CHECK_U64(trace->nodes[i].cpu_milli, i);
    }
    CHECK_U64(trace->gpu_milli, 1000 * gpus);
    for (uint32_t i = 0; i < TASK_COUNT; i++) {
        CHECK_U64(trace->tasks[i].cpu_milli, i);
        CHECK_U64(trace->tasks[i].models[0], trace->nodes[i % 7].model);
    }
    trace_destroy(trace);

    struct acre_error err = {0};
    acre_buf_puts(&nodes, "node-0,1,1,1,M0\n");
    CHECK_EQ(parse(nodes.data, tasks.data, &trace, &err), ACRE_EINVALID);
    CHECK_HAS(err.text, "n.csv:3002: column 'sn': node 'node-0' appears twice");
    acre_buf_finish(&nodes);
    acre_buf_finish(&tasks);
}

static void files_are_read_or_refused_by_name(void) {
    struct tree tree = tree_create(NULL);
    tree_put(&tree, "n.csv", "sn,cpu_milli,memory_mib,gpu,model\na,64000,262144,4,H100\n");
    tree_put(&tree, "t.csv", "cpu_milli,memory_mib,num_gpu,gpu_milli\n4000,16384,1,500\n");
    tree_put(&tree, "bad.csv", "cpu_milli,memory_mib,num_gpu,gpu_milli\n4000,16384,1,1500\n");
    tree_make_directory(&tree, "folder");
    static const struct {
        const char *nodes, *tasks;
        int code;
        const char *text;
    } cases[] = {
        {"n.csv", "t.csv", 0, NULL},
        {"absent.csv", "t.csv", ACRE_ENOTFOUND, "absent.csv: No such file"},
        {"n.csv", "absent.csv", ACRE_ENOTFOUND, "absent.csv: No such file"},
        {"folder", "t.csv", ACRE_EINVALID, "folder: is a directory; accepted: a file"},
        {"n.csv", "folder", ACRE_EINVALID, "folder: is a directory; accepted: a file"},
        {"n.csv/x", "t.csv", ACRE_ENOTFOUND, "n.csv/x: Not a directory"},
        {"t.csv", "t.csv", ACRE_EINVALID, "t.csv:1: column 'sn' is missing"},
        {"n.csv", "n.csv", ACRE_EINVALID, "n.csv:1: column 'num_gpu' is missing"},
        {"n.csv", "bad.csv", ACRE_EINVALID, "bad.csv:2: column 'gpu_milli': '1500'"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_trace *trace = NULL;
        struct acre_error err = {0};
        acre_test_context("%s %s", cases[i].nodes, cases[i].tasks);
        CHECK_EQ(trace_load(tree_path(&tree, cases[i].nodes), tree_path(&tree, cases[i].tasks),
                            &trace, &err),
                 cases[i].code);
        CHECK((trace != NULL) == (cases[i].code == 0));
        if (cases[i].text != NULL) {
            CHECK_HAS(err.text, cases[i].text);
        }
        trace_destroy(trace);
    }
    tree_erase(&tree);
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
static const struct acre_test tests[] = {
    TEST(nodes_and_tasks_are_read_as_written),
    TEST(forms_of_the_same_files_are_accepted),
    TEST(bad_nodes_are_refused_with_line_column_value_and_range),
    TEST(bad_tasks_are_refused_with_line_column_value_and_range),
    TEST(bytes_that_are_not_text_are_refused),
    TEST(thousands_of_rows_are_read),
    TEST(files_are_read_or_refused_by_name),
};

ACRE_TEST_MAIN(tests)
