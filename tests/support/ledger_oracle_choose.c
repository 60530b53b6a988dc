/* ledger_oracle_choose.c - which devices of one node, tried one after the other.
 *
 * Rules (choose.c): one device is taken by the strategy's own measure; equal ones go to the
 * tighter device, then the island with fewer idle devices, then the first. Several devices are
 * tried inside each island, then across islands: each member goes on in the island it began, else
 * begins in the smallest that holds it, else in the one with most; there the tightest device. */
#include "support/ledger_oracle_room.h"

#include <math.h>

/* Each island beyond the first costs more than any packing can gain. */
#define ISLAND_COST 1e6

static const struct oracle_device *device_at(const struct oracle *oracle,
                                             const struct oracle_room *room, uint32_t slot) {
    return &oracle->devices[room->slots[slot].device];
}

static int order(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_hardware(const struct oracle_device *a, const struct oracle_device *b) {
    const int by[] = {
        order(a->island, b->island),
        order(a->model, b->model),
        order(a->vendor, b->vendor),
        order(a->memory_mib, b->memory_mib),
        order(a->step_milli, b->step_milli),
        order(a->is_mig + 2U * a->exclusive_only, b->is_mig + 2U * b->exclusive_only),
    };
    for (size_t i = 0; i < ACRE_COUNT(by); i++) {
        if (by[i] != 0) {
            return by[i];
        }
    }
    return 0;
}

static int compare_states(const struct oracle_state *a, const struct oracle_state *b) {
    const int by[] = {order(a->milli, b->milli), order(a->room, b->room), order(a->kind, b->kind),
                      order(a->mib, b->mib), order(a->shares, b->shares)};
    for (size_t i = 0; i < ACRE_COUNT(by); i++) {
        if (by[i] != 0) {
            return by[i];
        }
    }
    return 0;
}

/* Is `a` to stand before `b`? Equal hardware together, the freer first, then in order. */
static bool stands_before(const struct oracle *oracle, const struct oracle_slot *a,
                          const struct oracle_slot *b) {
    int hardware = compare_hardware(&oracle->devices[a->device], &oracle->devices[b->device]);
    int state = compare_states(&a->state, &b->state);
    if (hardware != 0) {
        return hardware < 0;
    }
    return state != 0 ? state > 0 : a->device < b->device;
}

static bool has_id(const uint32_t *ids, uint32_t max, uint32_t id) {
    for (uint32_t i = 0; i < max && ids[i] != 0; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

uint32_t oracle_milli_on(const struct oracle_want *want, const struct oracle_device *device) {
    uint64_t memory = device->memory_mib;
    return want->milli > 0 ? want->milli
                           : (uint32_t)((want->request->mib * 1000 + memory - 1) / memory);
}

static bool can_serve(const struct oracle_want *want, const struct oracle_device *device) {
    const struct acre_request *request = want->request;
    if (request->gpus == 0) {
        return false;
    }
    if (request->vendor != 0 && request->vendor != device->vendor) {
        return false;
    }
    if (request->models[0] != 0 &&
        !has_id(request->models, ACRE_REQUEST_MODELS_MAX, device->model)) {
        return false;
    }
    if (request->mib > device->memory_mib) {
        return false;
    }
    if (device->is_mig) {
        return want->whole;
    }
    if (request->isolation == ACRE_ISOLATION_MIG) {
        return false;
    }
    return want->whole ||
           (!device->exclusive_only &&
            (device->step_milli == 0 || oracle_milli_on(want, device) % device->step_milli == 0));
}

bool oracle_node_can_serve(const struct oracle *oracle, const struct oracle_want *want,
                           uint32_t index) {
    const struct oracle_node *node = &oracle->nodes[index];
    const struct acre_request *request = want->request;
    for (uint32_t i = 0; i < ACRE_REQUEST_LABELS_MAX && request->labels[i] != 0; i++) {
        if (!has_id(node->labels, node->label_count, request->labels[i])) {
            return false;
        }
    }
    uint32_t devices = 0;
    for (uint32_t i = 0; i < node->device_count && request->gpus > 0; i++) {
        devices += can_serve(want, &oracle->devices[node->first_device + i]);
    }
    return request->cpu_milli <= node->cpu_milli && request->ram_mib <= node->ram_mib &&
           request->gpus <= devices;
}

bool oracle_fits(const struct oracle_want *want, const struct oracle_device *device,
                 const struct oracle_state *state) {
    if (want->whole) {
        return state->milli == 1000 && state->mib == device->memory_mib;
    }
    bool kind = state->kind == 0 || state->kind == want->kind;
    bool memory =
        want->request->mib > 0 ? state->mib >= want->request->mib : state->room >= want->milli;
    return kind && memory && state->milli >= oracle_milli_on(want, device);
}

struct oracle_state oracle_after(const struct oracle_want *want, const struct oracle_device *device,
                                 const struct oracle_state *state) {
    struct oracle_state none = {0};
    struct oracle_state after = *state;
    uint32_t milli = oracle_milli_on(want, device);
    if (want->whole || state->milli <= milli || state->shares == 1) {
        return none;
    }
    uint64_t memory = device->memory_mib;
    uint64_t mib = want->request->mib;
    uint64_t room = milli;
    if (memory > 0 && mib > 0) {
        room = (mib * 1000 + memory - 1) / memory;
    } else if (memory > 0) {
        mib = (memory * milli + 999) / 1000;
    }
    after.milli -= milli;
    after.room = room < state->room ? state->room - (uint32_t)room : 0;
    after.room = ACRE_MIN(after.room, after.milli);
    after.mib = mib < state->mib ? state->mib - (uint32_t)mib : 0;
    after.kind = want->kind;
    after.shares -= state->shares > 0;
    return after;
}

struct oracle_room oracle_room_of(const struct oracle *oracle, const struct oracle_want *want,
                                  uint32_t index, const struct oracle_state *states) {
    const struct oracle_node *node = &oracle->nodes[index];
    struct oracle_room room = {
        .node = index, .cpu_free_milli = node->cpu_free_milli, .ram_free_mib = node->ram_free_mib};
    for (uint32_t i = 0; i < node->device_count; i++) {
        uint32_t device = node->first_device + i;
        struct oracle_slot slot = {device, can_serve(want, &oracle->devices[device]), states[i]};
        uint32_t at = room.count++;
        for (; at > 0 && stands_before(oracle, &slot, &room.slots[at - 1]); at--) {
            room.slots[at] = room.slots[at - 1];
        }
        room.slots[at] = slot;
    }
    return room;
}

struct oracle_room oracle_room_now(const struct oracle *oracle, const struct oracle_want *want,
                                   uint32_t node) {
    struct oracle_state states[ORACLE_NODE_DEVICES_MAX];
    for (uint32_t i = 0; i < oracle->nodes[node].device_count; i++) {
        states[i] = oracle_state_until(oracle, oracle->nodes[node].first_device + i, UINT64_MAX);
    }
    return oracle_room_of(oracle, want, node, states);
}

int oracle_compare_rooms(const struct oracle *oracle, const struct oracle_room *a,
                         const struct oracle_room *b) {
    uint32_t free_a = 0;
    uint32_t free_b = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        free_a += a->slots[i].state.milli;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        free_b += b->slots[i].state.milli;
    }
    const int by[] = {order(free_a, free_b), order(a->cpu_free_milli, b->cpu_free_milli),
                      order(a->ram_free_mib, b->ram_free_mib), order(a->count, b->count)};
    for (size_t i = 0; i < ACRE_COUNT(by); i++) {
        if (by[i] != 0) {
            return by[i];
        }
    }
    for (uint32_t i = 0; i < a->count; i++) {
        int state = compare_states(&a->slots[i].state, &b->slots[i].state);
        if (state != 0) {
            return state;
        }
    }
    int build = order(oracle->nodes[a->node].build, oracle->nodes[b->node].build);
    return build != 0 ? build : order(a->node, b->node);
}

/* The strategy's measure of taking this slot: higher is better. */
static double measure(const struct oracle *oracle, const struct oracle_want *want,
                      const struct oracle_room *room, uint32_t slot) {
    const struct oracle_state *state = &room->slots[slot].state;
    struct oracle_room after = *room;
    after.slots[slot].state = oracle_after(want, device_at(oracle, room, slot), state);
    switch (want->strategy) {
    case ACRE_STRATEGY_LEAST_WASTE:
        return oracle_worth(oracle, &after);
    case ACRE_STRATEGY_BEST_FIT:
        return -(double)after.slots[slot].state.milli;
    case ACRE_STRATEGY_WORST_FIT:
        return state->milli;
    case ACRE_STRATEGY_LOAD_BALANCED: {
        uint32_t shares = oracle_shares_max(oracle) - state->shares;
        return -(7.0 * (1000 - state->milli) + 300.0 * shares); /* ten-thousandths: exact */
    }
    case ACRE_STRATEGY_FIRST_FIT:
    case ACRE_STRATEGY_ROUND_ROBIN:
        return -(double)room->slots[slot].device;
    case ACRE_STRATEGY_DEFAULT:
    case ACRE_STRATEGY_COUNT:
        break;
    }
    ACRE_ASSERT(false);
    return 0;
}

static uint32_t idle_in_island(const struct oracle *oracle, const struct oracle_room *room,
                               uint32_t island) {
    uint32_t idle = 0;
    for (uint32_t i = 0; i < room->count; i++) {
        idle += device_at(oracle, room, i)->island == island && room->slots[i].state.milli == 1000;
    }
    return idle;
}

/* Of two slots with equal measures, `a` before `b`: does the tie go to `b`? */
static bool tie_goes_to_second(const struct oracle *oracle, const struct oracle_room *room,
                               uint32_t a, uint32_t b) {
    uint32_t milli_a = room->slots[a].state.milli;
    uint32_t milli_b = room->slots[b].state.milli;
    uint32_t island_a = device_at(oracle, room, a)->island;
    uint32_t island_b = device_at(oracle, room, b)->island;
    if (milli_a != milli_b) {
        return milli_b < milli_a;
    }
    return island_a != island_b &&
           idle_in_island(oracle, room, island_b) < idle_in_island(oracle, room, island_a);
}

/* Of the allowed slots in the same state and of the same hardware, the first device. */
static uint32_t first_alike(const struct oracle *oracle, const struct oracle_room *room,
                            const bool *allowed, uint32_t slot) {
    uint32_t first = slot;
    for (uint32_t i = 0; i < room->count; i++) {
        if (allowed[i] && room->slots[i].device < room->slots[first].device &&
            compare_hardware(device_at(oracle, room, i), device_at(oracle, room, slot)) == 0 &&
            compare_states(&room->slots[i].state, &room->slots[slot].state) == 0) {
            first = i;
        }
    }
    return first;
}

static uint32_t choose_by_measure(const struct oracle *oracle, const struct oracle_want *want,
                                  const struct oracle_room *room, const bool *allowed,
                                  double *ret_measure) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < room->count; i++) {
        if (!allowed[i]) {
            continue;
        }
        double value = measure(oracle, want, room, i);
        if (best == UINT32_MAX || value > *ret_measure ||
            (value == *ret_measure && tie_goes_to_second(oracle, room, best, i))) {
            best = i;
            *ret_measure = value;
        }
    }
    return best;
}

