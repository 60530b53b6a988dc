/* The packing experiment on clusters small enough to work out by hand, and on the recorded one
 * (issue: "src/sim packing", Must show 6).
 *
 * Arrivals are shuffled, so the small clusters are made such that the order cannot matter, or that
 * it must. The published rules are driven task by task through their table (packer.h): which later
 * task still fits tells where the earlier ones went. */
#include "sim/packing.h"

#include "core/buf.h"
#include "sim/packer.h"

#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define NODES "sn,cpu_milli,memory_mib,gpu,model\n"
#define TASKS "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
enum { SEEDS = 20 };

static struct acre_trace *parse(const char *nodes, const char *tasks) {
    struct acre_trace *trace = NULL;
    struct acre_error err = {0};
    int r = trace_parse("n.csv", acre_str_from(nodes), "t.csv", acre_str_from(tasks), &trace, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    acre_test_context("%s", "");
    return trace;
}

static struct acre_packing_result run(const struct acre_trace *trace, const char *strategy,
                                      uint32_t seeds, uint64_t first_seed) {
    struct acre_packing_options options = {
        .strategy = strategy, .seeds = seeds, .first_seed = first_seed};
    struct acre_packing_result result = {0};
    struct acre_error err = {0};
    REQUIRE_EQ(acre_packing_run(trace, &options, &result, &err), 0);
    CHECK_STR(result.strategy, strategy);
    CHECK_U64(result.seeds, seeds);
    return result;
}

struct each {
    const struct acre_packing_strategy *strategy;
    size_t index;
};

/* Walks all strategies, with the name as context. */
static bool next_strategy(struct each *each) {
    each->strategy = acre_packing_strategy(each->index++);
    acre_test_context("%s", each->strategy != NULL ? each->strategy->name : "");
    return each->strategy != NULL;
}

static void the_strategies_are_named_once_and_explained(void) {
    static const char *const wanted[] = {"least-fragmentation", "first-fit", "best-fit", "fgd",
                                         "random"};
    size_t found = 0;
    for (struct each each = {0}; next_strategy(&each);) {
        CHECK(each.strategy->meaning[0] != '\0');
        for (size_t i = 0; i < ACRE_COUNT(wanted); i++) {
            found += strcmp(each.strategy->name, wanted[i]) == 0;
        }
        for (size_t i = each.index; acre_packing_strategy(i) != NULL; i++) {
            CHECK(strcmp(each.strategy->name, acre_packing_strategy(i)->name) != 0);
        }
    }
    CHECK_U64(found, ACRE_COUNT(wanted));
}

static void an_unknown_strategy_is_refused_with_the_known_ones(void) {
    struct acre_trace *trace = parse(NODES "a,1,1,1,\n", TASKS "0,0,1,100,\n");
    static const char *const names[] = {"best", "", "Best-Fit", "fgd ", "a\nb"};
    for (size_t i = 0; i < ACRE_COUNT(names); i++) {
        struct acre_packing_options options = {.strategy = names[i], .seeds = 1};
        struct acre_packing_result result = {.seeds = 99};
        struct acre_error err = {0};
        CHECK_EQ(acre_packing_run(trace, &options, &result, &err), ACRE_EINVALID);
        CHECK_U64(result.seeds, 99);
        CHECK_HAS(err.text, "unknown strategy '");
        for (struct each each = {0}; next_strategy(&each);) {
            CHECK_HAS(err.text, each.strategy->name);
        }
        CHECK(strchr(err.text, '\n') == NULL);
    }
    trace_destroy(trace);
}

struct counts {
    uint32_t least, most; /* arrivals of a seed */
    uint32_t seeds;
};

static void note_progress(void *context, uint32_t seed, uint32_t arrived, uint32_t tasks) {
    struct counts *counts = context;
    CHECK(arrived >= 1 && arrived <= tasks);
    if (arrived == tasks) {
        CHECK_U64(seed, counts->seeds);
        counts->seeds++;
        counts->least = ACRE_MIN(counts->least, tasks);
        counts->most = ACRE_MAX(counts->most, tasks);
    }
}

static struct counts count_arrivals(const char *nodes, const char *tasks) {
    struct acre_trace *trace = parse(nodes, tasks);
    struct counts counts = {.least = UINT32_MAX};
    struct acre_packing_options options = {
        .strategy = "first-fit", .seeds = SEEDS, .progress = note_progress, .context = &counts};
    struct acre_packing_result result;
    REQUIRE_EQ(acre_packing_run(trace, &options, &result, NULL), 0);
    CHECK_U64(counts.seeds, SEEDS);
    trace_destroy(trace);
    return counts;
}

#define TEN(row)   row row row row row row row row row row
#define FIFTY(row) TEN(row) TEN(row) TEN(row) TEN(row) TEN(row)

/* With tasks of one size the number of arrivals says their sum: the first at or over 130 %. */
static void arrivals_sum_to_130_percent_within_one_task(void) {
    static const struct {
        const char *what, *nodes, *tasks;
        uint32_t least, most;
    } cases[] = {
        {"clones: 5 x 300 >= 1300 > 4 x 300", NODES "a,1,1,1,\n", TASKS "0,0,1,300,\n", 5, 5},
        {"clones to the point: 13 x 100", NODES "a,1,1,1,\n", TASKS "0,0,1,100,\n", 13, 13},
        {"neither: 13 x 100", NODES "a,1,1,1,\n",
         TASKS TEN("0,0,1,100,\n") "0,0,1,100,\n0,0,1,100,\n0,0,1,100,\n", 13, 13},
        {"removals: 13 of 50 x 100", NODES "a,1,1,1,\n", TASKS FIFTY("0,0,1,100,\n"), 13, 13},
        {"removals: 5 of 10 x 300", NODES "a,1,1,1,\n", TASKS TEN("0,0,1,300,\n"), 5, 5},
        {"two nodes, 10.4 whole GPUs", NODES "a,1,1,4,\nb,1,1,4,\n", TASKS "0,0,1,1000,\n", 11, 11},
        {"gangs: 6 x 2 >= 10.4", NODES "a,1,1,8,\n", TASKS "0,0,2,1000,\n", 6, 6},
        /* 1000 + 10 x 10, and at least one clone: the whole list arrives, none is removed */
        {"clones leave the list alone", NODES "a,1,1,1,\n",
         TASKS "0,0,1,1000,\n" TEN("0,0,1,10,\n"), 12, 31},
        {"removals stop in time", NODES "a,1,1,1,\n", TASKS "0,0,1,1000,\n0,0,1,1000,\n", 2, 2},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct counts counts = count_arrivals(cases[i].nodes, cases[i].tasks);
        acre_test_context("%s: %u to %u", cases[i].what, counts.least, counts.most);
        CHECK(counts.least >= cases[i].least && counts.most <= cases[i].most);
        acre_test_context("%s", "");
    }
}

static void tasks_that_never_fill_the_cluster_are_refused(void) {
    /* 8.3 million times the one of 1, each with a hundred beside it that take no GPU */
    struct acre_buf nodes;
    acre_buf_init(&nodes, 1 << 16);
    acre_buf_puts(&nodes, NODES);
    for (int i = 0; i < 100; i++) {
        acre_buf_printf(&nodes, "n%d,1,1,64,\n", i);
    }
    struct acre_trace *trace = parse(nodes.data, TASKS TEN(TEN("1,0,0,0,\n")) "0,0,1,1,\n");
    acre_buf_finish(&nodes);
    struct acre_packing_options options = {.strategy = "first-fit", .seeds = 1};
    struct acre_packing_result result = {.seeds = 99};
    struct acre_error err = {0};
    CHECK_EQ(acre_packing_run(trace, &options, &result, &err), ACRE_ELIMIT);
    CHECK_U64(result.seeds, 99);
    CHECK_HAS(err.text, "too small");
    CHECK_HAS(err.text, "130 %");
    trace_destroy(trace);
}

/* Clusters where every order of arrival ends the same, for every strategy. */
static void known_clusters_end_as_worked_out(void) {
    static const struct {
        const char *what, *nodes, *tasks;
        double at_100, end;
    } cases[] = {
        {"tenths fill one GPU exactly", NODES "a,1,1,1,\n", TASKS "0,0,1,100,\n", 100, 100},
        {"three of 300 fit, the fourth does not", NODES "a,1,1,1,\n", TASKS "0,0,1,300,\n", 90, 90},
        {"one of 600 on each GPU", NODES "a,1,1,2,\n", TASKS "0,0,1,600,\n", 60, 60},
        {"per device, not summed (ALC-2)", NODES "a,1,1,2,\nb,1,1,1,\n", TASKS "0,0,1,600,\n", 60,
         60},
        {"whole GPUs", NODES "a,1,1,2,\nb,1,1,2,\n", TASKS "0,0,2,1000,\n", 100, 100},
        {"a gang is of one node", NODES "a,1,1,3,\nb,1,1,3,\n", TASKS "0,0,2,1000,\n", 200 / 3.0,
         200 / 3.0},
        {"too large for any node", NODES "a,1,1,2,\nb,1,1,2,\n", TASKS "0,0,4,1000,\n", 0, 0},
        {"CPU runs out", NODES "a,4000,1,4,\n", TASKS "2000,0,1,1000,\n", 50, 50},
        {"RAM runs out", NODES "a,0,5,4,\n", TASKS "0,2,1,1000,\n", 50, 50},
        {"models hold", NODES "a,1,1,1,X\nb,1,1,1,Y\n", TASKS "0,0,1,1000,X\n", 50, 50},
        {"any of the models", NODES "a,1,1,1,X\nb,1,1,1,Y\nc,1,1,1,Z\nd,1,1,1,\n",
         TASKS "0,0,1,1000,Z|X\n", 50, 50},
        {"a model nobody has", NODES "a,1,1,1,X\nb,1,1,1,\n", TASKS "0,0,1,1000,Q\n", 0, 0},
        {"nodes without a GPU count for nothing", NODES "c,9,9,0,\na,1,1,1,\nb,9,9,0,\n",
         TASKS "0,0,1,1000,\n", 100, 100},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        struct acre_trace *trace = parse(cases[i].nodes, cases[i].tasks);
        for (struct each each = {0}; next_strategy(&each);) {
            acre_test_context("%s: %s", each.strategy->name, cases[i].what);
            struct acre_packing_result result = run(trace, each.strategy->name, 3, 1);
            CHECK_NEAR(result.at_100.mean, cases[i].at_100, 1e-9);
            CHECK_NEAR(result.at_100.min, cases[i].at_100, 1e-9);
            CHECK_NEAR(result.at_100.max, cases[i].at_100, 1e-9);
            CHECK_NEAR(result.end.mean, cases[i].end, 1e-9);
            CHECK_NEAR(result.curve[100], cases[i].at_100, 1e-9);
            CHECK_NEAR(result.curve[ACRE_PACKING_CURVE - 1], cases[i].end, 1e-9);
        }
        trace_destroy(trace);
    }
}

/* 1000 that fit nowhere and 3 x 100 that do make 130 %. At 100 % of arrivals the large one has
 * come, and as many of the others as came before it: 0 to 30 %, by the seed. */
static void a_task_that_does_not_fit_is_skipped_but_has_arrived(void) {
    struct acre_trace *trace = parse(NODES "a,1,1,1,X\n", TASKS "0,0,1,1000,Y\n0,0,1,100,\n"
                                                                "0,0,1,100,\n0,0,1,100,\n");
    for (struct each each = {0}; next_strategy(&each);) {
        struct acre_packing_result result = run(trace, each.strategy->name, SEEDS, 1);
        CHECK_NEAR(result.end.min, 30, 1e-9);
        CHECK_NEAR(result.end.max, 30, 1e-9);
        CHECK_NEAR(result.at_100.min, 0, 1e-9);
        CHECK_NEAR(result.at_100.max, 30, 1e-9);
        CHECK(result.at_100.mean > 5 && result.at_100.mean < 25);
    }
    trace_destroy(trace);
}

/* The node has CPU for one of the two: whichever comes first. */
static void tasks_without_a_gpu_take_cpu(void) {
    struct acre_trace *trace = parse(NODES "a,1000,1,1,\n", TASKS "600,0,1,1000,\n600,0,0,0,\n");
    for (struct each each = {0}; next_strategy(&each);) {
        struct acre_packing_result result = run(trace, each.strategy->name, SEEDS, 1);
        CHECK_NEAR(result.end.min, 0, 1e-9);
        CHECK_NEAR(result.end.max, 100, 1e-9);
    }
    trace_destroy(trace);
}

static struct acre_trace *load_small(void) {
    struct acre_trace *trace = NULL;
    struct acre_error err = {0};
    int r = trace_load(ACRE_SOURCE "/examples/small-nodes.csv",
                       ACRE_SOURCE "/examples/small-tasks.csv", &trace, &err);
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    acre_test_context("%s", "");
    return trace;
}

static void the_same_seed_gives_the_same_result(void) {
    struct acre_trace *trace = load_small();
    for (struct each each = {0}; next_strategy(&each);) {
        const char *name = each.strategy->name;
        struct acre_packing_result once = run(trace, name, 3, 7);
        struct acre_packing_result again = run(trace, name, 3, 7);
        CHECK(memcmp(once.curve, again.curve, sizeof(once.curve)) == 0);
        CHECK(memcmp(&once.at_100, &again.at_100, sizeof(once.at_100)) == 0);
        CHECK(memcmp(&once.end, &again.end, sizeof(once.end)) == 0);
        struct acre_packing_result other = run(trace, name, 3, 8);
        CHECK(memcmp(once.curve, other.curve, sizeof(once.curve)) != 0);

        /* seeds 7 and 8 are those two alone, and their mean */
        struct acre_packing_result seven = run(trace, name, 1, 7);
        struct acre_packing_result eight = run(trace, name, 1, 8);
        struct acre_packing_result both = run(trace, name, 2, 7);
        CHECK_NEAR(both.at_100.mean, (seven.at_100.mean + eight.at_100.mean) / 2, 1e-9);
        CHECK_NEAR(both.at_100.min, ACRE_MIN(seven.at_100.mean, eight.at_100.mean), 0);
        CHECK_NEAR(both.at_100.max, ACRE_MAX(seven.at_100.mean, eight.at_100.mean), 0);
        CHECK_NEAR(both.end.min, ACRE_MIN(seven.end.mean, eight.end.mean), 0);
        CHECK_NEAR(both.end.max, ACRE_MAX(seven.end.mean, eight.end.mean), 0);
    }
    trace_destroy(trace);
}

static void every_strategy_fills_the_example(void) {
    struct acre_trace *trace = load_small();
    double ours = 0;
    double best = 0;
    for (struct each each = {0}; next_strategy(&each);) {
        const char *name = each.strategy->name;
        struct acre_packing_result result = run(trace, name, 10, 42);
        CHECK(result.at_100.min >= 1 && result.end.max <= 100);
        CHECK(result.at_100.min <= result.at_100.mean && result.at_100.mean <= result.at_100.max);
        CHECK(result.at_100.mean <= result.end.mean);
        for (size_t i = 1; i < ACRE_PACKING_CURVE; i++) {
            CHECK(result.curve[i - 1] <= result.curve[i]); /* none leaves */
        }
        CHECK_NEAR(result.curve[100], result.at_100.mean, 1e-9);
        if (strcmp(name, "least-fragmentation") == 0) {
            ours = result.at_100.mean;
        } else if (strcmp(name, "fgd") == 0 || strcmp(name, "best-fit") == 0 ||
                   strcmp(name, "first-fit") == 0 || strcmp(name, "random") == 0) {
            best = ACRE_MAX(best, result.at_100.mean);
        }
    }
    acre_test_context("ours %.2f, best of the others %.2f", ours, best);
    CHECK(best > 0 && ours >= best - 1);
    trace_destroy(trace);
}

/* Rules driven by hand: the tasks of `order` (digits are indexes) are placed in turn; `fits` has
 * '+' for one that must find room and '-' for one that must not. */
struct script {
    const char *what, *nodes, *tasks, *order, *fits;
};

static void check_scripts(const struct packer *packer, const struct script *scripts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct acre_trace *trace = parse(scripts[i].nodes, scripts[i].tasks);
        void *self = packer->create(trace, packer, 1);
        REQUIRE_EQ(strlen(scripts[i].order), strlen(scripts[i].fits));
        for (size_t step = 0; scripts[i].order[step] != '\0'; step++) {
            acre_test_context("%s %s: step %zu", packer->about.name, scripts[i].what, step);
            uint32_t task = (uint32_t)(scripts[i].order[step] - '0');
            REQUIRE(task < trace->task_count);
            CHECK_EQ(packer->place(self, &trace->tasks[task]), scripts[i].fits[step] == '+');
        }
        acre_test_context("%s", "");
        packer->destroy(self);
        trace_destroy(trace);
    }
}

