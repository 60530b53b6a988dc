/* The real ledger against the oracle (tests/support/ledger_oracle.h): random clusters, random
 * operations, the same answer to every one of them, and every invariant after each (ALC-10).
 *
 * A failure says seed and step; ACRE_SEED=n runs that seed alone. ACRE_SOAK=1 runs ACRE_SOAK_OPS
 * operations (default 10,000,000) under as many seeds as that takes. */
#include "core/rand.h"
#include "support/ledger_kit.h"
#include "support/ledger_oracle.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    STEPS = 2000,      /* of one seed */
    SEEDS = 100,       /* of a short run */
    GRANTS_KEPT = 200, /* beyond this, more is released than allocated */
    NODES_MAX = 8,
    DEVICES_MAX = 24,
    TEMPLATES = 12,
};

enum mode {
    PLAIN,
    MANY_KINDS,  /* nearly every request is of its own kind */
    MANY_STATES, /* few kinds, and states of nodes that hardly ever come again */
};

struct run {
    struct acre_rand rand;
    enum mode mode;
    struct acre_ledger *ledger;
    struct oracle *oracle;
    uint64_t now_ms;
    struct acre_request templates[TEMPLATES];
};

static uint64_t below(struct run *run, uint64_t bound) {
    return acre_rand_below(&run->rand, bound);
}

static bool chance(struct run *run, uint32_t percent) {
    return below(run, 100) < percent;
}

#define PICK(run, array) ((array)[below((run), ACRE_COUNT(array))])

static const char *const models[] = {"H100", "H100", "H100", "A100", "MI300X", NULL};
static const char *const vendors[] = {"nvidia", "nvidia", "nvidia", "nvidia", "amd", NULL};
static const char *const labels[] = {"zone=a", "zone=b", "disk=ssd"};

static void random_device(struct run *run, struct acre_device_spec *device) {
    static const uint64_t memories_mib[] = {81559, 81559, 40960, 24564, 1000, 196592, 7, 0};
    size_t model = below(run, ACRE_COUNT(models));
    *device = (struct acre_device_spec){
        .model = models[model],
        .vendor = vendors[model],
        .memory_mib = PICK(run, memories_mib),
        .step_milli = chance(run, 10)  ? 125
                      : chance(run, 4) ? 1000
                                       : 0,
        .is_mig = chance(run, 6),
        .exclusive_only = chance(run, 6),
    };
}

/* A node of a new build; islands by pairs, by halves, at random, or one. */
static void random_build(struct run *run, struct acre_node_spec *spec,
                         struct acre_device_spec *devices) {
    static const uint64_t cpus_milli[] = {64000, 64000, 16000, 8000, 7777, 0};
    static const uint64_t rams_mib[] = {262144, 262144, 65536, 12345, 0};
    uint32_t left = DEVICES_MAX - run->oracle->device_count;
    spec->cpu_milli = PICK(run, cpus_milli);
    spec->ram_mib = PICK(run, rams_mib);
    spec->device_count = (uint32_t)below(run, ACRE_MIN(left, 8U) + 1);
    bool uniform = chance(run, 70);
    uint32_t islands = (uint32_t)below(run, 4);
    for (uint32_t i = 0; i < spec->device_count; i++) {
        if (i == 0 || !uniform) {
            random_device(run, &devices[i]);
        } else {
            devices[i] = devices[0];
        }
        const uint32_t by[] = {0, i / 2, i / 4, (uint32_t)below(run, 3)};
        devices[i].island = 7 - by[islands];
    }
}

static void add_node(struct run *run) {
    struct acre_device_spec devices[8] = {{0}};
    struct acre_node_spec spec = {.devices = devices};
    const char *names[ACRE_COUNT(labels)];
    random_build(run, &spec, devices);
    uint32_t copies = 1 + (uint32_t)below(run, 4); /* equal nodes share a state */
    for (size_t i = 0; i < ACRE_COUNT(labels); i++) {
        if (chance(run, 25)) {
            names[spec.label_count++] = labels[i];
        }
    }
    spec.labels = names;
    for (uint32_t copy = 0; copy < copies; copy++) {
        uint32_t index = run->oracle->node_count;
        if (index == NODES_MAX || run->oracle->device_count + spec.device_count > DEVICES_MAX) {
            return;
        }
        char name[16];
        char ids[8][24];
        snprintf(name, sizeof(name), "n%u", index);
        spec.name = name;
        for (uint32_t i = 0; i < spec.device_count; i++) {
            snprintf(ids[i], sizeof(ids[i]), "n%u/%u", index, i);
            devices[i].id = ids[i];
        }
        uint32_t node = 0;
        struct acre_error err = {0};
        acre_ledger_add_node(run->ledger, &spec, &node, &err);
        CHECK_STR(err.text, "");
        REQUIRE_EQ(node, index);
        oracle_add_node(run->oracle, &spec);
    }
}

