/* outlook.c - the books as they would be, for the nodes that are touched.
 *
 * The first part given back on a node copies that node's books into a spot; every further one
 * changes the copy. What counts is how many members of the request fit, summed over all nodes:
 * those not touched count as the index knows them (class.h, the want with 0 replicas), a touched
 * one as its spot is judged. So giving back costs one judgement of one node, whatever the size of
 * the cluster.
 *
 * The place is made of the nodes with most room for members. Its needs are kept per device (and
 * per node for CPU and RAM) as rows; what allocations given back still hold is taken off a row
 * when the veil is put on, so that the veil stays right while they go one by one. A veil is parts
 * in the books without an allocation. Next to a share of the same kind it takes exactly what is
 * missing; where that is unknown (whole devices, kinds that will change) all that is free. */
#include "ledger/outlook.h"

#include "ledger/place.h"
#include "ledger/reserve.h"
#include "ledger/shape.h"

#include <stdlib.h>
#include <string.h>

/* The books of one device, as they would be. */
struct would {
    uint32_t memory_asked_mib;
    uint16_t milli_used;
    uint16_t milli_by_share;
    uint8_t count;
    uint8_t isolation;
};

struct outlook_spot {
    uint32_t node;
    uint32_t members;
    uint32_t first_would; /* of its devices */
    uint32_t cpu_free_milli, ram_free_mib;
};

/* What the place needs of one device, or of a node's host (device: ACRE_DEVICE_NONE). */
struct outlook_row {
    uint32_t node, device;
    uint32_t milli, mib, cpu_milli, ram_mib;
    uint32_t back_milli, back_mib, back_cpu_milli, back_ram_mib; /* held by those given back */
};

struct veiled {
    struct acre_part part;
    enum acre_isolation isolation;
};

struct acre_outlook {
    struct acre_ledger *ledger;
    struct want want;
    uint64_t members;
    struct outlook_spot *spots;
    uint32_t spot_count, spot_capacity;
    struct would *woulds;
    uint32_t would_count, would_capacity;
    uint32_t *spot_of_node; /* good where spots[it].node agrees */
    uint32_t node_capacity;
    uint64_t *given; /* allocations; once the place is chosen, those on its nodes */
    uint32_t given_count, given_capacity;
    struct acre_part *parts;
    uint32_t part_count, part_capacity;
    struct outlook_row *rows; /* by node, then device */
    uint32_t row_count, row_capacity;
    struct veiled *veil;
    uint32_t veil_count, veil_capacity;
};

/* Members that fit now, on all nodes; no more than asked for matter. */
static uint64_t members_now(struct acre_ledger *ledger, const struct want *want) {
    struct want room = *want;
    room.replicas = 0;
    uint32_t count;
    const struct candidate *all = class_candidates(ledger, classes_get(ledger, &room), &count);
    uint64_t members = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t nodes = shapes_get(ledger->shapes, all[i].shape)->node_count;
        members += nodes * ACRE_MIN((uint64_t)all[i].rank.score, want->replicas);
    }
    return members;
}

void acre_outlook_reset(struct acre_outlook *outlook) {
    ACRE_ASSERT(outlook->veil_count == 0);
    outlook->spot_count = 0;
    outlook->would_count = 0;
    outlook->given_count = 0;
    outlook->part_count = 0;
    outlook->row_count = 0;
    outlook->members = members_now(outlook->ledger, &outlook->want);
    if (outlook->node_capacity < outlook->ledger->node_count) {
        free(outlook->spot_of_node);
        outlook->node_capacity = outlook->ledger->node_count;
        outlook->spot_of_node = acre_calloc(outlook->node_capacity, sizeof(uint32_t));
    }
}

struct acre_outlook *acre_outlook_create(struct acre_ledger *ledger,
                                         const struct acre_request *request) {
    struct want want;
    if (request->reservation != 0 || want_from(ledger, request, &want, NULL) < 0) {
        return NULL;
    }
    struct acre_outlook *outlook = acre_calloc(1, sizeof(*outlook));
    outlook->ledger = ledger;
    outlook->want = want;
    acre_outlook_reset(outlook);
    return outlook;
}

