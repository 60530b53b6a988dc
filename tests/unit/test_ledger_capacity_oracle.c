/* Capacity against an oracle: plain arrays, linear scans, no indexes, no clock tricks. Random
 * operations (reports late and in time, unregister, reserve, commit, cancel, time passing) over
 * few nodes of few sizes, so that ties are common; every answer must be the same. A failure
 * prints its seed; ACRE_SEED=N replays it. */
#include "core/rand.h"
#include "ledger/capacity.h"
#include "support/test.h"

#include <stdlib.h>

enum { ORACLE_NODES = 24, ORACLE_RESERVATIONS = 256, ORACLE_OPERATIONS = 300000 };

struct oracle_reservation {
    bool live, committed;
    uint64_t token, at_ms, mib;
    uint32_t node;
};

struct oracle {
    uint64_t now_ms;
    bool present[ORACLE_NODES];
    struct acre_capacity_report reports[ORACLE_NODES];
    struct oracle_reservation reservations[ORACLE_RESERVATIONS];
};

static void oracle_advance(struct oracle *oracle, uint64_t now_ms) {
    oracle->now_ms = now_ms;
    for (uint32_t i = 0; i < ORACLE_NODES; i++) {
        if (oracle->present[i] && now_ms - oracle->reports[i].time_ms > ACRE_CAPACITY_DROP_MS) {
            oracle->present[i] = false;
        }
    }
    for (unsigned i = 0; i < ORACLE_RESERVATIONS; i++) {
        struct oracle_reservation *r = &oracle->reservations[i];
        if (r->live && (!oracle->present[r->node] ||
                        (!r->committed && now_ms - r->at_ms > ACRE_CAPACITY_LAPSE_MS))) {
            r->live = false;
        }
    }
}

static uint64_t up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

static struct acre_capacity_report oracle_effective(const struct oracle *oracle, uint32_t node) {
    struct acre_capacity_report report = oracle->reports[node];
    uint64_t reserved = 0;
    uint64_t count = 0;
    for (unsigned i = 0; i < ORACLE_RESERVATIONS; i++) {
        if (oracle->reservations[i].live && oracle->reservations[i].node == node) {
            reserved += oracle->reservations[i].mib;
            count++;
        }
    }
    report.queue_depth += (uint32_t)count;
    if (reserved == 0) {
        return report;
    }
    uint64_t before = report.available_mib;
    uint64_t largest = report.largest_device_available_mib;
    uint64_t devices = report.device_count;
    report.available_mib = before > reserved ? before - reserved : 0;
    uint64_t certain = largest > reserved ? largest - reserved : 0;
    if (count < devices && before > count * largest) {
        certain = ACRE_MAX(certain, up(before - count * largest, devices - count));
    }
    if (devices > 0) {
        certain = ACRE_MAX(certain, up(report.available_mib, devices));
    }
    report.largest_device_available_mib = ACRE_MIN(certain, report.available_mib);
    return report;
}

/* 0 and the best, or ACRE_ENOFIT. `odd_only`: accept odd nodes. */
static int oracle_best(const struct oracle *oracle, uint64_t min_mib, bool odd_only, bool cpu,
                       uint32_t *ret_node) {
    bool found = false;
    double best_score = 0;
    uint32_t best_queue = 0;
    for (uint32_t i = 0; i < ORACLE_NODES; i++) {
        struct acre_capacity_report report = oracle_effective(oracle, i);
        if (!oracle->present[i] || acre_capacity_is_stale(&report, oracle->now_ms) ||
            (odd_only && i % 2 == 0)) {
            continue;
        }
        if (cpu ? report.device_count > 0
                : !acre_capacity_has(&report) || report.largest_device_available_mib < min_mib) {
            continue;
        }
        double score = acre_capacity_score(&report, oracle->now_ms);
        if (!found || score > best_score ||
            (score == best_score && report.queue_depth < best_queue)) {
            found = true;
            best_score = score;
            best_queue = report.queue_depth;
            *ret_node = i;
        }
    }
    return found ? 0 : ACRE_ENOFIT;
}

static bool accept_odd(void *context, uint32_t node) {
    (void)context;
    return node % 2 == 1;
}

