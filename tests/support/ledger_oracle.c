/* ledger_oracle.c - the oracle's books, and its answers to requests; see ledger_oracle.h.
 *
 * A request is first tried on one node: by the strategies that rank, on every node, and the best
 * rank wins, then the fuller room, then the lower index; by those that go in order, on the first
 * node that serves. Then a gang over several nodes (place.c): whole nodes from the roomiest down,
 * the last one that whose room is tightest for the rest. Then nodes with windows ahead, for a
 * request that ends in time. */
#include "support/ledger_oracle.h"

#include "support/ledger_oracle_room.h"

#include <stdlib.h>
#include <string.h>

struct oracle *oracle_create(struct acre_ledger *ledger,
                             const struct acre_ledger_options *options) {
    struct oracle *oracle = acre_calloc(1, sizeof(*oracle));
    enum acre_strategy strategy = options->strategy;
    oracle->rules = options->rules != NULL ? *options->rules : *rules_default();
    oracle->ledger = ledger;
    oracle->strategy = strategy != ACRE_STRATEGY_DEFAULT ? strategy : ACRE_STRATEGY_LEAST_WASTE;
    oracle->counts_shares = strategy == ACRE_STRATEGY_LOAD_BALANCED;
    oracle->next_id = 1;
    oracle->next_reservation = 1;
    return oracle;
}

void oracle_destroy(struct oracle *oracle) {
    free(oracle);
}

uint32_t oracle_shares_max(const struct oracle *oracle) {
    return ACRE_MIN(oracle->rules.max_allocations_per_device, 255U);
}

static uint32_t name_of(const struct oracle *oracle, const char *text) {
    return acre_names_find(acre_ledger_names(oracle->ledger), acre_str_from(text));
}

static bool same_devices(const struct oracle_device *a, const struct oracle_device *b) {
    return a->model == b->model && a->vendor == b->vendor && a->memory_mib == b->memory_mib &&
           a->step_milli == b->step_milli && a->is_mig == b->is_mig &&
           a->exclusive_only == b->exclusive_only;
}

/* Are the devices of these nodes the same, island by island, whatever their order? Islands count
 * by rank, not by number. */
static bool same_hardware(const struct oracle *oracle, const struct oracle_node *a,
                          const struct oracle_node *b) {
    struct oracle_want any = {.request = &(struct acre_request){0}, .milli = 1000};
    struct oracle_state idle[ORACLE_NODE_DEVICES_MAX] = {{0}};
    struct oracle_room room_a = oracle_room_of(oracle, &any, (uint32_t)(a - oracle->nodes), idle);
    struct oracle_room room_b = oracle_room_of(oracle, &any, (uint32_t)(b - oracle->nodes), idle);
    for (uint32_t i = 0; i < a->device_count; i++) {
        const struct oracle_device *x = &oracle->devices[room_a.slots[i].device];
        const struct oracle_device *y = &oracle->devices[room_b.slots[i].device];
        bool new_x = i > 0 && x->island != oracle->devices[room_a.slots[i - 1].device].island;
        bool new_y = i > 0 && y->island != oracle->devices[room_b.slots[i - 1].device].island;
        if (new_x != new_y || !same_devices(x, y)) {
            return false;
        }
    }
    return true;
}

static bool same_build(const struct oracle *oracle, const struct oracle_node *a,
                       const struct oracle_node *b) {
    return a->cpu_milli == b->cpu_milli && a->ram_mib == b->ram_mib &&
           a->device_count == b->device_count && a->label_count == b->label_count &&
           memcmp(a->labels, b->labels, sizeof(a->labels)) == 0 && same_hardware(oracle, a, b);
}

static void add_label(struct oracle_node *node, uint32_t label) {
    uint32_t at = node->label_count++;
    for (; at > 0 && node->labels[at - 1] > label; at--) {
        node->labels[at] = node->labels[at - 1];
    }
    node->labels[at] = label;
}

