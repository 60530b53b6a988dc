/* place.c - choices turned into parts, on one node or over several.
 *
 * A gang that fits one node goes there (class.c judges that like any want). Otherwise the fewest
 * nodes are those with most room for members: whole nodes are filled from the roomiest shape
 * down, and the last node is the one whose room is tightest for the rest. Rooms are judged per
 * shape and kept like any other judgement, under the want with 0 replicas. */
#include "ledger/place.h"

#include "core/heap.h"
#include "ledger/shape.h"

#include <stdlib.h>

/* `own`: the device of the node that stands at `slot`. */
static void fill_part(const struct acre_ledger *ledger, const struct want *want, uint32_t node,
                      uint32_t slot, uint32_t own, bool first, struct acre_part *part) {
    const struct node *host = &ledger->nodes[node];
    *part = (struct acre_part){
        .node = node,
        .device = ACRE_DEVICE_NONE,
        .cpu_milli = first ? want->cpu_milli : 0,
        .ram_mib = first ? want->ram_mib : 0,
    };
    if (want->gpus == 0) {
        return;
    }
    const struct hardware *hardware = &ledger->profiles[host->profile]->slots[slot];
    part->device = host->first_device + own;
    part->milli = want_milli_on(want, hardware);
    part->by_share = want->whole || want->mib == 0;
    part->mib = part->by_share ? (uint32_t)((uint64_t)hardware->memory_mib * part->milli / 1000)
                               : want->mib;
}

void place_on_slot(const struct acre_ledger *ledger, const struct want *want, uint32_t node,
                   uint32_t slot, struct acre_part *part) {
    ACRE_ASSERT(node < ledger->node_count && slot < ledger->nodes[node].device_count);
    ACRE_ASSERT(!ledger->nodes[node].drained);
    /* The first device of those alike. */
    const struct node *host = &ledger->nodes[node];
    const struct device *devices = &ledger->devices[host->first_device];
    const uint64_t *words = shapes_get(ledger->shapes, host->shape)->words;
    const struct hardware *hardware = &ledger->profiles[host->profile]->slots[slot];
    uint32_t first = slot;
    for (uint32_t i = hardware->group_start; i < hardware->group_end; i++) {
        if (words[i] == words[slot] && devices[i].at_slot < devices[first].at_slot) {
            first = i;
        }
    }
    fill_part(ledger, want, node, first, devices[first].at_slot, true, part);
}

/* Other states stand in another order: within each group the freer first, then by device. */
static void sort_room(struct room *room, uint8_t *device_at_slot) {
    for (uint32_t i = 0; i < room->profile->device_count; i++) {
        uint64_t word = room->words[i];
        uint8_t device = device_at_slot[i];
        uint32_t at = i;
        while (at > room->profile->slots[i].group_start &&
               (room->words[at - 1] < word ||
                (room->words[at - 1] == word && device_at_slot[at - 1] > device))) {
            room->words[at] = room->words[at - 1];
            device_at_slot[at] = device_at_slot[at - 1];
            at--;
        }
        room->words[at] = word;
        device_at_slot[at] = device;
    }
}

bool place_in_room(struct acre_ledger *ledger, const struct want *want, uint64_t slots,
                   uint32_t node, uint32_t replicas, struct room *room, struct acre_part *parts) {
    ACRE_ASSERT(node < ledger->node_count && replicas > 0);
    ACRE_ASSERT(want->gpus == 0 || room->device_at_slot != NULL);
    /* A member takes at least a milli of each of its devices, or CPU or RAM of the node. */
    uint8_t few[ACRE_NODE_DEVICES_MAX];
    size_t choices = (size_t)replicas * want->gpus;
    uint8_t *chosen = choices > ACRE_COUNT(few) ? acre_calloc(choices, 1) : few;
    struct rank rank;
    bool fits = choose_devices(ledger, want, slots, replicas, room, chosen, &rank);
    uint32_t per_member = ACRE_MAX(want->gpus, 1U);
    for (uint32_t i = 0; fits && i < replicas * per_member; i++) {
        uint32_t slot = want->gpus > 0 ? chosen[i] : 0;
        uint32_t own = want->gpus > 0 ? room->device_at_slot[slot] : 0;
        fill_part(ledger, want, node, slot, own, i % per_member == 0, &parts[i]);
    }
    if (chosen != few) {
        free(chosen);
    }
    return fits;
}

void room_with_words(const struct acre_ledger *ledger, uint32_t node, const uint64_t *words,
                     struct room *ret_room, uint8_t *device_at_slot) {
    ACRE_ASSERT(node < ledger->node_count && ledger->nodes[node].shape != SHAPE_NONE);
    const struct node *host = &ledger->nodes[node];
    room_from_shape(ledger, shapes_get(ledger->shapes, host->shape), ret_room);
    for (uint32_t i = 0; i < host->device_count; i++) {
        device_at_slot[i] = ledger->devices[host->first_device + i].at_slot;
        ret_room->words[i] = words != NULL ? words[i] : ret_room->words[i];
    }
    ret_room->device_at_slot = device_at_slot;
    if (words != NULL) {
        sort_room(ret_room, device_at_slot);
    }
}