void acre_outlook_destroy(struct acre_outlook *outlook) {
    if (outlook == NULL) {
        return;
    }
    ACRE_ASSERT(outlook->veil_count == 0);
    free(outlook->spots);
    free(outlook->woulds);
    free(outlook->spot_of_node);
    free(outlook->given);
    free(outlook->parts);
    free(outlook->rows);
    free(outlook->veil);
    free(outlook);
}

size_t acre_outlook_bytes(const struct acre_outlook *outlook) {
    return sizeof(*outlook) + outlook->spot_capacity * sizeof(struct outlook_spot) +
           outlook->would_capacity * sizeof(struct would) +
           outlook->node_capacity * sizeof(uint32_t) + outlook->given_capacity * sizeof(uint64_t) +
           outlook->part_capacity * sizeof(struct acre_part) +
           outlook->row_capacity * sizeof(struct outlook_row) +
           outlook->veil_capacity * sizeof(struct veiled);
}

/* The word of a device whose books are these. What is reserved ahead is not looked into: such a
 * device stays as it is offered now. */
static uint64_t word_of(const struct acre_ledger *ledger, uint32_t index,
                        const struct would *would) {
    const struct device *device = &ledger->devices[index];
    if ((device->flags & DEVICE_CALENDAR) != 0) {
        return device_word(ledger, index);
    }
    if ((device->flags & DEVICE_DRAINED) != 0 || would->count >= shares_max(ledger)) {
        return 0;
    }
    struct usage usage = {
        .milli = would->milli_used,
        .milli_by_share = would->milli_by_share,
        .memory_mib = (uint64_t)would->memory_asked_mib + device->foreign_mib,
        .isolation = would->isolation,
        .shares_left = ledger->track_counts ? shares_max(ledger) - would->count : 0,
    };
    return usage_word(hardware_of(ledger, index), &usage);
}

/* The spot as a room, and which of its slots can serve the want; false: none can. */
static bool spot_room(const struct acre_outlook *outlook, const struct outlook_spot *spot,
                      struct room *ret_room, uint8_t *device_at_slot, uint64_t *ret_slots) {
    const struct acre_ledger *ledger = outlook->ledger;
    const struct node *host = &ledger->nodes[spot->node];
    if (!want_matches(ledger, &outlook->want, ledger->profiles[host->profile], ret_slots)) {
        return false;
    }
    uint64_t words[ACRE_NODE_DEVICES_MAX];
    for (uint32_t slot = 0; slot < host->device_count; slot++) {
        uint32_t own = ledger->devices[host->first_device + slot].at_slot;
        words[slot] =
            word_of(ledger, host->first_device + own, &outlook->woulds[spot->first_would + own]);
    }
    room_with_words(ledger, spot->node, words, ret_room, device_at_slot);
    ret_room->cpu_free_milli = spot->cpu_free_milli;
    ret_room->ram_free_mib = spot->ram_free_mib;
    return true;
}

static uint32_t spot_members(const struct acre_outlook *outlook, const struct outlook_spot *spot) {
    struct room room;
    uint8_t device_at_slot[ACRE_NODE_DEVICES_MAX];
    uint64_t slots;
    return spot_room(outlook, spot, &room, device_at_slot, &slots)
               ? choose_capacity(&outlook->want, slots, &room, outlook->want.replicas)
               : 0;
}

/* The spot of a node; NULL: not touched yet. */
static struct outlook_spot *spot_find(const struct acre_outlook *outlook, uint32_t node) {
    uint32_t at = node < outlook->node_capacity ? outlook->spot_of_node[node] : UINT32_MAX;
    return at < outlook->spot_count && outlook->spots[at].node == node ? &outlook->spots[at] : NULL;
}

static struct outlook_spot *spot_touch(struct acre_outlook *outlook, uint32_t node) {
    ACRE_ASSERT(node < outlook->node_capacity && !outlook->ledger->nodes[node].drained);
    struct outlook_spot *spot = spot_find(outlook, node);
    if (spot != NULL) {
        return spot;
    }
    const struct node *host = &outlook->ledger->nodes[node];
    uint32_t first = outlook->would_count;
    for (uint32_t i = 0; i < host->device_count; i++) {
        const struct device *device = &outlook->ledger->devices[host->first_device + i];
        outlook->woulds = acre_grow(outlook->woulds, outlook->would_count, &outlook->would_capacity,
                                    sizeof(struct would));
        outlook->woulds[outlook->would_count++] = (struct would){
            .memory_asked_mib = device->memory_asked_mib,
            .milli_used = device->milli_used,
            .milli_by_share = device->milli_by_share,
            .count = device->count,
            .isolation = device->isolation,
        };
    }
    outlook->spots = acre_grow(outlook->spots, outlook->spot_count, &outlook->spot_capacity,
                               sizeof(struct outlook_spot));
    outlook->spot_of_node[node] = outlook->spot_count;
    spot = &outlook->spots[outlook->spot_count++];
    *spot = (struct outlook_spot){
        .node = node,
        .first_would = first,
        .cpu_free_milli = host->cpu_free_milli,
        .ram_free_mib = host->ram_free_mib,
    };
    spot->members = spot_members(outlook, spot);
    return spot;
}

