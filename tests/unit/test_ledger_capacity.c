/* Capacity: reports, ageing, scores, best node, statistics, reservations (CAP-1..CAP-8). */
#include "core/rand.h"
#include "ledger/capacity.h"
#include "support/test.h"

enum { MINUTE_MS = 60000, NOW_MS = 100 * MINUTE_MS };

/* One device unless said: what is free on it is all that is free. */
static struct acre_capacity_report report_of(uint32_t devices, uint64_t total_mib,
                                             uint64_t available_mib, uint32_t queue_depth,
                                             uint64_t time_ms) {
    uint64_t largest_mib = devices > 0 ? (available_mib + devices - 1) / devices : 0;
    return (struct acre_capacity_report){devices,       queue_depth, 7,      total_mib,
                                         available_mib, largest_mib, time_ms};
}

static void must_report(struct acre_capacity *capacity, uint32_t node,
                        struct acre_capacity_report report, uint64_t now_ms) {
    struct acre_error err = {0};
    int r = acre_capacity_report(capacity, node, &report, now_ms, &err);
    if (r < 0) {
        acre_test_context("report of node %u: %s", node, err.text);
    }
    REQUIRE_EQ(r, 0);
}

static uint64_t must_reserve(struct acre_capacity *capacity, uint32_t node, uint64_t mib,
                             uint64_t now_ms) {
    uint64_t token = 0;
    REQUIRE_EQ(acre_capacity_reserve(capacity, node, mib, now_ms, &token, NULL), 0);
    return token;
}

static struct acre_capacity_view must_get(struct acre_capacity *capacity, uint32_t node,
                                          uint64_t now_ms) {
    struct acre_capacity_view view = {0};
    REQUIRE_EQ(acre_capacity_get(capacity, node, now_ms, &view), 0);
    return view;
}

/* CAP-1, CAP-3, CAP-6; vectors A1..A7 */
static void scores_and_usage_follow_the_vectors(void) {
    static const struct {
        const char *vector;
        uint32_t devices;
        uint64_t total, available;
        uint32_t queue;
        uint64_t age_ms;
        double usage_pct, score;
        bool has, stale;
    } rows[] = {
        {"A1 quarter free", 1, 8192, 2048, 0, 0, 75, 25, true, false},
        {"A2 nothing free", 1, 8192, 0, 0, 0, 100, 0, false, false},
        {"A3 30 s old", 1, 8192, 8192, 0, 30000, 0, 100, true, false},
        {"A3 3 min old", 1, 8192, 8192, 0, 180000, 0, 0, true, true},
        {"A4 none", 0, 0, 0, 0, 0, 0, 0, false, false},
        {"A5 idle", 1, 8192, 8192, 0, 0, 0, 100, true, false},
        {"A5 queue 10", 1, 8192, 8192, 10, 0, 0, 80, true, false},
        {"A5 queue 11", 1, 8192, 8192, 11, 0, 0, 80, true, false},
        {"A6 5 min old", 1, 8192, 8192, 0, 300000, 0, 0, true, true},
        {"A7 half", 1, 8192, 4096, 5, 0, 50, 40, true, false},
        {"A8 first", 1, 8192, 8000, 1, 0, 2.34375, 95.65625, true, false},
        {"A8 second", 1, 8192, 4000, 5, 0, 51.171875, 38.828125, true, false},
        {"never below zero", 1, 8192, 81, 50, 0, 99.01123046875, 0, true, false},
        {"exactly 2 min", 1, 8192, 8192, 0, 120000, 0, 100, true, false},
        {"1 ms over 2 min", 1, 8192, 8192, 0, 120001, 0, 0, true, true},
        {"no device", 0, 8192, 8192, 0, 0, 0, 0, false, false},
        {"no total", 1, 0, 5, 0, 0, 0, 0, true, false},
        {"queue of 4 billion", 1, 8192, 8192, UINT32_MAX, 0, 0, 80, true, false},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%s", rows[i].vector);
        struct acre_capacity_report report =
            report_of(rows[i].devices, rows[i].total, rows[i].available, rows[i].queue,
                      NOW_MS - rows[i].age_ms);
        CHECK_NEAR(acre_capacity_usage_pct(&report), rows[i].usage_pct, 1e-9);
        CHECK_NEAR(acre_capacity_score(&report, NOW_MS), rows[i].score, 1e-9);
        CHECK_EQ(acre_capacity_has(&report), rows[i].has);
        CHECK_EQ(acre_capacity_is_stale(&report, NOW_MS), rows[i].stale);
    }
    struct acre_capacity_report ahead = report_of(1, 8192, 8192, 0, NOW_MS + 1);
    CHECK(!acre_capacity_is_stale(&ahead, NOW_MS));
}