void oracle_add_node(struct oracle *oracle, const struct acre_node_spec *spec) {
    ACRE_ASSERT(oracle->node_count < ORACLE_NODES_MAX &&
                spec->device_count <= ORACLE_NODE_DEVICES_MAX);
    uint32_t index = oracle->node_count++;
    struct oracle_node *node = &oracle->nodes[index];
    *node = (struct oracle_node){
        .first_device = oracle->device_count,
        .device_count = spec->device_count,
        .cpu_milli = (uint32_t)spec->cpu_milli,
        .ram_mib = (uint32_t)spec->ram_mib,
        .cpu_free_milli = (uint32_t)spec->cpu_milli,
        .ram_free_mib = (uint32_t)spec->ram_mib,
    };
    for (uint32_t i = 0; i < spec->label_count; i++) {
        add_label(node, name_of(oracle, spec->labels[i]));
    }
    for (uint32_t i = 0; i < spec->device_count; i++) {
        const struct acre_device_spec *device = &spec->devices[i];
        oracle->devices[oracle->device_count++] = (struct oracle_device){
            .node = index,
            .own = i,
            .model = name_of(oracle, device->model),
            .vendor = name_of(oracle, device->vendor),
            .memory_mib = (uint32_t)device->memory_mib,
            .island = device->island,
            .step_milli = device->step_milli,
            .is_mig = device->is_mig,
            .exclusive_only = device->exclusive_only,
        };
    }
    node->build = 0;
    while (!same_build(oracle, &oracle->nodes[node->build], node)) {
        node->build++;
    }
}

struct oracle_grant *oracle_find(struct oracle *oracle, uint64_t id) {
    for (uint32_t i = 0; i < oracle->grant_count; i++) {
        if (oracle->grants[i].id == id) {
            return &oracle->grants[i];
        }
    }
    return NULL;
}

int oracle_want_from(const struct oracle *oracle, const struct acre_request *request,
                     struct oracle_want *ret_want) {
    if (request->replicas < 1 || request->replicas > ACRE_REQUEST_REPLICAS_MAX ||
        request->gpus > 64 || request->milli > 1000 || request->mib > INT32_MAX ||
        request->cpu_milli > INT32_MAX || request->ram_mib > INT32_MAX ||
        request->isolation >= ACRE_ISOLATION_COUNT || request->strategy >= ACRE_STRATEGY_COUNT ||
        (uint64_t)request->replicas * request->gpus > UINT16_MAX) {
        return ACRE_EINVALID;
    }
    bool asks_share = request->milli > 0 || request->mib > 0;
    if (asks_share != (request->gpus > 0) ||
        (request->gpus == 0 && request->cpu_milli == 0 && request->ram_mib == 0)) {
        return ACRE_EINVALID;
    }
    bool whole = request->gpus > 0 && (request->exclusive || request->milli == 1000 ||
                                       request->isolation == ACRE_ISOLATION_MIG);
    if (request->gpus > 0 &&
        rules_check(&oracle->rules, request->exclusive ? 1000U : request->milli, request->isolation,
                    !whole, NULL) < 0) {
        return ACRE_EDENIED;
    }
    *ret_want = (struct oracle_want){
        .request = request,
        .strategy =
            request->strategy != ACRE_STRATEGY_DEFAULT ? request->strategy : oracle->strategy,
        .milli = whole ? 1000 : request->milli,
        .kind = request->isolation + 1U,
        .whole = whole,
    };
    return 0;
}