static struct acre_capacity_report random_report(struct acre_rand *rand, uint64_t now_ms) {
    uint32_t devices = (uint32_t)acre_rand_below(rand, 5);
    struct acre_capacity_report report = {.device_count = devices,
                                          .queue_depth = (uint32_t)acre_rand_below(rand, 14),
                                          .backend = (uint32_t)acre_rand_below(rand, 3)};
    uint64_t size = UINT64_C(64) << acre_rand_below(rand, 4); /* few sizes: many ties */
    for (uint32_t i = 0; i < devices; i++) {
        uint64_t free_mib = size / 8 * acre_rand_below(rand, 9);
        report.total_mib += size;
        report.available_mib += free_mib;
        report.largest_device_available_mib =
            ACRE_MAX(report.largest_device_available_mib, free_mib);
    }
    uint64_t late_ms = acre_rand_below(rand, acre_rand_below(rand, 8) == 0 ? 320000 : 50);
    report.time_ms = now_ms - ACRE_MIN(now_ms, late_ms);
    return report;
}

static void do_report(struct oracle *oracle, struct acre_capacity *capacity,
                      struct acre_rand *rand) {
    uint32_t node = (uint32_t)acre_rand_below(rand, ORACLE_NODES);
    struct acre_capacity_report report = random_report(rand, oracle->now_ms);
    bool refused = oracle->now_ms - report.time_ms > ACRE_CAPACITY_DROP_MS ||
                   (oracle->present[node] && report.time_ms < oracle->reports[node].time_ms);
    REQUIRE_EQ(acre_capacity_report(capacity, node, &report, oracle->now_ms, NULL),
               refused ? ACRE_ECONFLICT : 0);
    if (refused) {
        return;
    }
    oracle->present[node] = true;
    oracle->reports[node] = report;
    for (unsigned i = 0; i < ORACLE_RESERVATIONS; i++) {
        struct oracle_reservation *r = &oracle->reservations[i];
        r->live = r->live && !(r->node == node && r->committed && r->at_ms < report.time_ms);
    }
}

static void do_reserve(struct oracle *oracle, struct acre_capacity *capacity,
                       struct acre_rand *rand) {
    struct oracle_reservation *r =
        &oracle->reservations[acre_rand_below(rand, ORACLE_RESERVATIONS)];
    if (r->live) {
        return;
    }
    uint32_t node = (uint32_t)acre_rand_below(rand, ORACLE_NODES);
    uint64_t mib = acre_rand_below(rand, 200);
    struct acre_capacity_report report = oracle_effective(oracle, node);
    int expect = 0;
    if (!oracle->present[node]) {
        expect = ACRE_ENOTFOUND;
    } else if (acre_capacity_is_stale(&report, oracle->now_ms)) {
        expect = ACRE_EUNAVAILABLE;
    } else if (mib > report.largest_device_available_mib) {
        expect = ACRE_ENOFIT;
    }
    uint64_t token = 0;
    REQUIRE_EQ(acre_capacity_reserve(capacity, node, mib, oracle->now_ms, &token, NULL), expect);
    if (expect == 0) {
        *r = (struct oracle_reservation){true, false, token, oracle->now_ms, mib, node};
    }
}

static void do_finish(struct oracle *oracle, struct acre_capacity *capacity,
                      struct acre_rand *rand) {
    struct oracle_reservation *r =
        &oracle->reservations[acre_rand_below(rand, ORACLE_RESERVATIONS)];
    if (r->token == 0) {
        return;
    }
    if (acre_rand_below(rand, 2) == 0) {
        REQUIRE_EQ(acre_capacity_cancel(capacity, r->token, oracle->now_ms),
                   r->live ? 0 : ACRE_ENOTFOUND);
        r->live = false;
    } else {
        int expect = !r->live ? ACRE_ENOTFOUND : r->committed ? ACRE_ECONFLICT : 0;
        REQUIRE_EQ(acre_capacity_commit(capacity, r->token, oracle->now_ms), expect);
        if (expect == 0) {
            r->committed = true;
            r->at_ms = oracle->now_ms;
        }
    }
}

static void compare_bests(const struct oracle *oracle, struct acre_capacity *capacity,
                          struct acre_rand *rand) {
    uint64_t min_mib = acre_rand_below(rand, 4) == 0 ? 0 : acre_rand_below(rand, 600);
    uint64_t now_ms = oracle->now_ms;
    uint32_t expect = 99;
    uint32_t got = 99;
    REQUIRE_EQ(acre_capacity_best(capacity, min_mib, now_ms, &got, NULL),
               oracle_best(oracle, min_mib, false, false, &expect));
    REQUIRE_EQ(got, expect);
    REQUIRE_EQ(acre_capacity_best_where(capacity, min_mib, now_ms, accept_odd, NULL, &got),
               oracle_best(oracle, min_mib, true, false, &expect));
    REQUIRE_EQ(got, expect);
    REQUIRE_EQ(acre_capacity_best_cpu(capacity, now_ms, accept_odd, NULL, &got),
               oracle_best(oracle, 0, true, true, &expect));
    REQUIRE_EQ(got, expect);
}