static uint32_t name_of(struct run *run, const char *text) {
    return kit_name(run->ledger, text);
}

static void random_constraints(struct run *run, struct acre_request *request) {
    if (chance(run, 10)) {
        request->vendor = name_of(run, PICK(run, vendors));
    }
    for (uint32_t i = 0; i < 2 && chance(run, 12); i++) {
        request->models[i] = name_of(run, PICK(run, models));
        if (request->models[i] == 0) {
            break;
        }
    }
    for (uint32_t i = 0; i < 2 && chance(run, 8); i++) {
        request->labels[i] = name_of(run, PICK(run, labels));
    }
}

static struct acre_request random_request(struct run *run) {
    static const uint32_t shares[] = {1,   30,  100, 100, 125, 200, 250, 300,  333, 375,
                                      500, 500, 600, 700, 750, 900, 999, 1000, 1000};
    static const uint64_t memories_mib[] = {1, 7, 100, 500, 1000, 4096, 10000, 24564, 40000, 81559};
    static const uint32_t gangs[] = {2, 2, 3, 3, 4, 5, 6, 9, 21};
    struct acre_request request = {.replicas = 1, .gpus = 1, .owner = below(run, 1000)};
    if (chance(run, 10)) {
        request.gpus = 0;
        request.cpu_milli = 1 + below(run, 8000);
        request.ram_mib = below(run, 20000);
    } else if (chance(run, 22)) {
        request.gpus = 2 + (uint32_t)below(run, chance(run, 90) ? 3 : 7);
    }
    if (chance(run, 18)) {
        request.replicas = PICK(run, gangs);
        request.replicas =
            ACRE_MIN(request.replicas, ORACLE_PARTS_MAX / ACRE_MAX(request.gpus, 1U));
    }
    if (request.gpus > 0) {
        bool by_memory = chance(run, 20);
        request.milli = by_memory && chance(run, 60) ? 0 : PICK(run, shares);
        request.mib = by_memory ? PICK(run, memories_mib) : 0;
        request.exclusive = chance(run, 8);
        request.isolation = (enum acre_isolation)(chance(run, 70) ? 0 : below(run, 4));
        if (chance(run, 60)) {
            static const uint64_t cpus_milli[] = {500, 1000, 1000, 2000, 4000, 3333};
            request.cpu_milli = PICK(run, cpus_milli);
            request.ram_mib = 2 * request.cpu_milli;
        }
    }
    random_constraints(run, &request);
    request.strategy = (enum acre_strategy)(chance(run, 60) ? 0 : below(run, ACRE_STRATEGY_COUNT));
    return request;
}

/* One of a few kinds as a rule, with its own end, tenant and the like. */
static struct acre_request next_request(struct run *run) {
    struct acre_request request = chance(run, 80) ? PICK(run, run->templates) : random_request(run);
    if (run->mode == MANY_KINDS && chance(run, 95)) {
        request.cpu_milli = 1 + below(run, 3000);
    }
    request.tenant = (uint32_t)below(run, 5);
    request.expires_ms = chance(run, 40) ? run->now_ms + 1 + below(run, 3000) : 0;
    request.pending = chance(run, 10);
    if (run->oracle->reservation_count > 0 && chance(run, 12)) {
        uint64_t last = run->oracle->reservation_count;
        request.reservation = last - below(run, ACRE_MIN(last, UINT64_C(6))) + chance(run, 3);
    }
    return request;
}