/* Narrow `allowed` to the island that the next device of a member is to come from. */
static void keep_to_island(const struct oracle *oracle, const struct oracle_room *room,
                           bool *allowed, uint32_t needed, const bool *taken) {
    uint32_t best = UINT32_MAX; /* a slot in it */
    uint32_t best_count = 0;
    bool begun = false;
    for (uint32_t i = 0; i < room->count && !begun; i++) { /* islands stand in order */
        uint32_t island = device_at(oracle, room, i)->island;
        uint32_t count = 0;
        for (uint32_t j = 0; j < room->count; j++) {
            bool here = device_at(oracle, room, j)->island == island;
            count += here && allowed[j];
            begun |= here && taken[j];
        }
        begun &= count > 0;
        bool holds_all = count >= needed;
        bool best_holds_all = best_count >= needed;
        bool better = holds_all ? !best_holds_all || count < best_count
                                : !best_holds_all && count > best_count;
        if (begun || (count > 0 && (best == UINT32_MAX || better))) {
            best = i;
            best_count = count;
        }
    }
    for (uint32_t i = 0; i < room->count; i++) {
        allowed[i] &= device_at(oracle, room, i)->island == device_at(oracle, room, best)->island;
    }
}

static uint32_t tightest(const struct oracle_room *room, const bool *allowed) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < room->count; i++) {
        if (allowed[i] &&
            (best == UINT32_MAX || room->slots[i].state.milli < room->slots[best].state.milli)) {
            best = i;
        }
    }
    return best;
}