/* Score: 100 (1 - (CPU left / 128 cores + GPU left / 8) / 2), truncated. */
static void best_fit_takes_the_node_with_least_left(void) {
    static const struct script scripts[] = {
        /* big: (8/128 + 7/8)/2 left, 53; small: (8/128 + 0)/2, 96 */
        {"by GPU", NODES "big,16000,1,8,\nsmall,16000,1,1,\n",
         TASKS "8000,0,1,1000,\n0,0,8,1000,\n", "01", "++"},
        /* a: (56/128 + 1.5/8)/2, 68; b: (8/128 + 1.5/8)/2, 87 */
        {"by CPU", NODES "a,64000,1,2,X\nb,16000,1,2,Y\n",
         TASKS "8000,0,1,500,\n0,0,2,1000,Y\n64000,0,2,1000,X\n", "012", "+-+"},
        {"the first of equals", NODES "a,16000,1,2,X\nb,16000,1,2,Y\n",
         TASKS "0,0,1,500,\n0,0,2,1000,X\n0,0,2,1000,Y\n", "012", "+-+"},
        /* a: (15/128 + .5/8)/2, 91.0; b: (14.5/128 + .5/8)/2, 91.2: equal when truncated */
        {"truncated scores tie", NODES "a,16000,1,1,X\nb,15500,1,1,Y\n",
         TASKS "1000,0,1,500,\n0,0,1,1000,X\n0,0,1,1000,Y\n", "012", "+-+"},
        /* 600 leaves 400 on one device; 300 goes there and leaves a whole one */
        {"the tightest device", NODES "a,0,1,2,\n", TASKS "0,0,1,600,\n0,0,1,300,\n0,0,1,1000,\n",
         "012", "+++"},
        {"nodes larger than the published", NODES "a,1024000,1,64,\n", TASKS "1000,0,1,1000,\n",
         "00", "++"},
        {"the full and the other models are passed over", NODES "a,1000,1,1,X\nb,9000,1,1,Y\n",
         TASKS "1000,0,1,1000,\n0,0,1,1,X\n1000,0,0,0,\n0,0,1,1000,Y\n", "0123", "+-++"},
    };
    check_scripts(&packer_best_fit, scripts, ACRE_COUNT(scripts));
}