static struct acre_request bad_request(struct run *run) {
    static const uint64_t large[] = {UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 31};
    struct acre_request request = next_request(run);
    switch (below(run, 10)) {
    case 0:
        request.replicas = chance(run, 50) ? 0 : 4097;
        break;
    case 1:
        request.gpus = 65 + (uint32_t)below(run, 1000);
        break;
    case 2:
        request.milli = 1001 + (uint32_t)below(run, UINT32_MAX - 1001);
        break;
    case 3:
        request.mib = PICK(run, large);
        break;
    case 4:
        request.cpu_milli = PICK(run, large);
        break;
    case 5:
        request.ram_mib = PICK(run, large);
        break;
    case 6:
        request.gpus = request.gpus == 0;
        break;
    case 7:
        request.milli = (uint32_t)below(run, 100); /* below the policy's minimum */
        break;
    case 8:
        request.expires_ms = run->now_ms;
        break;
    default:
        request.isolation = ACRE_ISOLATION_COUNT;
        break;
    }
    return request;
}

static bool same_parts(const struct acre_part *parts, const struct acre_part *expected,
                       uint32_t count) {
    bool same = true;
    for (uint32_t i = 0; i < count && same; i++) {
        same = kit_same_part(&parts[i], &expected[i]);
    }
    return same;
}

/* For whoever has to find out why: the request, both answers, and the ledger. */
static void show_difference(const struct run *run, const struct acre_request *q, int r, uint64_t id,
                            int expected, const struct acre_part *parts, uint32_t count) {
    char text[KIT_TEXT_MAX];
    fprintf(stderr,
            "asked: %u x %u x %u milli %llu MiB, cpu %llu ram %llu, %s, isolation %d%s, vendor %u "
            "model %u %u label %u %u, until %llu of %llu, in reservation %llu\n",
            q->replicas, q->gpus, q->milli, (unsigned long long)q->mib,
            (unsigned long long)q->cpu_milli, (unsigned long long)q->ram_mib,
            acre_strategy_name(q->strategy), (int)q->isolation, q->exclusive ? " alone" : "",
            q->vendor, q->models[0], q->models[1], q->labels[0], q->labels[1],
            (unsigned long long)q->expires_ms, (unsigned long long)run->now_ms,
            (unsigned long long)q->reservation);
    fprintf(stderr, "the ledger (%s): %s %s\n", acre_strategy_name(run->oracle->strategy),
            acre_error_name(r), kit_where(run->ledger, id, text, sizeof(text)));
    fprintf(stderr, "the oracle: %s", acre_error_name(expected));
    for (uint32_t i = 0; i < count && expected == 0; i++) {
        fprintf(stderr, " n%u/%d", parts[i].node,
                (int)(parts[i].device - run->oracle->nodes[parts[i].node].first_device));
    }
    char *snapshot = kit_snapshot(run->ledger);
    fprintf(stderr, "\n%s", snapshot);
    free(snapshot);
}

static void same_grant(const struct run *run, const struct oracle_grant *grant) {
    struct acre_allocation a;
    REQUIRE(acre_ledger_find(run->ledger, grant->id, &a));
    REQUIRE_EQ(a.owner, grant->owner);
    REQUIRE_EQ(a.tenant, grant->tenant);
    REQUIRE_EQ(a.status, grant->pending ? ACRE_ALLOCATION_PENDING : ACRE_ALLOCATION_ACTIVE);
    REQUIRE_EQ(a.isolation, grant->isolation);
    REQUIRE_EQ(a.exclusive, grant->exclusive);
    REQUIRE_EQ(a.created_ms, grant->created_ms);
    REQUIRE_EQ(a.expires_ms, grant->expires_ms);
    REQUIRE_EQ(a.reservation, grant->reservation);
    REQUIRE_EQ(a.part_count, grant->part_count);
    REQUIRE(same_parts(a.parts, grant->parts, a.part_count));
}

static void allocate(struct run *run, struct acre_request request) {
    struct acre_error err;
    uint64_t id = 0;
    int r = acre_ledger_allocate(run->ledger, &request, run->now_ms, &id,
                                 chance(run, 50) ? &err : NULL);
    struct acre_part parts[ORACLE_PARTS_MAX];
    uint32_t count = 0;
    int expected = oracle_plan(run->oracle, &request, run->now_ms, parts, &count);
    struct acre_allocation taken;
    if (r != expected || (r == 0 && acre_ledger_find(run->ledger, id, &taken) &&
                          !same_parts(taken.parts, parts, taken.part_count))) {
        show_difference(run, &request, r, id, expected, parts, count);
    }
    REQUIRE_EQ(r, expected);
    if (r == 0) {
        uint64_t expected_id = 0;
        REQUIRE_EQ(oracle_place(run->oracle, &request, parts, count, 0, run->now_ms, &expected_id),
                   0);
        REQUIRE_EQ(id, expected_id);
        same_grant(run, oracle_find(run->oracle, id));
    }
}