/* One member into the room. `devices` NULL: the rank alone is asked for, and which of several
 * slots in the same state is taken does not matter. */
static bool choose_member(const struct oracle *oracle, const struct oracle_want *want,
                          struct oracle_room *room, const bool *mask, uint32_t *devices, bool *used,
                          double *ret_measure) {
    const struct acre_request *request = want->request;
    bool fitting[ORACLE_NODE_DEVICES_MAX];
    bool taken[ORACLE_NODE_DEVICES_MAX] = {false};
    uint32_t count = 0;
    for (uint32_t i = 0; i < room->count; i++) {
        fitting[i] = mask[i] && room->slots[i].can_serve &&
                     oracle_fits(want, device_at(oracle, room, i), &room->slots[i].state);
        count += fitting[i];
    }
    if (count < request->gpus || room->cpu_free_milli < request->cpu_milli ||
        room->ram_free_mib < request->ram_mib) {
        return false;
    }
    room->cpu_free_milli -= (uint32_t)request->cpu_milli;
    room->ram_free_mib -= (uint32_t)request->ram_mib;
    for (uint32_t i = 0; i < request->gpus; i++) {
        bool allowed[ORACLE_NODE_DEVICES_MAX];
        for (uint32_t j = 0; j < room->count; j++) {
            allowed[j] = fitting[j] && !taken[j];
        }
        uint32_t slot;
        if (request->gpus == 1) {
            slot = choose_by_measure(oracle, want, room, allowed, ret_measure);
        } else {
            keep_to_island(oracle, room, allowed, request->gpus - i, taken);
            slot = tightest(room, allowed);
        }
        if (devices != NULL) {
            slot = first_alike(oracle, room, allowed, slot);
            devices[i] = room->slots[slot].device;
        }
        taken[slot] = true;
    }
    for (uint32_t i = 0; i < room->count; i++) {
        if (taken[i]) {
            *ret_measure += request->gpus > 1 ? measure(oracle, want, room, i) : 0;
            room->slots[i].state =
                oracle_after(want, device_at(oracle, room, i), &room->slots[i].state);
            used[i] = true;
        }
    }
    return true;
}

