/* The worth of a node (docs/design/002-least-fragmentation.md): against the formula written out
 * plainly, in doubles, over whole clusters. SPEC ALC-3, least fragmentation. */
#include "core/rand.h"
#include "ledger/mix.h"
#include "support/test.h"

#include <stdio.h>

enum { FREEZE_AT = 64, NODES_MAX = 8 };

static struct acre_ledger *ledger;
static uint32_t added;

static void add_node(uint64_t cpu_milli, uint64_t ram_mib, uint32_t gpus, const char *model,
                     const char *last_model, uint64_t memory_mib) {
    struct acre_device_spec devices[16];
    char ids[16][32];
    char name[32];
    for (uint32_t i = 0; i < gpus; i++) {
        snprintf(ids[i], sizeof(ids[i]), "g%u-%u", added, i);
        devices[i] = (struct acre_device_spec){
            .id = ids[i], .model = i + 1 == gpus ? last_model : model, .memory_mib = memory_mib};
    }
    snprintf(name, sizeof(name), "n%u", added++);
    struct acre_node_spec spec = {.name = name,
                                  .cpu_milli = cpu_milli,
                                  .ram_mib = ram_mib,
                                  .devices = devices,
                                  .device_count = gpus};
    uint32_t node;
    REQUIRE_EQ(acre_ledger_add_node(ledger, &spec, &node, NULL), 0);
}

static void begin(void) {
    ledger = acre_ledger_create(NULL);
    added = 0;
}

struct kind {
    uint32_t arrivals;
    uint32_t gpus, milli;
    uint64_t mib, cpu_milli, ram_mib;
    const char *model;
};

static struct want want_of(const struct kind *kind) {
    struct acre_request request = {.replicas = 1,
                                   .gpus = kind->gpus,
                                   .milli = kind->milli,
                                   .mib = kind->mib,
                                   .cpu_milli = kind->cpu_milli,
                                   .ram_mib = kind->ram_mib};
    if (kind->model != NULL) {
        request.models[0] =
            acre_names_intern(acre_ledger_names(ledger), acre_str_from(kind->model));
    }
    struct want want;
    REQUIRE_EQ(want_from(ledger, &request, &want, NULL), 0);
    return want;
}

/* Note the arrivals, kinds taking turns; they sum to FREEZE_AT. */
static void arrive(const struct kind *kinds, size_t count) {
    uint32_t left = FREEZE_AT;
    for (uint32_t turn = 0; left > 0; turn++) {
        for (size_t i = 0; i < count; i++) {
            if (turn < kinds[i].arrivals) {
                struct want want = want_of(&kinds[i]);
                mix_note(ledger, &want);
                left--;
            }
        }
    }
}

static void room_of_node(uint32_t node, struct room *room) {
    room_from_shape(ledger, shapes_get(ledger->shapes, ledger->nodes[node].shape), room);
}

/* The formula's means over the requests that ask for GPUs. */
struct means {
    double requests, milli, cpu_per_milli, ram_per_milli;
};

static struct means means_of(const struct kind *kinds, size_t count) {
    struct means means = {0};
    for (size_t i = 0; i < count; i++) {
        if (kinds[i].gpus > 0) {
            means.requests += kinds[i].arrivals;
            means.milli += (double)kinds[i].arrivals * kinds[i].gpus * kinds[i].milli;
            means.cpu_per_milli += (double)kinds[i].arrivals * (double)kinds[i].cpu_milli;
            means.ram_per_milli += (double)kinds[i].arrivals * (double)kinds[i].ram_mib;
        }
    }
    means.cpu_per_milli /= means.milli;
    means.ram_per_milli /= means.milli;
    return means;
}