static void do_allocate(struct run *run) {
    allocate(run, next_request(run));
}

static void do_bad_request(struct run *run) {
    allocate(run, bad_request(run));
}

/* A plan, and sometimes its commit, perhaps after something else happened. */
static void do_plan(struct run *run) {
    struct acre_request request = next_request(run);
    struct acre_part parts[ORACLE_PARTS_MAX];
    struct acre_part expected_parts[ORACLE_PARTS_MAX];
    uint32_t count = 0;
    uint32_t expected_count = 0;
    int r =
        acre_ledger_plan(run->ledger, &request, run->now_ms, parts, ORACLE_PARTS_MAX, &count, NULL);
    int expected = oracle_plan(run->oracle, &request, run->now_ms, expected_parts, &expected_count);
    REQUIRE_EQ(r, expected);
    if (r < 0) {
        return;
    }
    REQUIRE_EQ(count, expected_count);
    REQUIRE(same_parts(parts, expected_parts, count));
    if (chance(run, 50)) {
        do_allocate(run);
    }
    uint64_t id = 0;
    uint64_t expected_id = 0;
    r = acre_ledger_place(run->ledger, &request, parts, count, 0, run->now_ms, &id, NULL);
    expected = oracle_place(run->oracle, &request, parts, count, 0, run->now_ms, &expected_id);
    REQUIRE_EQ(r, expected);
    REQUIRE_EQ(id, expected_id);
}

/* Parts out of the blue, as a damaged log might hold them. */
static void do_place(struct run *run) {
    struct acre_request request = next_request(run);
    request.replicas = 1 + (uint32_t)below(run, 3);
    request.gpus = 1;
    request.milli = ACRE_MAX(request.milli, 100U);
    struct acre_part parts[3];
    const struct oracle *oracle = run->oracle;
    for (uint32_t i = 0; i < request.replicas; i++) {
        uint32_t device = (uint32_t)below(run, oracle->device_count + 1);
        bool there = device < oracle->device_count;
        parts[i] = (struct acre_part){
            .node = there ? oracle->devices[device].node : (uint32_t)below(run, 7),
            .device = there || chance(run, 20) ? device : ACRE_DEVICE_NONE,
            .milli = (uint32_t)below(run, chance(run, 90) ? 600 : 1002),
            .mib = (uint32_t)below(run, chance(run, 90) ? 30000 : 90000),
            .cpu_milli = (uint32_t)below(run, 2000),
            .ram_mib = (uint32_t)below(run, 2000),
            .by_share = chance(run, 50),
        };
        if (parts[i].device == ACRE_DEVICE_NONE && chance(run, 80)) {
            parts[i].milli = 0;
            parts[i].mib = 0;
        }
        if (there && parts[i].by_share) {
            uint64_t memory = oracle->devices[device].memory_mib;
            parts[i].mib = (uint32_t)(memory * parts[i].milli / 1000);
        }
    }
    uint64_t id = chance(run, 70) ? 0 : oracle->next_id + 2 - below(run, 5);
    uint32_t count = chance(run, 97) ? request.replicas : (uint32_t)below(run, 4);
    uint64_t placed = 0;
    uint64_t expected_id = 0;
    int r = acre_ledger_place(run->ledger, &request, parts, count, id, run->now_ms, &placed, NULL);
    int expected = oracle_place(run->oracle, &request, parts, count, id, run->now_ms, &expected_id);
    REQUIRE_EQ(r, expected);
    REQUIRE_EQ(placed, expected_id);
}

static uint64_t some_id(struct run *run) {
    const struct oracle *oracle = run->oracle;
    if (oracle->grant_count == 0 || chance(run, 3)) {
        return below(run, oracle->next_id + 2);
    }
    return oracle->grants[below(run, oracle->grant_count)].id;
}