/* Score: 100 / (1 + exp(-d / 1000)), truncated; d is the fragmentation removed, where each of the
 * list's kinds of task weighs its part of the list. */
static void fgd_takes_where_fragmentation_falls_most(void) {
    static const struct script scripts[] = {
        /* After 300 on b (of model Y), 700 is to go: on a, F falls from 1000/3 (the 300 may not
         * use X) to 300: 50; on b from 700/3 (the 1000 does not fit) to 0: 55. */
        {"by node", NODES "a,9000,1,1,X\nb,9000,1,1,Y\n",
         TASKS "0,0,1,700,\n0,0,1,1000,\n0,0,1,300,Y\n", "201", "+++"},
        /* 500 and 900 leave 500 and 100. 100 more: from the first, F rises from 700/3 to 1000/3:
         * 47; from the second it falls to 500/3: 51. So 500 still fits. */
        {"by device", NODES "a,9000,1,2,\n", TASKS "0,0,1,500,\n0,0,1,900,\n0,0,1,100,\n", "0120",
         "++++"},
        /* 400 left 600; 400 more there would leave 200 that no kind can use: F 0 to 200, 45; on the
         * other device nothing is lost: 50. So two of 600 still fit. */
        {"by what is left over", NODES "a,9000,1,2,\n", TASKS "0,0,1,400,\n0,0,1,600,\n", "0011",
         "++++"},
        /* A CPU-only task on a (F 500 to 1000: 37) would strand its GPU; on b nothing: 50. */
        {"CPU-only tasks keep off GPUs", NODES "a,8000,1,1,\nb,8000,1,0,\n",
         TASKS "8000,0,1,1000,\n8000,0,0,0,\n", "10", "++"},
        /* 50 on both nodes; the two whole ones are too rare to weigh */
        {"the first of equals", NODES "a,9000,1,1,X\nb,9000,1,1,Y\n",
         TASKS "0,0,1,1000,X\n0,0,1,1000,Y\n" FIFTY("0,0,1,500,\n"), "201", "+-+"},
        {"whole GPUs", NODES "a,9000,1,3,\nb,9000,1,2,\n", TASKS "0,0,2,1000,\n0,0,1,1000,\n",
         "00101", "+++--"},
        {"nothing left", NODES "a,1000,1,1,\n", TASKS "1000,0,1,500,\n", "00", "+-"},
    };
    check_scripts(&packer_fgd, scripts, ACRE_COUNT(scripts));
}