bool place_on_node(struct acre_ledger *ledger, struct want_class *class, uint32_t node,
                   uint32_t replicas, const uint64_t *words, struct acre_part *parts) {
    ACRE_ASSERT(node < ledger->node_count && replicas > 0);
    uint64_t slots;
    if (ledger->nodes[node].drained ||
        !class_matches(ledger, class, ledger->nodes[node].profile, &slots)) {
        return false;
    }
    struct room room;
    uint8_t device_at_slot[ACRE_NODE_DEVICES_MAX];
    room_with_words(ledger, node, words, &room, device_at_slot);
    return place_in_room(ledger, class_want(class), slots, node, replicas, &room, parts);
}

/* Of the shapes with room: the roomiest, or, when some have room for all `needed`, the tightest
 * of those. `used` says how many nodes of each are taken already. */
static uint32_t pick_candidate(const struct acre_ledger *ledger, const struct candidate *all,
                               uint32_t count, const uint32_t *used, uint32_t needed) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        if (used[i] == shapes_get(ledger->shapes, all[i].shape)->node_count) {
            continue;
        }
        if (best == UINT32_MAX) {
            best = i;
            continue;
        }
        double room = ACRE_MIN(all[i].rank.score, (double)ACRE_REQUEST_REPLICAS_MAX);
        double best_room = all[best].rank.score;
        bool holds_rest = room >= needed;
        bool best_holds_rest = best_room >= needed;
        if (holds_rest != best_holds_rest) {
            best = holds_rest ? i : best;
        } else if (room != best_room) {
            best = (holds_rest ? room < best_room : room > best_room) ? i : best;
        } else if (shape_compare(shapes_get(ledger->shapes, all[i].shape),
                                 shapes_get(ledger->shapes, all[best].shape)) < 0) {
            best = i;
        }
    }
    return best;
}

static bool is_lower_at(const void *a, const void *b, const void *context) {
    const uint32_t *nodes = context;
    return nodes[*(const uint32_t *)a] < nodes[*(const uint32_t *)b];
}

/* Positions in a shape's heap, by the nodes there. */
static const struct acre_heap_kind by_node = {sizeof(uint32_t), is_lower_at, NULL};

/* The `wanted` lowest of the heap's nodes, ascending. A heap's k lowest are among those reached
 * by expanding the k lowest found so far, so only they and their children are looked at. */
static void lowest_nodes(const struct shape *shape, uint32_t wanted, uint32_t *nodes) {
    uint32_t *frontier = acre_calloc((size_t)wanted + 2, sizeof(*frontier));
    uint32_t frontier_count = 1;
    for (uint32_t taken = 0; taken < wanted; taken++) {
        uint32_t at = frontier[0];
        nodes[taken] = shape->nodes[at];
        acre_heap_remove_first(&by_node, frontier, &frontier_count, shape->nodes);
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2; child++) {
            if (child < shape->node_count) {
                acre_heap_push(&by_node, frontier, &frontier_count, &child, shape->nodes);
            }
        }
    }
    free(frontier);
}

/* Fill nodes of one shape with as many members as needed and possible; returns how many. */
static uint32_t fill_shape(struct acre_ledger *ledger, const struct want *want,
                           const struct candidate *candidate, uint32_t needed, uint32_t *used,
                           struct acre_part *parts) {
    const struct shape *shape = shapes_get(ledger->shapes, candidate->shape);
    uint32_t each = ACRE_MIN((uint32_t)candidate->rank.score, needed);
    uint32_t end = *used + ACRE_MIN(shape->node_count - *used, needed / each);
    uint32_t *nodes = acre_calloc(end, sizeof(*nodes));
    lowest_nodes(shape, end, nodes);
    struct want_class *class = classes_get(ledger, want);
    uint32_t placed = 0;
    uint32_t per_member = ACRE_MAX(want->gpus, 1U);
    for (; *used < end; (*used)++) {
        bool fits = place_on_node(ledger, class, nodes[*used], each, NULL,
                                  parts + (size_t)placed * per_member);
        ACRE_ASSERT(fits); /* choose_capacity and choose_devices agree */
        placed += each;
    }
    free(nodes);
    return placed;
}

bool place_gang(struct acre_ledger *ledger, const struct want *want, struct acre_part *parts) {
    ACRE_ASSERT(want->replicas > 1);
    struct want room = *want;
    room.replicas = 0;
    uint32_t count;
    const struct candidate *kept = class_candidates(ledger, classes_get(ledger, &room), &count);
    uint64_t total = 0;
    struct candidate *all = acre_calloc(ACRE_MAX(count, 1U), sizeof(*all));
    uint32_t *used = acre_calloc(ACRE_MAX(count, 1U), sizeof(*used));
    for (uint32_t i = 0; i < count; i++) {
        all[i] = kept[i];
        uint64_t nodes = shapes_get(ledger->shapes, all[i].shape)->node_count;
        total += nodes * (uint64_t)all[i].rank.score;
    }
    uint32_t placed = 0;
    while (total >= want->replicas && placed < want->replicas) {
        uint32_t needed = want->replicas - placed;
        uint32_t at = pick_candidate(ledger, all, count, used, needed);
        ACRE_ASSERT(at != UINT32_MAX);
        placed += fill_shape(ledger, want, &all[at], needed, &used[at],
                             parts + (size_t)placed * ACRE_MAX(want->gpus, 1U));
    }
    free(used);
    free(all);
    return placed == want->replicas;
}