/* CAP-2; A10 and the warning of unregister */
static void an_unknown_node_registers_itself_and_unregisters_once(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    struct acre_capacity_view view;
    CHECK_EQ(acre_capacity_get(capacity, 4, NOW_MS, &view), ACRE_ENOTFOUND);
    CHECK_EQ(acre_capacity_unregister(capacity, 4, NOW_MS), ACRE_ENOTFOUND);
    must_report(capacity, 4, report_of(1, 8192, 2048, 3, NOW_MS), NOW_MS);
    view = must_get(capacity, 4, NOW_MS);
    CHECK_U64(view.reported.available_mib, 2048);
    CHECK_U64(view.reported.queue_depth, 3);
    CHECK_U64(view.reported.backend, 7);
    CHECK_U64(view.reported.time_ms, NOW_MS);
    CHECK_NEAR(view.score, 19, 1e-9);
    must_report(capacity, 4, report_of(2, 16384, 1024, 0, NOW_MS + 5), NOW_MS + 5);
    view = must_get(capacity, 4, NOW_MS + 5);
    CHECK_U64(view.reported.device_count, 2);
    CHECK_U64(view.reported.total_mib, 16384);
    CHECK_EQ(acre_capacity_unregister(capacity, 4, NOW_MS + 5), 0);
    CHECK_EQ(acre_capacity_unregister(capacity, 4, NOW_MS + 5), ACRE_ENOTFOUND);
    CHECK_EQ(acre_capacity_get(capacity, 4, NOW_MS + 5, &view), ACRE_ENOTFOUND);
    must_report(capacity, 4, report_of(1, 8192, 1, 0, NOW_MS), NOW_MS + 5);
    acre_capacity_destroy(capacity);
    acre_capacity_destroy(NULL);
}

/* CAP-2: stale strictly after 2 min, dropped strictly after 5 */
static void reports_grow_stale_and_are_dropped(void) {
    static const struct {
        uint64_t age_ms;
        bool found, stale, best;
        size_t listed;
        uint32_t dropped;
    } rows[] = {
        {0, true, false, true, 1, 0},        {120000, true, false, true, 1, 0},
        {120001, true, true, false, 1, 0},   {300000, true, true, false, 1, 0},
        {300001, false, false, false, 0, 1}, {UINT64_C(1) << 60, false, false, false, 0, 1},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("age %llu", (unsigned long long)rows[i].age_ms);
        struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
        must_report(capacity, 0, report_of(1, 8192, 8192, 0, NOW_MS), NOW_MS);
        uint64_t now_ms = NOW_MS + rows[i].age_ms;
        CHECK_U64(acre_capacity_purge(capacity, now_ms), rows[i].dropped);
        struct acre_capacity_view view = {0};
        CHECK_EQ(acre_capacity_get(capacity, 0, now_ms, &view) == 0, rows[i].found);
        CHECK_EQ(view.stale, rows[i].stale);
        CHECK_NEAR(view.score, rows[i].best ? 100 : 0, 0);
        uint32_t best = 99;
        CHECK_EQ(acre_capacity_best(capacity, 1, now_ms, &best, NULL) == 0, rows[i].best);
        CHECK_U64(best, rows[i].best ? 0 : 99); /* untouched on failure */
        struct acre_capacity_rank ranks[2];
        CHECK_U64(acre_capacity_list(capacity, now_ms, ranks, 2), rows[i].listed);
        struct acre_capacity_summary summary = acre_capacity_summarise(capacity, now_ms);
        CHECK_U64(summary.nodes, rows[i].found);
        CHECK_U64(summary.stale, rows[i].stale);
        CHECK_U64(summary.largest_device_available_mib, rows[i].best ? 8192 : 0);
        acre_capacity_destroy(capacity);
    }
}

/* CAP-2: a report may arrive late, but not when it would be dropped at once. */
static void a_report_too_old_to_keep_is_refused(void) {
    static const struct {
        uint64_t age_ms;
        int code;
        bool stale;
    } rows[] = {
        {0, 0, false},
        {ACRE_CAPACITY_STALE_MS, 0, false},
        {ACRE_CAPACITY_STALE_MS + 1, 0, true},
        {ACRE_CAPACITY_DROP_MS, 0, true},
        {ACRE_CAPACITY_DROP_MS + 1, ACRE_ECONFLICT, false},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("age %llu", (unsigned long long)rows[i].age_ms);
        struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
        struct acre_capacity_report report = report_of(1, 8192, 8192, 0, NOW_MS - rows[i].age_ms);
        CHECK_EQ(acre_capacity_report(capacity, 0, &report, NOW_MS, NULL), rows[i].code);
        struct acre_capacity_view view = {0};
        CHECK_EQ(acre_capacity_get(capacity, 0, NOW_MS, &view) == 0, rows[i].code == 0);
        CHECK_EQ(view.stale, rows[i].stale);
        acre_capacity_destroy(capacity);
    }
}