/* Only the commonest kinds that make up 95 % of the list weigh. Where the whole one of X is half of
 * the list, 400 keeps off X (F there 0 to 300: 42; on Y 500 to 300: 54). Where it is a fiftieth,
 * 400 sees no difference (50, 50) and takes the first. */
static void fgd_knows_the_common_tasks_only(void) {
    static const struct script scripts[] = {
        {"a common kind weighs", NODES "a,9000,1,1,X\nb,9000,1,1,Y\n",
         TASKS "0,0,1,1000,X\n0,0,1,400,\n", "10", "++"},
        {"a rare kind does not", NODES "a,9000,1,1,X\nb,9000,1,1,Y\n",
         TASKS "0,0,1,1000,X\n" FIFTY("0,0,1,400,\n"), "10", "+-"},
    };
    check_scripts(&packer_fgd, scripts, ACRE_COUNT(scripts));
}

static void random_reaches_every_node_and_device(void) {
    /* Two of 500 on two nodes, or on two devices. A whole one then fits if both are on the other
     * node: one seed in four; or if they are on one device: one in two. */
    static const struct {
        const char *what, *nodes, *tasks;
    } places[] = {
        {"node", NODES "a,1,1,1,X\nb,1,1,1,Y\n", TASKS "0,0,1,500,\n0,0,1,1000,X\n"},
        {"device", NODES "a,1,1,2,\n", TASKS "0,0,1,500,\n0,0,1,1000,\n"},
    };
    for (size_t i = 0; i < ACRE_COUNT(places); i++) {
        struct acre_trace *trace = parse(places[i].nodes, places[i].tasks);
        uint32_t fitted = 0;
        for (uint64_t seed = 0; seed < 64; seed++) {
            void *self = packer_random.create(trace, &packer_random, seed);
            CHECK(packer_random.place(self, &trace->tasks[0]));
            CHECK(packer_random.place(self, &trace->tasks[0]));
            fitted += packer_random.place(self, &trace->tasks[1]);
            CHECK(!packer_random.place(self, &trace->tasks[1]));
            packer_random.destroy(self);
        }
        acre_test_context("%s: %u of 64", places[i].what, fitted);
        CHECK(fitted >= 8 && fitted <= 56);
        acre_test_context("%s", "");
        trace_destroy(trace);
    }
}