static void fill_parts(const struct oracle *oracle, const struct oracle_want *want, uint32_t node,
                       uint32_t replicas, const uint32_t *devices, struct acre_part *parts) {
    const struct acre_request *request = want->request;
    uint32_t each = ACRE_MAX(request->gpus, 1U);
    for (uint32_t i = 0; i < replicas * each; i++) {
        parts[i] = (struct acre_part){.node = node, .device = ACRE_DEVICE_NONE};
        if (i % each == 0) {
            parts[i].cpu_milli = (uint32_t)request->cpu_milli;
            parts[i].ram_mib = (uint32_t)request->ram_mib;
        }
        if (request->gpus > 0) {
            const struct oracle_device *device = &oracle->devices[devices[i]];
            parts[i].device = devices[i];
            parts[i].milli = oracle_milli_on(want, device);
            parts[i].by_share = want->whole || request->mib == 0;
            parts[i].mib = parts[i].by_share
                               ? (uint32_t)((uint64_t)device->memory_mib * parts[i].milli / 1000)
                               : (uint32_t)request->mib;
        }
    }
}

/* All members into this room; false: they do not fit. */
static bool place_in_room(const struct oracle *oracle, const struct oracle_want *want,
                          uint32_t replicas, struct oracle_room room, struct acre_part *parts) {
    uint32_t devices[ORACLE_PARTS_MAX];
    struct oracle_rank rank;
    if (oracle->nodes[room.node].drained || !oracle_node_can_serve(oracle, want, room.node) ||
        !oracle_choose(oracle, want, replicas, &room, devices, &rank)) {
        return false;
    }
    fill_parts(oracle, want, room.node, replicas, devices, parts);
    return true;
}

static bool place_in_order(const struct oracle *oracle, const struct oracle_want *want,
                           struct acre_part *parts) {
    uint32_t from = want->strategy == ACRE_STRATEGY_ROUND_ROBIN ? oracle->next_node : 0;
    for (uint32_t i = 0; i < oracle->node_count; i++) {
        uint32_t node = (from + i) % oracle->node_count;
        struct oracle_room room = oracle_room_now(oracle, want, node);
        if (place_in_room(oracle, want, want->request->replicas, room, parts)) {
            return true;
        }
    }
    return false;
}

static bool place_by_rank(const struct oracle *oracle, const struct oracle_want *want,
                          struct acre_part *parts) {
    struct oracle_room best = {.node = UINT32_MAX};
    struct oracle_rank best_rank = {0, 0};
    for (uint32_t node = 0; node < oracle->node_count; node++) {
        if (oracle->nodes[node].drained || !oracle_node_can_serve(oracle, want, node)) {
            continue;
        }
        struct oracle_room room = oracle_room_now(oracle, want, node);
        struct oracle_room trial = room;
        struct oracle_rank rank;
        if (!oracle_choose(oracle, want, want->request->replicas, &trial, NULL, &rank)) {
            continue;
        }
        bool better =
            best.node == UINT32_MAX || rank.score > best_rank.score ||
            (rank.score == best_rank.score &&
             (rank.second > best_rank.second ||
              (rank.second == best_rank.second && oracle_compare_rooms(oracle, &room, &best) < 0)));
        if (better) {
            best = room;
            best_rank = rank;
        }
    }
    return best.node != UINT32_MAX &&
           place_in_room(oracle, want, want->request->replicas, best, parts);
}

/* Is a node with `room` better for `needed` more members than the best so far? */
static bool better_for_gang(const struct oracle *oracle, const struct oracle_room *room,
                            uint32_t members, const struct oracle_room *best, uint32_t best_members,
                            uint32_t needed) {
    bool holds_rest = members >= needed;
    bool best_holds_rest = best_members >= needed;
    if (best_members == 0 || holds_rest != best_holds_rest) {
        return best_members == 0 || holds_rest;
    }
    if (members != best_members) {
        return holds_rest ? members < best_members : members > best_members;
    }
    return oracle_compare_rooms(oracle, room, best) < 0;
}