/* Late and reordered reports: each node ages by its own time. */
static void age_counts_from_the_report_not_from_its_arrival(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    must_report(capacity, 0, report_of(1, 100, 50, 0, NOW_MS), NOW_MS);
    must_report(capacity, 1, report_of(1, 100, 100, 0, NOW_MS - 100000), NOW_MS);
    must_report(capacity, 2, report_of(1, 100, 90, 0, NOW_MS - 150000), NOW_MS); /* stale already */
    CHECK_U64(acre_capacity_summarise(capacity, NOW_MS).stale, 1);
    uint32_t best = 99;
    CHECK_EQ(acre_capacity_best(capacity, 1, NOW_MS + 20000, &best, NULL), 0);
    CHECK_U64(best, 1);
    CHECK_EQ(acre_capacity_best(capacity, 1, NOW_MS + 20001, &best, NULL), 0);
    CHECK_U64(best, 0);
    /* A stale node that reports again must be seen to age from then on. */
    must_report(capacity, 2, report_of(1, 100, 90, 0, NOW_MS + 30000), NOW_MS + 30000);
    CHECK_EQ(acre_capacity_best(capacity, 1, NOW_MS + 150000, &best, NULL), 0);
    CHECK_U64(best, 2);
    CHECK_EQ(acre_capacity_best(capacity, 1, NOW_MS + 150001, &best, NULL), ACRE_ENOFIT);
    /* A node that reported twice is looked at when the first report would be stale, or later. */
    uint64_t later_ms = NOW_MS + 200000;
    must_report(capacity, 5, report_of(1, 100, 90, 0, later_ms), later_ms);
    must_report(capacity, 5, report_of(1, 100, 90, 0, later_ms + 1000), later_ms + 1000);
    CHECK_EQ(acre_capacity_best(capacity, 1, later_ms + 121000, &best, NULL), 0);
    CHECK_U64(best, 5);
    CHECK_EQ(acre_capacity_best(capacity, 1, later_ms + 121001, &best, NULL), ACRE_ENOFIT);
    acre_capacity_destroy(capacity);
}

static void time_never_goes_back(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    struct acre_error err;
    must_report(capacity, 0, report_of(1, 100, 50, 0, NOW_MS), NOW_MS);
    struct acre_capacity_report older = report_of(1, 100, 99, 0, NOW_MS - 1);
    CHECK_EQ(acre_capacity_report(capacity, 0, &older, NOW_MS, &err), ACRE_ECONFLICT);
    CHECK_HAS(err.text, "before");
    CHECK_U64(must_get(capacity, 0, NOW_MS).reported.available_mib, 50);
    must_report(capacity, 0, report_of(1, 100, 60, 0, NOW_MS), NOW_MS); /* same time: newer word */
    CHECK_U64(must_get(capacity, 0, NOW_MS).reported.available_mib, 60);
    /* A node whose clock runs ahead neither stays fresh for ever nor locks itself out. */
    must_report(capacity, 0, report_of(1, 100, 70, 0, NOW_MS + 3600000), NOW_MS + 10);
    CHECK_U64(must_get(capacity, 0, NOW_MS).reported.time_ms, NOW_MS + 10);
    must_report(capacity, 0, report_of(1, 100, 80, 0, NOW_MS + 20), NOW_MS + 20);
    /* An earlier now counts as the latest seen. */
    CHECK_U64(acre_capacity_purge(capacity, 5), 0);
    CHECK(!must_get(capacity, 0, 0).stale);
    struct acre_capacity_report ancient = report_of(1, 100, 99, 0, NOW_MS + 20 - 300001);
    CHECK_EQ(acre_capacity_report(capacity, 1, &ancient, NOW_MS + 20, &err), ACRE_ECONFLICT);
    CHECK_HAS(err.text, "300001 ms old");
    acre_capacity_destroy(capacity);
}

static void contradictory_reports_are_refused_by_field(void) {
    static const struct {
        uint32_t node;
        struct acre_capacity_report report;
        const char *says;
    } rows[] = {
        {ACRE_CAPACITY_NODES_MAX, {.device_count = 0}, "node id 1048576 is over 1048575"},
        {0, {.device_count = 4097}, "device_count 4097 is over 4096"},
        {0, {.queue_depth = (1U << 30) + 1}, "queue_depth 1073741825"},
        {0, {1, 0, 0, UINT64_C(1) << 32, 5, 5, 0}, "total_mib 4294967296 is over 4294967295"},
        {0, {1, 0, 0, 8192, 8193, 8192, 0}, "available_mib 8193 is over 8192"},
        {0, {1, 0, 0, 8192, 8192, 8193, 0}, "largest_device_available_mib 8193 is over 8192"},
        {0, {2, 0, 0, 8192, 8001, 4000, 0}, "available_mib 8001 is more than 2 devices"},
        {0, {0, 0, 0, 8192, 1, 1, 0}, "more than 0 devices"},
        {0, {4096, 0, 0, UINT32_MAX, UINT32_MAX, 1, 0}, "more than 4096 devices"},
    };
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_error err = {0};
        acre_test_context("row %zu", i);
        CHECK_EQ(acre_capacity_report(capacity, rows[i].node, &rows[i].report, 0, &err),
                 ACRE_EINVALID);
        CHECK_HAS(err.text, rows[i].says);
    }
    CHECK_U64(acre_capacity_summarise(capacity, 0).nodes, 0);
    must_report(capacity, 5, report_of(4096, UINT32_MAX, UINT32_MAX, 1 << 30, 0), 0);
    CHECK_NEAR(must_get(capacity, 5, 0).score, 80, 1e-9);
    acre_capacity_destroy(capacity);
}