/* The recorded cluster is not part of the project: ACRE_TRACES, or beside the sources. */
static void check_openb(const char *strategy, double published, double below, double above) {
    const char *folder = getenv("ACRE_TRACES");
    char nodes[512];
    char tasks[512];
    folder = folder != NULL ? folder : ACRE_SOURCE "/../shared/traces";
    snprintf(nodes, sizeof(nodes), "%s/openb/openb_node_list_gpu_node.csv", folder);
    snprintf(tasks, sizeof(tasks), "%s/openb/openb_pod_list_default.csv", folder);
    struct acre_trace *trace = NULL;
    struct acre_error err = {0};
    int r = trace_load(nodes, tasks, &trace, &err);
    if (r == ACRE_ENOTFOUND) {
        acre_test_skip("no openb traces at %s/openb", folder);
    }
    acre_test_context("%s", err.text);
    REQUIRE_EQ(r, 0);
    struct acre_packing_result result = run(trace, strategy, 2, 42);
    acre_test_context("%s: %.2f, published %.2f", strategy, result.at_100.mean, published);
    CHECK(result.at_100.mean > published - below && result.at_100.mean < published + above);
    trace_destroy(trace);
}

static void openb_default_is_packed_above_the_published_best(void) {
    check_openb("least-fragmentation", 95.23, 0, 4.77);
}
static void openb_fgd_is_as_published(void) {
    check_openb("fgd", 95.23, 0.5, 0.5);
}
static void openb_best_fit_is_as_published(void) {
    check_openb("best-fit", 92.86, 0.5, 0.5);
}
static void openb_random_is_as_published(void) {
    check_openb("random", 86.30, 0.5, 0.5);
}

