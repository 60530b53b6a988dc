/* choose.c - devices within one node.
 *
 * One device is chosen by the strategy's own measure, tried on each distinct state among the
 * devices (equal devices of one group give equal answers). Several devices - one member with
 * more than one GPU, or several members on this node - are first tried inside one island of fast
 * links, each island in turn, and only then across islands, fewest first: topology comes before
 * packing (ALC-7), so ranks compare by islands first.
 *
 * Measures: least fragmentation, what the node is worth afterwards (mix.h); best fit, the least
 * left on the device; worst fit, the emptiest device; load balanced, the lowest load; in-order
 * strategies, the first device. Ties: the tighter device, then the island with fewer idle
 * devices, then the first. */
#include "ledger/choose.h"

#include "ledger/mix.h"

#include <math.h>
#include <string.h>

/* Worths are counted in requests; differences below a thousandth of one are rounding. */
#define RANK_STEPS 1024.0

void room_from_shape(const struct acre_ledger *ledger, const struct shape *shape,
                     struct room *ret_room) {
    ret_room->profile = ledger->profiles[shape->profile];
    ret_room->profile_index = shape->profile;
    ret_room->cpu_free_milli = shape->cpu_free_milli;
    ret_room->ram_free_mib = shape->ram_free_mib;
    ret_room->device_at_slot = NULL;
    memcpy(ret_room->words, shape->words, shape->device_count * sizeof(shape->words[0]));
}

static bool host_fits(const struct want *want, const struct room *room) {
    return room->cpu_free_milli >= want->cpu_milli && room->ram_free_mib >= want->ram_mib;
}

/* Slots that would take the want now. */
static uint64_t fitting_slots(const struct want *want, uint64_t slots, const struct room *room) {
    uint64_t fitting = 0;
    for (uint64_t rest = slots; rest != 0; rest &= rest - 1) {
        uint32_t slot = (uint32_t)__builtin_ctzll(rest);
        if (want_fits(want, &room->profile->slots[slot], room->words[slot])) {
            fitting |= UINT64_C(1) << slot;
        }
    }
    return fitting;
}

/* 0.7 x share used + 0.3 x allocations / 10, in ten-thousandths: sums of integers are exact, so
 * equal loads are ties whatever order they are added in. */
static double load_of(const struct acre_ledger *ledger, uint64_t word) {
    uint32_t shares = shares_max(ledger) - word_shares(word);
    return 7 * (1000 - word_milli(word)) + 300 * shares;
}

static uint32_t idle_in_island(const struct room *room, uint32_t island) {
    uint32_t idle = 0;
    for (uint32_t i = 0; i < room->profile->device_count; i++) {
        idle += room->profile->slots[i].island == island && word_milli(room->words[i]) == 1000;
    }
    return idle;
}

/* The first device of the node among those in the same state and group as `slot`. */
static uint32_t first_alike(const struct room *room, uint64_t allowed, uint32_t slot) {
    if (room->device_at_slot == NULL) {
        return slot;
    }
    const struct hardware *hardware = &room->profile->slots[slot];
    uint32_t best = slot;
    for (uint32_t i = hardware->group_start; i < hardware->group_end; i++) {
        if ((allowed >> i & 1) != 0 && room->words[i] == room->words[slot] &&
            room->device_at_slot[i] < room->device_at_slot[best]) {
            best = i;
        }
    }
    return best;
}

/* The strategy's measure of taking `slot`; higher is better. */
static double measure_slot(const struct acre_ledger *ledger, const struct want *want,
                           const struct room *room, const struct mix_view *view, uint32_t slot) {
    uint64_t word = room->words[slot];
    uint64_t after = want_word_after(want, &room->profile->slots[slot], word);
    double measure = 0;
    switch ((enum acre_strategy)want->strategy) {
    case ACRE_STRATEGY_LEAST_WASTE:
        measure = mix_worth_after(ledger->mix, room, view, slot, after);
        break;
    case ACRE_STRATEGY_BEST_FIT:
        measure = -(double)word_milli(after);
        break;
    case ACRE_STRATEGY_WORST_FIT:
        measure = word_milli(word);
        break;
    case ACRE_STRATEGY_LOAD_BALANCED:
        measure = -load_of(ledger, word);
        break;
    case ACRE_STRATEGY_FIRST_FIT:
    case ACRE_STRATEGY_ROUND_ROBIN:
        measure = room->device_at_slot != NULL ? -(double)room->device_at_slot[slot] : 0;
        break;
    case ACRE_STRATEGY_DEFAULT:
    case ACRE_STRATEGY_COUNT:
        ACRE_ASSERT(false);
    }
    return measure;
}

