/* The placement director (CAP-7; vectors A8, A9, A14, A15). */
#include "ledger/director.h"
#include "support/test.h"

enum { NOW_MS = 1000000, H200 = 1, T4 = 2, FAST = 11, EU = 12, NODES = 8 };

/* What the caller knows of its nodes: up to two labels and one model each. */
struct cluster {
    uint32_t labels[NODES][2];
    uint32_t model[NODES];
    unsigned *asked;
};

static bool has_label(const void *context, uint32_t node, uint32_t label) {
    const struct cluster *cluster = context;
    ++*cluster->asked;
    return cluster->labels[node][0] == label || cluster->labels[node][1] == label;
}

static bool has_model(const void *context, uint32_t node, uint32_t model) {
    const struct cluster *cluster = context;
    ++*cluster->asked;
    return cluster->model[node] == model;
}

static struct acre_director_request request_of(uint64_t min_mib) {
    return (struct acre_director_request){.min_mib = min_mib, .local_node = ACRE_CAPACITY_NO_NODE};
}

static void add_node(struct acre_capacity *capacity, uint32_t node, uint32_t devices,
                     uint64_t available_mib, uint32_t queue_depth, uint64_t time_ms) {
    struct acre_capacity_report report = {
        .device_count = devices,
        .queue_depth = queue_depth,
        .total_mib = devices * UINT64_C(8192),
        .available_mib = available_mib,
        .largest_device_available_mib = devices > 0 ? (available_mib + devices - 1) / devices : 0,
        .time_ms = time_ms,
    };
    REQUIRE_EQ(acre_capacity_report(capacity, node, &report, NOW_MS, NULL), 0);
}

static struct acre_director_answer must_place(struct acre_capacity *capacity,
                                              const struct acre_director_facts *facts,
                                              struct acre_director_request request) {
    struct acre_director_answer answer = {0};
    struct acre_error err = {0};
    int r = acre_director_choose(capacity, facts, &request, NOW_MS, &answer, &err);
    if (r < 0) {
        acre_test_context("%s", err.text);
    }
    REQUIRE_EQ(r, 0);
    CHECK_EQ(acre_capacity_cancel(capacity, answer.token, NOW_MS), 0); /* it was reserved */
    return answer;
}

static void the_best_node_wins_without_preference(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    add_node(capacity, 1, 1, 8000, 1, NOW_MS);
    add_node(capacity, 2, 1, 4000, 5, NOW_MS);
    struct acre_director_answer answer = must_place(capacity, NULL, request_of(0));
    CHECK_U64(answer.node, 1);
    CHECK(!answer.is_local && !answer.is_cpu);
    CHECK_STR(answer.why, "");
    acre_capacity_destroy(capacity);
}

/* A14 */
static void local_wins_over_a_better_remote_one_if_it_fits(void) {
    static const struct {
        uint64_t min_mib;
        uint32_t local, expect;
    } rows[] = {
        {1024, 0, 0},
        {2048, 0, 0},
        {2049, 0, 1},
        {4096, 0, 1},
        {1024, 1, 1},
        {1024, 2, 1},
        /* stale */ {1024, 3, 1}, /* no device */
        {1024, 5, 1},             /* unknown */
    };
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    add_node(capacity, 0, 1, 2048, 0, NOW_MS);
    add_node(capacity, 1, 1, 6000, 0, NOW_MS);
    add_node(capacity, 2, 1, 8192, 0, NOW_MS - 120001);
    add_node(capacity, 3, 0, 0, 0, NOW_MS);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("row %zu", i);
        struct acre_director_request request = request_of(rows[i].min_mib);
        request.local_node = rows[i].local;
        request.cpu_allowed = true;
        struct acre_director_answer answer = must_place(capacity, NULL, request);
        CHECK_U64(answer.node, rows[i].expect);
        CHECK_EQ(answer.is_local, rows[i].expect == rows[i].local);
        CHECK(!answer.is_cpu);
    }
    acre_capacity_destroy(capacity);
}