/* CAP-4: A8, A9, A11; per device, ties by queue and then by id */
static void best_is_by_score_then_queue_then_id_and_fits_one_device(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    struct acre_error err = {0};
    uint32_t best = 99;
    CHECK_EQ(acre_capacity_best(capacity, 0, NOW_MS, &best, &err), ACRE_ENOFIT);
    CHECK_HAS(err.text, "0 nodes, 0 stale, the largest free device has 0 MiB");
    must_report(capacity, 2, report_of(1, 8192, 4000, 5, NOW_MS), NOW_MS);
    must_report(capacity, 1, report_of(1, 8192, 8000, 1, NOW_MS), NOW_MS);
    CHECK_EQ(acre_capacity_best(capacity, 0, NOW_MS, &best, NULL), 0);
    CHECK_U64(best, 1);
    struct acre_capacity_rank ranks[4];
    CHECK_U64(acre_capacity_list(capacity, NOW_MS, ranks, 4), 2);
    CHECK_U64(ranks[0].node, 1);
    CHECK_NEAR(ranks[0].score, 95.65625, 1e-9);
    CHECK_U64(ranks[1].node, 2);
    CHECK_U64(ranks[1].queue_depth, 5);
    CHECK_EQ(acre_capacity_best(capacity, 8001, NOW_MS, &best, &err), ACRE_ENOFIT);
    CHECK_HAS(err.text, "no node has 8001 MiB free on one device: 2 nodes, 0 stale, the largest "
                        "free device has 8000 MiB");
    CHECK_EQ(acre_capacity_best(capacity, UINT64_MAX, NOW_MS, &best, &err), ACRE_ENOFIT);
    /* The sum over two devices is 12,000, but no device has more than 6,000. */
    must_report(capacity, 3, report_of(2, 12000, 12000, 0, NOW_MS), NOW_MS);
    CHECK_EQ(acre_capacity_best(capacity, 6000, NOW_MS, &best, NULL), 0);
    CHECK_U64(best, 3);
    CHECK_EQ(acre_capacity_best(capacity, 6001, NOW_MS, &best, NULL), 0);
    CHECK_U64(best, 1);
    acre_capacity_destroy(capacity);

    capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    must_report(capacity, 9, report_of(1, 100, 100, 12, NOW_MS), NOW_MS);
    must_report(capacity, 8, report_of(1, 100, 100, 11, NOW_MS), NOW_MS); /* same score, 80 */
    must_report(capacity, 7, report_of(1, 200, 200, 11, NOW_MS), NOW_MS);
    CHECK_EQ(acre_capacity_best(capacity, 0, NOW_MS, &best, NULL), 0);
    CHECK_U64(best, 7);
    must_report(capacity, 7, report_of(1, 200, 0, 0, NOW_MS), NOW_MS);
    CHECK_EQ(acre_capacity_best(capacity, 0, NOW_MS, &best, NULL), 0);
    CHECK_U64(best, 8);
    acre_capacity_destroy(capacity);
}

/* A11: devices 1/0/2; A13: 6000 of 8192 and 10000 of 16384 MiB free, 16000 in all */
static void only_nodes_with_free_devices_are_capable(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    struct acre_capacity_rank ranks[4];
    uint32_t best = 99;
    must_report(capacity, 1, report_of(1, 8192, 8192, 0, NOW_MS), NOW_MS);
    must_report(capacity, 2, report_of(0, 0, 0, 0, NOW_MS), NOW_MS);
    must_report(capacity, 3, report_of(2, 8192, 4096, 0, NOW_MS), NOW_MS);
    CHECK_U64(acre_capacity_list(capacity, NOW_MS, ranks, 1), 2);
    CHECK_U64(ranks[0].node, 1);
    CHECK_U64(acre_capacity_list(capacity, NOW_MS, ranks, 4), 2);
    CHECK_U64(ranks[1].node, 3);
    must_report(capacity, 3, (struct acre_capacity_report){2, 0, 0, 24576, 16000, 10000, NOW_MS},
                NOW_MS);
    CHECK_U64(must_get(capacity, 3, NOW_MS).reported.available_mib, 16000);
    CHECK_EQ(acre_capacity_best(capacity, 10000, NOW_MS, &best, NULL), 0);
    CHECK_U64(best, 3);
    CHECK_EQ(acre_capacity_best(capacity, 10001, NOW_MS, &best, NULL), ACRE_ENOFIT);
    acre_capacity_destroy(capacity);
}