static void spot_undo(struct acre_outlook *outlook, struct outlook_spot *spot,
                      const struct acre_part *part) {
    spot->cpu_free_milli += part->cpu_milli;
    spot->ram_free_mib += part->ram_mib;
    if (part->device == ACRE_DEVICE_NONE) {
        return;
    }
    uint32_t own = part->device - outlook->ledger->nodes[part->node].first_device;
    struct would *would = &outlook->woulds[spot->first_would + own];
    ACRE_ASSERT(would->count > 0 && would->milli_used >= part->milli);
    ACRE_ASSERT(part->by_share ? would->milli_by_share >= part->milli
                               : would->memory_asked_mib >= part->mib);
    would->milli_used = (uint16_t)(would->milli_used - part->milli);
    if (part->by_share) {
        would->milli_by_share = (uint16_t)(would->milli_by_share - part->milli);
    } else {
        would->memory_asked_mib -= part->mib;
    }
    would->count--;
    would->isolation = would->count > 0 ? would->isolation : 0;
}

bool acre_outlook_fits(const struct acre_outlook *outlook) {
    return outlook->members >= outlook->want.replicas;
}

bool acre_outlook_give(struct acre_outlook *outlook, uint64_t allocation) {
    struct acre_ledger *ledger = outlook->ledger;
    const struct grant *grant = grants_find(ledger->grants, allocation);
    if (grant == NULL || grant->status == GRANT_RESERVED || grant->reservation != 0) {
        return acre_outlook_fits(outlook);
    }
    struct acre_part one;
    const struct acre_part *parts = grant_parts(ledger, grant, &one);
    for (uint32_t i = 0; i < grant->part_count; i++) {
        const struct node *host = &ledger->nodes[parts[i].node];
        uint64_t slots;
        if (host->drained ||
            !want_matches(ledger, &outlook->want, ledger->profiles[host->profile], &slots)) {
            continue;
        }
        struct outlook_spot *spot = spot_touch(outlook, parts[i].node);
        spot_undo(outlook, spot, &parts[i]);
        if (i + 1 == grant->part_count || parts[i + 1].node != parts[i].node) {
            uint32_t members = spot_members(outlook, spot);
            outlook->members = outlook->members + members - spot->members;
            spot->members = members;
        }
    }
    outlook->given = acre_grow(outlook->given, outlook->given_count, &outlook->given_capacity,
                               sizeof(*outlook->given));
    outlook->given[outlook->given_count++] = allocation;
    return acre_outlook_fits(outlook);
}

struct offer {
    uint32_t node;
    uint32_t members;
};

static int most_members_first(const void *a, const void *b) {
    const struct offer *x = a;
    const struct offer *y = b;
    if (x->members != y->members) {
        return x->members > y->members ? -1 : 1;
    }
    return (x->node > y->node) - (x->node < y->node);
}

/* All nodes with room for members: touched ones as they would be, the others as they are. */
static struct offer *collect_offers(struct acre_outlook *outlook, uint32_t *ret_count) {
    struct offer *offers = NULL;
    uint32_t count = 0;
    uint32_t capacity = 0;
    for (uint32_t i = 0; i < outlook->spot_count; i++) {
        if (outlook->spots[i].members > 0) {
            offers = acre_grow(offers, count, &capacity, sizeof(*offers));
            offers[count++] = (struct offer){outlook->spots[i].node, outlook->spots[i].members};
        }
    }
    struct acre_ledger *ledger = outlook->ledger;
    struct want room = outlook->want;
    room.replicas = 0;
    uint32_t kept;
    const struct candidate *all = class_candidates(ledger, classes_get(ledger, &room), &kept);
    for (uint32_t i = 0; i < kept; i++) {
        const struct shape *shape = shapes_get(ledger->shapes, all[i].shape);
        for (uint32_t j = 0; j < shape->node_count; j++) {
            if (spot_find(outlook, shape->nodes[j]) == NULL) {
                offers = acre_grow(offers, count, &capacity, sizeof(*offers));
                offers[count++] = (struct offer){shape->nodes[j], (uint32_t)all[i].rank.score};
            }
        }
    }
    if (count > 0) {
        qsort(offers, count, sizeof(*offers), most_members_first);
    }
    *ret_count = count;
    return offers;
}