static bool place_gang(const struct oracle *oracle, const struct oracle_want *want,
                       struct acre_part *parts) {
    bool used[ORACLE_NODES_MAX] = {false};
    uint32_t placed = 0;
    while (placed < want->request->replicas) {
        uint32_t needed = want->request->replicas - placed;
        struct oracle_room best = {0};
        uint32_t best_members = 0;
        for (uint32_t node = 0; node < oracle->node_count; node++) {
            if (used[node] || oracle->nodes[node].drained ||
                !oracle_node_can_serve(oracle, want, node)) {
                continue;
            }
            struct oracle_room room = oracle_room_now(oracle, want, node);
            uint32_t members = oracle_capacity(oracle, want, &room);
            if (members > 0 &&
                better_for_gang(oracle, &room, members, &best, best_members, needed)) {
                best = room;
                best_members = members;
            }
        }
        uint32_t members = ACRE_MIN(best_members, needed);
        if (members == 0 ||
            !place_in_room(oracle, want, members, best,
                           parts + (size_t)placed * ACRE_MAX(want->request->gpus, 1U))) {
            return false;
        }
        used[best.node] = true;
        placed += members;
    }
    return true;
}

/* On a node with windows ahead, all of which begin after the request's end or leave room. */
static bool place_before_windows(const struct oracle *oracle, const struct oracle_want *want,
                                 struct acre_part *parts) {
    for (uint32_t i = 0; i < oracle->calendar_count; i++) {
        uint32_t node = oracle->devices[oracle->calendars[i]].node;
        struct oracle_state states[ORACLE_NODE_DEVICES_MAX];
        for (uint32_t j = 0; j < oracle->nodes[node].device_count; j++) {
            states[j] = oracle_state_until(oracle, oracle->nodes[node].first_device + j,
                                           want->request->expires_ms);
        }
        struct oracle_room room = oracle_room_of(oracle, want, node, states);
        if (place_in_room(oracle, want, want->request->replicas, room, parts)) {
            return true;
        }
    }
    return false;
}

/* On the devices of an active reservation: its nodes in its order, each as full as can be. */
static int place_within(const struct oracle *oracle, const struct oracle_want *want,
                        struct acre_part *parts) {
    const struct oracle_reservation *reservation =
        oracle_find_reservation(oracle, want->request->reservation);
    if (reservation == NULL) {
        return ACRE_ENOTFOUND;
    }
    if (reservation->state != ACRE_RESERVATION_ACTIVE) {
        return ACRE_ECONFLICT;
    }
    bool seen[ORACLE_NODES_MAX] = {false};
    uint32_t placed = 0;
    for (uint32_t i = 0; i < reservation->device_count; i++) {
        uint32_t node = oracle->devices[reservation->devices[i]].node;
        if (seen[node]) {
            continue;
        }
        seen[node] = true;
        struct oracle_state states[ORACLE_NODE_DEVICES_MAX];
        for (uint32_t j = 0; j < oracle->nodes[node].device_count; j++) {
            states[j] =
                oracle_state_within(oracle, oracle->nodes[node].first_device + j, reservation);
        }
        struct oracle_room room = oracle_room_of(oracle, want, node, states);
        uint32_t members = want->request->replicas - placed;
        while (members > 0 &&
               !place_in_room(oracle, want, members, room,
                              parts + (size_t)placed * ACRE_MAX(want->request->gpus, 1U))) {
            members--;
        }
        placed += members;
    }
    return placed == want->request->replicas ? 0 : ACRE_ENOFIT;
}

int oracle_plan(struct oracle *oracle, const struct acre_request *request, uint64_t now_ms,
                struct acre_part *parts, uint32_t *ret_count) {
    struct oracle_want want;
    int r = oracle_want_from(oracle, request, &want);
    if (r < 0) {
        return r;
    }
    if (request->expires_ms != 0 && request->expires_ms <= now_ms) {
        return ACRE_EINVALID;
    }
    bool could_crowd = request->replicas > 1 && request->gpus > 0 && !want.whole &&
                       want.milli * oracle_shares_max(oracle) < 1000;
    oracle->counts_shares |= want.strategy == ACRE_STRATEGY_LOAD_BALANCED || could_crowd;
    *ret_count = request->replicas * ACRE_MAX(request->gpus, 1U);
    if (request->reservation != 0) {
        return place_within(oracle, &want, parts);
    }
    bool in_order =
        want.strategy == ACRE_STRATEGY_FIRST_FIT || want.strategy == ACRE_STRATEGY_ROUND_ROBIN;
    if ((in_order ? place_in_order : place_by_rank)(oracle, &want, parts) ||
        (request->replicas > 1 && place_gang(oracle, &want, parts)) ||
        (request->expires_ms != 0 && place_before_windows(oracle, &want, parts))) {
        return 0;
    }
    return ACRE_ENOFIT;
}