/* A9, A15 */
static void a_cpu_node_is_the_last_resort_and_says_why(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    struct acre_director_request request = request_of(4096);
    struct acre_director_answer answer = {.node = 99};
    struct acre_error err;
    CHECK_EQ(acre_director_choose(capacity, NULL, &request, NOW_MS, &answer, &err), ACRE_ENOFIT);
    CHECK_HAS(err.text, "no GPU that fits has 4 GiB free: 0 nodes, 0 stale");
    CHECK_HAS(err.text, "nodes without GPUs are not allowed");
    request.cpu_allowed = true;
    add_node(capacity, 0, 1, 2048, 0, NOW_MS);
    add_node(capacity, 1, 1, 8192, 0, NOW_MS - 120001);
    CHECK_EQ(acre_director_choose(capacity, NULL, &request, NOW_MS, &answer, &err), ACRE_ENOFIT);
    CHECK_HAS(err.text, "2 nodes, 1 stale; the largest free device has 2 GiB");
    CHECK_HAS(err.text, "no node without GPUs is fresh and has the labels");
    CHECK_U64(answer.node, 99);
    add_node(capacity, 3, 0, 0, 4, NOW_MS);
    add_node(capacity, 4, 0, 0, 2, NOW_MS);
    add_node(capacity, 5, 0, 0, 2, NOW_MS);
    add_node(capacity, 6, 0, 0, 0, NOW_MS - 120001);
    answer = must_place(capacity, NULL, request);
    CHECK_U64(answer.node, 4);
    CHECK(answer.is_cpu && !answer.is_local);
    CHECK_HAS(answer.why, "no GPU that fits has 4 GiB free: 6 nodes, 2 stale");
    request.local_node = 3; /* of CPU nodes too, the local one is preferred */
    answer = must_place(capacity, NULL, request);
    CHECK_U64(answer.node, 3);
    CHECK(answer.is_cpu && answer.is_local);
    request.local_node = 0;
    CHECK_U64(must_place(capacity, NULL, request).node, 4);
    acre_capacity_destroy(capacity);
}

static void labels_are_all_needed_and_one_model_is_enough(void) {
    static const uint32_t fast[] = {FAST}, both[] = {FAST, EU}, none_has[] = {99};
    static const uint32_t h200[] = {H200}, t4[] = {T4}, either[] = {H200, T4};
    static const struct {
        const char *what;
        const uint32_t *labels;
        uint32_t label_count;
        const uint32_t *models;
        uint32_t model_count;
        uint64_t min_mib;
        bool cpu;
        uint32_t local, expect; /* ACRE_CAPACITY_NO_NODE: refused */
        const char *says;
    } rows[] = {
        {"no constraint", NULL, 0, NULL, 0, 0, false, 9, 0, NULL},
        {"a label", fast, 1, NULL, 0, 0, false, 9, 1, NULL},
        {"two labels", both, 2, NULL, 0, 0, false, 9, 2, NULL},
        {"a model", NULL, 0, t4, 1, 0, false, 9, 1, NULL},
        {"either model", NULL, 0, either, 2, 0, false, 9, 0, NULL},
        {"label and model", both, 2, t4, 1, 0, false, 9, 3, NULL},
        {"local has it", fast, 1, NULL, 0, 0, false, 3, 3, NULL},
        {"local lacks it", fast, 1, NULL, 0, 0, false, 0, 1, NULL},
        {"local is another model", NULL, 0, t4, 1, 0, false, 2, 1, NULL},
        {"nobody has the label", none_has, 1, NULL, 0, 0, false, 9, ACRE_CAPACITY_NO_NODE,
         "of 4 with enough memory, 4 lack a label and 0 lack such a GPU"},
        {"not with that memory", fast, 1, h200, 1, 7500, false, 9, ACRE_CAPACITY_NO_NODE,
         "of 2 with enough memory, 1 lack a label and 1 lack such a GPU"},
        {"too much memory", both, 2, t4, 1, 8193, false, 9, ACRE_CAPACITY_NO_NODE,
         "the largest free device has 8 GiB; nodes without"},
        {"CPU needs the label too", none_has, 1, NULL, 0, 0, true, 9, ACRE_CAPACITY_NO_NODE,
         "no node without GPUs is fresh and has the labels"},
        {"CPU has no model", both, 2, t4, 1, 8000, true, 9, 4, NULL},
    };
    unsigned asked = 0;
    const struct cluster cluster = {
        .labels = {{0}, {FAST}, {FAST, EU}, {EU, FAST}, {FAST, EU}},
        .model = {H200, T4, H200, T4, 0},
        .asked = &asked,
    };
    const struct acre_director_facts facts = {&cluster, has_label, has_model};
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    for (uint32_t node = 0; node < 4; node++) {
        add_node(capacity, node, 1, 8192 - 500 * node, 0, NOW_MS);
    }
    add_node(capacity, 4, 0, 0, 0, NOW_MS);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].what);
        struct acre_director_request request = {
            rows[i].min_mib, rows[i].local,       rows[i].labels, rows[i].label_count,
            rows[i].models,  rows[i].model_count, rows[i].cpu,
        };
        struct acre_director_answer answer;
        struct acre_error err = {0};
        asked = 0;
        int r = acre_director_choose(capacity, &facts, &request, NOW_MS, &answer, &err);
        if (rows[i].expect == ACRE_CAPACITY_NO_NODE) {
            CHECK_EQ(r, ACRE_ENOFIT);
            CHECK_HAS(err.text, rows[i].says == NULL ? "" : rows[i].says);
            continue;
        }
        REQUIRE_EQ(r, 0);
        CHECK_U64(answer.node, rows[i].expect);
        CHECK_EQ(acre_capacity_cancel(capacity, answer.token, NOW_MS), 0);
        CHECK_EQ(asked == 0, rows[i].label_count + rows[i].model_count == 0);
    }
    acre_capacity_destroy(capacity);
}