/* Of two slots with equal measures: is `a` the better one? */
static bool tie_goes_to(const struct room *room, uint32_t a, uint32_t b) {
    if (word_milli(room->words[a]) != word_milli(room->words[b])) {
        return word_milli(room->words[a]) < word_milli(room->words[b]);
    }
    uint32_t island_a = room->profile->slots[a].island;
    uint32_t island_b = room->profile->slots[b].island;
    if (island_a != island_b) {
        uint32_t idle_a = idle_in_island(room, island_a);
        uint32_t idle_b = idle_in_island(room, island_b);
        return idle_a != idle_b ? idle_a < idle_b : island_a < island_b;
    }
    return a < b;
}

static bool same_as_before(const struct room *room, uint64_t fitting, uint32_t slot) {
    return slot > room->profile->slots[slot].group_start && (fitting >> (slot - 1) & 1) != 0 &&
           room->words[slot - 1] == room->words[slot];
}

static uint32_t choose_one_slot(const struct acre_ledger *ledger, const struct want *want,
                                uint64_t fitting, const struct room *room,
                                const struct mix_view *view, double *ret_measure) {
    bool in_order =
        want->strategy == ACRE_STRATEGY_FIRST_FIT || want->strategy == ACRE_STRATEGY_ROUND_ROBIN;
    uint32_t best = UINT32_MAX;
    double best_measure = 0;
    for (uint64_t rest = fitting; rest != 0; rest &= rest - 1) {
        uint32_t slot = (uint32_t)__builtin_ctzll(rest);
        if (!in_order && same_as_before(room, fitting, slot)) {
            continue;
        }
        double measure = measure_slot(ledger, want, room, view, slot);
        if (best == UINT32_MAX || measure > best_measure ||
            (measure == best_measure && tie_goes_to(room, slot, best))) {
            best = slot;
            best_measure = measure;
        }
    }
    *ret_measure = best_measure;
    return first_alike(room, fitting, best);
}

/* The tightest fitting slot, the first of those alike. */
static uint32_t tightest_slot(uint64_t fitting, const struct room *room) {
    uint32_t best = (uint32_t)__builtin_ctzll(fitting);
    for (uint64_t rest = fitting; rest != 0; rest &= rest - 1) {
        uint32_t slot = (uint32_t)__builtin_ctzll(rest);
        if (word_milli(room->words[slot]) < word_milli(room->words[best])) {
            best = slot;
        }
    }
    return first_alike(room, fitting, best);
}

/* The part of `fitting` to take the next device from: the island already begun, else the
 * smallest island that holds all that are still needed, else the one with most. */
static uint64_t island_to_use(const struct room *room, uint64_t fitting, uint32_t needed,
                              uint64_t begun) {
    uint64_t best = 0;
    uint32_t best_count = 0;
    for (uint32_t island = 0; island < room->profile->island_count; island++) {
        uint64_t mask = 0;
        for (uint32_t i = 0; i < room->profile->device_count; i++) {
            mask |= (uint64_t)(room->profile->slots[i].island == island) << i;
        }
        uint32_t count = (uint32_t)__builtin_popcountll(mask & fitting);
        if (count == 0) {
            continue;
        }
        if ((mask & begun) != 0) {
            return mask & fitting;
        }
        bool better = count >= needed ? best_count < needed || count < best_count
                                      : best_count < needed && count > best_count;
        if (best == 0 || better) {
            best = mask & fitting;
            best_count = count;
        }
    }
    return best;
}