#define TEST(name)                                                                                 \
    { #name, name, 0 }
#define LONG_TEST(name) /* seconds; in builds without optimisation half a minute */                \
    { #name, name, 300 }
static const struct acre_test tests[] = {
    TEST(the_strategies_are_named_once_and_explained),
    TEST(an_unknown_strategy_is_refused_with_the_known_ones),
    TEST(arrivals_sum_to_130_percent_within_one_task),
    TEST(tasks_that_never_fill_the_cluster_are_refused),
    TEST(known_clusters_end_as_worked_out),
    TEST(a_task_that_does_not_fit_is_skipped_but_has_arrived),
    TEST(tasks_without_a_gpu_take_cpu),
    TEST(the_same_seed_gives_the_same_result),
    TEST(every_strategy_fills_the_example),
    TEST(best_fit_takes_the_node_with_least_left),
    TEST(fgd_takes_where_fragmentation_falls_most),
    TEST(fgd_knows_the_common_tasks_only),
    TEST(random_reaches_every_node_and_device),
    LONG_TEST(openb_default_is_packed_above_the_published_best),
    LONG_TEST(openb_fgd_is_as_published),
    LONG_TEST(openb_best_fit_is_as_published),
    LONG_TEST(openb_random_is_as_published),
};

ACRE_TEST_MAIN(tests)