static int row_order(const void *a, const void *b) {
    const struct outlook_row *x = a;
    const struct outlook_row *y = b;
    if (x->node != y->node) {
        return x->node < y->node ? -1 : 1;
    }
    return (x->device > y->device) - (x->device < y->device);
}

static struct outlook_row *row_find(const struct acre_outlook *outlook, uint32_t node,
                                    uint32_t device) {
    struct outlook_row key = {.node = node, .device = device};
    return outlook->row_count == 0
               ? NULL
               : bsearch(&key, outlook->rows, outlook->row_count, sizeof(key), row_order);
}

static void row_push(struct acre_outlook *outlook, struct outlook_row row) {
    outlook->rows = acre_grow(outlook->rows, outlook->row_count, &outlook->row_capacity,
                              sizeof(struct outlook_row));
    outlook->rows[outlook->row_count++] = row;
}

/* What the parts need, one row per device and per node. */
static void rows_from_parts(struct acre_outlook *outlook) {
    for (uint32_t i = 0; i < outlook->part_count; i++) {
        const struct acre_part *part = &outlook->parts[i];
        if (part->device != ACRE_DEVICE_NONE) {
            row_push(outlook, (struct outlook_row){.node = part->node,
                                                   .device = part->device,
                                                   .milli = part->milli,
                                                   .mib = part->mib});
        }
        row_push(outlook, (struct outlook_row){.node = part->node,
                                               .device = ACRE_DEVICE_NONE,
                                               .cpu_milli = part->cpu_milli,
                                               .ram_mib = part->ram_mib});
    }
    qsort(outlook->rows, outlook->row_count, sizeof(struct outlook_row), row_order);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < outlook->row_count; i++) {
        struct outlook_row *row = &outlook->rows[i];
        struct outlook_row *last = kept > 0 ? &outlook->rows[kept - 1] : NULL;
        if (last != NULL && row_order(last, row) == 0) {
            last->milli += row->milli;
            last->mib += row->mib;
            last->cpu_milli += row->cpu_milli;
            last->ram_mib += row->ram_mib;
        } else {
            outlook->rows[kept++] = *row;
        }
    }
    outlook->row_count = kept;
}

/* Does the allocation hold something on a node of the place? */
static bool touches_place(const struct acre_outlook *outlook, uint64_t allocation) {
    const struct grant *grant = grants_find(outlook->ledger->grants, allocation);
    struct acre_part one;
    const struct acre_part *parts =
        grant != NULL ? grant_parts(outlook->ledger, grant, &one) : NULL;
    for (uint32_t i = 0; grant != NULL && i < grant->part_count; i++) {
        if (row_find(outlook, parts[i].node, ACRE_DEVICE_NONE) != NULL) {
            return true;
        }
    }
    return false;
}

void acre_outlook_choose(struct acre_outlook *outlook) {
    ACRE_ASSERT(acre_outlook_fits(outlook) && outlook->part_count == 0);
    const struct want *want = &outlook->want;
    uint32_t per_member = ACRE_MAX(want->gpus, 1U);
    uint32_t total = want->replicas * per_member;
    if (outlook->part_capacity < total) {
        outlook->part_capacity = total;
        outlook->parts = acre_realloc(outlook->parts, total, sizeof(*outlook->parts));
    }
    uint32_t count;
    struct offer *offers = collect_offers(outlook, &count);
    uint32_t needed = want->replicas;
    for (uint32_t i = 0; i < count && needed > 0; i++) {
        struct outlook_spot *spot = spot_touch(outlook, offers[i].node);
        struct room room;
        uint8_t device_at_slot[ACRE_NODE_DEVICES_MAX];
        uint64_t slots;
        uint32_t members = ACRE_MIN(ACRE_MIN(spot->members, offers[i].members), needed);
        bool fits = spot_room(outlook, spot, &room, device_at_slot, &slots) &&
                    place_in_room(outlook->ledger, want, slots, spot->node, members, &room,
                                  outlook->parts + outlook->part_count);
        ACRE_ASSERT(fits); /* choose_capacity and choose_devices agree */
        outlook->part_count += members * per_member;
        needed -= members;
    }
    free(offers);
    ACRE_ASSERT(needed == 0);
    rows_from_parts(outlook);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < outlook->given_count; i++) {
        if (touches_place(outlook, outlook->given[i])) {
            outlook->given[kept++] = outlook->given[i];
        }
    }
    outlook->given_count = kept;
}