/* CAP-7 ours: one report interval, ten equal nodes */
static void a_herd_spreads_over_equal_nodes(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    unsigned placed[10] = {0};
    for (uint32_t node = 0; node < 10; node++) {
        add_node(capacity, node, 8, 65536, 0, NOW_MS);
    }
    for (unsigned i = 0; i < 100; i++) {
        struct acre_director_request request = request_of(512);
        struct acre_director_answer answer;
        REQUIRE_EQ(acre_director_choose(capacity, NULL, &request, NOW_MS, &answer, NULL), 0);
        REQUIRE_EQ(acre_capacity_commit(capacity, answer.token, NOW_MS), 0);
        placed[answer.node]++;
    }
    for (unsigned i = 0; i < 10; i++) {
        CHECK_U64(placed[i], 10);
    }
    /* Whole devices: eight fit each node, the eighty-first placement is refused. */
    struct acre_director_request whole = request_of(8192);
    struct acre_director_answer answer;
    for (uint32_t node = 0; node < 10; node++) {
        struct acre_capacity_report report = {8, 0, 0, 65536, 65536, 8192, NOW_MS + 1};
        REQUIRE_EQ(acre_capacity_report(capacity, node, &report, NOW_MS + 1, NULL), 0);
        placed[node] = 0;
    }
    for (unsigned i = 0; i < 80; i++) {
        REQUIRE_EQ(acre_director_choose(capacity, NULL, &whole, NOW_MS + 1, &answer, NULL), 0);
        placed[answer.node]++;
    }
    for (unsigned i = 0; i < 10; i++) {
        CHECK_U64(placed[i], 8);
    }
    CHECK_EQ(acre_director_choose(capacity, NULL, &whole, NOW_MS + 1, &answer, NULL), ACRE_ENOFIT);
    acre_capacity_destroy(capacity);
}

static void a_full_reservation_table_is_an_error_not_a_placement(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    add_node(capacity, 0, 1, 8192, 0, NOW_MS);
    struct acre_director_request request = request_of(0);
    struct acre_director_answer answer;
    for (unsigned i = 0; i < UINT16_MAX; i++) {
        REQUIRE_EQ(acre_director_choose(capacity, NULL, &request, NOW_MS, &answer, NULL), 0);
    }
    answer.node = 77;
    CHECK_EQ(acre_director_choose(capacity, NULL, &request, NOW_MS, &answer, NULL), ACRE_ELIMIT);
    CHECK_U64(answer.node, 77);
    acre_capacity_destroy(capacity);
}

static const struct acre_test tests[] = {
    {"the_best_node_wins_without_preference", the_best_node_wins_without_preference, 0},
    {"local_wins_over_a_better_remote_one_if_it_fits",
     local_wins_over_a_better_remote_one_if_it_fits, 0},
    {"a_cpu_node_is_the_last_resort_and_says_why", a_cpu_node_is_the_last_resort_and_says_why, 0},
    {"labels_are_all_needed_and_one_model_is_enough", labels_are_all_needed_and_one_model_is_enough,
     0},
    {"a_herd_spreads_over_equal_nodes", a_herd_spreads_over_equal_nodes, 0},
    {"a_full_reservation_table_is_an_error_not_a_placement",
     a_full_reservation_table_is_an_error_not_a_placement, 0},
};

ACRE_TEST_MAIN(tests)