/* CAP-5, CAP-6; A12 */
static void statistics_count_all_nodes_and_sum_the_fresh_ones(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    CHECK_NEAR(acre_capacity_stats(capacity, NOW_MS).average_queue, 0, 0);
    must_report(capacity, 0, report_of(1, 8192, 4096, 2, NOW_MS), NOW_MS);
    must_report(capacity, 1, report_of(2, 16384, 8192, 3, NOW_MS), NOW_MS);
    for (int with_stale = 0; with_stale < 2; with_stale++) {
        struct acre_capacity_stats stats = acre_capacity_stats(capacity, NOW_MS);
        CHECK_U64(stats.nodes, with_stale ? 3 : 2);
        CHECK_U64(stats.capable, 2);
        CHECK_U64(stats.devices, 3);
        CHECK_U64(stats.total_mib, 24576);
        CHECK_U64(stats.available_mib, 12288);
        CHECK_U64(stats.queue_depth, 5);
        CHECK_NEAR(stats.average_queue, 2.5, 1e-12);
        must_report(capacity, 2, report_of(8, 80000, 80000, 9, NOW_MS - 120001), NOW_MS);
    }
    acre_capacity_destroy(capacity);
}

static bool accept_listed(void *context, uint32_t node) {
    const bool *allowed = context;
    return allowed[node];
}

static void best_where_skips_what_is_not_accepted(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    bool allowed[4] = {false, false, true, true};
    uint32_t best = 99;
    CHECK_EQ(acre_capacity_best_where(capacity, 0, NOW_MS, accept_listed, allowed, &best),
             ACRE_ENOFIT);
    CHECK_EQ(acre_capacity_best_cpu(capacity, NOW_MS, NULL, NULL, &best), ACRE_ENOFIT);
    for (uint32_t node = 0; node < 4; node++) {
        must_report(capacity, node, report_of(1, 100, 100 - 10 * node, 0, NOW_MS), NOW_MS);
    }
    CHECK_EQ(acre_capacity_best_where(capacity, 10, NOW_MS, accept_listed, allowed, &best), 0);
    CHECK_U64(best, 2);
    CHECK_EQ(acre_capacity_best_where(capacity, 81, NOW_MS, accept_listed, allowed, &best),
             ACRE_ENOFIT);
    must_report(capacity, 0, report_of(0, 0, 0, 4, NOW_MS), NOW_MS);
    must_report(capacity, 1, report_of(0, 0, 0, 9, NOW_MS), NOW_MS);
    must_report(capacity, 2, report_of(0, 0, 0, 9, NOW_MS), NOW_MS);
    CHECK_EQ(acre_capacity_best_cpu(capacity, NOW_MS, NULL, NULL, &best), 0);
    CHECK_U64(best, 0);
    allowed[1] = true;
    CHECK_EQ(acre_capacity_best_cpu(capacity, NOW_MS, accept_listed, allowed, &best), 0);
    CHECK_U64(best, 1);
    CHECK_EQ(acre_capacity_best_cpu(capacity, NOW_MS + 120001, NULL, NULL, &best), ACRE_ENOFIT);
    acre_capacity_destroy(capacity);
}