static bool same_report(struct acre_capacity_report a, struct acre_capacity_report b) {
    return a.device_count == b.device_count && a.queue_depth == b.queue_depth &&
           a.backend == b.backend && a.total_mib == b.total_mib &&
           a.available_mib == b.available_mib &&
           a.largest_device_available_mib == b.largest_device_available_mib &&
           a.time_ms == b.time_ms;
}

static void compare_all(const struct oracle *oracle, struct acre_capacity *capacity) {
    struct acre_capacity_stats expect = {0};
    struct acre_capacity_summary summary = {0};
    size_t listed = 0;
    for (uint32_t i = 0; i < ORACLE_NODES; i++) {
        struct acre_capacity_view view = {0};
        REQUIRE_EQ(acre_capacity_get(capacity, i, oracle->now_ms, &view),
                   oracle->present[i] ? 0 : ACRE_ENOTFOUND);
        if (!oracle->present[i]) {
            continue;
        }
        struct acre_capacity_report report = oracle_effective(oracle, i);
        REQUIRE(same_report(view.effective, report));
        REQUIRE(same_report(view.reported, oracle->reports[i]));
        bool stale = acre_capacity_is_stale(&report, oracle->now_ms);
        REQUIRE_EQ(view.stale, stale);
        expect.nodes++;
        summary.stale += stale;
        listed += acre_capacity_has(&report);
        if (!stale) {
            expect.capable += acre_capacity_has(&report);
            expect.devices += report.device_count;
            expect.available_mib += report.available_mib;
            expect.queue_depth += report.queue_depth;
            if (report.device_count > 0) {
                summary.largest_device_available_mib = ACRE_MAX(
                    summary.largest_device_available_mib, report.largest_device_available_mib);
            }
        }
    }
    struct acre_capacity_stats stats = acre_capacity_stats(capacity, oracle->now_ms);
    REQUIRE_EQ(stats.nodes, expect.nodes);
    REQUIRE_EQ(stats.capable, expect.capable);
    REQUIRE_EQ(stats.devices, expect.devices);
    REQUIRE_EQ(stats.available_mib, expect.available_mib);
    REQUIRE_EQ(stats.queue_depth, expect.queue_depth);
    struct acre_capacity_summary got = acre_capacity_summarise(capacity, oracle->now_ms);
    REQUIRE_EQ(got.stale, summary.stale);
    REQUIRE_EQ(got.largest_device_available_mib, summary.largest_device_available_mib);
    struct acre_capacity_rank ranks[ORACLE_NODES];
    REQUIRE_EQ(acre_capacity_list(capacity, oracle->now_ms, ranks, ORACLE_NODES), listed);
    for (size_t i = 1; i < listed; i++) {
        REQUIRE(ranks[i - 1].score >= ranks[i].score);
    }
}

static void a_linear_scan_agrees_on_every_decision(void) {
    struct acre_rand rand;
    const char *given = getenv("ACRE_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : 20261115;
    acre_rand_seed(&rand, seed);
    struct oracle *oracle = acre_calloc(1, sizeof(*oracle));
    struct acre_capacity *capacity = acre_capacity_create(ACRE_CAPACITY_LAPSE_MS);
    for (unsigned i = 0; i < ORACLE_OPERATIONS; i++) {
        acre_test_context("seed %llu, operation %u", (unsigned long long)seed, i);
        uint64_t step_ms = acre_rand_below(&rand, 400) == 0 ? 120000 : 3000;
        uint64_t passed_ms = acre_rand_below(&rand, 3) == 0 ? acre_rand_below(&rand, step_ms) : 0;
        oracle_advance(oracle, oracle->now_ms + passed_ms);
        uint64_t what = acre_rand_below(&rand, 100);
        if (what < 35) {
            do_report(oracle, capacity, &rand);
        } else if (what < 38) {
            uint32_t node = (uint32_t)acre_rand_below(&rand, ORACLE_NODES);
            REQUIRE_EQ(acre_capacity_unregister(capacity, node, oracle->now_ms),
                       oracle->present[node] ? 0 : ACRE_ENOTFOUND);
            oracle->present[node] = false;
            oracle_advance(oracle, oracle->now_ms);
        } else if (what < 60) {
            do_reserve(oracle, capacity, &rand);
        } else if (what < 80) {
            do_finish(oracle, capacity, &rand);
        } else if (what < 99) {
            compare_bests(oracle, capacity, &rand);
        } else {
            compare_all(oracle, capacity);
        }
    }
    acre_capacity_destroy(capacity);
    free(oracle);
}

static const struct acre_test tests[] = {
    {"a_linear_scan_agrees_on_every_decision", a_linear_scan_agrees_on_every_decision, 100},
};

ACRE_TEST_MAIN(tests)
