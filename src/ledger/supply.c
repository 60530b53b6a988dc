/* supply.c - one walk over the shapes, adding up instead of choosing.
 *
 * A shape stands for all nodes in its state, so sums are its numbers times its nodes, and the
 * names shown are those of the first node of the first shape with the largest number. */
#include "ledger/supply.h"

#include "ledger/choose.h"
#include "ledger/shape.h"
#include "ledger/want.h"

static const char *first_node(const struct acre_ledger *ledger, const struct shape *shape) {
    return acre_names_text(ledger->names, ledger->nodes[shape->nodes[0]].name);
}

static void add_shape(const struct acre_ledger *ledger, const struct want *want,
                      const struct shape *shape, uint64_t slots, struct acre_supply *supply) {
    const struct profile *profile = ledger->profiles[shape->profile];
    uint32_t fitting = 0;
    for (uint64_t left = slots; left != 0; left &= left - 1) {
        uint32_t slot = (uint32_t)__builtin_ctzll(left);
        uint64_t word = shape->words[slot];
        uint32_t milli = want->mib > 0 ? word_milli(word) : word_room(word);
        supply->free_milli += (uint64_t)milli * shape->node_count;
        fitting += want_fits(want, &profile->slots[slot], word);
        if (milli > supply->largest_milli) {
            supply->largest_milli = milli;
            supply->largest_at = first_node(ledger, shape);
        }
    }
    supply->fitting += fitting * shape->node_count;
    if (fitting > supply->most_fitting) {
        supply->most_fitting = fitting;
        supply->most_at = first_node(ledger, shape);
    }
    struct room room;
    room_from_shape(ledger, shape, &room);
    supply->members += (uint64_t)shape->node_count *
                       choose_capacity(want, slots, &room, ACRE_REQUEST_REPLICAS_MAX);
}

/* What the want takes of one device of this kind, as a share of the part of it that is scarcer. */
static uint32_t most_milli(const struct want *want, const struct profile *profile, uint64_t slots) {
    uint32_t most = 0;
    for (; slots != 0; slots &= slots - 1) {
        const struct hardware *hardware = &profile->slots[__builtin_ctzll(slots)];
        struct want memory = *want;
        memory.milli = 0; /* by memory alone */
        uint32_t share = want->mib > 0 && !want->whole ? want_milli_on(&memory, hardware) : 0;
        most = ACRE_MAX(most, ACRE_MAX(want_milli_on(want, hardware), share));
    }
    return most;
}

static bool device_is_drained(const struct acre_ledger *ledger, uint32_t node, uint64_t slots) {
    const struct node *on = &ledger->nodes[node];
    for (uint32_t i = on->first_device; i < on->first_device + on->device_count; i++) {
        if ((slots >> ledger->devices[i].slot & 1) != 0) {
            return on->drained || (ledger->devices[i].flags & DEVICE_DRAINED) != 0;
        }
    }
    return on->drained;
}

static void add_hardware(const struct acre_ledger *ledger, const struct want *want,
                         struct acre_supply *supply) {
    uint32_t known = UINT32_MAX, count = 0; /* of the kind seen last: most nodes are of one */
    uint32_t last = 0;                      /* node with such a device */
    uint64_t slots = 0, last_slots = 0;
    for (uint32_t i = 0; i < ledger->node_count; i++) {
        if (ledger->nodes[i].profile != known) {
            known = ledger->nodes[i].profile;
            const struct profile *profile = ledger->profiles[known];
            slots = 0;
            bool matches = want_matches(ledger, want, profile, &slots);
            count = matches ? (uint32_t)__builtin_popcountll(slots) : 0;
            uint32_t milli = matches ? most_milli(want, profile, slots) : 0;
            supply->asked_milli = ACRE_MAX(supply->asked_milli, milli);
        }
        supply->devices += count;
        last = count > 0 ? i : last;
        last_slots = count > 0 ? slots : last_slots;
    }
    supply->only_is_drained = supply->devices == 1 && device_is_drained(ledger, last, last_slots);
}

int acre_ledger_supply(struct acre_ledger *ledger, const struct acre_request *request,
                       struct acre_supply *ret_supply, struct acre_error *err) {
    struct want want;
    int r = want_from(ledger, request, &want, err);
    if (r < 0) {
        return r;
    }
    struct acre_supply supply = {.largest_at = "", .most_at = ""};
    add_hardware(ledger, &want, &supply);
    uint64_t slots;
    for (uint32_t i = 0; i < shapes_limit(ledger->shapes); i++) {
        const struct shape *shape = shapes_get(ledger->shapes, i);
        if (shape != NULL && shape->node_count > 0 &&
            want_matches(ledger, &want, ledger->profiles[shape->profile], &slots)) {
            add_shape(ledger, &want, shape, slots, &supply);
        }
    }
    *ret_supply = supply;
    return 0;
}

uint32_t acre_ledger_kind_count(const struct acre_ledger *ledger) {
    return ledger->profile_count;
}

uint32_t acre_ledger_kind_of(const struct acre_ledger *ledger, uint32_t node) {
    ACRE_ASSERT(node < ledger->node_count);
    return ledger->nodes[node].profile;
}

uint32_t acre_ledger_slot_of(const struct acre_ledger *ledger, uint32_t device) {
    ACRE_ASSERT(device < ledger->device_count);
    return ledger->devices[device].slot;
}

bool acre_ledger_kind_serves(struct acre_ledger *ledger, const struct acre_request *request,
                             uint32_t kind, uint64_t *ret_slots, uint32_t *ret_milli) {
    ACRE_ASSERT(kind < ledger->profile_count);
    struct want want;
    uint64_t slots;
    const struct profile *profile = ledger->profiles[kind];
    if (want_from(ledger, request, &want, NULL) < 0 ||
        !want_matches(ledger, &want, profile, &slots)) {
        return false;
    }
    *ret_slots = slots;
    *ret_milli = most_milli(&want, profile, slots);
    return true;
}