/* K(m): members of the kind that the room takes. */
static double plain_members(const struct kind *kind, const struct means *means,
                            const struct room *room) {
    uint32_t on_devices = 0;
    for (uint32_t i = 0; i < room->profile->device_count; i++) {
        const struct hardware *hardware = &room->profile->slots[i];
        const char *model = acre_names_text(acre_ledger_names(ledger), hardware->model);
        if (kind->model != NULL && strcmp(kind->model, model) != 0) {
            continue;
        }
        uint32_t free_milli = word_milli(room->words[i]);
        if (kind->milli == 1000) {
            on_devices += free_milli == 1000;
        } else {
            uint64_t members = free_milli / kind->milli;
            on_devices +=
                (uint32_t)(kind->mib > 0 ? ACRE_MIN(members, word_mib(room->words[i]) / kind->mib)
                                         : members);
        }
    }
    if (room->cpu_free_milli < kind->cpu_milli || room->ram_free_mib < kind->ram_mib) {
        return 0;
    }
    double size = (double)kind->gpus * kind->milli;
    double members = on_devices / kind->gpus;
    if (means->cpu_per_milli > 0) {
        members = ACRE_MIN(members, room->cpu_free_milli / (means->cpu_per_milli * size));
    }
    if (means->ram_per_milli > 0) {
        members = ACRE_MIN(members, room->ram_free_mib / (means->ram_per_milli * size));
    }
    return members;
}

static double plain_worth(const struct kind *kinds, size_t count, uint32_t node) {
    struct means means = means_of(kinds, count);
    double mean_size = means.milli / means.requests;
    double free_gpu = 0;
    for (uint32_t n = 0; n < ledger->node_count; n++) {
        struct room room;
        room_of_node(n, &room);
        for (uint32_t i = 0; i < room.profile->device_count; i++) {
            free_gpu += word_milli(room.words[i]);
        }
    }
    double worth = 0;
    struct room own;
    room_of_node(node, &own);
    for (size_t k = 0; k < count; k++) {
        if (kinds[k].gpus == 0) {
            continue;
        }
        double size = (double)kinds[k].gpus * kinds[k].milli;
        double open = 0;
        for (uint32_t n = 0; n < ledger->node_count; n++) {
            struct room room;
            room_of_node(n, &room);
            open += plain_members(&kinds[k], &means, &room) * size;
        }
        double part = kinds[k].arrivals / means.requests;
        double gpu_part = part * size / mean_size;
        double rarity = ACRE_MAX(free_gpu / ACRE_MAX(open, size) - 1, 0.0);
        worth += plain_members(&kinds[k], &means, &own) *
                 (part + gpu_part * (size / mean_size) * rarity);
    }
    return worth;
}

static const struct kind ordinary[] = {
    {.arrivals = 30, .gpus = 1, .milli = 500, .cpu_milli = 4000, .ram_mib = 10000},
    {.arrivals = 10, .gpus = 1, .milli = 1000, .cpu_milli = 8000, .ram_mib = 30000},
    {.arrivals = 8, .gpus = 4, .milli = 1000, .cpu_milli = 30000, .ram_mib = 100000},
    {.arrivals = 8, .gpus = 1, .milli = 250, .cpu_milli = 3000, .ram_mib = 9000, .model = "A100"},
    {.arrivals = 8, .gpus = 0, .cpu_milli = 16000, .ram_mib = 1000},
};
static const struct kind by_memory[] = {
    {.arrivals = 40, .gpus = 1, .milli = 200, .mib = 30000, .cpu_milli = 1000},
    {.arrivals = 24, .gpus = 1, .milli = 700, .cpu_milli = 2000, .ram_mib = 4000},
};
static const struct kind only_gpus[] = {
    {.arrivals = 50, .gpus = 1, .milli = 300},
    {.arrivals = 14, .gpus = 2, .milli = 1000},
};

static void add_cluster(void) {
    add_node(128000, 1000000, 8, "H100", "H100", 81559);
    add_node(128000, 1000000, 8, "H100", "H100", 81559);
    add_node(20000, 400000, 4, "A100", "A100", 40960);
    add_node(64000, 200000, 4, "H100", "A100", 81559); /* of mixed devices */
    add_node(96000, 100000, 0, "", "", 0);
}