static void do_release(struct run *run) {
    uint64_t id = some_id(run);
    enum acre_allocation_status outcome =
        chance(run, 80) ? ACRE_ALLOCATION_COMPLETED : ACRE_ALLOCATION_FAILED;
    int r = acre_ledger_release(run->ledger, id, outcome, run->now_ms, NULL);
    REQUIRE_EQ(r, oracle_release(run->oracle, id));
}

static void do_activate(struct run *run) {
    uint64_t id = some_id(run);
    int r = acre_ledger_activate(run->ledger, id, run->now_ms, NULL);
    REQUIRE_EQ(r, oracle_activate(run->oracle, id));
}

static void do_extend(struct run *run) {
    uint64_t id = some_id(run);
    uint64_t expires_ms = chance(run, 20) ? 0 : run->now_ms + below(run, 3000);
    int r = acre_ledger_extend(run->ledger, id, expires_ms, run->now_ms, NULL);
    REQUIRE_EQ(r, oracle_extend(run->oracle, id, expires_ms, run->now_ms));
}

static void do_tick(struct run *run) {
    run->now_ms += below(run, 400);
    uint32_t changed = acre_ledger_tick(run->ledger, run->now_ms);
    REQUIRE_EQ(changed, oracle_tick(run->oracle, run->now_ms));
}

static void do_drain(struct run *run) {
    struct oracle *oracle = run->oracle;
    uint32_t device = (uint32_t)below(run, oracle->device_count + 1);
    bool drained = chance(run, 40);
    int r = drained ? acre_ledger_drain_device(run->ledger, device, "hot", NULL)
                    : acre_ledger_undrain_device(run->ledger, device, NULL);
    REQUIRE_EQ(r, device < oracle->device_count ? 0 : ACRE_ENOTFOUND);
    if (r == 0) {
        oracle->devices[device].drained = drained;
    }
}

static void do_drain_node(struct run *run) {
    struct oracle *oracle = run->oracle;
    uint32_t node = (uint32_t)below(run, oracle->node_count + 1);
    bool drained = chance(run, 35);
    int r = acre_ledger_drain_node(run->ledger, node, drained, NULL);
    REQUIRE_EQ(r, node < oracle->node_count ? 0 : ACRE_ENOTFOUND);
    if (r == 0) {
        oracle->nodes[node].drained = drained;
    }
}

static void do_foreign(struct run *run) {
    struct oracle *oracle = run->oracle;
    if (oracle->device_count == 0) {
        return;
    }
    uint32_t device = (uint32_t)below(run, oracle->device_count);
    uint64_t memory = oracle->devices[device].memory_mib;
    uint64_t mib = chance(run, 50) ? 0 : below(run, memory + 2);
    int r = acre_ledger_set_foreign(run->ledger, device, mib, NULL);
    REQUIRE_EQ(r, mib <= memory ? 0 : ACRE_EINVALID);
    if (r == 0) {
        oracle->devices[device].foreign_mib = (uint32_t)mib;
    }
}

static void do_reserve(struct run *run) {
    static const uint32_t shares[] = {1000, 1000, 1000, 500, 500, 250, 300, 100, 999, 1001, 0};
    struct oracle *oracle = run->oracle;
    uint32_t devices[3];
    struct acre_reservation_spec spec = {
        .user = (uint32_t)below(run, 4),
        .devices = devices,
        .device_count = (uint32_t)below(run, 12) == 0 ? 0 : 1 + (uint32_t)below(run, 3),
        .milli = PICK(run, shares),
        .isolation = (enum acre_isolation)(chance(run, 75) ? 0 : below(run, 4)),
        .start_ms = run->now_ms + (chance(run, 40) ? 0 : below(run, 1500)),
    };
    spec.end_ms = spec.start_ms + below(run, 1500);
    for (uint32_t i = 0; i < spec.device_count; i++) {
        devices[i] = (uint32_t)below(run, oracle->device_count + (chance(run, 3) ? 1 : 0) + 1);
        devices[i] = devices[i] > 0 ? devices[i] - 1 : 0;
    }
    if (oracle->reservation_count == ORACLE_RESERVATIONS_MAX) {
        return;
    }
    uint64_t id = 0;
    uint64_t expected_id = 0;
    int r = acre_ledger_reserve(run->ledger, &spec, run->now_ms, &id, NULL);
    REQUIRE_EQ(r, oracle_reserve(oracle, &spec, run->now_ms, &expected_id));
    REQUIRE_EQ(id, expected_id);
}