/* Place one member; updates room, the islands used, and `measure` (of the last device). `view` has
 * the room's devices in it when the strategy goes by worth. */
static bool place_member(const struct acre_ledger *ledger, const struct want *want, uint64_t slots,
                         struct room *room, struct mix_view *view, uint8_t *chosen, uint64_t *used,
                         double *ret_measure) {
    if (!host_fits(want, room)) {
        return false;
    }
    room->cpu_free_milli -= want->cpu_milli;
    room->ram_free_mib -= want->ram_mib;
    uint64_t fitting = fitting_slots(want, slots, room);
    if ((uint32_t)__builtin_popcountll(fitting) < want->gpus) {
        return false;
    }
    if (want->gpus == 1 && want->strategy == ACRE_STRATEGY_LEAST_WASTE) {
        mix_look_at_host(ledger->mix, room, view);
    }
    uint64_t begun = 0;
    for (uint32_t i = 0; i < want->gpus; i++) {
        uint32_t slot;
        if (want->gpus == 1) {
            slot = choose_one_slot(ledger, want, fitting, room, view, ret_measure);
        } else {
            slot = tightest_slot(island_to_use(room, fitting, want->gpus - i, begun), room);
        }
        begun |= UINT64_C(1) << slot;
        fitting &= ~(UINT64_C(1) << slot);
        if (chosen != NULL) {
            chosen[i] = (uint8_t)slot;
        }
    }
    for (uint64_t rest = begun; rest != 0; rest &= rest - 1) {
        uint32_t slot = (uint32_t)__builtin_ctzll(rest);
        if (want->gpus > 1 && want->strategy != ACRE_STRATEGY_LEAST_WASTE) {
            *ret_measure += measure_slot(ledger, want, room, NULL, slot);
        }
        room->words[slot] = want_word_after(want, &room->profile->slots[slot], room->words[slot]);
    }
    *used |= begun;
    return true;
}

static uint32_t islands_of(const struct room *room, uint64_t used) {
    uint64_t islands = 0;
    for (; used != 0; used &= used - 1) {
        islands |= UINT64_C(1) << room->profile->slots[__builtin_ctzll(used)].island;
    }
    return (uint32_t)__builtin_popcountll(islands);
}

/* What the rank needs to know of the room as it was. */
struct before {
    double worth;
    uint32_t cpu_free_milli;
    uint32_t free_milli; /* sum over devices */
};

static struct before look_before(const struct acre_ledger *ledger, const struct want *want,
                                 const struct room *room, struct mix_view *view) {
    struct before before = {.cpu_free_milli = room->cpu_free_milli};
    if (want->strategy == ACRE_STRATEGY_LEAST_WASTE) {
        mix_look_at_devices(ledger->mix, room, view);
        mix_look_at_host(ledger->mix, room, view);
        before.worth = mix_worth_as_seen(ledger->mix, room, view);
    }
    for (uint32_t i = 0; i < room->profile->device_count; i++) {
        before.free_milli += word_milli(room->words[i]);
    }
    return before;
}

/* `measure`: the sum over the devices taken; of one device on its own (`one`), its worth. */
static struct rank rank_of(const struct acre_ledger *ledger, const struct want *want,
                           const struct before *before, const struct room *after, double measure,
                           bool one) {
    struct rank rank = {.score = measure};
    switch ((enum acre_strategy)want->strategy) {
    case ACRE_STRATEGY_LEAST_WASTE:
        rank.score = (one ? measure : mix_worth(ledger->mix, after)) - before->worth;
        rank.score = round(rank.score * RANK_STEPS) / RANK_STEPS;
        break;
    case ACRE_STRATEGY_BEST_FIT:
        if (want->gpus == 0) {
            rank.score = -(double)after->cpu_free_milli;
        }
        break;
    case ACRE_STRATEGY_WORST_FIT:
    case ACRE_STRATEGY_LOAD_BALANCED:
        if (want->gpus == 0) {
            rank.score = (double)before->cpu_free_milli / ACRE_MAX(after->profile->cpu_milli, 1U);
        }
        rank.second = before->free_milli;
        break;
    case ACRE_STRATEGY_FIRST_FIT:
    case ACRE_STRATEGY_ROUND_ROBIN:
        rank.score = 0;
        break;
    case ACRE_STRATEGY_DEFAULT:
    case ACRE_STRATEGY_COUNT:
        ACRE_ASSERT(false);
    }
    return rank;
}