/* CAP-7 */
static void a_reservation_counts_at_once_and_a_cancel_undoes_it(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    must_report(capacity, 0, report_of(1, 8192, 8192, 1, NOW_MS), NOW_MS);
    uint64_t token = must_reserve(capacity, 0, 4096, NOW_MS);
    struct acre_capacity_view view = must_get(capacity, 0, NOW_MS);
    CHECK_U64(view.reservations, 1);
    CHECK_U64(view.effective.available_mib, 4096);
    CHECK_U64(view.effective.largest_device_available_mib, 4096);
    CHECK_U64(view.effective.queue_depth, 2);
    CHECK_U64(view.reported.available_mib, 8192);
    CHECK_U64(view.reported.largest_device_available_mib, 8192);
    CHECK_U64(view.reported.queue_depth, 1);
    CHECK_NEAR(view.score, 46, 1e-9);
    uint32_t best;
    CHECK_EQ(acre_capacity_best(capacity, 4097, NOW_MS, &best, NULL), ACRE_ENOFIT);
    struct acre_error err;
    uint64_t untouched = 77;
    CHECK_EQ(acre_capacity_reserve(capacity, 0, 4097, NOW_MS, &untouched, &err), ACRE_ENOFIT);
    CHECK_HAS(err.text, "node 0 has 4096 MiB free on one device, 4097 asked for");
    CHECK_EQ(acre_capacity_reserve(capacity, 1, 1, NOW_MS, &untouched, &err), ACRE_ENOTFOUND);
    CHECK_U64(untouched, 77);
    uint64_t rest = must_reserve(capacity, 0, 4096, NOW_MS);
    CHECK_EQ(acre_capacity_best(capacity, 0, NOW_MS, &best, NULL), ACRE_ENOFIT);
    CHECK_U64(acre_capacity_list(capacity, NOW_MS, NULL, 0), 0);
    CHECK_EQ(acre_capacity_cancel(capacity, token, NOW_MS), 0);
    CHECK_EQ(acre_capacity_cancel(capacity, token, NOW_MS), ACRE_ENOTFOUND);
    CHECK_EQ(acre_capacity_commit(capacity, token, NOW_MS), ACRE_ENOTFOUND);
    CHECK_EQ(acre_capacity_cancel(capacity, rest, NOW_MS), 0);
    CHECK_U64(must_get(capacity, 0, NOW_MS).effective.available_mib, 8192);
    uint64_t again = must_reserve(capacity, 0, 1, NOW_MS); /* the slot is reused, not the token */
    CHECK(again != token && again != rest);
    CHECK_EQ(acre_capacity_cancel(capacity, token, NOW_MS), ACRE_ENOTFOUND);
    CHECK_EQ(acre_capacity_cancel(capacity, 0, NOW_MS), ACRE_ENOTFOUND);
    CHECK_EQ(acre_capacity_cancel(capacity, UINT64_MAX, NOW_MS), ACRE_ENOTFOUND);
    CHECK_EQ(acre_capacity_reserve(capacity, 0, 1, NOW_MS + 120001, &untouched, &err),
             ACRE_EUNAVAILABLE);
    CHECK_HAS(err.text, "has not reported for 120001 ms");
    acre_capacity_destroy(capacity);
}

static void a_commit_holds_until_a_later_report(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    must_report(capacity, 0, report_of(1, 8192, 8192, 0, NOW_MS), NOW_MS);
    uint64_t token = must_reserve(capacity, 0, 1000, NOW_MS + 1);
    CHECK_EQ(acre_capacity_commit(capacity, token, NOW_MS + 5), 0);
    CHECK_EQ(acre_capacity_commit(capacity, token, NOW_MS + 5), ACRE_ECONFLICT);
    /* Committed: it does not lapse. */
    CHECK_U64(must_get(capacity, 0, NOW_MS + 30000).reservations, 1);
    /* A report of before, or of the very moment, does not show it yet. */
    must_report(capacity, 0, report_of(1, 8192, 8192, 0, NOW_MS + 4), NOW_MS + 30000);
    CHECK_U64(must_get(capacity, 0, NOW_MS + 30000).effective.available_mib, 7192);
    must_report(capacity, 0, report_of(1, 8192, 8192, 0, NOW_MS + 5), NOW_MS + 30000);
    CHECK_U64(must_get(capacity, 0, NOW_MS + 30000).effective.available_mib, 7192);
    must_report(capacity, 0, report_of(1, 8192, 7100, 1, NOW_MS + 6), NOW_MS + 30000);
    CHECK_U64(must_get(capacity, 0, NOW_MS + 30000).effective.available_mib, 7100);
    CHECK_U64(must_get(capacity, 0, NOW_MS + 30000).effective.queue_depth, 1);
    CHECK_EQ(acre_capacity_cancel(capacity, token, NOW_MS + 30000), ACRE_ENOTFOUND);
    /* Not committed: a report does not end it, and one that shows less free is not overdrawn. */
    token = must_reserve(capacity, 0, 7000, NOW_MS + 30000);
    must_report(capacity, 0, report_of(1, 8192, 3000, 0, NOW_MS + 30001), NOW_MS + 30001);
    struct acre_capacity_view view = must_get(capacity, 0, NOW_MS + 30001);
    CHECK_U64(view.effective.available_mib, 0);
    CHECK_U64(view.effective.largest_device_available_mib, 0);
    CHECK_NEAR(view.score, 0, 0);
    must_report(capacity, 0, report_of(0, 0, 0, 0, NOW_MS + 30002), NOW_MS + 30002);
    CHECK_U64(must_get(capacity, 0, NOW_MS + 30002).effective.available_mib, 0);
    CHECK_EQ(acre_capacity_cancel(capacity, token, NOW_MS + 30002), 0);
    acre_capacity_destroy(capacity);
}