static struct oracle_rank rank_of(const struct oracle *oracle, const struct oracle_want *want,
                                  const struct oracle_room *before, const struct oracle_room *after,
                                  double sum) {
    struct oracle_rank rank = {sum, 0};
    bool by_cpu = want->request->gpus == 0;
    switch (want->strategy) {
    case ACRE_STRATEGY_LEAST_WASTE:
        rank.score = oracle_worth(oracle, after) - oracle_worth(oracle, before);
        rank.score = round(rank.score * 1024) / 1024;
        break;
    case ACRE_STRATEGY_BEST_FIT:
        rank.score = by_cpu ? -(double)after->cpu_free_milli : sum;
        break;
    case ACRE_STRATEGY_WORST_FIT:
    case ACRE_STRATEGY_LOAD_BALANCED:
        if (by_cpu) {
            rank.score = (double)before->cpu_free_milli /
                         ACRE_MAX(oracle->nodes[before->node].cpu_milli, 1U);
        }
        for (uint32_t i = 0; i < before->count; i++) {
            rank.second += before->slots[i].state.milli;
        }
        break;
    case ACRE_STRATEGY_FIRST_FIT:
    case ACRE_STRATEGY_ROUND_ROBIN:
    case ACRE_STRATEGY_DEFAULT:
    case ACRE_STRATEGY_COUNT:
        rank.score = 0;
        break;
    }
    return rank;
}