static void check_worths(const struct kind *kinds, size_t count) {
    arrive(kinds, count);
    REQUIRE_EQ(mix_epoch(ledger->mix), 1);
    for (uint32_t node = 0; node < ledger->node_count; node++) {
        acre_test_context("node %u", node);
        struct room room;
        room_of_node(node, &room);
        double expected = plain_worth(kinds, count, node);
        /* The last of 64 arrivals weighs 1 % more than the first (half-life 4096). */
        CHECK_NEAR(mix_worth(ledger->mix, &room), expected, 0.002 * (1 + expected));
    }
}

static void worth_is_as_the_formula_says(void) {
    begin();
    add_cluster();
    check_worths(ordinary, ACRE_COUNT(ordinary));
    acre_ledger_destroy(ledger);
}

static void worth_counts_memory_where_it_is_asked_for(void) {
    begin();
    add_cluster();
    check_worths(by_memory, ACRE_COUNT(by_memory));
    acre_ledger_destroy(ledger);
}

static void worth_without_cpu_is_by_devices_alone(void) {
    begin();
    add_cluster();
    check_worths(only_gpus, ACRE_COUNT(only_gpus));
    acre_ledger_destroy(ledger);
}

static void used_nodes_are_worth_what_is_left(void) {
    begin();
    add_cluster();
    static const struct acre_request taken[] = {
        {.replicas = 3, .gpus = 1, .milli = 700, .cpu_milli = 9000, .ram_mib = 1000},
        {.replicas = 1, .gpus = 4, .milli = 1000, .cpu_milli = 1000},
        {.replicas = 5, .gpus = 1, .milli = 300, .cpu_milli = 500},
    };
    for (size_t i = 0; i < ACRE_COUNT(taken); i++) {
        struct acre_part parts[8];
        uint32_t count;
        uint64_t id;
        REQUIRE_EQ(acre_ledger_plan(ledger, &taken[i], 1, parts, 8, &count, NULL), 0);
        REQUIRE_EQ(acre_ledger_place(ledger, &taken[i], parts, count, 0, 1, &id, NULL), 0);
    }
    check_worths(ordinary, ACRE_COUNT(ordinary));
    acre_ledger_destroy(ledger);
}

/* "No room at all if not even one m fits": also where the devices are idle and the average request
 * would fit. What is left of CPU or RAM is a little more, exactly, or a little less than the class
 * with 8000 milli-CPU and 30000 MiB asks for. */
static void what_lacks_cpu_or_ram_for_one_has_no_room(void) {
    static const struct {
        uint64_t cpu_left, ram_left;
    } rows[] = {
        {8001, 1000000}, {8000, 1000000}, {7999, 1000000}, {128000, 30001},
        {128000, 30000}, {128000, 29999}, {7999, 29999},
    };
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        begin();
        add_node(128000, 1000000, 8, "H100", "H100", 81559);
        struct acre_request taken = {.replicas = 1,
                                     .cpu_milli = 128000 - rows[i].cpu_left,
                                     .ram_mib = 1000000 - rows[i].ram_left};
        struct acre_part part;
        uint32_t count;
        uint64_t id;
        REQUIRE_EQ(acre_ledger_plan(ledger, &taken, 1, &part, 1, &count, NULL), 0);
        REQUIRE_EQ(acre_ledger_place(ledger, &taken, &part, 1, 0, 1, &id, NULL), 0);
        add_node(128000, 1000000, 8, "H100", "H100", 81559);
        arrive(ordinary, ACRE_COUNT(ordinary));
        for (uint32_t node = 0; node < 2; node++) {
            acre_test_context("row %zu node %u", i, node);
            struct room room;
            room_of_node(node, &room);
            double expected = plain_worth(ordinary, ACRE_COUNT(ordinary), node);
            CHECK_NEAR(mix_worth(ledger->mix, &room), expected, 0.002 * (1 + expected));
        }
        acre_ledger_destroy(ledger);
    }
}

static void without_history_nothing_has_worth(void) {
    begin();
    add_cluster();
    struct room room;
    room_of_node(0, &room);
    CHECK_NEAR(mix_worth(ledger->mix, &room), 0, 0);
    CHECK_EQ(mix_epoch(ledger->mix), 0);
    acre_ledger_destroy(ledger);
}