static void reservations_lapse_and_go_with_their_node(void) {
    struct acre_capacity *capacity = acre_capacity_create(10000);
    must_report(capacity, 0, report_of(1, 8192, 8192, 0, NOW_MS), NOW_MS);
    must_report(capacity, 1, report_of(1, 8192, 8192, 0, NOW_MS), NOW_MS);
    uint64_t first = must_reserve(capacity, 0, 1000, NOW_MS);
    uint64_t second = must_reserve(capacity, 0, 2000, NOW_MS + 3);
    uint64_t third = must_reserve(capacity, 1, 500, NOW_MS + 3);
    CHECK_U64(must_get(capacity, 0, NOW_MS + 10000).effective.available_mib, 5192);
    CHECK_U64(must_get(capacity, 0, NOW_MS + 10001).effective.available_mib, 6192);
    CHECK_EQ(acre_capacity_commit(capacity, first, NOW_MS + 10001), ACRE_ENOTFOUND);
    CHECK_EQ(acre_capacity_commit(capacity, second, NOW_MS + 10003), 0);
    CHECK_EQ(acre_capacity_unregister(capacity, 1, NOW_MS + 10003), 0);
    CHECK_EQ(acre_capacity_commit(capacity, third, NOW_MS + 10003), ACRE_ENOTFOUND);
    must_report(capacity, 1, report_of(1, 8192, 8192, 0, NOW_MS), NOW_MS + 10003);
    CHECK_U64(must_get(capacity, 1, NOW_MS + 10003).reservations, 0);
    CHECK_U64(acre_capacity_purge(capacity, NOW_MS + 300001), 2);
    CHECK_EQ(acre_capacity_cancel(capacity, second, NOW_MS + 300001), ACRE_ENOTFOUND);
    acre_capacity_destroy(capacity);
}

/* The largest free device after reservations is what is certain, whichever devices were taken. */
static void the_largest_device_is_lowered_to_what_is_certain(void) {
    static const struct {
        const char *what;
        uint32_t devices;
        uint64_t available, largest, reserve;
        uint64_t expect[4]; /* largest after 1, 2, ... reservations; stops at the first 0 */
    } rows[] = {
        {"one device", 1, 100, 100, 40, {60, 20, 0}},
        {"three whole devices", 3, 300, 300 / 3, 100, {100, 100, 0}},
        {"three idle, small requests", 3, 300, 100, 10, {100, 100, 90, 87}},
        {"one big, one small", 2, 110, 100, 60, {40, 0}},
        {"rest could be all on one", 4, 130, 100, 100, {10, 0}},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
        must_report(capacity, 0,
                    (struct acre_capacity_report){rows[i].devices, 0, 0, 1000, rows[i].available,
                                                  rows[i].largest, NOW_MS},
                    NOW_MS);
        for (size_t k = 0; k < ACRE_COUNT(rows[i].expect); k++) {
            acre_test_context("%s, after %zu", rows[i].what, k + 1);
            must_reserve(capacity, 0, rows[i].reserve, NOW_MS);
            struct acre_capacity_view view = must_get(capacity, 0, NOW_MS);
            CHECK_U64(view.effective.largest_device_available_mib, rows[i].expect[k]);
            if (rows[i].expect[k] < rows[i].reserve) {
                break;
            }
        }
        acre_capacity_destroy(capacity);
    }
}

/* Random devices, random fitting placements: no device that is promised is ever missing. */
static void what_is_certain_is_really_there(void) {
    struct acre_rand rand;
    acre_rand_seed(&rand, 11);
    for (unsigned round = 0; round < 20000; round++) {
        uint64_t free_mib[6] = {0};
        uint32_t devices = 1 + (uint32_t)acre_rand_below(&rand, 6);
        struct acre_capacity_report report = {.device_count = devices, .total_mib = 600};
        for (uint32_t i = 0; i < devices; i++) {
            free_mib[i] = acre_rand_below(&rand, 101);
            report.available_mib += free_mib[i];
            report.largest_device_available_mib =
                ACRE_MAX(report.largest_device_available_mib, free_mib[i]);
        }
        struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
        must_report(capacity, 0, report, 0);
        for (unsigned k = 0; k < 12; k++) {
            uint64_t certain = must_get(capacity, 0, 0).effective.largest_device_available_mib;
            uint64_t largest = 0;
            for (uint32_t i = 0; i < devices; i++) {
                largest = ACRE_MAX(largest, free_mib[i]);
            }
            acre_test_context("seed 11, round %u, placement %u", round, k);
            REQUIRE(certain <= largest);
            uint64_t mib = acre_rand_below(&rand, certain + 1);
            must_reserve(capacity, 0, mib, 0);
            uint32_t at = (uint32_t)acre_rand_below(&rand, devices);
            while (free_mib[at] < mib) {
                at = (at + 1) % devices;
            }
            free_mib[at] -= mib;
        }
        acre_capacity_destroy(capacity);
    }
}