const struct acre_part *acre_outlook_parts(const struct acre_outlook *outlook,
                                           uint32_t *ret_count) {
    *ret_count = outlook->part_count;
    return outlook->parts;
}

const uint64_t *acre_outlook_given(const struct acre_outlook *outlook, uint32_t *ret_count) {
    *ret_count = outlook->given_count;
    return outlook->given;
}

/* What those given back, as far as they are still there, hold of each row. */
static void count_back(const struct acre_outlook *outlook) {
    for (uint32_t i = 0; i < outlook->row_count; i++) {
        struct outlook_row *row = &outlook->rows[i];
        row->back_milli = row->back_mib = row->back_cpu_milli = row->back_ram_mib = 0;
    }
    for (uint32_t i = 0; i < outlook->given_count; i++) {
        const struct grant *grant = grants_find(outlook->ledger->grants, outlook->given[i]);
        struct acre_part one;
        const struct acre_part *parts =
            grant != NULL ? grant_parts(outlook->ledger, grant, &one) : NULL;
        for (uint32_t j = 0; grant != NULL && j < grant->part_count; j++) {
            struct outlook_row *host = row_find(outlook, parts[j].node, ACRE_DEVICE_NONE);
            struct outlook_row *row = parts[j].device != ACRE_DEVICE_NONE
                                          ? row_find(outlook, parts[j].node, parts[j].device)
                                          : NULL;
            if (host != NULL) {
                host->back_cpu_milli += parts[j].cpu_milli;
                host->back_ram_mib += parts[j].ram_mib;
            }
            if (row != NULL) {
                row->back_milli += parts[j].milli;
                row->back_mib += parts[j].mib;
            }
        }
    }
}

/* Will others than those given back stay on the device with another kind of sharing? */
static bool kind_is_foreign(const struct acre_outlook *outlook, const struct outlook_row *row) {
    const struct device *device = &outlook->ledger->devices[row->device];
    return device->milli_used > row->back_milli &&
           (outlook->want.whole || device->isolation != outlook->want.isolation + 1U);
}

bool acre_outlook_stands(const struct acre_outlook *outlook) {
    const struct acre_ledger *ledger = outlook->ledger;
    if (outlook->part_count == 0) {
        return false;
    }
    count_back(outlook);
    for (uint32_t i = 0; i < outlook->row_count; i++) {
        const struct outlook_row *row = &outlook->rows[i];
        const struct node *node = &ledger->nodes[row->node];
        if (node->drained || row->cpu_milli > node->cpu_free_milli + row->back_cpu_milli ||
            row->ram_mib > (uint64_t)node->ram_free_mib + row->back_ram_mib) {
            return false;
        }
        if (row->device == ACRE_DEVICE_NONE) {
            continue;
        }
        const struct device *device = &ledger->devices[row->device];
        if ((device->flags & DEVICE_DRAINED) != 0 || kind_is_foreign(outlook, row) ||
            row->milli > 1000U - device->milli_used + row->back_milli) {
            return false;
        }
    }
    return true;
}

static bool veil_part(struct acre_outlook *outlook, struct acre_part part,
                      enum acre_isolation isolation) {
    if (books_take(outlook->ledger, &part, 1, isolation, false, false, NULL) < 0) {
        return false;
    }
    outlook->veil = acre_grow(outlook->veil, outlook->veil_count, &outlook->veil_capacity,
                              sizeof(struct veiled));
    outlook->veil[outlook->veil_count++] = (struct veiled){part, isolation};
    return true;
}