static void do_cancel(struct run *run) {
    uint64_t id = below(run, run->oracle->reservation_count + 2);
    int r = acre_ledger_cancel_reservation(run->ledger, id, run->now_ms, NULL);
    REQUIRE_EQ(r, oracle_cancel(run->oracle, id));
}

static void do_add_node(struct run *run) {
    if (chance(run, 10)) {
        add_node(run);
    }
}

/* clang-format off */
static const struct {
    const char *name;
    uint32_t weight;
    void (*run)(struct run *run);
} operations[] = {
    {"allocate",       46, do_allocate},
    {"release",        24, do_release},
    {"tick",            6, do_tick},
    {"plan",            4, do_plan},
    {"place",           4, do_place},
    {"extend",          3, do_extend},
    {"reserve",         3, do_reserve},
    {"foreign",         2, do_foreign},
    {"drain device",    2, do_drain},
    {"drain node",      2, do_drain_node},
    {"activate",        1, do_activate},
    {"cancel",          1, do_cancel},
    {"bad request",     1, do_bad_request},
    {"add node",        1, do_add_node},
};
/* clang-format on */

static size_t next_operation(struct run *run) {
    if (run->oracle->grant_count > GRANTS_KEPT) {
        return 1;
    }
    uint64_t at = below(run, 100);
    size_t i = 0;
    while (at >= operations[i].weight) {
        at -= operations[i++].weight;
    }
    return i;
}

/* Nodes, devices, reservations and one allocation look the same, and the ledger is sound. */
static void compare(struct run *run) {
    const struct oracle *oracle = run->oracle;
    for (uint32_t i = 0; i < oracle->node_count; i++) {
        struct acre_ledger_node node;
        acre_ledger_node_info(run->ledger, i, &node);
        REQUIRE_EQ(node.cpu_free_milli, oracle->nodes[i].cpu_free_milli);
        REQUIRE_EQ(node.ram_free_mib, oracle->nodes[i].ram_free_mib);
        REQUIRE_EQ(node.drained, oracle->nodes[i].drained);
    }
    for (uint32_t i = 0; i < oracle->device_count; i++) {
        const struct oracle_device *expected = &oracle->devices[i];
        struct acre_ledger_device device;
        acre_ledger_device_info(run->ledger, i, &device);
        REQUIRE_EQ(device.milli_used, expected->milli);
        REQUIRE_EQ(device.allocations, expected->count);
        REQUIRE_EQ(device.foreign_mib, expected->foreign_mib);
        REQUIRE_EQ(device.drained, expected->drained || oracle->nodes[expected->node].drained);
        REQUIRE_EQ(device.largest_milli, oracle_largest_milli(oracle, i));
    }
    for (uint32_t i = 0; i < oracle->reservation_count; i++) {
        const struct oracle_reservation *expected = &oracle->reservations[i];
        struct acre_reservation reservation;
        REQUIRE(acre_ledger_find_reservation(run->ledger, expected->id, &reservation));
        REQUIRE_EQ(reservation.state, expected->state);
        REQUIRE_EQ(reservation.allocation, expected->allocation);
    }
    if (oracle->grant_count > 0) {
        same_grant(run, &oracle->grants[below(run, oracle->grant_count)]);
    }
    KIT_SOUND(run->ledger);
}

static void compare_all_grants(struct run *run) {
    uint32_t count = 0;
    uint32_t cursor = 0;
    for (struct acre_allocation a; acre_ledger_walk(run->ledger, &cursor, &a); count++) {
        struct oracle_grant *grant = oracle_find(run->oracle, a.id);
        REQUIRE(grant != NULL);
        same_grant(run, grant);
    }
    REQUIRE_EQ(count, run->oracle->grant_count);
}