void oracle_count_part(struct oracle *oracle, const struct acre_part *part, uint32_t kind,
                       bool with_device, bool taken) {
    struct oracle_node *node = &oracle->nodes[part->node];
    node->cpu_free_milli += taken ? -part->cpu_milli : part->cpu_milli;
    node->ram_free_mib += taken ? -part->ram_mib : part->ram_mib;
    if (!with_device || part->device == ACRE_DEVICE_NONE) {
        return;
    }
    struct oracle_device *device = &oracle->devices[part->device];
    uint32_t by_share = part->by_share ? part->milli : 0;
    uint32_t asked = part->by_share ? 0 : part->mib;
    device->milli += taken ? part->milli : -part->milli;
    device->milli_by_share += taken ? by_share : -by_share;
    device->asked_mib += taken ? asked : -asked;
    device->count += taken ? 1 : -1U;
    device->kind = device->count > 0 ? kind : 0;
}

static int check_part(const struct oracle *oracle, const struct acre_part *part, uint32_t kind,
                      bool exclusive, bool with_device) {
    if (part->node >= oracle->node_count) {
        return ACRE_ENOTFOUND;
    }
    const struct oracle_node *node = &oracle->nodes[part->node];
    bool has_device = part->device != ACRE_DEVICE_NONE;
    if (!has_device && (part->milli > 0 || part->mib > 0)) {
        return ACRE_EINVALID;
    }
    if (part->cpu_milli > node->cpu_free_milli || part->ram_mib > node->ram_free_mib) {
        return ACRE_ECONFLICT;
    }
    if (!has_device || !with_device) {
        return 0;
    }
    if (part->device >= oracle->device_count || oracle->devices[part->device].node != part->node) {
        return ACRE_ENOTFOUND;
    }
    const struct oracle_device *device = &oracle->devices[part->device];
    uint64_t asked = (uint64_t)device->asked_mib + (part->by_share ? 0 : part->mib);
    uint64_t by_share = (uint64_t)device->milli_by_share + (part->by_share ? part->milli : 0);
    bool other_kind = device->count > 0 && (exclusive || device->kind != kind);
    if ((exclusive && part->milli != 1000) || part->milli == 0 ||
        part->milli > 1000 - device->milli || other_kind ||
        asked * 1000 + device->memory_mib * by_share > (uint64_t)device->memory_mib * 1000) {
        return ACRE_ECONFLICT;
    }
    return device->count == 255 ? ACRE_ELIMIT : 0;
}

int oracle_check_parts(struct oracle *oracle, const struct acre_part *parts, uint32_t count,
                       uint32_t kind, bool exclusive, bool with_device) {
    int r = 0;
    uint32_t counted = 0;
    for (; counted < count && r == 0; counted++) { /* parts may be on one device or node */
        r = check_part(oracle, &parts[counted], kind, exclusive, with_device);
        if (r < 0) {
            break;
        }
        oracle_count_part(oracle, &parts[counted], kind, with_device, true);
    }
    while (counted-- > 0) {
        oracle_count_part(oracle, &parts[counted], kind, with_device, false);
    }
    return r;
}

struct oracle_grant *oracle_keep(struct oracle *oracle, const struct acre_part *parts,
                                 uint32_t count, uint64_t id) {
    ACRE_ASSERT(oracle->grant_count < ORACLE_GRANTS_MAX && count <= ORACLE_PARTS_MAX);
    struct oracle_grant *grant = &oracle->grants[oracle->grant_count++];
    *grant = (struct oracle_grant){.id = id != 0 ? id : oracle->next_id, .part_count = count};
    memcpy(grant->parts, parts, count * sizeof(*parts));
    oracle->next_id = ACRE_MAX(oracle->next_id, grant->id + 1);
    return grant;
}