static void only_cpu_requests_leave_no_worth(void) {
    begin();
    add_cluster();
    static const struct kind kinds[] = {{.arrivals = 64, .gpus = 0, .cpu_milli = 1000}};
    arrive(kinds, 1);
    struct room room;
    room_of_node(0, &room);
    CHECK_NEAR(mix_worth(ledger->mix, &room), 0, 0);
    acre_ledger_destroy(ledger);
}

/* A node added after the mix was frozen has a profile the mix has not seen. */
static void unseen_hardware_has_no_worth_until_the_next_epoch(void) {
    begin();
    add_cluster();
    arrive(ordinary, ACRE_COUNT(ordinary));
    add_node(1000, 1000, 2, "L4", "L4", 24576);
    struct room room;
    room_of_node(5, &room);
    CHECK_NEAR(mix_worth(ledger->mix, &room), 0, 0);
    acre_ledger_destroy(ledger);
}

static void a_steady_mix_is_not_frozen_again_and_again(void) {
    begin();
    add_cluster();
    for (int i = 0; i < 400; i++) { /* 25,600 arrivals */
        arrive(ordinary, ACRE_COUNT(ordinary));
    }
    uint32_t learned = mix_epoch(ledger->mix);
    CHECK(learned < 30);
    for (int i = 0; i < 400; i++) {
        arrive(ordinary, ACRE_COUNT(ordinary));
    }
    CHECK_EQ(mix_epoch(ledger->mix), learned);
    arrive(only_gpus, ACRE_COUNT(only_gpus));
    for (int i = 0; i < 40; i++) {
        arrive(only_gpus, ACRE_COUNT(only_gpus));
    }
    CHECK(mix_epoch(ledger->mix) > learned); /* other requests came: it learned them */
    acre_ledger_destroy(ledger);
}

/* A new epoch judges every shape again, so it waits for an eighth as many arrivals as there are
 * shapes, whatever arrives: with 600 of them the second look, not the first. */
static void many_shapes_are_frozen_less_often(void) {
    static const struct {
        uint32_t shapes, epoch_after_one, epoch_after_two;
    } rows[] = {{4, 2, 3}, {600, 1, 2}};
    for (size_t i = 0; i < ACRE_COUNT(rows); i++) {
        acre_test_context("%u shapes", rows[i].shapes);
        begin();
        for (uint32_t n = 0; n < rows[i].shapes; n++) {
            add_node(64000 + n, 1000000, 4, "A100", "A100", 40960);
        }
        arrive(ordinary, ACRE_COUNT(ordinary));
        REQUIRE_EQ(mix_epoch(ledger->mix), 1);
        arrive(only_gpus, ACRE_COUNT(only_gpus));
        CHECK_EQ(mix_epoch(ledger->mix), rows[i].epoch_after_one);
        arrive(only_gpus, ACRE_COUNT(only_gpus));
        CHECK_EQ(mix_epoch(ledger->mix), rows[i].epoch_after_two);
        acre_ledger_destroy(ledger);
    }
}

static void a_quarter_of_the_free_gpu_gone_is_a_new_epoch(void) {
    begin();
    add_cluster();
    for (int i = 0; i < 400; i++) {
        arrive(ordinary, ACRE_COUNT(ordinary));
    }
    uint32_t before = mix_epoch(ledger->mix);
    struct acre_request half = {.replicas = 1, .gpus = 8, .milli = 1000, .cpu_milli = 1000};
    struct acre_part parts[8];
    uint32_t count;
    uint64_t id;
    REQUIRE_EQ(acre_ledger_plan(ledger, &half, 1, parts, 8, &count, NULL), 0);
    REQUIRE_EQ(acre_ledger_place(ledger, &half, parts, count, 0, 1, &id, NULL), 0);
    arrive(ordinary, ACRE_COUNT(ordinary));
    CHECK_EQ(mix_epoch(ledger->mix), before + 1);
    acre_ledger_destroy(ledger);
}