static void begin(struct run *run, uint64_t seed, enum mode mode) {
    *run = (struct run){.now_ms = 1000, .mode = mode};
    acre_rand_seed(&run->rand, seed);
    static const struct acre_rules other_rules[] = {
        {1, 1000, 15, 255, true},   /* the smallest shares, as many as can be counted */
        {1, 1000, 15, 3, true},     /* few to a device */
        {200, 800, 7, 10, true},    /* not the largest, no MIG */
        {100, 1000, 15, 10, false}, /* nobody shares */
    };
    struct acre_ledger_options options = {
        .strategy = (enum acre_strategy)(seed % ACRE_STRATEGY_COUNT),
        .rules = chance(run, 60) ? NULL : &PICK(run, other_rules),
    };
    run->ledger = acre_ledger_create(&options);
    run->oracle = oracle_create(run->ledger, &options);
    do {
        add_node(run);
    } while (chance(run, 60));
    for (size_t i = 0; i < TEMPLATES; i++) {
        run->templates[i] = random_request(run);
    }
}

static void take_steps(struct run *run, uint64_t seed, uint32_t from, uint32_t to) {
    for (uint32_t step = from; step < to; step++) {
        size_t operation = next_operation(run);
        acre_test_context("ACRE_SEED=%llu step %u: %s", (unsigned long long)seed, step,
                          operations[operation].name);
        for (uint32_t i = 0; i < 4 && run->mode == MANY_STATES; i++) {
            do_foreign(run);
        }
        operations[operation].run(run);
        compare(run);
        if (step % 256 == 0) {
            compare_all_grants(run);
        }
    }
    compare_all_grants(run);
}

static void end(struct run *run) {
    oracle_destroy(run->oracle);
    acre_ledger_destroy(run->ledger);
}

/* Seeds that once disagreed: run every time. */
static const uint64_t found_seeds[] = {
    3562, /* loads added in another order were no tie */
};

static void run_seed(uint64_t seed, uint32_t steps, enum mode mode) {
    struct run run;
    begin(&run, seed, mode);
    take_steps(&run, seed, 0, steps);
    end(&run);
}

static uint64_t number_from(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void agrees_with_the_oracle(void) { /* ALC-1 to ALC-10, by all strategies */
    if (getenv("ACRE_SEED") != NULL) {
        run_seed(number_from("ACRE_SEED", 0), STEPS, PLAIN);
        return;
    }
    uint64_t seeds = SEEDS;
    if (getenv("ACRE_SOAK") != NULL) {
        seeds = (number_from("ACRE_SOAK_OPS", 10000000) + STEPS - 1) / STEPS;
    }
    for (size_t i = 0; i < ACRE_COUNT(found_seeds); i++) {
        run_seed(found_seeds[i], STEPS, PLAIN);
    }
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run_seed(seed, STEPS, PLAIN);
        if (seed % 500 == 0) {
            fprintf(stderr, "%llu operations\n", (unsigned long long)(seed * STEPS));
        }
    }
}

/* More kinds of requests than are kept (256). */
static void agrees_on_many_kinds_of_requests(void) {
    for (uint64_t seed = 1000001; seed <= 1000007; seed++) {
        run_seed(seed, 4 * STEPS, MANY_KINDS);
    }
}

/* More dead states than are kept (1024): they are swept, and their numbers used again. */
static void agrees_on_many_states_of_nodes(void) {
    for (uint64_t seed = 2000001; seed <= 2000014; seed++) {
        run_seed(seed, 2 * STEPS, MANY_STATES);
    }
}

/* More new states than are noted down (8192) while some kinds of requests are not asked for. */
static void agrees_after_a_long_sleep(void) {
    for (uint64_t seed = 3000001; seed <= 3000007; seed++) {
        struct run run;
        begin(&run, seed, PLAIN);
        take_steps(&run, seed, 0, STEPS / 4);
        for (int i = 0; i < 40000; i++) {
            do_foreign(&run);
        }
        take_steps(&run, seed, STEPS / 4, STEPS / 2);
        end(&run);
    }
}

static const struct acre_test tests[] = {
    {"agrees_with_the_oracle", agrees_with_the_oracle, 7200},
    {"agrees_on_many_kinds_of_requests", agrees_on_many_kinds_of_requests, 600},
    {"agrees_on_many_states_of_nodes", agrees_on_many_states_of_nodes, 600},
    {"agrees_after_a_long_sleep", agrees_after_a_long_sleep, 600},
};
ACRE_TEST_MAIN(tests)