int oracle_place(struct oracle *oracle, const struct acre_request *request,
                 const struct acre_part *parts, uint32_t count, uint64_t id, uint64_t now_ms,
                 uint64_t *ret_id) {
    struct oracle_want want;
    int r = oracle_want_from(oracle, request, &want);
    if (r < 0) {
        return r;
    }
    if (id > INT64_MAX || count == 0 || count != acre_request_parts(request)) {
        return ACRE_EINVALID;
    }
    if (id != 0 && oracle_find(oracle, id) != NULL) {
        return ACRE_EEXISTS;
    }
    bool with_device = request->reservation == 0;
    if (!with_device) {
        r = oracle_may_draw(oracle, request->reservation, parts, count, want.kind, want.whole);
    }
    if (r == 0) {
        r = oracle_check_parts(oracle, parts, count, want.kind, want.whole, with_device);
    }
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < count; i++) {
        oracle_count_part(oracle, &parts[i], want.kind, with_device, true);
    }
    struct oracle_grant *grant = oracle_keep(oracle, parts, count, id);
    grant->owner = request->owner;
    grant->tenant = request->tenant;
    grant->created_ms = now_ms;
    grant->expires_ms = request->expires_ms;
    grant->reservation = request->reservation;
    grant->isolation = request->isolation;
    grant->exclusive = want.whole;
    grant->pending = request->pending;
    oracle->next_node = parts[count - 1].node + 1;
    *ret_id = grant->id;
    return 0;
}

void oracle_end(struct oracle *oracle, struct oracle_grant *grant) {
    for (uint32_t i = 0; i < grant->part_count; i++) {
        oracle_count_part(oracle, &grant->parts[i], grant->isolation + 1U, grant->reservation == 0,
                          false);
    }
    *grant = oracle->grants[--oracle->grant_count];
}

int oracle_activate(struct oracle *oracle, uint64_t id) {
    struct oracle_grant *grant = oracle_find(oracle, id);
    if (grant == NULL) {
        return ACRE_ENOTFOUND;
    }
    if (!grant->pending) {
        return ACRE_ECONFLICT;
    }
    grant->pending = false;
    return 0;
}

int oracle_release(struct oracle *oracle, uint64_t id) {
    struct oracle_grant *grant = oracle_find(oracle, id);
    if (grant == NULL) {
        return ACRE_ENOTFOUND;
    }
    if (grant->is_reserved) {
        return ACRE_ECONFLICT;
    }
    oracle_end(oracle, grant);
    return 0;
}

int oracle_extend(struct oracle *oracle, uint64_t id, uint64_t expires_ms, uint64_t now_ms) {
    struct oracle_grant *grant = oracle_find(oracle, id);
    if (grant == NULL) {
        return ACRE_ENOTFOUND;
    }
    if (grant->is_reserved) {
        return ACRE_ECONFLICT;
    }
    if (expires_ms != 0 && expires_ms <= now_ms) {
        return ACRE_EINVALID;
    }
    if (!oracle_may_last(oracle, grant, expires_ms)) {
        return ACRE_ECONFLICT;
    }
    grant->expires_ms = expires_ms;
    return 0;
}

uint32_t oracle_tick(struct oracle *oracle, uint64_t now_ms) {
    uint32_t changed = 0;
    for (uint32_t i = 0; i < oracle->grant_count;) {
        struct oracle_grant *grant = &oracle->grants[i];
        if (grant->expires_ms != 0 && grant->expires_ms <= now_ms && !grant->is_reserved) {
            oracle_end(oracle, grant);
            changed++;
        } else {
            i++;
        }
    }
    return changed + oracle_tick_reservations(oracle, now_ms);
}