static bool place_all(const struct acre_ledger *ledger, const struct want *want, uint64_t slots,
                      uint32_t replicas, struct room *room, uint8_t *chosen,
                      struct rank *ret_rank) {
    struct mix_view view;
    struct before before = look_before(ledger, want, room, &view);
    uint64_t used = 0;
    double total = 0;
    for (uint32_t i = 0; i < replicas; i++) {
        double measure = 0;
        uint8_t *at = chosen != NULL ? chosen + (size_t)i * want->gpus : NULL;
        if (i > 0 && want->strategy == ACRE_STRATEGY_LEAST_WASTE) {
            mix_look_at_devices(ledger->mix, room, &view);
        }
        if (!place_member(ledger, want, slots, room, &view, at, &used, &measure)) {
            return false;
        }
        total += measure;
    }
    *ret_rank = rank_of(ledger, want, &before, room, total, replicas == 1 && want->gpus == 1);
    uint32_t islands = islands_of(room, used);
    ret_rank->islands = islands > 1 ? islands - 1 : 0;
    return true;
}

bool choose_devices(const struct acre_ledger *ledger, const struct want *want, uint64_t slots,
                    uint32_t replicas, struct room *room, uint8_t *chosen, struct rank *ret_rank) {
    if ((uint64_t)replicas * want->gpus <= 1 || room->profile->island_count <= 1) {
        return place_all(ledger, want, slots, replicas, room, chosen, ret_rank);
    }
    /* Inside one island, each in turn; the best one is done again for its choices. */
    uint64_t best_slots = 0;
    struct rank best = {0};
    for (uint32_t island = 0; island < room->profile->island_count; island++) {
        uint64_t mask = 0;
        for (uint32_t i = 0; i < room->profile->device_count; i++) {
            mask |= (uint64_t)(room->profile->slots[i].island == island) << i;
        }
        struct room trial = *room;
        struct rank rank;
        if ((mask & slots) != 0 &&
            place_all(ledger, want, mask & slots, replicas, &trial, NULL, &rank) &&
            (best_slots == 0 || rank.score > best.score)) {
            best_slots = mask & slots;
            best = rank;
        }
    }
    return place_all(ledger, want, best_slots != 0 ? best_slots : slots, replicas, room, chosen,
                     ret_rank);
}

uint32_t choose_capacity(const struct want *want, uint64_t slots, const struct room *room,
                         uint32_t limit) {
    uint64_t by_host = limit;
    if (want->cpu_milli > 0) {
        by_host = ACRE_MIN(by_host, room->cpu_free_milli / want->cpu_milli);
    }
    if (want->ram_mib > 0) {
        by_host = ACRE_MIN(by_host, room->ram_free_mib / want->ram_mib);
    }
    if (want->gpus == 0 || by_host == 0) {
        return (uint32_t)by_host;
    }
    uint32_t members = 0;
    struct room trial = *room;
    if (want->gpus == 1) { /* devices fill one by one, in any order */
        for (uint64_t rest = slots; rest != 0 && members < by_host; rest &= rest - 1) {
            uint32_t slot = (uint32_t)__builtin_ctzll(rest);
            const struct hardware *hardware = &trial.profile->slots[slot];
            while (members < by_host && want_fits(want, hardware, trial.words[slot])) {
                trial.words[slot] = want_word_after(want, hardware, trial.words[slot]);
                members++;
            }
        }
        return members;
    }
    /* Members with several devices: as place_all would, whatever the strategy. */
    struct want plain = *want;
    plain.strategy = ACRE_STRATEGY_BEST_FIT;
    uint64_t used = 0;
    double measure = 0;
    while (members < by_host &&
           place_member(NULL, &plain, slots, &trial, NULL, NULL, &used, &measure)) {
        members++;
    }
    return members;
}