/* More kinds than notes: the light half is dropped, the heavy ones keep their price. */
static void many_kinds_do_not_drown_the_common_ones(void) {
    begin();
    add_node(128000, 1000000, 8, "H100", "H100", 0);
    struct kind common = {.gpus = 1, .milli = 500, .cpu_milli = 1000};
    struct want want = want_of(&common);
    for (uint32_t i = 0; i < 3000; i++) {
        struct kind rare = {.gpus = 1, .milli = 1 + i % 999, .cpu_milli = 1000 + i};
        rare.milli = ACRE_MAX(rare.milli, 100U);
        struct want other = want_of(&rare);
        mix_note(ledger, &other);
        for (int j = 0; j < 9; j++) {
            mix_note(ledger, &want);
        }
    }
    struct room room;
    room_of_node(0, &room);
    double full = mix_worth(ledger->mix, &room);
    CHECK(full > 0.85 * 16); /* 16 halves fit, and nine in ten ask for one */
    CHECK(full < 40);
    acre_ledger_destroy(ledger);
}

static void worth_after_is_the_worth_of_the_room_after(void) {
    begin();
    add_cluster();
    arrive(ordinary, ACRE_COUNT(ordinary));
    struct acre_rand rand;
    acre_rand_seed(&rand, 11);
    for (int i = 0; i < 2000; i++) {
        struct room room;
        struct mix_view view;
        room_of_node((uint32_t)acre_rand_below(&rand, 4), &room);
        uint32_t devices = room.profile->device_count;
        for (uint32_t d = 0; d < devices; d++) {
            uint32_t milli = (uint32_t)acre_rand_below(&rand, 1001);
            room.words[d] = word_make(milli, milli, 0, room.profile->slots[d].memory_mib, 0);
        }
        room.cpu_free_milli = (uint32_t)acre_rand_below(&rand, 128001);
        mix_look_at_devices(ledger->mix, &room, &view);
        mix_look_at_host(ledger->mix, &room, &view);
        CHECK_NEAR(mix_worth_as_seen(ledger->mix, &room, &view), mix_worth(ledger->mix, &room), 0);
        uint32_t slot = (uint32_t)acre_rand_below(&rand, devices);
        uint32_t milli = (uint32_t)acre_rand_below(&rand, 1001);
        uint64_t word = word_make(milli, milli, 0, room.profile->slots[slot].memory_mib, 0);
        double after = mix_worth_after(ledger->mix, &room, &view, slot, word);
        room.words[slot] = word;
        CHECK_NEAR(after, mix_worth(ledger->mix, &room), 0);
    }
    acre_ledger_destroy(ledger);
}

static const struct acre_test tests[] = {
    {"worth_is_as_the_formula_says", worth_is_as_the_formula_says, 0},
    {"worth_counts_memory_where_it_is_asked_for", worth_counts_memory_where_it_is_asked_for, 0},
    {"worth_without_cpu_is_by_devices_alone", worth_without_cpu_is_by_devices_alone, 0},
    {"used_nodes_are_worth_what_is_left", used_nodes_are_worth_what_is_left, 0},
    {"what_lacks_cpu_or_ram_for_one_has_no_room", what_lacks_cpu_or_ram_for_one_has_no_room, 0},
    {"without_history_nothing_has_worth", without_history_nothing_has_worth, 0},
    {"only_cpu_requests_leave_no_worth", only_cpu_requests_leave_no_worth, 0},
    {"unseen_hardware_has_no_worth_until_the_next_epoch",
     unseen_hardware_has_no_worth_until_the_next_epoch, 0},
    {"a_steady_mix_is_not_frozen_again_and_again", a_steady_mix_is_not_frozen_again_and_again, 0},
    {"many_shapes_are_frozen_less_often", many_shapes_are_frozen_less_often, 0},
    {"a_quarter_of_the_free_gpu_gone_is_a_new_epoch", a_quarter_of_the_free_gpu_gone_is_a_new_epoch,
     0},
    {"many_kinds_do_not_drown_the_common_ones", many_kinds_do_not_drown_the_common_ones, 0},
    {"worth_after_is_the_worth_of_the_room_after", worth_after_is_the_worth_of_the_room_after, 0},
};

ACRE_TEST_MAIN(tests)