static bool choose_among(const struct oracle *oracle, const struct oracle_want *want,
                         uint32_t replicas, struct oracle_room *room, const bool *mask,
                         uint32_t *devices, struct oracle_rank *ret_rank) {
    struct oracle_room before = *room;
    bool used[ORACLE_NODE_DEVICES_MAX] = {false};
    double sum = 0;
    for (uint32_t i = 0; i < replicas; i++) {
        double value = 0;
        uint32_t *own = devices != NULL ? devices + (size_t)i * want->request->gpus : NULL;
        if (!choose_member(oracle, want, room, mask, own, used, &value)) {
            return false;
        }
        sum += value;
    }
    *ret_rank = rank_of(oracle, want, &before, room, sum);
    uint32_t islands = 0;
    for (uint32_t i = 0; i < room->count; i++) {
        bool seen = false;
        for (uint32_t j = 0; j < i; j++) {
            seen |=
                used[j] && device_at(oracle, room, j)->island == device_at(oracle, room, i)->island;
        }
        islands += used[i] && !seen;
    }
    ret_rank->score -= islands > 1 ? ISLAND_COST * (islands - 1) : 0;
    return true;
}

bool oracle_choose(const struct oracle *oracle, const struct oracle_want *want, uint32_t replicas,
                   struct oracle_room *room, uint32_t *devices, struct oracle_rank *ret_rank) {
    bool mask[ORACLE_NODE_DEVICES_MAX];
    bool best_mask[ORACLE_NODE_DEVICES_MAX];
    struct oracle_rank best = {0, 0};
    bool found = false;
    uint32_t tried[ORACLE_PARTS_MAX];
    bool single = replicas * want->request->gpus <= 1;
    for (uint32_t i = 0; i < room->count; i++) {
        best_mask[i] = true;
    }
    for (uint32_t i = 0; i < room->count && !single; i++) {
        uint32_t island = device_at(oracle, room, i)->island;
        if (i > 0 && device_at(oracle, room, i - 1)->island == island) {
            continue; /* this island was tried */
        }
        bool can_serve_here = false;
        for (uint32_t j = 0; j < room->count; j++) {
            mask[j] = device_at(oracle, room, j)->island == island;
            can_serve_here |= mask[j] && room->slots[j].can_serve;
        }
        struct oracle_room trial = *room;
        struct oracle_rank rank;
        if (can_serve_here &&
            choose_among(oracle, want, replicas, &trial, mask, devices != NULL ? tried : NULL,
                         &rank) &&
            (!found || rank.score > best.score)) {
            found = true;
            best = rank;
            for (uint32_t j = 0; j < room->count; j++) {
                best_mask[j] = mask[j];
            }
        }
    }
    return choose_among(oracle, want, replicas, room, best_mask, devices, ret_rank);
}

uint32_t oracle_capacity(const struct oracle *oracle, const struct oracle_want *want,
                         const struct oracle_room *room) {
    struct oracle_want plain = *want;
    plain.strategy = ACRE_STRATEGY_FIRST_FIT; /* how many fit does not depend on it */
    struct oracle_room trial = *room;
    bool mask[ORACLE_NODE_DEVICES_MAX];
    bool used[ORACLE_NODE_DEVICES_MAX];
    double value = 0;
    uint32_t members = 0;
    for (uint32_t i = 0; i < room->count; i++) {
        mask[i] = true;
    }
    while (members < ACRE_REQUEST_REPLICAS_MAX &&
           choose_member(oracle, &plain, &trial, mask, NULL, used, &value)) {
        members++;
    }
    return members;
}