static void veil_device(struct acre_outlook *outlook, const struct outlook_row *row) {
    const struct want *want = &outlook->want;
    const struct device *device = &outlook->ledger->devices[row->device];
    uint32_t free_milli = 1000U - device->milli_used;
    enum acre_isolation kind = device->count > 0 ? (enum acre_isolation)(device->isolation - 1)
                                                 : (enum acre_isolation)want->isolation;
    struct acre_part all = {.node = row->node, .device = row->device, .milli = free_milli};
    if (free_milli == 0) {
        return;
    }
    if (want->whole || kind != (enum acre_isolation)want->isolation) {
        veil_part(outlook, all, kind); /* refused only where nothing fits anyway */
        return;
    }
    uint32_t milli = row->milli > row->back_milli ? row->milli - row->back_milli : 0;
    uint32_t mib = row->mib > row->back_mib ? row->mib - row->back_mib : 0;
    if (milli == 0 && (want->mib == 0 || mib == 0)) {
        return;
    }
    struct acre_part missing = {.node = row->node,
                                .device = row->device,
                                .milli = ACRE_MAX(ACRE_MIN(milli, free_milli), 1U),
                                .mib = want->mib > 0 ? mib : 0,
                                .by_share = want->mib == 0};
    if (!veil_part(outlook, missing, kind)) {
        veil_part(outlook, all, kind);
    }
}

void acre_outlook_veil(struct acre_outlook *outlook) {
    ACRE_ASSERT(outlook->veil_count == 0);
    count_back(outlook);
    for (uint32_t i = 0; i < outlook->row_count; i++) {
        const struct outlook_row *row = &outlook->rows[i];
        const struct node *node = &outlook->ledger->nodes[row->node];
        if (row->device != ACRE_DEVICE_NONE) {
            veil_device(outlook, row);
            continue;
        }
        uint32_t cpu =
            row->cpu_milli > row->back_cpu_milli ? row->cpu_milli - row->back_cpu_milli : 0;
        uint32_t ram = row->ram_mib > row->back_ram_mib ? row->ram_mib - row->back_ram_mib : 0;
        struct acre_part host = {.node = row->node,
                                 .device = ACRE_DEVICE_NONE,
                                 .cpu_milli = ACRE_MIN(cpu, node->cpu_free_milli),
                                 .ram_mib = ACRE_MIN(ram, node->ram_free_mib)};
        if (host.cpu_milli > 0 || host.ram_mib > 0) {
            veil_part(outlook, host, ACRE_ISOLATION_NONE);
        }
    }
}

void acre_outlook_unveil(struct acre_outlook *outlook) {
    while (outlook->veil_count > 0) {
        books_give(outlook->ledger, &outlook->veil[--outlook->veil_count].part, 1, false);
    }
}

/* What is plain from a look at the node: CPU, RAM, idle devices, the largest share. */
static bool lacks(const struct shape *shape, const struct acre_request *request) {
    bool whole = request->exclusive || request->milli == 1000;
    return shape->cpu_free_milli < request->cpu_milli || shape->ram_free_mib < request->ram_mib ||
           (request->gpus > 0 && (whole ? shape->idle_count < request->gpus
                                        : shape->largest_milli < ACRE_MAX(request->milli, 1U)));
}

bool acre_ledger_may_fit_on(struct acre_ledger *ledger, const struct acre_request *request,
                            uint32_t node) {
    ACRE_ASSERT(node < ledger->node_count);
    const struct node *host = &ledger->nodes[node];
    if (host->drained || request->reservation != 0) {
        return !host->drained;
    }
    const struct shape *shape = shapes_get(ledger->shapes, host->shape);
    if (reservations_ahead(ledger)) {
        for (uint32_t i = 0; i < host->device_count; i++) {
            if ((ledger->devices[host->first_device + i].flags & DEVICE_CALENDAR) != 0) {
                return true; /* depends on when it ends */
            }
        }
    }
    struct want want;
    uint64_t slots;
    if (lacks(shape, request) || want_from(ledger, request, &want, NULL) < 0 ||
        !want_matches(ledger, &want, ledger->profiles[host->profile], &slots)) {
        return false;
    }
    struct room room;
    room_from_shape(ledger, shape, &room);
    return choose_capacity(&want, slots, &room, 1) > 0;
}