/* CAP-7: one report interval, ten equal nodes, a hundred placements */
static void a_herd_spreads_evenly(void) {
    static const struct {
        uint32_t devices;
        uint64_t total, mib;
        bool commit;
    } rows[] = {{8, 81920, 1024, true}, {1, 81920, 1024, false}, {8, 81920, 0, true}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
        unsigned placed[10] = {0};
        for (uint32_t node = 0; node < 10; node++) {
            must_report(capacity, node,
                        report_of(rows[i].devices, rows[i].total, rows[i].total, 0, NOW_MS),
                        NOW_MS);
        }
        for (unsigned k = 0; k < 100; k++) {
            uint32_t best = 99;
            REQUIRE_EQ(acre_capacity_best(capacity, rows[i].mib, NOW_MS + k, &best, NULL), 0);
            uint64_t token = must_reserve(capacity, best, rows[i].mib, NOW_MS + k);
            if (rows[i].commit) {
                CHECK_EQ(acre_capacity_commit(capacity, token, NOW_MS + k), 0);
            }
            placed[best]++;
        }
        for (uint32_t node = 0; node < 10; node++) {
            acre_test_context("herd %zu, node %u", i, node);
            CHECK_U64(placed[node], 10);
        }
        acre_capacity_destroy(capacity);
    }
}

static void reservations_of_one_node_have_a_limit(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    must_report(capacity, 3, report_of(0, 0, 0, 0, NOW_MS), NOW_MS);
    for (unsigned i = 0; i < UINT16_MAX; i++) {
        must_reserve(capacity, 3, 0, NOW_MS);
    }
    uint64_t token;
    struct acre_error err;
    CHECK_EQ(acre_capacity_reserve(capacity, 3, 0, NOW_MS, &token, &err), ACRE_ELIMIT);
    CHECK_HAS(err.text, "65535 reservations");
    CHECK_U64(must_get(capacity, 3, NOW_MS).effective.queue_depth, 65535);
    CHECK_U64(acre_capacity_purge(capacity, NOW_MS + 10001), 0);
    CHECK_U64(must_get(capacity, 3, NOW_MS).effective.queue_depth, 0);
    acre_capacity_destroy(capacity);
}

/* CAP-8: ids may start anywhere; memory a node at a dense 100,000 */
static void memory_a_node_stays_within_its_promise(void) {
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    for (uint32_t node = 0; node < 100000; node++) {
        must_report(capacity, node, report_of(8, 640000, 640000 - node, 0, NOW_MS), NOW_MS);
    }
    CHECK(acre_capacity_bytes(capacity) / 100000 <= 96);
    must_report(capacity, ACRE_CAPACITY_NODES_MAX - 1, report_of(1, 9, 9, 0, NOW_MS), NOW_MS);
    uint32_t best = 0;
    CHECK_EQ(acre_capacity_best(capacity, 0, NOW_MS, &best, NULL), 0);
    CHECK_U64(best, 0);
    acre_capacity_destroy(capacity);
}

static const struct acre_test tests[] = {
    {"scores_and_usage_follow_the_vectors", scores_and_usage_follow_the_vectors, 0},
    {"an_unknown_node_registers_itself_and_unregisters_once",
     an_unknown_node_registers_itself_and_unregisters_once, 0},
    {"reports_grow_stale_and_are_dropped", reports_grow_stale_and_are_dropped, 0},
    {"a_report_too_old_to_keep_is_refused", a_report_too_old_to_keep_is_refused, 0},
    {"age_counts_from_the_report_not_from_its_arrival",
     age_counts_from_the_report_not_from_its_arrival, 0},
    {"time_never_goes_back", time_never_goes_back, 0},
    {"contradictory_reports_are_refused_by_field", contradictory_reports_are_refused_by_field, 0},
    {"best_is_by_score_then_queue_then_id_and_fits_one_device",
     best_is_by_score_then_queue_then_id_and_fits_one_device, 0},
    {"only_nodes_with_free_devices_are_capable", only_nodes_with_free_devices_are_capable, 0},
    {"statistics_count_all_nodes_and_sum_the_fresh_ones",
     statistics_count_all_nodes_and_sum_the_fresh_ones, 0},
    {"best_where_skips_what_is_not_accepted", best_where_skips_what_is_not_accepted, 0},
    {"a_reservation_counts_at_once_and_a_cancel_undoes_it",
     a_reservation_counts_at_once_and_a_cancel_undoes_it, 0},
    {"a_commit_holds_until_a_later_report", a_commit_holds_until_a_later_report, 0},
    {"reservations_lapse_and_go_with_their_node", reservations_lapse_and_go_with_their_node, 0},
    {"the_largest_device_is_lowered_to_what_is_certain",
     the_largest_device_is_lowered_to_what_is_certain, 0},
    {"what_is_certain_is_really_there", what_is_certain_is_really_there, 0},
    {"a_herd_spreads_evenly", a_herd_spreads_evenly, 0},
    {"reservations_of_one_node_have_a_limit", reservations_of_one_node_have_a_limit, 0},
    {"memory_a_node_stays_within_its_promise", memory_a_node_stays_within_its_promise, 0},
};

ACRE_TEST_MAIN(tests)
