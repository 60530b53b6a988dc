/* acre_ledger_check finds what it is for (ALC-10): every other test of the ledger leans on it.
 *
 * Books and index are damaged from behind, one thing at a time, through the private headers. */
#include "ledger/grant.h"
#include "ledger/shape.h"
#include "support/ledger_kit.h"

/* The allocations 1 and 2 of the cluster below, on a/0. */
static struct grant *grant_of(struct acre_ledger *ledger, uint64_t id) {
    struct grant *grant = grants_find(ledger->grants, id);
    REQUIRE(grant != NULL);
    return grant;
}

static void change_part(struct acre_ledger *ledger, struct acre_part change, bool exclusive) {
    struct acre_part one;
    struct grant *grant = grant_of(ledger, 1);
    struct acre_part part = *grant_parts(ledger, grant, &one);
    part.milli += change.milli;
    part.mib += change.mib;
    part.cpu_milli += change.cpu_milli;
    part.ram_mib += change.ram_mib;
    grant_set_parts(grant, &part, exclusive);
}

static void one_milli_more(struct acre_ledger *ledger) {
    ledger->devices[0].milli_used++;
}
static void one_share_more(struct acre_ledger *ledger) {
    ledger->devices[0].count++;
}
static void by_share_less(struct acre_ledger *ledger) {
    ledger->devices[0].milli_by_share--;
}
static void memory_from_nowhere(struct acre_ledger *ledger) {
    ledger->devices[1].memory_asked_mib = 7;
}
static void another_kind(struct acre_ledger *ledger) {
    ledger->devices[0].isolation++;
}
static void a_part_of_600(struct acre_ledger *ledger) {
    change_part(ledger, (struct acre_part){.milli = 300}, false);
}
static void a_part_too_large(struct acre_ledger *ledger) {
    change_part(ledger, (struct acre_part){.milli = 701}, false);
}
static void a_part_with_too_much_memory(struct acre_ledger *ledger) {
    change_part(ledger, (struct acre_part){.mib = KIT_MEMORY_MIB}, false);
}
static void a_part_alone(struct acre_ledger *ledger) {
    change_part(ledger, (struct acre_part){0}, true);
}
static void a_part_of_another_kind(struct acre_ledger *ledger) {
    grant_of(ledger, 1)->isolation = ACRE_ISOLATION_MPS;
}
static void a_part_with_cpu(struct acre_ledger *ledger) {
    change_part(ledger, (struct acre_part){.cpu_milli = 1}, false);
}
static void ram_lost(struct acre_ledger *ledger) {
    ledger->nodes[1].ram_free_mib--;
}
static void cpu_gained(struct acre_ledger *ledger) {
    ledger->nodes[1].cpu_free_milli++;
}
static void a_part_on_no_node(struct acre_ledger *ledger) {
    struct acre_part one;
    struct grant *gang = grant_of(ledger, 3);
    struct acre_part parts[2];
    memcpy(parts, grant_parts(ledger, gang, &one), sizeof(parts));
    parts[1].node = 99;
    grant_set_parts(gang, parts, true);
}
static void a_part_on_the_wrong_node(struct acre_ledger *ledger) {
    struct acre_part one;
    struct grant *gang = grant_of(ledger, 3);
    struct acre_part parts[2];
    memcpy(parts, grant_parts(ledger, gang, &one), sizeof(parts));
    parts[1].node = 0;
    grant_set_parts(gang, parts, true);
}
static void drained_behind_its_back(struct acre_ledger *ledger) {
    ledger->nodes[2].drained = true;
}
static void not_indexed(struct acre_ledger *ledger) {
    ledger->nodes[2].shape = SHAPE_NONE;
}
static void wrong_place_in_the_heap(struct acre_ledger *ledger) {
    ledger->nodes[2].heap_pos = 7;
}
static void heap_out_of_order(struct acre_ledger *ledger) {
    const struct shape *shape = shapes_get(ledger->shapes, ledger->nodes[2].shape);
    REQUIRE_EQ(shape->node_count, 2); /* c and d are alike */
    shape->nodes[0] = 3;
    shape->nodes[1] = 2;
    ledger->nodes[3].heap_pos = 0;
    ledger->nodes[2].heap_pos = 1;
}
static void a_device_not_refiled(struct acre_ledger *ledger) {
    ledger->devices[0].foreign_mib = 1000;
}
static void two_devices_at_one_slot(struct acre_ledger *ledger) {
    ledger->devices[0].at_slot = ledger->devices[1].at_slot;
}

static void every_damage_is_found(void) { /* ALC-10 */
    static const struct {
        void (*damage)(struct acre_ledger *ledger);
        const char *says;
    } cases[] = {
        {one_milli_more, "device 'a/0' has books that differ from its parts: 500 milli"},
        {one_share_more, "device 'a/0' has books that differ from its parts"},
        {by_share_less, "device 'a/0' has books that differ from its parts"},
        {memory_from_nowhere, "device 'a/1' has books that differ from its parts"},
        {another_kind, "device 'a/0' has books that differ from its parts"},
        {a_part_of_600, "device 'a/0' has books that differ from its parts: 800 milli"},
        {a_part_too_large, "device 'a/0' has more than 1000 milli: 1201 milli"},
        {a_part_with_too_much_memory, "device 'a/0' has more memory than it has"},
        {a_part_alone, "device 'a/0' has an exclusive part that is not alone"},
        {a_part_of_another_kind, "device 'a/0' has two kinds of sharing"},
        {a_part_with_cpu, "node 'a': CPU or RAM do not add up"},
        {ram_lost, "node 'b': CPU or RAM do not add up"},
        {cpu_gained, "node 'b': CPU or RAM do not add up"},
        {a_part_on_no_node, "allocation 3: no node 99"},
        {a_part_on_the_wrong_node, "allocation 3: device 3 is not on node 0"},
        {drained_behind_its_back, "node 'c' is drained but indexed"},
        {not_indexed, "node 'c' is not where the index says"},
        {wrong_place_in_the_heap, "node 'c' is not where the index says"},
        {heap_out_of_order, "node 'c' is out of order in its heap"},
        {a_device_not_refiled, "node 'a': slot"},
        {two_devices_at_one_slot, "node 'a': slot"},
    };
    for (size_t i = 0; i < ACRE_COUNT(cases); i++) {
        acre_test_context("%s", cases[i].says);
        struct acre_ledger *ledger =
            kit_cluster(ACRE_STRATEGY_FIRST_FIT, "300+200 0|0 0|0 0@32000|0 0@32000");
        uint32_t a;
        REQUIRE(acre_ledger_find_node(ledger, "a", &a));
        REQUIRE_EQ(acre_ledger_drain_node(ledger, a, true, NULL), 0);
        KIT_PLACED(ledger, kit_whole(2), "b/0 b/1");
        REQUIRE_EQ(acre_ledger_drain_node(ledger, a, false, NULL), 0);
        KIT_SOUND(ledger);
        cases[i].damage(ledger);
        struct acre_error err = {0};
        CHECK_EQ(acre_ledger_check(ledger, &err), ACRE_EINTERNAL);
        CHECK_HAS(err.text, cases[i].says);
        CHECK_EQ(acre_ledger_check(ledger, NULL), ACRE_EINTERNAL);
        acre_ledger_destroy(ledger);
    }
}

static const struct acre_test tests[] = {
    {"every_damage_is_found", every_damage_is_found, 0},
};
ACRE_TEST_MAIN(tests)
